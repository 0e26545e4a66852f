//! FreeBSD: fragments for `sysctl.conf`, `loader.conf` and `rc.conf`, with the scripts that put them in place.

use super::{
    Draft, ExportError, Item,
    quote::{Language, RcConf, Sh, device, sysctl},
    registry::line,
    unix::{self, Calls, System},
};
use crate::{Address, TakesEffect};

const SYSCTL: &str = "sysctl.conf.local";
const LOADER: &str = "loader.conf.local";
const RC: &str = "rc.conf.local";

pub(super) fn write(draft: &mut Draft<'_>) -> Result<(), ExportError> {
    let items = draft.items.clone();
    let mut calls = Calls::default();
    let [mut sysctls, mut tunables, mut links] = [Vec::new(), Vec::new(), Vec::new()];
    for item in &items {
        match item.knob() {
            Address::Sysctl(_) if item.change.takes_effect == TakesEffect::Restart => tunables.push(item),
            Address::Sysctl(_) => {
                calls.sysctl(item)?;
                sysctls.push(item);
            }
            Address::Link { property, .. } if property == "mtu" => {
                calls.mtu(item)?;
                links.push(item);
            }
            _ => draft.leave_out(item.knob(), "no file form is known for it here; set it by hand"),
        }
    }
    let mut system = System {
        functions: concat!(include_str!("templates/bsd.sh"), include_str!("templates/freebsd.sh")),
        ..System::default()
    };
    let mut block = |draft: &mut Draft<'_>, name: &'static str, variable: &str, what: &str, lines: String| {
        if lines.is_empty() {
            return;
        }
        let text = format!(
            "# begin fullpipe\n# Written by fullpipe for {}; undo.sh takes this block away.{}\n# end fullpipe\n",
            super::quote::one_line(&draft.platform.to_string()),
            format_args!("\n{}", lines.trim_end())
        );
        draft.unix_file(name, what, &text);
        line(&mut calls.save, format_args!("save_file \"${variable}\""));
        let install = if name == LOADER { &mut system.first } else { &mut system.install };
        line(install, format_args!("append_block \"${variable}\" \"$here/{name}\""));
        line(&mut system.uninstall, format_args!("remove_block \"${variable}\""));
    };
    block(
        draft,
        SYSCTL,
        "sysctl_conf",
        "keeps the sysctls over a restart; apply.sh appends it to /etc/sysctl.conf.local, on old releases to /etc/sysctl.conf",
        unix::conf(&sysctls, SYSCTL, "=")?,
    );
    block(
        draft,
        LOADER,
        "loader_conf",
        "what only the boot loader can set, after a restart; apply.sh appends it to /boot/loader.conf.local before all else",
        loader(&tunables)?,
    );
    block(
        draft,
        RC,
        "rc_conf",
        "keeps the MTU over a restart, behind what rc.conf says of the interface; apply.sh appends it to /etc/rc.conf.local",
        rc(&links)?,
    );
    if draft.files.is_empty() {
        return Ok(());
    }
    await_restart(&tunables, &calls, &mut system)?;
    unix::scripts(draft, &calls, &system);
    Ok(())
}

/// Buffers above what the clusters hold can stop the network, so nothing is raised before the machine was started with
/// what only the boot loader sets.
fn await_restart(tunables: &[&Item<'_>], calls: &Calls, system: &mut System) -> Result<(), ExportError> {
    let mut names = Vec::new();
    for item in tunables {
        let (Address::Sysctl(name), Some(to)) = (item.knob(), item.to()) else { continue };
        let quoted = sysctl(name).and_then(Sh::literal).map_err(item.unfit(name, unix::APPLY))?;
        line(&mut system.first, format_args!("await_tunable {quoted} {}", unix::value(item, to)?));
        names.push(name.as_str());
    }
    if names.is_empty() {
        return Ok(());
    }
    line(&mut system.first, format_args!("stop_for_restart"));
    let again = if calls.set.is_empty() {
        "Run sh apply.sh again: it says whether the system took it.".to_owned()
    } else {
        format!("Run sh apply.sh again: it raises the rest once {} is there, and not before.", names.join(", "))
    };
    system.then = vec![
        "While the system runs without what loader.conf.local sets, apply.sh puts that file in place and ends with 3: nothing else is changed.".to_owned(),
        "Restart. Where the machine doesn't start, `unset` the name at the loader's prompt.".to_owned(),
        again,
    ];
    Ok(())
}

fn loader(tunables: &[&Item<'_>]) -> Result<String, ExportError> {
    let mut text = String::new();
    for item in tunables {
        let (Address::Sysctl(name), Some(to)) = (item.knob(), item.to()) else { continue };
        let name = sysctl(name).map_err(item.unfit(name, LOADER))?;
        let to = RcConf::literal(to).map_err(item.unfit(to, LOADER))?;
        line(&mut text, format_args!("# {}\n{name}={to}", RcConf::comment(&item.change.reason)));
    }
    Ok(text)
}

/// The MTU is added to what the file before says of the interface, so nothing of that must be known.
fn rc(links: &[&Item<'_>]) -> Result<String, ExportError> {
    let mut text = String::new();
    for item in links {
        let (Address::Link { device: name, .. }, Some(to)) = (item.knob(), item.to()) else { continue };
        let bytes = unix::mtu(item, to)?;
        // rc.conf(5): what no name of a variable can hold is written as `_`.
        let name = device(name).map_err(item.unfit(name, RC))?.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        line(
            &mut text,
            format_args!(
                "# {}\nifconfig_{name}=\"${{ifconfig_{name}}} mtu {bytes}\"",
                RcConf::comment(&item.change.reason)
            ),
        );
    }
    Ok(text)
}
