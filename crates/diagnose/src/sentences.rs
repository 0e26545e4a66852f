//! The words of a diagnosis: evidence with figures and arithmetic, what could not be seen, and the one action.
//!
//! What is *not* here: any decision. The action names the end and what to do there in words of no platform; which
//! setting that is, and its value, is the planner's job.

use fullpipe_units::{Bytes, Micros, Rate, bdp, window_limited_rate};

use crate::{
    Confidence, Detail, Diagnosis, End, Evidence, Limiter, Opening, PacketSample, Shares, Source, Transfer,
    classify::{self, Case},
    diagnosis::percent,
    packets, thresholds,
    timeline::Interval,
    verdict::Ruling,
    windows::{Offer, Scaling},
};

mod action;
mod network;

pub(crate) use action::action;

/// The reasons for the verdict, most important first.
pub(crate) fn evidence(case: &Case<'_>, ruling: &Ruling<'_>) -> Vec<Evidence> {
    let texts = match ruling.limiter {
        Limiter::ReceiveWindow => receive_window(case, ruling),
        Limiter::SendBuffer => send_buffer(case, ruling),
        Limiter::Path => network::path(case, ruling),
        Limiter::CongestionWindow | Limiter::Reordering => network::congestion(case, ruling),
        Limiter::SegmentSize => network::segment_size(case, ruling),
        Limiter::Application => application(case, ruling),
        Limiter::AckDelay => ack_delay(case, ruling),
        Limiter::Cpu => processor(case, ruling),
        Limiter::Handshake | Limiter::InsufficientEvidence => Vec::new(),
    };
    let numbers = |pick: fn(&PacketSample) -> Option<u64>| {
        ruling.intervals.iter().filter_map(move |i| pick(i.at.packets.as_ref()?))
    };
    let packets =
        numbers(|packets| packets.first).min().zip(numbers(|packets| packets.last).max()).map(<[u64; 2]>::from);
    let from_us = ruling.intervals.first().map(|i| i.from_us);
    let to_us = ruling.intervals.last().map(|i| i.to_us);
    let when = from_us.zip(to_us).map(|time| when(subject(ruling), ruling.share, time));
    texts.into_iter().chain(when).map(|text| Evidence { text, from_us, to_us, packets }).collect()
}

/// The last of the reasons: how long it was the limit, and between which times in microseconds.
pub(crate) fn when(subject: &str, share: f64, (from_us, to_us): (u64, u64)) -> String {
    format!(
        "{subject} was the limit for {} of the time, between {} and {}",
        percent(share),
        Micros::new(from_us),
        Micros::new(to_us)
    )
}

/// What could not be seen: what the source says, and what its kind leaves open.
pub(crate) fn blind(transfer: &Transfer) -> Vec<String> {
    let mut blind = transfer.blind.clone();
    if transfer.sender_samples.is_empty() {
        blind
            .push("the sender was not seen: its congestion window, send buffer and retransmissions are unknown".into());
    } else if transfer.receiver_samples.is_empty() {
        blind.push("the receiver was not seen: whether its application reads too slowly is unknown".into());
    }
    let scaling = Scaling::from_transfer(transfer);
    if scaling == Scaling::Unknown {
        blind.push("the SYN packets were not seen: which window the ends could offer at all is unknown".into());
    }
    for (end, role) in [(&transfer.sender, "the sender"), (&transfer.receiver, "the receiver")] {
        if let Some(busy) = end.cpu_busy.filter(|&busy| busy >= thresholds::CPU_BUSY) {
            let (name, busy) = (name(end, role), percent(busy.min(1.0)));
            blind.push(format!(
                "the busiest processor of {name} was busy for {busy} of the time: what the ends would have reached with \
                 more of it is unknown"
            ));
        }
    }
    if transfer.path_rate.is_none() && transfer.source != Source::Watch {
        blind.push("the rate of the path was not measured separately: the attainable rate is an estimate".into());
    }
    blind
}

