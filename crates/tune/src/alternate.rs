//! Before and after in alternation: which state to measure next, and when to stop.
//!
//! The order is before-after, after-before, before-after ...: neighbours in time form a pair, the state changes only
//! once a pair, and a slow drift of the path falls on both states alike. What is *not* here: measuring, applying, and
//! the statistics of a proof (`fullpipe_diagnose::proof`).

use fullpipe_diagnose::proof::{self, Criteria, Decision, Pair};
use fullpipe_units::Rate;

/// Whether the changes are in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Before,
    After,
}

/// Measures both states in turn until every direction's proof is decided, or the most pairs are reached.
///
/// `measure` brings the state about and returns the rate of each of the `directions` in it; `on_pair` hears of each
/// pair as it is complete. Returns the pairs of each direction.
pub(crate) fn alternate<E>(
    directions: usize,
    criteria: &Criteria,
    mut measure: impl FnMut(State) -> Result<Vec<Rate>, E>,
    mut on_pair: impl FnMut(u32, &[Pair]),
) -> Result<Vec<Vec<Pair>>, E> {
    let mut pairs: Vec<Vec<Pair>> = vec![Vec::new(); directions];
    let mut number = 0;
    while pairs.iter().any(|all| proof::decide(all, criteria) == Decision::NeedMorePairs) {
        number += 1;
        let (before, after) = if number % 2 == 1 {
            let before = measure(State::Before)?;
            (before, measure(State::After)?)
        } else {
            let after = measure(State::After)?;
            (measure(State::Before)?, after)
        };
        let round: Vec<Pair> = before.iter().zip(&after).map(|(&before, &after)| Pair { before, after }).collect();
        for (all, pair) in pairs.iter_mut().zip(&round) {
            all.push(*pair);
        }
        on_pair(number, &round);
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn criteria(most_pairs: usize) -> Criteria {
        Criteria { most_pairs, ..Criteria::default() }
    }

    fn rate(mbps: u64) -> Rate {
        Rate::from_bps(mbps * 1_000_000)
    }

    #[test]
    fn states_alternate_and_neighbours_form_pairs() {
        let mut order = Vec::new();
        let mut numbers = Vec::new();
        let pairs = alternate::<()>(
            1,
            &criteria(8),
            |state| {
                order.push(state);
                Ok(vec![if state == State::Before { rate(6) } else { rate(90 + order.len() as u64 % 2) }])
            },
            |number, _| numbers.push(number),
        )
        .unwrap();
        let (before, after) = (State::Before, State::After);
        assert_eq!(order, [before, after, after, before, before, after]);
        assert_eq!(numbers, [1, 2, 3]);
        assert_eq!(pairs.len(), 1);
        assert!(pairs[0].iter().all(|pair| pair.before == rate(6) && pair.after > rate(80)));
    }

    #[test]
    fn a_noisy_change_gets_more_pairs_up_to_the_bound() {
        let mut count = 0_u64;
        let pairs = alternate::<()>(
            1,
            &criteria(5),
            |_| {
                count += 1;
                Ok(vec![rate(50 + (count * 37) % 41)])
            },
            |_, _| (),
        )
        .unwrap();
        assert!(count > 6, "three pairs can't decide this: {count} measurements");
        assert!(count <= 10);
        assert_ne!(proof::decide(&pairs[0], &criteria(5)), Decision::Helped);
    }

    #[test]
    fn an_error_ends_it_at_once() {
        let mut count = 0;
        let result = alternate(
            1,
            &criteria(8),
            |_| {
                count += 1;
                if count == 3 { Err("gone") } else { Ok(vec![rate(1)]) }
            },
            |_, _| (),
        );
        assert_eq!(result.err(), Some("gone"));
        assert_eq!(count, 3);
    }
}
