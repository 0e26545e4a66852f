//! Options of iperf3 that `measure`, `serve`, `check` and `tune` don't take, each with what does the same here.

/// A letter and a name of iperf3, and the way out.
struct Foreign {
    letter: Option<char>,
    name: &'static str,
    instead: &'static str,
}

impl Foreign {
    fn is(&self, argument: &str) -> bool {
        match argument.strip_prefix("--") {
            Some(name) => name == self.name,
            None => argument.strip_prefix('-').is_some_and(|rest| rest.chars().next() == self.letter),
        }
    }
}

const fn foreign(letter: char, name: &'static str, instead: &'static str) -> Foreign {
    Foreign { letter: Some(letter), name, instead }
}

const fn named(name: &'static str, instead: &'static str) -> Foreign {
    Foreign { letter: None, name, instead }
}

/// What neither command takes.
const BOTH: &[Foreign] = &[
    foreign('f', "format", "each figure comes with its unit; --json has bit/s, and so has --csv of `fullpipe measure`"),
    foreign('A', "affinity", "pin the process instead: `taskset -c 2 fullpipe ...`"),
    foreign('d', "debug", "--verbose shows more"),
    foreign('I', "pidfile", "a supervisor such as systemd knows the process"),
    foreign('X', "xbind", "there is no SCTP here"),
    named("sctp", "there is no SCTP here"),
    named("nstreams", "there is no SCTP here; -P sets the number of connections"),
    foreign('m', "mptcp", "there is no MPTCP here"),
    named("bind-dev", "a route decides on the interface: `ip route get ADDRESS` shows which"),
    named("logfile", "redirect the output instead: `> FILE`"),
    named("forceflush", "every line is written at once"),
    named("timestamps", "--csv of `fullpipe measure` has the time of each interval"),
    named("rcv-timeout", "a test in which nothing moves for 15 s is ended"),
    named("snd-timeout", "a connection whose peer vanished is ended after 30 s"),
    named("cntl-ka", "control connections are probed every 10 s anyway"),
    named("json-stream", "--csv has a line for each interval, --json one document"),
];

/// What `measure` does not take.
const MEASURE: &[Foreign] = &[
    foreign('s', "server", "to serve is a command of its own: `fullpipe serve`"),
    foreign('B', "bind", "a route decides on the address: `ip route replace ... src ADDRESS`"),
    named("cport", "the kernel chooses the port at this end"),
    foreign('F', "file", "payload comes from memory; -Z sends it without copying"),
    foreign('D', "daemon", "only a server is a daemon; to mark packets give --dscp"),
    foreign('L', "flowlabel", "the kernel chooses the flow label"),
    named("connect-timeout", "a server that does not answer within 10 s is given up"),
    named("pacing-timer", "the kernel paces exactly with --fq-rate"),
    named("dont-fragment", "TCP never fragments on its way; --mtu finds the largest packet that passes"),
    named("repeating-payload", "the payload's content makes no difference here"),
    named("skip-rx-copy", "the receiver does that by itself; --copy makes it copy"),
    named("idle-timeout", "only a server waits; `fullpipe serve` closes idle sessions anyway"),
];

/// Whose business most letters are.
const THE_CLIENT: &str = "the client decides on it: `fullpipe measure` or iperf3 at the other end";

/// What `serve` does not take.
const SERVE: &[Foreign] = &[
    foreign('s', "server", "`serve` is that already"),
    foreign('F', "file", "what arrives is counted, and not kept"),
    foreign('c', "client", "to measure is a command of its own: `fullpipe measure HOST`"),
    foreign('B', "bind", "give the address: `fullpipe serve 192.0.2.7`"),
    foreign('D', "daemon", "let a supervisor such as systemd start it, or `setsid fullpipe serve &`"),
    foreign('J', "json", "--json prints where it listens, and a line for each event"),
    foreign('i', "interval", "the client sees the intervals"),
    foreign('P', "parallel", THE_CLIENT),
    foreign('t', "time", THE_CLIENT),
    foreign('R', "reverse", THE_CLIENT),
    foreign('n', "bytes", THE_CLIENT),
    foreign('k', "blockcount", THE_CLIENT),
    foreign('l', "length", THE_CLIENT),
    foreign('b', "bitrate", THE_CLIENT),
    foreign('w', "window", THE_CLIENT),
    foreign('M', "set-mss", THE_CLIENT),
    foreign('N', "no-delay", THE_CLIENT),
    foreign('C', "congestion", THE_CLIENT),
    foreign('O', "omit", THE_CLIENT),
    foreign('Z', "zerocopy", THE_CLIENT),
    foreign('u', "udp", THE_CLIENT),
    foreign('S', "tos", THE_CLIENT),
    foreign('T', "title", THE_CLIENT),
    named("bidir", THE_CLIENT),
    named("cport", THE_CLIENT),
    named("get-server-output", THE_CLIENT),
    named("idle-timeout", "idle sessions are closed anyway"),
    named("server-bitrate-limit", "--max-rate bounds each test"),
    named("server-max-duration", "--max-time bounds each test"),
];

