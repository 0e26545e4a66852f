//! How large a window, the buffer for it, and what that costs.

use fullpipe_diagnose::{PathRate, Transfer};
pub(crate) use fullpipe_units::sizing::UNSCALED;
use fullpipe_units::{
    Bytes, Micros, Rate, bdp,
    sizing::{PayloadShare, Room, Sizes},
};

use super::{Flow, Goal, PlanHost, PlanRequest};
use crate::{Settings, value, version};

/// What a flow needs in flight.
#[derive(Clone, Debug)]
pub(super) struct Pipe {
    /// One bandwidth-delay product.
    pub(super) bdp: Bytes,
    /// Where that comes from.
    pub(super) arithmetic: String,
    /// Whether the path may carry more than the rate that was seen.
    pub(super) lower_bound: bool,
}

impl Pipe {
    /// The pipe of a flow; `None` where nothing tells its rate or its round-trip time.
    pub(super) fn from_request(request: &PlanRequest<'_>, flow: &Flow<'_>) -> Option<Self> {
        let PathRate { rate_bps, lower_bound } = rate(request, flow)?;
        let rtt = request.rtt.or_else(|| rtt(flow.transfer)).filter(|rtt| *rtt > Micros::ZERO)?;
        let bdp = bdp(rate_bps, rtt);
        let at_least = if lower_bound { "at least " } else { "" };
        Some(Self { bdp, lower_bound, arithmetic: format!("{at_least}{rate_bps} x {rtt} / 8 = {bdp}") })
    }

    /// A pipe of a rate and a round-trip time that the user names.
    pub(super) fn named(rate: Rate, rtt: Micros) -> Self {
        let bdp = bdp(rate, rtt);
        Self { bdp, lower_bound: false, arithmetic: format!("{rate} x {rtt} / 8 = {bdp}") }
    }

    /// The window to aim at.
    pub(super) fn window(&self, goal: Goal) -> (Bytes, String) {
        self.shown(Sizes::of_bdp(self.bdp, goal).window)
    }

    /// The payload that the send buffer has to hold.
    pub(super) fn unacknowledged(&self, goal: Goal) -> (Bytes, String) {
        self.shown(Sizes::of_bdp(self.bdp, goal).unacknowledged)
    }

    fn shown(&self, room: Room) -> (Bytes, String) {
        let Room { bytes, percent, why } = room;
        (bytes, format!("{}; x {} ({why}) = {bytes}", self.arithmetic, percent as f64 / 100.0))
    }
}

/// The rate to plan for: the user's, else what the path was seen to carry, else what the diagnosis expects.
fn rate(request: &PlanRequest<'_>, flow: &Flow<'_>) -> Option<PathRate> {
    let attainable = || flow.diagnosis.attainable_bps.map(|rate_bps| PathRate { rate_bps, lower_bound: false });
    let known = request.rate.or(flow.transfer.path_rate).or_else(attainable);
    known.filter(|rate| rate.rate_bps > Rate::ZERO)
}

/// The round-trip time without load: the idle median, else the smallest that the sender saw.
fn rtt(transfer: &Transfer) -> Option<Micros> {
    let idle = transfer.idle_rtt.map(|idle| idle.p50_us);
    idle.or_else(|| transfer.sender_samples.iter().filter_map(|sample| sample.min_rtt_us).min())
}

/// How much of a buffer is payload, and how that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Share {
    share: PayloadShare,
    /// Where it comes from.
    pub(super) words: String,
}

impl Share {
    /// The share of a receive buffer that is offered as window.
    ///
    /// Measured where samples show both and nothing else held the window down; else what this kernel starts from.
    pub(super) fn of_receive_buffer(flow: &Flow<'_>, settings: &Settings, clamped: bool) -> Self {
        let pairs = flow.transfer.receiver_samples.iter().filter_map(|s| Some((s.offered_window?, s.receive_buffer?)));
        let pairs: Vec<_> = if clamped { Vec::new() } else { pairs.collect() };
        Self::measured(&pairs, "of the receive buffer was offered as window")
            .unwrap_or_else(|| Self::documented_for_receive(settings))
    }

    /// The share of a send buffer that is payload.
    pub(super) fn of_send_buffer(flow: &Flow<'_>) -> Self {
        let pairs = flow.transfer.sender_samples.iter().filter_map(|s| {
            let payload = s.in_flight?.get().saturating_add(s.not_sent?.get());
            Some((Bytes::new(payload), s.send_queued?))
        });
        let pairs: Vec<_> = pairs.collect();
        Self::measured(&pairs, "of the send buffer was payload").unwrap_or_else(|| Self {
            share: PayloadShare::HALF,
            words: "half of a send buffer taken for payload, as the kernel does when it sizes one".to_owned(),
        })
    }

