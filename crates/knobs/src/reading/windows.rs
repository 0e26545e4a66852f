//! What PowerShell's objects say, whatever text they came in: Get-NetTCPSetting, Get-NetOffloadGlobalSetting,
//! Get-NetTransportFilter, Get-NetIPInterface, Get-NetAdapterRss, Get-NetAdapterRsc, Get-NetAdapterLso,
//! Get-NetAdapterAdvancedProperty.
//!
//! Names and numbers: Microsoft's documentation of MSFT_NetTCPSetting and of the cmdlets.

use super::{
    Place, Refusal, RemarkKind,
    sheet::{Sheet, known, shown},
};
use crate::{Address, Family, Link, TuningLevel};

/// One property of one object.
#[derive(Clone, Debug)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) place: Place,
}

/// The objects that are read, for messages.
pub(super) const OBJECTS: &str = "the objects of Get-NetTCPSetting, Get-NetTransportFilter, Get-NetOffloadGlobalSetting or Get-NetAdapterRss, -Rsc, -Lso, -AdvancedProperty";

/// One of the forms that PowerShell writes objects in, as refusals name it.
pub(super) struct Form {
    /// What is expected where the text breaks its rules.
    pub(super) is: &'static str,
    /// How to save it.
    pub(super) way_out: &'static str,
}

impl Form {
    /// A text that breaks the rules of its form.
    pub(super) fn damaged(&self, place: Place, problem: &str) -> Refusal {
        Refusal { place, problem: problem.to_owned(), expected: self.is, way_out: self.way_out }
    }

    /// A text without an object that is known.
    pub(super) fn no_object(&self) -> Refusal {
        let problem = "no object in it is known".to_owned();
        Refusal { place: Place { line: 1, column: 1 }, problem, expected: OBJECTS, way_out: self.way_out }
    }
}

/// The longest name of a property that is kept, in bytes; the longest of the objects that are read here has 31.
pub(super) const LONGEST_NAME: usize = 64;

/// The templates of TCP settings, as PowerShell spells them.
pub(crate) const TEMPLATES: [&str; 7] =
    ["Automatic", "Internet", "InternetCustom", "Datacenter", "DatacenterCustom", "Compat", "Custom"];

/// A template's name as PowerShell spells it.
pub(crate) fn template_name(text: &str) -> Option<&'static str> {
    TEMPLATES.into_iter().find(|known| known.eq_ignore_ascii_case(text))
}

/// Whether a label is the first of an object that is read here.
pub(super) fn begins_object(label: &str) -> bool {
    ["SettingName", "ReceiveSideScaling", "InterfaceAlias", "Name"].contains(&label)
}

/// Notes what one object says; false where it is none of the objects that are read here.
pub(super) fn object(properties: &[Property], sheet: &mut Sheet) -> bool {
    sheet.family(Family::Windows);
    let find = |name: &str| properties.iter().find(|property| canonical(&property.name).eq_ignore_ascii_case(name));
    let offload = ["ReceiveSideScaling", "ReceiveSegmentCoalescing", "TaskOffload"];
    match find("SettingName") {
        Some(setting) if find("LocalPortStart").or_else(|| find("DestinationPrefix")).is_some() => {
            filter(setting, properties, sheet);
        }
        Some(setting) => template(setting, properties, sheet),
        None if offload.iter().any(|name| find(name).is_some()) => {
            for property in properties {
                let name = canonical(&property.name).to_owned();
                let knob = Address::Named { kind: "netoffload".to_owned(), name };
                if known(&knob) && !property.value.is_empty() {
                    let value = word(&property.name, &property.value).unwrap_or(&property.value);
                    sheet.set(property.place, knob, Some(value));
                }
            }
        }
        // The plan is of IPv4's MTU, which is another one.
        None if find("AddressFamily").is_some_and(|family| ["IPv6", "23"].contains(&family.value.as_str())) => {}
        None if find("InterfaceAlias").is_some() => {
            return find("InterfaceAlias")
                .zip(find("NlMtuBytes"))
                .is_some_and(|(alias, mtu)| interface(alias, mtu, sheet));
        }
        None if find("RegistryKeyword").is_some() => advanced_property(properties, sheet),
        None => return adapter(properties, sheet),
    }
    true
}

/// The name of a property in the cmdlet's spelling: the object's own name and the heading of the list differ from it.
fn canonical(name: &str) -> &str {
    match name {
        "MinRto" | "MinRto(ms)" => "MinRtoMs",
        "InitialCongestionWindow" | "InitialCongestionWindow(MSS)" => "InitialCongestionWindowMss",
        "DelayedAckTimeout" | "DelayedAckTimeout(ms)" => "DelayedAckTimeoutMs",
        "InitialRto" | "InitialRto(ms)" => "InitialRtoMs",
        "NlMtu" | "NlMtu(Bytes)" => "NlMtuBytes",
        other => other,
    }
}

