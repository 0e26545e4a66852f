//! What takes a host back to its system's own defaults.
//!
//! It makes changes for [`crate::apply`], which journals what was there, so that a reset is undone like any other run.
//! What nobody knows for a fact is left alone and named; so are routes and links, because no default tells what the
//! administrator's network needs.

use std::collections::BTreeMap;

use fullpipe_knobs::{Address, Catalogue, Change, Plan, Settings, TakesEffect, catalogue::Span};

use crate::{Host, HostError, same_value};

/// The values that a system starts with, as the system itself tells them.
pub type Defaults = BTreeMap<Address, String>;

/// What the running system tells of its own defaults: on Linux the kernel's, from a fresh network namespace; nothing on
/// systems that don't tell.
///
/// # Errors
///
/// Where the right to make a namespace is missing.
pub fn own_defaults() -> Result<Defaults, HostError> {
    #[cfg(target_os = "linux")]
    return crate::linux::fresh::defaults();
    #[cfg(not(target_os = "linux"))]
    Ok(Defaults::new())
}

/// The changes that take the system that this program runs on back to its defaults. Where it may not be asked for its own,
/// only the catalogue's count, and a note says so.
///
/// # Errors
///
/// As [`to_defaults`].
pub fn of_system<H: Host + ?Sized>(host: &mut H) -> Result<Plan, HostError> {
    match own_defaults() {
        Ok(own) => to_defaults(host, &own),
        Err(error) => {
            let mut plan = to_defaults(host, &Defaults::new())?;
            plan.notes.insert(0, format!("the system's own defaults could not be read, only the catalogue's: {error}"));
            Ok(plan)
        }
    }
}

/// The changes that take `host` back to `own` defaults and, where these don't tell, to the catalogue's.
///
/// # Errors
///
/// Where the host can't be read, or the right to change what differs is missing.
pub fn to_defaults<H: Host + ?Sized>(host: &mut H, own: &Defaults) -> Result<Plan, HostError> {
    let settings = host.settings()?;
    let mut reset = Reset { settings: &settings, plan: Plan::default(), unknown: Vec::new(), elsewhere: Vec::new() };
    for (knob, value) in &settings.values {
        if !matches!(knob, Address::Route { .. } | Address::Link { .. }) {
            reset.look(host, knob, value.as_deref(), own)?;
        }
    }
    Ok(reset.finish())
}

struct Reset<'a> {
    settings: &'a Settings,
    plan: Plan,
    /// Settings that are there and whose default is unknown.
    unknown: Vec<String>,
    /// Settings that differ from their default and can't be written here.
    elsewhere: Vec<String>,
}

impl Reset<'_> {
    fn look<H: Host + ?Sized>(
        &mut self,
        host: &mut H,
        knob: &Address,
        now: Option<&str>,
        own: &Defaults,
    ) -> Result<(), HostError> {
        let platform = &self.settings.platform;
        let row = Catalogue::for_family(platform.family).and_then(|catalogue| catalogue.at(knob, &platform.version));
        let (to, reason) = if let Some(value) = own.get(knob) {
            (Some(value.clone()), "the kernel's own default, as a fresh network namespace has it".to_owned())
        } else {
            let Some((_, span)) = row else { return Ok(()) };
            let Some(value) = default(knob, span, self.settings) else {
                if now.is_some() && host.writable(knob).is_ok() {
                    self.unknown.push(knob.to_string());
                }
                return Ok(());
            };
            (value, format!("the default of {platform} by the catalogue"))
        };
        // What this version doesn't have can't be set, and needn't be.
        if now.is_none() && to.is_some() && own.get(knob).is_none() || same_value(knob, now, to.as_deref()) {
            return Ok(());
        }
        match host.writable(knob) {
            Ok(()) => {}
            // A reset that leaves half of it for want of a right would say "done".
            Err(error @ HostError::NoPermission { .. }) => return Err(error),
            Err(_) => {
                self.elsewhere.push(knob.to_string());
                return Ok(());
            }
        }
        for origin in self.settings.origins.get(knob).into_iter().flatten() {
            self.plan.notes.push(format!(
                "{} line {} sets {knob} to {}: it comes back at the next boot unless you take the line out",
                origin.file, origin.line, origin.value
            ));
        }
        self.plan.changes.push(Change {
            host: platform.to_string(),
            knob: knob.clone(),
            from: now.map(str::to_owned),
            to,
            reason,
            arithmetic: String::new(),
            memory_worst_case: None,
            takes_effect: row.and_then(|(knob, _)| knob.takes_effect).unwrap_or(TakesEffect::NewConnections),
            undo: "fullpipe undo --last".to_owned(),
            source: row.map_or_else(String::new, |(knob, _)| knob.source()),
        });
        Ok(())
    }

    fn finish(mut self) -> Plan {
        if !self.elsewhere.is_empty() {
            let names = self.elsewhere.join(", ");
            self.plan.notes.push(format!(
                "not the default, and can't be written from here: {names}; run this outside of the container or \
                 namespace"
            ));
        }
        if !self.unknown.is_empty() {
            let names = self.unknown.join(", ");
            self.plan.notes.push(format!("left alone, because the default is unknown: {names}"));
        }
        self.plan.notes.push(
            "routes and links are left alone: `fullpipe settings` shows what is set for them, and what the network \
             needs is not a default"
                .to_owned(),
        );
        self.plan
    }
}

