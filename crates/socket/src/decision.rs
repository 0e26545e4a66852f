//! Which size, and who sets it: the system by itself or a call. Pure: what is asked of the system comes as arguments.

use std::fmt;

use fullpipe_units::{Bytes, sizing::UNSCALED};

use crate::Limits;

/// What was decided for one buffer. Sizes are as the system counts them (Linux: with its own overhead).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The system sizes it, and was left to it.
    Automatic {
        /// How large it becomes, where known.
        reaches: Option<Bytes>,
        /// What is missing all the same.
        short: Option<Short>,
    },
    /// An earlier call had fixed it; now the system sizes it again.
    Released {
        /// What it had been fixed at.
        was: Bytes,
        /// How large it becomes.
        reaches: Option<Bytes>,
        /// What is missing all the same.
        short: Option<Short>,
    },
    /// A call fixed it.
    Fixed {
        /// What it had been.
        was: Bytes,
        /// What the system made of the call.
        buffer: Bytes,
        /// Why the system was not left to it.
        why: Why,
        /// What is missing all the same.
        short: Option<Short>,
    },
    /// Left as it was.
    Unchanged {
        /// What it is.
        buffer: Bytes,
        /// Why.
        why: Kept,
    },
}

/// Why a call fixed a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The application asked for fixed buffers.
    Asked,
    /// A short queue was asked for, and automatic sizing would build a long one.
    ShortQueue,
    /// The system doesn't size it.
    NotAutomatic,
    /// The system sizes it, but not as large.
    AutomaticTooSmall,
    /// Both ends don't scale their windows, and so more than 65,535 bytes are never used.
    NoScaling,
}

/// Why a buffer stayed as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It holds what the path needs.
    LargeEnough,
    /// Neither a rate nor a round-trip time says what the path needs.
    NeedUnknown,
    /// No call can make it larger.
    AtTheLimit(Short),
}

/// A buffer that is smaller than the path needs, and what would lift it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// What the path needs.
    pub wanted: Bytes,
    /// The system's setting that bounds it.
    pub lift: &'static str,
}

/// What is wanted of one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    /// The payload; `None` where nobody knows.
    pub(crate) payload: Option<Bytes>,
    pub(crate) fixed: Option<Why>,
    pub(crate) scaling: Option<bool>,
}

/// One buffer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Now {
    pub(crate) buffer: Bytes,
    /// Whether a call has fixed it.
    pub(crate) is_fixed: bool,
    /// Whether that can be taken back.
    pub(crate) can_release: bool,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Nothing(Decision),
    /// Have the system size it; the decision is true once that is done.
    Release(Decision),
    /// Set it to so much.
    Set {
        buffer: Bytes,
        wanted: Bytes,
        why: Why,
    },
}

pub(crate) fn decide(limits: &Limits, now: Now, want: Want) -> Act {
    let unscaled = want.scaling == Some(false);
    let payload = want.payload.map(|payload| if unscaled { payload.min(UNSCALED) } else { payload });
    let Some(wanted) = payload.map(|payload| limits.share.buffer_for(payload)) else {
        return unknown(limits, now, want);
    };
    if unscaled && now.is_fixed && now.buffer > wanted && !now.can_release {
        return Act::Set { buffer: wanted, wanted, why: Why::NoScaling };
    }
    if let Some(why) = want.fixed {
        return set(limits, now, wanted, why);
    }
    if now.is_fixed && now.buffer >= wanted {
        return Act::Nothing(Decision::Unchanged { buffer: now.buffer, why: Kept::LargeEnough });
    }
    let reaches = limits.automatic;
    let enough = reaches.is_some_and(|reaches| reaches >= wanted);
    let no_better_by_hand = || limits.settable.is_some_and(|settable| Some(settable) <= reaches);
    if enough || (reaches.is_some() && no_better_by_hand()) {
        let short = (!enough).then_some(Short { wanted, lift: limits.lifts_automatic });
        return match (now.is_fixed, now.can_release) {
            (false, _) => Act::Nothing(Decision::Automatic { reaches, short }),
            (true, true) => Act::Release(Decision::Released { was: now.buffer, reaches, short }),
            (true, false) => set(limits, now, wanted, Why::NotAutomatic),
        };
    }
    set(limits, now, wanted, if reaches.is_some() { Why::AutomaticTooSmall } else { Why::NotAutomatic })
}

/// Nobody knows what the path needs: the system finds it out, where it can.
fn unknown(limits: &Limits, now: Now, want: Want) -> Act {
    let reaches = limits.automatic;
    if reaches.is_none() || want.fixed.is_some() || (now.is_fixed && !now.can_release) {
        return Act::Nothing(Decision::Unchanged { buffer: now.buffer, why: Kept::NeedUnknown });
    }
    if now.is_fixed {
        return Act::Release(Decision::Released { was: now.buffer, reaches, short: None });
    }
    Act::Nothing(Decision::Automatic { reaches, short: None })
}

