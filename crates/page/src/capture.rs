//! What was found in captures, put in order for a reader: worst first, with the setting that lifts each limit. What is
//! *not* here: how it looks (`text`, `json`, `csv`).

use std::{collections::BTreeMap, net::IpAddr};

use fullpipe_capture::{Endpoint, Report, Reports, Side};
use fullpipe_diagnose::{Detail, Limiter};
use fullpipe_knobs::{Catalogue, Platform, PlatformRequest, plan_platform};
use fullpipe_units::{Bytes, Micros, Rate, bdp};

/// What captures held.
#[derive(Clone, Debug, Default)]
pub struct CaptureList {
    /// The connections, worst first.
    pub connections: Reports,
    /// How many of them are to be shown.
    pub shown: usize,
    /// Connections that were only counted, because there were too many without payload.
    pub unlisted: u64,
    /// Of these, SYNs that nobody answered.
    pub unanswered: u64,
    /// What was read.
    pub files: Vec<CaptureFile>,
    /// Connections that were seen at two places.
    pub vantages: Vec<Vantages>,
    /// What could not be read.
    pub problems: Vec<CaptureProblem>,
    /// How many problems there were, also those that are not listed.
    pub problem_count: u64,
}

/// One file that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureFile {
    /// Its name.
    pub name: String,
    /// Where it was taken, from 0: captures that overlap in time are of different places.
    pub place: usize,
    /// From its first TCP segment to the last one.
    pub lasted: Micros,
    /// Packets in it.
    pub packets: u64,
    /// Their bytes as sent.
    pub bytes: u64,
    /// TCP segments among them.
    pub segments: u64,
}

/// What limited how many connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limited {
    /// What; not enough evidence, also where there was too little to judge.
    pub limiter: Limiter,
    /// How.
    pub detail: Option<Detail>,
    /// So many.
    pub connections: usize,
    /// Their payload, repeats apart.
    pub payload: Bytes,
}

/// One connection, seen at two places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vantages {
    /// Its number as it was seen nearer the end that sent most. That end's side of the path tells more: its round trips, and what
    /// was lost on the way.
    pub near: u64,
    /// Its number as it was seen farther from it.
    pub far: u64,
    /// Whether both have the same verdict.
    pub agree: bool,
}

/// Something in a capture that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureProblem {
    /// The file.
    pub file: String,
    /// The number of the packet in it; `None` where it is about the whole file.
    pub packet: Option<u64>,
    /// What is wrong.
    pub message: String,
}

/// How a limit is lifted on one platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The host that must change, by address.
    pub host: String,
    /// The platform in catalogue spelling.
    pub platform: String,
    /// Whether the host's SYN looked like that platform.
    pub is_guess: bool,
    /// Settings with their values, where that platform's defaults would not do.
    pub settings: Vec<String>,
    /// Else the settings that must have been lowered.
    pub look_at: Vec<String>,
}

impl CaptureList {
    /// The same connection as seen elsewhere.
    pub fn vantages_of(&self, number: u64) -> Option<&Vantages> {
        self.vantages.iter().find(|vantages| [vantages.near, vantages.far].contains(&number))
    }

    /// The file that a packet is in; packets' numbers run on from file to file.
    pub fn file_of(&self, packet: u64) -> Option<&CaptureFile> {
        let mut last = 0;
        self.files.iter().find(|file| {
            last += file.packets;
            packet <= last
        })
    }

    /// How many places the captures were taken at.
    pub fn places(&self) -> usize {
        self.files.iter().map(|file| file.place + 1).max().unwrap_or(0)
    }

    /// What all connections carried, and in what time; `None` where some of them were seen at two places.
    pub fn carried(&self) -> Option<(Bytes, Micros)> {
        let payload = self.connections.limits().map(|(_, payload)| payload.get()).sum();
        let lasted = self.files.iter().map(|file| file.lasted.get()).sum();
        (self.places() <= 1).then_some((Bytes::new(payload), Micros::new(lasted)))
    }

    /// What limits all connections, each limit once: first what limits those that carried most together.
    pub fn limits(&self) -> Vec<Limited> {
        let mut sums: BTreeMap<(Limiter, Option<Detail>), (usize, u64)> = BTreeMap::new();
        for (limit, carried) in self.connections.limits() {
            let (connections, payload) =
                sums.entry(limit.unwrap_or((Limiter::InsufficientEvidence, None))).or_default();
            *connections += 1;
            *payload += carried.get();
        }
        let limited = |((limiter, detail), (connections, payload))| Limited {
            limiter,
            detail,
            connections,
            payload: Bytes::new(payload),
        };
        let mut limits: Vec<Limited> = sums.into_iter().map(limited).collect();
        limits.sort_by_key(|limit| core::cmp::Reverse(limit.payload));
        limits
    }

