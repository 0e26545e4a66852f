//! The outcome of a test: both ends' accounts put together.

use std::{net::SocketAddr, time::SystemTime};

use fullpipe_diagnose::{End, ReceiverSample, RttSummary, SenderSample, Source, Transfer};
use fullpipe_units::{Bytes, Micros, Rate};
use serde::Serialize;

use crate::{
    handshake,
    lane::Role,
    max::Push,
    report::{EndReport, FarReport, LaneReport},
    spec::Direction,
    sys::host,
    udp::{DatagramSample, Datagrams},
    wire::Results,
};

/// What a test measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// The server.
    pub peer: SocketAddr,
    /// What the server is.
    pub peer_kind: PeerKind,
    /// When it began.
    pub started: SystemTime,
    /// What the server knows the test by.
    pub cookie: String,
    /// This end of each TCP connection, in the order of the directions and their transfers.
    pub local_ends: Vec<SocketAddr>,
    /// Up before down, those that were measured.
    pub directions: Vec<DirectionMeasurement>,
    /// The caller stopped it before its time; the figures are of what was measured until then.
    pub cancelled: bool,
    /// What the server would print, where it was asked for.
    pub server_output: Option<String>,
    /// Processor time of this end's process.
    pub own_cpu: Cpu,
    /// Processor time of the far end's process, as it tells; with other clients at the same time it has theirs, too.
    pub far_cpu: Option<Cpu>,
    /// What this end did to be fast, where that was asked for.
    pub own_push: Option<Push>,
    /// What the far end did.
    pub far_push: Option<Push>,
    /// What went otherwise than asked, as sentences.
    pub warnings: Vec<String>,
}

/// Processor time of a process during a test, in percent of one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cpu {
    /// In the program.
    pub user_percent: f64,
    /// In the kernel.
    pub system_percent: f64,
}

impl Cpu {
    /// Both together.
    pub fn percent(&self) -> f64 {
        self.user_percent + self.system_percent
    }

    pub(crate) fn of_report(report: &EndReport) -> Self {
        Self { user_percent: report.cpu_user_percent, system_percent: report.cpu_system_percent }
    }

    pub(crate) fn of_results(results: &Results) -> Self {
        // An old peer knows the sum only.
        let user = results.cpu_user.clamp(0.0, 1e6);
        let system = if user + results.cpu_system > 0.0 { results.cpu_system } else { results.cpu_total };
        Self { user_percent: user, system_percent: system.clamp(0.0, 1e6) }
    }
}

/// What answers at the far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerKind {
    /// One of ours: both ends are seen.
    Fullpipe,
    /// A foreign iperf3 server: only our own end is seen.
    Iperf3,
    /// An iperf 2 server, which says nothing at all.
    Iperf2,
}

/// One direction of a test, all its connections together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionMeasurement {
    /// Which.
    pub direction: Direction,
    /// The time at the start that nothing but [`Self::transfers`] and their series counts; zero where nothing was omitted.
    pub omitted_us: Micros,
    /// Payload that the receiver counted after the omitted time.
    pub bytes: Bytes,
    /// From the first payload byte, or the end of the omitted time, to the last, of the connection that took longest.
    pub seconds: f64,
    /// Over that time.
    pub rate_bps: Option<Rate>,
    /// After the omitted time; where nothing was omitted, over the second half of the transfer.
    pub steady_bps: Option<Rate>,
    /// Segments retransmitted after the omitted time; absent where the sender was not seen and did not tell.
    pub retransmits: Option<u64>,
    /// Round trips before the load.
    pub idle_rtt: Option<RttSummary>,
    /// RTT under load: of the segments with payload, as the sender's kernel smoothed it.
    pub loaded_rtt: Option<RttSummary>,
    /// What the kernel of the first sender believed to be the path MTU at the end, in bytes.
    pub kernel_mtu: Option<u32>,
    /// What became of the datagrams, where it were datagrams.
    pub datagrams: Option<Datagrams>,
    /// How that came, all streams together; of what was sent where the receiver does not tell.
    pub datagram_series: Vec<DatagramSample>,
    /// One per connection, of the whole time; none of datagrams.
    pub transfers: Vec<Transfer>,
    /// What counts of each of these.
    pub counted: Vec<Counted>,
}

