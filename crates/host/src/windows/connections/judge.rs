//! Whether an application pinned the buffers of a connection, from what the connection does.
//!
//! An application that sets SO_RCVBUF (SO_SNDBUF) takes its socket out of Windows' automatic tuning. Seen from outside:
//! - a window scale smaller than the level gives: the scale follows the buffer that was set before the handshake;
//! - a window (or an amount in flight) that was used up again and again and did not grow, although it may.
//!
//! Everything else is no evidence, and is said to be none. What is *not* here: getting the counters.

use std::time::Duration;

use fullpipe_knobs::TuningLevel;

use super::Counters;

/// `WinScaleSent` and `WinScaleRcvd` where there was no option: the document's -1 in an unsigned byte.
const NO_SCALE: u8 = 255;
/// The largest window without scaling (RFC 9293, section 3.1).
const UNSCALED: u64 = 65_535;
/// The largest scale that counts (RFC 7323, section 2.3).
const LARGEST_SCALE: u8 = 14;
/// Automatic tuning may double a window each round trip: in ten it could have grown a thousandfold.
const ROUNDS: u64 = 10;
/// How much of a window must be full on average to call it used up: less than all, for acknowledgements come late.
const USED_PERCENT: u64 = 75;
/// How much of the time sending must have waited for the sender itself.
const WAITED_PERCENT: u64 = 80;

/// What was seen of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The counters when watching began; `None` where nobody watched.
    pub first: Option<Counters>,
    /// The newest counters.
    pub last: Counters,
    /// The time between the two.
    pub elapsed: Duration,
}

/// What is to be said of one end of a connection's buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The largest that it was seen to be, in bytes: the window offered, or the data in flight.
    pub largest: u64,
    /// Whether an application very likely set it; `None`: nothing tells.
    pub pinned: Option<bool>,
    /// What tells it, or why nothing does.
    pub why: String,
}

/// What is to be said of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Its receive window, at this host.
    pub receive: End,
    /// Its send buffer, at this host.
    pub send: End,
}

impl Seen {
    /// Applies the rules. `level` is the machine's automatic tuning level, where it is known.
    pub fn judge(&self, level: Option<&str>) -> Verdict {
        let (receive, receive_why) = self.receive(level);
        let (send, send_why) = self.send();
        let end = |largest, pinned, why| End { largest, pinned, why };
        Verdict {
            receive: end(u64::from(self.last.receive.max_rwin_sent), receive, receive_why),
            send: end(wide(self.last.send.max_retx_queue), send, send_why),
        }
    }

    fn receive(&self, level: Option<&str>) -> (Option<bool>, String) {
        let window = self.last.receive;
        let largest = u64::from(window.max_rwin_sent);
        let waiting = wide(window.cur_app_r_queue);
        if let Some(first) = self.first {
            let before = u64::from(first.receive.max_rwin_sent);
            // A window also opens when its application reads again: that is no growth.
            if before > 0 && largest >= before.saturating_mul(2) && first.receive.cur_app_r_queue == 0 {
                let why = format!("it grew from {before} to {largest} B while it was watched: automatic tuning acts");
                return (Some(false), why);
            }
        }
        let Some(level) = level.and_then(TuningLevel::named) else {
            return (None, "the automatic tuning level of this machine is not known".to_owned());
        };
        let Some(shift) = level.scale() else {
            let why = "the machine's automatic tuning level is `disabled`: windows stay below 64 KiB, set or not";
            return (None, why.to_owned());
        };
        let (Some(scale), Some(_)) = (scale(window.win_scale_sent), scale(self.last.observed.win_scale_rcvd)) else {
            let why = "one of the two ends offered no window scaling: the window can't pass 65,535 B, set or not";
            return (None, why.to_owned());
        };
        if scale < shift {
            let why = format!(
                "it offered window scale {scale} where the level gives {shift}: very likely its application set \
                 SO_RCVBUF before it connected, and no setting of the machine lifts its window above {} B; else the level \
                 was lower then, or the application asked for the ways of an older Windows (SIO_SET_COMPATIBILITY_MODE)",
                UNSCALED << scale
            );
            return (Some(true), why);
        }
        if waiting.saturating_mul(2) >= largest && largest > 0 {
            return (None, format!("{waiting} B wait for its application, which reads slowly: that holds the window"));
        }
        let received = |counters: &Counters| counters.data.thru_bytes_received;
        // A maximum counts from when it was switched on: none yet is as good as the same.
        let steady = |first: &Counters| [0, window.max_rwin_sent].contains(&first.receive.max_rwin_sent);
        let grew = self.first.is_some_and(|first| !steady(&first));
        let used = self.first.filter(steady);
        let used = used.and_then(|first| self.in_a_round(received(&self.last).saturating_sub(received(&first))));
        match used {
            Some(used) if is_used_up(used, largest) && largest.saturating_mul(2) <= level.largest_window().get() => {
                let why = format!(
                    "{used} B came in each round trip and its window stayed at {largest} B, where the level allows {} B: \
                     very likely its application set SO_RCVBUF",
                    level.largest_window().get()
                );
                (Some(true), why)
            }
            Some(used) => (None, format!("{used} B came in each round trip: its window was not what held it")),
            None if grew => (None, "its window grew a little while it was watched: nothing tells".to_owned()),
            None => (None, self.not_watched()),
        }
    }

