//! Several files of one machine as its settings.
//!
//! What a command printed holds now, and wins; what a boot file says is noted as the value's origin, and counts where
//! nothing tells what holds now.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Format, Place, Reading, sheet};
use crate::{Address, Catalogue, Family, Origin, Platform, Settings, settings::Mbufs};

/// Two places that say different things of one setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// Which setting.
    pub knob: Address,
    /// The value that is taken; `None` where that is "absent".
    pub taken: Option<String>,
    /// Where it stands.
    pub taken_from: (String, Place),
    /// The value that is left.
    pub left: Option<String>,
    /// Where it stands.
    pub left_from: (String, Place),
    /// Why the one is taken, in a sentence.
    pub message: String,
}

/// The settings of one machine, with where each was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// The settings, as a host would tell them.
    pub settings: Settings,
    /// The file and place of each value.
    pub places: BTreeMap<Address, (String, Place)>,
    /// Where two files disagree.
    pub contradictions: Vec<Contradiction>,
    /// Lines of boot files that set nothing on this version.
    pub dead: Vec<Dead>,
}

/// A line of a boot file that sets nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dead {
    /// The setting that it names.
    pub knob: Address,
    /// The file.
    pub file: String,
    /// Where in it.
    pub place: Place,
    /// Why, in a sentence.
    pub message: String,
}

/// Why files can't be taken together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// They come from different platforms.
    #[error(
        "put {file} with the rest: it is of {family}, and {other} of {other_family}; read the files of one machine at a time, or name the platform it is"
    )]
    Families {
        /// The file that doesn't fit.
        file: String,
        /// Its family.
        family: Family,
        /// What it doesn't fit with: another file, or the platform that was named.
        other: String,
        /// That one's family.
        other_family: Family,
    },
    /// No file tells of which platform it is.
    #[error("tell the platform of {file}: nothing in it does; name it, for example freebsd-14.1 or windows-2012")]
    Unknown {
        /// The first file.
        file: String,
    },
}

/// Puts what was read together. `platform` wins over what the files tell of themselves, and must not contradict them.
///
/// # Errors
///
/// Where the files are of different platforms, or nobody says of which.
pub fn merge(readings: &[Reading], platform: Option<&Platform>) -> Result<Merged, MergeError> {
    let mut merged = Merged::default();
    merged.settings.platform = platform_of(readings, platform)?;
    for reading in readings {
        merged.note_machine(reading);
        for found in &reading.found {
            merged.note(reading, found);
        }
    }
    Ok(merged)
}

fn platform_of(readings: &[Reading], named: Option<&Platform>) -> Result<Platform, MergeError> {
    let mut known = named.map(|platform| ("the platform that was named".to_owned(), platform.clone()));
    for reading in readings.iter().filter(|reading| reading.platform.family != Family::Unknown) {
        match &mut known {
            None => known = Some((reading.file.clone(), reading.platform.clone())),
            Some((_, platform)) if platform.family == reading.platform.family => {
                if platform.version.is_empty() {
                    platform.version.clone_from(&reading.platform.version);
                }
            }
            Some((other, platform)) => {
                return Err(MergeError::Families {
                    file: reading.file.clone(),
                    family: reading.platform.family,
                    other: other.clone(),
                    other_family: platform.family,
                });
            }
        }
    }
    let file = || readings.first().map_or_else(|| "nothing".to_owned(), |reading| reading.file.clone());
    known.map(|(_, platform)| platform).ok_or_else(|| MergeError::Unknown { file: file() })
}

