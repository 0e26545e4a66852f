//! Commands of Linux, FreeBSD and macOS: what each sets, by its words.

use super::{Action, shell};
use crate::{Address, sysctl_conf};

/// What a program sets; `None` for one that is of no concern. `words` are those behind its name.
pub(super) fn actions(program: &str, words: &[&str]) -> Option<Result<Vec<Action>, String>> {
    let found = match program {
        "sysctl" => return Some(sysctl(words)),
        "ip" => ip(words),
        "ifconfig" => ifconfig(words),
        "ethtool" => ethtool(words),
        "tc" => tc(words),
        "sysrc" => return Some(sysrc(words)),
        "kenv" => words.iter().filter_map(|word| tunable(word)).collect(),
        "networksetup" => match words {
            [option, device, size] if option.eq_ignore_ascii_case("-setMTU") => vec![set(device, "mtu", size)],
            _ => Vec::new(),
        },
        "nmcli" => nmcli(words),
        "sed" | "perl" | "gsed" => edited(words).into_iter().collect(),
        _ => return None,
    };
    Some(Ok(found))
}

fn set(device: &str, property: &str, value: &str) -> Action {
    Action::Set(Address::Link { device: device.to_owned(), property: property.to_owned() }, value.to_owned())
}

fn unclear(words: String) -> Action {
    Action::Unclear(words)
}

/// `sysctl -w a.b=1 c.d="4096 131072 6291456"`.
fn sysctl(words: &[&str]) -> Result<Vec<Action>, String> {
    let spaced = |pair: &&[&str]| pair[1] == "=" || (pair[0].contains('.') && pair[0].ends_with('='));
    if let Some(pair) = words.windows(2).find(spaced) {
        let name = pair[0].trim_end_matches('=');
        return Err(format!("sysctl takes `{name}=value` as one word: with spaces around the `=` nothing is set"));
    }
    Ok(words.iter().filter_map(|word| assignment(word)).collect())
}

/// `net.ipv4.tcp_rmem=4096 131072 6291456`, as one word.
pub(super) fn assignment(word: &str) -> Option<Action> {
    let (name, value) = word.split_once('=').filter(|(name, _)| !name.starts_with('-'))?;
    let name = sysctl_conf::dotted(name.trim());
    let knob = if name.contains('$') { Address::Sysctl(name) } else { name.parse().ok()? };
    matches!(knob, Address::Sysctl(_)).then(|| Action::Set(knob, value.trim().to_owned()))
}

/// `ip route change default via 10.0.0.1 initcwnd 10`, `ip link set dev eth0 mtu 9000`.
fn ip(words: &[&str]) -> Vec<Action> {
    const ROUTE: [&str; 8] = ["window", "initcwnd", "initrwnd", "mtu", "advmss", "rto_min", "quickack", "congctl"];
    const LINK: [(&str, &str); 5] = [
        ("mtu", "mtu"),
        ("txqueuelen", "txqueuelen"),
        ("txqlen", "txqueuelen"),
        ("gso_max_size", "gso_max_size"),
        ("gro_max_size", "gro_max_size"),
    ];
    let words: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with('-')).collect();
    match words.as_slice() {
        ["link" | "l" | "li", "set" | "s", rest @ ..] => {
            let device = if rest.first() == Some(&"dev") { rest.get(1) } else { rest.first() };
            let Some(device) = device else { return Vec::new() };
            let named = |pair: &[&str]| LINK.iter().find(|(name, _)| *name == pair[0]).map(|(_, property)| *property);
            rest.windows(2).filter_map(|pair| Some(set(device, named(pair)?, pair[1]))).collect()
        }
        ["route" | "r" | "ro", "add" | "change" | "chg" | "replace" | "append", destination, rest @ ..] => {
            let after = rest.windows(2).filter(|pair| ROUTE.contains(&pair[0]));
            let route = |attribute: &str| Address::Route {
                destination: (*destination).to_owned(),
                attribute: attribute.to_owned(),
            };
            // `mtu lock 1400`.
            let value = |pair: &[&str]| if pair[1] == "lock" { None } else { Some(pair[1].to_owned()) };
            after.filter_map(|pair| Some(Action::Set(route(pair[0]), value(pair)?))).collect()
        }
        _ => Vec::new(),
    }
}

/// `ifconfig em0 mtu 9000 -tso`, `ifconfig eth0 txqueuelen 5000`.
fn ifconfig(words: &[&str]) -> Vec<Action> {
    let Some(device) = words.first() else { return Vec::new() };
    let sized = words.windows(2).filter(|pair| ["mtu", "txqueuelen"].contains(&pair[0]));
    let mut found: Vec<Action> = sized.map(|pair| set(device, pair[0], pair[1])).collect();
    const OFFLOADS: [&str; 8] = ["tso", "tso4", "tso6", "lro", "rxcsum", "txcsum", "rxcsum6", "txcsum6"];
    let offloads: Vec<&str> =
        words.iter().copied().filter(|word| OFFLOADS.contains(&word.trim_start_matches('-'))).collect();
    if !offloads.is_empty() {
        found.push(unclear(format!("`{}` switches offloads of {device}", offloads.join(" "))));
    }
    found
}