/// What counts of a connection: all of it, or where the start was omitted what came after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Counted {
    /// Payload that the receiver counted.
    pub bytes: Bytes,
    /// Payload that was acknowledged; what arrived, where the sender was not seen.
    pub sent: Bytes,
    /// The time for that.
    pub duration_us: Micros,
    /// Segments retransmitted.
    pub retransmits: Option<u64>,
}

impl Counted {
    /// All of a connection.
    pub fn whole(transfer: &Transfer) -> Self {
        let acked = transfer.sender_samples.last().map_or(Bytes::ZERO, |sample| sample.acked);
        Self {
            bytes: transfer.bytes,
            sent: acked.max(transfer.bytes),
            duration_us: transfer.duration_us,
            retransmits: transfer.retransmits(),
        }
    }

    /// Payload rate.
    pub fn rate(&self) -> Option<Rate> {
        Rate::from_bytes(self.bytes, self.duration_us)
    }
}

impl DirectionMeasurement {
    /// All that arrived on connections and how long it took, the omitted time included.
    pub fn whole(&self) -> (Bytes, Micros) {
        let mut whole = Sum::default();
        for transfer in &self.transfers {
            whole.add(transfer.bytes.get(), transfer.duration_us.get());
        }
        (Bytes::new(whole.bytes), Micros::new(whole.longest_us))
    }
}

impl DirectionMeasurement {
    /// Of which nothing is known yet.
    pub const fn nothing(direction: Direction) -> Self {
        Self {
            direction,
            omitted_us: Micros::ZERO,
            bytes: Bytes::ZERO,
            seconds: 0.0,
            rate_bps: None,
            steady_bps: None,
            retransmits: None,
            idle_rtt: None,
            loaded_rtt: None,
            kernel_mtu: None,
            datagrams: None,
            datagram_series: Vec::new(),
            transfers: Vec::new(),
            counted: Vec::new(),
        }
    }
}

/// All that a measurement is put together from.
pub(crate) struct Accounts<'a> {
    pub(crate) own: EndReport,
    pub(crate) far: Option<FarReport>,
    /// The plain iperf3 results of the far end.
    pub(crate) results: Option<Results>,
    pub(crate) peer_name: &'a str,
    pub(crate) idle_rtt: Option<RttSummary>,
    /// The path MTU that was probed, up and down.
    pub(crate) path_mtu: [Option<u32>; 2],
}

