//! Windows from Vista on: a PowerShell script that saves, writes, reads back and undoes.

use super::{
    Before, Draft, Encoding, ExportError, Item,
    quote::{C, Language, PowerShell, Reg, Unfit, one_line},
    registry::{dword, line},
};
use crate::{Address, tuning_level};

const APPLY: &str = "fullpipe.ps1";
const TEMPLATE: &str = "fullpipe-template.ps1";
const HEAD: &str = include_str!("templates/head.ps1");
const PARAMETERS: &str = include_str!("templates/parameters.ps1");
const TEMPLATE_PARAMETERS: &str = include_str!("templates/template_parameters.ps1");
const FUNCTIONS: &str = concat!(include_str!("templates/functions.ps1"), include_str!("templates/parameter.ps1"));
const MAIN: &str = include_str!("templates/main.ps1");

/// The parameters of `netsh interface tcp set global` that a cmdlet of Windows 8 and later can read, and as what.
const READABLE: [(&str, &str, &str); 11] = [
    ("tcp global", "autotuninglevel", "AutoTuningLevelLocal"),
    ("tcp global", "ecncapability", "EcnCapability"),
    ("tcp global", "timestamps", "Timestamps"),
    ("tcp global", "initialrto", "InitialRtoMs"),
    ("tcp global", "nonsackrttresiliency", "NonSackRttResiliency"),
    ("tcp global", "maxsynretransmissions", "MaxSynRetransmissions"),
    ("tcp heuristics", "wsh", "ScalingHeuristics"),
    ("tcp heuristics", "forcews", "ForceWS"),
    ("tcp global", "rss", "ReceiveSideScaling"),
    ("tcp global", "rsc", "ReceiveSegmentCoalescing"),
    ("tcp global", "chimney", "Chimney"),
];

/// Writes the script, and says which changes it makes.
pub(super) fn write(draft: &mut Draft<'_>) -> Result<Vec<Address>, ExportError> {
    let items = draft.items.clone();
    let mut rows = String::new();
    let mut written = Vec::new();
    for item in &items {
        if let Some(row) = row(draft, item)? {
            line(&mut rows, format_args!("    # {}\n{row}", PowerShell::comment(&item.change.reason)));
            written.push(item.knob().clone());
        }
    }
    if !written.is_empty() {
        let text = script(draft, PARAMETERS, &rows);
        draft.windows_file(
            APPLY,
            "saves what is there, sets the values, reads each back; with -Undo it puts back what it saved",
            &text,
            Encoding::Utf8Marked,
        );
        draft.step("Look first: powershell -ExecutionPolicy Bypass -File fullpipe.ps1 -WhatIf. It changes nothing and says what it would do.");
        draft.step("As an administrator: powershell -ExecutionPolicy Bypass -File fullpipe.ps1. What was there goes into fullpipe-before.xml beside it: keep that file.");
        draft.step(
            "To undo: powershell -ExecutionPolicy Bypass -File fullpipe.ps1 -Undo. It needs fullpipe-before.xml.",
        );
    }
    // Only there are the templates that connections get closed to changes (Microsoft: Set-NetTCPSetting, notes).
    if draft.is_at_least("8") && !draft.is_at_least("8.1") {
        template(draft, &items)?;
    }
    Ok(written)
}

fn script(draft: &Draft<'_>, parameters: &str, rows: &str) -> String {
    let platform = PowerShell::comment(&draft.platform.to_string());
    format!("# Written by fullpipe for {platform}.\n{HEAD}{parameters}{FUNCTIONS}\n$Changes = @(\n{rows})\n{MAIN}")
}

