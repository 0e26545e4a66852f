//! PowerShell's own commands: what each sets, by its parameters.
//!
//! Names, parameters and positions: Microsoft's documents of the modules NetTCPIP and NetAdapter.

use super::{Action, reg::key_of_value, wrappers::is_parameter};
use crate::{Address, lint::meant};

/// The template of a command that is handed templates by another one.
pub(crate) const ALL: &str = "*";

/// What a command sets; `None` for one that is none of PowerShell's. `piped` are the words of the command that hands it
/// objects by a pipe.
pub(super) fn actions(words: &[String], piped: Option<&[String]>) -> Option<Result<Vec<Action>, String>> {
    const OFFLOADS: [&str; 7] = [
        "ReceiveSideScaling",
        "ReceiveSegmentCoalescing",
        "Chimney",
        "TaskOffload",
        "NetworkDirect",
        "NetworkDirectAcrossIPSubnets",
        "PacketCoalescingFilter",
    ];
    const PROPERTY: [&str; 8] = [
        "Name",
        "InterfaceDescription",
        "DisplayName",
        "DisplayValue",
        "RegistryKeyword",
        "RegistryValue",
        "RegistryDataType",
        "NoRestart",
    ];
    const ITEM: [&str; 6] = ["Path", "LiteralPath", "Name", "Value", "Type", "PropertyType"];
    let written = words.first()?.trim_start_matches('@');
    if let Some((_, arguments)) = written.split_once("]::SetValue(") {
        return Some(Ok(set_value(arguments.trim_end_matches(')'))));
    }
    let given = |positions: &[&str], names: &[&str]| Given::new(words, positions, names);
    let read = || -> Result<Option<Vec<Action>>, String> {
        Ok(Some(match written.to_ascii_lowercase().as_str() {
            "set-nettcpsetting" => {
                let names: Vec<&str> = ["SettingName", "InputObject"].into_iter().chain(PARAMETERS).collect();
                set_net_tcp_setting(&given(&["SettingName"], &names)?, piped)?
            }
            "set-netoffloadglobalsetting" => {
                let sets = given(&[], &OFFLOADS)?.0.into_iter();
                sets.map(|(name, value)| Action::Set(offload(&name), value)).collect()
            }
            "set-netadapteradvancedproperty" => advanced_property(&given(&["Name"], &PROPERTY)?),
            "set-netipinterface" => ip_interface(&given(
                &["InterfaceAlias"],
                &["InterfaceAlias", "InterfaceIndex", "AddressFamily", "NlMtuBytes"],
            )?),
            "new-nettransportfilter" => transport_filter(&given(
                &["SettingName"],
                &["SettingName", "DestinationPrefix", "RemotePortStart", "LocalPortStart"],
            )?),
            "set-itemproperty" | "new-itemproperty" | "sp" => {
                item_property(&given(&["Path", "Name", "Value"], &ITEM)?, false)?
            }
            "remove-itemproperty" | "rp" => item_property(&given(&["Path", "Name"], &ITEM)?, true)?,
            name => match switch(name) {
                Some((kind, verb)) => switched(kind, verb, &given(&["Name"], &["Name", "InterfaceDescription"])?),
                None => return Ok(misspelt(written).map(|slip| vec![slip])),
            },
        }))
    };
    let found = read().transpose()?;
    let what_if = words
        .iter()
        .map(|word| word.to_ascii_lowercase())
        .any(|word| word == "-whatif" || word == "-whatif:$true" || word == "-wi");
    if what_if && found.as_ref().is_ok_and(|actions| !actions.is_empty()) {
        return Some(Ok(vec![Action::Unclear(format!(
            "with -WhatIf, {written} tells what it would do and changes nothing"
        ))]));
    }
    Some(found)
}

/// `[Microsoft.Win32.Registry]::SetValue("KEY", "NAME", VALUE, ...)`.
fn set_value(arguments: &str) -> Vec<Action> {
    let part = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    let parts: Vec<String> = arguments.split(',').map(part).collect();
    let [key, name, value, ..] = parts.as_slice() else { return Vec::new() };
    let knob = Address::Registry { key: key_of_value(key, name), value: name.clone() };
    vec![Action::Set(knob, value.clone())]
}

