//! What single commands set, taken by their words: netsh, reg, sysctl, ip, ethtool and the like, whatever script they
//! stand in.
//!
//! What PowerShell's own commands set is told in `cmdlets`, what commands run that run others in `wrappers`.

use super::{
    Action, Branches, Kind, Problem, Step, batch, cmdlets, known_or_not, measuring, powershell,
    reg::{key_of_value, text_value},
    script, unix,
    wrappers::{self, Inner},
};
use crate::{Address, lint::meant};

/// How deep commands are read that run one another.
const DEEPEST: usize = 8;

/// Whose words a command's are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Batch,
    PowerShell,
    Shell,
}

impl Language {
    /// What begins a variable.
    const fn marks(self) -> &'static [char] {
        match self {
            Self::Batch => &['%', '!'],
            Self::PowerShell => &['$'],
            Self::Shell => &['$', '`'],
        }
    }

    /// What a text in it does, `depth` texts deep.
    pub(super) fn read(self, text: &str, depth: usize) -> Taken {
        if depth > DEEPEST {
            return Taken::default();
        }
        match self {
            Self::Batch => batch::read(text, depth),
            Self::PowerShell => powershell::read(text, depth),
            Self::Shell => script::read(text, depth),
        }
    }
}

/// The name of a program without its folder and `.exe`, in lower case.
pub(super) fn program(word: &str) -> String {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word).trim_start_matches('@').to_ascii_lowercase();
    name.strip_suffix(".exe").map_or_else(|| name.clone(), str::to_owned)
}

/// What has been read of a script so far.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) steps: Vec<Step>,
    pub(super) problems: Vec<Problem>,
    /// Lines that say something which is judged on other lines: bodies of functions.
    pub(super) followed: Vec<u32>,
    /// Lines of lists that loops go over: what they name may be judged where the loop is.
    pub(super) lists: Vec<u32>,
}

impl Taken {
    /// Notes what a command does. `piped` are the words of the command that hands it objects by a pipe.
    pub(super) fn command(&mut self, line: u32, words: &[String], piped: Option<&[String]>, place: Place) {
        match wrappers::inner(words) {
            Some(Inner::Words(rest)) if place.depth < DEEPEST => {
                self.command(line, &rest, piped, Place { depth: place.depth + 1, ..place });
            }
            Some(Inner::Words(_)) => {}
            Some(Inner::Text(language, text)) => {
                self.inner(line, language.read(&text, place.depth + 1), place.language);
            }
            Some(Inner::Unknown(why)) => self.steps.push(Step::new(line, Action::Unclear(why))),
            None => match command(words, piped) {
                Ok(actions) => self.actions(line, actions, place.language),
                Err(message) => self.problems.push(Problem { line, column: 1, message }),
            },
        }
    }

    /// Places the steps from here on, which a command does that is judged on one line (that of the call which gives it
    /// values) and begins on its own: what isn't known of them is said there.
    pub(super) fn place(&mut self, from: usize, [line, own]: [u32; 2], branches: &Branches) {
        if line != own && self.steps.len() > from {
            self.followed.push(own);
        }
        for step in self.steps.iter_mut().skip(from) {
            if step.line == line && matches!(step.action, Action::Unclear(_)) {
                step.line = own;
            }
            step.branches = branches.around(&step.branches);
        }
    }

    pub(super) fn actions(&mut self, line: u32, actions: Vec<Action>, language: Language) {
        let known = |action| language.marks().iter().fold(action, |action, mark| known_or_not(action, *mark));
        self.steps.extend(actions.into_iter().map(|action| Step::new(line, known(action))));
    }

    /// Takes what a text does that begins on a line of this one.
    pub(super) fn inner(&mut self, line: u32, inner: Self, language: Language) {
        let at = |inner: u32| line.saturating_add(inner.saturating_sub(1));
        for step in inner.steps {
            let from = self.steps.len();
            self.actions(at(step.line), vec![step.action], language);
            self.place(from, [0; 2], &step.branches);
        }
        self.problems.extend(inner.problems.into_iter().map(|problem| Problem { line: at(problem.line), ..problem }));
    }

