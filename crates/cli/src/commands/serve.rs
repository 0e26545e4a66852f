//! `fullpipe serve`.

use std::{
    io::{self, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::{Arc, atomic::Ordering},
    thread,
    time::Duration,
};

use fullpipe_host::journal;
use fullpipe_measure::{Padding, ServerOptions, Users};
use fullpipe_report::{clean, json};
use fullpipe_tune::{AllowTune, Allowed, Key, ServeOptions};

use super::{
    Ended,
    agent::{self, Agent},
    guard,
};
use crate::{
    args::{MeterArgs, ServeArgs},
    exit::Exit,
    failure::Failure,
    interrupt, logs,
    output::{self, Output},
};

/// iperf3's port.
const PORT: u16 = 5201;

pub(super) fn run(args: &ServeArgs, output: Output) -> Ended {
    let key = args.key_file.as_deref().map(Key::read).transpose()?;
    let allow_tune = match key.filter(|_| args.allow_tune) {
        Some(key) => Some(AllowTune {
            key,
            state_dir: journal::state_dir()?,
            allowed: args.allow_settings.as_deref().map(Allowed::read).transpose()?.unwrap_or_default(),
            reached_as: args.reached_as.clone(),
            guard: Some(guard::program()?),
        }),
        None => None,
    };
    let usual = ServerOptions::default();
    let (address, only_v6) = listening(args)?;
    let options = ServeOptions {
        address,
        share_settings: args.share_settings,
        allow_tune,
        server: ServerOptions {
            max_clients: args.max_clients.into(),
            longest_test: args.max_time.map_or(usual.longest_test, Duration::from),
            max_rate: args.max_rate,
            max_bytes: args.max_bytes,
            allow: args.allow.clone(),
            users: users(args)?.map(Arc::new),
            introduce: args.share_settings,
            one_off: args.one_off,
            only_v6,
            ..usual
        },
    };
    let agent = args.metrics.as_deref().map(|listen| Agent::new(listen, &MeterArgs::default())).transpose()?;
    let stop = interrupt::cancel_flag()?;
    let log = Arc::new(logs::serve);
    let metrics = agent.as_ref().map(|agent| agent.metrics.address());
    let mut ready = |address| {
        ready(output, address);
        if let Some(metrics) = metrics {
            output.remark(&format!("metrics at {}\n", agent::link(metrics)));
        }
        let far = reached_at(address, only_v6);
        for far in &far {
            output.remark(&format!("at the other end: fullpipe check {far}\n"));
        }
        if far.is_empty() {
            output.paragraph(
                "at the other end: fullpipe check ADDRESS, where ADDRESS is one of this machine; none was found",
            );
        }
        if !args.share_settings {
            output.paragraph(
                "settings of this machine are not shared: with --share-settings, `check` from elsewhere also plans for it",
            );
        }
    };
    let watching = agent.map(|agent| {
        let stop = Arc::clone(&stop);
        thread::spawn(move || {
            if let Err(failure) = agent.work(&stop) {
                tracing::warn!("no metrics any more: {}", failure.problem().message);
            }
        })
    });
    let served = fullpipe_tune::serve(&options, &stop, &mut ready, log);
    stop.store(true, Ordering::Relaxed);
    if let Some(watching) = watching {
        watching.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    served?;
    Ok(Exit::Ok)
}

/// Who may test, where names are asked for.
fn users(args: &ServeArgs) -> Result<Option<Users>, Failure> {
    /// iperf3's own.
    const SKEW: Duration = Duration::from_secs(10);
    let (Some(key), Some(names)) = (&args.rsa_private_key_path, &args.authorized_users_path) else { return Ok(None) };
    let padding = if args.use_pkcs1_padding { Padding::Pkcs1 } else { Padding::Oaep };
    let skew = args.time_skew_threshold.map_or(SKEW, Duration::from);
    Ok(Some(Users::read(key, names, skew)?.with_padding(padding)))
}

/// Tells where the server listens: a script that starts it waits for this line.
fn ready(output: Output, address: SocketAddr) {
    let printed = if output.is_json() {
        let document = json::listening("serve", &output::now(), address, None);
        io::stdout().lock().write_all(json::to_line(&document).as_bytes())
    } else {
        writeln!(io::stdout().lock(), "listening on {address}")
    };
    // Whoever closed standard output does not want to know, and serving goes on.
    drop(printed);
}

/// What to give to `check` at the other end. A server on every address is reached at the one that this machine's default
/// route sends from, as far as no translation of addresses lies between; without such a route, at any that it has.
fn reached_at(listening: SocketAddr, only_v6: bool) -> Vec<String> {
    let addresses = if !listening.ip().is_unspecified() {
        vec![listening.ip()]
    } else {
        let is_served = |address: &IpAddr| match address {
            IpAddr::V4(_) => !only_v6,
            IpAddr::V6(_) => listening.is_ipv6(),
        };
        outward(&is_served).map_or_else(|| own_addresses().into_iter().filter(is_served).collect(), |own| vec![own])
    };
    let target = |address: IpAddr| match listening.port() {
        PORT => address.to_string(),
        port => SocketAddr::from((address, port)).to_string(),
    };
    addresses.into_iter().map(target).collect()
}

/// The address that the default route sends from. Connecting a datagram socket sends nothing; 192.0.2.0/24 and
/// 2001:db8::/32 are for documentation (RFC 5737, RFC 3849).
fn outward(is_served: &dyn Fn(&IpAddr) -> bool) -> Option<IpAddr> {
    let from = |local: &str, far: &str| {
        let socket = UdpSocket::bind(local).ok()?;
        socket.connect(far).ok()?;
        Some(socket.local_addr().ok()?.ip()).filter(is_served)
    };
    from("0.0.0.0:0", "192.0.2.1:9").or_else(|| from("[::]:0", "[2001:db8::1]:9"))
}

/// Those of all interfaces; what can't be read is left out.
#[cfg(target_os = "linux")]
fn own_addresses() -> Vec<IpAddr> {
    let read = || fullpipe_host::linux::net::Netlink::open()?.reachable_addresses();
    read().unwrap_or_default()
}

/// Unknown here.
#[cfg(not(target_os = "linux"))]
fn own_addresses() -> Vec<IpAddr> {
    Vec::new()
}

/// Where to listen, and whether on IPv6 alone.
fn listening(args: &ServeArgs) -> Result<(SocketAddr, bool), Failure> {
    let address = args.port.map_or_else(|| address(&args.address), |port| Ok(everywhere(port)))?;
    let any = address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    match (args.ipv4, args.ipv6) {
        (true, _) if any => Ok((SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())), false)),
        (true, _) if address.is_ipv6() => Err(other_family("-4", address)),
        (_, true) if address.is_ipv4() => Err(other_family("-6", address)),
        (_, only_v6) => Ok((address, only_v6 && any)),
    }
}

