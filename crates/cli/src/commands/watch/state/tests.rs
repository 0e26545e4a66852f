//! Keys pressed without a terminal.

use fullpipe_units::{Bytes, Micros, Rate};
use fullpipe_watch::Owner;

use super::{super::full::ALL_VIEWS, *};

/// Three connections: a slow one of `curl`, a fast one of `nginx`, one of nobody.
pub(in super::super) fn frame(at_s: f64) -> Frame {
    let row = |last: u16, process: Option<&str>, rate: u64| Row {
        local: "192.0.2.1:443".parse().unwrap(),
        peer: SocketAddr::from(([198, 51, 100, 7], last)),
        owner: process.map(|process| Owner { process: process.to_owned(), pid: 7, ..Owner::default() }),
        uid: Some(33),
        seen_s: at_s,
        is_older: true,
        sent_bps: Some(Rate::from_bps(rate + at_s as u64)),
        received_bps: Some(Rate::ZERO),
        rtt_us: Some(Micros::from_millis(u64::from(last))),
        min_rtt_us: None,
        peer_window: Some(Bytes::new(65_535)),
        own_window: None,
        cwnd: None,
        in_flight: None,
        unread: Bytes::ZERO,
        waiting: Bytes::ZERO,
        send_buffer: None,
        receive_buffer: None,
        mss: None,
        congestion_control: None,
        retransmissions: Some(0),
        now: None,
        seconds: [].into(),
        diagnosis: None,
        notes: Vec::new(),
    };
    let rows = vec![row(3, Some("curl"), 1_000), row(2, Some("nginx"), 9_000_000), row(1, None, 0)];
    Frame { at_s, interval_s: 1.0, connections: 3, active: 2, matching: 3, rows, ..Frame::default() }
}

pub(in super::super) fn state() -> State {
    let mut state = State::new(Filter::default(), Sort::Rate);
    state.take(frame(1.0), ALL_VIEWS);
    state
}

