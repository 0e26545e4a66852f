//! The invariants of ARCHITECTURE.md that a machine can check: the arrows, what pure rooms never touch, and that the
//! documents name things that exist.

mod code;
mod licences;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Which rooms each room may use. An arrow that is not here does not exist.
const ARROWS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("tcp", &["units"]),
    ("pair", &["units", "tcp"]),
    ("path", &["units"]),
    ("diagnose", &["units"]),
    ("capture", &["units", "diagnose"]),
    ("ingest", &["capture"]),
    ("knobs", &["units", "diagnose"]),
    ("host", &["units", "knobs", "socket", "bpf"]),
    ("socket", &["units"]),
    ("probe", &["units"]),
    ("measure", &["units", "diagnose", "socket", "probe"]),
    ("watch", &["units", "diagnose", "socket", "bpf", "host"]),
    ("bpf", &["units"]),
    ("lab", &["units", "path", "knobs", "host"]),
    ("stack", &["units", "tcp", "path", "lab"]),
    ("c", &["socket", "tcp", "stack"]),
    ("packetdrill", &["units", "tcp"]),
    ("python", &["units", "capture", "ingest", "report", "cli"]),
    ("sim", &["units", "diagnose", "path", "tcp"]),
    ("chart", &["units", "diagnose"]),
    ("wasm", &["units", "diagnose", "capture", "chart", "ingest", "knobs", "page", "sim"]),
    ("fuzz", &["units", "tcp", "pair", "path", "diagnose", "capture", "knobs", "probe", "measure", "tune", "report"]),
    ("mesh", &["units", "diagnose"]),
    ("tune", &["units", "diagnose", "knobs", "host", "path", "measure", "lab"]),
    ("page", &["units", "diagnose", "capture", "chart", "ingest", "knobs"]),
    (
        "report",
        &["units", "diagnose", "capture", "chart", "page", "knobs", "host", "path", "measure", "mesh", "tune", "watch"],
    ),
    ("web", &["report"]),
    (
        "cli",
        &[
            "units", "diagnose", "capture", "ingest", "knobs", "host", "path", "measure", "mesh", "lab", "tune",
            "report", "sim", "stack", "tcp", "watch", "web", "bpf",
        ],
    ),
];

/// Rooms in which time and randomness are arguments and no file, socket or clock is ever seen.
const PURE: &[&str] = &["units", "tcp", "path", "diagnose", "capture", "knobs", "sim", "chart"];

/// What a pure room's code (tests apart) never names.
const IMPURE: &[&str] = &[
    "std::net",
    "std::fs",
    "std::process",
    "std::env",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::thread",
    "std::io",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}

/// The room of a workspace package; `None` for what is no room.
fn room(package: &str) -> Option<&str> {
    if package == "fullpipe" { Some("cli") } else { package.strip_prefix("fullpipe-") }
}

#[test]
fn arrows_point_inward() {
    let metadata = cargo_metadata::MetadataCommand::new().current_dir(root()).no_deps().exec().unwrap();
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let mut wrong = Vec::new();
    for package in &metadata.packages {
        let Some(from) = room(&package.name) else { continue };
        let Some(allowed) = allowed.get(from) else {
            wrong.push(format!("room {from} has no line in the table of arrows"));
            continue;
        };
        let normal = package.dependencies.iter().filter(|d| d.kind == cargo_metadata::DependencyKind::Normal);
        let found: BTreeSet<&str> = normal.filter_map(|dependency| room(&dependency.name)).collect();
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        wrong.extend(found.difference(&allowed).map(|to| format!("{from} -> {to} is not in the table")));
        wrong.extend(
            allowed.difference(&found).map(|to| format!("{from} -> {to} is in the table and not in Cargo.toml")),
        );
    }
    let rooms: BTreeSet<&str> = metadata.packages.iter().filter_map(|package| room(&package.name)).collect();
    wrong.extend(allowed.keys().filter(|name| !rooms.contains(**name)).map(|name| format!("there is no room {name}")));
    assert!(wrong.is_empty(), "arrows are not as the table has them: {wrong:#?}");
}

#[test]
fn pure_rooms_stay_small_and_touch_nothing() {
    let metadata = cargo_metadata::MetadataCommand::new().current_dir(root()).no_deps().exec().unwrap();
    let mut wrong = Vec::new();
    let mut read = 0;
    for package in &metadata.packages {
        let Some(name) = room(&package.name).filter(|name| PURE.contains(name)) else { continue };
        let direct: BTreeSet<&str> = package
            .dependencies
            .iter()
            .filter(|d| d.kind == cargo_metadata::DependencyKind::Normal)
            .map(|d| d.name.as_str())
            .collect();
        if direct.len() > 5 {
            wrong.push(format!("{name} has {} direct dependencies: {direct:?}", direct.len()));
        }
        for file in rust_files(&root().join("crates").join(name).join("src")) {
            // A module of tests in a file of its own. Where the repository lies says nothing.
            let within = file.strip_prefix(root()).expect("it was found there");
            if within.components().any(|part| part.as_os_str().to_string_lossy().contains("test")) {
                continue;
            }
            read += 1;
            for found in code::read(&file).paths {
                if names_impure(&found.what) {
                    wrong.push(format!("{}:{}: {}", file.display(), found.line, found.what));
                }
            }
        }
    }
    assert!(read > PURE.len(), "{read} files were read");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whether a path is one of [`IMPURE`], lies within one, or imports all that lies beside one.
fn names_impure(path: &str) -> bool {
    IMPURE.iter().any(|outer| match path.strip_suffix('*') {
        Some(before) if outer.starts_with(before) => true,
        _ => path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with("::")),
    })
}