/// What `check` and `tune` do not take.
const CHECK: &[Foreign] = &[
    foreign('c', "client", "give the host alone: `fullpipe check HOST`"),
    foreign('s', "server", "to serve is a command of its own: `fullpipe serve`"),
    foreign('p', "port", "give it with the host: `HOST:5301`"),
    foreign('R', "reverse", "give --direction down"),
    named(
        "bidir",
        "give --direction both, which measures one direction after the other; `fullpipe measure --bidir` both at once",
    ),
    foreign('J', "json", "give --json"),
    foreign('V', "verbose", "give --verbose"),
    foreign('i', "interval", "`fullpipe measure` prints intervals"),
    foreign('B', "bind", "a route decides on the address: `ip route replace ... src ADDRESS`"),
    foreign('n', "bytes", "give --seconds; `fullpipe measure -n` sends a number of bytes"),
    foreign('k', "blockcount", "give --seconds; `fullpipe measure -k` sends a number of blocks"),
    foreign('b', "bitrate", "a diagnosis needs a sender without a limit; `fullpipe measure -b` has one"),
    foreign('u', "udp", "a diagnosis is of TCP; `fullpipe measure -u` sends datagrams"),
    foreign('l', "length", "`fullpipe measure -l` sets the length of writes"),
    foreign('w', "window", "`fullpipe measure -w` sets buffers, which turns automatic sizing off"),
    foreign('M', "set-mss", "`fullpipe measure -M` sets it"),
    foreign('N', "no-delay", "`fullpipe measure -N` sets it"),
    foreign('S', "tos", "`fullpipe measure -S` sets it"),
    named("dscp", "`fullpipe measure --dscp` sets it"),
    foreign('Z', "zerocopy", "`fullpipe measure -Z` sends so"),
    foreign('4', "version4", "give the IPv4 address instead of the name"),
    foreign('6', "version6", "give the IPv6 address instead of the name"),
];

/// What stands where a command should.
const NO_COMMAND: &[Foreign] = &[
    foreign('s', "server", "to serve is a command: `fullpipe serve`"),
    foreign('c', "client", "to measure is a command: `fullpipe measure HOST`"),
];

/// What to say of an argument that stands where a command should, where it is one of iperf3's.
pub(crate) fn command_instead(argument: &str) -> Option<String> {
    let found = NO_COMMAND.iter().find(|foreign| foreign.is(argument))?;
    Some(format!("iperf3's {argument} is not an option of `fullpipe`; {}", found.instead))
}

/// What to say of an argument that `command` doesn't know, where it is one of iperf3's: `-f`, `--format`.
pub(crate) fn instead(command: &str, argument: &str) -> Option<String> {
    let own = match command {
        "measure" => MEASURE,
        "serve" => SERVE,
        "check" | "tune" => CHECK,
        _ => return None,
    };
    let found = own.iter().chain(BOTH).find(|foreign| foreign.is(argument))?;
    Some(format!("iperf3's {argument} is not an option of `fullpipe {command}`; {}", found.instead))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn what_is_taken_is_not_refused() {
        for (name, own) in [("measure", MEASURE), ("serve", SERVE), ("check", CHECK), ("tune", CHECK)] {
            let cli = Cli::command();
            let command = cli.find_subcommand(name).unwrap();
            for foreign in own.iter().chain(BOTH) {
                let taken = command.get_arguments().find(|argument| {
                    argument.get_long() == Some(foreign.name)
                        || (foreign.letter.is_some() && argument.get_short() == foreign.letter)
                });
                // Flags of every command, whose letters iperf3 alone has.
                assert!(
                    taken.is_none() || ["json", "verbose"].contains(&foreign.name),
                    "{name} takes {}",
                    foreign.name
                );
            }
        }
    }

    #[test]
    fn iperf3s_ways_to_start_lead_to_the_commands() {
        assert!(command_instead("-s").unwrap().contains("`fullpipe serve`"));
        assert!(command_instead("--client").unwrap().contains("`fullpipe measure HOST`"));
        assert_eq!(command_instead("-R"), None);
    }

    /// The letters of `iperf3 --help` 3.12 to 3.21.
    #[test]
    fn every_letter_of_iperf3_is_taken_or_refused_by_name() {
        for (name, letters) in [
            ("measure", "pfiFABVJdchvsutbnklPRwMNC46SLZOTmD"),
            ("serve", "pfiIFABVJdvhsD146utbnklPRwMNCSZOT"),
            ("check", "pfiABVJdchvsutbnklPRwMNC46SZO"),
            ("tune", "pfiABVJdchvsutbnklPRwMNC46SZO"),
        ] {
            let mut cli = Cli::command();
            cli.build();
            let command = cli.find_subcommand(name).unwrap();
            let missing: String = letters
                .chars()
                .filter(|letter| {
                    command.get_arguments().all(|argument| argument.get_short() != Some(*letter))
                        && instead(name, &format!("-{letter}")).is_none()
                })
                .collect();
            assert!(missing.is_empty(), "{name}: {missing}");
        }
    }
}
