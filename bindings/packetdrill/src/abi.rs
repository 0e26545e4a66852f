//! packetdrill's table of functions (its `packetdrill.h`), and nothing else that C sees. All `unsafe` of this crate is
//! here: pointers become slices and numbers, and results go back as C has them.

#![expect(unsafe_code, reason = "C calls these functions and hands over pointers")]

use std::{
    ffi::{CStr, c_char, c_int, c_longlong, c_ulong, c_void},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    slice,
};

use libc::{epoll_event, iovec, loff_t, msghdr, nfds_t, pollfd, sockaddr, socklen_t, ssize_t, timeval, useconds_t};

use crate::{
    calls::{self, File, Outcome, ReadHow, SocketFile, WriteHow},
    flags::Flags,
    host, options, preload,
    ready::{self, Epoll, Event},
    times::Stamp,
};

/// packetdrill sleeps until this long before an event and spins from there.
const SPIN_US: u64 = 20;

/// How a shell line begins that changes flags under way.
const SETTINGS: &str = ": fullpipe ";

pub(crate) type Fd = c_int;
type Userdata = *mut c_void;

/// `struct packetdrill_interface`, in its order.
#[repr(C)]
#[derive(Debug)]
pub struct Interface {
    pub(crate) userdata: Userdata,
    pub(crate) free: extern "C" fn(Userdata),
    pub(crate) socket: extern "C" fn(Userdata, c_int, c_int, c_int) -> c_int,
    pub(crate) bind: unsafe extern "C" fn(Userdata, Fd, *const sockaddr, socklen_t) -> c_int,
    pub(crate) listen: extern "C" fn(Userdata, Fd, c_int) -> c_int,
    pub(crate) accept: unsafe extern "C" fn(Userdata, Fd, *mut sockaddr, *mut socklen_t) -> c_int,
    pub(crate) connect: unsafe extern "C" fn(Userdata, Fd, *const sockaddr, socklen_t) -> c_int,
    pub(crate) read: unsafe extern "C" fn(Userdata, Fd, *mut c_void, usize) -> ssize_t,
    pub(crate) readv: unsafe extern "C" fn(Userdata, Fd, *const iovec, c_int) -> ssize_t,
    pub(crate) recv: unsafe extern "C" fn(Userdata, Fd, *mut c_void, usize, c_int) -> ssize_t,
    pub(crate) recvfrom:
        unsafe extern "C" fn(Userdata, Fd, *mut c_void, usize, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t,
    pub(crate) recvmsg: unsafe extern "C" fn(Userdata, Fd, *mut msghdr, c_int) -> ssize_t,
    pub(crate) write: unsafe extern "C" fn(Userdata, Fd, *const c_void, usize) -> ssize_t,
    pub(crate) writev: unsafe extern "C" fn(Userdata, Fd, *const iovec, c_int) -> ssize_t,
    pub(crate) send: unsafe extern "C" fn(Userdata, Fd, *const c_void, usize, c_int) -> ssize_t,
    pub(crate) sendto:
        unsafe extern "C" fn(Userdata, Fd, *const c_void, usize, c_int, *const sockaddr, socklen_t) -> ssize_t,
    pub(crate) sendmsg: unsafe extern "C" fn(Userdata, Fd, *const msghdr, c_int) -> ssize_t,
    pub(crate) fcntl: extern "C" fn(Userdata, Fd, c_int, c_int) -> c_int,
    pub(crate) ioctl: unsafe extern "C" fn(Userdata, Fd, c_ulong, *mut c_int) -> c_int,
    pub(crate) close: extern "C" fn(Userdata, Fd) -> c_int,
    pub(crate) shutdown: extern "C" fn(Userdata, Fd, c_int) -> c_int,
    pub(crate) getsockopt: unsafe extern "C" fn(Userdata, Fd, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int,
    pub(crate) setsockopt: unsafe extern "C" fn(Userdata, Fd, c_int, c_int, *const c_void, socklen_t) -> c_int,
    pub(crate) poll: unsafe extern "C" fn(Userdata, *mut pollfd, nfds_t, c_int) -> c_int,
    pub(crate) netdev_send: unsafe extern "C" fn(Userdata, *const c_void, usize) -> c_int,
    pub(crate) netdev_receive: unsafe extern "C" fn(Userdata, *mut c_void, *mut usize, *mut c_longlong) -> c_int,
    pub(crate) usleep: extern "C" fn(Userdata, useconds_t) -> c_int,
    pub(crate) gettimeofday: unsafe extern "C" fn(Userdata, *mut timeval, *mut c_void) -> c_int,
    pub(crate) epoll_create: extern "C" fn(Userdata, c_int) -> c_int,
    pub(crate) epoll_ctl: unsafe extern "C" fn(Userdata, Fd, c_int, Fd, *mut epoll_event) -> c_int,
    pub(crate) epoll_wait: unsafe extern "C" fn(Userdata, Fd, *mut epoll_event, c_int, c_int) -> c_int,
    pub(crate) pipe: extern "C" fn(Userdata, *mut c_int) -> c_int,
    pub(crate) splice: extern "C" fn(Userdata, Fd, *mut loff_t, Fd, *mut loff_t, usize, u32) -> c_int,
}

/// Fills packetdrill's table and makes the host that `flags` describe.
///
/// # Safety
/// `flags` is null or a C string, and `interface` points to packetdrill's structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(flags: *const c_char, interface: *mut Interface) {
    // SAFETY: the caller's promise.
    let text = if flags.is_null() { "" } else { unsafe { CStr::from_ptr(flags) }.to_str().unwrap_or("?") };
    match Flags::parse(text) {
        Ok(flags) => host::start(flags),
        Err(error) => {
            eprintln!("fullpipe: {error}");
            std::process::exit(2);
        }
    }
    // SAFETY: the caller's promise; the structure may hold anything before.
    unsafe { interface.write(INTERFACE) };
}

pub(crate) const INTERFACE: Interface = Interface {
    userdata: std::ptr::null_mut(),
    free,
    socket,
    bind,
    listen,
    accept,
    connect,
    read,
    readv,
    recv,
    recvfrom,
    recvmsg,
    write,
    writev,
    send,
    sendto,
    sendmsg,
    fcntl,
    ioctl,
    close,
    shutdown,
    getsockopt: interface_getsockopt,
    setsockopt,
    poll,
    netdev_send,
    netdev_receive,
    usleep,
    gettimeofday,
    epoll_create,
    epoll_ctl,
    epoll_wait,
    pipe,
    splice,
};

/// As C has it: a number, or -1 and `errno`.
fn result(outcome: Outcome) -> i64 {
    outcome.unwrap_or_else(|errno| {
        // SAFETY: the C library's variable of this thread.
        unsafe { *libc::__errno_location() = errno };
        -1
    })
}

pub(crate) fn result_int(outcome: Outcome) -> c_int {
    result(outcome) as c_int
}

/// A descriptor that is real, so that packetdrill can close it, and good for nothing else.
pub(crate) fn new_fd() -> Fd {
    // SAFETY: the name is a C string.
    unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) }
}

