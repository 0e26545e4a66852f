//! The arguments of the commands about settings: `settings`, `plan`, `apply`, `lint`, `reset`.

use std::{num::NonZeroU32, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum, ValueHint};
use fullpipe_knobs::{FrameSizes, Ipsec, ParsePlatformError, Platform};
use fullpipe_units::{Bytes, Micros, ParseUnitError, Rate};

/// Show the settings that bound TCP, of this host or of another machine's files; changes nothing
///
/// Each setting comes with its value, its default in that version, whether that version honours it, and what it does.
/// Files may be the output of `sysctl -a`, sysctl.conf, loader.conf, rc.conf, `netsh interface tcp show ...` in English,
/// PowerShell's Get-NetTCPSetting and its relatives (list, table, CSV, JSON, CliXml), a .reg export, `ifconfig`,
/// `netstat -m`, or a NetBurner source file. Those given together are taken for one machine's.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe settings
  fullpipe settings --changed                     what differs from the defaults
  fullpipe settings rmem                          those with `rmem` in their name
  fullpipe settings --from sysctl.txt
  fullpipe settings --from loader.conf sysctl.conf rc.conf --platform freebsd-14.1
  ssh far.example sysctl -a | fullpipe settings --from -
  fullpipe settings --json | jq '.settings[] | select(.is_default == false)'
  fullpipe settings --connections --watch 5s      on Windows: whose socket buffers are pinned")]
pub(crate) struct SettingsArgs {
    /// Only settings with this in their name
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Only settings that differ from their default
    #[arg(long)]
    pub(crate) changed: bool,
    /// Read these files instead of this host; `-` is standard input
    #[arg(long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::FilePath)]
    pub(crate) from: Vec<PathBuf>,
    /// The platform that the files are of, where they don't say or its version is known better: `windows-2012`
    #[arg(long, value_name = "PLATFORM", requires = "from")]
    pub(crate) platform: Option<Platform>,
    /// Also show what is absent, and what the catalogue doesn't know
    #[arg(long)]
    pub(crate) all: bool,
    /// Also show this host's TCP connections, and whether their applications pinned their buffers (Windows)
    #[arg(long, conflicts_with = "from")]
    pub(crate) connections: bool,
    /// Switch the statistics of these connections on for this time, as an administrator, and off again: what a connection
    /// does meanwhile tells of its buffers
    #[arg(long, value_name = "TIME", requires = "connections", value_parser = watch)]
    pub(crate) watch: Option<Duration>,
}

/// Plan for a path on any platform, from its rate and round-trip time; changes nothing
///
/// Says what to set there and why, what it costs in memory, when it acts, what that version can't do and what to do
/// instead. With --json it is a file that `fullpipe apply` takes; with --write it comes in the platform's own form, with
/// the way back beside it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe plan --platform windows-2012 --rate 100M --rtt 80ms
  fullpipe plan --platform windows-xp --rate 1.8M --rtt 230ms --write hsdpa
  fullpipe plan --platform freebsd-6 --rate 100M --rtt 80ms --simulate
  fullpipe plan --settings loader.conf sysctl.conf --platform freebsd-14.1 --rate 1G --rtt 20ms
  fullpipe plan --platform this --rate 1G --rtt 80ms --json > plan.json && fullpipe apply plan.json
  fullpipe plan --platform freebsd-14.1 --rate 1G --rtt 1ms --device em0 \\
    --mtu 16110 --peer-mtu 1514,4088,9014 --hop-mtu 9216
  fullpipe plan --platform windows-2025 --rate 100M --rtt 80ms --ipsec aes-gcm
  fullpipe plan --platform windows-11 --rate 10G --rtt 1ms --procedure reset --write reset
  fullpipe plan --platform windows-xp --rate 1.8M --rtt 230ms --verify before.reg after.reg

