//! What an expert would say of a transfer: from how it was made, and from what the sender's kernel counted.

use serde::{Deserialize, Serialize};

use super::packets::Carried;
use crate::cases::{Allowed, allow};

/// What was meant to hold the transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Intent {
    /// Nothing but the path.
    Path,
    ReceiveBuffer,
    ScaleZero,
    ScalingAbsent,
    WindowClamp,
    SlowReader,
    SendBuffer,
    /// Whichever of the two buffers it turned out to be.
    Buffers,
    /// Pauses of the application, a rate that it keeps, or a window of its own.
    Application,
    /// The sender's kernel was given a rate.
    Paced,
    /// Requests and answers of so many bytes, with a pause between of so many ms.
    Ask {
        answer: usize,
        pause_ms: u64,
    },
    Nagle,
    Loss,
    Reordering,
    Policed,
    BlackHole {
        probing: bool,
    },
    SmallSegments,
    Short {
        bytes: usize,
    },
    TailLoss,
}

/// The sender's kernel, in its own words, at its last sample.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Kernel {
    pub(crate) busy_ms: u64,
    pub(crate) rwnd_ms: u64,
    pub(crate) sndbuf_ms: u64,
    pub(crate) retrans: u64,
    pub(crate) acked: u64,
}

/// What was measured of a transfer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) carried: Carried,
    pub(crate) kernel: Kernel,
    /// The part of the path's payload rate that was used.
    pub(crate) fill: f64,
    /// What the path dropped, and where.
    pub(crate) queue_drops: u64,
    pub(crate) lost: u64,
    pub(crate) policed: u64,
    pub(crate) rtt_s: f64,
    /// `SO_SNDBUF` as it was asked for.
    pub(crate) send_buffer: Option<usize>,
}

const FULL: f64 = 0.85;
const NOT_FULL: f64 = 0.7;
/// A buffer held the sender where the kernel says so for so much of the time: blocked writers are woken when a third of
/// the buffer is free, and the clock runs only while nothing unsent is left.
const SNDBUF_HELD: f64 = 0.2;
/// The receiver's window held the sender for the most part.
const RWND_HELD: f64 = 0.5;
const NOT_HELD: f64 = 0.1;
/// A buffer that the path's rate hides is not what holds: the kernel's clocks run also while a full queue is drained.
const WINDOW_DETAILS: &[&str] = &["window_ceiling", "pinned_by_application", "scale_zero"];

impl Kernel {
    /// Of what `ss -tin` printed again and again: the connection between `a` and `b` that carried most.
    pub(crate) fn between(watched: &str, a: &str, b: &str) -> Option<Self> {
        let lines = watched.lines().filter(|line| line.contains(a) && line.contains(b));
        lines.map(Self::of_line).max_by_key(|kernel| (kernel.acked, kernel.busy_ms))
    }

    fn of_line(line: &str) -> Self {
        let word = |name: &str| line.split_ascii_whitespace().find_map(|word| word.strip_prefix(name));
        let ms = |name: &str| {
            let value = word(name)?.split("ms").next()?;
            value.parse().ok()
        };
        Self {
            busy_ms: ms("busy:").unwrap_or(0),
            rwnd_ms: ms("rwnd_limited:").unwrap_or(0),
            sndbuf_ms: ms("sndbuf_limited:").unwrap_or(0),
            retrans: word("retrans:").and_then(|both| both.split('/').nth(1)?.parse().ok()).unwrap_or(0),
            acked: word("bytes_acked:").and_then(|bytes| bytes.parse().ok()).unwrap_or(0),
        }
    }

    fn part(&self, ms: u64) -> f64 {
        ms as f64 / (self.busy_ms.max(1)) as f64
    }
}

