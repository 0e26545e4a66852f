//! Drop-in files in sysctl.d, so that values last beyond a restart.
//!
//! We own one file there and keep in it what earlier runs set. What is *not* here: the undo, which puts back the
//! bytes that the journal holds; and what other files of the folder say (`fullpipe_knobs` explains their fights).

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use fullpipe_knobs::{
    Address, Change, Settings,
    persist::{SYSCTL_FILE, sysctl_drop_in},
};

use crate::HostError;

/// How a change lasts beyond a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// The system keeps it, as Windows does.
    ByItself,
    /// By a line of a boot-time file.
    InFile,
    /// Not at all: the network configuration has to say it.
    Not,
}

/// A boot-time file as it is and as it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its bytes now; `None` where there is none.
    pub before: Option<Vec<u8>>,
    /// Its bytes as they are to be.
    pub content: Vec<u8>,
}

/// A drop-in holds only sysctls, and none that is to be absent.
pub(crate) fn in_drop_in(change: &Change) -> Lasting {
    if matches!(change.knob, Address::Sysctl(_)) && change.to.is_some() { Lasting::InFile } else { Lasting::Not }
}

/// The drop-in of a sysctl.d folder with these changes.
pub(crate) fn drop_in(folder: &Path, changes: &[&Change]) -> Result<Vec<BootFile>, HostError> {
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let path = folder.join(file_name());
    let before = present(&path)?;
    let content = content(before.as_deref().map(String::from_utf8_lossy).as_deref(), changes).into_bytes();
    Ok(vec![BootFile { path, before, content }])
}

/// The bytes of a file; `None` where there is none.
pub(crate) fn present(path: &Path) -> Result<Option<Vec<u8>>, HostError> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(HostError::File { operation: "read", path: path.display().to_string(), source }),
    }
}

/// The folder for the drop-in: `FULLPIPE_SYSCTL_DIR`, else that of [`SYSCTL_FILE`].
pub fn sysctl_dir() -> PathBuf {
    let usual = || Path::new(SYSCTL_FILE).parent().unwrap_or_else(|| Path::new("/")).to_owned();
    std::env::var_os("FULLPIPE_SYSCTL_DIR").filter(|dir| !dir.is_empty()).map_or_else(usual, PathBuf::from)
}

/// The name of the drop-in.
pub(crate) fn file_name() -> &'static str {
    SYSCTL_FILE.rsplit('/').next().unwrap_or(SYSCTL_FILE)
}

/// The drop-in with these changes added to what it says already of other settings.
///
/// It is made of blocks with an empty line between them: the heading, and one for each setting with its reason.
pub(crate) fn content(present: Option<&str>, changes: &[&Change]) -> String {
    let changes: Vec<Change> = changes.iter().map(|change| (*change).clone()).collect();
    let keys: Vec<String> = changes.iter().map(|change| change.knob.to_string()).collect();
    let new = sysctl_drop_in(&changes, &Settings::default()).content;
    let of_others = |block: &&str| !block.lines().filter_map(key).any(|key| keys.iter().any(|changed| changed == key));
    let kept = present.unwrap_or_default().split("\n\n").filter(of_others);
    // The file has its heading already.
    let added = new.split("\n\n").skip(usize::from(present.is_some()));
    let blocks: Vec<&str> =
        kept.chain(added).map(|block| block.trim_matches('\n')).filter(|block| !block.is_empty()).collect();
    blocks.join("\n\n") + "\n"
}

/// What a line sets.
fn key(line: &str) -> Option<&str> {
    let (key, _) = line.split_once('=')?;
    let key = key.trim().trim_start_matches('-');
    (!key.starts_with(['#', ';'])).then_some(key)
}

/// Puts a file in place so that at any moment, power failure included, it is the old one or the new one. `mode` has its
/// permission bits, where they are not to be the usual ones.
///
/// # Errors
///
/// What the system says; the old file is untouched then, and nothing is left beside it.
pub fn write_atomically(file: &Path, content: &[u8], mode: Option<u32>) -> io::Result<()> {
    let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let temporary = write_beside(file, content, mode)?;
    fs::rename(&temporary, file).and_then(|()| sync_folder(folder)).inspect_err(|_| {
        // Nothing more can be done about a leftover than not to leave it; the first error is the one that matters.
        fs::remove_file(&temporary).unwrap_or_default();
    })
}

