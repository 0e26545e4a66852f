//! Congestion control: how large the window is, and what a loss does to it.
//!
//! An algorithm answers three questions (growth, decrease, restart) on a window that the connection keeps. What is
//! lost and when to retransmit is not its business (see `send` and `recovery`).
//!
//! One that goes by rates ([`CongestionControl::is_rate_based`]) is asked at each acknowledgement, with a sample of the delivery
//! rate, and may set a rate at which segments leave (`Window::pacing`). For the others no samples are taken.

#[cfg(feature = "bbr")]
mod bbr;
#[cfg(feature = "cubic")]
mod cubic;
#[cfg(feature = "cubic")]
mod hystart;
mod newreno;

#[cfg(feature = "bbr")]
pub use bbr::Bbr;
#[cfg(feature = "cubic")]
pub use cubic::Cubic;
use fullpipe_units::{Instant, SeqNum};
pub use newreno::NewReno;

#[cfg(feature = "bbr")]
use crate::divide;

/// The window of a connection, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The congestion window.
    pub cwnd: u32,
    /// The slow-start threshold.
    pub ssthresh: u32,
    /// How fast segments leave, in bytes per second; as fast as they can where it is absent. Algorithms set it.
    #[cfg(feature = "bbr")]
    pub pacing: Option<u32>,
    /// An algorithm sends less than it might for a while: samples of it say nothing about the path.
    #[cfg(feature = "bbr")]
    pub is_app_limited: bool,
}

impl Window {
    /// A window of `cwnd` bytes below the threshold `ssthresh`, without pacing.
    pub const fn new(cwnd: u32, ssthresh: u32) -> Self {
        Self {
            cwnd,
            ssthresh,
            #[cfg(feature = "bbr")]
            pacing: None,
            #[cfg(feature = "bbr")]
            is_app_limited: false,
        }
    }

    /// Whether the window is below the threshold (RFC 5681, section 3.1).
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// One acknowledgement, as far as a window's growth depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it arrived.
    pub now: Instant,
    /// The bytes that it newly acknowledges, by number or by SACK.
    pub acked: u32,
    /// The sender's segment size.
    pub mss: u32,
    /// The smoothed round-trip time in microseconds, once there is one.
    pub srtt_us: Option<u32>,
    /// How many segments' worth slow start may grow for one ACK (RFC 3465's L), where that is bound.
    pub slow_start_limit: Option<u32>,
    /// CUBIC is Linux's ([`Profile::linux_cubic`](crate::profile::Profile::linux_cubic)).
    pub linux_cubic: bool,
    /// The congestion window.
    pub cwnd: u32,
    /// Bytes in flight, now and before this acknowledgement.
    pub in_flight: u32,
    /// See `in_flight`.
    pub prior_in_flight: u32,
    /// Bytes that this acknowledgement has shown to be lost.
    pub lost: u32,
    /// Bytes delivered and lost since the connection began, modulo 2^32.
    pub delivered: u32,
    /// See `delivered`.
    pub lost_in_all: u32,
    /// What repairs losses.
    pub recovery: Recovery,
    /// What the segment that was sent last of those delivered tells; for algorithms that go by rates.
    pub rate: Option<RateSample>,
    /// Its round-trip time in microseconds, where it was sent once.
    pub rtt_us: Option<u32>,
    /// It acknowledges one small segment alone, whose receiver may have waited for another.
    pub may_be_delayed: bool,
    /// Microseconds until pacing lets the next segment leave.
    pub departs_in_us: u32,
}

/// How losses are being repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// Nothing is lost.
    #[default]
    Open,
    /// By fast retransmissions.
    Fast,
    /// After a timeout.
    Timeout,
}

/// A sample of the delivery rate (draft-ietf-ccwg-bbr, section 4.1; Linux's `tcp_rate.c`): what was delivered between the
/// transmission of a segment and its acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered meanwhile.
    pub delivered: u32,
    /// Bytes delivered when the segment left, modulo 2^32.
    pub delivered_before: u32,
    /// The longer of the two: the time in which these bytes left, and in which their acknowledgements came; at least one
    /// microsecond.
    pub interval_us: u32,
    /// The application had nothing to send at some time of it.
    pub is_app_limited: bool,
}

