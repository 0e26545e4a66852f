//! What the pages look like. The snapshots have no styles; one test looks at those.

use super::*;
use fullpipe_diagnose::{Alternative, Limiter};
use fullpipe_page::is_harmful;

use crate::sample;

const WIDE: Look = Look { width: 100, unicode: true, draws: false, verbose: false };

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn a_demonstration_fits_on_a_screen_and_a_half() {
    insta::assert_snapshot!("demo", plain(&outcome(&sample::demo(), WIDE)));
}

#[test]
fn everything_is_shown_where_everything_is_asked_for() {
    insta::assert_snapshot!("tuned_verbose", plain(&outcome(&sample::tuned(), Look { verbose: true, ..WIDE })));
}

#[test]
fn a_run_that_kept_and_undid_says_so() {
    insta::assert_snapshot!("tuned_narrow", plain(&outcome(&sample::tuned(), Look { width: 60, ..Look::default() })));
}

#[test]
fn what_a_user_asks_of_a_direction_is_a_gate_and_no_scenario() {
    let mut asked = sample::clean_path();
    let gate = |expected: &str, found: &str, met| fullpipe_tune::Expectation {
        direction: "here->far.example".to_owned(),
        expected: expected.to_owned(),
        found: found.to_owned(),
        met,
    };
    asked.expectations = vec![
        gate("at least 80.0 Mbit/s (--min-rate)", "93.9 Mbit/s", true),
        gate("not limited by path (--fail-on)", "path", false),
    ];
    let text = plain(&outcome(&asked, WIDE));
    assert!(text.contains("gates  1 of 2 passed\n") && !text.contains("scenario"), "{text}");
}

#[test]
fn a_clean_path_is_no_reason_to_change_anything() {
    insta::assert_snapshot!("clean_path", plain(&outcome(&sample::clean_path(), WIDE)));
}

#[test]
fn a_run_in_which_much_went_wrong_says_so() {
    insta::assert_snapshot!("hostile", plain(&outcome(&sample::hostile(), WIDE)));
}

#[test]
fn what_decides_between_several_limiters_is_said_once() {
    let mut found = sample::clean_path();
    for limiter in [Limiter::ReceiveWindow, Limiter::SendBuffer] {
        let decided_by = "one stream at a time".to_owned();
        found.before[0].diagnosis.or.push(Alternative { limiter, decided_by });
    }
    let text = plain(&outcome(&found, WIDE));
    assert!(text.contains("or receive window or send buffer"), "{text}");
    assert_eq!(text.matches("one stream at a time").count(), 1, "{text}");
}

#[test]
fn nothing_that_a_peer_says_reaches_the_terminal_as_a_command() {
    let text = plain(&outcome(&sample::hostile(), Look { verbose: true, ..WIDE }));
    assert!(!text.chars().any(|c| c != '\n' && is_harmful(c)), "{text:?}");
}

#[test]
fn no_line_is_wider_than_the_terminal_unless_a_single_word_is() {
    for width in [40, 60, 80, 110] {
        let text = plain(&outcome(&sample::tuned(), Look { width, ..Look::default() }));
        // Commands are not wrapped, because they are there to be copied.
        let copied = |line: &str| ["do ", "undo "].iter().any(|label| line.trim_start().starts_with(label));
        for line in text.lines().filter(|line| !copied(line)) {
            let longest_word = line.split(' ').map(|word| word.chars().count()).max().unwrap_or(0);
            assert!(line.chars().count() <= width || longest_word > 20, "{width}: {line}");
        }
    }
}

#[test]
fn styles_are_closed_on_the_line_that_opens_them() {
    for line in outcome(&sample::demo(), WIDE).lines() {
        let resets = line.matches("\x1b[0m").count();
        let opened = line.split("\x1b[0m").filter(|piece| piece.contains('\x1b')).count();
        assert_eq!(opened, resets, "{line:?}");
    }
}

#[test]
fn scenarios_are_listed_with_their_paths_and_imitations() {
    // The figures are the scenarios' own, so that they may be calibrated without touching this test.
    let all = ["wan-80ms", "hsdpa"].map(|name| fullpipe_path::Scenario::named(name).unwrap());
    let text = plain(&scenarios(&all, Look { verbose: true, ..WIDE }));
    for scenario in &all {
        let line = text.lines().find(|line| line.starts_with(&scenario.name)).unwrap();
        let rate = scenario.path.bottleneck(fullpipe_path::Direction::AToB).unwrap();
        assert!(line.contains(&rate.to_string()) && line.contains(&scenario.path.rtt().to_string()), "{line}");
    }
    assert_eq!(text.matches("  imitation ").count(), 2, "{text}");
    assert_eq!(text.matches("  published ").count(), 2, "{text}");
}

