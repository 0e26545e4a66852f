//! The arguments of the commands about settings: `settings`, `plan`, `apply`, `lint`, `reset`.

use std::{ffi::OsStr, num::NonZeroU32, path::PathBuf, time::Duration};

use clap::{
    Args, ValueEnum, ValueHint,
    builder::{PossibleValue, TypedValueParser},
};
use fullpipe_host::{HostError, ROUTE_ATTRIBUTES, canonical};
use fullpipe_knobs::{Address, FrameSizes, Ipsec, ParsePlatformError, Platform};
use fullpipe_units::{Bytes, Micros, ParseUnitError, Rate};

/// Show the settings that bound TCP, of this host or of another machine's files; changes nothing
///
/// For each setting: its value, its default in that version, whether that version honours it, and what it does.
/// Files may be the output of `sysctl -a`, sysctl.conf, loader.conf, rc.conf, `netsh interface tcp show ...` in English,
/// PowerShell's Get-NetTCPSetting and its relatives (list, table, CSV, JSON, CliXml), a .reg export, an .inf file, `ifconfig`,
/// `netstat -m`, `vmstat -z`, or a NetBurner source file. Files given together are of one machine.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe settings
  fullpipe settings --changed                     what differs from the defaults
  fullpipe settings rmem                          settings with `rmem` in their name
  fullpipe settings --from sysctl.txt
  fullpipe settings --from loader.conf sysctl.conf rc.conf --platform freebsd-14.1
  ssh far.example sysctl -a | fullpipe settings --from -
  fullpipe settings --json | jq '.settings[] | select(.is_default == false)'
  fullpipe settings --connections --watch 5s      on Windows: whose socket buffers are pinned")]
pub(crate) struct SettingsArgs {
    /// Only settings whose name contains this
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Only settings that differ from their default
    #[arg(long)]
    pub(crate) changed: bool,
    /// Read these files instead of this host; `-` is standard input
    #[arg(long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::FilePath)]
    pub(crate) from: Vec<PathBuf>,
    /// Platform of the files, if they don't name it or you know the version more exactly: `windows-2012`
    #[arg(long, value_name = "PLATFORM", value_parser = Names(platform, &[]), hide_possible_values = true, requires = "from")]
    pub(crate) platform: Option<Platform>,
    /// Also show absent settings and those that the catalogue doesn't know
    #[arg(long)]
    pub(crate) all: bool,
    /// Also show this host's TCP connections, and whether their applications pinned their buffers (Windows)
    #[arg(long, conflicts_with = "from")]
    pub(crate) connections: bool,
    /// Turn the statistics of these connections on for this time, as an administrator, and off again: they show which
    /// buffers hold a connection back
    #[arg(long, value_name = "TIME", requires = "connections", value_parser = watch)]
    pub(crate) watch: Option<Duration>,
}

/// Plan the settings of any platform for a path's rate and round-trip time; changes nothing
///
/// Says what to set and why, what it costs in memory, when it takes effect, what that version can't do and what to do
/// instead. With --json it prints a plan for `fullpipe apply`; with --write it writes the platform's own files, and
/// those that undo them.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe plan --platform windows-2012 --rate 100M --rtt 80ms
  fullpipe plan --platform windows-xp --rate 1.8M --rtt 230ms --write hsdpa
  fullpipe plan --platform freebsd-6 --rate 100M --rtt 80ms --simulate
  fullpipe plan --settings loader.conf sysctl.conf --platform freebsd-14.1 --rate 1G --rtt 20ms
  fullpipe plan --platform this --rate 1G --rtt 80ms --json > plan.json && fullpipe apply plan.json
  fullpipe plan --platform this --path 1G,80ms,8 --path 100M,240ms,2 --memory 512M
  fullpipe plan --platform freebsd-14.1 --rate 1G --rtt 1ms --device em0 \\
    --mtu 16110 --peer-mtu 1514,4088,9014 --hop-mtu 9216
  fullpipe plan --platform windows-2025 --rate 100M --rtt 80ms --ipsec aes-gcm
  fullpipe plan --platform windows-11 --procedure reset --write reset
  fullpipe plan --platform windows-11 --rate 10G --rtt 1ms --procedure reset --write tuned
  fullpipe plan --platform windows-xp --rate 1.8M --rtt 230ms --verify before.reg after.reg

