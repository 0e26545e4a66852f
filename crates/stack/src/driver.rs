//! A stack, its port and its clock: everything that is due is done, and whoever calls waits in between.
//!
//! One thread's work. [`Host`](crate::Host) gives it a thread and a lock.

use std::{
    io,
    net::IpAddr,
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant as SystemInstant},
};

use fullpipe_tcp::{
    SecretKey,
    heap::{BUFFERS_MAX, HeapStorage},
    profile::Profile,
    stack::{Config, Device, Stack},
};
use fullpipe_units::Instant;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use crate::{Port, StackError, pace::Pace};

/// Frames read in one go before answers leave: an acknowledgement must not wait for a whole queue.
const READ_BUDGET: u32 = 16;
/// Data of one super-packet: 65,535 bytes less the longest headers.
const BURST: u32 = 65_535 - 100;

/// How a stack is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The policy.
    pub profile: Profile,
    /// The stack's own addresses, four at most.
    pub addresses: Vec<IpAddr>,
    /// Socket entries.
    pub sockets: u16,
    /// Packet buffers of the pool.
    pub buffers: u16,
    /// Bytes of a packet buffer.
    pub buffer_bytes: u16,
    /// Whether a full backlog is defended by SYN cookies.
    pub syn_cookies: bool,
    /// How long the device is busy with each packet, in or out; zero for as fast as this machine goes.
    pub per_packet: Duration,
}

impl Settings {
    /// A NetBurner's dimensions (256 buffers of 1548 bytes, 32 sockets) and the engine's own profile.
    pub fn new(addresses: &[IpAddr]) -> Self {
        Self {
            profile: Profile::DEFAULT,
            addresses: addresses.to_vec(),
            sockets: 32,
            buffers: 256,
            buffer_bytes: 1_548,
            syn_cookies: true,
            per_packet: Duration::ZERO,
        }
    }
}

/// What a driver has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverCounts {
    /// Writes to the port; a super-packet is one.
    pub frames_out: u64,
    /// Reads from the port; a super-packet is one.
    pub frames_in: u64,
    /// Packets that the port did not take.
    pub refused: u64,
}

/// What a driver waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// Work again at this time, if nothing came before.
    pub at: Option<Instant>,
    /// Work again as soon as a packet arrives. A slow device that is busy doesn't look.
    pub on_packet: bool,
}

/// A stack at work on a port.
#[derive(Debug)]
pub struct Driver {
    stack: Stack<HeapStorage>,
    port: Port,
    origin: SystemInstant,
    pace: Pace,
    counts: DriverCounts,
}

impl Driver {
    /// A stack on `port`.
    ///
    /// # Errors
    /// A setting out of range, or a system without randomness.
    pub fn new(port: Port, settings: &Settings) -> Result<Self, StackError> {
        check(settings)?;
        let key = || {
            let mut key = [0; 16];
            getrandom::fill(&mut key)
                .map_err(|error| StackError::system("draw a random key", io::Error::other(error)))?;
            Ok::<_, StackError>(SecretKey(key))
        };
        let device = Device {
            mtu: port.mtu(),
            checksum_offload: port.offload(),
            burst: if port.offload() && settings.per_packet.is_zero() { BURST } else { 0 },
        };
        let mut addresses = [None; 4];
        for (slot, address) in addresses.iter_mut().zip(&settings.addresses) {
            *slot = Some(*address);
        }
        let config = Config {
            profile: settings.profile,
            addresses,
            fast_open_key: key()?,
            syn_cookies: settings.syn_cookies,
            ..Config::new(settings.addresses[0], device, key()?)
        };
        let memory = HeapStorage::new(settings.sockets, settings.buffers, settings.buffer_bytes);
        Ok(Self {
            stack: Stack::new(memory, config),
            port,
            origin: SystemInstant::now(),
            pace: Pace::new(settings.per_packet),
            counts: DriverCounts::default(),
        })
    }

    /// The time on the stack's clock.
    pub fn now(&self) -> Instant {
        // Zero is the time before anything, for the engine.
        Instant::from_nanos(1_000_000_000) + self.origin.elapsed()
    }

    /// The stack. Call [`work`](Self::work) after any call that may make it send.
    pub fn stack(&mut self) -> &mut Stack<HeapStorage> {
        &mut self.stack
    }

