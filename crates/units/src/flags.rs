//! The control bits of a TCP segment.

/// The control bits of a TCP segment (RFC 9293, section 3.1), as the low nine bits of the header's thirteenth and fourteenth
/// byte: the ninth is AE (RFC 9768), which an engine without accurate ECN never sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TcpFlags(pub u16);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168, section 6.1).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168, section 6.1).
    pub const CWR: Self = Self(0x80);

    /// Those of the header's fourteenth byte.
    pub const fn from_byte(byte: u8) -> Self {
        Self(byte as u16)
    }

    /// The header's fourteenth byte.
    pub const fn byte(self) -> u8 {
        (self.0 & 0xff) as u8
    }

    /// Whether any bit of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Both sets.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// `other` where `condition` holds, added to this set.
    pub const fn with_if(self, condition: bool, other: Self) -> Self {
        if condition { self.with(other) } else { self }
    }

    /// This set less `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::TcpFlags;

    #[test]
    fn a_set_is_its_byte_and_accurate_ecn_is_not_part_of_it() {
        let syn_ack = TcpFlags::SYN.with(TcpFlags::ACK);
        assert_eq!((syn_ack.byte(), TcpFlags::from_byte(0x12)), (0x12, syn_ack));
        assert_eq!(TcpFlags(0x112).byte(), 0x12);
        assert!(syn_ack.without(TcpFlags::SYN) == TcpFlags::ACK && !syn_ack.has(TcpFlags::FIN));
        assert_eq!(TcpFlags::ACK.with_if(false, TcpFlags::PSH), TcpFlags::ACK);
    }
}
