//! Files that a user gives: read whole, but never more than a reader takes.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use fullpipe_report::clean;

use crate::{exit::Exit, failure::Failure};

/// The bytes of a file and the name that messages give it.
pub(super) struct Input {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl Input {
    /// Reads a file of at most `largest` bytes; `-` is standard input.
    pub(super) fn read(path: &Path, largest: usize) -> Result<Self, Failure> {
        let name = if path == Path::new("-") { "standard input".to_owned() } else { clean_name(path) };
        let failed = |error: &io::Error| {
            let exit = match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => Exit::InputInvalid,
                _ => crate::failure::exit_of_io(error),
            };
            Failure::new(
                exit,
                &format!("reading {name}: {error}; give a file that is there, or `-` for standard input"),
            )
        };
        let mut bytes = Vec::new();
        // One byte more than is taken tells a file that is too large, whatever its size.
        let limit = u64::try_from(largest).unwrap_or(u64::MAX).saturating_add(1);
        let read = if path == Path::new("-") {
            io::stdin().lock().take(limit).read_to_end(&mut bytes)
        } else {
            File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
        };
        read.map_err(|error| failed(&error))?;
        if bytes.len() > largest {
            let message = format!(
                "reading {name}: it is larger than {} MiB, which no file of settings is; save only the part that has \
                 them",
                largest >> 20
            );
            return Err(Failure::new(Exit::InputInvalid, &message));
        }
        Ok(Self { name, bytes })
    }
}

fn clean_name(path: &Path) -> String {
    clean(&path.to_string_lossy()).into_owned()
}
