//! The batch files of exports, run by Wine's `cmd.exe` to the end. `netsh`, `net` and `findstr` are stand-ins that write
//! down what they are asked (`stand_in.c`): what is seen is that every line, its quoting, the branches on `errorlevel` and
//! the undo come out as they are meant to, not what netsh makes of them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use fullpipe_knobs::{Address, Change, Plan, Settings, TakesEffect, export::export};

use crate::{
    toolchain::text,
    wine::{COMPILER, Wine},
};

const APPLY: &str = "fullpipe-netsh.cmd";
const UNDO: &str = "fullpipe-netsh-undo.cmd";
/// Names that people, or somebody who wants a script to do something else, can give to an interface.
const NAMES: [&str; 8] = [
    "Ethernet 2",
    "a & echo pwned > pwned.txt",
    "50%PATH%%% of",
    "x^|y<in>out",
    "(a) !b! 'c' `d`",
    "semi;colon,comma=1",
    "-h /?",
    "\\\\server\\share",
];
/// What `netsh interface tcp dump` prints; of it only the line with what was changed may be run.
const DUMP: &str =
    "reset\nset global rss=enabled autotuninglevel=restricted ecncapability=disabled\nset supplemental x\n";

/// A folder with an export and the stand-ins beside it.
struct Bench<'a> {
    wine: &'a Wine<'a>,
    folder: PathBuf,
}

pub(crate) fn batch_files_say_to_netsh_what_they_are_meant_to(wine: &Wine<'_>, folder: &Path) {
    let stand_in = build(folder);
    let bench = |name: &str| {
        let folder = folder.join(name);
        fs::create_dir(&folder).unwrap();
        for program in ["netsh", "net", "findstr"] {
            fs::copy(&stand_in, folder.join(program).with_extension("exe")).unwrap();
        }
        fs::write(folder.join("dump.txt"), DUMP).unwrap();
        Bench { wine, folder }
    };
    bench("known").everything_is_set_and_put_back();
    bench("unknown").what_nobody_knew_comes_back_from_the_dump();
    bench("refusing").a_refusal_ends_the_script_with_a_code_and_a_sentence();
}

/// The stand-in as a program for Windows.
pub(crate) fn build(folder: &Path) -> PathBuf {
    let (source, program) = (folder.join("stand_in.c"), folder.join("stand_in.exe"));
    fs::write(&source, include_str!("stand_in.c")).unwrap();
    let built = Command::new(COMPILER).args(["-O1", "-o"]).arg(&program).arg(source).output().unwrap();
    assert!(built.status.success(), "{}", text(&built));
    program
}

