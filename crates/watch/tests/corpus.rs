//! Transfers of programs that everybody has, over paths and with settings whose limiter is known, and what `watch` says of them at the
//! sender. A few in each test run; all of them with `FULLPIPE_ALL_PATHS=1` (`cargo xtask soak`), where 95 of 100 verdicts have to be the
//! known cause. Without the right to make a path, or without a program, that is said and passed over.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    collections::BTreeSet,
    fs::{self, File},
    os::unix::fs::{PermissionsExt, chown},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use fullpipe_diagnose::Limiter;
use fullpipe_lab::{Lab, LabHost, LabOptions, Side, preflight};
use fullpipe_path::{HopSpec, IpVersions, LossSpec, PathHop, PathSpec, QueueSize, QueueSpec};
use fullpipe_units::{Micros, Rate};
use fullpipe_watch::{Filter, Frame, Row, Sort, Watcher};

/// Host B sends, and is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Program {
    Nginx,
    Iperf3,
    Scp,
    Rsync,
    Redis,
    Postgres,
}

use Program::{Iperf3, Nginx, Postgres, Redis, Rsync, Scp};

const PROGRAMS: [Program; 6] = [Nginx, Iperf3, Scp, Rsync, Redis, Postgres];

/// What is the matter.
#[derive(Clone, Copy, Debug)]
enum Cause {
    /// The rate of the path.
    Narrow,
    /// One packet in a hundred is lost.
    Loss,
    /// The largest size in the receiver's `tcp_rmem`.
    ReceiveLimit(u32),
    /// No window scaling at the receiver.
    NoScaling,
    /// The largest size in the sender's `tcp_wmem`.
    SendLimit(u32),
    /// `iperf3 -w 64K`.
    Pinned,
    /// The program sends 300 kB in a second.
    Paced,
    /// A connection on which nothing goes.
    Idle,
}

impl Cause {
    fn limiters(self) -> &'static [Limiter] {
        match self {
            Self::Narrow => &[Limiter::Path],
            // Losses of the path are what keeps the congestion window small.
            Self::Loss => &[Limiter::Path, Limiter::CongestionWindow],
            Self::ReceiveLimit(_) | Self::NoScaling | Self::Pinned => &[Limiter::ReceiveWindow],
            Self::SendLimit(_) => &[Limiter::SendBuffer],
            Self::Paced => &[Limiter::Application],
            Self::Idle => &[],
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    program: Program,
    cause: Cause,
    mbit: u64,
    /// There and back.
    rtt_ms: u64,
    /// One of those in each test run.
    is_usual: bool,
}

fn cases() -> Vec<Case> {
    let situations = [
        (Cause::Narrow, 20, 40),
        (Cause::Narrow, 8, 100),
        (Cause::Narrow, 40, 10),
        (Cause::Loss, 60, 60),
        (Cause::ReceiveLimit(65_536), 60, 40),
        (Cause::ReceiveLimit(131_072), 60, 100),
        (Cause::NoScaling, 60, 80),
        (Cause::SendLimit(65_536), 60, 40),
        (Cause::SendLimit(131_072), 60, 100),
    ];
    let mut cases: Vec<Case> = situations
        .iter()
        .flat_map(|&(cause, mbit, rtt_ms)| {
            PROGRAMS.map(|program| Case { program, cause, mbit, rtt_ms, is_usual: false })
        })
        .collect();
    let mut more = |program, cause, rtt_ms| {
        cases.push(Case {
            program,
            cause,
            mbit: 60,
            rtt_ms,
            is_usual: program == Rsync || matches!(cause, Cause::Idle),
        });
    };
    for program in [Nginx, Iperf3, Rsync] {
        more(program, Cause::Paced, 40);
    }
    more(Iperf3, Cause::Pinned, 40);
    more(Iperf3, Cause::Pinned, 80);
    more(Redis, Cause::Idle, 40);
    more(Postgres, Cause::Idle, 40);
    let usual = [(Nginx, 0), (Redis, 7), (Iperf3, 4)];
    for (program, situation) in usual {
        let at = situation * PROGRAMS.len() + PROGRAMS.iter().position(|one| *one == program).unwrap();
        cases[at].is_usual = true;
    }
    cases
}

/// It refuses to be root.
const AS_POSTGRES: &str = "setpriv --reuid=postgres --regid=postgres --init-groups";
/// Debian has the server of postgres where no shell looks.
const FIND: &str = "PATH=$PATH:$(echo /usr/lib/postgresql/*/bin | tr ' ' ':'); export PATH;";

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

fn start(host: &LabHost, line: &str) -> Running {
    // `exec`, so that what ends the shell ends the program.
    Running(quiet(host.command("sh").args(["-c", &format!("{FIND} exec {line}")])).spawn().unwrap())
}

fn run(line: &str) {
    let status = quiet(Command::new("sh").args(["-c", &format!("{FIND} {line}")])).status().unwrap();
    assert!(status.success(), "{line}: {status}");
}

fn has(program: &str) -> bool {
    quiet(Command::new("sh").args(["-c", &format!("{FIND} command -v {program}")])).status().is_ok_and(|s| s.success())
}

impl Program {
    fn needs(self) -> &'static [&'static str] {
        match self {
            Nginx => &["nginx", "curl"],
            Iperf3 => &["iperf3"],
            Scp => &["sshd", "scp", "ssh-keygen"],
            Rsync => &["rsync"],
            Redis => &["redis-server", "redis-cli"],
            Postgres => &["initdb", "postgres", "psql", "setpriv"],
        }
    }

