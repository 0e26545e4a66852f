//! Batch files and PowerShell scripts: the commands that set TCP, taken by their words.
//!
//! No interpreter: a value that a variable would give stays the variable's name, and branches count as taken.

use std::collections::BTreeMap;

use super::{
    Action, Problem, Step, loops, measuring,
    reg::{short_key, text_value},
};
use crate::{Address, Catalogue, Family};

pub(super) fn batch(text: &str) -> (Vec<Step>, Vec<Problem>) {
    let lines = loops::batch(text.trim_start_matches('\u{feff}'));
    read(lines, '^', |word| ["rem", "::"].iter().any(|mark| word.eq_ignore_ascii_case(mark)) || word.starts_with("::"))
}

pub(super) fn powershell(text: &str) -> (Vec<Step>, Vec<Problem>) {
    let lines = text.trim_start_matches('\u{feff}').lines();
    read((1..).zip(lines.map(str::to_owned)), '`', |word| word.starts_with('#'))
}

/// What stands between two commands of a line.
const SEPARATORS: [&str; 5] = ["&", "&&", ";", "|", "||"];
/// The template of a command that is handed templates by another one.
const ALL: &str = "*";

fn read(
    lines: impl IntoIterator<Item = (u32, String)>,
    goes_on: char,
    is_comment: impl Fn(&str) -> bool,
) -> (Vec<Step>, Vec<Problem>) {
    let (mut steps, mut problems) = (Vec::new(), Vec::new());
    let powershell = goes_on == '`';
    let mut variables = Variables::default();
    let mut lines = lines.into_iter();
    while let Some((number, raw)) = lines.next() {
        let mut line = raw.trim_end().to_owned();
        while line.ends_with(goes_on) {
            line.pop();
            let Some((_, next)) = lines.next() else { break };
            line.push_str(next.trim_end());
        }
        if powershell {
            variables.note(&line);
        }
        let words = words(&line, powershell);
        let mut piped = false;
        for command in words.split_inclusive(|word| SEPARATORS.contains(&word.as_str())) {
            let (command, separator) = match command.split_last() {
                Some((last, rest)) if SEPARATORS.contains(&last.as_str()) => (rest, last.as_str()),
                _ => (command, ""),
            };
            let command = without_prefix(command);
            let from_pipe = std::mem::replace(&mut piped, separator == "|");
            // Nothing is between the two halves of `&&`; after a comment's mark everything is comment.
            let Some(first) = command.first() else { continue };
            if is_comment(first) {
                break;
            }
            let command: Vec<String> = command.iter().map(|word| variables.put_in(word)).collect();
            match self::command(&command, from_pipe.then_some(ALL)) {
                Ok(actions) => {
                    steps.extend(actions.into_iter().map(|action| Step { line: number, action: known_or_not(action) }));
                }
                Err(message) => problems.push(Problem { line: number, column: 1, message }),
            }
        }
    }
    (steps, problems)
}

/// What a running script alone knows is no setting: a parameter's name that a variable gives.
fn known_or_not(action: Action) -> Action {
    let Action::Set(Address::Netsh { parameter: name, .. } | Address::TcpSetting { parameter: name, .. }, _) = &action
    else {
        return action;
    };
    if name.contains(['%', '$']) {
        return Action::Unclear(format!("`{name}` is known only when the script runs"));
    }
    action
}

/// The variables of a script that stand for a text or a number from their line on.
#[derive(Default)]
struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Notes `$name = "text"`, `$name = 64240`; a name that gets anything else is no longer known.
    fn note(&mut self, line: &str) {
        let Some((name, value)) = line.trim().strip_prefix('$').and_then(|rest| rest.split_once('=')) else { return };
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
        let quoted = |mark: char| value.strip_prefix(mark)?.strip_suffix(mark).filter(|text| !text.contains(mark));
        let number =
            Some(value).filter(|value| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        match quoted('"').or_else(|| quoted('\'')).or(number) {
            Some(text) if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') => {
                self.0.insert(name, text.to_owned());
            }
            _ => drop(self.0.remove(&name)),
        }
    }

    /// A word whose beginning is a variable that is known, with its text instead.
    fn put_in(&self, word: &str) -> String {
        let Some(rest) = word.strip_prefix('$') else { return word.to_owned() };
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let text = self.0.get(&name.to_ascii_lowercase()).filter(|_| rest.is_empty() || rest.starts_with('\\'));
        text.map_or_else(|| word.to_owned(), |text| format!("{text}{rest}"))
    }
}

