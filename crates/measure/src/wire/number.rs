//! Numbers of the wire, as the many versions of iperf3 print them.
//!
//! iperf3 up to 3.13 prints -1 as 18446744073709551615, and 3.0 and 3.1 can print a count as `1e+10`.

use serde_json::Value;

/// Counts at and above this are negative numbers that an old peer printed as unsigned.
const NEGATIVE_FROM: f64 = 9_223_372_036_854_775_808.0;

/// A count; `None` where it is absent, negative ("not known" on this wire) or no number at all.
pub(crate) fn count(value: Option<&Value>) -> Option<u64> {
    let value = value?;
    if let Some(count) = value.as_u64() {
        return (count < 1 << 63).then_some(count);
    }
    let float = value.as_f64().filter(|f| f.is_finite() && *f >= 0.0 && *f < NEGATIVE_FROM)?;
    Some(float as u64)
}

/// A finite number.
pub(crate) fn float(value: Option<&Value>) -> Option<f64> {
    value?.as_f64().filter(|f| f.is_finite())
}

/// `true`, or a number other than zero: iperf3 sends some flags one way and some the other.
pub(crate) fn flag(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(flag)) => *flag,
        Some(Value::Number(number)) => number.as_f64().is_some_and(|f| f.abs() > 0.0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn minus_one_of_an_old_peer_is_unknown() {
        assert_eq!(count(Some(&json!(18_446_744_073_709_551_615_u64))), None);
        assert_eq!(count(Some(&json!(-1))), None);
        assert_eq!(count(Some(&json!(-1.0))), None);
    }

    #[test]
    fn floats_are_counts() {
        assert_eq!(count(Some(&json!(1e10))), Some(10_000_000_000));
        assert_eq!(count(Some(&json!(0))), Some(0));
        assert_eq!(count(Some(&json!("7"))), None);
        assert_eq!(count(None), None);
    }

    proptest! {
        #[test]
        fn every_count_of_half_the_range_comes_back(number in 0u64..1 << 63) {
            prop_assert_eq!(count(Some(&json!(number))), Some(number));
        }
    }
}
