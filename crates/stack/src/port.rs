//! Where packets come and go: a TUN device, a TAP device with its neighbours, or one end of an emulated path.

use std::{
    io::{self, IoSlice},
    net::IpAddr,
    os::fd::{AsFd, BorrowedFd},
    time::Duration,
};

use fullpipe_lab::{
    LabError, Offload, Tun, attach, attach_ethernet,
    vnet::{DATA_VALID, GSO_TCPV4, GSO_TCPV6, NEEDS_CSUM, VNET_LEN, VnetHeader},
};
use fullpipe_tcp::{
    link::{Link, LinkCounts, LinkSetup},
    stack::Transmit,
    wire::ethernet,
};
use fullpipe_units::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The offload header and the largest packet behind it.
const LANDING: usize = VNET_LEN + ethernet::HEADER + 65_536;
/// Pieces of one packet that are written where they lie; a packet in more pieces is copied together first.
const PIECES: usize = 64;
/// Where a TCP checksum stands, from the start of its header.
const TCP_CHECKSUM: u16 = 16;
/// Neighbours that an Ethernet device remembers: this machine's kernel and what it bridges.
const NEIGHBOURS: usize = 32;
/// How long the other end of a pair may take to make room.
const ROOM_WAIT: Duration = Duration::from_millis(100);

/// A port: packets in, packets out.
#[derive(Debug)]
pub struct Port {
    tun: Tun,
    mtu: u16,
    offload: bool,
    landing: Box<[u8]>,
    scratch: Vec<u8>,
    /// Where the device carries Ethernet frames.
    link: Option<Box<Link<NEIGHBOURS>>>,
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived<'a> {
    /// What is for the stack; a frame that only concerns the link has nothing for it.
    pub(crate) packet: Option<&'a [u8]>,
    /// Its TCP checksum need not be looked at.
    pub(crate) verified: bool,
    /// How many packets of wire size it stands for.
    pub(crate) segments: u32,
}

impl Port {
    /// A TUN device `name` whose other side is the kernel of this thread's network namespace, with these addresses and
    /// their prefix lengths. A device that exists is used as it is.
    ///
    /// # Errors
    /// What is needed where a right is missing, else what the kernel refused.
    pub fn tun(name: &str, mtu: u16, kernel: &[(IpAddr, u8)]) -> Result<Self, LabError> {
        let (tun, offload) = attach(name, mtu, kernel)?;
        Ok(Self::new(tun, mtu, offload != Offload::Off))
    }

    /// A TAP device `name`, which carries Ethernet frames, as [`tun`](Self::tun) otherwise. `own` is this end of the link.
    ///
    /// # Errors
    /// What is needed where a right is missing, else what the kernel refused.
    pub fn tap(name: &str, mtu: u16, kernel: &[(IpAddr, u8)], own: LinkSetup) -> Result<Self, LabError> {
        let (tun, offload) = attach_ethernet(name, mtu, kernel)?;
        Ok(Self { link: Some(Box::new(Link::new(own))), ..Self::new(tun, mtu, offload != Offload::Off) })
    }

    /// The bare end of an emulated path ([`fullpipe_lab::Lab::join_bare`]). Without `offload` the stack sends packets of wire
    /// size with complete checksums, as a device without a helpful network card.
    pub fn bare(tun: Tun, mtu: u16, offload: bool) -> Self {
        Self::new(tun, mtu, offload)
    }

    fn new(tun: Tun, mtu: u16, offload: bool) -> Self {
        Self { tun, mtu, offload, landing: vec![0; LANDING].into(), scratch: Vec::new(), link: None }
    }

    /// The largest packet on the wire, in bytes.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Whether super-packets may be sent.
    pub fn offload(&self) -> bool {
        self.offload
    }

