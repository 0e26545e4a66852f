//! The TCP engine: raw packets into one stack, and histories of two.

use arbitrary::{Arbitrary, Result, Unstructured};
use fullpipe_pair::{PORT, addr, config};
use fullpipe_tcp::{
    fast_open::FastOpenPolicy,
    heap::HeapStorage,
    profile::{Budgets, Keepalive, Profile},
    socket::{Endpoint, SocketOptions},
    stack::Stack,
};
use fullpipe_units::Instant;

use crate::history::{Change, History, Place, Step, repair};

const PROFILES: [Profile; 4] = [Profile::DEFAULT, Profile::NETBURNER, Profile::FREEBSD, Profile::LINUX];

/// Packets of any bytes into a host with a listener and a connection under way: each is a byte that says what is made
/// of it (1: lengths and checksums are repaired; 2: the device has checked it; 4: time passes first), two bytes of
/// length, and the bytes.
pub fn segments(data: &[u8]) {
    let Some((pick, mut rest)) = data.split_first() else { return };
    // Data in SYNs needs no cookie, which no fuzzer guesses; half of the time.
    let without = pick & 16 != 0;
    let fast_open = FastOpenPolicy {
        client_without_cookie: without,
        server_without_cookie: without,
        experimental: true,
        ..FastOpenPolicy::ON
    };
    let profile = Profile { budgets: Budgets::all(5), fast_open, ..PROFILES[usize::from(pick % 4)] };
    let v6 = pick & 4 != 0;
    let mut host = Stack::new(HeapStorage::new(4, 16, 1548), config(1, v6, 1500, profile));
    let mut now = Instant::from_nanos(1_000_000_000);
    let options = SocketOptions { fast_open: pick & 8 != 0, ..SocketOptions::from_profile(&profile) };
    let listener = host.listen(None, PORT, 2, options).expect("the first socket");
    let socket = host.connect(now, Some(5_000), Endpoint::new(addr(v6, 0), 1_024), options).expect("the second");
    let mut buffer = [0; 4_096];
    let _goes_with_the_syn = host.write(now, socket, &buffer[..600]);
    while let [how, high, low, after @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*high, *low]) % 2_048).min(after.len());
        let (packet, next) = after.split_at(len);
        rest = next;
        let mut packet = packet.to_vec();
        if how & 1 != 0 {
            repair(&mut packet);
        }
        if how & 4 != 0 {
            now = Instant::from_nanos(now.as_nanos() + 50_000_000 * u64::from(how >> 3));
            host.on_timeout(now);
        }
        let _counted = host.on_packet(now, &packet, how & 2 != 0);
        if let Some(accepted) = host.accept(now, listener) {
            let _may_be_gone = host.write(now, accepted, &buffer[..600]);
        }
        let _may_be_early = host.read(now, socket, &mut buffer);
        quiet(&mut host, now);
    }
}

/// Everything that waits is sent, in a bounded number of packets, and no buffer is lost.
fn quiet(host: &mut Stack<HeapStorage>, now: Instant) {
    let mut packets = 0;
    while let Some(packet) = host.poll_transmit(now) {
        assert!(packet.len() <= 1_500, "larger than the device takes");
        packets += 1;
        assert!(packets < 1_000, "it doesn't come to rest");
    }
    let count = host.pool().count();
    assert_eq!(host.free_count() + host.held_count(), count, "a buffer is lost");
}

/// Any history of two hosts; at its end every buffer is free.
pub fn histories(data: &[u8]) {
    // Without enough bytes there is no history; nothing is wrong with that.
    let _too_short = history(&mut Unstructured::new(data));
}

fn history(input: &mut Unstructured<'_>) -> Result<()> {
    let seed = u64::from(u32::arbitrary(input)?);
    let v6 = seed >> 31 == 1;
    let mut history = History::over(v6, seed, [profile(input)?, profile(input)?]);
    history.apply(&Step::Connect { port: None });
    for _ in 0..80 {
        let Ok(step) = step(input) else { break };
        history.apply(&step);
        history.check();
        if input.is_empty() {
            break;
        }
    }
    history.finish();
    Ok(())
}

