//! `settings`, `plan`, `lint`, `apply`, `undo` and `reset` of fullpipe.exe on Wine's registry, which says that it is XP's:
//! there the registry is all that there is to set. `reg` is the witness that is not ours.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use crate::{toolchain::text, wine::Wine};

const PARAMETERS: &str = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters";
const VERSION: &str = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion";
/// What people with a slow radio link were advised to import.
const RECIPE: &str = "Windows Registry Editor Version 5.00\r\n\r\n\
    [HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters]\r\n\
    \"TcpWindowSize\"=dword:0001f5e0\r\n\"SackOpts\"=dword:00000000\r\n";

/// A Wine with `fullpipe.exe` in it, and a folder that both see.
struct Machine<'a> {
    wine: &'a Wine<'a>,
    folder: &'a Path,
    program: &'a dyn Fn() -> Command,
}

pub(crate) fn are_planned_applied_undone_and_linted(wine: &Wine<'_>, folder: &Path, program: &dyn Fn() -> Command) {
    let machine = Machine { wine, folder, program };
    machine.becomes_xp();
    let start = machine.exported();
    machine.a_plan_for_this_machine_is_applied_and_undone(&start);
    machine.an_export_is_imported_and_taken_back(&start);
    machine.a_reset_removes_what_was_set_by_hand(&start);
    machine.a_recipe_is_judged();
}

impl Machine<'_> {
    fn fullpipe(&self, arguments: &[&str]) -> Output {
        (self.program)().args(arguments).output().unwrap()
    }

    fn document(&self, arguments: &[&str]) -> Value {
        let output = self.fullpipe(&[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn reg(&self, arguments: &[&str]) -> String {
        let output = self.wine.command("wine").arg("reg").args(arguments).output().unwrap();
        assert!(output.status.success(), "reg {arguments:?}: {}", text(&output));
        text(&output)
    }

    /// The path of a file of the folder, as Windows programs take it.
    fn path(&self, name: &str) -> String {
        format!("Z:{}", self.folder.join(name).display()).replace('/', "\\")
    }

    /// The whole key as `reg` writes it.
    fn exported(&self) -> Vec<u8> {
        self.reg(&["export", PARAMETERS, &self.path("export.reg"), "/y"]);
        fs::read(self.folder.join("export.reg")).unwrap()
    }

    fn becomes_xp(&self) {
        for (name, value) in [("CurrentVersion", "5.1"), ("CurrentBuildNumber", "2600"), ("ProductName", "Windows XP")]
        {
            self.reg(&["add", VERSION, "/v", name, "/t", "REG_SZ", "/d", value, "/f"]);
        }
        self.reg(&["add", PARAMETERS, "/v", "TcpWindowSize", "/t", "REG_DWORD", "/d", "17520", "/f"]);
    }

    fn a_plan_for_this_machine_is_applied_and_undone(&self, start: &[u8]) {
        let settings = self.document(&["settings"]);
        assert_eq!(settings["platform"], "windows-xp");
        let window = format!(r"registry {PARAMETERS}\TcpWindowSize");
        let rows = settings["settings"].as_array().unwrap();
        assert!(rows.iter().any(|row| row["knob"] == window.as_str() && row["value"] == "17520"), "{settings}");

        let plan = self.document(&["plan", "--platform", "this", "--rate", "1.8M", "--rtt", "230ms"]);
        fs::write(self.folder.join("plan.json"), plan.to_string()).unwrap();
        let refused = self.fullpipe(&["apply", &self.path("plan.json"), "--json"]);
        assert_eq!(refused.status.code(), Some(20), "off a terminal it takes --yes: {}", text(&refused));
        let applied = self.document(&["apply", &self.path("plan.json"), "--yes"]);
        assert_eq!(applied["restart_needed"], true);
        let now = self.reg(&["query", PARAMETERS]);
        for (name, hexadecimal) in [("TcpWindowSize", "0xfaf0"), ("GlobalMaxTcpWindowSize", "0xfaf0")] {
            let is_set = |line: &str| line.contains(&format!(" {name} ")) && line.contains(hexadecimal);
            assert!(now.lines().any(is_set), "{name}: {now}");
        }
        self.document(&["undo", "--yes"]);
        assert_eq!(self.exported(), start, "what reg exports is what it exported at the start");
    }

    /// Settings from the machine's own export; the files of the plan go in and out by `reg`, not by us.
    fn an_export_is_imported_and_taken_back(&self, start: &[u8]) {
        let (export, folder) = (self.path("export.reg"), self.path("written"));
        let from = ["plan", "--platform", "windows-xp", "--settings", &export, "--rate", "7M", "--rtt", "100ms"];
        let plan = self.document(&[&from[..], &["--write", &folder]].concat());
        let planned = plan["changes"].as_array().unwrap();
        assert!(planned.len() >= 3, "a window beyond 65,535 takes Tcp1323Opts: {plan}");
        type Import<'a> = &'a dyn Fn(&str);
        let registry_file: Import<'_> = &|name| drop(self.reg(&["import", &self.path(&format!("written/{name}.reg"))]));
        let setup_file: Import<'_> = &|name| self.install(&self.path(&format!("written/{name}.inf")));
        for import in [registry_file, setup_file] {
            import("fullpipe");
            let settings = self.document(&["settings"]);
            for change in planned {
                let rows = settings["settings"].as_array().unwrap();
                let row = rows.iter().find(|row| row["knob"] == change["knob"]).unwrap();
                assert_eq!(row["value"], change["to"], "{change}");
            }
            import("fullpipe-undo");
            assert_eq!(self.exported(), start);
        }
    }

    /// What "Install" in the menu of a setup file does.
    fn install(&self, file: &str) {
        let mut command = self.wine.command("wine");
        let status = command.args(["rundll32", "setupapi,InstallHinfSection", "DefaultInstall", "132", file]).status();
        assert!(status.unwrap().success(), "{file}");
    }

    fn a_reset_removes_what_was_set_by_hand(&self, start: &[u8]) {
        self.document(&["reset", "--yes"]);
        assert!(!self.reg(&["query", PARAMETERS]).contains("TcpWindowSize"));
        self.document(&["undo", "--yes"]);
        assert_eq!(self.exported(), start);
    }

    fn a_recipe_is_judged(&self) {
        fs::write(self.folder.join("recipe.reg"), RECIPE).unwrap();
        let recipe = self.path("recipe.reg");
        for (platform, code, rule) in [("windows-xp", 1, "needs-scaling"), ("windows-11", 0, "does-nothing")] {
            let output = self.fullpipe(&["lint", &recipe, "--platform", platform, "--json"]);
            assert_eq!(output.status.code(), Some(code), "{platform}: {}", text(&output));
            let document: Value = serde_json::from_slice(&output.stdout).unwrap();
            let findings = document["findings"].as_array().unwrap();
            assert!(findings.iter().any(|finding| finding["rule"] == rule), "{platform}: {document}");
        }
    }
}
