//! `fullpipe stack`.

mod presets;
mod table;

use std::{
    io::{self, Write},
    net::{IpAddr, SocketAddr},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use fullpipe_lab::LabError;
use fullpipe_path::Scenario;
use fullpipe_report::{StackConnection, StackPool, StackRun, json, text};
use fullpipe_stack::{
    Host, Port, Preset, Settings,
    session::{self, MadePath, Service, Session, Until},
};
use fullpipe_tcp::{
    profile::{Keepalive, Profile},
    socket::SocketOptions,
};
use fullpipe_units::{Bytes, Micros, Rate};

use super::{Ended, lab, printed};
use crate::{
    args::{self, BudgetArgs, EngineArgs, KeepaliveArgs, ProfileName, StackCommand},
    exit::Exit,
    failure::Failure,
    interrupt,
    output::Output,
};

/// Where a peer is looked for that was not named.
const PORT: u16 = 5001;
/// A NetBurner's pool.
const POOL: u16 = 256;
/// Enough for the budgets of a large system's profile.
const LARGE_POOL: u16 = 8_192;

pub(super) fn run(command: &StackCommand, output: Output) -> Ended {
    match command {
        StackCommand::Table(args) => table::run(args, output),
        StackCommand::Presets(args) => presets::run(args, output),
        StackCommand::Connect(args) => {
            let place = Place::new(&args.engine)?;
            let service = if args.receive { Service::Discard } else { Service::Send(args.bytes.get()) };
            let peer = args.peer.unwrap_or_else(|| SocketAddr::new(place.kernel(&args.engine), PORT));
            if let Place::Made(path, _) = &place {
                path.kernel_serves(peer.port(), if args.receive { args.bytes.get() } else { 0 })?;
            }
            let stop = interrupt::cancel_flag()?;
            let until = until(args.engine.time, &stop);
            let session = session::connect(place.host(), peer, options(&args.engine), service, &until)?;
            let stopped = stop.load(Relaxed);
            show("stack connect", &place, &args.engine, (vec![session], stopped), output)
        }
        StackCommand::Serve(args) => {
            let service = args.send.map_or(Service::Discard, |bytes| Service::Send(bytes.get()));
            let call = Called { port: args.port, service, connections: args.connections, bytes: args.bytes };
            serve("stack serve", &args.engine, &call, output)
        }
        StackCommand::Echo(args) => {
            let service = Service::Echo;
            let call = Called { port: args.port, service, connections: args.connections, bytes: args.bytes };
            serve("stack echo", &args.engine, &call, output)
        }
    }
}

/// What a service does, and what a kernel at the other end does with it.
struct Called {
    port: u16,
    service: Service,
    connections: Option<u32>,
    bytes: Bytes,
}

fn serve(command: &'static str, engine: &EngineArgs, called: &Called, output: Output) -> Ended {
    let place = Place::new(engine)?;
    let stop = interrupt::cancel_flag()?;
    let mut connections = called.connections;
    if let Place::Made(path, _) = &place {
        let callers = *connections.get_or_insert(1);
        let bytes = if matches!(called.service, Service::Send(_)) { 0 } else { called.bytes.get() };
        for _ in 0..callers {
            path.kernel_calls(called.port, bytes)?;
        }
    } else if !output.is_json() {
        // A script that starts it waits for this line. Whoever closed standard output does not want to know.
        let own = place.own(engine);
        writeln!(io::stdout().lock(), "listening on {}", SocketAddr::new(own, called.port)).ok();
    }
    let until = until(engine.time, &stop);
    let sessions = session::serve(place.host(), called.port, options(engine), called.service, connections, &until)?;
    show(command, &place, engine, (sessions, stop.load(Relaxed)), output)
}

fn until(time: Micros, stop: &AtomicBool) -> Until<'_> {
    Until { time: Instant::now() + Duration::from(time), stop }
}

/// Where the engine stands.
enum Place {
    /// At a device of this machine.
    Device(Host),
    /// At the end of an emulated path.
    Made(Box<MadePath>, Box<Scenario>),
}

impl Place {
    fn new(engine: &EngineArgs) -> Result<Self, Failure> {
        if let Some(named) = &engine.through {
            let scenario = lab::scenario(named)?;
            lab::enter()?;
            let path = MadePath::new(&scenario, settings(engine))?;
            return Ok(Self::Made(Box::new(path), Box::new(scenario)));
        }
        if let Some(both) = engine.address.iter().find(|address| engine.peer_address.contains(address)) {
            let message =
                format!("{both} can't be the engine's and the kernel's; give --address another of that network");
            return Err(Failure::new(Exit::Usage, &message));
        }
        let kernel: Vec<_> = engine.peer_address.iter().map(|address| (*address, prefix(*address))).collect();
        let port = Port::tun(&engine.device, engine.mtu, &kernel).map_err(|error| unusable(&engine.device, error))?;
        Ok(Self::Device(Host::start(port, settings(engine))?))
    }

