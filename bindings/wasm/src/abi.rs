//! How a page calls: it asks for room, writes its question there, and reads the answer from the same place. No pointer is
//! followed here; what the page writes to is this module's own memory.

#![expect(unsafe_code, reason = "a name that a page calls is exported as it is")]

use std::sync::{Mutex, PoisonError};

/// The question, then the answer.
static TEXT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Makes room for a question of so many bytes, and tells where.
// SAFETY: no other function of the module has this name.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn room(len: usize) -> *mut u8 {
    let mut text = TEXT.lock().unwrap_or_else(PoisonError::into_inner);
    text.clear();
    text.resize(len, 0);
    text.as_mut_ptr()
}

/// Answers the question that was written there; how many bytes the answer has.
#[cfg(feature = "simulator")]
// SAFETY: no other function of the module has this name.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn answer() -> usize {
    let mut text = TEXT.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = crate::answer(&String::from_utf8_lossy(&text));
    *text = answer.into_bytes();
    text.len()
}

/// Reads the capture that was written there, behind its name of `name_len` bytes; how many bytes the answer has. The first says
/// what it is: `P` a page, `E` an error in words.
#[cfg(feature = "reader")]
// SAFETY: no other function of the module has this name.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn read(name_len: usize, seed: u64) -> usize {
    let mut text = TEXT.lock().unwrap_or_else(PoisonError::into_inner);
    let mut capture = std::mem::take(&mut *text);
    let name: Vec<u8> = capture.drain(..name_len.min(capture.len())).collect();
    let (kind, text_or_error) = match crate::read(&String::from_utf8_lossy(&name), seed, capture) {
        Ok(page) => ('P', page),
        Err(error) => ('E', error),
    };
    *text = format!("{kind}{text_or_error}").into_bytes();
    text.len()
}

/// Where the answer is.
// SAFETY: no other function of the module has this name.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn place() -> *const u8 {
    TEXT.lock().unwrap_or_else(PoisonError::into_inner).as_ptr()
}
