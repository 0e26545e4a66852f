//! `fullpipe watch`.

use std::{
    fs::File,
    io::{self, BufReader},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use fullpipe_report::{clean, json, text};
use fullpipe_watch::{Filter, Frame, record};

use super::Ended;
use crate::{args::WatchArgs, exit::Exit, failure::Failure, interrupt, output::Output, screen::Screen};

/// Connections that are shown where nobody says how many.
const USUALLY: usize = 100;
/// Lines of the screen that are left for the stories under the table.
const STORY_LINES: usize = 16;
/// ... but so many connections are always there.
const LEAST_ROWS: usize = 5;
/// A recording is shown again at its own pace, but not slower than this.
const SLOWEST: Duration = Duration::from_secs(1);

pub(super) fn run(args: &WatchArgs, output: Output) -> Ended {
    match &args.file {
        Some(file) => again(file, args, output),
        None => live(args, output),
    }
}

/// Where frames go.
struct View<'a> {
    args: &'a WatchArgs,
    filter: Filter,
    output: Output,
    screen: Option<Screen>,
    lines: bool,
    shown: u64,
}

impl<'a> View<'a> {
    fn new(args: &'a WatchArgs, output: Output) -> Result<Self, Failure> {
        let is_terminal = output.can_redraw() && !args.once;
        let screen = is_terminal.then(Screen::enter).transpose();
        Ok(Self {
            args,
            filter: args.filter.clone().unwrap_or_default(),
            output,
            lines: !is_terminal && !args.once,
            screen: screen.map_err(|error| Failure::system("writing to the terminal", &error))?,
            shown: 0,
        })
    }

    /// Connections to show.
    fn limit(&self) -> usize {
        let fitting = || match &self.screen {
            Some(_) => self.output.height().saturating_sub(STORY_LINES).max(LEAST_ROWS),
            None => USUALLY,
        };
        self.args.limit.map_or_else(fitting, std::num::NonZeroUsize::get)
    }

    /// False when nobody reads any more.
    fn show(&mut self, frame: Frame) -> Result<bool, Failure> {
        let frame = frame.narrowed(&self.filter, self.args.sort.into(), self.limit());
        self.shown += 1;
        let look = self.output.look();
        let written = match &self.screen {
            Some(screen) => screen.draw(&text::watch(&frame, look), self.output.height()).map(|()| true),
            None if self.output.is_json() && self.lines => self.output.stream(&json::to_line(&json::watch(&frame))),
            None if self.lines => self.output.stream(&text::watch_lines(&frame, self.shown == 1)),
            None => self.output.result(|| json::watch(&frame), |look| text::watch(&frame, look)).map(|()| true),
        };
        written.map_err(|error| Failure::system("writing to standard output", &error))
    }
}

#[cfg(not(target_os = "linux"))]
fn live(_: &WatchArgs, _: Output) -> Ended {
    Err(needs_linux())
}

/// What there is elsewhere.
#[cfg(not(target_os = "linux"))]
pub(super) fn needs_linux() -> Failure {
    Failure::new(
        Exit::Unsupported,
        "watching connections reads Linux's sock_diag, which this system does not have; to look at a recording from a \
         Linux host, give its file, and to measure from here use `fullpipe check`",
    )
}

#[cfg(target_os = "linux")]
fn live(args: &WatchArgs, output: Output) -> Ended {
    let stop = interrupt::stop_flag()?;
    let mut recording = args.record.as_deref().map(Recording::create).transpose()?;
    let end = args.duration.map(|time| Instant::now() + time);
    let is_over = || stop.load(Ordering::Relaxed) || end.is_some_and(|end| Instant::now() >= end);
    let filter = args.filter.clone().unwrap_or_default();
    let usual = if recording.is_some() { fullpipe_watch::MOST_RECORDED } else { USUALLY };
    let limit = args.limit.map_or(usual, std::num::NonZeroUsize::get).max(if recording.is_some() { usual } else { 0 });
    // Before the screen, so that an error stands where it is read.
    let mut watcher = fullpipe_watch::Watcher::new(args.interval, filter, args.sort.into(), limit)?;
    let mut view = View::new(args, output)?;
    while let Some(mut frame) = watcher.next_frame(&is_over)? {
        frame.time = Some(jiff::Timestamp::now().to_string());
        if let Some(recording) = &mut recording {
            recording.add(&frame)?;
        }
        if !view.show(frame)? || args.once {
            break;
        }
    }
    Ok(Exit::Ok)
}

/// Shows a recording.
fn again(file: &Path, args: &WatchArgs, output: Output) -> Ended {
    let name = clean(&file.display().to_string()).into_owned();
    let opened = File::open(file).map_err(|error| {
        let exit = if error.kind() == io::ErrorKind::NotFound { Exit::InputInvalid } else { Exit::System };
        Failure::new(exit, &format!("opening {name}: {error}"))
    })?;
    let stop = interrupt::stop_flag()?;
    let mut view = View::new(args, output)?;
    let mut failed = None;
    let mut last = None;
    let read = record::read(BufReader::new(opened), |frame| {
        let pace = Duration::try_from_secs_f64(frame.interval_s).unwrap_or(SLOWEST).min(SLOWEST);
        if view.screen.is_some() {
            last = Some(frame.clone());
        }
        let goes_on = view.show(frame).unwrap_or_else(|failure| {
            failed = Some(failure);
            false
        });
        goes_on && !stop.load(Ordering::Relaxed) && (view.screen.is_none() || waited(pace, &stop))
    });
    // What was seen last stays on the terminal.
    if view.screen.take().is_some()
        && let Some(frame) = last
    {
        view.lines = false;
        view.show(frame)?;
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    read.map(|()| Exit::Ok).map_err(|error| Failure::new(Exit::InputInvalid, &format!("reading {name}: {error}")))
}

/// False when a signal came first.
fn waited(pace: Duration, stop: &AtomicBool) -> bool {
    let end = Instant::now() + pace;
    while !stop.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(Duration::from_millis(100)));
    }
    false
}

/// A file with a line for each interval, each written whole.
#[cfg(target_os = "linux")]
struct Recording {
    file: io::BufWriter<File>,
    name: String,
}

#[cfg(target_os = "linux")]
impl Recording {
    fn create(path: &Path) -> Result<Self, Failure> {
        let name = clean(&path.display().to_string()).into_owned();
        let file = File::create(path).map_err(|error| Failure::system(&format!("writing {name}"), &error))?;
        Ok(Self { file: io::BufWriter::new(file), name })
    }

    fn add(&mut self, frame: &Frame) -> Result<(), Failure> {
        use io::Write as _;
        let line = json::to_line(&json::watch(frame));
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.flush());
        written.map_err(|error| Failure::system(&format!("writing {}", self.name), &error))
    }
}
