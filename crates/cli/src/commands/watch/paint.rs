//! The full screen, drawn: the table, one connection with its chart and story, the keys.

use fullpipe_report::text::{self, Look, Mood};
use fullpipe_units::Rate;
use ratatui::{
    Frame as Canvas,
    layout::{Constraint, Layout, Rect},
    style::{Modifier, Style, Stylize},
    symbols::Marker,
    text::{Line, Span},
    widgets::{Axis, Block, Borders, Chart, Dataset, GraphType, Paragraph, Wrap},
};

use super::state::{Point, Showing, State};

/// Lines of the story under the table, where there is room for as many rows and more.
const STORY: u16 = 10;
const LEAST_ROWS: u16 = 6;
const KEYS: &str = "q quit  Enter one connection  s sort  / filter  Space pause  ? keys";
const HELP: &str = "Keys

  q, Ctrl-C        quit
  Up, Down, j, k   select a connection; PageUp, PageDown, Home, End
  Enter            its chart and its story; Up and Down scroll
  Esc              back to the table
  s, S             next order, the one before
  /                type a filter: dst 10.0.0.0/8 port 443 process nginx; Enter takes it
  Space            pause and go on
  ?                this page

Yellow is what something holds back. The columns and limiters: docs/watch.md, `man fullpipe-watch`.";

/// Draws all of it.
pub(super) fn paint(canvas: &mut Canvas<'_>, state: &mut State, look: Look) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)]).areas(canvas.area());
    canvas.render_widget(Paragraph::new(title(state)), head);
    match state.showing {
        Showing::Table => table(canvas, state, look, body),
        Showing::Connection => connection(canvas, state, look, body),
        Showing::Help => canvas.render_widget(Paragraph::new(HELP).wrap(Wrap { trim: false }), body),
    }
    canvas.render_widget(Paragraph::new(footer(state)), foot);
}

fn title(state: &State) -> Line<'static> {
    let [head, time] = text::watch_head(&state.shown);
    let mut spans = vec![Span::from(head).bold()];
    if state.shown.rows.len() < state.shown.matching {
        spans.push(Span::from(format!(", {} of {} shown", state.shown.rows.len(), state.shown.matching)));
    }
    spans.push(Span::from(format!("  by {}", state.sort_name())).dim());
    let filter = state.filter.to_string();
    if !filter.is_empty() {
        spans.push(Span::from(format!("  {filter}")).cyan());
    }
    let standing = if state.is_over { "  end of the recording" } else { "  paused" };
    if state.is_paused || state.is_over {
        spans.push(Span::from(standing).yellow());
    }
    spans.push(Span::from(format!("  {time}")).dim());
    Line::from(spans)
}

fn footer(state: &State) -> Line<'static> {
    match (&state.typing, &state.problem) {
        (Some(_), Some(problem)) => Line::from(Span::from(problem.clone()).red()),
        (Some(text), None) => {
            Line::from(vec![Span::from("filter: ").bold(), Span::from(text.clone()), Span::from(" ").reversed()])
        }
        (None, _) if state.showing == Showing::Connection => {
            Line::from("Esc back  Up, Down scroll  Space pause  q quit".dim())
        }
        (None, _) if state.showing == Showing::Help => Line::from("Esc back  q quit".dim()),
        (None, _) => Line::from(KEYS.dim()),
    }
}

fn table(canvas: &mut Canvas<'_>, state: &mut State, look: Look, area: Rect) {
    let story = if area.height >= STORY + LEAST_ROWS { STORY } else { 0 };
    let [header, rows, below] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(story)]).areas(area);
    let width = usize::from(area.width);
    canvas.render_widget(Paragraph::new(text::watch_header(width).dim()), header);
    state.follow(usize::from(rows.height));
    let selected = state.selected();
    let lines = state.shown.rows.iter().enumerate().skip(state.top).take(usize::from(rows.height));
    let lines: Vec<Line<'_>> =
        lines.map(|(at, row)| line(&text::watch_row(row, width), Some(at) == selected)).collect();
    let nothing = lines.is_empty();
    canvas.render_widget(Paragraph::new(lines), rows);
    if nothing && state.shown.interval_s > 0.0 {
        canvas.render_widget(Paragraph::new("no connection passes the filter".dim()), rows);
    }
    if story > 0 {
        let story_text = story_text(state, Look { verbose: false, ..look }, below.width);
        let story_text =
            Paragraph::new(story_text).wrap(Wrap { trim: false }).block(Block::new().borders(Borders::TOP));
        canvas.render_widget(story_text, below);
    }
}

fn line(row: &text::WatchRow, is_selected: bool) -> Line<'static> {
    let style = match row.mood {
        Mood::Quiet => Style::new().dim(),
        Mood::Well => Style::new(),
        Mood::Held => Style::new().yellow().bold(),
    };
    let line =
        Line::from(vec![Span::from(row.front.clone()), Span::from("  "), Span::styled(row.limiter.clone(), style)]);
    if is_selected { line.style(Modifier::REVERSED) } else { line }
}

/// The story of the selected connection; below it what else there is to know of this host.
fn story_text(state: &State, look: Look, width: u16) -> String {
    let look = Look { width: width.into(), ..look };
    let mut story_text = match (state.row(), state.ends()) {
        (Some(row), _) => plain(&text::watch_story(row, look)),
        (None, Some((local, peer))) => format!("{local} - {peer} is gone\n"),
        (None, None) => String::new(),
    };
    for listener in &state.shown.listeners {
        story_text += &format!("listening   {}: {}\n", listener.local, listener.note.text);
    }
    for missing in &state.shown.missing {
        story_text += &format!("not seen    {missing}\n");
    }
    for remark in &state.shown.remarks {
        story_text += &format!("note        {remark}\n");
    }
    story_text
}

