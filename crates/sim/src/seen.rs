//! A transfer that was measured or captured, as a simulation: the path as far as it was seen, both hosts with what held them.

use fullpipe_diagnose::Limiter;
use fullpipe_path::QueueSize;
use fullpipe_units::{Bytes, Micros, Rate};

use crate::{
    Spec, forecast, knob,
    machine::Machine,
    spec::{HostSpec, ReceiveBuffer, SimError},
};

/// IP and TCP headers with timestamps.
const HEADERS: u64 = 52;
/// No path is longer here.
const LONGEST_RTT: Micros = Micros::from_secs(10);
/// The largest window or buffer that is simulated.
const MOST: Bytes = Bytes::new(32 << 20);
/// A path of unknown rate is taken to carry so many times what was seen of a transfer that its ends held back.
const BEYOND: u64 = 10;
/// More loss than this is no random loss of a path.
const MOST_LOSS: f64 = 0.3;

/// What somebody saw of a transfer. What was not seen is absent.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Payload rate.
    pub rate: Rate,
    /// The payload rate that the path was seen to carry.
    pub path: Option<Rate>,
    /// The payload rate that the judge expects without the limiter.
    pub attainable: Option<Rate>,
    /// Round-trip time without load.
    pub rtt: Micros,
    /// What limited it.
    pub limiter: Limiter,
    /// Segments sent, and those of them that were retransmitted.
    pub segments: Option<(u64, u64)>,
    /// The path's largest packet.
    pub mtu: Option<u32>,
    /// The largest window that the receiver offered.
    pub window: Option<Bytes>,
    /// The most that the sender had in flight.
    pub in_flight: Option<Bytes>,
    /// The window-scale option of the receiver's SYN, where that was seen; `Some(None)`: there was none.
    pub scale: Option<Option<u8>>,
}

/// What a user says besides, which outdoes what was seen.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Rate of the path's link.
    pub link: Option<Rate>,
    /// Random loss.
    pub loss: Option<f64>,
    /// The queue in front of the link.
    pub queue: Option<QueueSize>,
    /// The sender's settings come from files: what was seen to hold it is not added to them.
    pub sender: bool,
    /// Likewise the receiver's.
    pub receiver: bool,
}

/// The simulation of what was seen, and what the reader must know of it.
///
/// # Errors
/// No path has such figures.
pub fn as_seen(
    seen: &Seen,
    overrides: &Overrides,
    sender: &Machine,
    receiver: &Machine,
) -> Result<(Spec, Vec<String>), SimError> {
    if seen.rtt > LONGEST_RTT {
        return Err(SimError::value("the round-trip time", seen.rtt, "a round trip is 10 s at most"));
    }
    let mut notes = Vec::new();
    let mtu = seen.mtu.map_or(1_500, |mtu| mtu.clamp(576, 9_216));
    let link = overrides.link.unwrap_or_else(|| link(seen, mtu, &mut notes));
    let loss = overrides.loss.unwrap_or_else(|| loss(seen, &mut notes));
    let queue = overrides.queue.unwrap_or_else(|| {
        notes.push(
            "the path's queue was not seen: one bandwidth-delay product is taken, --queue says otherwise".to_owned(),
        );
        QueueSize::Bdp { multiple: 1.0, at_least: 64 }
    });
    let mut path = knob::path(link, seen.rtt, loss, queue)?;
    path.mtu = mtu;
    let (mut from, mut to) = (sender.host(), receiver.host());
    if !overrides.receiver {
        hold_receiver(&mut to, seen, &mut notes);
    }
    if !overrides.sender {
        hold_sender(&mut from, seen, &mut notes);
    }
    notes.extend([sender, receiver].into_iter().filter_map(Machine::note));
    notes.dedup();
    let mut spec = Spec::new(path, from, to);
    let line = forecast::Line { rate: link, rtt: seen.rtt, loss, mtu };
    (spec.time, spec.omit) = forecast::duration(line);
    Ok((spec, notes))
}