/// The script that gives named peers a template of their own: a copy of Internet with ten segments at the start.
fn template(draft: &mut Draft<'_>, items: &[Item<'_>]) -> Result<(), ExportError> {
    let mut rows = String::new();
    let row = |rows: &mut String, parameter: &str, to: &str| {
        line(
            rows,
            format_args!(
                "    @{{ Name = 'tcpsetting Custom {parameter}'; Kind = 'TcpSetting'; Template = 'Custom'; Parameter = '{parameter}'; {to} }}"
            ),
        );
    };
    // Custom begins as a copy of Datacenter, with DCTCP, which must not be used on the Internet (RFC 8257).
    for parameter in ["MinRtoMs", "CongestionProvider", "CwndRestart", "DelayedAckTimeoutMs", "EcnCapability"] {
        row(&mut rows, parameter, "CopyOf = 'Internet'");
    }
    line(&mut rows, format_args!("    # RFC 6928: ten segments; the templates of this version begin with four."));
    row(&mut rows, "InitialCongestionWindowMss", "To = '10'");
    for item in items {
        let level = tuning_level::for_all();
        if let (true, Some(to)) = (*item.knob() == level, item.to()) {
            let to = PowerShell::literal(to).map_err(item.unfit(to, TEMPLATE))?;
            line(&mut rows, format_args!("    # {}", PowerShell::comment(&item.change.reason)));
            row(&mut rows, "AutoTuningLevelLocal", &format!("To = {to}"));
        }
    }
    line(
        &mut rows,
        format_args!(
            "    @{{ Name = \"transportfilter Custom $PeerPrefix\"; Kind = 'Filter'; Template = 'Custom'; Prefix = $PeerPrefix; To = 'present' }}"
        ),
    );
    let text = script(draft, TEMPLATE_PARAMETERS, &rows);
    draft.windows_file(TEMPLATE, "not needed for the window: gives connections to a named prefix the Custom template, with ten segments at the start; -Undo takes it back", &text, Encoding::Utf8Marked);
    draft.step("Where connections are short and start slowly: fullpipe-template.ps1 -PeerPrefix 192.0.2.0/24, with the peers' own prefix. The templates Internet and Datacenter can't be changed on this version; this one uses Custom and a transport filter.");
    Ok(())
}

/// One row of the script's table; `None` where the script can't make the change.
fn row(draft: &mut Draft<'_>, item: &Item<'_>) -> Result<Option<String>, ExportError> {
    let Some(fields) = fields(draft, item)? else { return Ok(None) };
    let name = item.knob().to_string();
    let name = PowerShell::literal(&name).map_err(item.unfit(&name, APPLY))?;
    let planned = match &item.before {
        Before::Value(value) => {
            format!("; Planned = {}", PowerShell::literal(value).map_err(item.unfit(value, APPLY))?)
        }
        Before::Absent | Before::Unknown => String::new(),
    };
    Ok(Some(format!("    @{{ Name = {name}; {fields}{planned} }}")))
}