    fn host(&self) -> &Host {
        match self {
            Self::Device(host) => host,
            Self::Made(path, _) => path.host(),
        }
    }

    fn kernel(&self, engine: &EngineArgs) -> IpAddr {
        match self {
            Self::Device(_) => engine.peer_address[0],
            Self::Made(path, _) => path.kernel(),
        }
    }

    fn own(&self, engine: &EngineArgs) -> IpAddr {
        match self {
            Self::Device(_) => engine.address[0],
            Self::Made(path, _) => path.own(),
        }
    }
}

/// Why the device can't be had, and what to do about it.
fn unusable(device: &str, error: LabError) -> Failure {
    let kind = match &error {
        LabError::System { source, .. } => source.kind(),
        _ => return Failure::from(error),
    };
    let message = match kind {
        io::ErrorKind::ResourceBusy => {
            format!("the device {device} is in use by another program; take another one with --device")
        }
        io::ErrorKind::InvalidInput => format!(
            "{device} is no TUN device with offload headers; take another one with --device, which is made where it \
             isn't there"
        ),
        _ => return Failure::from(error),
    };
    Failure::new(Exit::AddressUnavailable, &message)
}

fn prefix(address: IpAddr) -> u8 {
    if address.is_ipv6() { 64 } else { 24 }
}

fn profile(name: ProfileName) -> Profile {
    match name {
        ProfileName::Fullpipe => Profile::DEFAULT,
        ProfileName::Linux => Profile::LINUX,
        ProfileName::Freebsd => Profile::FREEBSD,
        ProfileName::Netburner => Profile::NETBURNER,
    }
}

fn settings(engine: &EngineArgs) -> Settings {
    let profile = profile(engine.profile);
    let large = profile.budgets.out_of_order > POOL;
    let buffers = engine.pool.unwrap_or(if large { LARGE_POOL } else { POOL });
    Settings { profile, buffers, ..Settings::new(&engine.address) }
}

fn options(engine: &EngineArgs) -> SocketOptions {
    let preset = match engine.preset {
        Some(args::Preset::LowLatency) => Preset::LowLatency,
        Some(args::Preset::Bulk) => Preset::Bulk,
        None => Preset::Default,
    };
    let mut options = preset.applied(SocketOptions::from_profile(&profile(engine.profile)));
    let BudgetArgs { rx, tx, ooo, unacked } = engine.buffers.unwrap_or_default();
    let budgets = &mut options.budgets;
    budgets.receive = rx.unwrap_or(budgets.receive);
    budgets.transmit = tx.unwrap_or(budgets.transmit);
    budgets.out_of_order = ooo.unwrap_or(budgets.out_of_order);
    budgets.unacknowledged = unacked.unwrap_or(budgets.unacknowledged);
    options.user_timeout_ms = engine.user_timeout.and_then(|span| u32::try_from(span.get().div_ceil(1_000)).ok());
    if let Some(KeepaliveArgs { idle_s, interval_s, probes }) = engine.keepalive {
        options.keepalive = Some(Keepalive { idle_s, interval_s, probes });
    }
    options
}

/// Shows the sessions. Where it was stopped from outside, that alone is no fault: a service has no other end.
fn show(
    command: &'static str,
    place: &Place,
    engine: &EngineArgs,
    (sessions, stopped): (Vec<Session>, bool),
    output: Output,
) -> Ended {
    let scenario = match place {
        Place::Device(_) => None,
        Place::Made(_, scenario) => Some(scenario.name.clone()),
    };
    let pool = place.host().with(|stack, _| {
        let pool = stack.pool();
        StackPool { buffers: pool.count(), free: pool.free_count(), most_used: pool.high_water() }
    });
    let failed = sessions.iter().any(|session| session.failure.is_some());
    let run = StackRun {
        scenario,
        profile: profile(engine.profile).name,
        offload: place.host().offload(),
        connections: sessions.into_iter().map(connection).collect(),
        pool,
    };
    printed(output.result(|| json::stack_run(command, &run), |look| text::stack_run(&run, look)))?;
    Ok(match (failed, stopped) {
        (true, true) => Exit::Interrupted,
        (true, false) => Exit::NotAsExpected,
        (false, stopped) if run.connections.is_empty() && !stopped => Exit::NotAsExpected,
        (false, _) => Exit::Ok,
    })
}

fn connection(session: Session) -> StackConnection {
    let Session { peer, sent, received, seconds, counts, info, failure } = session;
    let span = Micros::new((seconds * 1e6) as u64);
    let rate = Rate::from_bytes(Bytes::new(sent.max(received)), span).unwrap_or_default();
    StackConnection {
        peer,
        sent,
        received,
        seconds,
        rate_bps: rate.bps(),
        segments_sent: counts.segments_sent,
        segments_received: counts.segments_received,
        retransmits: counts.retransmits,
        timeouts: counts.timeouts,
        rtt_us: info.map(|info| info.srtt_us).filter(|us| *us > 0),
        mss: info.map(|info| info.mss),
        failure,
    }
}
