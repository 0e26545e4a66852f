//! What an application wants of a connection, as a set of options.

use fullpipe_tcp::{profile::Budgets, socket::SocketOptions};

/// A set of options that go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// As the profile has it: Nagle's algorithm and PSH.
    Default,
    /// Small messages leave at once: no Nagle (SO_NONAGLE).
    LowLatency,
    /// Full segments only (SO_NOPUSH), and as many buffers as go without window scaling.
    Bulk,
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Default, Self::LowLatency, Self::Bulk];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::LowLatency => "low_latency",
            Self::Bulk => "bulk",
        }
    }

    /// `options` with what this preset changes.
    #[must_use]
    pub const fn applied(self, options: SocketOptions) -> SocketOptions {
        match self {
            Self::Default => options,
            Self::LowLatency => options.low_latency(),
            Self::Bulk => options.bulk(*Budgets::UNSCALED.end()),
        }
    }
}
