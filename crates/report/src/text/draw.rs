//! Small charts in text: a sparkline, and a curve of braille dots.

use super::page::{PLAIN, Page};

/// Heights of a cell, from an eighth to whole (Unicode block elements).
const HEIGHTS: [char; 8] =
    ['\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];

/// The last values as a row of at most `cells` columns, the largest of them as high as a line.
pub fn sparkline(values: &[f64], cells: usize) -> String {
    let shown = &values[values.len().saturating_sub(cells)..];
    let largest = shown.iter().copied().fold(0.0, f64::max);
    let height = |value: f64| if largest > 0.0 { (value / largest * 7.0).round().clamp(0.0, 7.0) as usize } else { 0 };
    shown.iter().map(|value| HEIGHTS[height(*value)]).collect()
}

/// A curve as lines of braille cells, each two dots wide and four high (Unicode, chapter 21), from 0 at the bottom to the
/// largest value at the top. Steps on the axis are factors where all of them are positive.
fn curve(points: &[(f64, f64)], columns: usize, rows: usize) -> Vec<String> {
    let (wide, high) = (columns * 2, rows * 4);
    let largest = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let at = places(points, wide);
    let up = |y: f64| {
        if largest > 0.0 { (y / largest * (high - 1) as f64).round().clamp(0.0, (high - 1) as f64) } else { 0.0 }
    };
    let mut cells = vec![0_u8; columns * rows];
    let mut dot = |x: usize, y: f64| {
        let (row, deep) = ((high - 1 - y as usize) / 4, (high - 1 - y as usize) % 4);
        let bits = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
        cells[row * columns + x / 2] |= bits[x % 2][deep];
    };
    for (pair, places) in points.windows(2).zip(at.windows(2)) {
        let (from, to) = (up(pair[0].1), up(pair[1].1));
        let steps = (places[1] - places[0]).max((to - from).abs() as usize).max(1);
        for step in 0..=steps {
            let part = step as f64 / steps as f64;
            dot(
                places[0] + ((places[1] - places[0]) as f64 * part).round() as usize,
                (from + (to - from) * part).round(),
            );
        }
    }
    let braille = |bits: &u8| char::from_u32(0x2800 + u32::from(*bits)).unwrap_or(' ');
    cells.chunks(columns).map(|row| row.iter().map(braille).collect()).collect()
}

/// Where each point stands among `wide` places.
fn places(points: &[(f64, f64)], wide: usize) -> Vec<usize> {
    let is_log = points.iter().all(|point| point.0 > 0.0);
    let along = |x: f64| if is_log { x.ln() } else { x };
    let (low, high) = points.first().zip(points.last()).map_or((0.0, 1.0), |(a, b)| (along(a.0), along(b.0)));
    let span = if high > low { high - low } else { 1.0 };
    let place = |x: f64| ((along(x) - low) / span * (wide - 1) as f64).round().clamp(0.0, (wide - 1) as f64) as usize;
    points.iter().map(|point| place(point.0)).collect()
}

/// Columns for what stands left of a curve.
const SCALE: usize = 14;
/// Lines of a curve.
const ROWS: usize = 10;

/// Puts a curve on the page: `largest` beside its top, the first and the last value of the axis below it, and an arrow with
/// `mark`'s words below the point that it names.
pub(crate) fn put_curve(
    page: &mut Page,
    points: &[(f64, f64)],
    largest: &str,
    ends: [&str; 2],
    mark: Option<(usize, &str)>,
) {
    let columns = page.look.width.saturating_sub(SCALE + 4).clamp(20, 72);
    for (number, row) in curve(points, columns, ROWS).iter().enumerate() {
        let scale = if number == 0 {
            largest
        } else if number + 1 == ROWS {
            "0"
        } else {
            ""
        };
        page.pieces(0, &[(PLAIN, &format!("{scale:>SCALE$} \u{2502}{row}"))]);
    }
    page.pieces(0, &[(PLAIN, &format!("{:SCALE$} \u{2514}{}", "", "\u{2500}".repeat(columns)))]);
    let between = columns.saturating_sub(ends[0].chars().count() + ends[1].chars().count());
    page.pieces(0, &[(PLAIN, &format!("{:SCALE$}  {}{:between$}{}", "", ends[0], "", ends[1]))]);
    if let Some((place, words)) = mark {
        let column = places(points, columns * 2).get(place).map_or(0, |dot| dot / 2);
        // On the side where there is room.
        let text = if column + 2 + words.chars().count() <= columns {
            format!("{:column$}\u{2191} {words}", "")
        } else {
            let before = (column + 1).saturating_sub(words.chars().count() + 2);
            format!("{:before$}{words} \u{2191}", "")
        };
        page.pieces(0, &[(PLAIN, &format!("{:SCALE$}  {text}", ""))]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Look;

    #[test]
    fn a_sparkline_has_the_last_values() {
        assert_eq!(sparkline(&[9.0, 0.0, 1.0, 2.0], 3), "\u{2581}\u{2585}\u{2588}");
        assert_eq!(sparkline(&[0.0, 0.0], 8), "\u{2581}\u{2581}");
        assert_eq!(sparkline(&[], 8), "");
        assert_eq!(sparkline(&[f64::NAN, 1.0], 8).chars().count(), 2);
    }

    #[test]
    fn a_curve_rises_and_stays() {
        // A line up to the middle of a logarithmic axis, and level from there.
        let points = [(1.0, 0.0), (10.0, 8.0), (100.0, 8.0)];
        let drawn = curve(&points, 6, 2);
        assert_eq!(
            drawn,
            ["\u{2800}\u{2880}\u{2814}\u{2809}\u{2809}\u{2809}", "\u{2860}\u{280a}\u{2800}\u{2800}\u{2800}\u{2800}"]
        );
        assert_eq!(curve(&[(1.0, 0.0), (1.0, 0.0)], 2, 1), ["\u{2840}\u{2800}"]);
        assert_eq!(curve(&[], 1, 1), ["\u{2800}"]);
    }

    #[test]
    fn a_curve_fits_its_page_with_its_mark() {
        for width in [40, 60, 80, 120] {
            let points: Vec<(f64, f64)> = (1..=40).map(|n| (f64::from(n) * 1e4, f64::from(n.min(20)))).collect();
            for place in [0, 19, 39] {
                let mut page = Page::new(Look { width, unicode: true, ..Look::default() });
                let mark = Some((place, "the smallest on the plateau"));
                put_curve(&mut page, &points, "100 Mbit/s", ["10,000", "400,000"], mark);
                let text = anstream::adapter::strip_str(&page.finish()).to_string();
                assert!(text.lines().all(|line| line.chars().count() <= width.max(48)), "{text}");
                assert_eq!(text.matches('\u{2191}').count(), 1, "{text}");
            }
        }
    }
}
