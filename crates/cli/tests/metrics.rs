//! `fullpipe agent` as Prometheus sees it: a real one scrapes it, loads the alert rules, and answers every question of the
//! dashboard.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// How often it is looked for what must come.
const PATIENCE: u32 = 600;
const PAUSE: Duration = Duration::from_millis(100);

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(file)
}

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// An agent, and where it tells. `None`, and the reason printed, where the kernel has nothing to tell.
fn agent(test: &str, words: &[&str]) -> Option<(Running, SocketAddr)> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut running = Running(child);
    if line.is_empty() && running.0.wait().unwrap().code() == Some(21) {
        println!("skipped {test}: this kernel has no sock_diag");
        return None;
    }
    let address = line.trim().strip_prefix("metrics at http://").and_then(|rest| rest.strip_suffix("/metrics"));
    Some((running, address.unwrap_or_else(|| panic!("no link: {line:?}")).parse().unwrap()))
}

/// What a server answers: head and body.
fn get(address: SocketAddr, path: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}

/// A connection on which as much moves as can, until it is dropped at both ends.
fn busy() -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    let mut writer = sender.try_clone().unwrap();
    thread::spawn(move || {
        // In parts, so that it does not take a processor for itself.
        while writer.write_all(&[7; 65_536]).is_ok() {
            thread::sleep(Duration::from_millis(5));
        }
    });
    thread::spawn(move || while receiver.read(&mut [0; 65_536]).is_ok_and(|count| count > 0) {});
    sender
}

/// What `look` finds, once it does.
fn in_time<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..PATIENCE {
        if let Some(found) = look() {
            return found;
        }
        thread::sleep(PAUSE);
    }
    panic!("{what} did not come");
}

/// The names of samples that a text has.
fn names(text: &str) -> BTreeSet<String> {
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let samples = families.flat_map(|line| {
        let (name, kind) = line.split_once(' ').unwrap();
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        suffixes.iter().map(move |suffix| format!("{name}{suffix}"))
    });
    samples.collect()
}

/// The names of this program's metrics in an expression.
fn asked(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("fullpipe_")).map(str::to_owned).collect()
}

/// Every question of the dashboard, as Grafana would ask it.
fn questions() -> Vec<String> {
    let dashboard: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(packaging("grafana/fullpipe.json")).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let expressions = targets.map(|target| target["expr"].as_str().unwrap());
    let fill = |text: &str| {
        let text = text.replace("$__rate_interval", "1m").replace("$__range", "5m").replace("$instance", ".*");
        assert!(!text.contains('$'), "a variable that nothing fills: {text}");
        text
    };
    expressions.map(fill).collect()
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[test]
fn the_agent_tells_what_limits_connections_of_this_host() {
    let words = ["agent", "--listen", "127.0.0.1:0", "--interval", "200ms"];
    let Some((mut running, address)) = agent("the_agent_tells_what_limits_connections_of_this_host", &words) else {
        return;
    };
    let connection = busy();
    let text = in_time("a connection that was judged", || {
        let (head, text) = get(address, "/metrics")?;
        assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
        assert!(text.ends_with("# EOF\n"), "{text}");
        text.contains("destination=\"127.0.0.0/24\"").then_some(text)
    });
    assert!(text.contains("fullpipe_limited_seconds_total{limiter="), "{text}");
    assert!(text.contains("fullpipe_round_trip_seconds_bucket{le="), "{text}");
    let series = text.lines().filter(|line| !line.starts_with('#')).count();
    assert!(series < fullpipe_watch::MOST_SERIES, "{series}");
    assert_eq!(get(address, "/").unwrap().0.lines().next(), Some("HTTP/1.0 200 OK"));
    assert_eq!(get(address, "/other").unwrap().0.lines().next(), Some("HTTP/1.0 404 Not Found"));
    drop(connection);

    let process = rustix::process::Pid::from_raw(running.0.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    assert!(running.0.wait().unwrap().success(), "it ends in order");
}

#[test]
fn an_address_that_is_taken_and_too_many_destinations_are_said_to() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let run = |words: &[&str]| Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(words).output().unwrap();
    let ended = run(&["agent", "--listen", &address]);
    let error = String::from_utf8_lossy(&ended.stderr).into_owned();
    if ended.status.code() == Some(21) {
        return println!("skipped an_address_that_is_taken_is_said_to: this kernel has no sock_diag");
    }
    assert!(!ended.status.success() && error.contains(&address), "{error}");
    let many: Vec<String> = (0..40).map(|last| format!("--destination=192.0.2.{last}")).collect();
    let words: Vec<&str> = ["agent"].into_iter().chain(many.iter().map(String::as_str)).collect();
    let ended = run(&words);
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    let ended = run(&["agent", "--destination", "192.0.2.0/33"]);
    assert!(String::from_utf8_lossy(&ended.stderr).contains("10.0.0.0/8"), "{ended:?}");
}

/// One figure of a text; 0 where there is none of it yet.
fn figure(text: &str, labels: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(labels)?.strip_prefix(' '));
    line.map_or(0, |number| number.parse().unwrap())
}

