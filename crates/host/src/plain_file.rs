//! Files that are read and replaced whole: never through a link, and with owner, mode and attributes as they were.
//!
//! A file that is a link, a device or one of several names for the same bytes was put there by somebody with a purpose
//! that a replacement would undo, so it is refused and left alone. What is *not* here: what the files say (`persist`,
//! `freebsd::boot`), and whether their folder can be trusted (`trusted`).

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use crate::trusted;

/// The bytes of a file; `None` where there is none.
///
/// # Errors
///
/// What the system says, and a link or anything else that is no plain file.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let Some(mut file) = open(path)? else { return Ok(None) };
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(Some(content))
}

/// A plain file, opened to be read without following a link.
fn open(path: &Path) -> io::Result<Option<File>> {
    // Before it is opened: opening a pipe would wait.
    match fs::symlink_metadata(path) {
        Ok(found) => refuse_strange(&found)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut options = OpenOptions::new();
    options.read(true);
    trusted::without_links(&mut options);
    match options.open(path) {
        Ok(file) => {
            // Once more, of what was opened: the name may mean another file by now.
            refuse_strange(&file.metadata()?)?;
            Ok(Some(file))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn refuse_strange(found: &fs::Metadata) -> io::Result<()> {
    let refused = |what: &str| Err(io::Error::other(format!("it is {what}, which is left alone")));
    if found.is_symlink() {
        return refused("a symbolic link");
    }
    if !found.is_file() {
        return refused("no plain file");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if found.nlink() > 1 {
            return refused("a file of several names (hard links)");
        }
    }
    Ok(())
}

/// Puts a file in place so that at any moment, power failure included, it is the old one or the new one. It keeps the
/// owner and the attributes of the old one; `mode` has its permission bits, where they are not to be the usual ones.
///
/// # Errors
///
/// What the system says, and a link or anything else that is no plain file; the old file is untouched then, and nothing
/// is left beside it.
pub fn write_atomically(file: &Path, content: &[u8], mode: Option<u32>) -> io::Result<()> {
    let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let old = open(file)?;
    let temporary = write_like(file, content, mode, old.as_ref())?;
    fs::rename(&temporary, file).and_then(|()| sync_folder(folder)).inspect_err(|_| {
        // Nothing more can be done about a leftover than not to leave it; the first error is the one that matters.
        fs::remove_file(&temporary).unwrap_or_default();
    })
}

/// Writes what is to take the place of a file under another name beside it, on disk; gives that name.
pub(crate) fn write_beside(file: &Path, content: &[u8], mode: Option<u32>) -> io::Result<PathBuf> {
    write_like(file, content, mode, None)
}

fn write_like(file: &Path, content: &[u8], mode: Option<u32>, old: Option<&File>) -> io::Result<PathBuf> {
    let temporary = temporary(file).ok_or(io::ErrorKind::InvalidInput)?;
    // What a killed run left, or a link that somebody put there: the name goes, not what it leads to.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let put = || {
        // A new file, or none: O_EXCL follows no link.
        let mut open = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        open.write_all(content)?;
        if let Some(old) = old {
            take_after(&open, old)?;
        }
        // After the owner, because a change of owner takes bits away.
        set_mode(&open, mode)?;
        open.sync_all()
    };
    put().inspect_err(|_| fs::remove_file(&temporary).unwrap_or_default())?;
    Ok(temporary)
}

/// Gives a new file the owner, the mode and the attributes (access lists, labels) of the old one.
#[cfg(unix)]
fn take_after(new: &File, old: &File) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let (theirs, ours) = (old.metadata()?, new.metadata()?);
    if (theirs.uid(), theirs.gid()) != (ours.uid(), ours.gid()) {
        std::os::unix::fs::fchown(new, Some(theirs.uid()), Some(theirs.gid()))?;
    }
    new.set_permissions(theirs.permissions())?;
    copy_attributes(new, old)
}

#[cfg(not(unix))]
fn take_after(_: &File, _: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(target_os = "linux")]
fn copy_attributes(new: &File, old: &File) -> io::Result<()> {
    use rustix::{
        fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr},
        io::Errno,
    };
    let mut names = vec![0u8; 1 << 16];
    let length = match flistxattr(old, &mut names) {
        Ok(length) => length,
        Err(Errno::NOTSUP) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for name in names[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let name = std::ffi::CString::new(name)?;
        let mut value = vec![0u8; 1 << 16];
        let length = fgetxattr(old, &name, &mut value)?;
        match fsetxattr(new, &name, &value[..length], XattrFlags::empty()) {
            // A label that the system gives by itself, and lets nobody give.
            Ok(()) | Err(Errno::NOTSUP | Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(all(unix, not(target_os = "linux")))]
fn copy_attributes(_: &File, _: &File) -> io::Result<()> {
    Ok(())
}

/// Where a file is written before it takes its place. One name, so that what a killed run leaves is used up by the next
/// one; nothing reads a name in `sysctl.d` that doesn't end in `.conf`.
fn temporary(file: &Path) -> Option<PathBuf> {
    let mut name = OsString::from(".");
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
    if open(file)?.is_none() {
        return Ok(());
    }
    fs::remove_file(file)?;
    file.parent().map_or(Ok(()), sync_folder)
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
fn set_mode(file: &File, mode: Option<u32>) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    // No file of ours runs as another user, whatever a journal says.
    mode.map_or(Ok(()), |mode| file.set_permissions(fs::Permissions::from_mode(mode & 0o777)))
}

#[cfg(not(unix))]
fn set_mode(_: &File, _: Option<u32>) -> io::Result<()> {
    Ok(())
}

/// A rename lasts when its folder is on disk (fsync(2)).
#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
pub(crate) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("is-a-folder");
        fs::create_dir(&target).expect("a folder");
        write_atomically(&target, b"text", None).expect_err("a file can't replace a folder");
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_neither_followed_nor_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let (link, target) = (folder.path().join("90.conf"), folder.path().join("theirs"));
        for there in [true, false] {
            if there {
                fs::write(&target, "theirs").expect("written");
            } else {
                fs::remove_file(&target).expect("removed");
            }
            fs::remove_file(&link).unwrap_or_default();
            std::os::unix::fs::symlink(&target, &link).expect("linked");
            read(&link).expect_err("a link");
            write_atomically(&link, b"ours", None).expect_err("a link");
            remove(&link).expect_err("a link");
            assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
            assert_eq!(fs::read(&target).ok(), there.then(|| b"theirs".to_vec()));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_place_of_the_new_file_is_not_written_through() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, target) = (folder.path().join("90.conf"), folder.path().join("theirs"));
        fs::write(&target, "theirs").expect("written");
        std::os::unix::fs::symlink(&target, folder.path().join(".90.conf.tmp")).expect("linked");
        write_atomically(&file, b"ours", None).expect("written");
        assert_eq!(fs::read(&target).expect("there"), b"theirs");
        assert_eq!(fs::read(&file).expect("there"), b"ours");
        assert!(!fs::symlink_metadata(&file).expect("there").is_symlink());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_of_several_names_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, other) = (folder.path().join("90.conf"), folder.path().join("other"));
        fs::write(&file, "theirs").expect("written");
        fs::hard_link(&file, &other).expect("linked");
        write_atomically(&file, b"ours", None).expect_err("two names");
        assert_eq!(fs::read(&other).expect("there"), b"theirs");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn owner_mode_and_attributes_of_a_file_stay() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("90.conf");
        fs::write(&file, "theirs").expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("set");
        let owned = std::os::unix::fs::chown(&file, Some(1), Some(4)).is_ok();
        let marked = rustix::fs::setxattr(&file, "user.note", b"mine", rustix::fs::XattrFlags::empty()).is_ok();
        write_atomically(&file, b"ours", None).expect("written");
        let now = fs::metadata(&file).expect("there");
        assert_eq!(now.mode() & 0o7777, 0o640);
        if owned {
            assert_eq!((now.uid(), now.gid()), (1, 4));
        } else {
            eprintln!("skipped: owner_mode_and_attributes_of_a_file_stay: changing an owner takes root");
        }
        if marked {
            let mut value = [0u8; 8];
            let length = rustix::fs::getxattr(&file, "user.note", &mut value).expect("there");
            assert_eq!(&value[..length], b"mine");
        }
    }

    #[cfg(unix)]
    #[test]
    fn no_file_gets_a_mode_that_runs_as_its_owner() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("90.conf");
        write_atomically(&file, b"ours", Some(0o4755)).expect("written");
        assert_eq!(mode(&file), Some(0o755));
    }
}