fn template(setting: &Property, properties: &[Property], sheet: &mut Sheet) {
    let Some(template) = template_name(&setting.value) else {
        let words =
            format!("`{}` is no template that is known; known are {}", shown(&setting.value), TEMPLATES.join(", "));
        sheet.remark(RemarkKind::Unread, setting.place, words);
        return;
    };
    for property in properties {
        template_value(property.place, template, canonical(&property.name), &property.value, sheet);
    }
}

/// Notes one parameter of a template. The template Automatic has no values of its own: theirs are empty.
pub(super) fn template_value(place: Place, template: &str, parameter: &str, value: &str, sheet: &mut Sheet) {
    let knob = Address::tcp_setting(template, parameter);
    if value.is_empty() || !known(&knob) {
        return;
    }
    if value.ends_with("...") || value.ends_with('\u{2026}') {
        let words =
            format!("the value of {parameter} is cut off; save the list instead: Get-NetTCPSetting | Format-List");
        sheet.remark(RemarkKind::Unread, place, words);
        return;
    }
    let found = word(parameter, value);
    if found.is_none() && parameter == "CongestionProvider" && value.bytes().all(|byte| byte.is_ascii_digit()) {
        let words = format!(
            "the number {value} of CongestionProvider is not documented; Get-NetTCPSetting | Format-List tells its name"
        );
        sheet.remark(RemarkKind::Note, place, words);
    }
    sheet.set(place, knob, Some(found.unwrap_or(value)));
}

/// The word for a value that may stand as a number: JSON and CSV may have numbers where the list has words.
fn word(parameter: &str, value: &str) -> Option<&'static str> {
    const SWITCH: &[&str] = &["Disabled", "Enabled"];
    let words: &[&'static str] = match parameter {
        "CwndRestart" if value.eq_ignore_ascii_case("disabled") => return Some("False"),
        "CwndRestart" if value.eq_ignore_ascii_case("enabled") => return Some("True"),
        "CwndRestart" => &["False", "True"],
        "AutoTuningLevelLocal" | "AutoTuningLevelGroupPolicy" => {
            return TuningLevel::ALL.get(value.parse::<usize>().ok()?).map(|level| level.name());
        }
        "AutoTuningLevelEffective" => &["Local", "GroupPolicy"],
        "MemoryPressureProtection" => &["Disabled", "Enabled", "Default"],
        "CongestionProvider" => &["Default", "", "CTCP", "DCTCP"],
        "EcnCapability"
        | "Timestamps"
        | "ScalingHeuristics"
        | "AutomaticUseCustom"
        | "NonSackRttResiliency"
        | "ForceWS"
        | "ReceiveSideScaling"
        | "ReceiveSegmentCoalescing"
        | "PacketCoalescingFilter"
        | "TaskOffload" => SWITCH,
        _ => return None,
    };
    words.get(value.parse::<usize>().ok()?).copied().filter(|word| !word.is_empty())
}

/// A filter that gives a template to connections, as one line.
fn filter(setting: &Property, properties: &[Property], sheet: &mut Sheet) {
    let Some(template) = template_name(&setting.value) else {
        sheet.remark(
            RemarkKind::Unread,
            setting.place,
            format!("`{}` is no template that is known", shown(&setting.value)),
        );
        return;
    };
    let find = |name: &str| properties.iter().find(|p| p.name == name).map_or("", |p| p.value.as_str());
    let protocol = if find("Protocol") == "6" { "TCP" } else { find("Protocol") };
    let parts = [
        ("protocol", protocol.to_owned()),
        ("local", format!("{}-{}", find("LocalPortStart"), find("LocalPortEnd"))),
        ("remote", format!("{}-{}", find("RemotePortStart"), find("RemotePortEnd"))),
        ("destination", find("DestinationPrefix").to_owned()),
    ];
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || ".:/*-".contains(c));
    let texts: Vec<String> = parts
        .iter()
        .filter(|(_, value)| !value.is_empty() && value != "-" && plain(value))
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let knob = Address::Named { kind: "transportfilter".to_owned(), name: template.to_owned() };
    sheet.add(setting.place, knob, &texts.join(", "));
}

/// What tells an object of one adapter from the others, and each property with the driver's keyword of it.
const ADAPTER: [(&str, &[(&str, &str)]); 3] = [
    ("NumberOfReceiveQueues", &[("Enabled", "*RSS")]),
    ("IPv4OperationalState", &[("IPv4Enabled", "*RscIPv4"), ("IPv6Enabled", "*RscIPv6")]),
    ("V1IPv4Enabled", &[("IPv4Enabled", "*LsoV2IPv4"), ("IPv6Enabled", "*LsoV2IPv6")]),
];

