//! `settings`, `plan` and `lint` of the real binary: they change nothing, and files of other machines are read offline.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
    // Nothing here touches the journal: a state folder that can't be made would show it.
    command.args(words).env("FULLPIPE_STATE_DIR", "/dev/null/none").env("LC_ALL", "C").stdin(Stdio::null());
    command
}

fn fullpipe(words: &[&str]) -> Output {
    command(words).output().unwrap()
}

fn document(output: &Output) -> Value {
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    assert_eq!(document["schema"], "fullpipe/2");
    document
}

fn succeeds(words: &[&str]) -> Value {
    let output = fullpipe(&[words, &["--json"]].concat());
    assert!(output.status.success(), "{words:?}: {output:?}");
    document(&output)
}

/// Runs a command that must fail with this code, and gives its error.
fn fails(words: &[&str], code: i32) -> Value {
    let output = fullpipe(&[words, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
    document(&output)["error"].clone()
}

fn message(error: &Value) -> &str {
    error["message"].as_str().unwrap_or_else(|| panic!("{error}"))
}

/// A file that the readers of the room `knobs` are tested with.
fn sample(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../knobs/src/reading/samples");
    folder.join(name).to_str().unwrap().to_owned()
}

fn written(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let file = folder.join(name);
    fs::write(&file, bytes).unwrap();
    file.to_str().unwrap().to_owned()
}

fn row<'a>(document: &'a Value, knob: &str) -> &'a Value {
    let rows = document["settings"].as_array().unwrap();
    rows.iter().find(|row| row["knob"] == knob).unwrap_or_else(|| panic!("no {knob} in {document}"))
}

fn text(output: &Output) -> String {
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn this_host_is_read_with_defaults_and_meanings() {
    let document = succeeds(&["settings"]);
    assert!(document["platform"].as_str().unwrap().starts_with("linux-"), "{document}");
    let rmem = row(&document, "net.ipv4.tcp_rmem");
    let now = fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").unwrap();
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(rmem["value"].as_str().unwrap()), words(&now));
    assert!(!rmem["meaning"].as_str().unwrap().is_empty());
    assert_eq!(rmem["file"], Value::Null);
    let all = succeeds(&["settings", "--all"]);
    let count = |document: &Value| document["settings"].as_array().unwrap().len();
    assert!(count(&all) > count(&document));
    assert_eq!((&all["hidden"], document["hidden"].as_u64() > Some(0)), (&Value::from(0), true));
}

#[test]
fn files_of_a_freebsd_host_are_taken_together() {
    let files = ["loader.conf", "rc.conf", "sysctl-freebsd.txt"].map(sample);
    let words: Vec<&str> = ["settings", "--from"].into_iter().chain(files.iter().map(String::as_str)).collect();
    let document = succeeds(&words);
    assert!(document["platform"].as_str().unwrap().starts_with("freebsd-14"), "{document}");
    let window = row(&document, "net.inet.tcp.recvspace");
    assert_eq!((&window["value"], &window["is_default"]), (&Value::from("65536"), &Value::from(true)));
    assert!(window["line"].as_u64() > Some(0) && window["column"].as_u64() > Some(0));
    let remarks = document["remarks"].as_array().unwrap();
    assert!(remarks.iter().any(|remark| remark["kind"] == "out_of_range" && remark["line"] == 3), "{document}");
    assert!(document["contradictions"].as_array().unwrap().iter().any(|one| one["knob"] == "kern.ipc.nmbclusters"));
}

#[test]
fn files_of_windows_linux_and_macos_hosts_are_told_apart() {
    for (file, platform, family) in [
        ("netsh-2012.txt", Some("windows-2012"), "windows-2012"),
        ("settings.csv", Some("windows-10"), "windows-10"),
        ("settings.clixml", None, "windows"),
        ("sysctl-linux.txt", None, "linux"),
        ("sysctl-macos.txt", None, "macos"),
        ("device.c", None, "netburner"),
    ] {
        let file = sample(file);
        let named = platform.map_or(vec![], |platform| vec!["--platform", platform]);
        let document = succeeds(&[&["settings", "--from", &file], named.as_slice()].concat());
        assert!(document["platform"].as_str().unwrap().starts_with(family), "{file}: {document}");
        assert!(!document["settings"].as_array().unwrap().is_empty(), "{file}");
    }
}

