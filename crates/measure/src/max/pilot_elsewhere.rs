//! Where the system's calls are other ones, nothing is tried: a test that asks for it is refused, and a far end that is
//! asked moves payload as it always does.

use std::{
    io,
    time::{Duration, Instant},
};

use super::Push;
use crate::{
    lane::{Manner, Run, Shared},
    sampler::Probe,
};

/// There is none.
#[derive(Debug)]
pub(crate) enum Pilot {}

/// There is none.
#[derive(Debug)]
pub(crate) enum Piloting {}

impl Pilot {
    pub(crate) fn new(_: &[u8]) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Piloting {
    pub(crate) fn start(
        pilot: &std::sync::Arc<Pilot>,
        _: Vec<Probe>,
        _: Instant,
        _: (Duration, usize),
    ) -> io::Result<Self> {
        match **pilot {}
    }

    pub(crate) fn finish(self) -> Push {
        match self {}
    }
}

pub(crate) fn send(_: &Shared, _: &Manner, _: &Run, pilot: &Pilot) -> io::Result<()> {
    match *pilot {}
}

pub(crate) fn receive(_: &Shared, _: &Run, pilot: &Pilot) -> io::Result<()> {
    match *pilot {}
}