/// # Safety
/// `data` points to `len` bytes, or `len` is zero.
unsafe fn bytes<'a>(data: *const c_void, len: usize) -> &'a [u8] {
    // SAFETY: the caller's promise.
    if data.is_null() { &[] } else { unsafe { slice::from_raw_parts(data.cast(), len) } }
}

/// # Safety
/// `data` points to `len` bytes that nobody else uses, or `len` is zero.
unsafe fn bytes_mut<'a>(data: *mut c_void, len: usize) -> &'a mut [u8] {
    // SAFETY: the caller's promise.
    if data.is_null() { &mut [] } else { unsafe { slice::from_raw_parts_mut(data.cast(), len) } }
}

/// # Safety
/// `address` points to `len` bytes, or is null.
unsafe fn family_at(address: *const sockaddr, len: socklen_t) -> Option<c_int> {
    // SAFETY: the caller's promise.
    let data = unsafe { bytes(address.cast(), len as usize) };
    data.first_chunk().map(|family| c_int::from(u16::from_ne_bytes(*family)))
}

/// # Safety
/// `address` points to `len` bytes, or is null.
pub(crate) unsafe fn address_at(address: *const sockaddr, len: socklen_t) -> Result<SocketAddr, i32> {
    // SAFETY: the caller's promise.
    let data = unsafe { bytes(address.cast(), len as usize) };
    // SAFETY: the caller's promise.
    let family = unsafe { family_at(address, len) };
    let port = data.get(2..4).map_or(0, |port| u16::from_be_bytes([port[0], port[1]]));
    match (family, data.get(4..8), data.get(8..24)) {
        (Some(libc::AF_INET), Some(v4), _) => {
            Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(v4[0], v4[1], v4[2], v4[3])), port))
        }
        (Some(libc::AF_INET6), _, Some(v6)) => {
            let mut octets = [0; 16];
            octets.copy_from_slice(v6);
            Ok(SocketAddr::new(IpAddr::V6(Ipv6Addr::from(octets)), port))
        }
        (Some(_), ..) => Err(libc::EAFNOSUPPORT),
        _ => Err(libc::EINVAL),
    }
}