/// A command with a name that is none of PowerShell's networking and nearly one.
fn misspelt(written: &str) -> Option<Action> {
    const VERBS: [&str; 8] = ["Get", "Set", "New", "Remove", "Enable", "Disable", "Reset", "Restart"];
    /// All of the two modules: what is nearly one of ours may be another one.
    const NOUNS: [&str; 40] = [
        "NetTCPSetting",
        "NetTransportFilter",
        "NetOffloadGlobalSetting",
        "NetAdapter",
        "NetAdapterAdvancedProperty",
        "NetAdapterBinding",
        "NetAdapterChecksumOffload",
        "NetAdapterDataPathConfiguration",
        "NetAdapterEncapsulatedPacketTaskOffload",
        "NetAdapterHardwareInfo",
        "NetAdapterIPsecOffload",
        "NetAdapterLso",
        "NetAdapterPacketDirect",
        "NetAdapterPowerManagement",
        "NetAdapterQos",
        "NetAdapterRdma",
        "NetAdapterRsc",
        "NetAdapterRss",
        "NetAdapterSriov",
        "NetAdapterSriovVf",
        "NetAdapterStatistics",
        "NetAdapterUro",
        "NetAdapterUso",
        "NetAdapterVmq",
        "NetAdapterVmqQueue",
        "NetAdapterVPort",
        "NetCompartment",
        "NetIPAddress",
        "NetIPConfiguration",
        "NetIPInterface",
        "NetIPv4Protocol",
        "NetIPv6Protocol",
        "NetNeighbor",
        "NetPrefixPolicy",
        "NetRoute",
        "NetTCPConnection",
        "NetUDPEndpoint",
        "NetUDPSetting",
        "ItemProperty",
        "NetConnectionProfile",
    ];
    let (verb, noun) = written.split_once('-')?;
    let known =
        |names: &[&'static str], name: &str| names.iter().copied().find(|known| known.eq_ignore_ascii_case(name));
    let near = |names: &[&'static str], name: &str| {
        let name = name.to_ascii_lowercase();
        names.iter().copied().find(|known| meant::is_slip(&name, &known.to_ascii_lowercase()))
    };
    let meant = match (known(&VERBS, verb), known(&NOUNS, noun)) {
        (Some(_), Some(_)) => return None,
        (Some(verb), None) => format!("{verb}-{}", near(&NOUNS, noun)?),
        (None, Some(noun)) => format!("{}-{noun}", near(&VERBS, verb)?),
        (None, None) => return None,
    };
    Some(Action::Misspelt { written: written.to_owned(), meant })
}

/// The parameters of a command, each by its name; a switch has the value `True`.
struct Given(Vec<(String, String)>);

impl Given {
    /// `positions` are the names of what stands without a name, in its order, and `names` those of the parameters: PowerShell
    /// takes a beginning that stands for one of them.
    fn new(words: &[String], positions: &[&str], names: &[&str]) -> Result<Self, String> {
        let mut found: Vec<(String, String)> = Vec::new();
        let mut unnamed = Vec::new();
        let mut rest = words.iter().skip(1).peekable();
        while let Some(word) = rest.next() {
            let Some(name) = word.strip_prefix('-').filter(|_| is_parameter(word)) else {
                // `@parameters`, of which the script doesn't tell what they are.
                if word.starts_with('@') {
                    found.push((word.clone(), word.clone()));
                } else {
                    unnamed.push(word.clone());
                }
                continue;
            };
            let (name, value) = match name.split_once(':') {
                Some((name, value)) => {
                    let value = Some(value.to_owned()).filter(|value| !value.is_empty());
                    (name, value.or_else(|| rest.next().cloned()))
                }
                None => (name, rest.next_if(|next| !is_parameter(next)).cloned()),
            };
            let name = whole_parameter(name, names)?;
            if !COMMON.iter().any(|(known, _)| name.eq_ignore_ascii_case(known)) {
                found.push((name, value.unwrap_or_else(|| "True".to_owned())));
            }
        }
        let mut given = Self(found);
        // A position is counted among those that have no name on the line.
        let free: Vec<&&str> = positions.iter().filter(|name| given.of(&[name]).is_none()).collect();
        given.0.extend(free.into_iter().zip(unnamed).map(|(name, value)| ((*name).to_owned(), value)));
        Ok(given)
    }

    /// The value of the first of these parameters.
    fn of(&self, names: &[&str]) -> Option<&str> {
        let known = |given: &str| names.iter().any(|name| name.eq_ignore_ascii_case(given));
        self.0.iter().find(|(name, _)| known(name)).map(|(_, value)| value.as_str())
    }
}

/// A global offload by its parameter in Set-NetOffloadGlobalSetting.
pub(super) fn offload(name: &str) -> Address {
    if name.eq_ignore_ascii_case("Chimney") {
        return Address::netsh("tcp global", "chimney");
    }
    Address::Named { kind: "netoffload".to_owned(), name: name.to_owned() }
}

pub(super) fn link(device: &str, property: &str) -> Address {
    Address::Link { device: device.to_owned(), property: property.to_owned() }
}

/// An offload of adapters that has commands of its own: the driver's keywords, each with the parameters by which
/// `Set-...` switches it and the switch by which `Enable-...` and `Disable-...` name it alone.
struct Switch {
    noun: &'static str,
    keywords: &'static [(&'static str, &'static [&'static str], &'static str)],
}

