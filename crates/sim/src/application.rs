//! What the applications at both ends do. All of them move zeros.

use fullpipe_units::{Bytes, Micros, Rate};

/// What the sending application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// Writes without end, `write` bytes at a time, and blocks while the send buffer is full.
    Bulk {
        /// Bytes of one write.
        write: u32,
        /// A write that has waited for so long ends with what was written, and the next one begins when there is room.
        patience: Option<Micros>,
    },
    /// Writes at a rate of its own, `write` bytes at a time.
    Paced {
        /// How fast.
        rate: Rate,
        /// Bytes of one write.
        write: u32,
    },
    /// Answers requests of the other end, one after the other.
    Responses {
        /// Bytes of a request.
        request: u32,
        /// Bytes of a response, which is written at once.
        response: u32,
        /// How long the other end thinks between a response and its next request.
        think: Micros,
    },
    /// Writes `size` bytes in two pieces, and the next message when the first one was answered with one byte: the
    /// write-write-read pattern of Nagle's algorithm against delayed acknowledgements.
    Messages {
        /// Bytes of a message.
        size: u32,
    },
    /// Writes as much as the transmit budget holds and waits until all of it is acknowledged: small devices.
    Waits,
}

impl Application {
    /// What iperf3 writes at a time.
    pub const BULK: Self = Self::Bulk { write: 128 << 10, patience: None };
    /// What `fullpipe` writes at a time when it measures, and how long it waits before it looks up. It matters: Linux looks at its send buffer before a segment, and
    /// not while one is being filled that has not left, so that a long write passes a short buffer.
    pub const MEASURED: Self = Self::Bulk { write: 1_000_000, patience: Some(Micros::from_millis(200)) };
}

/// What the receiving application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Reads whatever has arrived at once.
    Eager,
    /// Reads `chunk` bytes at a time, no faster than `rate`.
    Slow {
        /// How fast.
        rate: Rate,
        /// Bytes of one read.
        chunk: u32,
    },
}

/// The time that `bytes` take at `rate`, in nanoseconds.
pub(crate) fn nanos(bytes: u64, rate: Rate) -> u64 {
    let nanos = u128::from(bytes) * 8_000_000_000 / u128::from(rate.bps().max(1));
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

/// How much there is to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left(pub(crate) Option<u64>);

impl Left {
    pub(crate) fn new(bytes: Option<Bytes>) -> Self {
        Self(bytes.map(Bytes::get))
    }

    pub(crate) fn most(self, bytes: u64) -> u64 {
        self.0.map_or(bytes, |left| left.min(bytes))
    }

    pub(crate) fn take(&mut self, bytes: u64) {
        self.0 = self.0.map(|left| left.saturating_sub(bytes));
    }

    pub(crate) fn is_over(self) -> bool {
        self.0 == Some(0)
    }
}
