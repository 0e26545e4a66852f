//! A socket whose buffers fit its path: computed before the handshake, looked at again while the connection lives.

use std::{
    fmt, io,
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use fullpipe_units::{
    Bytes, Micros, Rate,
    sizing::{Goal, LARGEST_SHIFT, Sizes, UNSCALED},
    window_limited_rate,
};
use socket2::{Domain, SockRef, Socket, Type};

use crate::{
    Buffer, Decision, Fixed, Handle, Info, Limits, Path,
    decision::{Act, Now, Short, Want, Why, decide},
};

/// What an application wants of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    rate: Option<Rate>,
    goal: Goal,
    fixed: bool,
}

impl Wish {
    /// As fast as the path allows; automatic sizing, or what has passed so far, tells how much that takes.
    pub fn fast() -> Self {
        Self::default()
    }

    /// Throughput on a path that carries `rate`.
    pub fn bulk(rate: Rate) -> Self {
        Self { rate: Some(rate), ..Self::default() }
    }

    /// Short queues on a path that carries `rate`: buffers that fill it and no more.
    pub fn interactive(rate: Rate) -> Self {
        Self { rate: Some(rate), goal: Goal::Interactive, ..Self::default() }
    }

    /// Not left to automatic sizing: for a system on which it is known not to work, as some Windows Server 2012 whose
    /// level reads normal.
    pub fn fixed(self) -> Self {
        Self { fixed: true, ..self }
    }
}

/// What was decided for a socket, and what is needed to look at it again.
#[derive(Clone, Debug)]
pub struct Tuned {
    wish: Wish,
    path: Path,
    receive: Decision,
    send: Decision,
    /// Which buffers this library fixed: not every system tells.
    ours: Fixed,
    seen: Option<Seen>,
    /// The peer's window, where it held the sender between the last two looks and is one that needs no scaling.
    held_at: Option<Bytes>,
}

/// What had passed at a moment.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Instant,
    received: Option<u64>,
    acked: Option<u64>,
    /// How long the peer's window had held the sender.
    held: Option<Micros>,
}

/// What a connection without window scaling can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithoutScaling {
    /// Whether the SYNs tell. Where a system does not (Windows), a peer's window of at most 65,535 bytes that holds the
    /// sender counts: scaling is missing, or the peer's buffer is as small.
    pub is_certain: bool,
    /// The largest window.
    pub window: Bytes,
    /// The rate that it allows, where the round-trip time is known.
    pub allows: Option<Rate>,
    /// How many connections side by side reach the rate that was wished for.
    pub connections: Option<u64>,
}

/// Segments in a first flight (RFC 6928): no buffer is computed smaller.
const FIRST_FLIGHT: u64 = 10;
/// Time between two looks below which nothing is concluded from what passed.
const SHORTEST_LOOK: Duration = Duration::from_millis(10);

impl Tuned {
    /// Sizes a socket before it connects or listens, which is when the receive buffer decides the window's scale. What
    /// connections a listener accepts, they inherit.
    ///
    /// ```
    /// use std::{net::TcpListener, time::Duration};
    ///
    /// use fullpipe_socket::{Path, Tuned, Wish};
    /// use socket2::{Domain, Socket, Type};
    ///
    /// # let listener = TcpListener::bind("127.0.0.1:0")?;
    /// # let address = listener.local_addr()?;
    /// let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    /// let path = Path::to(address, Duration::from_secs(3))?;
    /// let mut tuned = Tuned::before_handshake(&socket, path, Wish::bulk("1G".parse()?))?;
    /// socket.connect(&address.into())?;
    /// // ... and now and then, while the connection lives:
    /// println!("{}", tuned.look_again(&socket)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The system's where the socket can't be asked or set.
    pub fn before_handshake(socket: &impl Handle, path: Path, wish: Wish) -> io::Result<Self> {
        Self::begin(socket, path, wish)
    }

    /// Sizes a socket that is connected already, one that was accepted for example. Its window's scale is decided, and
    /// bounds the receive buffer.
    ///
    /// # Errors
    /// The system's where the socket can't be asked or set.
    pub fn connected(socket: &impl Handle, wish: Wish) -> io::Result<Self> {
        let path = Path::read(socket).unwrap_or_default();
        let mut tuned = Self::begin(socket, path, wish)?;
        tuned.seen = Info::read(socket).ok().map(|info| Seen::from_info(&info));
        Ok(tuned)
    }

