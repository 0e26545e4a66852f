//! Runs a scenario of the lab and prints its outcome as Rust sees it: for work on the loop itself.

use std::sync::atomic::AtomicBool;

use fullpipe_path::Scenario;
use fullpipe_tune::{Event, LabRunOptions, demo, lab_run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "demo".to_owned());
    let cancel = AtomicBool::new(false);
    let start = std::time::Instant::now();
    let mut tell = |event: Event<'_>| match event {
        Event::Tick { .. } => {}
        Event::Judged(direction) => {
            eprintln!("{:.1} s: {} {:#?}", start.elapsed().as_secs_f64(), direction.name, direction.diagnosis)
        }
        other => eprintln!("{:.1} s: {other:?}", start.elapsed().as_secs_f64()),
    };
    let outcome = if name == "demo" {
        demo(&cancel, &mut tell)?
    } else {
        let scenario = match std::fs::read_to_string(&name) {
            Ok(text) => Scenario::parse(&text, &name)?,
            Err(_) => Scenario::named(&name)?,
        };
        lab_run(
            &scenario,
            &LabRunOptions { measure_only: std::env::args().nth(2).is_some(), ..LabRunOptions::default() },
            &cancel,
            &mut tell,
        )?
    };
    println!("{:#?}\n{:#?}\n{:#?}", outcome.expectations, outcome.proofs, outcome.path_error);
    for direction in outcome.before.iter().chain(&outcome.after) {
        println!(
            "{} {} steady {:?} rtt {:?} loaded {:?} {:?}",
            direction.name,
            direction.rate_bps,
            direction.steady_bps,
            direction.rtt_us,
            direction.loaded_rtt_us,
            direction.diagnosis.limiter
        );
    }
    Ok(())
}
