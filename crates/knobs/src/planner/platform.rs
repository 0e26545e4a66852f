//! A plan for a platform that is not here: from a rate and a round-trip time, with the settings that a file tells.

use std::collections::BTreeMap;

use fullpipe_diagnose::{Confidence, Detail, Diagnosis, End, Limiter, PathRate, RttSummary, Transfer};
use fullpipe_units::{Bytes, Micros, Rate, bdp};

use super::{
    Flow, Goal, PlanHost, PlanRequest, bsd,
    linux::three,
    mtu, netburner,
    sizing::{Pipe, pressure},
    windows,
};
use crate::{
    Address, Catalogue, Change, Family, Packets, Plan, Platform, Settings, TakesEffect,
    catalogue::{self, Honoured, Knob, Span},
};

/// What is asked for a platform.
#[derive(Clone, Debug)]
pub struct PlatformRequest<'a> {
    /// Which platform.
    pub platform: Platform,
    /// What the path carries, above zero.
    pub rate: Rate,
    /// How long it is, above zero.
    pub rtt: Micros,
    /// How many connections may fill their buffers at once. Absent: on a NetBurner as many as there are sockets in
    /// the settings, or one, else [`PlanRequest::DEFAULT_CONNECTIONS`].
    pub connections: Option<u32>,
    /// What the machine is for.
    pub goal: Goal,
    /// The machine's own settings, where a file tells them; else the platform's defaults are taken.
    pub settings: Option<&'a Settings>,
    /// The most memory that buffers may take in the worst case.
    pub memory_bound: Option<Bytes>,
    /// What is known of the path's packets.
    pub packets: &'a Packets,
    /// The other end, as an address or a prefix, for settings that can be given to connections with one peer.
    pub peer: Option<&'a str>,
    /// Also change values that an administrator set in a boot-time file (Linux; the files of others are what a plan is of).
    pub allow_override: bool,
}

impl PlatformRequest<'_> {
    /// Bulk transfers over a path of which nothing else is known, on a machine whose settings no file tells.
    pub const fn new(platform: Platform, rate: Rate, rtt: Micros) -> Self {
        Self {
            platform,
            rate,
            rtt,
            connections: None,
            goal: Goal::Bulk,
            settings: None,
            memory_bound: None,
            packets: &Packets::UNKNOWN,
            peer: None,
            allow_override: false,
        }
    }
}

/// What to set on a platform so that a connection fills a path, what it costs, and what can't be done there.
pub fn plan_platform(request: &PlatformRequest<'_>) -> Plan {
    let mut draft = Draft::new(request);
    match request.platform.family {
        Family::Linux => draft.plan = linux(request),
        Family::Windows => windows::plan(request, &mut draft),
        Family::FreeBsd => bsd::freebsd(request, &mut draft),
        Family::MacOs => bsd::macos(request, &mut draft),
        Family::NetBurner => netburner::plan(request, &mut draft),
        Family::Unknown => {}
    }
    mtu::plan(request, &mut draft);
    if let Some(peer) = request.peer {
        unused_peer(peer, &mut draft);
    }
    foreign(&mut draft);
    if request.settings.is_none() && !draft.plan.changes.is_empty() {
        let words = "planned from the platform's defaults, not from this machine's settings: leave a value alone where it is larger already";
        draft.note(words.to_owned());
    }
    draft.plan
}

/// Says where a peer that was named makes no difference.
fn unused_peer(peer: &str, draft: &mut Draft<'_>) {
    let filter = |change: &Change| matches!(&change.knob, Address::Named { kind, .. } if kind == "transportfilter");
    if draft.plan.changes.iter().any(filter) {
        return;
    }
    let way = match draft.platform.family {
        Family::Windows if draft.is_at_least("8") => format!(
            "where {peer} needs other values than all others, give them to a custom template (Set-NetTCPSetting -SettingName InternetCustom, on Server 2012 Custom), and the template to the peer (New-NetTransportFilter -SettingName InternetCustom -DestinationPrefix {peer})"
        ),
        Family::Linux => format!("`fullpipe tune` with --destination sets what a route can say for {peer} alone"),
        Family::Windows | Family::FreeBsd | Family::MacOs | Family::NetBurner | Family::Unknown => {
            "this platform has no settings for one peer".to_owned()
        }
    };
    draft.note(format!("--peer {peer} is not used: nothing of this plan is for one peer; {way}"));
}