#[test]
fn standard_input_is_a_file_too() {
    let mut child = command(&["settings", "--from", "-", "--platform", "linux-5.15", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"net.ipv4.tcp_sack = 0\nnet.ipv4.tcp_timestamps = 1\n").unwrap();
    let document = document(&child.wait_with_output().unwrap());
    assert_eq!(row(&document, "net.ipv4.tcp_sack")["is_default"], false);
    assert_eq!(document["files"][0]["file"], "standard input");
}

#[test]
fn what_a_user_sees_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    written(
        folder.path(),
        "sysctl.conf",
        "net.ipv4.tcp_sack = 0\nnet.ipv4.tcp_adv_win_scale = 2\nnet.ipv4.tcp_rmem = lots\nnonsense\n",
    );
    let output = command(&["settings", "--from", "sysctl.conf", "--platform", "linux-6.18"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    insta::assert_snapshot!("settings_of_a_file", text(&output));
}

#[test]
fn each_platform_is_planned_for() {
    let knobs = |document: &Value| -> Vec<String> {
        let changes = document["changes"].as_array().unwrap();
        changes.iter().map(|change| change["knob"].as_str().unwrap().to_owned()).collect()
    };
    for (platform, rate, rtt, expected) in [
        ("windows-xp", "1.8M", "230ms", "TcpWindowSize"),
        ("windows-2012", "100M", "80ms", "autotuninglevel"),
        ("freebsd-14.1", "1G", "20ms", "net.inet.tcp"),
        ("freebsd-6.2", "1G", "2ms", "kern.ipc.maxsockbuf"),
        ("linux-5.15", "1G", "80ms", "net.ipv4.tcp_rmem"),
        ("netburner", "25M", "10ms", "call "),
    ] {
        let document = succeeds(&["plan", "--platform", platform, "--rate", rate, "--rtt", rtt]);
        assert_eq!(document["platform"], platform);
        assert!(knobs(&document).iter().any(|knob| knob.contains(expected)), "{platform}: {document}");
        assert_eq!((&document["from_settings"], &document["folder"]), (&Value::from(false), &Value::Null));
    }
    let macos = succeeds(&["plan", "--platform", "macos", "--rate", "1G", "--rtt", "80ms"]);
    assert!(!macos["changes"].as_array().unwrap().is_empty() || !macos["notes"].as_array().unwrap().is_empty());
    let this = succeeds(&["plan", "--rate", "1G", "--rtt", "80ms"]);
    assert!(this["from_settings"] == true && this["platform"].as_str().unwrap().starts_with("linux-"), "{this}");
}

#[test]
fn several_paths_are_planned_as_a_whole() {
    let paths = ["plan", "--platform", "linux-5.15", "--path", "100M,240ms,2", "--path", "1G,80ms,4"];
    let document = succeeds(&paths);
    // 100 Mbit/s x 240 ms is 3 MB, 1 Gbit/s x 80 ms is 10 MB.
    assert_eq!((&document["rate_bps"], &document["rtt_us"]), (&1_000_000_000_u64.into(), &80_000.into()));
    let note = document["notes"][1].as_str().unwrap();
    assert!(
        note.starts_with("planned for 2 paths as a whole: 1.00 Gbit/s x 80.0 ms") && note.contains("; 6 connections")
    );
    let largest = |document: &Value| {
        let changes = document["changes"].as_array().unwrap().clone();
        let of = |change: &Value| change["to"].as_str().unwrap().rsplit(' ').next().unwrap().parse::<u64>().unwrap();
        changes.iter().map(|change| (of(change), change["memory_worst_case"].as_u64().unwrap())).collect::<Vec<_>>()
    };
    let free = largest(&document);
    assert!(
        free.len() == 2 && free.iter().all(|(size, memory)| *size >= 20_000_000 && *memory == 6 * size),
        "{free:?}"
    );
    let bounded = largest(&succeeds(&[&paths[..], &["--memory", "128M"]].concat()));
    assert!(bounded.len() == 2 && bounded.iter().map(|(_, memory)| memory).sum::<u64>() <= 128 << 20, "{bounded:?}");
    for wrong in [
        &["--path", "1G"][..],
        &["--path", "1G,80ms,0"],
        &["--path", "1G,80ms,4,4"],
        &["--path", "1G,80ms", "--rate", "1G", "--rtt", "80ms"],
        &["--rate", "1G"],
        &[],
    ] {
        fails(&[&["plan", "--platform", "linux-5.15"], wrong].concat(), 2);
    }
}

#[test]
fn larger_packets_are_planned_where_all_agree_and_written_in_the_platforms_form() {
    let folder = tempfile::tempdir().unwrap();
    let path = ["--rate", "1G", "--rtt", "1ms", "--mtu", "1514,4088,9014", "--peer-mtu", "9000", "--hop-mtu", "9216"];
    for (platform, device, file, has) in [
        ("freebsd-14.1", "em0", "rc.conf.local", "ifconfig_em0=\"${ifconfig_em0} mtu 9000\""),
        ("linux-6.18", "eth0", "networkd-mtu.conf", "MTUBytes=9000"),
        ("windows-2025", "Ethernet 2", "fullpipe.ps1", "Keyword = '*JumboPacket'; To = '9014'"),
        ("windows-2025", "Ethernet 2", "fullpipe.ps1", "Kind = 'Mtu'; Interface = 'Ethernet 2'; To = '9000'"),
        ("macos", "en0", "apply.sh", "set_mtu 'en0' '9000'"),
    ] {
        let out = folder.path().join(format!("{platform}{}", has.len()));
        let words = ["plan", "--platform", platform, "--device", device, "--write", out.to_str().unwrap()];
        let document = succeeds(&[&words[..], &path].concat());
        assert_eq!((&document["mtu"], &document["mss"]), (&Value::from(9000), &Value::from(8960)));
        let text = fs::read_to_string(out.join(file)).unwrap();
        assert!(text.contains(has), "{platform}: {text}");
    }
    let small = succeeds(
        &["plan", "--platform", "linux-6.18", "--device", "eth0", "--hop-mtu", "1500"]
            .iter()
            .chain(&path)
            .copied()
            .collect::<Vec<_>>(),
    );
    assert!(small["notes"].to_string().contains("hop 1 takes no more than 1500 B"), "{small}");
    let usual = ["plan", "--platform", "linux-6.18", "--rate", "1G", "--rtt", "1ms"];
    let tunnel = succeeds(&[&usual[..], &["--ipsec", "aes-gcm"]].concat());
    assert_eq!((&tunnel["mtu"], &tunnel["mss"]), (&Value::from(1446), &Value::from(1406)));
    for wrong in
        [&["--mtu", "big"][..], &["--peer-mtu", "9000"], &["--mtu", "9000", "--hop-mtu", "direct", "--hop-mtu", "9000"]]
    {
        assert_eq!(fails(&[&usual[..], wrong].concat(), 2)["kind"], "usage", "{wrong:?}");
    }
}

#[test]
fn a_server_of_2012_is_told_that_the_registry_advice_does_nothing() {
    let document = succeeds(&["plan", "--platform", "windows-2012", "--rate", "100M", "--rtt", "80ms"]);
    let notes = document["notes"].to_string();
    assert!(notes.contains("TcpWindowSize") && notes.contains("do nothing here"), "{notes}");
    assert!(notes.contains("New-NetTransportFilter"), "{notes}");
}

#[test]
fn what_a_user_sees_of_a_plan_for_xp_on_hsdpa() {
    let output = fullpipe(&["plan", "--platform", "windows-xp", "--rate", "1.8M", "--rtt", "230ms"]);
    insta::assert_snapshot!("plan_for_xp", text(&output));
}

#[test]
fn a_machines_own_settings_are_where_a_plan_starts() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(
        folder.path(),
        "sysctl.txt",
        "net.ipv4.tcp_rmem = 4096 87380 129024\nnet.ipv4.tcp_wmem = 4096 16384 4194304\n\
         net.ipv4.tcp_window_scaling = 0\nnet.ipv4.tcp_mem = 100000 200000 300000\n",
    );
    let words = ["plan", "--settings", &file, "--platform", "linux-5.15", "--rate", "100M", "--rtt", "80ms"];
    let document = succeeds(&words);
    assert_eq!(document["from_settings"], true);
    let changes = document["changes"].as_array().unwrap();
    let of = |knob: &str| changes.iter().find(|change| change["knob"] == knob).unwrap_or_else(|| panic!("{document}"));
    assert_eq!(of("net.ipv4.tcp_rmem")["from"], "4096 87380 129024");
    assert_eq!(of("net.ipv4.tcp_window_scaling")["to"], "1");
    // With them the undo is exact.
    let out = folder.path().join("out");
    succeeds(&[&words[..], &["--write", out.to_str().unwrap()]].concat());
    let undo: String = fs::read_dir(&out)
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap_or_default())
        .collect();
    assert!(undo.contains("4096 87380 129024"), "no file has the earlier value");
}

