//! The shell scripts of exports, run by a real shell over commands that stand in for `sysctl`, `ip` and `ifconfig`.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use fullpipe_knobs::{Address, Change, Plan, Settings, TakesEffect, export::export};
use proptest::prelude::*;

/// `sysctl -n NAME` and `sysctl -w NAME=VALUE`, one file for each name; values come back with tabs, as Linux' do.
const SYSCTL: &str = r#"#!/bin/sh
case $1 in
  -n) tr ' ' '\t' <"$STORE/$2" ;;
  -w) name=${2%%=*}; [ -e "$STORE/$name" ] && printf '%s\n' "${2#*=}" >"$STORE/$name" ;;
esac
"#;
/// `ip -4 route show exact DESTINATION` and `ip -4 route change WORDS...`, one file with the one route; `ip link set`.
const IP: &str = r#"#!/bin/sh
case "$1 $2 $3" in
  "-4 route show") [ "$5" = 10.80.0.0/24 ] && cat "$STORE/route" || true ;;
  "-o link show") echo "2: $5: <BROADCAST,UP> mtu $(cat "$STORE/mtu") qdisc noop" ;;
  "link set dev") echo "$6" >"$STORE/mtu" ;;
  "-4 route change") shift 3; printf '%s \n' "$*" >"$STORE/route" ;;
esac
"#;
/// `ifconfig IF` and `ifconfig IF mtu N`.
const IFCONFIG: &str = r#"#!/bin/sh
if [ "${2-}" = mtu ]; then echo "$3" >"$STORE/mtu"; else echo "$1: flags=8843<UP> metric 0 mtu $(cat "$STORE/mtu")"; fi
"#;

/// A folder with an export, the stand-ins and the state that they keep.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(state: &[(&str, &str)]) -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        for part in ["bin", "store", "export", "root"] {
            fs::create_dir(bench.at(part)).unwrap();
        }
        for (name, text) in [("sysctl", SYSCTL), ("ip", IP), ("ifconfig", IFCONFIG)] {
            let file = bench.at("bin").join(name);
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        for (name, value) in state {
            fs::write(bench.at("store").join(name), format!("{value}\n")).unwrap();
        }
        bench
    }

    fn at(&self, part: &str) -> PathBuf {
        self.folder.path().join(part)
    }

    fn export(&self, platform: &str, changes: &[Change], settings: Option<&Settings>) {
        let plan = Plan { changes: changes.to_vec(), notes: Vec::new() };
        let export = export(&plan, &platform.parse().unwrap(), settings).unwrap();
        for file in &export.files {
            fs::write(self.at("export").join(file.name), &file.contents).unwrap();
            if file.executable {
                let checked = Command::new("sh").arg("-n").arg(self.at("export").join(file.name)).output().unwrap();
                assert!(checked.status.success(), "{}: {}", file.name, said(&checked));
            }
        }
    }

    fn run(&self, script: &str) -> Output {
        let path = format!("{}:{}", self.at("bin").display(), std::env::var("PATH").unwrap());
        Command::new("sh")
            .arg(self.at("export").join(script))
            .env("PATH", path)
            .env("STORE", self.at("store"))
            .env("DESTDIR", self.at("root"))
            .current_dir(self.at("root"))
            .output()
            .unwrap()
    }

    fn runs(&self, script: &str) {
        let output = self.run(script);
        assert!(output.status.success(), "{}", said(&output));
    }

    fn state(&self, name: &str) -> String {
        fs::read_to_string(self.at("store").join(name)).unwrap().trim().to_owned()
    }

    /// All files below the root that the scripts install into.
    fn installed(&self) -> Vec<PathBuf> {
        fn files(folder: &Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { files(&path, found) } else { found.push(path) }
            }
        }
        let mut found = Vec::new();
        files(&self.at("root"), &mut found);
        found
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn change(knob: &str, to: Option<&str>) -> Change {
    Change {
        host: "h".to_owned(),
        knob: knob.parse().unwrap(),
        from: None,
        to: to.map(str::to_owned),
        reason: "it's too small\n$(touch pwned) `touch pwned`; touch pwned".to_owned(),
        arithmetic: String::new(),
        memory_worst_case: None,
        takes_effect: TakesEffect::Live,
        undo: "by hand".to_owned(),
        source: "a test".to_owned(),
    }
}

const RMEM: &str = "net.ipv4.tcp_rmem";
const ROUTE: &str = "10.80.0.0/24 dev eth0 proto kernel scope link src 10.80.0.1 window 64512 linkdown";

