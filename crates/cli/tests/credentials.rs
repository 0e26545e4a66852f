//! Names and passwords by the command line, with the real iperf3 at the other end and with ourselves.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use serde_json::Value;

/// A key pair and a file of names, made by the tools that iperf3's manual names; `None`, with a printed reason, where one
/// is missing.
fn keys(test: &str) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    let script = "openssl genrsa -out private.pem 2048 && openssl rsa -in private.pem -outform PEM -pubout -out public.pem \
                  && printf 'reader,%s\\n' $(printf '{reader}secret' | sha256sum | cut -d' ' -f1) > users.csv && \
                  iperf3 --help | grep -q rsa-public-key-path";
    let made = Command::new("sh").args(["-c", script]).current_dir(folder.path()).stderr(Stdio::null()).status();
    if made.is_ok_and(|status| status.success()) {
        return Some(folder);
    }
    println!("skipped: {test}: openssl, or an iperf3 that was built with it, is not here");
    None
}

/// A server that is ended with the test.
struct Server(Child, String);

impl Server {
    /// `ready` is the end of the line by which it says that it listens.
    fn start(mut command: Command, ready: &str) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.find(|line| line.as_ref().unwrap().contains(ready)).unwrap().unwrap();
        // Nobody may let its pipe run full.
        std::thread::spawn(move || lines.count());
        Self(child, line)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Whether the installed iperf3 pads by PKCS #1, as it does up to 3.16.
fn is_old() -> bool {
    let version = Command::new("iperf3").arg("--version").output().unwrap();
    let text = String::from_utf8(version.stdout).unwrap();
    let minor = text.split(['.', ' ', '+', '\n']).nth(2).and_then(|minor| minor.parse::<u32>().ok());
    minor.is_some_and(|minor| minor < 17)
}

fn measure(address: &str, folder: &Path, password: Option<&str>, padding: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
    command.args([
        "measure",
        address,
        "-n",
        "1M",
        "--json",
        "--username",
        "reader",
        "--rsa-public-key-path",
        "public.pem",
    ]);
    command.args(padding).current_dir(folder).stdin(Stdio::null()).env_remove("IPERF3_PASSWORD");
    if let Some(password) = password {
        command.env("IPERF3_PASSWORD", password);
    }
    command.output().unwrap()
}

fn error(output: &Output) -> Value {
    assert!(!output.status.success(), "{output:?}");
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["error"].clone()
}

fn ours(folder: &Path, options: &[&str]) -> Server {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
    command
        .args(["serve", "127.0.0.1:0", "--quiet", "--authorized-users-path", "users.csv"])
        .args(["--rsa-private-key-path", "private.pem"])
        .args(options)
        .current_dir(folder)
        .env("FULLPIPE_STATE_DIR", folder.join("state"));
    Server::start(command, "listening on ")
}

#[test]
fn a_name_and_password_open_our_server_and_a_real_one() {
    let Some(keys) = keys("a_name_and_password_open_our_server_and_a_real_one") else { return };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let mut real = Command::new("iperf3");
    real.args(["-s", "-B", "127.0.0.1", "--forceflush", "-p", &port]).current_dir(keys.path());
    real.args(["--authorized-users-path", "users.csv", "--rsa-private-key-path", "private.pem"]);
    let old: &[&str] = if is_old() { &["--use-pkcs1-padding"] } else { &[] };
    let servers = [
        (Server::start(real, "listening"), format!("127.0.0.1:{port}"), old),
        (ours(keys.path(), &[]), String::new(), &[][..]),
        (ours(keys.path(), &["--use-pkcs1-padding"]), String::new(), &["--use-pkcs1-padding"][..]),
    ];
    for (server, address, padding) in &servers {
        let address = if address.is_empty() { server.1.trim_start_matches("listening on ") } else { address };
        let output = measure(address, keys.path(), Some("secret"), padding);
        assert!(output.status.success(), "{padding:?}: {output:?}");
        let wrong = error(&measure(address, keys.path(), Some("guess"), padding));
        assert!(wrong["message"].as_str().unwrap().contains("does not let this client in"), "{wrong}");
        assert!(wrong["hint"].as_str().unwrap().contains("--use-pkcs1-padding"), "{wrong}");
    }
    // A client of the old kind, at a server that does not let these in.
    let (strict, ..) = &servers[1];
    let address = strict.1.trim_start_matches("listening on ");
    error(&measure(address, keys.path(), Some("secret"), &["--use-pkcs1-padding"]));
    // Nobody can be asked, and there is no password.
    let missing = error(&measure(address, keys.path(), None, &[]));
    assert!(missing["hint"].as_str().unwrap().contains("IPERF3_PASSWORD"), "{missing}");
}

#[test]
fn a_real_client_is_let_in_by_our_server() {
    let Some(keys) = keys("a_real_client_is_let_in_by_our_server") else { return };
    let server = ours(keys.path(), if is_old() { &["--use-pkcs1-padding"] } else { &[] });
    let port = server.1.rsplit(':').next().unwrap();
    for (password, expected) in [("secret", true), ("guess", false)] {
        let mut client = Command::new("iperf3")
            .args(["-c", "127.0.0.1", "-p", port, "-n", "1M", "--username", "reader"])
            .args(["--rsa-public-key-path", "public.pem"])
            .current_dir(keys.path())
            .env("IPERF3_PASSWORD", password)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        client.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(client.wait().unwrap().success(), expected, "{said}");
    }
}

#[test]
fn what_is_no_key_or_file_of_names_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("junk"), "junk\n").unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
        command.args(words).arg("--json").current_dir(folder.path()).env("IPERF3_PASSWORD", "secret");
        error(&command.output().unwrap())
    };
    let serve = ["serve", "127.0.0.1:0", "--authorized-users-path", "junk", "--rsa-private-key-path"];
    let measure = ["measure", "127.0.0.1:1", "--username", "reader", "--rsa-public-key-path"];
    for (words, file, text) in [
        (&serve[..], "junk", "holds no RSA private key"),
        (&serve, "missing", "reading missing"),
        (&measure, "junk", "holds no RSA public key"),
        (&measure, "missing", "reading missing"),
    ] {
        let error = run(&[words, &[file]].concat());
        assert_eq!(error["kind"], "input_invalid", "{error}");
        assert!(error["message"].as_str().unwrap().contains(text), "{error}");
    }
}