Platforms: linux-6.18, windows-xp to windows-11 and windows-2000 to windows-2025, freebsd-14.1, macos, netburner, this.")]
pub(crate) struct PlanArgs {
    /// The platform and its version, or `this` [default: that of the files, else this host]
    #[arg(long, value_name = "PLATFORM", value_parser = target)]
    pub(crate) platform: Option<Target>,
    /// What the path carries
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Rate,
    /// Its round-trip time
    #[arg(long, value_name = "TIME", value_parser = rtt)]
    pub(crate) rtt: Micros,
    /// The machine's own settings, in files as `settings --from` takes them; `-` is standard input
    #[arg(long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::FilePath)]
    pub(crate) settings: Vec<PathBuf>,
    /// The other end, as an address or a prefix, for what can be given to connections with one peer (Server 2012:
    /// the custom template and its filter)
    #[arg(long, value_name = "PREFIX", value_parser = prefix)]
    pub(crate) peer: Option<String>,
    /// How many connections may fill their buffers at once, for the memory that the plan may cost
    #[arg(long, value_name = "N")]
    pub(crate) connections: Option<NonZeroU32>,
    /// What the machine is for
    #[arg(long, value_name = "GOAL", default_value = "bulk")]
    pub(crate) goal: GoalName,
    /// The most memory that the TCP buffers may take
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Bytes>,
    /// What this end's adapter takes, for larger packets: a size it takes everything up to, or its driver's list. A size
    /// is an MTU; 1514, 1518, 1522, 4088, 9014, 9018 and 9022 are frames with their header, as drivers list them
    #[arg(long, value_name = "SIZES")]
    pub(crate) mtu: Option<FrameSizes>,
    /// What the other end's adapter takes, in the same way
    #[arg(long, value_name = "SIZES", requires = "mtu")]
    pub(crate) peer_mtu: Option<FrameSizes>,
    /// What a switch or router between the ends takes, once for each; `direct` where a cable joins them
    #[arg(long, value_name = "SIZES", requires = "mtu", value_parser = hop)]
    pub(crate) hop_mtu: Vec<Hop>,
    /// The interface whose MTU is changed: the adapter with --mtu (on XP its GUID in braces), else the tunnel's
    /// [default: the only one that the settings tell]
    #[arg(long, value_name = "NAME", value_parser = device)]
    pub(crate) device: Option<String>,
    /// The path goes through an IPsec tunnel with these algorithms
    #[arg(long, value_name = "ALGORITHMS")]
    pub(crate) ipsec: Option<IpsecName>,
    /// Something else adds this much to each packet: 8 for PPPoE or for ESP inside UDP, 24 for GRE
    #[arg(long, value_name = "BYTES", default_value_t = 0, hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(0..=200))]
    pub(crate) overhead: u32,
    /// Predict what each change does: rate and limiter before and after it, simulated on a path of --rate and --rtt
    #[arg(long)]
    pub(crate) simulate: bool,
    /// Also write the plan in the platform's own form into this folder, which is new or empty
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) write: Option<PathBuf>,
    /// Write a whole procedure around the plan into the folder of --write: save, measure, reset, restart, apply, measure
    /// again, compare, and the way back
    #[arg(long, value_name = "NAME", requires = "write")]
    pub(crate) procedure: Option<ProcedureName>,
    /// Compare two states of the machine's files, before and after the plan was applied: says what was taken of the plan
    /// that the first one leads to. Ends with exit code 1 where something was not
    #[arg(long, value_names = ["BEFORE", "AFTER"], num_args = 2, conflicts_with_all = ["settings", "write", "simulate"],
        value_hint = ValueHint::FilePath)]
    pub(crate) verify: Vec<PathBuf>,
    /// Write into a folder that isn't empty, and over files of the same names
    #[arg(long, requires = "write")]
    pub(crate) force: bool,
}

/// A procedure around a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProcedureName {
    /// Windows: TCP's values back to Windows' own, a restart, and the plan anew
    Reset,
}

/// What a plan is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// This host, as it is.
    This,
    /// A platform.
    Platform(Platform),
}