impl Intent {
    /// What may be said at the sender and what at the receiver.
    ///
    /// # Errors
    /// Why nobody could say, where nobody could: the transfer is then no use.
    pub(crate) fn allowed(self, measured: &Measured) -> Result<[Vec<Allowed>; 2], String> {
        let Measured { kernel, fill, .. } = *measured;
        let (rwnd, sndbuf) = (kernel.part(kernel.rwnd_ms), kernel.part(kernel.sndbuf_ms));
        let any = |limiter: &str| allow(limiter, &[]);
        let both = |allowed: Vec<Allowed>| Ok([allowed.clone(), allowed]);
        let ambiguous = |what: &str| {
            Err(format!(
                "ambiguous: {what}: fill {fill:.2}, rwnd {rwnd:.2}, sndbuf {sndbuf:.2}, busy {} ms, {} retransmitted, {} \
                 dropped by the queue",
                kernel.busy_ms, kernel.retrans, measured.queue_drops
            ))
        };
        match self {
            Self::Path => {
                if fill >= 0.9 {
                    return both(vec![any("path")]);
                }
                // A shallow queue, and a sender that halves: the path's drops are what keeps it from being full.
                let by_drops = allow("congestion_window", &["loss", "rto", "slow_start", "tail_loss"]);
                match () {
                    () if fill >= FULL => both(vec![any("path"), by_drops]),
                    () if rwnd > RWND_HELD => both(vec![any("receive_window")]),
                    () if sndbuf > RWND_HELD => both(vec![any("send_buffer")]),
                    () if fill >= 0.5 && measured.queue_drops > 0 && rwnd + sndbuf < 0.2 => {
                        both(vec![any("path"), by_drops])
                    }
                    () => ambiguous("not full, and nothing else is seen"),
                }
            }
            Self::ReceiveBuffer | Self::ScaleZero | Self::ScalingAbsent | Self::WindowClamp | Self::SlowReader => {
                let details: &[&str] = match self {
                    Self::ScaleZero => &["scale_zero"],
                    Self::ScalingAbsent => &["scaling_absent"],
                    Self::SlowReader => &["zero_window", "slow_reader"],
                    _ => WINDOW_DETAILS,
                };
                let held = allow("receive_window", details);
                match () {
                    () if fill >= FULL && rwnd < 0.3 => both(vec![any("path")]),
                    () if fill >= NOT_FULL => both(vec![any("path"), held]),
                    () if rwnd > RWND_HELD && sndbuf < SNDBUF_HELD => both(vec![held]),
                    () => ambiguous("the window was meant to hold"),
                }
            }
            Self::SendBuffer => {
                let held = allow("send_buffer", &["buffer_cap", "pinned_by_application"]);
                match () {
                    () if fill >= FULL && sndbuf < 0.3 => both(vec![any("path")]),
                    () if fill >= NOT_FULL => both(vec![any("path"), held]),
                    () if sndbuf > SNDBUF_HELD && rwnd < NOT_HELD => both(vec![held]),
                    // The clock runs only if the writer was refused before the last byte left. Without it: nothing else
                    // can have been in the way, and the flight ends where the buffer does. Linux doubles what is asked
                    // for, and lets a write fill up the last segment that waits.
                    () if rwnd < NOT_HELD
                        && kernel.retrans == 0
                        && measured.queue_drops == 0
                        && measured
                            .send_buffer
                            .is_some_and(|asked| measured.carried.most_in_flight <= 2 * asked as u64 + (64 << 10)) =>
                    {
                        both(vec![held])
                    }
                    () => ambiguous("the buffer was meant to hold"),
                }
            }
            Self::Buffers => {
                let mut all = Vec::new();
                all.extend((fill >= NOT_FULL).then(|| any("path")));
                if fill < FULL {
                    all.extend((rwnd > 0.3).then(|| allow("receive_window", WINDOW_DETAILS)));
                    all.extend(
                        (sndbuf > SNDBUF_HELD).then(|| allow("send_buffer", &["buffer_cap", "pinned_by_application"])),
                    );
                }
                if all.is_empty() || (fill < NOT_FULL && rwnd.max(sndbuf) < RWND_HELD && rwnd.min(sndbuf) > NOT_HELD) {
                    return ambiguous("one of the buffers was meant to hold");
                }
                both(all)
            }
            Self::Application | Self::Paced => {
                let mut all = vec![any("application")];
                match () {
                    () if fill >= FULL => all = vec![any("path")],
                    () if fill >= NOT_FULL => all.push(any("path")),
                    () if rwnd > RWND_HELD => return both(vec![any("receive_window")]),
                    () if sndbuf > RWND_HELD && self == Self::Application => return both(vec![any("send_buffer")]),
                    () if rwnd > SNDBUF_HELD => return ambiguous("the application was meant to hold"),
                    () => {}
                }
                let mut at_receiver = all.clone();
                if self == Self::Paced {
                    // Evenly spaced segments and no queue: the sender's choice or a link elsewhere.
                    at_receiver.push(any("insufficient_evidence"));
                }
                Ok([all, at_receiver])
            }
            Self::Ask { answer, pause_ms } => {
                let turns = measured.carried.turns.max(1) as f64;
                let each_s = measured.carried.seconds / turns;
                let idle_s = pause_ms as f64 / 1e3;
                let mut all = vec![any("application")];
                if fill >= NOT_FULL {
                    all.insert(0, any("path"));
                    if fill >= FULL {
                        all.pop();
                    }
                    return both(all);
                }
                // Answers of more than an initial window of ten segments open the congestion window on their way.
                if answer > 14_480 {
                    all.push(allow("congestion_window", &["slow_start"]));
                }
                // Beyond what the round trip, the pause and the link take, something waited: a delayed acknowledgement.
                let link_s =
                    answer as f64 * 8.0 / (measured.carried.bytes as f64 * 8.0 / measured.carried.seconds / fill);
                if each_s > measured.rtt_s + idle_s + link_s + 0.03 && answer <= 14_480 {
                    return both(vec![any("ack_delay")]);
                }
                both(all)
            }
            Self::Nagle => {
                let each_s = measured.carried.seconds / measured.carried.turns.max(1) as f64;
                if each_s < measured.rtt_s + 0.03 {
                    return ambiguous("Nagle did not bite");
                }
                both(vec![any("ack_delay")])
            }
            Self::Loss => {
                let held = allow("congestion_window", &["loss", "rto", "tail_loss"]);
                let mut all = Vec::new();
                all.extend((fill < FULL && kernel.retrans > 2).then_some(held));
                all.extend((fill >= NOT_FULL).then(|| any("path")));
                if rwnd > 0.3 && fill < FULL {
                    all.push(any("receive_window"));
                }
                if all.is_empty() || (fill < NOT_FULL && sndbuf > 0.3) {
                    return ambiguous("losses were meant to hold");
                }
                both(all)
            }
            Self::Reordering => match () {
                () if fill >= 0.9 => both(vec![any("path")]),
                // What the queue drops is lost, whatever else comes late.
                () if fill >= 0.5 && measured.queue_drops * 2 >= kernel.retrans => {
                    both(vec![any("path"), allow("congestion_window", &["loss", "rto"])])
                }
                () if fill >= 0.6 => both(vec![any("path"), any("reordering")]),
                // Real drops would be a reason of their own.
                () if kernel.retrans > 5 && measured.queue_drops * 20 < kernel.retrans && rwnd + sndbuf < 0.3 => {
                    both(vec![any("reordering")])
                }
                () => ambiguous("reordering was meant to hold"),
            },
            Self::Policed => {
                if measured.policed < 10 {
                    return ambiguous("the policer dropped next to nothing");
                }
                let policed = allow("path", &["policed"]);
                let by_drops = allow("congestion_window", &["loss", "rto"]);
                // `fill` is of the policed rate.
                both(if fill >= 0.6 { vec![policed] } else { vec![policed, by_drops] })
            }
            Self::BlackHole { probing } => {
                let details: &[&str] = if probing { &["mtu_black_hole", "small_mss"] } else { &["mtu_black_hole"] };
                let seen = vec![allow("segment_size", details)];
                let mut at_receiver = seen.clone();
                // What never arrives can't be distinguished from what was never sent.
                at_receiver.push(any("insufficient_evidence"));
                Ok([seen, at_receiver])
            }
            Self::SmallSegments => match () {
                () if fill >= FULL => both(vec![any("path"), allow("segment_size", &["small_mss"])]),
                () if measured.lost > 0 => {
                    both(vec![allow("congestion_window", &["loss", "rto", "tail_loss"]), any("segment_size")])
                }
                () => ambiguous("small segments"),
            },
            Self::Short { bytes } => {
                let mut all = vec![allow("congestion_window", &["slow_start"])];
                // Two flights are no growth that could be seen.
                all.extend((bytes <= 30 * 1_448).then(|| any("insufficient_evidence")));
                all.extend((fill >= NOT_FULL).then(|| any("path")));
                if kernel.retrans > 0 {
                    return ambiguous("a short transfer with retransmissions");
                }
                both(all)
            }
            Self::TailLoss => {
                if measured.lost == 0 {
                    return ambiguous("nothing was lost");
                }
                let seen = vec![allow("congestion_window", &["tail_loss", "rto", "loss"])];
                let mut at_receiver = seen.clone();
                // A loss with nothing behind it leaves no trace there but the pause until it is retransmitted.
                at_receiver.extend(["application", "insufficient_evidence"].map(any));
                at_receiver.push(allow("congestion_window", &["slow_start"]));
                Ok([seen, at_receiver])
            }
        }
    }
}