impl RateSample {
    /// The rate.
    #[cfg(feature = "bbr")]
    pub const fn bytes_per_second(&self) -> u32 {
        scaled(self.delivered, 1_000_000, self.interval_us)
    }
}

/// `value * factor / divisor`, at most what fits. The divisor is below 2^31.
#[cfg(feature = "bbr")]
pub(crate) const fn scaled(value: u32, factor: u32, divisor: u32) -> u32 {
    let divisor = if divisor == 0 { 1 } else { divisor };
    let scaled = divide::by(value as u64 * factor as u64, divisor);
    if scaled > u32::MAX as u64 { u32::MAX } else { scaled as u32 }
}

impl Ack {
    /// Slow start: grows by what was acknowledged up to the threshold, and returns what is left of it.
    pub fn slow_start(&self, window: &mut Window) -> u32 {
        // RFC 5681, section 3.1 allows one SMSS an ACK, RFC 3465 two; a receiver or a device that merges segments
        // sends one ACK for many, for which Linux grows by all of them.
        let limit = self.slow_start_limit.map_or(u32::MAX, |segments| segments * self.mss);
        let grown = self.acked.min(limit).min(window.ssthresh - window.cwnd);
        window.cwnd += grown;
        if window.in_slow_start() { 0 } else { self.acked - grown }
    }
}

/// A round-trip time that an acknowledgement tells.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When the acknowledgement arrived.
    pub now: Instant,
    /// The round-trip time in microseconds.
    pub rtt_us: u32,
    /// The smoothed one.
    pub srtt_us: u32,
    /// What is acknowledged now.
    pub una: SeqNum,
    /// What was sent.
    pub nxt: SeqNum,
    /// The sender's segment size.
    pub mss: u32,
}

/// An algorithm.
pub trait CongestionControl {
    /// Grows the window for an acknowledgement outside recovery, when the window was what limited the sender; where rates
    /// decide, at every acknowledgement.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack);

    /// The threshold after a loss, an ECN echo or a timeout, with `flight` bytes in flight. Called once per event
    /// (RFC 5681, section 4.3), before the window is changed.
    fn on_congestion(&mut self, window: &Window, now: Instant, flight: u32, mss: u32) -> u32;

    /// A segment that was sent once was acknowledged outside recovery. Called before [`on_ack`](Self::on_ack).
    fn on_sample(&mut self, _window: &mut Window, _sample: &Sample) {}

    /// The connection has been idle, or limited by the application, for `us` microseconds.
    fn on_idle(&mut self, us: u32);

    /// The handshake is over, which took `srtt_us`, and the window is the initial one.
    fn on_established(&mut self, _now: Instant, _window: &mut Window, _srtt_us: Option<u32>) {}

    /// The retransmission timer expired. Called after [`on_congestion`](Self::on_congestion).
    fn on_timeout(&mut self, _ack: &Ack) {}

    /// Data leaves again where none was in flight, because the application had none.
    fn on_restart(&mut self, _window: &mut Window, _ack: &Ack) {}

    /// Whether it goes by samples of the delivery rate, and decides on the window at every acknowledgement.
    fn is_rate_based(&self) -> bool {
        false
    }
}

/// Which algorithm a profile names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// RFC 5681 with RFC 6582.
    NewReno,
    /// RFC 9438.
    #[cfg(feature = "cubic")]
    Cubic,
    /// BBR, version 1, as Linux 6.x ships it.
    #[cfg(feature = "bbr")]
    Bbr,
}

impl Algorithm {
    /// The one of this name, as systems and RFCs have it: `cubic`, `reno` or `newreno`, `bbr`; in any case of letters. `None` where
    /// there is no such, or it was left out of the build.
    pub fn from_name(name: &str) -> Option<Self> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match () {
            () if is("reno") || is("newreno") => Some(Self::NewReno),
            #[cfg(feature = "cubic")]
            () if is("cubic") => Some(Self::Cubic),
            #[cfg(feature = "bbr")]
            () if is("bbr") => Some(Self::Bbr),
            () => None,
        }
    }

    /// Its name, as Linux has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "reno",
            #[cfg(feature = "cubic")]
            Self::Cubic => "cubic",
            #[cfg(feature = "bbr")]
            Self::Bbr => "bbr",
        }
    }
}

