//! Readers of text that users hand over: units, scenarios, recipes, settings of other machines, playbooks.

use fullpipe_knobs::{
    Address, Family, MachineFacts, Platform, PlatformRequest, Settings,
    lint::{LintRequest, lint, lint_steps},
    plan_platform,
    reading::{merge, read, table},
    recipe::{self, Kind},
    sysctl_conf,
};
use fullpipe_path::{Direction, Machine, PathSpec, Scenario, Segment};
use fullpipe_units::{Bytes, Instant, Micros, Rate, bdp, window_limited_rate};

/// A rate, a size and a time; what they print is read again.
pub fn units(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (rate, size, time) = (text.parse::<Rate>(), text.parse::<Bytes>(), text.parse::<Micros>());
    if let Ok(rate) = rate {
        assert!(rate.bps() > u64::MAX / 2 || rate.to_string().parse::<Rate>().is_ok(), "{rate}");
        let _saturates = bdp(rate, Micros::from_secs(1));
    }
    if let Ok(time) = time {
        assert!(time.get() > u64::MAX / 2 || time.to_string().parse::<Micros>().is_ok(), "{time}");
        let _saturates = window_limited_rate(size.unwrap_or(Bytes::new(u64::MAX)), time);
    }
    let _printed = size.map(|size| size.to_string());
}

/// A scenario, and its path with packets on it.
pub fn scenario(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let scenario = match Scenario::parse(text, "fuzz.toml") {
        Ok(scenario) => scenario,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    for direction in Direction::ALL {
        path(&scenario.path, direction);
        let mut way = scenario.one_way(direction);
        for at_us in 0..64 {
            let now = Instant::from_nanos(at_us * 200_000);
            way.on_packet(now, Segment::new(if at_us % 2 == 0 { 1500 } else { 60 }, at_us));
            while let Some(departure) = way.poll_transmit(now) {
                assert!(departure.at <= now, "a departure from the future");
            }
        }
        let _finite = way.next_timeout();
        assert!(way.stats().count() <= scenario.path.hops.len());
    }
}

fn path(path: &PathSpec, direction: Direction) {
    let _hops = path.hops(direction);
    let _rtt = (path.rtt(), path.loaded_rtt(direction, 2, 60));
    let _figures = (path.path_mtu(), path.bottleneck(direction), path.bdp(direction));
}

/// Two files of `sysctl.d`, parted by a form feed, and what they say of settings.
pub fn sysctl_conf(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let files: Vec<&str> = text.splitn(2, '\u{c}').collect();
    let mut settings = Settings::default();
    let parsed: Vec<_> = files
        .iter()
        .zip(["/etc/sysctl.d/10-a.conf", "/etc/sysctl.conf"])
        .map(|(file, name)| {
            let (lines, problems) = sysctl_conf::parse(file);
            let count = file.lines().count();
            assert!(lines.len() + problems.len() <= count);
            assert!(problems.iter().all(|problem| (1..=count as u32).contains(&problem.line) && problem.column >= 1));
            for line in &lines {
                settings.values.insert(Address::Sysctl(line.name.clone()), line.value.clone());
            }
            (name, lines)
        })
        .collect();
    settings.values.insert(Address::sysctl("net.ipv4.tcp_rmem"), Some("4096 131072 6291456".to_owned()));
    sysctl_conf::note_origins(&mut settings, &parsed);
    let names: Vec<&str> = text.lines().take(32).collect();
    let ordered = sysctl_conf::boot_order(&names);
    assert!(ordered.len() <= names.len());
}

/// A recipe: its first byte picks the kind, the rest is the file.
pub fn recipe(data: &[u8]) {
    const KINDS: [Kind; 6] = [Kind::Sysctl, Kind::Shell, Kind::Registry, Kind::Batch, Kind::PowerShell, Kind::TuneD];
    let Some((pick, rest)) = data.split_first() else { return };
    let Ok(text) = recipe::decode(rest) else { return };
    let kind = KINDS.get(usize::from(pick.wrapping_sub(b'0'))).copied().or_else(|| Kind::from_file("", &text));
    let Some(kind) = kind else { return };
    let path = Some((Rate::from_bps(1_000_000_000), Micros::from_millis(80)));
    for platform in [None, "windows-xp".parse().ok(), "linux-5.15".parse().ok()] {
        let findings = lint(kind, &text, &LintRequest { platform, path, ..LintRequest::default() });
        assert!(findings.iter().all(|finding| finding.line >= 1), "{findings:?}");
        assert!(findings.iter().all(|finding| !finding.message.contains('\u{1b}')), "a terminal would obey");
    }
    let (settings, _problems) = recipe::settings(kind, &text, Platform::default());
    plan_with(&settings);
}

/// What other machines' tools print: a file's name in its first line, then the file; several parted by a record
/// separator (0x1e).
pub fn reading(data: &[u8]) {
    let mut readings = Vec::new();
    for file in data.split(|byte| *byte == 0x1e).take(4) {
        let end = file.iter().position(|byte| *byte == b'\n').unwrap_or(0);
        let (name, contents) = (&file[..end], file.get(end + 1..).unwrap_or_default());
        match read(&String::from_utf8_lossy(name), contents) {
            Ok(reading) => {
                let harmless = |text: &str| !text.chars().any(char::is_control);
                assert!(harmless(&reading.file) && reading.remarks.iter().all(|remark| harmless(&remark.message)));
                assert!(reading.found.iter().all(|found| found.place.line >= 1 && found.place.column >= 1));
                readings.push(reading);
            }
            Err(error) => assert!(error.place.line >= 1 && error.place.column >= 1, "{error}"),
        }
    }
    for platform in [None, "windows-2012".parse().ok(), "freebsd-14.1".parse().ok()] {
        let Ok(merged) = merge(&readings, platform.as_ref()) else { continue };
        let _rows = table(&merged);
        plan_with(&merged.settings);
    }
}

/// A playbook, and the judgement of its tasks.
pub fn playbook(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (steps, problems) = fullpipe_report::playbook::read(text);
    assert!(steps.len() <= 10_000 && steps.iter().all(|step| step.line >= 1));
    let _findings = lint_steps(&steps, problems, Some(Family::Linux), &LintRequest::default(), false);
}

/// Plans with settings that came from a file, for their own platform.
fn plan_with(settings: &Settings) {
    let mut settings = settings.clone();
    settings.machine = MachineFacts { memory: Some(Bytes::new(1 << 30)), page: Some(Bytes::new(4096)) };
    for family in Family::KNOWN {
        let platform = Platform { family, ..settings.platform.clone() };
        let _plan = plan_platform(&PlatformRequest {
            platform,
            rate: Rate::from_bps(1_000_000_000),
            rtt: Micros::from_millis(100),
            connections: None,
            goal: fullpipe_knobs::Goal::Bulk,
            settings: Some(&settings),
            memory_bound: None,
            packets: &fullpipe_knobs::Packets::default(),
            peer: None,
            allow_override: false,
        });
    }
}