/// # Safety
/// `out` points to as many bytes as `len` says, or either is null.
pub(crate) unsafe fn write_address(address: SocketAddr, out: *mut sockaddr, len: *mut socklen_t) {
    if out.is_null() || len.is_null() {
        return;
    }
    let mut data = vec![0_u8; 4];
    data[2..4].copy_from_slice(&address.port().to_be_bytes());
    let family = match address.ip() {
        IpAddr::V4(v4) => {
            data.extend(v4.octets());
            data.extend([0; 8]);
            libc::AF_INET
        }
        IpAddr::V6(v6) => {
            data.extend([0; 4]);
            data.extend(v6.octets());
            data.extend([0; 4]);
            libc::AF_INET6
        }
    };
    data[..2].copy_from_slice(&(family as u16).to_ne_bytes());
    // SAFETY: the caller's promise.
    unsafe {
        let room = bytes_mut(out.cast(), *len as usize);
        let fits = room.len().min(data.len());
        room[..fits].copy_from_slice(&data[..fits]);
        *len = data.len() as socklen_t;
    }
}

/// Reads into parts one after the other.
///
/// # Safety
/// `parts` points to `count` parts, each valid and nobody else's.
unsafe fn read_parts(fd: Fd, parts: *const iovec, count: usize, flags: c_int) -> Outcome {
    // SAFETY: the caller's promise.
    let parts = if parts.is_null() { &[] } else { unsafe { slice::from_raw_parts(parts, count) } };
    let mut data = vec![0; parts.iter().map(|part| part.iov_len).sum()];
    let len = calls::read(host::hold(), fd, &mut data, ReadHow { flags })?;
    let mut rest = &data[..usize::try_from(len).unwrap_or(0).min(data.len())];
    for part in parts {
        // SAFETY: the caller's promise.
        let room = unsafe { bytes_mut(part.iov_base, part.iov_len) };
        let fits = rest.len().min(room.len());
        room[..fits].copy_from_slice(&rest[..fits]);
        rest = &rest[fits..];
    }
    Ok(len)
}

