//! Changes that are on trial: confirmed, taken back in time, or left behind and found. In a network namespace that goes with
//! the test.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

/// Runs a shell script in a fresh network namespace, with `fullpipe` as `$F`, the receive buffers as `$R` and a plan that
/// changes them; `None` where this machine allows none. What it prints, a line each.
fn in_namespace(test: &str, folder: &Path, script: &str) -> Option<Vec<String>> {
    let possible = |options: &str| {
        Command::new("unshare").args([options, "true"]).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    };
    let Some(options) = ["-nm", "-rnm"].into_iter().find(|options| possible(options)) else {
        eprintln!("skipped {test}: `unshare -n` is not possible here");
        return None;
    };
    let begin = "
        R=/proc/sys/net/ipv4/tcp_rmem
        echo '4096 87380 129024' > $R
        mkdir sysctl.d
        $F plan --platform this --rate 100M --rtt 80ms --json > plan.json
        # Waits for what must come; the bound is only there so that a failure ends.
        back() { for i in $(seq 600); do grep -q 129024 $R && return; sleep 0.1; done; echo 'not back'; }
        ";
    let output = Command::new("unshare")
        .args([options, "sh", "-euc", &format!("{begin}{script}")])
        .current_dir(folder)
        .env("F", env!("CARGO_BIN_EXE_fullpipe"))
        .env("FULLPIPE_STATE_DIR", folder.join("state"))
        .env("FULLPIPE_SYSCTL_DIR", folder.join("sysctl.d"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect())
}

fn file(folder: &Path, name: &str) -> Value {
    let text = fs::read(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{name}: {e}: {}", String::from_utf8_lossy(&text)))
}

const OLD: &str = "4096 87380 129024";

#[test]
fn what_nobody_confirms_is_put_back_and_no_file_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        $F apply plan.json --yes --persist --confirm-within 3s --json > tried.json
        cat $R
        $F status --json > status.json
        ls sysctl.d | wc -l
        back
        cat $R
        for i in $(seq 600); do $F status --json > after.json; grep -q on_trial after.json || break; sleep 0.1; done
        $F confirm --json > late.json && exit 1 || test $? = 22";
    let name = "what_nobody_confirms_is_put_back_and_no_file_was_written";
    let Some(seen) = in_namespace(name, folder.path(), script) else { return };
    assert_ne!(seen[0], OLD);
    assert_eq!(&seen[1..], ["0", OLD]);
    assert_eq!(file(folder.path(), "tried.json")["confirm_within_s"], 3);
    assert_eq!(file(folder.path(), "status.json")["runs"][0]["state"], "on_trial");
    assert_eq!(file(folder.path(), "after.json")["runs"].as_array().map(Vec::len), Some(0));
}

#[test]
fn what_is_confirmed_stays_and_lasts_beyond_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        $F apply plan.json --yes --persist --confirm-within 600s --json > tried.json
        $F apply plan.json --yes --force --json > second.json && exit 1 || true
        ls sysctl.d | wc -l
        $F confirm --json > confirmed.json
        ls sysctl.d
        cat $R
        $F confirm --json > again.json && exit 1 || test $? = 22
        $F show 1 --json > shown.json
        $F undo --last --yes --json > undone.json
        cat $R
        ls sysctl.d | wc -l
        # The guardian has nothing left to guard.
        for i in $(seq 600); do ls state/guard-* > /dev/null 2>&1 || break; sleep 0.1; done
        ls state | grep -c guard || true";
    let name = "what_is_confirmed_stays_and_lasts_beyond_a_restart";
    let Some(seen) = in_namespace(name, folder.path(), script) else { return };
    assert_eq!(&seen[..2], ["0", "90-fullpipe.conf"], "the file comes with the confirmation");
    assert_ne!(seen[2], OLD);
    assert_eq!(&seen[3..], [OLD, "0", "0"]);
    let message = file(folder.path(), "second.json")["error"]["message"].to_string();
    assert!(message.contains("on trial by run 1"), "{message}");
    let shown = file(folder.path(), "shown.json");
    assert_eq!((&shown["runs"][0]["run"], &shown["runs"][0]["state"]), (&Value::from(1), &Value::from("kept")));
    assert_eq!(file(folder.path(), "undone.json")["complete"], true);
}

