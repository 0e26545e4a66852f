//! The one table of commands and flags: parsing, help, man pages and completions are made from it.

mod agent;
mod archive;
pub(crate) mod iperf3;
mod measure;
mod mesh;
mod read;
mod settings;
mod share;
mod sim;
mod stack;
mod unpin;
mod watch;
mod web;

use std::{ffi::OsString, num::NonZeroU32, ops::RangeInclusive, path::PathBuf, time::Duration};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, FromArgMatches, Parser, Subcommand, ValueEnum, ValueHint};
use fullpipe_diagnose::Limiter;
use fullpipe_knobs::parse_destination;
use fullpipe_units::{Bytes, Micros, Network, Rate};

use crate::page::PageArgs;

pub(crate) use agent::{AgentArgs, MeterArgs};
pub(crate) use archive::{ArchiveArgs, ReportArgs};
pub(crate) use measure::{Bitrate, MeasureArgs, PatternName};
pub(crate) use mesh::MeshArgs;
pub(crate) use read::ReadArgs;
pub(crate) use settings::{
    ApplyArgs, FailOn, GoalName, Hop, LintArgs, PlanArgs, PlannedPath, ProcedureName, ResetArgs, ResetTo, SettingsArgs,
    Target,
};
pub(crate) use share::ShareArgs;
pub(crate) use sim::{SimArgs, WhatIfArgs};
pub(crate) use stack::StackCommand;
#[cfg(target_os = "linux")]
pub(crate) use stack::{BudgetArgs, EngineArgs, KeepaliveArgs, Preset, ProfileName, StackPresetsArgs, StackTableArgs};
pub(crate) use unpin::UnpinArgs;
pub(crate) use watch::WatchArgs;
pub(crate) use web::WebArgs;

/// Find what keeps a TCP connection below what its path can carry, set the right thing on the right machine so that
/// it can be undone, and prove the gain.
#[derive(Debug, Parser)]
#[command(
    name = "fullpipe",
    version,
    propagate_version = true,
    infer_long_args = true,
    max_term_width = 100,
    after_help = "\
Examples:
  fullpipe demo                     the whole loop on an emulated path, without a server
  fullpipe serve --share-settings   on the far machine
  fullpipe measure far.example      throughput, latency, message sizes; iperf3 servers too
  fullpipe check far.example        measure and diagnose; changes nothing
  fullpipe tune far.example         plan, apply, prove, and keep only what helped
  fullpipe mesh hosts.toml          measure every pair of hosts, name the one at fault
  fullpipe undo --last              put back what the last run changed
  fullpipe settings                 what bounds TCP here, with defaults and meanings
  fullpipe plan --platform windows-2012 --rate 100M --rtt 80ms
  fullpipe what-if --rate 100M --rtt 80ms --sweep receiver.window=16k..8M
  fullpipe read slow.pcap           why the connections of a capture were slow
  fullpipe watch                    why this host's connections are slow right now
  fullpipe unpin iperf3             put buffers back to automatic sizing (Linux)
  fullpipe web --open               reports, checks and captures in a browser