    /// Looks at a connection again: the round-trip time as it was measured since, whether windows are scaled, what
    /// passed. Sizes the buffers anew where they don't fit any more.
    ///
    /// # Errors
    /// The system's where the socket can't be asked or set.
    pub fn look_again(&mut self, socket: &impl Handle) -> io::Result<&Self> {
        let info = Info::read(socket).unwrap_or_default();
        self.path = self.path.refined(Path::read(socket).unwrap_or_default());
        let now = Seen::from_info(&info);
        let rates = self.rates(&info, now);
        self.held_at = self.held_unscaled(&info, now).or(self.held_at).filter(|_| self.path.scaling.is_none());
        // A look too soon leaves the earlier one to compare with.
        if self.seen.is_none_or(|seen| now.at.duration_since(seen.at) >= SHORTEST_LOOK) {
            self.seen = Some(now);
        }
        let receive = self.size(socket, Buffer::Receive, rates.0)?;
        let send = self.size(socket, Buffer::Send, rates.1)?;
        self.receive = self.receive.followed_by(receive);
        self.send = self.send.followed_by(send);
        Ok(self)
    }

    /// What is known of the path.
    pub fn path(&self) -> Path {
        self.path
    }

    /// What was decided for the receive buffer.
    pub fn receive(&self) -> Decision {
        self.receive
    }

    /// What was decided for the send buffer.
    pub fn send(&self) -> Decision {
        self.send
    }

    /// What the connection can do where its two SYNs did not both carry the window-scale option, or where all looks as if
    /// they had not; `None` where they did, or nobody tells.
    pub fn without_scaling(&self) -> Option<WithoutScaling> {
        let is_certain = self.path.scaling == Some(false);
        let window = if is_certain { UNSCALED } else { self.held_at? };
        let allows = self.path.rtt.and_then(|rtt| window_limited_rate(window, rtt));
        let wished = self.wish.rate.zip(self.path.rtt);
        let connections = wished.map(|(rate, rtt)| fullpipe_units::bdp(rate, rtt).get().div_ceil(window.get().max(1)));
        Some(WithoutScaling { is_certain, window, allows, connections: connections.map(|count| count.max(1)) })
    }

    /// The peer's window, where it held the sender for most of the time between two looks and no scaling shows in it.
    fn held_unscaled(&self, info: &Info, now: Seen) -> Option<Bytes> {
        let seen = self.seen.filter(|seen| now.at.duration_since(seen.at) >= SHORTEST_LOOK)?;
        let held = now.held?.get().saturating_sub(seen.held?.get());
        let passed = Micros::from(now.at.duration_since(seen.at)).get();
        let window = info.send_window.filter(|window| (Bytes::new(1)..=UNSCALED).contains(window))?;
        (held.saturating_mul(2) > passed).then_some(window)
    }

    fn begin(socket: &impl Handle, path: Path, wish: Wish) -> io::Result<Self> {
        let nothing = Decision::Automatic { reaches: None, short: None };
        let mut tuned =
            Self { wish, path, receive: nothing, send: nothing, ours: Fixed::default(), seen: None, held_at: None };
        tuned.receive = tuned.size(socket, Buffer::Receive, None)?;
        tuned.send = tuned.size(socket, Buffer::Send, None)?;
        Ok(tuned)
    }

    /// What comes in and what goes out in a second, as far as the kernel's counts tell.
    fn rates(&self, info: &Info, now: Seen) -> (Option<Rate>, Option<Rate>) {
        let since = self.seen.filter(|seen| now.at.duration_since(seen.at) >= SHORTEST_LOOK);
        let passed = |count: fn(&Seen) -> Option<u64>| {
            let seen = since?;
            let bytes = count(&now)?.saturating_sub(count(&seen)?);
            Rate::from_bytes(Bytes::new(bytes), Micros::from(now.at.duration_since(seen.at)))
        };
        // A window in each round trip, where the bytes are not counted.
        let outgoing = || Some(info.in_flight?).zip(info.rtt).and_then(|(bytes, rtt)| Rate::from_bytes(bytes, rtt));
        (passed(|seen| seen.received), passed(|seen| seen.acked).or_else(outgoing))
    }