/// What one hop takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// There is none.
    Direct,
    /// These sizes.
    Sizes(FrameSizes),
}

/// The algorithms of an IPsec tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IpsecName {
    /// ESP with AES-GCM: 1446 B of 1500 are left
    AesGcm,
    /// ESP with AES-CBC and HMAC-SHA-1-96: 1438 B
    AesCbcSha1,
    /// ESP with AES-CBC and HMAC-SHA-256-128: 1438 B
    AesCbcSha256,
}

impl From<IpsecName> for Ipsec {
    fn from(name: IpsecName) -> Self {
        match name {
            IpsecName::AesGcm => Self::AesGcm,
            IpsecName::AesCbcSha1 => Self::AesCbcSha1,
            IpsecName::AesCbcSha256 => Self::AesCbcSha256,
        }
    }
}

/// What a machine is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GoalName {
    /// Throughput: room for a round of loss recovery
    Bulk,
    /// Short queues: no more room than a full pipe needs
    Interactive,
}

/// Apply a plan that a file holds, so that it can be undone
///
/// PLAN is what `plan`, `check` or `tune` printed with --json. Every change is journalled, written and read back, all of
/// them or none; `fullpipe undo` takes them back. Nothing is measured: `tune` does that, and keeps only what helped.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe plan --platform this --rate 1G --rtt 80ms --json > plan.json
  fullpipe apply plan.json                   shows the changes and asks
  fullpipe apply plan.json --yes --persist   for scripts; writes a drop-in file, too
  fullpipe apply plan.json --confirm-within 60s     over SSH: taken back unless `fullpipe confirm` comes
  fullpipe apply check.json --host here      the plan of a check names two hosts")]
pub(crate) struct ApplyArgs {
    /// The file with the plan; `-` is standard input
    #[arg(value_name = "PLAN", value_hint = ValueHint::FilePath)]
    pub(crate) plan: PathBuf,
    /// Apply the changes for this host of the plan [default: the name of this host, or the plan's platform]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Change settings without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Also write boot-time files, so that the settings survive a restart
    #[arg(long)]
    pub(crate) persist: bool,
    /// Apply although a setting is no longer what the plan found
    #[arg(long)]
    pub(crate) force: bool,
    /// Take everything back unless `fullpipe confirm` comes within this time; a process of its own sees to it, so that a
    /// connection that the changes cut off comes back
    #[arg(long, value_name = "TIME", value_parser = confirm_within, conflicts_with = "dry_run")]
    pub(crate) confirm_within: Option<Duration>,
    /// Show the changes as a diff, of boot-time files too, and make none
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Judge recipes line by line: what does nothing, is refused, harms, or doesn't fit the path; changes nothing
///
/// Reads sysctl.conf, .reg, .inf, .ps1, .bat and netsh lines, shell scripts, loader.conf and rc.conf, C sources that size
/// their sockets' buffers (NetBurner's too), TuneD profiles and Ansible playbooks. Nothing of them is run. Ends with exit
/// code 1 where a finding is an error, or what --fail-on says.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe lint /etc/sysctl.d/*.conf
  fullpipe lint tweak.reg --platform windows-11
  fullpipe lint 99-tuning.conf --rate 100M --rtt 80ms
  fullpipe lint roles/net/tasks/main.yml --sarif lint.sarif")]
pub(crate) struct LintArgs {
    /// The recipes; `-` is standard input
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// The platform that they shall run on [default: the newest version of the file's own]
    #[arg(long, value_name = "PLATFORM")]
    pub(crate) platform: Option<Platform>,
    /// What the path carries that they shall fill
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "rtt")]
    pub(crate) rate: Option<Rate>,
    /// Its round-trip time
    #[arg(long, value_name = "TIME", value_parser = rtt, requires = "rate")]
    pub(crate) rtt: Option<Micros>,
    /// From which level on a finding makes the exit code 1
    #[arg(long, value_name = "LEVEL", default_value = "error")]
    pub(crate) fail_on: FailOn,
    /// Write the findings as SARIF 2.1.0 into this file; `-` prints them instead of the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) sarif: Option<PathBuf>,
}

