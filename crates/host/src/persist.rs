//! Drop-in files in sysctl.d, so that values last beyond a restart.
//!
//! We own one file there and keep in it what earlier runs set. What is *not* here: the undo, which puts back the
//! bytes that the journal holds; and what other files of the folder say (`fullpipe_knobs` explains their fights).

use std::{
    fmt,
    path::{Path, PathBuf},
};

use fullpipe_knobs::{
    Address, Change, Settings,
    persist::{SYSCTL_FILE, sysctl_drop_in},
};

use crate::{HostError, plain_file};

/// How a change lasts beyond a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// The system keeps it, as Windows does.
    ByItself,
    /// By a line of a boot-time file.
    InFile,
    /// Not at all: it belongs into the network configuration.
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

/// Why a drop-in does not decide what a setting is at the next boot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overridden {
    /// A file that is applied later sets it, too, and otherwise.
    Line {
        /// The setting.
        address: Address,
        /// What it is to be.
        wanted: String,
        /// Our file.
        drop_in: PathBuf,
        /// The other file.
        file: String,
        /// Its line.
        line: u32,
        /// What it says.
        value: String,
    },
    /// A file of the same name in a folder that comes first takes the place of the whole of ours (sysctl.d(5)).
    Hidden {
        /// Our file.
        drop_in: PathBuf,
        /// The other file.
        by: PathBuf,
    },
    /// Its folder is none of those that a system reads at boot.
    NotRead {
        /// Our file.
        drop_in: PathBuf,
    },
}

/// Why a setting is gone after a reboot although it was to last, and the way out.
pub fn no_survivor(address: &Address) -> String {
    format!("{address} does not survive a reboot; add it to the network configuration")
}

impl Overridden {
    /// Whether it says so of this setting; a file that is hidden or not read says it of all.
    pub fn concerns(&self, setting: &str) -> bool {
        match self {
            Self::Line { address, .. } => address.to_string() == setting,
            Self::Hidden { .. } | Self::NotRead { .. } => true,
        }
    }

    /// What happens at the next boot instead, in a few words.
    pub fn instead(&self) -> String {
        match self {
            Self::Line { file, line, .. } => format!("overridden at boot by {file}:{line}"),
            Self::Hidden { by, .. } => format!("overridden at boot by {}", by.display()),
            Self::NotRead { .. } => "in no folder that is read at boot".to_owned(),
        }
    }

    /// Whether another file wins; a folder that nothing reads at boot was chosen by whoever set `FULLPIPE_SYSCTL_DIR`.
    pub fn is_by_another(&self) -> bool {
        matches!(self, Self::Line { .. } | Self::Hidden { .. })
    }
}

impl fmt::Display for Overridden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { address, wanted, drop_in, file, line, value } => {
                write!(
                    f,
                    "{address}: {file}:{line} says `{value}`, is applied after {} and wins at the next boot; make it \
                     `{address} = {wanted}`, or take that line out",
                    drop_in.display()
                )?;
                if file.starts_with("/usr/lib/") || file.starts_with("/lib/") {
                    let name = file.rsplit('/').next().unwrap_or(file);
                    write!(f, ", in a copy of that file of a package, /etc/sysctl.d/{name}")?;
                }
                Ok(())
            }
            Self::Hidden { drop_in, by } => {
                let (drop_in, by) = (drop_in.display(), by.display());
                write!(
                    f,
                    "{by} takes the place of {drop_in} at the next boot, because its folder comes first (sysctl.d(5)), so \
                     nothing of it lasts; move {by} away, or set FULLPIPE_SYSCTL_DIR to its folder"
                )
            }
            Self::NotRead { drop_in } => write!(
                f,
                "{} is in none of the folders that a system reads at boot (sysctl.d(5)), and lasts only if something of \
                 yours reads it; without FULLPIPE_SYSCTL_DIR it is written to /etc/sysctl.d",
                drop_in.display()
            ),
        }
    }
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
    let content = content(before.as_deref(), changes);
    Ok(vec![BootFile { path, before, content }])
}

/// The bytes of a file; `None` where there is none. A link is not followed: see [`plain_file::read`].
pub(crate) fn present(path: &Path) -> Result<Option<Vec<u8>>, HostError> {
    plain_file::read(path).map_err(|source| HostError::File {
        operation: "read",
        path: path.display().to_string(),
        source,
    })
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

/// The drop-in with these changes added to what it says already: line by line, every other byte as it was.
///
/// A line that sets a changed setting goes, and with it the comment above it where the two stand alone between empty
/// lines, as we write them. The new ones come at the end, each with its reason, with the line ends that the file has.
pub(crate) fn content(present: Option<&[u8]>, changes: &[&Change]) -> Vec<u8> {
    let changes: Vec<Change> = changes.iter().map(|change| (*change).clone()).collect();
    let Some(present) = present else {
        return sysctl_drop_in(&changes, &Settings::default()).content.into_bytes();
    };
    let lines: Vec<Line<'_>> = present.split_inclusive(|&byte| byte == b'\n').map(Line::new).collect();
    // What the file says already stays where it is.
    let is_said = |change: &Change| {
        let name = change.knob.to_string();
        let mut setting = lines.iter().filter(|line| line.sets(&name));
        setting.next().is_some_and(|line| line.value == change.to) && setting.next().is_none()
    };
    let new: Vec<Change> = changes.into_iter().filter(|change| !is_said(change)).collect();
    if new.is_empty() {
        return present.to_vec();
    }
    let mut kept = Vec::new();
    let goes =
        |at: usize| lines.get(at).is_some_and(|line| new.iter().any(|change| line.sets(&change.knob.to_string())));
    let is_empty = |at: usize| lines.get(at).is_none_or(|line| line.is_empty);
    // A comment with its setting, between empty lines.
    let is_block = |comment: usize| {
        let above = comment.checked_sub(1);
        lines[comment].is_comment && above.is_some_and(is_empty) && goes(comment + 1) && is_empty(comment + 2)
    };
    for (at, line) in lines.iter().enumerate() {
        let gap = line.is_empty && at + 1 < lines.len() && is_block(at + 1);
        if !gap && !goes(at) && !is_block(at) {
            kept.extend_from_slice(line.bytes);
        }
    }
    let end: &[u8] = if lines.first().is_some_and(|line| line.bytes.ends_with(b"\r\n")) { b"\r\n" } else { b"\n" };
    if !kept.is_empty() && !kept.ends_with(b"\n") {
        kept.extend_from_slice(end);
    }
    let added = sysctl_drop_in(&new, &Settings::default()).content;
    // The file has its heading already, or never had one.
    for line in added.lines().skip(usize::from(!kept.is_empty())) {
        kept.extend_from_slice(line.as_bytes());
        kept.extend_from_slice(end);
    }
    kept
}

/// A line of a drop-in.
struct Line<'a> {
    bytes: &'a [u8],
    name: Option<String>,
    value: Option<String>,
    is_comment: bool,
    is_empty: bool,
}

