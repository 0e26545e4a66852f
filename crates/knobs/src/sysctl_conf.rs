//! Reading `sysctl.conf` and `sysctl.d` files, and the order in which a system applies them.
//!
//! Text and names only: which files there are is the caller's to find. Sources: sysctl.d(5) of systemd and
//! sysctl.conf(5) of procps-ng. Where the two differ, systemd's reading is taken, because it is what runs at boot. Names
//! that only FreeBSD and macOS have are read as FreeBSD's /etc/rc.d/sysctl does: there a comment may follow a value.

use crate::{Catalogue, Family, Platform, Settings};

/// One line that does something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The line, counted from 1.
    pub number: u32,
    /// The setting's dotted name: `net.ipv4.tcp_rmem`. A dot inside a name (`eth0.100`) is written as a slash.
    pub name: String,
    /// The value; `None` where the line takes a name out of what a pattern sets (`-net.ipv4.conf.eth0.rp_filter`).
    pub value: Option<String>,
    /// Whether a failure to write is passed over (a leading `-`).
    pub may_fail: bool,
    /// Whether the name is a pattern (glob(7)).
    pub pattern: bool,
    /// How it is written, as far as a version may refuse it for that.
    pub form: Form,
}

/// How a line of FreeBSD's is written, which not every version takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Blanks stand around the `=`, or the value in quotation marks.
    pub spaced: bool,
    /// Words stand behind a number without a `#`; they are not in the value.
    pub words_behind: bool,
}

impl Form {
    /// Why such a line sets nothing on a version, with the name that `lint` has for it; `None` where it sets the value.
    pub(crate) fn sets_nothing(self, name: &str, platform: &Platform) -> Option<(&'static str, String)> {
        let first_word = Catalogue::for_family(platform.family)?.reads_first_word(&platform.version);
        if self.spaced && first_word {
            let words = format!(
                "sets nothing on {platform}: its /etc/rc.d/sysctl hands sysctl(8) the first word of a line as it stands, so blanks around the `=` leave {name} without a value, and quotation marks become a part of it"
            );
            return Some(("blanks", words));
        }
        let refused = self.words_behind && !first_word && matches!(platform.family, Family::FreeBsd | Family::MacOs);
        refused.then(|| {
            let words = format!(
                "sets nothing on {platform}: words stand behind the number of {name}, and sysctl(8) takes no such value; a comment begins with `#`"
            );
            ("malformed", words)
        })
    }
}

/// One line that no reader understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, counted from 1.
    pub line: u32,
    /// The column of the first character that is at fault, counted from 1.
    pub column: u32,
    /// What is wrong with it.
    pub message: String,
}

/// The longest value that the kernel takes in one write (sysctl.conf(5), notes).
const LONGEST_VALUE: usize = 4096;

/// Reads the text of one file: what its lines set, and the lines that can't be read.
pub fn parse(text: &str) -> (Vec<Line>, Vec<Problem>) {
    let (mut lines, mut problems) = (Vec::new(), Vec::new());
    for (number, raw) in (1..).zip(text.lines()) {
        match line(number, raw) {
            Ok(Some(line)) => lines.push(line),
            Ok(None) => {}
            Err(problem) => problems.push(problem),
        }
    }
    (lines, problems)
}

