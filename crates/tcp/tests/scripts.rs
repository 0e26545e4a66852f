//! Packet scripts: one stack against a scripted peer, in virtual time. The scripts are in `tests/scripts`, in a
//! folder for each behaviour; each line is a time, then a call, a packet or a claim:
//!
//! ```text
//! options linux nonagle budget=10     the set-up; only as the first line
//! +0    listen                        calls: listen, connect [WRITE] [to PORT], unlisten, accept, write N, more N, flush, read N [= M], shutdown,
//!                                     close, abort, record (the end of one)
//! +0    < S 0(0) win 1000 <mss 1460>  the peer sends: flags, sequence number (length), ack, win, options, ce
//! +0    > S. 0(0) ack 1 <...>         the stack must send, at that time; options are checked where they are given
//! +0.2  silence                       the stack must not have sent anything until then
//! +0    state ESTABLISHED             claims: state S, gone, failed F, unsent N, held N, reordering N
//! +0    icmp 1400 1(100)              the path says that a packet was too big
//! ```
//!
//! Times are seconds after the line before; `*` waits for as long as it takes. Sequence numbers count from
//! each side's SYN; `fo` is a request for a fast-open cookie, `fo ab01` a cookie, `fo own` the one that the stack gave; `from` and `to` name the peer's port where it is not 5000. Flags are S F R P E W, A for AE (RFC 9768), and `.` for ACK. `#` begins a comment.

use std::{collections::VecDeque, fs, path::Path};

use fullpipe_pair::{addr, config};
use fullpipe_tcp::{
    fast_open::FastOpenPolicy,
    heap::HeapStorage,
    profile::{BlindDefence, Budgets, EcnPolicy, IcmpErrors, Keepalive, Profile},
    socket::{Endpoint, Failure, SocketOptions},
    stack::{Config, ListenerId, SocketError, SocketId, Stack},
    wire::{
        checksum::Checksum,
        fast_open::{Cookie, FastOpen, Format},
        ip::{self, Addresses, Ecn, Packet},
        tcp::{self, CHECKSUM_AT, Flags, Header, Options, SackBlock, SackBlocks, Segment, Timestamps},
    },
};
use fullpipe_units::{Instant, SeqNum};

const LOCAL_PORT: u16 = 8080;
const PEER_PORT: u16 = 5000;
/// Where a TCP header has its length, three reserved bits, and the one that became AE.
const AE_AT: usize = 12;

struct Run {
    stack: Stack<HeapStorage>,
    options: SocketOptions,
    now: Instant,
    /// The stack's initial sequence numbers, by the peer's port.
    iss: Vec<(u16, SeqNum)>,
    ts_base: u32,
    socket: Option<SocketId>,
    listener: Option<ListenerId>,
    sent: VecDeque<(Instant, Vec<u8>)>,
    /// The latest cookie that the stack gave.
    cookie: Option<Cookie>,
}

