//! The socket library (`include/fullpipe_socket.h`, which tells what each call does).
//!
//! What a call means is in `fullpipe_socket`; here pointers become references, and sockets are borrowed.
#![expect(unsafe_code, reason = "C calls these functions and hands over pointers and sockets")]

use std::{
    ffi::{CStr, c_char, c_int},
    io,
    net::{IpAddr, SocketAddr},
    slice,
    time::Duration,
};

use fullpipe_socket::{Bytes, Decision, Micros, Path, Rate, Tuned, Wish};

/// A socket as C has it.
#[cfg(unix)]
pub type RawSocket = c_int;
/// A socket as C has it.
#[cfg(windows)]
pub type RawSocket = usize;

/// `struct fullpipe_path`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CPath {
    rtt_us: u64,
    mtu: u32,
    mss: u32,
    scaling: c_int,
}

/// `struct fullpipe_wish`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CWish {
    rate_bps: u64,
    interactive: c_int,
    fixed: c_int,
}

/// `struct fullpipe_buffer`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CBuffer {
    decision: c_int,
    bytes: u64,
    wanted: u64,
}

/// `struct fullpipe_sizes`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CSizes {
    receive: CBuffer,
    send: CBuffer,
    path: CPath,
    unscaled_window: u64,
    unscaled_rate_bps: u64,
}

/// An error as C gets it: the system's number, negative.
fn number(error: &io::Error) -> c_int {
    error.raw_os_error().map_or(-1, |code| -code.abs().max(1))
}

fn done(result: io::Result<()>) -> c_int {
    result.map_or_else(|error| number(&error), |()| 0)
}

fn invalid() -> io::Error {
    io::ErrorKind::InvalidInput.into()
}

impl From<Path> for CPath {
    fn from(path: Path) -> Self {
        Self {
            rtt_us: path.rtt.unwrap_or_default().get(),
            mtu: path.mtu.unwrap_or(0),
            mss: path.mss.unwrap_or(0),
            scaling: path.scaling.map_or(-1, c_int::from),
        }
    }
}

impl From<CPath> for Path {
    fn from(path: CPath) -> Self {
        let known = |number: u32| Some(number).filter(|&number| number > 0);
        Self {
            rtt: Some(Micros::new(path.rtt_us)).filter(|rtt| *rtt > Micros::ZERO),
            mtu: known(path.mtu),
            mss: known(path.mss),
            scaling: (path.scaling >= 0).then_some(path.scaling > 0),
            own_shift: None,
        }
    }
}

impl From<CWish> for Wish {
    fn from(wish: CWish) -> Self {
        let rate = Rate::from_bps(wish.rate_bps);
        let asked = match (wish.rate_bps, wish.interactive) {
            (0, _) => Self::fast(),
            (_, 0) => Self::bulk(rate),
            _ => Self::interactive(rate),
        };
        if wish.fixed == 0 { asked } else { asked.fixed() }
    }
}

impl From<Decision> for CBuffer {
    fn from(decision: Decision) -> Self {
        let (number, bytes) = match decision {
            Decision::Automatic { reaches, .. } => (0, reaches),
            Decision::Released { reaches, .. } => (1, reaches),
            Decision::Fixed { buffer, .. } => (2, Some(buffer)),
            Decision::Unchanged { buffer, .. } => (3, Some(buffer)),
        };
        let get = |bytes: Option<Bytes>| bytes.map_or(0, Bytes::get);
        Self { decision: number, bytes: get(bytes), wanted: get(decision.short().map(|short| short.wanted)) }
    }
}

impl From<&Tuned> for CSizes {
    fn from(tuned: &Tuned) -> Self {
        let without = tuned.without_scaling();
        Self {
            receive: tuned.receive().into(),
            send: tuned.send().into(),
            path: tuned.path().into(),
            unscaled_window: without.map_or(0, |without| without.window.get()),
            unscaled_rate_bps: without.and_then(|without| without.allows).map_or(0, Rate::bps),
        }
    }
}

