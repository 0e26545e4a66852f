//! `apply` and `reset` of the real binary in a network namespace that goes with the test; what can't change anything runs
//! anywhere.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    env, fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

const FULLPIPE: &str = env!("CARGO_BIN_EXE_fullpipe");

/// Runs a shell script in a fresh network namespace, with `fullpipe` as `$F`; `None` where this machine allows none.
fn in_namespace(test: &str, folder: &Path, script: &str) -> Option<Output> {
    let possible = |options: &str| {
        Command::new("unshare").args([options, "true"]).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    };
    let Some(options) = ["-nm", "-rnm"].into_iter().find(|options| possible(options)) else {
        eprintln!("skipped {test}: `unshare -n` is not possible here");
        return None;
    };
    // By its name alone: its folder may be one that a shell would take apart.
    let programs = Path::new(FULLPIPE).parent().unwrap().to_path_buf();
    let path = env::var_os("PATH").unwrap_or_default();
    let output = Command::new("unshare")
        .args([options, "sh", "-euc", script])
        .current_dir(folder)
        .env("F", "fullpipe")
        .env("PATH", env::join_paths([programs].into_iter().chain(env::split_paths(&path))).unwrap())
        .env("FULLPIPE_STATE_DIR", folder.join("state"))
        .env("FULLPIPE_SYSCTL_DIR", folder.join("sysctl.d"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(output)
}

fn file(folder: &Path, name: &str) -> Value {
    let text = fs::read(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{name}: {e}: {}", String::from_utf8_lossy(&text)))
}

fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Runs a command that must fail with this code, and gives its error.
fn fails(state: &Path, words: &[&str], code: i32) -> Value {
    let output = Command::new(FULLPIPE)
        .args([words, &["--json"]].concat())
        .env("FULLPIPE_STATE_DIR", state)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["error"].clone()
}

#[test]
fn a_plan_without_changes_is_said_to_be_one() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json");
    fs::write(&plan, r#"{"schema":"fullpipe/2","changes":[]}"#).unwrap();
    let output = Command::new(FULLPIPE)
        .args(["apply", plan.to_str().unwrap(), "--yes"])
        .env("FULLPIPE_STATE_DIR", folder.path().join("state"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("the plan has no changes"), "{text}");
    assert!(!text.contains("set already"), "{text}");
}

#[test]
fn a_plan_is_applied_read_back_and_undone() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        R=/proc/sys/net/ipv4/tcp_rmem
        echo '4096 87380 129024' > $R
        mkdir sysctl.d
        $F plan --platform this --rate 100M --rtt 80ms --json > plan.json
        $F apply plan.json --json > unasked.json && exit 1 || test $? = 20
        cat $R
        $F apply plan.json --yes --persist --json > applied.json
        cat $R
        $F apply plan.json --yes --persist --json > again.json
        SET=$(cat $R)
        echo '4096 87380 131072' > $R
        $F apply plan.json --yes --json > stale.json && exit 1 || test $? = 13
        echo $SET > $R
        $F apply plan.json --yes --json > third.json
        $F history --json > history.json
        ls sysctl.d
        $F undo --last --yes --json > undone.json
        cat $R
        ls sysctl.d | wc -l
        $F plan --platform linux-6.18 --rate 1G --rtt 80ms --json > blind.json
        $F apply blind.json --host linux-6.18 --yes --json > filled.json
        cat $R
        $F undo --last --yes --json > /dev/null
        echo '4096 131072 90000000' > $R
        $F apply blind.json --host linux-6.18 --yes --json > larger.json
        cat $R";
    let Some(output) = in_namespace("a_plan_is_applied_read_back_and_undone", folder.path(), script) else { return };
    let seen = lines(&output);
    let plan = file(folder.path(), "plan.json");
    let changes = plan["changes"].as_array().unwrap();
    let rmem = changes.iter().find(|change| change["knob"] == "net.ipv4.tcp_rmem").unwrap();
    assert_eq!(seen[0], "4096 87380 129024", "without --yes nothing is changed");
    assert_eq!(seen[1], rmem["to"].as_str().unwrap());
    assert!(seen[2].ends_with(".conf"), "{seen:?}");
    assert_eq!(&seen[3..5], ["4096 87380 129024", "0"]);
    let unasked = file(folder.path(), "unasked.json");
    assert_eq!(unasked["error"]["kind"], "not_confirmed");
    assert_eq!(unasked["changes"].as_array().map(Vec::len), Some(changes.len()), "it says what it would change");
    // A plan from a platform's defaults takes whatever is there for the start, and lowers nothing.
    let blind = file(folder.path(), "blind.json");
    assert!(blind["changes"].as_array().unwrap().iter().all(|change| change["from_known"] == false), "{blind}");
    let filled = file(folder.path(), "filled.json");
    let rmem = |document: &Value| {
        let changes = document["changes"].as_array().unwrap().clone();
        changes.into_iter().find(|change| change["knob"] == "net.ipv4.tcp_rmem")
    };
    assert_eq!(rmem(&filled).unwrap()["from"].as_str().unwrap().split_whitespace().last(), Some("129024"), "{filled}");
    assert_eq!(seen[5], rmem(&blind).unwrap()["to"].as_str().unwrap());
    let larger = file(folder.path(), "larger.json");
    assert_eq!((rmem(&larger), seen[6].as_str()), (None, "4096 131072 90000000"));
    assert!(larger["notes"].to_string().contains("is not lowered"), "{larger}");
    let applied = file(folder.path(), "applied.json");
    assert_eq!((&applied["run"], &applied["restart_needed"]), (&Value::from(1), &Value::from(false)));
    assert_eq!(applied["applied"].as_array().unwrap().len(), changes.len());
    assert_eq!(applied["boot_files"].as_array().unwrap().len(), 1);
    assert_eq!(file(folder.path(), "stale.json")["error"]["kind"], "changed_since");
    for again in ["again.json", "third.json"] {
        let again = file(folder.path(), again);
        assert_eq!((&again["run"], again["changes"].as_array().map(Vec::len)), (&Value::Null, Some(0)), "{again}");
        assert!(again["notes"].to_string().contains("as planned already"), "{again}");
    }
    assert_eq!(file(folder.path(), "history.json")["runs"][0]["state"], "kept");
    assert_eq!(file(folder.path(), "undone.json")["complete"], true);
}

#[test]
fn a_plan_for_another_host_says_how_to_name_this_one() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("check.json");
    let words = ["plan", "--platform", "linux-6.18", "--rate", "1G", "--rtt", "80ms", "--json"];
    let output = Command::new(FULLPIPE).args(words).stdin(Stdio::null()).output().unwrap();
    fs::write(&plan, output.stdout).unwrap();
    let error = fails(folder.path(), &["apply", plan.to_str().unwrap(), "--host", "elsewhere"], 24);
    assert!(error["message"].as_str().unwrap().contains("changes linux-6.18 and not elsewhere"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("--host linux-6.18 or --host here"), "{error}");
}

/// The example of `apply --help`.
#[test]
fn the_only_host_of_a_plan_may_be_called_here() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("check.json");
    let plan = |hosts: &[&str]| {
        let change = |host: &&str| {
            serde_json::json!({
                "host": host, "knob": "net.ipv4.tcp_sack", "from": "0", "to": "1", "reason": "a test", "arithmetic": "",
                "source": "", "memory_worst_case": null, "takes_effect": "new_connections", "undo": "write 0",
            })
        };
        let changes: Vec<Value> = hosts.iter().map(change).collect();
        let plan = serde_json::json!({ "changes": changes, "notes": [] });
        let document = serde_json::json!({ "schema": "fullpipe/2", "command": "check", "plan": plan });
        fs::write(&path, document.to_string()).unwrap();
    };
    plan(&["vm1"]);
    let output = Command::new(FULLPIPE)
        .args(["apply", path.to_str().unwrap(), "--host", "here", "--dry-run", "--json"])
        .env("FULLPIPE_STATE_DIR", folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    plan(&["vm1", "vm2"]);
    let error = fails(folder.path(), &["apply", path.to_str().unwrap(), "--host", "here"], 24);
    assert!(error["message"].as_str().unwrap().contains("changes vm1, vm2 and not here"), "{error}");
}

#[test]
fn a_reset_goes_back_to_the_kernels_defaults_and_is_itself_undone() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        S=/proc/sys/net/ipv4/tcp_window_scaling
        A=/proc/sys/net/ipv4/tcp_sack
        echo 0 > $S; echo 0 > $A; echo '4096 87380 129024' > /proc/sys/net/ipv4/tcp_rmem
        $F reset --json > unasked.json && exit 1 || test $? = 20
        $F reset > /dev/null 2> unasked.txt && exit 1 || test $? = 20
        cat $S $A
        $F reset --yes --json > reset.json
        cat $S $A
        $F reset --yes --json > again.json
        $F undo 1 --yes --json > undone.json
        cat $S $A";
    let Some(output) = in_namespace("a_reset_goes_back_to_the_kernels_defaults", folder.path(), script) else { return };
    assert_eq!(lines(&output), ["0", "0", "1", "1", "0", "0"]);
    // Nobody can be asked, and still it says what it would do.
    let unasked = file(folder.path(), "unasked.json");
    assert!(unasked["changes"].as_array().unwrap().iter().any(|change| change["knob"] == "net.ipv4.tcp_sack"));
    let said = fs::read_to_string(folder.path().join("unasked.txt")).unwrap();
    assert!(said.contains("net.ipv4.tcp_sack") && said.contains("--yes"), "{said}");
    let reset = file(folder.path(), "reset.json");
    let changes = reset["changes"].as_array().unwrap();
    let sack = changes.iter().find(|change| change["knob"] == "net.ipv4.tcp_sack").unwrap();
    assert!(sack["reason"].as_str().unwrap().contains("fresh network namespace"), "{sack}");
    assert!(changes.iter().all(|change| !change["knob"].as_str().unwrap().starts_with("link ")), "{reset}");
    // A namespace takes this one over from the first, so that only the catalogue tells; where memory is short, nobody.
    let rmem = changes.iter().find(|change| change["knob"] == "net.ipv4.tcp_rmem");
    let reason = rmem.map_or_else(|| reset["notes"].to_string(), |change| change["reason"].to_string());
    assert!(reason.contains("by the catalogue") || reason.contains("net.ipv4.tcp_rmem"), "{reset}");
    assert_eq!(file(folder.path(), "again.json")["run"], Value::Null, "nothing is left to reset");
    assert_eq!(file(folder.path(), "undone.json")["complete"], true);
}

#[test]
fn a_reset_to_the_journal_undoes_that_run_and_the_later_ones() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
        A=/proc/sys/net/ipv4/tcp_sack
        W=/proc/sys/net/ipv4/tcp_window_scaling
        plan() {
            printf '{"schema":"fullpipe/2","changes":[{"host":"h","knob":"net.ipv4.%s","from":"1","to":"0","reason":"",
            "arithmetic":"","memory_worst_case":null,"takes_effect":"live","undo":"","source":""}]}' $1 > $1.json
            $F apply $1.json --host h --yes --quiet > /dev/null
        }
        plan tcp_timestamps; plan tcp_sack; plan tcp_window_scaling
        cat $A $W /proc/sys/net/ipv4/tcp_timestamps
        $F reset --to-journal 2 --json > asked.json && exit 1 || test $? = 20
        $F undo --json > undo-asked.json && exit 1 || test $? = 20
        $F reset --to-journal 2 --yes --json > reset.json
        cat $A $W /proc/sys/net/ipv4/tcp_timestamps
        $F reset --to-journal 9 --yes --json > unknown.json && exit 1 || test $? = 22"#;
    let Some(output) = in_namespace("a_reset_to_the_journal", folder.path(), script) else { return };
    assert_eq!(lines(&output), ["0", "0", "0", "1", "1", "0"]);
    let put_back = |name: &str| -> Vec<String> {
        let document = file(folder.path(), name);
        assert_eq!(document["error"]["kind"], "not_confirmed", "{document}");
        let row =
            |change: &Value| format!("{} {} {} -> {}", change["run"], change["knob"], change["from"], change["to"]);
        document["changes"].as_array().unwrap().iter().map(row).collect()
    };
    let scaling = r#"3 "net.ipv4.tcp_window_scaling" "0" -> "1""#;
    assert_eq!(
        put_back("asked.json"),
        [scaling, r#"2 "net.ipv4.tcp_sack" "0" -> "1""#],
        "newest first, and nothing done"
    );
    assert_eq!(put_back("undo-asked.json"), [scaling]);
    let reset = file(folder.path(), "reset.json");
    assert_eq!((&reset["command"], &reset["complete"]), (&Value::from("reset"), &Value::from(true)));
    assert_eq!(reset["undone"].as_array().unwrap().len(), 2);
}

