//! The kernel of the running FreeBSD or macOS. Not run on either so far; built for both.
#![expect(unsafe_code, reason = "sysctl(3) has no safe form in rustix")]

use std::{
    ffi::CString,
    io,
    process::{Command, Stdio},
    ptr::{null, null_mut},
};

use libc::{c_int, c_void, size_t};

use super::{Kernel, Oid};
use crate::Output;

/// The most numbers that a sysctl's place has (CTL_MAXNAME, sys/sysctl.h: 24 on FreeBSD, 12 on macOS).
const MAX_NAME: usize = 24;
/// "Tell the kind and the format": the place {0, 4, ..} (CTL_SYSCTL and CTL_SYSCTL_OIDFMT, sys/sysctl.h).
const KIND_OF: [c_int; 2] = [0, 4];

/// How often a table may grow between asking for its size and reading it.
const ATTEMPTS: usize = 8;

/// The running system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemKernel;

impl SystemKernel {
    /// The bytes of a sysctl that is a table, which may grow while it is read.
    ///
    /// # Errors
    /// The system's; `NotFound` where it has none of that name.
    pub fn table(&self, name: &str) -> io::Result<Vec<u8>> {
        read(&place(name)?.ok_or(io::ErrorKind::NotFound)?)
    }

    /// The name of a process, where that may be known.
    #[cfg(target_os = "freebsd")]
    pub fn program(&self, pid: u32) -> Option<String> {
        let mut of_process = place("kern.proc.pid").ok()??;
        of_process.push(pid.try_into().ok()?);
        let process = read(&of_process).ok()?;
        let name = process.get(std::mem::offset_of!(libc::kinfo_proc, ki_comm)..)?;
        text(name.get(..=libc::COMMLEN)?)
    }

    /// The name of a process, where that may be known.
    #[cfg(target_os = "macos")]
    pub fn program(&self, pid: u32) -> Option<String> {
        let mut name = [0_u8; 256];
        // SAFETY: the buffer has room for as many bytes as its length says, which is all that the call writes.
        let length = unsafe { libc::proc_name(pid.try_into().ok()?, name.as_mut_ptr().cast(), 256) };
        text(name.get(..usize::try_from(length).ok()?)?)
    }
}

/// Up to the zero byte; `None` where there is nothing before it.
fn text(bytes: &[u8]) -> Option<String> {
    let text = bytes.split(|byte| *byte == 0).next().filter(|text| !text.is_empty())?;
    Some(String::from_utf8_lossy(text).into_owned())
}

impl Kernel for SystemKernel {
    fn sysctl(&self, name: &str) -> io::Result<Option<Oid>> {
        let Some(place) = place(name)? else { return Ok(None) };
        let format = read(&[KIND_OF.as_slice(), &place].concat())?;
        let (kind, _) = format.split_first_chunk::<4>().ok_or(io::ErrorKind::InvalidData)?;
        Ok(Some(Oid { kind: u32::from_ne_bytes(*kind), bytes: read(&place)? }))
    }

    fn set_sysctl(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let place = place(name)?.ok_or(io::ErrorKind::NotFound)?;
        let length = name_length(&place)?;
        // SAFETY: `place` and `bytes` are valid for reads of the lengths given, the kernel only reads them, and no old
        // value is asked for. macOS' header lacks `const` for the two pointers.
        let result = unsafe {
            libc::sysctl(
                place.as_ptr().cast_mut(),
                length,
                null_mut(),
                null_mut(),
                bytes.as_ptr().cast_mut().cast::<c_void>(),
                bytes.len(),
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn ifconfig(&mut self, arguments: &[&str]) -> io::Result<Output> {
        let mut command = Command::new("/sbin/ifconfig");
        command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).output().map(Output::from)
    }
}

/// The place of a name in the tree; `None` where there is no such name.
fn place(name: &str) -> io::Result<Option<Vec<c_int>>> {
    let name = CString::new(name).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut numbers: [c_int; MAX_NAME] = [0; MAX_NAME];
    let mut length: size_t = MAX_NAME;
    // SAFETY: `name` ends in a zero byte, and `numbers` has room for the `length` numbers that the call may write.
    let result = unsafe { libc::sysctlnametomib(name.as_ptr(), numbers.as_mut_ptr(), &raw mut length) };
    if result != 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(error) };
    }
    Ok(numbers.get(..length).map(<[c_int]>::to_vec))
}

/// The value at a place.
fn read(place: &[c_int]) -> io::Result<Vec<u8>> {
    let name_length = name_length(place)?;
    let call = |buffer: *mut c_void, length: &mut size_t| {
        // SAFETY: `place` is valid for reads of its length; `buffer` is null, or valid for writes of `length` bytes; no
        // new value is given.
        let result = unsafe {
            libc::sysctl(place.as_ptr().cast_mut(), name_length, buffer, length, null::<c_void>().cast_mut(), 0)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    let mut attempts = ATTEMPTS;
    loop {
        let mut length: size_t = 0;
        call(null_mut(), &mut length)?;
        let mut bytes = vec![0u8; length];
        match call(bytes.as_mut_ptr().cast(), &mut length) {
            Ok(()) => {
                bytes.truncate(length);
                return Ok(bytes);
            }
            // It grew meanwhile.
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) && attempts > 1 => attempts -= 1,
            Err(error) => return Err(error),
        }
    }
}

/// The length of a place, as this system's call takes it.
fn name_length<T: TryFrom<usize>>(place: &[c_int]) -> io::Result<T> {
    place.len().try_into().map_err(|_| io::ErrorKind::InvalidInput.into())
}