    /// Takes a whole file that the script writes, of which each line is one of the script's.
    pub(super) fn file(&mut self, kind: Kind, lines: &[(u32, String)], place: Place) {
        if place.depth >= DEEPEST {
            return;
        }
        let text: String = lines.iter().flat_map(|(_, line)| [line.as_str(), "\n"]).collect();
        let Self { steps, problems, .. } = super::read_at(kind, &text, place.depth + 1);
        let at = |inner: u32| {
            let index = usize::try_from(inner).unwrap_or(usize::MAX).saturating_sub(1);
            lines.get(index).or_else(|| lines.last()).map_or(1, |(line, _)| *line)
        };
        for step in steps {
            let from = self.steps.len();
            self.actions(at(step.line), vec![step.action], place.language);
            self.steps.iter_mut().skip(from).for_each(|taken| taken.form = step.form);
        }
        self.problems.extend(problems.into_iter().map(|problem| Problem { line: at(problem.line), ..problem }));
    }
}

/// Where a command stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) language: Language,
    /// How many commands run it.
    pub(super) depth: usize,
}

/// What a command does to TCP: nothing for one that is of no concern, an error for one of ours that can't be read.
fn command(words: &[String], piped: Option<&[String]>) -> Result<Vec<Action>, String> {
    let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
    let Some(first) = words.first() else { return Ok(Vec::new()) };
    match program(first).as_str() {
        "netsh" => netsh(&joined(lower.get(1..).unwrap_or_default())),
        "reg" => reg(words, &lower),
        name => {
            if let Some(found) = cmdlets::actions(words, piped) {
                return found;
            }
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            unix::actions(name, words.get(1..).unwrap_or_default()).unwrap_or_else(|| Ok(measuring::actions(&words)))
        }
    }
}

/// Words in which `name = value` and the like are one.
fn joined(words: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in words {
        match found.last_mut() {
            Some(last) if word.starts_with('=') || last.ends_with('=') => last.push_str(word),
            _ => found.push(word.clone()),
        }
    }
    found
}

/// A word that netsh takes: it takes any beginning of one that stands for a single word. What is none of them and nearly
/// one is an action of its own.
fn word_of<'a>(written: &str, known: &[&'a str]) -> Result<Option<&'a str>, Action> {
    if let Some(exact) = known.iter().find(|word| **word == written) {
        return Ok(Some(exact));
    }
    let begun: Vec<&&str> = known.iter().filter(|word| written.len() >= 2 && word.starts_with(written)).collect();
    if let [only] = begun.as_slice() {
        return Ok(Some(only));
    }
    match known.iter().find(|word| meant::is_slip(written, word)) {
        Some(word) => Err(Action::Misspelt { written: written.to_owned(), meant: (*word).to_owned() }),
        None => Ok(None),
    }
}

/// What `netsh interface tcp set` goes on with.
const TCP_CONTEXTS: [&str; 4] = ["global", "heuristics", "supplemental", "security"];

