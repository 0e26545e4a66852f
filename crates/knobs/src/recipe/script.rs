//! Shell scripts: what their commands set, and what they write into files of the kernel's and of the system's.
//!
//! No shell: a value that only a running script knows is said to be unknown, and branches count as taken. Loops over words
//! that stand in the script are written out, functions run where they are called, and variables that it gives are put in
//! (`loops`).

use super::{
    Action, Kind,
    commands::{Language, Place, Taken, program},
    loops,
    posix::{self, Command},
    unix,
    wrappers::{self, Inner},
};

pub(super) fn read(text: &str, depth: usize) -> Taken {
    let place = Place { language: Language::Shell, depth };
    let mut taken = Taken::default();
    let (commands, lists) = loops::shell(&posix::commands(text.trim_start_matches('\u{feff}')));
    taken.lists = lists;
    let mut output: Option<Lines> = None;
    // What the groups of commands `{ ...; }` print that are open.
    let mut groups: Vec<Lines> = Vec::new();
    for command in &commands {
        let first = command.words.first().map_or("", String::as_str);
        if first == "{" {
            groups.push(Vec::new());
        }
        let words = without_prefix(&command.words);
        let input = take_piped(&mut output, command);
        let name = words.first().map(|word| program(word)).unwrap_or_default();
        let text = if first == "}" { groups.pop() } else { printed(command, &name, words, input.as_deref()) };
        let from = taken.steps.len();
        if let Some(into) = target(command, &name, words) {
            for into in into {
                written(&mut taken, command.line, into, text.as_deref(), place);
            }
        } else if !command.here.is_empty() && is_shell(&name) {
            taken.file(Kind::Script, &command.here, place);
        } else {
            taken.command(command.line, words, None, place);
            if let (Some(group), Some(text)) = (groups.last_mut(), &text) {
                group.extend(text.iter().cloned());
            }
        }
        taken.place(from, [command.line, command.own], &command.branches);
        output = text;
    }
    taken.steps.sort_by_key(|step| step.line);
    taken
}

/// Lines with their numbers.
type Lines = Vec<(u32, String)>;

/// What the command before hands to this one.
fn take_piped(output: &mut Option<Lines>, command: &Command) -> Option<Lines> {
    output.take().filter(|_| command.piped)
}

/// The words behind `sudo` and the like.
fn without_prefix(words: &[String]) -> &[String] {
    match wrappers::inner(words) {
        Some(Inner::Words(rest)) => {
            let inner = words.get(words.len() - rest.len()..).unwrap_or_default();
            without_prefix(inner)
        }
        _ => words,
    }
}

fn is_shell(name: &str) -> bool {
    ["sh", "bash", "dash", "ash", "zsh", "ksh", "ssh", "su"].contains(&name)
}

/// The lines that a command prints, where the script tells them.
fn printed(command: &Command, name: &str, words: &[String], input: Option<&[(u32, String)]>) -> Option<Lines> {
    let line = command.line;
    let rest = words.get(1..).unwrap_or_default();
    match name {
        "echo" => {
            let is_option = |word: &&String| ["-n", "-e", "-E", "-ne", "-en"].contains(&word.as_str());
            let options = rest.iter().take_while(is_option).count();
            Some(lines_of(line, &rest.get(options..)?.join(" ")))
        }
        "printf" => {
            let (format, arguments) = rest.split_first()?;
            let mut parts = format.split("%s");
            let (first, rest) = (parts.next()?, parts.collect::<Vec<_>>());
            if rest.is_empty() {
                return Some(lines_of(line, format));
            }
            // A format is used again until the arguments are used up.
            let once = |words: &[String]| {
                let behind = |(at, part): (usize, &&str)| [words.get(at).map_or("", String::as_str), part].concat();
                [first.to_owned()].into_iter().chain(rest.iter().enumerate().map(behind)).collect::<String>()
            };
            Some(lines_of(line, &arguments.chunks(rest.len()).map(once).collect::<String>()))
        }
        "cat" | "tee" if !command.here.is_empty() => Some(command.here.clone()),
        "cat" if !rest.is_empty() => None,
        "cat" | "tee" => input.map(<[_]>::to_vec),
        _ => None,
    }
}

/// The lines of a text that begins on a line; `\n` ends one, too.
fn lines_of(line: u32, text: &str) -> Lines {
    let numbered = (line..).zip(text.split('\n'));
    numbered.flat_map(|(line, text)| text.split("\\n").map(move |text| (line, text.to_owned()))).collect()
}

/// The files that a command writes its output into.
fn target<'a>(command: &'a Command, name: &str, words: &'a [String]) -> Option<Vec<&'a str>> {
    let mut files: Vec<&str> = command.into.as_deref().into_iter().collect();
    if name == "tee" {
        files.extend(words.iter().skip(1).map(String::as_str).filter(|word| !word.starts_with('-')));
    }
    files.retain(|file| !["/dev/null", "/dev/stderr", "/dev/stdout", "/dev/tty"].contains(file));
    (!files.is_empty()).then_some(files)
}