Exit codes: `fullpipe help exit-codes`. JSON: every command takes --json and prints one object.
Logs: RUST_LOG=debug, or RUST_LOG=fullpipe_host=debug, on standard error; JSON lines with --json."
)]
pub(crate) struct Cli {
    /// Flags that every command takes.
    #[command(flatten)]
    pub(crate) global: Global,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags that every command takes.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Global {
    /// Print one JSON object ("schema": "fullpipe/2") instead of text; errors too
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) json: bool,
    /// When to use colours; `auto` also obeys NO_COLOR and CLICOLOR
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub(crate) color: When,
    /// Show all evidence, the source of every change, and small shares
    #[arg(short, long, global = true, action = ArgAction::SetTrue, conflicts_with = "quiet", help_heading = "Output")]
    pub(crate) verbose: bool,
    /// How to report progress; `json`: a line of JSON for each step, on standard error
    #[arg(long, global = true, value_name = "HOW", default_value = "auto", help_heading = "Output")]
    pub(crate) progress: ProgressAs,
    /// Show no progress, only the result
    #[arg(short, long, global = true, action = ArgAction::SetTrue, help_heading = "Output")]
    pub(crate) quiet: bool,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// How progress is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressAs {
    /// For a person, where standard error is a terminal
    #[default]
    Auto,
    /// For a program
    Json,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(DemoArgs),
    Serve(ServeArgs),
    Measure(MeasureArgs),
    Check(CheckArgs),
    Tune(TuneArgs),
    Mesh(MeshArgs),
    Undo(UndoArgs),
    Confirm(ConfirmArgs),
    Show(ShowArgs),
    History(HistoryArgs),
    Status(StatusArgs),
    Settings(SettingsArgs),
    Plan(PlanArgs),
    Apply(ApplyArgs),
    Lint(LintArgs),
    Read(ReadArgs),
    Archive(ArchiveArgs),
    Report(ReportArgs),
    Watch(WatchArgs),
    Agent(AgentArgs),
    Unpin(UnpinArgs),
    Web(WebArgs),
    Reset(ResetArgs),
    #[command(subcommand)]
    Lab(LabCommand),
    #[command(subcommand)]
    Stack(StackCommand),
    Key(KeyArgs),
    Sim(SimArgs),
    WhatIf(WhatIfArgs),
    Share(ShareArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    #[command(hide = true)]
    Guard(GuardArgs),
    /// Print every exit code and the kind of error that it stands for, as a page in Markdown
    #[command(name = "exit-codes", hide = true)]
    ExitCodes,
}

/// Show the whole loop on an emulated path between two Linux hosts, and undo everything
///
/// Emulates a path of 100 Mbit/s and 80 ms between two network namespaces of this machine, measures both directions,
/// says what limits each and why, plans, applies, measures before and after in alternation, prints the proof, undoes
/// everything and compares both hosts with their state at the start. Takes about 70 s. Needs Linux, and root or unprivileged
/// user namespaces; touches nothing outside its own namespaces.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe demo
  fullpipe demo --json | jq .proof
  fullpipe demo --sim            the same story in a second, simulated, on any system")]
pub(crate) struct DemoArgs {
    /// Simulate it: what limits each direction, and what the setting for it would give; needs no rights
    #[arg(long)]
    pub(crate) sim: bool,
    /// Where a page of it goes.
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

/// Serve measurements to other machines (iperf3's port and protocol)
///
/// Anyone who reaches the port can measure. Settings of this machine are changed for a peer only with --allow-tune, and
/// only for a peer that proves that it holds the same key. Such a change is journalled here first, and is undone here if
/// the peer vanishes before it has decided to keep it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe serve                                     every address, port 5201
  fullpipe serve --share-settings                    send every client what `check` plans with
  fullpipe serve 192.0.2.7:5301                      one address and port
  fullpipe serve --max-time 60 --max-rate 500M --allow 10.0.0.0/8
  fullpipe serve --authorized-users-path users.csv --rsa-private-key-path private.pem
  fullpipe serve --allow-tune --key-file lab.key     let holders of the key tune this machine
  fullpipe serve --metrics 127.0.0.1:7071            also what `agent` serves")]
#[command(disable_version_flag = true)]
pub(crate) struct ServeArgs {
    /// Address, port, or both to listen on
    #[arg(value_name = "ADDR", default_value = "[::]:5201")]
    pub(crate) address: String,
    /// Port to listen on, on every address
    #[arg(short = 'p', long, value_name = "N", conflicts_with = "address", value_parser = whole::<u16>(1..=u16::MAX))]
    pub(crate) port: Option<u16>,
    /// iperf3's letter for --verbose
    #[arg(short = 'V', hide = true)]
    pub(crate) verbose_as_iperf3: bool,
    /// Print the version; iperf3's letter for it is --verbose here
    #[arg(long, action = ArgAction::Version, help_heading = "Output")]
    pub(crate) version: Option<bool>,
    /// IPv4 only
    #[arg(short = '4', long, alias = "version4", conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,
    /// IPv6 only
    #[arg(short = '6', long, alias = "version6")]
    pub(crate) ipv6: bool,
    /// Serve one client, then exit
    #[arg(short = '1', long)]
    pub(crate) one_off: bool,
    /// Let a peer with the key change settings of this machine
    #[arg(long, requires = "key_file")]
    pub(crate) allow_tune: bool,
    /// File with the secret that both machines share (at least 16 bytes)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key_file: Option<PathBuf>,
    /// File that lists what key holders may set, one setting per line: `net.ipv4.tcp_rmem = 4096..1073741824`
    /// [default: what plans contain]
    #[arg(long, value_name = "FILE", requires = "allow_tune", value_hint = ValueHint::FilePath)]
    pub(crate) allow_settings: Option<PathBuf>,
    /// Address and port that peers behind NAT use to reach this server; can be given several times
    #[arg(long, value_name = "ADDR:PORT", requires = "allow_tune")]
    pub(crate) reached_as: Vec<std::net::SocketAddr>,
    /// Send every client this machine's name, operating system and TCP settings, which `check` needs for its plan
    #[arg(long)]
    pub(crate) share_settings: bool,
    /// Tell nobody; the default, for scripts of earlier versions
    #[arg(long, hide = true, conflicts_with_all = ["allow_tune", "share_settings"])]
    pub(crate) no_settings: bool,
    /// Maximum number of clients at once
    #[arg(long, value_name = "N", default_value = "64", value_parser = whole::<u16>(1..=u16::MAX))]
    pub(crate) max_clients: u16,
    /// Longest test, in seconds (or with a unit: 10m) [default: one day]
    #[arg(long, value_name = "TIME", value_parser = up_to_a_day, help_heading = "Limits")]
    pub(crate) max_time: Option<Micros>,
    /// Highest payload rate of a test in each direction
    #[arg(long, value_name = "RATE", help_heading = "Limits")]
    pub(crate) max_rate: Option<Rate>,
    /// Maximum payload of a test; a test that reaches it is ended
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    pub(crate) max_bytes: Option<Bytes>,
    /// Accept only the users in this file: NAME,SHA256 of `{NAME}PASSWORD` on each line, as for iperf3
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "rsa_private_key_path", help_heading = "Authentication")]
    pub(crate) authorized_users_path: Option<PathBuf>,
    /// Private RSA key (PEM); clients encrypt their credentials with its public half
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "authorized_users_path", help_heading = "Authentication")]
    pub(crate) rsa_private_key_path: Option<PathBuf>,
    /// Maximum clock difference between both ends, in seconds (or with a unit) [default: 10]
    #[arg(long, value_name = "TIME", value_parser = seconds, requires = "rsa_private_key_path", help_heading = "Authentication")]
    pub(crate) time_skew_threshold: Option<Micros>,
    /// Also accept clients before iperf3 3.17, which pad as PKCS #1 v1.5
    #[arg(long, requires = "rsa_private_key_path", help_heading = "Authentication")]
    pub(crate) use_pkcs1_padding: bool,
    /// Accept only clients from this network (192.0.2.0/24, 2001:db8::/32, or one address); can be given several
    /// times
    #[arg(long, value_name = "CIDR", help_heading = "Limits")]
    pub(crate) allow: Vec<Network>,
    /// Also serve figures of this host's connections, as `agent` does: an address and a port, or a port of this machine alone
    /// (Linux)
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Metrics")]
    pub(crate) metrics: Option<String>,
}