/// Names settings that a file tells and this version does not have: the file is of another version, most likely.
fn foreign(draft: &mut Draft<'_>) {
    let (Some(settings), Some(catalogue)) = (draft.settings, draft.catalogue) else { return };
    let absent = settings.values.iter().filter(|(knob, value)| {
        // Newer versions still print a line for what they don't have any more.
        let is_unset =
            value.as_deref().is_some_and(|value| ["default", "none"].contains(&value.to_ascii_lowercase().as_str()));
        let span = catalogue.at(knob, &draft.platform.version).map(|(_, span)| span);
        value.is_some() && !is_unset && span.is_some_and(|span| span.honoured == Honoured::Absent && span.confirmed)
    });
    let mut names: Vec<String> = absent
        .map(|(knob, _)| match knob {
            Address::TcpSetting { parameter, .. } | Address::Netsh { parameter, .. } => parameter.clone(),
            Address::Registry { value, .. } => value.clone(),
            knob => knob.to_string(),
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    if let [first, others @ ..] = names.as_slice() {
        let more = others.len().saturating_sub(3);
        let mut shown: Vec<&str> = std::iter::once(first).chain(others.iter().take(3)).map(String::as_str).collect();
        let rest = format!("{more} more");
        if more > 0 {
            shown.push(&rest);
        }
        draft.note(format!(
            "the settings have what {} does not have ({}): they look like another version's; give --platform as it is, or the export of this machine",
            draft.platform,
            shown.join(", ")
        ));
    }
}

/// A plan in the making.
pub(super) struct Draft<'a> {
    pub(super) plan: Plan,
    pub(super) pipe: Pipe,
    pub(super) connections: u64,
    /// The payload of a full segment.
    pub(super) segment: u64,
    settings: Option<&'a Settings>,
    pub(super) platform: &'a Platform,
    catalogue: Option<&'static Catalogue>,
}

/// One value that a draft asks for.
pub(super) struct Ask {
    pub(super) knob: Address,
    /// `None` removes it.
    pub(super) to: Option<String>,
    pub(super) reason: String,
    pub(super) arithmetic: String,
    pub(super) memory: Option<Bytes>,
}

impl<'a> Draft<'a> {
    fn new(request: &'a PlatformRequest<'_>) -> Self {
        let usual = if request.platform.family == Family::NetBurner {
            let sockets = request.settings.map_or(0, |settings| settings.sockets.len());
            u32::try_from(sockets).unwrap_or(u32::MAX)
        } else {
            PlanRequest::DEFAULT_CONNECTIONS
        };
        Self {
            plan: Plan::default(),
            pipe: Pipe::named(request.rate, request.rtt),
            connections: u64::from(request.connections.unwrap_or(usual).max(1)),
            segment: u64::from(request.packets.segment().mss()),
            settings: request.settings,
            platform: &request.platform,
            catalogue: catalogue::for_platform(&request.platform),
        }
    }

    pub(super) fn note(&mut self, words: String) {
        self.plan.notes.push(words);
    }

    /// Whether the platform's version is `bound` or newer. An unnamed version counts as the newest.
    pub(super) fn is_at_least(&self, bound: &str) -> bool {
        let known = self.catalogue.and_then(|catalogue| catalogue.is_at_least(&self.platform.version, bound));
        known.unwrap_or(true)
    }

    /// The platform's version; empty where none is named.
    pub(super) fn version(&self) -> &'a str {
        &self.platform.version
    }

    /// The properties of interfaces that have this value: device and property.
    pub(super) fn links_with(&self, value: &str) -> Vec<(&'a str, &'a str)> {
        let Some(settings) = self.settings else { return Vec::new() };
        let found = settings.values.iter().filter_map(|(knob, now)| match knob {
            Address::Link { device, property } if now.as_deref() == Some(value) => {
                Some((device.as_str(), property.as_str()))
            }
            _ => None,
        });
        found.collect()
    }

    /// The machine's settings, where files tell them.
    pub(super) fn settings(&self) -> Option<&'a Settings> {
        self.settings
    }

    /// The value that a file gives.
    pub(super) fn now(&self, knob: &Address) -> Option<&'a str> {
        self.settings?.values.get(knob)?.as_deref()
    }

    /// A number that a file gives, else the platform's default where the catalogue knows it as a number.
    pub(super) fn number(&self, knob: &Address) -> Option<u64> {
        let default = || {
            let (_, span) = self.catalogue?.at(knob, &self.platform.version)?;
            span.default.split([' ', ';', ',']).next()?.parse().ok()
        };
        self.now(knob).and_then(number).or_else(default)
    }

    /// The interface that a plan may change: the one that is named, else the only one that settings tell.
    pub(super) fn device(&self, packets: &Packets) -> Option<String> {
        if packets.device.is_some() {
            return packets.device.clone();
        }
        let loopback = |device: &str| device.starts_with("lo") && device[2..].bytes().all(|b| b.is_ascii_digit());
        let settings = self.settings?;
        let links = settings.links.iter().map(|link| link.device.as_str());
        // A line of rc.conf tells of an interface, too.
        let lines = settings.values.keys().filter_map(|knob| match knob {
            Address::Link { device, .. } => Some(device.as_str()),
            _ => None,
        });
        let mut names = links.chain(lines).filter(|device| !loopback(device));
        let only = names.next()?;
        names.all(|name| name == only).then(|| only.to_owned())
    }

    /// The use of the network's buffers, as far as a file gives it.
    pub(super) fn mbufs(&self) -> crate::Mbufs {
        self.settings.and_then(|settings| settings.mbufs).unwrap_or_default()
    }

    /// The machine's memory, where a file gives it.
    pub(super) fn memory(&self) -> Option<Bytes> {
        self.settings?.machine.memory
    }

    /// The numbers of one name that a file gives for keys below `root`.
    pub(super) fn registry_below(&self, root: &str, name: &str) -> Vec<(Address, u64)> {
        let Some(settings) = self.settings else { return Vec::new() };
        let below = |key: &str| key.get(..root.len()).is_some_and(|start| start.eq_ignore_ascii_case(root));
        let found = settings.values.iter().filter_map(|(knob, now)| match knob {
            Address::Registry { key, value } if below(key) && value.eq_ignore_ascii_case(name) => {
                Some((knob.clone(), number(now.as_deref()?)?))
            }
            _ => None,
        });
        found.collect()
    }

    /// The parameters of TCP templates that a file gives: template, parameter, value.
    pub(super) fn templates(&self) -> Vec<(&'a str, &'a str, &'a str)> {
        let Some(settings) = self.settings else { return Vec::new() };
        let found = settings.values.iter().filter_map(|(knob, now)| match knob {
            Address::TcpSetting { template, parameter } => {
                Some((template.as_str(), parameter.as_str(), now.as_deref()?))
            }
            _ => None,
        });
        found.collect()
    }

    /// What the catalogue says of a setting on this version.
    pub(super) fn span(&self, knob: &Address) -> Option<&'static Span> {
        Some(self.catalogue?.at(knob, &self.platform.version)?.1)
    }

    /// Proposes to turn on again what a file says is off, because of what is lost without it.
    pub(super) fn turn_on(&mut self, knob: Address) {
        let loss = self.catalogue.and_then(|catalogue| catalogue.find(&knob)?.off.clone());
        if self.now(&knob).and_then(number) == Some(0) {
            let (to, reason) = (Some("1".to_owned()), loss.unwrap_or_default());
            self.ask(Ask { knob, to, reason, arithmetic: String::new(), memory: None });
        }
    }

    /// Proposes a value, unless this version does nothing with it: then that is a note.
    pub(super) fn ask(&mut self, ask: Ask) {
        let from = self.now(&ask.knob).map(str::to_owned);
        self.ask_from(ask, from);
    }

    /// As [`Self::ask`], where a file tells the value now under another name.
    pub(super) fn ask_from(&mut self, ask: Ask, from: Option<String>) {
        let Some(knob) = self.catalogue.and_then(|catalogue| catalogue.find(&ask.knob)) else {
            self.note(format!("{} is not in the catalogue, so it is left alone", ask.knob));
            return;
        };
        let span = self.catalogue.and_then(|catalogue| catalogue.span(knob, &self.platform.version));
        if let Some(span) = span {
            match span.honoured {
                Honoured::Yes | Honoured::Partly => {}
                Honoured::Unknown => self.note(format!("{}: {}", ask.knob, span.note)),
                Honoured::ReadOnly => {
                    self.note(format!("{} can't be written on {}: {}", ask.knob, self.platform, span.note));
                    return;
                }
                Honoured::Ignored | Honoured::Absent => {
                    self.note(format!("{} does nothing on {}: {}", ask.knob, self.platform, span.note));
                    return;
                }
            }
        }
        self.add(knob, ask, from);
    }

    /// Proposes a value that this machine only shows, because it is set elsewhere, as a policy is.
    pub(super) fn ask_elsewhere(&mut self, ask: Ask) {
        let from = self.now(&ask.knob).map(str::to_owned);
        if let Some(knob) = self.catalogue.and_then(|catalogue| catalogue.find(&ask.knob)) {
            self.add(knob, ask, from);
        }
    }

    fn add(&mut self, knob: &Knob, ask: Ask, from: Option<String>) {
        let undo = undo(&knob.undo, &ask.knob, from.as_deref().unwrap_or("<the value that was there>"));
        self.plan.changes.push(Change {
            host: self.platform.to_string(),
            knob: ask.knob,
            from,
            to: ask.to,
            reason: ask.reason,
            arithmetic: ask.arithmetic,
            memory_worst_case: ask.memory,
            takes_effect: knob.takes_effect.unwrap_or(TakesEffect::NewConnections),
            undo,
            source: knob.source(),
        });
    }

    /// The most that one connection may take of the memory bound; a note where that is less than `wanted`.
    pub(super) fn within_bound(&mut self, wanted: Bytes, bound: Option<Bytes>) -> Bytes {
        let Some(bound) = bound else { return wanted };
        let each = Bytes::new(bound.get() / self.connections);
        if each >= wanted {
            return wanted;
        }
        let connections = self.connections;
        self.note(format!(
            "{wanted} for each of {connections} connections would exceed the memory bound of {bound}; planned with {each}, so the pipe may not be filled"
        ));
        each
    }
}

