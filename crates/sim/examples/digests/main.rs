//! Prints the digest of many simulations: the same on every system, and before and after a change that must not change
//! behaviour. Run with `cargo run --release -p fullpipe-sim --example digests`; with `-- few`, those that are on record
//! (`tests/digests.txt`).

mod cases;

fn main() {
    let is_all = std::env::args().nth(1).as_deref() != Some("few");
    for case in &cases::cases(is_all) {
        print!("{}", cases::line(case));
    }
}
