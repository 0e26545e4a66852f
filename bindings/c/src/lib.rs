//! fullpipe for C programs, as a static library.
//!
//! Two headers, and one file for each in which C's pointers become references and slices: `include/fullpipe.h` is the stack
//! with NetBurner's calls (Linux), `include/fullpipe_socket.h` sizes the buffers of the system's own sockets (Linux,
//! Windows, FreeBSD, macOS).

mod socket;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(target_os = "linux")]
mod stack;

pub use socket::*;
#[cfg(target_os = "linux")]
pub use stack::*;
