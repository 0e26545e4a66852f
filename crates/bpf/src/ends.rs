//! Connections that end, each reported once.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::linux::fs::MetadataExt as _,
};

use aya::{
    Btf, Ebpf, EbpfLoader,
    maps::{Array, MapData, RingBuf},
    programs::BtfTracePoint,
};

use crate::{BpfError, LOADING, lacks, program, refused};

/// The object of `ends.bpf.c`, placed as ELF wants it.
static OBJECT: &[u8] = aya::include_bytes_aligned!("ends.bpf.o");
const TRACEPOINT: &str = "inet_sock_set_state";
/// What programs take that read the kernel's structures.
const TRACING: &str = "CAP_BPF and CAP_PERFMON";
const BEGINNING: &str = "following connections that end";
/// `AF_INET6`, and errors, of asm-generic.
const AF_INET6: u16 = 10;
const EPIPE: u32 = 32;
const ECONNRESET: u32 = 104;
const ETIMEDOUT: u32 = 110;
const ECONNREFUSED: u32 = 111;
/// include/net/tcp_states.h.
const ESTABLISHED: u8 = 1;
const CLOSE_WAIT: u8 = 8;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// Both ends said that they were done, or this one did not wait any longer for the other to.
    Closed,
    /// The peer ended it by a reset.
    ResetByPeer,
    /// It was closed here with a reset: unread data, or `SO_LINGER` of 0.
    ResetHere,
    /// The peer, or something in between, did not want it.
    Refused,
    /// Nothing was heard for too long.
    TimedOut,
    /// Another error.
    Failed,
}

/// A connection that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The cookie by which `sock_diag` names the socket; `None` where nobody ever asked for it.
    pub cookie: Option<u64>,
    /// The other end.
    pub peer: IpAddr,
    /// The name of the process that connected or closed it; `None` where neither was seen.
    pub process: Option<String>,
    /// Payload acknowledged and received, in bytes, since it began.
    pub moved: [u64; 2],
    /// Segments with payload sent, and retransmitted among them, since it began.
    pub segments: [u64; 2],
    /// The smoothed round trip, microseconds.
    pub rtt_us: Option<u32>,
    /// How.
    pub how: How,
}

/// Follows the connections of the network namespace that this was begun in, as long as it lives: nothing is pinned.
pub struct Ends {
    ebpf: Ebpf,
    ring: RingBuf<MapData>,
}

impl Ends {
    /// Begins.
    ///
    /// # Errors
    ///
    /// Without rights (CAP_BPF and CAP_PERFMON), or where the kernel can't: it takes its BTF and Linux 5.11.
    pub fn begin() -> Result<Self, BpfError> {
        Self::attached().map_err(|error| match error {
            BpfError::Denied { operation, .. } => BpfError::Denied { operation, rights: TRACING },
            other => other,
        })
    }

    fn attached() -> Result<Self, BpfError> {
        let namespace = fs::metadata("/proc/thread-self/ns/net").map_err(|error| refused(BEGINNING, &error))?.st_ino();
        // The inode of a namespace has 32 bits (`proc_ns`).
        let namespace = u32::try_from(namespace).map_err(|error| refused(BEGINNING, &error))?;
        let btf =
            Btf::from_sys_fs().map_err(|error| refused("reading the kernel's BTF (CONFIG_DEBUG_INFO_BTF)", &error))?;
        let mut ebpf = EbpfLoader::new()
            .btf(Some(&btf))
            .override_global("namespace", &namespace, true)
            .load(OBJECT)
            .map_err(|error| refused(LOADING, &error))?;
        let program: &mut BtfTracePoint = program(&mut ebpf, "ends")?;
        program.load(TRACEPOINT, &btf).map_err(|error| refused(LOADING, &error))?;
        program.attach().map_err(|error| refused("attaching a BPF program to a tracepoint", &error))?;
        let ring = ebpf.take_map("ENDS").ok_or_else(|| lacks("ENDS"))?;
        let ring = RingBuf::try_from(ring).map_err(|error| refused(BEGINNING, &error))?;
        Ok(Self { ebpf, ring })
    }

    /// Hands on those that ended since this was asked last.
    pub fn drain(&mut self, mut each: impl FnMut(Ended)) {
        while let Some(item) = self.ring.next() {
            if let Some(ended) = ended(&item) {
                each(ended);
            }
        }
    }

    /// How many ended of which nothing is known, because they were too many between two times that this was asked.
    ///
    /// # Errors
    ///
    /// Where the kernel doesn't tell.
    pub fn lost(&self) -> Result<u64, BpfError> {
        let map = self.ebpf.map("LOST").ok_or_else(|| lacks("LOST"))?;
        let map = Array::<&MapData, u64>::try_from(map).map_err(|error| refused("counting", &error))?;
        map.get(&0, 0).map_err(|error| refused("counting", &error))
    }
}

/// Reads `struct end` of `ends.bpf.c`.
fn ended(raw: &[u8]) -> Option<Ended> {
    let long = |at: usize| Some(u64::from_ne_bytes(*raw.get(8 * at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_ne_bytes(*raw.get(at..)?.first_chunk()?));
    let [acked, received, sent, again] = [long(1)?, long(2)?, long(3)?, long(4)?];
    let address: [u8; 16] = *raw.get(56..)?.first_chunk()?;
    let name: &[u8; 16] = raw.get(72..)?.first_chunk()?;
    let family = u16::from_ne_bytes(*raw.get(88..)?.first_chunk()?);
    let (state, has_fin) = (*raw.get(90)?, *raw.get(91)?);
    let v6 = Ipv6Addr::from(address);
    let [a, b, c, d, ..] = address;
    let peer = if family == AF_INET6 { v6.to_canonical() } else { Ipv4Addr::new(a, b, c, d).into() };
    let name: Vec<u8> = name.iter().copied().take_while(|byte| *byte != 0).collect();
    Some(Ended {
        cookie: Some(long(0)?).filter(|cookie| *cookie != 0),
        peer,
        process: (!name.is_empty()).then(|| String::from_utf8_lossy(&name).into_owned()),
        // The kernel counts a SYN and a FIN that are acknowledged as a byte each, and a FIN that is received.
        moved: [acked.min(sent.saturating_sub(again)), received.saturating_sub(has_fin.into())],
        segments: [word(40)?.into(), word(44)?.into()],
        // In eighths (`srtt_us` of tcp_sock).
        rtt_us: Some(word(48)? >> 3).filter(|time| *time > 0),
        how: how(word(52)?, state),
    })
}

/// From what the socket's error is, and the state that it was in.
fn how(error: u32, state: u8) -> How {
    match error {
        0 if state == ESTABLISHED || state == CLOSE_WAIT => How::ResetHere,
        0 => How::Closed,
        ECONNRESET | EPIPE => How::ResetByPeer,
        ECONNREFUSED => How::Refused,
        ETIMEDOUT => How::TimedOut,
        _ => How::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_is_nothing() {
        assert!(ended(&[0; 96]).is_some());
        for len in 0..92 {
            assert_eq!(ended(&vec![0; len]), None, "{len}");
        }
    }

    #[test]
    fn how_it_ended_is_told_by_error_and_state() {
        assert_eq!(how(0, ESTABLISHED), How::ResetHere);
        assert_eq!(how(0, 5), How::Closed);
        assert_eq!(how(ECONNRESET, ESTABLISHED), How::ResetByPeer);
        assert_eq!(how(ETIMEDOUT, 2), How::TimedOut);
        assert_eq!(how(113, 2), How::Failed);
    }
}
