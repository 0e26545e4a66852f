//! What to set, where, and why.

use fullpipe_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Address, tuning_level::GROUP_POLICY};

/// An ordered list of changes, which is undone in reverse.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What to set, in this order.
    pub changes: Vec<Change>,
    /// What the plan leaves alone and why, conflicts that it found, and what it can't do here.
    pub notes: Vec<String>,
}

/// One setting to change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The host to change, by the name that its `End` has.
    pub host: String,
    /// Which setting.
    pub knob: Address,
    /// What it is now; `None` where it is absent.
    pub from: Option<String>,
    /// What it shall be; `None` removes it.
    pub to: Option<String>,
    /// Why, as one sentence.
    pub reason: String,
    /// The arithmetic behind the value.
    pub arithmetic: String,
    /// The most memory that this can cost, with the connections assumed.
    pub memory_worst_case: Option<Bytes>,
    /// When it takes effect.
    pub takes_effect: TakesEffect,
    /// How it is undone, for a person who does it by hand.
    pub undo: String,
    /// Where the catalogue has it from.
    pub source: String,
}

impl Change {
    /// A change of `knob` that nobody explains: for new connections, without reason, arithmetic or source.
    pub const fn unexplained(host: String, knob: Address, from: Option<String>, to: Option<String>) -> Self {
        Self {
            host,
            knob,
            from,
            to,
            reason: String::new(),
            arithmetic: String::new(),
            memory_worst_case: None,
            takes_effect: TakesEffect::NewConnections,
            undo: String::new(),
            source: String::new(),
        }
    }

    /// Who sets it, where that is not the machine.
    pub fn left_to(&self) -> Option<&'static str> {
        match &self.knob {
            Address::Socket(_) => Some("the application: only it can set it"),
            Address::TcpSetting { parameter, .. } if parameter == GROUP_POLICY => {
                Some("whoever makes the policies: this machine only shows it")
            }
            _ => None,
        }
    }

    /// The command that makes the change by hand, where it is one line that no shell could misread.
    pub fn command(&self) -> Option<String> {
        let to = self.to.as_deref();
        match &self.knob {
            Address::Sysctl(name) => {
                let value = to.filter(|value| is_plain(value))?;
                // What acts at the next start only is the boot loader's: FreeBSD's, as nobody else has such sysctls.
                Some(if self.takes_effect == TakesEffect::Restart {
                    format!("echo '{name}=\"{value}\"' >>/boot/loader.conf.local")
                } else if value.contains(' ') {
                    format!("sysctl -w {name}='{value}'")
                } else {
                    format!("sysctl -w {name}={value}")
                })
            }
            Address::Netsh { context, parameter } => {
                let value = to.filter(|value| is_plain(value) && !value.contains(' '))?;
                match context.split(' ').collect::<Vec<_>>()[..] {
                    ["tcp", "supplemental", template] => {
                        Some(format!("netsh interface tcp set supplemental template={template} {parameter}={value}"))
                    }
                    ["tcp", part] => Some(format!("netsh interface tcp set {part} {parameter}={value}")),
                    ["winsock"] => Some(format!("netsh winsock set {parameter} {value}")),
                    _ => None,
                }
            }
            // A policy is set where policies are made.
            Address::TcpSetting { parameter, .. } if parameter == GROUP_POLICY => None,
            Address::TcpSetting { template, parameter } => {
                let value = to.filter(|value| is_plain(value) && !value.contains(' '))?;
                let template = Some(template).filter(|name| is_plain(name) && !name.contains(' '))?;
                Some(format!("Set-NetTCPSetting -SettingName {template} -{parameter} {value}"))
            }
            Address::Registry { key, value } if !key.contains(['"', '%', '<']) && is_plain(value) => match to {
                Some(number) => {
                    let number: u32 = number.parse().ok()?;
                    Some(format!("reg add \"{key}\" /v {value} /t REG_DWORD /d {number} /f"))
                }
                None => Some(format!("reg delete \"{key}\" /v {value} /f")),
            },
            Address::Socket(option) => {
                let bytes: u64 = to?.parse().ok()?;
                Some(format!("int size = {bytes}; setsockopt(fd, SOL_SOCKET, {option}, (char *)&size, sizeof size);"))
            }
            Address::Named { kind, name } if kind == "transportfilter" => {
                let prefix = to.filter(|prefix| is_prefix(prefix))?;
                let name = Some(name).filter(|name| is_plain(name) && !name.contains(' '))?;
                Some(format!("New-NetTransportFilter -SettingName {name} -DestinationPrefix {prefix}"))
            }
            Address::Link { device, property } if property.starts_with('*') && is_plain(device) => {
                let value: u32 = to?.parse().ok()?;
                Some(format!(
                    "Set-NetAdapterAdvancedProperty -Name \"{device}\" -RegistryKeyword \"{property}\" -RegistryValue {value}"
                ))
            }
            // `ip route change` drops what it isn't given, so it is given what the route has.
            Address::Route { destination, attribute } => {
                let family = if destination.contains(':') { " -6" } else { "" };
                if attribute == crate::planner::destination::MADE {
                    return Some(match to {
                        // Addresses have colons, networks a slash.
                        Some(line) if is_plain(&line.replace([':', '/'], "")) => {
                            format!("ip{family} route add {destination} {line}")
                        }
                        Some(_) => return None,
                        None => format!("ip{family} route del {destination}"),
                    });
                }
                let value = match to {
                    Some(value) => Some(value).filter(|value| is_plain(value) && !value.contains(' '))?,
                    // Only numbers have a 0 that takes them away.
                    None if attribute == "congctl" => return None,
                    None => "0",
                };
                Some(format!(
                    "ip{family} route change $(ip{family} route show exact {destination}) {attribute} {value}"
                ))
            }
            Address::Named { kind, name } if kind == "call" => {
                let number: u32 = to?.parse().ok()?;
                Some(format!("{name}(fd, {number});"))
            }
            _ => None,
        }
    }
}