/// The default as a value to write; `Some(None)` is "absent", `None` is "not known for a fact".
fn default(knob: &Address, span: &Span, settings: &Settings) -> Option<Option<String>> {
    let text = span.default.as_str();
    // What the system does without a value may be in doubt; that it comes without one is not.
    if matches!(knob, Address::Registry { .. }) && text.starts_with("absent;") {
        return Some(None);
    }
    if !span.confirmed || text == "unknown" {
        return None;
    }
    if text == "absent" {
        return Some(None);
    }
    let (value, small) = match text.split_once(", the largest less on a machine with little memory") {
        Some((value, "")) => (value, true),
        _ => (text, false),
    };
    let numbers: Vec<u64> = value.split(' ').map_while(|word| word.parse().ok()).collect();
    let is_list = numbers.len() == value.split(' ').count();
    if !is_list && value.contains([' ', ',', ';', ':']) {
        return None;
    }
    // tcp_init() of the kernel: the largest is at most a 128th of the memory that is free at the start. A tenth is left
    // for what the kernel itself has taken by then.
    let enough = |memory: u64| numbers.last().is_some_and(|largest| memory / 128 / 10 * 9 >= *largest);
    if small && !settings.machine.memory.is_some_and(|memory| enough(memory.get())) {
        return None;
    }
    Some(Some(value.to_owned()))
}

#[cfg(test)]
mod tests {
    use fullpipe_units::Bytes;

    use super::*;

    fn span(text: &str) -> Span {
        Span {
            since: None,
            until: None,
            default: text.to_owned(),
            honoured: fullpipe_knobs::catalogue::Honoured::Yes,
            note: String::new(),
            confirmed: true,
        }
    }

    #[test]
    fn a_setting_goes_back_to_what_the_system_tells_and_is_undone() {
        let folder = tempfile::tempdir().expect("a folder");
        let sysctls = folder.path().join("proc/sys/net/ipv4");
        std::fs::create_dir_all(&sysctls).expect("a folder");
        for (name, value) in [("tcp_sack", "0\n"), ("tcp_dsack", "1\n")] {
            std::fs::write(sysctls.join(name), value).expect("written");
        }
        let mut host = crate::FolderHost::new(folder.path());
        let own = ["net.ipv4.tcp_sack", "net.ipv4.tcp_dsack"].map(|name| (Address::sysctl(name), "1".to_owned()));
        let plan = to_defaults(&mut host, &own.into()).expect("read");
        let changes: Vec<_> = plan.changes.iter().map(|change| (change.knob.to_string(), change.to.clone())).collect();
        assert_eq!(changes, [("net.ipv4.tcp_sack".to_owned(), Some("1".to_owned()))]);
        let mut journal = crate::Journal::in_memory().expect("a journal");
        let run =
            crate::apply(&mut host, &mut journal, &plan.changes, &crate::ApplyOptions::default()).expect("applied");
        assert_eq!(host.read(&Address::sysctl("net.ipv4.tcp_sack")).expect("read").as_deref(), Some("1"));
        let which = crate::Which::Run(run.id.expect("a run"));
        crate::undo(&mut host, &mut journal, which, crate::UndoOptions::default()).expect("undone");
        assert_eq!(host.read(&Address::sysctl("net.ipv4.tcp_sack")).expect("read").as_deref(), Some("0"));
    }

    #[test]
    fn only_a_default_that_is_a_value_is_written() {
        let mut settings = Settings::default();
        let sysctl = Address::sysctl("net.ipv4.tcp_rmem");
        for (text, expected) in [
            ("1", Some(Some("1"))),
            ("10 1 2", Some(Some("10 1 2"))),
            ("normal", Some(Some("normal"))),
            ("absent", Some(None)),
            ("unknown", None),
            ("cubic on most builds", None),
            ("absent; the sources disagree", None),
            ("Internet 300, Datacenter 20", None),
            ("4096 131072 33554432, the largest less on a machine with little memory", None),
        ] {
            let found = default(&sysctl, &span(text), &settings);
            assert_eq!(found, expected.map(|value: Option<&str>| value.map(str::to_owned)), "{text}");
        }
        settings.machine.memory = Some(Bytes::new(8 << 30));
        let rmem = span("4096 131072 33554432, the largest less on a machine with little memory");
        assert_eq!(default(&sysctl, &rmem, &settings), Some(Some("4096 131072 33554432".to_owned())));
        assert_eq!(default(&sysctl, &Span { confirmed: false, ..span("1") }, &settings), None);
        let window: Address = r"registry HKLM\SYSTEM\X\TcpWindowSize".parse().expect("an address");
        let doubtful = Span { confirmed: false, ..span("absent; the sources disagree (8760 or 17520)") };
        assert_eq!(default(&window, &doubtful, &settings), Some(None), "nobody doubts that it is absent");
    }
}