#[test]
fn a_clock_that_was_set_back_is_told() {
    let list = sample::captures_set_back();
    let story = plain(&capture_story(&list.connections.get(0).unwrap(), &list, Look { width: 110, ..Look::default() }));
    assert!(story.contains("set back by 5.00 s at packet 101; times go on as if it had not been"), "{story}");
}

#[test]
fn a_capture_is_told_with_its_setting_and_its_problems() {
    let list = sample::captures();
    let text = plain(&captures(&list, Look::default()));
    for words in
        ["receive window (window-scale shift 0)", "5.55 Mbit/s", "net.ipv4.tcp_rmem", "packet 7: cut", "\\u{1b}"]
    {
        assert!(text.contains(words), "{words} is missing: {text}");
    }
    let story = plain(&capture_story(&list.connections.get(0).unwrap(), &list, Look { width: 110, ..Look::default() }));
    for words in ["handshake   packets 1, 2, 3", "window scale 0", "Linux (a guess)", "65,535 B x 8", "timeline"] {
        assert!(story.contains(words), "{words} is missing: {story}");
    }
}

#[test]
fn connections_tell_whose_buffer_is_pinned_and_what_is_not_known() {
    let merged = fullpipe_knobs::reading::Merged::default();
    let text = |connections: &crate::Connections| {
        let list =
            crate::SettingsList { connections: Some(connections), ..crate::SettingsList::new(&merged, &[], false) };
        plain(&settings(&list, WIDE))
    };
    let mut connections = sample::connections();
    let page = text(&connections);
    assert!(page.contains("2 connections; 1 very likely with a buffer that the application set"), "{page}");
    assert!(page.contains("PINNED: it offered window scale 0 where the level gives 8"), "{page}");
    assert!(page.contains("not known: its statistics are off") && page.contains("process 4711"), "{page}");
    assert!(!page.contains('\u{1b}'), "the name of a program is cleaned");
    connections.observed.remove(0);
    let page = text(&connections);
    assert_eq!(page.matches("its statistics are off").count(), 1, "{page}");
    assert!(page.contains("which buffers are pinned is not known"), "{page}");
}

#[test]
fn the_line_of_an_interval_fits_the_terminal() {
    let progress = fullpipe_measure::Progress {
        phase: fullpipe_measure::Phase::Running,
        elapsed: std::time::Duration::from_secs(2),
        expected: None,
        up_bps: Some(fullpipe_units::Rate::from_bps(11_000_000_000)),
        down_bps: None,
        rtt_us: Some(fullpipe_units::Micros::new(557)),
        cwnd: Some(fullpipe_units::Bytes::new(2_750_286)),
        window: Some(fullpipe_units::Bytes::new(31_995_904)),
        retransmits: Some(10),
        datagrams: None,
    };
    let line = |columns| interval(&progress, fullpipe_units::Rate::from_bps(11_000_000_000), columns);
    for (columns, left_out) in [(120, &[][..]), (85, &["window"]), (60, &["window", "cwnd", "\u{2588}"])] {
        let line = line(Some(columns));
        assert!(line.trim_end().chars().count() <= columns, "{line}");
        for part in ["rtt", "window", "cwnd", "\u{2588}"] {
            assert_eq!(line.contains(part), !left_out.contains(&part), "{columns}: {line}");
        }
    }
    assert!(line(None).contains("cwnd 2,750,286 B  window 31,995,904 B  retransmitted 10"));
}

#[test]
fn the_line_of_an_interval_tells_what_datagrams_were_lost() {
    let datagrams =
        fullpipe_measure::Datagrams { packets: 4_321, lost: 7, out_of_order: Some(0), jitter_us: Some(12.0) };
    let progress = fullpipe_measure::Progress {
        phase: fullpipe_measure::Phase::Running,
        elapsed: std::time::Duration::from_secs(2),
        expected: None,
        up_bps: None,
        down_bps: Some(fullpipe_units::Rate::from_bps(50_000_000)),
        rtt_us: None,
        cwnd: None,
        window: None,
        retransmits: None,
        datagrams: Some(datagrams),
    };
    let line = |columns| interval(&progress, fullpipe_units::Rate::from_bps(100_000_000), columns);
    assert_eq!(line(None), "   2.00 s  down 50.0 Mbit/s  lost 7 of 4321  jitter 0.012 ms\n");
    let bar = "\u{2588}".repeat(5);
    assert_eq!(line(Some(80)), format!("   2.00 s  {bar:10}  down 50.0 Mbit/s  lost 7 of 4321  jitter 0.012 ms\n"));
}