/// The diagnosis where there is too little to judge.
pub(crate) fn insufficient(transfer: &Transfer, shares: Shares, reason: String) -> Diagnosis {
    Diagnosis {
        limiter: Limiter::InsufficientEvidence,
        detail: None,
        share: 0.0,
        attainable_bps: transfer.path_rate.map(|path| path.rate_bps).filter(|rate| rate.bps() > 0),
        or: Vec::new(),
        confidence: Confidence::Low,
        shares,
        evidence: vec![Evidence { text: reason, from_us: None, to_us: None, packets: None }],
        blind: blind(transfer),
        action: "measure for longer, and with both ends in view, before changing anything".into(),
    }
}

/// The diagnosis where setting the connection up took longer than all the rest. `share` is its part of the time.
pub(crate) fn handshake(case: &Case<'_>, opening: &Opening, share: f64, rest: Shares) -> Diagnosis {
    let transfer = case.transfer;
    let mut shares: Shares = rest.into_iter().map(|(limiter, part)| (limiter, part * (1.0 - share))).collect();
    shares.insert(Limiter::Handshake, share);
    let mut evidence = vec![opened(case, opening)];
    evidence.push(format!("setting the connection up was {} of its time", percent(share)));
    let opener = if transfer.sender.opened == Some(true) { &transfer.sender } else { &transfer.receiver };
    let answerer = if transfer.sender.opened == Some(true) { &transfer.receiver } else { &transfer.sender };
    let (opener, answerer) = (name(opener, "the end that opened"), name(answerer, "the end that answered"));
    Diagnosis {
        limiter: Limiter::Handshake,
        detail: None,
        share,
        attainable_bps: None,
        or: Vec::new(),
        confidence: Confidence::High,
        shares,
        evidence: evidence
            .into_iter()
            .map(|text| Evidence { text, from_us: None, to_us: None, packets: opening.packets })
            .collect(),
        blind: blind(transfer),
        action: format!(
            "find where connection requests get lost between {opener} and {answerer}: a firewall, a lossy path, or a full \
             queue of connections waiting to be accepted on {answerer}; connections that stay open pay this once"
        ),
    }
}

/// The diagnosis beside a receiver to which nothing came for long, because segments were too large for the path. `share` is
/// that part of the time.
pub(crate) fn silence(case: &Case<'_>, opening: &Opening, share: f64, rest: Shares) -> Diagnosis {
    let transfer = case.transfer;
    let mut shares: Shares = rest.into_iter().map(|(limiter, part)| (limiter, part * (1.0 - share))).collect();
    shares.insert(Limiter::SegmentSize, share);
    let text = format!(
        "for {} after the handshake nothing arrived, then data from the middle of what had been sent, in segments smaller \
         than the {} that were announced: larger ones vanish on the path",
        opening.silent_us,
        Bytes::new(u64::from(transfer.lost_size.unwrap_or_default()))
    );
    Diagnosis {
        limiter: Limiter::SegmentSize,
        detail: Some(Detail::MtuBlackHole),
        share,
        attainable_bps: None,
        or: Vec::new(),
        confidence: Confidence::Medium,
        shares,
        evidence: vec![Evidence { text, from_us: None, to_us: None, packets: opening.packets }],
        blind: blind(transfer),
        action: action::black_hole(&sender(transfer)),
    }
}

fn opened(case: &Case<'_>, opening: &Opening) -> String {
    let repeated = match (opening.syn_retransmissions, opening.syn_ack_retransmissions) {
        (syns, 0) => format!("the SYN was sent {} times", syns + 1),
        (0, answers) => format!("the SYN-ACK was sent {} times", answers + 1),
        (syns, answers) => format!("the SYN was sent {} times and the SYN-ACK {} times", syns + 1, answers + 1),
    };
    let takes =
        case.path.base_rtt.map(|base| format!(" where a round trip takes {}", micros(base))).unwrap_or_default();
    format!("{repeated}, and the handshake took {}{takes}: the rest was waiting to repeat it", opening.took_us)
}