#[test]
fn connections_that_begin_and_end_between_two_looks_are_all_counted() {
    let test = "connections_that_begin_and_end_between_two_looks_are_all_counted";
    const COUNT: u64 = 1_000;
    // Nobody else's connections go to these.
    let (to, network) = ([127, 73, 0, 1], "127.73.0.0/16");
    // No look comes before the end: what is known is what the kernel reported.
    let words = ["agent", "--listen", "127.0.0.1:0", "--interval", "3s", "--events", "--destination", network];
    let mut child = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut link = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut link).unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let running = Running(child);
    let Some(address) = link.trim().strip_prefix("metrics at http://").and_then(|rest| rest.strip_suffix("/metrics"))
    else {
        return println!("skipped {test}: this kernel has no sock_diag");
    };
    let address = address.parse().unwrap();
    let listener = TcpListener::bind((std::net::Ipv4Addr::from(to), 0)).unwrap();
    let peer = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        for _ in 0..COUNT {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 100]).unwrap();
            stream.write_all(&[7; 1_000]).unwrap();
        }
    });
    for _ in 0..COUNT {
        let mut stream = TcpStream::connect(peer).unwrap();
        stream.write_all(&[7; 100]).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer.len(), 1_000);
    }
    server.join().unwrap();
    let name = fs::read_to_string("/proc/self/comm").unwrap().trim_end().to_owned();
    let labels = format!("{{process=\"{name}\",destination=\"{network}\"}}");
    let ended = format!("fullpipe_ended_connections_total{labels}");
    for _ in 0..PATIENCE {
        let (_, text) = get(address, "/metrics").unwrap();
        if figure(&text, "fullpipe_looks_total") > 0 && !text.contains("fullpipe_lost_events_total") {
            drop(running);
            let mut all = String::new();
            said.read_to_string(&mut all).unwrap();
            assert!(all.contains("connections that begin and end between two looks"), "{all}");
            return println!("skipped {test}: a BPF program takes rights, or a kernel, that are not here");
        }
        if figure(&text, &ended) >= COUNT {
            break;
        }
        thread::sleep(PAUSE);
    }
    let (_, text) = get(address, "/metrics").unwrap();
    assert_eq!(figure(&text, &ended), COUNT, "{text}");
    // One that a look caught with nothing but its SYN acknowledged is counted as one byte less.
    let sent = figure(&text, &format!("fullpipe_sent_bytes_total{labels}"));
    assert!((100 * COUNT..=100 * COUNT + 10).contains(&sent), "{sent}");
    assert_eq!(figure(&text, &format!("fullpipe_received_bytes_total{labels}")), 1_000 * COUNT);
    assert_eq!(figure(&text, "fullpipe_lost_events_total"), 0);

    // Killed without a chance to clean up: the kernel detaches the program and forgets it.
    let descriptors = fs::read_dir(format!("/proc/{}/fdinfo", running.0.id())).unwrap();
    let programs: BTreeSet<String> = descriptors
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok())
        .filter_map(|info| Some(info.lines().find_map(|line| line.strip_prefix("prog_id:"))?.trim().to_owned()))
        .collect();
    assert_eq!(programs.len(), 1, "one program: {programs:?}");
    let is_there = || {
        let words = ["prog", "show", "id"].into_iter().chain(programs.iter().map(String::as_str));
        Some(Command::new("bpftool").args(words).output().ok()?.status.success())
    };
    match is_there() {
        None => println!("skipped {test}: bpftool is not installed"),
        Some(before) => {
            assert!(before, "it is listed while the agent runs");
            drop(running);
            in_time("the end of the program", || is_there().filter(|is_there| !is_there));
        }
    }
}

