//! `fullpipe watch`.

mod full;
mod paint;
mod state;

use std::{
    fs::File,
    io::{self, BufReader, IsTerminal as _},
    num::NonZeroUsize,
    path::Path,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{self, SyncSender},
    },
    thread,
    time::{Duration, Instant},
};

use fullpipe_report::{clean, json, text};
use fullpipe_watch::{Filter, Frame, Watcher, record, record::RecordError};

use self::{
    full::{ALL_VIEWS, Asked, Fed},
    state::State,
};
use super::Ended;
use crate::{args::WatchArgs, exit::Exit, failure::Failure, interrupt, output::Output};

/// Connections that are shown where nobody says how many.
const USUALLY: usize = 100;
/// A recording is shown again at its own pace, but not slower than this.
const SLOWEST: Duration = Duration::from_secs(1);
/// How long the end waits for who sleeps.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

pub(super) fn run(args: &WatchArgs, output: Output) -> Ended {
    match &args.file {
        Some(file) => again(file, args, output),
        None => live(args, output),
    }
}

/// Where frames go, unless they fill the screen.
struct View<'a> {
    args: &'a WatchArgs,
    filter: Filter,
    output: Output,
    shown: u64,
}

impl<'a> View<'a> {
    fn new(args: &'a WatchArgs, output: Output) -> Self {
        Self { args, filter: args.filter.clone().unwrap_or_default(), output, shown: 0 }
    }

    /// False when nobody reads any more.
    fn show(&mut self, frame: Frame) -> Result<bool, Failure> {
        let limit = self.args.limit.map_or(USUALLY, NonZeroUsize::get);
        let frame = frame.narrowed(&self.filter, self.args.sort.into(), limit);
        self.shown += 1;
        let written = match (self.args.once, self.output.is_json()) {
            (true, _) => self.output.result(|| json::watch(&frame), |look| text::watch(&frame, look)).map(|()| true),
            (false, true) => self.output.stream(&json::to_line(&json::watch(&frame))),
            (false, false) => self.output.stream(&text::watch_lines(&frame, self.shown == 1)),
        };
        written.map_err(Failure::unprinted)
    }
}

/// Whether the screen is filled: for a person at a terminal.
fn fills_screen(args: &WatchArgs, output: Output) -> bool {
    output.can_redraw() && !args.once && io::stdin().is_terminal()
}

