//! How fast captures are read, beside tcptrace and tshark on the same warm files in one run.
//!
//! - `bench_capture` makes files below the temporary folder (at most 1.05 GB at once, deleted at the end), reads each
//!   several times with everything in turn, and prints medians.
//! - `bench_capture count [--ahead] [--piece BYTES] FILE...` reads down to segments, and counts them per connection.
//! - `bench_capture walk FILE` only walks from packet to packet: the floor.
//! - `bench_capture follow [--ahead] [--piece BYTES] [--threads N] FILE...` also follows and judges the connections.
//! - `bench_capture make full|headers|many|short|flood FILE` makes one of the files; the last two are piped where all are
//!   measured, and only their memory counts.

mod compare;
mod count;
mod make;

use std::fs::File;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["walk", path] => count::walk(path)?,
        ["count", rest @ ..] => count::count(rest),
        ["follow", rest @ ..] => count::follow(rest),
        ["make", kind, path] => {
            let kind = make::Kind::named(kind).ok_or("full, headers, many, short or flood")?;
            make::make(kind, File::create(path)?)?;
        }
        [] => compare::run()?,
        _ => return Err("see the first lines of this example".into()),
    }
    Ok(())
}