fn profile(input: &mut Unstructured<'_>) -> Result<Profile> {
    let base = *input.choose(&PROFILES)?;
    let flags = u8::arbitrary(input)?;
    let flag = |at: u8| flags & (1 << at) != 0;
    Ok(Profile {
        sack: base.sack && flag(0),
        rack: flag(1),
        timestamps: base.timestamps && flag(2),
        keepalive: flag(3).then_some(Keepalive { idle_s: 1, interval_s: 1, probes: 3 }),
        mtu_probing: flag(3),
        initial_mss: flag(5).then_some(1_000),
        fast_open: if flag(4) { FastOpenPolicy::ON } else { base.fast_open },
        budgets: Budgets::all(5),
        ..base
    })
}

fn step(input: &mut Unstructured<'_>) -> Result<Step> {
    // The last bytes are the steps that came later, so that older inputs mean what they meant.
    let kind = match u8::arbitrary(input)? {
        byte @ 0..240 => byte % 12,
        byte => 12 + byte % 4,
    };
    let socket = if matches!(kind, 2..=7 | 12) { usize::from(u8::arbitrary(input)? % 6) } else { 0 };
    let per_million = |input: &mut Unstructured<'_>| Ok(u32::from(u8::arbitrary(input)?) * 1_200);
    Ok(match kind {
        0 => Step::Connect { port: Option::<u8>::arbitrary(input)?.map(|port| 5_000 + u16::from(port % 3)) },
        1 => Step::Accept,
        2 => Step::Write { socket, len: usize::from(u16::arbitrary(input)? % 20_000) },
        3 => Step::Read { socket, len: usize::from(u16::arbitrary(input)? % 20_000) },
        4 => Step::Shutdown { socket },
        5 => Step::Close { socket },
        6 => Step::Abort { socket },
        7 => {
            let byte = u8::arbitrary(input)?;
            Step::Options { socket, budget: 1 + u16::from(byte & 7), no_nagle: byte & 8 != 0, no_push: byte & 16 != 0 }
        }
        8 => Step::Run { us: u64::from(u32::arbitrary(input)? % 3_000_000) },
        9 => Step::Path {
            loss: per_million(input)?,
            reorder: per_million(input)?,
            duplicate: per_million(input)?,
            mtu: if bool::arbitrary(input)? { 65_535 } else { 600 + usize::from(u8::arbitrary(input)?) * 3 },
        },
        10 => Step::Cut,
        12 => {
            let limit = |input: &mut Unstructured<'_>| Ok(Option::<u16>::arbitrary(input)?.map(|ms| 1 + u32::from(ms)));
            Step::Limits {
                socket,
                user_timeout_ms: limit(input)?,
                reap_after_ms: limit(input)?,
                keepalive: bool::arbitrary(input)?,
            }
        }
        13 => Step::Listener,
        14 => {
            let byte = u8::arbitrary(input)?;
            Step::Echoes { host: usize::from(byte & 1), count: (byte >> 1) % 20 }
        }
        15 => {
            let byte = u8::arbitrary(input)?;
            Step::Icmp {
                host: usize::from(byte & 1),
                pick: usize::from(byte >> 1) % 32,
                kind: u8::arbitrary(input)? % 12,
                code: u8::arbitrary(input)? % 16,
                mtu: u16::arbitrary(input)? % 1_600,
                by: i32::from(i16::arbitrary(input)?) % 3_000,
            }
        }
        _ => {
            let byte = u8::arbitrary(input)?;
            Step::Forge { host: usize::from(byte & 1), pick: usize::from(byte >> 1) % 32, change: change(input)? }
        }
    })
}

fn change(input: &mut Unstructured<'_>) -> Result<Change> {
    let place = |input: &mut Unstructured<'_>| Ok(Place(u32::from(u16::arbitrary(input)?) << 16));
    let near = |input: &mut Unstructured<'_>| {
        Ok(match u8::arbitrary(input)? % 3 {
            0 => i32::from(i8::arbitrary(input)?) % 4,
            1 => i32::from(i16::arbitrary(input)?) % 3_000,
            _ => i32::arbitrary(input)?,
        })
    };
    Ok(match u8::arbitrary(input)? % 7 {
        0 => Change::Flags(u8::arbitrary(input)?),
        1 => Change::Seq(near(input)?),
        2 => Change::Ack(near(input)?),
        3 => Change::Window(u16::arbitrary(input)?),
        4 => Change::Byte(place(input)?, u8::arbitrary(input)?),
        5 => Change::Cut(place(input)?),
        _ => Change::Damage(place(input)?, u8::arbitrary(input)?),
    })
}
