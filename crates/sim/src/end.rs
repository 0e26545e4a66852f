//! One simulated host: a stack in a platform's dress, and the numbers of its socket.

use core::net::IpAddr;

use fullpipe_diagnose::SynFacts;
use fullpipe_path::{PathSpec, Side};
use fullpipe_tcp::{
    SecretKey,
    congestion::Algorithm,
    heap::HeapStorage,
    profile::{Budgets, ReceivePolicy},
    socket::{Counts, Endpoint, Info, SocketOptions, Tuple},
    stack::{Config, Device as Interface, Entry, ListenerId, SocketId, Stack},
};
use fullpipe_units::Instant;

use crate::{
    device::Device,
    packet::{Known, Whole},
    spec::{HostSpec, SimError},
};

const PORT: u16 = 5201;
/// ... and whoever connects there.
const CALLER: u16 = 40_000;
/// Largest number of buffers of one host: their names have 16 bits.
const MOST: u64 = 60_000;
/// Entries of a host: a listener and its connection.
const ENTRIES: usize = 2;
/// Buffers for what must leave.
const RESERVE: u16 = 2;
/// Buffers beyond what the byte limits need: segments at a write's end are small.
const SPARE: u16 = 72;

/// Bytes that writes of up to 1 MiB each, which begin while a segment is being filled, take beyond the limit of a send buffer that fills segments.
const PAST_LIMIT: u64 = 8 << 20;

/// So many buffers are fetched ahead at the most: of more the first would leave the cache again.
const MOST_TOUCHED: usize = 32;

/// What a socket says of itself, where there is one.
pub(crate) type Said = Option<(Info, Counts)>;

/// A host.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct End {
    /// The number of its connection.
    pub(crate) number: u32,
    pub(crate) socket: Option<SocketId>,
    pub(crate) device: Device,
    pub(crate) stack: Stack<HeapStorage<[Entry; ENTRIES]>>,
    listener: Option<ListenerId>,
    options: SocketOptions,
    is_v6: bool,
    /// What its SYN said.
    pub(crate) syn: Option<SynFacts>,
    /// Buffers that may hold what was sent, where these count and not bytes.
    pub(crate) unacknowledged: Option<u16>,
    /// The receive buffer at most, in bytes.
    pub(crate) receive_max: u64,
}

fn address(host: u8, is_v6: bool) -> IpAddr {
    let side = if host == 0 { Side::A } else { Side::B };
    if is_v6 { side.ipv6().into() } else { side.ipv4().into() }
}

/// Whole segments of a buffer of so many bytes.
fn segments(bytes: u64, mss: u16) -> u16 {
    (bytes / u64::from(mss)).clamp(1, MOST) as u16
}

impl End {
    /// Its application writes at most `longest_write` bytes at once.
    pub(crate) fn new(
        spec: &HostSpec,
        host: u8,
        path: &PathSpec,
        sends: bool,
        longest_write: u32,
        key: [u8; 16],
        number: u32,
    ) -> Self {
        // Where both are there, IPv4 it is, as in the lab.
        let is_v6 = !path.ip.has_v4();
        let mtu = spec.mtu.map_or(path.mtu, |own| path.mtu.min(own.into())).clamp(576, 65_535) as u16;
        let mss = mtu - if is_v6 { 60 } else { 40 };
        let mut profile = spec.profile;
        let (least, most) = (segments(spec.receive.initial.get(), mss), segments(spec.receive.max.get(), mss));
        if !spec.budgets {
            // What a long write puts past the limit.
            let past = if spec.send.fills_segments { PAST_LIMIT } else { 0 };
            let send = segments(spec.send.max.get().saturating_add(past), mss) + SPARE;
            let receive = least.min(most);
            profile.budgets = if sends {
                Budgets { receive: receive.min(64), out_of_order: 64, transmit: send, unacknowledged: send }
            } else {
                Budgets { receive, out_of_order: most, transmit: 64, unacknowledged: 64 }
            };
            profile.receive = match profile.receive {
                _ if sends || most <= receive => ReceivePolicy::Fixed,
                ReceivePolicy::Fixed => ReceivePolicy::Grow { max: most },
                growing => growing.with_max(most),
            };
        }
        if profile.window_scaling {
            let needed = shift(u64::from(most) * u64::from(mss));
            // Shift 0 is a handicap that somebody asked for.
            profile.window_shift =
                profile.window_shift.map_or(Some(needed), |own| Some(if own == 0 { 0 } else { own.max(needed) }));
        } else {
            let unscaled = *Budgets::UNSCALED.end();
            profile.budgets.receive = profile.budgets.receive.min(unscaled);
            if !spec.budgets {
                // What is out of order lies in the same window.
                profile.budgets.out_of_order = profile.budgets.out_of_order.min(unscaled);
            }
            profile.receive = ReceivePolicy::Fixed;
        }
        let budgets = profile.budgets;
        let growing = profile.receive.max().unwrap_or(budgets.receive);
        // What arrives never exceeds the window, in order or not, and what is written never the send buffer.
        let held = if spec.budgets { [budgets.out_of_order, budgets.unacknowledged] } else { [0; 2] };
        let buffers: u32 = [growing, budgets.transmit, SPARE].into_iter().chain(held).map(u32::from).sum();
        let buffers = buffers.min(65_000) as u16;
        // The segments of the longest write, options and what a path takes of the packets left aside; what arrives is one.
        let at_once = (longest_write / path.path_mtu().min(mtu.into()).saturating_sub(80).max(64)) as u16 + 8;
        let interface = Interface { mtu, checksum_offload: true, burst: 0 };
        let mut config = Config::new(address(host, is_v6), interface, SecretKey(key));
        config.profile = profile;
        let mut options = SocketOptions::from_profile(&profile);
        options.no_nagle = spec.no_nagle;
        let memory = HeapStorage::overlaid([const { Entry::FREE }; ENTRIES], buffers, mss, RESERVE, at_once);
        let memory = if profile.congestion == Algorithm::Bbr { memory.remembering() } else { memory };
        Self {
            number,
            stack: Stack::new(memory, config),
            socket: None,
            listener: None,
            options,
            is_v6,
            device: Device::new(spec.per_packet.into()),
            syn: None,
            unacknowledged: spec.budgets.then_some(budgets.unacknowledged),
            receive_max: u64::from(growing) * u64::from(mss),
        }
    }

