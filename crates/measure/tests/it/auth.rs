//! Names and passwords, with real peers in both roles.

use std::{
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use fullpipe_measure::{Client, ClientOptions, Credentials, Length, MeasureError, Padding, TestSpec, Users};

use crate::{
    interop::{Iperf3Server, iperf3_is_here},
    support::{Running, quick_server, short, target},
};

/// Of `{reader}secret`.
const USERS: &str = "# name,digest\nreader,DIGEST\n";

/// A key pair made by openssl and a file of names; `None`, with a printed reason, where that or an iperf3 with
/// authentication is missing.
fn keys(test: &str) -> Option<tempfile::TempDir> {
    if !iperf3_is_here(test) {
        return None;
    }
    let help = Command::new("iperf3").arg("--help").output().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let openssl = |words: &[&str]| {
        let run = Command::new("openssl").args(words).current_dir(folder.path()).stderr(Stdio::null()).output();
        run.is_ok_and(|output| output.status.success())
    };
    let made = openssl(&["genrsa", "-out", "private.pem", "2048"])
        && openssl(&["rsa", "-in", "private.pem", "-outform", "PEM", "-pubout", "-out", "public.pem"]);
    if !made || !String::from_utf8_lossy(&help.stdout).contains("rsa-public-key-path") {
        println!("skipped: {test}: openssl, or an iperf3 that was built with it, is not here");
        return None;
    }
    let digest =
        Command::new("sh").args(["-c", "printf '{reader}secret' | sha256sum | cut -d' ' -f1"]).output().unwrap();
    let users = USERS.replace("DIGEST", String::from_utf8(digest.stdout).unwrap().trim());
    std::fs::write(folder.path().join("users.csv"), users).unwrap();
    Some(folder)
}

/// The padding that the installed iperf3 uses: OAEP from 3.17.
fn padding() -> Padding {
    let version = String::from_utf8(Command::new("iperf3").arg("--version").output().unwrap().stdout).unwrap();
    let minor = version.split(['.', ' ', '+', '\n']).nth(2).and_then(|minor| minor.parse::<u32>().ok());
    if minor.is_some_and(|minor| minor < 17) { Padding::Pkcs1 } else { Padding::Oaep }
}

fn credentials(folder: &Path, password: &str, padding: Padding) -> Credentials {
    Credentials::new("reader", password, &folder.join("public.pem"), padding).unwrap()
}

fn guarded(folder: &Path, padding: Padding) -> Running {
    let users = Users::read(&folder.join("private.pem"), &folder.join("users.csv"), Duration::from_secs(10)).unwrap();
    let users = users.with_padding(padding);
    Running::with(fullpipe_measure::ServerOptions { users: Some(Arc::new(users)), ..quick_server() }, None)
}

#[test]
fn our_server_lets_in_who_has_a_name_and_nobody_else() {
    let Some(keys) = keys("our_server_lets_in_who_has_a_name_and_nobody_else") else { return };
    let server = guarded(keys.path(), Padding::Pkcs1);
    let connect = |server: &Running, credentials| {
        let never = AtomicBool::new(false);
        let mut client = Client::connect_as(&server.target(), ClientOptions::default(), credentials, &never)?;
        client.run(&short(), &never, &mut |_| ())
    };
    for padding in [Padding::Oaep, Padding::Pkcs1] {
        connect(&server, Some(credentials(keys.path(), "secret", padding))).unwrap();
        let wrong = connect(&server, Some(credentials(keys.path(), "guess", padding))).unwrap_err();
        assert!(matches!(wrong, MeasureError::ServerError { code: 142, .. }), "{wrong}");
    }
    assert!(matches!(connect(&server, None), Err(MeasureError::ServerError { code: 142, .. })));
    server.wait_for_line(|line| line.contains("its name or password is wrong"));
    server.wait_for_line(|line| line.contains("it showed no name and password"));
    let strict = guarded(keys.path(), Padding::Oaep);
    connect(&strict, Some(credentials(keys.path(), "secret", Padding::Oaep))).unwrap();
    let old = connect(&strict, Some(credentials(keys.path(), "secret", Padding::Pkcs1))).unwrap_err();
    assert!(matches!(old, MeasureError::ServerError { code: 142, .. }), "{old}");
    strict.wait_for_line(|line| line.contains("let in with --use-pkcs1-padding"));
}

#[test]
fn a_real_client_shows_its_name_to_our_server() {
    let Some(keys) = keys("a_real_client_shows_its_name_to_our_server") else { return };
    let server = guarded(keys.path(), padding());
    let port = server.address.port().to_string();
    let run = |password: &str| {
        Command::new("iperf3")
            .args(["-c", "127.0.0.1", "-p", &port, "-n", "1M", "--username", "reader"])
            .arg("--rsa-public-key-path")
            .arg(keys.path().join("public.pem"))
            .env("IPERF3_PASSWORD", password)
            .output()
            .unwrap()
    };
    assert!(run("secret").status.success());
    assert!(!run("guess").status.success());
    println!("interop| real client | --username, {:?} padding | ok | let in, and not with a wrong password", padding());
}

#[test]
fn our_client_shows_its_name_to_a_real_server() {
    let Some(keys) = keys("our_client_shows_its_name_to_a_real_server") else { return };
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (private, users) = (keys.path().join("private.pem"), keys.path().join("users.csv"));
    let words =
        ["--rsa-private-key-path", private.to_str().unwrap(), "--authorized-users-path", users.to_str().unwrap()];
    let server = Iperf3Server::start_with(free, &words);
    let never = AtomicBool::new(false);
    let connect = |password| {
        let credentials = credentials(keys.path(), password, padding());
        Client::connect_as(&target(server.address), ClientOptions::default(), Some(credentials), &never)
    };
    let spec = TestSpec { length: Length::Time(Duration::from_secs(1)), ..short() };
    connect("secret").unwrap().run(&spec, &never, &mut |_| ()).unwrap();
    let error = connect("guess").map(|_| ()).unwrap_err();
    assert!(matches!(error, MeasureError::ServerError { .. } | MeasureError::Closed { .. }), "{error}");
    println!("interop| real server | --username, {:?} padding | ok | let in, and not with a wrong password", padding());
}
