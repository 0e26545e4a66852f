//! The registry of the running Windows. What is *not* here: which keys are ours to touch (`mod.rs`).

use std::io;

use windows_registry::{Key, LOCAL_MACHINE, Type};

use super::{Registry, RegistryData};

/// `KEY_SET_VALUE` (winnt.h): to write a value and not to make keys.
const KEY_SET_VALUE: u32 = 0x0002;
/// The facility of Win32 error codes within an HRESULT (winerror.h).
const FACILITY_WIN32: u32 = 7;

/// The registry of the running system, in its 64-bit view.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRegistry;

impl Registry for SystemRegistry {
    fn has_key(&self, key: &str) -> io::Result<bool> {
        present(readable(key)).map(|key| key.is_some())
    }

    fn subkeys(&self, key: &str) -> io::Result<Vec<String>> {
        let Some(key) = present(readable(key))? else { return Ok(Vec::new()) };
        let names = key.keys().map_err(system)?.collect();
        Ok(names)
    }

    fn value(&self, key: &str, name: &str) -> io::Result<Option<RegistryData>> {
        let Some(key) = present(readable(key))? else { return Ok(None) };
        let value = present(key.get_value(name).map_err(system))?;
        Ok(value.map(|value| RegistryData { kind: value.ty().into(), bytes: value.to_vec() }))
    }

    fn set_value(&mut self, key: &str, name: &str, data: Option<&RegistryData>) -> io::Result<()> {
        let key = writable(key)?;
        match data {
            // `Other` passes the bytes on as they are: also a text without its closing zero is to come back so.
            Some(data) => key.set_bytes(name, Type::Other(data.kind), &data.bytes).map_err(system),
            None => present(key.remove_value(name).map_err(system)).map(drop),
        }
    }

    fn may_write(&self, key: &str) -> io::Result<()> {
        writable(key).map(drop)
    }
}

fn readable(key: &str) -> io::Result<Key> {
    LOCAL_MACHINE.options().read().wow64_64().open(below_root(key)?).map_err(system)
}

fn writable(key: &str) -> io::Result<Key> {
    LOCAL_MACHINE.options().access(KEY_SET_VALUE).wow64_64().open(below_root(key)?).map_err(system)
}

fn below_root(key: &str) -> io::Result<&str> {
    key.split_once('\\')
        .filter(|(root, rest)| root.eq_ignore_ascii_case("HKLM") && !rest.contains('\0'))
        .map(|(_, rest)| rest)
        .ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Absent is no error.
fn present<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The system's error as `std` knows it, with its kind and its words.
fn system(error: impl Into<io::Error>) -> io::Error {
    let error: io::Error = error.into();
    let code = error.raw_os_error().unwrap_or_default().cast_unsigned();
    if (code >> 16) & 0x7ff == FACILITY_WIN32 {
        io::Error::from_raw_os_error((code & 0xffff).cast_signed())
    } else {
        error
    }
}
