//! What ends a sender's pauses, from packets: the first acknowledgement that makes room, a later one, or none. What is
//! *not* here: how a pause is found in the packets (`capture`).
//!
//! A sender that is held by a window sends as soon as the first acknowledgement makes room. A writer that waits for its
//! send buffer is woken by a later one, when a part of the buffer is free (Linux: a third, `sk_stream_is_writeable`). An
//! application that writes at its own pace heeds none.

use crate::{stats, thresholds, timeline::Interval};

/// Counts over some time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pauses {
    clocked: f64,
    woken: f64,
    written: f64,
    sent: f64,
    prompted: f64,
    unprompted: f64,
    hidden: f64,
    prompts: f64,
    held: f64,
    us: f64,
}

/// What the pauses say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// A full send buffer held the writer.
    Buffer,
    /// The application wrote at its own pace.
    Application,
    /// A window, or a buffer whose writer answers each acknowledgement.
    Window,
    /// Acknowledgements were answered, but late.
    Unclear,
}

impl Pauses {
    /// Those in `intervals`.
    pub(crate) fn from_intervals<'a>(intervals: impl IntoIterator<Item = &'a Interval<'a>>) -> Self {
        let mut sum = Self::default();
        intervals.into_iter().for_each(|interval| sum.plus(interval, 1.0));
        sum
    }

    fn plus(&mut self, interval: &Interval<'_>, times: f64) {
        let Some(packets) = &interval.at.packets else { return };
        self.clocked += times * f64::from(packets.clocked);
        self.woken += times * f64::from(packets.woken);
        self.written += times * f64::from(packets.written);
        self.sent += times * packets.sent.get() as f64;
        self.prompted += times * packets.prompted.get() as f64;
        self.unprompted += times * packets.unprompted.get() as f64;
        self.hidden += times * packets.hidden.get() as f64;
        self.prompts += times * f64::from(packets.prompts);
        self.held += times * packets.held_us.get() as f64;
        self.us += times * interval.len();
    }

    /// For each interval, the pauses within `reach_us` to either side of it.
    pub(crate) fn around(intervals: &[Interval<'_>], reach_us: f64) -> Vec<Self> {
        let mut sum = Self::default();
        let (mut low, mut high) = (0, 0);
        let near = |middle: &Interval<'_>| {
            while intervals.get(high).is_some_and(|i| (i.from_us as f64) < middle.to_us as f64 + reach_us) {
                sum.plus(&intervals[high], 1.0);
                high += 1;
            }
            while low < high && (intervals[low].to_us as f64) < middle.from_us as f64 - reach_us {
                sum.plus(&intervals[low], -1.0);
                low += 1;
            }
            sum
        };
        intervals.iter().map(near).collect()
    }

    /// The part of the pauses that an acknowledgement would seem to end if they had nothing to do with each other.
    fn chance(&self) -> f64 {
        (self.prompts * thresholds::PROMPT_US / self.us.max(1.0)).min(1.0)
    }

    /// Whether the offered window was used up for a good part of the time: then they are about the window.
    pub(crate) fn are_held(&self) -> bool {
        self.held >= thresholds::HELD_AROUND * self.us && self.us > 0.0
    }

    /// Whether they are many, and most ended without an acknowledgement.
    pub(crate) fn are_written(&self) -> bool {
        self.are_many() && self.written >= thresholds::MOST_OF_INTERVAL * self.count()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> f64 {
        self.woken + self.written + self.clocked
    }

    /// Whether there are so many that they speak for a whole transfer.
    pub(crate) fn are_many(&self) -> bool {
        self.count() >= thresholds::MANY_PAUSES
    }

    /// What they say, where there are enough of them for `round_trips`.
    pub(crate) fn sign(&self, round_trips: f64) -> Option<Sign> {
        let own = self.woken + self.written;
        let all = own + self.clocked;
        if all < thresholds::LEAST_PAUSES.max(thresholds::PAUSES_PER_ROUND_TRIP * round_trips) {
            return None;
        }
        if self.clocked >= own {
            return Some(Sign::Window);
        }
        let (share, chance) = (self.woken / own, self.chance());
        let is_woken = share >= thresholds::WOKEN && chance < thresholds::NO_CHANCE
            || share >= thresholds::WOKEN_LEAST && share >= thresholds::WOKEN_BY_CHANCE * chance;
        // A sender that is slow to answer acknowledgements answers them all the same.
        let is_own_master = self.unprompted >= thresholds::UNPROMPTED_PAUSES * self.sent;
        Some(match self.is_clocked() {
            _ if is_woken => Sign::Buffer,
            Some(true) => Sign::Window,
            _ if is_own_master => Sign::Application,
            _ => Sign::Unclear,
        })
    }

    /// Whether fewer of them than `whole` has were ended by a wake-up, and not by chance: two standard deviations.
    fn are_woken_less(&self, whole: &Self) -> bool {
        let own = self.woken + self.written;
        let usual = stats::fraction(whole.woken, whole.woken + whole.written);
        own * usual - self.woken > 2.0 * (own * usual * (1.0 - usual)).max(0.0).sqrt()
    }

    /// What they say of a part of a transfer, where `whole` says something of all of it: a few pauses that look like an
    /// application's are no evidence against many that a buffer ended.
    pub(crate) fn sign_within(&self, round_trips: f64, whole: Option<(Sign, &Self)>) -> Option<Sign> {
        match (self.sign(round_trips), whole) {
            (Some(Sign::Application), Some((sign, whole))) if !self.are_woken_less(whole) => Some(sign),
            (Some(sign @ (Sign::Buffer | Sign::Application)), _) => Some(sign),
            (_, whole) => whole.map(|(sign, _)| sign),
        }
    }

    /// The part of the payload that left long after any acknowledgement.
    pub(crate) fn unprompted(&self) -> f64 {
        stats::fraction(self.unprompted, self.sent)
    }

    /// Whether it shows of a good part when it was sent.
    pub(crate) fn are_shown(&self) -> bool {
        self.sent - self.hidden >= thresholds::SHOWN * self.sent
    }

    /// Whether what was sent followed acknowledgements, and more than by chance; `None` where that can't be determined.
    pub(crate) fn is_clocked(&self) -> Option<bool> {
        if self.prompts <= 0.0 || !self.are_shown() {
            return None;
        }
        let shown = self.sent - self.hidden;
        let (share, chance) = (self.prompted / shown.max(1.0), self.chance());
        if share >= thresholds::PROMPTED && share >= thresholds::PROMPTED_BY_CHANCE * chance {
            Some(true)
        } else if share <= thresholds::PROMPTED_BY_CHANCE * chance && chance < thresholds::PROMPTED {
            Some(false)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many that were woken and written, where acknowledgements are rare and half was sent long after one.
    fn pauses(woken: f64, written: f64) -> Pauses {
        let sent = 1e6;
        Pauses { woken, written, sent, unprompted: 0.5 * sent, prompts: 100.0, us: 1e6, ..Pauses::default() }
    }

    #[test]
    fn a_few_pauses_of_an_application_are_no_evidence_against_many_of_a_buffer() {
        let all = pauses(24.0, 32.0);
        let whole = Some((Sign::Buffer, &all));
        assert_eq!(pauses(2.0, 8.0).sign(0.0), Some(Sign::Application));
        assert_eq!(pauses(2.0, 8.0).sign_within(0.0, whole), Some(Sign::Buffer));
        // None of ten is no chance where 43 of 100 are, and what says nothing is as all is.
        assert_eq!(pauses(0.0, 10.0).sign_within(0.0, whole), Some(Sign::Application));
        assert_eq!(pauses(1.0, 0.0).sign_within(0.0, whole), Some(Sign::Buffer));
        assert_eq!(pauses(1.0, 0.0).sign_within(0.0, None), None);
    }

    #[test]
    fn a_third_sent_long_after_an_acknowledgement_is_not_yet_an_application() {
        let late = Pauses { unprompted: 3e5, ..pauses(0.0, 20.0) };
        assert_eq!((late.sign(0.0), pauses(0.0, 20.0).sign(0.0)), (Some(Sign::Unclear), Some(Sign::Application)));
    }
}