/// Whether a text can only be an address or a prefix.
fn is_prefix(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit() || b".:/".contains(&b))
}

/// Whether a shell takes a text as it stands, blanks apart.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._- ".contains(&b))
}

impl Plan {
    /// Completes a plan that was made without knowing what is there: fills in `from` of the changes of `unread` with what
    /// `read` finds, and takes back what would lower a number that is larger already, with a note.
    ///
    /// The size of an interface's packets is no such number: too large is as wrong as too small.
    ///
    /// # Errors
    ///
    /// Where `read` fails; the plan is as it was up to that change.
    pub fn find_before<E>(
        &mut self,
        unread: &[Address],
        mut read: impl FnMut(&Address) -> Result<Option<String>, E>,
    ) -> Result<(), E> {
        let mut kept = Vec::with_capacity(self.changes.len());
        for mut change in std::mem::take(&mut self.changes) {
            if unread.contains(&change.knob) {
                change.from = read(&change.knob)?;
                if let Some(larger) = larger_of(&change) {
                    if Some(&larger) == change.from.as_ref() {
                        self.notes.push(format!("{} is {larger} already, and is not lowered", change.knob));
                        continue;
                    }
                    change.to = Some(larger);
                }
            }
            kept.push(change);
        }
        self.changes = kept;
        Ok(())
    }
}

/// The larger of each pair of numbers, where what is there and what is planned are numbers that may only rise, and one
/// that is there is the larger one.
fn larger_of(change: &Change) -> Option<String> {
    if matches!(change.knob, Address::Link { .. }) {
        return None;
    }
    let (from, to) = (change.from.as_deref()?, change.to.as_deref()?);
    let numbers = |text: &str| text.split_whitespace().map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>();
    let (there, planned) = (numbers(from)?, numbers(to)?);
    // Switches are no sizes: 0 or 1 is what was asked for.
    let sizes = planned.iter().any(|number| *number > 1);
    if !sizes || there.len() != planned.len() || there.iter().zip(&planned).all(|(there, planned)| there <= planned) {
        return None;
    }
    if there.iter().zip(&planned).all(|(there, planned)| there >= planned) {
        return Some(from.to_owned());
    }
    let larger = there.iter().zip(&planned).map(|(there, planned)| there.max(planned).to_string());
    Some(larger.collect::<Vec<_>>().join(" "))
}

/// When a change takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakesEffect {
    /// On connections that are open already, too.
    Live,
    /// On new connections.
    NewConnections,
    /// When the interface is taken down and up.
    InterfaceRestart,
    /// After a reboot.
    Restart,
}

