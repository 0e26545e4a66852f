//! What was read from a machine, by whatever way.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
    sync::LazyLock,
};

use fullpipe_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Address, Catalogue, lint::meant::distance};

/// A family of platforms, whose settings have the same names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Linux.
    Linux,
    /// Windows.
    Windows,
    /// FreeBSD.
    FreeBsd,
    /// macOS.
    MacOs,
    /// The stack of NetBurner's devices.
    NetBurner,
    /// Nothing tells it, or only a newer version of this program knows it.
    #[default]
    #[serde(rename = "", other)]
    Unknown,
}

impl Family {
    /// Those that there is a catalogue of.
    pub const KNOWN: [Self; 5] = [Self::Linux, Self::Windows, Self::FreeBsd, Self::MacOs, Self::NetBurner];

    /// In catalogue spelling: `linux`; empty where it is not known.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Windows => "windows",
            Self::FreeBsd => "freebsd",
            Self::MacOs => "macos",
            Self::NetBurner => "netburner",
            Self::Unknown => "",
        }
    }

    /// As people write it: `FreeBSD`; empty where it is not known.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::Windows => "Windows",
            Self::FreeBsd => "FreeBSD",
            Self::MacOs => "macOS",
            Self::NetBurner => "NetBurner",
            Self::Unknown => "",
        }
    }

    /// The family that is spelt so; unknown where there is none.
    pub fn named(name: &str) -> Self {
        Self::KNOWN.into_iter().find(|family| family.name() == name).unwrap_or_default()
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A platform and version in catalogue spelling.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    /// Which family.
    pub family: Family,
    /// The version as the platform tells it: `6.18.44`, `2012`.
    pub version: String,
}

/// A text that names no platform of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParsePlatformError {
    /// No such family.
    #[error("read platform `{text}`: no such family{}; known are {known}", did_you_mean(.nearest.as_deref()))]
    Family {
        /// What was given.
        text: String,
        /// The families of the catalogue.
        known: String,
        /// The platform that was most likely meant.
        nearest: Option<String>,
    },
    /// The family has no such version.
    #[error("read platform `{text}`: no such version{}; known are {known}", did_you_mean(.nearest.as_deref()))]
    Version {
        /// What was given.
        text: String,
        /// The versions that the catalogue orders, or their form.
        known: String,
        /// The platform that was most likely meant.
        nearest: Option<String>,
    },
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; did you mean {nearest}?"))
}

/// The platform of the catalogue whose name is nearest to a text, where one is near: `windows-nt-4.0` is `windows-nt4`.
fn nearest(text: &str) -> Option<String> {
    let plain = |text: &str| -> String {
        let whole = text.replace(".0", "").replace("server", "").replace("win-", "windows-");
        whole.chars().filter(char::is_ascii_alphanumeric).take(32).collect()
    };
    let written = plain(text);
    let names = Catalogue::all().flat_map(|catalogue| {
        let family = catalogue.family.name();
        let versions = catalogue.order.iter().map(move |version| format!("{family}-{version}"));
        versions.chain(std::iter::once(family.to_owned()))
    });
    let near = names.map(|name| (distance(&plain(&name), &written), name)).min()?;
    // One letter off; of a version that is only digits, another one is another version.
    let (letters, name) = near;
    (letters <= 1 && (letters == 0 || !name.ends_with(|c: char| c.is_ascii_digit()))).then_some(name)
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.family.name())?;
        if self.version.is_empty() { Ok(()) } else { write!(f, "-{}", self.version) }
    }
}

impl Platform {
    /// Names to choose from: each version where there is a list of them, else the family, whose versions are numbers.
    pub fn names() -> &'static [String] {
        static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
            Catalogue::all()
                .flat_map(|catalogue| {
                    let family = catalogue.family.name();
                    let versions = catalogue.order.iter().map(move |version| format!("{family}-{version}"));
                    std::iter::once(family.to_owned()).chain(versions)
                })
                .collect()
        });
        &NAMES
    }
}