/// `ethtool -K eth0 tso off gro on`, `ethtool -G eth0 rx 4096`.
fn ethtool(words: &[&str]) -> Vec<Action> {
    /// What a feature is called in the catalogue.
    const FEATURES: [(&str, &str); 8] = [
        ("tso", "offload tso"),
        ("tcp-segmentation-offload", "offload tso"),
        ("gso", "offload gso"),
        ("generic-segmentation-offload", "offload gso"),
        ("gro", "offload gro"),
        ("generic-receive-offload", "offload gro"),
        ("lro", "offload lro"),
        ("large-receive-offload", "offload lro"),
    ];
    const RINGS: [(&str, &str); 2] = [("rx", "ring rx"), ("tx", "ring tx")];
    let [option, device, rest @ ..] = words else { return Vec::new() };
    let (known, what): (&[(&str, &str)], &str) = match *option {
        "-K" | "--features" | "--offload" => (&FEATURES, "switches offloads"),
        "-G" | "--set-ring" => (&RINGS, "sizes rings"),
        "-C" | "--coalesce" => (&[], "sets how interrupts are coalesced"),
        "-A" | "--pause" => (&[], "sets Ethernet flow control"),
        "-L" | "--set-channels" => (&[], "sets the number of queues"),
        _ => return Vec::new(),
    };
    let (mut found, mut others) = (Vec::new(), Vec::new());
    for pair in rest.chunks(2) {
        let [name, value] = pair else { continue };
        match known.iter().find(|(short, _)| short == name) {
            Some((_, property)) => found.push(set(device, property, value)),
            None => others.push(format!("{name} {value}")),
        }
    }
    if !others.is_empty() || (found.is_empty() && !rest.is_empty()) {
        found.push(unclear(format!("`ethtool {option} {device} {}` {what}", others.join(" "))));
    }
    found
}

/// `tc qdisc replace dev eth0 root fq`.
fn tc(words: &[&str]) -> Vec<Action> {
    /// What only queues. Others shape, delay or lose packets on purpose.
    const PLAIN: [&str; 9] = ["fq", "fq_codel", "fq_pie", "cake", "pfifo", "pfifo_fast", "sfq", "mq", "noqueue"];
    let words: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with('-')).collect();
    let [object @ ("qdisc" | "class" | "filter"), verb, rest @ ..] = words.as_slice() else { return Vec::new() };
    if ["show", "list", "ls", "sh"].contains(verb) {
        return Vec::new();
    }
    let after = |name: &str| rest.iter().position(|word| *word == name).and_then(|at| rest.get(at + 1)).copied();
    let device = after("dev").unwrap_or("<dev>");
    let at_root = rest.contains(&"root") && *object == "qdisc";
    if at_root && ["del", "delete"].contains(verb) {
        return vec![Action::Delete(Address::Link { device: device.to_owned(), property: "qdisc".to_owned() })];
    }
    match rest.iter().find(|word| PLAIN.contains(word)) {
        Some(kind) if at_root && ["add", "replace", "change"].contains(verb) => vec![set(device, "qdisc", kind)],
        _ => vec![unclear(format!("`tc {object} {verb}` shapes, delays or sorts the packets of {device}"))],
    }
}

/// `sysrc ifconfig_em0="inet 10.0.0.1/24 mtu 9000"`, `sysrc -f /boot/loader.conf cc_htcp_load=YES`.
fn sysrc(words: &[&str]) -> Result<Vec<Action>, String> {
    let assigned = words.iter().filter(|word| !word.starts_with('-')).filter_map(|word| word.split_once('='));
    let mut actions = Vec::new();
    for (name, value) in assigned {
        let name = name.trim_end_matches('+');
        if name.contains('.') {
            // sysrc(8): "name contains characters not allowed in shell", whatever the file.
            return Err(format!(
                "sysrc refuses `{name}`: it writes variables of sh, and these have no dots; put `{name}=...` into \
                 /etc/sysctl.conf or /boot/loader.conf by other means"
            ));
        }
        actions.extend(shell::setting(name, value));
    }
    Ok(actions)
}

fn tunable(word: &str) -> Option<Action> {
    let (name, value) = word.split_once('=')?;
    shell::setting(name, value)
}

/// `nmcli connection modify lan 802-3-ethernet.mtu 9000`.
fn nmcli(words: &[&str]) -> Vec<Action> {
    let connection = words.iter().skip_while(|word| !["mod", "modify", "m"].contains(word)).nth(1);
    let Some(connection) = connection else { return Vec::new() };
    words.windows(2).filter(|pair| pair[0].ends_with(".mtu")).map(|pair| set(connection, "mtu", pair[1])).collect()
}

/// `sed -i s/a/b/ /etc/sysctl.conf`: what comes of it depends on what is there.
fn edited(words: &[&str]) -> Option<Action> {
    let in_place =
        words.iter().any(|word| word.starts_with("-i") || word.starts_with("--in-place") || word.starts_with("-pi"));
    let file =
        words.iter().rfind(|word| word.contains('/') && is_of_settings(word) && !word.contains([' ', '^', '$']))?;
    in_place
        .then(|| unclear(format!("`{file}` is edited in place, and what it says then depends on what it said before")))
}

/// Whether a file holds settings of the machine.
pub(super) fn is_of_settings(path: &str) -> bool {
    ["sysctl.conf", "sysctl.d", "loader.conf", "rc.conf", "/proc/sys/net", "tuned.conf"]
        .iter()
        .any(|part| path.contains(part))
}

/// `/proc/sys/net/ipv4/tcp_sack`, `/sys/class/net/eth0/mtu`: the setting behind a file of the kernel's.
pub(super) fn of_kernel(path: &str) -> Option<Address> {
    if let Some(name) = path.strip_prefix("/proc/sys/") {
        return Some(Address::Sysctl(sysctl_conf::dotted(name)));
    }
    let (device, file) = path.strip_prefix("/sys/class/net/")?.split_once('/')?;
    let property = match file {
        "mtu" => "mtu",
        "tx_queue_len" => "txqueuelen",
        _ => return None,
    };
    Some(Address::Link { device: device.to_owned(), property: property.to_owned() })
}
