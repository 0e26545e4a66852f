//! Parsing without doing anything.

use super::*;

fn parsed(line: &str) -> Result<Command, String> {
    let words: Vec<_> = std::iter::once("fullpipe").chain(line.split_whitespace()).map(OsString::from).collect();
    parse(&words).map(|cli| cli.command).map_err(|error| error.to_string())
}

#[test]
fn the_table_is_consistent() {
    crate::generated::command().debug_assert();
}

#[test]
fn a_check_measures_both_directions_by_default() {
    let Ok(Command::Check(CheckArgs { test, .. })) = parsed("check far.example") else { panic!("not a check") };
    assert_eq!(test.host, "far.example");
    assert_eq!(test.direction, Which::Both);
    assert_eq!(test.streams, 1);
    assert_eq!(test.seconds, None);
    assert_eq!(test.congestion, None);
}

#[test]
fn numbers_take_units() {
    let Ok(Command::Tune(tune)) = parsed("tune h --rate 1.5Gbit/s --seconds 500ms --connections 7 -y") else {
        panic!("not a tune")
    };
    assert_eq!(tune.rate, Some(Rate::from_bps(1_500_000_000)));
    assert_eq!(tune.test.seconds, Some(Micros::from_millis(500)));
    assert_eq!(tune.connections.map(NonZeroU32::get), Some(7));
    assert!(tune.yes && !tune.persist);
    for (line, seconds) in [("check h --seconds 3", 3_000_000), ("check h --seconds 2.5", 2_500_000)] {
        let Ok(Command::Check(check)) = parsed(line) else { panic!("{line}") };
        assert_eq!(check.test.seconds.map(Micros::get), Some(seconds), "{line}");
    }
}

#[test]
fn impossible_numbers_are_refused_with_what_is_possible() {
    for (line, says) in [
        ("check h --seconds 0", "expected a time from 100ms to an hour (3600)"),
        ("check h --seconds never", "expected"),
        ("check h --streams 0", "expected a whole number from 1 to 128"),
        ("tune h --rate fast", "expected a rate such as 100M"),
        ("tune h --connections 0", "a whole number of at least 1"),
        ("tune h --omit 2", "--seconds"),
        ("history --limit 0", "a whole number of at least 1"),
        ("undo x", "expected the number of a run"),
        ("reset --to-journal x", "expected the number of a run"),
        ("measure h -P many", "expected a whole number from 1 to 2048"),
        ("measure h -t 0", "-t 86400"),
        ("measure h -k x", "expected a number of messages"),
        ("read x.pcap --conn x", "a whole number of at least 0"),
        ("serve --max-time 90000", "10ms to a day"),
    ] {
        let error = parsed(line).unwrap_err();
        assert!(error.contains(says), "{line}: {error}");
    }
}

#[test]
fn a_number_that_is_none_is_never_explained_in_the_words_of_a_library() {
    fn look(command: &clap::Command, words: &[String]) {
        let is_number = |argument: &&clap::Arg| argument.get_long().is_some() && argument.get_action().takes_values();
        for argument in command.get_arguments().filter(is_number) {
            let mut line = words.to_vec();
            line.extend([format!("--{}", argument.get_long().unwrap()), "x y".to_owned()]);
            let words: Vec<OsString> = line.iter().map(Into::into).collect();
            let Err(error) = parse(&words) else { continue };
            let error = error.to_string();
            for foreign in ["invalid digit", "number would be", "invalid float", "cannot parse", "provided string"] {
                assert!(!error.contains(foreign), "{line:?}: {error}");
            }
        }
        for sub in command.get_subcommands() {
            look(sub, &[words, &[sub.get_name().to_owned()]].concat());
        }
    }
    look(&crate::generated::command(), &["fullpipe".to_owned()]);
}

#[test]
fn a_server_takes_the_longest_test_that_its_help_names() {
    for (given, seconds) in [("7200", 7_200), ("2h", 7_200), ("86400", 86_400)] {
        let Ok(Command::Serve(args)) = parsed(&format!("serve --max-time {given}")) else { panic!("{given}") };
        assert_eq!(args.max_time, Some(Micros::from_secs(seconds)), "{given}");
    }
}

#[test]
fn an_undo_names_one_run_or_last_or_all() {
    for line in ["undo", "undo 7", "undo --last", "undo --all --force -y", "undo --interrupted"] {
        assert!(matches!(parsed(line), Ok(Command::Undo(_))), "{line}");
    }
    for line in ["undo 7 --all", "undo --last --all", "undo 7 --last", "undo seven", "undo --interrupted --all"] {
        assert!(parsed(line).is_err(), "{line}");
    }
}