fn line(number: u32, raw: &str) -> Result<Option<Line>, Problem> {
    // A byte-order mark would become part of the first name.
    let raw = if number == 1 { raw.strip_prefix('\u{feff}').unwrap_or(raw) } else { raw };
    let text = raw.trim();
    if text.is_empty() || text.starts_with(['#', ';']) {
        return Ok(None);
    }
    let wrong =
        |at: &str, message: &str| Problem { line: number, column: column_of(raw, at), message: message.to_owned() };
    let (body, may_fail) = text.strip_prefix('-').map_or((text, false), |rest| (rest.trim_start(), true));
    let (name, value) = match body.split_once('=') {
        Some((name, value)) => (name.trim_end(), Some(value.trim())),
        None if may_fail => (body, None),
        None => return Err(wrong(text, "no `=` in the line; a setting is written `name = value`")),
    };
    let value = value.map(|value| if is_bsd(name) { without_comment(value) } else { numbers_of(value) });
    let inner = value.filter(|_| is_bsd(name)).and_then(without_marks);
    let (quoted, value) = (inner.is_some(), inner.or(value));
    let alone = value.filter(|_| is_bsd(name)).and_then(number_before_words);
    let (words_behind, value) = (alone.is_some(), alone.or(value));
    if name.is_empty() {
        return Err(wrong(text, "no name before the `=`"));
    }
    if let Some(at) = name.find(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(wrong(name.get(at..).unwrap_or(name), "a name has no space in it"));
    }
    if value.is_some_and(|value| value.len() > LONGEST_VALUE) {
        return Err(wrong(value.unwrap_or(name), "the value is longer than the 4096 bytes that the kernel takes"));
    }
    if value.is_some_and(str::is_empty) {
        return Err(wrong(text, "no value after the `=`"));
    }
    Ok(Some(Line {
        number,
        name: dotted(name),
        value: value.map(str::to_owned),
        may_fail,
        pattern: name.contains(['*', '?', '[']),
        form: Form {
            spaced: quoted || body.split_once('=').is_some_and(|(name, value)| is_spaced(name, value)),
            words_behind,
        },
    }))
}

/// Whether only FreeBSD and macOS have a name. Linux has `kernel.` and `net.ipv4.` instead.
fn is_bsd(name: &str) -> bool {
    const TREES: [&str; 7] = ["kern", "hw", "machdep", "net.inet", "net.inet6", "net.isr", "net.link"];
    TREES.iter().any(|tree| name.strip_prefix(tree).is_some_and(|rest| rest.starts_with('.')))
}

/// A value without a comment behind it (FreeBSD's /etc/rc.d/sysctl: `read var comments`; later sysctl(8) with -f).
fn without_comment(value: &str) -> &str {
    value.split('#').next().unwrap_or(value).trim_end()
}

/// What stands in quotation marks, which FreeBSD's sysctl(8) takes off with -f.
fn without_marks(value: &str) -> Option<&str> {
    ['"', '\''].into_iter().find_map(|mark| value.strip_prefix(mark)?.strip_suffix(mark))
}

/// The number that words follow, as in `10000 (default 65000)`. Several numbers are a value.
fn number_before_words(value: &str) -> Option<&str> {
    let (number, behind) = value.split_once(char::is_whitespace)?;
    let is_number = |word: &str| crate::value::number(word).is_some();
    (is_number(number) && behind.split_whitespace().next().is_some_and(|word| !is_number(word))).then_some(number)
}

/// Numbers without a comment behind them: Linux reads as many as a setting has and leaves the rest (`proc_get_long`, seen on 6.18). What
/// is a name is taken whole, comment and all, and refused.
fn numbers_of(value: &str) -> &str {
    let Some((numbers, _)) = value.split_once(['#', ';']) else { return value };
    let are_numbers = |word: &str| word.strip_prefix('-').unwrap_or(word).bytes().all(|byte| byte.is_ascii_digit());
    let is_apart = numbers.ends_with([' ', '\t']);
    if is_apart && !numbers.trim().is_empty() && numbers.split_whitespace().all(are_numbers) {
        numbers.trim_end()
    } else {
        value
    }
}

/// Whether blanks stand between a name, its `=` and its value.
pub(crate) fn is_spaced(name: &str, value: &str) -> bool {
    name.ends_with(char::is_whitespace) || value.starts_with(char::is_whitespace)
}

/// The column at which `part`, a slice of `whole`, begins.
fn column_of(whole: &str, part: &str) -> u32 {
    let offset = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    let before = whole.get(..offset).unwrap_or("");
    u32::try_from(before.chars().count()).unwrap_or(u32::MAX).saturating_add(1)
}

/// A name in its dotted form. Whichever separator comes first separates; where that is the slash, dots and slashes
/// change places (sysctl.d(5)).
pub fn dotted(name: &str) -> String {
    match name.find(['.', '/']) {
        Some(first) if name.as_bytes().get(first) == Some(&b'/') => name
            .chars()
            .map(|c| match c {
                '/' => '.',
                '.' => '/',
                other => other,
            })
            .collect(),
        _ => name.to_owned(),
    }
}