impl Bench<'_> {
    fn export(&self, changes: &[Change], settings: Option<&Settings>) {
        let plan = Plan { changes: changes.to_vec(), notes: Vec::new() };
        let export = export(&plan, &"windows-7".parse().unwrap(), settings).unwrap();
        for file in &export.files {
            fs::write(self.folder.join(file.name), &file.contents).unwrap();
        }
    }

    fn run(&self, script: &str) -> Output {
        let mut command = self.wine.command("wine");
        command.args(["cmd", "/c", script]).current_dir(&self.folder).output().unwrap()
    }

    /// Runs a script, and gives what the stand-ins wrote down.
    fn asked(&self, script: &str, code: i32) -> Vec<String> {
        let log = self.folder.join("log.txt");
        drop(fs::remove_file(&log));
        let output = self.run(script);
        assert_eq!(output.status.code(), Some(code), "{script}: {}", text(&output));
        fs::read_to_string(log).unwrap().lines().map(str::to_owned).collect()
    }

    fn everything_is_set_and_put_back(&self) {
        let (changes, settings) = planned();
        self.export(&changes, Some(&settings));
        let set = |level: &str, wsh: &str, buffers: &str, mtu: &str| -> Vec<String> {
            let head = [
                format!("netsh [interface] [tcp] [set] [global] [autotuninglevel={level}]"),
                format!("netsh [interface] [tcp] [set] [heuristics] [wsh={wsh}]"),
                format!("netsh [winsock] [set] [autotuning] [{buffers}]"),
            ];
            let links = NAMES.map(|name| {
                format!("netsh [interface] [ipv4] [set] [subinterface] [{name}] [mtu={mtu}] [store=persistent]")
            });
            head.into_iter().chain(links).collect()
        };
        let show = "netsh [interface] [tcp] [show] [global]".to_owned();
        let dump = "netsh [interface] [tcp] [dump]".to_owned();
        let session = "net [session]".to_owned();

        let asked = self.asked(APPLY, 0);
        let wanted = set("normal", "disabled", "on", "9000");
        assert_eq!(asked, [&[session.clone(), dump][..], &wanted, std::slice::from_ref(&show)].concat());
        let before = fs::read_to_string(self.folder.join("fullpipe-netsh-before.txt")).unwrap();
        assert_eq!(before.replace("\r\n", "\n"), DUMP);

        let asked = self.asked(UNDO, 0);
        let mut back = set("restricted", "enabled", "off", "1500");
        back.reverse();
        assert_eq!(asked, [&[session][..], &back, &[show]].concat());
        assert!(!self.folder.join("fullpipe-netsh-before.txt").exists(), "used up");
        assert!(!self.folder.join("pwned.txt").exists() && !self.folder.join("out").exists());
    }

    fn what_nobody_knew_comes_back_from_the_dump(&self) {
        self.export(&planned().0[..1], None);
        let early = self.run(UNDO);
        assert_eq!(early.status.code(), Some(1), "{}", text(&early));
        assert!(text(&early).contains("was not run from this folder"), "{}", text(&early));
        self.asked(APPLY, 0);
        // A second run keeps what the first one saved.
        fs::write(self.folder.join("dump.txt"), "set global autotuninglevel=normal\n").unwrap();
        assert!(!self.asked(APPLY, 0).iter().any(|line| line.contains("[dump]")));
        let asked = self.asked(UNDO, 0);
        let file: Vec<&str> = asked.iter().skip_while(|line| !line.contains("[-f]")).map(String::as_str).collect();
        let global = DUMP.lines().nth(1).unwrap();
        assert_eq!(file[1..4], ["pushd interface tcp", global, "popd"], "no `reset`: {asked:?}");
        let left = ["fullpipe-netsh-before.txt", "fullpipe-netsh-before.txt.run"];
        assert!(left.iter().all(|name| !self.folder.join(name).exists()));
    }

    fn a_refusal_ends_the_script_with_a_code_and_a_sentence(&self) {
        let (changes, settings) = planned();
        self.export(&changes, Some(&settings));
        let refuse = |argument: &str| fs::write(self.folder.join("refused.txt"), argument).unwrap();
        for (argument, asked, words) in [
            ("session", 1, "command prompt of an administrator. Nothing was changed"),
            ("dump", 2, "could not be saved. Nothing was changed"),
            ("wsh=disabled", 4, "netsh refused the command before this line"),
        ] {
            refuse(argument);
            let before = self.folder.join("fullpipe-netsh-before.txt");
            drop(fs::remove_file(&before));
            assert_eq!(self.asked(APPLY, 1).len(), asked, "{argument}: nothing is run after it");
            let said = text(&self.run(APPLY));
            assert!(said.contains(words), "{argument}: {said}");
            assert_eq!(before.exists(), argument == "wsh=disabled", "{argument}: saved before anything is set");
        }
        refuse("wsh=enabled");
        let asked = self.asked(UNDO, 1);
        assert!(asked.last().unwrap().contains("wsh=enabled"), "{asked:?}");
        assert!(self.folder.join("fullpipe-netsh-before.txt").exists(), "for another try");
        fs::remove_file(self.folder.join("refused.txt")).unwrap();
        self.asked(UNDO, 0);
    }
}

/// Three switches, and the MTU of each interface, with what is there.
fn planned() -> (Vec<Change>, Settings) {
    let link = |device: &str| Address::Link { device: device.into(), property: "mtu".into() };
    let rows = [
        (Address::netsh("tcp global", "autotuninglevel"), "restricted", "normal"),
        (Address::netsh("tcp heuristics", "wsh"), "enabled", "disabled"),
        (Address::netsh("winsock", "autotuning"), "off", "on"),
    ];
    let links = NAMES.map(|name| (link(name), "1500", "9000"));
    let mut settings = Settings { platform: "windows-7".parse().unwrap(), ..Settings::default() };
    let mut changes = Vec::new();
    for (knob, from, to) in rows.into_iter().chain(links) {
        settings.values.insert(knob.clone(), Some(from.to_owned()));
        changes.push(Change {
            host: "windows-7".to_owned(),
            knob,
            from: Some(from.to_owned()),
            to: Some(to.to_owned()),
            reason: "a % \" & echo pwned > pwned.txt\r\necho pwned > pwned.txt ^".to_owned(),
            arithmetic: String::new(),
            memory_worst_case: None,
            takes_effect: TakesEffect::NewConnections,
            undo: String::new(),
            source: String::new(),
        });
    }
    (changes, settings)
}