#[test]
fn what_moved_after_the_last_look_is_counted_once() {
    let test = "what_moved_after_the_last_look_is_counted_once";
    const COUNT: u64 = 20;
    let network = "127.74.0.0/16";
    let words = ["agent", "--listen", "127.0.0.1:0", "--interval", "300ms", "--events", "--destination", network];
    let Some((_agent, address)) = agent(test, &words) else { return };
    let text = in_time("a look", || {
        let (_, text) = get(address, "/metrics")?;
        (figure(&text, "fullpipe_looks_total") > 0).then_some(text)
    });
    if !text.contains("fullpipe_lost_events_total") {
        return println!("skipped {test}: a BPF program takes rights, or a kernel, that are not here");
    }
    let listener = TcpListener::bind((std::net::Ipv4Addr::new(127, 74, 0, 1), 0)).unwrap();
    let to = listener.local_addr().unwrap();
    let mut pairs: Vec<_> =
        (0..COUNT).map(|_| (TcpStream::connect(to).unwrap(), listener.accept().unwrap().0)).collect();
    let looks = |address| figure(&get(address, "/metrics").unwrap().1, "fullpipe_looks_total");
    pairs.iter_mut().for_each(|(sender, _)| sender.write_all(&[7; 1_000]).unwrap());
    // All of them are known, with their first bytes.
    let before = looks(address);
    in_time("two looks", || (looks(address) > before + 2).then_some(()));
    pairs.iter_mut().for_each(|(sender, _)| sender.write_all(&[7; 2_000]).unwrap());
    for (sender, mut receiver) in pairs {
        drop(sender);
        assert_eq!(receiver.read_to_end(&mut Vec::new()).unwrap(), 3_000);
    }
    let sum = |text: &str, name: &str| -> u64 {
        let lines = text.lines().filter(|line| line.starts_with(name) && line.contains(network));
        lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
    };
    let text = in_time("all ends", || {
        let (_, text) = get(address, "/metrics")?;
        (sum(&text, "fullpipe_ended_connections_total{") == COUNT).then_some(text)
    });
    let sent = sum(&text, "fullpipe_sent_bytes_total{");
    // A look counts an acknowledged SYN, and a FIN, as a byte each.
    assert!((3_000 * COUNT..=3_002 * COUNT).contains(&sent), "{sent}");
}

/// A collector of a few lines: answers each push with `status`, and hands on its body.
fn collector(listener: TcpListener, status: &'static str) -> mpsc::Receiver<String> {
    let (sent, heard) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            while let Some(body) = pushed(&mut stream) {
                write!(stream.get_mut(), "HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}").unwrap();
                if sent.send(body).is_err() {
                    return;
                }
            }
        }
    });
    heard
}

/// The body of a request to `/v1/metrics`; `None` where there comes none.
fn pushed(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let (mut line, mut length) = (String::new(), 0);
    stream.read_line(&mut line).ok().filter(|count| *count > 0)?;
    assert_eq!(line, "POST /v1/metrics HTTP/1.1\r\n");
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).ok()?;
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(String::from_utf8(body).unwrap())
}

/// A message as OpenTelemetry's own library reads it and writes it again: it knows every field, and refuses one that it does not
/// know. `None`, and the reason printed, where the library is not here.
fn as_its_own_library_reads_it(test: &str, body: &str) -> Option<serde_json::Value> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let script = "\
import sys
try:
    from google.protobuf import json_format
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
except ImportError:
    sys.exit(9)