Platforms: linux-6.18, windows-xp to windows-11 and windows-2000 to windows-2025, freebsd-14.1,
macos, netburner, this.")]
pub(crate) struct PlanArgs {
    /// Platform and version, or `this` [default: that of the files, else this host]
    #[arg(long, value_name = "PLATFORM", value_parser = Names(target, &["this"]), hide_possible_values = true)]
    pub(crate) platform: Option<Target>,
    /// Rate of the path
    #[arg(long, value_name = "RATE", value_parser = rate, required_unless_present_any = ["path", "procedure"], requires = "rtt")]
    pub(crate) rate: Option<Rate>,
    /// Round-trip time of the path
    #[arg(long, value_name = "TIME", value_parser = rtt, required_unless_present_any = ["path", "procedure"], requires = "rate")]
    pub(crate) rtt: Option<Micros>,
    /// One of several paths that end at the machine, with its connections if they are known: `1G,80ms,8`; given once for
    /// each. The largest bandwidth-delay product decides the sizes, and the connections of all paths count for the memory
    #[arg(long, value_name = "RATE,TIME[,N]", value_parser = path, conflicts_with_all = ["rate", "rtt", "connections"])]
    pub(crate) path: Vec<PlannedPath>,
    /// Files with the machine's settings, as for `settings --from`; `-` is standard input
    #[arg(long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::FilePath)]
    pub(crate) settings: Vec<PathBuf>,
    /// Address or prefix of the other end, for settings that can be limited to one peer (Server 2012: the custom template
    /// and its filter)
    #[arg(long, value_name = "PREFIX", value_parser = prefix)]
    pub(crate) peer: Option<String>,
    /// Connections that may fill their buffers at the same time, for the plan's memory
    #[arg(long, value_name = "N", value_parser = super::positive::<NonZeroU32>)]
    pub(crate) connections: Option<NonZeroU32>,
    /// What the machine is for
    #[arg(long, value_name = "GOAL", default_value = "bulk")]
    pub(crate) goal: GoalName,
    /// Memory limit for the TCP buffers
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Bytes>,
    /// Also change values that an administrator set in a boot-time file (Linux)
    #[arg(long)]
    pub(crate) allow_override: bool,
    /// Packet sizes of this end's adapter, for jumbo frames: its largest, or its driver's list. A size is an MTU; 1514,
    /// 1518, 1522, 4088, 9014, 9018 and 9022 are frame sizes with the header, as drivers list them
    #[arg(long, value_name = "SIZES")]
    pub(crate) mtu: Option<FrameSizes>,
    /// Packet sizes of the other end's adapter, likewise
    #[arg(long, value_name = "SIZES", requires = "mtu")]
    pub(crate) peer_mtu: Option<FrameSizes>,
    /// Packet sizes of a switch or router between the ends, once for each; `direct` for a direct cable
    #[arg(long, value_name = "SIZES", requires = "mtu", value_parser = hop)]
    pub(crate) hop_mtu: Vec<Hop>,
    /// Interface whose MTU is changed: the adapter with --mtu (on XP its GUID in braces), else the tunnel's [default: the
    /// only one in the settings]
    #[arg(long, value_name = "NAME", value_parser = device)]
    pub(crate) device: Option<String>,
    /// The path goes through an IPsec tunnel with these algorithms
    #[arg(long, value_name = "ALGORITHMS")]
    pub(crate) ipsec: Option<IpsecName>,
    /// Bytes that other headers add to each packet: 8 for PPPoE or ESP in UDP, 24 for GRE
    #[arg(long, value_name = "BYTES", default_value_t = 0, hide_default_value = true,
        value_parser = super::whole::<u32>(0..=200))]
    pub(crate) overhead: u32,
    /// Predict each change: rate and limiter before and after it, simulated on a path of --rate and --rtt
    #[arg(long)]
    pub(crate) simulate: bool,
    /// Also write the plan as the platform's own files into this folder, which must be new or empty
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) write: Option<PathBuf>,
    /// Write a whole procedure into the folder of --write: save, measure, reset, restart, apply, measure again, compare,
    /// and undo. Without a path (--rate and --rtt, or --path) nothing is planned, and a script of your own is applied
    #[arg(long, value_name = "NAME", requires = "write")]
    pub(crate) procedure: Option<ProcedureName>,
    /// Compare the machine's files before and after: says which changes of the plan made from the first are in force in
    /// the second. Exits with 1 if one is not
    #[arg(long, value_names = ["BEFORE", "AFTER"], num_args = 2, conflicts_with_all = ["settings", "write", "simulate"],
        value_hint = ValueHint::FilePath)]
    pub(crate) verify: Vec<PathBuf>,
    /// Write into a folder that isn't empty, and overwrite files of the same names
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

