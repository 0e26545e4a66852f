//! The drop-in file that makes sysctl changes outlast a restart.

use crate::{Address, Change, Settings};

/// What a boot-time file of ours says of itself, in a comment.
pub const TAKEN_BACK: &str = "`fullpipe undo` takes it back";

/// Where the drop-in goes. Its name sorts after the distribution's files and before an administrator's `99-`.
pub const SYSCTL_FILE: &str = "/etc/sysctl.d/90-fullpipe.conf";

/// A drop-in file for one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DropIn {
    /// The file's content; empty where no change can be kept this way.
    pub content: String,
    /// What the file can't keep, or what will win over it.
    pub notes: Vec<String>,
}

/// The content of [`SYSCTL_FILE`] that keeps a host's changes, each with its reason as a comment.
///
/// `changes` are those of this host only. `settings` tell which other boot-time lines speak of the same settings.
pub fn sysctl_drop_in(changes: &[Change], settings: &Settings) -> DropIn {
    let mut drop_in = DropIn::default();
    for change in changes {
        let (Address::Sysctl(name), Some(to)) = (&change.knob, &change.to) else {
            drop_in.notes.push(format!(
                "{} is no sysctl, so {SYSCTL_FILE} can't keep it; write it into the network configuration of the system",
                change.knob
            ));
            continue;
        };
        if let Some(winner) = later_line(settings, &change.knob) {
            drop_in.notes.push(format!(
                "{name}: {winner} is applied after {SYSCTL_FILE} and wins at the next boot; change that line instead"
            ));
        }
        if drop_in.content.is_empty() {
            drop_in.content.push_str(&format!("# Written by fullpipe; {TAKEN_BACK}.\n"));
        }
        let value = to.split_whitespace().collect::<Vec<_>>().join(" ");
        drop_in.content.push_str(&format!("\n# {}\n{name} = {value}\n", one_line(&change.reason)));
    }
    drop_in
}

/// The boot-time line that is applied after ours, as `file:line`.
pub(crate) fn later_line(settings: &Settings, knob: &Address) -> Option<String> {
    let name = |file: &str| file.rsplit('/').next().unwrap_or(file).to_owned();
    let last = settings.origins.get(knob)?.iter().rfind(|origin| origin.file != SYSCTL_FILE)?;
    // /etc/sysctl.conf comes last: through a link named 99-sysctl.conf, or by `sysctl --system`.
    let after = last.file == "/etc/sysctl.conf" || name(&last.file) > name(SYSCTL_FILE);
    after.then(|| format!("{}:{}", last.file, last.line))
}

/// A comment must not become a second line of the file.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
