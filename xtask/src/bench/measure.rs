//! `fullpipe measure` beside iperf3 and nuttcp: the same path, the same message size, one after the other, over and over.
//!
//! Throughput is the receiver's, processor time that of both processes. Runs alternate, because the machine is never as
//! fast twice; medians are shown. Every sender uses CUBIC, because the pacing timers of BBR would be measured otherwise.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use xshell::{Shell, cmd};

/// Of one run: Gbit/s, and processor seconds of both ends per 10^9 B.
#[derive(Clone, Copy, Debug)]
struct Figures {
    gbps: f64,
    seconds_per_gb: f64,
}

/// Where a run goes: what stands before the command of each end, and the server's address.
struct Route {
    name: &'static str,
    server: &'static [&'static str],
    client: &'static [&'static str],
    address: &'static str,
}

const ROUTES: &[Route] = &[
    Route { name: "loopback", server: &[], client: &[], address: "127.0.0.1" },
    Route {
        name: "veth",
        server: &["ip", "netns", "exec", "fp-bench-b"],
        client: &["ip", "netns", "exec", "fp-bench-a"],
        address: "10.81.0.2",
    },
];

/// As every tool takes them; each tool's own default comes first.
const SIZES: &[&str] = &["default", "4K", "16K", "128K", "1M"];

const STREAMS: &[&str] = &["1", "4"];

const PORT: &str = "15201";

/// Runs everything `rounds` times and prints the medians.
pub(super) fn run(shell: &Shell, rounds: u32) -> Result<()> {
    cmd!(shell, "cargo build --release --locked --quiet --package fullpipe").run()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| shell.current_dir().join("target"), Into::into);
    let fullpipe = target.join("release/fullpipe");
    let veth = Veth::make(shell);
    if let Err(error) = &veth {
        eprintln!("bench: skipped veth: {error:#}");
    }
    let routes = ROUTES.iter().filter(|route| route.client.is_empty() || veth.is_ok());
    println!("path      streams  size      tool         Gbit/s   s/GB   of iperf3");
    for route in routes {
        for streams in STREAMS {
            for size in SIZES {
                line(route, streams, size, &fullpipe, rounds);
            }
        }
    }
    Ok(())
}

/// All tools in alternation; a tool that fails is named and left out.
fn line(route: &Route, streams: &str, size: &str, fullpipe: &Path, rounds: u32) {
    let tools = ["iperf3", "fullpipe", "nuttcp"];
    let mut runs: [Vec<Figures>; 3] = Default::default();
    for _ in 0..rounds {
        for (tool, runs) in tools.iter().zip(&mut runs) {
            match once(tool, route, streams, size, fullpipe) {
                Ok(figures) => runs.push(figures),
                Err(error) => eprintln!("bench: {tool} {} {size}: {error:#}", route.name),
            }
        }
    }
    let base = median(&runs[0]);
    for (tool, runs) in tools.iter().zip(&runs) {
        let Some(figures) = median(runs) else { continue };
        let ratio = base.map_or_else(String::new, |base| {
            format!("{:.2}x at {:.2}x", figures.gbps / base.gbps, figures.seconds_per_gb / base.seconds_per_gb)
        });
        let (name, gbps, seconds) = (route.name, figures.gbps, figures.seconds_per_gb);
        println!("{name:<9} {streams:>7}  {size:<8}  {tool:<10} {gbps:>8.1} {seconds:>6.3}   {ratio}");
    }
}

fn median(runs: &[Figures]) -> Option<Figures> {
    let middle = |of: fn(&Figures) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    Some(Figures { gbps: middle(|f| f.gbps)?, seconds_per_gb: middle(|f| f.seconds_per_gb)? })
}

