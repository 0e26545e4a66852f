//! Every option, one at a time, with the real thing at the other end, in both roles. A line is printed for each, from
//! which `cargo xtask interop` makes its table.

use std::{
    net::{Ipv6Addr, SocketAddr, TcpListener},
    process::Command,
    sync::{OnceLock, atomic::AtomicBool},
    thread,
    time::{Duration, Instant},
};

use fullpipe_measure::{
    Client, ClientOptions, Family, Length, MeasureError, ServerOptions, TestDirection, TestSpec, UdpSpec,
};
use fullpipe_units::{Bytes, Rate};
use serde_json::Value;

use crate::{
    interop::{Iperf3Server, iperf3_is_here},
    support::{Running, short, target},
};

/// Whether the installed version knows an option. Versions differ: `--bidir` came with 3.7.
pub(crate) fn iperf3_has(option: &str) -> bool {
    static HELP: OnceLock<String> = OnceLock::new();
    let help = HELP.get_or_init(|| {
        let output = Command::new("iperf3").arg("--help").output().unwrap();
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
    });
    help.split(|c: char| c.is_whitespace() || c == ',' || c == '[' || c == ']').any(|word| word == option)
}

/// Remembers what failed, so that the table is complete before the test fails.
struct Table {
    role: &'static str,
    failures: Vec<String>,
}

impl Table {
    fn new(role: &'static str) -> Self {
        Self { role, failures: Vec::new() }
    }

    fn row(&mut self, options: &str, outcome: Result<String, String>) {
        let (word, text) = match &outcome {
            Ok(text) => ("ok", text),
            Err(text) => ("FAILED", text),
        };
        println!("interop| {} | {options} | {word} | {}", self.role, text.replace('\n', " "));
        if let Err(text) = outcome {
            self.failures.push(format!("{options}: {text}"));
        }
    }

    fn skip(&self, options: &str) {
        println!("interop| {} | {options} | - | this version does not know it", self.role);
    }

    fn end(self) {
        assert!(self.failures.is_empty(), "{:#?}", self.failures);
    }
}

/// What a real client is given. Bytes end most tests, because a second is the shortest time that it knows.
const CLIENT: &[&str] = &[
    "-n 2M",
    "-t 1",
    "-k 40",
    "-R -n 2M",
    "-R -k 40",
    "--bidir -t 1",
    "-P 4 -n 4M",
    "-P 4 -R -n 4M",
    "--bidir -P 2 -t 1",
    "-t 1 -O 1",
    "-R -t 1 -O 1",
    "-l 16K -n 2M",
    "-w 64K -n 2M",
    "-M 1000 -n 2M",
    "-N -n 2M",
    "-C reno -n 2M",
    "-Z -n 2M",
    "-R -Z -n 2M",
    "-b 40M -t 1",
    "-R -b 40M -t 1",
    "-b 8M/20 -l 1K -t 1",
    "-R -b 8M/20 -l 1K -t 1",
    "--dscp ef -n 2M",
    "--fq-rate 40M -t 1",
    "-S 0x20 -n 2M",
    "-i 0.2 -t 1",
    "--get-server-output -n 2M",
    "--title name -n 2M",
    "--extra-data text -n 2M",
    "--repeating-payload -n 2M",
    "--skip-rx-copy -R -n 2M",
    "--cntl-ka -n 2M",
    "-4 -n 2M",
    "-6 -n 2M",
    "-u -b 8M -t 1",
    "-u -R -b 8M -t 1",
    "-u --bidir -b 8M -t 1",
    "-u -P 2 -b 4M -t 1",
    "-u -l 1000 -b 8M -t 1",
    "-u --udp-counters-64bit -b 8M -t 1",
    "-u -6 -b 8M -t 1",
];