#[test]
fn without_the_right_nothing_is_changed_and_the_right_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        $F plan --platform this --rate 100G --rtt 80ms --memory 100G --json > plan.json
        echo 0 > /proc/sys/net/ipv4/tcp_sack
        mkdir -m 700 state; chown 65534:65534 state; chmod 755 .
        try() { setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all $F $* --yes --json; }
        try apply plan.json > apply.json || echo $?
        try reset > reset.json || echo $?
        cat /proc/sys/net/ipv4/tcp_sack";
    let as_nobody = Command::new("setpriv").args(["--reuid", "65534", FULLPIPE, "--version"]).output();
    if !as_nobody.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped without_the_right_nothing_is_changed: nobody can't be played here");
        return;
    }
    let Some(output) = in_namespace("without_the_right_nothing_is_changed", folder.path(), script) else { return };
    assert_eq!(lines(&output), ["3", "3", "0"]);
    for name in ["apply.json", "reset.json"] {
        let error = &file(folder.path(), name)["error"];
        assert_eq!(error["kind"], "no_permission", "{error}");
        assert!(error["hint"].as_str().unwrap().contains("root"), "{error}");
    }
}

#[test]
fn a_full_disk_leaves_nothing_half_written() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        mkdir full; mount -t tmpfs -o size=8k none full
        $F plan --platform windows-2012 --rate 100M --rtt 80ms --write full/out --json > error.json && exit 1 || echo $?
        ls -A full | wc -l";
    let Some(output) = in_namespace("a_full_disk_leaves_nothing_half_written", folder.path(), script) else { return };
    assert_eq!(lines(&output), ["16", "0"]);
    let error = &file(folder.path(), "error.json")["error"];
    assert!(error["message"].as_str().unwrap().contains("full/out/"), "{error}");
}

#[test]
fn a_plan_for_another_machine_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plan = |platform: &str| {
        let output = Command::new(FULLPIPE)
            .args(["plan", "--platform", platform, "--rate", "100M", "--rtt", "80ms", "--json"])
            .output()
            .unwrap();
        let file = folder.path().join(platform);
        fs::write(&file, output.stdout).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let windows = plan("windows-2012");
    let error = fails(folder.path(), &["apply", &windows, "--yes"], 24);
    assert!(error["message"].as_str().unwrap().contains("windows-2012"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("--host"), "{error}");
    // Named all the same, its settings are not of this system, and nothing is written.
    let error = fails(folder.path(), &["apply", &windows, "--yes", "--host", "windows-2012"], 12);
    assert!(error["message"].as_str().unwrap().contains("netsh tcp global"), "{error}");
    for (text, says) in [("{", "no JSON"), ("{\"schema\":\"fullpipe/2\",\"command\":\"status\"}", "neither")] {
        let file = folder.path().join("x.json");
        fs::write(&file, text).unwrap();
        let error = fails(folder.path(), &["apply", file.to_str().unwrap(), "--yes"], 24);
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
    }
}
