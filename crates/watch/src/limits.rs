//! What this system's settings allow sockets, and what a buffer's size says about who chose it.

use fullpipe_socket::{Fixed, Info, Memory};
use serde::{Deserialize, Serialize};

/// The settings that bound buffers of TCP, where they could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// `net.ipv4.tcp_rmem`: smallest, first, largest.
    pub(crate) receive: Option<[u64; 3]>,
    /// `net.ipv4.tcp_wmem`.
    pub(crate) send: Option<[u64; 3]>,
    /// `net.ipv4.tcp_window_scaling`.
    pub(crate) scaling: Option<bool>,
}

impl Limits {
    /// From the text of the three settings.
    pub(crate) fn read(setting: impl Fn(&str) -> Option<String>) -> Self {
        let three = |name: &str| {
            let text = setting(name)?;
            let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok());
            Some([numbers.next()?, numbers.next()?, numbers.next()?])
        };
        Self {
            receive: three("tcp_rmem"),
            send: three("tcp_wmem"),
            scaling: setting("tcp_window_scaling").map(|text| text.trim() != "0"),
        }
    }
}

/// Whether an application has set a buffer, which ends its automatic sizing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Pin {
    /// The socket itself says that it was set (`SO_BUF_LOCK`).
    Set,
    /// Its size is one that automatic sizing doesn't make.
    Likely,
    /// The socket itself says that it was not.
    Left,
    /// Nothing tells.
    #[default]
    Unknown,
}

impl Pin {
    /// Of the receive buffer. Automatic sizing begins at the first size and ends at the largest; it never shrinks one below
    /// where it began (`tcp_rcv_space_adjust`).
    pub(crate) fn of_receive(fixed: Option<Fixed>, memory: &Memory, limits: &Limits) -> Self {
        let unusual = memory.receive_buffer.zip(limits.receive).is_some_and(|(buffer, [_, first, largest])| {
            buffer.get() > 0 && (buffer.get() < first || buffer.get() > largest.max(first))
        });
        Self::new(fixed.map(|fixed| fixed.receive), unusual)
    }

    /// Of the send buffer. Automatic sizing keeps it at two congestion windows of segments with their overhead, up to the
    /// largest (`tcp_sndbuf_expand`).
    pub(crate) fn of_send(fixed: Option<Fixed>, memory: &Memory, info: &Info, limits: &Limits) -> Self {
        let unusual = memory.send_buffer.zip(limits.send).is_some_and(|(buffer, [.., largest])| {
            let wants = info.cwnd.map_or(0, |cwnd| cwnd.get().saturating_mul(2)).min(largest);
            buffer.get() > 0 && (buffer.get() < wants || buffer.get() > largest)
        });
        Self::new(fixed.map(|fixed| fixed.send), unusual)
    }

    fn new(fixed: Option<bool>, unusual: bool) -> Self {
        match fixed {
            Some(true) => Self::Set,
            Some(false) => Self::Left,
            None if unusual => Self::Likely,
            None => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_socket::Bytes;

    use super::*;

    fn limits() -> Limits {
        Limits::read(|name| {
            Some(match name {
                "tcp_rmem" => "4096\t131072\t6291456\n".to_owned(),
                "tcp_wmem" => "4096\t16384\t4194304\n".to_owned(),
                _ => "1\n".to_owned(),
            })
        })
    }

    fn memory(buffer: u64) -> Memory {
        Memory { receive_buffer: Some(Bytes::new(buffer)), send_buffer: Some(Bytes::new(buffer)), ..Memory::default() }
    }

    #[test]
    fn what_the_socket_says_counts_before_any_guess() {
        let fixed = |on| Some(Fixed { receive: on, send: on });
        assert_eq!(Pin::of_receive(fixed(true), &memory(131_072), &limits()), Pin::Set);
        assert_eq!(Pin::of_receive(fixed(false), &memory(2_048), &limits()), Pin::Left);
        assert_eq!(Pin::of_send(fixed(false), &memory(2_048), &Info::default(), &limits()), Pin::Left);
    }

    #[test]
    fn a_receive_buffer_outside_of_automatic_sizes_is_likely_set() {
        for (buffer, pin) in [(131_072, Pin::Unknown), (65_536, Pin::Likely), (6_291_457, Pin::Likely)] {
            assert_eq!(Pin::of_receive(None, &memory(buffer), &limits()), pin, "{buffer}");
        }
        assert_eq!(Pin::of_receive(None, &memory(1), &Limits::default()), Pin::Unknown);
    }

    #[test]
    fn a_send_buffer_that_does_not_follow_its_congestion_window_is_likely_set() {
        let info = |cwnd| Info { cwnd: Some(Bytes::new(cwnd)), ..Info::default() };
        for (buffer, cwnd, pin) in [
            (131_072, 14_480, Pin::Unknown),
            (131_072, 100_000, Pin::Likely),
            (4_194_304, 100_000_000, Pin::Unknown),
            (4_194_305, 14_480, Pin::Likely),
        ] {
            assert_eq!(Pin::of_send(None, &memory(buffer), &info(cwnd), &limits()), pin, "{buffer} {cwnd}");
        }
    }

    #[test]
    fn settings_that_cannot_be_read_are_not_known() {
        assert_eq!(Limits::read(|_| None), Limits::default());
        assert_eq!(Limits::read(|_| Some("x 1".to_owned())).receive, None);
    }
}