#[test]
fn every_option_of_a_real_client_is_served() {
    if !iperf3_is_here("every_option_of_a_real_client_is_served") {
        return;
    }
    let server = Running::at("[::]:0".parse().unwrap(), ServerOptions::default(), None);
    let mut table = Table::new("real client");
    for options in CLIENT {
        let words: Vec<&str> = options.split(' ').collect();
        if words.iter().any(|word| word.starts_with('-') && !iperf3_has(word)) {
            table.skip(options);
            continue;
        }
        let host = if words.contains(&"-6") { "::1" } else { "127.0.0.1" };
        let port = server.address.port().to_string();
        let output = Command::new("iperf3").args(["-c", host, "-p", &port, "-J"]).args(&words).output().unwrap();
        let outcome = match serde_json::from_slice::<Value>(&output.stdout) {
            Ok(report) => client_saw(&report, &words),
            Err(error) => Err(format!("{error}: {}", String::from_utf8_lossy(&output.stderr))),
        };
        table.row(options, outcome);
    }
    table.end();
}

fn client_saw(report: &Value, words: &[&str]) -> Result<String, String> {
    if let Some(error) = report["error"].as_str() {
        return Err(error.to_owned());
    }
    let end = &report["end"];
    let wrong = |what: &str| Err(format!("{what}: {end}"));
    if words.contains(&"-u") {
        let packets = end["sum"]["packets"].as_u64().unwrap_or(0);
        return if packets > 2 { Ok(format!("{packets} datagrams")) } else { wrong("datagrams") };
    }
    let received = end["sum_received"]["bytes"].as_f64().unwrap_or(0.0);
    // A sum that lacks one end's figure would show as nothing sent.
    if received <= 0.0 || end["sum_sent"]["bytes"].as_f64().unwrap_or(0.0) < received * 0.9 {
        return wrong("sums");
    }
    if words.contains(&"--bidir") && end["sum_received_bidir_reverse"]["bytes"].as_f64().unwrap_or(0.0) <= 0.0 {
        return wrong("the way back");
    }
    if words.contains(&"--get-server-output") && !report["server_output_text"].is_string() {
        return Err("no server output".to_owned());
    }
    Ok(format!("{received} B received"))
}

#[test]
fn every_option_reaches_a_real_server() {
    if !iperf3_is_here("every_option_reaches_a_real_server") {
        return;
    }
    let mut table = Table::new("real server");
    for ip in [[127, 0, 0, 1].into(), std::net::IpAddr::from(Ipv6Addr::LOCALHOST)] {
        let free = TcpListener::bind(SocketAddr::new(ip, 0)).unwrap().local_addr().unwrap();
        let server = Iperf3Server::start_with(free, &[]);
        for (name, spec) in specs() {
            if spec.direction == TestDirection::Both && !iperf3_has("--bidir") {
                table.skip(name);
                continue;
            }
            // What does not depend on the address is seen once.
            if ip.is_ipv6() && !matches!(name, "(none)" | "-u") {
                continue;
            }
            let name = if ip.is_ipv6() { format!("-6 {name}") } else { name.to_owned() };
            table.row(&name, against(&server, &spec));
        }
    }
    table.end();
}

/// With the session of the first test held, as `fullpipe measure` does.
fn against(server: &Iperf3Server, spec: &TestSpec) -> Result<String, String> {
    let never = AtomicBool::new(false);
    let mut client = connect_between_tests(server, spec).map_err(|error| error.to_string())?;
    let measurement = client.run(spec, &never, &mut |_| ()).map_err(|error| error.to_string())?;
    let expected = if spec.direction == TestDirection::Both { 2 } else { 1 };
    if measurement.directions.len() != expected {
        return Err(format!("{measurement:?}"));
    }
    let mut counts = Vec::new();
    for direction in &measurement.directions {
        if direction.rate_bps.is_none_or(|rate| rate.bps() == 0) {
            return Err(format!("{direction:?}"));
        }
        counts.push(direction.datagrams.map_or_else(|| direction.bytes.to_string(), |datagrams| datagrams.to_string()));
    }
    if spec.server_output && measurement.server_output.is_none() {
        return Err("no server output".to_owned());
    }
    Ok(counts.join(", "))
}

