//! The arguments of `stack`.

use std::net::IpAddr;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use fullpipe_units::{Bytes, Micros, Rate};

use crate::page::PageArgs;

/// Run fullpipe's own TCP engine on a real interface (Linux)
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  fullpipe stack table netburner-wan                    a small device against this kernel
  fullpipe stack presets                                what Nagle's algorithm and PSH cost
  fullpipe stack connect --through wan-80ms             the engine sends to a kernel
  sudo fullpipe stack echo                              a host at 10.82.0.2, behind fp0

The engine keeps a pool of packet buffers; every socket has budgets in buffers for what it receives,
transmits, has out of order and has unacknowledged. On a TUN device it is a host of its own,
reached from this machine's kernel. That needs root, or a device that an administrator made:
`ip tuntap add dev fp0 mode tun vnet_hdr user NAME`.")]
pub(crate) enum StackCommand {
    Serve(StackServeArgs),
    Connect(StackConnectArgs),
    Echo(StackEchoArgs),
    Table(StackTableArgs),
    Presets(StackPresetsArgs),
}

/// Listen with the engine; read or send
///
/// Ends after --time, after --connections, or on Ctrl-C. With --through, a kernel at the other end of the emulated path connects.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sudo fullpipe stack serve                              then: cat file > /dev/tcp/10.82.0.2/5001
  sudo fullpipe stack serve --send 100MB --preset bulk   then: cat < /dev/tcp/10.82.0.2/5001 | wc -c
  fullpipe stack serve --through hsdpa --connections 1 --json")]
