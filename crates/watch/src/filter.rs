//! Which connections are wanted: `dst 10.0.0.0/8 port 443 process nginx`.

use std::{fmt, str::FromStr};

use fullpipe_units::Network;
use thiserror::Error;

use crate::{owner::Owner, wire::SocketId};

/// A filter. Terms of different kinds must all hold; of several of one kind, one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    terms: Vec<Term>,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    Source(Network),
    Destination(Network),
    Port(u16),
    LocalPort(u16),
    PeerPort(u16),
    Process(String),
    Pid(u32),
    Group(String),
}

/// What is wrong with a filter.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FilterError {
    /// A word that is none of the filter's.
    #[error(
        "`{0}` is no part of a filter; use src, dst, port, sport, dport, process, pid or cgroup, each with its value"
    )]
    Word(String),
    /// A word without its value.
    #[error("`{0}` has no value; write for example `port 443`")]
    NoValue(String),
    /// A value that does not fit its word.
    #[error("`{value}` can't follow `{word}`; write for example `dst 10.0.0.0/8`, `port 443` or `process nginx`")]
    Value {
        /// The word.
        word: String,
        /// What followed.
        value: String,
    },
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let mut terms = Vec::new();
        let mut words = text.split_whitespace().filter(|word| *word != "and");
        while let Some(word) = words.next() {
            const WORDS: &[&str] = &["src", "dst", "port", "sport", "dport", "process", "pid", "cgroup"];
            if !WORDS.contains(&word) {
                return Err(FilterError::Word(word.to_owned()));
            }
            let value = words.next().ok_or_else(|| FilterError::NoValue(word.to_owned()))?;
            let wrong = || FilterError::Value { word: word.to_owned(), value: value.to_owned() };
            let port = || value.parse().map_err(|_| wrong());
            terms.push(match word {
                "src" => Term::Source(value.parse().map_err(|_| wrong())?),
                "dst" => Term::Destination(value.parse().map_err(|_| wrong())?),
                "port" => Term::Port(port()?),
                "sport" => Term::LocalPort(port()?),
                "dport" => Term::PeerPort(port()?),
                "pid" => Term::Pid(value.parse().map_err(|_| wrong())?),
                "cgroup" => Term::Group(value.to_owned()),
                _ => Term::Process(value.to_owned()),
            });
        }
        Ok(Self { terms, text: text.trim().to_owned() })
    }
}

/// As it was written.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Term {
    /// Whether it holds; `None` where only the owner tells, who is not known.
    fn holds(&self, id: &SocketId, owner: Option<&Owner>) -> Option<bool> {
        Some(match self {
            Self::Source(network) => network.contains(id.local.ip()),
            Self::Destination(network) => network.contains(id.peer.ip()),
            Self::Port(port) => id.local.port() == *port || id.peer.port() == *port,
            Self::LocalPort(port) => id.local.port() == *port,
            Self::PeerPort(port) => id.peer.port() == *port,
            Self::Process(name) => match name.strip_suffix('*') {
                Some(start) => owner?.process.starts_with(start),
                None => owner?.process == *name,
            },
            Self::Pid(pid) => owner?.pid == *pid,
            Self::Group(part) => owner?.cgroup.as_ref().is_some_and(|cgroup| cgroup.contains(part.as_str())),
        })
    }

    fn is_of_owner(&self) -> bool {
        matches!(self, Self::Process(_) | Self::Pid(_) | Self::Group(_))
    }
}

impl Filter {
    /// Whether it asks for the owner.
    pub fn needs_owner(&self) -> bool {
        self.terms.iter().any(Term::is_of_owner)
    }

    /// Whether a connection's addresses and ports pass, whoever has it.
    pub fn passes_address(&self, id: &SocketId) -> bool {
        self.all_kinds(|term| term.is_of_owner() || term.holds(id, None) == Some(true))
    }

    /// Whether a connection passes. Without a known owner, none of the owner's terms does.
    pub fn passes(&self, id: &SocketId, owner: Option<&Owner>) -> bool {
        self.all_kinds(|term| term.holds(id, owner) == Some(true))
    }

    fn all_kinds(&self, holds: impl Fn(&Term) -> bool) -> bool {
        let same = |a: &Term, b: &Term| std::mem::discriminant(a) == std::mem::discriminant(b);
        self.terms.iter().all(|term| self.terms.iter().any(|other| same(term, other) && holds(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(local: &str, peer: &str) -> SocketId {
        SocketId { is_v6: false, local: local.parse().unwrap(), peer: peer.parse().unwrap(), interface: 0, cookie: 1 }
    }

    fn owner(process: &str) -> Owner {
        Owner { process: process.to_owned(), pid: 7, cgroup: Some("/system.slice/web".to_owned()), ..Owner::default() }
    }

    #[test]
    fn terms_of_different_kinds_must_all_hold_and_of_one_kind_one() {
        let web = id("192.0.2.1:443", "10.1.2.3:50000");
        let passes = |text: &str| text.parse::<Filter>().unwrap().passes(&web, Some(&owner("nginx")));
        for text in [
            "",
            "dst 10.0.0.0/8 port 443 process nginx",
            "port 80 port 443",
            "dst 0.0.0.0/0",
            "src 192.0.2.1 and sport 443 and dport 50000",
            "process ngi* pid 7 cgroup slice/web",
        ] {
            assert!(passes(text), "{text}");
        }
        for text in ["dst 11.0.0.0/8", "sport 50000", "dst ::/0", "process ngin", "pid 8", "port 443 process curl"] {
            assert!(!passes(text), "{text}");
        }
    }

    #[test]
    fn prefixes_of_ipv6_and_of_no_length_work() {
        let six = id("[2001:db8::1]:1", "[2001:db8:ffff::2]:2");
        assert!("dst 2001:db8::/32".parse::<Filter>().unwrap().passes(&six, None));
        assert!("dst ::/0".parse::<Filter>().unwrap().passes(&six, None));
        assert!(!"dst 2001:db8::/48".parse::<Filter>().unwrap().passes(&six, None));
    }

    #[test]
    fn an_unknown_owner_passes_no_filter_for_owners() {
        let filter: Filter = "process nginx port 443".parse().unwrap();
        let web = id("192.0.2.1:443", "10.1.2.3:50000");
        assert!(filter.needs_owner() && filter.passes_address(&web) && !filter.passes(&web, None));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!("host a".parse::<Filter>(), Err(FilterError::Word("host".to_owned())));
        assert_eq!("port".parse::<Filter>(), Err(FilterError::NoValue("port".to_owned())));
        for text in ["port 70000", "dst 10.0.0.0/33", "dst ::/129", "dst x", "pid -1"] {
            assert!(matches!(text.parse::<Filter>(), Err(FilterError::Value { .. })), "{text}");
        }
    }
}
