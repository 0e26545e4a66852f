//! The calls of iphlpapi.dll, found when they are needed: Wine has some of them and not others, and a program that names
//! them in its imports would not even start there.
#![expect(unsafe_code, reason = "the calls are found by their names, and fill in structures")]

use std::{
    ffi::CStr,
    io,
    mem::{MaybeUninit, transmute},
    path::Path,
    ptr::null_mut,
};

use windows_sys::{
    Win32::{
        Foundation::{
            CloseHandle, ERROR_ACCESS_DENIED, ERROR_CALL_NOT_IMPLEMENTED, ERROR_INSUFFICIENT_BUFFER, ERROR_NOT_FOUND,
            ERROR_NOT_SUPPORTED, HMODULE, NO_ERROR,
        },
        NetworkManagement::IpHelper::{TCP_ESTATS_REC_RW_v0, TCP_TABLE_OWNER_PID_CONNECTIONS},
        Networking::WinSock::{AF_INET, AF_INET6},
        System::{
            LibraryLoader::{GetProcAddress, LOAD_LIBRARY_SEARCH_SYSTEM32, LoadLibraryExW},
            Threading::{OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, QueryFullProcessImageNameW},
        },
    },
    core::w,
};

use super::{Collection, Connection, Counters, Group, Statistics, StatisticsError, table};

/// Any call, as it is found by its name.
type Found = unsafe extern "system" fn() -> isize;
type TableCall = unsafe extern "system" fn(*mut u8, *mut u32, i32, u32, i32, u32) -> u32;
/// Row, type, then buffer, version and size of what can be set, of what stays and of what changes.
type ReadCall =
    unsafe extern "system" fn(*const u8, u32, *mut u8, u32, u32, *mut u8, u32, u32, *mut u8, u32, u32) -> u32;
/// Row, type, buffer, version, size, offset.
type SetCall = unsafe extern "system" fn(*const u8, u32, *const u8, u32, u32, u32) -> u32;

/// A table larger than this is no table: a million connections.
const LARGEST_TABLE: u32 = 64 << 20;
/// How often a table may grow between asking for its size and reading it.
const ATTEMPTS: usize = 8;

/// The running system's.
#[derive(Clone, Copy, Debug)]
pub struct SystemStatistics {
    library: HMODULE,
}

// SAFETY: the handle names a library of the whole process, which stays loaded; any thread may look up its calls.
unsafe impl Send for SystemStatistics {}

impl SystemStatistics {
    /// Opens the system's iphlpapi.dll, which stays loaded.
    pub fn new() -> Result<Self, StatisticsError> {
        // SAFETY: the name is a constant that ends in a zero. Only the system's folder is searched.
        let library = unsafe { LoadLibraryExW(w!("iphlpapi.dll"), null_mut(), LOAD_LIBRARY_SEARCH_SYSTEM32) };
        if library.is_null() {
            return Err(StatisticsError::System {
                call: "LoadLibraryEx iphlpapi.dll",
                source: io::Error::last_os_error(),
            });
        }
        Ok(Self { library })
    }

    /// The address of a call, and its name for messages.
    fn call(&self, name: &'static CStr) -> Result<(Found, &'static str), StatisticsError> {
        let call = name.to_str().unwrap_or_default();
        // SAFETY: the library stays loaded, and the name ends in a zero.
        let found = unsafe { GetProcAddress(self.library, name.as_ptr().cast()) };
        Ok((found.ok_or(StatisticsError::Missing { call })?, call))
    }

