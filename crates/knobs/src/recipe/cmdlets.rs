//! PowerShell's own commands: what each sets, by its parameters.
//!
//! Names, parameters and positions: Microsoft's documents of the modules NetTCPIP and NetAdapter.

use super::{Action, reg::short_key};
use crate::{Address, Catalogue, Family, lint::meant};

/// The template of a command that is handed templates by another one.
pub(crate) const ALL: &str = "*";

/// What a command sets; `None` for one that is none of PowerShell's.
pub(super) fn actions(words: &[String], piped: bool) -> Option<Result<Vec<Action>, String>> {
    let written = words.first()?.trim_start_matches('@');
    let given = |positions: &[&str]| Given::new(words, positions);
    let found = match written.to_ascii_lowercase().as_str() {
        "set-nettcpsetting" => set_net_tcp_setting(&given(&["SettingName"]), piped),
        "set-netoffloadglobalsetting" => {
            let sets = given(&[]).0.into_iter();
            Ok(sets.map(|(name, value)| Action::Set(offload(&name), value)).collect())
        }
        "set-netadapteradvancedproperty" => Ok(advanced_property(&given(&["Name"]))),
        "set-netipinterface" => Ok(ip_interface(&given(&["InterfaceAlias"]))),
        "new-nettransportfilter" => Ok(transport_filter(&given(&["SettingName"]))),
        "set-itemproperty" | "new-itemproperty" | "sp" => item_property(&given(&["Path", "Name", "Value"]), false),
        "remove-itemproperty" | "rp" => item_property(&given(&["Path", "Name"]), true),
        name => match switch(name) {
            Some((kind, verb)) => Ok(switched(kind, verb, &given(&["Name"]))),
            None => Ok(vec![misspelt(written)?]),
        },
    };
    Some(found)
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
    /// `positions` are the names of what stands without a name, in its order.
    fn new(words: &[String], positions: &[&str]) -> Self {
        let mut found: Vec<(String, String)> = Vec::new();
        let mut unnamed = Vec::new();
        let mut rest = words.iter().skip(1).peekable();
        while let Some(word) = rest.next() {
            let Some(name) = word.strip_prefix('-').filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
            else {
                // `@parameters`, of which the script doesn't tell what they are.
                if word.starts_with('@') {
                    found.push((word.clone(), word.clone()));
                } else {
                    unnamed.push(word.clone());
                }
                continue;
            };
            let (name, value) = match name.split_once(':') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (name, rest.next_if(|next| !next.starts_with('-')).cloned()),
            };
            let common = ["erroraction", "confirm", "whatif", "force", "verbose", "cimsession", "passthru"];
            if !common.iter().any(|known| name.eq_ignore_ascii_case(known)) {
                found.push((name.to_owned(), value.unwrap_or_else(|| "True".to_owned())));
            }
        }
        let mut given = Self(found);
        // A position is counted among those that have no name on the line.
        let free: Vec<&&str> = positions.iter().filter(|name| given.of(&[name]).is_none()).collect();
        given.0.extend(free.into_iter().zip(unnamed).map(|(name, value)| ((*name).to_owned(), value)));
        given
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
        return Address::Netsh { context: "tcp global".to_owned(), parameter: "chimney".to_owned() };
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
    let name = given.of(&["RegistryKeyword", "DisplayName"]).unwrap_or_default().to_ascii_lowercase();
    let Some(value) = given.of(&["RegistryValue", "DisplayValue"]) else { return Vec::new() };
    if name.contains("jumbo") {
        let bytes = value.split_whitespace().next().map(str::to_owned);
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
        let words = format!("the driver's property `{name}` bounds no TCP connection as far as the catalogue knows");
        return vec![Action::Unclear(words)];
    }
    actions
}

