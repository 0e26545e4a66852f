//! The page on which settings are tried: written, and opened where somebody looks.

use std::{
    ffi::OsString,
    fs::OpenOptions,
    hash::{BuildHasher, RandomState},
    io::Write,
    path::PathBuf,
};

use fullpipe_report::html::{self, Choices, Pool, Situation, State};
use fullpipe_sim::{PLATFORMS, knob};

use super::base::{PLATFORM, QUEUE, RATE, RTT};
use crate::{
    args::{self, Command, WhatIfArgs},
    commands::Ended,
    exit::Exit,
    failure::Failure,
    output::Output,
    page,
};

/// Situations to begin with: those of the published experiments that one connection over one link can show.
const PRESETS: &[(&str, [&str; 8])] = &[
    ("64,512 B at 80 ms", ["100M", "80ms", "0", "1bdp", "linux-6.18", "linux-6.18", "receiver.window=64512", ""]),
    ("... sized by the platform", ["100M", "80ms", "0", "1bdp", "linux-6.18", "linux-6.18", "", ""]),
    ("Windows XP on ADSL 2", ["7M", "36.2ms", "0", "1bdp", "linux-6.18", "windows-xp", "", ""]),
    ("Windows XP on a mobile link", ["1.8M", "216ms", "0", "1bdp", "linux-6.18", "windows-xp", "", ""]),
    ("NetBurner, 5 buffers", ["25M", "7.45ms", "0", "1bdp", "netburner", "linux-6.18", "sender.buffers=5", "4MB"]),
    ("NetBurner, 43 buffers", ["25M", "7.45ms", "0", "1bdp", "netburner", "linux-6.18", "sender.buffers=43", "4MB"]),
    ("a loss of 0.01 %", ["100M", "80ms", "0.01%", "1bdp", "linux-6.18", "linux-6.18", "", ""]),
    ("messages of 2 KB", ["100M", "40ms", "0", "1bdp", "linux-6.18", "linux-6.18", "sender.message=2k", ""]),
    ("jumbo frames", ["1G", "10ms", "0.01%", "1bdp", "linux-6.18", "linux-6.18", "path.mtu=9000", ""]),
    ("a shallow queue", ["100M", "80ms", "0", "20p", "linux-6.18", "linux-6.18", "", ""]),
];

/// And one of a device's pool: what `fullpipe share` says of it.
const POOL: (&str, [&str; 6]) =
    ("256 buffers shared out", ["256", "4x bulk 25M 15ms, 2x interactive", "", "138us", "100M", ""]);

/// Writes the page where `--interactive` says, or opens it.
pub(super) fn run(args: &WhatIfArgs, output: Output) -> Ended {
    let text = html::what_if(&choices(args));
    let path = match &args.interactive {
        Some(path) => {
            page::write(path, text.as_bytes())?;
            path.clone()
        }
        None => temporary(&text)?,
    };
    let shown = path.display().to_string();
    let message = if !args.open {
        format!("page: {shown}")
    } else if page::open(path.as_os_str()) {
        format!("opened {shown}")
    } else {
        format!("no browser could be started: open {shown}")
    };
    super::super::printed(output.page("what-if", &format!("{message}\n"))).map(|_| Exit::Ok)
}

/// The page as it is without any flag.
pub(crate) fn usual() -> String {
    let line = ["fullpipe", "what-if"].map(OsString::from);
    match args::parse(&line).map(|cli| cli.command) {
        Ok(Command::WhatIf(args)) => html::what_if(&choices(&args)),
        _ => unreachable!("`what-if` takes no argument that must be given"),
    }
}

fn choices(args: &WhatIfArgs) -> Choices {
    let state = |words: &[&str; 8]| {
        let [rate, rtt, loss, queue, from, to, set, bytes] = words.map(str::to_owned);
        State { rate, rtt, loss, queue, from, to, set, bytes }
    };
    let pool = {
        let [buffers, sockets, reserve, per_packet, link, max_wait] = POOL.1.map(str::to_owned);
        Pool { buffers, sockets, reserve, per_packet, link, max_wait }
    };
    let presets = PRESETS.iter().map(|(name, words)| ((*name).to_owned(), Situation::Path(state(words))));
    let or = |given: Option<&String>, usual: &str| given.map_or_else(|| usual.to_owned(), Clone::clone);
    // As the flags take them: a bare number of bit/s, and microseconds.
    let rate = args.rate.unwrap_or(RATE).bps();
    let rtt = args.rtt.unwrap_or(RTT).get();
    Choices {
        first: State {
            rate: if rate.is_multiple_of(1_000_000) { format!("{}M", rate / 1_000_000) } else { rate.to_string() },
            rtt: if rtt.is_multiple_of(1_000) { format!("{}ms", rtt / 1_000) } else { format!("{rtt}us") },
            loss: or(args.loss.as_ref(), "0"),
            queue: or(args.queue.as_ref(), QUEUE),
            from: or(args.from.as_ref(), PLATFORM),
            to: or(args.to.as_ref(), PLATFORM),
            set: args.set.join(","),
            bytes: args.bytes.map_or_else(String::new, |bytes| bytes.get().to_string()),
        },
        presets: presets.chain([(POOL.0.to_owned(), Situation::Pool(pool.clone()))]).collect(),
        pool,
        platforms: PLATFORMS.iter().map(|platform| platform.name.to_owned()).collect(),
        settings: knob::KNOBS.iter().map(|knob| (knob.key.to_owned(), knob.meaning.to_owned())).collect(),
    }
}

/// A file of nobody else's, which the browser may read after this program has ended.
fn temporary(text: &str) -> Result<PathBuf, Failure> {
    let name = format!("fullpipe-what-if-{:016x}.html", RandomState::new().hash_one(0_u8));
    let path = std::env::temp_dir().join(name);
    let write = || OpenOptions::new().write(true).create_new(true).open(&path)?.write_all(text.as_bytes());
    write().map_err(|error| Failure::system(&page::writing(&path), &error))?;
    Ok(path)
}