/// How a change is undone by hand. The name of an interface stands in it only where no shell could misread it.
fn undo(words: &str, knob: &Address, from: &str) -> String {
    let words = words.replace("{address}", &knob.to_string()).replace("{from}", from);
    let plain = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b" ._-".contains(&b));
    match knob {
        Address::Link { device, .. } if plain(device) => words.replace("<dev>", device),
        Address::TcpSetting { template, .. } if plain(template) => words.replace("<template>", template),
        _ => words,
    }
}

/// A number as the platforms write it: `64240`, `0xfaf0`, `dword:0000faf0`.
pub(super) fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("dword:"));
    hex.map_or_else(|| text.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
}

/// Linux has its own planner: it is asked as if both directions had been limited by their buffers.
fn linux(request: &PlatformRequest<'_>) -> Plan {
    let name = request.platform.to_string();
    let defaults;
    let settings = match request.settings {
        Some(settings) => settings,
        None => {
            defaults = linux_defaults(&request.platform);
            &defaults
        }
    };
    let transfer = |sender: &str, receiver: &str| Transfer {
        sender: End { name: sender.to_owned(), ..End::default() },
        receiver: End { name: receiver.to_owned(), ..End::default() },
        idle_rtt: Some(RttSummary { min_us: request.rtt, p50_us: request.rtt, count: 0 }),
        path_rate: Some(PathRate { rate_bps: request.rate, lower_bound: false }),
        ..Transfer::default()
    };
    let assumed = |limiter, detail| Diagnosis {
        limiter,
        detail: Some(detail),
        share: 1.0,
        attainable_bps: None,
        or: Vec::new(),
        confidence: Confidence::Low,
        shares: BTreeMap::new(),
        evidence: Vec::new(),
        blind: Vec::new(),
        action: String::new(),
    };
    let transfers = [transfer("the peer", &name), transfer(&name, "the peer")];
    let verdicts =
        [assumed(Limiter::ReceiveWindow, Detail::WindowCeiling), assumed(Limiter::SendBuffer, Detail::BufferCap)];
    let flows = transfers.iter().zip(&verdicts).map(|(transfer, diagnosis)| Flow { transfer, diagnosis }).collect();
    let mut asked = PlanRequest::new(vec![PlanHost { name: &name, settings, peer: None }], flows);
    asked.goal = request.goal;
    asked.memory_bound = request.memory_bound;
    asked.connections = request.connections.unwrap_or(PlanRequest::DEFAULT_CONNECTIONS);
    asked.allow_override = request.allow_override;
    asked.is_assumed = true;
    let mut plan = super::plan(&asked);
    for change in &mut plan.changes {
        let window = change.knob == Address::sysctl("net.ipv4.tcp_rmem");
        if window || change.knob == Address::sysctl("net.ipv4.tcp_wmem") {
            let what = if window { "the receive window" } else { "unacknowledged data" };
            let largest = change.from.as_deref().and_then(|from| from.split_whitespace().last()?.parse().ok());
            let largest = largest.map_or_else(|| "the default".to_owned(), |bytes| Bytes::new(bytes).to_string());
            change.reason = format!("a maximum of {largest} limits {what} to less than the bandwidth-delay product");
        }
    }
    if let Some((pressure, true)) = pressure(settings) {
        plan.notes.push(format!(
            "net.ipv4.tcp_mem looks as if it were meant as bytes, and its unit is pages: above its second value, {pressure} for all sockets together, the kernel holds buffers back, whatever tcp_rmem and tcp_wmem allow. Take the line out: the kernel sizes it by memory"
        ));
    }
    if plan.changes.is_empty() && plan.notes.is_empty() {
        plan.notes = nothing_to_set(settings, bdp(request.rate, request.rtt));
    }
    plan
}

