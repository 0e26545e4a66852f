//! `--so_flags`: words `name=value` with commas between.

use std::{
    net::{IpAddr, Ipv4Addr},
    num::NonZeroU16,
};

use fullpipe_tcp::{
    SecretKey,
    congestion::Algorithm,
    profile::{BlindDefence, EcnPolicy, IcmpErrors, Keepalive, Profile, SynFin},
};

/// How the host is set up.
#[derive(Clone, Debug)]
pub(crate) struct Flags {
    pub(crate) local: IpAddr,
    pub(crate) mtu: u16,
    pub(crate) profile: Profile,
    /// Bytes of a new socket's receive buffer, as an application reads them back.
    pub(crate) receive_space: u32,
    /// Bytes of a new socket's send buffer.
    pub(crate) send_space: u32,
    pub(crate) syn_cookies: bool,
    pub(crate) syn_cookies_only: bool,
    /// This host's port for TCP over UDP.
    pub(crate) udp_port: Option<NonZeroU16>,
    /// Whether every listener takes data in SYNs, asked or not.
    pub(crate) fast_listeners: bool,
    /// The key of fast-open cookies.
    pub(crate) fast_open_key: SecretKey,
    /// What keepalive is where an application turns it on.
    pub(crate) keepalive: Keepalive,
    /// The bytes waiting to be sent from which on a new socket takes no more.
    pub(crate) unsent_low: Option<u32>,
    /// Whether what is known of peers is to be forgotten.
    pub(crate) forget: bool,
}

/// What is wrong with a flag.
#[derive(Debug, thiserror::Error)]
#[error("flag {word}: {reason}")]
pub(crate) struct BadFlag {
    word: String,
    reason: &'static str,
}

/// Data bytes of a full segment without options: what a buffer counts for.
const SEGMENT: u32 = 1460;

impl Flags {
    /// Reads what stands behind `--so_flags`. The profile comes first, whatever the order.
    pub(crate) fn parse(text: &str) -> Result<Self, BadFlag> {
        let words = || text.split(',').map(str::trim).filter(|word| !word.is_empty());
        let mut flags = Self::new(Profile::LINUX, 131_072, 16_384);
        for word in words() {
            if let Some(name) = word.strip_prefix("profile=") {
                flags = Self::of_profile(name).ok_or_else(|| bad(word, "linux, freebsd or netburner"))?;
            }
        }
        for word in words() {
            let (name, value) = word.split_once('=').ok_or_else(|| bad(word, "a value is missing"))?;
            flags.set(name, value).map_err(|reason| bad(word, reason))?;
        }
        Ok(flags)
    }

