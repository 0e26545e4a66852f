//! What the full screen shows, and what each key makes of it. No terminal is touched here.

use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
};

use fullpipe_watch::{Filter, Frame, Row, Sort};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// So many intervals of a connection are drawn.
pub(super) const PAST: usize = 240;
/// The orders, as `s` goes through them.
const SORTS: &[(Sort, &str)] = &[
    (Sort::Worst, "worst"),
    (Sort::Rate, "rate"),
    (Sort::Rtt, "rtt"),
    (Sort::Retransmissions, "retransmissions"),
    (Sort::Process, "process"),
    (Sort::Age, "age"),
];

/// Which connection: its two ends.
pub(super) type Ends = (SocketAddr, SocketAddr);

pub(super) fn ends(row: &Row) -> Ends {
    (row.local, row.peer)
}

/// One interval of a connection, to draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) at_s: f64,
    pub(super) rate_bps: Option<f64>,
    pub(super) rtt_ms: Option<f64>,
}

/// What fills the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Showing {
    Table,
    Connection,
    Help,
}

/// What a key asks of who runs the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// To draw again.
    Draw,
    /// The same, and other connections or another order from now on.
    Ask,
    /// To end.
    Quit,
}

#[derive(Debug)]
pub(super) struct State {
    /// As it came.
    frame: Frame,
    /// As it is shown.
    pub(super) shown: Frame,
    pub(super) filter: Filter,
    pub(super) sort: Sort,
    /// So many times other connections or another order were asked for.
    pub(super) asks: u64,
    pub(super) showing: Showing,
    /// What is being typed as a filter.
    pub(super) typing: Option<String>,
    pub(super) problem: Option<String>,
    pub(super) is_paused: bool,
    /// Nothing comes any more.
    pub(super) is_over: bool,
    /// The first row that is drawn.
    pub(super) top: usize,
    /// The first line of the story that is drawn.
    pub(super) scroll: u16,
    selected: Option<Ends>,
    past: HashMap<Ends, VecDeque<Point>>,
}

impl State {
    pub(super) fn new(filter: Filter, sort: Sort) -> Self {
        Self {
            frame: Frame::default(),
            shown: Frame::default(),
            filter,
            sort,
            asks: 0,
            showing: Showing::Table,
            typing: None,
            problem: None,
            is_paused: false,
            is_over: false,
            top: 0,
            scroll: 0,
            selected: None,
            past: HashMap::new(),
        }
    }

