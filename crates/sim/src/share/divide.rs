//! Packet buffers shared out by marginal gain.
//!
//! A step gives one socket one packet more, which costs [`STEP`] buffers wherever it goes. The curves are concave (a packet
//! more never gains more than the one before it), so taking the best step each time is exact: no other way to hand out the
//! same number of steps gives a larger sum. A larger room only takes further steps of the same order, so nobody loses by it.

/// Buffers that one packet more of one socket costs: it waits in two lists.
pub(crate) const STEP: u32 = 2;
/// A step that gains less than this part of what the socket has is not worth its buffers.
const WORTH: f64 = 0.001;

/// Sockets that are alike and want more.
#[derive(Clone, Debug)]
pub(crate) struct Wants {
    /// How many.
    pub(crate) count: u16,
    /// What one of them reaches with its least number of packets, and with each packet more: rising and concave.
    pub(crate) curve: Vec<f64>,
}

/// What there is to share out, and when to stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Buffers beyond the least shares.
    pub(crate) buffers: u32,
    /// What all sockets together can reach at most, in the unit of the curves.
    pub(crate) ceiling: f64,
    /// Packets beyond the least shares at most.
    pub(crate) packets: u32,
}

/// Why no further step was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The buffers are used up.
    Pool,
    /// No socket gains by more.
    Plateau,
    /// The device or its link can't do more, however many buffers there are.
    Device,
    /// More packets would make interactive messages wait longer than they may.
    Wait,
}

/// The steps of each socket of each group, the sockets of a group from the most to the fewest; and why it ended there.
pub(crate) fn divide(wants: &[Wants], room: Room) -> (Vec<Vec<u16>>, Stop) {
    let mut steps: Vec<Vec<u16>> = wants.iter().map(|group| vec![0; group.count.into()]).collect();
    // The socket of each group whose turn it is: they rise one after the other.
    let mut turn: Vec<usize> = vec![0; wants.len()];
    let mut reached: f64 = wants.iter().map(|group| f64::from(group.count) * first(group)).sum();
    let (mut buffers, mut packets) = (room.buffers, room.packets);
    loop {
        if reached >= room.ceiling {
            return (steps, Stop::Device);
        }
        let gains = wants.iter().enumerate().filter_map(|(place, group)| {
            let at = usize::from(steps[place][turn[place]]);
            let (now, next) = (group.curve.get(at)?, group.curve.get(at + 1)?);
            (next - now > now * WORTH).then_some((place, next - now))
        });
        // The first of equals, so that the order of the groups decides and not chance.
        let Some((place, gain)) = gains.reduce(|best, one| if one.1 > best.1 { one } else { best }) else {
            return (steps, Stop::Plateau);
        };
        if buffers < STEP {
            return (steps, Stop::Pool);
        }
        if packets == 0 {
            return (steps, Stop::Wait);
        }
        (buffers, packets) = (buffers - STEP, packets - 1);
        reached += gain;
        steps[place][turn[place]] += 1;
        turn[place] = (turn[place] + 1) % steps[place].len();
    }
}

fn first(group: &Wants) -> f64 {
    group.curve.first().copied().unwrap_or_default()
}

