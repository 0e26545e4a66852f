//! Division of 64-bit numbers. A 32-bit processor has none (WebAssembly has), and the compiler's own takes a kilobyte of flash; what the engine
//! divides by is small, or divided by rarely.

/// Whether the processor divides such numbers by itself.
const NATIVE: bool = cfg!(any(target_pointer_width = "64", target_family = "wasm"));

/// `value / divisor`, digit by digit of 16 bits: remainder and digit together fit 32 bits. Four divisions of the processor.
pub(crate) const fn by_small(value: u64, divisor: u16) -> u64 {
    if NATIVE {
        return value / divisor as u64;
    }
    digits(value, divisor)
}

/// `value / divisor`, bit by bit. A divisor is a window of TCP: below 2^31.
pub(crate) const fn by(value: u64, divisor: u32) -> u64 {
    if NATIVE {
        return value / divisor as u64;
    }
    bits(value, divisor)
}

const fn digits(value: u64, divisor: u16) -> u64 {
    let (mut quotient, mut rest, mut left, mut digit) = (0, 0, value, 0);
    while digit < 4 {
        let part = rest << 16 | (left >> 48) as u32;
        quotient = quotient << 16 | (part / divisor as u32) as u64;
        rest = part % divisor as u32;
        left <<= 16;
        digit += 1;
    }
    quotient
}

const fn bits(value: u64, divisor: u32) -> u64 {
    let (mut quotient, mut rest, mut left, mut bit) = (0, 0, value, 0);
    while bit < 64 {
        rest = rest << 1 | (left >> 63) as u32;
        left <<= 1;
        bit += 1;
        quotient <<= 1;
        if rest >= divisor {
            rest -= divisor;
            quotient |= 1;
        }
    }
    quotient
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_ways_agree_with_the_processor(value: u64, small in 1_u16.., window in 1_u32..1 << 31) {
            prop_assert_eq!(digits(value, small), value / u64::from(small));
            prop_assert_eq!(bits(value, window), value / u64::from(window));
        }
    }
}