#[test]
fn a_confirmation_that_fails_changes_nothing_and_one_that_comes_late_says_what_is_others_now() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        $F show --json > none.json && exit 1 || test $? = 22
        $F apply plan.json --yes --persist --confirm-within 600s --json > tried.json
        chmod 777 sysctl.d
        $F confirm --json > refused.json && exit 1 || test $? = 3
        $F confirm 7 --json > unknown.json && exit 1 || test $? = 22
        $F show --json > shown.json
        chmod 755 sysctl.d
        # An administrator in between.
        echo '4096 87380 555555' > $R
        $F confirm > confirmed.txt
        cat $R
        $F show --last --json > last.json";
    let name = "a_confirmation_that_fails_changes_nothing_and_one_that_comes_late_says_what_is_others_now";
    let Some(seen) = in_namespace(name, folder.path(), script) else { return };
    let error = file(folder.path(), "none.json")["error"]["message"].to_string();
    assert!(error.contains("no run in the journal"), "{error}");
    let refused = file(folder.path(), "refused.json")["error"]["message"].to_string();
    assert!(refused.contains("can be written by others") && refused.contains("taken back in time"), "{refused}");
    assert!(!refused.contains("nothing stays changed"), "the trial goes on: {refused}");
    let unknown = file(folder.path(), "unknown.json")["error"]["message"].to_string();
    assert!(!unknown.contains("taken back"), "{unknown}");
    let shown = file(folder.path(), "shown.json");
    let persisted = |shown: &Value| shown["runs"][0]["entries"][0]["persisted"].clone();
    assert_eq!(
        (&shown["runs"][0]["state"], persisted(&shown)),
        (&Value::from("on_trial"), Value::from(false)),
        "{shown}"
    );
    assert_eq!(seen, ["4096 87380 555555"], "theirs stays");
    let said = fs::read_to_string(folder.path().join("confirmed.txt")).unwrap();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("tcp_rmem reads 4096 87380 555555 and not 4096 87380 ") && said.contains("next boot"),
        "{said}"
    );
    let last = file(folder.path(), "last.json");
    assert_eq!((&last["runs"][0]["state"], persisted(&last)), (&Value::from("kept"), Value::from(true)), "{last}");
}

#[test]
fn a_trial_whose_guardian_was_killed_is_named_and_then_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        $F apply plan.json --yes --confirm-within 600s --json > tried.json
        kill -9 $(cat state/guard-*.lock)
        for i in $(seq 600); do $F status > /dev/null 2> named; grep -q 'left on trial' named && break; sleep 0.1; done
        cat $R
        $F apply plan.json --yes --json --force > next.json 2> said
        $F undo --all --yes --json > undone.json
        cat $R";
    let name = "a_trial_whose_guardian_was_killed_is_named_and_then_put_back";
    let Some(seen) = in_namespace(name, folder.path(), script) else { return };
    assert_ne!(seen[0], OLD, "a command that only looks changes nothing");
    assert_eq!(seen[1], OLD);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("named").contains("run 1 was left on trial"), "{}", read("named"));
    assert!(read("said").contains("run 1 was left on trial") && read("said").contains("put back"), "{}", read("said"));
    let next = file(folder.path(), "next.json");
    assert_eq!(next["applied"][0]["before"].as_str().map(|text| text.contains("129024")), Some(true), "{next}");
}

#[test]
fn a_trial_that_a_restart_ended_is_said_to_be_gone_and_its_file_was_never_written() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        $F apply plan.json --yes --persist --confirm-within 600s --json > tried.json
        kill -9 $(cat state/guard-*.lock)
        for i in $(seq 600); do $F status > /dev/null 2> named; grep -q 'left on trial' named && break; sleep 0.1; done
        # The machine starts again: with the value of its kernel, and the drop-ins.
        echo '4096 87380 129024' > $R
        echo 00000000-0000-4000-8000-000000000000 > boot
        mount --bind boot /proc/sys/kernel/random/boot_id
        ls sysctl.d | wc -l
        $F confirm > late.txt 2>&1 && exit 1 || test $? = 22
        $F undo --interrupted --yes > undone.txt 2> said
        tr '\\n' ' ' < said | tr -s ' '
        echo
        cat $R
        $F status --json > after.json";
    let name = "a_trial_that_a_restart_ended_is_said_to_be_gone_and_its_file_was_never_written";
    let Some(seen) = in_namespace(name, folder.path(), script) else { return };
    assert_eq!(
        seen,
        [
            "0",
            "run 1 was left on trial by a process that is gone: 0 of 1 setting put back, 1 gone by a restart or with a device",
            OLD
        ]
    );
    assert_eq!(file(folder.path(), "after.json")["runs"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_log_tells_each_write_in_words_and_in_json() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        RUST_LOG=fullpipe_host=debug $F apply plan.json --yes -q > /dev/null 2> words
        RUST_LOG=debug $F undo --all --yes --json > undone.json 2> lines
        RUST_LOG=off $F apply plan.json --yes -q > /dev/null 2> silent";
    let Some(_) = in_namespace("a_log_tells_each_write_in_words_and_in_json", folder.path(), script) else { return };
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let words = read("words");
    assert!(words.contains("Z debug: fullpipe_host::apply: setting written address=net.ipv4.tcp_rmem"), "{words}");
    let lines = read("lines");
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["text"] == "undo" && line["level"] == "debug"), "{lines:?}");
    assert_eq!(read("silent"), "");
}