const SWITCHES: [Switch; 4] = [
    Switch { noun: "netadapterrss", keywords: &[("*RSS", &["Enabled"], "")] },
    Switch {
        noun: "netadapterrsc",
        keywords: &[("*RscIPv4", &["IPv4Enabled"], "IPv4"), ("*RscIPv6", &["IPv6Enabled"], "IPv6")],
    },
    Switch {
        noun: "netadapterlso",
        keywords: &[
            ("*LsoV2IPv4", &["IPv4Enabled", "V2IPv4Enabled"], "IPv4"),
            ("*LsoV2IPv6", &["IPv6Enabled", "V2IPv6Enabled"], "IPv6"),
        ],
    },
    Switch { noun: "netadapterchecksumoffload", keywords: &[] },
];

/// The offload that a command switches, and how: `enable`, `disable` or `set`.
fn switch(name: &str) -> Option<(&'static Switch, &str)> {
    let (verb, noun) = name.split_once('-').filter(|(verb, _)| ["enable", "disable", "set"].contains(verb))?;
    Some((SWITCHES.iter().find(|switch| switch.noun == noun)?, verb))
}

fn switched(switch: &Switch, verb: &str, given: &Given) -> Vec<Action> {
    // Of its own keywords there are eight, and each does the same harm.
    if switch.keywords.is_empty() {
        let knob = Address::Named { kind: "adapter".to_owned(), name: "ChecksumOffload".to_owned() };
        let value = if verb == "disable" { "Disabled" } else { "Enabled" };
        return if verb == "set" { Vec::new() } else { vec![Action::Set(knob, value.to_owned())] };
    }
    let named: Vec<&str> =
        switch.keywords.iter().map(|(.., alone)| *alone).filter(|alone| is_on(given, alone)).collect();
    let mut actions = Vec::new();
    for (keyword, parameters, alone) in switch.keywords {
        let value = match verb {
            "set" => match given.of(parameters) {
                Some(value) => state(value),
                None => continue,
            },
            _ if !named.is_empty() && !named.contains(alone) => continue,
            "enable" => "1".to_owned(),
            _ => "0".to_owned(),
        };
        let devices = given.of(&["Name", "InterfaceDescription"]).unwrap_or(ALL);
        actions.extend(devices.split(',').map(|device| Action::Set(link(device, keyword), value.clone())));
    }
    actions
}

fn is_on(given: &Given, switch: &str) -> bool {
    !switch.is_empty() && given.of(&[switch]).is_some_and(|value| state(value) == "1")
}

/// A word for on or off as the driver's number; what is neither stays.
fn state(value: &str) -> String {
    match value.trim_start_matches('$').to_ascii_lowercase().as_str() {
        "false" | "0" | "disabled" | "off" => "0".to_owned(),
        "true" | "1" | "enabled" | "on" => "1".to_owned(),
        _ => value.to_owned(),
    }
}