/// What to call the receiver.
pub(crate) fn receiver(transfer: &Transfer) -> String {
    name(&transfer.receiver, "the receiver")
}

/// What to call the sender.
pub(crate) fn sender(transfer: &Transfer) -> String {
    name(&transfer.sender, "the sender")
}

fn name(end: &End, role: &str) -> String {
    if end.name.is_empty() { role.into() } else { format!("{role} ({})", end.name) }
}

fn subject(ruling: &Ruling<'_>) -> &'static str {
    match (ruling.limiter, ruling.detail) {
        (Limiter::ReceiveWindow, _) => "the receive window",
        (Limiter::SendBuffer, _) => "the send buffer",
        (Limiter::CongestionWindow, Some(Detail::SlowStart)) => "the opening of the congestion window",
        (Limiter::CongestionWindow, _) => "the congestion window",
        (Limiter::Path, _) => "the path",
        (Limiter::Reordering, _) => "reordering",
        (Limiter::SegmentSize, _) => "the segment size",
        (Limiter::Application, _) => "the sending application",
        (Limiter::AckDelay, _) => "the delay of acknowledgements",
        (Limiter::Cpu, _) => "a processor",
        (Limiter::Handshake, _) => "the handshake",
        (Limiter::InsufficientEvidence, _) => "nothing that was seen",
    }
}

/// `W x 8 / RTT = R; measured M`.
fn bound(window: Bytes, rtt: Micros, measured: Rate) -> String {
    let rate = window_limited_rate(window, rtt).unwrap_or_default();
    format!("{window} x 8 / {rtt} = {rate}; measured {measured}")
}

fn measured(ruling: &Ruling<'_>) -> Rate {
    Rate::from_bps(ruling.rate.round() as u64)
}

fn bytes(value: f64) -> Bytes {
    Bytes::new(value.round() as u64)
}

fn micros(value: f64) -> Micros {
    Micros::new(value.round() as u64)
}

/// `so long as the round trip stood near its minimum`, the sentence that clears the path.
fn no_queue(case: &Case<'_>, ruling: &Ruling<'_>) -> Option<String> {
    if ruling.intervals.iter().all(|i| i.rtt().is_none()) {
        // A queue wouldn't show; an idle link does.
        let link = case.transfer.link_rate.filter(|_| case.is_link_left_idle(&ruling.intervals))?;
        let idle = 1.0 - ruling.rate / link.bps().max(1) as f64;
        return Some(format!(
            "full segments arrived at the spacing of a link of {link} (payload), which was idle for {} of the time",
            percent(idle)
        ));
    }
    let (rtt, base) = ruling.rtt.zip(case.path.base_rtt).filter(|_| !case.path.has_deep_queue(&ruling.intervals))?;
    let (rtt, base) = (micros(rtt), micros(base));
    Some(format!("the round trip took {rtt}, its minimum was {base}: no queue at a full link"))
}

fn spare_path(case: &Case<'_>, ruling: &Ruling<'_>) -> Option<String> {
    let known = case.path.known.filter(|_| case.path.has_room_above(ruling.rate))?;
    let (known, measured) = (Rate::from_bps(known as u64), measured(ruling));
    let part = ruling.rate / known.bps().max(1) as f64;
    Some(format!("the path was measured to carry {known}; this transfer used {measured}, {} of it", percent(part)))
}

fn receive_window(case: &Case<'_>, ruling: &Ruling<'_>) -> Vec<String> {
    let offer = &case.offer;
    let mut texts = Vec::new();
    if let Some(text) = closed_window(offer, ruling) {
        texts.push(text);
    } else if let Some(text) = window_arithmetic(case, ruling) {
        texts.push(text);
    }
    if ruling.detail == Some(Detail::ScalingAbsent) && offer.is_small() {
        texts.push(format!(
            "window scaling is absent, and the window, at most {}, is small besides: up to 65,535 B need no scaling",
            bytes(offer.largest)
        ));
    }
    let used = ruling.median(|i| i.in_flight()).zip(ruling.median(|i| i.offered()));
    if let Some((in_flight, offered)) = used.filter(|_| !offer.closed) {
        let cwnd = ruling.median(|i| i.cwnd()).map(|cwnd| format!(", the congestion window allowed {}", bytes(cwnd)));
        let (used, offered) = (bytes(in_flight), bytes(offered));
        texts.push(format!("{used} of the offered {offered} were in flight (medians){}", cwnd.unwrap_or_default()));
    }
    // Where the application reads slowly, its rhythm lengthens round trips, and there may be a queue besides.
    texts.extend(no_queue(case, ruling).filter(|_| !offer.closed && !offer.is_slow_reader()));
    texts.extend(spare_path(case, ruling));
    if offer.pinned == Some(true) {
        let size = case.transfer.receiver.receive_buffer.map_or(Bytes::ZERO, |buffer| buffer.largest);
        texts.push(format!(
            "the receiving application set its buffer itself ({size} as the kernel accounts for it), which switched \
             automatic sizing off"
        ));
    }
    texts
}

fn window_arithmetic(case: &Case<'_>, ruling: &Ruling<'_>) -> Option<String> {
    let rtt = micros(ruling.rtt?);
    let typical = ruling.median(|i| i.offered())?;
    let largest = case.offer.largest;
    let scaling = case.offer.scaling.words();
    // A window that moved is better described by its median than by its largest value.
    let (words, window) =
        if largest <= 1.2 * typical { ("at most", bytes(largest)) } else { ("a median of", bytes(typical)) };
    let ceiling = match case.offer.scaling.ceiling() {
        Some(most) if case.offer.at_ceiling() => {
            format!(", so that {} is the largest window it can advertise", Bytes::new(most))
        }
        _ => String::new(),
    };
    let bound = bound(window, rtt, measured(ruling));
    Some(format!("the receiver offered {words} {window} ({scaling}{ceiling}) and the round trip took {rtt}: {bound}"))
}

fn closed_window(offer: &Offer, ruling: &Ruling<'_>) -> Option<String> {
    let unread = offer.unread_share.map(|share| {
        format!("; in {} of its samples at least half of the window held data not yet read", percent(share))
    });
    let unread = unread.unwrap_or_default();
    let largest = bytes(offer.largest);
    if offer.closed_at_end {
        return Some(format!(
            "the receiver closed its window (at most {largest} before) and did not open it again{unread}"
        ));
    }
    if offer.closed {
        return Some(format!("the receiver closed its window (at most {largest}) again and again{unread}"));
    }
    if !offer.is_slow_reader() {
        return None;
    }
    let typical = bytes(ruling.median(|i| i.offered())?);
    Some(format!("the receiver offered {typical} (median) of at most {largest}{unread}"))
}

fn send_buffer(case: &Case<'_>, ruling: &Ruling<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    if let Some(text) = ceiling(ruling) {
        texts.push(text);
    } else if let Some((in_flight, rtt)) = ruling.median(|i| i.in_flight()).zip(ruling.rtt) {
        let (held, rtt) = (bytes(in_flight), micros(rtt));
        let room =
            |limit: Option<f64>| limit.map_or_else(|| "an unseen number of bytes".into(), |b| bytes(b).to_string());
        texts.push(format!(
            "{held} were in flight and nothing more was ready to send, while the receiver offered {} and the congestion \
             window allowed {} (medians): {}",
            room(ruling.median(|i| i.offered())),
            room(ruling.median(|i| i.cwnd())),
            bound(held, rtt, measured(ruling))
        ));
    }
    let fill = ruling.median(|i| i.at.send_queued.map(|b| b.get() as f64));
    let size = ruling.median(|i| i.at.send_buffer.map(|b| b.get() as f64));
    if let Some((fill, size)) = fill.zip(size) {
        texts.push(queued(bytes(fill), bytes(size)));
    }
    texts.extend(no_queue(case, ruling));
    texts.extend(spare_path(case, ruling));
    if case.transfer.sender.send_buffer.is_some_and(|buffer| buffer.pinned) {
        texts.push("the sending application set its buffer itself, which switched automatic sizing off".into());
    }
    texts
}

