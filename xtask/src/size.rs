//! What the smallest IPv4 and TCP application weighs on a microcontroller: the engine in two configurations, and smoltcp
//! built the same way (`xtask/size`), with what each of them can do.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};
use xshell::{Shell, cmd};

const TARGET: &str = "thumbv7em-none-eabihf";

/// One application to weigh.
struct Application {
    name: &'static str,
    binary: &'static str,
    features: &'static str,
    /// The most flash that it may take, in bytes, where there is an aim.
    aim: Option<u32>,
    /// What it can do.
    can: &'static str,
}

const APPLICATIONS: &[Application] = &[
    Application {
        name: "fullpipe, NewReno without SACK",
        binary: "fullpipe",
        features: "",
        aim: Some(49 << 9),
        can: "window scaling, fast retransmit, delayed ACK, Nagle, zero-window probes, path-MTU discovery, challenge ACKs,
  keyed initial numbers, listeners with a backlog, out-of-order data in a shared pool, user timeout, ICMP echo; without counts",
    },
    Application {
        name: "fullpipe, everything",
        binary: "fullpipe",
        features: "everything",
        aim: Some(50 << 10),
        can: "also counts, tables of many sockets, fast open, IPv6, SACK, RACK-TLP, CUBIC, BBR, timestamps and PAWS, ECN, SYN cookies, keepalive, other platforms' policies",
    },
    Application {
        name: "smoltcp 0.13, Reno",
        binary: "smoltcp",
        features: "smoltcp",
        aim: None,
        can: "window scaling, fast retransmit, delayed ACK, Nagle, zero-window probes, challenge ACKs, one SACK hint,
  out-of-order data, keepalive, user timeout, ICMP echo",
    },
];

/// Bytes in flash and in RAM.
struct Weight {
    flash: u32,
    ram: u32,
}

/// Builds and weighs.
pub(crate) fn run(shell: &Shell) -> Result<()> {
    println!("{:<34}{:>12}{:>14}{:>12}", "IPv4 and TCP on a Cortex-M4", "flash, B", "aim, B", "RAM, B");
    for application in APPLICATIONS {
        let weight = build(shell, application)?;
        let Application { name, aim, .. } = application;
        let aim = aim.map_or_else(|| "-".to_owned(), |aim| aim.to_string());
        println!("{name:<34}{:>12}{aim:>14}{:>12}", weight.flash, weight.ram);
    }
    println!("{:<34}not weighed: its sources are not part of this repository\n", "lwIP");
    for Application { name, can, .. } in APPLICATIONS {
        println!("{name}: {can}");
    }
    println!(
        "RAM is static: 4 sockets and 32 buffers of 1548 bytes, or as many bytes of buffers for smoltcp's sockets. The engine's \
         build refuses a socket of more than 640 bytes, with BBR of more than 808."
    );
    Ok(())
}

fn build(shell: &Shell, application: &Application) -> Result<Weight> {
    let Application { binary, features, .. } = application;
    cmd!(
        shell,
        "cargo build --quiet --locked --release --manifest-path xtask/size/Cargo.toml --target {TARGET}
         --bin {binary} --features {features}"
    )
    .quiet()
    .run()?;
    let folder = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "xtask/size/target".to_owned());
    weigh(&shell.current_dir().join(folder).join(TARGET).join("release").join(binary))
}

/// Adds up the sections that are loaded (ELF, 32 bits, little-endian).
fn weigh(path: &Path) -> Result<Weight> {
    const WRITE: u32 = 1;
    const ALLOCATED: u32 = 2;
    const NO_BITS: u32 = 8;
    let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let word = |at: usize| -> Result<u32> {
        let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk()).context("the file ends early")?;
        Ok(u32::from_le_bytes(*bytes))
    };
    if !bytes.starts_with(b"\x7fELF\x01\x01") {
        bail!("{} is no 32-bit little-endian ELF file", path.display());
    }
    let (start, size, count) = (word(32)? as usize, word(46)? & 0xffff, word(48)? & 0xffff);
    let mut weight = Weight { flash: 0, ram: 0 };
    for section in 0..count {
        let at = start + (section * size) as usize;
        let (kind, flags, len) = (word(at + 4)?, word(at + 8)?, word(at + 20)?);
        if flags & ALLOCATED == 0 {
            continue;
        }
        if kind != NO_BITS {
            weight.flash += len;
        }
        if flags & WRITE != 0 {
            weight.ram += len;
        }
    }
    Ok(weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_builds_for_a_microcontroller_within_its_aims() {
        let shell = Shell::new().expect("a folder to be in");
        shell.change_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let library = cmd!(shell, "rustc --print target-libdir --target {TARGET}").quiet().ignore_stderr().read();
        if !library.is_ok_and(|folder| Path::new(&folder).is_dir()) {
            println!(
                "skipped the_engine_builds_for_a_microcontroller_within_its_aims: Rust's library for {TARGET} is missing (rustup target add {TARGET})"
            );
            return;
        }
        for application in APPLICATIONS.iter().filter(|application| application.aim.is_some()) {
            let weight = build(&shell, application).expect("it builds");
            let aim = application.aim.expect("filtered above");
            assert!(weight.flash <= aim, "{}: {} B of flash, {aim} B are the aim", application.name, weight.flash);
        }
    }
}
