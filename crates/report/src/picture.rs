//! One chart as a picture, for a ticket or a wiki: SVG, or PNG. The colours are the page's light ones.
//!
//! What is *not* here: the series (`fullpipe_page`).

use std::{collections::HashSet, sync::Once};

use fullpipe_capture::Mark;
use fullpipe_chart::{Kind, Panel, Shape};
use fullpipe_units::{Bytes, Micros, Rate};
use maud::html;
use plotters::{
    coord::Shift,
    prelude::*,
    style::{
        register_font,
        text_anchor::{HPos, Pos, VPos},
    },
};

use fullpipe_page::html::{Chart, Charts, STYLE, TraceChart, headline, with_curves};
use serde_json::Value;

use crate::clean;

/// How a picture is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines and text, for any size.
    Svg,
    /// Points, for where SVG isn't taken.
    Png,
}

/// The charts of a result that can be a picture, by their titles, in the order of the page.
pub fn titles(document: &Value, charts: &Charts) -> Vec<String> {
    let charts = with_curves(document, charts.clone());
    subjects(document, &charts).map(|(title, _)| title).collect()
}

/// Chart `number`, from 1, of those as a picture; `None` where there are fewer.
///
/// # Errors
///
/// What the drawing failed of, in words.
pub fn numbered(document: &Value, charts: &Charts, number: usize, format: Format) -> Option<Result<Vec<u8>, String>> {
    let charts = with_curves(document, charts.clone());
    let (_, subject) = subjects(document, &charts).nth(number.checked_sub(1)?)?;
    Some(draw(subject, &headline(document), format))
}

fn subjects<'a>(document: &'a Value, charts: &'a Charts) -> impl Iterator<Item = (String, Subject<'a>)> {
    let named = move |title: &str, of: Option<(&'static str, usize)>| {
        let Some((key, place)) = of else { return title.to_owned() };
        let direction = document[key][place]["direction"].as_str().map(|name| format!(", {}", clean(name)));
        let place = direction.unwrap_or_else(|| format!(", {} {}", key.trim_end_matches('s'), place + 1));
        let after = if key == "transfers_after" { ", with the changes" } else { "" };
        format!("{title}{place}{after}")
    };
    let series = charts.charts.iter().map(move |chart| (named(&chart.title, chart.of), Subject::Chart(chart)));
    let traces = charts
        .traces
        .iter()
        .map(move |chart| (named(&chart.title, Some(("connections", chart.connection))), Subject::Trace(chart)));
    series.chain(traces)
}

/// What is drawn.
#[derive(Clone, Copy, Debug)]
enum Subject<'a> {
    /// Series over one axis.
    Chart(&'a Chart),
    /// Segments over time.
    Trace(&'a TraceChart),
}

const WIDTH: u32 = 960;
const PANEL: u32 = 200;
const TRACE: u32 = 460;
const MARGIN: i32 = 20;
/// Room for the labels left of a panel.
const LABELS: i32 = 92;
/// PNG: points for each length of the drawing, for screens with narrow points.
const POINTS: u32 = 2;
/// PNG: it is drawn larger, and each point is the mean of this many squared.
const OVERSAMPLED: u32 = 2;

type Drawn<T, B> = Result<T, DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

/// The picture of `subject` under a headline.
fn draw(subject: Subject<'_>, headline: &str, format: Format) -> Result<Vec<u8>, String> {
    static FONT: Once = Once::new();
    FONT.call_once(|| {
        // The one style that is used; text that is measured for SVG is of about the same width in any sans serif.
        let font = epaint_default_fonts::UBUNTU_LIGHT;
        assert!(register_font("sans-serif", FontStyle::Normal, font).is_ok(), "the built-in font can be read");
    });
    let headline = &without_arrow(headline);
    let height = height(subject);
    match format {
        Format::Svg => {
            let mut svg = String::new();
            let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
            paint(&area, subject, headline, 1).and_then(|()| area.present()).map_err(|error| error.to_string())?;
            drop(area);
            let title = html! { title { (headline) } }.into_string();
            Ok(svg.replacen(">\n", &format!(">\n{title}\n"), 1).into_bytes())
        }
        Format::Png => {
            let scale = POINTS * OVERSAMPLED;
            let size = (WIDTH * scale, height * scale);
            let mut points = vec![0; (size.0 * size.1 * 3) as usize];
            let area = BitMapBackend::with_buffer(&mut points, size).into_drawing_area();
            paint(&area, subject, headline, scale).and_then(|()| area.present()).map_err(|error| error.to_string())?;
            drop(area);
            png(&smaller(&points, size.0 as usize), (WIDTH * POINTS, height * POINTS))
                .map_err(|error| error.to_string())
        }
    }
}

fn height(subject: Subject<'_>) -> u32 {
    let head = 68;
    head + match subject {
        Subject::Chart(chart) => {
            let legend = if chart.bands.is_empty() { 0 } else { 24 };
            legend + PANEL * chart.panels.len() as u32 + 30
        }
        Subject::Trace(_) => 24 + TRACE,
    }
}

/// Each point the mean of a square.
fn smaller(points: &[u8], width: usize) -> Vec<u8> {
    let by = OVERSAMPLED as usize;
    let rows = points.len() / (width * 3) / by;
    let mut small = Vec::with_capacity(points.len() / (by * by));
    for row in 0..rows {
        for column in 0..width / by {
            for channel in 0..3 {
                let at = |down: usize, right: usize| {
                    usize::from(points[((row * by + down) * width + column * by + right) * 3 + channel])
                };
                let sum: usize =
                    (0..by).flat_map(|down| (0..by).map(move |right| (down, right))).map(|(d, r)| at(d, r)).sum();
                small.push((sum / (by * by)) as u8);
            }
        }
    }
    small
}

fn png(points: &[u8], (width, height): (u32, u32)) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(points)?;
    Ok(file)
}

