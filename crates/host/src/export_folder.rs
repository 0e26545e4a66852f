//! The folder that an export is written into: all of its files or none.
//!
//! Every file is written beside its place under another name and on disk before the first takes its place, so that a full
//! disk or a missing right leaves the folder as it was. What is *not* here: what the files say (`fullpipe_knobs::export`).

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::persist;

/// A folder that files may be written into.
#[derive(Debug)]
pub struct ExportFolder {
    path: PathBuf,
    is_new: bool,
}

/// Why an export was not written. The folder is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportFolderError {
    /// Something is in the folder.
    #[error("can't write into {}: it has files already; name a new or empty folder, or give --force to write over files of the same names", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The place is taken by something that is no folder.
    #[error("can't write into {}: it is no folder; name a new or empty folder", path.display())]
    NotAFolder {
        /// The place.
        path: PathBuf,
    },
    /// The system refused.
    #[error("can't {operation} {}: {source}; nothing was written", path.display())]
    System {
        /// `make`, `list`, `write`.
        operation: &'static str,
        /// The folder or the file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl ExportFolder {
    /// A folder that is new or empty; with `force` one that has files, of which those of the same names are replaced.
    /// Nothing is made yet.
    ///
    /// # Errors
    ///
    /// Where the folder has files, is none, or can't be listed.
    pub fn new(path: &Path, force: bool) -> Result<Self, ExportFolderError> {
        let system = |source| ExportFolderError::System { operation: "list", path: path.to_owned(), source };
        match fs::read_dir(path) {
            Ok(mut entries) => {
                if !force && entries.next().transpose().map_err(system)?.is_some() {
                    return Err(ExportFolderError::NotEmpty { path: path.to_owned() });
                }
                Ok(Self { path: path.to_owned(), is_new: false })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self { path: path.to_owned(), is_new: true }),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                Err(ExportFolderError::NotAFolder { path: path.to_owned() })
            }
            Err(error) => Err(system(error)),
        }
    }

    /// Writes files: their names, without a folder, their bytes, and whether they are scripts to be run.
    ///
    /// # Errors
    ///
    /// Where the system refuses; nothing is left in the folder then, and the folder itself goes where it was made.
    pub fn write(self, files: &[(&str, &[u8], bool)]) -> Result<(), ExportFolderError> {
        if self.is_new {
            let made = fs::create_dir_all(&self.path);
            made.map_err(|source| ExportFolderError::System { operation: "make", path: self.path.clone(), source })?;
        }
        self.put(files).inspect_err(|_| {
            for (name, ..) in files {
                persist::clear_leftover(&self.path.join(name));
            }
            if self.is_new {
                // It goes where it is empty; what somebody else put there meanwhile stays.
                fs::remove_dir(&self.path).unwrap_or_default();
            }
        })
    }

    fn put(&self, files: &[(&str, &[u8], bool)]) -> Result<(), ExportFolderError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| ExportFolderError::System { operation: "write", path, source }
        };
        let mut ready = Vec::with_capacity(files.len());
        for (name, contents, executable) in files {
            let path = self.path.join(name);
            if path.is_dir() {
                return Err(failed(&path)(io::ErrorKind::IsADirectory.into()));
            }
            let mode = if *executable { 0o755 } else { 0o644 };
            let temporary = persist::write_beside(&path, contents, Some(mode)).map_err(failed(&path))?;
            ready.push((temporary, path));
        }
        for (temporary, path) in &ready {
            fs::rename(temporary, path).map_err(failed(path))?;
        }
        persist::sync_folder(&self.path).map_err(failed(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[(&str, &[u8], bool)] = &[("README.txt", b"read me", false), ("apply.sh", b"#!/bin/sh\n", true)];

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .expect("listed")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_new_folder_gets_the_files_and_nothing_else() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("a/b");
        ExportFolder::new(&folder, false).expect("free").write(FILES).expect("written");
        assert_eq!(names(&folder), ["README.txt", "apply.sh"]);
        #[cfg(unix)]
        assert_eq!(persist::mode(&folder.join("apply.sh")).map(|mode| mode & 0o111), Some(0o111));
    }

    #[test]
    fn a_folder_with_files_is_left_alone_unless_it_is_forced() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("README.txt"), "mine").expect("written");
        fs::write(folder.path().join("other"), "mine").expect("written");
        let refused = ExportFolder::new(folder.path(), false).expect_err("it has files");
        assert!(matches!(refused, ExportFolderError::NotEmpty { .. }), "{refused}");
        ExportFolder::new(folder.path(), true).expect("forced").write(FILES).expect("written");
        assert_eq!(names(folder.path()), ["README.txt", "apply.sh", "other"]);
        assert_eq!(fs::read(folder.path().join("README.txt")).expect("read"), b"read me");
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("apply.sh")).expect("a folder where a file is to be");
        let refused = ExportFolder::new(folder.path(), true).expect("forced").write(FILES).expect_err("no file");
        assert!(refused.to_string().contains("nothing was written"), "{refused}");
        assert_eq!(names(folder.path()), ["apply.sh"]);
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        assert!(matches!(ExportFolder::new(&file, false), Err(ExportFolderError::NotAFolder { .. })));
    }
}