#[test]
fn a_written_plan_is_a_folder_in_the_platforms_form() {
    let folder = tempfile::tempdir().unwrap();
    for (platform, files) in [
        ("windows-xp", "README.txt fullpipe-remove.inf fullpipe-remove.reg fullpipe.inf fullpipe.reg save-first.cmd"),
        ("windows-2012", "README.txt fullpipe-netsh-undo.cmd fullpipe-netsh.cmd fullpipe-template.ps1 fullpipe.ps1"),
        ("freebsd-14.1", "README.txt apply.sh sysctl.conf.local undo.sh"),
        ("macos", "README.txt apply.sh undo.sh"),
        ("linux-5.15", "90-fullpipe.conf README.txt apply.sh tuned.conf undo.sh"),
        ("netburner", "README.txt fullpipe_lwipopts.h fullpipe_netburner.h"),
    ] {
        let out = folder.path().join(platform);
        let out = out.to_str().unwrap();
        let words = ["plan", "--platform", platform, "--rate", "1G", "--rtt", "80ms", "--write", out];
        let document = succeeds(&words);
        let mut names: Vec<String> =
            fs::read_dir(out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names.join(" "), files, "{platform}");
        assert_eq!(document["files"].as_array().unwrap().len(), names.len());
        // A second time it is in the way, and nothing is touched.
        let readme = Path::new(out).join("README.txt");
        fs::write(&readme, "mine").unwrap();
        let error = fails(&words, 25);
        assert!(error["kind"] == "output_exists" && error["hint"].as_str().unwrap().contains("--force"), "{error}");
        assert_eq!(fs::read_to_string(&readme).unwrap(), "mine");
        succeeds(&[&words[..], &["--force"]].concat());
        assert_ne!(fs::read_to_string(&readme).unwrap(), "mine");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let error = fails(&["plan", "--platform", "windows-7", "--rate", "1M", "--rtt", "1s", "--write", "/dev/null"], 25);
    assert!(message(&error).contains("/dev/null"), "{error}");
    let error =
        fails(&["plan", "--platform", "windows-7", "--rate", "1M", "--rtt", "1s", "--write", "/dev/null/x"], 25);
    assert!(message(&error).contains("no folder"), "{error}");
}

#[test]
fn a_recipe_decides_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    for (content, code, level) in [
        ("net.ipv4.tcp_sack = 0\n", 1, "error"),
        ("net.ipv4.tcp_tw_recycle = 1\n", 0, "warning"),
        ("net.ipv4.tcp_sack = 1\n", 0, "ok"),
    ] {
        let file = written(folder.path(), "x.conf", content);
        let output = fullpipe(&["lint", &file, "--json"]);
        assert_eq!(output.status.code(), Some(code), "{content}: {output:?}");
        let document = document(&output);
        let findings = document["findings"].as_array().unwrap();
        assert!(findings.iter().any(|finding| finding["level"] == level && finding["line"] == 1), "{document}");
        assert_eq!(document["errors"].as_i64(), Some(code.into()));
    }
}

