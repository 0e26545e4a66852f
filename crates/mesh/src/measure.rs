//! Measures the pairs, one at a time, so that none disturbs another.

use std::{
    io::Read as _,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use fullpipe_diagnose::Limiter;
use fullpipe_units::{Micros, Rate};
use serde::Deserialize;

use crate::{Host, Hosts, MeshError};

/// How each direction is measured.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// For how long.
    pub seconds: Micros,
    /// What is left out before that.
    pub omit: Micros,
}

/// One direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Who sent, by the place in [`Hosts::hosts`].
    pub from: usize,
    /// Who received.
    pub to: usize,
    /// What came out, or why nothing did.
    pub found: Result<Found, String>,
    /// Who could not measure it to the other end, so that the other end did.
    pub unable: Option<Unable>,
}

/// A host that could not measure to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unable {
    /// Its place in [`Hosts::hosts`].
    pub host: usize,
    /// What went wrong.
    pub why: String,
}

/// What was measured of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Payload rate.
    pub rate: Rate,
    /// Round-trip time without load.
    pub rtt: Option<Micros>,
    /// What limited it.
    pub limiter: Limiter,
}

/// How long beyond its own time a measurement may take: an SSH login, the path MTU, slow hosts.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a running measurement is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// The most that is read of what a host prints, in bytes.
const MOST: u64 = 16 << 20;

/// Measures both directions of every pair, one pair after the other; `begins` hears of each. Where the first of a pair
/// can't measure to the second, the second tries it to the first.
///
/// # Errors
/// `cancel` was set. What goes wrong with a pair is in its cells.
pub fn measure(
    hosts: &Hosts,
    test: Test,
    cancel: &AtomicBool,
    begins: &mut dyn FnMut(&Host, &Host, usize, usize),
) -> Result<Vec<Cell>, MeshError> {
    let count = hosts.hosts.len();
    let pairs: Vec<(usize, usize)> = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).collect();
    let mut cells = Vec::new();
    for (number, &(a, b)) in (1..).zip(&pairs) {
        begins(&hosts.hosts[a], &hosts.hosts[b], number, pairs.len());
        let first = pair(hosts, (a, b), test, cancel)?;
        let cells_of = match first {
            Ok(cells) => cells,
            Err(why) => match pair(hosts, (b, a), test, cancel)? {
                Ok(cells) => cells.map(|cell| Cell { unable: Some(Unable { host: a, why: why.clone() }), ..cell }),
                Err(also) => {
                    let (here, there) = (&hosts.hosts[a].name, &hosts.hosts[b].name);
                    let why = format!("on {here}: {why}; on {there}: {also}");
                    [(a, b), (b, a)].map(|(from, to)| Cell { from, to, found: Err(why.clone()), unable: None })
                }
            },
        };
        cells.extend(cells_of);
    }
    cells.sort_by_key(|cell| (cell.from, cell.to));
    Ok(cells)
}

/// Both directions of a pair, measured on `client`; why not, where it failed.
fn pair(
    hosts: &Hosts,
    (client, server): (usize, usize),
    test: Test,
    cancel: &AtomicBool,
) -> Result<Result<[Cell; 2], String>, MeshError> {
    let (on, to) = (&hosts.hosts[client], &hosts.hosts[server]);
    let seconds = [test.seconds, test.omit].map(|time| format!("{}us", time.get()));
    let words = ["check", &to.address, "--json", "--quiet", "--seconds", &seconds[0], "--omit", &seconds[1]];
    let all: Vec<&str> = on.run.iter().map(String::as_str).chain([on.program.as_str()]).chain(words).collect();
    let limit = 4 * (Duration::from(test.seconds) + Duration::from(test.omit)) + PATIENCE;
    let said = match run(&all, limit, cancel) {
        Ended::Cancelled => return Err(MeshError::Interrupted),
        Ended::Failed(why) => return Ok(Err(why)),
        Ended::Said(said) => said,
    };
    let found = match read(&said) {
        Ok(found) => found,
        Err(why) => return Ok(Err(why)),
    };
    let cell = |from, to, found: Option<Found>| Cell {
        from,
        to,
        found: found.ok_or_else(|| "the document has no such direction".to_owned()),
        unable: None,
    };
    Ok(Ok([cell(client, server, found[0]), cell(server, client, found[1])]))
}

