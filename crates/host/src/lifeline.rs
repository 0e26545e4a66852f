//! The ways out that an administrator at the other end of a network can't do without: the default routes, the way to the
//! name servers, and the way back to where this login came from.
//!
//! They are looked at before the first change and after each one. A way is there if the system has a route for it and
//! a source address, which connecting a datagram socket asks for without sending anything. What is *not* here: whether
//! anybody answers at the other end, which a change that keeps the way may still prevent, and a trial takes back.

use std::{
    fmt, fs,
    net::{IpAddr, SocketAddr, UdpSocket},
};

/// A way out that there was before the first change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifeline {
    kind: Kind,
    to: IpAddr,
    /// The source address. It is to stay where an established connection depends on it.
    from: IpAddr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Default,
    NameServer,
    Login,
}

impl fmt::Display for Lifeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, to, from } = self;
        match kind {
            Kind::Default if to.is_ipv4() => write!(f, "the default route of IPv4 (from {from})"),
            Kind::Default => write!(f, "the default route of IPv6 (from {from})"),
            Kind::NameServer => write!(f, "the way to the name server {to}"),
            Kind::Login => write!(f, "the way from {from} to {to}, where this login comes from"),
        }
    }
}

impl Lifeline {
    /// Whether this way is there no more.
    pub(crate) fn is_lost(&self) -> bool {
        match source(self.to) {
            None => true,
            Some(from) => self.kind == Kind::Login && from != self.from,
        }
    }
}

/// The ways out that there are now.
pub(crate) fn present() -> Vec<Lifeline> {
    // Addresses for documentation (RFC 5737, RFC 3849), to which no route leads but the default one.
    let defaults = [IpAddr::from([198, 51, 100, 1]), IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1])];
    let servers = name_servers(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default());
    let wanted = defaults.into_iter().map(|to| (Kind::Default, to));
    let wanted = wanted.chain(servers.into_iter().map(|to| (Kind::NameServer, to)));
    let wanted = wanted.chain(login().map(|to| (Kind::Login, to)));
    wanted.filter_map(|(kind, to)| Some(Lifeline { kind, to, from: source(to)? })).collect()
}