/// What the unit of the packages runs when the machine starts.
#[test]
fn at_boot_only_what_was_interrupted_is_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        $F undo --interrupted --yes --json > nothing.json
        $F apply plan.json --yes --json > kept.json
        cat $R
        $F undo --interrupted --yes --json > kept_stays.json
        cat $R
        $F undo --last --yes --json > undone.json
        $F apply plan.json --yes --confirm-within 600s --json > tried.json
        kill -9 $(cat state/guard-*.lock)
        sleep 0.3
        $F undo --interrupted --yes --json > back.json
        cat $R
        $F status --json > after.json";
    let name = "at_boot_only_what_was_interrupted_is_put_back";
    let Some(seen) = in_namespace(name, folder.path(), script) else { return };
    assert_ne!(seen[0], OLD);
    assert_eq!(seen[1], seen[0], "what was kept is not taken back");
    assert_eq!(seen[2], OLD);
    assert_eq!(file(folder.path(), "after.json")["runs"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_guardian_that_is_asked_to_end_puts_everything_back_first() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        $F apply plan.json --yes --confirm-within 600s --json > tried.json
        kill -TERM $(cat state/guard-*.lock)
        back
        cat $R";
    let name = "a_guardian_that_is_asked_to_end_puts_everything_back_first";
    let Some(seen) = in_namespace(name, folder.path(), script) else { return };
    assert_eq!(seen, [OLD]);
}

#[test]
fn values_that_are_set_already_are_not_said_to_be_set_when_only_the_boot_file_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        $F apply plan.json --yes > first.txt
        $F apply plan.json --yes --persist > second.txt
        ls sysctl.d
        $F undo 2 --yes > undone.txt
        ls sysctl.d | wc -l
        $F apply plan.json --yes --persist --confirm-within 600s > tried.txt
        ls sysctl.d | wc -l";
    let name = "values_that_are_set_already_are_not_said_to_be_set_when_only_the_boot_file_is_written";
    let Some(seen) = in_namespace(name, folder.path(), script) else { return };
    assert_eq!(seen, ["90-fullpipe.conf", "0", "0"]);
    let read = |name: &str| {
        let text = fs::read_to_string(folder.path().join(name)).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(read("first.txt").contains("set and read back; `fullpipe undo 1`"), "{}", read("first.txt"));
    let second = read("second.txt");
    assert!(second.contains("boot file written; values were already set; `fullpipe undo 2` takes it back"), "{second}");
    let tried = read("tried.txt");
    assert!(tried.contains("a confirmation writes the boot file; values were already set"), "{tried}");
    assert!(tried.contains("on trial for 600 s") && !tried.contains("on trial on trial"), "{tried}");
}

#[test]
fn a_dry_run_shows_a_diff_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        printf 'net.ipv4.tcp_rmem = 1 2 3\\nnet.ipv4.tcp_ecn = 1\\n' > sysctl.d/90-fullpipe.conf
        $F apply plan.json --persist --dry-run --json > dry.json
        $F apply plan.json --persist --dry-run > dry.txt
        cat $R
        cat sysctl.d/90-fullpipe.conf
        ls";
    let Some(seen) = in_namespace("a_dry_run_shows_a_diff_and_changes_nothing", folder.path(), script) else { return };
    assert_eq!(&seen[..3], [OLD, "net.ipv4.tcp_rmem = 1 2 3", "net.ipv4.tcp_ecn = 1"]);
    assert!(!seen.contains(&"state".to_owned()), "{seen:?}");
    let dry = file(folder.path(), "dry.json");
    assert_eq!(dry["files"][0]["removed"], serde_json::json!(["net.ipv4.tcp_rmem = 1 2 3"]), "{dry}");
    let text = fs::read_to_string(folder.path().join("dry.txt")).unwrap();
    assert!(text.contains("- net.ipv4.tcp_rmem = 4096 87380 129024"), "{text}");
}