/// What stands in a send buffer, beside its size.
fn queued(fill: Bytes, size: Bytes) -> String {
    if fill > size {
        // `sk_stream_memory_free` looks before a packet is queued, and `sk_wmem_queued` has all of its memory.
        return format!(
            "the send buffer was full: {fill} queued, beyond its size of {size}, because the kernel counts the memory of \
             whole packets and looks before it queues one (medians)"
        );
    }
    format!(
        "the send buffer held {fill} of {size} (medians, as the kernel accounts for it: from two thirds on, a writer waits)"
    )
}

/// A ceiling that packets show, where the buffer itself was not seen.
fn ceiling(ruling: &Ruling<'_>) -> Option<String> {
    let most = ruling.intervals.iter().filter_map(|i| packets::peak(i)).reduce(f64::max)?;
    let (held, rtt) = (bytes(ruling.median(|i| i.in_flight())?), micros(ruling.rtt?));
    let offered =
        ruling.median(|i| i.offered()).map(|offered| format!(", though the receiver offered {}", bytes(offered)));
    Some(format!(
        "never more than {} were in flight, a ceiling that it meets again and again{}, and the mean was {held}: {}",
        bytes(most),
        offered.unwrap_or_default(),
        bound(held, rtt, measured(ruling))
    ))
}

