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
// SAFETY: no other function of the module has this name.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn answer() -> usize {
    let mut text = TEXT.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = crate::answer(&String::from_utf8_lossy(&text));
    *text = answer.into_bytes();
    text.len()
}

/// Where the answer is.
// SAFETY: no other function of the module has this name.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn place() -> *const u8 {
    TEXT.lock().unwrap_or_else(PoisonError::into_inner).as_ptr()
}
