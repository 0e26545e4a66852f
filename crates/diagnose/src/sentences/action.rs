//! The one thing to do, naming the end that must do it.

use super::{needed, receiver, sender};
use crate::{Detail, Limiter, classify::Case, thresholds, verdict::Ruling, windows::Scaling};

/// One sentence: which end, and what to do there.
pub(crate) fn action(case: &Case<'_>, ruling: &Ruling<'_>) -> String {
    let (sender, receiver) = (sender(case.transfer), receiver(case.transfer));
    match ruling.limiter {
        Limiter::ReceiveWindow => receive_window(case, ruling, &receiver),
        Limiter::SendBuffer if ruling.detail == Some(Detail::PinnedByApplication) => format!(
            "on {sender}, let the application leave the size of its send buffer to the system, or set it to {}",
            product(case)
        ),
        Limiter::SendBuffer => format!("on {sender}, allow send buffers that hold {}", product(case)),
        Limiter::Path if ruling.detail == Some(Detail::Policed) => {
            format!("no TCP setting raises a policed rate; pace {sender} just below it to avoid the losses")
        }
        Limiter::Path => "nothing to set: the path is full, and only a faster link would help".into(),
        Limiter::CongestionWindow if is_small_start(case, ruling) => format!(
            "on {sender}, let connections begin with {:.0} segments (RFC 6928), or keep them open",
            thresholds::INITIAL_SEGMENTS
        ),
        Limiter::CongestionWindow | Limiter::Reordering => congestion(ruling, &sender, &receiver),
        Limiter::SegmentSize if ruling.detail == Some(Detail::MtuBlackHole) => black_hole(&sender),
        Limiter::SegmentSize => "raise the MTU or the advertised MSS to what the path takes".into(),
        Limiter::Application if case.is_credited && ruling.detail.is_none() => {
            "no TCP setting raises the applications' own window: use several connections, or a program with a larger one"
                .into()
        }
        Limiter::Application => format!("nothing to set: the application on {sender} must write more or sooner"),
        Limiter::AckDelay if ruling.detail == Some(Detail::Nagle) => {
            format!("on {sender}, let the application write whole messages at once or switch Nagle's algorithm off")
        }
        Limiter::AckDelay => {
            format!("on {receiver}, shorten the delayed-ACK timer, or send more than one segment at a time")
        }
        Limiter::Cpu => {
            "spread the work over more processors or use segmentation offload on the end that is busy".into()
        }
        Limiter::Handshake => "keep connections open instead of setting up new ones".into(),
        Limiter::InsufficientEvidence => "measure for longer before changing anything".into(),
    }
}

/// What to do where large segments vanish.
pub(super) fn black_hole(sender: &str) -> String {
    format!("on {sender}, let TCP probe the path MTU or lower the MTU towards this destination")
}

/// The sender began with less than it may.
fn is_small_start(case: &Case<'_>, ruling: &Ruling<'_>) -> bool {
    let begun = case.transfer.opening.and_then(|opening| opening.initial_window);
    let is_small =
        begun.is_some_and(|begun| begun.get() as f64 <= (thresholds::INITIAL_SEGMENTS - 1.0) * case.timeline.mss);
    ruling.detail == Some(Detail::SlowStart) && is_small
}

fn receive_window(case: &Case<'_>, ruling: &Ruling<'_>, receiver: &str) -> String {
    let product = product(case);
    match ruling.detail {
        Some(Detail::ScalingAbsent) if case.offer.is_small() && !exceeds_unscaled(case) => {
            format!("on {receiver}, raise the receive window to {product}: {}", scaling_besides(case))
        }
        Some(Detail::ScalingAbsent) if case.offer.scaling == Scaling::SenderOmits => {
            format!("on {}, switch window scaling on, then let {receiver} offer {product}", sender(case.transfer))
        }
        Some(Detail::ScalingAbsent) => format!("on {receiver}, switch window scaling on and offer {product}"),
        Some(Detail::ScaleZero) => {
            format!(
                "on {receiver}, allow a receive window above 65,535 B, so that its scale shift isn't 0: offer {product}"
            )
        }
        Some(Detail::ZeroWindow) => format!("find out why the application on {receiver} stopped reading"),
        Some(Detail::SlowReader) => format!("let the application on {receiver} read faster: no window helps it"),
        Some(Detail::PinnedByApplication) => format!(
            "on {receiver}, let the application leave the size of its receive buffer to the system, or set it so that it \
             offers {product}"
        ),
        _ => format!("on {receiver}, raise the largest receive window to {product}"),
    }
}

/// The largest window without scaling (RFC 9293, section 3.1).
const UNSCALED: f64 = 65_535.0;

/// The product that is known of the path, though it may be more.
fn known_product(case: &Case<'_>) -> Option<f64> {
    case.path.known.zip(case.path.base_rtt).map(|(known, base)| known * base / 8e6)
}

fn exceeds_unscaled(case: &Case<'_>) -> bool {
    known_product(case).is_some_and(|product| product > UNSCALED)
}

/// Whether a window that is small besides needs scaling, too: as far as the path's product is known.
fn scaling_besides(case: &Case<'_>) -> String {
    if known_product(case).is_some() && !case.path.lower_bound {
        return "that needs no window scaling".into();
    }
    let where_ = if case.offer.scaling == Scaling::SenderOmits {
        format!("on {}", sender(case.transfer))
    } else {
        "there".into()
    };
    format!("up to 65,535 B need no window scaling; for more, switch it on {where_}, too")
}

fn congestion(ruling: &Ruling<'_>, sender: &str, receiver: &str) -> String {
    match (ruling.limiter, ruling.detail) {
        (Limiter::Reordering, _) => format!(
            "find what reorders packets on the path (parallel links); until then let {sender} tolerate more reordering"
        ),
        (_, Some(Detail::SlowStart)) => {
            format!(
                "start {sender} with a larger initial window or keep connections open; the steady rate is another matter"
            )
        }
        (_, Some(Detail::TailLoss)) if ruling.intervals.iter().any(|i| i.at.packets.is_some_and(|p| p.probes > 0)) => {
            format!("find where the path loses packets: {sender} asks for what is lost at the tail already (RFC 8985)")
        }
        (_, Some(Detail::TailLoss)) => {
            format!(
                "let {sender} probe for losses at the tail (RFC 8985) and {receiver} send selective acknowledgements"
            )
        }
        (_, Some(Detail::Loss | Detail::Rto)) => format!(
            "find where the path loses packets; until then a congestion control on {sender} that doesn't take every \
             loss for congestion gains most"
        ),
        _ => format!("look at the congestion control of {sender}: it sends less than the path takes"),
    }
}

fn product(case: &Case<'_>) -> String {
    needed(case).unwrap_or_else(|| "at least the path's bandwidth-delay product".into())
}