/// Writes what is to take the place of a file under another name beside it, on disk; gives that name.
pub(crate) fn write_beside(file: &Path, content: &[u8], mode: Option<u32>) -> io::Result<PathBuf> {
    let temporary = temporary(file).ok_or(io::ErrorKind::InvalidInput)?;
    let put = || {
        let mut open = fs::File::create(&temporary)?;
        open.write_all(content)?;
        set_mode(&open, mode)?;
        open.sync_all()
    };
    put().inspect_err(|_| fs::remove_file(&temporary).unwrap_or_default())?;
    Ok(temporary)
}

/// Where a file is written before it takes its place. One name, so that what a killed run leaves is used up by the next
/// one; nothing reads a name in `sysctl.d` that doesn't end in `.conf`.
fn temporary(file: &Path) -> Option<PathBuf> {
    let mut name = std::ffi::OsString::from(".");
    name.push(file.file_name()?);
    name.push(".tmp");
    Some(file.with_file_name(name))
}

/// Takes away what a run that was killed while it wrote `file` left beside it.
pub(crate) fn clear_leftover(file: &Path) {
    if let Some(temporary) = temporary(file) {
        // Most often there is none; and one that can't be removed does no harm.
        fs::remove_file(temporary).unwrap_or_default();
    }
}

/// Takes a file away for good; no file is no error.
pub(crate) fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Err(_) => Ok(()),
        Ok(()) => file.parent().map_or(Ok(()), sync_folder),
    }
}

/// The permission bits of a file.
pub(crate) fn mode(file: &Path) -> Option<u32> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(file).ok().map(|metadata| metadata.permissions().mode() & 0o7777)
    }
    #[cfg(not(unix))]
    {
        _ = file;
        None
    }
}

#[cfg(unix)]
fn set_mode(file: &fs::File, mode: Option<u32>) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    mode.map_or(Ok(()), |mode| file.set_permissions(fs::Permissions::from_mode(mode)))
}

#[cfg(not(unix))]
fn set_mode(_: &fs::File, _: Option<u32>) -> io::Result<()> {
    Ok(())
}

/// A rename lasts when its folder is on disk (fsync(2)).
#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
pub(crate) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str, value: &str) -> Change {
        Change {
            host: "a".into(),
            knob: Address::sysctl(name),
            from: None,
            to: Some(value.into()),
            reason: format!("{name} is to be {value} = best"),
            arithmetic: String::new(),
            memory_worst_case: None,
            takes_effect: fullpipe_knobs::TakesEffect::NewConnections,
            undo: String::new(),
            source: String::new(),
        }
    }

    #[test]
    fn a_drop_in_keeps_what_it_says_of_other_settings() {
        let first = content(None, &[&change("net.ipv4.tcp_rmem", "1 2 3"), &change("net.ipv4.tcp_ecn", "1")]);
        let second = content(Some(&first), &[&change("net.ipv4.tcp_rmem", "1 2 9")]);
        let set = |text: &str| text.lines().filter(|line| key(line).is_some()).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(set(&first), ["net.ipv4.tcp_rmem = 1 2 3", "net.ipv4.tcp_ecn = 1"]);
        assert_eq!(set(&second), ["net.ipv4.tcp_ecn = 1", "net.ipv4.tcp_rmem = 1 2 9"]);
        assert_eq!(second.matches("Written by").count(), 1);
        assert_eq!(second.matches("is to be 1 2 3").count(), 0, "the old reason goes with the old value");
        assert_eq!(content(Some(&second), &[&change("net.ipv4.tcp_rmem", "1 2 9")]), second);
    }

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("is-a-folder");
        fs::create_dir(&target).expect("a folder");
        write_atomically(&target, b"text", None).expect_err("a file can't replace a folder");
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1);
    }
}