/// A property of a driver, by its keyword or by what its page shows: the size of frames (`Jumbo Packet`, `9014 Bytes`), or
/// an offload. Keywords: Microsoft's documents of the standardised ones.
fn advanced_property(given: &Given) -> Vec<Action> {
    let device = given.of(&["Name", "InterfaceDescription"]).unwrap_or(ALL);
    let keyword = given.of(&["RegistryKeyword"]).map(str::to_ascii_lowercase);
    // A name may have wildcards: `*Jumbo*`.
    let title = || given.of(&["DisplayName"]).unwrap_or_default().trim_matches('*').to_ascii_lowercase();
    let name = keyword.unwrap_or_else(title);
    let Some(value) = given.of(&["RegistryValue", "DisplayValue"]) else { return Vec::new() };
    if name.contains("jumbo") {
        // A page that shows `Disabled` means frames of 1,514 B.
        let bytes = if state(value) == "0" {
            Some("1514".to_owned())
        } else {
            value.split_whitespace().next().map(str::to_owned)
        };
        return bytes.map(|bytes| Action::Set(link(device, "*JumboPacket"), bytes)).into_iter().collect();
    }
    if name.contains("checksumoffload") || name.contains("checksum offload") {
        let knob = Address::Named { kind: "adapter".to_owned(), name: "ChecksumOffload".to_owned() };
        let value = if state(value) == "0" { "Disabled" } else { "Enabled" };
        return vec![Action::Set(knob, value.to_owned())];
    }
    // `Large Send Offload V2 (IPv4)`: what the page shows names its version of IP, or both are meant.
    let shown = [
        ("large send offload", "*LsoV2"),
        ("receive segment coalescing", "*Rsc"),
        ("recv segment coalescing", "*Rsc"),
        ("receive side scaling", "*RSS"),
    ];
    let keywords = SWITCHES.iter().flat_map(|switch| switch.keywords).map(|(keyword, ..)| *keyword);
    let shown = shown.iter().find(|(words, _)| name.starts_with(words)).map(|(_, start)| *start);
    let other = [("ipv4", "IPv6"), ("ipv6", "IPv4")].into_iter().find(|(version, _)| name.contains(version));
    let is_meant = |keyword: &&str| match shown {
        Some(start) => keyword.starts_with(start) && other.is_none_or(|(_, other)| !keyword.ends_with(other)),
        None => keyword.eq_ignore_ascii_case(&name),
    };
    let actions: Vec<Action> =
        keywords.filter(is_meant).map(|keyword| Action::Set(link(device, keyword), state(value))).collect();
    if actions.is_empty() {
        let words = format!("the driver's property `{name}` is not among the settings that fullpipe knows");
        return vec![Action::Unclear(words)];
    }
    actions
}

fn ip_interface(given: &Given) -> Vec<Action> {
    let device = given.of(&["InterfaceAlias", "InterfaceIndex"]).unwrap_or(ALL);
    let is_6 = given.of(&["AddressFamily"]).is_some_and(|family| family.eq_ignore_ascii_case("IPv6"));
    let mtu = given.of(&["NlMtuBytes", "NlMtu"]);
    let property = if is_6 { "mtu ipv6" } else { "mtu" };
    mtu.map(|mtu| Action::Set(link(device, property), mtu.to_owned())).into_iter().collect()
}

fn transport_filter(given: &Given) -> Vec<Action> {
    let Some(template) = given.of(&["SettingName"]) else { return Vec::new() };
    let to = given.of(&["DestinationPrefix", "RemotePortStart", "LocalPortStart"]).unwrap_or_default();
    vec![Action::Set(Address::Named { kind: "transportfilter".to_owned(), name: template.to_owned() }, to.to_owned())]
}

