//! Which Windows this is, in the catalogue's names.

use super::{Registry, RegistryData};

const KEY: &str = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion";

/// Builds from which on a release of Windows 10's lineage has its name (Microsoft: Windows 11 and Windows Server release
/// information). Servers first, newest first.
const SERVERS: [(u32, &str); 4] = [(26_100, "2025"), (20_348, "2022"), (17_763, "2019"), (0, "2016")];
const CLIENTS: [(u32, &str); 2] = [(22_000, "11"), (0, "10")];

/// The version in catalogue spelling: `xp`, `2012-r2`, `11`; `unknown` where the registry doesn't tell.
pub(super) fn version(registry: &impl Registry) -> String {
    let text = |name| registry.value(KEY, name).ok().flatten().as_ref().and_then(RegistryData::plain_text);
    let major = registry.value(KEY, "CurrentMajorVersionNumber").ok().flatten().as_ref().and_then(RegistryData::number);
    let build = text("CurrentBuildNumber").and_then(|build| build.parse().ok()).unwrap_or(0);
    // Until Vista only the product's name tells a server.
    let server = text("InstallationType")
        .or_else(|| text("ProductName"))
        .is_some_and(|kind| kind.to_ascii_lowercase().contains("server"));
    name(major, text("CurrentVersion").as_deref(), build, server).unwrap_or("unknown").to_owned()
}

/// `CurrentVersion` stopped at 6.3; what is newer has a number of its own (`CurrentMajorVersionNumber`).
fn name(major: Option<u32>, version: Option<&str>, build: u32, server: bool) -> Option<&'static str> {
    let newest = |names: &[(u32, &'static str)]| names.iter().find(|(since, _)| build >= *since).map(|(_, name)| *name);
    if major.is_some_and(|major| major >= 10) {
        return if server { newest(&SERVERS) } else { newest(&CLIENTS) };
    }
    match (version?, server) {
        ("4.0", _) => Some("nt4"),
        ("5.0", _) => Some("2000"),
        ("5.1", _) => Some("xp"),
        ("5.2", _) => Some("2003"),
        ("6.0", false) => Some("vista"),
        ("6.0", true) => Some("2008"),
        ("6.1", false) => Some("7"),
        ("6.1", true) => Some("2008-r2"),
        ("6.2", false) => Some("8"),
        ("6.2", true) => Some("2012"),
        ("6.3", false) => Some("8.1"),
        ("6.3", true) => Some("2012-r2"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_knobs::{Catalogue, Family};

    use super::*;

    #[test]
    fn the_registry_tells_the_release() {
        let catalogue = Catalogue::for_family(Family::Windows).expect("there");
        for (major, version, build, server, expected) in [
            (None, "5.1", 2600, false, "xp"),
            (None, "6.1", 7601, false, "7"),
            (None, "6.2", 9200, true, "2012"),
            (Some(10), "6.3", 14_393, true, "2016"),
            (Some(10), "6.3", 17_763, true, "2019"),
            (Some(10), "6.3", 19_045, false, "10"),
            (Some(10), "6.3", 22_631, false, "11"),
            (Some(10), "6.3", 26_100, true, "2025"),
        ] {
            assert_eq!(name(major, Some(version), build, server), Some(expected));
            assert!(catalogue.knows_version(expected), "{expected}");
        }
        assert_eq!(name(None, Some("7.0"), 1, false), None);
    }
}