/// Writes parts as one.
///
/// # Safety
/// `parts` points to `count` valid parts.
unsafe fn write_parts(fd: Fd, parts: *const iovec, count: usize, flags: c_int, peer: Option<SocketAddr>) -> Outcome {
    // SAFETY: the caller's promise.
    let parts = if parts.is_null() { &[] } else { unsafe { slice::from_raw_parts(parts, count) } };
    let gather = |parts: &[iovec]| -> Vec<u8> {
        let mut data = Vec::new();
        for part in parts {
            // SAFETY: the caller's promise.
            data.extend_from_slice(unsafe { bytes(part.iov_base, part.iov_len) });
        }
        data
    };
    if flags & libc::MSG_ZEROCOPY == 0 || parts.len() <= MOST_PIECES {
        return calls::write_to(host::hold(), fd, &gather(parts), WriteHow { flags }, peer);
    }
    // Pages that are not copied end a packet of Linux's when it holds so many of them.
    let last = (parts.len() - 1) / MOST_PIECES;
    let mut taken = 0;
    for (at, pieces) in parts.chunks(MOST_PIECES).enumerate() {
        let flags = if at == last { flags } else { (flags & !libc::MSG_ZEROCOPY) | libc::MSG_EOR };
        let data = gather(pieces);
        match calls::write_to(host::hold(), fd, &data, WriteHow { flags }, peer) {
            Ok(len) => {
                taken += len;
                if (len as usize) < data.len() {
                    break;
                }
            }
            Err(_) if taken > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(taken)
}

/// `MAX_SKB_FRAGS`.
const MOST_PIECES: usize = 17;

extern "C" fn free(_: Userdata) {
    host::stop();
}

extern "C" fn socket(_: Userdata, _domain: c_int, kind: c_int, _protocol: c_int) -> c_int {
    let is_nonblocking = kind & libc::SOCK_NONBLOCK != 0;
    result_int(calls::add(&mut host::hold(), new_fd(), |host| {
        let mut file = SocketFile::new(host);
        file.is_nonblocking = is_nonblocking;
        File::Socket(Box::new(file))
    }))
}

unsafe extern "C" fn bind(_: Userdata, fd: Fd, address: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: packetdrill's promise, as the system call has it.
    let address = unsafe { address_at(address, len) };
    result_int(address.and_then(|address| calls::bind(&mut host::hold(), fd, address)))
}

extern "C" fn listen(_: Userdata, fd: Fd, backlog: c_int) -> c_int {
    result_int(calls::listen(&mut host::hold(), fd, backlog))
}

unsafe extern "C" fn accept(_: Userdata, fd: Fd, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    result_int(calls::accept(host::hold(), fd, new_fd).map(|(child, peer)| {
        // SAFETY: packetdrill's promise, as the system call has it.
        unsafe { write_address(peer, address, len) };
        i64::from(child)
    }))
}

unsafe extern "C" fn connect(_: Userdata, fd: Fd, address: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: packetdrill's promise, as the system call has it.
    let (family, address) = unsafe { (family_at(address, len), address_at(address, len)) };
    if family == Some(libc::AF_UNSPEC) {
        return result_int(calls::disconnect(&mut host::hold(), fd));
    }
    result_int(address.and_then(|address| calls::connect(host::hold(), fd, address)))
}

unsafe extern "C" fn read(_: Userdata, fd: Fd, data: *mut c_void, len: usize) -> ssize_t {
    if data.is_null() && len > 0 {
        return result(Err(libc::EFAULT)) as ssize_t;
    }
    // SAFETY: packetdrill's promise, as the system call has it.
    let out = unsafe { bytes_mut(data, len) };
    result(calls::read(host::hold(), fd, out, ReadHow::default())) as ssize_t
}

unsafe extern "C" fn readv(_: Userdata, fd: Fd, parts: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: packetdrill's promise, as the system call has it.
    result(unsafe { read_parts(fd, parts, count.max(0) as usize, 0) }) as ssize_t
}

unsafe extern "C" fn recv(_: Userdata, fd: Fd, data: *mut c_void, len: usize, flags: c_int) -> ssize_t {
    // With MSG_TRUNC nothing is copied.
    if data.is_null() && len > 0 && flags & libc::MSG_TRUNC == 0 {
        return result(Err(libc::EFAULT)) as ssize_t;
    }
    // SAFETY: packetdrill's promise, as the system call has it.
    let out = unsafe { bytes_mut(data, len) };
    result(calls::read(host::hold(), fd, out, ReadHow { flags })) as ssize_t
}

unsafe extern "C" fn recvfrom(
    userdata: Userdata,
    fd: Fd,
    data: *mut c_void,
    len: usize,
    flags: c_int,
    _address: *mut sockaddr,
    _address_len: *mut socklen_t,
) -> ssize_t {
    // SAFETY: packetdrill's promise, as the system call has it; TCP tells no address here.
    unsafe { recv(userdata, fd, data, len, flags) }
}

/// `struct sock_extended_err`, and behind it the address of nobody: writes `first` to `last` are done, and their data
/// was copied.
fn extended_error(first: u32, last: u32) -> [u8; 32] {
    const ORIGIN_ZEROCOPY: u8 = 5;
    const CODE_COPIED: u8 = 1;
    let mut error = [0; 32];
    (error[4], error[6]) = (ORIGIN_ZEROCOPY, CODE_COPIED);
    error[8..12].copy_from_slice(&first.to_ne_bytes());
    error[12..16].copy_from_slice(&last.to_ne_bytes());
    error
}

/// The time of a stage: `struct scm_timestamping`, and `struct sock_extended_err` with the address of nobody.
fn timestamp(stamp: Stamp) -> ([u8; 48], [u8; 32]) {
    const ORIGIN_TIMESTAMPING: u8 = 4;
    let (mut time, mut error) = ([0; 48], [0; 32]);
    let ns = stamp.at.as_nanos();
    time[..8].copy_from_slice(&(ns / 1_000_000_000).to_ne_bytes());
    time[8..16].copy_from_slice(&(ns % 1_000_000_000).to_ne_bytes());
    error[..4].copy_from_slice(&libc::ENOMSG.to_ne_bytes());
    error[4] = ORIGIN_TIMESTAMPING;
    error[8..12].copy_from_slice(&(stamp.stage as u32).to_ne_bytes());
    error[12..16].copy_from_slice(&stamp.key.to_ne_bytes());
    (time, error)
}

/// A control message: its level, its type and its data.
type Control<'a> = (c_int, c_int, &'a [u8]);

/// Makes `messages` the only control messages.
///
/// # Safety
/// `message` has room for `msg_controllen` bytes of control messages.
unsafe fn put_controls(message: &mut msghdr, messages: &[Control<'_>]) {
    let room = message.msg_controllen;
    let mut used = 0;
    for (level, kind, data) in messages {
        let len = data.len() as u32;
        // SAFETY: the caller's promise; what does not fit is not written.
        unsafe {
            let space = libc::CMSG_SPACE(len) as usize;
            if message.msg_control.is_null() || room < used + space {
                break;
            }
            let at = message.msg_control.cast::<u8>().add(used).cast::<libc::cmsghdr>();
            ((*at).cmsg_len, (*at).cmsg_level, (*at).cmsg_type) = (libc::CMSG_LEN(len) as usize, *level, *kind);
            bytes_mut(libc::CMSG_DATA(at).cast(), data.len()).copy_from_slice(data);
            used += space;
        }
    }
    message.msg_controllen = used;
}

unsafe extern "C" fn recvmsg(_: Userdata, fd: Fd, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: packetdrill's promise, as the system call has it.
    unsafe {
        let message = &mut *message;
        if flags & libc::MSG_ERRQUEUE != 0 {
            let mut held = host::hold();
            let Some(host) = held.as_mut() else { return result(Err(host::NO_HOST)) as ssize_t };
            if let Some(stamp) = host.file(fd).ok().and_then(|file| file.times.take()) {
                let (time, error) = timestamp(stamp);
                let time: Control<'_> = (libc::SOL_SOCKET, options::SO_TIMESTAMPING, &time);
                put_controls(message, &[time, (libc::SOL_IP, libc::IP_RECVERR, &error)]);
                message.msg_flags = libc::MSG_ERRQUEUE | libc::MSG_TRUNC;
                return 0;
            }
            let Some((first, last)) = host.take_notice(fd) else { return result(Err(libc::EAGAIN)) as ssize_t };
            put_controls(message, &[(libc::SOL_IP, libc::IP_RECVERR, &extended_error(first, last))]);
            message.msg_flags = libc::MSG_ERRQUEUE;
            return 0;
        }
        let len = read_parts(fd, message.msg_iov, message.msg_iovlen, flags);
        message.msg_flags = 0;
        match host::hold().as_mut().and_then(|host| host.readable_hint(fd)).filter(|_| len.is_ok()) {
            Some(readable) => {
                put_controls(message, &[(libc::SOL_TCP, options::TCP_INQ, &readable.to_ne_bytes())]);
            }
            None => message.msg_controllen = 0,
        }
        result(len) as ssize_t
    }
}

unsafe extern "C" fn write(_: Userdata, fd: Fd, data: *const c_void, len: usize) -> ssize_t {
    if data.is_null() && len > 0 {
        return result(Err(libc::EFAULT)) as ssize_t;
    }
    // SAFETY: packetdrill's promise, as the system call has it.
    let data = unsafe { bytes(data, len) };
    result(calls::write_to(host::hold(), fd, data, WriteHow::default(), None)) as ssize_t
}

unsafe extern "C" fn writev(_: Userdata, fd: Fd, parts: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: packetdrill's promise, as the system call has it.
    result(unsafe { write_parts(fd, parts, count.max(0) as usize, 0, None) }) as ssize_t
}

unsafe extern "C" fn send(_: Userdata, fd: Fd, data: *const c_void, len: usize, flags: c_int) -> ssize_t {
    if data.is_null() && len > 0 {
        return result(Err(libc::EFAULT)) as ssize_t;
    }
    // SAFETY: packetdrill's promise, as the system call has it.
    let data = unsafe { bytes(data, len) };
    result(calls::write_to(host::hold(), fd, data, WriteHow { flags }, None)) as ssize_t
}

unsafe extern "C" fn sendto(
    _: Userdata,
    fd: Fd,
    data: *const c_void,
    len: usize,
    flags: c_int,
    address: *const sockaddr,
    address_len: socklen_t,
) -> ssize_t {
    if data.is_null() && len > 0 {
        return result(Err(libc::EFAULT)) as ssize_t;
    }
    // SAFETY: packetdrill's promise, as the system call has it.
    let (data, peer) = unsafe { (bytes(data, len), address_at(address, address_len).ok()) };
    result(calls::write_to(host::hold(), fd, data, WriteHow { flags }, peer)) as ssize_t
}

unsafe extern "C" fn sendmsg(_: Userdata, fd: Fd, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: packetdrill's promise, as the system call has it.
    unsafe {
        let message = &*message;
        let peer = address_at(message.msg_name.cast(), message.msg_namelen).ok();
        result(write_parts(fd, message.msg_iov, message.msg_iovlen, flags, peer)) as ssize_t
    }
}

/// C declares this with `...`; on the machines that packetdrill runs on a word passed so arrives as a named one does.
extern "C" fn fcntl(_: Userdata, fd: Fd, command: c_int, argument: c_int) -> c_int {
    result_int(options::control(&mut host::hold(), fd, command, argument))
}

/// As [`fcntl`].
unsafe extern "C" fn ioctl(_: Userdata, fd: Fd, request: c_ulong, argument: *mut c_int) -> c_int {
    result_int(options::query(&mut host::hold(), fd, request).map(|number| {
        // SAFETY: the requests that are answered take a pointer to a number.
        unsafe { argument.write(number) };
        0
    }))
}

extern "C" fn close(_: Userdata, fd: Fd) -> c_int {
    let outcome = calls::close(&mut host::hold(), fd);
    // SAFETY: a descriptor that `new_fd` made.
    unsafe { libc::close(fd) };
    result_int(outcome)
}

extern "C" fn shutdown(_: Userdata, fd: Fd, how: c_int) -> c_int {
    result_int(calls::shutdown(&mut host::hold(), fd, how))
}

unsafe extern "C" fn interface_getsockopt(
    _: Userdata,
    fd: Fd,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    let mut held = host::hold();
    let Some(host) = held.as_mut() else { return result_int(Err(host::NO_HOST)) };
    // SAFETY: packetdrill's promise, as the system call has it.
    let outcome = unsafe {
        let out = bytes_mut(value, *len as usize);
        options::read(host, fd, (level, name), out).map(|written| {
            *len = written as socklen_t;
            0
        })
    };
    result_int(outcome)
}

/// The C library's function for a process that has this library in `LD_PRELOAD`: packetdrill's `%{ }%` claims ask it
/// rather than the table.
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: Fd,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    let is_ours = host::hold().as_ref().is_some_and(|host| host.files.contains_key(&fd));
    // SAFETY: the caller's promise, handed on.
    unsafe {
        if is_ours {
            interface_getsockopt(std::ptr::null_mut(), fd, level, name, value, len)
        } else {
            libc::syscall(libc::SYS_getsockopt, fd, level, name, value, len) as c_int
        }
    }
}

/// The C library's function for a process that has this library in `LD_PRELOAD`: packetdrill has no place for it in the
/// table.
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile(out: Fd, file: Fd, offset: *mut libc::off_t, count: usize) -> ssize_t {
    let is_ours = host::hold().as_ref().is_some_and(|host| host.files.contains_key(&out));
    if !is_ours || offset.is_null() {
        // SAFETY: the caller's promise, handed on.
        return unsafe { libc::syscall(libc::SYS_sendfile, out, file, offset, count) } as ssize_t;
    }
    let mut data = vec![0_u8; count];
    // SAFETY: the caller's promise: a place in the file.
    let read = unsafe { libc::pread(file, data.as_mut_ptr().cast(), count, *offset) };
    let Ok(len) = usize::try_from(read) else { return -1 };
    let outcome = calls::write_to(host::hold(), out, &data[..len], WriteHow::default(), None);
    if let Ok(taken) = outcome {
        // SAFETY: as above.
        unsafe { *offset += taken };
    }
    result(outcome) as ssize_t
}

/// The C library's function for a process that has this library in `LD_PRELOAD`: shell lines of a script that begin
/// with [`SETTINGS`] change the host's flags, others are left to the shell.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn system(command: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let text = if command.is_null() { "" } else { unsafe { CStr::from_ptr(command) }.to_str().unwrap_or("") };
    if let Some(settings) = text.strip_prefix(SETTINGS) {
        return host::reconfigure(&mut host::hold(), settings);
    }
    if text == "true" || preload::is_for_device(text) {
        return 0;
    }
    type System = unsafe extern "C" fn(*const c_char) -> c_int;
    // SAFETY: the next function of that name is the C library's, which has this type.
    unsafe {
        let next = libc::dlsym(libc::RTLD_NEXT, c"system".as_ptr());
        if next.is_null() { -1 } else { std::mem::transmute::<*mut c_void, System>(next)(command) }
    }
}

