//! The options of a TCP header (RFC 9293, section 3.2), as far as following a connection needs them. What is *not* here:
//! what they mean to a connection.

use fullpipe_units::SeqNum;

/// What the options of one segment say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Options {
    /// Timestamp value and echo (RFC 7323, section 3.2).
    pub(crate) timestamps: Option<[u32; 2]>,
    /// SACK blocks (RFC 2018, section 3); only the first `sack_count` count.
    pub(crate) sack: [(SeqNum, SeqNum); 4],
    pub(crate) sack_count: u8,
    /// What only a SYN may say.
    pub(crate) syn: SynOptions,
}

/// The options that a SYN may carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SynOptions {
    pub(crate) mss: Option<u16>,
    pub(crate) window_scale: Option<u8>,
    pub(crate) sack_permitted: bool,
    pub(crate) timestamps: bool,
    /// The kinds in their order, four bits each from the lowest on; kinds above 14 are 15.
    pub(crate) layout: u64,
}

impl Options {
    /// None at all.
    pub(crate) const NONE: Self = Self {
        timestamps: None,
        sack: [(SeqNum::new(0), SeqNum::new(0)); 4],
        sack_count: 0,
        syn: SynOptions { mss: None, window_scale: None, sack_permitted: false, timestamps: false, layout: 0 },
    };

    /// The timestamps where there is nothing else.
    #[inline]
    pub(crate) fn timestamps_alone(bytes: &[u8]) -> Option<[u32; 2]> {
        // Nearly every segment has exactly this: two no-operations and the timestamps (RFC 7323, appendix A).
        let [1, 1, 8, 10, a, b, c, d, e, f, g, h] = *bytes else { return None };
        Some([u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])])
    }

    /// Reads what was captured; a length that lies ends the list.
    pub(crate) fn walk(mut bytes: &[u8]) -> Self {
        let mut options = Self::default();
        let mut place = 0;
        while let [kind, rest @ ..] = bytes {
            if place < 64 {
                options.syn.layout |= u64::from((*kind).min(15)) << place;
                place += 4;
            }
            match kind {
                0 => break,
                1 => bytes = rest,
                _ => {
                    let length = rest.first().map_or(0, |length| usize::from(*length));
                    let Some(body) = bytes.get(2..length) else { break };
                    options.take(*kind, body);
                    bytes = &bytes[length..];
                }
            }
        }
        options
    }

    fn take(&mut self, kind: u8, body: &[u8]) {
        match (kind, body.len()) {
            (2, 2) => self.syn.mss = Some(u16::from_be_bytes([body[0], body[1]])),
            // A shift above 14 counts as 14 (RFC 7323, section 2.3).
            (3, 1) => self.syn.window_scale = Some(body[0].min(14)),
            (4, 0) => self.syn.sack_permitted = true,
            (5, 8 | 16 | 24 | 32) => {
                for (block, bytes) in self.sack.iter_mut().zip(body.chunks_exact(8)) {
                    *block = (SeqNum::new(word(bytes, 0)), SeqNum::new(word(bytes, 4)));
                    self.sack_count += 1;
                }
            }
            (8, 8) => {
                self.timestamps = Some([word(body, 0), word(body, 4)]);
                self.syn.timestamps = true;
            }
            _ => {}
        }
    }

    pub(crate) fn sack(&self) -> &[(SeqNum, SeqNum)] {
        &self.sack[..usize::from(self.sack_count).min(4)]
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syn_of_linux_is_read_in_its_order() {
        let bytes = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 0, 1, 3, 3, 10];
        let options = Options::walk(&bytes);
        assert_eq!(options.syn.mss, Some(1460));
        assert_eq!(options.syn.window_scale, Some(10));
        assert!(options.syn.sack_permitted && options.syn.timestamps);
        assert_eq!(options.timestamps, Some([7, 0]));
        assert_eq!(options.syn.layout, 0x31842);
    }

    #[test]
    fn lengths_that_lie_end_the_list() {
        for bytes in [&[2, 0][..], &[2, 1], &[5, 40, 0], &[8], &[3, 255, 1], &[2, 4, 5]] {
            let options = Options::walk(bytes);
            assert_eq!((options.syn.mss, options.sack_count, options.timestamps), (None, 0, None), "{bytes:?}");
        }
        let wide = Options::walk(&[3, 3, 200]);
        assert_eq!(wide.syn.window_scale, Some(14));
    }

    #[test]
    fn blocks_are_read_behind_no_operations() {
        let mut bytes = vec![1, 1, 5, 18];
        bytes.extend([0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 6]);
        let options = Options::walk(&bytes);
        assert_eq!(options.sack(), [(SeqNum::new(1), SeqNum::new(2)), (SeqNum::new(5), SeqNum::new(6))]);
    }
}