fn application(case: &Case<'_>, ruling: &Ruling<'_>) -> Vec<String> {
    if ruling.detail.is_none() && case.is_credited {
        let most = ruling.intervals.iter().filter_map(|i| packets::peak(i)).fold(0.0, f64::max);
        let count: u64 = ruling.intervals.iter().filter_map(|i| i.at.packets).map(|p| u64::from(p.credits)).sum();
        return vec![format!(
            "never more than {} were in flight, and the sender went on after each of {count} messages of the receiving \
             application: the two have a window of their own above TCP's (SSH, HTTP/2), {}",
            bytes(most),
            measured(ruling)
        )];
    }
    if ruling.detail.is_none() && packets::is_even(&case.timeline) {
        let in_flight = ruling.median(|i| i.in_flight()).map(bytes).unwrap_or_default();
        return vec![format!(
            "{in_flight} were in flight (mean), as much left in each round trip as in any other, and no queue formed: the \
             sender kept to a rate of its own, {} (its application, or a limit of its pacing)",
            measured(ruling)
        )];
    }
    if ruling.detail.is_none()
        && let Some(most) = ruling.median(classify::bound_by_application)
    {
        return vec![format!(
            "the application lets its socket send no faster than {} (`SO_MAX_PACING_RATE`), and no queue formed: {} were measured",
            Rate::from_bps(most as u64),
            measured(ruling)
        )];
    }
    let every = case.transfer.write_every_us.map(|every| format!(", {every} after the one before")).unwrap_or_default();
    let write = case.transfer.write.map(|write| format!("nearly each of its writes was of {write}{every}"));
    application_alone(case, ruling).into_iter().chain(write).collect()
}