/// Why a plan for Linux has nothing: the buffers hold the path's `product`, or what keeps one from being planned.
fn nothing_to_set(settings: &Settings, product: Bytes) -> Vec<String> {
    let lacking = |name: &&str| match three(settings, name) {
        Some([_, _, largest]) if largest >= product => None,
        Some([_, _, largest]) => {
            Some(format!("{name} allows {largest}, less than the bandwidth-delay product of {product}; it stays"))
        }
        None => Some(format!("{name} is not known as three numbers, so nothing is planned for it")),
    };
    let mut notes: Vec<_> = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"].iter().filter_map(lacking).collect();
    if notes.is_empty() {
        notes.push(
            "the allowed buffers are at least the bandwidth-delay product of this path; nothing to set".to_owned(),
        );
    }
    notes
}

/// The values that a kernel starts with, as far as the catalogue has them as numbers.
fn linux_defaults(platform: &Platform) -> Settings {
    let mut settings = Settings { platform: platform.clone(), ..Settings::default() };
    let names = [
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
        "net.ipv4.tcp_window_scaling",
        "net.ipv4.tcp_moderate_rcvbuf",
        "net.ipv4.tcp_adv_win_scale",
    ];
    for address in names.map(Address::sysctl) {
        let catalogue = catalogue::for_platform(platform);
        let newest = || catalogue?.find(&address)?.spans.last();
        let span = catalogue.and_then(|catalogue| Some(catalogue.at(&address, &platform.version)?.1)).or_else(newest);
        let Some(span) = span else { continue };
        let numbers: Vec<&str> = span.default.split([' ', ',']).take_while(|word| number(word).is_some()).collect();
        if !numbers.is_empty() {
            settings.values.insert(address, Some(numbers.join(" ")));
        }
    }
    settings
}