fn set(limits: &Limits, now: Now, wanted: Bytes, why: Why) -> Act {
    let buffer = limits.settable.map_or(wanted, |settable| wanted.min(settable));
    // A short queue is one that is not too long, either; an eighth is within what round trips vary by.
    let near = now.buffer.get().abs_diff(buffer.get()) <= buffer.get() / 8;
    let short_queue = why == Why::ShortQueue;
    if if short_queue { now.is_fixed && near } else { now.buffer >= wanted } {
        return Act::Nothing(Decision::Unchanged { buffer: now.buffer, why: Kept::LargeEnough });
    }
    if buffer <= now.buffer && !short_queue {
        let short = Short { wanted, lift: limits.lifts_settable };
        return Act::Nothing(Decision::Unchanged { buffer: now.buffer, why: Kept::AtTheLimit(short) });
    }
    Act::Set { buffer, wanted, why }
}

impl Decision {
    /// Whether the system sizes the buffer.
    pub fn is_automatic(&self) -> bool {
        matches!(self, Self::Automatic { .. } | Self::Released { .. })
    }

    /// What holds after another look: what was done stands until something else is done, or something else is missing.
    pub(crate) fn followed_by(self, later: Self) -> Self {
        let nothing_done = match later {
            Self::Unchanged { .. } => !matches!(self, Self::Unchanged { .. }),
            Self::Automatic { .. } => self.is_automatic(),
            Self::Released { .. } | Self::Fixed { .. } => false,
        };
        let lift = |decision: Self| decision.short().map(|short| short.lift);
        if nothing_done && lift(self) == lift(later) { self } else { later }
    }