    /// The payload that a buffer has to hold.
    fn payload(&self, buffer: Buffer, seen: Option<Rate>) -> Option<Bytes> {
        let rate = self.wish.rate.or(seen).filter(|rate| *rate > Rate::ZERO)?;
        let sizes = Sizes::new(rate, self.path.rtt?, self.wish.goal);
        let segment = u64::from(self.path.mss.unwrap_or(1_460)).max(1);
        let room = match buffer {
            Buffer::Receive => sizes.window.bytes,
            Buffer::Send => sizes.unacknowledged.bytes,
        };
        let whole = room.max(Bytes::new(FIRST_FLIGHT * segment)).round_up_to(segment);
        // The scale of a window is decided in the handshake.
        let largest = self.path.own_shift.filter(|_| buffer == Buffer::Receive);
        Some(largest.map_or(whole, |shift| whole.min(Bytes::new(UNSCALED.get() << shift.min(LARGEST_SHIFT)))))
    }

    fn size(&mut self, socket: &impl Handle, buffer: Buffer, seen: Option<Rate>) -> io::Result<Decision> {
        let limits = Limits::read(buffer);
        let size = size_of(socket, buffer)?;
        let known = Fixed::read(socket);
        let ours = self.ours.at(buffer);
        // Where no system tells: a new socket that differs from the others of its kind was set by somebody.
        let differs = || self.seen.is_none() && limits.initial.is_some_and(|initial| initial != size);
        let now = Now {
            buffer: size,
            is_fixed: known.map_or_else(|| ours || differs(), |fixed| fixed.at(buffer)),
            can_release: known.is_some(),
        };
        let fixed = match self.wish {
            Wish { fixed: true, .. } => Some(Why::Asked),
            Wish { goal: Goal::Interactive, .. } => Some(Why::ShortQueue),
            Wish { .. } => None,
        };
        let want = Want { payload: self.payload(buffer, seen), fixed, scaling: self.path.scaling };
        match decide(&limits, now, want) {
            Act::Nothing(decision) => Ok(decision),
            Act::Release(decision) => {
                let initial = limits.initial.filter(|initial| *initial > size);
                // Automatic sizing starts from what there is.
                initial.map_or(Ok(()), |initial| set(socket, buffer, &limits, initial))?;
                Fixed::read(socket).unwrap_or_default().with(buffer, false).put(socket)?;
                self.ours = self.ours.with(buffer, false);
                Ok(decision)
            }
            Act::Set { buffer: asked, wanted, why } => {
                set(socket, buffer, &limits, asked)?;
                self.ours = self.ours.with(buffer, true);
                let got = size_of(socket, buffer)?;
                let short = (got < wanted).then_some(Short { wanted, lift: limits.lifts_settable });
                Ok(Decision::Fixed { was: size, buffer: got, why, short })
            }
        }
    }
}

/// Connects to an address with buffers that fit the path: one connection to look, one to keep.
///
/// ```
/// # let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
/// # let address = listener.local_addr()?;
/// use fullpipe_socket::{Wish, connect};
///
/// let (stream, tuned) = connect(address, std::time::Duration::from_secs(3), Wish::bulk("500M".parse()?))?;
/// println!("{tuned}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// That nobody answers there in time, and what the system refuses.
pub fn connect(address: SocketAddr, patience: Duration, wish: Wish) -> io::Result<(TcpStream, Tuned)> {
    let path = Path::to(address, patience)?;
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    let mut tuned = Tuned::before_handshake(&socket, path, wish)?;
    socket.connect_timeout(&address.into(), patience)?;
    tuned.look_again(&socket)?;
    Ok((socket.into(), tuned))
}

fn size_of(socket: &impl Handle, buffer: Buffer) -> io::Result<Bytes> {
    let reference = SockRef::from(socket);
    let size = match buffer {
        Buffer::Receive => reference.recv_buffer_size(),
        Buffer::Send => reference.send_buffer_size(),
    };
    size.map(|bytes| Bytes::new(bytes as u64))
}