pub(crate) struct StackServeArgs {
    /// The port
    #[arg(long, value_name = "PORT", default_value = "5001", value_parser = super::whole::<u16>(1..=u16::MAX))]
    pub(crate) port: u16,
    /// Bytes to send per connection, instead of reading
    #[arg(long, value_name = "SIZE")]
    pub(crate) send: Option<Bytes>,
    /// End after this many connections [default: with --through 1]
    #[arg(long, value_name = "N", value_parser = super::whole::<u32>(1..=u32::MAX))]
    pub(crate) connections: Option<u32>,
    /// With --through: what the kernel sends
    #[arg(long, value_name = "SIZE", default_value = "4MB")]
    pub(crate) bytes: Bytes,
    /// The engine.
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Connect with the engine; send or read
///
/// With --through, a kernel at the other end of the emulated path accepts the connection.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sudo fullpipe stack connect 10.82.0.1:5001 --bytes 100MB
  fullpipe stack connect --through wan-80ms --preset bulk
  fullpipe stack connect --through hsdpa --receive --bytes 200k --buffers rx=20,ooo=19
  fullpipe stack connect --through adsl2 --profile netburner --json | jq '.connections[0].rate_bps'")]
pub(crate) struct StackConnectArgs {
    /// Address and port to connect to [default: the kernel at the other end, port 5001]
    #[arg(value_name = "ADDR:PORT")]
    pub(crate) peer: Option<std::net::SocketAddr>,
    /// Bytes to send
    #[arg(long, value_name = "SIZE", default_value = "4MB")]
    pub(crate) bytes: Bytes,
    /// Receive until the peer closes, instead of sending
    #[arg(long)]
    pub(crate) receive: bool,
    /// The engine.
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Listen with the engine and echo what arrives
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sudo fullpipe stack echo                               then: nc 10.82.0.2 7
  fullpipe stack echo --through wan-80ms --bytes 500k")]
pub(crate) struct StackEchoArgs {
    /// The port
    #[arg(long, value_name = "PORT", default_value = "7", value_parser = super::whole::<u16>(1..=u16::MAX))]
    pub(crate) port: u16,
    /// End after this many connections [default: with --through 1]
    #[arg(long, value_name = "N", value_parser = super::whole::<u32>(1..=u32::MAX))]
    pub(crate) connections: Option<u32>,
    /// With --through: what the kernel sends
    #[arg(long, value_name = "SIZE", default_value = "4MB")]
    pub(crate) bytes: Bytes,
    /// The engine.
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// Measure a small device against its number of packet buffers: next to the published figures, or your own
///
/// With --rate and --rtt it is your device on your path: how many buffers are worth their memory there. The engine plays
/// the device, at the device's speed; this machine's kernel is the other end. Figures that were fitted to published ones
/// are marked and are no predictions. Exits with 1 if a prediction is further from its published figure than the scenario
/// allows.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe stack table netburner-lan
  fullpipe stack table netburner-wan --fit
  fullpipe stack table --rate 10M --rtt 40ms --loss 0.5% --connections 2
  fullpipe stack table lossy-devices --json | jq '.rows[] | {buffers, seconds}'")]
pub(crate) struct StackTableArgs {
    /// Where a page of it goes.
    #[command(flatten)]
    pub(crate) page: PageArgs,
    /// Name of a scenario with a device (`fullpipe lab list`) or a file; without, --rate and --rtt
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath, conflicts_with = "rate")]
    pub(crate) scenario: Option<String>,
    /// Fit again what the scenario fitted to its published figures
    #[arg(long, conflicts_with = "rate")]
    pub(crate) fit: bool,
    /// Rate of your path's slowest link
    #[arg(long, value_name = "RATE", requires = "rtt", value_parser = link_rate, help_heading = "Your device")]
    pub(crate) rate: Option<Rate>,
    /// Round-trip time of the path
    #[arg(long, value_name = "TIME", requires = "rate", value_parser = round_trip, help_heading = "Your device")]
    pub(crate) rtt: Option<Micros>,
    /// Random loss each way
    #[arg(long, value_name = "PERCENT", requires = "rate", value_parser = loss, default_value = "0%", help_heading = "Your device")]
    pub(crate) loss: f64,
    /// Processing time of the device per packet [default: that of the published NetBurner]
    #[arg(long, value_name = "TIME", requires = "rate", value_parser = round_trip, default_value = "138us", help_heading = "Your device")]
    pub(crate) per_packet: Micros,
    /// Connections that send at the same time
    #[arg(long, value_name = "N", requires = "rate", default_value = "1", value_parser = super::whole::<u16>(1..=256), help_heading = "Your device")]
    pub(crate) connections: u16,
    /// The application writes whenever there is room; that of the published figures waits until all buffers are
    /// acknowledged
    #[arg(long, requires = "rate", help_heading = "Your device")]
    pub(crate) streams: bool,
}

/// What the emulated path can be held to.
fn link_rate(text: &str) -> Result<Rate, String> {
    let rate: Rate = text.parse().map_err(|error| format!("{error}"))?;
    let range = Rate::from_bps(10_000)..=Rate::from_bps(1_000_000_000);
    if range.contains(&rate) { Ok(rate) } else { Err("expected a rate from 10k to 1G".to_owned()) }
}

fn round_trip(text: &str) -> Result<Micros, String> {
    let span: Micros = text.parse().map_err(|error| format!("{error}"))?;
    let range = Micros::new(2)..=Micros::from_millis(5_000);
    if range.contains(&span) { Ok(span) } else { Err("expected a time from 2us to 5s".to_owned()) }
}

/// `1%`, as a part of one.
fn loss(text: &str) -> Result<f64, String> {
    let percent: f64 = text.trim_end_matches('%').trim().parse().map_err(|_| format!("`{text}` is no percentage"))?;
    if (0.0..=20.0).contains(&percent) { Ok(percent / 100.0) } else { Err("expected 0% to 20%".to_owned()) }
}

/// Measure what the presets do to small messages, requests and bulk: latency, segments, bytes
///
/// The engine talks to this machine's kernel over the scenario's path, once with each preset: the profile's options
/// (Nagle's algorithm and PSH), low_latency (SO_NONAGLE) and bulk (SO_NOPUSH and 43 buffers). Messages go one way, one
/// every --gap; a request is written as head and body, and the next one follows its answer; pieces come one every
/// millisecond, as from a log; bulk is written in such pieces as fast as it goes. The report says which preset to use
/// when, by these figures. Takes some 30 s.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fullpipe stack presets
  fullpipe stack presets wan-80ms --messages 20
  fullpipe stack presets netburner-lan --profile linux --message 400
  fullpipe stack presets --json | jq '.rows[] | {work, preset, p50: .latency_us.p50}'")]
pub(crate) struct StackPresetsArgs {
    /// Name of a scenario (`fullpipe lab list`) or a file: its path is used, and the engine runs at full speed
    #[arg(value_name = "SCENARIO", default_value = "netburner-wan", value_hint = ValueHint::FilePath)]
    pub(crate) scenario: String,
    /// Bytes of each message, request, response, piece and bulk write
    #[arg(long, value_name = "BYTES", default_value = "100", value_parser = super::whole::<u16>(2..=512))]
    pub(crate) message: u16,
    /// Number of messages, and of requests
    #[arg(long, value_name = "N", default_value = "40", value_parser = super::whole::<u32>(1..=10_000))]
    pub(crate) messages: u32,
    /// Time between messages
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = gap)]
    pub(crate) gap: Micros,
    /// Number of pieces
    #[arg(long, value_name = "N", default_value = "500", value_parser = super::whole::<u32>(1..=100_000))]
    pub(crate) pieces: u32,
    /// Bytes to send in bulk
    #[arg(long, value_name = "SIZE", default_value = "100k", value_parser = bulk)]
    pub(crate) bulk: Bytes,
    /// TCP profile: options, timers, acknowledgements
    #[arg(long, value_name = "NAME", default_value = "netburner")]
    pub(crate) profile: ProfileName,
}

