//! Two sweeps over message sizes beside one another: before a change, and after it.

use serde::Serialize;
use serde_json::Value;

/// What one sweep found for one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KeptSize {
    /// The size of a message, in bytes.
    pub size: u64,
    /// Payload rate from here to the host.
    pub up_bps: Option<u64>,
    /// Payload rate from the host to here.
    pub down_bps: Option<u64>,
    /// A message of this size and an answer.
    pub round_trip_us: Option<f64>,
}

/// Both sweeps, size by size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The sizes of either sweep, smallest first.
    pub rows: Vec<ComparedSize>,
}

/// One size in both sweeps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ComparedSize {
    /// The size of a message, in bytes.
    pub size: u64,
    /// From here to the host.
    pub up_bps: Pair,
    /// From the host to here.
    pub down_bps: Pair,
    /// A message of this size and an answer, in microseconds.
    pub round_trip_us: Pair,
}

/// A figure of both sweeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Pair {
    /// The earlier one.
    pub before: Option<f64>,
    /// The later one.
    pub after: Option<f64>,
    /// How much more it is than before, in percent.
    pub percent: Option<f64>,
}

impl Pair {
    fn new(before: Option<f64>, after: Option<f64>) -> Self {
        let percent =
            before.zip(after).filter(|(before, _)| *before > 0.0).map(|(before, after)| (after / before - 1.0) * 100.0);
        Self { before, after, percent }
    }
}

impl KeptSize {
    /// The sizes of a document of `measure --sizes`.
    pub(crate) fn of_document(document: &Value) -> Vec<Self> {
        let rows = document["sizes"].as_array().map(Vec::as_slice).unwrap_or_default();
        let row = |row: &Value| {
            Some(Self {
                size: row["size"].as_u64()?,
                up_bps: row["up"]["rate_bps"].as_u64(),
                down_bps: row["down"]["rate_bps"].as_u64(),
                round_trip_us: row["round_trip_us"].as_f64(),
            })
        };
        rows.iter().filter_map(row).collect()
    }
}

impl Comparison {
    /// Puts two sweeps together; a size that only one of them has stands there with what is known.
    pub fn new(before: &[KeptSize], after: &[KeptSize]) -> Self {
        let mut sizes: Vec<u64> = before.iter().chain(after).map(|row| row.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let of = |rows: &[KeptSize], size: u64| rows.iter().find(|row| row.size == size).copied();
        let row = |size: u64| {
            let (before, after) = (of(before, size), of(after, size));
            let pair = |figure: &dyn Fn(&KeptSize) -> Option<f64>| {
                Pair::new(before.as_ref().and_then(figure), after.as_ref().and_then(figure))
            };
            ComparedSize {
                size,
                up_bps: pair(&|row| row.up_bps.map(|rate| rate as f64)),
                down_bps: pair(&|row| row.down_bps.map(|rate| rate as f64)),
                round_trip_us: pair(&|row| row.round_trip_us),
            }
        };
        Self { rows: sizes.into_iter().map(row).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(size: u64, mb_per_s: f64) -> KeptSize {
        KeptSize { size, up_bps: Some((mb_per_s * 8e6) as u64), down_bps: None, round_trip_us: Some(100.0) }
    }

    /// The figures of the article on a reset of TCP/IP (000): 56.38 to 322.30 MB/s before, 831.05 to 1,090 after.
    #[test]
    fn the_published_sweep_comes_out_before_and_after_with_percent() {
        let before = [kept(4096, 56.38), kept(65_536, 322.30)];
        let after = [kept(4096, 831.05), kept(8192, 1023.49), kept(65_536, 1090.0)];
        let comparison = Comparison::new(&before, &after);
        let percent: Vec<Option<i64>> =
            comparison.rows.iter().map(|row| row.up_bps.percent.map(|percent| percent.round() as i64)).collect();
        assert_eq!(percent, [Some(1374), None, Some(238)]);
        let csv = crate::csv::comparison(&comparison);
        assert_eq!(csv.lines().nth(1), Some("4096,56.38,831.05,1374.0,,,,100.0,100.0,0.0"), "{csv}");
        let text = crate::text::comparison(&comparison, crate::text::Look::default());
        for words in ["56.38", "831.05", "+1374 %", "100.0 us", "4096"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn a_document_gives_its_sizes_back() {
        let text =
            r#"{"sizes":[{"size":4096,"up":{"rate_bps":8000000},"down":{"rate_bps":null},"round_trip_us":12.5},{}]}"#;
        let found = crate::json::kept_sizes(text).unwrap();
        let expected = KeptSize { size: 4096, up_bps: Some(8_000_000), down_bps: None, round_trip_us: Some(12.5) };
        assert_eq!(found, [expected]);
        assert!(crate::json::kept_sizes("{").is_err());
    }
}
