//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).

/// Adds `bytes` to a running sum of big-endian 16-bit words. Only the last part may have an odd length.
pub(crate) fn add(sum: u64, bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(2);
    let mut sum = words.by_ref().fold(sum, |sum, word| sum + u64::from(u16::from_be_bytes([word[0], word[1]])));
    if let [last] = words.remainder() {
        sum += u64::from(u16::from_be_bytes([*last, 0]));
    }
    sum
}

/// Folds a running sum into 16 bits, not complemented.
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The checksum of `bytes` as it stands in a header.
pub(crate) fn complement(bytes: &[u8]) -> u16 {
    !fold(add(0, bytes))
}

/// Replaces the word `old` by `new` in an uncomplemented sum.
pub(crate) fn replace(sum: u16, old: u16, new: u16) -> u16 {
    fold(u64::from(sum) + u64::from(!old) + u64::from(new))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        assert_eq!(fold(add(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])), 0xddf2);
    }

    proptest! {
        #[test]
        fn replacing_a_word_equals_summing_again(mut bytes in proptest::collection::vec(any::<u8>(), 20), new: u16) {
            // A sum of non-zero words is never 0 but may be 0xffff, which is the same number in one's complement.
            bytes[0] |= 1;
            let before = fold(add(0, &bytes));
            let old = u16::from_be_bytes([bytes[4], bytes[5]]);
            bytes[4..6].copy_from_slice(&new.to_be_bytes());
            prop_assert_eq!(replace(before, old, new), fold(add(0, &bytes)));
        }
    }
}