impl Run {
    fn new(first: &str) -> Self {
        let mut profile = Profile { timestamps: false, ..Profile::DEFAULT };
        for word in first.split_whitespace() {
            match word {
                "linux" => profile = Profile::LINUX,
                "freebsd" => profile = Profile::FREEBSD,
                "netburner" => profile = Profile::NETBURNER,
                _ => {}
            }
        }
        let mut cookies_only = false;
        let mut options = SocketOptions::from_profile(&Profile { budgets: Budgets::all(40), ..profile });
        for word in first.split_whitespace() {
            match word.split_once('=') {
                None => match word {
                    "nonagle" => options.no_nagle = true,
                    "nopush" => options.no_push = true,
                    "corked" => options.corked = true,
                    "nooptions" => options.no_options = true,
                    "noicmp" => profile.icmp_errors = IcmpErrors::None,
                    "cookiesonly" => cookies_only = true,
                    "timestamps" => profile.timestamps = true,
                    "fastopen" => {
                        profile.fast_open =
                            FastOpenPolicy { experimental: profile.fast_open.experimental, ..FastOpenPolicy::ON };
                        options.fast_open = true;
                    }
                    "nocookie" => {
                        profile.fast_open.client_without_cookie = true;
                        profile.fast_open.server_without_cookie = true;
                    }
                    "nosack" => profile.sack = false,
                    "nodefence" => profile.blind_defence = BlindDefence::None,
                    "norack" => profile.rack = false,
                    "noscale" => profile.window_scaling = false,
                    "probing" => profile.mtu_probing = true,
                    "ecn" => profile.ecn = EcnPolicy::Request,
                    "linux" | "freebsd" | "netburner" => {}
                    _ => panic!("unknown option {word}"),
                },
                Some((name, value)) => {
                    let value: u32 = value.parse().expect("a number");
                    match name {
                        "budget" => options.budgets = Budgets::all(value as u16),
                        "keepalive" => {
                            options.keepalive = Some(Keepalive { idle_s: value, interval_s: value, probes: 2 });
                        }
                        "usertimeout" => options.user_timeout_ms = Some(value),
                        "mss" => profile.initial_mss = Some(value as u16),
                        "lowat" => options.unsent_low = Some(value),
                        "opentimeout" => options.open_timeout_ms = Some(value),
                        "plainsyn" => profile.plain_syn_after = Some(value as u8),
                        "ecnretries" => profile.ecn_retries = value as u8,
                        "reap" => options.reap_after_ms = Some(value),
                        "delack" => options.ack.delay_us = value,
                        _ => panic!("unknown option {name}"),
                    }
                }
            }
        }
        let config = Config { syn_cookies_only: cookies_only, ..config(1, false, 1500, profile) };
        let stack = Stack::new(HeapStorage::new(4, 256, 1548), config);
        Self {
            stack,
            options,
            now: Instant::from_nanos(1_000_000_000),
            iss: Vec::new(),
            ts_base: 0,
            socket: None,
            listener: None,
            sent: VecDeque::new(),
            cookie: None,
        }
    }

    fn collect(&mut self) {
        while let Some(packet) = self.stack.poll_transmit(self.now) {
            let mut bytes = vec![0; packet.len()];
            packet.copy_to(&mut bytes).expect("made to measure");
            self.sent.push_back((self.now, bytes));
        }
    }

