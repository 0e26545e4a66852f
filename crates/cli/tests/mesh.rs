//! `mesh` between servers on loopback: the matrix, who is suspected, what is kept and what got slower.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::symlink,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

const FULLPIPE: &str = env!("CARGO_BIN_EXE_fullpipe");

/// A server that ends with the test.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(options: &[&str]) -> Self {
        let mut child = Command::new(FULLPIPE)
            .args(["serve", "127.0.0.1:0", "--json"])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let line = BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
        let listening: Value = serde_json::from_str(&line).unwrap();
        Self { child, address: format!("127.0.0.1:{}", listening["port"]) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A file of hosts that are all this machine; loopback carries more than 200 Mbit/s, and is said to carry this.
fn hosts(folder: &Path, hosts: &[(&str, &str, &str)]) -> String {
    let mut text = "name = 'loopback'\n".to_owned();
    // A file of hosts takes no words that a shell would take apart.
    let program = folder.join("fullpipe");
    let linked = symlink(FULLPIPE, &program);
    assert!(linked.is_ok() || program.exists(), "{linked:?}");
    let program = program.display();
    for (name, address, run) in hosts {
        text += &format!("[[host]]\nname = '{name}'\naddress = '{address}'\nrun = {run}\nprogram = '{program}'\n");
    }
    for (place, (a, ..)) in hosts.iter().enumerate() {
        for (b, ..) in &hosts[place + 1..] {
            text += &format!("[[path]]\na = '{a}'\nb = '{b}'\nrate = '200M'\n");
        }
    }
    let file = folder.join("hosts.toml");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// What `mesh` ended with and printed.
fn mesh(folder: &Path, words: &[&str]) -> (i32, String) {
    let done = Command::new(FULLPIPE)
        .arg("mesh")
        .args(words)
        .args(["--seconds", "200ms", "--omit", "100ms"])
        .env("FULLPIPE_STATE_DIR", folder.join("state"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap();
    (done.status.code().unwrap(), said)
}

fn document(folder: &Path, words: &[&str], code: i32) -> Value {
    let (ended, said) = mesh(folder, &[words, &["--json"]].concat());
    assert_eq!(ended, code, "{said}");
    serde_json::from_str(&said).unwrap()
}

#[test]
fn the_host_that_is_wrong_is_named_and_so_is_what_got_slower() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b, c) = (Server::start(&[]), Server::start(&[]), Server::start(&[]));
    let good = hosts(folder.path(), &[("a", &a.address, "[]"), ("b", &b.address, "[]"), ("c", &c.address, "[]")]);
    let (code, said) = mesh(folder.path(), &[&good]);
    assert!(code == 0 && said.starts_with("loopback  6 directions measured, none slow\n"), "{said}");
    drop(c);

    // c serves at a tenth of what its paths are said to carry.
    let c = Server::start(&["--max-rate", "20M"]);
    let slow = hosts(folder.path(), &[("a", &a.address, "[]"), ("b", &b.address, "[]"), ("c", &c.address, "[]")]);
    // What else this machine does makes loopback slower, too.
    let found = document(folder.path(), &[&slow, "--drop", "75"], 1);
    let suspect = &found["suspect"];
    assert_eq!(
        (&suspect["kind"], &suspect["names"][0], &suspect["role"]),
        (&"host".into(), &"c".into(), &"both".into())
    );
    assert_eq!((&suspect["directions"], &suspect["bad"], &found["run"]), (&4.into(), &4.into(), &2.into()));
    for direction in found["directions"].as_array().unwrap() {
        let is_of_c = direction["from"] == "c" || direction["to"] == "c";
        assert_eq!((&direction["slow"], &direction["slower"]), (&is_of_c.into(), &is_of_c.into()), "{direction}");
        assert!(direction["rate_bps"].as_u64().is_some_and(|rate| (rate < 40_000_000) == is_of_c), "{direction}");
    }
    let page = folder.path().join("mesh.html");
    let (code, said) = mesh(folder.path(), &[&slow, "--no-store", "--html", page.to_str().unwrap()]);
    assert!(code == 1 && said.contains("\nsuspect  host c: 4 of its 4 directions are slow or failed"), "{said}");
    assert!(!said.contains("slower:"), "without a store there is nothing before: {said}");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<h3>host c</h3>") && page.contains("as declared"), "{page}");

    let earlier = document(folder.path(), &[&slow, "--history"], 0);
    let runs = earlier["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| run["run"].as_i64().unwrap()).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(runs[1]["directions"].as_array().unwrap().len(), 6);
    let (_, said) = mesh(folder.path(), &[&slow, "--history", "--verbose"]);
    assert!(said.contains("run 2") && said.contains("a -> c"), "{said}");
}

#[test]
fn a_host_that_can_not_be_reached_either_way_is_named_with_the_reasons() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b, gone) = (Server::start(&[]), Server::start(&[]), Server::start(&[]));
    let address = gone.address.clone();
    drop(gone);
    // Nothing serves there, and nothing can be started there.
    let refused = "['sh', '-c', 'echo no such host >&2; exit 255']";
    let file = hosts(folder.path(), &[("a", &a.address, "[]"), ("b", &b.address, "[]"), ("c", &address, refused)]);
    let found = document(folder.path(), &[&file], 1);
    assert_eq!((&found["suspect"]["names"][0], &found["suspect"]["bad"]), (&"c".into(), &4.into()));
    let failed =
        found["directions"].as_array().unwrap().iter().find(|one| one["from"] == "a" && one["to"] == "c").unwrap();
    let why = failed["error"].as_str().unwrap();
    assert!(why.starts_with("on a: ") && why.contains("refused") && why.ends_with("; on c: no such host"), "{why}");
    assert!(failed["rate_bps"].is_null(), "{failed}");
}

#[test]
fn a_file_or_a_store_that_is_none_is_refused_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.toml");
    fs::write(&file, "[[host]]\nname = 'a'\nadress = 'b'\n").unwrap();
    let file = file.to_str().unwrap();
    let error = &document(folder.path(), &[file], 24)["error"];
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("x.toml: line 3, column 1: unknown field `adress`"), "{message}");
    assert_eq!(document(folder.path(), &["/no/such/file"], 24)["error"]["kind"], "input_invalid");
    let good = hosts(folder.path(), &[("a", "127.0.0.1:9", "[]"), ("b", "127.0.0.1:9", "[]")]);
    fs::write(folder.path().join("text"), "no database at all, but long enough to be looked at\n".repeat(40)).unwrap();
    let store = folder.path().join("text");
    let error = &document(folder.path(), &[&good, "--store", store.to_str().unwrap()], 24)["error"];
    assert!(error["hint"].as_str().unwrap().contains("--no-store"), "{error}");
    let page = folder.path().join("no/such/folder.html");
    let error = &document(folder.path(), &[&good, "--html", page.to_str().unwrap()], 70)["error"];
    assert!(error["message"].as_str().unwrap().starts_with("writing "), "{error}");
}
