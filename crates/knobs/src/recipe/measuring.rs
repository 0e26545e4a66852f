//! The calls of programs that measure: what they set for their own sockets, and that they set nothing else.

use super::Action;
use crate::Address;

/// What a call of iperf, iperf3, psping or ntttcp does; nothing for another program. `words` is the whole command.
pub(super) fn actions(words: &[&str]) -> Vec<Action> {
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program).to_ascii_lowercase();
    match name.trim_end_matches(".exe") {
        name @ ("iperf" | "iperf3") => iperf(arguments, name == "iperf3"),
        "psping" | "psping64" => vec![Action::Unclear(
            "psping measures and sets nothing; `fullpipe measure HOST --sizes 4k..64k` measures as its -l does, with what limits beside"
                .to_owned(),
        )],
        "ntttcp" => vec![Action::Unclear("ntttcp measures, and what it sets ends with it".to_owned())],
        _ => Vec::new(),
    }
}

/// `iperf -c HOST -w 1M`: buffers of its own sockets. iperf 2 sets the one for sending on the client and the one for receiving
/// on the server (setsock_tcp_windowsize), iperf3 both on both ends (iperf_tcp.c).
fn iperf(arguments: &[&str], both: bool) -> Vec<Action> {
    let after = |short: &str, long: &str| {
        arguments.iter().enumerate().find_map(|(at, word)| {
            let attached = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
            let attached = attached.or_else(|| word.strip_prefix(short).filter(|rest| !rest.is_empty()));
            attached.or_else(|| if *word == short || *word == long { arguments.get(at + 1).copied() } else { None })
        })
    };
    let Some(size) = after("-w", "--window") else {
        return vec![Action::Unclear(
            "iperf measures and sets nothing without -w: its sockets are sized as the system sizes those of any program; `fullpipe measure HOST` tells what limits, too"
                .to_owned(),
        )];
    };
    let server = arguments.iter().any(|word| ["-s", "--server"].contains(word));
    let Some(bytes) = bytes(size) else {
        return vec![Action::Unclear(format!("iperf's window `{size}` is known only when the script runs"))];
    };
    let options = [("SO_SNDBUF", both || !server), ("SO_RCVBUF", both || server)];
    let sets = options.into_iter().filter(|(_, sets)| *sets);
    sets.map(|(option, _)| Action::Set(Address::Socket(option.to_owned()), bytes.to_string())).collect()
}

/// A size as iperf takes it: K, M and G are powers of 1,024 (iperf(1), unit_atoi).
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text.get(digits.len()..)?.to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}
