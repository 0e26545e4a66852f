//! `mesh --store postgres://...` against a real server, which this starts and ends. Where PostgreSQL is not installed, that is said.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    fs,
    io::Write as _,
    net::TcpListener,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

const FULLPIPE: &str = env!("CARGO_BIN_EXE_fullpipe");

/// Debian has the server where no shell looks.
const FIND: &str = "PATH=$PATH:$(echo /usr/lib/postgresql/*/bin | tr ' ' ':'); export PATH;";

fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{FIND} {line}")]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A server that lets users in over TCP with a password, and this test over its own socket without one.
struct Server {
    _running: Running,
    folder: tempfile::TempDir,
    port: u16,
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // It refuses to be root, and has to get to its files.
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        let who = if is_root { "setpriv --reuid=postgres --regid=postgres --init-groups" } else { "" };
        if is_root {
            let passwd = fs::read_to_string("/etc/passwd").unwrap();
            let line = passwd.lines().find(|line| line.starts_with("postgres:")).unwrap();
            let ids: Vec<u32> = line.split(':').skip(2).take(2).map(|id| id.parse().unwrap()).collect();
            chown(&data, Some(ids[0]), Some(ids[1])).unwrap();
        }
        let at = data.display();
        let made = shell(&format!("cd / && {who} initdb -D {at} -U postgres -A trust --no-sync -E UTF8")).status();
        assert!(made.unwrap().success(), "initdb");
        let may = "local all all trust\nhostnossl all sealed all reject\nhost all all 127.0.0.1/32 scram-sha-256\n";
        fs::write(data.join("pg_hba.conf"), may).unwrap();
        // An authority, and what it vouches for: a server by the name of localhost.
        let made = shell(&format!(
            "cd {at} && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority \
             -keyout ca.key -out ../ca.crt && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
             -CA ../ca.crt -CAkey ca.key -subj /CN=localhost -addext subjectAltName=DNS:localhost \
             -addext basicConstraints=critical,CA:false -keyout server.key -out server.crt && chown --reference . server.key"
        ));
        assert!({ made }.status().unwrap().success(), "openssl");
        let mut settings = fs::OpenOptions::new().append(true).open(data.join("postgresql.conf")).unwrap();
        settings.write_all(b"ssl = on\n").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let options = "-c fsync=off -c shared_buffers=16MB -c password_encryption=scram-sha-256";
        let line = format!("cd / && exec {who} postgres -D {at} -h 127.0.0.1 -p {port} -k {at} {options}");
        let server = Self { _running: Running(shell(&line).spawn().unwrap()), folder, port };
        until("the server", || server.try_sql("postgres", "SELECT 1").is_some());
        server.sql(
            "postgres",
            "CREATE ROLE team LOGIN PASSWORD 'right'; CREATE ROLE reader LOGIN PASSWORD 'right'; \
             CREATE ROLE sealed LOGIN PASSWORD 'right' IN ROLE team",
        );
        server
    }

    fn psql(&self, database: &str) -> String {
        format!(
            "psql -h {} -p {} -U postgres -d {database} -XAtq",
            self.folder.path().join("data").display(),
            self.port
        )
    }

    fn try_sql(&self, database: &str, sql: &str) -> Option<String> {
        let done =
            shell(&format!("{} -c \"$0\"", self.psql(database))).arg(sql).stdout(Stdio::piped()).output().unwrap();
        done.status.success().then(|| String::from_utf8(done.stdout).unwrap().trim().to_owned())
    }

    fn sql(&self, database: &str, sql: &str) -> String {
        self.try_sql(database, sql).unwrap_or_else(|| panic!("{database}: {sql}"))
    }

    /// A database of its own for a part of the test.
    fn database(&self, name: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE {name} OWNER team"));
        self.url("team", name)
    }

    fn url(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// Somebody who lets directions be read and not written, until standard input is closed.
    fn lock(&self, database: &str) -> (Running, ChildStdin) {
        let mut child = shell(&format!("exec {}", self.psql(database))).stdin(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"BEGIN; LOCK TABLE fullpipe.directions IN SHARE MODE;\n").unwrap();
        let sql =
            "SELECT count(*) FROM pg_locks WHERE mode = 'ShareLock' AND relation = 'fullpipe.directions'::regclass";
        until("the lock", || self.sql(database, sql) == "1");
        (Running(child), input)
    }

    /// The number of the server's process that has inserted a run, and waits for that lock.
    fn waiting(&self, database: &str) -> String {
        let sql =
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'fullpipe mesh' AND wait_event_type = 'Lock'";
        until("a run that waits", || !self.sql(database, sql).is_empty());
        self.sql(database, sql)
    }

    fn runs(&self, database: &str) -> String {
        let running = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fullpipe mesh'";
        until("the end of all that is written", || self.sql(database, running) == "0");
        self.sql(database, "SELECT count(*) || ' ' || (SELECT count(*) FROM fullpipe.directions) FROM fullpipe.runs")
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what} does not come");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A file of two hosts that answer with a document of their own instead of measuring, and leave a file.
fn hosts(folder: &Path, mbps: u64) -> String {
    let transfer = |direction: &str| {
        format!(
            "{{\"direction\": \"{direction}\", \"rate_bps\": {}, \"rtt_us\": 80000, \"diagnosis\": {{\"limiter\": \"path\"}}}}",
            mbps * 1_000_000
        )
    };
    let document = format!("{{\"transfers\": [{}, {}]}}", transfer("a->b"), transfer("b->a"));
    let script = folder.join(format!("answers-{mbps}"));
    let asked = folder.join("asked");
    fs::write(&script, format!("#!/bin/sh\n: > {}\necho '{document}'\n", asked.display())).unwrap();
    fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    let host = |name| format!("[[host]]\nname = '{name}'\nrun = []\nprogram = '{}'\n", script.display());
    let file = folder.join(format!("hosts-{mbps}.toml"));
    fs::write(&file, format!("name = 'wan'\n{}{}", host("p1"), host("t1"))).unwrap();
    file.to_str().unwrap().to_owned()
}

fn mesh(store: &str, words: &[&str]) -> Command {
    let mut command = Command::new(FULLPIPE);
    command.arg("mesh").args(words).args(["--json", "--quiet", "--store", store]).env("PGPASSWORD", "right");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn document(store: &str, words: &[&str], code: i32) -> Value {
    ended(mesh(store, words).spawn().unwrap(), code)
}

fn ended(child: Child, code: i32) -> Value {
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(code), "{said}");
    serde_json::from_str(&said).unwrap()
}

fn message(document: &Value) -> String {
    format!("{} ({})", document["error"]["message"], document["error"]["hint"])
}

fn is_installed(test: &str) -> bool {
    ["initdb", "openssl", "postgres", "psql", "setpriv"].into_iter().all(|program| {
        let is_here = shell(&format!("command -v {program}")).status().is_ok_and(|status| status.success());
        if !is_here {
            println!("skipped {test}: {program} is not installed");
        }
        is_here
    })
}

#[test]
fn runs_are_kept_in_a_real_server() {
    if !is_installed("runs_are_kept_in_a_real_server") {
        return;
    }
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let (fast, slow) = (hosts(folder.path(), 900), hosts(folder.path(), 100));
    a_run_is_held_against_earlier_ones_as_in_a_file(&server, folder.path(), &fast, &slow);
    who_may_not_is_told_before_anything_is_measured(&server, folder.path(), &fast);
    what_crosses_the_network_is_encrypted_as_the_url_says(&server, &fast);
    another_layout_is_left_alone(&server, &fast);
    many_at_once_lose_nothing(&server, &fast);
    who_ends_in_the_middle_leaves_nothing(&server, &fast);
}

fn a_run_is_held_against_earlier_ones_as_in_a_file(server: &Server, folder: &Path, fast: &str, slow: &str) {
    let url = server.database("kept");
    let file = folder.join("runs.sqlite").to_str().unwrap().to_owned();
    let listed = [&url, &file].map(|store| {
        document(store, &[fast], 0);
        let found = document(store, &[slow], 1);
        assert_eq!((&found["run"], &found["directions"][0]["before_bps"]), (&2.into(), &900_000_000.into()));
        let mut earlier = document(store, &[fast, "--history"], 0);
        assert_eq!(earlier["runs"].as_array().unwrap().len(), 2);
        for run in earlier["runs"].as_array_mut().unwrap() {
            assert!(run["started"].take().is_string());
        }
        earlier
    });
    assert_eq!(listed[0], listed[1]);
}

fn who_may_not_is_told_before_anything_is_measured(server: &Server, folder: &Path, fast: &str) {
    let asked: PathBuf = folder.join("asked");
    let url = server.database("rights");
    document(&url, &[fast], 0);
    fs::remove_file(&asked).unwrap();

    let wrong = ended(mesh(&url, &[fast]).env("PGPASSWORD", "secret-but-wrong").spawn().unwrap(), 3);
    let said = message(&wrong);
    assert!(said.contains("password authentication failed for user") && !said.contains("secret"), "{said}");
    let with_it = url.replace("team@", "team:secret-but-wrong@");
    let said = message(&document(&with_it, &[fast], 3));
    assert!(said.contains(&format!("postgres://team@127.0.0.1:{}/rights", server.port)), "{said}");
    assert!(!said.contains("secret"), "{said}");
    let said = message(&ended(mesh(&url, &[fast]).env_remove("PGPASSWORD").spawn().unwrap(), 3));
    assert!(said.contains("password"), "{said}");

    let reader = server.url("reader", "rights");
    let said = message(&document(&reader, &[fast], 3));
    assert!(said.contains("fullpipe"), "{said}");
    server.sql(
        "rights",
        "GRANT USAGE ON SCHEMA fullpipe TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA fullpipe TO reader",
    );
    assert_eq!(document(&reader, &[fast, "--history"], 0)["runs"].as_array().unwrap().len(), 1);
    let said = message(&document(&reader, &[fast], 3));
    assert!(said.contains("may read it, and not write"), "{said}");

    let said = message(&document(&server.url("team", "nowhere"), &[fast], 24));
    assert!(said.contains("does not exist"), "{said}");
    let said = message(&document(&format!("{url}?sslmode=allow"), &[fast], 2));
    assert!(said.contains("sslmode=allow") && said.contains("verify-full"), "{said}");
    let said = message(&document("postgres://team@127.0.0.1:x/y", &[fast], 2));
    assert!(said.contains("port"), "{said}");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let said = message(&document(&format!("postgres://team@127.0.0.1:{free}/x"), &[fast], 5));
    assert!(said.contains("refused") && said.contains("--no-store"), "{said}");
    assert!(!asked.exists(), "nothing is measured that could not be kept");
}

fn what_crosses_the_network_is_encrypted_as_the_url_says(server: &Server, fast: &str) {
    let url = server.database("sealed");
    document(&url, &[fast], 0);
    server
        .sql("sealed", "GRANT ALL ON SCHEMA fullpipe TO sealed; GRANT ALL ON ALL TABLES IN SCHEMA fullpipe TO sealed");
    let authority = server.folder.path().join("ca.crt").display().to_string();
    let [by_address, by_name] =
        ["127.0.0.1", "localhost"].map(|host| url.replace("team@127.0.0.1", &format!("sealed@{host}")));
    // The server lets this user in over TLS alone.
    document(&by_address, &[fast], 0);
    document(&format!("{by_address}?sslmode=require"), &[fast], 0);
    document(&format!("{by_address}?sslmode=verify-ca&sslrootcert={authority}"), &[fast], 0);
    document(&format!("{by_name}?sslmode=verify-full&sslrootcert={authority}"), &[fast], 0);
    assert_eq!(server.runs("sealed"), "5 10");

    let said = message(&document(&format!("{by_address}?sslmode=disable"), &[fast], 3));
    assert!(said.contains("no encryption") && said.contains("sealed"), "{said}");
    let said = message(&document(&format!("{by_address}?sslmode=verify-full&sslrootcert={authority}"), &[fast], 3));
    assert!(said.contains("certificate not valid for name") && said.contains("127.0.0.1"), "{said}");
    // An authority that this machine does not know.
    let said = message(&document(&format!("{by_name}?sslmode=verify-full"), &[fast], 3));
    assert!(said.contains("UnknownIssuer") || said.contains("certificates of authorities"), "{said}");
    let said = message(&document(&format!("{by_name}?sslmode=verify-full&sslrootcert=/nowhere"), &[fast], 2));
    assert!(said.contains("sslrootcert=/nowhere"), "{said}");

    server.sql("postgres", "ALTER SYSTEM SET ssl = off");
    server.sql("postgres", "SELECT pg_reload_conf()");
    until("a server without TLS", || server.sql("postgres", "SHOW ssl") == "off");
    let said = message(&document(&format!("{url}?sslmode=require"), &[fast], 3));
    assert!(said.contains("TLS"), "{said}");
    document(&url, &[fast], 0);
}

fn another_layout_is_left_alone(server: &Server, fast: &str) {
    let url = server.database("layouts");
    document(&url, &[fast], 0);
    server.sql("layouts", "UPDATE fullpipe.layout SET version = 2");
    let said = message(&document(&url, &[fast], 24));
    assert!(said.contains("the layout 2, and this version knows 1"), "{said}");
    assert_eq!(server.runs("layouts"), "1 2");
    let url = server.database("others");
    server.sql("others", "CREATE SCHEMA fullpipe CREATE TABLE mine (x INT); ALTER SCHEMA fullpipe OWNER TO team");
    let said = message(&document(&url, &[fast], 24));
    assert!(said.contains("the layout 0"), "{said}");
    assert_eq!(server.sql("others", "SELECT count(*) FROM pg_tables WHERE schemaname = 'fullpipe'"), "1");
}

fn many_at_once_lose_nothing(server: &Server, fast: &str) {
    // The first of them makes the tables.
    let url = server.database("many");
    let running: Vec<Child> = (0..8).map(|_| mesh(&url, &[fast]).spawn().unwrap()).collect();
    let mut numbers: Vec<i64> = running.into_iter().map(|child| ended(child, 0)["run"].as_i64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!((numbers, server.runs("many").as_str()), ((1..=8).collect(), "8 16"));
}

fn who_ends_in_the_middle_leaves_nothing(server: &Server, fast: &str) {
    let url = server.database("ends");
    document(&url, &[fast], 0);
    let (_holder, input) = server.lock("ends");
    let mut killed = mesh(&url, &[fast]).spawn().unwrap();
    server.waiting("ends");
    killed.kill().unwrap();
    killed.wait().unwrap();
    drop(input);
    assert_eq!(server.runs("ends"), "1 2");

    let (_holder, input) = server.lock("ends");
    let cut_off = mesh(&url, &[fast]).spawn().unwrap();
    let number = server.waiting("ends");
    server.sql("ends", &format!("SELECT pg_terminate_backend({number})"));
    let found = ended(cut_off, 10);
    assert_eq!(found["directions"][0]["rate_bps"], 900_000_000, "what was measured is shown");
    // The server's last words, unless the end of the connection overtakes them.
    let said = message(&found);
    assert!(said.contains("terminating connection") || said.contains("connection closed"), "{said}");
    drop(input);
    assert_eq!(server.runs("ends"), "1 2");
    assert_eq!(document(&url, &[fast], 0)["directions"][0]["slower"], false);
    assert_eq!(server.runs("ends"), "2 4");
}