#[test]
fn tuning_a_served_machine_needs_a_key() {
    assert!(parsed("serve --allow-tune").unwrap_err().contains("--key-file"));
    assert!(parsed("serve 192.0.2.7:5301 --allow-tune --key-file k --max-clients 2").is_ok());
}

#[test]
fn a_shell_in_the_lab_takes_the_rest_of_the_line_as_it_is() {
    let Ok(Command::Lab(LabCommand::Shell(shell))) = parsed("lab shell wan-80ms --host a -- iperf3 --json -c b") else {
        panic!("not a shell")
    };
    assert_eq!(shell.host, LabHost::A);
    assert_eq!(shell.command, ["iperf3", "--json", "-c", "b"]);
    assert!(parsed("lab shell wan-80ms").is_err(), "without --host");
    assert!(parsed("lab shell wan-80ms --host c").is_err());
}

#[test]
fn an_archive_is_given_the_rest_of_the_line_as_it_is() {
    for (line, words) in [
        ("archive in --out there --workers 2", &["in", "--out", "there", "--workers", "2"][..]),
        ("archive query limiters there --json", &["query", "limiters", "there", "--json"]),
        ("archive -- --help", &["--help"]),
    ] {
        let Ok(Command::Archive(args)) = parsed(line) else { panic!("{line}") };
        assert_eq!(args.words, words, "{line}");
    }
    assert!(parsed("archive").is_err() && parsed("report").is_err());
}

#[test]
fn flags_that_every_command_takes_may_stand_anywhere() {
    for line in ["--json check h", "check --json h", "lab --json list", "lab list --json"] {
        let words: Vec<_> = std::iter::once("fullpipe").chain(line.split(' ')).map(OsString::from).collect();
        assert!(parse(&words).unwrap().global.json, "{line}");
    }
    assert!(parsed("check h --verbose --quiet").is_err());
}

#[test]
fn every_command_that_a_user_sees_has_examples() {
    fn look(command: &clap::Command) {
        let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help");
        for sub in shown {
            let help = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example") && help.contains("fullpipe"), "{} has no example", sub.get_name());
            // The widest that help is wrapped to: an example that is longer breaks in its middle.
            let long = help.lines().find(|line| line.chars().count() > 100);
            assert_eq!(long, None, "{}", sub.get_name());
            look(sub);
        }
    }
    look(&crate::generated::command());
}

#[test]
fn a_shell_completes_platforms() {
    let command = crate::generated::command();
    for name in ["settings", "plan", "lint"] {
        let sub = command.find_subcommand(name).unwrap();
        let platform = sub.get_arguments().find(|argument| argument.get_long() == Some("platform")).unwrap();
        let names: Vec<String> =
            platform.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        for expected in ["windows-2012", "linux", "freebsd", "netburner"] {
            assert!(names.iter().any(|name| name == expected), "{name}: {names:?}");
        }
        assert_eq!(names.iter().any(|name| name == "this"), name == "plan", "{names:?}");
    }
}

#[test]
fn a_destination_has_a_prefix_or_is_the_host_that_is_measured() {
    let tuned = |line: &str| match parsed(line) {
        Ok(Command::Tune(tune)) => (tune.destination.map(|prefix| prefix.map(|p| p.to_string())), tune.route),
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(tuned("tune h"), (None, vec![]));
    assert_eq!(tuned("tune h --destination"), (Some(None), vec![]));
    let (prefix, route) =
        tuned("tune h --destination 10.0.0.0/8 --route initcwnd=40 --route window=0 --route rto_min=0.3s");
    assert_eq!(prefix, Some(Some("10.0.0.0/8".to_owned())));
    let metric = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
    assert_eq!(route, [metric("initcwnd", Some("40")), metric("window", None), metric("rto_min", Some("300ms"))]);
    for (line, says) in [
        ("tune h --destination 0.0.0.0/0", "every destination"),
        ("tune h --destination 10.0.0.1/8", "10.0.0.0/8 is the network"),
        ("tune h --destination far.example", "is no prefix"),
        ("tune h --destination --persist", "cannot be used with"),
        ("tune h --route initcwnd=40", "--destination"),
        ("tune h --destination --route initcwnd", "expected NAME=VALUE"),
        ("tune h --destination --route speed=1", "expected NAME=VALUE"),
        ("tune h --destination --route initcwnd=many", "expected a whole number"),
    ] {
        let refused = parsed(line).unwrap_err();
        assert!(refused.to_string().contains(says), "{line}: {refused}");
    }
}
