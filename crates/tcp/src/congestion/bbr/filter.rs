//! The highest rate of the last round trips: the best three in three values, as Kathleen Nichols' filter keeps them.

/// A rate, and the round trip in which it was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    round: u32,
    rate: u32,
}

/// The best, the best after it, and the best after that.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Highest([Seen; 3]);

impl Highest {
    pub(super) const fn get(&self) -> u32 {
        self.0[0].rate
    }

    /// Takes a rate that was seen in `round`; what is older than `span` rounds no longer counts.
    pub(super) fn update(&mut self, span: u32, round: u32, rate: u32) {
        let new = Seen { round, rate };
        let age = |seen: Seen| round.wrapping_sub(seen.round);
        let [first, second, third] = &mut self.0;
        if rate >= first.rate || age(*third) > span {
            self.0 = [new; 3];
            return;
        }
        if rate >= second.rate {
            (*second, *third) = (new, new);
        } else if rate >= third.rate {
            *third = new;
        }
        if age(*first) > span {
            (*first, *second, *third) = (*second, *third, new);
            if age(*first) > span {
                (*first, *second) = (*second, *third);
            }
        } else if second.round == first.round && age(*second) > span / 4 {
            // A quarter of the span without a second best: the newest will do.
            (*second, *third) = (new, new);
        } else if third.round == second.round && age(*third) > span / 2 {
            *third = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::vec::Vec;

    use super::*;

    proptest! {
        /// Never above what was seen within the span, never below the newest.
        #[test]
        fn it_lies_between_the_newest_and_the_highest_of_the_span(rates in prop::collection::vec(0_u32..1_000_000, 1..100)) {
            let mut highest = Highest::default();
            let mut seen: Vec<u32> = Vec::new();
            for (round, rate) in rates.into_iter().enumerate() {
                seen.push(rate);
                highest.update(10, round as u32, rate);
                let within = seen.iter().rev().take(11).max().copied().unwrap();
                prop_assert!((rate..=within).contains(&highest.get()), "{} of {seen:?}", highest.get());
            }
        }
    }

    #[test]
    fn a_peak_is_forgotten_after_the_span() {
        let mut highest = Highest::default();
        highest.update(10, 0, 900);
        for round in 1..=10 {
            highest.update(10, round, 500);
            assert_eq!(highest.get(), 900);
        }
        highest.update(10, 11, 500);
        assert_eq!(highest.get(), 500);
    }
}
