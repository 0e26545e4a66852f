//! Linux: a `sysctl.d` drop-in, scripts for what is in force now, a TuneD profile, and fragments for the network's own configuration.

use super::{
    Draft, ExportError, Item,
    quote::{Ini, Language, Sh, Unfit, bare, device},
    registry::line,
    unix::{self, Calls, System},
};
use crate::Address;

const DROP_IN: &str = "90-fullpipe.conf";
/// Its name in the folder that TuneD gives a profile.
const TUNED: &str = "tuned.conf";
const NETWORKD: &str = "networkd-mtu.conf";
const NM: &str = "networkmanager-mtu.sh";
/// The attributes of a route that scripts may change.
const ATTRIBUTES: [&str; 9] =
    ["window", "initcwnd", "initrwnd", "congctl", "mtu", "advmss", "quickack", "rto_min", "reordering"];

pub(super) fn write(draft: &mut Draft<'_>) -> Result<(), ExportError> {
    let items = draft.items.clone();
    let mut calls = Calls::default();
    let [mut sysctls, mut links] = [Vec::new(), Vec::new()];
    for item in &items {
        match item.knob() {
            Address::Sysctl(_) => {
                calls.sysctl(item)?;
                sysctls.push(item);
            }
            Address::Route { destination, attribute } => route(&mut calls, item, destination, attribute)?,
            Address::Link { property, .. } if property == "mtu" => {
                calls.mtu(item)?;
                links.push(item);
            }
            _ => draft
                .leave_out(item.knob(), "no file form is known for it here; set it by hand, or with `fullpipe apply`"),
        }
    }
    if calls.set.is_empty() {
        return Ok(());
    }
    let mut system = System { functions: include_str!("templates/linux.sh"), ..System::default() };
    if !sysctls.is_empty() {
        let text = format!(
            "# Written by fullpipe for {}; undo.sh takes it away.\n{}",
            super::quote::one_line(&draft.platform.to_string()),
            unix::conf(&sysctls, DROP_IN, " = ")?
        );
        draft.unix_file(DROP_IN, "keeps the sysctls over a restart; apply.sh copies it to /etc/sysctl.d", &text);
        system.check = "check_drop_in\n";
        system.install = "install_drop_in\n".to_owned();
        system.uninstall = "remove_drop_in\n".to_owned();
    }
    unix::scripts(draft, &calls, &system);
    if !sysctls.is_empty() {
        tuned(draft, &sysctls)?;
    }
    if items.iter().any(|item| matches!(item.knob(), Address::Route { .. })) {
        draft.step("apply.sh changes routes until the next restart only: write the attribute into the network configuration of the system, too (networkd: [Route]; NetworkManager: ipv4.routes).");
    }
    if !links.is_empty() {
        mtu_files(draft, &links)?;
    }
    Ok(())
}

fn route(calls: &mut Calls, item: &Item<'_>, destination: &str, attribute: &str) -> Result<(), ExportError> {
    if !ATTRIBUTES.contains(&attribute) {
        return Err(item.unfit(attribute, unix::APPLY)(Unfit("it is no attribute of a route that is exported")));
    }
    let unfit = item.unfit(destination, unix::APPLY);
    let plain = destination == "default" || is_prefix(destination);
    let destination =
        if plain { Sh::literal(destination) } else { Err(Unfit("it is no address with a prefix length")) };
    let destination = destination.map_err(&unfit)?;
    let family = if item.knob().to_string().contains(':') { "-6" } else { "-4" };
    let to = match item.to() {
        Some(to) => bare(to).and_then(Sh::literal).map_err(item.unfit(to, unix::APPLY))?,
        None => "''".to_owned(),
    };
    let arguments = [family.to_owned(), destination, attribute.to_owned(), to];
    // The whole route is saved, once, so what the plan knows of one attribute adds nothing.
    let save = format!("save_route {} {}", arguments[0], arguments[1]);
    if !calls.save.lines().any(|known| known == save) {
        line(&mut calls.save, format_args!("{save}"));
    }
    line(&mut calls.set, format_args!("# {}\nset_route {}", Sh::comment(&item.change.reason), arguments.join(" ")));
    calls.undo.push(format!("restore_route {}", arguments.join(" ")));
    Ok(())
}

fn is_prefix(text: &str) -> bool {
    let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    address.parse::<core::net::IpAddr>().is_ok()
        && length.is_none_or(|length| length.parse::<u8>().is_ok_and(|n| n <= 128))
}

/// A TuneD profile with the sysctls. It includes no other profile: which one a machine runs is known there.
fn tuned(draft: &mut Draft<'_>, sysctls: &[&Item<'_>]) -> Result<(), ExportError> {
    let platform = super::quote::one_line(&draft.platform.to_string());
    let text = format!(
        "# Written by fullpipe for {platform}.\n[main]\nsummary=TCP for a path, planned by fullpipe\n\n[sysctl]\n{}",
        unix::conf(sysctls, TUNED, "=")?
    );
    draft.unix_file(TUNED, "the sysctls as a TuneD profile, instead of apply.sh", &text);
    draft.step("Where TuneD runs, instead of apply.sh: put tuned.conf into /etc/tuned/fullpipe (/etc/tuned/profiles/fullpipe from TuneD 2.23 on), then `tuned-adm profile P fullpipe`, P being what `tuned-adm active` names. To undo: `tuned-adm profile P`, and delete the folder. Not both: what apply.sh set, TuneD would take for the state before.");
    Ok(())
}

/// An MTU over a restart, for the two services that set interfaces up.
fn mtu_files(draft: &mut Draft<'_>, links: &[&Item<'_>]) -> Result<(), ExportError> {
    let mut networkd = "# systemd-networkd: one interface's part of this goes into a drop-in of the .network file that `networkctl status IF` names:\n# /etc/systemd/network/<that file>.d/fullpipe.conf; then `networkctl reload`. To undo, delete the drop-in and reload.\n# It is no .link file: the first of those that matches an interface hides the others, and with them its name.\n".to_owned();
    let mut nm = include_str!("templates/networkmanager.sh").to_owned();
    for item in links {
        let (Address::Link { device: name, .. }, Some(to)) = (item.knob(), item.to()) else { continue };
        let bytes = unix::mtu(item, to)?;
        let ini = device(name).and_then(Ini::literal).map_err(item.unfit(name, NETWORKD))?;
        line(&mut networkd, format_args!("\n# {ini}: {}\n[Link]\nMTUBytes={bytes}", Ini::comment(&item.change.reason)));
        let quoted = device(name).and_then(Sh::literal).map_err(item.unfit(name, NM))?;
        line(&mut nm, format_args!("connection {quoted} '{bytes}'"));
    }
    draft.unix_file(
        NETWORKD,
        "the MTU over a restart where systemd-networkd sets interfaces up; it says where each part goes",
        &networkd,
    );
    draft.unix_file(
        NM,
        "the MTU over a restart where NetworkManager sets interfaces up: `sh networkmanager-mtu.sh apply`, and `undo`",
        &nm,
    );
    draft.step("An MTU is kept over a restart by what sets the interface up: networkd-mtu.conf or networkmanager-mtu.sh, not both. A larger MTU needs every station and switch of that network to take it.");
    Ok(())
}