fn other_family(option: &str, address: SocketAddr) -> Failure {
    Failure::new(Exit::Usage, &format!("{option} and {} contradict each other; leave one out", address.ip()))
}

fn everywhere(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))
}

/// `192.0.2.7:5301`, `[::]:5201`, `192.0.2.7`, `::1`, `5301`, `:5301`.
fn address(text: &str) -> Result<SocketAddr, Failure> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    text.parse::<SocketAddr>()
        .ok()
        .or_else(|| bare.parse::<IpAddr>().ok().map(|address| SocketAddr::from((address, PORT))))
        .or_else(|| text.strip_prefix(':').unwrap_or(text).parse::<u16>().ok().map(everywhere))
        .ok_or_else(|| {
            let text = clean(text);
            let message =
                format!("`{text}` is no address to listen on; give 192.0.2.7:5201, [2001:db8::7]:5201, or a port");
            Failure::new(Exit::Usage, &message)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_end_is_told_what_to_type() {
        for (listening, expected) in [
            ("192.0.2.7:5201", "192.0.2.7"),
            ("192.0.2.7:5301", "192.0.2.7:5301"),
            ("[2001:db8::7]:5201", "2001:db8::7"),
            ("[2001:db8::7]:5301", "[2001:db8::7]:5301"),
        ] {
            assert_eq!(reached_at(listening.parse().unwrap(), false), [expected]);
        }
        // A machine without any address has none.
        for far in reached_at("[::]:5301".parse().unwrap(), false) {
            let far: SocketAddr = far.parse().unwrap();
            assert!(!far.ip().is_unspecified() && far.port() == 5301, "{far}");
        }
    }

    #[test]
    fn a_family_is_listened_on_alone() {
        let of = |line: &str| {
            let line: Vec<_> = line.split(' ').map(Into::into).collect();
            let crate::args::Command::Serve(args) = crate::args::parse(&line).unwrap().command else { unreachable!() };
            listening(&args).map(|(address, only_v6)| (address.to_string(), only_v6)).map_err(|failure| failure.exit)
        };
        for (line, address, only_v6) in [
            ("fullpipe serve", "[::]:5201", false),
            ("fullpipe serve -4", "0.0.0.0:5201", false),
            ("fullpipe serve -6 -p 5301", "[::]:5301", true),
            ("fullpipe serve -4 192.0.2.7", "192.0.2.7:5201", false),
            ("fullpipe serve -6 2001:db8::7", "[2001:db8::7]:5201", false),
        ] {
            assert_eq!(of(line), Ok((address.to_owned(), only_v6)), "{line}");
        }
        for line in ["fullpipe serve -6 192.0.2.7", "fullpipe serve -4 2001:db8::7"] {
            assert_eq!(of(line), Err(Exit::Usage), "{line}");
        }
    }

    #[test]
    fn an_address_a_port_or_both() {
        for (text, expected) in [
            ("192.0.2.7:5301", "192.0.2.7:5301"),
            ("192.0.2.7", "192.0.2.7:5201"),
            ("[::]:5201", "[::]:5201"),
            ("::1", "[::1]:5201"),
            ("[::1]", "[::1]:5201"),
            ("5301", "[::]:5301"),
            (":5301", "[::]:5301"),
        ] {
            assert_eq!(address(text).unwrap().to_string(), expected, "{text}");
        }
        for text in ["", "far.example", "1.2.3", "70000", "::1:x"] {
            assert_eq!(address(text).unwrap_err().exit, Exit::Usage, "{text}");
        }
    }
}