/// The offloads of one adapter: Get-NetAdapterRss, -Rsc and -Lso (MSFT_NetAdapterRssSettingData and its siblings).
fn adapter(properties: &[Property], sheet: &mut Sheet) -> bool {
    let find = |name: &str| properties.iter().find(|property| property.name.eq_ignore_ascii_case(name));
    // A table breaks its headings where they don't fit: `IPv4OperationalState` over two lines is one name again.
    let Some((_, keywords)) = ADAPTER.iter().find(|(mark, _)| find(mark).is_some()) else { return false };
    let Some(name) = find("Name").filter(|name| is_name(&name.value)) else {
        let place = properties.first().map_or(Place { line: 1, column: 1 }, |first| first.place);
        sheet.remark(RemarkKind::Unread, place, "no name of an adapter, or one with characters that no name has");
        return true;
    };
    for (property, keyword) in *keywords {
        let Some(found) = find(property) else { continue };
        let knob = Address::Link { device: name.value.clone(), property: (*keyword).to_owned() };
        match found.value.to_ascii_lowercase().as_str() {
            "true" | "1" | "enabled" => sheet.set(found.place, knob, Some("1")),
            "false" | "0" | "disabled" => sheet.set(found.place, knob, Some("0")),
            "" => {}
            _ => sheet.remark(RemarkKind::Unread, found.place, format!("{property} is neither True nor False")),
        }
    }
    for version in ["IPv4", "IPv6"] {
        let is = |end: &str, word: &str| {
            find(&format!("{version}{end}")).is_some_and(|found| found.value.eq_ignore_ascii_case(word))
        };
        if is("Enabled", "True") && is("OperationalState", "False") {
            let reason = find(&format!("{version}FailureReason")).map_or("", |found| found.value.as_str());
            let words = format!(
                "receive segment coalescing is enabled for {version} on {} and does not run; the reason given: {}",
                shown(&name.value),
                if reason.is_empty() { "none".to_owned() } else { shown(reason) }
            );
            sheet.remark(RemarkKind::Inactive, name.place, words);
        }
    }
    true
}

/// The driver's keywords that bound a connection.
const KEYWORDS: [&str; 6] = ["*RSS", "*RscIPv4", "*RscIPv6", "*LsoV2IPv4", "*LsoV2IPv6", "*JumboPacket"];

/// One property of one adapter's driver, by its keyword: Get-NetAdapterAdvancedProperty.
fn advanced_property(properties: &[Property], sheet: &mut Sheet) {
    let find = |name: &str| properties.iter().find(|property| property.name.eq_ignore_ascii_case(name));
    let Some(keyword) = find("RegistryKeyword") else { return };
    let Some(property) = KEYWORDS.into_iter().find(|known| known.eq_ignore_ascii_case(&keyword.value)) else {
        sheet.others += 1;
        return;
    };
    let Some(name) = find("Name").filter(|name| is_name(&name.value)) else {
        return sheet.remark(RemarkKind::Unread, keyword.place, "no name of an adapter, or one that no adapter has");
    };
    // The value is an array, which CSV does not write out; what the driver's page shows has the number or a word.
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let shown = |property: &Property| match property.value.to_ascii_lowercase().as_str() {
        "enabled" | "on" => Some("1".to_owned()),
        "disabled" | "off" => Some("0".to_owned()),
        // `9014 Bytes`.
        text => text.split(' ').next().filter(is_number).map(str::to_owned),
    };
    let value = find("RegistryValue").and_then(|property| {
        let inner = property.value.trim_matches(['{', '}', ' ']);
        Some(inner).filter(is_number).map(str::to_owned)
    });
    let place = find("RegistryValue").unwrap_or(keyword).place;
    match value.or_else(|| find("DisplayValue").and_then(shown)) {
        Some(value) => {
            sheet.set(place, Address::Link { device: name.value.clone(), property: property.to_owned() }, Some(&value))
        }
        None => sheet.remark(RemarkKind::Unread, place, format!("the value of {property} is no number")),
    }
}

/// Whether a text may be the name of an interface: it may have spaces, and never these.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(|c| super::sheet::is_hidden(c) || "\"'`$;&|<>".contains(c))
}

/// The MTU of Get-NetIPInterface.
fn interface(alias: &Property, mtu: &Property, sheet: &mut Sheet) -> bool {
    let Ok(bytes) = mtu.value.parse::<u32>() else {
        sheet.remark(RemarkKind::Unread, mtu.place, "the MTU is no number of bytes");
        return true;
    };
    if !is_name(&alias.value) {
        sheet.remark(RemarkKind::Unread, alias.place, "the name of the interface has characters that no name has");
        return true;
    }
    // The pseudo-interface for the machine itself reports the largest number.
    let mtu_bytes = (bytes < u32::MAX).then_some(bytes);
    sheet.link(mtu.place, Link { device: alias.value.clone(), speed_bps: None, mtu: mtu_bytes });
    true
}