/// The algorithm of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Controller {
    NewReno(NewReno),
    #[cfg(feature = "cubic")]
    Cubic(Cubic),
    #[cfg(feature = "bbr")]
    Bbr(Bbr),
}

impl Controller {
    pub(crate) fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::NewReno => Self::NewReno(NewReno::default()),
            #[cfg(feature = "cubic")]
            Algorithm::Cubic => Self::Cubic(Cubic::default()),
            #[cfg(feature = "bbr")]
            Algorithm::Bbr => Self::Bbr(Bbr::default()),
        }
    }
}

impl CongestionControl for Controller {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        match self {
            Self::NewReno(reno) => reno.on_ack(window, ack),
            #[cfg(feature = "cubic")]
            Self::Cubic(cubic) => cubic.on_ack(window, ack),
            #[cfg(feature = "bbr")]
            Self::Bbr(bbr) => bbr.on_ack(window, ack),
        }
    }

    fn on_congestion(&mut self, window: &Window, now: Instant, flight: u32, mss: u32) -> u32 {
        match self {
            Self::NewReno(reno) => reno.on_congestion(window, now, flight, mss),
            #[cfg(feature = "cubic")]
            Self::Cubic(cubic) => cubic.on_congestion(window, now, flight, mss),
            #[cfg(feature = "bbr")]
            Self::Bbr(bbr) => bbr.on_congestion(window, now, flight, mss),
        }
    }

    fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        match self {
            Self::NewReno(reno) => reno.on_sample(window, sample),
            #[cfg(feature = "cubic")]
            Self::Cubic(cubic) => cubic.on_sample(window, sample),
            #[cfg(feature = "bbr")]
            Self::Bbr(bbr) => bbr.on_sample(window, sample),
        }
    }

    fn on_idle(&mut self, us: u32) {
        match self {
            Self::NewReno(reno) => reno.on_idle(us),
            #[cfg(feature = "cubic")]
            Self::Cubic(cubic) => cubic.on_idle(us),
            #[cfg(feature = "bbr")]
            Self::Bbr(bbr) => bbr.on_idle(us),
        }
    }

    #[cfg(feature = "bbr")]
    fn on_established(&mut self, now: Instant, window: &mut Window, srtt_us: Option<u32>) {
        if let Self::Bbr(bbr) = self {
            bbr.on_established(now, window, srtt_us);
        }
    }

    #[cfg(any(feature = "cubic", feature = "bbr"))]
    fn on_timeout(&mut self, ack: &Ack) {
        match self {
            Self::NewReno(_) => {}
            #[cfg(feature = "cubic")]
            Self::Cubic(cubic) => cubic.on_timeout(ack),
            #[cfg(feature = "bbr")]
            Self::Bbr(bbr) => bbr.on_timeout(ack),
        }
    }

    #[cfg(feature = "bbr")]
    fn on_restart(&mut self, window: &mut Window, ack: &Ack) {
        if let Self::Bbr(bbr) = self {
            bbr.on_restart(window, ack);
        }
    }

    #[cfg(feature = "bbr")]
    fn is_rate_based(&self) -> bool {
        matches!(self, Self::Bbr(_))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An acknowledgement of which nothing else is known.
    pub(crate) const fn ack(now: Instant, acked: u32, mss: u32) -> Ack {
        Ack {
            now,
            acked,
            mss,
            srtt_us: None,
            slow_start_limit: None,
            linux_cubic: false,
            cwnd: 0,
            in_flight: 0,
            prior_in_flight: 0,
            lost: 0,
            delivered: 0,
            lost_in_all: 0,
            recovery: Recovery::Open,
            rate: None,
            rtt_us: None,
            may_be_delayed: false,
            departs_in_us: 0,
        }
    }
}
