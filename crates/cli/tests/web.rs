//! `fullpipe web` over real sockets: who is let in, what is refused, and that nothing is left behind. The pages themselves
//! are looked at in Chromium (`pages.rs`).
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use tempfile::TempDir;

/// A web view on a port of its own, with reports of its own.
struct Web {
    child: Child,
    address: SocketAddr,
    query: String,
    folder: TempDir,
}

impl Web {
    fn start(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
            .args(["web", "--listen", "127.0.0.1:0", "--dir"])
            .arg(folder.path().join("reports"))
            .args(flags)
            .env("FULLPIPE_STATE_DIR", folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let link = line.trim().strip_prefix("open http://").expect("the first line tells the link");
        let (address, query) = link.split_once('/').unwrap();
        Self { child, address: address.parse().unwrap(), query: query.to_owned(), folder }
    }

    /// Sends a request as it stands; the whole answer.
    fn raw(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        // A request that is refused early may be answered while it is still sent.
        drop(stream.write_all(request));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn ask(&self, line: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut request = format!("{line} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "host") {
            request += &format!("host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        self.raw(format!("{request}\r\n{body}").as_bytes())
    }

    /// What only its pages know.
    fn secret(&self, headers: &[(&str, &str)]) -> String {
        let page = self.ask("GET /", headers, "");
        let (_, rest) = page.split_once("<script id=\"secret\" type=\"application/json\">\"").expect("the page has it");
        rest.split('"').next().unwrap().to_owned()
    }

    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path().join("reports")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("no answer: {answer:?}"))
}

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

#[test]
fn another_sites_page_can_neither_read_nor_start_anything() {
    let web = Web::start(&[]);
    assert_eq!(web.query, "", "on this machine alone no token is asked for");
    let secret = web.secret(&[]);
    // A name of somebody else's that was made to resolve to this address.
    assert_eq!(status(&web.ask("GET /", &[("host", "evil.example")], "")), 403);
    let form = "command=measure&host=127.0.0.1%3A1&direction=up&seconds=&connections=";
    let (key, origin) = (("x-fullpipe", secret.as_str()), ("origin", "http://evil.example"));
    for headers in [&[FORM][..], &[FORM, origin], &[FORM, key, origin], &[FORM, ("x-fullpipe", "0")]] {
        assert_eq!(status(&web.ask("POST /runs", headers, form)), 403, "{headers:?}");
        assert_eq!(status(&web.ask("POST /captures?name=x", headers, "x")), 403, "{headers:?}");
    }
    assert!(web.left().is_empty(), "{:?}", web.left());
    let page = web.ask("GET /", &[], "").to_ascii_lowercase();
    for header in [
        "content-security-policy: default-src 'none'; script-src 'sha256-",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
    ] {
        assert!(page.contains(header), "{header}: {page}");
    }
}

#[test]
fn a_token_is_asked_for_and_moves_from_the_link_into_a_cookie() {
    let web = Web::start(&["--token"]);
    assert_eq!(status(&web.ask("GET /", &[], "")), 401);
    assert_eq!(status(&web.ask("GET /reports/x", &[], "")), 401);
    let moved = web.ask(&format!("GET /{}", web.query), &[], "");
    assert_eq!(status(&moved), 303);
    let cookie = moved.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(status(&web.ask("GET /", &[("cookie", cookie)], "")), 200);
    assert_eq!(status(&web.ask("GET /", &[("cookie", "fullpipe-token=1")], "")), 401);
}

#[test]
fn what_makes_no_sense_is_refused_and_leaves_nothing() {
    let web = Web::start(&["--largest", "1000B"]);
    let secret = web.secret(&[]);
    let key = ("x-fullpipe", secret.as_str());
    for path in ["/reports/..%2f..%2fetc%2fpasswd", "/reports/%00", "/runs/x", "/nothing", "/reports/../../etc/passwd"]
    {
        assert_eq!(status(&web.ask(&format!("GET {path}"), &[], "")), 404, "{path}");
    }
    assert_eq!(status(&web.ask("GET /changes/x", &[], "")), 400);
    for form in [
        "command=tune&host=h&direction=up&seconds=&connections=",
        "command=check&host=&direction=up&seconds=&connections=",
        "command=check&host=h&direction=up&seconds=-1&connections=",
        "command=check&host=a%0Ab&direction=up&seconds=&connections=",
        "x",
    ] {
        assert_eq!(status(&web.ask("POST /runs", &[FORM, key], form)), 422, "{form}");
    }
    let large = "x".repeat(20_000);
    assert_eq!(status(&web.ask("POST /runs", &[FORM, key], &large)), 413);
    assert_eq!(status(&web.ask("POST /captures?name=x.pcap", &[key], &large)), 413);
    // Cut in the middle: the client says 900 bytes and sends 3.
    let cut = format!(
        "POST /captures?name=x HTTP/1.1\r\nhost: {}\r\nx-fullpipe: {secret}\r\ncontent-length: 900\r\n\r\nabc",
        web.address
    );
    let mut stream = TcpStream::connect(web.address).unwrap();
    stream.write_all(cut.as_bytes()).unwrap();
    drop(stream);
    for junk in [&b"\0\0\0\0"[..], b"GET / HTTP/9.9\r\n\r\n", b"GET http://[ HTTP/1.1\r\n\r\n"] {
        web.raw(junk);
    }
    assert_eq!(status(&web.ask("GET /", &[], "")), 200, "it still answers");
    eventually(|| web.left().is_empty());
}

fn eventually(mut is_so: impl FnMut() -> bool) {
    for _ in 0..300 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("it never became so");
}

fn place(answer: &str) -> &str {
    answer.rsplit_once("{\"run\":\"").expect(answer).1.trim_end_matches("\"}")
}

/// The data of all events, until the run has ended.
fn events(web: &Web, run: &str) -> Vec<serde_json::Value> {
    let answer = web.ask(&format!("GET {run}/events"), &[], "");
    let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_capture_is_read_kept_as_a_report_and_removed() {
    let web = Web::start(&[]);
    let secret = web.secret(&[]);
    let key = ("x-fullpipe", secret.as_str());
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../capture/tests/data/50m-40ms-cubic-tail-loss-a.pcap");
    let bytes = fs::read(capture).unwrap();
    let mut request = format!(
        "POST /captures?name=slow.pcap HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nx-fullpipe: {secret}\r\ncontent-length: {}\r\n\r\n",
        web.address,
        bytes.len()
    )
    .into_bytes();
    request.extend(bytes);
    let answer = web.raw(&request);
    assert_eq!(status(&answer), 201, "{answer}");
    let run = place(&answer).to_owned();
    let events = events(&web, &run);
    let last = events.last().unwrap();
    assert_eq!(last["kind"], "done", "{events:?}");
    let report = web.ask(&format!("GET {}", last["report"].as_str().unwrap()), &[], "");
    assert!(report.contains("slow.pcap") && report.contains("data-trace"), "its graph is there");
    assert!(web.ask("GET /", &[], "").contains("read --top 500 slow.pcap"), "it is listed");
    // The capture is gone; the page and its words are there.
    eventually(|| web.left().len() == 2);
    let name = run.trim_start_matches("/runs/");
    assert_eq!(status(&web.ask(&format!("DELETE /reports/{name}"), &[], "")), 403);
    assert_eq!(status(&web.ask(&format!("DELETE /reports/{name}"), &[key], "")), 204);
    assert!(web.left().is_empty());
}

#[test]
fn one_run_at_a_time_can_be_stopped_and_a_failed_one_tells_why() {
    let web = Web::start(&[]);
    let secret = web.secret(&[]);
    let key = ("x-fullpipe", secret.as_str());
    // Accepts, and never says anything.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let form = |port| format!("command=measure&host=127.0.0.1%3A{port}&direction=up&seconds=1&connections=");
    let first = web.ask("POST /runs", &[FORM, key], &form(port));
    assert_eq!(status(&first), 201, "{first}");
    let run = place(&first).to_owned();
    assert_eq!(status(&web.ask("POST /runs", &[FORM, key], &form(port))), 409);
    assert!(web.ask("GET /", &[], "").contains("is running"));
    assert_eq!(status(&web.ask(&format!("POST {run}/stop"), &[], "")), 403);
    assert_eq!(status(&web.ask(&format!("POST {run}/stop"), &[key], "")), 204);
    assert_eq!(events(&web, &run).last().unwrap()["kind"], "done");
    // Nobody listens there.
    drop(silent);
    let second = web.ask("POST /runs", &[FORM, key], &form(port));
    let second = place(&second).to_owned();
    let events_of_it = events(&web, &second);
    let report = web.ask(&format!("GET {}", events_of_it.last().unwrap()["report"].as_str().unwrap()), &[], "");
    assert!(report.contains("The command failed") && report.contains(&port.to_string()), "{report}");
}

#[test]
fn ctrl_c_ends_it_and_its_run() {
    let mut web = Web::start(&[]);
    let secret = web.secret(&[]);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let form = format!("command=measure&host=127.0.0.1%3A{port}&direction=up&seconds=1&connections=");
    let started = web.ask("POST /runs", &[FORM, ("x-fullpipe", &secret)], &form);
    assert_eq!(status(&started), 201);
    // Not before the run has begun: ended too soon, it never connects.
    let mut stream = accepted(&silent);
    let id = web.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert!(web.child.wait().unwrap().success());
    // Its run ended with it: nobody holds the connection any more.
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
}

/// The next connection, for which nobody waits for ever.
fn accepted(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).unwrap();
    let mut next = None;
    eventually(|| {
        next = listener.accept().ok();
        next.is_some()
    });
    let (stream, _) = next.unwrap();
    stream.set_nonblocking(false).unwrap();
    stream
}

#[test]
fn an_address_that_is_taken_or_none_is_an_error() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let said = |listen: &str| {
        let run = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
            .args(["web", "--listen", listen, "--dir"])
            .arg(folder.path())
            .output()
            .unwrap();
        (run.status.code().unwrap(), String::from_utf8_lossy(&run.stderr).into_owned())
    };
    let (code, text) = said(&address);
    assert!(code != 0 && text.contains(&address), "{code}: {text}");
    let (code, text) = said("everywhere");
    assert!(code == 2 && text.contains("everywhere"), "{code}: {text}");
}