#[test]
fn a_file_that_wins_at_the_next_start_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        mkdir etc
        echo 'net.ipv4.tcp_rmem = 4096 87380 129024' > etc/99-late.conf
        mount --bind etc /etc/sysctl.d
        $F apply plan.json --persist --dry-run --json > dry.json";
    let Some(_) = in_namespace("a_file_that_wins_at_the_next_start_is_named", folder.path(), script) else { return };
    let notes = file(folder.path(), "dry.json")["notes"].to_string();
    assert!(notes.contains("99-late.conf:1") && notes.contains("wins at the next boot"), "{notes}");
}

#[test]
fn a_file_of_the_folder_that_was_given_wins_too_and_is_named_before_and_with_the_confirmation() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        printf 'net.ipv4.tcp_rmem = 4096 87380 129024\n' > sysctl.d/99-late.conf
        $F apply plan.json --persist --yes --confirm-within 600s > tried.txt
        $F confirm --json > confirmed.json && exit 1 || test $? = 27
        $F undo --all --yes --json > undone.json
        $F apply plan.json --persist --yes --confirm-within 600s -q > tried
        $F confirm > confirmed.txt && exit 1 || test $? = 27
        $F undo --all --yes --json > undone.json
        $F apply plan.json --persist --yes --json > applied.json && exit 1 || test $? = 27
        $F apply plan.json --persist --yes --json > again.json && exit 1 || test $? = 27
        $F history > history.txt
        $F status > status.txt
        $F show --last --json > shown.json
        rm sysctl.d/99-late.conf
        $F status > later.txt";
    let name = "a_file_of_the_folder_that_was_given_wins_too_and_is_named_before_and_with_the_confirmation";
    let Some(_) = in_namespace(name, folder.path(), script) else { return };
    let late = format!("{}:1", folder.path().join("sysctl.d/99-late.conf").display());
    let one_line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let read = |name: &str| one_line(fs::read_to_string(folder.path().join(name)).unwrap());
    let confirmed = file(folder.path(), "confirmed.json")["notes"].to_string();
    for said in [read("tried.txt"), confirmed, read("confirmed.txt")] {
        assert!(said.contains(&late) && said.contains("wins at the next boot"), "{said}");
        assert!(said.contains("make it `net.ipv4.tcp_rmem = 4096 "), "the way out: {said}");
    }
    // The second time nothing is changed, and what was applied still does not last.
    assert_eq!(file(folder.path(), "again.json")["run"], Value::Null);
    let history = read("history.txt");
    let runs: Vec<&str> = history.split("run ").filter(|run| run.contains("command")).collect();
    assert_eq!(runs.len(), 3, "{history}");
    assert!(runs[1..].iter().all(|run| run.contains("undone") && !run.contains("at boot")), "{history}");
    for said in [&history, &read("status.txt")] {
        assert!(said.contains(&format!("(overridden at boot by {late})")) && !said.contains("lasts beyond"), "{said}");
    }
    let entry = &file(folder.path(), "shown.json")["runs"][0]["entries"][0];
    assert!(entry["not_lasting"].as_str().unwrap().ends_with(&late), "{entry}");
    // It is looked at each time: the file is away, and a folder of the user's own is read by whom the user knows.
    let later = read("later.txt");
    assert!(!later.contains("overridden") && later.contains("in no folder that is read at boot"), "{later}");
}

/// Two hosts on one cable, of which one is `$OTHER`, and a plan that cuts the one here off without costing it a route: it
/// answers no question for its link address any more.
const CUT: &str = r#"
    unshare -n sleep 600 & OTHER=$!
    trap 'kill -9 $OTHER; test ! -e session || kill -s KILL -- -$(cat session) || true' EXIT
    for i in $(seq 600); do
        test "$(readlink /proc/$OTHER/ns/net)" != "$(readlink /proc/self/ns/net)" && break; sleep 0.1
    done
    ip link set lo up
    ip link add near type veth peer name far netns $OTHER
    ip addr add 10.9.0.1/24 dev near
    ip link set near up
    nsenter -t $OTHER -n ip addr add 10.9.0.2/24 dev far
    nsenter -t $OTHER -n ip link set far up
    A=/proc/sys/net/ipv4/conf/near/arp_ignore
    printf '%s' '{"schema":"fullpipe/2","changes":[{"host":"here","knob":"net.ipv4.conf.near.arp_ignore","from":"0",
        "to":"8","reason":"a mistake","arithmetic":"","memory_worst_case":null,"takes_effect":"live","undo":"","source":""}]}' > cut.json
    # A port without a listener refuses, and a host that nobody finds does not. For whoever can't be reached nobody waits: the
    # trial would be over by then.
    reached() {
        # At both ends: what one asks for tells the other, too.
        ip neigh flush all
        nsenter -t $OTHER -n ip neigh flush all
        $* nsenter -t $OTHER -n $F check 10.9.0.1:9 2>&1 | grep -q refused && echo reached || echo cut off
    }
    # In the middle of the trial, for whoever looks once more: a question of this host that was under way answers one, too.
    still_cut() { cat $A; reached timeout 2 | grep -x 'cut off' || reached timeout 2; }
    there() { for i in $(seq 600); do test -e $1 && return; sleep 0.1; done; echo "no $1"; exit 1; }
    healed() { for i in $(seq 600); do grep -qx 0 $A && break; sleep 0.1; done; cat $A; reached; }
    reached