message = json_format.Parse(sys.stdin.read(), ExportMetricsServiceRequest())
print(json_format.MessageToJson(message))
";
    let missing = || println!("skipped {test}: OpenTelemetry's messages for Python are not here");
    let started = Command::new(tools.join("python/bin/python"))
        .args(["-c", script])
        .env("PYTHONPATH", tools.join("opentelemetry"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = started else {
        missing();
        return None;
    };
    // One that ends at once reads nothing.
    drop(child.stdin.take().unwrap().write_all(body.as_bytes()));
    let output = child.wait_with_output().unwrap();
    if output.status.code() == Some(9) {
        missing();
        return None;
    }
    assert!(output.status.success(), "{}\n{body}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn a_collector_is_given_the_same_figures_under_the_names_of_opentelemetry() {
    let test = "a_collector_is_given_the_same_figures_under_the_names_of_opentelemetry";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let bodies = collector(listener, "200 OK");
    let words = ["agent", "--listen", "127.0.0.1:0", "--interval", "200ms", "--otlp", &url, "--otlp-interval", "300ms"];
    let Some((mut running, address)) = agent(test, &words) else { return };
    let connection = busy();
    let body = bodies.iter().find(|body| body.contains("127.0.0.0/24")).expect("a push with the connection");
    let (_, text) = get(address, "/metrics").unwrap();
    drop(connection);
    let Some(message) = as_its_own_library_reads_it(test, &body) else { return };
    let resource = message["resourceMetrics"][0]["resource"]["attributes"].as_array().unwrap();
    assert!(resource.iter().any(|attribute| attribute["key"] == "host.name"), "{resource:?}");
    let metrics = message["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let metric = |name: &str| {
        let found: Vec<_> = metrics.iter().filter(|metric| metric["name"] == name).collect();
        assert_eq!(found.len(), 1, "{name} is one metric: {metrics:?}");
        found[0]
    };
    let number = |value: &serde_json::Value| value.as_str().unwrap().parse::<u64>().unwrap();
    let has = |point: &serde_json::Value, key: &str, value: &str| {
        let attributes = point["attributes"].as_array().unwrap();
        attributes.iter().any(|one| one["key"] == key && one["value"]["stringValue"] == value)
    };
    let io = metric("fullpipe.network.io");
    assert_eq!((&io["unit"], &io["sum"]["isMonotonic"]), (&"By".into(), &true.into()), "{io}");
    let points = io["sum"]["dataPoints"].as_array().unwrap();
    let sent = points.iter().filter(|point| {
        has(point, "network.io.direction", "transmit") && has(point, "fullpipe.destination", "127.0.0.0/24")
    });
    let sent: u64 = sent.map(|point| number(&point["asInt"])).sum();
    let scraped =
        text.lines().filter(|line| line.starts_with("fullpipe_sent_bytes_total{") && line.contains("127.0.0.0/24"));
    let scraped: u64 = scraped.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    assert!(0 < sent && sent <= scraped, "{sent} and later {scraped}");
    let times = metric("fullpipe.round_trip.duration")["histogram"]["dataPoints"][0].clone();
    let counts = times["bucketCounts"].as_array().unwrap();
    assert_eq!(counts.len(), times["explicitBounds"].as_array().unwrap().len() + 1);
    assert_eq!(counts.iter().map(number).sum::<u64>(), number(&times["count"]));
    assert!(number(&times["startTimeUnixNano"]) < number(&times["timeUnixNano"]), "{times}");
    assert_eq!(metric("system.network.connection.count")["unit"], "{connection}");
    let families = text.lines().filter(|line| line.starts_with("# TYPE ")).count();
    assert_eq!(metrics.len(), families - 1, "payload is one metric instead of two: {text}");

    let process = rustix::process::Pid::from_raw(running.0.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    assert!(running.0.wait().unwrap().success(), "it ends in order");
}

#[test]
fn a_collector_that_is_away_is_told_of_once_and_when_it_is_back() {
    let test = "a_collector_that_is_away_is_told_of_once_and_when_it_is_back";
    // Nobody else takes a port that was free a moment ago, as a rule.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{address}");
    let mut child = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
        .args(["agent", "--listen", "127.0.0.1:0", "--interval", "200ms", "--otlp", &url, "--otlp-interval", "100ms"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut link = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut link).unwrap();
    let running = Running(child);
    if link.is_empty() {
        return println!("skipped {test}: this kernel has no sock_diag");
    }
    let mut next = || lines.find(|line| line.contains("collector at")).unwrap();
    let away = next();
    assert!(away.contains(&format!("collector at {url}/v1/metrics: takes no metrics")), "{away}");
    let metrics = link.trim().strip_prefix("metrics at http://").unwrap().strip_suffix("/metrics").unwrap();
    assert!(get(metrics.parse().unwrap(), "/metrics").is_some(), "it counts and answers all the same");
    let bodies = collector(TcpListener::bind(address).unwrap(), "200 OK");
    bodies.recv().unwrap();
    let back = next();
    assert!(back.contains("takes metrics again"), "nothing else is said between the two: {back}");
    drop(running);
}

#[test]
fn serve_tells_the_same_beside_its_measurements() {
    let words = ["serve", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let running = Running(child);
    let link = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("metrics at http://").map(str::to_owned));
    let Some(link) = link else {
        return println!("skipped serve_tells_the_same_beside_its_measurements: this kernel has no sock_diag");
    };
    let address = link.strip_suffix("/metrics").unwrap().parse().unwrap();
    in_time("a look", || get(address, "/metrics")?.1.contains("fullpipe_looks_total").then_some(()));
    drop(running);
}

#[test]
fn alert_rules_do_what_they_say() {
    for words in [["check", "rules", "fullpipe.rules.yml"], ["test", "rules", "fullpipe.rules.test.yml"]] {
        match Command::new("promtool").args(words).current_dir(packaging("prometheus")).output() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return println!("skipped alert_rules_do_what_they_say: promtool is not installed");
            }
            Err(error) => panic!("{error}"),
            Ok(output) => assert!(
                output.status.success(),
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            ),
        }
    }
}

#[test]
fn the_dashboard_is_one_by_the_schema_that_grafana_publishes() {
    let test = "the_dashboard_is_one_by_the_schema_that_grafana_publishes";
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    if !web.join("node_modules/@grafana/schema").is_dir() {
        return println!("skipped {test}: the packages of web/ are not here; `npm ci` there fetches them");
    }
    match Command::new("node").args(["--test", "tests/dashboard.test.mjs"]).current_dir(web).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => println!("skipped {test}: there is no Node.js"),
        Err(error) => panic!("{error}"),
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
    }
}

#[test]
fn a_real_prometheus_scrapes_it_and_answers_every_question_of_the_dashboard() {
    let test = "a_real_prometheus_scrapes_it_and_answers_every_question_of_the_dashboard";
    let words = ["agent", "--listen", "127.0.0.1:0", "--interval", "500ms"];
    let Some((_agent, address)) = agent(test, &words) else { return };
    let _connection = busy();
    let text = in_time("a look", || {
        get(address, "/metrics").map(|(_, text)| text).filter(|text| text.contains("127.0.0.0/24"))
    });

    let rules = fs::read_to_string(packaging("prometheus/fullpipe.rules.yml")).unwrap();
    let expressions = questions();
    let mut exported = names(&text);
    // Exported where there is such a socket, and the rights to see it.
    exported.insert("fullpipe_pinned_sockets".to_owned());
    for expression in expressions.iter().map(String::as_str).chain([rules.as_str()]) {
        let unknown: Vec<String> = asked(expression).difference(&exported).cloned().collect();
        assert!(unknown.is_empty(), "{unknown:?} in {expression}; the agent exports {exported:?}");
    }
    assert!(expressions.len() > 10, "{expressions:?}");

    let folder = tempfile::tempdir().unwrap();
    let config = format!(
        "global:\n  scrape_interval: 1s\n  evaluation_interval: 1s\nrule_files: ['{}']\nscrape_configs:\n  - job_name: fullpipe\n    static_configs:\n      - targets: ['{address}']\n",
        packaging("prometheus/fullpipe.rules.yml").display()
    );
    fs::write(folder.path().join("prometheus.yml"), config).unwrap();
    // Nobody else takes a port that was free a moment ago, as a rule.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let started = Command::new("prometheus")
        .arg(format!("--config.file={}", folder.path().join("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
        .arg(format!("--web.listen-address={port}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _prometheus = match started {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return println!("skipped {test}: prometheus is not installed");
        }
        started => Running(started.unwrap()),
    };
    let ask = |expression: &str| -> Option<serde_json::Value> {
        let (_, body) = get(port, &format!("/api/v1/query?query={}", encoded(expression)))?;
        serde_json::from_str(&body).ok()
    };
    let count = |answer: &serde_json::Value| answer["data"]["result"].as_array().map_or(0, Vec::len);
    // Two looks make a rate.
    in_time("a rate", || {
        let answer = ask("sum(rate(fullpipe_limited_seconds_total[1m])) > 0")?;
        (count(&answer) == 1).then_some(())
    });
    for expression in &expressions {
        let answer = ask(expression).unwrap();
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
    }
    let (_, loaded) = get(port, "/api/v1/rules").unwrap();
    let loaded: serde_json::Value = serde_json::from_str(&loaded).unwrap();
    let rules = loaded["data"]["groups"][0]["rules"].as_array().unwrap();
    assert!(rules.len() >= 6 && rules.iter().all(|rule| rule["health"] != "err"), "{loaded}");
    let up = ask("up{job=\"fullpipe\"}").unwrap();
    assert_eq!(up["data"]["result"][0]["value"][1], "1", "{up}");
}
