//! The C library's calls for a packetdrill that has no `--so_filename` (nplab's): with this library in `LD_PRELOAD` and
//! flags in the environment, its sockets are the engine's, its TUN device and its packet socket are the engine's wire,
//! and the clock is the virtual one. Descriptors that are none of ours go to the kernel.

#![expect(unsafe_code, reason = "these functions stand in for the C library's")]

use std::{
    ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void},
    mem::size_of,
    ptr::null_mut,
    sync::{
        OnceLock,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
};

use libc::{iovec, msghdr, nfds_t, pollfd, sockaddr, socklen_t, ssize_t, timeval, useconds_t};

use crate::{
    abi::{self, Fd, INTERFACE},
    calls,
    flags::Flags,
    host,
};

/// The flags of the host that the C library's calls reach; without it they are the kernel's.
const FLAGS: &str = "FULLPIPE_PACKETDRILL";

/// What a descriptor of ours stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ours {
    /// A socket of the engine.
    Socket,
    /// The TUN device, by which packets reach the host.
    Device,
    /// The packet socket, which sees what the host sends.
    Wire,
}

/// Sets of descriptors below [`MOST`], so that looking takes no lock: the C library's own calls pass here too.
struct Set([AtomicU64; MOST / 64]);

const MOST: usize = 1024;

impl Set {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; MOST / 64])
    }

    fn place(&self, fd: Fd) -> Option<(&AtomicU64, u64)> {
        let fd = usize::try_from(fd).ok()?;
        Some((self.0.get(fd / 64)?, 1 << (fd % 64)))
    }

    fn put(&self, fd: Fd, is_in: bool) {
        if let Some((word, bit)) = self.place(fd) {
            let _before =
                if is_in { word.fetch_or(bit, Ordering::AcqRel) } else { word.fetch_and(!bit, Ordering::AcqRel) };
        }
    }

    fn has(&self, fd: Fd) -> bool {
        self.place(fd).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
    }
}

static SOCKETS: Set = Set::new();
static DEVICES: Set = Set::new();
static WIRES: Set = Set::new();
/// When the packet left that was read last, in microseconds.
static LEFT_US: AtomicI64 = AtomicI64::new(0);
/// What `times` says, which packetdrill watches to begin at a clock's tick.
static TICKS: AtomicI64 = AtomicI64::new(0);
/// The next port for a socket that is bound to none in particular.
static PORT: AtomicU64 = AtomicU64::new(61_000);

/// The index of the one device.
const DEVICE_INDEX: c_uint = 1;

fn ours(fd: Fd) -> Option<Ours> {
    match () {
        () if SOCKETS.has(fd) => Some(Ours::Socket),
        () if DEVICES.has(fd) => Some(Ours::Device),
        () if WIRES.has(fd) => Some(Ours::Wire),
        () => None,
    }
}

/// Whether this process is a packetdrill that is to run against the engine; the host starts with the first question.
pub(crate) fn is_asked_for() -> bool {
    static ASKED: OnceLock<bool> = OnceLock::new();
    *ASKED.get_or_init(|| {
        let Ok(text) = std::env::var(FLAGS) else { return false };
        match Flags::parse(&text) {
            Ok(flags) => host::start(flags),
            Err(error) => {
                eprintln!("fullpipe: {error}");
                std::process::exit(2);
            }
        }
        true
    })
}

/// Whether the host runs already: what asks only for the time does not start it.
fn has_device() -> bool {
    DEVICES.0.iter().any(|word| word.load(Ordering::Acquire) != 0)
}

/// The kernel's call.
macro_rules! kernel {
    ($number:ident $(, $argument:expr)*) => {
        // SAFETY: the caller's promise to the C library, handed on as it came.
        unsafe { libc::syscall(libc::$number $(, $argument)*) }
    };
}

/// Stands in for a call of the C library: the table's function for a socket of ours, else the kernel's.
macro_rules! stands_in {
    ($($name:ident = $number:ident ($fd:ident $(, $argument:ident: $kind:ty)*) -> $result:ty;)*) => {$(
        /// The C library's function.
        ///
        /// # Safety
        /// As the system call.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($fd: Fd $(, $argument: $kind)*) -> $result {
            match ours($fd) {
                Some(Ours::Socket) => {}
                // The set-up of the device and the packet socket.
                Some(_) => return 0,
                None => return kernel!($number, $fd $(, $argument)*) as $result,
            }
            // SAFETY: the caller's promise, handed on.
            unsafe { (INTERFACE.$name)(null_mut(), $fd $(, $argument)*) }
        }
    )*};
}