/// A real server closes its port between two tests for as long as it needs on a busy machine.
pub(crate) fn connect_between_tests(server: &Iperf3Server, spec: &TestSpec) -> Result<Client, MeasureError> {
    let family = if server.address.is_ipv6() { Family::V6 } else { Family::V4 };
    let options = ClientOptions { family, ..ClientOptions::default() };
    let again_until = Instant::now() + Duration::from_secs(20);
    loop {
        let never = AtomicBool::new(false);
        match Client::connect_for(&target(server.address), options, (None, Some(spec)), &never) {
            Err(MeasureError::Refused { .. } | MeasureError::Busy { .. } | MeasureError::Closed { .. })
                if Instant::now() < again_until =>
            {
                thread::sleep(Duration::from_millis(50));
            }
            connected => return connected,
        }
    }
}

fn specs() -> Vec<(&'static str, TestSpec)> {
    let second = Length::Time(Duration::from_secs(1));
    let few = || TestSpec { length: Length::Bytes(Bytes::new(2_000_000)), block: Bytes::new(100_000), ..short() };
    let udp = || TestSpec {
        udp: Some(UdpSpec { counters_64bit: false }),
        block: Bytes::new(1_000),
        pace: Some(Rate::from_bps(4_000_000)),
        congestion_control: None,
        length: second,
        ..short()
    };
    let (down, both) = (TestDirection::Down, TestDirection::Both);
    let window = Some(Bytes::new(65_536));
    let text = |text: &str| Some(text.to_owned());
    vec![
        ("(none)", few()),
        ("-t", TestSpec { length: second, ..short() }),
        ("-R", TestSpec { direction: down, ..few() }),
        ("--bidir", TestSpec { direction: both, length: second, ..short() }),
        ("-P 4", TestSpec { streams: 4, ..few() }),
        ("-P 4 -R", TestSpec { streams: 4, direction: down, ..few() }),
        ("--bidir -P 2", TestSpec { streams: 2, direction: both, length: second, ..short() }),
        ("-O 1", TestSpec { omit: Duration::from_secs(1), length: second, ..short() }),
        ("-O 1 -R", TestSpec { omit: Duration::from_secs(1), length: second, direction: down, ..short() }),
        ("-l 16K", TestSpec { block: Bytes::new(16_384), ..few() }),
        ("-w 64K", TestSpec { send_buffer: window, receive_buffer: window, ..few() }),
        ("-M 1000", TestSpec { mss: Some(1_000), ..few() }),
        ("-N", TestSpec { nodelay: true, ..few() }),
        ("-C reno", TestSpec { congestion_control: text("reno"), ..few() }),
        ("-C reno -R", TestSpec { congestion_control: text("reno"), direction: down, ..few() }),
        ("-Z", TestSpec { zerocopy: true, ..few() }),
        ("-Z -R", TestSpec { zerocopy: true, direction: down, ..few() }),
        ("-b 40M", TestSpec { pace: Some(Rate::from_bps(40_000_000)), length: second, ..short() }),
        ("-b 40M -R", TestSpec { pace: Some(Rate::from_bps(40_000_000)), direction: down, length: second, ..short() }),
        ("-S 0x20", TestSpec { tos: Some(0x20), ..few() }),
        ("--get-server-output", TestSpec { server_output: true, ..few() }),
        ("--title --extra-data", TestSpec { title: text("name"), extra_data: text("text"), ..few() }),
        ("-u", udp()),
        ("-u -R", TestSpec { direction: down, ..udp() }),
        ("-u --bidir", TestSpec { direction: both, ..udp() }),
        ("-u -P 2", TestSpec { streams: 2, ..udp() }),
        ("-u --udp-counters-64bit", TestSpec { udp: Some(UdpSpec { counters_64bit: true }), ..udp() }),
    ]
}
