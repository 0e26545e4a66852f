//! Where the readers of all formats write down what they find: what the catalogue knows, once each, with its place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::{Format, Found, Place, Reading, Remark, RemarkKind};
use crate::{
    Address, Catalogue, Family, Knob, Link, MachineFacts, Platform,
    settings::{Mbufs, SocketBuffers},
    sysctl_conf::Form,
};

/// How many settings are kept of one file. A machine has a few hundred; only a made file has more.
const MOST_FOUND: usize = 20_000;
/// How many remarks are kept of one file.
const MOST_REMARKS: usize = 200;
/// How many interfaces are kept of one file.
const MOST_LINKS: usize = 4_096;

#[derive(Default)]
pub(super) struct Sheet {
    pub(super) platform: Platform,
    pub(super) machine: MachineFacts,
    pub(super) mbufs: Option<Mbufs>,
    pub(super) sockets: Vec<SocketBuffers>,
    pub(super) keys: Vec<String>,
    pub(super) others: usize,
    /// Whether a setting that is there already is noted once more: where lines are for several sockets.
    pub(super) keeps_all: bool,
    found: Vec<Found>,
    at: BTreeMap<Address, usize>,
    links: Vec<Link>,
    remarks: Vec<Remark>,
    remarks_left_out: usize,
}

impl Sheet {
    /// Notes a value; a later one wins, as it does for the machine. What the catalogue doesn't know is only counted.
    pub(super) fn set(&mut self, place: Place, knob: Address, value: Option<&str>) {
        let Some(row) = row_of(&knob) else {
            self.others += 1;
            return;
        };
        let knob = spelt_as(row, knob);
        let value = value.map(|value| value.trim().replace('\t', " "));
        if let Some(value) = &value
            && (value.chars().any(is_hidden) || value.len() > 4096)
        {
            let words =
                format!("the value of {} has control characters or is over 4,096 bytes long", shown_knob(&knob));
            self.remark(RemarkKind::Unread, place, words);
            return;
        }
        if !self.keeps_all
            && let Some(earlier) = self.at.get(&knob).and_then(|at| self.found.get_mut(*at))
        {
            let (line, before) = (earlier.place.line, std::mem::replace(&mut earlier.value, value.clone()));
            earlier.place = place;
            if !same_value(before.as_deref(), value.as_deref()) {
                let words = format!(
                    "line {line} has {} = `{}`, this line has `{}`; the later one counts",
                    shown_knob(&knob),
                    shown(before.as_deref().unwrap_or("absent")),
                    shown(value.as_deref().unwrap_or("absent")),
                );
                self.remark(RemarkKind::Contradiction, place, words);
            }
            return;
        }
        if self.found.len() >= MOST_FOUND {
            self.others += 1;
            return;
        }
        self.at.insert(knob.clone(), self.found.len());
        self.found.push(Found { knob, value, place, form: Form::default() });
    }

    /// Whether a line has told a setting already.
    pub(super) fn has(&self, knob: &Address) -> bool {
        self.at.contains_key(knob)
    }

    /// Notes how the line that tells a setting is written.
    pub(super) fn form(&mut self, knob: &Address, form: Form) {
        if let Some(found) = self.at.get(knob).and_then(|at| self.found.get_mut(*at)) {
            found.form = form;
        }
    }

    /// Notes that a setting is absent, where nothing else is said of it.
    pub(super) fn absent(&mut self, place: Place, knob: Address) {
        let spelt = row_of(&knob).map(|row| spelt_as(row, knob.clone()));
        if spelt.is_some_and(|spelt| !self.at.contains_key(&spelt)) {
            self.set(place, knob, None);
        }
    }

    /// Adds to a value that has several parts, such as the filters of one template.
    pub(super) fn add(&mut self, place: Place, knob: Address, part: &str) {
        let whole = self.value(&knob).map(|before| format!("{before}; {part}"));
        match (self.at.get(&knob).and_then(|at| self.found.get_mut(*at)), whole) {
            (Some(found), Some(whole)) if whole.len() <= 4096 => found.value = Some(whole),
            (Some(_), _) => {
                let words = format!("{} has more parts than can be shown", shown_knob(&knob));
                self.remark(RemarkKind::Note, place, words);
            }
            (None, _) => self.set(place, knob, Some(part)),
        }
    }

