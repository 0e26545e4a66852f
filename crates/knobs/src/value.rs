//! Values as they are written: numbers, and whether a row of the catalogue takes one. What is *not* here: what a value
//! does (`lint`, `planner`).

use crate::{catalogue::Knob, lint::meant};

impl Knob {
    /// Why a value is none that this setting takes, as far as its row says so in numbers or in a list of words.
    pub(crate) fn wrong_value(&self, value: &str) -> Option<String> {
        if let Some(words) = listed(&self.range)
            && self.value_type != "filter"
        {
            let value = value.trim().trim_matches(['"', '\'']);
            let known = words.iter().any(|word| word.eq_ignore_ascii_case(value));
            // PowerShell takes an enumeration's numbers too.
            return (!known && number(value).is_none()).then(|| {
                let meant =
                    meant::word(value, &words).map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
                format!("it takes {}{meant}", self.range)
            });
        }
        let numbers: Vec<Option<i64>> = match self.value_type.as_str() {
            // Windows writes its booleans as words.
            "boolean" if !self.range.starts_with(|c: char| c.is_ascii_digit()) => return None,
            "integer" | "boolean" | "REG_DWORD" => vec![number(value)],
            "three integers" => value.split_whitespace().map(number).collect(),
            _ => return None,
        };
        if self.value_type == "three integers" && numbers.len() != 3 {
            return Some("three numbers are expected".to_owned());
        }
        let numbers: Option<Vec<i64>> = numbers.into_iter().collect();
        let Some(numbers) = numbers else { return Some("a number is expected".to_owned()) };
        let (low, high) = bounds(&self.range)?;
        numbers.iter().any(|n| *n < low || *n > high).then(|| format!("its range is {}", self.range))
    }
}

/// Exactly three whole numbers, as `tcp_rmem` and `tcp_mem` have them.
pub(crate) fn three(text: &str) -> Option<[u64; 3]> {
    let mut words = text.split_whitespace().map(|word| word.parse().ok());
    let found = [words.next()??, words.next()??, words.next()??];
    words.next().is_none().then_some(found)
}

/// The words of a range that is a list of them: `disabled, enabled, default`.
fn listed(range: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = range.split(", ").collect();
    let is_word = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (words.len() > 1 && words.iter().all(is_word)).then_some(words)
}

/// The bounds of a range that is written in numbers alone: `0 or 1`, `300 to 3000, in steps of 10`.
fn bounds(range: &str) -> Option<(i64, i64)> {
    if range == "0 or 1" {
        return Some((0, 1));
    }
    let plain = range.split_once(", in steps of ").map_or(range, |(plain, _)| plain);
    let (low, high) = plain.split_once(" to ")?;
    Some((number(low)?, number(high)?))
}

/// A number in decimal, in hexadecimal (`0x`, or `dword:` as registry files write it), or with the multiplier that
/// FreeBSD's loader takes (`64k`).
pub(crate) fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Some(hex) = ["0x", "0X", "dword:"].into_iter().find_map(|prefix| text.strip_prefix(prefix)) {
        return i64::from_str_radix(hex, 16).ok();
    }
    let shift = match text.chars().next_back()?.to_ascii_lowercase() {
        'k' => 10,
        'm' => 20,
        'g' => 30,
        't' => 40,
        _ => 0,
    };
    let digits = if shift == 0 { text } else { text.get(..text.len() - 1)? };
    digits.parse::<i64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use crate::{Address, Catalogue, Family};

    #[test]
    fn what_a_row_takes_is_told_from_what_it_does_not() {
        for (family, address, fine, wrong) in [
            (Family::Linux, Address::sysctl("net.ipv4.tcp_sack"), &["0", "1"][..], &["2", "yes", ""][..]),
            (Family::Linux, Address::sysctl("net.ipv4.tcp_rmem"), &["4096 1 1"], &["4096 1", "a b c", "1 2 3 4"]),
            (Family::Linux, Address::sysctl("net.core.rmem_max"), &["212992", "0x100000"], &["banana", "1.5"]),
            (
                Family::Windows,
                Address::netsh("tcp global", "rss"),
                &["enabled", "Disabled", "default"],
                &["banana", "restricted"],
            ),
        ] {
            let knob = Catalogue::for_family(family).unwrap().find(&address).unwrap();
            for value in fine {
                assert_eq!(knob.wrong_value(value), None, "{address} {value}");
            }
            for value in wrong {
                assert!(knob.wrong_value(value).is_some(), "{address} {value}");
            }
        }
    }
}
