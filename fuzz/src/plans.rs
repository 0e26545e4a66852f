//! Plans over any settings, and exports of any plan.

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Result, Unstructured};
use fullpipe_diagnose::{Transfer, diagnose};
use fullpipe_knobs::{
    Address, Catalogue, Change, Family, Flow, Goal, Ipsec, Link, MachineFacts, Mbufs, Origin, Packets, Plan, PlanHost,
    PlanRequest, Platform, PlatformRequest, Route, Settings, TakesEffect,
    export::{Export, export as export_plan},
    persist::sysctl_drop_in,
    plan as plan_for, plan_platform,
    recipe::{self, Kind},
    sysctl_conf,
};
use fullpipe_units::{Bytes, Micros, Rate};

/// The planner over any settings of any platform, and the export of what it plans.
pub fn plan(data: &[u8]) {
    // Without enough bytes there is nothing to plan.
    let _too_short = plan_of(&mut Unstructured::new(data));
}

fn plan_of(input: &mut Unstructured<'_>) -> Result<()> {
    let platform = platform(input)?;
    let settings = settings(input, &platform)?;
    let sizes = ["1500", "9014", "1514,4088,9014", "65535"];
    let mut size = || Ok::<_, arbitrary::Error>(input.choose(&sizes)?.parse().ok());
    let packets = Packets {
        device: Some("eth 0".to_owned()),
        here: size()?,
        peer: size()?,
        hops: Some(size()?.into_iter().collect()),
        ipsec: Some(Ipsec::AesGcm),
        overhead: 0,
    };
    let request = PlatformRequest {
        platform: platform.clone(),
        rate: Rate::from_bps(number(input)?.max(1)),
        rtt: Micros::new(number(input)?.max(1)),
        connections: Option::arbitrary(input)?,
        goal: if bool::arbitrary(input)? { Goal::Bulk } else { Goal::Interactive },
        settings: bool::arbitrary(input)?.then_some(&settings),
        memory_bound: Option::<u64>::arbitrary(input)?.map(Bytes::new),
        packets: &packets,
        // Without a draw of its own, so that the corpora mean what they meant.
        peer: Some("192.0.2.0/24"),
        allow_override: false,
    };
    let planned = plan_platform(&request);
    exported(&planned, &platform, request.settings);
    let rest = input.bytes(input.len())?;
    for_transfer(&settings, &request, rest);
    Ok(())
}

/// What the planner makes of a transfer between two hosts that both have these settings.
fn for_transfer(settings: &Settings, request: &PlatformRequest<'_>, rest: &[u8]) {
    let value = crate::transfer::changed(rest);
    let Some(mut transfer) = value.and_then(|value| serde_json::from_value::<Transfer>(value).ok()) else { return };
    "a".clone_into(&mut transfer.sender.name);
    "b".clone_into(&mut transfer.receiver.name);
    let diagnosis = diagnose(&transfer);
    let hosts = ["a", "b"].map(|name| PlanHost { name, settings, peer: "10.0.0.2".parse().ok() });
    let mut asked = PlanRequest::new(hosts.to_vec(), vec![Flow { transfer: &transfer, diagnosis: &diagnosis }]);
    asked.memory_bound = request.memory_bound;
    asked.goal = request.goal;
    let planned = plan_for(&asked);
    for name in ["a", "b"] {
        let changes: Vec<Change> = planned.changes.iter().filter(|change| change.host == name).cloned().collect();
        let content = sysctl_drop_in(&changes, settings).content;
        let (lines, problems) = sysctl_conf::parse(&content);
        assert_eq!(problems, [], "{content}");
        assert!(lines.len() <= changes.len(), "{content}");
    }
}

/// The export of any plan at all.
pub fn export(data: &[u8]) {
    let _too_short = export_of(&mut Unstructured::new(data));
}

fn export_of(input: &mut Unstructured<'_>) -> Result<()> {
    let platform = platform(input)?;
    let settings = settings(input, &platform)?;
    let known: Vec<&Address> = settings.values.keys().collect();
    let mut plan = Plan::default();
    for _ in 0..1 + u8::arbitrary(input)? % 6 {
        let knob = if known.is_empty() || u8::arbitrary(input)? % 4 == 0 {
            address(input, &platform)?
        } else {
            (*input.choose(&known)?).clone()
        };
        plan.changes.push(Change {
            host: "a".to_owned(),
            knob,
            from: Option::arbitrary(input)?,
            to: if bool::arbitrary(input)? { Some(value(input)?) } else { None },
            reason: String::arbitrary(input)?,
            arithmetic: String::new(),
            memory_worst_case: None,
            takes_effect: *input.choose(&[TakesEffect::Live, TakesEffect::Restart, TakesEffect::NewConnections])?,
            undo: String::arbitrary(input)?,
            source: String::new(),
        });
    }
    plan.notes.push(String::arbitrary(input)?);
    let with = bool::arbitrary(input)?;
    exported(&plan, &platform, with.then_some(&settings));
    Ok(())
}

/// Exports a plan, and reads back what has a reader.
fn exported(plan: &Plan, platform: &Platform, settings: Option<&Settings>) {
    let Ok(export) = export_plan(plan, platform, settings) else { return };
    assert_eq!(export.files.first().map(|file| file.name), Some("README.txt"));
    for file in &export.files {
        assert!(file.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)), "{}", file.name);
    }
    if let Some(text) = text_of(&export, "90-fullpipe.conf").or_else(|| text_of(&export, "sysctl.conf.local")) {
        let (lines, problems) = sysctl_conf::parse(&text);
        assert_eq!(problems, [], "{text}");
        let read: BTreeMap<String, String> =
            lines.into_iter().filter_map(|line| Some((line.name, line.value?))).collect();
        assert_eq!(read, sysctls(plan, platform, &export), "{text}");
    }
    for name in ["fullpipe.reg", "fullpipe-undo.reg", "fullpipe-remove.reg"] {
        let Some(text) = text_of(&export, name) else { continue };
        let (steps, problems) = recipe::read(Kind::Registry, &text);
        assert_eq!(problems, [], "{text}");
        assert!(steps.len() <= plan.changes.len(), "{text}");
    }
}