    /// What is made once.
    fn prepare(self, dir: &Path) {
        let at = dir.display();
        match self {
            Nginx => {
                let server = |port, more| format!("server {{ listen {port}; location / {{ root {at}; {more} }} }}");
                let (free, paced) = (server(8080, ""), server(8081, "limit_rate 300k;"));
                let text = format!(
                    "daemon off; master_process off; error_log {at}/nginx.log; pid {at}/nginx.pid; events {{}} \
                     http {{ access_log off; sendfile on; {free} {paced} }}"
                );
                fs::write(dir.join("nginx.conf"), text).unwrap();
            }
            Iperf3 => {}
            Scp => {
                run("mkdir -p /run/sshd");
                run(&format!("ssh-keygen -q -t ed25519 -N '' -f {at}/key && cp {at}/key.pub {at}/authorized"));
                let text = format!(
                    "Port 2222\nHostKey {at}/key\nAuthorizedKeysFile {at}/authorized\nStrictModes no\nUsePAM no\n\
                     PermitRootLogin yes\nPidFile {at}/sshd.pid\nSubsystem sftp internal-sftp\n"
                );
                fs::write(dir.join("sshd.conf"), text).unwrap();
            }
            Rsync => {
                let text = format!("use chroot = no\nuid = root\ngid = root\n[all]\npath = {at}\nread only = yes\n");
                fs::write(dir.join("rsync.conf"), text).unwrap();
            }
            Redis => File::create(dir.join("value")).unwrap().set_len(80 << 20).unwrap(),
            Postgres => {
                let data = dir.join("data");
                fs::create_dir(&data).unwrap();
                let passwd = fs::read_to_string("/etc/passwd").unwrap();
                let line = passwd.lines().find(|line| line.starts_with("postgres:")).unwrap();
                let ids: Vec<u32> = line.split(':').skip(2).take(2).map(|id| id.parse().unwrap()).collect();
                chown(&data, Some(ids[0]), Some(ids[1])).unwrap();
                run(&format!("cd / && {AS_POSTGRES} initdb -D {at}/data -A trust --no-sync"));
                run(&format!("echo 'host all all all trust' >> {at}/data/pg_hba.conf"));
            }
        }
    }

