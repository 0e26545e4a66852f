//! Who set a value: the administrator, the distribution, or nobody.

use std::collections::BTreeSet;

use crate::{Address, Origin, Settings, catalogue, persist};

/// Who wrote a boot-time file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Authority {
    /// The distribution: a default, which may be raised like the kernel's own.
    Vendor,
    /// The administrator: left alone unless that is allowed for.
    Administrator,
    /// This program.
    Ours,
}

impl Authority {
    /// By the directory, as sysctl.d(5) assigns them: /usr/lib and /lib belong to packages, the rest to the machine.
    pub(super) fn from_file_name(file: &str) -> Self {
        if file == persist::SYSCTL_FILE {
            Self::Ours
        } else if file.starts_with("/usr/lib/") || file.starts_with("/lib/") {
            Self::Vendor
        } else {
            Self::Administrator
        }
    }
}

/// The administrator's line that wins at boot for a setting, if one does.
pub(super) fn administrators<'a>(settings: &'a Settings, knob: &Address) -> Option<&'a Origin> {
    let mut others =
        settings.origins.get(knob)?.iter().filter(|origin| Authority::from_file_name(&origin.file) != Authority::Ours);
    others.next_back().filter(|origin| Authority::from_file_name(&origin.file) == Authority::Administrator)
}

/// Boot-time lines that fight one another or what is in force, each as one sentence.
///
/// `Settings::origins` is in the order in which the system applies the lines: files sorted by name whatever their
/// directory, the last one wins (sysctl.d(5)).
pub fn conflicts(settings: &Settings) -> Vec<String> {
    let mut found = Vec::new();
    for (knob, origins) in &settings.origins {
        let known = catalogue::for_platform(&settings.platform).is_some_and(|catalogue| catalogue.find(knob).is_some());
        let Some(winner) = origins.last() else { continue };
        if !known {
            continue;
        }
        let values: BTreeSet<String> = origins.iter().map(|origin| normal(&origin.value)).collect();
        if values.len() > 1 {
            let lines: Vec<String> = origins.iter().map(|o| format!("{}:{} (`{}`)", o.file, o.line, o.value)).collect();
            found.push(format!(
                "{knob} is set to different values in {}; files are applied in the order of their names, so {}:{} wins at boot",
                lines.join(" and "),
                winner.file,
                winner.line
            ));
        }
        let now = settings.values.get(knob).and_then(Option::as_deref);
        if let Some(now) = now.filter(|now| normal(now) != normal(&winner.value)) {
            found.push(format!(
                "{knob} is `{}` now, but {}:{} sets it to `{}` at the next boot",
                normal(now),
                winner.file,
                winner.line,
                winner.value
            ));
        }
    }
    found
}

/// A value with one space between its parts: the kernel separates them by tabs, people by spaces.
pub(super) fn normal(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}