/// Whether a pattern of glob(7) matches a dotted name. `*` and `?` do not match a dot, because each part of a name is
/// a file of its own below /proc/sys.
pub fn pattern_matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<&str>, Vec<&str>) = (pattern.split('.').collect(), name.split('.').collect());
    pattern.len() == name.len()
        && pattern.iter().zip(&name).all(|(pattern, name)| {
            part_matches(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
        })
}

/// Matches one part, going back to the last `*` where a try fails: time is bounded by the product of the lengths.
fn part_matches(pattern: &[char], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some('[') => class(pattern, p, name[n]),
            Some('?') => Some(p + 1),
            Some(c) if *c == name[n] => Some(p + 1),
            _ => None,
        };
        match (step, retry) {
            (Some(next), _) => (p, n) = (next, n + 1),
            (None, Some((after, from))) => {
                retry = Some((after, from + 1));
                (p, n) = (after, from + 1);
            }
            (None, None) => return false,
        }
    }
    pattern.get(p..).unwrap_or(&[]).iter().all(|c| *c == '*')
}

/// The place after a bracket expression that matches `c`; `None` where it doesn't match or isn't closed.
fn class(pattern: &[char], open: usize, c: char) -> Option<usize> {
    let negated = matches!(pattern.get(open + 1), Some('!' | '^'));
    let first = open + 1 + usize::from(negated);
    // A `]` that comes first is a member.
    let close = first + 1 + pattern.get(first + 1..)?.iter().position(|c| *c == ']')?;
    let members = pattern.get(first..close)?;
    let (mut found, mut at) = (false, 0);
    while at < members.len() {
        if let (Some('-'), Some(last)) = (members.get(at + 1), members.get(at + 2)) {
            found |= (members[at]..=*last).contains(&c);
            at += 3;
        } else {
            found |= members[at] == c;
            at += 1;
        }
    }
    (found != negated).then_some(close + 1)
}

/// The directories that hold drop-ins, in order of precedence: a file in an earlier one hides a file of the same name
/// in a later one.
pub const DIRECTORIES: [&str; 5] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"];

/// The files that a system applies at boot, in its order: of files with the same name only the one in the directory of
/// the highest precedence, all sorted by name whatever their directory, and names that do not end in `.conf` left out.
///
/// `/etc/sysctl.conf`, where it is among `files`, comes last, as `sysctl --system` reads it. systemd itself reads it
/// only through a link such as `99-sysctl.conf`: leave it out where there is none, and the link where both are there.
pub fn boot_order<'a>(files: &[&'a str]) -> Vec<&'a str> {
    let mut kept: Vec<(&str, usize, &'a str)> = Vec::new();
    let mut last = None;
    for file in files {
        if *file == "/etc/sysctl.conf" {
            last = Some(*file);
            continue;
        }
        let Some((directory, name)) = file.rsplit_once('/') else { continue };
        let Some(rank) = DIRECTORIES.iter().position(|known| *known == directory) else { continue };
        if !name.ends_with(".conf") {
            continue;
        }
        match kept.iter_mut().find(|(known, ..)| *known == name) {
            Some(known) if rank < known.1 => *known = (name, rank, *file),
            Some(_) => {}
            None => kept.push((name, rank, *file)),
        }
    }
    kept.sort_unstable_by_key(|(name, ..)| *name);
    kept.into_iter().map(|(.., file)| file).chain(last).collect()
}

