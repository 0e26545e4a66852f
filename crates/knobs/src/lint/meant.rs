//! The setting that a misspelt name most likely stands for.

use crate::{Address, Catalogue, catalogue::same_context};

/// The name in the catalogue that is nearest to an unknown one: one letter in six may differ, and at least one. A name that
/// was cut short stands for the only one that begins so; and one of another setting for none.
pub(super) fn nearest(catalogue: &Catalogue, knob: &Address) -> Option<String> {
    if catalogue.is_other(knob) {
        return None;
    }
    let candidates = || catalogue.knobs.iter().filter_map(|row| pair(&row.address, knob));
    let near = candidates().map(|(name, asked, shown)| {
        // What the two begin with alike says nothing of how near the rest is.
        let own = asked.len() - common_tree(&name, &asked);
        (distance(&name, &asked), own, shown)
    });
    if let Some((_, _, shown)) = near.min().filter(|(distance, own, _)| *distance <= (own / 6).max(1)) {
        return Some(shown);
    }
    let mut begun = candidates().filter(|(name, asked, _)| asked.len() >= 3 && name.starts_with(asked.as_str()));
    match (begun.next(), begun.next()) {
        (Some((.., shown)), None) if matches!(knob, Address::Netsh { .. } | Address::TcpSetting { .. }) => Some(shown),
        _ => None,
    }
}

/// How long the parts of two dotted names are that they begin with alike.
fn common_tree(a: &str, b: &str) -> usize {
    let alike = a.split('.').zip(b.split('.')).take_while(|(a, b)| a == b).map(|(a, _)| a.len() + 1).sum::<usize>();
    alike.min(b.len())
}

/// Whether a name is most likely a slip of another one.
pub(crate) fn is_slip(written: &str, meant: &str) -> bool {
    written != meant && distance(written, meant) <= (meant.len() / 6).max(1)
}

/// The word of a list that another one is most likely a slip of.
pub(crate) fn word<'a>(written: &str, words: &[&'a str]) -> Option<&'a str> {
    let lower = written.to_ascii_lowercase();
    words.iter().copied().find(|word| is_slip(&lower, &word.to_ascii_lowercase()))
}

/// The names to compare, where both are of one kind: the row's, the one that is asked for, and the row's as it is shown.
fn pair(row: &Address, asked: &Address) -> Option<(String, String, String)> {
    let lower = str::to_ascii_lowercase;
    match (row, asked) {
        (Address::Sysctl(row), Address::Sysctl(asked)) => Some((lower(row), lower(asked), row.clone())),
        (Address::Registry { value: row, .. }, Address::Registry { key, value: asked }) => {
            // Elsewhere in the registry a name that is nearly the same means something else.
            let ours = key.to_ascii_lowercase().contains(r"\services\tcpip\");
            ours.then(|| (lower(row), lower(asked), row.clone()))
        }
        (Address::Netsh { context: row_context, parameter: row }, Address::Netsh { context, parameter: asked })
            if same_context(row_context, context) =>
        {
            Some((lower(row), lower(asked), row.clone()))
        }
        (Address::TcpSetting { parameter: row, .. }, Address::TcpSetting { parameter: asked, .. }) => {
            Some((lower(row), lower(asked), format!("-{row}")))
        }
        (Address::Socket(row), Address::Socket(asked)) => Some((lower(row), lower(asked), row.clone())),
        (Address::Named { kind: row_kind, name: row }, Address::Named { kind, name: asked }) if row_kind == kind => {
            Some((lower(row), lower(asked), row.clone()))
        }
        _ => None,
    }
}

/// How many letters must be put in, taken out, changed or swapped with their neighbour; names of more than 96 letters are
/// taken to have nothing in common.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().max(b.len()) > 96 {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut least = (row[j] + usize::from(x != y)).min(row[j + 1] + 1).min(next[j] + 1);
            let swapped = i > 0 && j > 0 && a[i - 1] == *y && b[j - 1] == *x;
            if swapped {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Family;

    #[test]
    fn a_slip_finds_the_name_and_another_word_does_not() {
        for (family, written, meant) in [
            (Family::Linux, "net.ipv4.tcp_rmen", Some("net.ipv4.tcp_rmem")),
            (Family::Linux, "net.ipv4.tcp_window_scailng", Some("net.ipv4.tcp_window_scaling")),
            (Family::Linux, "net.ipv4.ip_forward", None),
            (Family::Linux, "vm.swappiness", None),
            // Others of the same tree are names of their own.
            (Family::MacOs, "net.inet.tcp.msl", None),
            (Family::MacOs, "net.inet.tcp.v6mssdflt", None),
            (Family::Windows, "netsh tcp global autotuning", Some("autotuninglevel")),
            (Family::Windows, "netsh tcp global ecn", Some("ecncapability")),
            (Family::Windows, "netsh tcp global r", None),
            (Family::FreeBsd, "net.inet.tcp.sendspce", Some("net.inet.tcp.sendspace")),
            (Family::Windows, "netsh tcp global autotuninglevl", Some("autotuninglevel")),
            (Family::Windows, "tcpsetting Internet DelayedAckTimeout", Some("-DelayedAckTimeoutMs")),
            (
                Family::Windows,
                r"registry HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\TcpWindowsSize",
                Some("TcpWindowSize"),
            ),
            (Family::Windows, r"registry HKLM\SOFTWARE\X\TcpWindowsSize", None),
            (Family::Linux, "socket SO_RCVBUFF", Some("SO_RCVBUF")),
            (Family::NetBurner, "call SetSocketRxBufers", Some("SetSocketRxBuffers")),
        ] {
            let knob: Address = written.parse().unwrap();
            let found = nearest(Catalogue::for_family(family).unwrap(), &knob);
            assert_eq!(found.as_deref(), meant, "{written}");
        }
    }

    #[test]
    fn letters_are_counted() {
        assert_eq!(["", "a", "ab", "ba", "abc"].map(|text| distance("ab", text)), [2, 1, 0, 1, 1]);
    }
}