    /// What was counted.
    pub fn counts(&self) -> &DriverCounts {
        &self.counts
    }

    /// Takes what has arrived, does what is due, and sends what wants to leave.
    ///
    /// # Errors
    /// The port is gone.
    pub fn work(&mut self) -> io::Result<Next> {
        if self.pace.is_free() { self.work_fast() } else { self.work_slowly() }
    }

    fn work_fast(&mut self) -> io::Result<Next> {
        let more = self.arrive()?;
        Ok(self.depart(more))
    }

    /// Takes what has arrived and does what is due; whether more may wait.
    fn arrive(&mut self) -> io::Result<bool> {
        let mut more = false;
        for read in 1..=READ_BUDGET {
            if self.receive()?.is_none() {
                break;
            }
            more = read == READ_BUDGET;
        }
        self.stack.on_timeout(self.now());
        Ok(more)
    }

    /// Sends what wants to leave; `more` may have arrived that was not taken.
    fn depart(&mut self, more: bool) -> Next {
        while self.transmit() {}
        let link = self.tend_link();
        let at = if more { Some(self.now()) } else { earlier(self.stack.next_timeout(), link) };
        Next { at, on_packet: true }
    }

    /// One packet at a time, arrivals first.
    fn work_slowly(&mut self) -> io::Result<Next> {
        loop {
            let now = self.now();
            self.stack.on_timeout(now);
            let link = self.tend_link();
            if let Some(until) = self.pace.busy(now) {
                return Ok(Next { at: Some(until), on_packet: false });
            }
            let handled = match self.receive()? {
                Some(segments) => Some(segments),
                None => self.transmit().then_some(1),
            };
            let Some(packets) = handled else {
                self.pace.rest();
                return Ok(Next { at: earlier(self.stack.next_timeout(), link), on_packet: true });
            };
            self.pace.spend(now, packets);
        }
    }

    /// What neighbours are asked and answered; when there will be more of it.
    fn tend_link(&mut self) -> Option<Instant> {
        let next = self.port.on_timeout(self.now());
        if self.port.write_own().is_err() {
            self.counts.refused += 1;
        }
        next
    }

    /// Takes one frame; how many packets it stood for, `None` where none waited.
    fn receive(&mut self) -> io::Result<Option<u32>> {
        let now = self.now();
        let Some(arrived) = self.port.read(now)? else { return Ok(None) };
        self.counts.frames_in += 1;
        // A packet that is dropped has been counted by the stack.
        if let Some(packet) = arrived.packet {
            self.stack.on_packet(now, packet, arrived.verified).ok();
        }
        Ok(Some(arrived.segments))
    }

    /// Sends one frame; whether there was one.
    fn transmit(&mut self) -> bool {
        let now = self.now();
        let Some(packet) = self.stack.poll_transmit(now) else { return false };
        self.counts.frames_out += 1;
        if self.port.write(now, &packet).is_err() {
            // As with a full queue of a network card: TCP sends it again.
            self.counts.refused += 1;
        }
        true
    }

    /// Waits for what `next` names, at most `limit`, or until `wake` can be read.
    ///
    /// # Errors
    /// The port is gone.
    pub fn wait(&self, next: Next, limit: Duration) -> io::Result<()> {
        let until = next.at.map_or(limit, |at| at.since(self.now()).min(limit));
        wait_on(next.on_packet.then(|| self.port.as_fd()), None, until)
    }

    /// Works and waits until `done`, at most for `limit`; whether it came to that.
    ///
    /// # Errors
    /// The port is gone.
    pub fn run_until(
        &mut self,
        limit: Duration,
        mut done: impl FnMut(&mut Stack<HeapStorage>, Instant) -> bool,
    ) -> io::Result<bool> {
        let end = self.now() + limit;
        let is_fast = self.pace.is_free();
        loop {
            let before = (self.counts.frames_in, self.counts.frames_out);
            // What `done` reads is acknowledged with the window that this opens, and what it writes carries the acknowledgement.
            let more = is_fast && self.arrive()?;
            let now = self.now();
            if done(&mut self.stack, now) {
                self.work()?;
                return Ok(true);
            }
            if now >= end {
                self.work()?;
                return Ok(false);
            }
            let next = if is_fast { self.depart(more) } else { self.work()? };
            // What has left may have been answered already.
            if before == (self.counts.frames_in, self.counts.frames_out) {
                self.wait(next, end.since(self.now()))?;
            }
        }
    }

