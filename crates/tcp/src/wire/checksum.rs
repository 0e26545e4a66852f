//! The Internet checksum (RFC 1071), over data that may lie in several pieces.

/// A running one's-complement sum. Pieces of odd length may follow each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum {
    sum: u64,
    /// Whether an odd number of bytes has been added, so that the next byte is the low half of a word.
    odd: bool,
}

impl Checksum {
    /// The sum of nothing.
    pub const fn new() -> Self {
        Self { sum: 0, odd: false }
    }

    /// Adds one 16-bit word. Only meaningful while an even number of bytes has been added.
    pub const fn word(mut self, word: u16) -> Self {
        self.sum += word as u64;
        self
    }

    /// Adds `data`, whose length is a multiple of 4: headers and addresses. Only meaningful while an even number of bytes has
    /// been added.
    #[inline]
    pub fn header(mut self, data: &[u8]) -> Self {
        // Without sums of 64 bits whole words gain nothing, and take flash.
        if cfg!(not(any(target_pointer_width = "64", target_arch = "wasm32"))) {
            return self.bytes(data);
        }
        let (words, rest) = data.as_chunks::<4>();
        for word in words {
            self.sum += u64::from(u32::from_be_bytes(*word));
        }
        debug_assert!(rest.is_empty(), "whole words");
        self
    }

    /// Adds `data`.
    pub fn bytes(mut self, data: &[u8]) -> Self {
        let part = u64::from(sum_of(data));
        // A piece that starts at an odd offset contributes its sum with the bytes exchanged (RFC 1071, section 2 B).
        self.sum += if self.odd { u64::from((part as u16).swap_bytes()) } else { part };
        self.odd ^= data.len() % 2 == 1;
        self
    }

    /// The folded sum, not complemented: what a device expects in the field when it finishes the work itself.
    pub const fn partial(self) -> u16 {
        let mut sum = self.sum;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// The checksum as it stands in the header.
    pub const fn finish(self) -> u16 {
        !self.partial()
    }

    /// Whether data that includes its checksum field is intact.
    pub const fn is_valid(self) -> bool {
        self.partial() == 0xffff
    }
}

/// The folded big-endian word sum of one piece, padded with a zero byte.
fn sum_of(data: &[u8]) -> u16 {
    // 32-bit words into 64-bit sums, which 2^32 steps could not overflow; several sums side by side, so that a
    // compiler can use vectors. The order of bytes within the words does not matter to the sum but for one final
    // exchange (RFC 1071, section 2 B), so words are read natively.
    // Where there are none, one sum is less code.
    const LANES: usize = if cfg!(target_pointer_width = "64") { 8 } else { 1 };
    let mut lanes = [0_u64; LANES];
    let (blocks, rest) = data.as_chunks::<{ 4 * LANES }>();
    for block in blocks {
        let (words, _) = block.as_chunks::<4>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane += u64::from(u32::from_ne_bytes(*word));
        }
    }
    let mut sum: u64 = lanes.iter().sum();
    let (words, last) = rest.as_chunks::<4>();
    for word in words {
        sum += u64::from(u32::from_ne_bytes(*word));
    }
    let mut padded = [0_u8; 4];
    for (to, from) in padded.iter_mut().zip(last) {
        *to = *from;
    }
    sum += u64::from(u32::from_ne_bytes(padded));
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::from_be(sum as u16)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// The definition, word by word.
    fn reference(data: &[u8]) -> u16 {
        let mut sum = 0_u32;
        for pair in data.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn the_example_of_rfc_1071() {
        let sum = Checksum::new().bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.partial(), 0xddf2);
    }

    proptest! {
        #[test]
        fn a_header_sums_like_its_bytes(data: [u8; 20], rest: Vec<u8>) {
            let whole: Vec<u8> = data.iter().chain(&rest).copied().collect();
            prop_assert_eq!(Checksum::new().header(&data).bytes(&rest).finish(), reference(&whole));
        }

        #[test]
        fn pieces_sum_like_the_whole(data: Vec<u8>, cut in any::<prop::sample::Index>()) {
            let cut = cut.index(data.len() + 1);
            let (a, b) = data.split_at(cut);
            let split = Checksum::new().bytes(a).bytes(b).finish();
            // 0x0000 and 0xffff are the same number in one's complement.
            let same = |x: u16, y: u16| x == y || (x == 0 && y == 0xffff) || (x == 0xffff && y == 0);
            prop_assert!(same(split, reference(&data)), "{split:04x} {:04x}", reference(&data));
        }
    }
}