unsafe extern "C" fn setsockopt(
    _: Userdata,
    fd: Fd,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    // SAFETY: packetdrill's promise, as the system call has it.
    let value = unsafe { bytes(value, len as usize) };
    result_int(options::set(&mut host::hold(), fd, (level, name), value))
}

unsafe extern "C" fn poll(_: Userdata, fds: *mut pollfd, count: nfds_t, timeout_ms: c_int) -> c_int {
    // SAFETY: packetdrill's promise, as the system call has it.
    let fds = if fds.is_null() { &mut [] } else { unsafe { slice::from_raw_parts_mut(fds, count as usize) } };
    let wanted: Vec<(Fd, i16)> = fds.iter().map(|fd| (fd.fd, fd.events)).collect();
    result_int(ready::poll(host::hold(), &wanted, timeout_ms).map(|revents| {
        for (fd, revents) in fds.iter_mut().zip(&revents) {
            fd.revents = *revents;
        }
        revents.iter().filter(|revents| **revents != 0).count() as i64
    }))
}

unsafe extern "C" fn netdev_send(_: Userdata, packet: *const c_void, len: usize) -> c_int {
    // SAFETY: packetdrill's promise: a packet of this length.
    let packet = unsafe { bytes(packet, len) };
    host::arrive(host::hold(), packet);
    0
}

