//! TCP sequence numbers.

use core::ops;

/// A TCP sequence number: 32 bits that wrap (RFC 9293, section 3.4).
///
/// There is deliberately no `Ord`: two numbers compare with [`SeqNum::before`], [`SeqNum::after`] and
/// [`SeqNum::in_window`], which hold while the two are less than 2^31 apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeqNum(u32);

impl SeqNum {
    /// The sequence number `value`.
    pub const fn new(value: u32) -> Self {
        Self(value)
    }

    /// The 32 bits as they stand in a header.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Whether `self` comes before `other`. False at a distance of exactly 2^31, where neither comes first.
    pub const fn before(self, other: Self) -> bool {
        other.0.wrapping_sub(self.0).cast_signed() > 0
    }

    /// Whether `self` comes after `other`.
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// Whether `self` is one of the `len` numbers from `start` on.
    pub const fn in_window(self, start: Self, len: u32) -> bool {
        self.0.wrapping_sub(start.0) < len
    }

    /// Whether `self` is `other` or comes before it.
    pub const fn at_or_before(self, other: Self) -> bool {
        !self.after(other)
    }

    /// Whether `self` is `other` or comes after it.
    pub const fn at_or_after(self, other: Self) -> bool {
        !self.before(other)
    }

    /// The later of two numbers; `self` where neither comes first.
    pub const fn later(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }

    /// The earlier of two numbers; `self` where neither comes first.
    pub const fn earlier(self, other: Self) -> Self {
        if self.after(other) { other } else { self }
    }

    /// How far `self` is past `earlier`, modulo 2^32.
    pub const fn distance_from(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
}

impl ops::Add<u32> for SeqNum {
    type Output = Self;

    fn add(self, len: u32) -> Self {
        Self(self.0.wrapping_add(len))
    }
}

impl ops::Sub<u32> for SeqNum {
    type Output = Self;

    fn sub(self, len: u32) -> Self {
        Self(self.0.wrapping_sub(len))
    }
}

impl ops::AddAssign<u32> for SeqNum {
    fn add_assign(&mut self, len: u32) {
        *self = *self + len;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        let last = SeqNum::new(u32::MAX);
        assert!(last.before(SeqNum::new(0)));
        assert!(SeqNum::new(0).after(last));
        assert!(SeqNum::new(3).in_window(last, 5));
        assert!(!SeqNum::new(4).in_window(last, 5));
    }

    proptest! {
        #[test]
        fn exactly_one_order_holds_within_half_the_space(start: u32, step in 1u32..1 << 31) {
            let (a, b) = (SeqNum::new(start), SeqNum::new(start) + step);
            prop_assert!(a.before(b) && b.after(a) && !b.before(a) && !a.after(b));
            prop_assert_eq!(b.distance_from(a), step);
            prop_assert_eq!((a.later(b), a.earlier(b), b.later(a), b.earlier(a)), (b, a, b, a));
            prop_assert_eq!(b - step, a);
        }

        #[test]
        fn a_window_holds_its_numbers_and_no_other(start: u32, len: u32, offset: u32) {
            let s = SeqNum::new(start);
            prop_assert_eq!((s + offset).in_window(s, len), offset < len);
        }
    }
}
