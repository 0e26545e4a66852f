//! What of a capture could not be read, packet by packet: listed, never fatal. What is *not* here: why a file could not
//! be read at all ([`crate::NotACapture`]).

use core::fmt;

use crate::link;

/// How many problems of one kind are listed; beyond that they are only counted.
const LISTED_PER_KIND: u64 = 10;

/// One thing that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The number of the packet, or of the last one before it where the container itself is damaged.
    pub packet: u64,
    /// What is wrong with it.
    pub kind: ProblemKind,
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The file ends within a packet or a block.
    FileCut,
    /// A record or block tells a length that can't be; what follows it can't be found.
    BadLength(u32),
    /// A packet names an interface that no block described.
    UnknownInterface(u32),
    /// More interfaces than are kept.
    TooManyInterfaces,
    /// A packet without a time of its own: it got that of the one before it.
    NoTime,
    /// A link type that is not read.
    UnknownLink(u32),
    /// A link type of a snoop file that is not read.
    UnknownSnoopLink(u32),
    /// The capture cut a packet within its headers.
    HeadersCut,
    /// A link-layer header contradicts itself.
    BadLink,
    /// A frame of a wireless network that is still encrypted.
    Encrypted,
    /// An IP header contradicts itself.
    BadIp,
    /// A TCP header contradicts itself.
    BadTcp,
    /// Headers within headers, more deeply than is followed.
    TooDeep,
    /// The first fragment of a segment was there, but not all of the others.
    FragmentsMissing,
}

impl ProblemKind {
    /// How many kinds there are.
    const COUNT: usize = 14;

    const fn place(self) -> usize {
        match self {
            Self::FileCut => 0,
            Self::BadLength(_) => 1,
            Self::UnknownInterface(_) => 2,
            Self::TooManyInterfaces => 3,
            Self::NoTime => 4,
            Self::UnknownLink(_) => 5,
            Self::UnknownSnoopLink(_) => 6,
            Self::HeadersCut => 7,
            Self::BadLink => 8,
            Self::Encrypted => 9,
            Self::BadIp => 10,
            Self::BadTcp => 11,
            Self::TooDeep => 12,
            Self::FragmentsMissing => 13,
        }
    }
}

impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FileCut => f.write_str("the capture ends in the middle of a packet"),
            Self::BadLength(length) => {
                write!(f, "a length of {length} bytes can't be: the capture is damaged here, and what follows is lost")
            }
            Self::UnknownInterface(number) => write!(f, "interface {number} was never described"),
            Self::TooManyInterfaces => f.write_str("more interfaces than are kept; packets of the others are left out"),
            Self::NoTime => f.write_str("the packet has no time of its own and got that of the one before it"),
            Self::UnknownLink(number) => match link::name(*number) {
                Some(name) => write!(f, "link type {number} ({name}) is not read"),
                None => write!(f, "link type {number} is not known"),
            },
            Self::UnknownSnoopLink(number) => write!(f, "link type {number} of snoop is not read"),
            Self::HeadersCut => {
                f.write_str("the capture cut the packet within its headers: capture at least 128 bytes")
            }
            Self::BadLink => f.write_str("the link-layer header contradicts itself"),
            Self::Encrypted => f.write_str("the wireless frame is encrypted: decrypt the capture first"),
            Self::BadIp => f.write_str("the IP header contradicts itself"),
            Self::BadTcp => f.write_str("the TCP header contradicts itself"),
            Self::TooDeep => f.write_str("more headers within headers than are followed"),
            Self::FragmentsMissing => f.write_str("fragments of the segment are missing: its length is a guess"),
        }
    }
}

/// The problems of a capture: the first ones of each kind, and how many there were.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    listed: Vec<Problem>,
    counts: [u64; ProblemKind::COUNT],
}

impl Problems {
    /// The first ten of each kind, in the order in which they were met.
    pub fn listed(&self) -> &[Problem] {
        &self.listed
    }

    /// How many problems there were of this kind, whatever its details.
    pub const fn count(&self, kind: ProblemKind) -> u64 {
        self.counts[kind.place()]
    }

    /// How many problems there were in all.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    #[cold]
    pub(crate) fn note(&mut self, packet: u64, kind: ProblemKind) {
        let count = &mut self.counts[kind.place()];
        *count += 1;
        if *count <= LISTED_PER_KIND {
            self.listed.push(Problem { packet, kind });
        }
    }
}