/// The rate of the link in front of which nothing but the ends holds the transfer back.
fn link(seen: &Seen, mtu: u32, notes: &mut Vec<String>) -> Rate {
    let payload = if seen.limiter == Limiter::Path {
        seen.rate
    } else if let Some(path) = seen.path {
        path
    } else if let Some(attainable) = seen.attainable.filter(|rate| *rate > seen.rate) {
        notes.push(format!("the path's rate was not measured: the {attainable} that the diagnosis expects are taken"));
        attainable
    } else {
        let taken = Rate::from_bps(seen.rate.bps().saturating_mul(BEYOND));
        notes.push(format!(
            "nothing tells what the path carries: {taken} are taken, {BEYOND} times what was seen, so that the ends stay the \
             limit; what a setting can gain at most is known only with --rate"
        ));
        taken
    };
    let mtu = u64::from(mtu);
    Rate::from_bps((payload.bps() / mtu.saturating_sub(HEADERS).max(1)).saturating_mul(mtu).max(1_000))
}

fn loss(seen: &Seen, notes: &mut Vec<String>) -> f64 {
    let Some((segments, again)) = seen.segments.filter(|(segments, _)| *segments > 0) else {
        notes.push("the path's loss was not seen: none is taken, --loss says otherwise".to_owned());
        return 0.0;
    };
    if again == 0 {
        return 0.0;
    }
    let part = (again as f64 / segments as f64).min(MOST_LOSS);
    if matches!(seen.limiter, Limiter::CongestionWindow | Limiter::Reordering) {
        notes.push(format!(
            "{again} of {segments} segments were retransmitted: taken for random loss of {:.3} %",
            part * 100.0
        ));
        return part;
    }
    notes.push(format!(
        "{again} of {segments} segments were retransmitted: taken for overflow of the queue, not for random loss"
    ));
    0.0
}

fn hold_receiver(host: &mut HostSpec, seen: &Seen, notes: &mut Vec<String>) {
    if let Some(scale) = seen.scale {
        host.profile.window_scaling = scale.is_some();
        host.profile.window_shift = scale;
    }
    if host.budgets {
        return;
    }
    let Some(window) = seen.window.filter(|window| window.get() > 0).map(|window| window.min(MOST)) else {
        notes.push("the receiver's window was not seen: its platform's is taken".to_owned());
        return;
    };
    if seen.limiter == Limiter::ReceiveWindow {
        notes
            .push(format!("the receiver offered {window} at most: that is its window, until a setting says otherwise"));
        host.receive = ReceiveBuffer { initial: host.receive.initial.min(window), max: window, pinned: false };
    } else {
        host.receive.max = host.receive.max.max(window);
    }
}