stands_in! {
    connect = SYS_connect(fd, address: *const sockaddr, len: socklen_t) -> c_int;
    readv = SYS_readv(fd, parts: *const iovec, count: c_int) -> ssize_t;
    writev = SYS_writev(fd, parts: *const iovec, count: c_int) -> ssize_t;
    sendmsg = SYS_sendmsg(fd, message: *const msghdr, flags: c_int) -> ssize_t;
    setsockopt = SYS_setsockopt(fd, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int;
}

/// The C library's function.
#[unsafe(no_mangle)]
pub extern "C" fn listen(fd: Fd, backlog: c_int) -> c_int {
    if SOCKETS.has(fd) {
        return (INTERFACE.listen)(null_mut(), fd, backlog);
    }
    kernel!(SYS_listen, fd, backlog) as c_int
}

/// The C library's function.
#[unsafe(no_mangle)]
pub extern "C" fn shutdown(fd: Fd, how: c_int) -> c_int {
    if SOCKETS.has(fd) {
        return (INTERFACE.shutdown)(null_mut(), fd, how);
    }
    kernel!(SYS_shutdown, fd, how) as c_int
}

fn device_of_ours(set: &Set) -> Fd {
    let fd = abi::new_fd();
    set.put(fd, true);
    fd
}

/// The C library's function.
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> Fd {
    // SAFETY: the caller's promise: a C string.
    let is_tun = unsafe { CStr::from_ptr(path) } == c"/dev/net/tun";
    if is_tun && is_asked_for() {
        return device_of_ours(&DEVICES);
    }
    kernel!(SYS_openat, libc::AT_FDCWD, path, flags, mode) as Fd
}

/// The C library's function.
#[unsafe(no_mangle)]
pub extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> Fd {
    if !has_device() {
        return kernel!(SYS_socket, domain, kind, protocol) as Fd;
    }
    match (domain, kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC)) {
        (libc::AF_PACKET, _) => device_of_ours(&WIRES),
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM) => {
            let fd = (INTERFACE.socket)(null_mut(), domain, kind, protocol);
            SOCKETS.put(fd, true);
            fd
        }
        _ => kernel!(SYS_socket, domain, kind, protocol) as Fd,
    }
}

/// The C library's function.
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bind(fd: Fd, address: *const sockaddr, len: socklen_t) -> c_int {
    match ours(fd) {
        // SAFETY: the caller's promise, handed on.
        Some(Ours::Socket) => abi::result_int(unsafe { abi::address_at(address, len) }.and_then(|mut address| {
            if address.port() == 0 {
                address.set_port(PORT.fetch_add(1, Ordering::AcqRel) as u16);
            }
            calls::bind(&mut host::hold(), fd, address)
        })),
        Some(_) => 0,
        None => kernel!(SYS_bind, fd, address, len) as c_int,
    }
}

/// The C library's function.
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockname(fd: Fd, address: *mut sockaddr, len: *mut socklen_t) -> c_int {
    if !SOCKETS.has(fd) {
        return kernel!(SYS_getsockname, fd, address, len) as c_int;
    }
    abi::result_int(calls::local(&mut host::hold(), fd).map(|local| {
        // SAFETY: the caller's promise.
        unsafe { abi::write_address(local, address, len) };
        0
    }))
}

/// The C library's function.
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept(fd: Fd, address: *mut sockaddr, len: *mut socklen_t) -> Fd {
    if !SOCKETS.has(fd) {
        return kernel!(SYS_accept, fd, address, len) as Fd;
    }
    // SAFETY: the caller's promise, handed on.
    let child = unsafe { (INTERFACE.accept)(null_mut(), fd, address, len) };
    SOCKETS.put(child, true);
    child
}

/// The C library's function.
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: Fd, data: *mut c_void, len: usize) -> ssize_t {
    match ours(fd) {
        // SAFETY: the caller's promise, handed on.
        Some(Ours::Socket) => unsafe { (INTERFACE.read)(null_mut(), fd, data, len) },
        // Only that there was a packet, which the packet socket has told of.
        Some(_) => len as ssize_t,
        None => kernel!(SYS_read, fd, data, len) as ssize_t,
    }
}