fn application_alone(case: &Case<'_>, ruling: &Ruling<'_>) -> Vec<String> {
    if ruling.detail == Some(Detail::Idle) {
        return vec![
            "nothing was in flight and nothing waited to be sent: the application had written all it had".into(),
        ];
    }
    let asked: u64 = ruling.intervals.iter().filter_map(|i| i.at.packets).map(|packets| u64::from(packets.asked)).sum();
    if let Some(answers) = case.answers.filter(|answers| answers.is_most() && answers.is_much()) {
        let asked = packets::asked(&case.timeline);
        return vec![format!(
            "{asked} times the receiver asked for more only when it had all of the answer before: from the last byte of one to the \
             first of the next takes a round trip, {} of the time, and the path was empty for {} of it",
            percent(answers.waited),
            percent(answers.dry)
        )];
    }
    if asked >= thresholds::LEAST_EXCHANGES && ruling.intervals.iter().any(|i| packets::is_asked(i)) {
        return vec![format!(
            "{asked} times everything had been sent and acknowledged before the receiver's next request came: the sender \
             waited for it, {}",
            measured(ruling)
        )];
    }
    let in_flight = ruling.median(|i| i.in_flight()).map(bytes).unwrap_or_default();
    if ruling.intervals.iter().any(|i| i.at.packets.is_some()) {
        return vec![format!(
            "{in_flight} were in flight (mean), and most of the data left while no acknowledgement had just made room for \
             it: the sender had room and sent when the application wrote, {}",
            measured(ruling)
        )];
    }
    vec![format!(
        "{in_flight} were in flight (median) and nothing more waited in the send buffer, which had room: the application \
         wrote {}",
        measured(ruling)
    )]
}

fn ack_delay(case: &Case<'_>, ruling: &Ruling<'_>) -> Vec<String> {
    let Some((rtt, base)) = ruling.rtt.zip(case.path.base_rtt) else { return Vec::new() };
    if let Some(text) = waits(case, base) {
        return vec![text];
    }
    let (full, base, delay) = (micros(rtt), micros(base), micros(rtt - base));
    let waiting = match ruling.detail {
        Some(Detail::Nagle) => "with the next one waiting for its acknowledgement (Nagle's algorithm)",
        _ => "with nothing waiting behind it",
    };
    vec![format!(
        "one segment or less was in flight, {waiting}, and its acknowledgement took {full} where the path takes {base}: \
         {delay} of it are the receiver's delayed-ACK timer"
    )]
}

/// What packets show of writes that waited for delayed acknowledgements.
fn waits(case: &Case<'_>, base: f64) -> Option<String> {
    let count = packets::ack_delay_count(&case.timeline);
    let time = |i: &Interval<'_>| packets::ack_delays(i).0 * i.len() + packets::ack_delays(i).1 * i.len();
    let total: f64 = case.timeline.intervals.iter().map(time).sum();
    (count > 0).then(|| {
        let (each, base, total) = (micros(total / count as f64), micros(base), micros(total));
        format!(
            "{count} times a write waited until the one before it was acknowledged, {each} on average where the path \
             takes {base}, {total} in all: the receiver delayed those acknowledgements"
        )
    })
}

fn processor(case: &Case<'_>, ruling: &Ruling<'_>) -> Vec<String> {
    let busy = |end: &End, role: &str| {
        end.cpu_busy
            .map(|busy| format!("the busiest processor of {} was busy for {}", name(end, role), percent(busy.min(1.0))))
    };
    let transfer = case.transfer;
    let ends = [busy(&transfer.sender, "the sender"), busy(&transfer.receiver, "the receiver")];
    let rest = format!("no window, buffer or pacing explains {}", measured(ruling));
    ends.into_iter().flatten().chain([rest]).collect()
}

/// What would fill the path, for a sentence of the action: `1,000,000 B (94.1 Mbit/s x 80.0 ms / 8)`.
fn needed(case: &Case<'_>) -> Option<String> {
    let (known, base) = case.path.known.zip(case.path.base_rtt)?;
    let (rate, rtt) = (Rate::from_bps(known as u64), micros(base));
    Some(format!("at least {} ({rate} x {rtt} / 8)", bdp(rate, rtt)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_buffer_never_holds_more_of_its_size_than_all() {
        let said = |fill, size| queued(Bytes::new(fill), Bytes::new(size));
        assert!(said(81_600, 96_000).starts_with("the send buffer held 81,600 B of 96,000 B"));
        let beyond = said(88_024, 77_824);
        assert!(beyond.contains("was full: 88,024 B queued, beyond its size of 77,824 B"), "{beyond}");
        assert!(!beyond.contains("88,024 B of"), "{beyond}");
    }
}