    pub(crate) fn listen(&mut self) -> Result<(), SimError> {
        let opened = self.stack.listen(None, PORT, 1, self.options);
        self.listener = Some(opened.map_err(|error| SimError::Open(error.to_string()))?);
        Ok(())
    }

    pub(crate) fn connect(&mut self, now: Instant, to: u8) -> Result<(), SimError> {
        let remote = Endpoint::new(address(to, self.is_v6), PORT);
        let opened = self.stack.connect(now, Some(CALLER), remote, self.options);
        self.socket = Some(opened.map_err(|error| SimError::Open(error.to_string()))?);
        Ok(())
    }

    /// Takes the connection, where one has come.
    pub(crate) fn accept(&mut self, now: Instant) {
        if self.socket.is_none() {
            self.socket = self.listener.and_then(|listener| self.stack.accept(now, listener));
        }
    }

    /// So many segments leave next without waiting for more.
    pub(crate) fn push(&mut self, segments: u8) {
        if let Some(id) = self.socket {
            self.stack.push(id, segments);
        }
    }

    /// What its plain segments don't say, where it is `host`, and whoever `opens` the connection.
    pub(crate) fn known(&self, host: u8, opens: bool) -> Known {
        let (own, other) = if opens { (CALLER, PORT) } else { (PORT, CALLER) };
        let at = |host, port| Endpoint::new(address(host, self.is_v6), port);
        let tuple = Tuple::new(at(host, own), at(1 - host, other));
        Known { tuple, ttl: self.stack.config().profile.ttl }
    }

    /// Fetches what so many acknowledgements need; each of them mostly gives back two buffers, and lets two segments leave.
    #[inline]
    pub(crate) fn touch(&mut self, acknowledgements: usize) {
        if let Some(id) = self.socket {
            core::hint::black_box(self.stack.touch(id, (2 * acknowledgements).min(MOST_TOUCHED) as u16));
        }
    }

    /// What its socket says now.
    pub(crate) fn said(&mut self) -> Said {
        let socket = self.stack.socket(self.socket?)?;
        Some((socket.info(), *socket.counts()))
    }

    pub(crate) fn info(&mut self) -> Option<Info> {
        self.stack.info(self.socket?)
    }

    /// Whether its application takes all that arrives, and only counts it.
    pub(crate) const fn set_discards(&mut self, discards: bool) {
        self.options.discards = discards;
    }
}

/// Notes what an end's SYN says.
pub(crate) fn note_syn(syn: &mut Option<SynFacts>, packet: &Whole) {
    let Some(header) = packet.datagram().map(|datagram| &datagram.header) else { return };
    if syn.is_none() {
        *syn = Some(SynFacts {
            window: Some(header.window),
            mss: header.options.mss,
            window_scale: header.options.window_scale,
            sack_permitted: header.options.sack_permitted,
            timestamps: header.options.timestamps.is_some(),
        });
    }
}

/// The least shift with which the window field can say `bytes`.
fn shift(bytes: u64) -> u8 {
    (0..14).find(|shift| 65_535 << shift >= bytes).unwrap_or(14)
}