    /// The same flags with some changed, as a script's shell lines change a system's settings under way.
    pub(crate) fn changed(&self, text: &str) -> Result<Self, BadFlag> {
        let mut flags = self.clone();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').ok_or_else(|| bad(word, "a value is missing"))?;
            flags.set(name, value).map_err(|reason| bad(word, reason))?;
        }
        Ok(flags)
    }

    fn new(profile: Profile, receive_space: u32, send_space: u32) -> Self {
        let local = IpAddr::V4(Ipv4Addr::new(192, 168, 0, 1));
        Self {
            local,
            mtu: 1500,
            profile,
            receive_space,
            send_space,
            syn_cookies: true,
            syn_cookies_only: false,
            udp_port: None,
            fast_listeners: false,
            fast_open_key: SecretKey([0; 16]),
            keepalive: Keepalive::USUAL,
            unsent_low: None,
            forget: false,
        }
    }

    fn of_profile(name: &str) -> Option<Self> {
        Some(match name {
            "linux" => Self::new(Profile::LINUX, 131_072, 16_384),
            "freebsd" => {
                let flags = Self::new(Profile::FREEBSD, 65_536, 32_768);
                Self { keepalive: Keepalive { probes: 8, ..Keepalive::USUAL }, ..flags }
            }
            "netburner" => Self::new(Profile::NETBURNER, 5 * SEGMENT, 5 * SEGMENT),
            _ => return None,
        })
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), &'static str> {
        let profile = &mut self.profile;
        match name {
            "profile" => {}
            "local" => self.local = value.parse().map_err(|_| "an address is expected")?,
            "cc" => {
                profile.congestion = Algorithm::from_name(value).ok_or("cubic, newreno or bbr")?;
            }
            "ecn" => {
                profile.ecn = match value {
                    "off" => EcnPolicy::Off,
                    "accept" => EcnPolicy::Accept,
                    "request" => EcnPolicy::Request,
                    _ => return Err("off, accept or request"),
                }
            }
            "tfo" => self.set_fast_open(parse_bits(value).ok_or("a number is expected")?),
            "tfo_key" => self.fast_open_key = parse_key(value).ok_or("four words of eight hex digits are expected")?,
            _ => return self.set_number(name, value.parse().map_err(|_| "a whole number is expected")?),
        }
        Ok(())
    }

    /// The bits of Linux's `tcp_fastopen`.
    const fn set_fast_open(&mut self, bits: u32) {
        let policy = &mut self.profile.fast_open;
        policy.client = bits & 1 != 0;
        policy.server = bits & 2 != 0;
        policy.client_without_cookie = bits & 4 != 0;
        policy.server_without_cookie = bits & 0x200 != 0;
        self.fast_listeners = policy.server && bits & 0x400 != 0;
    }

    fn set_number(&mut self, name: &str, value: u32) -> Result<(), &'static str> {
        let profile = &mut self.profile;
        let small = || u8::try_from(value).map_err(|_| "too large");
        match name {
            "mtu" => self.mtu = u16::try_from(value).map_err(|_| "too large")?,
            "rx" => {
                self.receive_space = value;
                profile.budgets.receive = segments(value, self.udp_port);
            }
            // The most that the receive buffer grows to.
            "rx_max" => {
                profile.receive = profile.receive.with_max(segments(value, None));
            }
            "tx" => {
                self.send_space = value;
                profile.budgets.transmit = segments(value, None);
            }
            "scale" => profile.window_scaling = value > 0,
            "shift" => profile.window_shift = Some(small()?),
            "timestamps" => profile.timestamps = value > 0,
            "sack" => profile.sack = value > 0,
            "rack" => profile.rack = value > 0,
            "blind_defence" => {
                profile.blind_defence = if value > 0 { BlindDefence::Challenge } else { BlindDefence::None };
            }
            "udp_port" => {
                let port = u16::try_from(value).map_err(|_| "too large")?;
                self.udp_port = NonZeroU16::new(port);
                profile.budgets.receive = segments(self.receive_space, self.udp_port);
            }
            "unsent_low" => self.unsent_low = Some(value),
            "cookies_only" => self.syn_cookies_only = value > 0,
            "open_timeout_ms" => profile.open_timeout_ms = Some(value),
            "plain_syn_after" => profile.plain_syn_after = if value > 0 { Some(small()?) } else { None },
            "ecn_retries" => profile.ecn_retries = small()?,
            "icmp_may_end" => {
                profile.icmp_errors = if value > 0 { IcmpErrors::Prohibited } else { IcmpErrors::None };
            }
            "cookies" => self.syn_cookies = value > 0,
            "keep_idle_ms" => self.keepalive.idle_s = value / 1_000,
            "keep_interval_ms" => self.keepalive.interval_s = value / 1_000,
            "keep_probes" => self.keepalive.probes = small()?,
            "drop_synfin" => profile.syn_fin = if value > 0 { SynFin::Ignored } else { SynFin::Syn },
            "train" => profile.least_train = small()?,
            "forget" => self.forget = value > 0,
            "idle_restart" => profile.restart_after_idle = value > 0,
            "mtu_probing" => profile.mtu_probing = value > 0,
            "iw" => profile.initial_window = small()?,
            "quick" => profile.ack.quick = small()?,
            "delack_ms" => profile.ack.delay_us = ms(value)?,
            "rto_initial_ms" => profile.rto.initial_us = ms(value)?,
            "rto_min_ms" => profile.rto.min_us = ms(value)?,
            "rto_max_ms" => profile.rto.max_us = ms(value)?,
            "rto_margin_ms" => profile.rto.margin_us = ms(value)?,
            "syn_retries" => profile.syn_retries = small()?,
            "syn_ack_retries" => profile.syn_ack_retries = small()?,
            "retries" => profile.retries = small()?,
            "challenges" => profile.challenge_acks = small()?,
            _ => return Err("no such flag"),
        }
        Ok(())
    }
}

fn parse_bits(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A key as Linux writes one: four words, each with its lowest byte last.
fn parse_key(text: &str) -> Option<SecretKey> {
    let mut key = [0; 16];
    let (places, _) = key.as_chunks_mut::<4>();
    let mut words = text.split('-');
    for place in places {
        *place = u32::from_str_radix(words.next()?, 16).ok()?.to_le_bytes();
    }
    words.next().is_none().then_some(SecretKey(key))
}

/// Whole buffers that hold `bytes`, as FreeBSD rounds a buffer up to whole segments, which are shorter over UDP.
pub(crate) fn segments(bytes: u32, udp_port: Option<NonZeroU16>) -> u16 {
    let segment = if udp_port.is_some() { SEGMENT - 8 } else { SEGMENT };
    u16::try_from(bytes.div_ceil(segment)).unwrap_or(u16::MAX).clamp(1, crate::host::BUFFERS)
}

fn ms(value: u32) -> Result<u32, &'static str> {
    value.checked_mul(1_000).ok_or("too large")
}

fn bad(word: &str, reason: &'static str) -> BadFlag {
    BadFlag { word: word.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_comes_first_whatever_the_order() {
        let flags = Flags::parse("rx=4000,local=192.0.2.9,profile=freebsd,timestamps=0").unwrap();
        assert_eq!((flags.profile.name, flags.profile.budgets.receive, flags.receive_space), ("freebsd", 3, 4_000));
        assert_eq!(flags.local, IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9)));
        assert!(!flags.profile.timestamps && flags.profile.sack);
    }

    #[test]
    fn a_bad_flag_is_named() {
        for (text, expected) in [
            ("profile=plan9", "flag profile=plan9: linux, freebsd or netburner"),
            ("sack", "flag sack: a value is missing"),
            ("sack=yes", "flag sack=yes: a whole number is expected"),
            ("iw=300", "flag iw=300: too large"),
            ("colour=1", "flag colour=1: no such flag"),
        ] {
            assert_eq!(Flags::parse(text).unwrap_err().to_string(), expected);
        }
    }
}