    pub(super) fn sort_name(&self) -> &'static str {
        SORTS.iter().find(|(sort, _)| *sort == self.sort).map_or("", |(_, name)| name)
    }

    /// Takes an interval, seen when so many views had been asked for: one from before the last lacks what that asks for.
    pub(super) fn take(&mut self, frame: Frame, asks: u64) {
        for row in &frame.rows {
            let past = self.past.entry(ends(row)).or_default();
            past.push_back(Point {
                at_s: frame.at_s,
                rate_bps: row.rate().map(|rate| rate.bps() as f64),
                rtt_ms: row.rtt_us.map(|rtt| rtt.get() as f64 / 1e3),
            });
            if past.len() > PAST {
                past.pop_front();
            }
        }
        let oldest = frame.at_s - PAST as f64 * frame.interval_s;
        self.past.retain(|_, past| past.back().is_some_and(|point| point.at_s >= oldest));
        if !self.is_paused && asks >= self.asks {
            self.frame = frame;
            self.narrow();
        }
    }

    fn narrow(&mut self) {
        self.shown = self.frame.clone().narrowed(&self.filter, self.sort, usize::MAX);
        if self.selected.is_none() {
            self.selected = self.shown.rows.first().map(ends);
        }
    }

    /// The place of the selected connection among those shown.
    pub(super) fn selected(&self) -> Option<usize> {
        self.shown.rows.iter().position(|row| Some(ends(row)) == self.selected)
    }

    /// The selected connection; `None` where it is gone.
    pub(super) fn row(&self) -> Option<&Row> {
        self.shown.rows.get(self.selected()?)
    }

    pub(super) fn ends(&self) -> Option<Ends> {
        self.selected
    }

    pub(super) fn past(&self) -> impl Iterator<Item = &Point> {
        self.selected.and_then(|ends| self.past.get(&ends)).into_iter().flatten()
    }

    /// Scrolls so that the selected row is one of the `height` that are drawn.
    pub(super) fn follow(&mut self, height: usize) {
        let at = self.selected().unwrap_or(0);
        self.top = self.top.min(at).max((at + 1).saturating_sub(height.max(1)));
        self.top = self.top.min(self.shown.rows.len().saturating_sub(1));
    }

    /// What a key does.
    pub(super) fn key(&mut self, key: KeyEvent) -> Wish {
        if key.kind == KeyEventKind::Release {
            return Wish::Draw;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Wish::Quit;
        }
        self.problem = None;
        if self.typing.is_some() {
            return self.typed(key.code);
        }
        match key.code {
            KeyCode::Char('q') => return Wish::Quit,
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left if self.showing != Showing::Table => {
                self.showing = Showing::Table;
            }
            KeyCode::Char('?' | 'h') => self.showing = Showing::Help,
            KeyCode::Char(' ') => {
                self.is_paused = !self.is_paused;
            }
            KeyCode::Char('/') => {
                (self.showing, self.typing) = (Showing::Table, Some(self.filter.to_string()));
            }
            KeyCode::Char(key @ ('s' | 'S')) => {
                let at = SORTS.iter().position(|(sort, _)| *sort == self.sort).unwrap_or(0);
                let step = if key == 's' { 1 } else { SORTS.len() - 1 };
                self.sort = SORTS[(at + step) % SORTS.len()].0;
                self.narrow();
                (self.selected, self.top) = (self.shown.rows.first().map(ends), 0);
                self.asks += 1;
                return Wish::Ask;
            }
            KeyCode::Enter | KeyCode::Right if self.showing == Showing::Table && self.selected().is_some() => {
                (self.showing, self.scroll) = (Showing::Connection, 0);
            }
            code => self.moved(code),
        }
        Wish::Draw
    }

    fn moved(&mut self, code: KeyCode) {
        let step: isize = match code {
            KeyCode::Down | KeyCode::Char('j') => 1,
            KeyCode::Up | KeyCode::Char('k') => -1,
            KeyCode::PageDown => 10,
            KeyCode::PageUp => -10,
            KeyCode::Home | KeyCode::Char('g') => isize::MIN,
            KeyCode::End | KeyCode::Char('G') => isize::MAX,
            _ => return,
        };
        if self.showing == Showing::Connection {
            let step = i16::try_from(step).unwrap_or(if step < 0 { i16::MIN } else { 0 });
            self.scroll = self.scroll.saturating_add_signed(step);
            return;
        }
        let last = self.shown.rows.len().saturating_sub(1);
        let at = self.selected().map_or(0, |at| at.saturating_add_signed(step).min(last));
        self.selected = self.shown.rows.get(at).map(ends);
    }

    fn typed(&mut self, code: KeyCode) -> Wish {
        let Some(text) = &mut self.typing else { return Wish::Draw };
        match code {
            KeyCode::Char(letter) => text.push(letter),
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Esc => self.typing = None,
            KeyCode::Enter => match text.parse::<Filter>() {
                Ok(filter) => {
                    self.filter = filter;
                    (self.typing, self.selected, self.top) = (None, None, 0);
                    self.narrow();
                    self.asks += 1;
                    return Wish::Ask;
                }
                Err(error) => self.problem = Some(error.to_string()),
            },
            _ => {}
        }
        Wish::Draw
    }
}

#[cfg(test)]
pub(super) mod tests;
