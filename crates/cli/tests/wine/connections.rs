//! `settings --connections` of fullpipe.exe: over Wine's own iphlpapi.dll, which knows connections and has no statistics
//! of them, and over a stand-in that has (`iphlpapi_stand_in.c`), with `netsh` telling the automatic tuning level.

use std::{
    fs,
    net::TcpStream,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use crate::{
    Server, netsh,
    toolchain::text,
    watch,
    wine::{COMPILER, Wine},
};

const VERSION: &str = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion";
/// What the stand-in for netsh shows, as Windows 7 does.
const GLOBAL: &str = "TCP Global Parameters\n----------\nReceive Window Auto-Tuning Level    : normal\n";

pub(crate) fn are_listed_with_their_programs(program: &dyn Fn() -> Command) {
    let mut serving = program();
    let server = Server::start(&mut serving);
    let stream = TcpStream::connect(&server.address).unwrap();
    let output = program().args(["settings", "--connections", "--watch", "1s", "--json"]).output().unwrap();
    let (document, connections) = connections(&output);
    let here = stream.local_addr().unwrap().to_string();
    let ours = connections.iter().find(|one| one["remote"] == here.as_str());
    let ours = ours.unwrap_or_else(|| panic!("{here} is not in {document}"));
    assert_eq!(ours["local"], server.address.as_str());
    // Wine finds the owner of a socket only where the program's own process holds a descriptor of it, which it need not.
    assert!(ours["program"].is_null() || ours["program"] == "fullpipe.exe", "{document}");
    let problem = ours["problem"].as_str().unwrap();
    assert!(problem.contains("no statistics of TCP connections (ESTATS)"), "{problem}");
    let output = program().args(["settings", "--connections"]).output().unwrap();
    assert!(output.status.success() && text(&output).contains("which buffers are pinned is not known"));
}

pub(crate) fn tell_of_pinned_buffers(wine: &Wine<'_>, folder: &Path, program: &dyn Fn() -> Command) {
    let folder = folder.join("estats");
    fs::create_dir(&folder).unwrap();
    let system = wine.prefix().join("drive_c/windows/system32");
    let put = |name: &str, file: &Path| {
        let (there, kept) = (system.join(name), folder.join(name).with_extension("kept"));
        fs::rename(&there, &kept).unwrap();
        fs::copy(file, &there).unwrap();
        move || fs::rename(&kept, &there).unwrap()
    };
    let library = library(&folder);
    let back = [put("iphlpapi.dll", &library), put("netsh.exe", &netsh::build(&folder))];
    fs::write(folder.join("global.txt"), GLOBAL).unwrap();
    for (key, name, value) in [
        (VERSION, "CurrentVersion", "6.1"),
        (VERSION, "CurrentBuildNumber", "7601"),
        (VERSION, "ProductName", "Windows 7"),
        // Wine's own programs keep its library.
        (r"HKCU\Software\Wine\DllOverrides", "iphlpapi", "builtin"),
        (r"HKCU\Software\Wine\DllOverrides", "netsh.exe", "native"),
        (r"HKCU\Software\Wine\AppDefaults\fullpipe.exe\DllOverrides", "iphlpapi", "native"),
    ] {
        let added = wine.command("wine").args(["reg", "add", key, "/v", name, "/d", value, "/f"]).output().unwrap();
        assert!(added.status.success(), "{}", text(&added));
    }
    let run = |arguments: &[&str]| {
        let mut command = program();
        command.args([&["settings", "--connections"], arguments].concat()).current_dir(&folder).output().unwrap()
    };
    let unwatched = run(&["--json"]);
    let watched = run(&["--watch", "1s", "--json"]);
    let log = fs::read_to_string(folder.join("estats.txt")).unwrap_or_default();
    let shown = run(&["--watch", "200ms"]);
    fs::remove_file(folder.join("estats.txt")).unwrap();
    let seen = watch::once(program, &folder);
    let seen_log = fs::read_to_string(folder.join("estats.txt")).unwrap_or_default();
    fs::write(folder.join("denied.txt"), "").unwrap();
    let denied = run(&["--watch", "1h", "--json"]);
    let unseen = watch::once(program, &folder);
    back.into_iter().for_each(|back| back());
    watch::has_statistics(&seen, &seen_log);
    watch::has_none_without_rights(&unseen);

    let (document, found) = connections(&unwatched);
    assert_eq!(document["tuning_level"], "normal", "{document}");
    assert!(
        found.iter().all(|one| one["problem"].as_str().unwrap().contains("--watch")),
        "off, and left off: {document}"
    );
    let (document, found) = connections(&watched);
    let [four, six] = found.as_slice() else { panic!("{document}") };
    assert_eq!((&four["local"], &four["remote"]), (&"192.0.2.1:5201".into(), &"198.51.100.7:49152".into()));
    assert_eq!((&four["receive"]["largest"], &four["receive"]["pinned"]), (&64_512.into(), &true.into()), "{four}");
    assert!(four["receive"]["why"].as_str().unwrap().contains("window scale 0 where the level gives 8"), "{four}");
    assert_eq!((&six["local"], &six["receive"]["pinned"]), (&"[2001:db8::1]:443".into(), &true.into()), "{six}");
    assert!(six["receive"]["why"].as_str().unwrap().contains("its window stayed at 64000 B"), "{six}");
    assert_eq!(six["send"]["pinned"], Value::Null, "{six}");
    let (on, off): (Vec<&str>, Vec<&str>) = log.lines().partition(|line| line.ends_with("on"));
    assert_eq!((on.len(), off.len()), (12, 12), "six groups of two connections, on and off again: {log}");
    assert!(text(&shown).contains("PINNED") && text(&shown).contains("2 very likely"), "{}", text(&shown));
    let (document, found) = connections(&denied);
    assert!(found.iter().all(|one| one["problem"].as_str().unwrap().contains("elevated")), "{document}");
}

/// The stand-in as a library for Windows.
fn library(folder: &Path) -> std::path::PathBuf {
    let (source, library) = (folder.join("iphlpapi_stand_in.c"), folder.join("stand_in.dll"));
    fs::write(&source, include_str!("iphlpapi_stand_in.c")).unwrap();
    let built = Command::new(COMPILER).args(["-shared", "-O1", "-o"]).arg(&library).arg(source).output().unwrap();
    assert!(built.status.success(), "{}", text(&built));
    library
}

fn connections(output: &Output) -> (Value, Vec<Value>) {
    assert!(output.status.success(), "{}", text(output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let connections = document["connections"].as_array().cloned();
    (document, connections.expect("asked for"))
}