"#;

#[test]
fn a_plan_that_cuts_the_path_comes_back_although_everything_of_its_session_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
        setsid sh -c 'echo $$ > session; $F apply cut.json --host here --yes --confirm-within 15s; touch tried; sleep 600' > said 2>&1 &
        there tried
        kill -s KILL -- -$(cat session)
        rm session
        still_cut
        healed
        $F status --json > after.json"#;
    let name = "a_plan_that_cuts_the_path_comes_back_although_everything_of_its_session_was_killed";
    let Some(seen) = in_namespace(name, folder.path(), &format!("{CUT}{script}")) else { return };
    assert_eq!(seen, ["reached", "8", "cut off", "0", "reached"]);
    assert_eq!(file(folder.path(), "after.json")["runs"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_plan_that_cuts_the_path_comes_back_although_its_terminal_is_gone() {
    let name = "a_plan_that_cuts_the_path_comes_back_although_its_terminal_is_gone";
    if Command::new("script").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped {name}: script is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The terminal is the one of `script`, and ends with it: what runs there is hung up on, also where whoever started the
    // tests ignores that signal, which no shell could trap then.
    let script = r#"
        echo '$F apply cut.json --host here --yes --confirm-within 15s; trap "echo hung up > hangup; exit" HUP
            touch tried; while :; do sleep 0.1; done' > typed
        env --default-signal=HUP script -qc 'sh typed' typescript > said 2>&1 < /dev/null & TERMINAL=$!
        there tried
        kill -9 $TERMINAL
        there hangup
        still_cut
        healed
        $F status --json > after.json"#;
    let Some(seen) = in_namespace(name, folder.path(), &format!("{CUT}{script}")) else { return };
    assert_eq!(seen, ["reached", "8", "cut off", "0", "reached"]);
    assert_eq!(file(folder.path(), "after.json")["runs"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_clock_that_is_set_back_delays_no_guardian() {
    let name = "a_clock_that_is_set_back_delays_no_guardian";
    if Command::new("faketime").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped {name}: faketime is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The guardian is started with a clock of its own, which is then set back by ten years.
    let script = "
        echo '+0' > clock
        library=$(faketime '2020-01-01 00:00:00' sh -c 'echo $LD_PRELOAD' | tr ':' '\n' | grep -m 1 faketime)
        with_clock() {
            LD_PRELOAD=$library FAKETIME_TIMESTAMP_FILE=$PWD/clock FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 \"$@\"
        }
        with_clock $F apply plan.json --yes --confirm-within 3s --json > tried.json
        echo '-10y' > clock
        test $(with_clock date +%Y) -lt $(date +%Y) && echo back in time
        back
        cat $R";
    let Some(seen) = in_namespace(name, folder.path(), script) else { return };
    assert_eq!(seen, ["back in time", OLD]);
}

#[test]
fn what_an_undo_left_is_said_alike_wherever_the_run_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        $F apply plan.json --yes --persist > applied
        echo '4096 87380 999999' > $R
        $F undo --all --yes --json > undone.json && exit 1 || test $? = 13
        for command in status history 'show 1'; do
            $F $command > reported
            grep -c 'changes left, the rest is put back' reported
            # A change may take two lines.
            tr -s ' \\n' ' ' < reported > line
            grep -c 'tcp_rmem [^>]*> [^>]*) left' line
            grep -c '90-fullpipe.conf [^>]*> [^>]*) put back' line
            grep -q 'lasts beyond a reboot' line && exit 1
            grep -q 'gone after a reboot: its boot-time file is no longer there' line
        done
        $F status --json > partial.json
        cat $R";
    let name = "what_an_undo_left_is_said_alike_wherever_the_run_is_shown";
    let Some(seen) = in_namespace(name, folder.path(), script) else { return };
    assert_eq!(seen, ["1", "1", "1", "1", "1", "1", "1", "1", "1", "4096 87380 999999"]);
    assert_eq!(file(folder.path(), "undone.json")["complete"], false);
    let partial = file(folder.path(), "partial.json");
    let entries = partial["runs"][0]["entries"].as_array().unwrap();
    let rmem = entries.iter().find(|entry| entry["knob"] == "net.ipv4.tcp_rmem").unwrap();
    assert_eq!(rmem["persisted"], false, "{rmem}");
    assert!(rmem["not_lasting"].as_str().unwrap().contains("no longer there"), "{rmem}");
}

#[test]
fn a_dry_run_of_an_undo_tells_what_is_left_alone_and_what_is_theirs_can_be_left_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        $F undo 1 --dry-run > none 2>&1 && exit 1 || test $? = 22
        test ! -e state
        $F apply plan.json --yes --persist > applied
        echo '4096 87380 999999' > $R
        echo '# theirs' >> sysctl.d/90-fullpipe.conf
        cp sysctl.d/90-fullpipe.conf theirs
        $F undo --all --dry-run --json > would.json && exit 1 || test $? = 13
        $F undo --all --dry-run > would && exit 1 || test $? = 13
        $F undo --all --json > unasked.json && exit 1 || test $? = 20
        cmp theirs sysctl.d/90-fullpipe.conf
        $F undo 1 --yes --json > done.json && exit 1 || test $? = 13
        $F undo --all --yes > again && exit 1 || test $? = 13
        $F undo --all --yes --leave-changed --json > left.json
        $F undo --all --yes
        $F history | grep -c 'left to whoever changed it'
        $F status > status
        grep -q 'every setting is as it was' status && exit 1
        tr -s ' \n' ' ' < status > line
        grep -q 'tcp_rmem reads 4096 87380 999999; before run 1' line
        grep -q '`fullpipe undo` no longer takes it back' line
        $F status --json > status.json
        cmp theirs sysctl.d/90-fullpipe.conf
        cat $R";
    let name = "a_dry_run_of_an_undo_tells_what_is_left_alone_and_what_is_theirs_can_be_left_for_good";
    let Some(seen) = in_namespace(name, folder.path(), script) else { return };
    assert_eq!(seen.last().map(String::as_str), Some("4096 87380 999999"), "{seen:?}");
    let [would, unasked, done, left] =
        ["would.json", "unasked.json", "done.json", "left.json"].map(|name| file(folder.path(), name));
    assert_eq!((&would["undone"], &would["changes"]), (&done["undone"], &done["changes"]));
    assert_eq!(unasked["changes"], done["changes"]);
    assert_eq!((&would["dry_run"], &done["dry_run"]), (&true.into(), &false.into()));
    let outcomes = |document: &Value, outcome: &str| {
        document["undone"].as_array().unwrap().iter().filter(|one| one["outcome"] == outcome).count()
    };
    assert_eq!(outcomes(&done, "changed_since"), 2, "the setting and the file: {done}");
    assert_eq!(outcomes(&left, "left"), 2, "{left}");
    let text = fs::read_to_string(folder.path().join("would")).unwrap();
    assert!(text.contains("--leave-changed") && text.contains("left alone"), "{text}");
    let status = file(folder.path(), "status.json");
    let of = |key: &str| status["left"].as_array().unwrap().iter().find(|left| left[key].is_string()).unwrap().clone();
    assert_eq!((status["runs"].as_array().unwrap().len(), &of("knob")["now"]), (0, &"4096 87380 999999".into()));
    assert_eq!((&of("file")["claims_undo"], &of("knob")["claims_undo"]), (&true.into(), &false.into()), "{status}");
}

#[test]
fn an_emptied_journal_is_said_by_every_command_with_a_code_that_is_not_zero() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        $F apply plan.json --yes --json > applied.json
        truncate -s 0 state/journal.sqlite
        for command in status history 'undo --yes' 'undo --all --yes' 'apply plan.json --yes --force'; do
            $F $command --json > said.json && exit 1 || test $? = 15
            grep -c 'was begun and is empty or missing' said.json
        done";
    let name = "an_emptied_journal_is_said_by_every_command_with_a_code_that_is_not_zero";
    let Some(seen) = in_namespace(name, folder.path(), script) else { return };
    assert_eq!(seen, ["1"; 5]);
}

#[test]
fn of_a_damaged_journal_what_can_be_read_is_put_back_and_the_rest_said() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        $F apply plan.json --yes --json > applied.json
        echo 0 > /proc/sys/net/ipv4/tcp_sack
        $F reset --yes --json > reset.json
        cat /proc/sys/net/ipv4/tcp_sack
        # One digit of a value that was there before.
        sed -i 's/4096 87380 129024/4096 87380 129025/' state/journal.sqlite
        $F undo --all --yes --json > undone.json 2> said && exit 1 || test $? = 15
        cat /proc/sys/net/ipv4/tcp_sack
        $F status --json > /dev/null 2>&1 && exit 1 || test $? = 15";
    let name = "of_a_damaged_journal_what_can_be_read_is_put_back_and_the_rest_said";
    let Some(seen) = in_namespace(name, folder.path(), script) else { return };
    assert_eq!(seen, ["1", "0"], "the reset of tcp_sack is taken back");
    let said = fs::read_to_string(folder.path().join("said")).unwrap();
    assert!(said.contains("of entries is wrong"), "{said}");
}

/// Each way out in turn is the only one there is, and a link that gets too small for IPv6 costs it (RFC 8200, 5).
#[test]
fn the_loss_of_a_name_server_or_of_the_way_back_to_a_login_takes_a_change_back() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
        ip link add va type veth peer name vb
        ip link set va up
        ip link set vb up
        printf '%s' '{"schema":"fullpipe/2","changes":[{"host":"here","knob":"link va mtu","from":"1500","to":"1000",
            "reason":"a mistake","arithmetic":"","memory_worst_case":null,"takes_effect":"live","undo":"","source":""}]}' > small.json
        tried() {
            ip -6 addr replace 2001:db8:1::1/64 dev va nodad
            "$@" $F apply small.json --host here --yes --json > lost.json && echo 'not noticed' || true
            grep -o 'the way [^;,]* was gone\|where this login comes from was gone' lost.json || cat lost.json
            ip -o link show va | grep -o 'mtu [0-9]*'
        }
        : > none
        echo 'nameserver 2001:db8:1::53' > some
        mount --bind some /etc/resolv.conf
        tried env -u SSH_CONNECTION
        mount --bind none /etc/resolv.conf
        tried env SSH_CONNECTION='2001:db8:1::9 40000 2001:db8:1::1 22'
        # sudo takes the variable away; the shell above it has it.
        tried env SSH_CONNECTION='2001:db8:1::9 40000 2001:db8:1::1 22' sh -c 'env -u SSH_CONNECTION "$@"; exit $?' sh"#;
    let name = "the_loss_of_a_name_server_or_of_the_way_back_to_a_login_takes_a_change_back";
    let Some(seen) = in_namespace(name, folder.path(), script) else { return };
    let login = "where this login comes from was gone";
    assert_eq!(
        seen,
        ["the way to the name server 2001:db8:1::53 was gone", "mtu 1500", login, "mtu 1500", login, "mtu 1500"]
    );
}