#[test]
fn a_recipe_is_judged_for_a_version_and_a_path() {
    let folder = tempfile::tempdir().unwrap();
    let reg = written(
        folder.path(),
        "tweak.reg",
        "Windows Registry Editor Version 5.00\r\n\r\n[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\\
         Parameters]\r\n\"TcpWindowSize\"=dword:0000faf0\r\n",
    );
    let rules = |words: &[&str]| succeeds(words)["findings"].to_string();
    assert!(rules(&["lint", &reg, "--platform", "windows-11"]).contains("does-nothing"));
    assert!(!rules(&["lint", &reg, "--platform", "windows-xp"]).contains("does-nothing"));
    let playbook = written(
        folder.path(),
        "main.yml",
        "- ansible.posix.sysctl:\n    name: net.ipv4.tcp_tw_recycle\n    value: '1'\n",
    );
    assert!(rules(&["lint", &playbook]).contains("tcp_tw_recycle"));
    let small = written(folder.path(), "small.conf", "net.ipv4.tcp_rmem = 4096 87380 129024\n");
    let fits = ["lint", &small, "--rate", "1M", "--rtt", "10ms"];
    let too_small = ["lint", &small, "--rate", "100M", "--rtt", "80ms"];
    let of = |words: &[&str]| document(&fullpipe(&[words, &["--json"]].concat()))["findings"].to_string();
    assert_ne!(of(&fits), of(&too_small));
}