fn set_net_tcp_setting(given: &Given, piped: Option<&[String]>) -> Result<Vec<Action>, String> {
    if let Some((unknown, _)) = given.0.iter().find(|(name, _)| name.starts_with('@')) {
        return Ok(vec![Action::Unclear(format!("`{unknown}` is known only when the script runs"))]);
    }
    let objects = piped.is_some() || given.of(&["InputObject"]).is_some();
    // `Get-NetTCPSetting -SettingName Internet | Set-NetTCPSetting ...`.
    let handed =
        piped.filter(|words| words.first().is_some_and(|first| first.eq_ignore_ascii_case("Get-NetTCPSetting")));
    let handed = handed.map(|words| Given::new(words, &["SettingName"], &["SettingName"])).transpose()?;
    let handed = handed.as_ref().and_then(|given| given.of(&["SettingName"]));
    let templates = given.of(&["SettingName"]).or(handed).or_else(|| objects.then_some(ALL));
    let templates = templates.ok_or("Set-NetTCPSetting without -SettingName")?;
    let mut actions = Vec::new();
    for template in templates.split(',').map(str::trim) {
        let is_value =
            |name: &str| !["SettingName", "InputObject"].iter().any(|known| name.eq_ignore_ascii_case(known));
        for (parameter, value) in given.0.iter().filter(|(name, _)| is_value(name)) {
            let knob = Address::TcpSetting { template: template.to_owned(), parameter: parameter.clone() };
            actions.push(Action::Set(knob, value.clone()));
        }
    }
    Ok(actions)
}

/// The parameters of Set-NetTCPSetting that are values of a template.
const PARAMETERS: [&str; 20] = [
    "MinRtoMs",
    "InitialCongestionWindowMss",
    "CongestionProvider",
    "CwndRestart",
    "DelayedAckTimeoutMs",
    "DelayedAckFrequency",
    "MemoryPressureProtection",
    "AutoTuningLevelLocal",
    "EcnCapability",
    "Timestamps",
    "InitialRtoMs",
    "ScalingHeuristics",
    "DynamicPortRangeStartPort",
    "DynamicPortRangeNumberOfPorts",
    "AutomaticUseCustom",
    "NonSackRttResiliency",
    "ForceWS",
    "MaxSynRetransmissions",
    "AutoReusePortRangeStartPort",
    "AutoReusePortRangeNumberOfPorts",
];

/// Whether Set-NetTCPSetting has a parameter of this name.
pub(crate) fn is_set_net_tcp_setting(name: &str) -> bool {
    PARAMETERS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Parameters that every command has, and their short names.
const COMMON: [(&str, &str); 12] = [
    ("ErrorAction", "ea"),
    ("WarningAction", "wa"),
    ("InformationAction", "infa"),
    ("Confirm", "cf"),
    ("WhatIf", "wi"),
    ("Force", ""),
    ("Verbose", "vb"),
    ("CimSession", ""),
    ("ThrottleLimit", ""),
    ("AsJob", ""),
    ("PassThru", ""),
    ("ErrorVariable", "ev"),
];

/// The parameter that a beginning stands for: `-InitialCongestionWindow` in Microsoft's own example of Set-NetTCPSetting.
fn whole_parameter(given: &str, names: &[&str]) -> Result<String, String> {
    if let Some((whole, _)) = COMMON.iter().find(|(_, short)| !short.is_empty() && short.eq_ignore_ascii_case(given)) {
        return Ok((*whole).to_owned());
    }
    let begins = |name: &&str| name.get(..given.len()).is_some_and(|start| start.eq_ignore_ascii_case(given));
    let own: Vec<&str> = names.iter().copied().filter(begins).collect();
    let found: Vec<&str> = own.iter().copied().chain(COMMON.iter().map(|(name, _)| *name).filter(begins)).collect();
    match found.as_slice() {
        [] => Ok(given.to_owned()),
        [one] => Ok((*one).to_owned()),
        several => match several.iter().find(|name| name.eq_ignore_ascii_case(given)) {
            Some(exact) => Ok((*exact).to_owned()),
            None => Err(format!("`-{given}` stands for several parameters: {}", several.join(", "))),
        },
    }
}

fn item_property(given: &Given, remove: bool) -> Result<Vec<Action>, String> {
    let (Some(path), Some(name)) = (given.of(&["Path", "LiteralPath"]), given.of(&["Name"])) else {
        return Ok(Vec::new());
    };
    let knob = Address::Registry { key: key_of_value(path, name), value: name.to_owned() };
    if remove {
        return Ok(vec![Action::Delete(knob)]);
    }
    let value = given.of(&["Value"]).ok_or_else(|| format!("{knob} is written without -Value"))?;
    // -1 is written as the REG_DWORD of the same bits.
    let bits = value.parse::<i32>().ok().filter(|number| *number < 0).map(i32::cast_unsigned);
    Ok(vec![Action::Set(knob, bits.map_or_else(|| value.to_owned(), |bits| bits.to_string()))])
}