enum Ended {
    Said(String),
    Failed(String),
    Cancelled,
}

/// Runs a command to its end, its time limit, or a cancellation.
fn run(words: &[&str], limit: Duration, cancel: &AtomicBool) -> Ended {
    let [program, arguments @ ..] = words else { return Ended::Failed("there is no command".to_owned()) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ended::Failed(format!("starting {program}: {error}")),
    };
    let [out, err] = [child.stdout.take().map(boxed), child.stderr.take().map(boxed)].map(|pipe| pipe.map(reader));
    let started = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(error) => {
                end(&mut child);
                return Ended::Failed(format!("waiting for {program}: {error}"));
            }
        }
        if cancel.load(Relaxed) {
            end(&mut child);
            return Ended::Cancelled;
        }
        if started.elapsed() > limit {
            end(&mut child);
            return Ended::Failed(format!("no answer in {} s", limit.as_secs()));
        }
        thread::sleep(LOOK);
    };
    // Whatever it started may hold the pipes open: what came by then counts.
    let [out, err] =
        [out, err].map(|pipe| pipe.map(|pipe| pipe.recv_timeout(Duration::from_secs(5)).unwrap_or_default()));
    let (out, err) = (out.unwrap_or_default(), err.unwrap_or_default());
    if out.trim_start().starts_with('{') { Ended::Said(out) } else { Ended::Failed(no_document(status, &err)) }
}

fn boxed(pipe: impl std::io::Read + Send + 'static) -> Box<dyn std::io::Read + Send> {
    Box::new(pipe)
}

/// What comes out of a pipe, once it has ended.
fn reader(pipe: Box<dyn std::io::Read + Send>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error still tells something.
        drop(pipe.take(MOST).read_to_end(&mut bytes));
        // Nobody waits any more where the command was ended.
        drop(sender.send(String::from_utf8_lossy(&bytes).into_owned()));
    });
    receiver
}

/// Ends what was started here. What it started on another host ends by itself, when its measurement is over.
fn end(child: &mut Child) {
    // It may have ended meanwhile.
    drop(child.kill());
    drop(child.wait());
}

fn no_document(status: ExitStatus, err: &str) -> String {
    let last = err.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.map_or_else(|| format!("no document came ({status})"), |line| line.chars().take(300).collect())
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    transfers: Vec<Transfer>,
    error: Option<Problem>,
}

#[derive(Deserialize)]
struct Problem {
    message: String,
}

#[derive(Deserialize)]
struct Transfer {
    direction: String,
    rate_bps: Rate,
    rtt_us: Option<Micros>,
    diagnosis: Diagnosis,
}

#[derive(Deserialize)]
struct Diagnosis {
    limiter: Limiter,
}