/// Notes in `settings` where the files set each setting that was read.
///
/// `files` are the parsed files in boot order. A line that names a setting wins over patterns, wherever it stands; a
/// line `-name` takes a setting out of all patterns (sysctl.d(5)).
pub fn note_origins(settings: &mut Settings, files: &[(&str, Vec<Line>)]) {
    let addresses: Vec<crate::Address> = settings.values.keys().cloned().collect();
    for address in addresses {
        let crate::Address::Sysctl(name) = &address else { continue };
        let all = || files.iter().flat_map(|(file, lines)| lines.iter().map(move |line| (*file, line)));
        let named = |line: &Line| !line.pattern && line.name == *name;
        let exact = all().any(|(_, line)| named(line));
        let applies = |line: &Line| if exact { named(line) } else { line.pattern && pattern_matches(&line.name, name) };
        let origins = all().filter(|(_, line)| applies(line)).filter_map(|(file, line)| {
            Some(crate::Origin { file: file.to_owned(), line: line.number, value: line.value.clone()? })
        });
        let origins: Vec<_> = origins.collect();
        if origins.is_empty() {
            settings.origins.remove(&address);
        } else {
            settings.origins.insert(address, origins);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Address;

    fn values(text: &str) -> Vec<(u32, String, Option<String>)> {
        let (lines, problems) = parse(text);
        assert_eq!(problems, []);
        lines.into_iter().map(|line| (line.number, line.name, line.value)).collect()
    }

    #[test]
    fn reads_what_a_file_sets_with_its_line_numbers() {
        let text = "# buffers\n\n  net.ipv4.tcp_rmem =  4096 131072  6291456 \n; off\r\n-net.core.rmem_max=212992\r\n";
        assert_eq!(
            values(text),
            [
                (3, "net.ipv4.tcp_rmem".to_owned(), Some("4096 131072  6291456".to_owned())),
                (5, "net.core.rmem_max".to_owned(), Some("212992".to_owned())),
            ]
        );
        assert!(parse(text).0[1].may_fail);
    }

    #[test]
    fn the_first_separator_decides_how_a_name_is_read() {
        for (written, dots) in [
            ("net/ipv4/tcp_rmem", "net.ipv4.tcp_rmem"),
            ("net.ipv4.conf.enp3s0/200.forwarding", "net.ipv4.conf.enp3s0/200.forwarding"),
            ("net/ipv4/conf/enp3s0.200/forwarding", "net.ipv4.conf.enp3s0/200.forwarding"),
        ] {
            assert_eq!(dotted(written), dots);
        }
    }

    #[test]
    fn a_comment_may_follow_a_value_on_freebsd_and_a_number_on_linux() {
        let text = "net.isr.enable=1 # Not in 6.x\nkern.hostname=a#b\nnet.ipv4.tcp_sack = 1 # no\nnet.ipv4.tcp_rmem = 4096 131072\t6291456 ; more\nnet.ipv4.tcp_congestion_control = bbr # fast\nkernel.x = 1# no\n";
        let found: Vec<Option<String>> = parse(text).0.into_iter().map(|line| line.value).collect();
        let expected = ["1", "a", "1", "4096 131072\t6291456", "bbr # fast", "1# no"];
        assert_eq!(found, expected.map(|value| Some(value.to_owned())));
        assert_eq!(parse("net.isr.enable= # nothing\n").1.len(), 1);
    }

    #[test]
    fn words_behind_a_number_are_no_part_of_it() {
        for (line, value, words_behind) in [
            ("net.inet.tcp.keepidle=10000 (default 65000)", "10000", true),
            ("net.inet.tcp.msl=0x400 ms", "0x400", true),
            ("net.inet.tcp.keepidle=10000 # (default 65000)", "10000", false),
            ("kern.x=1 2", "1 2", false),
            ("kern.hostname=two words", "two words", false),
        ] {
            let found = parse(line).0.remove(0);
            assert_eq!((found.value.as_deref(), found.form.words_behind), (Some(value), words_behind), "{line}");
        }
    }

    #[test]
    fn a_name_alone_is_taken_out_of_patterns() {
        let excluded = Line {
            number: 1,
            name: "net.ipv4.conf.eth0.rp_filter".to_owned(),
            value: None,
            may_fail: true,
            pattern: false,
            form: Form::default(),
        };
        assert_eq!(parse("-net.ipv4.conf.eth0.rp_filter").0, [excluded]);
    }

    #[test]
    fn a_line_that_sets_nothing_is_a_problem_with_its_place() {
        for (text, line, column) in [
            ("net.ipv4.tcp_rmem 4096", 1, 1),
            ("\n  = 5", 2, 3),
            ("net.ipv4. tcp_rmem = 1", 1, 10),
            ("net.ipv4.tcp_rmem =", 1, 1),
        ] {
            let (lines, problems) = parse(text);
            assert_eq!(lines, [], "{text}");
            assert_eq!((problems[0].line, problems[0].column), (line, column), "{text}");
        }
    }

    #[test]
    fn a_pattern_matches_within_one_part_of_a_name() {
        assert!(pattern_matches("net.ipv4.conf.*.rp_filter", "net.ipv4.conf.eth0.rp_filter"));
        assert!(!pattern_matches("net.*.rp_filter", "net.ipv4.conf.eth0.rp_filter"));
        assert!(pattern_matches("net.ipv4.tcp_?mem", "net.ipv4.tcp_wmem"));
        assert!(pattern_matches("net.ipv4.tcp_[rw]mem", "net.ipv4.tcp_rmem"));
        assert!(!pattern_matches("net.ipv4.tcp_[!rw]mem", "net.ipv4.tcp_rmem"));
        assert!(!pattern_matches("net.ipv4.tcp_[rw", "net.ipv4.tcp_r"));
    }

    #[test]
    fn files_apply_in_the_order_of_their_names_whatever_their_directory() {
        let files = [
            "/etc/sysctl.conf",
            "/usr/lib/sysctl.d/50-default.conf",
            "/etc/sysctl.d/99-local.conf",
            "/etc/sysctl.d/10-early.conf",
            "/etc/sysctl.d/50-default.conf",
            "/etc/sysctl.d/README",
            "/run/sysctl.d/60-run.conf",
        ];
        assert_eq!(
            boot_order(&files),
            [
                "/etc/sysctl.d/10-early.conf",
                "/etc/sysctl.d/50-default.conf",
                "/run/sysctl.d/60-run.conf",
                "/etc/sysctl.d/99-local.conf",
                "/etc/sysctl.conf",
            ]
        );
    }

    #[test]
    fn a_named_line_wins_over_a_pattern_and_an_excluded_name_over_all_patterns() {
        let rmem = Address::sysctl("net.ipv4.tcp_rmem");
        let wmem = Address::sysctl("net.ipv4.tcp_wmem");
        let mut settings = Settings::default();
        settings.values.insert(rmem.clone(), Some("4096 131072 6291456".to_owned()));
        settings.values.insert(wmem.clone(), Some("4096 16384 4194304".to_owned()));
        let early = parse("net.ipv4.tcp_rmem = 1 2 3\n-net.ipv4.tcp_wmem").0;
        let late = parse("net.ipv4.tcp_*mem = 7 8 9").0;
        note_origins(&mut settings, &[("/etc/sysctl.d/10-a.conf", early), ("/etc/sysctl.d/99-b.conf", late)]);
        let files: Vec<&str> = settings.origins[&rmem].iter().map(|origin| origin.file.as_str()).collect();
        assert_eq!(files, ["/etc/sysctl.d/10-a.conf"]);
        assert!(!settings.origins.contains_key(&wmem));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_reported_without_a_panic(text in "\\PC{0,80}") {
            let (lines, problems) = parse(&text);
            prop_assert!(lines.len() + problems.len() <= text.lines().count());
        }

        #[test]
        fn each_line_is_a_setting_a_problem_or_nothing(text in "[-#; =.a-z/*\\[\\]\n]{0,60}") {
            let (lines, problems) = parse(&text);
            for line in &lines {
                prop_assert!(!line.name.contains(char::is_whitespace));
                prop_assert!(!problems.iter().any(|problem| problem.line == line.number));
            }
        }

        #[test]
        fn matching_ends_for_any_pattern(pattern in "[*?\\[\\]a!-]{0,24}", name in "[ab]{0,24}") {
            pattern_matches(&pattern, &name);
        }

        #[test]
        fn a_pattern_without_wildcards_matches_itself_only(a in "[a-z.]{1,12}", b in "[a-z.]{1,12}") {
            prop_assert_eq!(pattern_matches(&a, &b), a == b);
        }
    }
}