/// Apply a plan from a file, so that it can be undone
///
/// PLAN is what `plan`, `check` or `tune` printed with --json. Every change is journalled, written and read back, all
/// or none; `fullpipe undo` takes them back. Nothing is measured: `tune` does that, and keeps only what helped.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe plan --platform this --rate 1G --rtt 80ms --json > plan.json
  fullpipe apply plan.json                   shows the changes and asks
  fullpipe apply plan.json --yes --persist   for scripts; writes a drop-in, too
  fullpipe apply plan.json --confirm-within 60s     over SSH: undone unless `fullpipe confirm` comes
  fullpipe apply check.json --host vm1       the plan of a check may name two hosts; this is vm1
  fullpipe apply check.json --host here      its only host is this one, under whatever name
  ssh root@far fullpipe plan --rate 1G --rtt 80ms --json | ssh root@far fullpipe apply - --yes
                                             a far machine, by a plan on standard input
  FULLPIPE_STATE_DIR=/tmp/state fullpipe apply plan.json     with a journal of its own, for a try")]
pub(crate) struct ApplyArgs {
    /// File with the plan; `-` is standard input
    #[arg(value_name = "PLAN", value_hint = ValueHint::FilePath)]
    pub(crate) plan: PathBuf,
    /// Which host of the plan this is; `here`: its only one, whatever its name [default: this host's name, or its platform]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Change settings without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Also write boot-time files, so that the settings survive a restart
    #[arg(long)]
    pub(crate) persist: bool,
    /// Apply even if a setting has changed since the plan was made
    #[arg(long)]
    pub(crate) force: bool,
    /// Take everything back unless `fullpipe confirm` is run within this time; a guardian process does it, so that a
    /// connection that the changes cut comes back
    #[arg(long, value_name = "TIME", value_parser = confirm_within, conflicts_with = "dry_run")]
    pub(crate) confirm_within: Option<Duration>,
    /// Show the changes as a diff, of boot-time files too, and make none
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Check recipes line by line: what does nothing, is refused, harms, or doesn't fit the path; changes nothing
///
/// Reads sysctl.conf, .reg, .inf, .ps1, .bat and netsh lines, shell scripts, loader.conf and rc.conf, C sources that size
/// their sockets' buffers (NetBurner's too), TuneD profiles and Ansible playbooks. None of them is run. Exits with 1
/// if a finding is an error, or as --fail-on says.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe lint /etc/sysctl.d/*.conf
  fullpipe lint tweak.reg --platform windows-11
  fullpipe lint 99-tuning.conf --rate 100M --rtt 80ms
  fullpipe lint roles/net/tasks/main.yml --sarif lint.sarif")]
pub(crate) struct LintArgs {
    /// The recipes, several of them as those of one machine; `-` is standard input
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Platform that they will run on [default: the newest version of the file's own]
    #[arg(long, value_name = "PLATFORM", value_parser = Names(platform, &[]), hide_possible_values = true)]
    pub(crate) platform: Option<Platform>,
    /// Rate of the path that they are meant to fill
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "rtt")]
    pub(crate) rate: Option<Rate>,
    /// Round-trip time of the path
    #[arg(long, value_name = "TIME", value_parser = rtt, requires = "rate")]
    pub(crate) rtt: Option<Micros>,
    /// Lowest level of a finding that makes the exit code 1
    #[arg(long, value_name = "LEVEL", default_value = "error")]
    pub(crate) fail_on: FailOn,
    /// Write the findings as SARIF 2.1.0 to this file; `-` prints them instead of the text
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

/// Go back to the system's defaults, or to the state before a run
///
/// On Linux the defaults are the kernel's own, read from a fresh network namespace, and the catalogue's where a namespace
/// has none of its own; elsewhere they are the catalogue's. Settings whose default is unknown are left alone and named, and so
/// are routes and links. Everything is journalled first, so `fullpipe undo` takes a reset back.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe reset                    shows what will change, and asks
  fullpipe reset --yes              for scripts
  fullpipe reset --to-journal 7     the state before run 7 of `fullpipe history`")]
pub(crate) struct ResetArgs {
    /// Where to go back to
    #[arg(long, value_name = "WHAT", default_value = "defaults", conflicts_with = "to_journal")]
    pub(crate) to: ResetTo,
    /// Go back to the state before this run: undo it and every later one
    #[arg(long, value_name = "RUN", value_parser = super::run_number)]
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

/// A path that ends at a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedPath {
    pub(crate) rate: Rate,
    pub(crate) rtt: Micros,
    /// Connections that may fill their buffers at the same time.
    pub(crate) connections: Option<NonZeroU32>,
}

fn path(text: &str) -> Result<PlannedPath, String> {
    let mut words = text.split(',').map(str::trim);
    let mut next = || words.next().filter(|word| !word.is_empty());
    let (Some(rate_word), Some(rtt_word)) = (next(), next()) else {
        return Err(
            "expected a rate and a time, such as 1G,80ms, and perhaps connections, such as 1G,80ms,8".to_owned()
        );
    };
    let connections = next().map(|word| {
        word.parse::<NonZeroU32>().map_err(|_| format!("expected a number of connections above zero, not `{word}`"))
    });
    let path = PlannedPath { rate: rate(rate_word)?, rtt: rtt(rtt_word)?, connections: connections.transpose()? };
    match words.next() {
        None => Ok(path),
        Some(_) => Err("expected no more than a rate, a time and a number of connections".to_owned()),
    }
}

/// Reads a platform, and names those to choose from, for the completions of a shell; other versions are read, too.
#[derive(Clone)]
struct Names<T>(fn(&str) -> Result<T, ParsePlatformError>, &'static [&'static str]);

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Names<T> {
    type Value = T;

    fn parse_ref(&self, command: &clap::Command, arg: Option<&clap::Arg>, value: &OsStr) -> Result<T, clap::Error> {
        TypedValueParser::parse_ref(&self.0, command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = Platform::names().iter().map(String::as_str).chain(self.1.iter().copied());
        Some(Box::new(names.map(PossibleValue::new)))
    }
}

fn platform(text: &str) -> Result<Platform, ParsePlatformError> {
    text.parse()
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

/// An attribute of a route, and what it is to be; `None` takes it away.
pub(crate) type Metric = (String, Option<String>);

pub(super) fn metric(text: &str) -> Result<Metric, String> {
    let form = || format!("expected NAME=VALUE with one of the names {}", ROUTE_ATTRIBUTES.join(", "));
    let (name, value) = text.split_once('=').ok_or_else(form)?;
    if !ROUTE_ATTRIBUTES.contains(&name) {
        return Err(form());
    }
    let address = Address::Route { destination: "default".to_owned(), attribute: name.to_owned() };
    match canonical(&address, value) {
        Ok(value) => Ok((name.to_owned(), value)),
        Err(HostError::InvalidValue { expected, .. }) => Err(format!("expected {expected}")),
        Err(error) => Err(error.to_string()),
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