/// The colour that the page's style has for a role.
fn colour(role: &str) -> RGBColor {
    let value = STYLE.split_once(&format!("--{role}:")).map_or("#777777", |(_, rest)| rest);
    let hex: String = value.trim_start_matches([' ', '#']).chars().take_while(char::is_ascii_hexdigit).collect();
    // Minified, a colour may have three digits.
    let hex = if hex.len() == 3 { hex.chars().flat_map(|digit| [digit, digit]).collect() } else { hex };
    let number = u32::from_str_radix(&hex, 16).unwrap_or(0x77_77_77);
    let [_, red, green, blue] = number.to_be_bytes();
    RGBColor(red, green, blue)
}

fn text(size: u32, scale: u32, role: &str) -> TextStyle<'static> {
    let colour = colour(role).to_backend_color();
    TextStyle { color: colour, ..("sans-serif", f64::from(size * scale)).into_font().into() }
}

fn paint<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    subject: Subject<'_>,
    headline: &str,
    scale: u32,
) -> Drawn<(), B> {
    area.fill(&WHITE)?;
    let px = |length: i32| length * scale as i32;
    area.draw(&Text::new(headline.to_owned(), (px(MARGIN), px(14)), text(20, scale, "text")))?;
    let (head, rest) = area.split_vertically(px(68));
    match subject {
        Subject::Chart(chart) => {
            head.draw(&Text::new(chart.title.clone(), (px(MARGIN), px(42)), text(14, scale, "quiet")))?;
            let mut rest = rest;
            if !chart.bands.is_empty() {
                let (legend, below) = rest.split_vertically(px(24));
                let mut bands: Vec<(&str, &str)> = Vec::new();
                for band in &chart.bands {
                    if !bands.iter().any(|(label, _)| *label == band.label) && bands.len() < 8 {
                        bands.push((&band.label, &band.role));
                    }
                }
                key(&legend, bands.into_iter().map(|(label, role)| (label, role, Key::Area)), MARGIN, scale)?;
                rest = below;
            }
            let (panels, _) = rest.split_vertically(px((PANEL * chart.panels.len() as u32) as i32 + 24));
            let mut from = 0;
            for (place, panel) in chart.panels.iter().enumerate() {
                let is_last = place + 1 == chart.panels.len();
                let tall = PANEL as i32 + if is_last { 24 } else { 0 };
                let area = panels.clone().shrink((0, px(from)), (px(WIDTH as i32), px(tall)));
                paint_panel(&area, chart, panel, (place == 0, is_last), scale)?;
                from += tall;
            }
        }
        Subject::Trace(chart) => {
            let title = format!("{}: {} to {}", chart.title, chart.ends[0], chart.ends[1]);
            head.draw(&Text::new(title, (px(MARGIN), px(42)), text(14, scale, "quiet")))?;
            let (legend, area) = rest.split_vertically(px(24));
            let marks = [
                ("data", "flight", Mark::Data),
                ("retransmitted or reordered", "again", Mark::Again),
                ("acknowledged", "acked", Mark::Ack),
                ("SACK block", "sack", Mark::Sack),
            ];
            let seen = marks.iter().filter(|mark| chart.trace.points.iter().any(|point| point.mark == mark.2));
            let window = chart.has_windows.then_some(("offered window", "window", Key::Line));
            key(&legend, seen.map(|mark| (mark.0, mark.1, Key::Line)).chain(window), MARGIN, scale)?;
            paint_trace(&area, chart, scale)?;
        }
    }
    Ok(())
}