/// Measure to a host and say what limits each direction; changes nothing
///
/// HOST runs `fullpipe serve`, or any iperf3 server. With iperf3 only this end can be read, and the report says what
/// that leaves open.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe check far.example
  fullpipe check far.example:5301 --direction down --seconds 20
  fullpipe check 2001:db8::7 --streams 4 --congestion cubic
  fullpipe check far.example --min-rate 80M --fail-on receive_window    a gate for scripts
  fullpipe check far.example --json | jq '.transfers[] | {rate_bps, limiter: .diagnosis.limiter}'")]
pub(crate) struct CheckArgs {
    /// What to measure.
    #[command(flatten)]
    pub(crate) test: TestArgs,
    /// Exit with 1 if one of these limits a direction, at any confidence: `receive_window,send_buffer`
    #[arg(long, value_name = "LIMITERS", value_delimiter = ',', value_parser = limiters(), hide_possible_values = true,
        help_heading = "Gates")]
    pub(crate) fail_on: Vec<Limiter>,
    /// Exit with 1 if a direction carries less payload than this
    #[arg(long, value_name = "RATE", help_heading = "Gates")]
    pub(crate) min_rate: Option<Rate>,
    /// Where a page of it goes.
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

/// Find what limits, change it, prove the gain, and keep only what helped
///
/// Measures, diagnoses and plans like `check`, shows the plan and asks. Then every change is journalled, written and
/// read back; before and after are measured in alternation, at least three pairs; what does not clear the threshold is
/// undone. Changes last until the next restart unless --persist is given, and `fullpipe undo` takes them back.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe tune far.example                        asks before it changes anything
  fullpipe tune far.example --yes --persist        for scripts; writes a drop-in with what helped
  fullpipe tune far.example --rate 100M            the contract says 100 Mbit/s: plan for that
  fullpipe tune far.example --key-file lab.key     also tune the far machine
  fullpipe tune far.example --destination          only for connections to far.example
  fullpipe tune far.example --destination 10.7.0.0/16 --route congctl=bbr --route initcwnd=40")]