    /// Lets time pass, to `until` or to the next packet sent if `until_sent`.
    fn pass(&mut self, until: Instant, until_sent: bool) {
        loop {
            self.collect();
            if until_sent && !self.sent.is_empty() {
                return;
            }
            match self.stack.next_timeout().filter(|at| *at <= until) {
                Some(at) => {
                    self.now = self.now.max(at);
                    self.stack.on_timeout(self.now);
                }
                None => {
                    self.now = self.now.max(until);
                    return;
                }
            }
        }
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let (time, rest) = line.split_once(char::is_whitespace).ok_or("no time")?;
        let rest = rest.trim();
        let seconds: f64 = if time == "*" { 100_000.0 } else { time[1..].parse().map_err(|_| "no time")? };
        let at = Instant::from_nanos(self.now.as_nanos() + (seconds * 1e9) as u64);
        let (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        match word {
            ">" => return self.expect(at, time == "*", rest.trim()),
            "silence" => {
                self.pass(at, false);
                return match self.sent.pop_front() {
                    Some((_, bytes)) => Err(format!("sent {}", self.show(&bytes))),
                    None => Ok(()),
                };
            }
            _ => self.pass(at, false),
        }
        self.act(word, rest.trim())?;
        self.collect();
        Ok(())
    }

    fn act(&mut self, word: &str, rest: &str) -> Result<(), String> {
        let now = self.now;
        let number = || rest.parse::<usize>().map_err(|_| "no number".to_owned());
        match word {
            "listen" => {
                let listener = self.stack.listen(None, LOCAL_PORT, rest.parse().unwrap_or(4), self.options);
                self.listener = Some(listener.map_err(|error| error.to_string())?);
            }
            "connect" => {
                let (write, port) = match rest.split_once("to ") {
                    Some((write, port)) => (write.trim(), port.parse().map_err(|_| "no port")?),
                    None => (rest, PEER_PORT),
                };
                let remote = Endpoint::new(addr(false, 2), port);
                let socket = self.stack.connect(now, Some(LOCAL_PORT), remote, self.options);
                self.socket = Some(socket.map_err(|error| error.to_string())?);
                if !write.is_empty() {
                    // Before the SYN leaves.
                    self.act("write", write)?;
                }
            }
            "unlisten" => {
                let listener = self.listener.take().ok_or("not listening")?;
                self.stack.close_listener(now, listener);
            }
            "accept" => {
                let listener = self.listener.ok_or("not listening")?;
                self.socket = Some(self.stack.accept(now, listener).ok_or("nothing to accept")?);
            }
            "<" => {
                let bytes = self.peer_packet(rest)?;
                self.stack.on_packet(now, &bytes, false).map_err(|dropped| format!("{dropped:?}"))?;
            }
            "icmp" => self.icmp(rest)?,
            "state" => {
                let state = self.stack.info(self.id()?).ok_or("gone")?.state.to_string();
                return if state == rest { Ok(()) } else { Err(format!("in {state}")) };
            }
            "gone" => {
                let listeners = u16::from(self.listener.is_some());
                let left = self.stack.sockets_in_use() - listeners;
                return if left == 0 { Ok(()) } else { Err(format!("{left} sockets left")) };
            }
            "held" => {
                let held = usize::from(self.stack.held_count());
                return if held == number()? { Ok(()) } else { Err(format!("{held} buffers held")) };
            }
            "unsent" => {
                let unsent = self.stack.info(self.id()?).ok_or("gone")?.unsent as usize;
                return if unsent == number()? { Ok(()) } else { Err(format!("{unsent} bytes unsent")) };
            }
            "failed" => {
                let failure = self.stack.socket(self.id()?).ok_or("gone")?.failure();
                let expected = match rest {
                    "refused" => Failure::Refused,
                    "reset" => Failure::Reset,
                    "timedout" => Failure::TimedOut,
                    "unreachable" => Failure::Unreachable,
                    _ => return Err("unknown failure".into()),
                };
                return if failure == Some(expected) { Ok(()) } else { Err(format!("{failure:?}")) };
            }
            "more" => {
                let data = vec![7; number()?];
                self.stack.write_more(now, self.id()?, &data).map_err(|error| error.to_string())?;
            }
            "flush" => self.stack.flush(now, self.id()?).map_err(|error| error.to_string())?,
            "reordering" => {
                let segments = usize::from(self.stack.info(self.id()?).ok_or("gone")?.reordering);
                return if segments == number()? { Ok(()) } else { Err(format!("{segments} segments")) };
            }
            "write" => {
                let (ask, took) = rest.split_once('=').map_or((rest, None), |(ask, took)| (ask, Some(took)));
                let ask: usize = ask.trim().parse().map_err(|_| "no number")?;
                let wrote = self.stack.write(now, self.id()?, &vec![7; ask]).map_err(|error| error.to_string())?;
                let expected = took.map_or(Ok(ask), |took| took.trim().parse()).map_err(|_| "no number")?;
                return if wrote == expected { Ok(()) } else { Err(format!("took {wrote}")) };
            }
            "read" => {
                let (ask, got) = rest.split_once('=').ok_or("read N = M")?;
                let mut out = vec![0; ask.trim().parse().map_err(|_| "no number")?];
                let read = match self.stack.read(now, self.id()?, &mut out) {
                    Ok(0) => "end".to_owned(),
                    Ok(len) => len.to_string(),
                    Err(SocketError::WouldBlock) => "none".to_owned(),
                    Err(error) => error.to_string(),
                };
                return if read == got.trim() { Ok(()) } else { Err(format!("read {read}")) };
            }
            "record" => self.stack.end_record(now, self.id()?).map_err(|error| error.to_string())?,
            "shutdown" => self.stack.shutdown_write(now, self.id()?).map_err(|error| error.to_string())?,
            "close" => self.stack.close(now, self.id()?).map_err(|error| error.to_string())?,
            "abort" => self.stack.abort(now, self.id()?).map_err(|error| error.to_string())?,
            _ => return Err(format!("unknown word {word}")),
        }
        Ok(())
    }

    fn iss_towards(&self, port: u16) -> SeqNum {
        self.iss.iter().find(|(known, _)| *known == port).map_or(SeqNum::new(0), |(_, iss)| *iss)
    }

    fn id(&self) -> Result<SocketId, String> {
        self.socket.ok_or_else(|| "no socket".to_owned())
    }

    fn icmp(&mut self, rest: &str) -> Result<(), String> {
        let (mtu, seq) = rest.split_once(' ').ok_or("icmp MTU SEQ")?;
        let (kind, code, mtu) = match mtu {
            "port" => (3, 3, 0),
            "host" => (3, 1, 0),
            "prohibited" => (3, 13, 0),
            mtu => (3, 4, mtu.parse::<u16>().map_err(|_| "no MTU")?),
        };
        let seq: u32 = seq.split('(').next().and_then(|seq| seq.parse().ok()).ok_or("no number")?;
        let mut message = vec![kind, code, 0, 0, 0, 0];
        message.extend_from_slice(&mtu.to_be_bytes());
        let quoted = Addresses { src: addr(false, 1), dst: addr(false, 2) };
        let mut head = [0; 20];
        quoted.write(&mut head, fields(Ecn::NotEct), 1480);
        message.extend_from_slice(&head);
        message.extend_from_slice(&LOCAL_PORT.to_be_bytes());
        message.extend_from_slice(&PEER_PORT.to_be_bytes());
        message.extend_from_slice(&(self.iss_towards(PEER_PORT) + seq).get().to_be_bytes());
        let sum = Checksum::new().bytes(&message).finish();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let router = Addresses { src: addr(false, 9), dst: addr(false, 1) };
        let mut bytes = vec![0; 20];
        router.write(&mut bytes, ip::Fields { protocol: ip::ICMP, ..fields(Ecn::NotEct) }, message.len());
        bytes.extend_from_slice(&message);
        self.stack.on_packet(self.now, &bytes, false).map_err(|dropped| format!("{dropped:?}"))
    }

    fn peer_packet(&self, text: &str) -> Result<Vec<u8>, String> {
        let wanted = Wanted::parse(text)?;
        let iss = self.iss_towards(wanted.port);
        let ack = wanted.ack.map_or(SeqNum::new(0), |ack| iss + ack);
        let mut options = wanted.options.unwrap_or_default();
        if let Some(timestamps) = &mut options.timestamps
            && timestamps.echo > 0
        {
            timestamps.echo = timestamps.echo.wrapping_add(self.ts_base);
        }
        if wanted.own_cookie {
            let cookie = self.cookie.ok_or("no cookie was given")?;
            options.fast_open = Some(FastOpen { cookie, format: Format::Standard });
        }
        let mut sack = SackBlocks::EMPTY;
        for block in options.sack.as_slice() {
            sack.push(SackBlock { start: iss + block.start.get(), end: iss + block.end.get() });
        }
        options.sack = sack;
        let header = Header {
            src_port: wanted.port,
            dst_port: LOCAL_PORT,
            seq: SeqNum::new(wanted.seq),
            ack,
            flags: wanted.flags,
            window: wanted.window.unwrap_or(65_535),
            options,
        };
        let addresses = Addresses { src: addr(false, 2), dst: addr(false, 1) };
        let mut bytes = vec![0; 80];
        let tcp_len = header.write(&mut bytes[20..], &Profile::DEFAULT.layout);
        bytes.truncate(20 + tcp_len);
        bytes.resize(20 + tcp_len + wanted.len as usize, 9);
        let len = bytes.len() - 20;
        addresses.write(&mut bytes, fields(if wanted.ce { Ecn::Ce } else { Ecn::NotEct }), len);
        bytes[20 + AE_AT] |= u8::from(wanted.ae);
        let sum = tcp::checksum(&addresses, len as u32).bytes(&bytes[20..]).finish();
        bytes[20 + CHECKSUM_AT..22 + CHECKSUM_AT].copy_from_slice(&sum.to_be_bytes());
        Ok(bytes)
    }

    fn expect(&mut self, at: Instant, any_time: bool, text: &str) -> Result<(), String> {
        let wanted = Wanted::parse(text)?;
        self.pass(at, true);
        let Some((sent_at, bytes)) = self.sent.pop_front() else { return Err("sent nothing".into()) };
        let packet = Packet::parse(&bytes).map_err(|error| format!("{error:?}"))?;
        let segment = Segment::parse(&packet, false).map_err(|error| format!("{error:?}"))?;
        let port = segment.dst_port;
        let known = self.iss.iter().any(|(known, _)| *known == port);
        if segment.flags.has(Flags::SYN) && !known {
            self.iss.push((port, segment.seq));
            self.ts_base = segment.options.timestamps.map_or(0, |timestamps| timestamps.val);
        }
        if let Some(FastOpen { cookie, .. }) = segment.options.fast_open.filter(|_| segment.flags.has(Flags::ACK)) {
            self.cookie = Some(cookie);
        }
        let late = sent_at.since(at) + at.since(sent_at);
        if !any_time && late.as_micros() > 1_500 {
            return Err(format!("sent {late:?} off: {}", self.show(&bytes)));
        }
        let seq = segment.seq.distance_from(self.iss_towards(port));
        let same = segment.flags == wanted.flags
            && (bytes[20 + AE_AT] & 1 != 0) == wanted.ae
            // A reset for a stray segment takes its number from the segment, which may have had none.
            && (seq == wanted.seq || segment.seq.get() == wanted.seq)
            && segment.payload.len() == wanted.len as usize
            && port == wanted.port
            && wanted.ack.is_none_or(|ack| segment.ack.get() == ack)
            && wanted.window.is_none_or(|window| segment.window == window)
            && (!wanted.own_cookie || segment.options.fast_open.is_some_and(|option| !option.cookie.is_none()))
            && wanted.options.is_none_or(|options| self.same_options(&options, &segment.options, wanted.own_cookie));
        if same { Ok(()) } else { Err(format!("sent {}", self.show(&bytes))) }
    }

    fn same_options(&self, wanted: &Options, sent: &Options, any_cookie: bool) -> bool {
        let mut sent = *sent;
        if any_cookie {
            sent.fast_open = None;
        }
        if let Some(timestamps) = &mut sent.timestamps {
            timestamps.val = timestamps.val.wrapping_sub(self.ts_base);
        }
        *wanted == sent
    }

    fn show(&self, bytes: &[u8]) -> String {
        let Ok(packet) = Packet::parse(bytes) else { return format!("{bytes:?}") };
        let Ok(s) = Segment::parse(&packet, true) else { return format!("{bytes:?}") };
        let letters = [
            (Flags::SYN, 'S'),
            (Flags::FIN, 'F'),
            (Flags::RST, 'R'),
            (Flags::PSH, 'P'),
            (Flags::ECE, 'E'),
            (Flags::CWR, 'W'),
            (Flags::ACK, '.'),
        ];
        let flags: String = letters.iter().filter(|(flag, _)| s.flags.has(*flag)).map(|(_, letter)| *letter).collect();
        let seq = s.seq.distance_from(self.iss_towards(s.dst_port));
        let at = self.now.as_nanos() as f64 / 1e9;
        format!("{flags} {seq}({}) ack {} win {} {:?} at {at}", s.payload.len(), s.ack.get(), s.window, s.options)
    }
}

fn fields(ecn: Ecn) -> ip::Fields {
    ip::Fields { protocol: ip::TCP, ttl: 64, ecn, id: 1 }
}

/// A packet as a line describes it.
struct Wanted {
    flags: Flags,
    /// The bit before the flags, which the engine doesn't know.
    ae: bool,
    seq: u32,
    len: u32,
    ack: Option<u32>,
    window: Option<u16>,
    options: Option<Options>,
    ce: bool,
    /// The options hold the cookie that the stack gave.
    own_cookie: bool,
    /// The peer's port.
    port: u16,
}

impl Wanted {
    fn parse(text: &str) -> Result<Self, String> {
        let (text, options) = match text.split_once('<') {
            Some((front, rest)) => {
                let (inside, behind) = rest.split_once('>').ok_or("no >")?;
                (format!("{front} {behind}"), if inside == "..." { None } else { Some(inside.to_owned()) })
            }
            None => (text.to_owned(), None),
        };
        let own_cookie = own_cookie(&options);
        let options = options.map(|text| parse_options(&text)).transpose()?;
        let mut words = text.split_whitespace();
        let (mut flags, mut ae) = (Flags::default(), false);
        for letter in words.next().ok_or("no flags")?.chars() {
            flags = flags.with(match letter {
                'S' => Flags::SYN,
                'F' => Flags::FIN,
                'R' => Flags::RST,
                'P' => Flags::PSH,
                'E' => Flags::ECE,
                'W' => Flags::CWR,
                '.' => Flags::ACK,
                'A' => {
                    ae = true;
                    continue;
                }
                _ => return Err(format!("unknown flag {letter}")),
            });
        }
        let (seq, len) = words.next().and_then(|word| word.strip_suffix(')')?.split_once('(')).ok_or("no seq(len)")?;
        let number = |text: &str| text.parse::<u32>().map_err(|_| format!("no number: {text}"));
        let mut wanted = Self {
            flags,
            ae,
            seq: number(seq)?,
            len: number(len)?,
            ack: None,
            window: None,
            options,
            ce: false,
            own_cookie,
            port: PEER_PORT,
        };
        while let Some(word) = words.next() {
            let mut value =
                || words.next().ok_or("no value").and_then(|text| text.parse::<u32>().map_err(|_| "no number"));
            match word {
                "ack" => wanted.ack = Some(value()?),
                "win" => wanted.window = Some(value()? as u16),
                "ce" => wanted.ce = true,
                "from" | "to" => wanted.port = value()? as u16,
                _ => return Err(format!("unknown word {word}")),
            }
        }
        Ok(wanted)
    }
}

fn own_cookie(options: &Option<String>) -> bool {
    options.as_ref().is_some_and(|text| text.split(',').any(|part| part.trim() == "fo own"))
}

fn parse_cookie(digits: &str) -> Result<Cookie, String> {
    let byte = |at: usize| digits.get(at..at + 2).and_then(|byte| u8::from_str_radix(byte, 16).ok());
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    bytes.as_deref().and_then(Cookie::new).ok_or_else(|| format!("no cookie: {digits}"))
}

fn parse_options(text: &str) -> Result<Options, String> {
    let mut options = Options::default();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let words: Vec<&str> = part.split_whitespace().collect();
        let number =
            |at: usize| words.get(at).and_then(|word| word.parse::<u32>().ok()).ok_or_else(|| format!("in {part}"));
        match words[0] {
            "mss" => options.mss = Some(number(1)? as u16),
            "wscale" => options.window_scale = Some(number(1)? as u8),
            "sackOK" => options.sack_permitted = true,
            "ts" => options.timestamps = Some(Timestamps { val: number(1)?, echo: number(2)? }),
            "sack" => {
                for block in &words[1..] {
                    let (start, end) = block.split_once(':').ok_or("sack a:b")?;
                    let edge = |text: &str| text.parse().map(SeqNum::new).map_err(|_| "no number".to_owned());
                    options.sack.push(SackBlock { start: edge(start)?, end: edge(end)? });
                }
            }
            "fo" if words.get(1) == Some(&"own") => {}
            "fo" | "foexp" => {
                let format = if words[0] == "fo" { Format::Standard } else { Format::Experimental };
                let cookie = parse_cookie(words.get(1).copied().unwrap_or(""))?;
                options.fast_open = Some(FastOpen { cookie, format });
            }
            "nop" => {}
            word => return Err(format!("unknown option {word}")),
        }
    }
    Ok(options)
}