    /// Puts as many connections as are to be shown in order: those first in which most time was lost to something that can
    /// be lifted.
    pub fn sort(&mut self) {
        self.connections.worst_first(self.shown);
    }
}

/// `192.0.2.7:5201`, `[2001:db8::7]:5201`.
pub fn endpoint(end: Endpoint) -> String {
    std::net::SocketAddr::new(IpAddr::from(end.address), end.port).to_string()
}

/// What to type into Wireshark to see the connection, as its "Conversation Filter" writes it.
pub fn display_filter(report: &Report) -> String {
    let [a, b] = [report.a, report.b].map(|end| IpAddr::from(end.address).to_canonical());
    let family = if a.is_ipv4() { "ip" } else { "ipv6" };
    let (from, to) = (report.a.port, report.b.port);
    format!("{family}.addr eq {a} and {family}.addr eq {b} and tcp.port eq {from} and tcp.port eq {to}")
}

/// The platforms for which a setting is named where the host's own is not known.
const PLATFORMS: [&str; 3] = ["windows-2012", "linux", "freebsd"];

/// A rate to size for where nothing shows what the path carries: ten times what was measured.
const FURTHER: u64 = 10;

/// Which setting of which host lifts what limits the side that sends most.
pub fn advice(report: &Report) -> Vec<Advice> {
    let main = report.main();
    let Some(verdict) = &report.sides[main].verdict else { return Vec::new() };
    let diagnosis = &verdict.diagnosis;
    let at_receiver = match (diagnosis.limiter, diagnosis.detail) {
        // Nothing that can be set makes an application read or write sooner.
        (Limiter::ReceiveWindow, Some(Detail::ZeroWindow | Detail::SlowReader)) => return Vec::new(),
        (Limiter::ReceiveWindow, _) => true,
        (Limiter::SendBuffer, _) => false,
        _ => return Vec::new(),
    };
    let host = if at_receiver { 1 - main } else { main };
    let address = if host == 0 { report.a } else { report.b };
    let address = IpAddr::from(address.address).to_string();
    let (Some(rate), Some(rtt)) = (target(&report.sides[main]), report.rtt) else { return Vec::new() };
    let guessed = report.sides[host].platform.map(|platform| platform.catalogue);
    let others = PLATFORMS.into_iter().filter(|name| guessed.is_none_or(|guessed| !guessed.starts_with(*name)));
    let names = guessed.into_iter().map(|name| (name, true)).chain(others.map(|name| (name, false)));
    let advice = names.filter_map(|(name, is_guess)| {
        let platform = name.parse().ok()?;
        let settings = settings(&platform, diagnosis.limiter, rate, rtt);
        let look_at = if settings.is_empty() { lifting(&platform, diagnosis.limiter) } else { Vec::new() };
        Some(Advice { host: address.clone(), platform: name.to_owned(), is_guess, settings, look_at })
    });
    advice.filter(|advice| !advice.settings.is_empty() || !advice.look_at.is_empty()).collect()
}

/// What the window or buffer is to be sized for, in words: `1,000,000 B (100 Mbit/s x 80.0 ms / 8)`.
pub fn needed(report: &Report) -> Option<String> {
    let (rate, rtt) = (target(report.main_side())?, report.rtt?);
    Some(format!("{} ({rate} x {rtt} / 8)", bdp(rate, rtt)))
}

fn target(side: &Side) -> Option<Rate> {
    let known = side.verdict.as_ref().and_then(|verdict| verdict.diagnosis.attainable_bps);
    known.or_else(|| Some(Rate::from_bps(side.rate?.bps().saturating_mul(FURTHER)))).filter(|rate| rate.bps() > 0)
}

/// How many settings are named that may have been lowered.
const NAMED: usize = 3;

/// The first settings of the catalogue that lift `limiter` and that this version honours.
fn lifting(platform: &Platform, limiter: Limiter) -> Vec<String> {
    let Some(catalogue) = Catalogue::for_family(platform.family) else { return Vec::new() };
    let acts = |knob: &&fullpipe_knobs::Knob| {
        knob.lifts.first() == Some(&limiter) && catalogue.refusal(&knob.address, &platform.version).is_none()
    };
    catalogue.knobs.iter().filter(acts).take(NAMED).map(|knob| knob.address.to_string()).collect()
}

fn settings(platform: &Platform, limiter: Limiter, rate: Rate, rtt: Micros) -> Vec<String> {
    let request = PlatformRequest::new(platform.clone(), rate, rtt);
    let plan = plan_platform(&request);
    let lifts = |knob: &fullpipe_knobs::Address| {
        let known = Catalogue::for_family(platform.family).and_then(|catalogue| catalogue.find(knob));
        known.is_some_and(|knob| knob.lifts.contains(&limiter))
    };
    let changes = plan.changes.iter().filter(|change| lifts(&change.knob));
    changes.map(|change| format!("{} = {}", change.knob, change.to.as_deref().unwrap_or("(absent)"))).collect()
}
