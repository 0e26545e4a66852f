//! NetBurner's calls (`include/fullpipe.h`, which tells what each does and why symbols carry a prefix).
//!
//! One stack a process, as on a device. What a call means is in `sockets`; here pointers become slices.
#![expect(unsafe_code, reason = "C calls these functions and hands over pointers")]

use std::{
    ffi::{CStr, c_char, c_int},
    net::Ipv4Addr,
    slice,
};

use fullpipe_tcp::wire::ethernet::Mac;

use crate::sockets::{self, Call, Carries, Code};

/// As C has it.
fn number(call: Call) -> c_int {
    call.unwrap_or_else(Code::number)
}

/// # Safety
/// `text` is null or a C string.
unsafe fn text<'a>(text: *const c_char) -> &'a str {
    // SAFETY: the caller's promise.
    if text.is_null() { "" } else { unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("") }
}

/// # Safety
/// `data` points to `size` bytes, or is null.
unsafe fn bytes<'a>(data: *const c_char, size: c_int) -> &'a [u8] {
    let len = usize::try_from(size).unwrap_or(0);
    // SAFETY: the caller's promise.
    if data.is_null() { &[] } else { unsafe { slice::from_raw_parts(data.cast(), len) } }
}

/// # Safety
/// `data` points to `size` bytes that nobody else uses, or is null.
unsafe fn bytes_mut<'a>(data: *mut c_char, size: c_int) -> &'a mut [u8] {
    let len = usize::try_from(size).unwrap_or(0);
    // SAFETY: the caller's promise.
    if data.is_null() { &mut [] } else { unsafe { slice::from_raw_parts_mut(data.cast(), len) } }
}

/// Starts the stack.
///
/// # Safety
/// The pointers are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fullpipe_start(
    device: *const c_char,
    own: *const c_char,
    kernel: *const c_char,
    prefix: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let (device, own, kernel) = unsafe { (text(device), text(own), text(kernel)) };
    number(sockets::start(device, own, kernel, prefix, Carries::Packets))
}

/// Starts the stack as a station on Ethernet.
///
/// # Safety
/// The pointers are null or C strings; `mac` is null or points to six bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fullpipe_start_ethernet(
    device: *const c_char,
    mac: *const u8,
    own: *const c_char,
    kernel: *const c_char,
    prefix: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let (device, own, kernel) = unsafe { (text(device), text(own), text(kernel)) };
    // SAFETY: the caller's promise.
    let mac = if mac.is_null() { [0; 6] } else { unsafe { *mac.cast::<[u8; 6]>() } };
    number(sockets::start(device, own, kernel, prefix, Carries::Frames(Mac(mac))))
}

/// Stops the stack.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_stop(ticks: u32) {
    sockets::stop(ticks);
}

/// An address as a number; zero for what is none.
///
/// # Safety
/// `address` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fullpipe_ascii_to_ip(address: *const c_char) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { text(address) }.parse().map_or(0, Ipv4Addr::to_bits)
}

/// Opens a connection.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_connect(address: u32, local_port: u16, remote_port: u16, timeout_ticks: u32) -> c_int {
    number(sockets::connect(address, local_port, remote_port, timeout_ticks))
}

/// Listens.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_listen(_address: u32, port: u16, max_pending: u8) -> c_int {
    // The stack has one address.
    number(sockets::listen(port, max_pending))
}

/// Takes the next connection.
///
/// # Safety
/// The pointers are null or point to numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fullpipe_accept(
    listener: c_int,
    address: *mut u32,
    port: *mut u16,
    timeout_ticks: u16,
) -> c_int {
    number(sockets::accept(listener, timeout_ticks).map(|(fd, peer)| {
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(address) = address.as_mut() {
                *address = peer.0;
            }
            if let Some(port) = port.as_mut() {
                *port = peer.1;
            }
        }
        fd
    }))
}

/// Reads what has arrived.
///
/// # Safety
/// `buffer` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fullpipe_read(fd: c_int, buffer: *mut c_char, size: c_int) -> c_int {
    // SAFETY: the caller's promise.
    number(sockets::read(fd, unsafe { bytes_mut(buffer, size) }, 0))
}

/// The same, for a time.
///
/// # Safety
/// `buffer` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fullpipe_read_with_timeout(fd: c_int, buffer: *mut c_char, size: c_int, ticks: u32) -> c_int {
    // SAFETY: the caller's promise.
    number(sockets::read(fd, unsafe { bytes_mut(buffer, size) }, ticks))
}

/// Writes what there is room for.
///
/// # Safety
/// `data` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fullpipe_write(fd: c_int, data: *const c_char, size: c_int) -> c_int {
    // SAFETY: the caller's promise.
    number(sockets::write(fd, unsafe { bytes(data, size) }))
}

/// Writes all of it.
///
/// # Safety
/// `data` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fullpipe_writeall(fd: c_int, data: *const c_char, size: c_int) -> c_int {
    // SAFETY: the caller's promise.
    number(sockets::write_all(fd, unsafe { bytes(data, size) }))
}

/// Lets go of a socket.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_close(fd: c_int) -> c_int {
    number(sockets::close(fd))
}

/// Turns options on.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_setsockoption(fd: c_int, options: c_int) -> c_int {
    number(sockets::set_flags(fd, options, true))
}

/// Turns options off.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_clrsockoption(fd: c_int, options: c_int) -> c_int {
    number(sockets::set_flags(fd, options, false))
}

/// The options that are on.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_getsockoption(fd: c_int) -> c_int {
    number(sockets::flags(fd))
}

/// Sets the receive budget.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_set_rx_buffers(fd: c_int, buffers: c_int) -> c_int {
    number(sockets::set_budget(fd, buffers, |budgets| &mut budgets.receive))
}

/// Sets the transmit budget.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_set_tx_buffers(fd: c_int, buffers: c_int) -> c_int {
    number(sockets::set_budget(fd, buffers, |budgets| &mut budgets.transmit))
}

/// Sets the out-of-order budget.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_set_out_of_order_buffers(fd: c_int, buffers: c_int) -> c_int {
    number(sockets::set_budget(fd, buffers, |budgets| &mut budgets.out_of_order))
}

/// Sets the un-acknowledged budget.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_set_unack_buffers(fd: c_int, buffers: c_int) -> c_int {
    number(sockets::set_budget(fd, buffers, |budgets| &mut budgets.unacknowledged))
}

/// Sets for how long data may be unacknowledged.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_set_user_timeout(fd: c_int, ticks: u32) -> c_int {
    number(sockets::set_user_timeout(fd, ticks))
}

/// Sets when a silent peer is probed and given up.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_set_keepalive(fd: c_int, idle_ticks: u32, interval_ticks: u32, probes: u8) -> c_int {
    number(sockets::set_keepalive(fd, [idle_ticks, interval_ticks], probes))
}

/// Free buffers of the pool.
#[unsafe(no_mangle)]
pub extern "C" fn fullpipe_free_count() -> u16 {
    sockets::free_count()
}
