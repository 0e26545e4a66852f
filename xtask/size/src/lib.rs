//! The board that the weighed applications run on: made of fixed addresses, and never run.
#![no_std]

use core::ptr::{read_volatile, write_volatile};

/// Sockets of each application.
pub const SOCKETS: usize = 4;
/// Packet buffers of the whole application.
pub const BUFFERS: usize = 32;
/// Bytes of each.
pub const BUFFER_SIZE: usize = 1548;

const CLOCK: *const u64 = 0x4000_0000 as *const u64;
const RANDOM: *const u64 = 0x4000_0008 as *const u64;
const LENGTH: *mut u32 = 0x4000_0010 as *mut u32;
const FRAME: *mut u8 = 0x4000_1000 as *mut u8;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// The time in nanoseconds.
pub fn now_ns() -> u64 {
    // SAFETY: the board's clock register; nothing else is there.
    unsafe { read_volatile(CLOCK) }
}

/// A random number.
pub fn random() -> u64 {
    // SAFETY: the board's noise register; nothing else is there.
    unsafe { read_volatile(RANDOM) }
}

/// Takes the packet that has arrived, if one has.
pub fn receive(packet: &mut [u8]) -> usize {
    // SAFETY: the board's length register; nothing else is there.
    let len = (unsafe { read_volatile(LENGTH) } as usize).min(packet.len());
    for (at, byte) in packet[..len].iter_mut().enumerate() {
        // SAFETY: the board's packet memory is longer than any packet.
        *byte = unsafe { read_volatile(FRAME.add(at)) };
    }
    len
}

/// Sends a packet that is in two parts.
pub fn send(offset: usize, part: &[u8]) {
    for (at, byte) in part.iter().enumerate() {
        // SAFETY: the board's packet memory is longer than any packet.
        unsafe { write_volatile(FRAME.add(offset + at), *byte) };
    }
}

/// Tells the board that the packet is complete.
pub fn sent(len: usize) {
    // SAFETY: the board's length register; nothing else is there.
    unsafe { write_volatile(LENGTH, len as u32) };
}