pub(crate) struct TuneArgs {
    /// What to measure.
    #[command(flatten)]
    pub(crate) test: TestArgs,
    /// Where a page of it goes.
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Change settings without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Also write what helped into a sysctl.d drop-in, so that it survives a restart
    #[arg(long)]
    pub(crate) persist: bool,
    /// Leave what helped on trial: each changed host takes it back unless `fullpipe confirm` is run there within this
    /// time
    #[arg(long, value_name = "TIME", value_parser = settings::confirm_within)]
    pub(crate) confirm_within: Option<Duration>,
    /// Rate of the path, if you know it better than a measurement
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<Rate>,
    /// Connections that may fill their buffers at the same time, for the plan's memory
    #[arg(long, value_name = "N", value_parser = positive::<NonZeroU32>)]
    pub(crate) connections: Option<NonZeroU32>,
    /// Memory limit for the TCP buffers of a host
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Bytes>,
    /// Also change values that an administrator set in a boot-time file
    #[arg(long)]
    pub(crate) allow_override: bool,
    /// Key file shared with the far machine, to tune it too
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key_file: Option<PathBuf>,
    /// Change this host only for connections to this prefix, by their buffers and by the route there; no sysctl is touched (Linux)
    /// [default without PREFIX: the address of HOST]
    #[arg(long, value_name = "PREFIX", value_parser = parse_destination, num_args = 0..=1, conflicts_with_all = ["persist", "key_file"],
        help_heading = "One destination")]
    pub(crate) destination: Option<Option<Network>>,
    /// Try this attribute on the route of --destination, once for each: `initcwnd`, `window`, `rto_min`, `congctl`, `mtu`, ... as
    /// in ip-route(8); 0 takes it away
    #[arg(long, value_name = "NAME=VALUE", requires = "destination", value_parser = settings::metric,
        help_heading = "One destination")]
    pub(crate) route: Vec<settings::Metric>,
}

/// Limiters as the JSON spells them, which shells complete.
fn limiters() -> impl TypedValueParser<Value = Limiter> {
    PossibleValuesParser::new(Limiter::ALL.map(Limiter::name))
        .try_map(|text| Limiter::ALL.into_iter().find(|limiter| limiter.name() == text).ok_or("no limiter"))
}

