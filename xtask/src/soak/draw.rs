//! Which points of the matrix a run tries that has less time than all of them take: each part its share of the time, its
//! points in a random order.

use std::{
    cell::Cell,
    hash::{BuildHasher, RandomState},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

/// The time that is left for so many parts, and random numbers.
pub(super) struct Draw {
    seed: u64,
    state: u64,
    end: Instant,
    parts: Cell<u32>,
}

impl Draw {
    pub(super) fn new(time: Duration, parts: usize) -> Result<Self> {
        ensure!(!time.is_zero() && parts > 0, "no time for the crash matrix");
        let seed = RandomState::new().hash_one(0) | 1;
        let parts = Cell::new(u32::try_from(parts)?);
        Ok(Self { seed, state: seed, end: Instant::now() + time, parts })
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// When the next part is to end, so that those after it have as much.
    pub(super) fn share(&self, now: Instant) -> Instant {
        let parts = self.parts.get().max(1);
        self.parts.set(parts - 1);
        now + self.end.saturating_duration_since(now) / parts
    }

    /// The points as they are, or in a random order where there is a draw.
    pub(super) fn order<T>(mut points: Vec<T>, draw: Option<&mut Self>) -> Vec<T> {
        if let Some(draw) = draw {
            // Fisher and Yates.
            for at in (1..points.len()).rev() {
                points.swap(at, draw.below(at + 1));
            }
        }
        points
    }

    fn below(&mut self, most: usize) -> usize {
        // Xorshift (Marsaglia 2003).
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state % most.max(1) as u64).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_drawn_once_and_every_part_has_its_share() {
        let mut draw = Draw::new(Duration::from_secs(60), 3).unwrap();
        let mut drawn = Draw::order((0..1000).collect(), Some(&mut draw));
        assert_ne!(drawn, (0..1000).collect::<Vec<_>>());
        drawn.sort_unstable();
        assert_eq!(drawn, (0..1000).collect::<Vec<_>>());
        assert_eq!(Draw::order(vec![1, 2, 3], None), [1, 2, 3]);
        let start = draw.end.checked_sub(Duration::from_secs(60)).unwrap();
        let shares: Vec<u64> = (0..3)
            .map(|part| {
                let now = start + Duration::from_secs(20 * part);
                (draw.share(now) - now).as_secs()
            })
            .collect();
        assert_eq!(shares, [20, 20, 20]);
    }
}
