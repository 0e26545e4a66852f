//! Closing in on the rate at which trains begin to arrive stretched.

/// One train to send; back to back where it has no rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Train {
    pub(super) bps: Option<f64>,
    pub(super) count: u16,
}

/// What became of a train.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Arrival {
    /// The rate at which it was really sent.
    pub(super) sent_bps: f64,
    /// The rate at which it arrived.
    pub(super) arrived_bps: f64,
    /// 0 to 1.
    pub(super) lost: f64,
}

/// What is known at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Found {
    pub(super) best_bps: Option<f64>,
    /// Trains of this rate arrived as they were sent.
    pub(super) low_bps: Option<f64>,
    /// Trains of this rate arrived stretched; absent where none could be sent that did.
    pub(super) high_bps: Option<f64>,
    /// At which back-to-back trains arrived.
    pub(super) burst_bps: Option<f64>,
}

/// A train that arrives with this share of the rate at which it was sent has not been stretched: what remains is how
/// exactly programs on both ends keep time.
const UNSTRETCHED: f64 = 0.97;

/// A path that takes a rate loses hardly anything of it.
const HARDLY: f64 = 0.02;

/// Both sides are near enough.
const NEAR: f64 = 1.05;

/// Trains of each rate, of which the median counts.
const COPIES: usize = 3;
const BURSTS: usize = 5;

/// Rates that are tried at the most.
const MOST_STEPS: usize = 12;

/// Long enough for what programs do not keep in time to be a small part, in seconds.
const TRAIN_S: f64 = 0.04;

/// `send` returns `None` for a train of which nothing is known, and fails to end the search with what was found.
pub(super) fn search<E>(
    packet_bits: f64,
    mut send: impl FnMut(Train) -> Result<Option<Arrival>, E>,
) -> (Found, Result<(), E>) {
    let mut found = Found::default();
    let ended = close_in(packet_bits, &mut send, &mut found);
    (found, ended)
}

fn close_in<E>(
    packet_bits: f64,
    send: &mut impl FnMut(Train) -> Result<Option<Arrival>, E>,
    found: &mut Found,
) -> Result<(), E> {
    let Some(burst) = median(BURSTS, Train { bps: None, count: 32 }, send)? else { return Ok(()) };
    found.burst_bps = Some(burst.arrived_bps);
    let mut rate = burst.arrived_bps;
    let mut fastest = f64::INFINITY;
    for _ in 0..MOST_STEPS {
        let count = (rate * TRAIN_S / packet_bits).clamp(24.0, 200.0) as u16;
        let Some(arrival) = median(COPIES, Train { bps: Some(rate), count }, send)? else { return Ok(()) };
        // This end, or the far one, can't send that fast.
        if arrival.sent_bps < 0.9 * rate {
            fastest = fastest.min(arrival.sent_bps);
        }
        let fits = arrival.arrived_bps >= UNSTRETCHED * arrival.sent_bps && arrival.lost <= HARDLY;
        if fits {
            let low = found.low_bps.unwrap_or(0.0).max(arrival.arrived_bps);
            found.low_bps = Some(low);
            // A lucky train must not lie above an unlucky one.
            found.high_bps = found.high_bps.filter(|&high| high > low);
            found.best_bps = Some(found.high_bps.and(found.best_bps).unwrap_or(low).max(low));
        } else if found.high_bps.is_none_or(|high| arrival.sent_bps < high) {
            found.high_bps = Some(arrival.sent_bps.max(arrival.arrived_bps));
            found.best_bps = Some(arrival.arrived_bps.max(found.low_bps.unwrap_or(0.0)));
            found.low_bps = found.low_bps.filter(|&low| low <= arrival.sent_bps);
        }
        rate = match (found.low_bps, found.high_bps) {
            (Some(low), Some(high)) if high / low <= NEAR => return Ok(()),
            (Some(low), Some(high)) => (low * high).sqrt(),
            (None, Some(high)) => found.best_bps.unwrap_or(high).min(high * 0.9) * 0.95,
            (low, None) if rate >= fastest || low.is_none() => return Ok(()),
            (_, None) => rate * 1.15,
        };
    }
    Ok(())
}

/// The one in the middle by how much it was stretched.
fn median<E>(
    copies: usize,
    train: Train,
    send: &mut impl FnMut(Train) -> Result<Option<Arrival>, E>,
) -> Result<Option<Arrival>, E> {
    let mut arrivals = Vec::new();
    for _ in 0..copies {
        arrivals.extend(send(train)?);
    }
    // A stretched rate as such says little where the sender itself was slow.
    let kept = |arrival: &Arrival| arrival.arrived_bps / arrival.sent_bps.max(1.0);
    arrivals.sort_by(|a, b| kept(a).total_cmp(&kept(b)));
    Ok(arrivals.get(arrivals.len() / 2).copied())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const BITS: f64 = 12_000.0;

    /// A first-in-first-out link with that much free.
    fn link(capacity: f64, cross: f64, fastest: f64) -> impl FnMut(Train) -> Result<Option<Arrival>, Infallible> {
        move |train| {
            let sent_bps = train.bps.unwrap_or(f64::INFINITY).min(fastest);
            let arrived_bps =
                if sent_bps + cross <= capacity { sent_bps } else { sent_bps * capacity / (sent_bps + cross) };
            Ok(Some(Arrival { sent_bps, arrived_bps: arrived_bps.min(capacity), lost: 0.0 }))
        }
    }

    #[test]
    fn the_rate_of_an_idle_link_is_found() {
        for capacity in [1e6, 2e7, 1e8, 9.4e8] {
            let (found, _) = search(BITS, link(capacity, 0.0, 1e10));
            let (best, low, high) = (found.best_bps.unwrap(), found.low_bps.unwrap(), found.high_bps.unwrap());
            assert!((best / capacity - 1.0).abs() < 0.03, "{capacity} {found:?}");
            assert!(low <= capacity * 1.001 && capacity <= high * 1.001 && high / low < 1.1, "{capacity} {found:?}");
        }
    }

    #[test]
    fn other_traffic_leaves_what_is_available() {
        let (found, _) = search(BITS, link(1e8, 4e7, 1e10));
        let best = found.best_bps.unwrap();
        assert!((5.4e7..=6.9e7).contains(&best), "{found:?}");
        assert!(found.burst_bps.unwrap() > 9e7, "{found:?}");
    }

    #[test]
    fn a_sender_that_is_slower_than_the_path_gives_a_lower_bound() {
        let (found, _) = search(BITS, link(1e10, 0.0, 5e8));
        assert_eq!(found.high_bps, None);
        assert!((found.low_bps.unwrap() / 5e8 - 1.0).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn trains_that_vanish_say_nothing() {
        let (found, _) = search(BITS, |_| Ok::<_, Infallible>(None));
        assert_eq!(found, Found::default());
    }

    #[test]
    fn what_was_found_stays_when_the_search_is_stopped() {
        let mut path = link(1e8, 0.0, 1e10);
        let mut trains = 0;
        let (found, ended) = search(BITS, |train| {
            trains += 1;
            if trains > 7 { Err(()) } else { path(train).map_err(|_: Infallible| ()) }
        });
        assert_eq!(ended, Err(()));
        assert!(found.burst_bps.is_some());
    }
}