#[test]
fn a_server_that_starts_names_what_was_left_on_trial_or_puts_it_back_where_it_takes_orders() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
        $F key lab.key > /dev/null
        $F apply plan.json --yes --confirm-within 600s --json > tried.json
        kill -9 $(cat state/guard-*.lock)
        for i in $(seq 600); do $F status > /dev/null 2> named; grep -q 'left on trial' named && break; sleep 0.1; done
        serve() {
            # Not the line of the server before.
            rm -f listening
            $F serve 127.0.0.1:0 $* > listening 2> said & SERVER=$!
            for i in $(seq 600); do test -s listening && break; sleep 0.1; done
            kill $SERVER
            wait $SERVER || true
            grep -c 'run 1 was left on trial' said
            cat $R
        }
        ip link set lo up
        serve
        serve --allow-tune --key-file lab.key";
    let name = "a_server_that_starts_names_what_was_left_on_trial_or_puts_it_back_where_it_takes_orders";
    let Some(seen) = in_namespace(name, folder.path(), script) else { return };
    assert_eq!((seen[0].as_str(), seen[2].as_str(), seen[3].as_str()), ("1", "1", OLD), "{seen:?}");
    assert_ne!(seen[1], OLD, "without --allow-tune a server changes nothing");
}

/// Addresses of loopback itself have no penalties.
#[test]
fn an_address_that_speaks_nonsense_is_turned_away_for_a_while_and_another_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
        ip link set lo up
        ip addr add 10.9.0.1/32 dev lo
        ip addr add 10.9.0.2/32 dev lo
        $F serve 0.0.0.0:5201 > listening 2> said & SERVER=$!
        trap 'kill $SERVER' EXIT
        for i in $(seq 600); do test -s listening && break; sleep 0.1; done
        # Whoever asks for one of these addresses comes from it, too.
        measured() { $F measure $1 -t 0.3 --json > measured.json && echo served || grep -o '"kind": *"[a-z_]*"' measured.json; }
        measured 10.9.0.1
        for i in $(seq 60); do
            bash -c 'exec 3<> /dev/tcp/10.9.0.1/5201 && printf "GET / HTTP/1.1\r\nHost: a-name-that-is-long-enough\r\n\r\n" >&3 &&
                cat <&3' > /dev/null 2>&1 || true
        done
        measured 10.9.0.1
        measured 10.9.0.2"#;
    let name = "an_address_that_speaks_nonsense_is_turned_away_for_a_while_and_another_is_not";
    let Some(seen) = in_namespace(name, folder.path(), script) else { return };
    assert_eq!((seen[0].as_str(), seen[2].as_str()), ("served", "served"), "{seen:?}");
    assert_ne!(seen[1], "served", "{seen:?}");
}

