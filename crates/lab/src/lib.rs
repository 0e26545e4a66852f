//! Real kernels joined by an emulated path: network namespaces, TUN devices and an emulated path.
//!
//! A [`Lab`] is two Linux hosts inside this process, each in a network namespace with a TUN device, and a thread that
//! carries packets between the devices as a [`OneWay`](fullpipe_path::OneWay) for each direction decides. Nothing is
//! written to the file system and no other program is needed; whatever way the process ends, the kernel removes all of
//! it. The lab measures its own error ([`Lab::path_error`]) and says when a result can't be used ([`Lab::valid`]).
//!
//! A stack in user space takes the place of a kernel at one end ([`Lab::join_bare`]), or stands opposite this machine's
//! own kernel at a TUN device ([`attach`]).
//!
//! What is *not* here: what the path does (`fullpipe_path`), measuring over it (`measure`), and other systems: the hosts
//! run the kernel that runs this process.
//!
//! Read first: network_namespaces(7), `Documentation/networking/tuntap.rst` of the kernel, and the virtio-net header in
//! VIRTIO 1.2, section 5.1.6.

#[cfg(not(target_os = "linux"))]
compile_error!("a lab is made of Linux network namespaces");

mod attach;
mod awake;
pub mod bench;
mod checksum;
mod driver;
mod error;
mod frame;
mod host;
mod init;
mod lab;
mod lane;
mod netns;
mod rights;
mod stats;
mod steer;
mod sys;
mod too_big;
mod tun;
pub mod vnet;

pub use attach::{attach, attach_ethernet};
pub use driver::{Priority, raise_priority};
pub use error::{CouldNotKeepUp, LabError};
pub use fullpipe_path::{DEVICE, Side};
pub use host::LabHost;
pub use lab::{Lab, LabOptions};
pub use rights::{enter_user_namespace, preflight};
pub use stats::PathError;
pub use sys::unacknowledged;
pub use tun::{Offload, Tun};