fn netsh(words: &[String]) -> Result<Vec<Action>, String> {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    // netsh takes any unambiguous beginning of its words.
    if words.first().is_some_and(|word| word.len() >= 3 && "interface".starts_with(word)) {
        words.remove(0);
    }
    match words.as_slice() {
        [what @ ("tcp" | "ip" | "ipv4" | "ipv6" | "winsock"), "reset", ..] => {
            Ok(vec![Action::Reset(format!("netsh {what} reset"))])
        }
        ["tcp", "set", context, rest @ ..] => match word_of(context, &TCP_CONTEXTS) {
            Ok(Some(context)) => tcp(context, rest),
            Ok(None) => Ok(Vec::new()),
            Err(misspelt) => Ok(vec![misspelt]),
        },
        // Another word for `tcp`, in front of what only it has.
        [written, "set", context, ..]
            if meant::is_slip(written, "tcp") && TCP_CONTEXTS.iter().any(|known| known == context) =>
        {
            Ok(vec![Action::Misspelt { written: (*written).to_owned(), meant: "tcp".to_owned() }])
        }
        ["ip" | "ipv4", "set", "global", rest @ ..] => {
            let value = rest.iter().find_map(|word| word.strip_prefix("taskoffload="));
            Ok(value.map(|value| Action::Set(cmdlets::offload("TaskOffload"), value.to_owned())).into_iter().collect())
        }
        [version @ ("ip" | "ipv4" | "ipv6"), "set", "subinterface", device, rest @ ..] => {
            let property = if *version == "ipv6" { "mtu ipv6" } else { "mtu" };
            let device = device.strip_prefix("interface=").unwrap_or(device).to_owned();
            let mtu = rest.iter().find_map(|word| word.strip_prefix("mtu="));
            Ok(mtu.map(|mtu| Action::Set(cmdlets::link(&device, property), mtu.to_owned())).into_iter().collect())
        }
        ["winsock", "set", "autotuning", value, ..] => {
            let knob = Address::netsh("winsock", "autotuning");
            Ok(vec![Action::Set(knob, (*value).to_owned())])
        }
        _ => Ok(Vec::new()),
    }
}

/// `netsh interface tcp set CONTEXT ...`. `security` has memory pressure protection, and profiles that went with it.
fn tcp(context: &str, words: &[&str]) -> Result<Vec<Action>, String> {
    if context == "supplemental" {
        return supplemental(words);
    }
    let set = |parameter: &str, value: &str| {
        let context = format!("tcp {context}");
        Action::Set(Address::Netsh { context, parameter: parameter.to_owned() }, value.to_owned())
    };
    let actions = words.iter().filter_map(|word| match word.split_once('=') {
        Some((parameter, value)) => Some(set(parameter, value)),
        // `set heuristics disabled` names the only parameter that it had.
        None if context == "heuristics" => Some(set("wsh", word)),
        None => None,
    });
    let actions: Vec<Action> = actions.collect();
    if actions.is_empty() && context != "security" {
        return Err(format!("`netsh tcp set {context}` without a parameter=value"));
    }
    Ok(actions)
}

/// `set supplemental template=internet congestionprovider=ctcp`. netsh also takes values without their names, in the
/// order of its help: the template, and then those of `NAMES`.
fn supplemental(words: &[&str]) -> Result<Vec<Action>, String> {
    const NAMES: [(&str, &str); 6] = [
        ("minrto", "MinRtoMs"),
        ("icw", "InitialCongestionWindowMss"),
        ("congestionprovider", "CongestionProvider"),
        ("enablecwndrestart", "CwndRestart"),
        ("delayedacktimeout", "DelayedAckTimeoutMs"),
        ("delayedackfrequency", "DelayedAckFrequency"),
    ];
    let mut template = None;
    let mut sets = Vec::new();
    let mut unnamed = NAMES.iter().map(|(short, _)| *short);
    for word in words {
        match word.split_once('=') {
            Some(("template", name)) => template = Some(name),
            None if template.is_none() => template = Some(*word),
            Some((parameter, value)) => sets.push((parameter, value)),
            None => match unnamed.next() {
                Some(parameter) => sets.push((parameter, *word)),
                None => return Err(format!("`{word}` in `netsh tcp set supplemental` is no parameter=value")),
            },
        }
    }
    let template = template.ok_or("`netsh tcp set supplemental` without a template")?;
    let set = |(parameter, value): (&str, &str)| {
        let Some((_, known)) = NAMES.iter().find(|(short, _)| *short == parameter) else {
            if let Some((meant, _)) = NAMES.iter().find(|(short, _)| meant::is_slip(parameter, short)) {
                return Action::Misspelt { written: parameter.to_owned(), meant: (*meant).to_owned() };
            }
            // What PowerShell has no parameter for.
            let knob = Address::netsh(&format!("tcp supplemental {template}"), parameter);
            return Action::Set(knob, value.to_owned());
        };
        let knob = Address::tcp_setting(template, known);
        // PowerShell has other words for it.
        let value = match (*known, value) {
            ("CwndRestart", "enabled") => "True",
            ("CwndRestart", "disabled") => "False",
            _ => value,
        };
        Action::Set(knob, value.to_owned())
    };
    Ok(sets.into_iter().map(set).collect())
}