impl TakesEffect {
    /// What follows "applies".
    pub const fn words(self) -> &'static str {
        match self {
            Self::Live => "at once, to open connections too",
            Self::NewConnections => "to new connections",
            Self::InterfaceRestart => "when the interface is next brought up",
            Self::Restart => "after a reboot",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(knob: &str, to: &str) -> Change {
        Change {
            host: "a".to_owned(),
            knob: knob.parse().unwrap(),
            from: None,
            to: Some(to.to_owned()),
            reason: "why".to_owned(),
            arithmetic: String::new(),
            memory_worst_case: None,
            takes_effect: TakesEffect::Live,
            undo: "by hand".to_owned(),
            source: "a test".to_owned(),
        }
    }

    #[test]
    fn a_change_comes_with_its_command_where_it_is_one_line() {
        for (knob, to, expected) in [
            ("net.ipv4.tcp_sack", "1", Some("sysctl -w net.ipv4.tcp_sack=1")),
            ("net.ipv4.tcp_rmem", "4096 131072 40042496", Some("sysctl -w net.ipv4.tcp_rmem='4096 131072 40042496'")),
            ("net.ipv4.tcp_congestion_control", "$(reboot)", None),
            (
                "netsh tcp global autotuninglevel",
                "normal",
                Some("netsh interface tcp set global autotuninglevel=normal"),
            ),
            ("netsh tcp heuristics wsh", "disabled", Some("netsh interface tcp set heuristics wsh=disabled")),
            (
                "tcpsetting InternetCustom MinRtoMs",
                "300",
                Some("Set-NetTCPSetting -SettingName InternetCustom -MinRtoMs 300"),
            ),
            (
                r"registry HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Tcp1323Opts",
                "1",
                Some(
                    r#"reg add "HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters" /v Tcp1323Opts /t REG_DWORD /d 1 /f"#,
                ),
            ),
            ("call SetSocketRxBuffers", "40", Some("SetSocketRxBuffers(fd, 40);")),
            ("link eth0 mtu", "9000", None),
            (
                "route 10.80.0.0/24 initcwnd",
                "40",
                Some("ip route change $(ip route show exact 10.80.0.0/24) initcwnd 40"),
            ),
            (
                "route 2001:db8::/32 rto_min",
                "50ms",
                Some("ip -6 route change $(ip -6 route show exact 2001:db8::/32) rto_min 50ms"),
            ),
            ("route 10.80.0.7 made", "via 10.0.0.2 dev eth0", Some("ip route add 10.80.0.7 via 10.0.0.2 dev eth0")),
            ("route 10.80.0.7 made", "via 10.0.0.2; reboot", None),
            ("route default congctl", "$(reboot)", None),
        ] {
            assert_eq!(planned(knob, to).command().as_deref(), expected, "{knob}");
        }
        let at_start = Change { takes_effect: TakesEffect::Restart, ..planned("kern.ipc.nmbclusters", "98000") };
        let line = "echo 'kern.ipc.nmbclusters=\"98000\"' >>/boot/loader.conf.local";
        assert_eq!(at_start.command().as_deref(), Some(line));
        for (knob, expected) in [
            ("route default window", Some("ip route change $(ip route show exact default) window 0")),
            ("route 10.80.0.7 made", Some("ip route del 10.80.0.7")),
            ("route default congctl", None),
        ] {
            let absent = Change { to: None, ..planned(knob, "") };
            assert_eq!(absent.command().as_deref(), expected, "{knob}");
        }
        let policy = planned("tcpsetting Internet AutoTuningLevelGroupPolicy", "NotConfigured");
        assert_eq!(policy.command(), None);
        assert!(policy.left_to().is_some() && planned("socket SO_RCVBUF", "1").left_to().is_some());
        assert_eq!(at_start.left_to(), None);
        let absent = Change {
            to: None,
            ..planned(r"registry HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\TcpWindowSize", "1")
        };
        assert_eq!(
            absent.command().as_deref(),
            Some(r#"reg delete "HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters" /v TcpWindowSize /f"#)
        );
    }

    #[test]
    fn what_was_unknown_is_read_and_nothing_that_is_larger_is_lowered() {
        for (knob, to, there, expected) in [
            ("kern.ipc.maxsockbuf", "286720", Some("262144"), Some("286720")),
            ("kern.ipc.maxsockbuf", "286720", Some("8388608"), None),
            ("kern.ipc.maxsockbuf", "286720", None, Some("286720")),
            ("net.ipv4.tcp_rmem", "4096 131072 40042496", Some("4096\t131072\t67108864"), None),
            ("net.ipv4.tcp_rmem", "4096 131072 40042496", Some("8192\t131072\t6291456"), Some("8192 131072 40042496")),
            ("net.ipv4.tcp_sack", "1", Some("0"), Some("1")),
            ("net.ipv4.tcp_tw_recycle", "0", Some("1"), Some("0")),
            ("link ipsec0 mtu", "1446", Some("1500"), Some("1446")),
            ("netsh tcp global autotuninglevel", "normal", Some("restricted"), Some("normal")),
        ] {
            let mut plan = Plan { changes: vec![planned(knob, to)], notes: Vec::new() };
            let unread = [plan.changes[0].knob.clone()];
            plan.find_before(&unread, |_| Ok::<_, ()>(there.map(str::to_owned))).unwrap();
            assert_eq!(plan.changes.first().and_then(|change| change.to.as_deref()), expected, "{knob} {there:?}");
            assert_eq!(plan.notes.len(), usize::from(expected.is_none()));
            assert!(plan.changes.iter().all(|change| change.from.as_deref() == there));
        }
    }

    #[test]
    fn what_the_plan_knew_stays_as_it_knew_it() {
        let mut plan = Plan { changes: vec![planned("net.ipv4.tcp_sack", "1")], notes: Vec::new() };
        let before = plan.clone();
        assert_eq!(plan.find_before(&[], |_| Err("not to be read")), Ok(()));
        assert_eq!(plan, before);
    }
}
