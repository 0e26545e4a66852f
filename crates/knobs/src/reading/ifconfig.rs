//! `ifconfig` of Linux (old and new), FreeBSD and macOS: names, MTUs, queue lengths and the speed that the medium has.

use super::{Place, RemarkKind, scan, sheet::Sheet};
use crate::{Address, Family, Link};

pub(super) fn read(text: &str, sheet: &mut Sheet) {
    let mut link: Option<(Place, Link)> = None;
    for (number, line) in scan::lines(text) {
        family(line, sheet);
        if !line.starts_with(char::is_whitespace) && !line.is_empty() {
            if let Some((place, done)) = link.take() {
                sheet.link(place, done);
            }
            link = begin(number, line, sheet);
        }
        let Some((place, current)) = &mut link else { continue };
        details(line, place.line == number, current);
        if let Some(length) =
            after(line, "txqueuelen").or_else(|| line.split_once("txqueuelen:").map(|(_, rest)| first_word(rest)))
        {
            let knob = Address::Link { device: current.device.clone(), property: "txqueuelen".to_owned() };
            sheet.set(scan::place_of(number, line, line.trim_start()), knob, Some(length));
        }
    }
    if let Some((place, done)) = link {
        sheet.link(place, done);
    }
}

/// The first line of an interface: `em0: flags=...` or `eth0      Link encap:Ethernet`.
fn begin(number: u32, line: &str, sheet: &mut Sheet) -> Option<(Place, Link)> {
    let place = Place { line: number, column: 1 };
    let device = match line.split_once(": flags=") {
        Some((device, _)) => device,
        None if line.contains("Link encap:") => first_word(line),
        None => return None,
    };
    if is_device(device) {
        return Some((place, Link { device: device.to_owned(), ..Link::default() }));
    }
    sheet.remark(RemarkKind::Unread, place, "this is no name of an interface");
    None
}

/// Whether a text may name an interface: what the systems themselves take, and nothing that a shell would act upon.
pub(super) fn is_device(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._:@-".contains(c))
        && !name.starts_with('-')
}

fn details(line: &str, first: bool, link: &mut Link) {
    let mtu = if first { after(line, "mtu") } else { None };
    let mtu = mtu.or_else(|| line.split_once("MTU:").map(|(_, rest)| first_word(rest)));
    link.mtu = link.mtu.or_else(|| mtu.and_then(|mtu| mtu.parse().ok()));
    if let Some((_, medium)) = line.trim_start().split_once("media:") {
        link.speed_bps = link.speed_bps.or_else(|| speed(medium));
    }
}

/// The speed that a medium's name begins with: `1000baseT`, `10Gbase-LR`, `2500Base-T`, in bit/s.
fn speed(medium: &str) -> Option<u64> {
    let words = medium.split([' ', '(', ')', '<', '>']);
    let mut speeds = words.filter_map(|word| {
        let lower = word.to_ascii_lowercase();
        let (figure, _) = lower.split_once("base")?;
        match figure.strip_suffix('g') {
            Some(giga) => giga.parse::<u64>().ok()?.checked_mul(1_000_000_000),
            None => figure.parse::<u64>().ok()?.checked_mul(1_000_000),
        }
    });
    // `Ethernet 1000baseT (100baseTX <full-duplex>)`: what is in use stands last.
    speeds.by_ref().last()
}

/// What only one system's output has.
fn family(line: &str, sheet: &mut Sheet) {
    if line.contains("Link encap:") || line.contains("txqueuelen") {
        sheet.family(Family::Linux);
    } else if line.contains("nd6 options=") && line.contains("DAD") {
        sheet.family(Family::MacOs);
    } else if line.contains(" metric 0 mtu ") {
        sheet.family(Family::FreeBsd);
    }
}

fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let mut words = line.split_whitespace().skip_while(|found| *found != word);
    words.nth(1)
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}
