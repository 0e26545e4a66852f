//! What ifconfig(8) shows of interfaces, on FreeBSD and macOS. What is *not* here: running it.

use fullpipe_knobs::Link;

/// The interfaces of `ifconfig -a`.
pub(super) fn links(text: &str) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    for line in text.lines() {
        if !line.starts_with([' ', '\t']) {
            let Some((device, flags)) = line.split_once(": flags=") else { continue };
            let mtu =
                flags.split_whitespace().skip_while(|word| *word != "mtu").nth(1).and_then(|mtu| mtu.parse().ok());
            links.push(Link { device: device.to_owned(), speed_bps: None, mtu });
        } else if let (Some(media), Some(link)) = (line.trim().strip_prefix("media:"), links.last_mut()) {
            link.speed_bps = speed_bps(media);
        }
    }
    links
}

/// The speed in a media line such as `Ethernet autoselect (10Gbase-T <full-duplex>)`: a number, in Mbit/s unless a `G`
/// follows it, before `base`.
fn speed_bps(media: &str) -> Option<u64> {
    let words = media.split([' ', '(', ')', '<', '>']);
    words.filter_map(|word| word.to_ascii_lowercase().split_once("base").map(|(rate, _)| rate.to_owned())).find_map(
        |rate| {
            let (digits, unit) =
                rate.strip_suffix('g').map_or((rate.as_str(), 1_000_000), |rate| (rate, 1_000_000_000));
            digits.parse::<u64>().ok()?.checked_mul(unit)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sizes_and_speeds_are_read() {
        let text = "em0: flags=8863<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 1500\n\
            \toptions=481009b<RXCSUM,TXCSUM>\n\tether 08:00:27:00:00:01\n\tinet 10.0.0.2 netmask 0xffffff00 broadcast 10.0.0.255\n\
            \tmedia: Ethernet autoselect (1000baseT <full-duplex>)\n\tstatus: active\n\
            ix0.100: flags=8043<UP,BROADCAST,RUNNING,MULTICAST> metric 0 mtu 9000\n\tmedia: Ethernet autoselect (10Gbase-T <full-duplex>)\n\
            lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> metric 0 mtu 16384\n";
        let read: Vec<_> = links(text).into_iter().map(|link| (link.device, link.mtu, link.speed_bps)).collect();
        assert_eq!(
            read,
            [
                ("em0".to_owned(), Some(1500), Some(1_000_000_000)),
                ("ix0.100".to_owned(), Some(9000), Some(10_000_000_000)),
                ("lo0".to_owned(), Some(16384), None)
            ]
        );
        assert!(links("garbage\n\tmedia: x\n").is_empty());
    }
}
