//! Which boot-time file of FreeBSD keeps a setting, and that file with the setting in it.
//!
//! Sysctls go into `/etc/sysctl.conf`, what acts only after a restart into `/boot/loader.conf`, the MTU of an interface
//! into its `ifconfig_` line of `/etc/rc.conf`. Each of them has a `.local` file that is read after it and wins: a name
//! that is there is edited there. Works below any root, so that a folder can stand for the machine. What is *not* here:
//! writing the files, which [`apply`](crate::apply()) does, journal first.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use fullpipe_knobs::{Address, Change, Settings, TakesEffect, sysctl_conf};

use super::conf_file::{EditError, Style, set, value};
use crate::{
    BootFile, HostError, Lasting,
    persist::{self, present},
};

const SYSCTL: &str = "etc/sysctl.conf";
const LOADER: &str = "boot/loader.conf";
const RC: &str = "etc/rc.conf";

/// What a boot-time file can keep.
pub(crate) fn lasting(change: &Change) -> Lasting {
    match &change.knob {
        Address::Sysctl(_) if change.to.is_some() => Lasting::InFile,
        Address::Link { property, .. } if property == "mtu" && change.to.is_some() => Lasting::InFile,
        _ => persist::in_drop_in(change),
    }
}

/// Who takes a sysctl over from its file when the system starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeper {
    /// rc(8), from `/etc/sysctl.conf`.
    Usual,
    /// loader(8), before the kernel runs.
    Loader,
}

impl Keeper {
    /// The one that the catalogue's time for a change asks for.
    pub(crate) fn from_change(change: &Change) -> Self {
        if change.takes_effect == TakesEffect::Restart { Self::Loader } else { Self::Usual }
    }
}

/// The files below `root` with these changes in them.
pub(crate) fn files(root: &Path, changes: &[(&Change, Keeper)]) -> Result<Vec<BootFile>, HostError> {
    let mut files: Vec<BootFile> = Vec::new();
    for (change, keeper) in changes {
        let Some(to) = change.to.as_deref() else { continue };
        match &change.knob {
            Address::Sysctl(name) => {
                let (file, style) = match keeper {
                    Keeper::Loader => (LOADER, Style::Quoted),
                    Keeper::Usual => (SYSCTL, Style::Plain),
                };
                edit(&mut files, root, file, name, style, |_| Ok(to.to_owned()))?;
            }
            Address::Link { device, .. } => {
                // rc.subr makes names of variables so: `em0.100` is `ifconfig_em0_100`.
                let name = format!("ifconfig_{}", device.replace(['.', '-', '/', '+'], "_"));
                let default = assigned(&files, root, RC, "ifconfig_DEFAULT")?;
                edit(&mut files, root, RC, &name, Style::Quoted, |now| match (now, default) {
                    // A line of its own would take the default away from the interface.
                    (None, true) => Err(EditError::Default(name.clone())),
                    (now, _) => Ok(with_mtu(now.unwrap_or_default(), to)),
                })?;
            }
            _ => {}
        }
    }
    Ok(files)
}

/// Whether `path` is one of the files that [`files`] edits.
pub(crate) fn is_ours(root: &Path, path: &Path) -> bool {
    let known = |file: &str| path == root.join(file) || path == root.join(format!("{file}.local"));
    [SYSCTL, LOADER, RC].into_iter().any(known)
}

/// Notes where sysctl.conf sets what is in `settings`. Unlike Linux', this file has comments after values.
pub(super) fn note_origins(root: &Path, settings: &mut Settings) -> Result<(), HostError> {
    let mut parsed = Vec::new();
    for (file, name) in [(SYSCTL, "/etc/sysctl.conf"), ("etc/sysctl.conf.local", "/etc/sysctl.conf.local")] {
        // Only to look: whoever reads it at the start follows a link, too.
        let path = root.join(file);
        let content = match fs::read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(source) => {
                return Err(HostError::File { operation: "read", path: path.display().to_string(), source });
            }
        };
        let text = String::from_utf8_lossy(&content);
        let bare: Vec<&str> = text.lines().map(|line| line.split('#').next().unwrap_or_default()).collect();
        parsed.push((name, sysctl_conf::parse(&bare.join("\n")).0));
    }
    sysctl_conf::note_origins(settings, &parsed);
    Ok(())
}

/// Whether a file or its `.local` file sets a name.
fn assigned(files: &[BootFile], root: &Path, file: &str, name: &str) -> Result<bool, HostError> {
    for file in [file.to_owned(), format!("{file}.local")] {
        let file = load(files, root.join(file))?;
        // A line that can't be edited is there all the same.
        if value(&String::from_utf8_lossy(&file.content), name, Style::Quoted).map_or(true, |found| found.is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Edits one name in a file or in the `.local` file that wins over it.
fn edit(
    files: &mut Vec<BootFile>,
    root: &Path,
    file: &str,
    name: &str,
    style: Style,
    new: impl FnOnce(Option<&str>) -> Result<String, EditError>,
) -> Result<(), HostError> {
    let usual = load(files, root.join(file))?;
    let local = load(files, root.join(format!("{file}.local")))?;
    let refused = |path: &Path, error: EditError| HostError::File {
        operation: "edit",
        path: path.display().to_string(),
        source: io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
    };
    let text = |file: &BootFile| {
        String::from_utf8(file.content.clone()).map_err(|_| HostError::File {
            operation: "edit",
            path: file.path.display().to_string(),
            source: io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8; change it by hand"),
        })
    };
    let in_local = text(&local)?;
    let wins = value(&in_local, name, style).map_err(|error| refused(&local.path, error))?.is_some();
    let (mut chosen, content) = if wins {
        (local, in_local)
    } else {
        let content = text(&usual)?;
        (usual, content)
    };
    let edited = value(&content, name, style)
        .and_then(new)
        .and_then(|to| set(&content, name, &to, style))
        .map_err(|error| refused(&chosen.path, error))?;
    chosen.content = edited.into_bytes();
    match files.iter_mut().find(|file| file.path == chosen.path) {
        Some(file) => *file = chosen,
        None => files.push(chosen),
    }
    Ok(())
}

/// A file as an earlier change left it, or as it is on disk.
fn load(files: &[BootFile], path: PathBuf) -> Result<BootFile, HostError> {
    if let Some(file) = files.iter().find(|file| file.path == path) {
        return Ok(file.clone());
    }
    let before = present(&path)?;
    Ok(BootFile { path, content: before.clone().unwrap_or_default(), before })
}

/// The arguments of an `ifconfig_` line with this MTU: in the place of the one that is there, else at the end.
fn with_mtu(arguments: &str, mtu: &str) -> String {
    let mut words: Vec<&str> = arguments.split_whitespace().collect();
    match words.iter().position(|word| *word == "mtu") {
        Some(at) if at + 1 < words.len() => words[at + 1] = mtu,
        Some(_) => words.push(mtu),
        None => words.extend(["mtu", mtu]),
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mtu_takes_its_place_among_the_arguments() {
        for (before, after) in [
            ("", "mtu 9000"),
            ("DHCP", "DHCP mtu 9000"),
            ("inet 10.0.0.1/24 mtu 1500 media autoselect", "inet 10.0.0.1/24 mtu 9000 media autoselect"),
            ("inet 10.0.0.1/24 mtu", "inet 10.0.0.1/24 mtu 9000"),
        ] {
            assert_eq!(with_mtu(before, "9000"), after);
        }
    }
}