    /// The next packet that waits; `None` where none does.
    pub(crate) fn read(&mut self, now: Instant) -> io::Result<Option<Arrived<'_>>> {
        let Some(read) = self.tun.read(&mut self.landing)? else { return Ok(None) };
        let Some((header, packet)) = self.landing[..read].split_first_chunk::<VNET_LEN>() else {
            // A pair of which the other end is gone reads nothing, again and again.
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let vnet = VnetHeader::parse(header);
        let segments = match vnet.gso_size {
            0 => 1,
            size => packet.len().div_ceil(usize::from(size)) as u32,
        };
        let packet = match &mut self.link {
            // A frame that is dropped has been counted by the link.
            Some(link) => link.on_frame(now, packet).unwrap_or(None),
            None => Some(packet),
        };
        Ok(Some(Arrived { packet, verified: vnet.flags & (NEEDS_CSUM | DATA_VALID) != 0, segments }))
    }

    /// Sends a packet, or keeps it until its neighbour is found.
    pub(crate) fn write(&mut self, now: Instant, packet: &Transmit<'_>) -> io::Result<()> {
        let frame = match &mut self.link {
            Some(link) => match link.send(now, packet) {
                Some(header) => Some(header),
                None => return self.write_own(),
            },
            None => None,
        };
        let frame = frame.as_ref().map_or(&[][..], |header| &header[..]);
        let vnet = offload_header(packet, frame.len()).to_bytes();
        let mut parts = [IoSlice::new(&[]); PIECES];
        parts[0] = IoSlice::new(&vnet);
        parts[1] = IoSlice::new(frame);
        parts[2] = IoSlice::new(packet.headers());
        let mut count = 3;
        for piece in packet.data() {
            if count == PIECES {
                self.scratch.resize(packet.len(), 0);
                packet.copy_to(&mut self.scratch);
                return send(&self.tun, &[IoSlice::new(&vnet), IoSlice::new(frame), IoSlice::new(&self.scratch)]);
            }
            parts[count] = IoSlice::new(piece);
            count += 1;
        }
        send(&self.tun, &parts[..count])
    }

    /// Sends the frames of the link's own.
    pub(crate) fn write_own(&mut self) -> io::Result<()> {
        let Some(link) = &mut self.link else { return Ok(()) };
        while let Some(frame) = link.poll_transmit() {
            send(&self.tun, &[IoSlice::new(&[0; VNET_LEN]), IoSlice::new(frame)])?;
        }
        Ok(())
    }

    /// Does what the link has to do; gives when it has to do something again.
    pub(crate) fn on_timeout(&mut self, now: Instant) -> Option<Instant> {
        let link = self.link.as_mut()?;
        link.on_timeout(now);
        link.next_timeout()
    }

    /// What the link of an Ethernet device has counted.
    pub fn link_counts(&self) -> Option<LinkCounts> {
        self.link.as_ref().map(|link| *link.counts())
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}

/// A TUN device takes what it is given; a pair may be full, and then its reader gets a little time.
fn send(tun: &Tun, parts: &[IoSlice<'_>]) -> io::Result<()> {
    match tun.write(parts) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let wait = Timespec { tv_sec: 0, tv_nsec: ROOM_WAIT.subsec_nanos().into() };
            poll(&mut [PollFd::new(tun, PollFlags::OUT)], Some(&wait))?;
            tun.write(parts)
        }
        result => result,
    }
}

/// `before` bytes of a link's header come first.
fn offload_header(packet: &Transmit<'_>, before: usize) -> VnetHeader {
    if !packet.needs_checksum() {
        return VnetHeader::default();
    }
    let tcp_at = (before + packet.ip_header_len()) as u16;
    let (gso_type, gso_size) = match packet.split_into() {
        Some(size) if packet.headers().first().is_some_and(|first| first >> 4 == 6) => (GSO_TCPV6, size),
        Some(size) => (GSO_TCPV4, size),
        None => Default::default(),
    };
    VnetHeader {
        flags: NEEDS_CSUM,
        gso_type,
        hdr_len: (before + packet.headers().len()) as u16,
        gso_size,
        csum_start: tcp_at,
        csum_offset: TCP_CHECKSUM,
    }
}
