//! The scenarios that come with the program.

use fullpipe_units::{Micros, Rate, bdp};

/// Name and text. One line per file of `scenarios/`.
const FILES: &[(&str, &str)] = &[
    ("wan-80ms", include_str!("../../../../scenarios/wan-80ms.toml")),
    ("wan-80ms-sender", include_str!("../../../../scenarios/wan-80ms-sender.toml")),
    ("hsdpa", include_str!("../../../../scenarios/hsdpa.toml")),
    ("adsl2", include_str!("../../../../scenarios/adsl2.toml")),
    ("bluetooth-hop", include_str!("../../../../scenarios/bluetooth-hop.toml")),
    ("netburner-lan", include_str!("../../../../scenarios/netburner-lan.toml")),
    ("netburner-wan", include_str!("../../../../scenarios/netburner-wan.toml")),
    ("lossy-devices", include_str!("../../../../scenarios/lossy-devices.toml")),
];

/// The clean controls are one text with figures filled in.
const CLEAN: &str = include_str!("clean.toml");
const CLEAN_RATES: [(&str, u64); 3] = [("10M", 10_000_000), ("100M", 100_000_000), ("1G", 1_000_000_000)];
const CLEAN_RTTS_MS: [u64; 3] = [5, 40, 200];

pub(super) fn names() -> Vec<String> {
    let clean = CLEAN_RATES.iter().flat_map(|(rate, _)| CLEAN_RTTS_MS.iter().map(|ms| clean_name(rate, *ms)));
    FILES.iter().map(|(name, _)| (*name).to_owned()).chain(clean).collect()
}

pub(super) fn text(name: &str) -> Option<String> {
    if let Some((_, text)) = FILES.iter().find(|(known, _)| *known == name) {
        return Some((*text).to_owned());
    }
    CLEAN_RATES
        .iter()
        .flat_map(|(rate, bps)| CLEAN_RTTS_MS.iter().map(move |ms| (*rate, *bps, *ms)))
        .find(|(rate, _, ms)| clean_name(rate, *ms) == name)
        .map(|(rate, bps, ms)| clean(rate, bps, ms))
}

fn clean_name(rate: &str, ms: u64) -> String {
    format!("clean-{}-{ms}ms", rate.to_ascii_lowercase())
}

fn clean(rate: &str, bps: u64, ms: u64) -> String {
    // With its queue full a path holds two bandwidth-delay products, of which Linux offers about half of the buffer
    // as window: four. As much again, so that the buffer is never in question; at least Linux' own default of 6 MB.
    let memory = (8 * bdp(Rate::from_bps(bps), Micros::from_millis(ms)).get()).max(6 << 20);
    // Slow start to two products, the loss that ends it and its repair are over by then, at every one of the rates.
    let omit = 1 + ms / 50;
    let seconds = 2 + ms / 66;
    // `10M` is how a file has it, and `10 Mbit/s` how people read it.
    let (number, prefix) = rate.split_at(rate.len().saturating_sub(1));
    CLEAN
        .replace("@SPOKEN@", &format!("{number} {prefix}"))
        .replace("@NAME@", &clean_name(rate, ms))
        .replace("@RATE@", rate)
        .replace("@MS@", &ms.to_string())
        .replace("@HALF_US@", &(ms * 500).to_string())
        .replace("@MEMORY@", &memory.to_string())
        .replace("@SECONDS@", &seconds.to_string())
        .replace("@OMIT@", &omit.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_spelt_with_a_space_in_front_of_its_unit() {
        assert!(clean("10M", 10_000_000, 5).contains("nothing wrong: 10 Mbit/s and 5 ms"));
    }
}
