//! The peer: smoltcp's own simulator, its test `netsim` (0.13), written once more: two interfaces on Ethernet in one process and in
//! virtual time, each behind a tracer, packets on heaps, and a random number for each packet. smoltcp has neither timestamps nor SACK
//! in force there. Its lines only delay, so that a whole window arrives at one moment and one poll takes it; with the rate and
//! the queue of the path that the simulator has, packets arrive one by one.
//!
//! Two programs have it: the bench itself, which compiles it as it compiles the simulator, and `xtask/netsim`, which compiles it as
//! smoltcp's own package does. What they do differently is theirs: [`Chance`], [`prepare`] and [`trace`].

use std::{
    cell::{Cell, RefCell},
    cmp::Reverse,
    collections::BinaryHeap,
    error::Error,
};

use smoltcp::{
    iface::{Config, Interface, SocketHandle, SocketSet},
    phy::{self, ChecksumCapabilities, DeviceCapabilities, Medium, Tracer},
    socket::tcp,
    time::{Duration, Instant},
    wire::{EthernetAddress, HardwareAddress, IpCidr, Ipv4Address},
};

use super::{Chance, prepare, trace};

const PORT: u16 = 5201;
/// Packets longer than this carry data.
const EMPTY: usize = 100;

/// When it arrives, its number, and its bytes.
type Packet = (Instant, u64, Vec<u8>);

/// Packets under way in one direction, by when they arrive and in the order in which they were sent.
struct Line {
    packets: RefCell<BinaryHeap<Reverse<Packet>>>,
    chance: RefCell<Chance>,
    sent: Cell<u64>,
    data_segments: Cell<u64>,
    /// Bits a second, and the packets of 1,500 B that wait at the most, where the line has a rate.
    limit: Option<(u64, u64)>,
    /// When it has sent what it was given.
    free: Cell<Instant>,
}

struct Device<'a> {
    out: &'a Line,
    into: &'a Line,
    delay: Duration,
}

struct Sending<'a> {
    line: &'a Line,
    now: Instant,
    delay: Duration,
}

struct Arrived(Vec<u8>);

impl phy::RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(&self.0)
    }
}

impl phy::TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, fill: F) -> R {
        let mut packet = vec![0; len];
        let result = fill(&mut packet);
        self.line.take(packet, self.now, self.delay);
        result
    }
}

impl Line {
    fn new(limit: Option<(u64, u64)>, seed: u64) -> Self {
        Self {
            packets: RefCell::default(),
            chance: RefCell::new(Chance::new(seed)),
            sent: Cell::new(0),
            data_segments: Cell::new(0),
            limit,
            free: Cell::new(Instant::ZERO),
        }
    }

    fn take(&self, packet: Vec<u8>, now: Instant, delay: Duration) {
        self.data_segments.set(self.data_segments.get() + u64::from(packet.len() > EMPTY));
        // The test asks for each packet, also where nothing is to be lost.
        if self.chance.borrow_mut().chance(0.0) {
            return;
        }
        let Some(left) = self.left(now, packet.len()) else { return };
        let number = self.sent.replace(self.sent.get() + 1);
        self.packets.borrow_mut().push(Reverse((left + delay, number, packet)));
    }

    /// When a packet that comes now has been sent; `None` where the queue is full.
    fn left(&self, now: Instant, len: usize) -> Option<Instant> {
        let Some((bps, most)) = self.limit else { return Some(now) };
        let takes = |bytes: u64| Duration::from_micros(bytes * 8_000_000 / bps);
        let begin = self.free.get().max(now);
        if begin - now > takes(most * 1_500) {
            return None;
        }
        self.free.set(begin + takes(len as u64));
        Some(self.free.get())
    }

    fn next(&self) -> Option<Instant> {
        self.packets.borrow().peek().map(|Reverse((at, ..))| *at)
    }
}