#[test]
fn what_a_user_sees_of_a_recipe() {
    let folder = tempfile::tempdir().unwrap();
    written(
        folder.path(),
        "99-tuning.conf",
        "net.ipv4.tcp_tw_recycle = 1\nnet.ipv4.tcp_timestamps = 0\nnet.ipv4.tcp_window_scaling = 1\n\
         net.ipv4.tcp_mem = 4096 87380 16777216\n",
    );
    let output =
        command(&["lint", "99-tuning.conf", "--platform", "linux-6.18"]).current_dir(folder.path()).output().unwrap();
    insta::assert_snapshot!("lint_of_a_recipe", text(&output));
}

#[test]
fn findings_come_as_sarif() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "x.conf", "net.ipv4.tcp_sack = 0\n");
    let output = fullpipe(&["lint", &file, "--sarif", "-"]);
    assert_eq!(output.status.code(), Some(1));
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let sarif = folder.path().join("out.sarif");
    let output = fullpipe(&["lint", &file, "--sarif", sarif.to_str().unwrap(), "--json"]);
    assert_eq!(document(&output)["errors"], 1);
    assert_eq!(serde_json::from_slice::<Value>(&fs::read(&sarif).unwrap()).unwrap(), log);
}

#[test]
fn damaged_files_are_refused_with_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let wide: Vec<u8> = "\u{feff}Windows Registry Editor Version 5.00\r\n\r\n[HKEY_LOCAL_MACHINE\\SYSTEM]\r\n\"a\"=dw"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let cut = written(folder.path(), "cut.reg", &wide[..wide.len() - 1]);
    let mixed = written(
        folder.path(),
        "mixed.reg",
        [&wide[..], b"[HKEY_LOCAL_MACHINE\\SOFTWARE]\r\n\"b\"=\"c\"\r\n\0"].concat(),
    );
    for file in [&cut, &mixed] {
        for words in
            [vec!["settings", "--from", file], vec!["plan", "--settings", file, "--rate", "1M", "--rtt", "1ms"]]
        {
            let error = fails(&words, 24);
            assert!(error["kind"] == "input_invalid" && message(&error).contains("line "), "{error}");
            assert!(message(&error).contains(".reg"), "{error}");
        }
    }
    assert_eq!(fails(&["lint", &cut], 24)["kind"], "input_invalid");
    let german = fails(&["settings", "--from", &sample("netsh-german.txt")], 24);
    assert!(german["hint"].as_str().unwrap().contains("Get-NetTCPSetting"), "{german}");
}