fn connection(canvas: &mut Canvas<'_>, state: &mut State, look: Look, area: Rect) {
    let chart = (area.height / 2).min(16);
    let [above, below] = Layout::vertical([Constraint::Length(chart), Constraint::Min(1)]).areas(area);
    let [left, right] = Layout::horizontal([Constraint::Percentage(60), Constraint::Percentage(40)]).areas(above);
    let points: Vec<Point> = state.past().copied().collect();
    let rate: Vec<(f64, f64)> = points.iter().filter_map(|point| Some((point.at_s, point.rate_bps?))).collect();
    let rtt: Vec<(f64, f64)> = points.iter().filter_map(|point| Some((point.at_s, point.rtt_ms?))).collect();
    draw(canvas, left, look, "rate", &rate, |value| Rate::from_bps(value as u64).to_string());
    draw(canvas, right, look, "round trip", &rtt, |value| format!("{value:.1} ms"));
    let story = story_text(state, Look { verbose: true, ..look }, below.width);
    let width = usize::from(below.width.max(1));
    let lines: usize = story.lines().map(|line| line.chars().count().div_ceil(width).max(1)).sum();
    let most = u16::try_from(lines).unwrap_or(u16::MAX).saturating_sub(below.height);
    state.scroll = state.scroll.min(most);
    canvas.render_widget(Paragraph::new(story).wrap(Wrap { trim: false }).scroll((state.scroll, 0)), below);
}

fn draw(
    canvas: &mut Canvas<'_>,
    area: Rect,
    look: Look,
    title: &str,
    points: &[(f64, f64)],
    words: impl Fn(f64) -> String,
) {
    let now = points.last().map_or_else(String::new, |(_, value)| format!(" {}", words(*value)));
    let block = Block::bordered().title(format!("{title}{now}"));
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return canvas.render_widget(Paragraph::new("nothing seen yet".dim()).block(block), area);
    };
    // From zero, with a little room above.
    let most = points.iter().map(|(_, value)| *value).fold(0.0, f64::max).max(f64::MIN_POSITIVE) * 1.1;
    let end = last.0.max(first.0 + 1.0);
    let line = Dataset::default()
        .marker(if look.unicode { Marker::Braille } else { Marker::Dot })
        .graph_type(GraphType::Line)
        .cyan()
        .data(points);
    let time = Axis::default().bounds([first.0, end]).labels([format!("{:.0} s ago", end - first.0), "now".to_owned()]);
    let values = Axis::default().bounds([0.0, most]).labels(["0".to_owned(), words(most)]);
    canvas.render_widget(Chart::new(vec![line]).block(block).x_axis(time).y_axis(values), area);
}

/// Without the styles of a page.
fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[cfg(test)]
mod tests {
    use ratatui::{
        Terminal,
        backend::TestBackend,
        crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
    };

    use super::{
        super::full::ALL_VIEWS,
        super::state::tests::{frame, state},
        *,
    };

    fn painted(state: &mut State, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let look = Look { width: width.into(), unicode: true, ..Look::default() };
        terminal.draw(|canvas| paint(canvas, state, look)).unwrap();
        terminal.backend().to_string()
    }

    fn press(state: &mut State, code: KeyCode) {
        state.key(KeyEvent::new(code, KeyModifiers::NONE));
    }

    #[test]
    fn the_table_has_every_connection_and_the_keys_at_any_size() {
        for (width, height) in [(80, 24), (200, 50), (132, 12)] {
            let mut state = state();
            let text = painted(&mut state, width, height);
            for part in ["3 TCP connections, 2 active", "by rate", "curl", "nginx", "uid 33", "LIMITER", "q quit"] {
                assert!(text.contains(part), "{part} at {width}x{height}:\n{text}");
            }
        }
    }

    #[test]
    fn one_connection_has_a_chart_and_its_story() {
        let mut state = state();
        (2..30).for_each(|at| state.take(frame(f64::from(at)), ALL_VIEWS));
        press(&mut state, KeyCode::Enter);
        let text = painted(&mut state, 80, 24);
        for part in [
            "rate 9.00 Mbit/s",
            "round trip 2.0 ms",
            "28 s ago",
            "192.0.2.1:443 -> 198.51.100.7:2",
            "buffers",
            "Esc back",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        state
            .take(fullpipe_watch::Frame { at_s: 30.0, interval_s: 1.0, ..fullpipe_watch::Frame::default() }, ALL_VIEWS);
        assert!(painted(&mut state, 80, 24).contains("is gone"));
    }

    #[test]
    fn no_size_and_no_frame_is_too_small_to_draw() {
        for (width, height) in [(1, 1), (2, 3), (10, 4), (39, 9)] {
            let mut empty = State::new(fullpipe_watch::Filter::default(), fullpipe_watch::Sort::Worst);
            painted(&mut empty, width, height);
            let mut full = state();
            for code in [KeyCode::Enter, KeyCode::Char('?'), KeyCode::Char('/')] {
                press(&mut full, code);
                painted(&mut full, width, height);
            }
        }
    }

    #[test]
    fn a_filter_that_is_wrong_says_so_where_it_is_typed() {
        let mut state = state();
        for code in [KeyCode::Char('/'), KeyCode::Char('x')] {
            press(&mut state, code);
        }
        assert!(painted(&mut state, 80, 24).contains("filter: x"));
        press(&mut state, KeyCode::Enter);
        assert!(painted(&mut state, 80, 24).contains("`x` is no part of a filter"));
    }
}
