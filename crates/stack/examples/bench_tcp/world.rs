//! A network namespace with a device in it, the kernel's end of a connection, and what is measured about one.

use std::{
    error::Error,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use fullpipe_lab::{Lab, LabHost, LabOptions};
use fullpipe_path::{HopSpec, IpVersions, PathHop, PathSpec, Side};
use rustix::{
    net::{AddressFamily, SocketType, connect, socket, sockopt::set_tcp_congestion},
    time::{ClockId, clock_gettime},
};

use crate::Way;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The wire's packets.
pub(crate) const MTU: u16 = 1500;
/// The kernel's address on a device.
pub(crate) const KERNEL: &str = "10.83.0.1";
/// The stack's.
pub(crate) const STACK: [u8; 4] = [10, 83, 0, 2];
/// Where the stack listens.
pub(crate) const PORT: u16 = 5001;

/// What one run came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) gbps: f64,
    pub(crate) stack_ns_per_kb: f64,
    /// Of it, what the thread spent in the stack itself and its application, and not in the kernel.
    pub(crate) own_ns_per_kb: f64,
    pub(crate) both_ns_per_kb: f64,
}

/// A host in a namespace of its own.
pub(crate) struct World {
    lab: Lab,
}

impl World {
    pub(crate) fn new() -> Result<Self> {
        let hops = vec![PathHop { name: None, ab: HopSpec::default(), ba: HopSpec::default() }];
        let path = PathSpec { mtu: MTU.into(), ip: IpVersions::V4, hops };
        let options = LabOptions { realtime: false, keep_awake: false, ..LabOptions::default() };
        Ok(Self { lab: Lab::join(&path, 1, options)? })
    }

    /// The host; its emulated path stays unused.
    pub(crate) fn host(&self) -> &LabHost {
        self.lab.host(Side::B)
    }

    /// Runs `ip` in the namespace.
    pub(crate) fn ip(&self, arguments: &[&str]) -> Result<()> {
        let output = self.host().command("ip").args(arguments).output()?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()).into())
    }

    /// The kernel's end: connects and reads or writes for `span`; tells how many bytes passed.
    pub(crate) fn kernel(&self, way: Way, address: SocketAddr, span: Duration) -> Result<JoinHandle<io::Result<u64>>> {
        Ok(self.host().spawn("kernel", move || exchange(dial(address)?, way, span))?)
    }
}

/// A connection of the kernel's with CUBIC from the start: one that began with BBR, as a machine's default may be, is paced by a
/// timer for as long as it lives.
pub(crate) fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    set_tcp_congestion(&socket, "cubic")?;
    connect(&socket, &address)?;
    Ok(socket.into())
}

/// Where the stack sends, the kernel reads.
pub(crate) fn exchange(mut stream: TcpStream, way: Way, span: Duration) -> io::Result<u64> {
    stream.set_read_timeout(Some(span))?;
    let mut block = vec![0; 1 << 20];
    let (end, mut bytes) = (Instant::now() + span, 0);
    while Instant::now() < end {
        bytes += match way {
            Way::Sends => match stream.read(&mut block)? {
                0 => break,
                len => len as u64,
            },
            Way::Receives => stream.write(&block)? as u64,
        };
    }
    Ok(bytes)
}

/// Wall and processor time since a start.
pub(crate) struct Clocks {
    wall: Instant,
    thread_ns: u64,
    own_ns: u64,
    process_ns: u64,
}

impl Clocks {
    pub(crate) fn start() -> Self {
        let (thread_ns, process_ns) = (used_ns(ClockId::ThreadCPUTime), used_ns(ClockId::ProcessCPUTime));
        Self { wall: Instant::now(), thread_ns, own_ns: own_ns(), process_ns }
    }

    /// For so many bytes, on the stack's own thread.
    pub(crate) fn figures(&self, bytes: u64) -> Figures {
        let kilobytes = bytes as f64 / 1e3;
        Figures {
            gbps: bytes as f64 * 8.0 / self.wall.elapsed().as_nanos() as f64,
            stack_ns_per_kb: (used_ns(ClockId::ThreadCPUTime) - self.thread_ns) as f64 / kilobytes,
            own_ns_per_kb: (own_ns() - self.own_ns) as f64 / kilobytes,
            both_ns_per_kb: (used_ns(ClockId::ProcessCPUTime) - self.process_ns) as f64 / kilobytes,
        }
    }
}

fn used_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What this thread has spent outside of the kernel, to a hundredth of a second (proc_pid_stat(5): the twelfth field behind the
/// name, in ticks for user space).
fn own_ns() -> u64 {
    const TICK_NS: u64 = 10_000_000;
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    let ticks = stat.rsplit(')').next().and_then(|fields| fields.split_whitespace().nth(11)?.parse::<u64>().ok());
    ticks.unwrap_or(0) * TICK_NS
}
