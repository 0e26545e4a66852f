//! Pages in a real browser: written by the program from real runs, opened in Chromium by `web/tests`. Without Node, the
//! packages of `web/` or a Chromium each test says so and passes.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

fn web() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web")
}

fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .find(|file| file.is_file())
}

/// Node, and the packages of `web/`.
fn node(test: &str) -> Option<PathBuf> {
    let node = program(&["node"]);
    if node.is_none() {
        println!("skipped {test}: there is no Node.js");
    } else if !web().join("node_modules/uplot").is_dir() {
        println!("skipped {test}: the packages of web/ are not here; `npm ci` there fetches them");
        return None;
    }
    node
}

fn fullpipe(arguments: &[&str]) {
    let run = Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(arguments).output().unwrap();
    assert!(run.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&run.stderr));
}

/// A command that can't succeed.
fn fails(arguments: &[&str]) {
    let run = Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(arguments).output().unwrap();
    assert!(!run.status.success(), "{arguments:?}");
}

/// Measured, planned, tried, proven and undone on real kernels, in one direction. What came out is not looked at here, so that a
/// busy machine does no harm.
fn real_loop(page: &str) {
    if let Err(missing) = fullpipe_lab::preflight() {
        return println!("skipped the page of a real loop: {missing}");
    }
    let arguments = ["lab", "run", "wan-80ms-sender", "--quiet", "--html", page];
    let run = Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(arguments).output().unwrap();
    // 1: something was not as the scenario expects. Where it could not be run, its page says so, and is looked at all the same.
    if !matches!(run.status.code(), Some(0 | 1)) {
        println!(
            "skipped the page of a real loop: this machine was too busy: {}",
            String::from_utf8_lossy(&run.stderr)
        );
    }
}