#[test]
fn a_glob_that_brings_something_impure_counts_as_naming_it() {
    for path in ["std::fs", "std::fs::read", "std::*", "std::fs::*", "std::time::*", "std::time::Instant::now"] {
        assert!(names_impure(path), "{path}");
    }
    for path in ["std::time::Duration", "std::fsx", "super::*", "core::*", "std::collections::*"] {
        assert!(!names_impure(path), "{path}");
    }
}

/// Whether a path is in a module of system calls, a folder or a file.
fn is_sys(path: &str) -> bool {
    path.split('/').any(|part| part == "sys" || part == "sys.rs")
}

#[test]
fn a_file_whose_name_begins_like_a_module_of_system_calls_is_none() {
    assert!(is_sys("crates/measure/src/sys/cpu.rs") && is_sys("crates/lab/src/sys.rs"));
    for path in ["crates/knobs/src/sysctl_conf.rs", "crates/knobs/src/reading/sysctl.rs", "crates/x/src/system.rs"] {
        assert!(!is_sys(path), "{path}");
    }
}

#[test]
fn unsafe_code_stands_only_where_it_may() {
    // `init` is the lab's first process of a namespace: nothing but system calls between fork and exec. The bindings have
    // one file for each header in which C's pointers become slices. `socket` asks kernels about connections in its `sys`,
    // for itself and for `measure`.
    const FILES: &[&str] = &[
        "crates/lab/src/init.rs",
        "bindings/c/src/socket.rs",
        "bindings/c/src/stack.rs",
        "bindings/packetdrill/src/abi.rs",
        "bindings/packetdrill/src/preload.rs",
        "bindings/wasm/src/abi.rs",
    ];
    let may = |path: &str| path.starts_with("crates/host/") || is_sys(path) || FILES.contains(&path);
    let mut wrong = Vec::new();
    let files = ["crates", "bindings"].map(|folder| rust_files(&root().join(folder)));
    for file in files.into_iter().flatten() {
        let path = file.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        if !may(&path) {
            wrong.extend(
                code::read(&file).unsafe_code.iter().map(|found| format!("{path}:{}: {}", found.line, found.what)),
            );
        }
    }
    assert!(wrong.is_empty(), "unsafe outside host, the thin syscall modules and the bindings' edges: {wrong:#?}");
}

/// A package that a test builds alone shares what all of them are built of: another feature of one dependency compiles
/// everything above it a second time.
#[test]
fn the_wheel_is_built_of_what_the_tests_are_built_of() {
    let tree = |which: &[&str]| -> BTreeSet<String> {
        let args = ["tree", "--locked", "--prefix=none", "--no-dedupe", "--format={p} {f}"];
        let output = Command::new(env!("CARGO")).args(args).args(which).current_dir(root()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    };
    let wheel = tree(&["--package=fullpipe-python", "--edges=normal,build"]);
    let tests = tree(&["--workspace", "--edges=normal,build,dev"]);
    let others: Vec<&String> = wheel.difference(&tests).collect();
    assert!(
        wheel.len() > 100 && others.is_empty(),
        "{} packages, of these with other features: {others:#?}",
        wheel.len()
    );
}

#[test]
fn nothing_that_judges_a_path_pushes_as_hard_as_it_can() {
    // `run_max` changes what it measures. Measuring for figures is all that it may be used for.
    let may = |path: &str| path.starts_with("crates/measure/") || path == "crates/cli/src/commands/measure.rs";
    let mut wrong = Vec::new();
    let mut found = 0;
    for file in rust_files(&root().join("crates")) {
        let path = file.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        if fs::read_to_string(&file).unwrap().contains("run_max") {
            found += 1;
            if !may(&path) {
                wrong.push(path);
            }
        }
    }
    assert!(found > 0, "run_max has another name now");
    assert!(wrong.is_empty(), "used outside `measure`: {wrong:#?}");
}

#[test]
fn every_module_says_what_it_is() {
    let silent: Vec<PathBuf> = ["crates", "bindings"]
        .into_iter()
        .flat_map(|folder| rust_files(&root().join(folder)))
        .filter(|file| !fs::read_to_string(file).unwrap().trim_start().starts_with("//!"))
        .collect();
    assert!(silent.is_empty(), "no module documentation: {silent:#?}");
}

#[test]
fn documents_name_things_that_exist() {
    let mut missing = Vec::new();
    for document in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let named = text.split('`').skip(1).step_by(2);
        let starts = ["crates/", "docs/", "scenarios/", "xtask/", "bench/", "fuzz/", "bindings/"];
        missing.extend(
            named
                .filter(|name| {
                    starts.iter().any(|start| name.starts_with(start)) && !name.contains(['*', '<', ' ', '{'])
                })
                .filter(|name| !root().join(name).exists())
                .map(|name| format!("{document}: {name}")),
        );
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// A test that a document promises is one: a name of at least four words in its tables.
#[test]
fn documents_name_tests_that_exist() {
    let folders = ["crates", "fuzz/tests", "xtask"].map(|folder| rust_files(&root().join(folder)));
    let code: Vec<String> = folders.iter().flatten().filter_map(|file| fs::read_to_string(file).ok()).collect();
    let mut missing = Vec::new();
    let mut named = 0;
    for document in ["SECURITY.md", "docs/articles.md"] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let cells =
            text.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('`').skip(1).step_by(2));
        let is_test = |name: &&str| {
            name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
                && name.matches('_').count() > 2
        };
        for name in cells.filter(is_test) {
            named += 1;
            let definition = format!("fn {name}()");
            if !code.iter().any(|text| text.contains(&definition)) {
                missing.push(format!("{document}: {name}"));
            }
        }
    }
    assert!(named > 30 && missing.is_empty(), "{named} named, {missing:#?}");
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