/// What `check` and `tune` measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct TestArgs {
    /// The far machine: name or address, with a port if it isn't 5201
    #[arg(value_name = "HOST", value_hint = ValueHint::Hostname)]
    pub(crate) host: String,
    /// Direction of the payload: `up` is from here to HOST
    #[arg(long, value_name = "WHICH", default_value = "both", help_heading = "Measurement")]
    pub(crate) direction: Which,
    /// Parallel connections in each direction
    #[arg(short = 'P', long, visible_alias = "parallel", value_name = "N", default_value = "1", value_parser = whole::<u16>(1..=128), help_heading = "Measurement")]
    pub(crate) streams: u16,
    /// Time to measure each direction, in seconds (or with a unit: 500ms) [default: by the round-trip time]
    #[arg(short = 't', long, visible_alias = "time", value_name = "TIME", value_parser = seconds, help_heading = "Measurement")]
    pub(crate) seconds: Option<Micros>,
    /// Omit this much at the start, for slow start, which is reported separately [default: 1 with --seconds]
    #[arg(short = 'O', long, value_name = "TIME", value_parser = seconds, requires = "seconds", help_heading = "Measurement")]
    pub(crate) omit: Option<Micros>,
    /// The sender's congestion control, such as `cubic` or `bbr` [default: the system's]
    #[arg(short = 'C', long, value_name = "NAME", help_heading = "Measurement")]
    pub(crate) congestion: Option<String>,
}

/// Which directions to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// From here to the host
    Up,
    /// From the host to here
    Down,
    /// One after the other
    #[default]
    Both,
}

/// Restore what a run changed, in reverse order, exactly (absent stays absent)
///
/// Without RUN, --last or --all: what interrupted runs left behind (a power cut, kill -9), or, if there is none, the
/// newest run in force. What somebody else changed since is left alone and named, and the exit code is 13: --force restores it
/// all the same, --leave-changed leaves it to them for good, so that no later undo names it again.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe undo                  what an interrupted run left behind, else as --last
  fullpipe undo --last           the newest run in force
  fullpipe undo 7                the run with this number in `fullpipe history`
  fullpipe undo --all --dry-run  what would be put back, and what is left alone
  fullpipe undo --all --yes      everything still in force
  fullpipe undo 8 --key-file lab.key   what `tune` kept at a far end, there
  fullpipe undo --interrupted -y at boot: only what an interrupted run left behind")]