impl<'a> Line<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim();
        let is_comment = text.starts_with(['#', ';']);
        let (name, value) = match text.split_once('=') {
            Some((name, value)) if !is_comment => (
                // Where a slash comes first, slashes and dots have changed places (sysctl.d(5)).
                Some(dotted(name.trim().trim_start_matches('-').trim_start())),
                Some(value.split_whitespace().collect::<Vec<_>>().join(" ")),
            ),
            _ => (None, None),
        };
        Self { bytes, name, value, is_comment, is_empty: text.is_empty() }
    }

    fn sets(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }
}

/// The name of a sysctl with dots between its parts.
fn dotted(name: &str) -> String {
    match name.find(['/', '.']).and_then(|at| name.as_bytes().get(at)) {
        Some(b'/') => name
            .chars()
            .map(|c| {
                if c == '/' {
                    '.'
                } else if c == '.' {
                    '/'
                } else {
                    c
                }
            })
            .collect(),
        _ => name.to_owned(),
    }
}

pub use plain_file::write_atomically;
pub(crate) use plain_file::{clear_leftover, mode, remove, sync_folder, write_beside};

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
        let first = merged(None, &[&change("net.ipv4.tcp_rmem", "1 2 3"), &change("net.ipv4.tcp_ecn", "1")]);
        let second = merged(Some(&first), &[&change("net.ipv4.tcp_rmem", "1 2 9")]);
        let set = |text: &str| {
            text.lines()
                .filter(|line| line.contains(" = ") && !line.starts_with('#'))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(set(&first), ["net.ipv4.tcp_rmem = 1 2 3", "net.ipv4.tcp_ecn = 1"]);
        assert_eq!(set(&second), ["net.ipv4.tcp_ecn = 1", "net.ipv4.tcp_rmem = 1 2 9"]);
        assert_eq!(second.matches("Written by").count(), 1);
        assert_eq!(second.matches("is to be 1 2 3").count(), 0, "the old reason goes with the old value");
        assert_eq!(merged(Some(&second), &[&change("net.ipv4.tcp_rmem", "1 2 9")]), second);
        assert!(!second.contains("\n\n\n"), "{second:?}");
    }

    #[test]
    fn lines_without_an_empty_line_between_them_are_kept_one_by_one() {
        let by_hand = "net.ipv4.tcp_rmem = 1 2 3\nnet.ipv4.tcp_ecn = 1\n# for the vendor\nnet/ipv4/tcp_sack=1\n";
        let merged = merged(Some(by_hand), &[&change("net.ipv4.tcp_rmem", "1 2 9")]);
        let kept = "net.ipv4.tcp_ecn = 1\n# for the vendor\nnet/ipv4/tcp_sack=1\n";
        assert!(merged.starts_with(kept), "{merged}");
        assert!(merged.ends_with("net.ipv4.tcp_rmem = 1 2 9\n"), "{merged}");
        assert_eq!(merged.matches("tcp_rmem =").count(), 1, "{merged}");
    }

    #[test]
    fn a_setting_with_slashes_in_its_name_is_the_same_setting() {
        let merged = merged(Some("a.b = 1\nnet/ipv4/tcp_rmem = 1 2 3\n"), &[&change("net.ipv4.tcp_rmem", "1 2 9")]);
        assert!(!merged.contains("1 2 3"), "{merged}");
        assert_eq!(dotted("net/ipv4/conf/eth0.100/mtu"), "net.ipv4.conf.eth0/100.mtu");
        assert_eq!(dotted("net.ipv4.conf.eth0/100.mtu"), "net.ipv4.conf.eth0/100.mtu");
    }

    #[test]
    fn line_ends_and_bytes_that_are_no_text_are_kept() {
        let windows = b"# caf\xe9\r\na.b = 1\r\nnet.ipv4.tcp_rmem = 1 2 3";
        let merged = content(Some(windows), &[&change("net.ipv4.tcp_rmem", "1 2 9")]);
        assert!(merged.starts_with(b"# caf\xe9\r\na.b = 1\r\n"), "{merged:?}");
        assert!(merged.ends_with(b"\r\nnet.ipv4.tcp_rmem = 1 2 9\r\n"), "{merged:?}");
        assert_eq!(
            merged.iter().filter(|&&byte| byte == b'\n').count(),
            merged.windows(2).filter(|two| two == b"\r\n").count()
        );
    }

    fn merged(present: Option<&str>, changes: &[&Change]) -> String {
        String::from_utf8(content(present.map(str::as_bytes), changes)).expect("text")
    }
}
