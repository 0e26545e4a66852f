//! Which segments of a capture count: by host, port, network and time. What is *not* here: Wireshark's or tcpdump's
//! languages, which go far beyond what connections need.

use core::{net::IpAddr, str::FromStr};

use fullpipe_units::{Micros, Network};

use crate::{Address, Endpoint, Flow, Segment, Sink, TooBig};

/// Terms that all must hold: `host 10.0.0.2 port 5201`, `net 10.0.0.0/8 and time 3s..10s`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    terms: Vec<Term>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Term {
    /// Either end has this address.
    Host(Address),
    /// Either end has this port.
    Port(u16),
    /// Either end is in this network.
    Net { address: Address, bits: u8 },
    /// Since the first segment of the capture.
    Time { from: Option<Micros>, to: Option<Micros> },
}

/// A text that is no filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseFilterError {
    /// The part that can't be understood.
    pub word: String,
}

impl core::fmt::Display for ParseFilterError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "can't understand `{}`; expected terms such as `host 10.0.0.2`, `port 443`, `net 10.0.0.0/8`, `time 3s..10s`",
            self.word
        )
    }
}

impl core::error::Error for ParseFilterError {}

impl FromStr for Filter {
    type Err = ParseFilterError;

    fn from_str(text: &str) -> Result<Self, ParseFilterError> {
        let mut words = text.split_whitespace().filter(|word| *word != "and");
        let mut terms = Vec::new();
        while let Some(name) = words.next() {
            let wrong = |word: &str| ParseFilterError { word: word.to_owned() };
            let value = words.next().ok_or_else(|| wrong(name))?;
            let term = match name {
                "host" => value.parse::<IpAddr>().ok().map(|address| Term::Host(address.into())),
                "port" => value.parse().ok().map(Term::Port),
                "net" => value.parse().ok().map(net),
                "time" => time(value),
                _ => return Err(wrong(name)),
            };
            terms.push(term.ok_or_else(|| wrong(value))?);
        }
        Ok(Self { terms })
    }
}

/// Ready to be compared with many addresses.
fn net(network: Network) -> Term {
    let address = network.address();
    // IPv4 is mapped into the last 32 bits of IPv6.
    let before = if address.is_ipv4() { 96 } else { 0 };
    Term::Net { address: address.into(), bits: before + network.length() }
}

fn time(text: &str) -> Option<Term> {
    let (from, to) = text.split_once("..")?;
    let bound = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
    Some(Term::Time { from: bound(from)?, to: bound(to)? })
}

impl Filter {
    fn passes(&self, flow: &Flow, since_ns: u64) -> bool {
        let either = |test: &dyn Fn(&Endpoint) -> bool| test(&flow.from) || test(&flow.to);
        self.terms.iter().all(|term| match *term {
            Term::Host(address) => either(&|end| end.address == address),
            Term::Port(port) => either(&|end| end.port == port),
            Term::Net { address, bits } => either(&|end| is_within(end.address, address, bits)),
            Term::Time { from, to } => {
                let us = since_ns / 1_000;
                from.is_none_or(|from| us >= from.get()) && to.is_none_or(|to| us <= to.get())
            }
        })
    }
}

const fn is_within(address: Address, net: Address, bits: u8) -> bool {
    bits == 0 || (address.0 ^ net.0) >> (128 - bits as u32) == 0
}

/// Hands on what passes a filter.
#[derive(Debug)]
pub struct Filtered<S> {
    filter: Filter,
    first_ns: Option<u64>,
    sink: S,
}

impl<S: Sink> Filtered<S> {
    /// `sink` gets what passes `filter`.
    pub const fn new(filter: Filter, sink: S) -> Self {
        Self { filter, first_ns: None, sink }
    }

    /// Gives the sink back.
    pub fn into_inner(self) -> S {
        self.sink
    }

    fn since(&mut self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(*self.first_ns.get_or_insert(at_ns))
    }
}

impl<S: Sink> Sink for Filtered<S> {
    fn segment(&mut self, segment: &Segment<'_>) {
        let since_ns = self.since(segment.at_ns);
        if self.filter.terms.is_empty() || self.filter.passes(&segment.flow, since_ns) {
            self.sink.segment(segment);
        }
    }

    fn too_big(&mut self, notice: &TooBig) {
        let since_ns = self.since(notice.at_ns);
        if self.filter.passes(&notice.about, since_ns) {
            self.sink.too_big(notice);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(from: &str, to: &str) -> Flow {
        let end = |text: &str, port| Endpoint { address: text.parse::<IpAddr>().unwrap().into(), port };
        Flow { from: end(from, 4_000), to: end(to, 80), outer: 0 }
    }

    #[test]
    fn all_terms_must_hold_for_either_end() {
        let four = flow("10.1.2.3", "192.0.2.1");
        let six = flow("2001:db8::1", "2001:db8:1::2");
        let passes = |text: &str, flow: &Flow, ms: u64| text.parse::<Filter>().unwrap().passes(flow, ms * 1_000_000);
        assert!(passes("host 192.0.2.1 and port 80", &four, 0));
        assert!(!passes("host 192.0.2.1 port 81", &four, 0));
        assert!(passes("net 10.1.0.0/16", &four, 0) && !passes("net 10.2.0.0/16", &four, 0));
        assert!(passes("net 2001:db8:1::/48", &six, 0) && !passes("net 2001:db8:2::/48", &six, 0));
        assert!(passes("net 10.1.2.3", &four, 0) && !passes("net 10.1.2.4", &four, 0));
        assert!(passes("net 0.0.0.0/0", &four, 0) && !passes("net 0.0.0.0/0", &six, 0));
        assert!(passes("time 1s..2s", &four, 1_500) && !passes("time 1s..2s", &four, 2_500));
        assert!(passes("time ..2s", &four, 0) && !passes("time 1s..", &four, 999));
        assert!(passes("", &four, 0));
    }

    #[test]
    fn what_is_no_filter_is_named() {
        for (text, word) in [
            ("host", "host"),
            ("host x", "x"),
            ("port 70000", "70000"),
            ("net 10.0.0.0/33", "10.0.0.0/33"),
            ("net 10.0.0.0/", "10.0.0.0/"),
            ("time 3s", "3s"),
            ("tcp port 80", "tcp"),
        ] {
            assert_eq!(text.parse::<Filter>(), Err(ParseFilterError { word: word.to_owned() }), "{text}");
        }
    }
}