/// From which level on findings fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// What breaks something, or can't work
    Error,
    /// What is useless or risky, too
    Warning,
    /// Everything but lines that are fine
    Note,
}

/// Go back to the system's own defaults, or to how things were before a run
///
/// On Linux the defaults are the kernel's own, read from a fresh network namespace, and the catalogue's where a namespace
/// has none of its own; elsewhere they are the catalogue's. What is not known for a fact is left alone and named, and so
/// are routes and links. What was there is journalled first, so `fullpipe undo` takes a reset back.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe reset                    shows what will change and asks
  fullpipe reset --yes              for scripts
  fullpipe reset --to-journal 7     how things were before run 7 of `fullpipe history`")]
pub(crate) struct ResetArgs {
    /// Where to go back to
    #[arg(long, value_name = "WHAT", default_value = "defaults", conflicts_with = "to_journal")]
    pub(crate) to: ResetTo,
    /// Go back to how things were before this run: undo it and every later one
    #[arg(long, value_name = "RUN")]
    pub(crate) to_journal: Option<u64>,
    /// Change settings without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Where a reset goes back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResetTo {
    /// What the system starts with
    Defaults,
}

fn target(text: &str) -> Result<Target, ParsePlatformError> {
    if text.eq_ignore_ascii_case("this") { Ok(Target::This) } else { text.parse().map(Target::Platform) }
}

fn hop(text: &str) -> Result<Hop, String> {
    if text.eq_ignore_ascii_case("direct") {
        return Ok(Hop::Direct);
    }
    text.parse().map(Hop::Sizes).map_err(|error: fullpipe_knobs::packets::ParseFrameSizesError| error.to_string())
}

fn device(text: &str) -> Result<String, String> {
    let plain = !text.trim().is_empty() && text.len() <= 256 && !text.chars().any(char::is_control);
    if plain { Ok(text.to_owned()) } else { Err("expected the name of an interface, such as eth0".to_owned()) }
}

fn prefix(text: &str) -> Result<String, String> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: std::net::IpAddr =
        address.parse().map_err(|_| "expected an address or a prefix, such as 192.0.2.0/24".to_owned())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Ok(most), str::parse::<u8>);
    match bits {
        Ok(bits) if bits <= most => Ok(format!("{address}/{bits}")),
        _ => Err(format!("expected at most {most} bits after the slash")),
    }
}

fn rate(text: &str) -> Result<Rate, String> {
    let rate: Rate = text.parse().map_err(|error: ParseUnitError| error.to_string())?;
    if rate.bps() > 0 { Ok(rate) } else { Err("expected a rate above zero, such as 100M".to_owned()) }
}

fn rtt(text: &str) -> Result<Micros, String> {
    let rtt: Micros = text.parse().map_err(|error: ParseUnitError| error.to_string())?;
    if (1..=60_000_000).contains(&rtt.get()) {
        Ok(rtt)
    } else {
        Err("expected a time from 1us to 60s, such as 80ms".to_owned())
    }
}

pub(super) fn confirm_within(text: &str) -> Result<Duration, String> {
    let time: Micros = text.parse().map_err(|error: ParseUnitError| error.to_string())?;
    if (1_000_000..=86_400_000_000).contains(&time.get()) {
        Ok(Duration::from_micros(time.get()))
    } else {
        Err("expected a time from 1s to 24h, such as 60s".to_owned())
    }
}

fn watch(text: &str) -> Result<Duration, String> {
    let time: Micros = text.parse().map_err(|error: ParseUnitError| error.to_string())?;
    if (1_000..=3_600_000_000).contains(&time.get()) {
        Ok(Duration::from_micros(time.get()))
    } else {
        Err("expected a time from 1ms to 1h, such as 5s".to_owned())
    }
}