pub(crate) struct UndoArgs {
    /// Number of the run, from `fullpipe history`
    #[arg(value_name = "RUN", value_parser = run_number, conflicts_with_all = ["all", "last", "interrupted"])]
    pub(crate) runs: Vec<u64>,
    /// Every run in force
    #[arg(long, conflicts_with_all = ["last", "interrupted"])]
    pub(crate) all: bool,
    /// The newest run in force
    #[arg(long, conflicts_with = "interrupted")]
    pub(crate) last: bool,
    /// Only what interrupted runs left behind; does nothing if there is no such run
    #[arg(long)]
    pub(crate) interrupted: bool,
    /// Also undo at the far end what `tune` kept there, with the key shared with it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key_file: Option<PathBuf>,
    /// Also restore settings that somebody changed after the run
    #[arg(long)]
    pub(crate) force: bool,
    /// Leave what somebody changed after the run to them, for good
    #[arg(long, conflicts_with = "force")]
    pub(crate) leave_changed: bool,
    /// Show what would be put back and what would be left alone; change nothing
    #[arg(long, conflicts_with_all = ["yes", "key_file"])]
    pub(crate) dry_run: bool,
    /// Change settings without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// List all runs that changed something, newest first
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe history
  fullpipe history --limit 3 --verbose
  FULLPIPE_STATE_DIR=/tmp/state fullpipe history --json")]
pub(crate) struct HistoryArgs {
    /// Show this many runs
    #[arg(long, value_name = "N", default_value = "20", value_parser = positive::<NonZeroU32>)]
    pub(crate) limit: NonZeroU32,
}

/// Keep changes that `apply --confirm-within` or `tune --confirm-within` left on trial
///
/// Without a confirmation in time they are taken back. What --persist asked for is written now.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe apply plan.json --yes --confirm-within 60s
  fullpipe confirm                 from a new connection, while the old one still works
  fullpipe confirm 7")]
pub(crate) struct ConfirmArgs {
    /// Number of the run [default: the only one on trial]
    #[arg(value_name = "RUN", value_parser = run_number)]
    pub(crate) run: Option<u64>,
}

/// Show one run in full: values before, written, read back, and now
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe show                      the newest run
  fullpipe show 7
  fullpipe show 7 --json | jq '.runs[0].entries'")]
pub(crate) struct ShowArgs {
    /// Number of the run, from `fullpipe history` [default: the newest]
    #[arg(value_name = "RUN", value_parser = run_number)]
    pub(crate) run: Option<u64>,
    /// The newest run
    #[arg(long, conflicts_with = "run")]
    pub(crate) last: bool,
}

/// Create a key file for `serve --allow-tune` and `tune`, readable by its owner only
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  fullpipe key lab.key && scp -p lab.key far.example:")]
pub(crate) struct KeyArgs {
    /// File to create
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

/// Take back what nobody confirms: started by other commands, not by people
#[derive(Args, Debug)]
pub(crate) struct GuardArgs {
    /// Whose trials
    #[arg(long)]
    pub(crate) owner: String,
    /// Where the journal is
    #[arg(long, value_hint = ValueHint::DirPath)]
    pub(crate) state_dir: PathBuf,
    /// Also when standard input ends
    #[arg(long)]
    pub(crate) with_parent: bool,
}

/// Show what fullpipe changed and is still in force, and what an interrupted run left behind
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe status
  fullpipe status --json | jq '.runs[].entries[] | {knob, before, now}'")]
pub(crate) struct StatusArgs {}

/// Emulated paths between two network namespaces of this machine (Linux)
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  fullpipe lab list
  fullpipe lab run wan-80ms
  fullpipe lab shell wan-80ms --host a -- iperf3 -s")]
pub(crate) enum LabCommand {
    /// List the scenarios that come with fullpipe
    #[command(after_help = "Example:\n  fullpipe lab list --json | jq -r '.scenarios[].name'")]
    List,
    Run(LabRunArgs),
    Shell(LabShellArgs),
}

/// Run a scenario and compare the result with what it expects
///
/// Runs the whole loop on the scenario's path. Exits with 1 if a verdict or a figure is not as the scenario expects. A
/// result is not called valid if the emulated path could not keep its rate and delay.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe lab run wan-80ms
  fullpipe lab run ./mine.toml --json
  fullpipe lab run bluetooth-hop --check")]
pub(crate) struct LabRunArgs {
    /// Name of a scenario (`fullpipe lab list`) or a file
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath)]
    pub(crate) scenario: String,
    /// Only measure, diagnose and plan; don't apply
    #[arg(long)]
    pub(crate) check: bool,
    /// The senders' congestion control, instead of the scenario's
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    /// Where a page of it goes.
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

/// Run a shell, or any command, on one host of an emulated path
///
/// The path is a scenario's, or has the given rate and round-trip time, and exists while the command runs. Host a is
/// 10.80.0.1, host b is 10.80.0.2. A second `lab shell` makes another path: to use both ends of one path, start the other
/// end's program with --other. The exit code is the command's. Afterwards, standard error has the packets that the path
/// dropped, how late packets left, and a warning where the path did not keep its rate and delay.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe lab shell wan-80ms --host a
  fullpipe lab shell --rate 100M --rtt 80ms --host a --other 'iperf3 -s -1' -- iperf3 -c 10.80.0.2
  fullpipe lab shell wan-80ms --host a -- ping -c 3 10.80.0.2
  fullpipe lab shell wan-80ms --host a --other 'iperf3 -s -1' -- iperf3 -c 10.80.0.2")]
pub(crate) struct LabShellArgs {
    /// Name of a scenario (`fullpipe lab list`) or a file
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath, required_unless_present = "rate", conflicts_with_all = ["rate", "rtt", "loss", "queue"])]
    pub(crate) scenario: Option<String>,
    /// Rate of the path's link, instead of a scenario
    #[arg(long, value_name = "RATE", requires = "rtt")]
    pub(crate) rate: Option<Rate>,
    /// Round-trip time of the idle path
    #[arg(long, value_name = "TIME", requires = "rate")]
    pub(crate) rtt: Option<Micros>,
    /// Random loss from a to b: 0.01%, 0.0001
    #[arg(long, value_name = "PART", default_value = "0", requires = "rate")]
    pub(crate) loss: String,
    /// Queue from a to b in front of the link: 1bdp, 100p, 64k, 20ms
    #[arg(long, value_name = "SIZE", default_value = "1bdp", requires = "rate")]
    pub(crate) queue: String,
    /// Which end
    #[arg(long, value_name = "a|b")]
    pub(crate) host: LabHost,
    /// Command to run on the other end meanwhile (`sh -c`)
    #[arg(long, value_name = "COMMAND")]
    pub(crate) other: Option<String>,
    /// Command and arguments [default: a shell]
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// One end of an emulated path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LabHost {
    /// The first host
    A,
    /// The second host
    B,
}