/// The C library's function.
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(fd: Fd, data: *mut c_void, len: usize, flags: c_int) -> ssize_t {
    // SAFETY: the caller's promise, handed on.
    unsafe { recvfrom(fd, data, len, flags, null_mut(), null_mut()) }
}

/// The C library's function.
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvfrom(
    fd: Fd,
    data: *mut c_void,
    len: usize,
    flags: c_int,
    address: *mut sockaddr,
    address_len: *mut socklen_t,
) -> ssize_t {
    if !SOCKETS.has(fd) {
        return kernel!(SYS_recvfrom, fd, data, len, flags, address, address_len) as ssize_t;
    }
    // SAFETY: the caller's promise, handed on.
    unsafe { (INTERFACE.recvfrom)(null_mut(), fd, data, len, flags, address, address_len) }
}

/// The C library's function.
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(fd: Fd, message: *mut msghdr, flags: c_int) -> ssize_t {
    match ours(fd) {
        // SAFETY: the caller's promise, handed on.
        Some(Ours::Socket) => unsafe { (INTERFACE.recvmsg)(null_mut(), fd, message, flags) },
        // SAFETY: as packetdrill's packet socket is read: one part, and room for an address.
        Some(_) => unsafe { next_packet(&mut *message) },
        None => kernel!(SYS_recvmsg, fd, message, flags) as ssize_t,
    }
}

/// The next packet that the host sends, as a packet socket of its device has it.
///
/// # Safety
/// `message` has one part for the packet and room for an address.
unsafe fn next_packet(message: &mut msghdr) -> ssize_t {
    let mut from = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_IP as u16).to_be(),
        sll_ifindex: DEVICE_INDEX as c_int,
        sll_hatype: 0,
        sll_pkttype: libc::PACKET_OUTGOING,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let mut at_us = 0;
    // SAFETY: the caller's promise.
    unsafe {
        let part = &*message.msg_iov;
        let mut len = part.iov_len;
        (INTERFACE.netdev_receive)(null_mut(), part.iov_base, &raw mut len, &raw mut at_us);
        let is_v6 = len > 0 && *part.iov_base.cast::<u8>() >> 4 == 6;
        if is_v6 {
            from.sll_protocol = (libc::ETH_P_IPV6 as u16).to_be();
        }
        LEFT_US.store(at_us, Ordering::Release);
        if message.msg_namelen as usize >= size_of::<libc::sockaddr_ll>() {
            message.msg_name.cast::<libc::sockaddr_ll>().write(from);
        }
        len as ssize_t
    }
}

/// The C library's function.
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: Fd, data: *const c_void, len: usize) -> ssize_t {
    match ours(fd) {
        // SAFETY: the caller's promise, handed on.
        Some(Ours::Socket) => unsafe { (INTERFACE.write)(null_mut(), fd, data, len) },
        Some(_) => {
            // SAFETY: the caller's promise, handed on.
            unsafe { (INTERFACE.netdev_send)(null_mut(), data, len) };
            len as ssize_t
        }
        None => kernel!(SYS_write, fd, data, len) as ssize_t,
    }
}

/// The C library's function.
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(fd: Fd, data: *const c_void, len: usize, flags: c_int) -> ssize_t {
    // SAFETY: the caller's promise, handed on.
    unsafe { sendto(fd, data, len, flags, std::ptr::null(), 0) }
}

/// The C library's function.
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    fd: Fd,
    data: *const c_void,
    len: usize,
    flags: c_int,
    address: *const sockaddr,
    address_len: socklen_t,
) -> ssize_t {
    if !SOCKETS.has(fd) {
        return kernel!(SYS_sendto, fd, data, len, flags, address, address_len) as ssize_t;
    }
    // SAFETY: the caller's promise, handed on.
    unsafe { (INTERFACE.sendto)(null_mut(), fd, data, len, flags, address, address_len) }
}

/// C declares this with `...`; on the machines that packetdrill runs on a word passed so arrives as a named one does.
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl(fd: Fd, command: c_int, argument: c_long) -> c_int {
    if SOCKETS.has(fd) {
        return (INTERFACE.fcntl)(null_mut(), fd, command, argument as c_int);
    }
    kernel!(SYS_fcntl, fd, command, argument) as c_int
}