/// As sshd's `authfail` has it: each costs 5 s, which pass, and 15 s of them together are too many.
#[test]
fn an_address_with_a_wrong_key_is_turned_away_for_a_while_and_another_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
        ip link set lo up
        ip addr add 10.9.0.1/32 dev lo
        ip addr add 10.9.0.2/32 dev lo
        $F key lab.key > /dev/null
        $F key wrong.key > /dev/null
        $F serve 0.0.0.0:5201 --allow-tune --key-file lab.key > listening 2> said & SERVER=$!
        trap 'kill $SERVER' EXIT
        for i in $(seq 600); do test -s listening && break; sleep 0.1; done
        # Whoever asks for one of these addresses comes from it, too.
        measured() { $F measure $1 -t 0.3 --json > measured.json && echo served || grep -o '"kind": *"[a-z_]*"' measured.json; }
        tried() { $F tune $1 --yes --json --key-file wrong.key > tried.json && echo opened || grep -c 'the key is not' tried.json; }
        tried 10.9.0.1
        measured 10.9.0.1
        for i in $(seq 10); do tried 10.9.0.1 > again || true; done
        measured 10.9.0.1
        measured 10.9.0.2"#;
    let name = "an_address_with_a_wrong_key_is_turned_away_for_a_while_and_another_is_not";
    let Some(seen) = in_namespace(name, folder.path(), script) else { return };
    assert_eq!(seen[..2], ["1", "served"], "once may happen to anybody");
    assert!(seen[2] != "served" && seen[3] == "served", "{seen:?}");
}

