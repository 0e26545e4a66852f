//! The file of hosts.

use std::{collections::BTreeSet, str::FromStr};

use fullpipe_units::Rate;
use serde::Deserialize;

use crate::{Cell, MeshError};

/// The largest file that is read, in bytes.
pub const LARGEST: usize = 1 << 20;

/// The most hosts: 500 are 124,750 pairs, which take weeks one after the other.
const MOST: usize = 500;

/// The hosts of a mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// What the store keeps its runs under.
    pub name: String,
    /// The hosts, in the order of the file: at least two.
    pub hosts: Vec<Host>,
    /// What paths between sites are said to carry.
    pub paths: Vec<SitePath>,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The site that it is at; its own name where none is given.
    pub site: String,
    /// Where other hosts reach its `fullpipe serve`: name or address, and perhaps a port.
    pub address: String,
    /// What runs a command there, the command's words behind it; empty for this machine.
    pub run: Vec<String>,
    /// The program there.
    pub program: String,
}

/// What a path between two sites is said to carry, in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitePath {
    /// One site.
    pub a: String,
    /// The other, or the same: between its hosts.
    pub b: String,
    /// Its rate.
    pub rate: Rate,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHosts {
    name: Option<String>,
    #[serde(default)]
    host: Vec<RawHost>,
    #[serde(default)]
    path: Vec<RawPath>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHost {
    name: String,
    site: Option<String>,
    address: Option<String>,
    run: Option<Vec<String>>,
    program: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPath {
    a: String,
    b: String,
    rate: String,
}

impl FromStr for Hosts {
    type Err = MeshError;

    fn from_str(text: &str) -> Result<Self, MeshError> {
        let raw: RawHosts = toml::from_str(text).map_err(|error| wrong(&placed(text, &error)))?;
        let hosts = raw.host.into_iter().map(host).collect::<Result<Vec<_>, _>>()?;
        if !(2..=MOST).contains(&hosts.len()) {
            return Err(wrong(&format!("a mesh has 2 to {MOST} hosts, each under [[host]], and not {}", hosts.len())));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = hosts.iter().find(|host| !names.insert(host.name.as_str())) {
            return Err(wrong(&format!("two hosts have the name {}", twice.name)));
        }
        let sites: BTreeSet<&str> = hosts.iter().map(|host| host.site.as_str()).collect();
        let paths = raw.path.into_iter().map(|raw| path(raw, &sites)).collect::<Result<Vec<_>, _>>()?;
        let name = raw.name.unwrap_or_else(|| "mesh".to_owned());
        Ok(Self { name: word("the name of a mesh", &name)?, hosts, paths })
    }
}

impl Hosts {
    /// What a path between the two sites is said to carry.
    pub fn declared(&self, from: &Host, to: &Host) -> Option<Rate> {
        let is_it =
            |path: &&SitePath| (path.a == from.site && path.b == to.site) || (path.a == to.site && path.b == from.site);
        self.paths.iter().find(is_it).map(|path| path.rate)
    }

    /// Who could not measure a direction, so that the other end measured both, in words.
    pub fn one_sided(&self, cell: &Cell) -> Option<String> {
        let unable = cell.unable.as_ref()?;
        let other = if unable.host == cell.from { cell.to } else { cell.from };
        let [host, other] = [unable.host, other].map(|place| &self.hosts[place].name);
        Some(format!("{host} can't measure to {other}, so {other} measured both directions: {}", unable.why))
    }
}

fn host(raw: RawHost) -> Result<Host, MeshError> {
    let name = word("the name of a host", &raw.name)?;
    let of = |what: &str| format!("{what} of {name}");
    let address = word(&of("the address"), &raw.address.unwrap_or_else(|| name.clone()))?;
    let site = word(&of("the site"), &raw.site.unwrap_or_else(|| name.clone()))?;
    // A shell at the other end of SSH takes it apart again.
    let program = word(&of("the program"), &raw.program.unwrap_or_else(|| "fullpipe".to_owned()))?;
    let run = raw.run.unwrap_or_else(|| over_ssh(&address));
    if run.first().is_some_and(String::is_empty) || run.iter().any(|word| word.contains('\0')) {
        return Err(wrong(&format!("{} has an empty word or a zero byte", of("run"))));
    }
    Ok(Host { name, site, address, run, program })
}

/// SSH that asks nobody anything, to the address without a port.
fn over_ssh(address: &str) -> Vec<String> {
    let colons = address.matches(':').count();
    let host = match address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host,
        None if colons == 1 => address.split(':').next().unwrap_or(address),
        None => address,
    };
    ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", host].map(str::to_owned).to_vec()
}

fn path(raw: RawPath, sites: &BTreeSet<&str>) -> Result<SitePath, MeshError> {
    for site in [&raw.a, &raw.b] {
        if !sites.contains(site.as_str()) {
            return Err(wrong(&format!("a path ends at {site:?}, and no host has that site")));
        }
    }
    let rate: Rate = raw.rate.parse().map_err(|error| wrong(&format!("the rate of a path: {error}")))?;
    if rate.bps() == 0 {
        return Err(wrong(&format!("the path from {} to {} carries nothing", raw.a, raw.b)));
    }
    Ok(SitePath { a: raw.a, b: raw.b, rate })
}

/// A word that is no option of a program and that no shell takes apart.
fn word(what: &str, text: &str) -> Result<String, MeshError> {
    let fits = |c: char| c.is_alphanumeric() || "._-:/@[]%".contains(c);
    let is_word = !text.is_empty() && text.len() <= 255 && !text.starts_with('-') && text.chars().all(fits);
    if is_word {
        return Ok(text.to_owned());
    }
    Err(wrong(&format!("{what} is {text:?}: give letters, digits and . _ - : / @ [ ] %, not - at first")))
}

/// The message of the TOML reader with line and column.
fn placed(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    match before {
        Some(before) => {
            let line = before.matches('\n').count() + 1;
            let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
            format!("line {line}, column {column}: {}", error.message())
        }
        None => error.message().to_owned(),
    }
}

fn wrong(problem: &str) -> MeshError {
    MeshError::Hosts { problem: problem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_reached_by_ssh_at_its_address_unless_the_file_says_otherwise() {
        let hosts: Hosts = "\
            [[host]]\nname = 'p1'\nsite = 'paris'\naddress = '192.0.2.1:5301'\n\
            [[host]]\nname = 't1'\naddress = '[2001:db8::7]:5301'\nrun = []\nprogram = '/opt/fullpipe'\n\
            [[host]]\nname = '2001:db8::8'\n\
            [[path]]\na = 'paris'\nb = 't1'\nrate = '1G'\n"
            .parse()
            .unwrap();
        let ssh = |at: usize| hosts.hosts[at].run.last().map(String::as_str);
        assert_eq!((ssh(0), ssh(1), ssh(2)), (Some("192.0.2.1"), None, Some("2001:db8::8")));
        assert_eq!((hosts.hosts[1].site.as_str(), hosts.hosts[1].program.as_str()), ("t1", "/opt/fullpipe"));
        assert_eq!(over_ssh("[2001:db8::7]:5301").last().map(String::as_str), Some("2001:db8::7"));
        let declared = |from: usize, to: usize| hosts.declared(&hosts.hosts[from], &hosts.hosts[to]).map(Rate::bps);
        assert_eq!((declared(0, 1), declared(1, 0), declared(0, 2)), (Some(1_000_000_000), Some(1_000_000_000), None));
    }

    #[test]
    fn what_can_not_be_understood_is_named() {
        for (text, expected) in [
            ("", "2 to 500 hosts"),
            ("[[host]]\nname = 'a'\n", "2 to 500 hosts"),
            ("[[host]]\nname = 'a'\n[[host]]\nname = 'a'\n", "two hosts have the name a"),
            ("[[host]]\nname = 'a'\nsight = 'x'\n", "line 3, column 1: unknown field `sight`"),
            ("[[host]]\nname = '-oProxyCommand=x'\n", "not - at first"),
            ("[[host]]\nname = 'a'\nprogram = 'x; rm y'\n", "the program of a"),
            ("[[host]]\nname = 'a'\nrun = ['']\n", "an empty word"),
            (
                "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[path]]\na = 'a'\nb = 'c'\nrate = '1G'\n",
                "\"c\", and no host",
            ),
            ("[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[path]]\na = 'a'\nb = 'b'\nrate = '0'\n", "carries nothing"),
            ("[[host]\n", "line 1, column"),
        ] {
            let error = text.parse::<Hosts>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_file_is_read_or_refused(text in "(\\[\\[(host|path)\\]\\]\n|(name|site|address|a|b|rate) = '?[ -~é]{0,8}'?\n){0,8}") {
            drop(text.parse::<Hosts>());
        }
    }
}