fn fields(draft: &mut Draft<'_>, item: &Item<'_>) -> Result<Option<String>, ExportError> {
    let text = |text: &str| PowerShell::literal(text).map_err(item.unfit(text, APPLY));
    // Names of parameters become words of a command.
    let word =
        |text: &str| C::literal(text).and_then(|text| PowerShell::literal(&text)).map_err(item.unfit(text, APPLY));
    let cmdlets = draft.is_at_least("8");
    if let Address::Registry { key, value } = item.knob() {
        return registry(draft, item, key, value);
    }
    let (Some(to), true) = (item.to(), cmdlets) else { return Ok(None) };
    let fields = match item.knob() {
        Address::Netsh { context, parameter } => {
            let found = READABLE.iter().find(|(at, name, _)| at == context && name == parameter);
            // What `default` stands for can't be read back.
            let Some((_, _, property)) = found.filter(|_| to != "default") else {
                return Ok(None);
            };
            let value = super::quote::bare(to).map_err(item.unfit(to, APPLY))?;
            let command = context.strip_prefix("tcp ").unwrap_or(context);
            format!(
                "Kind = 'Netsh'; Command = {}; Parameter = {}; Property = {}; To = {}",
                text(command)?,
                text(parameter)?,
                text(property)?,
                text(value)?
            )
        }
        Address::TcpSetting { template, parameter } => {
            let custom_only = !draft.is_at_least("8.1");
            if custom_only && template != "Custom" {
                let why = "on this version only the template Custom can be changed: use fullpipe-template.ps1, which gives it to named peers";
                draft.leave_out(item.knob(), why);
                return Ok(None);
            }
            format!(
                "Kind = 'TcpSetting'; Template = {}; Parameter = {}; To = {}",
                word(template)?,
                word(parameter)?,
                text(to)?
            )
        }
        Address::Named { kind, name } if kind == "netoffload" => {
            format!("Kind = 'Offload'; Parameter = {}; To = {}", word(name)?, text(to)?)
        }
        Address::Named { kind, name } if kind == "transportfilter" => {
            format!("Kind = 'Filter'; Template = {}; Prefix = {}; To = 'present'", word(name)?, text(to)?)
        }
        Address::Link { device, property } if property == "mtu" => {
            let bytes: u32 =
                to.trim().parse().map_err(|_| item.unfit(to, APPLY)(Unfit("an MTU is a number of bytes")))?;
            format!("Kind = 'Mtu'; Interface = {}; To = '{bytes}'", text(device)?)
        }
        Address::Link { device, property } if property == "*JumboPacket" => {
            let bytes: u32 =
                to.trim().parse().map_err(|_| item.unfit(to, APPLY)(Unfit("a frame is a number of bytes")))?;
            format!("Kind = 'Adapter'; Interface = {}; Keyword = '*JumboPacket'; To = '{bytes}'", text(device)?)
        }
        Address::Link { device, property } if ["0", "1"].contains(&to) => {
            format!("Kind = 'Adapter'; Interface = {}; Keyword = {}; To = '{to}'", text(device)?, text(property)?)
        }
        _ => return Ok(None),
    };
    Ok(Some(fields))
}

fn registry(draft: &mut Draft<'_>, item: &Item<'_>, key: &str, value: &str) -> Result<Option<String>, ExportError> {
    if key.contains("{GUID}") {
        let why =
            "it is a setting of one adapter, and the plan doesn't say which: put the adapter's GUID in place of {GUID}";
        draft.leave_out(item.knob(), why);
        return Ok(None);
    }
    let long = Reg::long_key(key).map_err(item.unfit(key, APPLY))?;
    let below = long.split_once('\\').map_or("", |(_, below)| below);
    let key = PowerShell::literal(below).map_err(item.unfit(key, APPLY))?;
    let name = PowerShell::literal(value).map_err(item.unfit(value, APPLY))?;
    let to = match item.to() {
        Some(to) => {
            let number = dword(to).ok_or_else(|| item.unfit(to, APPLY)(Unfit("it is no number of 32 bits")))?;
            format!("@{{ Kind = 'DWord'; Value = (ConvertTo-Dword '{number}') }}")
        }
        None => "$null".to_owned(),
    };
    Ok(Some(format!("Kind = 'Registry'; Key = {key}; Value = {name}; To = {to}")))
}

/// What the README says of a version's own traps.
pub(super) fn traps(draft: &Draft<'_>) -> Vec<String> {
    let mut traps = Vec::new();
    if draft.is_at_least("10") && !draft.is_at_least("2016") {
        traps.push("Windows 10 does not let MinRtoMs, InitialCongestionWindowMss, AutomaticUseCustom, CongestionProvider, CwndRestart and DelayedAckTimeoutMs be changed (Microsoft: Set-NetTCPSetting). They are not written here.".to_owned());
    }
    if draft.is_at_least("2022") {
        traps.push("Microsoft does not say which template parameters this version lets you change. The script reads each back and says where it did not take.".to_owned());
    }
    traps.into_iter().map(|trap| one_line(&trap)).collect()
}
