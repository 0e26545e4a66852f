//! A plan for a whole Linux host as a plan for one destination: no sysctl is touched.
//!
//! What a route can say of connections goes to the route of that very destination, or to a new one that copies the next hop
//! of the route that leads there now. Buffers are set on each connection there, before its handshake. What neither knows is left
//! out, and said.

use fullpipe_units::Network;

use super::route::covers;
use crate::{Address, Change, Plan, Settings, TakesEffect};

/// The attribute of a route whose value is the route itself.
pub const MADE: &str = "made";

/// Whose connections, and what else is to be tried for them.
#[derive(Clone, Copy, Debug)]
pub struct Aim<'a> {
    /// The host's name, as changes have it.
    pub host: &'a str,
    /// Its settings.
    pub settings: &'a Settings,
    /// Where the other ends are.
    pub prefix: Network,
    /// Attributes that its route is to have, or with `None` not to have, besides what the plan says.
    pub metrics: &'a [(String, Option<String>)],
}

/// What a plan for whole hosts becomes where only connections to one destination are to be changed. Changes of other hosts
/// stay as they are.
pub fn for_destination(plan: Plan, aim: &Aim<'_>) -> Plan {
    let mut narrow = Plan { changes: Vec::new(), notes: plan.notes };
    let mut metrics: Vec<Metric> = Vec::new();
    for change in plan.changes {
        if change.host != aim.host {
            narrow.changes.push(change);
            continue;
        }
        match &change.knob {
            Address::Route { attribute, .. } => metrics.push(Metric {
                attribute: attribute.clone(),
                value: change.to.clone(),
                reason: change.reason.clone(),
                arithmetic: change.arithmetic.clone(),
                source: change.source.clone(),
            }),
            Address::Sysctl(name) if let Some(option) = buffer_option(name) => match buffer(&change, option, aim) {
                Ok(buffer) => narrow.changes.push(buffer),
                Err(note) => narrow.notes.push(note),
            },
            _ => narrow.notes.push(whole_host(&change, aim)),
        }
    }
    // What is asked for by name wins.
    metrics.retain(|metric| aim.metrics.iter().all(|(asked, _)| *asked != metric.attribute));
    metrics.extend(aim.metrics.iter().map(|(attribute, value)| Metric {
        attribute: attribute.clone(),
        value: value.clone(),
        reason: format!("asked for, for connections to {}", aim.prefix),
        arithmetic: String::new(),
        source: "ip-route(8)".to_owned(),
    }));
    if !metrics.is_empty() {
        by_route(metrics, aim, &mut narrow);
    }
    narrow
}

fn whole_host(change: &Change, aim: &Aim<'_>) -> String {
    format!(
        "{}: {} counts for the whole host, and can't be set for {} alone, so it is left as it is; a tune of the whole host \
         would change it ({})",
        aim.host, change.knob, aim.prefix, change.reason
    )
}

/// The option of a socket that sets the buffer whose ceiling a sysctl is.
fn buffer_option(sysctl: &str) -> Option<&'static BufferOption> {
    BUFFER_OPTIONS.iter().find(|option| option.ceiling == sysctl)
}

/// A buffer that a socket can be given.
#[derive(Clone, Copy, Debug)]
pub struct BufferOption {
    /// The sysctl whose third value is how far it grows by itself.
    pub ceiling: &'static str,
    /// The option that sets it, as [`Address::Destination`] has it.
    pub name: &'static str,
    /// The sysctl that bounds what the option may ask for.
    pub bound: &'static str,
}

/// Both: the receive buffer, and the send buffer.
pub const BUFFER_OPTIONS: [BufferOption; 2] = [
    BufferOption { ceiling: "net.ipv4.tcp_rmem", name: "SO_RCVBUF", bound: "net.core.rmem_max" },
    BufferOption { ceiling: "net.ipv4.tcp_wmem", name: "SO_SNDBUF", bound: "net.core.wmem_max" },
];

/// The kernel makes a buffer double of what is asked for (socket(7)).
const DOUBLED: u64 = 2;

