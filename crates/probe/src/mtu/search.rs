//! Which sizes to try: the largest first, then by halves, or where an ICMP message points.

use std::io;

use super::PathMtu;

/// What became of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    /// Refused by this end, or by a link on the way; what it said would fit, where it said so.
    TooBig(Option<u32>),
    Lost,
}

/// The largest IP packet: its length field has 16 bits.
const LARGEST: u32 = 65_535;
/// What is tried at the most where the interface's MTU isn't known (FreeBSD, macOS): the jumbo frames of most adapters, and as
/// large as a datagram is let be there (`net.inet.udp.maxdgram`).
const JUMBO: u32 = 9_216;

/// Finds the largest size that passes, between `least` and the interface's MTU.
pub(super) fn search(
    interface_mtu: Option<u32>,
    least: u32,
    mut attempt: impl FnMut(u32) -> io::Result<Outcome>,
) -> io::Result<PathMtu> {
    let highest = interface_mtu.unwrap_or(JUMBO).min(LARGEST).max(least);
    let mut report = PathMtu { interface_mtu, ..PathMtu::default() };
    let (mut passed, mut failed) = (None, highest + 1);
    let mut vanished = None;
    let mut next = highest;
    // Each step halves the range or follows a hint below it; the range has at most 16 bits.
    for _ in 0..40 {
        let hint = match attempt(next)? {
            Outcome::Passed => {
                passed = Some(next);
                None
            }
            Outcome::TooBig(hint) => {
                failed = next;
                hint
            }
            Outcome::Lost => {
                failed = next;
                vanished = Some(next);
                None
            }
        };
        let low = passed.unwrap_or(least - 1);
        if low + 1 >= failed {
            break;
        }
        let likely = [1500, 1492, 1280].into_iter().find(|size| passed.is_none() && (low + 1..failed).contains(size));
        next = match hint.filter(|hint| (low + 1..failed).contains(hint)) {
            Some(hint) => hint,
            None if next == highest && likely.is_none() => least,
            None => likely.unwrap_or(low + (failed - low) / 2),
        };
    }
    report.mtu = passed;
    // The smallest size that failed did so without a word.
    report.black_hole = passed.is_some() && vanished == Some(failed);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(mtu: u32, tells: bool) -> impl FnMut(u32) -> io::Result<Outcome> {
        move |size| {
            Ok(match size {
                size if size <= mtu => Outcome::Passed,
                _ if tells => Outcome::TooBig(Some(mtu)),
                _ => Outcome::Lost,
            })
        }
    }

    #[test]
    fn a_path_as_wide_as_the_interface_takes_one_probe() {
        let mut probes = 0;
        let report = search(Some(1500), 576, |_| {
            probes += 1;
            Ok(Outcome::Passed)
        });
        assert_eq!(report.unwrap(), PathMtu { mtu: Some(1500), black_hole: false, interface_mtu: Some(1500) });
        assert_eq!(probes, 1);
    }

    #[test]
    fn a_router_that_tells_is_no_black_hole_and_one_that_is_silent_is() {
        let found = search(Some(9000), 576, path(1400, true)).unwrap();
        assert_eq!((found.mtu, found.black_hole), (Some(1400), false));
        let silent = search(Some(9000), 576, path(1400, false)).unwrap();
        assert_eq!((silent.mtu, silent.black_hole), (Some(1400), true));
    }

    #[test]
    fn an_interface_that_nobody_tells_of_is_found_by_what_it_refuses() {
        for mtu in [576, 1_500, 9_000] {
            let refuse = |size| Ok(if size <= mtu { Outcome::Passed } else { Outcome::TooBig(None) });
            let report = search(None, 576, refuse).unwrap();
            assert_eq!(report, PathMtu { mtu: Some(mtu), black_hole: false, interface_mtu: None });
        }
    }

    #[test]
    fn a_path_that_carries_no_probe_has_no_mtu_and_is_no_black_hole() {
        let report = search(Some(1500), 576, |_| Ok(Outcome::Lost)).unwrap();
        assert_eq!((report.mtu, report.black_hole), (None, false));
    }

    proptest! {
        #[test]
        fn the_search_is_exact(mtu in 576u32..=65_535, interface in 576u32..70_000, tells: bool) {
            let report = search(Some(interface), 576, path(mtu, tells)).unwrap();
            let expected = mtu.min(interface).min(LARGEST);
            prop_assert_eq!(report.mtu, Some(expected));
            prop_assert_eq!(report.black_hole, !tells && mtu < interface.min(LARGEST));
        }
    }
}
