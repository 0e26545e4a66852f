//! Echoes on one port and says hello to another host, with this workspace's engine.
#![no_std]
#![no_main]

use core::net::{IpAddr, Ipv4Addr};

use fullpipe_size::{BUFFER_SIZE, BUFFERS, SOCKETS, now_ns, random, receive, send, sent};
use fullpipe_tcp::{
    SecretKey,
    profile::Profile,
    socket::{Endpoint, SocketOptions},
    stack::{Config, Device, News, Stack, StackMemory},
};
use fullpipe_units::Instant;

#[cfg(feature = "everything")]
const PROFILE: Profile = Profile::DEFAULT;
#[cfg(not(feature = "everything"))]
const PROFILE: Profile = Profile::NETBURNER;

static mut MEMORY: StackMemory<SOCKETS, BUFFERS, BUFFER_SIZE> = StackMemory::new();

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    // SAFETY: this is the only reference, and `main` runs once.
    let memory = unsafe { &mut *(&raw mut MEMORY) };
    let mut key = [0; 16];
    key[..8].copy_from_slice(&random().to_le_bytes());
    key[8..].copy_from_slice(&random().to_le_bytes());
    let config = Config {
        profile: PROFILE,
        ..Config::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), Device::plain(1500), SecretKey(key))
    };
    let options = SocketOptions::from_profile(&config.profile);
    let mut stack = Stack::new(memory, config);
    let listener = stack.listen(None, 7, 2, options);
    let host = Endpoint::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 80);
    if let Ok(hello) = stack.connect(Instant::from_nanos(now_ns()), None, host, options) {
        let _ = stack.write(Instant::from_nanos(now_ns()), hello, b"hello");
        let _ = stack.shutdown_write(Instant::from_nanos(now_ns()), hello);
    }
    let mut packet = [0; BUFFER_SIZE];
    loop {
        let now = Instant::from_nanos(now_ns());
        let len = receive(&mut packet);
        let _ = stack.on_packet(now, &packet[..len], false);
        stack.on_timeout(now);
        if let Ok(listener) = listener {
            let _ = stack.accept(now, listener);
        }
        while let Some(News::Socket(id, _)) = stack.poll_news() {
            match stack.read(now, id, &mut packet) {
                Ok(0) => _ = stack.close(now, id),
                Ok(len) => _ = stack.write(now, id, &packet[..len]),
                Err(_) => {}
            }
        }
        while let Some(packet) = stack.poll_transmit(now) {
            let mut len = packet.headers().len();
            send(0, packet.headers());
            for piece in packet.data() {
                send(len, piece);
                len += piece.len();
            }
            sent(len);
        }
    }
}