/// A higher ceiling for all connections as a buffer of that size for those to the destination. `Err` tells why it can't be.
fn buffer(change: &Change, option: &BufferOption, aim: &Aim<'_>) -> Result<Change, String> {
    let largest = |text: Option<&str>| text.and_then(|text| text.split_whitespace().nth(2)?.parse::<u64>().ok());
    let (Some(wanted), Some(now)) = (largest(change.to.as_deref()), largest(change.from.as_deref())) else {
        return Err(whole_host(change, aim));
    };
    let bound = aim.settings.sysctl(option.bound).and_then(|text| text.trim().parse::<u64>().ok());
    let asked = bound.unwrap_or(u64::MAX).min(wanted.div_ceil(DOUBLED));
    let limit = match bound {
        Some(bound) if asked == bound && bound * DOUBLED < wanted => {
            format!("; {} allows no more than {bound}, which makes {}", option.bound, bound * DOUBLED)
        }
        _ => String::new(),
    };
    if asked * DOUBLED <= now {
        return Err(format!(
            "{}: a buffer of {} for connections to {} alone would be no larger than the {now} that {} lets it grow to already{limit}",
            aim.host,
            asked * DOUBLED,
            aim.prefix,
            option.ceiling
        ));
    }
    let knob = Address::Destination { destination: aim.prefix.to_string(), option: option.name.to_owned() };
    Ok(Change {
        from: aim.settings.values.get(&knob).cloned().flatten(),
        to: Some(asked.to_string()),
        arithmetic: format!(
            "{}; {} asks for half of it, and the kernel doubles it (socket(7)){limit}",
            change.arithmetic, option.name
        ),
        undo: "`fullpipe undo` does".to_owned(),
        source: "socket(7); bpf-helpers(7), bpf_setsockopt".to_owned(),
        takes_effect: TakesEffect::NewConnections,
        knob,
        ..change.clone()
    })
}

/// An attribute that the destination's route is to have, or to have no more.
struct Metric {
    attribute: String,
    value: Option<String>,
    reason: String,
    arithmetic: String,
    source: String,
}

/// The route's part of a plan: attributes of the route to exactly that destination, or a new route.
fn by_route(metrics: Vec<Metric>, aim: &Aim<'_>, plan: &mut Plan) {
    let destination = aim.prefix.to_string();
    let attribute = |name: &str| Address::Route { destination: destination.clone(), attribute: name.to_owned() };
    let change = |name: &str, from: Option<String>, to: Option<String>, metric: &Metric, undo: String| Change {
        host: aim.host.to_owned(),
        knob: attribute(name),
        from,
        to,
        reason: metric.reason.clone(),
        arithmetic: metric.arithmetic.clone(),
        memory_worst_case: None,
        takes_effect: TakesEffect::NewConnections,
        undo,
        source: metric.source.clone(),
    };
    let nearest = |route: &&crate::Route| {
        // The table calls IPv4's default route so.
        let is_other = route.destination == "default" && aim.prefix.address().is_ipv6();
        let length = if is_other { None } else { covers(&route.destination, aim.prefix.address()) };
        length.filter(|length| *length <= u32::from(aim.prefix.length()))
    };
    // Of several to one destination, the first one is in force.
    let length = aim.settings.routes.iter().filter_map(|route| nearest(&route)).max();
    let covering = aim.settings.routes.iter().find(|route| length.is_some() && nearest(route) == length);
    let Some(covering) = covering else {
        plan.notes.push(format!("{}: no route of the main table leads to {destination}, so none is changed", aim.host));
        return;
    };
    if covering.destination == destination {
        let undo = format!("give the route to {destination} what it had: `fullpipe undo` does");
        plan.changes.extend(metrics.iter().map(|metric| {
            let from = aim.settings.values.get(&attribute(&metric.attribute)).cloned().flatten();
            change(&metric.attribute, from, metric.value.clone(), metric, undo.clone())
        }));
    } else if let Some(copy) = &covering.copy {
        let mut made = copy.clone();
        for metric in &metrics {
            made = with_attribute(&made, &metric.attribute, metric.value.as_deref());
        }
        let first = metrics.first().map(|first| Metric {
            attribute: first.attribute.clone(),
            value: None,
            reason: metrics.iter().map(|metric| metric.reason.as_str()).fold(String::new(), joined),
            arithmetic: format!("the next hop is that of the route to {}", covering.destination),
            source: first.source.clone(),
        });
        let undo = format!("ip route del {destination}");
        plan.changes.extend(first.map(|first| change(MADE, None, Some(made), &first, undo)));
    } else {
        plan.notes.push(format!(
            "{}: the route to {destination} has several next hops, uses a nexthop object or expires, so no route for it alone is \
             made; make one with ip-route(8)",
            aim.host
        ));
        return;
    }
    let inside = |route: &&crate::Route| {
        let address = route.destination.split('/').next().and_then(|text| text.parse().ok());
        address.is_some_and(|address| {
            aim.prefix.contains(address) && covers(&route.destination, address) > Some(u32::from(aim.prefix.length()))
        })
    };
    plan.notes.extend(aim.settings.routes.iter().filter(inside).map(|route| {
        format!("{}: {} in {destination} has a route of its own, which stays as it is", aim.host, route.destination)
    }));
}