/// The words of a line; quotation marks hold words together and go away, and separators of commands are words. In
/// PowerShell braces around commands are separators, too, and braces within a word (`{GUID}`, `@{...}`) are not.
fn words(line: &str, powershell: bool) -> Vec<String> {
    let (mut words, mut word, mut quote, mut any) = (Vec::new(), String::new(), None, false);
    let mut inner = 0_u32;
    let mut push = |word: &mut String, any: &mut bool| {
        if *any {
            words.push(std::mem::take(word));
        }
        *any = false;
    };
    for c in line.chars() {
        match (quote, c) {
            (Some(mark), _) if c == mark => quote = None,
            (Some(_), _) => word.push(c),
            (None, '"' | '\'') => (quote, any) = (Some(c), true),
            (None, '{') if powershell && any && !word.ends_with(')') => {
                inner += 1;
                word.push(c);
            }
            (None, '}') if powershell && inner > 0 => {
                inner -= 1;
                word.push(c);
            }
            (None, '&' | ';' | '|') => {
                push(&mut word, &mut any);
                (word, any) = (c.to_string(), true);
                push(&mut word, &mut any);
            }
            (None, '{' | '}') if powershell => {
                push(&mut word, &mut any);
                (word, any) = (";".to_owned(), true);
                push(&mut word, &mut any);
            }
            (None, c) if c.is_whitespace() => push(&mut word, &mut any),
            (None, _) => {
                word.push(c);
                any = true;
            }
        }
    }
    push(&mut word, &mut any);
    words
}

/// A command without `@`, `cmd /c` and the like before it.
fn without_prefix(command: &[String]) -> &[String] {
    // `for /f %%i in ('...') do reg add ...`.
    let is_loop = command.first().is_some_and(|first| first.eq_ignore_ascii_case("for"));
    let body = command.iter().position(|word| word.eq_ignore_ascii_case("do")).filter(|_| is_loop);
    let mut rest = body.and_then(|at| command.get(at + 1..)).unwrap_or(command);
    while let [first, others @ ..] = rest {
        let prefix = ["@", "cmd", "cmd.exe", "/c", "call", "start", "/wait", "{", "("];
        if !prefix.iter().any(|known| first.eq_ignore_ascii_case(known)) {
            break;
        }
        rest = others;
    }
    rest
}