/// Lends a socket of C's for one call.
///
/// # Safety
/// The socket is open, or invalid, for as long as the call takes.
#[cfg(unix)]
unsafe fn with<T>(socket: RawSocket, work: impl FnOnce(std::os::fd::BorrowedFd<'_>) -> io::Result<T>) -> io::Result<T> {
    if socket < 0 {
        return Err(invalid());
    }
    // SAFETY: not -1, and the caller's promise.
    work(unsafe { std::os::fd::BorrowedFd::borrow_raw(socket) })
}

/// Lends a socket of C's for one call.
///
/// # Safety
/// The socket is open, or invalid, for as long as the call takes.
#[cfg(windows)]
unsafe fn with<T>(
    socket: RawSocket,
    work: impl FnOnce(std::os::windows::io::BorrowedSocket<'_>) -> io::Result<T>,
) -> io::Result<T> {
    if socket == usize::MAX {
        return Err(invalid());
    }
    // SAFETY: not INVALID_SOCKET, and the caller's promise.
    work(unsafe { std::os::windows::io::BorrowedSocket::borrow_raw(socket as std::os::windows::io::RawSocket) })
}

/// Looks at the path to an address with a connection of its own.
///
/// # Safety
/// `address` is null or a C string, `path` null or a place for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fullpipe_path_to(
    address: *const c_char,
    port: u16,
    patience_ms: u32,
    path: *mut CPath,
) -> c_int {
    // SAFETY: the caller's promise.
    let (address, path) =
        unsafe { (if address.is_null() { None } else { CStr::from_ptr(address).to_str().ok() }, path.as_mut()) };
    done((|| {
        let ip: IpAddr = address.and_then(|text| text.parse().ok()).ok_or_else(invalid)?;
        // Zero is refused by the system's own call.
        let patience = Duration::from_millis(patience_ms.max(1).into());
        *path.ok_or_else(invalid)? = Path::to(SocketAddr::new(ip, port), patience)?.into();
        Ok(())
    })())
}

/// Asks the kernel about a connection.
///
/// # Safety
/// `socket` is open or invalid, `path` null or a place for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fullpipe_path_of(socket: RawSocket, path: *mut CPath) -> c_int {
    // SAFETY: the caller's promise.
    let seen = unsafe { with(socket, |socket| Path::read(&socket)) };
    // SAFETY: the caller's promise.
    let path = unsafe { path.as_mut() };
    done(seen.and_then(|seen| {
        *path.ok_or_else(invalid)? = seen.into();
        Ok(())
    }))
}

/// Sizes a socket: before its handshake for a path, or connected without one.
///
/// # Safety
/// `socket` is open or invalid; `path` and `wish` are null or point to their structs; `tuned` is null or a place for the
/// result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fullpipe_tune(
    socket: RawSocket,
    path: *const CPath,
    wish: *const CWish,
    tuned: *mut *mut Tuned,
) -> c_int {
    // SAFETY: the caller's promise.
    let (path, wish, place) = unsafe { (path.as_ref(), wish.as_ref(), tuned.as_mut()) };
    let wish = wish.copied().map_or_else(Wish::fast, Wish::from);
    let Some(place) = place else { return number(&invalid()) };
    // SAFETY: the caller's promise.
    let made = unsafe {
        with(socket, |socket| match path {
            Some(path) => Tuned::before_handshake(&socket, (*path).into(), wish),
            None => Tuned::connected(&socket, wish),
        })
    };
    done(made.map(|made| *place = Box::into_raw(Box::new(made))))
}

/// Looks again.
///
/// # Safety
/// `tuned` is null or from `fullpipe_tune` and not yet freed; `socket` is open or invalid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fullpipe_look_again(tuned: *mut Tuned, socket: RawSocket) -> c_int {
    // SAFETY: the caller's promise.
    let Some(tuned) = (unsafe { tuned.as_mut() }) else { return number(&invalid()) };
    // SAFETY: the caller's promise.
    done(unsafe { with(socket, |socket| tuned.look_again(&socket).map(|_| ())) })
}

/// What was decided, as numbers.
///
/// # Safety
/// `tuned` is null or from `fullpipe_tune` and not yet freed; `sizes` is null or a place for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fullpipe_sizes(tuned: *const Tuned, sizes: *mut CSizes) -> c_int {
    // SAFETY: the caller's promise.
    let (Some(tuned), Some(sizes)) = (unsafe { (tuned.as_ref(), sizes.as_mut()) }) else {
        return number(&invalid());
    };
    *sizes = tuned.into();
    0
}

/// What was decided, as text.
///
/// # Safety
/// `tuned` is null or from `fullpipe_tune` and not yet freed; `text` points to `size` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fullpipe_explain(tuned: *const Tuned, text: *mut c_char, size: usize) -> usize {
    // SAFETY: the caller's promise.
    let said = unsafe { tuned.as_ref() }.map(Tuned::to_string).unwrap_or_default();
    if !text.is_null() && size > 0 {
        let len = said.len().min(size - 1);
        // SAFETY: the caller's promise.
        let place = unsafe { slice::from_raw_parts_mut(text.cast::<u8>(), size) };
        place[..len].copy_from_slice(&said.as_bytes()[..len]);
        place[len] = 0;
    }
    said.len()
}

/// Frees what `fullpipe_tune` made; the socket stays as it is.
///
/// # Safety
/// `tuned` is null or from `fullpipe_tune` and not yet freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fullpipe_tuned_free(tuned: *mut Tuned) {
    if !tuned.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(tuned) });
    }
}