fn joined(before: String, next: &str) -> String {
    match before {
        before if before.is_empty() => next.to_owned(),
        before if before.contains(next) => before,
        before => format!("{before}; {next}"),
    }
}

/// A route's line with an attribute set or left out.
fn with_attribute(line: &str, name: &str, value: Option<&str>) -> String {
    let mut words = line.split_whitespace().peekable();
    let mut kept: Vec<&str> = Vec::new();
    while let Some(word) = words.next() {
        if word != name {
            kept.push(word);
            // An interface may have the name of an attribute.
            if matches!(word, "dev" | "via" | "src") {
                kept.extend(words.next());
            }
            continue;
        }
        if words.next() == Some("lock") {
            words.next();
        }
    }
    match value {
        Some(value) => format!("{} {name} {value}", kept.join(" ")),
        None => kept.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Route;

    fn settings() -> Settings {
        let mut settings = Settings::default();
        for (destination, copy) in [
            ("10.9.1.0/24", Some("dev eth1 src 10.9.1.1")),
            ("10.9.0.0/16", Some("via 10.0.0.2 dev eth0 src 10.0.0.7 mtu lock 1400 window 64512")),
            ("10.8.0.0/16", None),
            ("default", Some("via 10.0.0.1 dev window")),
        ] {
            settings.routes.push(Route {
                destination: destination.to_owned(),
                device: "eth0".to_owned(),
                gateway: None,
                copy: copy.map(str::to_owned),
            });
        }
        let window = "route 10.9.0.0/16 window".parse().unwrap();
        settings.values.insert(window, Some("64512".to_owned()));
        settings.values.insert(Address::sysctl("net.core.rmem_max"), Some("2000000".to_owned()));
        settings
    }

    fn change(knob: &str, to: Option<&str>) -> Change {
        let mut change = Change::unexplained("a".to_owned(), knob.parse().unwrap(), None, to.map(str::to_owned));
        change.reason = format!("because of {knob}");
        change
    }

    /// The changes and the notes.
    fn narrowed(
        prefix: &str,
        metrics: &[(&str, &str)],
        changes: Vec<Change>,
    ) -> (Vec<(String, Option<String>)>, Vec<String>) {
        let metrics: Vec<_> = metrics.iter().map(|(a, b)| ((*a).to_owned(), Some((*b).to_owned()))).collect();
        let settings = settings();
        let aim = Aim { host: "a", settings: &settings, prefix: prefix.parse().unwrap(), metrics: &metrics };
        let plan = for_destination(Plan { changes, notes: Vec::new() }, &aim);
        (plan.changes.iter().map(|change| (change.knob.to_string(), change.to.clone())).collect(), plan.notes)
    }

    fn one(knob: &str, to: &str) -> (String, Option<String>) {
        (knob.to_owned(), Some(to.to_owned()))
    }

    #[test]
    fn no_sysctl_is_left_of_a_plan_and_other_hosts_keep_theirs() {
        let send = change("net.ipv4.tcp_wmem", Some("4096 16384 8000000"));
        let far = Change { host: "b".to_owned(), ..change("net.ipv4.tcp_rmem", Some("1 2 3")) };
        let (changes, notes) = narrowed("10.9.7.7", &[], vec![send, far]);
        assert_eq!(changes, [one("net.ipv4.tcp_rmem", "1 2 3")]);
        assert!(notes[0].contains("net.ipv4.tcp_wmem counts for the whole host"), "{notes:?}");
    }

    #[test]
    fn a_higher_ceiling_becomes_a_buffer_of_that_size_as_far_as_the_system_allows() {
        let ceiling = |knob: &str, now: u64, wanted: u64| Change {
            from: Some(format!("4096 131072 {now}")),
            ..change(knob, Some(&format!("4096 131072 {wanted}")))
        };
        let receive = |now, wanted| vec![ceiling("net.ipv4.tcp_rmem", now, wanted)];
        let (changes, notes) = narrowed("10.9.7.0/24", &[], receive(200_000, 3_000_001));
        assert_eq!((changes, notes), (vec![one("destination 10.9.7.0/24 SO_RCVBUF", "1500001")], vec![]));
        let (changes, _) = narrowed("10.9.7.7", &[], vec![ceiling("net.ipv4.tcp_wmem", 200_000, 300_000)]);
        assert_eq!(changes, [one("destination 10.9.7.7 SO_SNDBUF", "150000")]);
        // The bound of these hosts' settings is 2,000,000.
        let (changes, notes) = narrowed("10.9.7.7", &[], receive(200_000, 9_000_000));
        assert_eq!((changes, notes), (vec![one("destination 10.9.7.7 SO_RCVBUF", "2000000")], vec![]));
        let (changes, notes) = narrowed("10.9.7.7", &[], receive(4_000_000, 9_000_000));
        assert!(changes.is_empty() && notes[0].contains("net.core.rmem_max allows no more than 2000000"), "{notes:?}");
    }

    #[test]
    fn a_route_of_its_own_copies_the_next_hop_and_what_else_is_in_force() {
        let unclamped = || vec![change("route 10.9.0.0/16 window", None)];
        let (changes, notes) = narrowed("10.9.7.7", &[("initcwnd", "40")], unclamped());
        let made = "via 10.0.0.2 dev eth0 src 10.0.0.7 mtu lock 1400 initcwnd 40";
        assert_eq!((changes, notes), (vec![one("route 10.9.7.7 made", made)], vec![]));
        let (changes, _) = narrowed("10.9.7.7", &[("mtu", "1300")], Vec::new());
        assert_eq!(changes, [one("route 10.9.7.7 made", "via 10.0.0.2 dev eth0 src 10.0.0.7 window 64512 mtu 1300")]);
        let (changes, _) = narrowed("192.0.2.0/24", &[("window", "70000")], Vec::new());
        assert_eq!(changes, [one("route 192.0.2.0/24 made", "via 10.0.0.1 dev window window 70000")]);
        // The route is there already, and a network in it has another one.
        let (changes, notes) = narrowed("10.9.0.0/16", &[("initcwnd", "40")], unclamped());
        let expected = [("route 10.9.0.0/16 window".to_owned(), None), one("route 10.9.0.0/16 initcwnd", "40")];
        assert_eq!(changes, expected);
        assert!(notes[0].contains("10.9.1.0/24 in 10.9.0.0/16 has a route of its own"), "{notes:?}");
    }

    #[test]
    fn a_route_that_can_not_be_copied_or_is_not_there_is_named() {
        for (prefix, words) in [("10.8.3.0/24", "several next hops"), ("2001:db8::1", "no route of the main table")] {
            let (changes, notes) = narrowed(prefix, &[("initcwnd", "40")], Vec::new());
            assert!(changes.is_empty() && notes[0].contains(words), "{notes:?}");
        }
    }
}