    /// What is missing all the same.
    pub fn short(&self) -> Option<Short> {
        match *self {
            Self::Automatic { short, .. } | Self::Released { short, .. } | Self::Fixed { short, .. } => short,
            Self::Unchanged { why: Kept::AtTheLimit(short), .. } => Some(short),
            Self::Unchanged { .. } => None,
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Automatic { reaches, .. } => {
                f.write_str("left to automatic sizing")?;
                reaches.map_or(Ok(()), |reaches| write!(f, ", which reaches {reaches}"))?;
            }
            Self::Released { was, reaches, .. } => {
                write!(f, "had been fixed at {was}; automatic sizing is on again")?;
                reaches.map_or(Ok(()), |reaches| write!(f, " and reaches {reaches}"))?;
            }
            Self::Fixed { was, buffer, why, .. } => write!(f, "fixed at {buffer} (was {was}): {why}")?,
            Self::Unchanged { buffer, why } => write!(f, "left at {buffer}: {why}")?,
        }
        self.short().map_or(Ok(()), |short| write!(f, "; {short}"))
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Asked => "fixed buffers were asked for",
            Self::ShortQueue => "a short queue was asked for, and automatic sizing would build a long one",
            Self::NotAutomatic => "nothing is certain to size it by itself",
            Self::AutomaticTooSmall => "automatic sizing stops below what the path needs",
            Self::NoScaling => "without window scaling more is never used",
        })
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LargeEnough => "it holds what the path needs",
            Self::NeedUnknown => "neither a rate nor what passed so far says what the path needs",
            Self::AtTheLimit(_) => "no call can make it larger",
        })
    }
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the path needs {}, and {} bounds it", self.wanted, self.lift)?;
        if self.lift.starts_with("net.core.") {
            f.write_str(" (a process with CAP_NET_ADMIN can pass it with SO_RCVBUFFORCE or SO_SNDBUFFORCE)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_units::sizing::PayloadShare;

    use super::*;

    const MB: u64 = 1 << 20;

    fn limits(automatic: u64, settable: u64) -> Limits {
        Limits {
            automatic: (automatic > 0).then_some(Bytes::new(automatic)),
            settable: Some(Bytes::new(settable)),
            initial: Some(Bytes::new(131_072)),
            share: PayloadShare::HALF,
            doubled: true,
            lifts_automatic: "net.ipv4.tcp_rmem",
            lifts_settable: "net.core.rmem_max",
        }
    }

    const FREE: Now = Now { buffer: Bytes::new(131_072), is_fixed: false, can_release: true };
    const PINNED: Now = Now { is_fixed: true, ..FREE };

    fn bulk(payload: u64) -> Want {
        Want { payload: Some(Bytes::new(payload)), fixed: None, scaling: None }
    }

    #[test]
    fn automatic_sizing_is_left_alone_where_it_reaches_what_the_path_needs() {
        let act = decide(&limits(6 * MB, 8 * MB), FREE, bulk(2 * MB));
        let reaches = Some(Bytes::new(6 * MB));
        assert_eq!(act, Act::Nothing(Decision::Automatic { reaches, short: None }));
    }

    #[test]
    fn what_a_call_fixed_is_released_and_where_it_can_not_be_made_large_enough() {
        let was = FREE.buffer;
        let reaches = Some(Bytes::new(6 * MB));
        let act = decide(&limits(6 * MB, 8 * MB), PINNED, bulk(2 * MB));
        assert_eq!(act, Act::Release(Decision::Released { was, reaches, short: None }));
        let old_kernel = Now { can_release: false, ..PINNED };
        let act = decide(&limits(6 * MB, 8 * MB), old_kernel, bulk(2 * MB));
        let buffer = Bytes::new(4 * MB);
        assert_eq!(act, Act::Set { buffer, wanted: buffer, why: Why::NotAutomatic });
    }

    #[test]
    fn what_a_call_fixed_large_enough_stays_as_it_is() {
        let act = decide(&limits(6 * MB, 8 * MB), PINNED, bulk(50_000));
        assert_eq!(act, Act::Nothing(Decision::Unchanged { buffer: FREE.buffer, why: Kept::LargeEnough }));
    }

    #[test]
    fn what_was_done_stands_until_something_else_is_done_or_missing() {
        let reaches = Some(Bytes::new(6 * MB));
        let released = Decision::Released { was: FREE.buffer, reaches, short: None };
        let automatic = Decision::Automatic { reaches, short: None };
        assert_eq!(released.followed_by(automatic), released);
        let short = Some(Short { wanted: Bytes::new(8 * MB), lift: "net.ipv4.tcp_rmem" });
        let too_small = Decision::Automatic { reaches, short };
        assert_eq!(released.followed_by(too_small), too_small);
        let kept = Decision::Unchanged { buffer: FREE.buffer, why: Kept::LargeEnough };
        assert_eq!(released.followed_by(kept), released);
        assert_eq!(kept.followed_by(released), released);
    }

    #[test]
    fn a_call_goes_further_where_automatic_sizing_stops_early() {
        let act = decide(&limits(MB, 8 * MB), FREE, bulk(2 * MB));
        let buffer = Bytes::new(4 * MB);
        assert_eq!(act, Act::Set { buffer, wanted: buffer, why: Why::AutomaticTooSmall });
    }

    #[test]
    fn a_call_that_would_get_less_than_automatic_sizing_is_not_made() {
        let act = decide(&limits(6 * MB, 425_984), FREE, bulk(8 * MB));
        let Act::Nothing(decision) = act else { panic!("{act:?}") };
        assert!(decision.is_automatic());
        assert_eq!(decision.short(), Some(Short { wanted: Bytes::new(16 * MB), lift: "net.ipv4.tcp_rmem" }));
    }

    #[test]
    fn a_limit_of_calls_is_named() {
        let Act::Set { buffer, wanted, .. } = decide(&limits(0, 425_984), FREE, bulk(MB)) else { panic!() };
        assert_eq!((buffer, wanted), (Bytes::new(425_984), Bytes::new(2 * MB)));
        let full = Now { buffer: Bytes::new(425_984), ..PINNED };
        let Act::Nothing(decision) = decide(&limits(0, 425_984), full, bulk(MB)) else { panic!() };
        let text = decision.to_string();
        assert!(text.contains("net.core.rmem_max bounds it") && text.contains("CAP_NET_ADMIN"), "{text}");
    }

    #[test]
    fn without_scaling_no_buffer_is_larger_than_what_64_kb_need() {
        let want = Want { scaling: Some(false), ..bulk(2 * MB) };
        let large = Now { buffer: Bytes::new(4 * MB), is_fixed: true, can_release: false };
        let buffer = Bytes::new(131_072);
        assert_eq!(decide(&limits(0, 8 * MB), large, want), Act::Set { buffer, wanted: buffer, why: Why::NoScaling });
        let act = decide(&limits(6 * MB, 8 * MB), FREE, want);
        assert!(matches!(act, Act::Nothing(Decision::Automatic { short: None, .. })), "{act:?}");
    }

    #[test]
    fn a_short_queue_is_fixed_although_automatic_sizing_reaches_more_and_is_shortened_again() {
        let want = Want { fixed: Some(Why::ShortQueue), ..bulk(MB) };
        for now in [FREE, Now { buffer: Bytes::new(4 * MB), ..PINNED }] {
            let act = decide(&limits(6 * MB, 8 * MB), now, want);
            let buffer = Bytes::new(2 * MB);
            assert_eq!(act, Act::Set { buffer, wanted: buffer, why: Why::ShortQueue });
        }
    }

    #[test]
    fn what_nobody_knows_the_system_finds_out_where_it_can() {
        let want = Want { payload: None, fixed: None, scaling: None };
        assert!(matches!(decide(&limits(6 * MB, 8 * MB), PINNED, want), Act::Release(_)));
        let act = decide(&limits(0, 8 * MB), FREE, want);
        assert_eq!(act, Act::Nothing(Decision::Unchanged { buffer: FREE.buffer, why: Kept::NeedUnknown }));
    }
}
