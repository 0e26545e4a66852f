//! `fullpipe read` of what `fullpipe watch --record` wrote.

use std::{
    fs::File,
    io::{BufReader, Read},
    num::NonZeroUsize,
    path::Path,
};

use fullpipe_report::{clean, json, text};
use fullpipe_watch::{Filter, Frame, record};

use super::{Ended, USUALLY_SHOWN};
use crate::{args::ReadArgs, exit::Exit, failure::Failure, output::Output};

/// Whether a file is a recording: JSON, where no capture begins with a brace.
pub(super) fn is_one(file: &Path) -> bool {
    let first = File::open(file).and_then(|mut file| {
        let mut first = [0];
        file.read_exact(&mut first).map(|()| first)
    });
    // What can't be opened is said by who reads captures. A pipe can't be looked into first.
    file.metadata().is_ok_and(|about| about.is_file()) && first.is_ok_and(|first| first == *b"{")
}

pub(super) fn run(file: &Path, args: &ReadArgs, output: Output) -> Ended {
    let name = clean(&file.display().to_string()).into_owned();
    refuse(&name, args)?;
    let opened = File::open(file).map_err(|error| Failure::system(&format!("opening {name}"), &error))?;
    let mut whole = record::whole(BufReader::new(opened), &Filter::default())
        .map_err(|error| Failure::new(Exit::InputInvalid, &format!("reading {name}: {error}")))?;
    let count = whole.frame.rows.len();
    if let Some(number) = args.conn {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1)).filter(|&at| at < count);
        let Some(at) = at else {
            let text = format!("there is no connection {number} in {name}; give one from 1 to {count}");
            return Err(Failure::new(Exit::Usage, &text));
        };
        whole.frame.rows = vec![whole.frame.rows.swap_remove(at)];
        let rows = &whole.frame.rows;
        output.result(
            || json::recording(&whole),
            |look| rows.iter().map(|row| text::watch_story(row, text::Look { verbose: true, ..look })).collect(),
        )
    } else {
        let usually = if output.is_json() { usize::MAX } else { USUALLY_SHOWN };
        let frame: &mut Frame = &mut whole.frame;
        frame.rows.truncate(args.top.map_or(usually, NonZeroUsize::get));
        output.result(|| json::recording(&whole), |look| text::recording(&whole, look))
    }
    .map(|()| Exit::Ok)
    .map_err(Failure::unprinted)
}

/// What only packets have.
fn refuse(name: &str, args: &ReadArgs) -> Result<(), Failure> {
    let others = args.files.len() > 1;
    let has_page = args.page.files().next().is_some();
    if others || args.filter.is_some() || args.csv || args.parquet.is_some() || args.xplot.is_some() || has_page {
        let text = format!(
            "{name} is a recording of `fullpipe watch`, which is read alone, with --conn, --top and --json; to see a part of it \
             or its course use `fullpipe watch {name} --filter TERMS`"
        );
        return Err(Failure::new(Exit::Usage, &text));
    }
    Ok(())
}