unsafe extern "C" fn netdev_receive(
    _: Userdata,
    packet: *mut c_void,
    len: *mut usize,
    time_us: *mut c_longlong,
) -> c_int {
    let Some((at, bytes)) = host::next_packet(host::hold()) else {
        eprintln!("fullpipe: the script waits for a packet, and none will come");
        std::process::exit(1);
    };
    // SAFETY: packetdrill's promise: room for as many bytes as the length says.
    unsafe {
        let room = bytes_mut(packet, *len);
        let fits = room.len().min(bytes.len());
        room[..fits].copy_from_slice(&bytes[..fits]);
        *len = fits;
        *time_us = (at.as_nanos() / 1_000) as c_longlong;
    }
    0
}

extern "C" fn usleep(_: Userdata, us: useconds_t) -> c_int {
    host::sleep(host::hold(), (u64::from(us) + SPIN_US) * 1_000);
    0
}

unsafe extern "C" fn gettimeofday(_: Userdata, out: *mut timeval, _zone: *mut c_void) -> c_int {
    let us = host::time(host::hold()) / 1_000;
    let time = timeval { tv_sec: (us / 1_000_000) as i64, tv_usec: (us % 1_000_000) as i64 };
    // SAFETY: packetdrill's promise, as the system call has it.
    unsafe { out.write(time) };
    0
}