    /// Of two calls the one that is for such a connection.
    fn call_for(
        &self,
        connection: &Connection,
        [v4, v6]: [&'static CStr; 2],
    ) -> Result<(Found, &'static str), StatisticsError> {
        self.call(if connection.local.is_ipv4() { v4 } else { v6 })
    }

    fn table(&self, family: u32) -> Result<Vec<u8>, StatisticsError> {
        let (address, name) = self.call(c"GetExtendedTcpTable")?;
        // SAFETY: iphlpapi.h declares this call so: table, size, order, family, class, reserved.
        let call = unsafe { transmute::<Found, TableCall>(address) };
        let mut size = 0_u32;
        for _ in 0..ATTEMPTS {
            let length = usize::try_from(size.min(LARGEST_TABLE)).unwrap_or(0);
            let mut bytes = vec![0_u32; length.div_ceil(4)];
            size = u32::try_from(bytes.len() * 4).unwrap_or(0);
            // SAFETY: the buffer holds `size` bytes and is aligned for the table's 32-bit numbers.
            let code = unsafe {
                call(bytes.as_mut_ptr().cast(), &raw mut size, 0, family, TCP_TABLE_OWNER_PID_CONNECTIONS, 0)
            };
            match code {
                NO_ERROR => return Ok(bytes.iter().flat_map(|word| word.to_ne_bytes()).collect()),
                // Room for those that come until the next call, too.
                ERROR_INSUFFICIENT_BUFFER => size = size.saturating_add(4096),
                ERROR_NOT_SUPPORTED => return Ok(Vec::new()),
                code => return Err(failed(name, code)),
            }
        }
        Err(failed(name, ERROR_INSUFFICIENT_BUFFER))
    }

    /// Reads what can be set (`Rw`) or what changes (`Rod`) of a group into the buffers; one of the two may be empty.
    fn read(
        &self,
        connection: &Connection,
        group: Group,
        rw: &mut [u8],
        rod: &mut [u8],
    ) -> Result<(), StatisticsError> {
        let names = [c"GetPerTcpConnectionEStats", c"GetPerTcp6ConnectionEStats"];
        let (address, call) = self.call_for(connection, names)?;
        // SAFETY: iphlpapi.h declares both calls so.
        let read = unsafe { transmute::<Found, ReadCall>(address) };
        let row = table::row(connection);
        let part = |buffer: &mut [u8]| {
            let start = if buffer.is_empty() { null_mut() } else { buffer.as_mut_ptr() };
            (start, u32::try_from(buffer.len()).unwrap_or(0))
        };
        let ((rw, rw_size), (rod, rod_size)) = (part(rw), part(rod));
        // SAFETY: the row is a whole MIB_TCPROW (MIB_TCP6ROW), and each buffer has the size that is given with it.
        let code = unsafe { read(row.as_ptr(), group as u32, rw, 0, rw_size, null_mut(), 0, 0, rod, 0, rod_size) };
        done(call, code)
    }

    fn group<T: Plain>(&self, connection: &Connection, group: Group) -> Result<T, StatisticsError> {
        let mut value = MaybeUninit::<T>::zeroed();
        // SAFETY: all bytes of it, those of its padding too, were set to zero.
        let bytes = unsafe { std::slice::from_raw_parts_mut(value.as_mut_ptr().cast::<u8>(), size_of::<T>()) };
        self.read(connection, group, &mut [], bytes)?;
        // SAFETY: `T` holds numbers only, for which every bit pattern is a value.
        Ok(unsafe { value.assume_init() })
    }
}

/// The structures that Windows fills in.
///
/// # Safety
/// A type of this kind is `repr(C)` and holds numbers only.
unsafe trait Plain: Copy {}
// SAFETY: all of them are `repr(C)` and hold numbers only (layout.rs).
unsafe impl Plain for super::DataRod {}
// SAFETY: as above.
unsafe impl Plain for super::SndCongRod {}
// SAFETY: as above.
unsafe impl Plain for super::PathRod {}
// SAFETY: as above.
unsafe impl Plain for super::SendBuffRod {}
// SAFETY: as above.
unsafe impl Plain for super::RecRod {}
// SAFETY: as above.
unsafe impl Plain for super::ObsRecRod {}

impl Statistics for SystemStatistics {
    fn connections(&self) -> Result<Vec<Connection>, StatisticsError> {
        let mut all = table::v4(&self.table(u32::from(AF_INET))?);
        all.extend(table::v6(&self.table(u32::from(AF_INET6))?));
        Ok(all)
    }

    fn program(&self, pid: u32) -> Option<String> {
        // SAFETY: no memory of ours is involved.
        let process = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, pid) };
        if process.is_null() {
            return None;
        }
        let mut name = [0_u16; 1024];
        let mut length = 1024_u32;
        // SAFETY: the buffer holds as many characters as `length` says, and the handle is open.
        let named = unsafe { QueryFullProcessImageNameW(process, 0, name.as_mut_ptr(), &raw mut length) };
        // SAFETY: it was opened above, and nobody else has it.
        unsafe { CloseHandle(process) };
        let name = String::from_utf16_lossy(name.get(..usize::try_from(length).ok()?)?);
        (named != 0).then(|| Path::new(&name).file_name().map(|name| name.to_string_lossy().into_owned()))?
    }

    fn collection(&self, connection: &Connection, group: Group) -> Result<Collection, StatisticsError> {
        let mut on = [0_u8; size_of::<TCP_ESTATS_REC_RW_v0>()];
        self.read(connection, group, &mut on, &mut [])?;
        Ok(if on == [0] { Collection::Off } else { Collection::On })
    }

    fn collect(&mut self, connection: &Connection, group: Group, to: Collection) -> Result<(), StatisticsError> {
        let names = [c"SetPerTcpConnectionEStats", c"SetPerTcp6ConnectionEStats"];
        let (address, call) = self.call_for(connection, names)?;
        // SAFETY: iphlpapi.h declares both calls so.
        let set = unsafe { transmute::<Found, SetCall>(address) };
        let row = table::row(connection);
        let on = [u8::from(to == Collection::On)];
        // SAFETY: the row is a whole MIB_TCPROW (MIB_TCP6ROW); each group that is used has one byte to set.
        let code = unsafe { set(row.as_ptr(), group as u32, on.as_ptr(), 0, 1, 0) };
        done(call, code)
    }

    fn counters(&self, connection: &Connection) -> Result<Counters, StatisticsError> {
        Ok(Counters {
            data: self.group(connection, Group::Data)?,
            congestion: self.group(connection, Group::SndCong)?,
            path: self.group(connection, Group::Path)?,
            send: self.group(connection, Group::SendBuff)?,
            receive: self.group(connection, Group::Rec)?,
            observed: self.group(connection, Group::ObsRec)?,
        })
    }
}

fn done(call: &'static str, code: u32) -> Result<(), StatisticsError> {
    if code == NO_ERROR { Ok(()) } else { Err(failed(call, code)) }
}

fn failed(call: &'static str, code: u32) -> StatisticsError {
    match code {
        ERROR_ACCESS_DENIED => StatisticsError::Denied,
        ERROR_NOT_FOUND => StatisticsError::Gone,
        // A call that is only a name is as good as none.
        ERROR_CALL_NOT_IMPLEMENTED => StatisticsError::Missing { call },
        code => StatisticsError::System { call, source: io::Error::from_raw_os_error(code.cast_signed()) },
    }
}