#[test]
fn a_plan_from_half_of_a_file_says_which_half_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let whole = "Windows Registry Editor Version 5.00\r\n\r\n[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\\
                 Parameters]\r\n\"TcpWindowSize\"=dword:0000faf0\r\n\"Tcp1323Opts\"=dword:00000003\r\n";
    for (length, line) in [(70, 3), (125, 4), (165, 5)] {
        let half = written(folder.path(), "half.reg", &whole[..length]);
        let words = ["plan", "--platform", "windows-xp", "--rate", "1.8M", "--rtt", "230ms", "--settings", &half];
        let document = succeeds(&words);
        let note = document["notes"][0].as_str().unwrap();
        assert!(note.contains(&format!("half.reg, line {line}, was not read")), "{length}: {note}");
        assert!(note.contains("looks cut off"), "{length}: {note}");
    }
}

#[test]
fn a_plan_is_verified_only_where_the_files_afterwards_tell_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let key = "[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters";
    let adapter = format!("{key}\\Interfaces\\{{0A1B2C3D-0000-0000-0000-000000000001}}]\r\n\"TcpWindowSize\"=dword:");
    let head = "Windows Registry Editor Version 5.00\r\n\r\n";
    let export = |window: &str, adapter: &str| {
        format!("{head}{key}]\r\n\"GlobalMaxTcpWindowSize\"={window}\r\n\"TcpWindowSize\"={window}\r\n\r\n{adapter}")
    };
    let own = |window: &str| format!("{adapter}{window}\r\n\r\n");
    let before = written(folder.path(), "before.reg", export("dword:00004470", &own("00004470")));
    let verified = |after: &str, code: i32| {
        let after = written(folder.path(), "after.reg", after);
        let path = ["--platform", "windows-xp", "--rate", "1.8M", "--rtt", "230ms"];
        let output = fullpipe(&[&["plan", "--verify", &before, &after, "--json"], &path[..]].concat());
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        document(&output)["verified"].as_array().unwrap().clone()
    };
    let whole = export("dword:0000faf0", &own("0000faf0"));
    assert!(verified(&whole, 0).iter().all(|one| one["taken"] == "yes"));
    // Half of it: what is missing is not known, and where the file ends is said.
    let half = verified(&whole[..whole.find("\"TcpWindowSize\"").unwrap() + 20], 1);
    let unknown: Vec<&str> =
        half.iter().filter(|one| one["taken"] == "unknown").map(|one| one["message"].as_str().unwrap()).collect();
    assert!(!unknown.is_empty() && unknown.iter().all(|words| words.contains("looks cut off")), "{half:?}");
    // The adapter is gone.
    let gone = verified(&export("dword:0000faf0", ""), 1);
    let words = "nothing of the adapter {0A1B2C3D-0000-0000-0000-000000000001}";
    assert!(gone.iter().any(|one| one["message"].as_str().unwrap().contains(words)), "{gone:?}");
}