fn run(path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let lines: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.split('#').next().unwrap_or("").trim()))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let first = lines.first().and_then(|(_, line)| line.strip_prefix("options")).unwrap_or("");
    let mut run = Run::new(first);
    for (at, line) in &lines {
        if line.starts_with("options") {
            continue;
        }
        run.line(line).map_err(|error| format!("{}:{at}: {line}\n    {error}", path.display()))?;
    }
    match run.sent.pop_front() {
        Some((_, bytes)) => Err(format!("{}: at the end, sent {}", path.display(), run.show(&bytes))),
        None => Ok(()),
    }
}

#[test]
fn every_script_holds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let (mut count, mut failures) = (0, Vec::new());
    let only = std::env::var("SCRIPT").unwrap_or_default();
    for folder in fs::read_dir(root).expect("the folder of scripts") {
        for script in fs::read_dir(folder.expect("an entry").path()).expect("a folder for each behaviour") {
            let path = script.expect("an entry").path();
            if !path.to_string_lossy().contains(&only) {
                continue;
            }
            count += 1;
            if let Err(error) = run(&path) {
                failures.push(error);
            }
        }
    }
    assert!(failures.is_empty(), "{} of {count} scripts failed\n{}", failures.len(), failures.join("\n"));
    assert!(count > 0, "no script");
}