/// `windows-2012`, `windows-server-2012r2`, `linux-6.18`, `freebsd-14.1`, `macos`, `netburner`: a family and, where the
/// versions of a platform differ, its version.
impl FromStr for Platform {
    type Err = ParsePlatformError;

    fn from_str(text: &str) -> Result<Self, ParsePlatformError> {
        let lower = text.trim().to_ascii_lowercase();
        let (family, version) = lower.split_once('-').unwrap_or((&lower, ""));
        let family = Family::named(family);
        let Some(catalogue) = Catalogue::for_family(family) else {
            let known: Vec<&str> = Catalogue::all().map(|catalogue| catalogue.family.name()).collect();
            let nearest = nearest(&lower);
            return Err(ParsePlatformError::Family { text: text.to_owned(), known: known.join(", "), nearest });
        };
        let mut version = version.trim_start_matches("server-").trim_start_matches("server").to_owned();
        if let Some(year) = version.strip_suffix("r2").filter(|year| !year.ends_with('-')) {
            version = format!("{}-r2", year.trim_end());
        }
        if version.is_empty() || catalogue.knows_version(&version) {
            return Ok(Self { family, version });
        }
        let known =
            if catalogue.order.is_empty() { "numbers such as 6.18".to_owned() } else { catalogue.order.join(", ") };
        Err(ParsePlatformError::Version { text: text.to_owned(), known, nearest: nearest(&lower) })
    }
}

/// The settings of one machine at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Which platform they were read from.
    pub platform: Platform,
    /// The value at each address that was looked at; `None` means "looked, and it is absent".
    pub values: BTreeMap<Address, Option<String>>,
    /// Where boot-time files set a value, in the order in which the system applies them (the last one wins).
    pub origins: BTreeMap<Address, Vec<Origin>>,
    /// The routes, most specific first.
    pub routes: Vec<Route>,
    /// The network interfaces.
    pub links: Vec<Link>,
    /// What the planner must know of the machine itself.
    pub machine: MachineFacts,
    /// The use of the network's buffers (FreeBSD), where it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mbufs: Option<Mbufs>,
    /// The sockets whose buffers a device's source sets (NetBurner), where it was read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets: Vec<SocketBuffers>,
    /// The registry keys of which all values were read: what such a key does not have is absent.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub keys: BTreeSet<String>,
}

/// How many packet buffers a device's source lets one socket take, list by list; `None` where it doesn't say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketBuffers {
    /// SetSocketRxBuffers.
    pub receive: Option<u64>,
    /// SetSocketTxBuffers.
    pub transmit: Option<u64>,
    /// SetSocketUnackBuffers, or setsocketackbuffers.
    pub unacknowledged: Option<u64>,
    /// SetOutOfOrderBuffers.
    pub out_of_order: Option<u64>,
}

impl SocketBuffers {
    /// What a call sets.
    pub(crate) fn of(mut self, call: &str) -> Option<u64> {
        *self.list(call)
    }

    /// Notes what a call sets; of several the largest counts.
    pub(crate) fn note(&mut self, call: &str, count: u64) {
        let list = self.list(call);
        *list = (*list).max(Some(count));
    }

    fn list(&mut self, call: &str) -> &mut Option<u64> {
        match call {
            "SetSocketRxBuffers" => &mut self.receive,
            "SetSocketTxBuffers" => &mut self.transmit,
            "SetOutOfOrderBuffers" => &mut self.out_of_order,
            _ => &mut self.unacknowledged,
        }
    }

    /// The most that the socket takes, where a list that nothing is said of holds `default`.
    pub(crate) fn most(&self, default: u64) -> u64 {
        let lists = [self.receive, self.transmit, self.unacknowledged, self.out_of_order];
        lists.into_iter().map(|count| count.unwrap_or(default)).fold(0, u64::saturating_add)
    }
}

/// The use of FreeBSD's network buffers since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mbufs {
    /// Clusters (of 2,048 B each) in use.
    pub clusters_in_use: Option<u64>,
    /// Clusters that there may be: kern.ipc.nmbclusters.
    pub clusters_max: Option<u64>,
    /// Requests that were denied because none was left.
    pub denied: Option<u64>,
    /// Clusters of one page in use.
    #[serde(default)]
    pub pages_in_use: Option<u64>,
    /// Clusters of one page that there may be: kern.ipc.nmbjumbop.
    #[serde(default)]
    pub pages_max: Option<u64>,
    /// Requests for clusters of one page that were denied because none was left.
    #[serde(default)]
    pub pages_denied: Option<u64>,
}

