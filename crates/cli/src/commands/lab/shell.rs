//! `fullpipe lab shell`.

use std::{
    ffi::OsString,
    os::unix::process::ExitStatusExt,
    process::{Child, Command, ExitStatus, Stdio},
};

use fullpipe_lab::{Lab, LabHost};
use fullpipe_path::{Direction, HopStats, Scenario, Side};
use fullpipe_sim::knob;

use crate::{
    args::{LabHost as HostArg, LabShellArgs},
    failure::Failure,
    interrupt,
    output::Output,
};

/// Runs the command; gives its exit code.
pub(crate) fn run(args: &LabShellArgs, output: Output) -> Result<u8, Failure> {
    let scenario = match &args.scenario {
        Some(named) => super::scenario(named)?,
        None => of_flags(args)?,
    };
    super::enter()?;
    interrupt::leave_to_command()?;
    let lab = Lab::start(&scenario)?;
    let side = match args.host {
        HostArg::A => Side::A,
        HostArg::B => Side::B,
    };
    let (here, there) = (side.ipv4(), side.other().ipv4());
    output.remark(&format!("{}: this is host {side}, {here}; host {} is {there}\n", scenario.name, side.other()));
    let mut other = args.other.as_deref().map(|text| start_other(lab.host(side.other()), text)).transpose()?;
    let command = if args.command.is_empty() { vec![shell()] } else { args.command.clone() };
    let ended = spawn(lab.host(side), &command).and_then(|mut child| {
        child.wait().map_err(|error| Failure::system(&format!("waiting for {}", command[0].display()), &error))
    });
    if ended.is_ok() {
        tell(&lab, output);
    }
    if let Some(other) = &mut other {
        // It may have ended by itself; whatever it did, it has no path any more.
        drop(other.kill());
        drop(other.wait());
    }
    Ok(code(ended?))
}

/// The path of one link that the flags describe.
fn of_flags(args: &LabShellArgs) -> Result<Scenario, Failure> {
    // Both are there where no scenario is.
    let (rate, rtt) = (args.rate.unwrap_or_default(), args.rtt.unwrap_or_default());
    Ok(Scenario::of_path(&format!("{rate} over {rtt}"), knob::link(rate, rtt, &args.loss, &args.queue)?))
}

/// Says what the path did, and whether what was seen over it is the path's doing.
fn tell(lab: &Lab, output: Output) {
    for direction in Direction::ALL {
        let hops = lab.path_stats(direction);
        let arrived = hops.last().map_or(0, |hop| hop.delivered);
        let dropped: u64 = hops.iter().map(HopStats::dropped).sum();
        if arrived + dropped > 0 {
            output.remark(&format!("{direction}: {arrived} packets arrived, {dropped} dropped\n"));
        }
    }
    match (lab.path_error(), lab.valid()) {
        (_, Err(error)) => output.warning(&format!("warning: {error}\n")),
        (error, Ok(())) if error.released > 0 => output.remark(&format!("emulated path: {error}\n")),
        _ => {}
    }
}

/// The exit code as a shell would tell it: 128 and the signal's number for a command that a signal ended.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// The user's shell.
fn shell() -> OsString {
    std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into())
}

fn spawn(host: &LabHost, words: &[OsString]) -> Result<Child, Failure> {
    let (program, arguments) = words.split_first().expect("a command has at least its program");
    with_this_program(host.command(program))
        .args(arguments)
        .spawn()
        .map_err(|error| Failure::system(&format!("running {} on host {}", program.display(), host.name()), &error))
}

/// Lets the command find this very program as `fullpipe`, wherever it lies.
fn with_this_program(mut command: Command) -> Command {
    let own = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
    let search = std::env::var_os("PATH").unwrap_or_default();
    if let Ok(search) = std::env::join_paths(std::env::split_paths(&search).chain(own)) {
        command.env("PATH", search);
    }
    command
}

fn start_other(host: &LabHost, text: &str) -> Result<Child, Failure> {
    // Not from this terminal: the command on this side has it.
    with_this_program(host.command("/bin/sh"))
        .args(["-c", text])
        .stdin(Stdio::null())
        .spawn()
        .map_err(|error| Failure::system(&format!("running `{text}` on host {}", host.name()), &error))
}
