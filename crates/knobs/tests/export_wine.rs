//! The registry and setup files of exports, imported into the registry of Wine and read back.
//!
//! Not run by default: it starts Wine. `cargo test -p fullpipe-knobs --test export_wine -- --ignored`
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{fs, process::Command};

use fullpipe_knobs::{Address, Change, Plan, Settings, TakesEffect, export::export};

const KEY: &str = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";

struct Wine {
    folder: tempfile::TempDir,
}

impl Wine {
    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(self.folder.path())
            .env("WINEPREFIX", self.folder.path().join("wine"))
            .env("WINEDEBUG", "-all")
            .env("DISPLAY", "")
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).replace('\r', "")
    }

    /// The TCP values that are there, as `name=number`.
    fn values(&self) -> Vec<String> {
        let listed = self.run("wine", &["reg", "query", KEY]);
        let values = listed.lines().filter_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
            [name, "REG_DWORD", number] if name.contains("Tcp") => Some(format!("{name}={number}")),
            _ => None,
        });
        let mut values: Vec<String> = values.collect();
        values.sort_unstable();
        values
    }
}

fn change(value: &str, to: &str) -> Change {
    Change {
        host: "xp".to_owned(),
        knob: Address::Registry { key: KEY.to_owned(), value: value.to_owned() },
        from: None,
        to: Some(to.to_owned()),
        reason: "a window of 88 segments needs scaling; \"quoted\" \\".to_owned(),
        arithmetic: String::new(),
        memory_worst_case: None,
        takes_effect: TakesEffect::Restart,
        undo: "by hand".to_owned(),
        source: "a test".to_owned(),
    }
}

#[test]
#[ignore = "starts Wine, which takes seconds and has to be installed"]
fn what_is_imported_is_the_plan_and_its_undo_is_what_was_there() {
    let wine = Wine { folder: tempfile::tempdir().unwrap() };
    let mut before = Settings::default();
    let changes =
        [change("Tcp1323Opts", "1"), change("GlobalMaxTcpWindowSize", "128480"), change("TcpWindowSize", "128480")];
    for (change, value) in changes.iter().zip([Some("0"), None, Some("17520")]) {
        before.values.insert(change.knob.clone(), value.map(str::to_owned));
    }
    let plan = Plan { changes: changes.to_vec(), notes: Vec::new() };
    for file in export(&plan, &"windows-xp".parse().unwrap(), Some(&before)).unwrap().files {
        fs::write(wine.folder.path().join(file.name), &file.contents).unwrap();
    }
    wine.run("wineboot", &["-i"]);
    for (name, value) in [("Tcp1323Opts", "0"), ("TcpWindowSize", "17520")] {
        wine.run("wine", &["reg", "add", KEY, "/v", name, "/t", "REG_DWORD", "/d", value, "/f"]);
    }
    let start = ["Tcp1323Opts=0x0", "TcpWindowSize=0x4470"];
    let planned = ["GlobalMaxTcpWindowSize=0x1f5e0", "Tcp1323Opts=0x1", "TcpWindowSize=0x1f5e0"];
    assert_eq!(wine.values(), start);
    wine.run("wine", &["regedit", "/s", "fullpipe.reg"]);
    assert_eq!(wine.values(), planned);
    wine.run("wine", &["regedit", "/s", "fullpipe-undo.reg"]);
    assert_eq!(wine.values(), start);
    let install = |name: &str| {
        let file = format!("Z:{}", wine.folder.path().join(name).display()).replace('/', "\\");
        wine.run("wine", &["rundll32", "setupapi,InstallHinfSection", "DefaultInstall", "132", &file]);
    };
    install("fullpipe.inf");
    assert_eq!(wine.values(), planned);
    install("fullpipe-undo.inf");
    assert_eq!(wine.values(), start);
    wine.run("wineserver", &["-k"]);
}