    /// The median of payload to buffer over the samples with the most payload.
    fn measured(pairs: &[(Bytes, Bytes)], what: &str) -> Option<Self> {
        /// Fewer samples than this could all come from one moment of growth.
        const ENOUGH: usize = 5;
        let most = pairs.iter().map(|(payload, _)| payload.get()).max()?;
        let full = pairs.iter().filter(|(payload, buffer)| {
            payload.get().saturating_mul(10) >= most.saturating_mul(9) && payload > &Bytes::ZERO && buffer >= payload
        });
        let mut shares: Vec<u64> = full.map(|(payload, buffer)| share_of_256(*payload, *buffer)).collect();
        if shares.len() < ENOUGH {
            return None;
        }
        shares.sort_unstable();
        // The kernel's own ratio is a byte; below 1/16 a sample says that the buffer was nearly empty.
        let of_256 = (*shares.get(shares.len() / 2)?).clamp(16, 255);
        let share = PayloadShare::new(of_256);
        Some(Self { share, words: format!("{} % {what}, measured", share.percent()) })
    }

    fn documented_for_receive(settings: &Settings) -> Self {
        let new = version::compare(&settings.platform.version, "6.6", &[]).is_none_or(std::cmp::Ordering::is_ge);
        if new {
            let words = "50 % of a receive buffer offered as window: where Linux 6.6 and newer start from".to_owned();
            return Self { share: PayloadShare::HALF, words };
        }
        // The kernel takes no more than 31 either way (ip-sysctl.rst).
        let scale = settings
            .sysctl("net.ipv4.tcp_adv_win_scale")
            .and_then(|text| text.trim().parse().ok())
            .filter(|scale| (-31..=31).contains(scale))
            .unwrap_or(1);
        let of_256 = match scale {
            1..=31 => 256 - (256 >> i32::min(scale, 8)),
            _ => 256 >> i32::min(i32::saturating_neg(scale), 8),
        };
        let share = PayloadShare::new(u64::try_from(of_256).unwrap_or(128));
        let words = format!("{} % of a receive buffer offered as window: tcp_adv_win_scale {scale}", share.percent());
        Self { share, words }
    }

    /// The payload that a buffer of `buffer` holds.
    pub(super) fn payload_in(&self, buffer: Bytes) -> Bytes {
        self.share.payload_in(buffer)
    }

    /// The smallest buffer that holds `payload`, rounded up to a value that is easy to read.
    pub(super) fn buffer_for(&self, payload: Bytes) -> Bytes {
        self.share.buffer_for(payload)
    }
}

fn share_of_256(payload: Bytes, buffer: Bytes) -> u64 {
    let share = u128::from(payload.get()) * 256 / u128::from(buffer.get().max(1));
    u64::try_from(share).unwrap_or(256)
}

/// From where on a host's kernel holds buffers back, whatever tcp_rmem and tcp_wmem allow: the second value of its tcp_mem; and
/// whether that can only have been meant as bytes.
pub(super) fn pressure(settings: &Settings) -> Option<(Bytes, bool)> {
    let pages = value::three(settings.sysctl("net.ipv4.tcp_mem")?)?;
    let page = settings.machine.page.map_or(4096, Bytes::get);
    Some((Bytes::new(pages[1].saturating_mul(page)), meant_as_bytes(pages)))
}

/// Whether a tcp_mem can only have been meant as bytes. 16 GiB and more occur on large servers, but then as the kernel's own
/// ratio 3 : 4 : 6. Three equal values, a first one of the size of one buffer, or half a terabyte in another ratio were meant as
/// bytes.
pub(crate) const fn meant_as_bytes([low, pressure, high]: [u64; 3]) -> bool {
    // The kernel rounds, so that its ratio is met to a page or two.
    let is_own_ratio = pressure.abs_diff((low / 3).saturating_mul(4)) <= 8 && high.abs_diff(low.saturating_mul(2)) <= 8;
    high >= 1 << 22 && (low == high || low <= 1 << 16 || (high >= 120_000_000 && !is_own_ratio))
}

/// The memory that a host's buffers may take.
#[derive(Clone, Debug)]
pub(super) struct MemoryBound {
    /// The most; absent where nothing tells.
    pub(super) bytes: Option<Bytes>,
    /// Where that comes from.
    pub(super) words: String,
}

impl MemoryBound {
    /// The bound for a host.
    pub(super) fn from_request(request: &PlanRequest<'_>, host: &PlanHost<'_>) -> Self {
        if let Some(bytes) = request.memory_bound {
            return Self { bytes: Some(bytes), words: format!("{bytes}, as asked") };
        }
        let machine = host.settings.machine;
        let pressure = pressure(host.settings).and_then(|(bytes, is_slip)| (!is_slip).then_some(bytes));
        let share = machine.memory.map(|memory| Bytes::new(memory.get() / 16));
        match (pressure, share) {
            (Some(pressure), Some(share)) if share < pressure => Self::share_of_memory(share),
            (Some(bytes), _) => {
                let words = format!("{bytes}, the second value of tcp_mem, above which the kernel holds buffers back");
                Self { bytes: Some(bytes), words }
            }
            (None, Some(share)) => Self::share_of_memory(share),
            (None, None) => {
                Self { bytes: None, words: "none known: neither tcp_mem nor the memory was read".to_owned() }
            }
        }
    }

    fn share_of_memory(bytes: Bytes) -> Self {
        Self { bytes: Some(bytes), words: format!("{bytes}, a sixteenth of the machine's memory") }
    }
}