#[test]
fn a_plan_that_changes_nothing_is_verified_by_what_was_right_before() {
    let folder = tempfile::tempdir().unwrap();
    let key = "[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters]\r\n";
    let export = |values: &str| format!("Windows Registry Editor Version 5.00\r\n\r\n{key}{values}\r\n");
    let maximum = "\"GlobalMaxTcpWindowSize\"=dword:0000faf0\r\n";
    let right = export(&format!("{maximum}\"TcpWindowSize\"=dword:0000faf0\r\n"));
    let before = written(folder.path(), "before.reg", &right);
    let verified = |after: &str, code: i32| {
        let after = written(folder.path(), "after.reg", after);
        let path = ["--platform", "windows-xp", "--rate", "1.8M", "--rtt", "230ms"];
        let output = fullpipe(&[&["plan", "--verify", &before, &after, "--json"], &path[..]].concat());
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let document = document(&output);
        let all = document["verified"].as_array().unwrap();
        let window = all.iter().find(|one| one["knob"].as_str().unwrap().ends_with("\\TcpWindowSize")).unwrap();
        (window["taken"].as_str().unwrap().to_owned(), window["message"].to_string(), document["unread"].clone())
    };
    assert_eq!(verified(&right, 0).0, "yes");
    let (taken, message, _) = verified(&export(&format!("{maximum}\"TcpWindowSize\"=dword:00004470\r\n")), 1);
    assert!(taken == "no" && message.contains("undone: was 64240"), "{message}");
    // The key is there, and the value is not.
    let (taken, message, _) = verified(&export(maximum), 1);
    assert!(taken == "no" && message.contains("absent now"), "{message}");
    // Half of it, cut within a line and behind one.
    let (taken, message, unread) = verified(&right[..right.find("\"TcpWindowSize").unwrap() + 18], 1);
    assert!(taken == "unknown" && message.contains("after.reg, line 5"), "{message}");
    assert!(unread[0].as_str().unwrap().contains("looks cut off"), "{unread}");
    let (taken, message, _) = verified(&right[..right.find("\"TcpWindowSize").unwrap()], 1);
    assert!(taken == "unknown" && message.contains("after.reg is no whole export"), "{message}");
}

#[test]
fn an_output_of_sysctl_that_ends_within_a_value_or_behind_a_name_verifies_nothing_there() {
    let folder = tempfile::tempdir().unwrap();
    let before = written(folder.path(), "before.txt", "net.ipv4.tcp_rmem = 4096\t131072\t6291456\n");
    let planned = "net.ipv4.tcp_rmem = 4096\t131072\t40042496\n";
    let verified = |after: &str, code: i32| {
        let after = written(folder.path(), "after.txt", after);
        let path = ["--platform", "linux-6.1", "--rate", "1G", "--rtt", "80ms"];
        let output = fullpipe(&[&["plan", "--verify", &before, &after, "--json"], &path[..]].concat());
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let one = document(&output)["verified"][0].clone();
        (one["taken"].as_str().unwrap().to_owned(), one["message"].to_string())
    };
    let head = "net.core.rmem_max = 212992\n";
    assert_eq!(verified(&format!("{head}{planned}"), 0).0, "yes");
    for end in ["409", "4096\t131072\t4004", ""] {
        let (taken, message) = verified(&format!("{head}net.ipv4.tcp_rmem = {end}"), 1);
        assert!(taken == "unknown" && message.contains("looks cut off"), "{end}: {message}");
    }
    let (taken, message) = verified(&format!("{head}net.ipv4.tcp_rm"), 1);
    assert!(taken == "unknown" && message.contains("looks cut off"), "{message}");
}

#[test]
fn what_an_adapters_offload_lacks_and_what_another_version_tells_is_said_by_a_plan() {
    let folder = tempfile::tempdir().unwrap();
    let rsc = written(
        folder.path(),
        "rsc.txt",
        "Name : Ethernet\r\nIPv4Enabled : True\r\nIPv4OperationalState : False\r\nIPv4FailureReason : WFPCompatibility\r\n\r\n",
    );
    let template = written(
        folder.path(),
        "template.txt",
        "SettingName : Internet\r\nAutoTuningLevelLocal : Normal\r\nMaxSynRetransmissions : 4\r\n\r\n",
    );
    let words = ["plan", "--platform", "windows-2012", "--rate", "10G", "--rtt", "1ms", "--settings", &rsc, &template];
    let notes = succeeds(&words)["notes"].to_string();
    assert!(notes.contains("does not run; the reason given: WFPCompatibility"), "{notes}");
    assert!(notes.contains("windows-2012 does not have (MaxSynRetransmissions)"), "{notes}");
}

