//! The TCP engine on real interfaces: [`fullpipe_tcp`] with a device, a clock and randomness.
//!
//! A [`Driver`] joins a stack to a [`Port`], which is a TUN device or one end of an emulated path, and does whatever is due;
//! a [`Host`] is a driver with a thread and the calls that applications know: connect, listen, accept, read, write, close.
//! Packets cross the port with an offload header: where the kernel takes part, super-packets of up to 64 KB go both ways
//! and nobody sums payload.
//!
//! What is *not* here: TCP itself (`fullpipe_tcp`), the emulated path (`fullpipe_lab`), reports.
//!
//! ```no_run
//! use std::io::Write;
//!
//! use fullpipe_stack::{Host, Port, Settings};
//!
//! let port = Port::tun("fp0", 1500, &[("10.82.0.1".parse()?, 24)])?;
//! let host = Host::start(port, Settings::new(&["10.82.0.2".parse()?]))?;
//! let mut connection = host.connect("10.82.0.1:5001".parse()?)?;
//! connection.write_all(b"from another TCP")?;
//! connection.close();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(not(target_os = "linux"))]
compile_error!("the stack's devices are those of Linux");

mod connection;
mod driver;
mod error;
pub mod experiment;
mod host;
mod pace;
mod port;
mod preset;
pub mod session;

pub use connection::{Connection, Listener};
pub use driver::{Driver, DriverCounts, Next, Settings};
pub use error::{StackError, kind_of};
pub use fullpipe_tcp::heap::HeapStorage;
pub use host::Host;
pub use port::Port;
pub use preset::Preset;