/// The font that comes along has no arrow.
fn without_arrow(text: &str) -> String {
    text.replace('\u{2192}', "->")
}

/// What stands for a colour in a legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Line,
    Area,
}

/// Names and their colours on one line.
fn key<'a, B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    names: impl Iterator<Item = (&'a str, &'a str, Key)>,
    from: i32,
    scale: u32,
) -> Drawn<(), B> {
    let px = |length: i32| length * scale as i32;
    let style = text(13, scale, "text");
    let mut from = px(from);
    for (name, role, kind) in names {
        let name = &*without_arrow(name);
        match kind {
            Key::Area => {
                let square = [(from, px(6)), (from + px(12), px(18))];
                area.draw(&Rectangle::new(square, colour(role).filled()))?;
            }
            Key::Line => {
                let line = colour(role).stroke_width(3 * scale);
                area.draw(&PathElement::new([(from, px(12)), (from + px(14), px(12))], line))?;
            }
        }
        from += px(18);
        let middle = style.pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(name.to_owned(), (from, px(12)), middle))?;
        let (width, _) = area.estimate_text_size(name, &style)?;
        from += width as i32 + px(18);
    }
    Ok(())
}

fn paint_panel<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    chart: &Chart,
    panel: &Panel,
    (is_first, is_last): (bool, bool),
    scale: u32,
) -> Drawn<(), B> {
    let px = |length: i32| length * scale as i32;
    let (legend, area) = area.split_vertically(px(24));
    key(&legend, panel.series.iter().map(|line| (line.name.as_str(), line.role, Key::Line)), LABELS + 6, scale)?;
    // A factor is a distance; the labels undo it.
    let place = |x: f64| if chart.is_log { x.log2() } else { x };
    let (Some(from), Some(to)) = (chart.x.first(), chart.x.last()) else { return Ok(()) };
    let across = place(*from)..place(*to).max(place(*from) + f64::EPSILON);
    let highest = panel.series.iter().flat_map(|line| line.y.iter().flatten().copied()).fold(0.0, f64::max);
    let top = if highest > 0.0 { highest * 1.12 } else { 1.0 };
    let mut plot = ChartBuilder::on(&area)
        .margin_right(px(2 * MARGIN))
        .margin_left(px(6))
        .x_label_area_size(px(if is_last { 44 } else { 22 }))
        .y_label_area_size(px(LABELS))
        .build_cartesian_2d(across, 0.0..top)?;
    for band in &chart.bands {
        let (from, to) = (place(band.from.max(*from)), place(band.to.min(*to)));
        if from < to {
            let tint = colour(&band.role);
            plot.draw_series([Rectangle::new([(from, 0.0), (to, top)], tint.mix(0.1).filled())])?;
            if is_first {
                plot.draw_series([Rectangle::new([(from, top * 0.955), (to, top)], tint.filled())])?;
            }
        }
    }
    let label = |x: &f64| short(chart.unit, if chart.is_log { x.exp2() } else { *x });
    let value = |y: &f64| short(panel.unit, *y);
    plot.configure_mesh()
        .x_labels(9)
        .y_labels(5)
        .x_label_formatter(&label)
        .y_label_formatter(&value)
        .light_line_style(TRANSPARENT)
        .bold_line_style(colour("grid").stroke_width(scale))
        .axis_style(colour("line").stroke_width(scale))
        .label_style(text(12, scale, "quiet"))
        .axis_desc_style(text(12, scale, "quiet"))
        .x_desc(if is_last { chart.axis.as_str() } else { "" })
        .y_desc(panel.label.as_str())
        .draw()?;
    if let Some(plateau) = chart.plateau {
        let line = [(place(plateau), 0.0), (place(plateau), top)];
        plot.draw_series(DashedLineSeries::new(line, px(3), px(4), colour("quiet").stroke_width(scale)))?;
        if is_first {
            let style = text(12, scale, "quiet").pos(Pos::new(HPos::Left, VPos::Top));
            plot.draw_series([EmptyElement::at((place(plateau), top)) + Text::new(" plateau", (px(2), px(2)), style)])?;
        }
    }
    for line in &panel.series {
        let ink = colour(line.role);
        let stroke = ink.stroke_width(2 * scale);
        // Where nothing was seen there is a gap, but between the few points of a curve.
        let places: Vec<Option<(f64, f64)>> =
            chart.x.iter().zip(&line.y).map(|(x, y)| y.map(|y| (place(*x), y))).collect();
        let runs: Vec<Vec<(f64, f64)>> = if line.shape == Shape::Points {
            vec![places.into_iter().flatten().collect()]
        } else {
            places.split(Option::is_none).map(|run| run.iter().flatten().copied().collect()).collect()
        };
        for run in runs.into_iter().filter(|run| !run.is_empty()) {
            match line.shape {
                Shape::Dashed => {
                    plot.draw_series(DashedLineSeries::new(run, px(7), px(5), ink.stroke_width(scale)))?;
                }
                Shape::Step => {
                    plot.draw_series(LineSeries::new(stairs(&run), stroke))?;
                }
                Shape::Line => {
                    plot.draw_series(LineSeries::new(run, stroke))?;
                }
                Shape::Points => {
                    plot.draw_series(LineSeries::new(run.iter().copied(), stroke))?;
                    plot.draw_series(run.into_iter().map(|at| Circle::new(at, px(4), ink.filled())))?;
                }
            }
        }
    }
    Ok(())
}

