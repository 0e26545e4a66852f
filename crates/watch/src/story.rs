//! The last seconds of one connection, and the transfer that the judge is given.

use std::{collections::VecDeque, net::SocketAddr};

use fullpipe_diagnose::{
    Buffer, CongestionState, End, ReceiverSample, RttSummary, SenderSample, Source, SynFacts, Transfer,
};
use fullpipe_socket::{Info, Memory};
use fullpipe_units::{Bytes, Micros};

use crate::{
    limits::{Limits, Pin},
    look::Look,
};

/// No more looks than this are kept, however often it is looked.
pub(crate) const MOST_LOOKS: usize = 512;

/// Which way the payload goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Out,
    In,
}

/// One look at a connection.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) at: Micros,
    pub(crate) sender: SenderSample,
    pub(crate) receiver: ReceiverSample,
    /// Payload sent so far, retransmissions included.
    pub(crate) sent: Option<u64>,
}

/// What has been seen of a connection lately.
#[derive(Clone, Debug, Default)]
pub(crate) struct Story {
    pub(crate) points: VecDeque<Point>,
    pub(crate) info: Info,
    pub(crate) memory: Memory,
    pub(crate) congestion: Option<String>,
    pub(crate) backoffs: u8,
    /// The smallest round trip that was ever seen.
    least_rtt: Option<Micros>,
}

impl Story {
    /// Adds a look at the time `at`, and forgets those from more than `span` before it.
    pub(crate) fn add(&mut self, look: &dyn Look, at: Micros, span: Micros) {
        let (info, memory) = (look.info(), look.memory());
        let rtts = [self.least_rtt, info.min_rtt, info.rtt];
        self.least_rtt = rtts.into_iter().flatten().min();
        if self.congestion.is_none() {
            self.congestion = look.congestion();
        }
        self.points.push_back(Point {
            at,
            sender: sender_sample(look, &info, &memory, at),
            receiver: ReceiverSample {
                at_us: at,
                received: Bytes::new(info.bytes_received.unwrap_or(0)),
                offered_window: info.receive_window,
                unread: Some(Bytes::new(look.unread().into())),
                out_of_order: info.out_of_order,
                receive_buffer: memory.receive_buffer,
                receive_space: info.receive_space,
            },
            sent: info.bytes_sent,
        });
        (self.info, self.memory, self.backoffs) = (info, memory, look.backoffs());
        let from = at.saturating_sub(span);
        while self.points.len() > MOST_LOOKS || self.points.front().is_some_and(|point| point.at < from) {
            self.points.pop_front();
        }
    }

    /// The time that it tells of.
    pub(crate) fn span(&self) -> Micros {
        let ends = self.points.front().zip(self.points.back());
        ends.map_or(Micros::ZERO, |(first, last)| last.at.saturating_sub(first.at))
    }

    /// Payload that left (acknowledged) and came in that time.
    pub(crate) fn moved(&self) -> [u64; 2] {
        let Some((first, last)) = self.points.front().zip(self.points.back()) else { return [0; 2] };
        [
            last.sender.acked.get().saturating_sub(first.sender.acked.get()),
            last.receiver.received.get().saturating_sub(first.receiver.received.get()),
        ]
    }

    /// Whether payload waited at this end all the time, sent or not.
    pub(crate) fn is_waiting(&self) -> bool {
        let waits = |sample: &SenderSample| {
            let mut seen = [sample.in_flight, sample.not_sent].into_iter().flatten().peekable();
            // FreeBSD tells no more than both together.
            let together = if seen.peek().is_none() { sample.send_queued } else { None };
            seen.chain(together).any(|bytes| bytes > Bytes::ZERO)
        };
        self.points.len() > 1 && self.points.iter().all(|point| waits(&point.sender))
    }

    /// The way in which there is something to tell; `None` where nothing moved and nothing waited.
    pub(crate) fn way(&self) -> Option<Way> {
        match self.moved() {
            [0, 0] => self.is_waiting().then_some(Way::Out),
            [out, into] if out >= into => Some(Way::Out),
            _ => Some(Way::In),
        }
    }

    /// The transfer in direction `way`. `far` is what was seen of the other end, where that is on this host, too.
    pub(crate) fn transfer(&self, way: Way, ends: &Ends, far: Option<&Self>) -> Transfer {
        let start = self.points.front().map_or(Micros::ZERO, |point| point.at);
        let own = self.end("this host".to_owned(), ends);
        let peer = End {
            name: ends.peer.ip().to_string(),
            syn: self.syns(ends.limits.scaling)[1],
            receive_buffer: far.and_then(|far| far.buffer(|sample| sample.receive_buffer, ends.far_receive)),
            ..End::default()
        };
        let (sender, receiver) = if way == Way::Out { (own, peer) } else { (peer, own) };
        let seen_at_receiver = if way == Way::Out { far } else { Some(self) };
        let receiver_samples = seen_at_receiver
            .into_iter()
            .flat_map(|story| &story.points)
            .map(|point| ReceiverSample { at_us: point.at.saturating_sub(start), ..point.receiver });
        let sender_samples = self
            .points
            .iter()
            .filter(|_| way == Way::Out)
            .map(|point| SenderSample { at_us: point.at.saturating_sub(start), ..point.sender });
        let [out, into] = self.moved();
        Transfer {
            source: Source::Watch,
            sender,
            receiver,
            bytes: Bytes::new(if way == Way::Out { out } else { into }),
            duration_us: self.span(),
            idle_rtt: self.least_rtt.map(|least| RttSummary { min_us: least, p50_us: least, count: 1 }),
            path_mtu: self.info.path_mtu.filter(|&mtu| mtu > 0),
            sender_samples: sender_samples.collect(),
            receiver_samples: receiver_samples.collect(),
            blind: ends.blind(way),
            ..Transfer::default()
        }
    }