/// systemd runs no machine here: a program of its own stands for `systemd-run`, in namespaces whose first process is this
/// script. It writes down what it is asked, leaves the session, and starts the program.
#[test]
fn where_systemd_runs_the_machine_the_guardian_is_a_service_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
        mkdir bin
        printf '%s\n' '#!/bin/sh' 'echo "$@" >> asked' 'while test "$1" != --; do shift; done; shift' \
            'test ! -e refuse || exit 1' 'exec setsid env FULLPIPE_SERVICE=1 "$@"' > bin/systemd-run
        chmod 755 bin/systemd-run
        # The first process of these namespaces is in no other: what `systemd-run` starts is where we are.
        exec unshare -pf --mount-proc sh -euc '
            mount -t tmpfs none /run
            PATH=$PWD/bin:$PATH
            tried() {
                $F apply plan.json --yes --confirm-within 600s --json > tried.json
                GUARDIAN=$(cat state/guard-*.lock)
                tr "\0" "\n" < /proc/$GUARDIAN/environ | grep -c FULLPIPE_SERVICE || true
                $F undo --all --yes --json > undone.json
                while test -e /proc/$GUARDIAN && test -n "$(ls state/guard-*.lock 2> /dev/null)"; do sleep 0.1; done
                test ! -e asked || wc -l < asked
            }
            tried
            mkdir -p /run/systemd/system
            tried
            # What it refuses, a process of our own does.
            touch refuse
            tried'"#;
    let name = "where_systemd_runs_the_machine_the_guardian_is_a_service_of_it";
    let Some(seen) = in_namespace(name, folder.path(), script) else { return };
    assert_eq!(seen, ["0", "1", "1", "0", "2"]);
    let asked = fs::read_to_string(folder.path().join("asked")).unwrap();
    let state = folder.path().join("state");
    for word in [
        "--collect --pipe",
        "--unit=fullpipe-guardian-",
        "--property=Restart=on-failure",
        &format!("--setenv=FULLPIPE_STATE_DIR={}", state.display()),
        &format!("-- {} guard --owner ", env!("CARGO_BIN_EXE_fullpipe")),
        &format!(" --state-dir {}", state.display()),
    ] {
        assert!(asked.contains(word), "{word}: {asked}");
    }
}