impl Merged {
    fn note_machine(&mut self, reading: &Reading) {
        let machine = &mut self.settings.machine;
        machine.memory = reading.machine.memory.or(machine.memory);
        machine.page = reading.machine.page.or(machine.page);
        self.settings.sockets.extend(&reading.sockets);
        self.settings.keys.extend(reading.keys.iter().cloned());
        if let Some(mbufs) = reading.mbufs {
            let before = self.settings.mbufs.unwrap_or_default();
            // `netstat -m` and `vmstat -z` tell the same of one machine, and either may lack a figure.
            self.settings.mbufs = Some(Mbufs {
                clusters_in_use: mbufs.clusters_in_use.or(before.clusters_in_use),
                clusters_max: mbufs.clusters_max.or(before.clusters_max),
                denied: mbufs.denied.max(before.denied),
                pages_in_use: mbufs.pages_in_use.or(before.pages_in_use),
                pages_max: mbufs.pages_max.or(before.pages_max),
                pages_denied: mbufs.pages_denied.max(before.pages_denied),
            });
        }
        let mut devices: BTreeMap<String, usize> =
            self.settings.links.iter().enumerate().map(|(at, link)| (link.device.clone(), at)).collect();
        for link in &reading.links {
            match devices.get(&link.device).and_then(|at| self.settings.links.get_mut(*at)) {
                Some(known) => {
                    known.mtu = link.mtu.or(known.mtu);
                    known.speed_bps = link.speed_bps.or(known.speed_bps);
                }
                None => {
                    devices.insert(link.device.clone(), self.settings.links.len());
                    self.settings.links.push(link.clone());
                }
            }
        }
    }

    /// Why a line of a boot file sets nothing on this version; `None` where it does.
    fn sets_nothing(&self, catalogue: &Catalogue, format: Format, found: &super::Found) -> Option<String> {
        let platform = &self.settings.platform;
        match (format, &found.knob) {
            (Format::ShellFile, knob) if catalogue.is_no_tunable(knob, &platform.version) => Some(format!(
                "{knob} is no loader tunable on {platform}: the line does nothing there; it belongs into /etc/sysctl.conf"
            )),
            (Format::SysctlFile, Address::Sysctl(name)) => {
                found.form.sets_nothing(name, platform).map(|(_, words)| words)
            }
            _ => None,
        }
    }

    fn note(&mut self, reading: &Reading, found: &super::Found) {
        let of_platform = Catalogue::for_family(self.settings.platform.family);
        if of_platform.is_some_and(|catalogue| catalogue.find(&found.knob).is_none()) {
            return;
        }
        if let Some(message) = of_platform.and_then(|catalogue| self.sets_nothing(catalogue, reading.format, found)) {
            let (knob, file) = (found.knob.clone(), reading.file.clone());
            self.dead.push(Dead { knob, file, place: found.place, message });
            return;
        }
        let here = (reading.file.clone(), found.place);
        let boot = reading.format.is_boot_file();
        if boot && let Some(value) = &found.value {
            let origin = Origin { file: reading.file.clone(), line: found.place.line, value: value.clone() };
            self.settings.origins.entry(found.knob.clone()).or_default().push(origin);
        }
        let Some(there) = self.places.get(&found.knob) else {
            self.settings.values.insert(found.knob.clone(), found.value.clone());
            self.places.insert(found.knob.clone(), here);
            return;
        };
        let held = self.settings.values.get(&found.knob).cloned().flatten();
        // A value whose place is that of an origin came from a boot file.
        let origins = self.settings.origins.get(&found.knob);
        let held_is_boot =
            origins.is_some_and(|all| all.iter().any(|origin| origin.file == there.0 && origin.line == there.1.line));
        let keep = boot && !held_is_boot;
        if !sheet::same_value(held.as_deref(), found.value.as_deref()) {
            let there = (held, there.clone());
            let here = (found.value.clone(), here.clone());
            let ((taken, taken_from), (left, left_from)) = if keep { (there, here) } else { (here, there) };
            let message = reason(&found.knob, boot, held_is_boot);
            let knob = found.knob.clone();
            self.contradictions.push(Contradiction { knob, taken, taken_from, left, left_from, message });
        }
        if !keep {
            self.settings.values.insert(found.knob.clone(), found.value.clone());
            self.places.insert(found.knob.clone(), here);
        }
    }
}

fn reason(knob: &Address, boot: bool, held_is_boot: bool) -> String {
    let name = sheet::shown_knob(knob);
    match (boot, held_is_boot) {
        (true, false) | (false, true) => {
            format!(
                "{name} has another value now than the boot file sets; it was changed since, or the file is not applied"
            )
        }
        _ => format!("{name} stands in both files with different values; the one that was named last counts"),
    }
}