/// Long enough to be kept, short enough to be waited for.
fn gap(text: &str) -> Result<Micros, String> {
    let span: Micros = text.parse().map_err(|error| format!("{error}"))?;
    let range = Micros::new(100)..=Micros::from_millis(1_000);
    if range.contains(&span) { Ok(span) } else { Err("expected a time from 100us to 1s".to_owned()) }
}

/// In small writes, each of them a segment at the worst.
fn bulk(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    let range = Bytes::new(1)..=Bytes::new(100_000_000);
    if range.contains(&bytes) { Ok(bytes) } else { Err("expected a size from 1 B to 100 MB".to_owned()) }
}

/// The engine and where it stands.
#[derive(Args, Clone, Debug)]
pub(crate) struct EngineArgs {
    /// Over the emulated path of this scenario, with a kernel at the other end, instead of a device of this machine
    #[arg(long, value_name = "SCENARIO", value_hint = ValueHint::FilePath, help_heading = "Where")]
    pub(crate) through: Option<String>,
    /// TUN device; created if it doesn't exist
    #[arg(long, value_name = "NAME", default_value = "fp0", value_parser = device, conflicts_with = "through", help_heading = "Where")]
    pub(crate) device: String,
    /// The engine's addresses, one of each IP version
    #[arg(long, value_name = "ADDR", num_args = 1..=4, value_delimiter = ',', default_values = ["10.82.0.2", "fd82::2"], conflicts_with = "through", help_heading = "Where")]
    pub(crate) address: Vec<IpAddr>,
    /// The kernel's addresses on the device, in the same networks (/24 and /64)
    #[arg(long, value_name = "ADDR", num_args = 1..=4, value_delimiter = ',', default_values = ["10.82.0.1", "fd82::1"], conflicts_with = "through", help_heading = "Where")]
    pub(crate) peer_address: Vec<IpAddr>,
    /// MTU of the device, in bytes
    #[arg(long, value_name = "BYTES", default_value = "1500", value_parser = super::whole::<u16>(1280..=u16::MAX), conflicts_with = "through", help_heading = "Where")]
    pub(crate) mtu: u16,
    /// TCP profile: options, timers, acknowledgements
    #[arg(long, value_name = "NAME", default_value = "fullpipe", help_heading = "Engine")]
    pub(crate) profile: ProfileName,
    /// Preset of socket options
    #[arg(long, value_name = "NAME", help_heading = "Engine")]
    pub(crate) preset: Option<Preset>,
    /// Budgets of each socket in packet buffers: rx=20,tx=20,ooo=19,unacked=20, or one number for all
    #[arg(long, value_name = "BUDGETS", value_parser = budgets, help_heading = "Engine")]
    pub(crate) buffers: Option<BudgetArgs>,
    /// Packet buffers of the pool [default: 256, or 8192 with a profile of a large system]
    #[arg(long, value_name = "N", value_parser = super::whole::<u16>(4..=65_534), help_heading = "Engine")]
    pub(crate) pool: Option<u16>,
    /// User timeout: abort a connection whose data waits this long for an acknowledgement, and free its buffers
    /// (RFC 9293)
    #[arg(long, value_name = "TIME", value_parser = user_timeout, help_heading = "Engine")]
    pub(crate) user_timeout: Option<Micros>,
    /// Keepalive: probe a peer that is silent for IDLE, then every INTERVAL [default: 75s], and abort after PROBES
    /// [default: 9] without an answer: 30s,5s,3
    #[arg(long, value_name = "IDLE[,INTERVAL[,PROBES]]", value_parser = keepalive, help_heading = "Engine")]
    pub(crate) keepalive: Option<KeepaliveArgs>,
    /// Stop after this time in any case
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = super::seconds, help_heading = "Engine")]
    pub(crate) time: Micros,
}

/// A policy of the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileName {
    /// The engine's own: every extension, values of the RFCs
    #[default]
    Fullpipe,
    /// Linux 6.x
    Linux,
    /// FreeBSD 14
    Freebsd,
    /// NetBurner of 2009: no extensions
    Netburner,
}

/// What an application wants of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// Small messages leave at once: no Nagle
    #[value(name = "low_latency", alias = "low-latency")]
    LowLatency,
    /// Full segments only, 43 buffers for everything
    Bulk,
}

/// Budgets as they were given; what is absent keeps its default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BudgetArgs {
    /// Received and not read.
    pub(crate) rx: Option<u16>,
    /// Written and not sent.
    pub(crate) tx: Option<u16>,
    /// Out of order.
    pub(crate) ooo: Option<u16>,
    /// Sent and not acknowledged.
    pub(crate) unacked: Option<u16>,
}