impl Accounts<'_> {
    /// The directions that the test had.
    pub(crate) fn directions(&self) -> Vec<DirectionMeasurement> {
        let of = |role| {
            let lanes: Vec<&LaneReport> = self.own.lanes.iter().filter(|lane| lane.role == role).collect();
            (!lanes.is_empty()).then(|| self.direction(role, &lanes))
        };
        [of(Role::Send), of(Role::Receive)].into_iter().flatten().collect()
    }

    fn direction(&self, role: Role, lanes: &[&LaneReport]) -> DirectionMeasurement {
        let mut sum = Sum::default();
        let mut second_half = Sum::default();
        let mut omitted_us = 0;
        let mut retransmits = Some(0);
        let mut transfers = Vec::new();
        let mut all_counted = Vec::new();
        let mut datagrams = None;
        let mut datagram_series = Vec::new();
        let mut kernel_mtu = None;
        for own in lanes {
            let far = self.far.as_ref().and_then(|far| far.lane(own.id));
            let receiver = if role == Role::Send { far } else { Some(*own) };
            omitted_us = omitted_us.max(receiver.unwrap_or(own).omitted_us.unwrap_or(0));
            if own.datagrams.is_some() {
                let (bytes, us, became) = self.arrived(own, far);
                sum.add(bytes, us);
                second_half.add(bytes, us);
                datagrams = Some(datagrams.map_or(became, |sum: Datagrams| sum.and(became)));
                DatagramSample::add(&mut datagram_series, &receiver.unwrap_or(own).datagram_series);
                retransmits = None;
                continue;
            }
            let transfer = self.transfer(own, far);
            let counted = self.counted(own, far, &transfer);
            sum.add(counted.bytes.get(), counted.duration_us.get());
            second_half.add_second_half(&transfer);
            let sender = if role == Role::Send { Some(*own) } else { far };
            kernel_mtu = kernel_mtu.or_else(|| sender?.path_mtu);
            retransmits = retransmits.zip(counted.retransmits).map(|(sum, lost): (u64, u64)| sum.saturating_add(lost));
            transfers.push(transfer);
            all_counted.push(counted);
        }
        DirectionMeasurement {
            direction: if role == Role::Send { Direction::Up } else { Direction::Down },
            omitted_us: Micros::new(omitted_us),
            bytes: Bytes::new(sum.bytes),
            seconds: sum.longest_us as f64 / 1e6,
            rate_bps: sum.rate(),
            steady_bps: if omitted_us > 0 { sum.rate() } else { second_half.rate() },
            retransmits,
            idle_rtt: self.idle_rtt,
            loaded_rtt: loaded_rtt(&transfers),
            kernel_mtu,
            datagrams,
            datagram_series,
            transfers,
            counted: all_counted,
        }
    }

    /// What counts of a connection: this is where the omitted time is cut off.
    fn counted(&self, own: &LaneReport, far: Option<&LaneReport>, transfer: &Transfer) -> Counted {
        let reported = self.results.as_ref().and_then(|results| results.stream(own.id));
        let (sender, receiver) = if own.role == Role::Send { (Some(own), far) } else { (far, Some(own)) };
        let retransmits = sender
            .and_then(|lane| lane.retransmits)
            .or_else(|| reported.filter(|_| own.role == Role::Receive)?.retransmits);
        let lane = receiver.unwrap_or(own);
        if lane.omitted_us.is_none() {
            return Counted { retransmits, ..Counted::whole(transfer) };
        }
        let (bytes, us) = match reported.filter(|_| receiver.is_none()) {
            // Our own account of a sender tells what was acknowledged; the foreign receiver's figure is nearer.
            Some(reported) => (reported.bytes, reported.seconds.map_or(own.steady_us, |s| (s * 1e6) as u64)),
            None => (lane.steady_bytes, lane.steady_us),
        };
        Counted {
            bytes: Bytes::new(bytes),
            sent: Bytes::new(sender.map_or(bytes, |lane| lane.steady_bytes)),
            duration_us: Micros::new(us),
            retransmits,
        }
    }

    fn transfer(&self, own: &LaneReport, far: Option<&LaneReport>) -> Transfer {
        let handshake = handshake::combine(&own.view, far.map(|far| &far.view));
        let mut own_end = End {
            name: host::name(),
            platform: Some(host::platform()),
            syn: handshake.syn,
            opened: Some(true),
            congestion_control: own.congestion_control.clone(),
            send_buffer: own.send_buffer,
            receive_buffer: own.receive_buffer,
            cpu_busy: self.own.cpu_busy,
        };
        let mut far_end =
            End { name: self.peer_name.to_owned(), syn: handshake.syn_ack, opened: Some(false), ..End::default() };
        if let (Some(report), Some(far)) = (&self.far, far) {
            far_end.platform = Some(report.platform.clone());
            far_end.congestion_control = far.congestion_control.clone();
            far_end.send_buffer = far.send_buffer;
            far_end.receive_buffer = far.receive_buffer;
            far_end.cpu_busy = report.cpu_busy;
            if report.host != own_end.name {
                far_end.name.clone_from(&report.host);
            }
        }
        // Two namespaces of one machine share its name: then the addresses tell the ends apart.
        if own_end.name == far_end.name {
            own_end.name = format!("{} (client)", own_end.name);
        }
        let mut blind = handshake.blind;
        let far_is_seen = far.is_some_and(|far| far.view.is_seen());
        let other = if own.role == Role::Send { Role::Receive } else { Role::Send };
        if !far_is_seen {
            blind.push(blindness(other, &far_end.name));
        }
        if !own.view.is_seen() {
            blind.push(blindness(own.role, &own_end.name));
        }
        let ends = [(own.role, &own_end, own.view.is_seen()), (other, &far_end, far_is_seen)];
        blind.extend(
            ends.into_iter().filter(|(.., seen)| *seen).filter_map(|(role, end, _)| partly_reported(role, end)),
        );
        let receiver = if own.role == Role::Send { far } else { Some(own) };
        let (bytes, duration_us) = self.received(own, receiver);
        let told_mtu = self.path_mtu[if own.role == Role::Send { 0 } else { 1 }];
        let (sender, receiver_end) = if own.role == Role::Send { (own_end, far_end) } else { (far_end, own_end) };
        Transfer {
            source: if far_is_seen && own.view.is_seen() { Source::Live } else { Source::LiveOneEnd },
            sender,
            receiver: receiver_end,
            bytes: Bytes::new(bytes),
            duration_us: Micros::new(duration_us),
            idle_rtt: self.idle_rtt,
            path_mtu: told_mtu,
            lost_size: None,
            full_size_passed: false,
            drops: None,
            opening: None,
            write: None,
            write_every_us: None,
            link_rate: None,
            path_rate: None,
            sender_samples: samples(own, far, |lane| &lane.sender_samples),
            receiver_samples: samples(own, far, |lane| &lane.receiver_samples),
            blind,
        }
    }

    /// Of a stream of datagrams after the omitted time: what arrived, in how long, and what did not.
    fn arrived(&self, own: &LaneReport, far: Option<&LaneReport>) -> (u64, u64, Datagrams) {
        let reported = || self.results.as_ref().and_then(|results| results.stream(own.id));
        let of = |lane: &LaneReport| (lane.moved, lane.steady_us, lane.datagrams.unwrap_or_default());
        let sent = own.datagrams.unwrap_or_default();
        match (own.role, far.filter(|far| far.role == Role::Receive), reported()) {
            (Role::Receive, ..) => of(own),
            (Role::Send, Some(far), _) => {
                let (bytes, us, became) = of(far);
                // Those lost at the very end leave no gap: the sender knows of them.
                let missing = sent.packets.saturating_sub(became.packets);
                let became = Datagrams {
                    packets: became.packets.max(sent.packets),
                    lost: became.lost.saturating_add(missing),
                    ..became
                };
                (bytes, us, became)
            }
            (Role::Send, None, Some(reported)) => {
                let us = reported.seconds.map_or(own.steady_us, |seconds| (seconds * 1e6) as u64);
                (reported.bytes, us, reported.datagrams)
            }
            (Role::Send, None, None) => (own.moved, own.steady_us, sent),
        }
    }

    /// What the receiver counted, and for how long; what was acknowledged where it can't be known.
    fn received(&self, own: &LaneReport, receiver: Option<&LaneReport>) -> (u64, u64) {
        let reported = || {
            // A foreign server leaves the omitted bytes out.
            let reported = self.results.as_ref()?.stream(own.id).filter(|_| own.omitted_us.is_none())?;
            Some((reported.bytes, reported.seconds.map_or(own.duration_us, |seconds| (seconds * 1e6) as u64)))
        };
        match receiver {
            Some(lane) => (lane.bytes, lane.duration_us),
            None => reported().unwrap_or((own.bytes, own.duration_us)),
        }
    }
}

