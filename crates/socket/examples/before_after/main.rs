//! A naive client at 64 KB and the same client with three lines of this library, over emulated paths between two real
//! kernels, as root:
//!
//! `cargo run --release -p fullpipe-socket --example before_after [-- [--json] [RATE [SECONDS [RTT ...]]]]`
//!
//! Prints the table of `docs/socket.md`.

#[cfg(target_os = "linux")]
mod transfer;

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use fullpipe_socket::{Micros, Rate};

    fullpipe_lab::enter_user_namespace()?;
    let (options, words): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|word| word == "--json");
    let mut words = words.into_iter();
    let rate: Rate = words.next().as_deref().unwrap_or("200M").parse()?;
    let seconds: u64 = words.next().as_deref().unwrap_or("10").parse()?;
    let asked = words.map(|word| word.parse()).collect::<Result<Vec<Micros>, _>>()?;
    let round_trips = if asked.is_empty() { [1, 20, 150].map(Micros::from_millis).to_vec() } else { asked };
    let rows = table::measure(rate, seconds, &round_trips)?;
    if options.is_empty() {
        table::print(rate, seconds, &rows)
    } else {
        table::print_json(&rows)
    }
    Ok(())
}

#[cfg(target_os = "linux")]
mod table {
    use std::{error::Error, time::Duration};

    use fullpipe_socket::{Bytes, Micros, Rate, Wish};

    use crate::transfer::{self, Direction, Outcome, Span};

    /// A lab that another program disturbed says so; then it is asked again.
    const TRIES: usize = 20;

    pub(crate) struct Row {
        rtt: Micros,
        direction: &'static str,
        client: &'static str,
        rate: Rate,
        buffer: u64,
        used: u64,
        said: String,
    }

    fn omitted(seconds: u64) -> u64 {
        seconds * 2 / 5
    }

    pub(crate) fn measure(rate: Rate, seconds: u64, round_trips: &[Micros]) -> Result<Vec<Row>, Box<dyn Error>> {
        let span = Span { whole: Duration::from_secs(seconds), omit: Duration::from_secs(omitted(seconds)) };
        let mut rows = Vec::new();
        for &rtt in round_trips {
            for direction in [Direction::Download, Direction::Upload] {
                for wish in [None, Some(Wish::bulk(rate))] {
                    let outcome = (0..TRIES).find_map(|_| {
                        let lab = transfer::lab(rate, rtt);
                        lab.reset_error_stats();
                        let outcome = transfer::run(&lab, direction, wish, span);
                        let valid = lab.valid().inspect_err(|error| eprintln!("once more: {error}"));
                        valid.is_ok().then_some(outcome)
                    });
                    let outcome = outcome.ok_or("this machine could not keep up with the path")??;
                    rows.push(Row::new(rtt, direction, wish.is_some(), outcome));
                }
            }
        }
        Ok(rows)
    }

    impl Row {
        fn new(rtt: Micros, direction: Direction, tuned: bool, outcome: Outcome) -> Self {
            let memory = outcome.memory;
            let (name, prefix, buffer, used) = match direction {
                Direction::Download => ("download", "receive buffer: ", memory.receive_buffer, memory.receive_used),
                Direction::Upload => ("upload", "send buffer: ", memory.send_buffer, memory.send_used),
            };
            let get = |bytes: Option<Bytes>| bytes.map_or(0, Bytes::get);
            let said = outcome.said.unwrap_or_default();
            Self {
                rtt,
                direction: name,
                client: if tuned { "with the library" } else { "64 KB" },
                rate: outcome.rate,
                buffer: get(buffer),
                used: get(used),
                said: said.lines().find_map(|line| line.strip_prefix(prefix)).unwrap_or_default().to_owned(),
            }
        }
    }

    pub(crate) fn print(rate: Rate, seconds: u64, rows: &[Row]) {
        println!("{rate}, CUBIC down and BBR up, {seconds} s of which the last {} count\n", seconds - omitted(seconds));
        println!("| round trip | direction | client | goodput | buffer, at most | in it, at most |");
        println!("|---|---|---|---|---|---|");
        for Row { rtt, direction, client, rate, buffer, used, .. } in rows {
            let [buffer, used] = [buffer, used].map(|bytes| bytes.div_ceil(1_024));
            println!("| {rtt} | {direction} | {client} | {rate} | {buffer} KiB | {used} KiB |");
        }
        println!();
        for Row { rtt, direction, said, .. } in rows.iter().filter(|row| !row.said.is_empty()) {
            println!("- {rtt}, {direction}: {said}");
        }
    }

    /// No text of these needs an escape.
    pub(crate) fn print_json(rows: &[Row]) {
        let objects = rows.iter().map(|Row { rtt, direction, client, rate, buffer, used, said }| {
            format!(
                r#"{{"rtt_us":{},"direction":"{direction}","client":"{client}","rate_bps":{},"buffer_bytes":{buffer},"used_bytes":{used},"said":"{said}"}}"#,
                rtt.get(),
                rate.bps()
            )
        });
        println!(r#"{{"rows":[{}]}}"#, objects.collect::<Vec<_>>().join(","));
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("the lab needs Linux");
}