/// The smallest concave curve that is nowhere below `raw` made to rise: what is measured in whole packets has small steps.
pub(crate) fn concave(raw: &[f64]) -> Vec<f64> {
    let mut rising = raw.to_vec();
    for at in 1..rising.len() {
        rising[at] = rising[at].max(rising[at - 1]);
    }
    let slope = |from: usize, to: usize| (rising[to] - rising[from]) / (to - from) as f64;
    let mut corners: Vec<usize> = Vec::new();
    for at in 0..rising.len() {
        while let [.., before, last] = corners.as_slice() {
            if slope(*before, *last) > slope(*last, at) {
                break;
            }
            corners.pop();
        }
        corners.push(at);
    }
    let mut hull = rising.clone();
    for pair in corners.windows(2) {
        let &[from, to] = pair else { continue };
        let slope = slope(from, to);
        (from..to).for_each(|at| hull[at] = rising[from] + slope * (at - from) as f64);
    }
    hull
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn curves() -> impl Strategy<Value = Vec<Wants>> {
        let curve = (1.0..1e3_f64, proptest::collection::vec(0.0..100.0_f64, 1..12)).prop_map(|(base, mut gains)| {
            gains.sort_by(|a, b| b.total_cmp(a));
            let mut curve = vec![base];
            gains.into_iter().for_each(|gain| curve.push(curve.last().copied().unwrap_or_default() + gain));
            curve
        });
        proptest::collection::vec((1_u16..4, curve).prop_map(|(count, curve)| Wants { count, curve }), 1..4)
    }

    fn room(buffers: u32) -> Room {
        Room { buffers, ceiling: f64::INFINITY, packets: u32::MAX }
    }

    fn sum(wants: &[Wants], steps: &[Vec<u16>]) -> f64 {
        let group =
            |(group, steps): (&Wants, &Vec<u16>)| steps.iter().map(|at| group.curve[usize::from(*at)]).sum::<f64>();
        wants.iter().zip(steps).map(group).sum()
    }

    fn used(steps: &[Vec<u16>]) -> u32 {
        steps.iter().flatten().map(|own| u32::from(*own) * STEP).sum()
    }

    /// The best sum of all ways to hand out the steps, by trying all (dynamic programming over the sockets).
    fn best(wants: &[Wants], buffers: u32) -> f64 {
        let all = (buffers / STEP) as usize;
        let mut best = vec![0.0_f64; all + 1];
        for group in wants {
            for _ in 0..group.count {
                let with = |left: usize| {
                    let most = left.min(group.curve.len() - 1);
                    (0..=most).map(|own| best[left - own] + group.curve[own]).fold(f64::MIN, f64::max)
                };
                best = (0..=all).map(with).collect();
            }
        }
        best[all]
    }

    proptest! {
        #[test]
        fn no_other_way_to_share_gives_more(wants in curves(), buffers in 0_u32..60) {
            let (steps, _) = divide(&wants, room(buffers));
            let (ours, best) = (sum(&wants, &steps), best(&wants, buffers));
            // Steps that gain less than 0.1 % are left out on purpose.
            prop_assert!(ours >= best * 0.98 && ours <= best * 1.000_001, "{ours} of {best}");
            let all_count = wants.iter().all(|g| g.curve.windows(2).all(|w| w[1] - w[0] > w[0] * WORTH));
            prop_assert!(!all_count || ours >= best * 0.999_999, "{ours} of {best}");
        }

        #[test]
        fn the_pool_is_never_exceeded_and_a_larger_one_takes_from_nobody(wants in curves(), buffers in 0_u32..60) {
            let (steps, _) = divide(&wants, room(buffers));
            prop_assert!(used(&steps) <= buffers);
            let (more, _) = divide(&wants, room(buffers + 1));
            prop_assert!(steps.iter().flatten().zip(more.iter().flatten()).all(|(few, many)| few <= many));
        }

        #[test]
        fn sockets_that_are_alike_get_the_same_or_one_more(wants in curves(), buffers in 0_u32..60) {
            let (steps, _) = divide(&wants, room(buffers));
            prop_assert!(steps.iter().all(|group| group.first().unwrap() - group.last().unwrap() <= 1));
            prop_assert!(steps.iter().all(|group| group.is_sorted_by(|a, b| a >= b)));
        }

        #[test]
        fn a_curve_is_made_concave_from_above(raw in proptest::collection::vec(0.0..1e3_f64, 1..40)) {
            let hull = concave(&raw);
            prop_assert!(hull.iter().zip(&raw).all(|(hull, raw)| *hull >= raw - 1e-9));
            prop_assert!(hull.windows(3).all(|w| w[2] - w[1] <= w[1] - w[0] + 1e-6), "{hull:?}");
            prop_assert!(hull.windows(2).all(|w| w[1] >= w[0] - 1e-9), "{hull:?}");
            let most = raw.iter().copied().fold(f64::MIN, f64::max);
            prop_assert!((hull[hull.len() - 1] - most).abs() < 1e-9);
        }
    }

    #[test]
    fn it_ends_where_the_device_or_the_wait_allows_no_more() {
        let wants = [Wants { count: 2, curve: vec![10.0, 20.0, 28.0, 28.001] }];
        assert_eq!(divide(&wants, room(100)), (vec![vec![2, 2]], Stop::Plateau));
        assert_eq!(divide(&wants, room(5)), (vec![vec![1, 1]], Stop::Pool));
        let device = Room { ceiling: 35.0, ..room(100) };
        assert_eq!(divide(&wants, device), (vec![vec![1, 1]], Stop::Device));
        let wait = Room { packets: 3, ..room(100) };
        assert_eq!(divide(&wants, wait), (vec![vec![2, 1]], Stop::Wait));
    }
}
