//! How fast captures are read, beside tcptrace and tshark on the same warm files in one run.
//!
//! - `bench_capture [PROGRAM]` makes files below the temporary folder (2.6 GB, deleted at the end), reads each several
//!   times with everything in turn, and prints medians. PROGRAM is a `fullpipe`, whose `read` is then measured too.
//! - `bench_capture count [--ahead] [--piece BYTES] FILE...` reads down to segments, and counts them per connection.
//! - `bench_capture make full|headers|many FILE` makes one of the files.

mod compare;
mod count;
mod make;

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["count", rest @ ..] => count::run(rest),
        ["make", kind, path] => make::make(make::Kind::named(kind).ok_or("full, headers or many")?, Path::new(path))?,
        [] => compare::run(None)?,
        [program] => compare::run(Some(program))?,
        _ => return Err("see the first lines of this example".into()),
    }
    Ok(())
}
