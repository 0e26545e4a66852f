//! Whether others could have put their own into a file or a folder that decides what is written as its user.
//!
//! The rule of sshd's StrictModes: a file, and every folder above it, belongs to this user or to root, and nobody else
//! may write it; a folder above may be open to all if it is sticky, as /tmp is, because what is in it is still its
//! owner's. What is *not* here: the secrecy of files, which `tune` looks at for keys.

use std::{fs::OpenOptions, io, path::Path};

/// Has an open fail where the last part of the path is a symbolic link.
pub(crate) fn without_links(options: &mut OpenOptions) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default());
    }
    #[cfg(not(unix))]
    {
        _ = options;
    }
}

/// Has a file that is made be readable and writable for its owner alone.
pub(crate) fn for_owner_only(options: &mut OpenOptions) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    #[cfg(not(unix))]
    {
        _ = options;
    }
}

/// An error where somebody else could have written into `folder`, or taken its place.
#[cfg(unix)]
pub(crate) fn folder(folder: &Path) -> io::Result<()> {
    // Links on the way are resolved first: what counts is who may change what they lead to.
    let real = std::fs::canonicalize(folder)?;
    for (depth, folder) in real.ancestors().enumerate() {
        check(&std::fs::symlink_metadata(folder)?, folder, depth > 0)?;
    }
    Ok(())
}

/// An error where somebody else could have written `file`, whose folder is trusted, or where it is no plain file; no
/// file is no error.
#[cfg(unix)]
pub(crate) fn file(file: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(file) {
        Ok(found) if found.is_file() => check(&found, file, false),
        Ok(_) => Err(io::Error::other(format!("{} is no plain file", file.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn check(found: &std::fs::Metadata, path: &Path, is_above: bool) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    const STICKY: u32 = 0o1000;
    let me = rustix::process::geteuid().as_raw();
    let refused =
        |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {why}", path.display())));
    let owner = found.uid();
    if owner != me && owner != 0 && !(is_above && owner == unmapped()) {
        return refused(format!("belongs to user {owner}, and neither to you nor to root"));
    }
    if found.mode() & 0o022 != 0 && !(is_above && found.mode() & STICKY != 0) {
        return refused(format!("can be written by others (mode {:o})", found.mode() & 0o7777));
    }
    Ok(())
}

/// How a user namespace shows the owner of the folders above, which it has no number for; in the system's own namespace,
/// a user who owns nothing.
#[cfg(unix)]
fn unmapped() -> u32 {
    const OVERFLOW: u32 = 65_534;
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let whole = map.split_whitespace().eq(["0", "0", "4294967295"]);
    if map.is_empty() || whole { 0 } else { OVERFLOW }
}

/// Windows gives a user's folders to that user alone by inheritance.
#[cfg(not(unix))]
pub(crate) fn folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn file(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn a_folder_that_others_may_write_is_refused_and_a_sticky_one_above_it_is_not() {
        let above = tempfile::tempdir().expect("a folder");
        let inner = above.path().join("state");
        fs::create_dir(&inner).expect("made");
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
        set(&inner, 0o700);
        folder(&inner).expect("ours alone");
        set(above.path(), 0o777);
        folder(&inner).expect_err("anybody may put another folder in its place");
        set(above.path(), 0o1777);
        folder(&inner).expect("as /tmp is");
        set(&inner, 0o770);
        folder(&inner).expect_err("its group may write it");
    }

    #[test]
    fn a_folder_of_another_user_is_refused() {
        let above = tempfile::tempdir().expect("a folder");
        if std::os::unix::fs::chown(above.path(), Some(1), None).is_err() {
            eprintln!("skipped: a_folder_of_another_user_is_refused: changing an owner takes root");
            return;
        }
        let refused = folder(above.path()).expect_err("another's").to_string();
        assert!(refused.contains("belongs to user 1"), "{refused}");
    }
}
