//! Goodput and processor time per byte over TUN, MTU 1500, one connection with this machine's kernel: the engine beside
//! smoltcp and beside the kernel's own TCP over its loopback, all in one run and in alternation.
//! `cargo run --profile dist -p fullpipe-stack --example bench_tcp [-- SECONDS [ROUNDS [NAME]]]`; with
//! a name, only the contenders whose name has it (`64 KB`), or the many connections (`1000 connections`): for
//! a profiler.
//!
//! Each stack is one thread that polls, works and waits, as smoltcp's own benchmark does. What is *not* compared: latency,
//! losses.

mod engine;
mod kernel;
mod many;
mod smoltcp;
mod world;

use std::{process::ExitCode, time::Duration};

use fullpipe_lab::enter_user_namespace;
use world::{Figures, Result, World};

/// Which way the stack's data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Sends,
    Receives,
}

/// A stack to measure.
struct Contender {
    name: &'static str,
    run: fn(&World, Way, Duration) -> Result<Figures>,
}

const CONTENDERS: &[Contender] = &[
    Contender { name: "fullpipe, its default and 64 KB", run: engine::small },
    Contender { name: "fullpipe, its default and 1 MB", run: engine::medium },
    Contender { name: "fullpipe, for fast paths", run: engine::large },
    Contender { name: "smoltcp 0.13, 64 KB", run: smoltcp::small },
    Contender { name: "smoltcp 0.13, 1 MB", run: smoltcp::large },
    Contender { name: "the kernel, loopback", run: kernel::run },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| arguments.get(at).map_or(Ok(default), |text| text.parse::<u32>());
    let (Ok(seconds), Ok(rounds)) = (number(0, 2), number(1, 5)) else {
        eprintln!("usage: bench_tcp [SECONDS [ROUNDS [NAME]]]");
        return ExitCode::from(2);
    };
    let only = arguments.get(2).map_or("", String::as_str);
    match enter_user_namespace().map_err(Into::into).and_then(|()| run(seconds.into(), rounds, only)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench_tcp: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(seconds: u64, rounds: u32, only: &str) -> Result<()> {
    let world = World::new()?;
    let contenders: Vec<&Contender> = CONTENDERS.iter().filter(|contender| contender.name.contains(only)).collect();
    for way in [Way::Sends, Way::Receives].into_iter().filter(|_| !contenders.is_empty()) {
        let mut all: Vec<Vec<Figures>> = contenders.iter().map(|_| Vec::new()).collect();
        for _ in 0..rounds {
            for (contender, figures) in contenders.iter().zip(&mut all) {
                figures.push((contender.run)(&world, way, Duration::from_secs(seconds))?);
            }
        }
        show(way, &contenders, &mut all);
    }
    show_many(&world, seconds, rounds, only)?;
    println!("Medians of {rounds} rounds of {seconds} s in alternation; least to most in brackets.");
    println!(
        "CPU per byte: of the stack's thread, of it outside of the kernel, and of the whole process with the kernel's end."
    );
    Ok(())
}

/// Many connections at once beside one, of which the aim is 0.7 for ten thousand.
fn show_many(world: &World, seconds: u64, rounds: u32, only: &str) -> Result<()> {
    let cases = many::CASES.iter().filter(|(connections, _)| format!("{connections} connections").contains(only));
    let cases: Vec<_> = cases.collect();
    if cases.is_empty() {
        return Ok(());
    }
    let mut all: Vec<Vec<Figures>> = cases.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for ((connections, budget), figures) in cases.iter().copied().zip(&mut all) {
            figures.push(many::run(world, *connections, *budget, Duration::from_secs(seconds))?);
        }
    }
    println!(
        "{:<34}{:>10}{:>18}{:>10}{:>16}",
        "connections, buffers for each", "Gbit/s", "stack ns/KB", "own", "of one"
    );
    let mut one = None;
    for ((connections, budget), figures) in cases.into_iter().zip(&mut all) {
        figures.sort_by(|a, b| a.stack_ns_per_kb.total_cmp(&b.stack_ns_per_kb));
        let Figures { gbps, stack_ns_per_kb, own_ns_per_kb, .. } = figures[figures.len() / 2];
        let one = *one.get_or_insert(stack_ns_per_kb);
        let name = format!("{connections}, {budget}");
        let ratio = one / stack_ns_per_kb;
        println!("{name:<34}{gbps:>10.2}{stack_ns_per_kb:>18.0}{own_ns_per_kb:>10.0}{ratio:>16.2}");
    }
    println!();
    Ok(())
}

fn show(way: Way, contenders: &[&Contender], all: &mut [Vec<Figures>]) {
    let title = match way {
        Way::Sends => "the stack sends",
        Way::Receives => "the stack receives",
    };
    println!("{title:<34}{:>10}{:>18}{:>16}{:>10}{:>14}", "Gbit/s", "", "stack ns/KB", "own", "both ns/KB");
    let mut medians = Vec::new();
    for (contender, figures) in contenders.iter().zip(all) {
        figures.sort_by(|a, b| a.gbps.total_cmp(&b.gbps));
        let (least, most) = (figures[0].gbps, figures[figures.len() - 1].gbps);
        let median = figures[figures.len() / 2];
        let Figures { gbps, stack_ns_per_kb, own_ns_per_kb, both_ns_per_kb } = median;
        let range = format!("({least:.2} to {most:.2})");
        println!(
            "{:<34}{gbps:>10.2}{range:>18}{stack_ns_per_kb:>16.0}{own_ns_per_kb:>10.0}{both_ns_per_kb:>14.0}",
            contender.name
        );
        medians.push(gbps);
    }
    let best = |prefix: &str| {
        let named = contenders.iter().zip(&medians).filter(|(contender, _)| contender.name.starts_with(prefix));
        named.map(|(_, gbps)| *gbps).fold(0.0, f64::max)
    };
    if contenders.len() < CONTENDERS.len() {
        return println!();
    }
    let aim = if way == Way::Sends { 3.0 } else { 2.0 };
    println!("{:<34}{:>10.2} times smoltcp's best (aim: {aim})\n", "", best("fullpipe") / best("smoltcp"));
}