    fn send(&self) -> (Option<bool>, String) {
        let Some(first) = self.first else { return (None, self.not_watched()) };
        let (before, held) = (wide(first.send.max_retx_queue), wide(self.last.send.max_retx_queue));
        if before > 0 && held >= before.saturating_mul(2) {
            let why = format!("what was in flight grew from {before} to {held} B while it was watched");
            return (Some(false), why);
        }
        let acked = self.last.data.thru_bytes_acked.saturating_sub(first.data.thru_bytes_acked);
        let Some(used) = self.in_a_round(acked) else { return (None, self.not_watched()) };
        let waited = |time: fn(&Counters) -> u32| u64::from(time(&self.last).wrapping_sub(time(&first)));
        let sender = waited(|counters| counters.congestion.snd_lim_time_snd);
        let all = waited(|counters| counters.congestion.snd_lim_time_rwin)
            + waited(|counters| counters.congestion.snd_lim_time_cwnd)
            + sender;
        let share = sender.saturating_mul(100).checked_div(all).unwrap_or(0);
        let room = u64::from(self.last.congestion.cur_cwnd.min(self.last.observed.cur_rwin_rcvd));
        if share >= WAITED_PERCENT
            && [0, held].contains(&before)
            && is_used_up(used, held)
            && held.saturating_mul(2) <= room
        {
            let why = format!(
                "never more than {held} B were in flight, though both windows had room for {room} B, and sending waited for \
                 this host {share} % of the time: very likely its application set SO_SNDBUF, or writes that much and waits"
            );
            return (Some(true), why);
        }
        (None, format!("{used} B went out in each round trip, and sending waited for this host {share} % of the time"))
    }

    /// How much of `bytes`, which passed while it was watched, passed in each round trip; `None` where it was not
    /// watched for long enough, or its round-trip time is below what Windows counts in (a millisecond).
    fn in_a_round(&self, bytes: u64) -> Option<u64> {
        let elapsed = u64::try_from(self.elapsed.as_millis()).ok().filter(|elapsed| *elapsed > 0)?;
        let rtt = u64::from(self.last.path.smoothed_rtt).max(u64::from(self.last.path.sample_rtt));
        (rtt > 0 && elapsed / rtt >= ROUNDS).then(|| bytes.saturating_mul(rtt) / elapsed)
    }

    fn not_watched(&self) -> String {
        if self.first.is_none() {
            return "nothing tells without watching it: --watch 5s".to_owned();
        }
        let rtt = self.last.path.smoothed_rtt;
        match rtt {
            0 => "its round-trip time is below a millisecond, or not known: nothing tells".to_owned(),
            _ => format!("its round trip takes {rtt} ms; watch at least ten of them, with --watch"),
        }
    }
}

fn scale(reported: u8) -> Option<u8> {
    (reported != NO_SCALE).then_some(reported.min(LARGEST_SCALE))
}

fn is_used_up(used: u64, window: u64) -> bool {
    window > 0 && used.saturating_mul(100) >= window.saturating_mul(USED_PERCENT)
}

fn wide(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