/// A value holds until the next.
fn stairs(run: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut stairs: Vec<(f64, f64)> = Vec::with_capacity(run.len() * 2);
    for &(x, y) in run {
        if let Some(&(_, before)) = stairs.last() {
            stairs.push((x, before));
        }
        stairs.push((x, y));
    }
    stairs
}

fn paint_trace<B: DrawingBackend>(area: &DrawingArea<B, Shift>, chart: &TraceChart, scale: u32) -> Drawn<(), B> {
    let px = |length: i32| length * scale as i32;
    let points = &chart.trace.points;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Ok(()) };
    let reaches = |mark: Mark| mark != Mark::Ack || chart.has_windows;
    let end = |point: &fullpipe_capture::Point| point.seq + if reaches(point.mark) { i64::from(point.len) } else { 0 };
    let low = points.iter().map(|point| point.seq).min().unwrap_or(0);
    let high = points.iter().map(end).max().unwrap_or(1).max(low + 1);
    let (from, to) = (seconds(first.at_ns), seconds(last.at_ns).max(seconds(first.at_ns) + 1e-6));
    let mut plot = ChartBuilder::on(area)
        .margin_right(px(2 * MARGIN))
        .margin_left(px(6))
        .x_label_area_size(px(44))
        .y_label_area_size(px(LABELS))
        .build_cartesian_2d(from..to, low as f64..high as f64)?;
    plot.configure_mesh()
        .x_labels(9)
        .y_labels(8)
        .x_label_formatter(&|x| short(Kind::Seconds, *x))
        .y_label_formatter(&|y| short(Kind::Bytes, *y))
        .light_line_style(TRANSPARENT)
        .bold_line_style(colour("grid").stroke_width(scale))
        .axis_style(colour("line").stroke_width(scale))
        .label_style(text(12, scale, "quiet"))
        .axis_desc_style(text(12, scale, "quiet"))
        .x_desc("time")
        .y_desc("sequence number")
        .draw()?;
    // What falls on the same dot is drawn once.
    let dots = (f64::from(WIDTH), f64::from(TRACE));
    let dot = |at_ns: u64, seq: i64| {
        let across = (seconds(at_ns) - from) / (to - from) * dots.0;
        let up = (seq - low) as f64 / (high - low) as f64 * dots.1;
        (across as i32, up as i32)
    };
    for is_window in [true, false] {
        if is_window && !chart.has_windows {
            continue;
        }
        let mut stairs = Vec::new();
        let (mut before, mut place) = (None, None);
        for point in points.iter().filter(|point| point.mark == Mark::Ack) {
            let level = point.seq + if is_window { i64::from(point.len) } else { 0 };
            let here = dot(point.at_ns, level);
            if place == Some(here) {
                continue;
            }
            stairs.extend(before.map(|before: i64| (seconds(point.at_ns), before as f64)));
            stairs.push((seconds(point.at_ns), level as f64));
            (before, place) = (Some(level), Some(here));
        }
        let ink = colour(if is_window { "window" } else { "acked" });
        plot.draw_series(LineSeries::new(stairs, ink.stroke_width(scale + scale / 2)))?;
    }
    for (mark, role, wide) in [(Mark::Sack, "sack", 3), (Mark::Data, "flight", 2), (Mark::Again, "again", 3)] {
        let mut there = HashSet::new();
        let ink = colour(role).stroke_width(wide * scale);
        for point in points.iter().filter(|point| point.mark == mark) {
            if there.insert((dot(point.at_ns, point.seq), dot(point.at_ns, end(point)))) {
                let at = seconds(point.at_ns);
                // At least a dot tall.
                let least = (high - low) as f64 / dots.1 * 2.0;
                let top = (end(point) as f64).max(point.seq as f64 + least);
                plot.draw_series([PathElement::new([(at, point.seq as f64), (at, top)], ink)])?;
            }
        }
    }
    Ok(())
}

