//! What a file is: its encoding, then its format by what stands in it, and by its name where that leaves it open.

use super::{Format, LARGEST, Place, Refusal, labelled::is_english_title, scan};
use crate::recipe::{self, DecodeError};

const START: Place = Place { line: 1, column: 1 };

/// The text of a file.
pub(super) fn text(bytes: &[u8]) -> Result<String, Refusal> {
    if bytes.len() > LARGEST {
        return Err(Refusal {
            place: START,
            problem: format!("the file has {} bytes", bytes.len()),
            expected: "at most 16 MiB",
            way_out: "save only the part that has the settings: of the registry the key Tcpip\\Parameters",
        });
    }
    let text = match recipe::decode(bytes) {
        Ok(text) => text,
        Err(error) => return Err(undecoded(bytes, &error)),
    };
    // UTF-16 without its mark: every second byte of western text is zero.
    if let [first, 0, second, 0, ..] = bytes
        && *first != 0
        && *second != 0
    {
        let marked: Vec<u8> = [0xff, 0xfe].iter().chain(bytes).copied().collect();
        return recipe::decode(&marked).map_err(|error| undecoded(&marked, &error)).and_then(no_zeros);
    }
    no_zeros(text)
}

fn no_zeros(text: String) -> Result<String, Refusal> {
    let Some(at) = text.find('\0') else { return Ok(text) };
    Err(Refusal {
        place: place_after(text.get(..at).unwrap_or_default()),
        problem: "a zero byte in the text: the file mixes two encodings, or is no text".to_owned(),
        expected: "one encoding in the whole file",
        way_out: "save the file anew with the tool that made it, and don't append to it",
    })
}

fn undecoded(bytes: &[u8], error: &DecodeError) -> Refusal {
    let at = match error {
        DecodeError::CutOff { at } | DecodeError::Surrogate { at } => *at,
    };
    let before = recipe::decode(bytes.get(..at & !1).unwrap_or_default()).unwrap_or_default();
    Refusal {
        place: place_after(&before),
        problem: error.to_string(),
        expected: "UTF-16 with its byte-order mark, UTF-8 or the ANSI code page",
        way_out: "export or save it again; don't append to a UTF-16 file with a tool that writes another encoding",
    }
}

/// The place behind a text.
fn place_after(before: &str) -> Place {
    let line = before.bytes().filter(|byte| *byte == b'\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().trim_start_matches('\u{feff}').chars().count();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).saturating_add(1);
    Place { line: count(line), column: count(column) }
}

/// What the file is.
pub(super) fn format(name: &str, text: &str) -> Result<Format, Refusal> {
    let start = text.trim_start();
    if start.is_empty() {
        return Err(unknown(START, "the file is empty"));
    }
    by_beginning(start).or_else(|| by_lines(name, text)).or_else(|| by_name(name)).ok_or_else(|| {
        let first = scan::lines(text).find(|(_, line)| !line.trim().is_empty());
        let place = first.map_or(START, |(number, line)| scan::place_of(number, line, line.trim_start()));
        unknown(place, "no format that is known begins like this")
    })
}

fn unknown(place: Place, problem: &str) -> Refusal {
    Refusal {
        place,
        problem: problem.to_owned(),
        expected: "sysctl -a, sysctl.conf, loader.conf, rc.conf, a .reg export, netsh interface tcp show, Get-NetTCPSetting (list, table, CSV, JSON, CliXml), ifconfig, netstat -m, vmstat -z, an .inf file or a NetBurner source file",
        way_out: "save the output of one of these commands as it is, without editing; netsh in another language than English is not read: save Get-NetTCPSetting | ConvertTo-Json instead",
    }
}

fn by_beginning(start: &str) -> Option<Format> {
    if start.starts_with("REGEDIT") || start.starts_with("Windows Registry Editor") {
        return Some(Format::Registry);
    }
    let xml = start.starts_with("#< CLIXML") || start.starts_with("<Objs") || start.starts_with("<?xml");
    if xml {
        return Some(Format::PowerShellCliXml);
    }
    (start.starts_with('{') || start.starts_with('[') && start.get(1..).is_some_and(json_follows))
        .then_some(Format::PowerShellJson)
}

/// Whether what follows a `[` is JSON and no key of a registry file or section of a profile.
fn json_follows(rest: &str) -> bool {
    rest.trim_start().starts_with(['{', '[', ']'])
}

/// The format by its lines: the first that gives it away.
fn by_lines(name: &str, text: &str) -> Option<Format> {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let is_source = matches!(extension.as_deref(), Some("c" | "cpp" | "cc" | "h" | "hpp"));
    let mut before = "";
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            continue;
        }
        if is_source || is_call(trimmed) {
            return Some(Format::NetBurnerSource);
        }
        // A title, dashes and a label, whatever the language.
        let below_title = is_english_title(before) && trimmed.contains(':');
        if below_title || is_dashes(trimmed) && before.contains("TCP") || is_dashes(before) && trimmed.contains(" : ") {
            return Some(Format::Netsh);
        }
        if trimmed.starts_with("---") && trimmed.contains(" ---") && before.split_whitespace().count() > 1 {
            return Some(Format::PowerShellTable);
        }
        if trimmed.starts_with("#TYPE ") || is_csv_header(trimmed) {
            return Some(Format::PowerShellCsv);
        }
        if is_list_label(trimmed) {
            return Some(Format::PowerShellList);
        }
        if trimmed.starts_with("ITEM ") && trimmed.contains(" SIZE ") && trimmed.contains(" LIMIT ") {
            return Some(Format::VmstatZones);
        }
        if extension.as_deref() == Some("inf") || is_section_of_setup(trimmed) {
            return Some(Format::Setup);
        }
        if trimmed.contains("mbufs in use") || trimmed.contains("mbuf clusters in use") || trimmed == "mbuf usage:" {
            return Some(Format::NetstatBuffers);
        }
        if line.contains(": flags=") || line.contains("Link encap:") {
            return Some(Format::Ifconfig);
        }
        if let Some(format) = sysctl_or_shell(name, line) {
            return Some(if format == Format::SysctlOutput && has_comments(text) {
                Format::SysctlFile
            } else {
                format
            });
        }
        before = trimmed;
    }
    None
}

