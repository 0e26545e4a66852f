//! Rules for the calls by which a NetBurner device sizes its sockets.

use std::collections::BTreeMap;

use super::{AROUND, Finding, Level, Setting, finding, rules::number};
use crate::{
    Address,
    planner::netburner::{LEAST, MOST, POOL, free, more_than},
    recipe::{Action, Step},
    settings::SocketBuffers,
};

/// The value of a call of a device's library that belongs to a line: that for the same socket, and as one name may stand for
/// several sockets one after another, the nearest.
fn beside<'a>(steps: &'a [Step], line: u32, socket: Option<&str>, name: &str) -> Option<&'a str> {
    let at = steps.partition_point(|step| step.line < line);
    let around = steps.get(at.saturating_sub(AROUND)..steps.len().min(at + AROUND))?;
    let of_socket = around.iter().filter(|step| socket.is_none() || step.socket.as_deref() == socket);
    let of_name = of_socket.filter_map(|step| match &step.action {
        Action::Set(Address::Named { kind, name: called }, value) if kind == "call" && called == name => {
            Some((step.line, value.as_str()))
        }
        _ => None,
    });
    of_name.min_by_key(|(found, _)| found.abs_diff(line)).map(|(_, value)| value)
}

/// The calls that bound what a socket carries in a round trip.
const LIST_OF_A_SOCKET: [&str; 4] =
    ["SetSocketRxBuffers", "SetSocketTxBuffers", "SetSocketUnackBuffers", "setsocketackbuffers"];

/// A count of buffers of a NetBurner socket.
pub(super) fn device_call(setting: &Setting<'_>, name: &str) -> Vec<Finding> {
    if let Some(option) = name.strip_prefix("setsockoption ") {
        return opposed(setting, option).into_iter().collect();
    }
    let Some(count) = number(setting.value).filter(|_| name.ends_with("Buffers") || name.ends_with("ackbuffers"))
    else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if count > MOST {
        found.push(setting.warning(
            "no-gain",
            format!("a window ends at 65,535 B = {MOST} buffers of 1,500 B: {count} take memory from other sockets and have no effect"),
            Some(MOST.to_string()),
        ));
    }
    let of_call = |wanted: &str| beside(setting.steps, setting.line, setting.socket, wanted).and_then(number);
    if name.starts_with("SetSocket") && count < LEAST {
        let words = format!("the range begins at {LEAST}, the default: {count} hold less than a short path needs");
        found.push(setting.warning("too-small", words, Some(LEAST.to_string())));
    }
    let given = of_call("SetSocketUnackBuffers").or_else(|| of_call("setsocketackbuffers"));
    let (most, whose) = given.map_or((LEAST, ", by default where it is not called"), |most| (most, ""));
    let is_held = name == "SetSocketTxBuffers" && count > most;
    if LIST_OF_A_SOCKET.contains(&name)
        && count >= LEAST
        && !is_held
        && let Some(path) = setting.path
    {
        let sockets = setting.steps.iter().find_map(|step| match &step.action {
            Action::Sockets(sockets) => Some(sockets.len() as u64),
            _ => None,
        });
        let share = (sockets.unwrap_or(1), pool(setting.all));
        if let Some((more, words)) = more_than(count, path, share, of_call("SetOutOfOrderBuffers")) {
            let words = format!("bounds what one round trip carries on this path: {words}");
            found.push(setting.warning("too-small", words, Some(more.to_string())));
        }
    }
    if is_held {
        let words = format!(
            "{count} packets may wait to be sent, and only {most} may be sent and not acknowledged (SetSocketUnackBuffers{whose}): a round trip carries {most}, and the rest holds buffers of the pool"
        );
        let fix = format!("SetSocketUnackBuffers(fd, {}), or {most} here", count.min(MOST));
        found.push(setting.warning("above-unacknowledged", words, Some(fix)));
    }
    if name == "SetOutOfOrderBuffers" {
        let receive = of_call("SetSocketRxBuffers");
        if let Some(receive) = receive.filter(|receive| count >= *receive) {
            found.push(setting.note(
                "more-than-received",
                format!("{count} is not below SetSocketRxBuffers = {receive}: one less is enough, because the packet that is missing has a place, too"),
            ));
        }
    }
    found
}