/// A value for the ticks of an axis.
fn short(kind: Kind, value: f64) -> String {
    let whole = value.max(0.0).round() as u64;
    match kind {
        Kind::Seconds => format!("{} s", (value * 1e6).round() / 1e6),
        Kind::Micros => Micros::new(whole).to_string(),
        Kind::Bytes => Bytes::new(whole).to_string(),
        Kind::Rate => Rate::from_bps(whole).to_string(),
        Kind::Count => whole.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_capture::{Point, Trace};
    use fullpipe_chart::{Band, Series};

    use super::*;

    fn chart() -> Chart {
        let x: Vec<f64> = (0..100).map(f64::from).collect();
        let y = x.iter().map(|x| ((*x - 50.0).abs() > 0.5).then_some(x * 1e6)).collect();
        let line = Series { name: "payload <b>".to_owned(), role: "rate", shape: Shape::Line, y };
        Chart {
            title: "over time".to_owned(),
            axis: "time".to_owned(),
            x,
            panels: vec![Panel { label: "throughput".to_owned(), unit: Kind::Rate, series: vec![line] }],
            bands: vec![Band {
                from: 0.0,
                to: 60.0,
                label: "receive window".to_owned(),
                role: "receive-window".to_owned(),
            }],
            ..Chart::default()
        }
    }

    #[test]
    fn a_picture_has_its_lines_its_colours_and_no_markup_of_a_name() {
        let svg = String::from_utf8(draw(Subject::Chart(&chart()), "6 Mbit/s <script>", Format::Svg).unwrap()).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("<title>6 Mbit/s &lt;script&gt;</title>"));
        assert!(!svg.contains("<script") && !svg.contains("<b>"), "{svg}");
        // The series has a gap, so that it is two lines; the limiter's colour is the page's.
        assert_eq!(svg.matches("stroke=\"#0B5CAD\" stroke-width=\"2\"").count(), 2, "{svg}");
        assert!(svg.contains("#0072B2") && svg.contains("receive window") && svg.contains("throughput"));
    }

    #[test]
    fn a_plateau_is_marked_and_arrows_are_written_in_the_font_that_there_is() {
        let mut chart = chart();
        chart.plateau = Some(40.0);
        chart.panels[0].series[0].name = "a \u{2192} b".to_owned();
        let svg = String::from_utf8(draw(Subject::Chart(&chart), "a \u{2192} b", Format::Svg).unwrap()).unwrap();
        assert!(svg.contains("plateau") && svg.contains("a -&gt; b") && !svg.contains('\u{2192}'), "{svg}");
    }

    #[test]
    fn colours_are_the_pages() {
        assert_eq!(colour("rate"), RGBColor(0x0b, 0x5c, 0xad));
        assert_eq!(colour("no-such-role"), RGBColor(0x77, 0x77, 0x77));
    }

    #[test]
    fn a_png_is_of_the_size_that_was_drawn_and_not_empty() {
        let file = draw(Subject::Chart(&chart()), "6 Mbit/s", Format::Png).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&file)).read_info().unwrap();
        let mut points = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut points).unwrap();
        assert_eq!((info.width, info.height), (1_920, 2 * height(Subject::Chart(&chart()))));
        let inked = points.chunks(3).filter(|point| point[0] < 0x40 && point[2] > 0x80).count();
        assert!(inked > 2_000, "the line is there: {inked} points");
    }

    #[test]
    fn a_trace_of_many_segments_is_drawn_once_for_each_dot() {
        let point = |n: u64| Point { at_ns: n * 1_000, number: n, mark: Mark::Data, seq: n as i64 * 1_448, len: 1_448 };
        let trace = Trace { points: (0..200_000).map(point).collect(), seen: 200_000, ..Trace::default() };
        let ends = ["a", "b"].map(str::to_owned);
        let chart = TraceChart {
            connection: 0,
            title: String::new(),
            filter: String::new(),
            ends,
            has_windows: false,
            begins_us: 0,
            trace,
        };
        let svg = draw(Subject::Trace(&chart), "x", Format::Svg).unwrap();
        assert!(svg.len() < 400_000, "{}", svg.len());
    }
}