/// As [`fcntl`].
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: Fd, request: c_ulong, argument: *mut c_void) -> c_int {
    const SIOCGSTAMP: c_ulong = 0x8906;
    match (ours(fd), request) {
        // SAFETY: the caller's promise, handed on.
        (Some(Ours::Socket), _) => unsafe { (INTERFACE.ioctl)(null_mut(), fd, request, argument.cast()) },
        (Some(Ours::Wire), SIOCGSTAMP) => {
            let us = LEFT_US.load(Ordering::Acquire);
            // SAFETY: the caller's promise: room for a time.
            unsafe {
                argument.cast::<timeval>().write(timeval { tv_sec: us / 1_000_000, tv_usec: us % 1_000_000 });
            }
            0
        }
        (Some(_), _) => 0,
        // The set-up of the device, which has a name for nobody but packetdrill.
        (None, libc::SIOCGIFFLAGS | libc::SIOCSIFFLAGS) if has_device() => 0,
        (None, _) => kernel!(SYS_ioctl, fd, request, argument) as c_int,
    }
}

/// The C library's function.
#[unsafe(no_mangle)]
pub extern "C" fn close(fd: Fd) -> c_int {
    let what = ours(fd);
    for set in [&SOCKETS, &DEVICES, &WIRES] {
        set.put(fd, false);
    }
    match what {
        Some(Ours::Socket) => (INTERFACE.close)(null_mut(), fd),
        _ => kernel!(SYS_close, fd) as c_int,
    }
}

/// The C library's function.
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(fds: *mut pollfd, count: nfds_t, timeout_ms: c_int) -> c_int {
    // SAFETY: the caller's promise: as many as it says.
    let is_ours = count > 0 && SOCKETS.has(unsafe { (*fds).fd });
    if is_ours {
        // SAFETY: the caller's promise, handed on.
        return unsafe { (INTERFACE.poll)(null_mut(), fds, count, timeout_ms) };
    }
    kernel!(SYS_poll, fds, count, timeout_ms) as c_int
}

/// The C library's function.
#[unsafe(no_mangle)]
pub extern "C" fn usleep(us: useconds_t) -> c_int {
    if has_device() {
        return (INTERFACE.usleep)(null_mut(), us);
    }
    let time = libc::timespec { tv_sec: (us / 1_000_000).into(), tv_nsec: c_long::from(us % 1_000_000) * 1_000 };
    kernel!(SYS_nanosleep, &raw const time, null_mut::<c_void>()) as c_int
}

/// The C library's function.
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(out: *mut timeval, zone: *mut c_void) -> c_int {
    if has_device() {
        // SAFETY: the caller's promise, handed on.
        return unsafe { (INTERFACE.gettimeofday)(null_mut(), out, zone) };
    }
    kernel!(SYS_gettimeofday, out, zone) as c_int
}

/// The C library's function.
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn times(out: *mut c_void) -> c_long {
    if has_device() {
        return TICKS.fetch_add(1, Ordering::AcqRel);
    }
    kernel!(SYS_times, out)
}

/// The C library's function; the one device has one index.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn if_nametoindex(name: *const c_char) -> c_uint {
    type Index = unsafe extern "C" fn(*const c_char) -> c_uint;
    if has_device() {
        return DEVICE_INDEX;
    }
    // SAFETY: the next function of that name is the C library's, which has this type.
    unsafe {
        let next = libc::dlsym(libc::RTLD_NEXT, c"if_nametoindex".as_ptr());
        if next.is_null() { 0 } else { std::mem::transmute::<*mut c_void, Index>(next)(name) }
    }
}

/// The C library's function; a virtual clock needs no priority, and others need the processor.
///
/// # Safety
/// As the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_setscheduler(process: c_int, policy: c_int, parameters: *const c_void) -> c_int {
    if has_device() || std::env::var_os(FLAGS).is_some() {
        return 0;
    }
    kernel!(SYS_sched_setscheduler, process, policy, parameters) as c_int
}

/// Whether a shell line sets up the device, of which there is none.
pub(crate) fn is_for_device(command: &str) -> bool {
    has_device() && ["ip addr ", "ip route ", "ifconfig ", "ethtool "].iter().any(|start| command.starts_with(start))
}
