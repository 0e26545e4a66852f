//! One program at a time changes settings.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, Write},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use super::JournalError;
use crate::trusted;

/// How long another run is waited for: a server holds the lock for one order at a time.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often is looked whether it is free.
const LOOK: Duration = Duration::from_millis(20);

/// An advisory lock (flock(2)) on a file of the state folder, which the system drops when the program ends, however it
/// ends. The file holds the holder's process number for the other's error message, and stays.
pub(super) struct Lock {
    file: File,
}

impl Lock {
    pub(super) fn take(state_dir: &Path) -> Result<Self, JournalError> {
        let failed = |source| JournalError::StateDir { path: state_dir.to_owned(), source };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        trusted::without_links(&mut options);
        trusted::for_owner_only(&mut options);
        let mut file = options.open(state_dir.join("journal.lock")).map_err(failed)?;
        let begin = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if begin.elapsed() < PATIENCE => thread::sleep(LOOK),
                Err(TryLockError::WouldBlock) => {
                    let mut text = String::new();
                    let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                    return Err(JournalError::JournalLocked { path: state_dir.to_owned(), pid });
                }
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
        // Only a courtesy to the one who is refused: on a full disk the lock holds all the same.
        let named =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
        named.unwrap_or_default();
        Ok(Self { file })
    }
}

impl Drop for Lock {
    /// Closing alone would leave the lock to a child that another thread has forked and that has not yet become another
    /// program: until then it has the same open file.
    fn drop(&mut self) {
        // A lock that can't be given back ends with the program.
        self.file.unlock().unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_given_back_is_free_whoever_else_has_its_file_open() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Lock::take(folder.path()).unwrap();
        // A second descriptor of the same open file is what a forked child has.
        let child = lock.file.try_clone().unwrap();
        assert!(matches!(Lock::take(folder.path()), Err(JournalError::JournalLocked { .. })));
        drop(lock);
        assert!(Lock::take(folder.path()).is_ok());
        drop(child);
    }
}