impl phy::Device for Device<'_> {
    type RxToken<'t>
        = Arrived
    where
        Self: 't;
    type TxToken<'t>
        = Sending<'t>
    where
        Self: 't;

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.max_transmission_unit = 1_514;
        capabilities.medium = Medium::Ethernet;
        capabilities.checksum = ChecksumCapabilities::ignored();
        capabilities
    }

    fn receive(&mut self, now: Instant) -> Option<(Arrived, Sending<'_>)> {
        self.into.next().filter(|at| *at <= now)?;
        let Reverse((_, _, packet)) = self.into.packets.borrow_mut().pop()?;
        Some((Arrived(packet), Sending { line: self.out, now, delay: self.delay }))
    }

    fn transmit(&mut self, now: Instant) -> Option<Sending<'_>> {
        Some(Sending { line: self.out, now, delay: self.delay })
    }
}

struct Host<'a> {
    device: Tracer<Device<'a>>,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
}

impl<'a> Host<'a> {
    fn new(
        address: Ipv4Address,
        out: &'a Line,
        into: &'a Line,
        delay: Duration,
        buffer: usize,
    ) -> Result<Self, String> {
        let mut device = Tracer::new(Device { out, into, delay }, |_, packet| trace(&packet));
        let hardware = HardwareAddress::Ethernet(EthernetAddress([2, 0, 0, 0, 0, address.octets()[3]]));
        let mut interface = Interface::new(Config::new(hardware), &mut device, Instant::ZERO);
        let mut is_full = false;
        interface.update_ip_addrs(|all| is_full = all.push(IpCidr::new(address.into(), 24)).is_err());
        if is_full {
            return Err("no room for an address".to_owned());
        }
        let memory = || tcp::SocketBuffer::new(vec![0; buffer]);
        let mut socket = tcp::Socket::new(memory(), memory());
        prepare(&mut socket);
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        Ok(Self { device, interface, sockets, socket })
    }

    fn poll(&mut self, now: Instant) -> &mut tcp::Socket<'static> {
        self.interface.poll(now, &mut self.device, &mut self.sockets);
        self.sockets.get_mut(self.socket)
    }
}

/// Moves `bytes` over lines with that limit of rate and queue; how many segments with data left the sender, and in what time; s.
pub(crate) fn transfer(
    bytes: u64,
    rtt_us: u64,
    buffer: usize,
    limit: Option<(u64, u64)>,
) -> Result<(u64, f64), Box<dyn Error>> {
    let (there, back) = (Line::new(limit, 0), Line::new(limit, 1));
    let delay = Duration::from_micros(rtt_us / 2);
    let (from, to) = (Ipv4Address::new(10, 80, 0, 1), Ipv4Address::new(10, 80, 0, 2));
    let mut sender = Host::new(from, &there, &back, delay, buffer)?;
    let mut receiver = Host::new(to, &back, &there, delay, buffer)?;
    receiver.sockets.get_mut::<tcp::Socket<'_>>(receiver.socket).listen(PORT)?;
    let socket = sender.sockets.get_mut::<tcp::Socket<'_>>(sender.socket);
    socket.connect(sender.interface.context(), (to, PORT), 40_000)?;
    let (mut now, mut read) = (Instant::ZERO, 0);
    while read < bytes {
        let socket = receiver.poll(now);
        while socket.can_recv() {
            read += socket.recv(|data| (data.len(), data.len()))? as u64;
        }
        let socket = sender.poll(now);
        while socket.can_send() {
            socket.send(|room| (room.len(), ()))?;
        }
        let own = [
            sender.interface.poll_at(now, &sender.sockets),
            receiver.interface.poll_at(now, &receiver.sockets),
            there.next(),
            back.next(),
        ];
        now = now.max(own.into_iter().flatten().min().ok_or("nothing will ever happen")?);
    }
    Ok((there.data_segments.get(), now.total_micros() as f64 / 1e6))
}