/// What a command does to TCP: nothing for one that is of no concern, an error for one of ours that can't be read.
/// `template` is for a command that a pipe hands its templates.
fn command(words: &[String], template: Option<&str>) -> Result<Vec<Action>, String> {
    let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
    let Some(first) = lower.first().map(|word| word.trim_start_matches('@')) else { return Ok(Vec::new()) };
    match first {
        "netsh" | "netsh.exe" => netsh(lower.get(1..).unwrap_or_default()),
        "reg" | "reg.exe" => reg(words, &lower),
        "set-nettcpsetting" => set_net_tcp_setting(words, template),
        "set-netoffloadglobalsetting" => {
            Ok(parameters(words).into_iter().map(|(name, value)| Action::Set(offload(&name), value)).collect())
        }
        "set-netadapteradvancedproperty" => Ok(advanced_property(words)),
        "set-netipinterface" => Ok(ip_interface(words)),
        // Per adapter, and to the same end.
        "disable-netadapterrss" => Ok(vec![Action::Set(offload("ReceiveSideScaling"), "Disabled".to_owned())]),
        "disable-netadapterrsc" => Ok(vec![Action::Set(offload("ReceiveSegmentCoalescing"), "Disabled".to_owned())]),
        "disable-netadapterlso" => Ok(vec![Action::Set(of_adapter("LargeSendOffload"), "Disabled".to_owned())]),
        "disable-netadapterchecksumoffload" => {
            Ok(vec![Action::Set(of_adapter("ChecksumOffload"), "Disabled".to_owned())])
        }
        "new-nettransportfilter" => Ok(transport_filter(words)),
        "set-itemproperty" | "new-itemproperty" | "sp" => item_property(words, false),
        "remove-itemproperty" | "rp" => item_property(words, true),
        _ => Ok(measuring::actions(&words.iter().map(|word| word.trim_start_matches('@')).collect::<Vec<_>>())),
    }
}

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
        ["tcp", "set", context @ ("global" | "heuristics"), rest @ ..] => {
            let set = |parameter: &str, value: &str| {
                let context = format!("tcp {context}");
                Action::Set(Address::Netsh { context, parameter: parameter.to_owned() }, value.to_owned())
            };
            let actions = rest.iter().filter_map(|word| match word.split_once('=') {
                Some((parameter, value)) => Some(set(parameter, value)),
                // `set heuristics disabled` names the only parameter that it had.
                None if *context == "heuristics" => Some(set("wsh", word)),
                None => None,
            });
            let actions: Vec<Action> = actions.collect();
            if actions.is_empty() {
                Err(format!("`netsh tcp set {context}` without a parameter=value"))
            } else {
                Ok(actions)
            }
        }
        ["tcp", "set", "supplemental", rest @ ..] => supplemental(rest),
        // Memory pressure protection, and profiles that went with it.
        ["tcp", "set", "security", rest @ ..] => {
            let set = |(parameter, value): (&str, &str)| {
                let context = "tcp security".to_owned();
                Action::Set(Address::Netsh { context, parameter: parameter.to_owned() }, value.to_owned())
            };
            Ok(rest.iter().filter_map(|word| word.split_once('=')).map(set).collect())
        }
        ["ip" | "ipv4", "set", "global", rest @ ..] => {
            let value = rest.iter().find_map(|word| word.strip_prefix("taskoffload="));
            Ok(value.map(|value| Action::Set(offload("TaskOffload"), value.to_owned())).into_iter().collect())
        }
        ["ip" | "ipv4" | "ipv6", "set", "subinterface", device, rest @ ..] => {
            let device = device.strip_prefix("interface=").unwrap_or(device).to_owned();
            let mtu = rest.iter().find_map(|word| word.strip_prefix("mtu="));
            Ok(mtu.map(|mtu| Action::Set(link(&device, "mtu"), mtu.to_owned())).into_iter().collect())
        }
        ["winsock", "set", "autotuning", value, ..] => {
            let knob = Address::Netsh { context: "winsock".to_owned(), parameter: "autotuning".to_owned() };
            Ok(vec![Action::Set(knob, (*value).to_owned())])
        }
        _ => Ok(Vec::new()),
    }
}

/// A global offload by its parameter in Set-NetOffloadGlobalSetting.
fn offload(name: &str) -> Address {
    if name.eq_ignore_ascii_case("Chimney") {
        return Address::Netsh { context: "tcp global".to_owned(), parameter: "chimney".to_owned() };
    }
    Address::Named { kind: "netoffload".to_owned(), name: name.to_owned() }
}

/// An offload of one adapter.
fn of_adapter(name: &str) -> Address {
    Address::Named { kind: "adapter".to_owned(), name: name.to_owned() }
}

fn link(device: &str, property: &str) -> Address {
    Address::Link { device: device.to_owned(), property: property.to_owned() }
}

/// The value of one named parameter.
fn parameter(given: &[(String, String)], names: &[&str]) -> Option<String> {
    let known = |given: &str| names.iter().any(|name| name.eq_ignore_ascii_case(given));
    given.iter().find(|(name, _)| known(name)).map(|(_, value)| value.clone())
}

/// A property of a driver, by its keyword or by what its page shows: the size of frames (`Jumbo Packet`, `9014 Bytes`), or
/// an offload. Keywords: Microsoft's documents of the standardised ones.
fn advanced_property(words: &[String]) -> Vec<Action> {
    let given = parameters(words);
    let device = parameter(&given, &["Name", "InterfaceDescription"]).unwrap_or_else(|| "*".to_owned());
    let name = parameter(&given, &["RegistryKeyword", "DisplayName"]).unwrap_or_default().to_ascii_lowercase();
    let Some(value) = parameter(&given, &["RegistryValue", "DisplayValue"]) else { return Vec::new() };
    if name.contains("jumbo") {
        let bytes = value.split_whitespace().next().map(str::to_owned);
        return bytes.map(|bytes| Action::Set(link(&device, "*JumboPacket"), bytes)).into_iter().collect();
    }
    let knob = if name.starts_with("*lso") || name.contains("large send offload") {
        of_adapter("LargeSendOffload")
    } else if name.contains("checksumoffload") || name.contains("checksum offload") {
        of_adapter("ChecksumOffload")
    } else if name == "*rss" || name == "receive side scaling" {
        offload("ReceiveSideScaling")
    } else if name.starts_with("*rscipv") || name.contains("receive segment coalescing") {
        offload("ReceiveSegmentCoalescing")
    } else {
        let words = format!("the driver's property `{name}` bounds no TCP connection as far as the catalogue knows");
        return vec![Action::Unclear(words)];
    };
    let off = ["0", "disabled", "off"].iter().any(|word| value.eq_ignore_ascii_case(word));
    vec![Action::Set(knob, if off { "Disabled" } else { "Enabled" }.to_owned())]
}