fn once(tool: &str, route: &Route, streams: &str, size: &str, fullpipe: &Path) -> Result<Figures> {
    let own = fullpipe.to_string_lossy();
    let listening = format!("{}:{PORT}", route.address);
    let sized = |flag: &'static str| if size == "default" { vec![] } else { vec![flag, size] };
    let (server, client): (Vec<&str>, Vec<&str>) = match tool {
        "iperf3" => (
            vec!["iperf3", "-s", "-1", "-p", PORT, "--forceflush"],
            [
                vec!["iperf3", "-c", route.address, "-p", PORT, "-J", "-t", "3", "-C", "cubic", "-P", streams],
                sized("-l"),
            ]
            .concat(),
        ),
        "fullpipe" => (
            vec![&own, "serve", &listening, "--no-settings"],
            [vec![&own, "measure", &listening, "--json", "-t", "3", "-C", "cubic", "-P", streams], sized("-l")]
                .concat(),
        ),
        _ => (
            vec!["nuttcp", "-S", "-1", "-P", PORT],
            [vec!["nuttcp", "-P", PORT, "-T3", "-fparse", "-N", streams], sized("-l"), vec![route.address]].concat(),
        ),
    };
    let mut running = start(&[route.server, &server].concat(), tool == "nuttcp")?;
    let words = [route.client, &client].concat();
    let output = Command::new(words[0]).args(&words[1..]).output().context("starting the client");
    drop(running.0.kill());
    drop(running.0.wait());
    let output = output?;
    if !output.status.success() {
        bail!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    figures(tool, &text).with_context(|| format!("no figures in {text}"))
}

fn figures(tool: &str, text: &str) -> Option<Figures> {
    let number = |document: &Value, pointer: &str| document.pointer(pointer)?.as_f64();
    let per_gb = |gbps: f64, percent: f64| Figures { gbps, seconds_per_gb: percent / 100.0 / (gbps / 8.0) };
    match tool {
        "iperf3" => {
            let document: Value = serde_json::from_str(text).ok()?;
            let gbps = number(&document, "/end/sum_received/bits_per_second")? / 1e9;
            let cpu = |end: &str| number(&document, &format!("/end/cpu_utilization_percent/{end}_total"));
            Some(per_gb(gbps, cpu("host")? + cpu("remote")?))
        }
        "fullpipe" => {
            let document: Value = serde_json::from_str(text).ok()?;
            let of = |end: &str| number(&document, &format!("/processor/{end}/seconds_per_gb"));
            let gbps = number(&document, "/directions/0/rate_bps")? / 1e9;
            Some(Figures { gbps, seconds_per_gb: of("own")? + of("far")? })
        }
        _ => {
            let field = |name: &str| -> Option<f64> {
                text.split_ascii_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
            };
            Some(per_gb(field("rate_Mbps")? / 1e3, field("tx_cpu")? + field("rx_cpu")?))
        }
    }
}

/// A server that is ended with the run.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Waits until the server says that it listens; a silent one gets a moment.
fn start(words: &[&str], silent: bool) -> Result<Running> {
    let mut child = Command::new(words[0]).args(&words[1..]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let output = child.stdout.take();
    let running = Running(child);
    if silent {
        thread::sleep(Duration::from_millis(300));
        return Ok(running);
    }
    let mut lines = BufReader::new(output.context("the server has no output")?).lines();
    if !lines.any(|line| line.is_ok_and(|line| line.contains("listening"))) {
        bail!("the server never listened");
    }
    // Nobody may let its pipe run full.
    thread::spawn(move || lines.count());
    Ok(running)
}

/// Two namespaces with a pair of interfaces between them; removed when it is dropped.
struct Veth<'a>(&'a Shell);

impl<'a> Veth<'a> {
    fn make(shell: &'a Shell) -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            bail!("it takes root");
        }
        let veth = Self(shell);
        for line in [
            "netns add fp-bench-a",
            "netns add fp-bench-b",
            "link add fpa netns fp-bench-a type veth peer name fpb netns fp-bench-b",
            "-n fp-bench-a address add 10.81.0.1/24 dev fpa",
            "-n fp-bench-b address add 10.81.0.2/24 dev fpb",
            "-n fp-bench-a link set fpa up",
            "-n fp-bench-b link set fpb up",
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            cmd!(shell, "ip {words...}").quiet().run()?;
        }
        Ok(veth)
    }
}

impl Drop for Veth<'_> {
    fn drop(&mut self) {
        for name in ["fp-bench-a", "fp-bench-b"] {
            drop(cmd!(self.0, "ip netns delete {name}").quiet().ignore_stderr().run());
        }
    }
}
