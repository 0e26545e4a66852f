//! What a host probably is, from its SYN: initial hop limit, window, order of options, window scale, segment size. What
//! is *not* here: certainty. Middleboxes rewrite all of these, and administrators change them.

use crate::{Sender, connection::Connection, track::options::SynOptions};

/// A guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Platform {
    /// In catalogue spelling.
    pub catalogue: &'static str,
    /// For a person.
    pub words: &'static str,
}

/// One shape of a SYN.
struct Shape {
    platform: Platform,
    /// The hop limit that it starts with.
    hop_limit: u8,
    /// Its options.
    layout: u64,
    window_scale: Option<u8>,
    /// The window field: any of these; none: any at all.
    windows: &'static [u16],
}

const fn shape(
    platform: (&'static str, &'static str),
    hop_limit: u8,
    kinds: &[u8],
    window_scale: Option<u8>,
    windows: &'static [u16],
) -> Shape {
    let platform = Platform { catalogue: platform.0, words: platform.1 };
    Shape { platform, hop_limit, layout: layout(kinds), window_scale, windows }
}

/// As [`SynOptions::layout`].
const fn layout(kinds: &[u8]) -> u64 {
    let (mut layout, mut place) = (0, 0);
    while place < kinds.len() {
        layout |= (kinds[place] as u64) << (4 * place);
        place += 1;
    }
    layout
}

const LINUX: (&str, &str) = ("linux", "Linux");
const FREEBSD: (&str, &str) = ("freebsd", "FreeBSD");
const MACOS: (&str, &str) = ("macos", "macOS or iOS");
const XP: (&str, &str) = ("windows-xp", "Windows XP or 2003");
const SEVEN: (&str, &str) = ("windows-2012", "Windows 7 to Server 2012");
const TEN: (&str, &str) = ("windows-10", "Windows 10 or newer");

/// Option kinds in their order: 2 MSS, 1 no-operation, 3 window scale, 4 SACK permitted, 8 timestamps, 0 end of list.
/// From p0f's signatures (version 3.09), but for Windows 10, which is younger; what is not known is not there.
const SHAPES: &[Shape] = &[
    // The order of `tcp_options_write`; without timestamps the SACK option is padded in front.
    shape(LINUX, 64, &[2, 4, 8, 1, 3], None, &[]),
    shape(LINUX, 64, &[2, 1, 1, 4, 1, 3], None, &[]),
    shape(FREEBSD, 64, &[2, 1, 3, 4, 8], None, &[65_535]),
    shape(MACOS, 64, &[2, 1, 3, 1, 1, 8, 4, 0], None, &[65_535]),
    // Windows 10 offers 64,240 or 65,535 in its SYN, older ones 8,192.
    shape(TEN, 128, &[2, 1, 3, 1, 1, 4], Some(8), &[64_240, 65_535, 62_720]),
    shape(SEVEN, 128, &[2, 1, 3, 1, 1, 4], None, &[8_192]),
    shape(SEVEN, 128, &[2, 1, 3, 4, 8], None, &[8_192]),
    // Its level disabled.
    shape(SEVEN, 128, &[2, 1, 1, 4], None, &[8_192]),
    // No scaling unless `Tcp1323Opts` says so.
    shape(XP, 128, &[2, 1, 1, 4], None, &[16_384, 65_535]),
    shape(XP, 128, &[2, 1, 3, 1, 1, 4], None, &[16_384, 65_535]),
];

/// The platform whose shape fits the SYN of `sender`.
pub(crate) fn guess(connection: &Connection, sender: Sender) -> Option<Platform> {
    let half = connection.half(sender);
    let syn = half.syn?;
    let opened = connection.opener == Some(sender);
    let started_at = initial_hop_limit(connection.hop_limits[sender as usize]);
    // An answer repeats only what was offered, so that its order says little where options are missing.
    let is_whole = opened || (syn.window_scale.is_some() && syn.sack_permitted);
    let fits = |shape: &&Shape| {
        shape.hop_limit == started_at
            && shape.layout == syn.layout
            && shape.window_scale.is_none_or(|scale| syn.window_scale == Some(scale))
            && (shape.windows.is_empty() || half.syn_window.is_some_and(|window| shape.windows.contains(&window)))
    };
    SHAPES.iter().filter(|_| is_whole && has_size(syn)).find(fits).map(|shape| shape.platform)
}

impl Platform {
    /// A number for it that holds within this process.
    pub(crate) fn code(&self) -> Option<u64> {
        SHAPES.iter().position(|shape| shape.platform == *self).map(|place| place as u64)
    }

    /// What has that number.
    pub(crate) fn coded(code: u64) -> Option<Self> {
        SHAPES.get(usize::try_from(code).ok()?).map(|shape| shape.platform)
    }
}

const fn has_size(syn: SynOptions) -> bool {
    syn.mss.is_some()
}

/// Systems start at 64, 128 or 255; no path has more than 63 routers in practice.
const fn initial_hop_limit(seen: u8) -> u8 {
    match seen {
        0..=64 => 64,
        65..=128 => 128,
        _ => 255,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flags, connection::tests::segment, track::options::Options};

    /// Signatures of p0f 3.09: `hop limit : window, scale : options`.
    #[test]
    fn documented_syns_are_recognised_and_others_are_not_guessed() {
        let linux: &[u8] = &[2, 4, 8, 1, 3];
        let windows: &[u8] = &[2, 1, 3, 1, 1, 4];
        let unscaled: &[u8] = &[2, 1, 1, 4];
        for (hop_limit, window, scale, kinds, expected) in [
            (64, 14_600, Some(7), linux, Some("linux")),
            (57, 29_200, Some(7), linux, Some("linux")),
            (128, 29_200, Some(7), linux, None),
            (64, 65_535, Some(6), &[2, 1, 3, 4, 8], Some("freebsd")),
            (64, 8_192, Some(6), &[2, 1, 3, 4, 8], None),
            (64, 65_535, Some(5), &[2, 1, 3, 1, 1, 8, 4, 0], Some("macos")),
            (128, 8_192, Some(8), windows, Some("windows-2012")),
            (117, 8_192, Some(2), &[2, 1, 3, 4, 8], Some("windows-2012")),
            (128, 8_192, None, unscaled, Some("windows-2012")),
            (128, 64_240, Some(8), windows, Some("windows-10")),
            (128, 65_535, Some(0), windows, Some("windows-xp")),
            (128, 16_384, None, unscaled, Some("windows-xp")),
            (128, 64_240, None, unscaled, None),
        ] {
            let mut syn = segment(0, Sender::Low, Flags::SYN, 1, 0, 0);
            (syn.hop_limit, syn.window) = (hop_limit, window);
            let options =
                SynOptions { mss: Some(1_460), window_scale: scale, layout: layout(kinds), ..SynOptions::default() };
            let mut connection = Connection::default();
            connection.restart(&syn, false);
            connection.on(&syn, &Options { syn: options, ..Options::NONE });
            let found = guess(&connection, Sender::Low).map(|platform| platform.catalogue);
            assert_eq!(found, expected, "{hop_limit}:{window},{scale:?}:{kinds:?}");
        }
    }
}
