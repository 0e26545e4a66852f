//! Congestion control: how large the window is, and what a loss does to it.
//!
//! An algorithm answers three questions (growth, decrease, restart) on a window that the connection keeps. What is
//! lost and when to retransmit is not its business (see `send` and `recovery`).

#[cfg(feature = "cubic")]
mod cubic;
#[cfg(feature = "cubic")]
mod hystart;
mod newreno;

#[cfg(feature = "cubic")]
pub use cubic::Cubic;
use fullpipe_units::{Instant, SeqNum};
pub use newreno::NewReno;

/// The window of a connection, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The congestion window.
    pub cwnd: u32,
    /// The slow-start threshold.
    pub ssthresh: u32,
}

impl Window {
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
    /// The bytes that it newly acknowledges.
    pub acked: u32,
    /// The sender's segment size.
    pub mss: u32,
    /// The smoothed round-trip time in microseconds, zero where unknown.
    pub srtt_us: u32,
    /// How many segments' worth slow start may grow for one ACK (RFC 3465's L); zero for no bound.
    pub slow_start_limit: u32,
}

impl Ack {
    /// Slow start: grows by what was acknowledged up to the threshold, and returns what is left of it.
    pub fn slow_start(&self, window: &mut Window) -> u32 {
        // RFC 5681, section 3.1 allows one SMSS an ACK, RFC 3465 two; a receiver or a device that merges segments
        // sends one ACK for many, for which Linux grows by all of them.
        let limit = if self.slow_start_limit == 0 { u32::MAX } else { self.slow_start_limit * self.mss };
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
    /// What is acknowledged now.
    pub una: SeqNum,
    /// What was sent.
    pub nxt: SeqNum,
    /// The sender's segment size.
    pub mss: u32,
}

/// An algorithm.
pub trait CongestionControl {
    /// Grows the window for an acknowledgement outside recovery, when the window was what limited the sender.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack);

    /// The threshold after a loss, an ECN echo or a timeout, with `flight` bytes in flight. Called once per event
    /// (RFC 5681, section 4.3), before the window is changed.
    fn on_congestion(&mut self, window: &Window, now: Instant, flight: u32, mss: u32) -> u32;

    /// A segment that was sent once was acknowledged outside recovery. Called before [`on_ack`](Self::on_ack).
    fn on_sample(&mut self, _window: &mut Window, _sample: &Sample) {}

    /// The connection has been idle, or limited by the application, for `us` microseconds.
    fn on_idle(&mut self, us: u32);
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
}

/// The algorithm of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Controller {
    NewReno(NewReno),
    #[cfg(feature = "cubic")]
    Cubic(Cubic),
}

impl Controller {
    pub(crate) fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::NewReno => Self::NewReno(NewReno::default()),
            #[cfg(feature = "cubic")]
            Algorithm::Cubic => Self::Cubic(Cubic::default()),
        }
    }
}

impl CongestionControl for Controller {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        match self {
            Self::NewReno(reno) => reno.on_ack(window, ack),
            #[cfg(feature = "cubic")]
            Self::Cubic(cubic) => cubic.on_ack(window, ack),
        }
    }

    fn on_congestion(&mut self, window: &Window, now: Instant, flight: u32, mss: u32) -> u32 {
        match self {
            Self::NewReno(reno) => reno.on_congestion(window, now, flight, mss),
            #[cfg(feature = "cubic")]
            Self::Cubic(cubic) => cubic.on_congestion(window, now, flight, mss),
        }
    }

    fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        match self {
            Self::NewReno(reno) => reno.on_sample(window, sample),
            #[cfg(feature = "cubic")]
            Self::Cubic(cubic) => cubic.on_sample(window, sample),
        }
    }

    fn on_idle(&mut self, us: u32) {
        match self {
            Self::NewReno(reno) => reno.on_idle(us),
            #[cfg(feature = "cubic")]
            Self::Cubic(cubic) => cubic.on_idle(us),
        }
    }
}