/// What a `check` found from its host on (`a->b`) and back.
fn read(said: &str) -> Result<[Option<Found>; 2], String> {
    let document: Document =
        serde_json::from_str(said).map_err(|error| format!("what it printed is no document of `check`: {error}"))?;
    if let Some(problem) = document.error {
        return Err(problem.message);
    }
    let of = |direction: &str| {
        let transfer = document.transfers.iter().find(|transfer| transfer.direction == direction)?;
        Some(Found { rate: transfer.rate_bps, rtt: transfer.rtt_us, limiter: transfer.diagnosis.limiter })
    };
    Ok(["a->b", "b->a"].map(of))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: Test = Test { seconds: Micros::new(100_000), omit: Micros::new(100_000) };

    /// A host whose program is a script that gets the words of `check`, and prints what it likes.
    fn host(name: &str, script: &str) -> Host {
        let run = ["sh", "-c", script].map(str::to_owned).to_vec();
        Host { name: name.to_owned(), site: name.to_owned(), address: name.to_owned(), run, program: name.to_owned() }
    }

    fn mesh(hosts: Vec<Host>) -> Hosts {
        Hosts { name: "mesh".to_owned(), hosts, paths: Vec::new() }
    }

    fn document(up: u64, down: u64) -> String {
        let transfer = |direction: &str, rate: u64| {
            format!(
                "{{\"direction\": \"{direction}\", \"rate_bps\": {rate}, \"rtt_us\": null, \
                 \"diagnosis\": {{\"limiter\": \"receive_window\", \"more\": 1}}}}"
            )
        };
        format!("echo '{{\"transfers\": [{}, {}]}}'", transfer("a->b", up), transfer("b->a", down))
    }

    #[test]
    fn pairs_are_measured_one_after_the_other_and_both_directions_are_read() {
        let hosts = mesh(vec![host("a", &document(10, 20)), host("b", &document(30, 40)), host("c", "false")]);
        let mut begun = Vec::new();
        let cells = measure(&hosts, TEST, &AtomicBool::new(false), &mut |a, b, number, of| {
            begun.push(format!("{} {} {number}/{of}", a.name, b.name));
        });
        assert_eq!(begun, ["a b 1/3", "a c 2/3", "b c 3/3"]);
        let rates: Vec<_> =
            cells.unwrap().iter().map(|cell| (cell.from, cell.to, cell.found.as_ref().unwrap().rate.bps())).collect();
        assert_eq!(rates, [(0, 1, 10), (0, 2, 10), (1, 0, 20), (1, 2, 30), (2, 0, 20), (2, 1, 40)]);
    }

    #[test]
    fn a_pair_that_fails_from_one_side_is_measured_from_the_other() {
        let hosts = mesh(vec![host("a", "echo 'no route' >&2; exit 1"), host("b", &document(30, 40))]);
        let cells = measure(&hosts, TEST, &AtomicBool::new(false), &mut |_, _, _, _| {}).unwrap();
        let rates: Vec<_> = cells.iter().map(|cell| cell.found.as_ref().unwrap().rate.bps()).collect();
        assert_eq!(rates, [40, 30]);
        let unable = Unable { host: 0, why: "no route".to_owned() };
        assert!(cells.iter().all(|cell| cell.unable.as_ref() == Some(&unable)), "who could not is told: {cells:?}");
    }

    #[test]
    fn why_a_pair_can_not_be_measured_is_told_from_both_sides() {
        let refused = "echo '{\"error\": {\"kind\": \"refused\", \"message\": \"connecting to a: refused\"}}'; exit 5";
        let nothing = "echo 'Permission denied' >&2; exit 255";
        let cells = measure(
            &mesh(vec![host("a", nothing), host("b", refused)]),
            TEST,
            &AtomicBool::new(false),
            &mut |_, _, _, _| {},
        );
        for cell in cells.unwrap() {
            assert_eq!(cell.found.unwrap_err(), "on a: Permission denied; on b: connecting to a: refused");
        }
        let missing = Host { run: vec!["/no/such/program".to_owned()], ..host("a", "") };
        let cells =
            measure(&mesh(vec![missing, host("b", "echo '{]'")]), TEST, &AtomicBool::new(false), &mut |_, _, _, _| {})
                .unwrap();
        let why = cells[0].found.as_ref().unwrap_err();
        assert!(
            why.starts_with("on a: starting /no/such/program: ") && why.contains("no document of `check`"),
            "{why}"
        );
    }

    #[test]
    fn a_host_that_hangs_is_given_up_and_a_cancellation_ends_at_once() {
        let words = ["sh", "-c", "sleep 100"];
        let ended = run(&words, Duration::from_millis(100), &AtomicBool::new(false));
        assert!(matches!(ended, Ended::Failed(why) if why.starts_with("no answer in")));
        let hosts = mesh(vec![host("a", "sleep 100"), host("b", "sleep 100")]);
        let ended = measure(&hosts, TEST, &AtomicBool::new(true), &mut |_, _, _, _| {});
        assert!(matches!(ended, Err(MeshError::Interrupted)));
    }
}
