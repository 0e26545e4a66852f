//! The mark that a journal was begun, in a file beside it: whoever finds an empty journal knows that it was not always so.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::{plain_file, trusted};

fn place(state_dir: &Path) -> PathBuf {
    state_dir.join("journal.begun")
}

/// Whether a journal was begun in this folder.
pub(super) fn is_marked(state_dir: &Path) -> io::Result<bool> {
    place(state_dir).try_exists()
}

/// Marks that there is a journal from now on. It is on disk when this returns.
pub(super) fn mark(state_dir: &Path) -> io::Result<()> {
    if is_marked(state_dir)? {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    trusted::without_links(&mut options);
    trusted::for_owner_only(&mut options);
    let mut file = options.open(place(state_dir))?;
    file.write_all(b"fullpipe began a journal in this folder; if journal.sqlite is empty or missing, it was lost\n")?;
    file.sync_all()?;
    plain_file::sync_folder(state_dir)?;
    // The folder itself lasts when the one that it is in is on disk (fsync(2)), and so on: this may be its first use. Nothing
    // was made in a folder that can't be opened.
    for folder in state_dir.ancestors().skip(1) {
        match plain_file::sync_folder(folder) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
}