/// Print a completion script
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe completions bash > /etc/bash_completion.d/fullpipe
  fullpipe completions zsh > ~/.zfunc/_fullpipe")]
pub(crate) struct CompletionsArgs {
    /// Shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// Print the manual page, or write the pages of all commands into a folder
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe man | man -l -
  fullpipe man --dir /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write the page of every command into this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}

/// The command line, understood.
pub(crate) fn parse(line: &[OsString]) -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&crate::generated::command().try_get_matches_from(line)?)
}

/// A whole number above zero. The library's own message speaks of types.
pub(crate) fn positive<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.trim().parse().map_err(|_| "expected a whole number of at least 1".to_owned())
}

/// A whole number within bounds.
fn whole<N>(bounds: RangeInclusive<N>) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static
where
    N: TryFrom<u64> + Into<u64> + Copy + Send + Sync + 'static,
{
    let (least, most): (u64, u64) = ((*bounds.start()).into(), (*bounds.end()).into());
    move |text| {
        let number = text.trim().parse().ok().filter(|number: &u64| (least..=most).contains(number));
        number.and_then(|number| N::try_from(number).ok()).ok_or_else(|| {
            if most < u64::from(u32::MAX) {
                format!("expected a whole number from {least} to {most}")
            } else {
                format!("expected a whole number of at least {least}")
            }
        })
    }
}

/// The number of a run.
fn run_number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "expected the number of a run, as `fullpipe history` lists them".to_owned())
}

/// A time whose bare number means seconds, between two bounds; `expected` names them.
fn time(text: &str, bounds: RangeInclusive<Micros>, expected: &str) -> Result<Micros, String> {
    let bare = text.trim().ends_with(|c: char| c.is_ascii_digit());
    let text = if bare { format!("{text}s") } else { text.to_owned() };
    let time: Micros = text.parse().map_err(|error: fullpipe_units::ParseUnitError| error.to_string())?;
    if bounds.contains(&time) { Ok(time) } else { Err(format!("expected a time from {expected}")) }
}

/// How long a direction is measured.
fn seconds(text: &str) -> Result<Micros, String> {
    time(text, Micros::from_millis(100)..=Micros::from_secs(3600), "100ms to an hour (3600)")
}

/// The longest time of a test: what `measure` takes, and what a server allows.
fn up_to_a_day(text: &str) -> Result<Micros, String> {
    time(text, Micros::from_millis(10)..=Micros::from_secs(86_400), "10ms to a day (86400)")
}

#[cfg(test)]
mod tests;
