//! A result as a page in a file, and files that a result goes to besides. What is *not* here: the page (`report`).

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Args, ValueHint};
use fullpipe_host::persist;
use fullpipe_report::{
    clean,
    html::{self, Charts},
    text::Look,
};
use serde_json::Value;

use crate::{failure::Failure, output::Output};

/// The flag of commands whose results can be looked at.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PageArgs {
    /// Also write the result as a page: one HTML file with charts, for any browser, offline
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,
}

impl PageArgs {
    /// Before anything is done: whether the page can go there.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.html.as_deref().map_or(Ok(()), check_folder)
    }

    /// Prints a result, and writes its page where one was asked for. `charts` is what a page shows beside the document.
    pub(crate) fn result(
        &self,
        output: Output,
        document: impl FnOnce() -> Value,
        charts: impl FnOnce() -> Charts,
        text: impl FnOnce(Look) -> String,
    ) -> Result<(), Failure> {
        let failed = |error| Failure::system("writing to standard output", &error);
        let Some(path) = &self.html else { return output.result(document, text).map_err(failed) };
        let document = document();
        let page = html::page(&document, charts());
        output.result(|| document, text).map_err(failed)?;
        write(path, page.as_bytes())?;
        output.remark(&format!("page: {}\n", clean(&path.display().to_string())));
        Ok(())
    }
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