#[test]
fn on_linux_what_was_there_comes_back_whatever_the_plan_knew() {
    let bench = Bench::new(&[(RMEM, "4096 131072 6291456"), ("route", ROUTE), ("mtu", "1500")]);
    let changes = [
        change(RMEM, Some("4096 131072 40042496")),
        change("route 10.80.0.0/24 window", None),
        change("link eth0 mtu", Some("9000")),
    ];
    bench.export("linux-6.18", &changes, None);
    bench.runs("apply.sh");
    assert_eq!(bench.state(RMEM), "4096 131072 40042496");
    assert_eq!(bench.state("route"), "10.80.0.0/24 dev eth0 proto kernel scope link src 10.80.0.1");
    assert_eq!(bench.installed(), [bench.at("root").join("etc/sysctl.d/90-fullpipe.conf")]);
    assert_eq!(bench.state("mtu"), "9000");
    // A second run finds nothing to do and keeps what the first one saved.
    bench.runs("apply.sh");
    bench.runs("undo.sh");
    assert_eq!(bench.state(RMEM), "4096 131072 6291456");
    assert_eq!(bench.state("route"), ROUTE.trim_end_matches(" linkdown"));
    assert_eq!(bench.state("mtu"), "1500");
    assert_eq!(bench.installed(), [] as [PathBuf; 0]);
}

#[test]
fn a_value_that_somebody_changed_since_is_left_alone() {
    let bench = Bench::new(&[(RMEM, "4096 131072 6291456")]);
    bench.export("linux-6.18", &[change(RMEM, Some("4096 131072 40042496"))], None);
    bench.runs("apply.sh");
    fs::write(bench.at("store").join(RMEM), "1 2 3\n").unwrap();
    let undone = bench.run("undo.sh");
    assert!(!undone.status.success() && said(&undone).contains("did not write"), "{}", said(&undone));
    assert_eq!(bench.state(RMEM), "1 2 3");
}

#[test]
fn without_the_saved_file_an_undo_needs_what_the_plan_knew() {
    let bench = Bench::new(&[(RMEM, "4096 131072 6291456")]);
    let changes = [change(RMEM, Some("4096 131072 40042496"))];
    bench.export("linux-6.18", &changes, None);
    bench.runs("apply.sh");
    fs::remove_file(bench.at("export/before.txt")).unwrap();
    assert!(said(&bench.run("undo.sh")).contains("not known"));
    assert_eq!(bench.state(RMEM), "4096 131072 40042496");
    let mut settings = Settings::default();
    settings.values.insert(Address::sysctl(RMEM), Some("4096\t131072\t6291456".to_owned()));
    bench.export("linux-6.18", &changes, Some(&settings));
    bench.runs("undo.sh");
    assert_eq!(bench.state(RMEM), "4096 131072 6291456");
}

#[test]
fn what_cannot_be_read_stops_the_script_before_it_writes() {
    let bench = Bench::new(&[(RMEM, "4096 131072 6291456")]);
    let changes = [change(RMEM, Some("4096 131072 40042496")), change("net.ipv4.tcp_none", Some("1"))];
    bench.export("linux-6.18", &changes, None);
    let output = bench.run("apply.sh");
    assert!(!output.status.success() && said(&output).contains("Nothing was changed"), "{}", said(&output));
    assert_eq!(bench.state(RMEM), "4096 131072 6291456");
    assert_eq!(bench.installed(), [] as [PathBuf; 0]);
}

