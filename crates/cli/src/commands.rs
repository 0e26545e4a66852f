//! One thin module per command: arguments in, a call of the room that does it, a report out.

mod agent;
mod apply;
mod archive;
mod completions;
mod confirm;
#[cfg(target_os = "linux")]
mod demo;
mod far;
mod forecast;
mod guard;
mod history;
mod input;
mod journal;
mod lab;
mod lint;
mod man;
mod measure;
mod mesh;
mod outcome;
pub(crate) mod plan;
pub(crate) mod read;
mod reset;
mod serve;
mod settings;
mod share;
mod show;
mod sim;
#[cfg(target_os = "linux")]
mod stack;
mod status;
mod undo;
#[cfg(target_os = "linux")]
mod unpin;
mod watch;
mod web;
pub(crate) mod what_if;

use crate::{
    args::{Cli, Command, Global, LabCommand, StackCommand},
    exit::{self, Exit},
    failure::Failure,
    logs,
    output::Output,
    page::PageArgs,
};

/// How a command ended.
type Ended = Result<Exit, Failure>;

/// Runs the command, and shows its error where it has one; gives the exit code.
pub(crate) fn run(cli: Cli) -> u8 {
    let is_verbose = match &cli.command {
        Command::Measure(args) => args.verbose_as_iperf3,
        Command::Serve(args) => args.verbose_as_iperf3,
        _ => false,
    };
    let output = Output::new(Global { verbose: cli.global.verbose || is_verbose, ..cli.global });
    let tells_by_logs = matches!(&cli.command, Command::Serve(_) | Command::Guard(_));
    let name = name(&cli.command);
    logs::start(name, output, tells_by_logs && (cli.global.verbose || is_verbose));
    let page = page(&cli.command);
    dispatch(cli.command, output).unwrap_or_else(|failure| {
        // Where even the error can't be printed, the exit code still tells.
        drop(output.problem(name, &failure.problem()));
        if let Some(page) = page {
            page.failed(name, &failure, output);
        }
        failure.exit.code()
    })
}

/// Where the page of its result goes, for a command that has one.
fn page(command: &Command) -> Option<PageArgs> {
    let page = match command {
        Command::Demo(args) => &args.page,
        Command::Sim(args) => &args.page,
        Command::WhatIf(args) => &args.page,
        Command::Measure(args) => &args.page,
        Command::Check(args) => &args.page,
        Command::Tune(args) => &args.page,
        Command::Read(args) => &args.page,
        Command::Lab(LabCommand::Run(args)) => &args.page,
        Command::Stack(StackCommand::Table(args)) => &args.page,
        Command::Mesh(args) => return Some(args.page()),
        _ => return None,
    };
    Some(page.clone())
}