/// When a silent peer is probed, and given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeepaliveArgs {
    /// Silence before the first probe, in seconds.
    pub(crate) idle_s: u32,
    /// Between probes, in seconds.
    pub(crate) interval_s: u32,
    /// So many without an answer.
    pub(crate) probes: u8,
}

/// The engine counts it in milliseconds, 24 days at the most.
fn user_timeout(text: &str) -> Result<Micros, String> {
    let span: Micros = text.parse().map_err(|error| format!("{error}"))?;
    let range = Micros::from_millis(1)..=Micros::from_millis(1 << 31);
    if range.contains(&span) { Ok(span) } else { Err("expected a time from 1ms to 24 days".to_owned()) }
}

/// `30s,5s,3`: the engine counts the times in whole seconds.
fn keepalive(text: &str) -> Result<KeepaliveArgs, String> {
    let mut parts = text.split(',');
    let seconds = |text: &str, most: u64| {
        let span: Micros = text.trim().parse().map_err(|error| format!("{text}: {error}"))?;
        let seconds = span.get().div_ceil(1_000_000);
        u32::try_from(seconds)
            .ok()
            .filter(|s| (1..=most).contains(&u64::from(*s)))
            .ok_or_else(|| format!("{text}: expected a time from 1s to {most}s"))
    };
    // What most platforms do when it is turned on.
    let idle_s = seconds(parts.next().unwrap_or_default(), 2_000_000)?;
    let mut keepalive = KeepaliveArgs { idle_s, interval_s: 75, probes: 9 };
    if let Some(interval) = parts.next() {
        keepalive.interval_s = seconds(interval, 4_000)?;
    }
    if let Some(probes) = parts.next() {
        let number = probes.trim().parse().ok().filter(|probes| *probes > 0);
        keepalive.probes = number.ok_or_else(|| format!("`{probes}` is not a number of probes; give 1 to 255"))?;
    }
    match parts.next() {
        None => Ok(keepalive),
        Some(more) => Err(format!("`{more}` is too much; give IDLE,INTERVAL,PROBES")),
    }
}

/// A name that a network device can have (IFNAMSIZ, `dev_valid_name` of Linux).
fn device(text: &str) -> Result<String, String> {
    let is_allowed = |c: char| !c.is_whitespace() && !"/:%".contains(c);
    if !(1..=15).contains(&text.len()) || [".", ".."].contains(&text) || !text.chars().all(is_allowed) {
        return Err("expected a name of 1 to 15 bytes without `/`, `:`, `%` or blanks".to_owned());
    }
    Ok(text.to_owned())
}

fn budgets(text: &str) -> Result<BudgetArgs, String> {
    let number = |text: &str| {
        text.trim().parse::<u16>().map_err(|_| format!("`{text}` is not a number of buffers; give 1 to 65534"))
    };
    if !text.contains('=') {
        let all = Some(number(text)?);
        return Ok(BudgetArgs { rx: all, tx: all, ooo: all, unacked: all });
    }
    let mut budgets = BudgetArgs::default();
    for part in text.split(',') {
        let (name, value) = part.split_once('=').ok_or_else(|| format!("`{part}` is no budget; give rx=20"))?;
        let slot = match name.trim() {
            "rx" => &mut budgets.rx,
            "tx" => &mut budgets.tx,
            "ooo" => &mut budgets.ooo,
            "unacked" => &mut budgets.unacked,
            other => return Err(format!("unknown budget `{other}`; expected rx, tx, ooo or unacked")),
        };
        *slot = Some(number(value)?);
    }
    Ok(budgets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keepalive_is_a_time_and_perhaps_more() {
        assert_eq!(keepalive("30s"), Ok(KeepaliveArgs { idle_s: 30, interval_s: 75, probes: 9 }));
        assert_eq!(keepalive("30s,5s,3"), Ok(KeepaliveArgs { idle_s: 30, interval_s: 5, probes: 3 }));
        // Whole seconds, and never none.
        assert_eq!(keepalive("200ms").unwrap().idle_s, 1);
        for text in ["", "0s", "30s,0s", "30s,5s,0", "30s,5s,256", "30s,5s,3,1", "2h,2h"] {
            assert!(keepalive(text).is_err(), "{text}");
        }
    }

    #[test]
    fn budgets_are_one_number_or_named() {
        let all = Some(20);
        assert_eq!(budgets("20"), Ok(BudgetArgs { rx: all, tx: all, ooo: all, unacked: all }));
        assert_eq!(budgets("rx=20,ooo=19"), Ok(BudgetArgs { rx: all, ooo: Some(19), ..BudgetArgs::default() }));
        for (text, says) in
            [("", "not a number"), ("rx=", "not a number"), ("zz=5", "unknown budget"), ("rx=5,7", "no budget")]
        {
            assert!(budgets(text).unwrap_err().contains(says), "{text}");
        }
    }
}