/// Twelve hosts that answer with a document of their own: one receives slowly, and two don't reach each other.
#[cfg(unix)]
fn mesh(folder: &Path, page: &str) {
    // After the name of the host: `check ADDRESS ...`.
    const ANSWERS: &str = r#"
        case $1$3 in lima-1paris-3 | paris-3lima-1) echo 'no route to host' >&2; exit 1 ;; esac
        up=940000000 down=940000000 limit=path
        [ $3 = tokyo-4 ] && up=64000000 limit=receive_window
        [ $1 = tokyo-4 ] && down=64000000
        echo "{\"transfers\": [
            {\"direction\": \"a->b\", \"rate_bps\": $up, \"rtt_us\": 80000, \"diagnosis\": {\"limiter\": \"$limit\"}},
            {\"direction\": \"b->a\", \"rate_bps\": $down, \"rtt_us\": 80000, \"diagnosis\": {\"limiter\": \"path\"}}]}"
    "#;
    let script = folder.join("answers");
    fs::write(&script, ANSWERS).unwrap();
    let hosts = ["lima", "paris", "tokyo"].into_iter().flat_map(|site| (1..=4).map(move |n| (site, n)));
    let host = |(site, n)| {
        let run = script.display();
        format!("[[host]]\nname = '{site}-{n}'\nsite = '{site}'\nprogram = '{site}-{n}'\nrun = ['sh', '{run}']\n")
    };
    let file = folder.join("hosts.toml");
    fs::write(&file, hosts.map(host).collect::<String>()).unwrap();
    let words = ["mesh", file.to_str().unwrap(), "--no-store", "--quiet", "--html", page];
    let run = Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(words).output().unwrap();
    assert_eq!(run.status.code(), Some(1), "{}", String::from_utf8_lossy(&run.stderr));
}

#[cfg(not(unix))]
fn mesh(_: &Path, _: &str) {}

/// A server of this program, ended with the test.
struct Running(Child);

impl Running {
    /// With the first line that it prints.
    fn start(arguments: &[&str], state: &Path) -> (Self, String) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
            .args(arguments)
            .env("FULLPIPE_STATE_DIR", state)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (Self(child), line.trim().to_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Nine seconds at 1 Gbit/s, one packet in two hundred thousand lost: more than a million packets.
const GIGABIT: &str = r#"
schema = 1
name = "gigabit"
summary = "9 s at 1 Gbit/s"
source = "a test"
seed = 1

[path]
mtu = 1500
ip = "v4"

[[path.hops]]
name = "link"
rate = "1G"
delay = "2ms"
queue = { bdp = 1.0, at_least = 64 }
loss = 0.000005

[test]
seconds = 9
congestion = "cubic"

[expect."a->b"]
limiter = "path"
no_change = true
"#;

#[test]
fn pages_in_a_real_browser() {
    let test = "pages_in_a_real_browser";
    let Some(node) = node(test) else { return };
    let Some(chromium) = program(&["chromium", "chromium-browser", "google-chrome"]) else {
        println!("skipped {test}: there is no Chromium");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let page = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../capture/tests/data");
    let capture = |name: &str| captures.join(name).to_str().unwrap().to_owned();
    fullpipe(&["sim", "wan-80ms", "--html", &page("sim.html")]);
    fullpipe(&["demo", "--sim", "--html", &page("demo.html")]);
    fullpipe(&["sim", "netburner-wan", "--html", &page("device.html")]);
    fullpipe(&["sim", "--all", "--html", &page("all.html")]);
    mesh(folder.path(), &page("mesh.html"));
    let path = page("loop.html");
    // It takes half a minute and little of a processor.
    let real = std::thread::spawn(move || real_loop(&path));
    let sweep = "receiver.window=16k..4M";
    fullpipe(&["what-if", "--rate", "20M", "--rtt", "80ms", "--sweep", sweep, "--html", &page("sweep.html")]);
    let (server, far) = Running::start(&["serve", "127.0.0.1:0", "--quiet"], folder.path());
    let far = far.trim_start_matches("listening on ");
    for (asked, name) in [
        (&["--sizes", "1k..4k", "-t", "0.2"][..], "sizes.html"),
        (&["--streams", "1..2", "-t", "0.2"], "streams.html"),
        (&["--latency-under-load", "-t", "0.5"], "load.html"),
        (&["--pattern", "connect-request-response", "-t", "0.2"], "requests.html"),
        (&["-t", "0.5"], "measured.html"),
    ] {
        fullpipe(&[&["measure", far, "--quiet", "--html", &page(name)], asked].concat());
    }
    fullpipe(&["read", &capture("50m-40ms-cubic-tail-loss-a.pcap"), "--html", &page("loss.html")]);
    fs::create_dir(folder.path().join("try")).unwrap();
    fullpipe(&["what-if", "--interactive", &page("try/what-if.html")]);
    let two = [capture("wan-80ms-cubic-window-a.pcap"), capture("adsl2-cubic-window-a.pcap")];
    fullpipe(&["read", &two[0], "--html", &page("window.html")]);
    // No packets at all, and a name that would be markup.
    let bytes = fs::read(&two[1]).unwrap();
    let (empty, hostile) = (folder.path().join("empty.pcap"), folder.path().join("<img src=x onerror=alert(1)>.pcap"));
    fs::write(&empty, &bytes[..24]).unwrap();
    fs::write(&hostile, &bytes).unwrap();
    fullpipe(&["read", empty.to_str().unwrap(), "--html", &page("empty.html")]);
    fullpipe(&["read", hostile.to_str().unwrap(), "--html", &page("hostile.html")]);
    // A server that is dead, and a document that was cut: the page says so.
    fs::create_dir(folder.path().join("failed")).unwrap();
    let cut = folder.path().join("cut.json");
    fs::write(&cut, "{\"schema\": \"fullpipe/2\", \"command\": \"read\", \"conn").unwrap();
    fails(&["measure", "127.0.0.1:1", "--quiet", "--html", &page("failed/dead.html")]);
    fails(&["what-if", cut.to_str().unwrap(), "--html", &page("failed/cut.html")]);
    // More connections than one, and more packets than a graph can show.
    fullpipe(&["read", &two[0], &two[1], "--html", &page("several.html")]);
    fs::create_dir(folder.path().join("large")).unwrap();
    let (scenario, million) = (folder.path().join("large/gigabit.toml"), folder.path().join("large/million.pcap"));
    fs::write(&scenario, GIGABIT).unwrap();
    fullpipe(&["sim", scenario.to_str().unwrap(), "--pcap", million.to_str().unwrap()]);
    fullpipe(&["read", million.to_str().unwrap(), "--html", &page("large/million.html")]);
    fs::remove_file(million).unwrap();
    let (web_view, link) =
        Running::start(&["web", "--quiet", "--listen", "127.0.0.1:0", "--dir", &page("reports")], folder.path());
    real.join().unwrap();
    let run = Command::new(node)
        .args(["--test", "--test-reporter=spec", "tests/"])
        .current_dir(web())
        .env("WEB", link.trim_start_matches("open ").trim_end_matches('/'))
        .env("FAR", far)
        .env("CAPTURE", capture("50m-40ms-cubic-tail-loss-a.pcap"))
        .env("PAGES", folder.path())
        .env("CHROMIUM", chromium)
        .env("FULLPIPE", env!("CARGO_BIN_EXE_fullpipe"))
        .output()
        .unwrap();
    drop((web_view, server));
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
    println!("{said}");
}

#[test]
fn the_script_of_the_pages_is_built_from_its_sources() {
    let Some(node) = node("the_script_of_the_pages_is_built_from_its_sources") else { return };
    let types = web().join("node_modules/typescript/bin/tsc");
    for arguments in [vec![types.to_str().unwrap(), "--noEmit"], vec!["build.mjs", "--check"]] {
        let run = Command::new(&node).args(&arguments).current_dir(web()).output().unwrap();
        let said = [run.stdout, run.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
        assert!(run.status.success(), "{arguments:?}: {}{}", said[0], said[1]);
    }
}