/// What is not known where the end of that role is a foreign peer, or a system whose kernel is not asked.
fn blindness(unseen: Role, name: &str) -> String {
    let (end, unseen) = match unseen {
        Role::Receive => ("receiver", "its buffer, what its application left unread and reordering on the way"),
        Role::Send => ("sender", "its congestion window, its send buffer, losses and its idle time"),
    };
    format!("the {end} ({name}) could not be read, so that {unseen} are not known")
}

/// What a kernel other than Linux's leaves open although it answers, and that nobody has seen it answer there.
fn partly_reported(role: Role, end: &End) -> Option<String> {
    let platform = end.platform.as_deref()?;
    let (system, call, as_sender, as_receiver) = [
        (
            "Windows",
            "SIO_TCP_INFO",
            "its send buffer, its slow-start threshold and what is not sent yet",
            "what arrived out of order",
        ),
        (
            "FreeBSD",
            "TCP_INFO",
            "its timeouts, what is not sent yet and, before 14, what is in flight",
            "which part of its buffer is overhead",
        ),
        (
            "Darwin",
            "TCP_CONNECTION_INFO",
            "what is in flight, its timeouts and round trips below a millisecond",
            "which part of its buffer is overhead",
        ),
    ]
    .into_iter()
    .find(|(system, ..)| platform.to_lowercase().starts_with(&system.to_lowercase()))?;
    let (name, end, unknown) = match role {
        Role::Send => (&end.name, "sender", as_sender),
        Role::Receive => (&end.name, "receiver", as_receiver),
    };
    Some(format!(
        "the {end} ({name}) is {system}: {call} does not tell {unknown}, and how it is read is untested on that system"
    ))
}

#[derive(Default)]
struct Sum {
    bytes: u64,
    longest_us: u64,
}

impl Sum {
    fn add(&mut self, bytes: u64, us: u64) {
        // A foreign end may count whatever it likes.
        self.bytes = self.bytes.saturating_add(bytes);
        self.longest_us = self.longest_us.max(us);
    }

