//! A result as a page or a picture in a file, and files that a result goes to besides. What is *not* here: the page (`report`).

use std::{
    ffi::OsStr,
    fs, io,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use clap::{Args, ValueHint};
use fullpipe_host::persist;
use fullpipe_report::{
    clean,
    html::{self, Charts},
    json,
    picture::{self, Format},
    text::Look,
};
use serde_json::Value;

use crate::{exit::Exit, failure::Failure, output::Output};

/// The flag of commands whose results can be looked at.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PageArgs {
    /// Also write the result as a page: one HTML file with charts, for any browser, offline
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Pages and pictures")]
    pub(crate) html: Option<PathBuf>,
    /// Also write one chart as a picture, for a ticket or a wiki
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Pages and pictures")]
    pub(crate) svg: Option<PathBuf>,
    /// Also write it as PNG, 1,920 pixels wide
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Pages and pictures")]
    pub(crate) png: Option<PathBuf>,
    /// Chart that --svg and --png draw, by its number on the page; a number that is too large lists them [default: 1]
    #[arg(long, value_name = "N", value_parser = crate::args::positive::<NonZeroUsize>, help_heading = "Pages and pictures")]
    pub(crate) chart: Option<NonZeroUsize>,
}

impl PageArgs {
    /// Before anything is done: whether the page can go there.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.chart.is_some() && self.svg.is_none() && self.png.is_none() {
            return Err(Failure::new(Exit::Usage, "--chart says what is drawn: give --svg FILE or --png FILE, too"));
        }
        self.files().try_for_each(|path| check_folder(path))
    }

    /// The files that will be written.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.html, &self.svg, &self.png].into_iter().flatten()
    }

    /// Prints a result, and writes its page where one was asked for. `charts` is what a page shows beside the document.
    pub(crate) fn result(
        &self,
        output: Output,
        document: impl FnOnce() -> Value,
        charts: impl FnOnce() -> Charts,
        text: impl FnOnce(Look) -> String,
    ) -> Result<(), Failure> {
        if self.files().next().is_none() {
            return output.result(document, text).map_err(Failure::unprinted);
        }
        let (document, charts) = (document(), charts());
        output.result(|| document.clone(), text).map_err(Failure::unprinted)?;
        let number = self.chart.map_or(1, NonZeroUsize::get);
        for (path, format) in [(&self.svg, Format::Svg), (&self.png, Format::Png)] {
            let Some(path) = path else { continue };
            let picture = picture::numbered(&document, &charts, number, format)
                .ok_or_else(|| no_such_chart(number, &picture::titles(&document, &charts)))?
                .map_err(|error| Failure::new(Exit::System, &format!("{}: {error}", writing(path))))?;
            put(output, "picture", path, &picture)?;
        }
        if let Some(path) = &self.html {
            put(output, "page", path, html::page(&document, charts).as_bytes())?;
        }
        Ok(())
    }

    /// Writes the page of a command that failed: where a page was asked for, nobody shall take an older one for its result. What was
    /// wrong with the command line, or not agreed to, is no result.
    pub(crate) fn failed(&self, command: &str, failure: &Failure, output: Output) {
        let Some(path) = self.html.as_ref().filter(|_| !matches!(failure.exit, Exit::Usage | Exit::NotConfirmed))
        else {
            return;
        };
        let page = html::page(&json::problem(command, &failure.problem()), Charts::default());
        // The error itself was printed; that its page can't be written is a second one of the same run.
        if put(output, "page", path, page.as_bytes()).is_err() {
            output.remark(&format!("no page: {} can't be written\n", clean(&path.display().to_string())));
        }
    }
}

/// Writes a file and says so.
pub(crate) fn put(output: Output, what: &str, path: &Path, content: &[u8]) -> Result<(), Failure> {
    write(path, content)?;
    output.remark(&format!("{what}: {}\n", clean(&path.display().to_string())));
    Ok(())
}

fn no_such_chart(number: usize, titles: &[String]) -> Failure {
    let listed = titles.iter().enumerate().map(|(place, title)| format!("{} {title}", place + 1));
    let listed = listed.collect::<Vec<_>>().join("; ");
    let text = match titles.len() {
        0 => "this result has no chart".to_owned(),
        _ => format!("this result has no chart {number}; it has: {listed}"),
    };
    Failure::new(Exit::Usage, &text)
}

/// Before all else: whether there is a folder for the file.
pub(crate) fn check_folder(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    fs::read_dir(folder.unwrap_or_else(|| Path::new(".")))
        .map(drop)
        .map_err(|error| Failure::system(&writing(path), &error))
}

/// Writes a file that is there whole or not at all.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    // What is no file, such as a pipe, can't be replaced.
    let put: io::Result<()> = match fs::metadata(path) {
        Ok(there) if !there.is_file() => fs::write(path, content),
        _ => persist::write_atomically(&fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()), content, None),
    };
    put.map_err(|error| Failure::system(&writing(path), &error))
}

/// The operation, for an error.
pub(crate) fn writing(path: &Path) -> String {
    format!("writing {}", clean(&path.display().to_string()))
}

/// Whether a browser could be started.
pub(crate) fn open(what: &OsStr) -> bool {
    let program = match std::env::consts::OS {
        "windows" => "explorer",
        "macos" => "open",
        _ => "xdg-open",
    };
    let nothing = Stdio::null;
    Command::new(program).arg(what).stdin(nothing()).stdout(nothing()).stderr(nothing()).spawn().is_ok()
}