#[test]
fn on_freebsd_the_files_of_the_administrator_come_back_byte_for_byte() {
    let bench = Bench::new(&[
        ("kern.ipc.nmbclusters", "262144"),
        ("kern.ipc.maxsockbuf", "2097152"),
        ("net.inet.tcp.recvbuf_max", "2097152"),
        ("mtu", "1500"),
    ]);
    let own = "# mine\nkern.coredump=0";
    fs::create_dir_all(bench.at("root/etc/rc.d")).unwrap();
    fs::write(bench.at("root/etc/rc.d/sysctl"), "parse_file /etc/sysctl.conf.local\n").unwrap();
    // A file that is empty and stays there.
    fs::create_dir(bench.at("root/boot")).unwrap();
    fs::write(bench.at("root/boot/loader.conf.local"), "").unwrap();
    fs::write(bench.at("root/etc/sysctl.conf.local"), format!("{own}\n")).unwrap();
    let mut clusters = change("kern.ipc.nmbclusters", Some("262144"));
    clusters.takes_effect = TakesEffect::Restart;
    let changes = [
        clusters,
        change("kern.ipc.maxsockbuf", Some("22503424")),
        change("net.inet.tcp.recvbuf_max", Some("20000768")),
        change("link em0 mtu", Some("9014")),
    ];
    bench.export("freebsd-14.1", &changes, None);
    bench.runs("apply.sh");
    assert_eq!((bench.state("kern.ipc.maxsockbuf"), bench.state("mtu")), ("22503424".to_owned(), "9014".to_owned()));
    let kept = fs::read_to_string(bench.at("root/etc/sysctl.conf.local")).unwrap();
    assert!(kept.starts_with(own) && kept.contains("\nkern.ipc.maxsockbuf=22503424\n"), "{kept}");
    assert!(bench.at("root/etc/rc.conf.local").exists());
    bench.runs("apply.sh");
    bench.runs("undo.sh");
    assert_eq!((bench.state("kern.ipc.maxsockbuf"), bench.state("mtu")), ("2097152".to_owned(), "1500".to_owned()));
    assert_eq!(fs::read(bench.at("root/boot/loader.conf.local")).unwrap(), b"");
    assert!(!bench.at("root/etc/rc.conf.local").exists() && !bench.at("root/etc/sysctl.conf").exists());
    assert_eq!(fs::read_to_string(bench.at("root/etc/sysctl.conf.local")).unwrap(), format!("{own}\n"));
}

#[test]
fn on_freebsd_no_buffer_is_raised_before_the_clusters_are_there() {
    let before = [("kern.ipc.nmbclusters", "6656"), ("net.inet.tcp.recvspace", "57344")];
    let bench = Bench::new(&before);
    let clusters = Change { takes_effect: TakesEffect::Restart, ..change(before[0].0, Some("39936")) };
    bench.export("freebsd-4.8", &[clusters, change(before[1].0, Some("2502656"))], None);
    // However often it is run before the restart.
    for _ in 0..2 {
        let output = bench.run("apply.sh");
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
        assert!(said(&output).contains("kern.ipc.nmbclusters is 6656"), "{}", said(&output));
        assert_eq!(bench.state("net.inet.tcp.recvspace"), "57344");
        // Nor does the next boot, where the loader might refuse its line.
        assert_eq!(bench.installed(), [bench.at("root/boot/loader.conf.local")]);
    }
    fs::write(bench.at("store/kern.ipc.nmbclusters"), "39936\n").unwrap();
    bench.runs("apply.sh");
    assert_eq!(bench.state("net.inet.tcp.recvspace"), "2502656");
    bench.runs("undo.sh");
    assert_eq!(bench.state("net.inet.tcp.recvspace"), "57344");
    assert_eq!(bench.installed(), [] as [PathBuf; 0]);
    // The undo of a first run takes away what that put there.
    fs::write(bench.at("store/kern.ipc.nmbclusters"), "6656\n").unwrap();
    bench.run("apply.sh");
    bench.runs("undo.sh");
    assert_eq!(bench.installed(), [] as [PathBuf; 0]);
    let steps = fs::read_to_string(bench.at("export/README.txt")).unwrap();
    let places = ["1. As root: sh apply.sh", "ends with 3", "3. Restart.", "4. Run sh apply.sh again"];
    let places: Vec<usize> = places.iter().map(|step| steps.find(step).unwrap()).collect();
    assert!(places.is_sorted(), "{steps}");
}

proptest! {
    // Each case starts a shell.
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_text_of_a_plan_is_run(reason in "([ -~]|['\"`$\\\\\n\r;&|]|\\$\\(touch pwned\\)|'; touch pwned; '){0,30}", from in "[0-9 \t]{1,12}") {
        prop_assume!(!from.trim().is_empty());
        let bench = Bench::new(&[(RMEM, "1 2 3")]);
        let mut wanted = change(RMEM, Some("4 5 6"));
        wanted.reason = reason;
        let mut settings = Settings::default();
        settings.values.insert(wanted.knob.clone(), Some(from));
        bench.export("linux-6.18", &[wanted], Some(&settings));
        bench.runs("apply.sh");
        bench.runs("undo.sh");
        prop_assert_eq!(bench.state(RMEM), "1 2 3");
        prop_assert_eq!(bench.installed(), Vec::<PathBuf>::new());
    }
}
