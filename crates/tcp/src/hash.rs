//! The keyed hash behind initial sequence numbers (RFC 6528), timestamp offsets (RFC 7323, section 7.1), ephemeral
//! ports (RFC 6056, section 3.3.3) and SYN cookies: SipHash-2-4 under a key that the caller draws at random.

use core::net::IpAddr;

use fullpipe_units::Instant;

use crate::{socket::Tuple, time};

/// The stack's secret. It must be drawn at random when the stack starts and given to nobody.
#[derive(Clone, Copy)]
pub struct SecretKey(pub [u8; 16]);

impl core::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

/// What a hash is for, so that one use tells nothing about another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    InitialSequence = 1,
    TimestampOffset,
    Port,
    Cookie,
    Table,
}

/// RFC 6528, section 3: `ISN = M + F(localip, localport, remoteip, remoteport, secretkey)`, M a clock of 4 us.
pub(crate) fn initial_sequence(key: SecretKey, now: Instant, tuple: &Tuple) -> u32 {
    (time::ticks_of_4_us(now)).wrapping_add(of_tuple(key, Use::InitialSequence, tuple, 0) as u32)
}

/// The hash of a connection's addresses and ports, and of one more word.
pub(crate) fn of_tuple(key: SecretKey, purpose: Use, tuple: &Tuple, word: u32) -> u64 {
    let mut sip = SipHash::new(key);
    let ports = u64::from(tuple.local.port) << 16 | u64::from(tuple.remote.port);
    sip.word(ports << 32 | u64::from(word));
    for addr in [tuple.local.addr, tuple.remote.addr] {
        match addr {
            IpAddr::V4(v4) => sip.word(u64::from(v4.to_bits())),
            IpAddr::V6(_) if !cfg!(feature = "ipv6") => {}
            IpAddr::V6(v6) => {
                let bits = v6.to_bits();
                sip.word(bits as u64);
                sip.word((bits >> 64) as u64);
            }
        }
    }
    sip.finish(purpose as u64)
}

/// SipHash-2-4 of two addresses' bytes, `first` before `second`.
#[cfg(feature = "fast-open")]
pub(crate) fn of_addresses(key: SecretKey, first: IpAddr, second: IpAddr) -> u64 {
    let mut sip = SipHash::new(key);
    let len = match (first, second) {
        (IpAddr::V4(first), IpAddr::V4(second)) => {
            let (first, second) = (u64::from(first.to_bits().swap_bytes()), u64::from(second.to_bits().swap_bytes()));
            sip.word(second << 32 | first);
            8
        }
        _ => {
            for addr in [first, second] {
                let IpAddr::V6(addr) = addr else { continue };
                let bits = addr.to_bits().swap_bytes();
                sip.word(bits as u64);
                sip.word((bits >> 64) as u64);
            }
            32
        }
    };
    sip.finish(len << 56)
}

/// SipHash-2-4 (Aumasson and Bernstein, 2012) over whole 64-bit words; the final block carries the purpose in place
/// of the length, which the address family fixes.
struct SipHash {
    v: [u64; 4],
}

impl SipHash {
    fn new(SecretKey(key): SecretKey) -> Self {
        let (words, _) = key.as_chunks::<8>();
        let k0 = words.first().map_or(0, |word| u64::from_le_bytes(*word));
        let k1 = words.get(1).map_or(0, |word| u64::from_le_bytes(*word));
        Self {
            v: [
                k0 ^ 0x736f_6d65_7073_6575,
                k1 ^ 0x646f_7261_6e64_6f6d,
                k0 ^ 0x6c79_6765_6e65_7261,
                k1 ^ 0x7465_6462_7974_6573,
            ],
        }
    }

    const fn round(&mut self) {
        let [mut v0, mut v1, mut v2, mut v3] = self.v;
        v0 = v0.wrapping_add(v1);
        v2 = v2.wrapping_add(v3);
        v1 = v1.rotate_left(13) ^ v0;
        v3 = v3.rotate_left(16) ^ v2;
        v0 = v0.rotate_left(32);
        v2 = v2.wrapping_add(v1);
        v0 = v0.wrapping_add(v3);
        v1 = v1.rotate_left(17) ^ v2;
        v3 = v3.rotate_left(21) ^ v0;
        v2 = v2.rotate_left(32);
        self.v = [v0, v1, v2, v3];
    }

    const fn word(&mut self, m: u64) {
        self.v[3] ^= m;
        self.round();
        self.round();
        self.v[0] ^= m;
    }

    const fn finish(mut self, last: u64) -> u64 {
        self.word(last);
        self.v[2] ^= 0xff;
        self.round();
        self.round();
        self.round();
        self.round();
        self.v[0] ^ self.v[1] ^ self.v[2] ^ self.v[3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::Endpoint;

    #[test]
    fn the_reference_vector() {
        // Key 00..0f, message 00..0e (15 bytes): the vector of the paper's appendix A.
        let mut sip = SipHash::new(SecretKey(core::array::from_fn(|i| i as u8)));
        sip.word(u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7]));
        let last = u64::from_le_bytes([8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(sip.finish(last), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn initial_sequences_differ_by_connection_and_advance_with_time() {
        let key = SecretKey([7; 16]);
        let end = |port| Endpoint { addr: "192.0.2.1".parse().unwrap(), port };
        let (a, b) = (Tuple::new(end(1), end(2)), Tuple::new(end(1), end(3)));
        let at = |us: u64, tuple| initial_sequence(key, Instant::from_nanos(us * 1_000), tuple);
        assert_ne!(at(0, &a), at(0, &b));
        assert_eq!(at(4_000, &a).wrapping_sub(at(0, &a)), 1_000);
    }
}