/// Takes what is written into a file.
fn written(taken: &mut Taken, line: u32, into: &str, lines: Option<&[(u32, String)]>, place: Place) {
    if let Some(knob) = unix::of_kernel(into) {
        let value = lines.map(|lines| lines.iter().map(|(_, text)| text.trim()).collect::<Vec<_>>().join(" "));
        let action = match value {
            Some(value) => Action::Set(knob, value),
            None => Action::Unclear(format!("what is written into `{into}` is known only when the script runs")),
        };
        return taken.actions(line, vec![action], place.language);
    }
    if into.starts_with("/sys/class/net/") || into.starts_with("/sys/module/tcp_") {
        let value = lines.and_then(|lines| lines.first()).map_or("", |(_, text)| text.as_str());
        return taken.actions(
            line,
            vec![Action::Unclear(format!("`{value}` is written into `{into}`"))],
            place.language,
        );
    }
    let Some(lines) = lines else {
        if unix::is_of_settings(into) {
            let words = format!("what is written into `{into}` is known only when the script runs");
            taken.steps.push(super::Step::new(line, Action::Unclear(words)));
        }
        return;
    };
    let text: String = lines.iter().flat_map(|(_, line)| [line.as_str(), "\n"]).collect();
    let sets = |line: &str| {
        let name = line.split_once('=').map(|(name, _)| name.trim());
        name.is_some_and(|name| ["net.", "net/", "kern.", "vm."].iter().any(|tree| name.starts_with(tree)))
    };
    let kind = match Kind::from_file(into, &text) {
        _ if into.contains("sysctl.conf") || into.contains("sysctl.d") => Some(Kind::Sysctl),
        _ if into.contains("loader.conf") || into.contains("rc.conf") => Some(Kind::Shell),
        // systemd's: what it starts is a command line.
        _ if into.ends_with(".service") => Some(Kind::Script),
        _ if into.ends_with("rc.local") => Some(Kind::Script),
        Some(Kind::Sysctl) | None => text.lines().any(sets).then_some(Kind::Sysctl),
        kind => kind,
    };
    match kind {
        Some(Kind::Script) => {
            let commands: Lines = lines
                .iter()
                .map(|(line, text)| {
                    let started = text.trim().split_once('=').filter(|(name, _)| name.starts_with("Exec"));
                    (
                        *line,
                        started.map_or_else(
                            || text.clone(),
                            |(_, command)| command.trim_start_matches(['-', '+', '!']).to_owned(),
                        ),
                    )
                })
                .collect();
            taken.file(Kind::Script, &commands, place);
        }
        Some(Kind::Sysctl) => {
            let only: Lines = lines.iter().filter(|(_, line)| into.contains("sysctl") || sets(line)).cloned().collect();
            // What a variable stands for may be whole lines.
            let (variables, only): (Lines, Lines) = only
                .into_iter()
                .partition(|(_, line)| line.trim_start().starts_with(['$', '`']) && !line.contains('='));
            for (line, text) in variables {
                let words = format!("what `{}` stands for is known only when the script runs", text.trim());
                taken.actions(line, vec![Action::Unclear(words)], place.language);
            }
            taken.file(Kind::Sysctl, &only, place);
        }
        Some(kind) => taken.file(kind, lines, place),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recipe::{Problem, Step};

    fn read(text: &str) -> (Vec<Step>, Vec<Problem>) {
        crate::recipe::read(Kind::Script, text)
    }

    #[test]
    fn the_ways_in_which_scripts_set_tcp_are_read() {
        let text = "#!/bin/sh\nsudo sysctl -w net.ipv4.tcp_rmem=\"4096 131072 6291456\" && sysctl -qw net.ipv4.tcp_sack=1 # on\n/sbin/sysctl net.inet.tcp.sendspace=262144\necho 0 > /proc/sys/net/ipv4/tcp_timestamps\necho 'net.ipv4.tcp_fack = 1' >> /etc/sysctl.conf\ncat <<EOF > /etc/sysctl.d/9.conf\nnet.core.rmem_max = 1\n\n# x\nEOF\nif true; then ifconfig em0 mtu 9014; fi\nip route change default via 10.0.0.1 dev eth0 initcwnd 20\nip link set dev eth0 mtu 9000\nsysctl -a | grep tcp\n# sysctl -w net.ipv4.tcp_sack=0\n";
        let (steps, problems) = read(text);
        assert_eq!(problems, []);
        let found = steps.into_iter().map(|step| match step.action {
            Action::Set(knob, value) => format!("{} {knob} = {value}", step.line),
            other => format!("{other:?}"),
        });
        assert_eq!(
            found.collect::<Vec<_>>(),
            [
                "2 net.ipv4.tcp_rmem = 4096 131072 6291456",
                "2 net.ipv4.tcp_sack = 1",
                "3 net.inet.tcp.sendspace = 262144",
                "4 net.ipv4.tcp_timestamps = 0",
                "5 net.ipv4.tcp_fack = 1",
                "7 net.core.rmem_max = 1",
                "11 link em0 mtu = 9014",
                "12 route default initcwnd = 20",
                "13 link eth0 mtu = 9000",
            ]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(f\\(\\)|f|\\{|\\}|\\$1|sh|-c|sudo|tee|A=\\(|\\)|\\$\\{A\\[@\\]\\}|if|else|fi|printf|sysctl|-w|a.b=1|echo|>|>>|<<|EOF|sysctl.conf|ip|route|mtu| |\"|'|;|&|\\\\|#|\n){0,40}") {
            read(&text);
        }
    }
}