extern "C" fn epoll_create(_: Userdata, _size: c_int) -> c_int {
    result_int(calls::add(&mut host::hold(), new_fd(), |_| File::Epoll(Epoll::default())))
}

unsafe extern "C" fn epoll_ctl(_: Userdata, epoll: Fd, operation: c_int, fd: Fd, event: *mut epoll_event) -> c_int {
    // SAFETY: packetdrill's promise, as the system call has it; the pointer may be null.
    let event = if event.is_null() { epoll_event { events: 0, u64: 0 } } else { unsafe { *event } };
    let event = Event { events: event.events, data: event.u64 };
    result_int(ready::epoll_control(&mut host::hold(), epoll, operation, fd, event))
}

unsafe extern "C" fn epoll_wait(
    _: Userdata,
    epoll: Fd,
    events: *mut epoll_event,
    most: c_int,
    timeout_ms: c_int,
) -> c_int {
    let most = most.max(0) as usize;
    result_int(ready::epoll_wait(host::hold(), epoll, most, timeout_ms).map(|found| {
        for (at, event) in found.iter().enumerate() {
            // SAFETY: packetdrill's promise: room for `most` events, and there are no more.
            unsafe { events.add(at).write(epoll_event { events: event.events, u64: event.data }) };
        }
        found.len() as i64
    }))
}

extern "C" fn pipe(_: Userdata, _: *mut c_int) -> c_int {
    result_int(Err(libc::ENOSYS))
}

extern "C" fn splice(_: Userdata, _: Fd, _: *mut loff_t, _: Fd, _: *mut loff_t, _: usize, _: u32) -> c_int {
    result_int(Err(libc::ENOSYS))
}