fn ip_interface(words: &[String]) -> Vec<Action> {
    let given = parameters(words);
    let device = parameter(&given, &["InterfaceAlias", "InterfaceIndex"]).unwrap_or_else(|| "*".to_owned());
    let mtu = parameter(&given, &["NlMtuBytes", "NlMtu"]);
    mtu.map(|mtu| Action::Set(link(&device, "mtu"), mtu)).into_iter().collect()
}

fn transport_filter(words: &[String]) -> Vec<Action> {
    let given = parameters(words);
    let Some(template) = parameter(&given, &["SettingName"]) else { return Vec::new() };
    let to = parameter(&given, &["DestinationPrefix", "RemotePortStart", "LocalPortStart"]).unwrap_or_default();
    vec![Action::Set(Address::Named { kind: "transportfilter".to_owned(), name: template }, to)]
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
        let known = NAMES.iter().find(|(short, _)| *short == parameter).map_or(parameter, |(_, long)| long);
        let knob = Address::TcpSetting { template: template.to_owned(), parameter: known.to_owned() };
        Action::Set(knob, value.to_owned())
    };
    Ok(sets.into_iter().map(set).collect())
}

fn reg(words: &[String], lower: &[String]) -> Result<Vec<Action>, String> {
    let after = |option: &str| lower.iter().position(|word| word == option).and_then(|at| words.get(at + 1));
    let (Some(verb), Some(key)) = (lower.get(1), words.get(2)) else { return Ok(Vec::new()) };
    let Some(name) = after("/v") else { return Ok(Vec::new()) };
    let knob = Address::Registry { key: short_key(key), value: name.clone() };
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

/// The named parameters of a PowerShell command; a switch has the value `True`.
fn parameters(words: &[String]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = words.iter().skip(1).peekable();
    while let Some(word) = rest.next() {
        let Some(name) = word.strip_prefix('-').filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
        else {
            continue;
        };
        let (name, value) = match name.split_once(':') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (name, rest.next_if(|next| !next.starts_with('-')).cloned()),
        };
        let common = ["erroraction", "confirm", "whatif", "force", "verbose", "cimsession", "passthru"];
        if !common.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            found.push((name.to_owned(), value.unwrap_or_else(|| "True".to_owned())));
        }
    }
    found
}

fn set_net_tcp_setting(words: &[String], piped: Option<&str>) -> Result<Vec<Action>, String> {
    let given = parameters(words);
    let template =
        given.iter().find(|(name, _)| name.eq_ignore_ascii_case("SettingName")).map(|(_, value)| value.clone());
    let template = template.or_else(|| piped.map(str::to_owned)).ok_or("Set-NetTCPSetting without -SettingName")?;
    let sets = given.into_iter().filter(|(name, _)| !name.eq_ignore_ascii_case("SettingName"));
    let set = |(parameter, value): (String, String)| {
        let parameter = whole_parameter(&parameter)?;
        Ok(Action::Set(Address::TcpSetting { template: template.clone(), parameter }, value))
    };
    sets.map(set).collect()
}