fn text_of(export: &Export, name: &str) -> Option<String> {
    export.files.iter().find(|file| file.name == name).map(|file| file.text())
}

/// The sysctls that a drop-in must set.
fn sysctls(plan: &Plan, platform: &Platform, export: &Export) -> BTreeMap<String, String> {
    let kept = plan.changes.iter().filter(|change| {
        let at_boot = platform.family == Family::FreeBsd && change.takes_effect == TakesEffect::Restart;
        !at_boot && !export.left_out.iter().any(|left| left.knob == change.knob)
    });
    let pairs = kept.filter_map(|change| {
        let (Address::Sysctl(name), Some(to)) = (&change.knob, &change.to) else { return None };
        Some((sysctl_conf::dotted(name), to.split_whitespace().collect::<Vec<_>>().join(" ")))
    });
    pairs.collect()
}

fn platform(input: &mut Unstructured<'_>) -> Result<Platform> {
    let catalogues: Vec<&Catalogue> = Catalogue::all().collect();
    let catalogue = *input.choose(&catalogues)?;
    let version = match u8::arbitrary(input)? % 4 {
        0 => String::arbitrary(input)?,
        1 => String::new(),
        2 => format!("{}.{}", u8::arbitrary(input)? % 20, u8::arbitrary(input)? % 20),
        _ if catalogue.order.is_empty() => "6.18".to_owned(),
        _ => input.choose(&catalogue.order)?.clone(),
    };
    Ok(Platform { family: catalogue.family, version })
}

fn settings(input: &mut Unstructured<'_>, platform: &Platform) -> Result<Settings> {
    let mut settings = Settings { platform: platform.clone(), ..Settings::default() };
    for _ in 0..u8::arbitrary(input)? % 24 {
        let knob = address(input, platform)?;
        if u8::arbitrary(input)? % 8 == 0 {
            let origin = Origin { file: String::arbitrary(input)?, line: u32::arbitrary(input)?, value: value(input)? };
            settings.origins.entry(knob.clone()).or_default().push(origin);
        }
        let value = if u8::arbitrary(input)? % 8 == 0 { None } else { Some(value(input)?) };
        settings.values.insert(knob, value);
    }
    for _ in 0..u8::arbitrary(input)? % 3 {
        let destination = input.choose(&["default", "10.0.0.0/24", "2001:db8::/32", "10.0.0.2"])?;
        let (device, gateway) = (text(input)?, Option::arbitrary(input)?);
        settings.routes.push(Route {
            destination: (*destination).to_owned(),
            device: device.clone(),
            gateway,
            copy: None,
        });
        settings.links.push(Link { device, speed_bps: Option::arbitrary(input)?, mtu: Option::arbitrary(input)? });
    }
    settings.machine = MachineFacts {
        memory: Option::<u64>::arbitrary(input)?.map(Bytes::new),
        page: Option::<u64>::arbitrary(input)?.map(Bytes::new),
    };
    if u8::arbitrary(input)? % 4 == 0 {
        let [clusters_in_use, clusters_max, denied] = Arbitrary::arbitrary(input)?;
        let [pages_in_use, pages_max, pages_denied] = Arbitrary::arbitrary(input)?;
        settings.mbufs = Some(Mbufs { clusters_in_use, clusters_max, denied, pages_in_use, pages_max, pages_denied });
    }
    Ok(settings)
}

/// A setting of the catalogue, or any name at all.
fn address(input: &mut Unstructured<'_>, platform: &Platform) -> Result<Address> {
    let catalogue = Catalogue::for_family(platform.family);
    match (u8::arbitrary(input)? % 8, catalogue) {
        (0, _) => Ok(text(input)?.parse().unwrap_or(Address::Sysctl(text(input)?))),
        (1, _) => Ok(Address::Link { device: text(input)?, property: "mtu".to_owned() }),
        (2, _) => Ok(Address::Route { destination: text(input)?, attribute: "window".to_owned() }),
        (3, _) => Ok(Address::Registry { key: format!("HKLM\\{}", text(input)?), value: text(input)? }),
        (_, Some(catalogue)) => Ok(input.choose(&catalogue.knobs)?.address.clone()),
        (_, None) => Ok(Address::Sysctl(text(input)?)),
    }
}

fn text(input: &mut Unstructured<'_>) -> Result<String> {
    if bool::arbitrary(input)? { String::arbitrary(input) } else { Ok(format!("net.x{}", u8::arbitrary(input)?)) }
}

/// A value as settings have them: numbers, words, or anything.
fn value(input: &mut Unstructured<'_>) -> Result<String> {
    Ok(match u8::arbitrary(input)? % 6 {
        0 => String::arbitrary(input)?,
        1 => format!("{} {} {}", number(input)?, number(input)?, number(input)?),
        2 => format!("0x{:x}", number(input)?),
        3 => (*input.choose(&["cubic", "normal", "enabled", "disabled", "-1", "0", "1", "dword:0000faf0"])?).to_owned(),
        _ => number(input)?.to_string(),
    })
}

/// A number of any magnitude.
fn number(input: &mut Unstructured<'_>) -> Result<u64> {
    let shift = u8::arbitrary(input)? % 64;
    Ok(u64::arbitrary(input)? >> shift)
}