#[test]
fn a_file_of_100_mb_is_refused_at_once_and_not_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("huge.conf");
    fs::File::create(&file).unwrap().set_len(100 << 20).unwrap();
    let file = file.to_str().unwrap();
    for words in [
        vec!["settings", "--from", file],
        vec!["lint", file],
        vec!["plan", "--settings", file, "--rate", "1M", "--rtt", "1ms"],
        vec!["apply", file, "--yes"],
    ] {
        let error = fails(&words, 24);
        assert!(message(&error).contains("larger than 16 MiB"), "{words:?}: {error}");
    }
    // A device that never ends is not read for ever.
    assert!(message(&fails(&["settings", "--from", "/dev/zero"], 24)).contains("larger than"));
}

#[test]
fn what_is_not_there_or_not_known_is_named() {
    let missing = fails(&["settings", "--from", "/none/such"], 24);
    assert!(message(&missing).contains("/none/such"), "{missing}");
    assert_eq!(fails(&["lint", "/"], 24)["kind"], "input_invalid");
    let unknown = fails(&["plan", "--platform", "beos", "--rate", "1M", "--rtt", "1ms"], 2);
    assert!(message(&unknown).contains("known are linux, windows"), "{unknown}");
    let version = fails(&["plan", "--platform", "windows-2013", "--rate", "1M", "--rtt", "1ms"], 2);
    assert!(message(&version).contains("2012-r2"), "{version}");
    for impossible in
        [["--rate", "0", "--rtt", "1ms"], ["--rate", "1M", "--rtt", "0ms"], ["--rate", "x", "--rtt", "1s"]]
    {
        assert_eq!(fails(&[&["plan", "--platform", "macos"], &impossible[..]].concat(), 2)["kind"], "usage");
    }
    let two = [sample("sysctl-linux.txt"), sample("sysctl-macos.txt")];
    let error = fails(&["settings", "--from", &two[0], &two[1]], 24);
    assert!(message(&error).contains("macos") && message(&error).contains("linux"), "{error}");
    let both = fails(&["plan", "--platform", "this", "--settings", &two[0], "--rate", "1M", "--rtt", "1ms"], 2);
    assert!(message(&both).contains("--platform this"), "{both}");
}

#[test]
fn hostile_names_and_values_never_reach_the_terminal_as_commands() {
    let folder = tempfile::tempdir().unwrap();
    let hostile =
        "net.ipv4.tcp_sack = \x1b]0;owned\x07\nnet.ipv4.tcp_\x1b[2Jx = 1\nnet.ipv4.tcp_rmem = 1 \u{202e}2 3\n";
    let file = written(folder.path(), "a\x1b[31m\u{202e}b.conf", hostile);
    let out = folder.path().join("out");
    for words in [
        vec!["settings", "--all", "--from", &file, "--platform", "linux-6.18"],
        vec!["lint", "--verbose", &file],
        vec!["lint", &file, "--sarif", "-"],
        vec!["apply", &file, "--yes"],
        vec!["plan", "--settings", &file, "--platform", "linux-6.18", "--rate", "1G", "--rtt", "80ms"],
        vec![
            "plan",
            "--settings",
            &file,
            "--platform",
            "linux-6.18",
            "--rate",
            "1G",
            "--rtt",
            "80ms",
            "--write",
            out.to_str().unwrap(),
        ],
    ] {
        for json in [&[][..], &["--json"]] {
            let output = fullpipe(&[&words[..], &["--color=never"], json].concat());
            for stream in [&output.stdout, &output.stderr] {
                let shown = String::from_utf8(stream.clone()).unwrap();
                let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
                assert!(!shown.contains(harmful), "{words:?}: {shown:?}");
            }
        }
    }
}
