//! `fullpipe.read` of the Python package beside `fullpipe read`: the same captures, in alternation, with one thread.
//!
//! Both are told by processor time, which other processes of the machine don't change much, without what starting Python and loading the
//! package takes.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use xshell::Shell;

use super::Arguments;
use crate::{archive, corpus};

const CAPTURES: usize = 40;
/// The part of the program's speed that the package has at least.
const AIM: f64 = 0.9;

/// Measures, and fails where the package is slower than it may be.
pub(super) fn run(shell: &Shell, arguments: &Arguments) -> Result<()> {
    let binary = match &arguments.fullpipe {
        Some(binary) => std::path::absolute(binary)?,
        None => corpus::build(shell)?,
    };
    let (captures, package) = archive::for_bench(shell, &binary, arguments.wheel.clone(), CAPTURES)?;
    let python = |script: &str| {
        let mut command = Command::new(&package.python);
        command.args(["-c", script]);
        if let Some(folder) = &package.folder {
            command.env("PYTHONPATH", folder);
        }
        command
    };
    let mut ratios = Vec::new();
    println!("round  program s  package s  of its speed");
    for round in 1..=arguments.rounds.max(1) {
        let program =
            spent(Command::new(&binary).args(["read", "--quiet", "--threads", "1", "--csv"]).args(&captures))?;
        let start = spent(&mut python("import fullpipe"))?;
        let script = "import fullpipe, sys; fullpipe.read(sys.argv[1:], None, 1, timelines=False)";
        let whole = spent(python(script).args(&captures))?;
        let ratio = program / (whole - start);
        println!("{round:<5}  {program:>9.2}  {:>9.2}  {ratio:>12.2}", whole - start);
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    let middle = ratios[ratios.len() / 2];
    println!("the package has {middle:.2} of the program's speed (aim: {AIM})");
    ensure!(middle >= AIM, "the package is slower than {AIM} of the program");
    Ok(())
}

/// Processor time of a command.
fn spent(command: &mut Command) -> Result<f64> {
    let before = archive::children_s()?;
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().context("start it")?;
    // 24: something of the captures can't be read.
    ensure!(status.success() || status.code() == Some(24), "{command:?}: {status}");
    Ok(archive::children_s()? - before)
}