/// Runs `feed`, which sends frames until it learns that the screen is gone, and shows them.
fn full_screen(
    args: &WatchArgs,
    output: Output,
    stop: &AtomicBool,
    feed: impl FnOnce(&SyncSender<Fed>, &Asked) -> Result<(), Failure> + Send,
) -> Ended {
    let asked = Asked::default();
    let state = State::new(args.filter.clone().unwrap_or_default(), args.sort.into());
    // A screen that is slow to draw holds up who feeds it.
    let (send, frames) = mpsc::sync_channel(2);
    let fed = thread::scope(|scope| {
        let feeding = scope.spawn(|| {
            let send = send;
            feed(&send, &asked)
        });
        let shown = full::show(&frames, state, &asked, output, stop, args.file.is_none());
        drop(frames);
        match feeding.join() {
            Ok(fed) => fed.and(shown),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    fed.map(|()| Exit::Ok)
}

fn live(args: &WatchArgs, output: Output) -> Ended {
    let stop = interrupt::stop_flag()?;
    let fills_screen = fills_screen(args, output);
    let mut recording = args.record.as_deref().map(Recording::create).transpose()?;
    let end = args.duration.map(|time| Instant::now() + time);
    let is_over = || stop.load(Ordering::Relaxed) || end.is_some_and(|end| Instant::now() >= end);
    let filter = args.filter.clone().unwrap_or_default();
    let wants_more = recording.is_some() || fills_screen;
    let usual = if wants_more { fullpipe_watch::MOST_RECORDED } else { USUALLY };
    let limit = args.limit.map_or(usual, NonZeroUsize::get).max(if recording.is_some() { usual } else { 0 });
    // Before the screen, so that an error stands where it is read.
    let mut watcher = Watcher::new(args.interval, filter, args.sort.into(), limit)?;
    // A page has them below its table, and a document within it.
    if !(fills_screen || args.once || output.is_json()) {
        put_remarks(&watcher, output);
    }
    // A recording stays what was asked for on the command line.
    let mut asks = if recording.is_some() { ALL_VIEWS } else { 0 };
    let mut next = |is_over: &dyn Fn() -> bool, view: Option<full::View>| -> Result<Option<Fed>, Failure> {
        if let Some(view) = view.filter(|_| recording.is_none()) {
            watcher.show(view.filter, view.sort);
            asks = view.asks;
        }
        let Some(mut frame) = watcher.next_frame(is_over)? else { return Ok(None) };
        frame.time = Some(jiff::Timestamp::now().to_string());
        if let Some(recording) = &mut recording {
            recording.add(&frame)?;
        }
        Ok(Some((asks, frame)))
    };
    if fills_screen {
        return full_screen(args, output, &stop, |send, asked| {
            let is_over = || is_over() || asked.is_over.load(Ordering::Relaxed);
            while let Some(fed) = next(&is_over, asked.view())? {
                if send.send(fed).is_err() {
                    break;
                }
            }
            Ok(())
        });
    }
    let mut view = View::new(args, output);
    while let Some((_, frame)) = next(&is_over, None)? {
        if !view.show(frame)? || args.once {
            break;
        }
    }
    Ok(Exit::Ok)
}

/// What can't be seen, and what there is to know of what can, on standard error.
pub(super) fn put_remarks(watcher: &Watcher, output: Output) {
    let missing = watcher.missing().into_iter().map(|text| format!("not seen: {text}\n"));
    let remarks = watcher.remarks().into_iter().map(|text| format!("note: {text}\n"));
    missing.chain(remarks).for_each(|text| output.remark(&text));
}

/// Shows a recording.
fn again(file: &Path, args: &WatchArgs, output: Output) -> Ended {
    let name = clean(&file.display().to_string()).into_owned();
    let opened = File::open(file).map_err(|error| {
        let exit = if error.kind() == io::ErrorKind::NotFound { Exit::InputInvalid } else { Exit::System };
        Failure::new(exit, &format!("opening {name}: {error}"))
    })?;
    let wrong = |error: RecordError| Failure::new(Exit::InputInvalid, &format!("reading {name}: {error}"));
    let stop = interrupt::stop_flag()?;
    let opened = BufReader::new(opened);
    if fills_screen(args, output) {
        return full_screen(args, output, &stop, |send, asked| {
            let is_over = || asked.is_over.load(Ordering::Relaxed);
            let read = record::read(opened, |frame| {
                // At its own pace.
                let pace = Duration::try_from_secs_f64(frame.interval_s).unwrap_or(SLOWEST).min(SLOWEST);
                send.send((ALL_VIEWS, frame)).is_ok() && waited(pace, &asked.is_paused, &is_over)
            });
            read.map_err(wrong)
        });
    }
    let mut view = View::new(args, output);
    let mut failed = None;
    let read = record::read(opened, |frame| {
        let goes_on = view.show(frame).unwrap_or_else(|failure| {
            failed = Some(failure);
            false
        });
        goes_on && !stop.load(Ordering::Relaxed)
    });
    if let Some(failure) = failed {
        return Err(failure);
    }
    read.map(|()| Exit::Ok).map_err(wrong)
}

/// Waits for so long, and as long as it is held; false when it is over first.
fn waited(pace: Duration, is_held: &AtomicBool, is_over: &dyn Fn() -> bool) -> bool {
    let end = Instant::now() + pace;
    while !is_over() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() && !is_held.load(Ordering::Relaxed) {
            return true;
        }
        thread::sleep(left.clamp(Duration::from_millis(1), LONGEST_SLEEP));
    }
    false
}

/// A file with a line for each interval, each written whole.
struct Recording {
    file: io::BufWriter<File>,
    name: String,
}

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