/// The address that a datagram to `to` would come from; `None` where there is no way.
fn source(to: IpAddr) -> Option<IpAddr> {
    let any: SocketAddr = if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(SocketAddr::from((to, 53))).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

fn name_servers(resolv_conf: &str) -> Vec<IpAddr> {
    let address = |line: &str| line.trim().strip_prefix("nameserver")?.trim().parse().ok();
    resolv_conf.lines().filter_map(address).collect()
}

/// Where an SSH login that this process belongs to comes from. `sudo` takes the variable away, so that the processes
/// above are looked at as well, as far as this one may.
fn login() -> Option<IpAddr> {
    const MOST: usize = 32;
    let mut process = "self".to_owned();
    for _ in 0..MOST {
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        if let Some(peer) = login_of(&environment) {
            return Some(peer);
        }
        process = parent(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)?;
    }
    None
}

/// The first word of `SSH_CONNECTION` is the client's address.
fn login_of(environment: &[u8]) -> Option<IpAddr> {
    let value = environment.split(|&byte| byte == 0).find_map(|variable| variable.strip_prefix(b"SSH_CONNECTION="))?;
    str::from_utf8(value).ok()?.split_whitespace().next()?.parse().ok()
}

/// The parent's number, the second word after the name, which may hold blanks and parentheses (proc_pid_stat(5)).
fn parent(stat: &str) -> Option<String> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1).filter(|parent| *parent != "0").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use fullpipe_knobs::{Address, Change, Settings};

    use super::*;
    use crate::{ApplyFault, ApplyOptions, FolderHost, Host, HostError, Identity, Journal, apply};

    const SACK: &str = "net.ipv4.tcp_sack";

    /// A machine whose way out goes with the value 0 of a setting, and comes back with it.
    struct Cut(FolderHost);

    impl Host for Cut {
        fn settings(&mut self) -> Result<Settings, HostError> {
            self.0.settings()
        }
        fn read(&mut self, address: &Address) -> Result<Option<String>, HostError> {
            Host::read(&mut self.0, address)
        }
        fn write(&mut self, address: &Address, value: Option<&str>) -> Result<(), HostError> {
            self.0.write(address, value)
        }
        fn writable(&mut self, address: &Address) -> Result<(), HostError> {
            self.0.writable(address)
        }
        fn identity(&mut self) -> Result<Identity, HostError> {
            self.0.identity()
        }
        fn lifelines(&mut self) -> Vec<Lifeline> {
            let here = IpAddr::from([127, 0, 0, 1]);
            vec![Lifeline { kind: Kind::Login, to: here, from: here }]
        }
        fn lost<'a>(&mut self, lifelines: &'a [Lifeline]) -> Option<&'a Lifeline> {
            let is_cut = Host::read(&mut self.0, &Address::sysctl(SACK)).expect("read").as_deref() == Some("0");
            lifelines.first().filter(|_| is_cut)
        }
    }

    #[test]
    fn a_change_that_cuts_the_login_off_is_taken_back_with_those_before_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let sysctls = folder.path().join("proc/sys/net/ipv4");
        fs::create_dir_all(&sysctls).expect("made");
        fs::write(folder.path().join("platform"), "linux 6.18.44\n").expect("written");
        for name in ["tcp_sack", "tcp_ecn"] {
            fs::write(sysctls.join(name), "1").expect("written");
        }
        let change = |name: &str, to: &str| {
            Change::unexplained("a".into(), Address::sysctl(name), Some("1".into()), Some(to.into()))
        };
        let mut host = Cut(FolderHost::new(folder.path()));
        let mut journal = Journal::in_memory().expect("a journal");
        let changes = [change("net.ipv4.tcp_ecn", "2"), change(SACK, "0")];
        let error = apply(&mut host, &mut journal, &changes, &ApplyOptions::default()).expect_err("cut off");
        assert!(matches!(*error.fault, ApplyFault::Lifeline { is_back: true, .. }), "{error:?}");
        assert!(error.to_string().contains("where this login comes from was gone; it is back"), "{error}");
        for name in ["tcp_sack", "tcp_ecn"] {
            assert_eq!(fs::read_to_string(sysctls.join(name)).expect("there").trim(), "1", "{name}");
        }
        assert!(journal.outstanding().expect("read").is_empty());
    }

    #[test]
    fn name_servers_and_the_login_are_read() {
        let servers =
            name_servers("# ours\nsearch a.example\nnameserver 192.0.2.53\n nameserver  2001:db8::53\nnameserver x\n");
        assert_eq!(
            servers,
            ["192.0.2.53".parse::<IpAddr>().expect("an address"), "2001:db8::53".parse().expect("one")]
        );
        let environment = b"A=1\0SSH_CONNECTION=192.0.2.9 40000 192.0.2.1 22\0B=2\0";
        assert_eq!(login_of(environment), Some(IpAddr::from([192, 0, 2, 9])));
        assert_eq!(login_of(b"NOT_SSH_CONNECTION=1\0"), None);
        assert_eq!(parent("77 (a) b) S 42 77 77 0"), Some("42".to_owned()));
        assert_eq!(parent("1 (init) S 0 1 1 0"), None);
    }

    #[test]
    fn a_way_that_there_is_is_not_lost_and_a_changed_source_loses_a_login_alone() {
        let here = IpAddr::from([127, 0, 0, 1]);
        let way = |kind, from| Lifeline { kind, to: here, from };
        assert!(!way(Kind::Login, here).is_lost());
        let other = IpAddr::from([127, 0, 0, 9]);
        assert!(way(Kind::Login, other).is_lost() && !way(Kind::NameServer, other).is_lost());
    }
}
