//! The peer: two smoltcp interfaces in one process and in virtual time, joined by lines that only delay, as its own test
//! `netsim` does it. smoltcp has neither timestamps in force nor SACK here, and its lines have no rate and no queue.

use std::{cell::RefCell, collections::VecDeque, error::Error};

use smoltcp::{
    iface::{Config, Interface, SocketHandle, SocketSet},
    phy::{self, ChecksumCapabilities, DeviceCapabilities, Medium},
    socket::tcp,
    time::{Duration, Instant},
    wire::{HardwareAddress, IpAddress, IpCidr},
};

const PORT: u16 = 5201;
/// Packets longer than this carry data.
const EMPTY: usize = 100;

/// Packets under way in one direction, and when they arrive.
#[derive(Default)]
struct Line {
    packets: RefCell<VecDeque<(Instant, Vec<u8>)>>,
    data_segments: RefCell<u64>,
}

struct Device<'a> {
    out: &'a Line,
    into: &'a Line,
    delay: Duration,
}

struct Sending<'a> {
    line: &'a Line,
    at: Instant,
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
        *self.line.data_segments.borrow_mut() += u64::from(len > EMPTY);
        self.line.packets.borrow_mut().push_back((self.at, packet));
        result
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
        capabilities.max_transmission_unit = 1_500;
        capabilities.medium = Medium::Ip;
        capabilities.checksum = ChecksumCapabilities::ignored();
        capabilities
    }

    fn receive(&mut self, now: Instant) -> Option<(Arrived, Sending<'_>)> {
        let mut packets = self.into.packets.borrow_mut();
        packets.front().filter(|(at, _)| *at <= now)?;
        let (_, packet) = packets.pop_front()?;
        Some((Arrived(packet), Sending { line: self.out, at: now + self.delay }))
    }

    fn transmit(&mut self, now: Instant) -> Option<Sending<'_>> {
        Some(Sending { line: self.out, at: now + self.delay })
    }
}

impl Line {
    fn next(&self) -> Option<Instant> {
        self.packets.borrow().front().map(|(at, _)| *at)
    }
}

struct Host<'a> {
    device: Device<'a>,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
}

impl<'a> Host<'a> {
    fn new(address: IpAddress, out: &'a Line, into: &'a Line, delay: Duration, buffer: usize) -> Result<Self, String> {
        let mut device = Device { out, into, delay };
        let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut device, Instant::ZERO);
        let mut is_full = false;
        interface.update_ip_addrs(|all| is_full = all.push(IpCidr::new(address, 24)).is_err());
        if is_full {
            return Err("no room for an address".to_owned());
        }
        let memory = || tcp::SocketBuffer::new(vec![0; buffer]);
        let mut socket = tcp::Socket::new(memory(), memory());
        socket.set_congestion_control(tcp::CongestionControl::Reno);
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        Ok(Self { device, interface, sockets, socket })
    }

    fn poll(&mut self, now: Instant) -> &mut tcp::Socket<'static> {
        self.interface.poll(now, &mut self.device, &mut self.sockets);
        self.sockets.get_mut(self.socket)
    }
}

/// Moves `bytes`, and returns how many segments with data left the sender.
pub(crate) fn transfer(bytes: u64, rtt_us: u64, buffer: usize) -> Result<u64, Box<dyn Error>> {
    let (there, back) = (Line::default(), Line::default());
    let delay = Duration::from_micros(rtt_us / 2);
    let (from, to) = (IpAddress::v4(10, 80, 0, 1), IpAddress::v4(10, 80, 0, 2));
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
    let sent = *there.data_segments.borrow();
    Ok(sent)
}