    /// The names of the sysctls that were found.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.found.iter().filter_map(|found| match &found.knob {
            Address::Sysctl(name) => Some(name.as_str()),
            _ => None,
        })
    }

    fn value(&self, knob: &Address) -> Option<&str> {
        self.found.get(*self.at.get(knob)?)?.value.as_deref()
    }

    /// Notes an interface.
    pub(super) fn link(&mut self, place: Place, link: Link) {
        if let Some(mtu) = link.mtu {
            let knob = Address::Link { device: link.device.clone(), property: "mtu".to_owned() };
            self.set(place, knob, Some(&mtu.to_string()));
        }
        if self.links.len() < MOST_LINKS {
            self.links.push(link);
        }
    }

    pub(super) fn remark(&mut self, kind: RemarkKind, place: Place, message: impl Into<String>) {
        if self.remarks.len() < MOST_REMARKS {
            self.remarks.push(Remark { kind, place, message: message.into() });
        } else {
            self.remarks_left_out += 1;
        }
    }

    /// Whether nothing was said of any line.
    pub(super) const fn is_quiet(&self) -> bool {
        self.remarks.is_empty()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.found.is_empty() && self.others == 0 && self.links.is_empty()
    }

    pub(super) fn family(&mut self, family: Family) {
        if self.platform.family == Family::Unknown {
            self.platform.family = family;
        }
    }

    pub(super) fn finish(mut self, file: String, format: Format) -> Reading {
        self.check_values();
        self.found.sort_by_key(|found| found.place);
        self.remarks.sort_by_key(|remark| remark.place);
        if self.remarks_left_out > 0 {
            let message = format!("{} more remarks are left out", self.remarks_left_out);
            let place = self.remarks.last().map_or(Place { line: 1, column: 1 }, |last| last.place);
            self.remarks.push(Remark { kind: RemarkKind::Note, place, message });
        }
        Reading {
            file,
            format,
            platform: self.platform,
            found: self.found,
            links: self.links,
            machine: self.machine,
            mbufs: self.mbufs,
            sockets: self.sockets,
            keys: self.keys,
            remarks: self.remarks,
            others: self.others,
        }
    }

    /// Looks at each value against what the catalogue says of its shape and range, where that is plain.
    fn check_values(&mut self) {
        let families: Vec<&Catalogue> = match Catalogue::for_family(self.platform.family) {
            Some(catalogue) => vec![catalogue],
            None => Catalogue::all().collect(),
        };
        let mut remarks = Vec::new();
        for found in &self.found {
            let Some(knob) = families.iter().find_map(|catalogue| catalogue.find(&found.knob)) else { continue };
            if let Some(wrong) = found.value.as_deref().and_then(|value| knob.wrong_value(value)) {
                let shape = format!(
                    "{} can't be `{}`: {wrong}",
                    shown_knob(&found.knob),
                    shown(found.value.as_deref().unwrap_or(""))
                );
                remarks.push((found.place, shape));
            }
        }
        for (place, message) in remarks {
            self.remark(RemarkKind::OutOfRange, place, message);
        }
    }
}

/// Whether two values are the same to the machine: runs of spaces and the case of names make no difference.
pub(super) fn same_value(a: Option<&str>, b: Option<&str>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => {
            let (mut a, mut b) = (a.split_whitespace(), b.split_whitespace());
            loop {
                match (a.next(), b.next()) {
                    (None, None) => return true,
                    (Some(a), Some(b)) if a.eq_ignore_ascii_case(b) => {}
                    _ => return false,
                }
            }
        }
        (None, None) => true,
        _ => false,
    }
}

/// Whether any catalogue has a row for a setting.
pub(super) fn known(knob: &Address) -> bool {
    row_of(knob).is_some()
}

/// The row of a setting in any catalogue. The last part of its name decides for nearly all: a file may have millions,
/// and the catalogue some hundreds.
fn row_of(knob: &Address) -> Option<&'static Knob> {
    static LAST_NAMES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let knobs = Catalogue::all().flat_map(|catalogue| &catalogue.knobs);
        knobs.map(|knob| last_name(&knob.address).to_ascii_lowercase()).collect()
    });
    let last = last_name(knob);
    let candidate = last.len() <= 64 && LAST_NAMES.contains(&last.to_ascii_lowercase());
    let any_name = matches!(knob, Address::Named { kind, .. } if kind == "transportfilter");
    if candidate || any_name { Catalogue::all().find_map(|catalogue| catalogue.find(knob)) } else { None }
}

/// A setting in the spelling of its row: Windows' names don't tell upper case from lower case, and those who look a
/// setting up spell it as the catalogue does.
fn spelt_as(row: &Knob, knob: Address) -> Address {
    match (&row.address, knob) {
        (Address::Registry { key, value }, Address::Registry { key: found, .. }) => {
            let parts = key.split('\\').zip(found.split('\\'));
            let parts = parts.map(|(row, found)| if row == "{GUID}" { found } else { row });
            Address::Registry { key: parts.collect::<Vec<_>>().join("\\"), value: value.clone() }
        }
        (_, knob) => knob,
    }
}

/// The part of a setting's name that doesn't differ from machine to machine.
fn last_name(knob: &Address) -> &str {
    match knob {
        Address::Sysctl(name) | Address::Named { name, .. } | Address::Socket(name) => name,
        Address::Route { attribute, .. } => attribute,
        Address::Destination { option, .. } => option,
        Address::Link { property, .. } => property,
        Address::Registry { value, .. } => value,
        Address::Netsh { parameter, .. } | Address::TcpSetting { parameter, .. } => parameter,
    }
}

/// A text of a file as it may stand in a sentence: short, and nothing in it that a terminal would act upon.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(80).map(|c| if is_hidden(c) { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(80).is_some() {
        shown.push_str("...");
    }
    shown
}

/// A setting's name in a sentence.
pub(super) fn shown_knob(knob: &Address) -> String {
    let text = knob.to_string();
    // A registry address is recognised by its end, which is what differs.
    match (knob, text.rsplit_once('\\')) {
        (Address::Registry { .. }, Some((_, value))) => shown(value),
        _ => shown(&text),
    }
}

/// Characters that steer a terminal or turn the direction of writing.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}
