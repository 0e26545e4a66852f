//! A time-sequence graph as a file for xplot, as tcptrace's `-S` writes it.
//!
//! White: segments; red, with an R: sent again, or overtaken; green: acknowledged, with a tick where an acknowledgement
//! repeats; yellow: the end of the offered window; purple, with an S: SACK blocks. Times are seconds since 1970, sequence
//! numbers the connection's own; past a wrap they go on counting.

use std::fmt::Write as _;

use fullpipe_capture::Mark;

use crate::html::TraceChart;

/// The file's text.
pub fn graph(chart: &TraceChart) -> String {
    let mut text = String::new();
    put(chart, &mut text).expect("a string takes all that is written");
    text
}

fn put(chart: &TraceChart, text: &mut String) -> std::fmt::Result {
    let trace = &chart.trace;
    writeln!(text, "timeval double\ntitle")?;
    writeln!(text, "{}_==>_{} (time sequence graph)", chart.ends[0], chart.ends[1])?;
    writeln!(text, "xlabel\ntime\nylabel\nsequence number")?;
    let seq = |number: i64| i64::from(trace.base) + number;
    // Where the two stairs stand, and since when.
    let mut stand: Option<(String, i64, i64)> = None;
    for point in &trace.points {
        let ns = trace.from_ns.saturating_add(point.at_ns);
        let at = format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000);
        let (from, to) = (seq(point.seq), seq(point.seq) + i64::from(point.len));
        match point.mark {
            Mark::Data | Mark::Again => {
                let is_again = point.mark == Mark::Again;
                writeln!(text, "{}", if is_again { "red" } else { "white" })?;
                writeln!(text, "darrow {at} {from}\nuarrow {at} {to}\nline {at} {from} {at} {to}")?;
                if is_again {
                    writeln!(text, "atext {at} {to}\nR")?;
                }
            }
            Mark::Sack => writeln!(text, "purple\nline {at} {from} {at} {to}\nhtick {at} {to}\nltext {at} {to}\nS")?,
            Mark::Ack => {
                let window = if chart.has_windows { to } else { from };
                if let Some((since, ack, limit)) = &stand {
                    let stair = |text: &mut String, colour: &str, before: i64, now: i64, tick: &str| {
                        writeln!(text, "{colour}\nline {since} {before} {at} {before}")?;
                        if before == now {
                            writeln!(text, "{tick} {at} {now}")
                        } else {
                            writeln!(text, "line {at} {before} {at} {now}")
                        }
                    };
                    stair(text, "green", *ack, from, "dtick")?;
                    if chart.has_windows {
                        stair(text, "yellow", *limit, window, "utick")?;
                    }
                }
                stand = Some((at, from, window));
            }
        }
    }
    writeln!(text, "go")
}