fn ip_interface(given: &Given) -> Vec<Action> {
    let device = given.of(&["InterfaceAlias", "InterfaceIndex"]).unwrap_or(ALL);
    let mtu = given.of(&["NlMtuBytes", "NlMtu"]);
    mtu.map(|mtu| Action::Set(link(device, "mtu"), mtu.to_owned())).into_iter().collect()
}

fn transport_filter(given: &Given) -> Vec<Action> {
    let Some(template) = given.of(&["SettingName"]) else { return Vec::new() };
    let to = given.of(&["DestinationPrefix", "RemotePortStart", "LocalPortStart"]).unwrap_or_default();
    vec![Action::Set(Address::Named { kind: "transportfilter".to_owned(), name: template.to_owned() }, to.to_owned())]
}

fn set_net_tcp_setting(given: &Given, piped: bool) -> Result<Vec<Action>, String> {
    if let Some((unknown, _)) = given.0.iter().find(|(name, _)| name.starts_with('@')) {
        return Ok(vec![Action::Unclear(format!("`{unknown}` is known only when the script runs"))]);
    }
    let objects = piped || given.of(&["InputObject"]).is_some();
    let templates = given.of(&["SettingName"]).or_else(|| objects.then_some(ALL));
    let templates = templates.ok_or("Set-NetTCPSetting without -SettingName")?;
    let mut actions = Vec::new();
    for template in templates.split(',').map(str::trim) {
        let is_value =
            |name: &str| !["SettingName", "InputObject"].iter().any(|known| name.eq_ignore_ascii_case(known));
        for (parameter, value) in given.0.iter().filter(|(name, _)| is_value(name)) {
            let knob = Address::TcpSetting { template: template.to_owned(), parameter: whole_parameter(parameter)? };
            actions.push(Action::Set(knob, value.clone()));
        }
    }
    Ok(actions)
}

/// The parameter that PowerShell takes an unambiguous beginning for: `-InitialCongestionWindow` in Microsoft's own example
/// of Set-NetTCPSetting.
fn whole_parameter(given: &str) -> Result<String, String> {
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
    let begins = |name: &&&str| name.get(..given.len()).is_some_and(|start| start.eq_ignore_ascii_case(given));
    let found: Vec<&str> = PARAMETERS.iter().filter(begins).copied().collect();
    match found.as_slice() {
        [] => Ok(given.to_owned()),
        [one] => Ok((*one).to_owned()),
        [first, ..] if found.iter().any(|name| name.eq_ignore_ascii_case(given)) => Ok((*first).to_owned()),
        several => Err(format!("`-{given}` stands for several parameters: {}", several.join(", "))),
    }
}

fn item_property(given: &Given, remove: bool) -> Result<Vec<Action>, String> {
    let (Some(path), Some(name)) = (given.of(&["Path", "LiteralPath"]), given.of(&["Name"])) else {
        return Ok(Vec::new());
    };
    let path = path.trim_start_matches("Registry::");
    // What only a running script knows (`$_.PSPath`) is recognised by the value: a loop goes over the adapters.
    let key = if path.starts_with('$') { key_of(name).unwrap_or_else(|| short_key(path)) } else { short_key(path) };
    let knob = Address::Registry { key, value: name.to_owned() };
    if remove {
        return Ok(vec![Action::Delete(knob)]);
    }
    let value = given.of(&["Value"]).ok_or_else(|| format!("{knob} is written without -Value"))?;
    Ok(vec![Action::Set(knob, value.to_owned())])
}

/// The key that Windows reads a value from: that of one adapter, where there is one.
fn key_of(value: &str) -> Option<String> {
    let keys = || {
        Catalogue::for_family(Family::Windows).into_iter().flat_map(|catalogue| &catalogue.knobs).filter_map(|row| {
            match &row.address {
                Address::Registry { key, value: name } if name.eq_ignore_ascii_case(value) => Some(key),
                _ => None,
            }
        })
    };
    keys().find(|key| key.contains("{GUID}")).or_else(|| keys().next()).cloned()
}