fn set(socket: &impl Handle, buffer: Buffer, limits: &Limits, size: Bytes) -> io::Result<()> {
    let asked = if limits.doubled { size.get().div_ceil(2) } else { size.get() };
    // A socket option is an int.
    let asked = usize::try_from(asked.min(i32::MAX.unsigned_abs().into())).unwrap_or(usize::MAX);
    let reference = SockRef::from(socket);
    match buffer {
        Buffer::Receive => reference.set_recv_buffer_size(asked),
        Buffer::Send => reference.set_send_buffer_size(asked),
    }
}

impl Seen {
    fn from_info(info: &Info) -> Self {
        Self { at: Instant::now(), received: info.bytes_received, acked: info.bytes_acked, held: info.rwnd_limited }
    }
}

impl Fixed {
    fn at(self, buffer: Buffer) -> bool {
        match buffer {
            Buffer::Receive => self.receive,
            Buffer::Send => self.send,
        }
    }

    fn with(self, buffer: Buffer, is_fixed: bool) -> Self {
        match buffer {
            Buffer::Receive => Self { receive: is_fixed, ..self },
            Buffer::Send => Self { send: is_fixed, ..self },
        }
    }
}

impl fmt::Display for Tuned {
    /// What was decided and why, a line for each thing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.path.rtt, self.path.mtu) {
            (Some(rtt), Some(mtu)) => writeln!(f, "path: round trip {rtt}, MTU {mtu}")?,
            (Some(rtt), None) => writeln!(f, "path: round trip {rtt}")?,
            _ => writeln!(f, "path: round-trip time unknown")?,
        }
        writeln!(f, "receive buffer: {}", self.receive)?;
        write!(f, "send buffer: {}", self.send)?;
        let Some(without) = self.without_scaling() else { return Ok(()) };
        let seen = if without.is_certain { "missing" } else { "missing, or the peer's buffer is as small" };
        write!(f, "\nwindow scaling: {seen}; a window of {}", without.window)?;
        without.allows.map_or(Ok(()), |rate| write!(f, " allows {rate}"))?;
        match without.connections {
            Some(count) if count > 1 => write!(f, ", and {count} connections side by side the rate wished for"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Windows tells 100 ms after a first look: the peer's window, and how long it held the sender.
    fn looked_at(window: u64, held_ms: u64) -> Tuned {
        let start = Instant::now();
        let seen = Seen { at: start, received: None, acked: None, held: Some(Micros::from_millis(40)) };
        let path = Path::of_rtt(Micros::from_millis(80));
        let nothing = Decision::Automatic { reaches: None, short: None };
        let mut tuned = Tuned {
            wish: Wish::bulk(Rate::from_bps(100_000_000)),
            path,
            receive: nothing,
            send: nothing,
            ours: Fixed::default(),
            seen: Some(seen),
            held_at: None,
        };
        let info = Info { send_window: Some(Bytes::new(window)), ..Info::default() };
        tuned.path = path.refined(Path::from_info(&info, false));
        let now =
            Seen { at: start + Duration::from_millis(100), held: Some(Micros::from_millis(40 + held_ms)), ..seen };
        tuned.held_at = tuned.held_unscaled(&info, now);
        tuned
    }

    #[test]
    fn a_small_window_that_holds_the_sender_is_said_where_no_system_tells_of_scaling() {
        let tuned = looked_at(64_512, 90);
        let without = tuned.without_scaling().unwrap();
        assert_eq!((without.is_certain, without.window), (false, Bytes::new(64_512)));
        // 1,000,000 B in flight fill 100 Mbit/s over 80 ms.
        assert_eq!(without.connections, Some(16));
        assert!(
            tuned.to_string().contains("missing, or the peer's buffer is as small; a window of 64,512 B allows 6.45")
        );
        // The window is large, or something else holds the sender.
        for (window, held_ms) in [(65_536, 90), (64_512, 40), (0, 90)] {
            assert_eq!(looked_at(window, held_ms).without_scaling(), None, "{window} {held_ms}");
        }
    }
}