fn dispatch(command: Command, output: Output) -> Result<u8, Failure> {
    guard::see_to_leftovers(&command, output);
    let ended = match command {
        Command::Demo(args) if args.sim => sim::demo(&args, output),
        Command::Sim(args) => sim::run(&args, output),
        Command::WhatIf(args) => what_if::run(&args, output),
        Command::Share(args) => share::run(&args, output),
        #[cfg(target_os = "linux")]
        Command::Demo(args) => demo::run(&args, output),
        #[cfg(not(target_os = "linux"))]
        Command::Demo(_) => Err(lab::needs_linux()),
        Command::Serve(args) => serve::run(&args, output),
        Command::Measure(args) => measure::run(&args, output),
        Command::Check(args) => far::check(&args, output),
        Command::Tune(args) => far::tune(&args, output),
        Command::Mesh(args) => mesh::run(&args, output),
        Command::Undo(args) => undo::run(&args, output),
        Command::Confirm(args) => confirm::run(&args, output),
        Command::Show(args) => show::run(&args, output),
        Command::History(args) => history::run(&args, output),
        Command::Status(_) => status::run(output),
        Command::Settings(args) => settings::run(&args, output),
        Command::Plan(args) => plan::run(&args, output),
        Command::Apply(args) => apply::run(&args, output),
        Command::Lint(args) => lint::run(&args, output),
        Command::Read(args) => read::run(&args, output),
        // These two, and `lab shell`: the exit code is another program's.
        Command::Archive(args) => return archive::run(None, &args.words, output),
        Command::Report(args) => return archive::run(Some("report"), &args.words, output),
        Command::Watch(args) => watch::run(&args, output),
        Command::Agent(args) => agent::run(&args, output),
        #[cfg(target_os = "linux")]
        Command::Unpin(args) => unpin::run(&args, output),
        #[cfg(not(target_os = "linux"))]
        Command::Unpin(_) => Err(Failure::new(
            Exit::Unsupported,
            "giving a buffer back to automatic sizing takes Linux 5.15 and its SO_BUF_LOCK; `fullpipe watch` names what is set",
        )),
        Command::Web(args) => web::run(&args, output),
        Command::Reset(args) => reset::run(&args, output),
        Command::Lab(LabCommand::List) => lab::list::run(output),
        #[cfg(not(target_os = "linux"))]
        Command::Lab(LabCommand::Run(_) | LabCommand::Shell(_)) => Err(lab::needs_linux()),
        #[cfg(target_os = "linux")]
        Command::Lab(LabCommand::Run(args)) => lab::run::run(&args, output),
        #[cfg(target_os = "linux")]
        Command::Lab(LabCommand::Shell(args)) => return lab::shell::run(&args, output),
        #[cfg(target_os = "linux")]
        Command::Stack(command) => stack::run(&command, output),
        #[cfg(not(target_os = "linux"))]
        Command::Stack(_) => Err(lab::needs_linux()),
        Command::Completions(args) => completions::run(&args, output),
        Command::Man(args) => man::run(&args, output),
        Command::Guard(args) => guard::run(&args),
        Command::Key(args) => fullpipe_tune::Key::create(&args.file).map(|()| Exit::Ok).map_err(Failure::from),
        Command::ExitCodes => printed(output.page("exit-codes", &exit::markdown())),
    };
    ended.map(Exit::code)
}

/// The name in the JSON.
fn name(command: &Command) -> &'static str {
    match command {
        Command::Demo(_) => "demo",
        Command::Serve(_) => "serve",
        Command::Measure(_) => "measure",
        Command::Check(_) => "check",
        Command::Tune(_) => "tune",
        Command::Mesh(_) => "mesh",
        Command::Undo(_) => "undo",
        Command::Confirm(_) => "confirm",
        Command::Show(_) => "show",
        Command::Guard(_) => "guard",
        Command::Key(_) => "key",
        Command::History(_) => "history",
        Command::Status(_) => "status",
        Command::Settings(_) => "settings",
        Command::Plan(_) => "plan",
        Command::Apply(_) => "apply",
        Command::Lint(_) => "lint",
        Command::Read(_) => "read",
        Command::Archive(_) => "archive",
        Command::Report(_) => "report",
        Command::Watch(_) => "watch",
        Command::Agent(_) => "agent",
        Command::Unpin(_) => "unpin",
        Command::Web(_) => "web",
        Command::Reset(_) => "reset",
        Command::Lab(LabCommand::List) => "lab list",
        Command::Lab(LabCommand::Run(_)) => "lab run",
        Command::Lab(LabCommand::Shell(_)) => "lab shell",
        Command::Stack(StackCommand::Serve(_)) => "stack serve",
        Command::Stack(StackCommand::Connect(_)) => "stack connect",
        Command::Stack(StackCommand::Echo(_)) => "stack echo",
        Command::Stack(StackCommand::Table(_)) => "stack table",
        Command::Stack(StackCommand::Presets(_)) => "stack presets",
        Command::Sim(_) => "sim",
        Command::WhatIf(_) => "what-if",
        Command::Share(_) => "share",
        Command::Completions(_) => "completions",
        Command::Man(_) => "man",
        Command::ExitCodes => "exit-codes",
    }
}

/// Whether the result could be printed.
fn printed(result: std::io::Result<()>) -> Ended {
    result.map(|()| Exit::Ok).map_err(Failure::unprinted)
}