    pub(crate) fn port(&self) -> &Port {
        &self.port
    }
}

/// The earlier of two times, where there are any.
fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    [one, other].into_iter().flatten().min()
}

/// Waits until a descriptor can be read, at most for `limit`.
pub(crate) fn wait_on(port: Option<BorrowedFd<'_>>, wake: Option<BorrowedFd<'_>>, limit: Duration) -> io::Result<()> {
    let timeout = Timespec { tv_sec: limit.as_secs() as _, tv_nsec: limit.subsec_nanos().into() };
    let mut both = [port, wake].into_iter().flatten();
    let result = match (both.next(), both.next()) {
        (Some(one), Some(other)) => {
            let mut fds =
                [PollFd::from_borrowed_fd(one, PollFlags::IN), PollFd::from_borrowed_fd(other, PollFlags::IN)];
            poll(&mut fds, Some(&timeout))
        }
        (Some(one), None) => poll(&mut [PollFd::from_borrowed_fd(one, PollFlags::IN)], Some(&timeout)),
        _ => poll(&mut [], Some(&timeout)),
    };
    match result {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn check(settings: &Settings) -> Result<(), StackError> {
    let wrong = |text: &str| Err(StackError::Setting(text.to_owned()));
    if settings.addresses.is_empty() || settings.addresses.len() > 4 {
        return wrong("a stack has one to four addresses");
    }
    if settings.sockets == 0 || settings.sockets == u16::MAX {
        return wrong("a stack has 1 to 65,534 sockets");
    }
    if !(4..=BUFFERS_MAX).contains(&settings.buffers) {
        return wrong("a pool has 4 to 65,534 buffers");
    }
    if settings.buffer_bytes < 64 {
        return wrong("a packet buffer has at least 64 bytes");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;

    use fullpipe_lab::{Tun, vnet::VNET_LEN};
    use fullpipe_tcp::socket::{Endpoint, SocketOptions};

    use super::*;

    #[test]
    fn what_is_read_at_once_is_answered_once() {
        const WINDOW: usize = 5 * 1448;
        let [near, far] = Tun::pair().unwrap();
        let [here, there] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse::<IpAddr>().unwrap());
        let mut receiver = Driver::new(Port::bare(near, 1500, true), &Settings::new(&[here])).unwrap();
        let mut sender = Driver::new(Port::bare(far, 1500, true), &Settings::new(&[there])).unwrap();
        let options = SocketOptions::from_profile(&Profile::DEFAULT);
        let listener = receiver.stack().listen(None, 80, 1, options).unwrap();
        let now = sender.now();
        let sends = sender.stack().connect(now, None, Endpoint::new(here, 80), options).unwrap();
        for _ in 0..3 {
            sender.work().unwrap();
            receiver.work().unwrap();
        }
        let now = receiver.now();
        let reads = receiver.stack().accept(now, listener).unwrap();
        let now = sender.now();
        assert_eq!(sender.stack().write(now, sends, &[0; WINDOW]), Ok(WINDOW));
        sender.work().unwrap();
        let (before, mut read) = (receiver.counts().frames_out, 0);
        let all = receiver.run_until(Duration::from_secs(20), |stack, now| {
            read += stack.read(now, reads, &mut [0; WINDOW]).unwrap_or(0);
            read == WINDOW
        });
        assert!(all.unwrap());
        assert_eq!(receiver.counts().frames_out - before, 1, "the window is told with the acknowledgement");
    }

    #[test]
    fn what_arrives_while_work_is_done_is_not_slept_over() {
        let [near, far] = Tun::pair().unwrap();
        let address = "192.0.2.1".parse().unwrap();
        let mut driver = Driver::new(Port::bare(near, 1500, true), &Settings::new(&[address])).unwrap();
        let limit = Duration::from_secs(20);
        let start = driver.now();
        let mut asked = false;
        let done = driver.run_until(limit, |stack, _| {
            if !std::mem::replace(&mut asked, true) {
                // It arrives between this look and the sleep; what it is does not matter.
                far.write(&[IoSlice::new(&[0; VNET_LEN]), IoSlice::new(b"packet")]).unwrap();
            }
            stack.counts().packets_in > 0
        });
        assert!(done.unwrap());
        assert!(driver.now() < start + limit, "it slept until the limit");
    }
}