/// One line of one file that sets a value at boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The file's path.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The value that it sets.
    pub value: String,
}

/// One route, with those of its attributes that bound TCP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The destination: `10.0.0.0/24`, `default`.
    pub destination: String,
    /// The interface.
    pub device: String,
    /// The gateway, where there is one.
    pub gateway: Option<String>,
    /// Next hop, source and metrics in one line, with which another route over it can be made (`route PREFIX made`);
    /// absent where none can. Known on the machine itself only.
    #[serde(skip)]
    pub copy: Option<String>,
}

/// One network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Its name.
    pub device: String,
    /// The speed that it reports, in bit/s.
    pub speed_bps: Option<u64>,
    /// Its MTU in bytes.
    pub mtu: Option<u32>,
}

/// What the planner must know of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// Physical memory.
    pub memory: Option<Bytes>,
    /// The page size, the unit of `tcp_mem`.
    pub page: Option<Bytes>,
}

impl Settings {
    /// The value of a sysctl that was read and is there.
    pub fn sysctl(&self, name: &str) -> Option<&str> {
        self.values.get(&Address::sysctl(name))?.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_spelt_as_ever_and_one_that_is_new_is_unknown() {
        for family in Family::KNOWN {
            let spelt = format!("\"{family}\"");
            assert_eq!(serde_json::to_string(&family).unwrap(), spelt);
            assert_eq!(serde_json::from_str::<Family>(&spelt).unwrap(), family);
            assert_eq!((Family::named(family.name()), Catalogue::for_family(family).is_some()), (family, true));
        }
        assert_eq!(serde_json::from_str::<Family>("\"plan9\"").unwrap(), Family::Unknown);
        assert_eq!(serde_json::from_str::<Family>("\"\"").unwrap(), Family::Unknown);
        assert_eq!(serde_json::to_string(&Platform::default()).unwrap(), r#"{"family":"","version":""}"#);
        assert_eq!(Catalogue::all().count(), Family::KNOWN.len());
    }

    #[test]
    fn platforms_are_named_in_the_usual_spellings() {
        for (text, family, version) in [
            ("windows-2012", "windows", "2012"),
            ("Windows-Server-2012R2", "windows", "2012-r2"),
            ("windows-xp", "windows", "xp"),
            ("linux-6.18.44", "linux", "6.18.44"),
            ("freebsd-4.8", "freebsd", "4.8"),
            ("netburner", "netburner", ""),
        ] {
            let platform: Platform = text.parse().unwrap();
            assert_eq!((platform.family.name(), platform.version.as_str()), (family, version), "{text}");
            assert_eq!(platform.to_string().parse::<Platform>().as_ref(), Ok(&platform));
        }
    }

    #[test]
    fn a_platform_that_is_nearly_one_is_refused_with_its_name() {
        for (text, meant) in [
            ("windows-nt-4.0", Some("windows-nt4")),
            ("windows-nt4.0", Some("windows-nt4")),
            ("windows-vsta", Some("windows-vista")),
            ("linx", Some("linux")),
            ("windows-2013", None),
            ("beos", None),
        ] {
            let error = text.parse::<Platform>().unwrap_err().to_string();
            let expected = meant.map(|meant| format!("did you mean {meant}?"));
            assert_eq!(error.contains("did you mean"), meant.is_some(), "{error}");
            assert!(expected.is_none_or(|expected| error.contains(&expected)), "{error}");
        }
    }

    #[test]
    fn an_unknown_platform_is_refused_with_the_known_ones() {
        for (text, known) in [("beos", "linux, windows"), ("windows-2013", "2012-r2"), ("linux-new", "6.18")] {
            let error = text.parse::<Platform>().unwrap_err().to_string();
            assert!(error.contains(known), "{error}");
        }
    }
}
