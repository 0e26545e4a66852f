//! Versions in the order in which their platform published them.

use std::cmp::Ordering;

/// Compares two versions: by their place in `order` where the platform has named versions, else number by number.
///
/// `None` where a version is not one that can be ordered. Text after the numbers (`6.18.44-generic`) is ignored, and a
/// missing number counts as zero, so that `6.6` is the first of the 6.6 series.
pub(crate) fn compare(a: &str, b: &str, order: &[String]) -> Option<Ordering> {
    if order.is_empty() {
        let (a, b) = (numbers(a)?, numbers(b)?);
        return Some(a.cmp(&b));
    }
    let place = |version: &str| order.iter().position(|known| known.eq_ignore_ascii_case(version));
    Some(place(a)?.cmp(&place(b)?))
}

/// The leading numbers of a dotted version, at most four.
fn numbers(version: &str) -> Option<[u32; 4]> {
    let mut found = [0; 4];
    for (place, part) in found.iter_mut().zip(version.split('.')) {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let digits = part.get(..end)?;
        if digits.is_empty() {
            break;
        }
        *place = digits.parse().ok()?;
        if end < part.len() {
            break;
        }
    }
    version.starts_with(|c: char| c.is_ascii_digit()).then_some(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn kernel_releases_order_by_number_and_not_by_text() {
        assert_eq!(compare("6.18.44-fc-v595", "6.6", &[]), Some(Ordering::Greater));
        assert_eq!(compare("6.6", "6.6.0", &[]), Some(Ordering::Equal));
        assert_eq!(compare("5.15.0-91-generic", "6.6", &[]), Some(Ordering::Less));
        assert_eq!(compare("4.9", "4.12", &[]), Some(Ordering::Less));
        assert_eq!(compare("unknown", "6.6", &[]), None);
    }

    #[test]
    fn named_versions_order_by_their_list() {
        let order = ["XP", "7", "10"].map(str::to_owned);
        assert_eq!(compare("xp", "10", &order), Some(Ordering::Less));
        assert_eq!(compare("8", "10", &order), None);
    }

    proptest! {
        #[test]
        fn any_text_is_compared_without_a_panic(a in ".{0,16}", b in ".{0,16}") {
            prop_assert_eq!(compare(&a, &b, &[]), compare(&b, &a, &[]).map(Ordering::reverse));
        }
    }
}
