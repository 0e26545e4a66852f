//! Prints the digest of many simulations: the same on every system, and before and after a change that must not change
//! behaviour. Run with `cargo run --release -p fullpipe-sim --example digests`; with `-- few`, those that are on record
//! (`tests/digests.txt`).

mod cases;

fn main() {
    let cases = if std::env::args().nth(1).as_deref() == Some("few") { cases::few() } else { cases::all() };
    for case in &cases {
        print!("{}", cases::line(case));
    }
}