fn by_name(name: &str) -> Option<Format> {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
    if is_shell_name(&file) {
        return Some(Format::ShellFile);
    }
    match file.rsplit_once('.').map(|(_, extension)| extension) {
        Some("conf") => Some(Format::SysctlFile),
        Some("reg") => Some(Format::Registry),
        _ => None,
    }
}

fn is_shell_name(file: &str) -> bool {
    file.starts_with("loader.conf") || file.starts_with("rc.conf")
}

/// Whether a line is an assignment, and then whether of a file or of an output.
fn sysctl_or_shell(name: &str, line: &str) -> Option<Format> {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
    if is_shell_name(&file) {
        return Some(Format::ShellFile);
    }
    if file.ends_with(".conf") {
        return Some(Format::SysctlFile);
    }
    if super::sysctl::pair(line).is_some() {
        let quoted = line.split_once("=\"").is_some_and(|(_, value)| value.trim_end().ends_with('"'));
        return Some(if quoted { Format::ShellFile } else { Format::SysctlOutput });
    }
    let slashed = line.trim_start_matches('-').starts_with("net/") && line.contains('=');
    let shell = line.starts_with("ifconfig_") && line.contains("=\"");
    if shell { Some(Format::ShellFile) } else { slashed.then_some(Format::SysctlFile) }
}

fn has_comments(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with(['#', ';']))
}

/// A line of dashes below a title; some copies have fewer than netsh prints.
pub(super) fn is_dashes(line: &str) -> bool {
    line.len() >= 3 && line.bytes().all(|byte| byte == b'-')
}

fn is_section_of_setup(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    ["[version]", "[defaultinstall"].iter().any(|start| lower.starts_with(start))
}

fn is_call(line: &str) -> bool {
    super::netburner::CALLS.iter().any(|call| line.contains(call)) || line.contains("#include <tcp.h>")
}

/// The columns and labels that only the objects that are read here have.
const LABELS: [&str; 12] = [
    "SettingName",
    "ReceiveSideScaling",
    "ReceiveSegmentCoalescing",
    "MinRto",
    "MinRtoMs",
    "CongestionProvider",
    "AutoTuningLevelLocal",
    "DestinationPrefix",
    "IPv4OperationalState",
    "V1IPv4Enabled",
    "NumberOfReceiveQueues",
    "RegistryKeyword",
];

fn is_csv_header(line: &str) -> bool {
    let names = line.split([',', ';', '\t']).map(|name| name.trim_matches('"'));
    line.contains([',', ';', '\t']) && names.into_iter().any(|name| LABELS.contains(&name))
}

fn is_list_label(line: &str) -> bool {
    line.split_once(':').is_some_and(|(label, _)| LABELS.contains(&label.trim()))
}