    /// The server at B, ready.
    fn serve(self, lab: &Lab, dir: &Path) -> Running {
        let (host, at) = (lab.host(Side::B), dir.display());
        let server = start(
            host,
            &match self {
                Nginx => format!("nginx -c {at}/nginx.conf"),
                Iperf3 => "iperf3 -s".to_owned(),
                Scp => format!("$(command -v sshd) -D -f {at}/sshd.conf"),
                Rsync => format!("rsync --daemon --no-detach --port 8730 --config {at}/rsync.conf"),
                Redis => {
                    format!(
                        "redis-server --port 6379 --bind 0.0.0.0 --protected-mode no --save '' --unixsocket {at}/redis.sock"
                    )
                }
                Postgres => format!(
                    "{AS_POSTGRES} postgres -D {at}/data -h 0.0.0.0 -k {at}/data -c fsync=off -c \
                     shared_buffers=16MB"
                ),
            },
        );
        let address = host.address();
        let is_there = |line: &str| {
            let mut command = host.command("sh");
            quiet(command.args(["-c", line])).status().is_ok_and(|status| status.success())
        };
        let ready = match self {
            // Not over TCP, whose sizes are those of the case.
            Redis => format!("redis-cli -s {at}/redis.sock -x set big < {at}/value | grep -q OK"),
            Postgres => format!("psql -h {address} -U postgres -c 'select 1'"),
            _ => "sleep 0.5".to_owned(),
        };
        assert!(
            (0..50).any(|_| is_there(&ready) || {
                thread::sleep(Duration::from_millis(100));
                false
            }),
            "{self:?}"
        );
        server
    }

    /// The client at A, which takes what B sends.
    fn client(self, lab: &Lab, dir: &Path, cause: Cause) -> Running {
        let (address, at) = (lab.host(Side::B).address(), dir.display());
        let line = match (self, cause) {
            (Nginx, Cause::Paced) => format!("curl -s -o /dev/null http://{address}:8081/big"),
            (Nginx, _) => format!("curl -s -o /dev/null http://{address}:8080/big"),
            (Iperf3, Cause::Paced) => format!("iperf3 -c {address} -R -t 60 -b 2400K"),
            (Iperf3, Cause::Pinned) => format!("iperf3 -c {address} -R -t 60 -w 64K"),
            (Iperf3, _) => format!("iperf3 -c {address} -R -t 60"),
            (Scp, _) => format!(
                "scp -q -P 2222 -i {at}/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
                 root@{address}:{at}/big /dev/null"
            ),
            (Rsync, Cause::Paced) => format!("rsync --bwlimit=300 --port 8730 {address}::all/big {at}/copy"),
            (Rsync, _) => format!("rsync --port 8730 {address}::all/big {at}/copy"),
            (Redis, Cause::Idle) => format!("sh -c 'sleep 60 | redis-cli -h {address}'"),
            (Redis, _) => format!("redis-cli -h {address} get big"),
            (Postgres, Cause::Idle) => format!("sh -c 'sleep 60 | psql -h {address} -U postgres'"),
            (Postgres, _) => format!(
                "psql -h {address} -U postgres -c \"copy (select repeat('x', 1000) from generate_series(1, 9000000)) to \
                 stdout\""
            ),
        };
        start(lab.host(Side::A), &line)
    }
}

fn lab(case: &Case) -> Lab {
    let queue = QueueSpec { size: QueueSize::Bdp { multiple: 1.0, at_least: 64 }, ..QueueSpec::default() };
    let hop = HopSpec {
        rate: Some(Rate::from_bps(case.mbit * 1_000_000)),
        delay: Micros::from_millis(case.rtt_ms / 2),
        queue,
        ..HopSpec::default()
    };
    let loss = matches!(case.cause, Cause::Loss).then_some(LossSpec::Bernoulli(0.01));
    let hops = vec![PathHop { name: None, ab: hop.clone(), ba: HopSpec { loss, ..hop } }];
    let lab = Lab::join(&PathSpec { mtu: 1_500, ip: IpVersions::V4, hops }, 1, LabOptions::default()).unwrap();
    let (side, name, value) = match case.cause {
        Cause::ReceiveLimit(size) => (Side::A, "net.ipv4.tcp_rmem", format!("4096 {} {size}", size / 2)),
        Cause::NoScaling => (Side::A, "net.ipv4.tcp_window_scaling", "0".to_owned()),
        Cause::SendLimit(size) => (Side::B, "net.ipv4.tcp_wmem", format!("4096 16384 {size}")),
        _ => return lab,
    };
    lab.host(side).apply(&[(name.to_owned(), value)].into()).unwrap();
    lab
}

