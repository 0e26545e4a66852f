//! The same application with smoltcp.
#![no_std]
#![no_main]

use fullpipe_size::{BUFFER_SIZE, BUFFERS, SOCKETS, now_ns, random, receive, send, sent};
use smoltcp::{
    iface::{Config, Interface, SocketSet, SocketStorage},
    phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken},
    socket::tcp::{CongestionControl, Socket, SocketBuffer},
    time::Instant,
    wire::{HardwareAddress, IpAddress, IpCidr, Ipv4Address},
};

struct Board;
struct Received([u8; BUFFER_SIZE], usize);
struct Sending;

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0[..self.1])
    }
}

impl TxToken for Sending {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = [0; BUFFER_SIZE];
        let result = f(&mut packet[..len]);
        send(0, &packet[..len]);
        sent(len);
        result
    }
}

impl Device for Board {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sending;

    fn receive(&mut self, _: Instant) -> Option<(Received, Sending)> {
        let mut packet = [0; BUFFER_SIZE];
        let len = receive(&mut packet);
        (len > 0).then_some((Received(packet, len), Sending))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending> {
        Some(Sending)
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1500;
        capabilities
    }
}

/// The same memory for data as the other application has in its pool.
const HALF: usize = BUFFERS * BUFFER_SIZE / SOCKETS / 2;
static mut RECEIVE: [[u8; HALF]; SOCKETS] = [[0; HALF]; SOCKETS];
static mut TRANSMIT: [[u8; HALF]; SOCKETS] = [[0; HALF]; SOCKETS];
static mut STORAGE: [SocketStorage<'static>; SOCKETS] = [SocketStorage::EMPTY; SOCKETS];

fn now() -> Instant {
    Instant::from_micros((now_ns() / 1_000) as i64)
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    // SAFETY: these are the only references, and `main` runs once.
    let (receive, transmit, storage) =
        unsafe { (&mut *(&raw mut RECEIVE), &mut *(&raw mut TRANSMIT), &mut *(&raw mut STORAGE)) };
    let mut config = Config::new(HardwareAddress::Ip);
    config.random_seed = random();
    let mut board = Board;
    let mut interface = Interface::new(config, &mut board, now());
    interface.update_ip_addrs(|addresses| {
        let _ = addresses.push(IpCidr::new(IpAddress::v4(192, 0, 2, 1), 24));
    });
    let mut sockets = SocketSet::new(&mut storage[..]);
    for (receive, transmit) in receive.iter_mut().zip(transmit) {
        let mut socket = Socket::new(SocketBuffer::new(&mut receive[..]), SocketBuffer::new(&mut transmit[..]));
        socket.set_congestion_control(CongestionControl::Reno);
        let _ = socket.listen(7);
        sockets.add(socket);
    }
    let first = sockets.iter().next().map(|(handle, _)| handle);
    if let Some(handle) = first {
        let socket = sockets.get_mut::<Socket<'_>>(handle);
        socket.abort();
        let host = (IpAddress::Ipv4(Ipv4Address::new(192, 0, 2, 2)), 80);
        let _ = socket.connect(interface.context(), host, 49_152);
        let _ = socket.send_slice(b"hello");
    }
    let mut data = [0; BUFFER_SIZE];
    loop {
        interface.poll(now(), &mut board, &mut sockets);
        for (_, socket) in sockets.iter_mut() {
            let smoltcp::socket::Socket::Tcp(socket) = socket;
            if let Ok(len) = socket.recv_slice(&mut data) {
                let _ = socket.send_slice(&data[..len]);
            } else if !socket.may_recv() {
                socket.close();
            }
            if !socket.is_open() {
                let _ = socket.listen(7);
            }
        }
    }
}