/// A flag that is taken back: what the row says of it is no longer so.
pub(super) fn taken_back(setting: &Setting<'_>) -> Option<Finding> {
    let Address::Named { kind, name } = setting.knob else { return None };
    let flag = name.strip_prefix("setsockoption ").filter(|_| kind == "call" && setting.value == "off")?;
    let words = match flag {
        "SO_NONAGLE" => "clrsockoption turns Nagle's algorithm on again, which is the default",
        "SO_NOPUSH" => "clrsockoption lets go what was held back, which is the default",
        _ => return None,
    };
    Some(finding(setting.line, Level::Ok, "fine", words.to_owned()))
}

/// Nagle's algorithm off and PUSH off: the one sends at once what the other holds back.
fn opposed(setting: &Setting<'_>, option: &str) -> Option<Finding> {
    let is_on = beside(setting.steps, setting.line, setting.socket, "setsockoption SO_NONAGLE") == Some("on");
    // Held back for a while and let go afterwards is what the option is for.
    let let_go = setting.steps.iter().any(|step| {
        step.line > setting.line
            && step.socket.as_deref() == setting.socket
            && matches!(&step.action, Action::Set(knob, value) if knob == setting.knob && value == "off")
    });
    // Said once, at the line that holds back.
    (option == "SO_NOPUSH" && setting.value == "on" && is_on && !let_go).then(|| {
        setting.warning(
            "conflicts-with",
            "SO_NONAGLE sends small writes at once, and SO_NOPUSH holds data until a segment is full: together they give neither short response times nor large segments for sure".to_owned(),
            Some("clrsockoption(fd, SO_NOPUSH) for short response times; clrsockoption(fd, SO_NONAGLE) for bulk data".to_owned()),
        )
    })
}

/// How many buffers the device has for everything.
fn pool(all: &BTreeMap<Address, String>) -> u64 {
    let size = Address::Named { kind: "build".to_owned(), name: "BUFFER_POOL_SIZE".to_owned() };
    all.get(&size).and_then(|value| number(value)).unwrap_or(POOL)
}

/// The sockets of a whole source: whether the pool holds them all at once.
pub(super) fn together(line: u32, sockets: &[SocketBuffers], all: &BTreeMap<Address, String>) -> Option<Finding> {
    let (count, pool) = (sockets.len(), pool(all));
    let most = sockets.iter().map(|socket| socket.most(LEAST)).fold(0, u64::saturating_add);
    (most > pool).then(|| {
        let words = format!(
            "the {count} sockets of this source can take {most} buffers together, and the pool has {pool}: it can run dry, and then the device can't communicate at all"
        );
        let larger = most.saturating_mul(4).div_ceil(3);
        let fix = format!(
            "fewer buffers for each (`fullpipe plan --platform netburner` with this file in --settings counts them), or BUFFER_POOL_SIZE {larger}"
        );
        Finding { fix: Some(fix), ..finding(line, Level::Warning, "pool-runs-dry", words) }
    })
}

/// Calls for sockets that are opened in a loop: how many of them the pool of buffers holds.
pub(super) fn repeated(
    line: u32,
    times: Option<u64>,
    steps: &[Step],
    all: &BTreeMap<Address, String>,
) -> Option<Finding> {
    let socket =
        steps.iter().find(|step| step.line == line && step.socket.is_some()).and_then(|step| step.socket.as_deref());
    let call = |name: &str| beside(steps, line, socket, name).and_then(number);
    let lists = [
        call("SetSocketRxBuffers"),
        call("SetSocketTxBuffers"),
        call("SetSocketUnackBuffers").or_else(|| call("setsocketackbuffers")),
        call("SetOutOfOrderBuffers"),
    ];
    let each: u64 = lists.into_iter().map(|count| count.unwrap_or(LEAST)).fold(0, u64::saturating_add);
    let pool = pool(all);
    let dry = pool.div_ceil(each.max(1));
    if times.is_some_and(|times| times.saturating_mul(each) <= free(pool)) {
        return None;
    }
    let many = times.map_or_else(
        || "set in a loop whose end the file doesn't tell".to_owned(),
        |times| format!("set for {times} sockets: {} buffers at worst", times.saturating_mul(each)),
    );
    let words = format!(
        "{many}; each socket can take {each} of the pool of {pool}, so {} of them run it dry, and then the device can't communicate at all",
        dry.max(2)
    );
    let fewer = match free(pool) / each.max(1) {
        0 => String::new(),
        1 => "no more than 1 socket at once, ".to_owned(),
        sockets => format!("no more than {sockets} sockets at once, "),
    };
    let fix = format!("fewer buffers for each, {fewer}or a larger BUFFER_POOL_SIZE; GetFreeCount() tells what is left");
    Some(Finding { fix: Some(fix), ..finding(line, Level::Warning, "pool-runs-dry", words) })
}