    /// What arrived (or was acknowledged, where only the sender was seen) in the second half of the transfer.
    fn add_second_half(&mut self, transfer: &Transfer) {
        let half = Micros::new(transfer.duration_us.get() / 2);
        let received =
            |s: &ReceiverSample| (s.at_us, s.received.get() - s.unread.map_or(0, Bytes::get).min(s.received.get()));
        let acked = |s: &SenderSample| (s.at_us, s.acked.get());
        let points: Vec<(Micros, u64)> = if transfer.receiver_samples.is_empty() {
            transfer.sender_samples.iter().map(acked).collect()
        } else {
            transfer.receiver_samples.iter().map(received).collect()
        };
        let inside: Vec<_> = points.into_iter().filter(|(at, _)| (half..=transfer.duration_us).contains(at)).collect();
        if let (Some((from, before)), Some((to, after))) = (inside.first(), inside.last()) {
            self.add(after.saturating_sub(*before), to.saturating_sub(*from).get());
        }
    }

    fn rate(&self) -> Option<Rate> {
        Rate::from_bytes(Bytes::new(self.bytes), Micros::new(self.longest_us))
    }
}

fn samples<S: Clone>(own: &LaneReport, far: Option<&LaneReport>, of: impl Fn(&LaneReport) -> &Vec<S>) -> Vec<S> {
    let own = of(own);
    if own.is_empty() { far.map(|far| of(far).clone()).unwrap_or_default() } else { own.clone() }
}

/// The smallest and the median of what the senders' kernels smoothed while data was outstanding.
fn loaded_rtt(transfers: &[Transfer]) -> Option<RttSummary> {
    let loaded = |sample: &SenderSample| sample.rtt_us.filter(|_| sample.in_flight.is_some_and(|n| n > Bytes::ZERO));
    let samples = transfers.iter().flat_map(|transfer| &transfer.sender_samples);
    summary(samples.filter_map(loaded).collect())
}

/// `None` for no times.
pub(crate) fn summary(mut times: Vec<Micros>) -> Option<RttSummary> {
    times.sort_unstable();
    let count = u32::try_from(times.len()).unwrap_or(u32::MAX);
    Some(RttSummary { min_us: *times.first()?, p50_us: *times.get(times.len() / 2)?, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_system_leaves_open_is_named_with_its_call_and_as_untested() {
        let end = |platform: &str| End { name: "far".into(), platform: Some(platform.into()), ..End::default() };
        for (platform, call) in
            [("windows", "SIO_TCP_INFO"), ("freebsd-14.1", "TCP_INFO"), ("darwin-24.0", "TCP_CONNECTION_INFO")]
        {
            for role in [Role::Send, Role::Receive] {
                let text = partly_reported(role, &end(platform)).unwrap();
                assert!(text.contains(call) && text.contains("untested on that system"), "{text}");
            }
        }
        assert_eq!(partly_reported(Role::Send, &end("linux-6.18")), None);
        assert_eq!(partly_reported(Role::Send, &End::default()), None);
    }

    fn receiver(points: &[(u64, u64)]) -> Transfer {
        let sample = |&(at, received): &(u64, u64)| ReceiverSample {
            at_us: Micros::new(at),
            received: Bytes::new(received),
            ..ReceiverSample::default()
        };
        Transfer {
            duration_us: Micros::new(points.last().map_or(0, |(at, _)| *at)),
            receiver_samples: points.iter().map(sample).collect(),
            ..Transfer::default()
        }
    }

    #[test]
    fn the_steady_rate_leaves_slow_start_out() {
        let mut sum = Sum::default();
        sum.add_second_half(&receiver(&[(0, 0), (500_000, 100), (1_000_000, 1_100), (2_000_000, 3_100)]));
        assert_eq!(sum.rate(), Some(Rate::from_bps(16_000)));
    }

    #[test]
    fn counts_that_no_end_can_have_saturate() {
        let mut sum = Sum::default();
        sum.add(u64::MAX, u64::MAX);
        sum.add(u64::MAX, 1);
        assert_eq!((sum.bytes, sum.longest_us), (u64::MAX, u64::MAX));
    }

    #[test]
    fn the_median_of_no_times_is_none() {
        assert_eq!(summary(vec![]), None);
        let three = summary(vec![Micros::new(3), Micros::new(1), Micros::new(2)]).unwrap();
        assert_eq!((three.min_us.get(), three.p50_us.get(), three.count), (1, 2, 3));
    }
}