fn reg(words: &[String], lower: &[String]) -> Result<Vec<Action>, String> {
    let after = |option: &str| lower.iter().position(|word| word == option).and_then(|at| words.get(at + 1));
    let (Some(verb), Some(key)) = (lower.get(1), words.get(2)) else { return Ok(Vec::new()) };
    let Some(name) = after("/v") else { return Ok(Vec::new()) };
    let knob = Address::Registry { key: key_of_value(key, name), value: name.clone() };
    match verb.as_str() {
        "add" => {
            let value = after("/d").ok_or_else(|| format!("`reg add` of {name} without /d, the value"))?;
            // Without /t it is a text, whatever it looks like (reg add /?).
            let text = after("/t").is_none_or(|kind| kind.eq_ignore_ascii_case("REG_SZ"));
            Ok(vec![Action::Set(knob, if text { text_value(value) } else { value.clone() })])
        }
        "delete" => Ok(vec![Action::Delete(knob)]),
        _ => Ok(Vec::new()),
    }
}

/// Where the block closes that is open before `from`: the tokens, each with its line, of which `open` and `close` enclose blocks.
pub(super) fn end_of_block<T: PartialEq>(tokens: &[(u32, T)], from: usize, [open, close]: [&T; 2]) -> usize {
    let mut depth = 0_u32;
    for (at, (_, token)) in tokens.iter().enumerate().skip(from) {
        if token == open {
            depth += 1;
        } else if token == close {
            if depth == 0 {
                return at;
            }
            depth -= 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn batch(text: &str) -> (Vec<Step>, Vec<Problem>) {
        crate::recipe::read(Kind::Batch, text)
    }

    fn powershell(text: &str) -> (Vec<Step>, Vec<Problem>) {
        crate::recipe::read(Kind::PowerShell, text)
    }

    fn sets(found: (Vec<Step>, Vec<Problem>)) -> Vec<String> {
        assert_eq!(found.1, []);
        let words = |step: Step| match step.action {
            Action::Set(knob, value) => format!("{}: {knob} = {value}", step.line),
            Action::Delete(knob) => format!("{}: {knob} deleted", step.line),
            Action::Reset(what) | Action::Unclear(what) => format!("{}: {what}", step.line),
            other @ (Action::Repeats(_) | Action::Sockets(_) | Action::Misspelt { .. }) => {
                format!("{}: {other:?}", step.line)
            }
        };
        found.0.into_iter().map(words).collect()
    }

    #[test]
    fn a_batch_file_is_read_by_its_commands() {
        let text = "@echo off\nrem netsh int tcp set global rss=disabled\nnetsh int tcp set global autotuninglevel=restricted rss=enabled\nnetsh interface tcp set supplemental Internet congestionprovider=ctcp\nnetsh int tcp set heuristics disabled & netsh winsock reset\nreg add \"HKLM\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters\" /v TcpWindowSize ^\n /t REG_DWORD /d 64240 /f\n";
        assert_eq!(
            sets(batch(text)),
            [
                "3: netsh tcp global autotuninglevel = restricted",
                "3: netsh tcp global rss = enabled",
                "4: tcpsetting internet CongestionProvider = ctcp",
                "5: netsh tcp heuristics wsh = disabled",
                "5: netsh winsock reset",
                r"6: registry HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\TcpWindowSize = 64240",
            ]
        );
    }

    #[test]
    fn a_powershell_script_is_read_by_its_commands() {
        let text = "# x\nSet-NetTCPSetting -SettingName InternetCustom `\n  -InitialCongestionWindowMss 10 -CongestionProvider CUBIC -Confirm:$false\nSet-NetOffloadGlobalSetting -ReceiveSideScaling Disabled\nSet-ItemProperty -Path 'HKLM:\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters' -Name KeepAliveTime -Value 7200000\n";
        assert_eq!(
            sets(powershell(text)),
            [
                "2: tcpsetting InternetCustom InitialCongestionWindowMss = 10",
                "2: tcpsetting InternetCustom CongestionProvider = CUBIC",
                "4: netoffload ReceiveSideScaling = Disabled",
                r"5: registry HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\KeepAliveTime = 7200000",
            ]
        );
    }

    #[test]
    fn commands_about_packets_adapters_and_filters_are_read() {
        let text = "Set-NetAdapterAdvancedProperty -Name 'Ethernet 2' -RegistryKeyword '*JumboPacket' -RegistryValue 9014\nSet-NetAdapterAdvancedProperty -Name a -DisplayName \"Jumbo Packet\" -DisplayValue \"9014 Bytes\"\nSet-NetAdapterAdvancedProperty -Name a -DisplayName \"Flow Control\" -DisplayValue Disabled\nSet-NetIPInterface -InterfaceAlias Ethernet -NlMtuBytes 9000\nDisable-NetAdapterRss -Name Ethernet\nNew-NetTransportFilter -SettingName Custom -DestinationPrefix 10.0.0.0/8\nSet-NetOffloadGlobalSetting -Chimney Enabled\n";
        assert_eq!(
            sets(powershell(text)),
            [
                "1: link Ethernet 2 *JumboPacket = 9014",
                "2: link a *JumboPacket = 9014",
                "3: the driver's property `flow control` is not among the settings that fullpipe knows",
                "4: link Ethernet mtu = 9000",
                "5: link Ethernet *RSS = 0",
                "6: transportfilter Custom = 10.0.0.0/8",
                "7: netsh tcp global chimney = Enabled",
            ]
        );
        let text = "netsh interface ipv4 set subinterface \"Ethernet 2\" mtu=9000 store=persistent\n";
        assert_eq!(sets(batch(text)), ["1: link ethernet 2 mtu = 9000"]);
    }

    #[test]
    fn loops_over_adapters_and_variables_are_followed() {
        let text = "$size = 64240\n$path = \"HKLM:\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters\"\nSet-ItemProperty -Path $path -Name TcpWindowSize -Value $size\nforeach ($guid in $all) { Set-ItemProperty -Path \"$path\\Interfaces\\$guid\" -Name TcpAckFrequency -Value 1 }\nGet-ChildItem $path | ForEach-Object { Set-ItemProperty -Path $_.PSPath -Name TCPNoDelay -Value 1; }\nforeach ($a in Get-NetAdapter) {\n  Set-NetAdapterAdvancedProperty -Name $a.Name -RegistryKeyword '*LsoV2IPv4' -RegistryValue 0\n}\n";
        let parameters = r"registry HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";
        assert_eq!(
            sets(powershell(text)),
            [
                format!(r"3: {parameters}\TcpWindowSize = 64240"),
                format!(r"4: {parameters}\Interfaces\{{GUID}}\TcpAckFrequency = 1"),
                format!(r"5: {parameters}\Interfaces\{{GUID}}\TCPNoDelay = 1"),
                "7: link $a.Name *LsoV2IPv4 = 0".to_owned(),
            ]
        );
        let text = "for /f \"tokens=*\" %%i in ('reg query X') do reg add \"HKLM\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters\\Interfaces\\%%i\" /v TcpAckFrequency /t REG_DWORD /d 1 /f\n";
        assert_eq!(sets(batch(text)), [format!(r"1: {parameters}\Interfaces\{{GUID}}\TcpAckFrequency = 1")]);
    }

    #[test]
    fn templates_may_be_named_by_position_in_a_list_by_a_loop_and_by_a_table() {
        for (text, expected) in [
            ("Set-NetTCPSetting InternetCustom -MinRto 300", vec!["1: tcpsetting InternetCustom MinRtoMs = 300"]),
            (
                "Set-NetTCPSetting -SettingName Custom, Internet -MinRto 300",
                vec!["1: tcpsetting Custom MinRtoMs = 300", "1: tcpsetting Internet MinRtoMs = 300"],
            ),
            (
                "foreach ($n in \"Custom\") {\n  Set-NetTCPSetting -SettingName $n -MinRto 300\n}",
                vec!["2: tcpsetting Custom MinRtoMs = 300"],
            ),
            (
                "\"Custom\" | % { Set-NetTCPSetting -SettingName $_ -MinRto 300 }",
                vec!["1: tcpsetting Custom MinRtoMs = 300"],
            ),
            (
                "$p = @{ SettingName='Internet'; MinRtoMs = 300 }\nSet-NetTCPSetting @p",
                vec!["2: tcpsetting Internet MinRtoMs = 300"],
            ),
            ("Set-NetTCPSetting @p", vec!["1: `@p` is known only when the script runs"]),
            (
                "foreach ($n in Get-Content x) { Set-NetTCPSetting -SettingName $n -MinRto 300 }",
                vec!["1: `$n` is known only when the script runs"],
            ),
            (
                "Set-NetTCPSetting -SettingName Custom -MinRto $ms",
                vec!["1: the value of MinRtoMs, `$ms`, is known only when the script runs"],
            ),
        ] {
            assert_eq!(sets(powershell(text)), expected, "{text}");
        }
    }

    #[test]
    fn offloads_of_single_adapters_are_read_by_the_drivers_keywords() {
        for (line, expected) in [
            ("Disable-NetAdapterRsc -Name Ethernet -IPv4", vec!["1: link Ethernet *RscIPv4 = 0"]),
            ("Set-NetAdapterRsc -Name Ethernet -IPv6Enabled $true", vec!["1: link Ethernet *RscIPv6 = 1"]),
            ("Set-NetAdapterLso Ethernet -V2IPv4Enabled $false", vec!["1: link Ethernet *LsoV2IPv4 = 0"]),
            ("Enable-NetAdapterRss -Name a,b", vec!["1: link a *RSS = 1", "1: link b *RSS = 1"]),
            (
                "Set-NetAdapterAdvancedProperty -Name a -DisplayName 'Large Send Offload V2 (IPv4)' -DisplayValue Disabled",
                vec!["1: link a *LsoV2IPv4 = 0"],
            ),
            ("Disable-NetAdapterChecksumOffload -Name *", vec!["1: adapter ChecksumOffload = Disabled"]),
        ] {
            assert_eq!(sets(powershell(line)), expected, "{line}");
        }
    }

    #[test]
    fn variables_of_a_batch_file_are_put_in() {
        let text = "set W=128480\nset \"K=HKLM\\X\"\nreg add %K% /v A /t REG_DWORD /d %w% /f\nreg add %K% /v B /t REG_DWORD /d %V% /f\nset /p W=?\nreg add %K% /v C /t REG_DWORD /d %W% /f\n";
        assert_eq!(
            sets(batch(text)),
            [
                r"3: registry HKLM\X\A = 128480",
                "4: the value of B, `%V%`, is known only when the script runs",
                "6: the value of C, `%W%`, is known only when the script runs",
            ]
        );
    }

    #[test]
    fn a_slip_of_a_command_is_told_and_another_command_is_not() {
        for (line, meant) in [
            ("Set-NetTCPSeting -SettingName Internet", Some("Set-NetTCPSetting")),
            ("New-NetTransportFiler -SettingName Custom", Some("New-NetTransportFilter")),
            ("Sett-NetTCPSetting -SettingName Internet", Some("Set-NetTCPSetting")),
            ("Get-NetTCPSetting", None),
            ("Get-NetUDPSetting", None),
            ("Enable-NetAdapterUso -Name a", None),
            ("Write-Host x", None),
            ("netsh int tcp set globl rss=disabled", Some("global")),
            ("netsh int tcp show globl", None),
        ] {
            let found = powershell(line).0;
            let found: Vec<&str> = found
                .iter()
                .filter_map(
                    |step| if let Action::Misspelt { meant, .. } = &step.action { Some(meant.as_str()) } else { None },
                )
                .collect();
            assert_eq!(found, meant.into_iter().collect::<Vec<_>>(), "{line}");
        }
        assert_eq!(sets(batch("netsh int tcp set glob rss=disabled")), ["1: netsh tcp global rss = disabled"]);
    }

    #[test]
    fn a_beginning_of_a_parameter_stands_for_the_whole_where_it_is_the_only_one() {
        let text = "Set-NetTCPSetting -SettingName Custom -InitialCongestionWindow 10 -MinRto 300\n";
        assert_eq!(
            sets(powershell(text)),
            ["1: tcpsetting Custom InitialCongestionWindowMss = 10", "1: tcpsetting Custom MinRtoMs = 300"]
        );
        assert_eq!(powershell("Set-NetTCPSetting -SettingName Custom -Delayed 2\n").1.len(), 1);
    }

    #[test]
    fn every_command_of_a_line_is_read() {
        let text =
            "net stop x && netsh int tcp set global rss=disabled || netsh winsock reset & rem netsh int ip reset\n";
        assert_eq!(sets(batch(text)), ["1: netsh tcp global rss = disabled", "1: netsh winsock reset"]);
    }

    #[test]
    fn a_template_may_come_from_a_pipe_and_an_offload_from_an_adapter() {
        let text = "Get-NetTCPSetting | Set-NetTCPSetting -CongestionProvider CTCP; Set-NetTCPSetting -SettingName Internet -ForceWS Enabled\nDisable-NetAdapterLso -Name *\nDisable-NetAdapterRsc -Name *\n";
        assert_eq!(
            sets(powershell(text)),
            [
                "1: tcpsetting * CongestionProvider = CTCP",
                "1: tcpsetting Internet ForceWS = Enabled",
                "2: link * *LsoV2IPv4 = 0",
                "2: link * *LsoV2IPv6 = 0",
                "3: link * *RscIPv4 = 0",
                "3: link * *RscIPv6 = 0",
            ]
        );
    }

    #[test]
    fn netsh_may_be_called_from_powershell_in_several_ways() {
        let text = "cmd /c netsh int tcp set global rss=disabled\n& netsh int tcp set global rsc=disabled\nif ($x) { netsh winsock reset }\n";
        let expected =
            ["1: netsh tcp global rss = disabled", "2: netsh tcp global rsc = disabled", "3: netsh winsock reset"];
        assert_eq!(sets(powershell(text)), expected);
    }

    #[test]
    fn what_netsh_takes_without_names_is_read_in_the_order_of_its_help() {
        let text = "netsh int tcp set supplemental custom 300 10 ctcp enabled 180\nnetsh int ip set global taskoffload=disabled\nnetsh int tcp set security mpp=disabled\n";
        assert_eq!(
            sets(batch(text)),
            [
                "1: tcpsetting custom MinRtoMs = 300",
                "1: tcpsetting custom InitialCongestionWindowMss = 10",
                "1: tcpsetting custom CongestionProvider = ctcp",
                "1: tcpsetting custom CwndRestart = True",
                "1: tcpsetting custom DelayedAckTimeoutMs = 180",
                "2: netoffload TaskOffload = disabled",
                "3: netsh tcp security mpp = disabled",
            ]
        );
        assert_eq!(batch("netsh int tcp set supplemental custom 300 10 ctcp enabled 180 2 7").1.len(), 1);
    }

    #[test]
    fn a_command_of_ours_without_its_value_is_a_problem() {
        assert_eq!(batch("netsh int tcp set global\n").1[0].line, 1);
        assert_eq!(powershell("\nSet-NetTCPSetting -MinRtoMs 300").1[0].line, 2);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(if|else|call|:a|%1|%%i|for|in|do|cmd /c|powershell|-c|start|iex|\\(|\\)|\\{|\\}|>|netsh|int|tcp|set|global|supplemental|reg add|/v|/d|-Name|Set-NetTCPSetting|=| |\"|'|;|&|\n|[a-z:\\\\^`]){0,40}") {
            batch(&text);
            powershell(&text);
        }
    }
}