    fn end(&self, name: String, ends: &Ends) -> End {
        let largest = |size: fn(&Point) -> Option<Bytes>| self.points.iter().filter_map(size).max();
        let buffer = |largest: Option<Bytes>, pin: Pin| Some(Buffer { largest: largest?, pinned: pin == Pin::Set });
        End {
            name,
            syn: self.syns(ends.limits.scaling)[0],
            congestion_control: self.congestion.clone(),
            send_buffer: buffer(largest(|point| point.sender.send_buffer), ends.send),
            receive_buffer: buffer(largest(|point| point.receiver.receive_buffer), ends.receive),
            ..End::default()
        }
    }

    fn buffer(&self, size: fn(&ReceiverSample) -> Option<Bytes>, pin: Pin) -> Option<Buffer> {
        let largest = self.points.iter().filter_map(|point| size(&point.receiver)).max()?;
        Some(Buffer { largest, pinned: pin == Pin::Set })
    }

    /// What this end's and the other's SYN said of scaling. Where the two did not agree on it, and this host's setting is on,
    /// it was the other end, whoever opened (RFC 7323, section 2.2).
    fn syns(&self, own_setting: Option<bool>) -> [Option<SynFacts>; 2] {
        let syn = |shift: Option<u8>| {
            Some(SynFacts {
                window_scale: shift,
                sack_permitted: self.info.sack.unwrap_or(false),
                timestamps: self.info.timestamps.unwrap_or(false),
                ..SynFacts::default()
            })
        };
        match (self.info.scaling, own_setting) {
            (Some(true), _) => [syn(self.info.own_shift), syn(self.info.peer_shift)],
            (Some(false), Some(true)) => [syn(Some(0)), syn(None)],
            (Some(false), Some(false)) => [syn(None), None],
            _ => [None, None],
        }
    }
}

/// What is known of a connection besides its looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) peer: SocketAddr,
    pub(crate) send: Pin,
    pub(crate) receive: Pin,
    /// The receive buffer of the other end, where that is on this host.
    pub(crate) far_receive: Pin,
    pub(crate) limits: Limits,
}

impl Ends {
    fn blind(&self, way: Way) -> Vec<String> {
        let (pin, what) = if way == Way::Out { (self.send, "send") } else { (self.receive, "receive") };
        match pin {
            Pin::Set | Pin::Left => Vec::new(),
            Pin::Likely => vec![format!(
                "whether the application set its {what} buffer can't be asked from here; its size says that it did"
            )],
            Pin::Unknown => vec![format!("whether the application set its {what} buffer can't be asked from here")],
        }
    }
}

fn sender_sample(look: &dyn Look, info: &Info, memory: &Memory, at: Micros) -> SenderSample {
    // What was sent once and is not acknowledged; else what the kernel itself says (Linux before 4.19: from segments).
    let outstanding = || {
        let once = info.bytes_sent?.saturating_sub(info.bytes_retransmitted?);
        Some(Bytes::new(once.saturating_sub(info.bytes_acked?)))
    };
    SenderSample {
        at_us: at,
        acked: Bytes::new(info.bytes_acked.unwrap_or(0)),
        in_flight: outstanding().or(info.in_flight),
        not_sent: info.not_sent,
        offered_window: info.send_window,
        cwnd: info.cwnd,
        ssthresh: info.ssthresh,
        mss: info.mss,
        rtt_us: info.rtt,
        rtt_var_us: info.rtt_var,
        path_mtu: info.path_mtu,
        min_rtt_us: info.min_rtt,
        retransmits: info.retransmits,
        retransmitted: info.bytes_retransmitted.map(Bytes::new),
        // Before 6.7 no count is reported, but the one of the timer that runs.
        timeouts: info.timeouts.or_else(|| Some(look.backoffs().into())),
        backoffs: Some(look.backoffs()),
        lost: info.lost,
        reordering_seen: info.reordering_seen,
        dsacks: info.dsacks,
        heard: info.segments_received,
        delivered_ce: info.delivered_ce,
        delivery_rate_bps: info.delivery_rate,
        delivery_app_limited: info.delivery_app_limited,
        pacing_rate_bps: info.pacing_rate,
        max_pacing_rate_bps: info.max_pacing_rate,
        congestion_state: info.congestion_state.and_then(state),
        busy_us: info.busy,
        rwnd_limited_us: info.rwnd_limited,
        sndbuf_limited_us: info.sndbuf_limited,
        send_buffer: memory.send_buffer,
        send_queued: memory.send_used,
        packets: None,
    }
}

/// `TCP_CA_Open` and its kin (include/uapi/linux/tcp.h).
fn state(number: u8) -> Option<CongestionState> {
    [
        CongestionState::Open,
        CongestionState::Disorder,
        CongestionState::CwndReduced,
        CongestionState::Recovery,
        CongestionState::Loss,
    ]
    .get(usize::from(number))
    .copied()
}
