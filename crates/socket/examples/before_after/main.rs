//! A naive client at 64 KB and the same client with three lines of this library, over emulated paths between two real
//! kernels: `cargo run --release -p fullpipe-socket --example before_after [-- RATE [SECONDS]]`, as root. Prints the table
//! of `docs/socket.md`.

#[cfg(target_os = "linux")]
mod transfer;

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::time::Duration;

    use fullpipe_socket::{Bytes, Micros, Rate, Wish};
    use transfer::{Direction, Span};

    /// A lab that another program disturbed says so; then it is asked again.
    const TRIES: usize = 5;

    fullpipe_lab::enter_user_namespace()?;
    let mut arguments = std::env::args().skip(1);
    let rate: Rate = arguments.next().as_deref().unwrap_or("200M").parse()?;
    let seconds: u64 = arguments.next().as_deref().unwrap_or("10").parse()?;
    let span = Span { whole: Duration::from_secs(seconds), omit: Duration::from_secs(seconds * 2 / 5) };
    println!("{rate}, CUBIC, {seconds} s of which the last {} s count", (span.whole - span.omit).as_secs());
    println!("| round trip | direction | client | goodput | buffer, at most | in it, at most |");
    println!("|---|---|---|---|---|---|");
    let mut said = String::new();
    for rtt in [1, 20, 150].map(Micros::from_millis) {
        for direction in [Direction::Download, Direction::Upload] {
            for wish in [None, Some(Wish::bulk(rate))] {
                let outcome = (0..TRIES).find_map(|_| {
                    let lab = transfer::lab(rate, rtt);
                    lab.reset_error_stats();
                    let outcome = transfer::run(&lab, direction, wish, span);
                    lab.valid().is_ok().then_some(outcome)
                });
                let outcome = outcome.ok_or("this machine could not keep up with the path")??;
                let (buffer, used) = match direction {
                    Direction::Download => (outcome.memory.receive_buffer, outcome.memory.receive_used),
                    Direction::Upload => (outcome.memory.send_buffer, outcome.memory.send_used),
                };
                let kib = |bytes: Option<Bytes>| bytes.map_or(0, |bytes| bytes.get().div_ceil(1_024));
                let name = if wish.is_some() { "with the library" } else { "64 KB" };
                println!(
                    "| {rtt} | {} | {name} | {} | {} KiB | {} KiB |",
                    format!("{direction:?}").to_lowercase(),
                    outcome.rate,
                    kib(buffer),
                    kib(used)
                );
                if let Some(text) = outcome.said {
                    said += &format!("\n{rtt}, {}\n{text}\n", format!("{direction:?}").to_lowercase());
                }
            }
        }
    }
    println!("{said}");
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("the lab needs Linux");
}