fn press(state: &mut State, code: KeyCode) -> Wish {
    state.key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn write(state: &mut State, text: &str) {
    for letter in text.chars() {
        press(state, KeyCode::Char(letter));
    }
}

fn process(state: &State) -> &str {
    state.row().and_then(|row| row.owner.as_ref()).map_or("nobody", |owner| &owner.process)
}

#[test]
fn the_selection_follows_its_connection_whatever_the_order() {
    let mut state = state();
    assert_eq!((process(&state), state.selected()), ("nginx", Some(0)));
    press(&mut state, KeyCode::Down);
    assert_eq!(process(&state), "curl");
    let mut next = frame(2.0);
    next.rows[0].sent_bps = Some(Rate::from_bps(99_000_000));
    state.take(next, ALL_VIEWS);
    assert_eq!((process(&state), state.selected()), ("curl", Some(0)));
    press(&mut state, KeyCode::End);
    assert_eq!(process(&state), "nobody");
    press(&mut state, KeyCode::Down);
    assert_eq!(process(&state), "nobody", "there is nothing below the last one");
    press(&mut state, KeyCode::Home);
    press(&mut state, KeyCode::Up);
    assert_eq!(state.selected(), Some(0));
}

#[test]
fn s_goes_through_the_orders_and_back() {
    let mut state = state();
    assert_eq!((press(&mut state, KeyCode::Char('s')), state.sort, state.sort_name()), (Wish::Ask, Sort::Rtt, "rtt"));
    assert_eq!(process(&state), "curl", "the longest round trip");
    press(&mut state, KeyCode::Char('S'));
    assert_eq!(state.sort, Sort::Rate);
    for _ in SORTS {
        press(&mut state, KeyCode::Char('s'));
    }
    assert_eq!(state.sort, Sort::Rate);
}

#[test]
fn a_filter_is_typed_corrected_and_taken_back() {
    let mut state = state();
    press(&mut state, KeyCode::Char('/'));
    write(&mut state, "process curlq");
    assert_eq!(state.shown.rows.len(), 3, "not before Enter, and letters are no commands");
    press(&mut state, KeyCode::Backspace);
    assert_eq!(press(&mut state, KeyCode::Enter), Wish::Ask);
    assert_eq!((state.shown.rows.len(), process(&state)), (1, "curl"));
    press(&mut state, KeyCode::Char('/'));
    write(&mut state, " host a");
    assert_eq!(press(&mut state, KeyCode::Enter), Wish::Draw);
    assert!(state.problem.as_ref().unwrap().contains("`host`") && state.typing.is_some());
    press(&mut state, KeyCode::Esc);
    assert_eq!((state.typing.clone(), state.shown.rows.len()), (None, 1));
    press(&mut state, KeyCode::Char('/'));
    for _ in 0..20 {
        press(&mut state, KeyCode::Backspace);
    }
    press(&mut state, KeyCode::Enter);
    assert_eq!(state.shown.rows.len(), 3);
}

#[test]
fn a_frame_from_before_a_filter_takes_nothing_off_the_screen() {
    let mut state = state();
    press(&mut state, KeyCode::Char('/'));
    write(&mut state, "process nobody");
    press(&mut state, KeyCode::Enter);
    state.take(Frame { rows: Vec::new(), ..frame(2.0) }, 1);
    press(&mut state, KeyCode::Char('/'));
    for _ in 0..20 {
        press(&mut state, KeyCode::Backspace);
    }
    press(&mut state, KeyCode::Enter);
    state.take(frame(3.0), 2);
    // Taken while `process nobody` was asked for, and late.
    state.take(Frame { rows: Vec::new(), ..frame(3.5) }, 1);
    press(&mut state, KeyCode::Enter);
    assert_eq!((state.showing, process(&state)), (Showing::Connection, "nginx"));
}

#[test]
fn a_pause_holds_the_picture_but_not_the_past() {
    let mut state = state();
    press(&mut state, KeyCode::Char(' '));
    state.take(frame(2.0), ALL_VIEWS);
    assert_eq!((state.shown.at_s, state.past().count()), (1.0, 2));
    press(&mut state, KeyCode::Char(' '));
    state.take(frame(3.0), ALL_VIEWS);
    assert_eq!((state.shown.at_s, state.past().count()), (3.0, 3));
}

#[test]
fn the_past_has_a_bound_and_forgets_what_is_gone() {
    let mut state = state();
    (2..600).for_each(|at| state.take(frame(f64::from(at)), ALL_VIEWS));
    assert_eq!((state.past().count(), state.past.len()), (PAST, 3));
    let empty = Frame { at_s: 10_000.0, interval_s: 1.0, ..Frame::default() };
    state.take(empty, ALL_VIEWS);
    assert_eq!((state.past.len(), state.row().is_none()), (0, true));
    for code in [KeyCode::Down, KeyCode::Enter, KeyCode::PageUp, KeyCode::Char('G')] {
        assert_eq!(press(&mut state, code), Wish::Draw);
    }
}

#[test]
fn one_connection_is_opened_and_left_and_the_screen_quits() {
    let mut state = state();
    press(&mut state, KeyCode::Enter);
    assert_eq!(state.showing, Showing::Connection);
    press(&mut state, KeyCode::Down);
    assert_eq!((state.scroll, process(&state)), (1, "nginx"));
    press(&mut state, KeyCode::Esc);
    assert_eq!(state.showing, Showing::Table);
    press(&mut state, KeyCode::Char('?'));
    assert_eq!(state.showing, Showing::Help);
    assert_eq!(press(&mut state, KeyCode::Char('q')), Wish::Quit);
    assert_eq!(state.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Wish::Quit);
}

#[test]
fn the_selected_row_is_always_among_those_drawn() {
    let mut state = state();
    for (code, top) in [(KeyCode::End, 1), (KeyCode::Up, 1), (KeyCode::Home, 0)] {
        press(&mut state, code);
        state.follow(2);
        assert_eq!(state.top, top, "{code:?}");
    }
}