/// The parameter that PowerShell takes an unambiguous beginning for: `-InitialCongestionWindow` in Microsoft's own example
/// of Set-NetTCPSetting.
fn whole_parameter(given: &str) -> Result<String, String> {
    const PARAMETERS: [&str; 20] = [
        "MinRtoMs",
        "InitialCongestionWindowMss",
        "CongestionProvider",
        "CwndRestart",
        "DelayedAckTimeoutMs",
        "DelayedAckFrequency",
        "MemoryPressureProtection",
        "AutoTuningLevelLocal",
        "EcnCapability",
        "Timestamps",
        "InitialRtoMs",
        "ScalingHeuristics",
        "DynamicPortRangeStartPort",
        "DynamicPortRangeNumberOfPorts",
        "AutomaticUseCustom",
        "NonSackRttResiliency",
        "ForceWS",
        "MaxSynRetransmissions",
        "AutoReusePortRangeStartPort",
        "AutoReusePortRangeNumberOfPorts",
    ];
    let begins = |name: &&&str| name.get(..given.len()).is_some_and(|start| start.eq_ignore_ascii_case(given));
    let found: Vec<&str> = PARAMETERS.iter().filter(begins).copied().collect();
    match found.as_slice() {
        [] => Ok(given.to_owned()),
        [one] => Ok((*one).to_owned()),
        [first, ..] if found.iter().any(|name| name.eq_ignore_ascii_case(given)) => Ok((*first).to_owned()),
        several => Err(format!("`-{given}` stands for several parameters: {}", several.join(", "))),
    }
}

fn item_property(words: &[String], remove: bool) -> Result<Vec<Action>, String> {
    let given = parameters(words);
    let named =
        |name: &str| given.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone());
    let positional = || words.get(1).filter(|word| !word.starts_with('-')).cloned();
    let (Some(path), Some(name)) = (named("Path").or_else(|| named("LiteralPath")).or_else(positional), named("Name"))
    else {
        return Ok(Vec::new());
    };
    let path = path.trim_start_matches("Registry::").to_owned();
    // What only a running script knows (`$_.PSPath`) is recognised by the value: a loop goes over the adapters.
    let key = if path.starts_with('$') { key_of(&name).unwrap_or_else(|| short_key(&path)) } else { short_key(&path) };
    let knob = Address::Registry { key, value: name };
    if remove {
        return Ok(vec![Action::Delete(knob)]);
    }
    let value = named("Value").ok_or_else(|| format!("{knob} is written without -Value"))?;
    Ok(vec![Action::Set(knob, value)])
}

/// The key that Windows reads a value from: that of one adapter, where there is one.
fn key_of(value: &str) -> Option<String> {
    let keys = || {
        Catalogue::for_family(Family::Windows).into_iter().flat_map(|catalogue| &catalogue.knobs).filter_map(|row| {
            match &row.address {
                Address::Registry { key, value: name } if name.eq_ignore_ascii_case(value) => Some(key),
                _ => None,
            }
        })
    };
    keys().find(|key| key.contains("{GUID}")).or_else(|| keys().next()).cloned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sets(found: (Vec<Step>, Vec<Problem>)) -> Vec<String> {
        assert_eq!(found.1, []);
        let words = |step: Step| match step.action {
            Action::Set(knob, value) => format!("{}: {knob} = {value}", step.line),
            Action::Delete(knob) => format!("{}: {knob} deleted", step.line),
            Action::Reset(what) | Action::Unclear(what) => format!("{}: {what}", step.line),
            other @ Action::Repeats(_) => format!("{}: {other:?}", step.line),
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
                "3: the driver's property `flow control` bounds no TCP connection as far as the catalogue knows",
                "4: link Ethernet mtu = 9000",
                "5: netoffload ReceiveSideScaling = Disabled",
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
                "7: adapter LargeSendOffload = Disabled".to_owned(),
            ]
        );
        let text = "for /f \"tokens=*\" %%i in ('reg query X') do reg add \"HKLM\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters\\Interfaces\\%%i\" /v TcpAckFrequency /t REG_DWORD /d 1 /f\n";
        assert_eq!(sets(batch(text)), [format!(r"1: {parameters}\Interfaces\{{GUID}}\TcpAckFrequency = 1")]);
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
                "2: adapter LargeSendOffload = Disabled",
                "3: netoffload ReceiveSegmentCoalescing = Disabled",
            ]
        );
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
                "1: tcpsetting custom CwndRestart = enabled",
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
        fn any_text_is_read_without_a_panic(text in "(netsh|int|tcp|set|global|supplemental|reg add|/v|/d|-Name|Set-NetTCPSetting|=| |\"|'|;|&|\n|[a-z:\\\\^`]){0,40}") {
            batch(&text);
            powershell(&text);
        }
    }
}