/// What B sees of its connections after so many seconds, whatever that is: no look is chosen.
fn seen(host: &LabHost) -> Frame {
    host.run(|| {
        let mut watcher = Watcher::new(Duration::from_millis(500), Filter::default(), Sort::Worst, 100).unwrap();
        let mut last = None;
        for _ in 0..8 {
            last = watcher.next_frame(&|| false).unwrap();
        }
        last.unwrap()
    })
    .unwrap()
}

fn is_blamed(row: &Row) -> bool {
    row.limiter().is_some_and(|limiter| !matches!(limiter, Limiter::Application | Limiter::InsufficientEvidence))
        || row.notes.iter().any(|note| note.is_trouble)
}

/// What was wrong with the verdict.
fn look(case: &Case, dir: &Path) -> Option<String> {
    let lab = lab(case);
    let _server = case.program.serve(&lab, dir);
    let _client = case.program.client(&lab, dir, case.cause);
    thread::sleep(Duration::from_millis(1_500 + 10 * case.rtt_ms));
    let frame = seen(lab.host(Side::B));
    if matches!(case.cause, Cause::Idle) {
        assert!(!frame.rows.is_empty(), "no connection");
        let blamed: Vec<&Row> = frame.rows.iter().filter(|row| is_blamed(row)).collect();
        return (!blamed.is_empty()).then(|| format!("idle, and blamed: {blamed:#?}"));
    }
    let Some(busiest) = frame.rows.iter().max_by_key(|row| row.rate()) else { return Some("no connection".to_owned()) };
    let is_right = busiest.limiter().is_some_and(|limiter| case.cause.limiters().contains(&limiter));
    let diagnosis = busiest.diagnosis.as_ref();
    (!is_right).then(|| {
        format!(
            "{} at {}: {:?} {:?}, {:?}",
            busiest.owner.as_ref().map_or("?", |owner| &owner.process),
            busiest.rate().unwrap_or_default(),
            busiest.limiter(),
            diagnosis.and_then(|diagnosis| diagnosis.detail),
            diagnosis.map(|diagnosis| &diagnosis.shares),
        )
    })
}

#[test]
fn the_verdict_on_transfers_of_known_programs_is_the_known_cause() {
    let test = "the_verdict_on_transfers_of_known_programs_is_the_known_cause";
    if let Err(error) = preflight() {
        return println!("skipped {test}: {error}");
    }
    if !rustix::process::geteuid().is_root() {
        return println!("skipped {test}: a test can't enter a user namespace, for its process has threads already");
    }
    let dir = tempfile::tempdir().unwrap();
    // postgres is another user.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    File::create(dir.path().join("big")).unwrap().set_len(2 << 30).unwrap();
    let is_all = std::env::var_os("FULLPIPE_ALL_PATHS").is_some();
    let cases: Vec<Case> = cases().into_iter().filter(|case| is_all || case.is_usual).collect();
    let mut missing = BTreeSet::new();
    let mut prepared = BTreeSet::new();
    let (mut looked, mut wrong) = (0, Vec::new());
    for case in &cases {
        if let Some(program) = case.program.needs().iter().find(|program| !has(program)) {
            if missing.insert(*program) {
                println!("skipped {test}: {program} is not installed");
            }
            continue;
        }
        if prepared.insert(case.program) {
            case.program.prepare(dir.path());
        }
        let began = Instant::now();
        let is_idle = matches!(case.cause, Cause::Idle);
        let mut fault = look(case, dir.path());
        // One of a few may meet a machine that is busy with other tests; of all of them none is looked at twice.
        if fault.is_some() && !is_all && !is_idle {
            fault = look(case, dir.path());
        }
        looked += 1;
        println!("{case:?}: {} ({:.0?})", fault.as_deref().unwrap_or("right"), began.elapsed());
        wrong.extend(fault.map(|fault| (is_idle, format!("{case:?}: {fault}"))));
    }
    println!("{} of {looked} verdicts are the known cause", looked - wrong.len());
    assert!(!wrong.iter().any(|(is_idle, _)| *is_idle), "{wrong:#?}");
    let most = if is_all { looked / 20 } else { 0 };
    assert!(wrong.len() <= most, "{wrong:#?}");
}
