//! `fullpipe read`.

mod charts;
mod recording;

use std::{
    fs,
    hash::{BuildHasher, RandomState},
    num::NonZeroUsize,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};

use fullpipe_capture::{Filter, Filtered, Keep};
use fullpipe_ingest::{Captures, Options, Progress, Team, read_all};
use fullpipe_report::{CaptureList, MOST_ON_PAGE, Seen, clean, csv, json, parquet, text, xplot};
use fullpipe_units::Bytes;
use indicatif::{ProgressBar, ProgressStyle};

use super::{Ended, printed};
use crate::{args::ReadArgs, exit::Exit, failure::Failure, interrupt, library::Watcher, output::Output, page};

/// Connections that are shown unless more are asked for: a screen or two.
const USUALLY_SHOWN: usize = 20;

pub(super) fn run(args: &ReadArgs, output: Output) -> Ended {
    if let Some(file) = args.files.iter().find(|file| recording::is_one(file)) {
        return recording::run(file, args, output);
    }
    args.page.check()?;
    for path in args.parquet.iter().chain(&args.xplot).chain(args.page.files()) {
        check_other(path, &args.files)?;
    }
    let cancel = interrupt::cancel_flag()?;
    let bar = bar(output);
    let threads = args.threads.unwrap_or_else(usual_threads);
    let filter = args.filter.clone().unwrap_or_default();
    let Seen { mut list, broken } = look(filter, Keep::default(), threads, |options, sink| {
        read_all(&args.files, options, sink, |progress| {
            show(&bar, progress);
            if cancel.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    })
    .inspect_err(|_| bar.finish_and_clear())?;
    bar.finish_and_clear();
    let shown = |usually| args.top.map_or(usually, NonZeroUsize::get);
    let usually = if output.is_json() || args.csv { usize::MAX } else { USUALLY_SHOWN };
    list.shown = shown(if args.parquet.is_some() { usize::MAX } else { usually });
    list.sort();
    if let Some(path) = &args.parquet {
        write_parquet(path, &list)?;
        list.shown = shown(usually);
    }
    print(args, list, output)?;
    Ok(if broken { Exit::InputInvalid } else { Exit::Ok })
}

/// Looks at what `read` reads into the watcher that it is given.
pub(crate) fn look(
    filter: Filter,
    keep: Keep,
    threads: NonZeroUsize,
    read: impl FnOnce(Options, &mut Watcher) -> Captures,
) -> Result<Seen, Failure> {
    // The standard library's own source of randomness: nobody can foresee it, and it needs no crate.
    let seed = RandomState::new().hash_one(0_u8);
    let mut sink = Filtered::new(filter, Team::new(seed, keep, threads));
    let mut captures = read(Options::beside(threads), &mut sink);
    if captures.files.is_empty() && !captures.failed.is_empty() {
        return Err(captures.failed.remove(0).into());
    }
    let found = sink.into_inner().finish();
    Ok(fullpipe_report::list(&captures, found))
}

/// As many as the machine has, up to what is of use.
pub(crate) fn usual_threads() -> NonZeroUsize {
    std::thread::available_parallelism().map_or(NonZeroUsize::MIN, |cores| cores.min(Team::MOST_THREADS))
}

fn print(args: &ReadArgs, mut list: CaptureList, output: Output) -> Ended {
    if let Some(number) = args.conn {
        let count = list.connections.len();
        list.connections.keep_numbered(number);
        let Some(report) = list.connections.get(0) else {
            let text = format!("there is no connection {number} in the capture; give one from 1 to {count}");
            return Err(Failure::new(Exit::Usage, &text));
        };
        args.page.result(
            output,
            || json::captures("read", &list),
            || charts::chosen(args, &list),
            |look| text::capture_story(&report, &list, look),
        )?;
        write_xplot(args, &list, output)?;
        return Ok(Exit::Ok);
    }
    if args.csv {
        let page = csv::captures(&list)
            .map_err(|error| Failure::new(Exit::System, &format!("writing comma-separated values: {error}")))?;
        return printed(output.verbatim(&page));
    }
    if args.page.files().next().is_none() {
        // Nothing asks for the whole document at once.
        let document = || json::Captures::new("read", &list);
        output.result(document, |look| text::captures(&list, look)).map_err(Failure::unprinted)?;
    } else {
        // A page has room for more than a terminal.
        let shown = list.shown;
        list.shown = shown.max(MOST_ON_PAGE);
        let paged = args.page.html.as_ref().map(|_| json::captures("read", &list));
        list.shown = shown;
        args.page.result(
            output,
            || paged.unwrap_or_else(|| json::captures("read", &list)),
            || charts::chosen(args, &list),
            |look| text::captures(&list, look),
        )?;
    }
    write_xplot(args, &list, output)?;
    Ok(Exit::Ok)
}

/// The graph of the first connection that is shown.
fn write_xplot(args: &ReadArgs, list: &CaptureList, output: Output) -> Result<(), Failure> {
    let Some(path) = &args.xplot else { return Ok(()) };
    let charts = charts::of_first(args, list, 1);
    let Some(graph) = charts.traces.first() else {
        let text = charts.note.unwrap_or_else(|| "there is no connection to draw".to_owned());
        return Err(Failure::new(Exit::InputInvalid, &format!("{}: {text}", page::writing(path))));
    };
    page::put(output, "xplot", path, xplot::graph(graph).as_bytes())
}

/// Before all is read: whether a file can go there that is no capture.
fn check_other(path: &Path, captures: &[PathBuf]) -> Result<(), Failure> {
    let there = fs::canonicalize(path).ok();
    if there.is_some() && captures.iter().any(|capture| fs::canonicalize(capture).ok() == there) {
        let text = format!("{} is one of the captures; give another file", clean(&path.display().to_string()));
        return Err(Failure::new(Exit::Usage, &text));
    }
    page::check_folder(path)
}

fn write_parquet(path: &Path, list: &CaptureList) -> Result<(), Failure> {
    let mut columns = Vec::new();
    parquet::captures(list, &mut columns).map_err(|error| {
        Failure::new(Exit::System, &format!("{}: {}", page::writing(path), clean(&error.to_string())))
    })?;
    page::write(path, &columns)
}

fn bar(output: Output) -> ProgressBar {
    if !output.shows_progress() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} {wide_msg}").expect("the template has known keys only");
    bar.set_style(style.tick_chars("|/-\\ "));
    bar
}

fn show(bar: &ProgressBar, progress: &Progress) {
    if bar.is_hidden() {
        return;
    }
    let of = progress.of.map(|of| format!(" of {}", Bytes::new(of))).unwrap_or_default();
    let file = progress.file + 1;
    bar.set_message(format!("file {file}: {}{of}, {} packets", Bytes::new(progress.bytes), progress.packets));
    bar.tick();
}