fn hold_sender(host: &mut HostSpec, seen: &Seen, notes: &mut Vec<String>) {
    if seen.limiter != Limiter::SendBuffer || host.budgets {
        return;
    }
    // What passed in a round trip contains the pauses of its writer, and what it wrote beyond the buffer.
    (host.send.wakes_at_third, host.send.fills_segments) = (false, false);
    let passed = fullpipe_units::bdp(seen.rate, seen.rtt);
    let held = seen.in_flight.filter(|bytes| bytes.get() > 0).map_or(passed, |most| most.min(passed));
    let held = held.clamp(Bytes::new(1_460), MOST);
    notes.push(format!(
        "the sender had {held} in flight on average ({} x {}): that is its buffer, until a setting says otherwise",
        seen.rate, seen.rtt
    ));
    (host.send.initial, host.send.max) = (host.send.initial.min(held), held);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::predict_steady;

    fn seen() -> Seen {
        Seen {
            rate: Rate::from_bps(6_300_000),
            path: None,
            attainable: Some(Rate::from_bps(94_000_000)),
            rtt: Micros::from_millis(80),
            limiter: Limiter::ReceiveWindow,
            segments: Some((10_000, 0)),
            mtu: None,
            window: Some(Bytes::new(64_512)),
            in_flight: Some(Bytes::new(64_512)),
            scale: Some(Some(0)),
        }
    }

    fn predicted(seen: &Seen, overrides: &Overrides) -> (crate::Predicted, Vec<String>) {
        let machine = Machine::new("linux-6.18").unwrap();
        let (spec, notes) = as_seen(seen, overrides, &machine, &machine).unwrap();
        (predict_steady(&spec).unwrap(), notes)
    }

    #[test]
    fn what_was_seen_comes_out_again() {
        let (window, notes) = predicted(&seen(), &Overrides::default());
        assert!((window.rate.bps() as f64 / 6.3e6 - 1.0).abs() < 0.05, "{window:?}");
        assert_eq!(window.limiter, Limiter::ReceiveWindow);
        assert!(notes.iter().any(|note| note.contains("64,512 B")), "{notes:?}");
        let buffer =
            Seen { limiter: Limiter::SendBuffer, window: Some(Bytes::new(3_000_000)), scale: Some(Some(7)), ..seen() };
        let (buffer, _) = predicted(&buffer, &Overrides::default());
        assert!((buffer.rate.bps() as f64 / 6.3e6 - 1.0).abs() < 0.05, "{buffer:?}");
        assert_eq!(buffer.limiter, Limiter::SendBuffer);
        // The most that was in flight is more than what was there on average, where writes go beyond the buffer.
        let (beyond, _) = predicted(
            &Seen {
                limiter: Limiter::SendBuffer,
                window: Some(Bytes::new(3_000_000)),
                scale: Some(Some(7)),
                in_flight: Some(Bytes::new(83_984)),
                ..seen()
            },
            &Overrides::default(),
        );
        assert!((beyond.rate.bps() as f64 / 6.3e6 - 1.0).abs() < 0.05, "{beyond:?}");
    }

    #[test]
    fn what_files_or_the_user_tell_outdoes_what_was_seen() {
        let overrides = Overrides { receiver: true, ..Overrides::default() };
        assert!(predicted(&seen(), &overrides).0.rate.bps() > 80_000_000);
        let overrides = Overrides { receiver: true, link: Some(Rate::from_bps(20_000_000)), ..Overrides::default() };
        let (slow, _) = predicted(&seen(), &overrides);
        assert!(slow.rate.bps() < 20_000_000 && slow.limiter == Limiter::Path, "{slow:?}");
    }

    #[test]
    fn ends_stay_the_limit_where_nothing_tells_what_the_path_carries() {
        let unknown = Seen { attainable: None, ..seen() };
        let (found, notes) = predicted(&unknown, &Overrides::default());
        assert_eq!(found.limiter, Limiter::ReceiveWindow, "{found:?}");
        assert!(notes.iter().any(|note| note.contains("--rate")), "{notes:?}");
    }

    #[test]
    fn figures_that_no_path_has_are_an_error_or_bounded() {
        let machine = Machine::new("linux-6.18").unwrap();
        let try_it = |seen: &Seen| as_seen(seen, &Overrides::default(), &machine, &machine);
        assert!(try_it(&Seen { rtt: Micros::new(u64::MAX), ..seen() }).is_err());
        assert!(try_it(&Seen { attainable: Some(Rate::from_bps(u64::MAX)), ..seen() }).is_err());
        let wide = Seen { window: Some(Bytes::new(u64::MAX)), in_flight: Some(Bytes::new(u64::MAX)), ..seen() };
        assert_eq!(try_it(&wide).unwrap().0.receiver.receive.max, MOST);
        assert!(try_it(&Seen { limiter: Limiter::SendBuffer, rate: Rate::ZERO, mtu: Some(0), ..wide }).is_ok());
    }

    #[test]
    fn retransmissions_are_loss_only_where_they_were_the_limit() {
        let full = Seen { limiter: Limiter::Path, segments: Some((10_000, 50)), ..seen() };
        let mut notes = Vec::new();
        assert!(loss(&full, &mut notes).abs() < 1e-12);
        let lossy = Seen { limiter: Limiter::CongestionWindow, ..full };
        assert!((loss(&lossy, &mut notes) - 0.005).abs() < 1e-12);
        assert_eq!(notes.len(), 2);
        assert!(loss(&Seen { segments: None, ..lossy }, &mut notes).abs() < 1e-12);
        assert!(notes[2].contains("--loss"), "{notes:?}");
    }
}
