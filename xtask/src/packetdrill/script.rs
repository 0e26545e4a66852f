//! A script made ready: its shell lines become flags, because there is no kernel to set up, and in the relaxed way some
//! claims are dropped.

use std::collections::BTreeMap;

use super::Loads;

/// What is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Everything but shell lines.
    Strict,
    /// Neither `TCP_INFO` nor options: a SYN's in scripts for Linux, all in those for FreeBSD.
    Relaxed,
}

/// For which system scripts were written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suite {
    Linux,
    FreeBsd,
}

/// A script to run.
pub(crate) struct Prepared {
    pub(crate) text: String,
    pub(crate) flags: String,
    /// The address of the host.
    pub(crate) local: String,
}

const STATES: [(&str, &str); 11] = [
    ("TCPI_CLOSED", "TCP_CLOSE"),
    ("TCPI_LISTEN", "TCP_LISTEN"),
    ("TCPI_SYN_SENT", "TCP_SYN_SENT"),
    ("TCPI_SYN_RECEIVED", "TCP_SYN_RECV"),
    ("TCPI_ESTABLISHED", "TCP_ESTABLISHED"),
    ("TCPI_CLOSE_WAIT", "TCP_CLOSE_WAIT"),
    ("TCPI_FIN_WAIT_1", "TCP_FIN_WAIT1"),
    ("TCPI_FIN_WAIT_2", "TCP_FIN_WAIT2"),
    ("TCPI_CLOSING", "TCP_CLOSING"),
    ("TCPI_LAST_ACK", "TCP_LAST_ACK"),
    ("TCPI_TIME_WAIT", "TCP_TIME_WAIT"),
];

/// FreeBSD's socket options that Linux does not have, by the plugin's numbers: theirs and 1000.
const OPTIONS: [(&str, &str); 3] =
    [("TCP_REMOTE_UDP_ENCAPS_PORT", "1071"), ("TCP_KEEPINIT", "1128"), ("TCP_NOOPT", "1008")];

/// Makes a script ready.
pub(crate) fn prepare(text: &str, how: How, loads: Loads) -> Prepared {
    let suite = if text.contains("net.inet.tcp.") { Suite::FreeBsd } else { Suite::Linux };
    let mut text = chosen(text);
    if suite == Suite::FreeBsd {
        // The scripts are for nplab's packetdrill, which names states by itself, but has no names of FreeBSD's options
        // where it is not built there.
        let names: &[(&str, &str)] = match loads {
            Loads::ByName => &STATES,
            Loads::Before => &OPTIONS,
        };
        for (theirs, name) in names {
            text = text.replace(theirs, name);
        }
    }
    // What is set before the first socket is the set-up; what is set later changes flags under way.
    let setup_len = text.find("socket(").unwrap_or(text.len());
    let (setup, later) = text.split_at(setup_len);
    let (setup, shell) = with_shell_as(setup, files);
    let (later, _) = with_shell_as(later, |shell| match changes(&settings(shell), suite, shell) {
        changes if changes.is_empty() => "true".to_owned(),
        changes => format!(": fullpipe {}", changes.join(",")),
    });
    let mut text = setup + &later;
    let local = own_option(&text, "--local_ip").unwrap_or("192.168.0.1").to_owned();
    let mtu = own_option(&text, "--mtu").or_else(|| device_mtu(&shell));
    let mtu = mtu.map(|mtu| format!(",mtu={mtu}")).unwrap_or_default();
    if how == How::Relaxed {
        text = without_claims(&text);
        text = text.lines().map(|line| without_options(line, suite) + "\n").collect();
    }
    let flags = flags(&settings(&shell), suite, &local, fast_open(&shell)) + &mtu;
    Prepared { text, flags, local }
}

/// `tcp_fastopen` by the file of settings that a script begins with: that beside Linux's own, or that beside google/packetdrill's,
/// by which every listener takes data in SYNs.
fn fast_open(shell: &str) -> &'static str {
    if shell.lines().any(|line| line.trim_start().starts_with("./defaults.sh")) { "0x3" } else { "0x70403" }
}

/// What shell lines do to files that the script reads; nothing else.
fn files(shell: &str) -> String {
    let commands: Vec<&str> = shell.lines().filter(|line| line.starts_with("/bin/")).collect();
    if commands.is_empty() { "true".to_owned() } else { commands.join("; ") }
}

/// Of what stands between `#ifdef` and `#endif` what is for FreeBSD. Lines keep their numbers.
fn chosen(text: &str) -> String {
    let mut is_kept = true;
    let line = |line: &str| {
        match line.strip_prefix('#') {
            Some(word) if word.starts_with("ifdef") => is_kept = word.trim_end().ends_with("FreeBSD"),
            Some(_) => is_kept = true,
            None if is_kept => return line.to_owned() + "\n",
            None => {}
        }
        "\n".to_owned()
    };
    text.lines().map(line).collect()
}

/// What a script says of packetdrill's own options.
fn own_option<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='))?;
    rest.split_whitespace().next()
}

/// Replaces shell lines by others, so that every event keeps its time; also gives what they were.
fn with_shell_as(text: &str, replacement: impl Fn(&str) -> String) -> (String, String) {
    let (mut rest, mut kept, mut shell) = (text, String::new(), String::new());
    while let Some(at) = rest.find(['`', '/']) {
        if rest[at..].starts_with("//") {
            let end = rest[at..].find('\n').map_or(rest.len(), |end| at + end);
            kept.push_str(&rest[..at]);
            rest = &rest[end..];
            continue;
        }
        if rest[at..].starts_with('/') {
            kept.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            continue;
        }
        let Some(end) = rest[at + 1..].find('`').map(|end| at + 1 + end) else { break };
        kept.push_str(&rest[..at]);
        // Lines keep their numbers.
        kept.push('`');
        kept.push_str(&replacement(&rest[at + 1..end]));
        kept.extend(rest[at..end].chars().filter(|c| *c == '\n'));
        kept.push('`');
        shell.push_str(&rest[at + 1..end]);
        shell.push('\n');
        rest = &rest[end + 1..];
    }
    kept.push_str(rest);
    (kept, shell)
}

/// The same for claims about `TCP_INFO`.
fn without_claims(text: &str) -> String {
    let (mut rest, mut kept) = (text, String::new());
    while let Some((before, after)) = rest.split_once("%{") {
        let Some((claim, after)) = after.split_once("}%") else { break };
        kept.push_str(before);
        kept.push_str("`true");
        kept.extend(claim.chars().filter(|c| *c == '\n'));
        kept.push('`');
        rest = after;
    }
    kept.push_str(rest);
    kept
}

/// A packet that the engine must send, whatever its options.
fn without_options(line: &str, suite: Suite) -> String {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default();
    let has_time = first.starts_with(['+', '*']) || first.starts_with(|c: char| c.is_ascii_digit());
    let arrow = if has_time { words.next().unwrap_or_default() } else { first };
    let flags = words.next().unwrap_or_default();
    if arrow != ">" || flags == "icmp" || (suite == Suite::Linux && !flags.contains('S')) {
        return line.to_owned();
    }
    let (head, tail) = line.split_once('>').unwrap_or((line, ""));
    // What the peer echoes later has to be there.
    if suite == Suite::Linux && tail.contains("TS val") {
        return line.to_owned();
    }
    match tail.split_once('<') {
        Some((packet, options)) => {
            let behind = options.split_once('>').map_or("", |(_, behind)| behind);
            format!("{head}>{packet}<...>{behind}")
        }
        None => format!("{head}>{tail} <...>"),
    }
}

/// Names and values that shell lines set, the last path component of `/proc/sys/net/ipv4/` names; the last of several.
fn settings(shell: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut rest = shell;
    while let Some((before, after)) = rest.split_once('=') {
        let name = before.rsplit([' ', '\n', '\t', '/']).next().unwrap_or_default();
        let name = name.rsplit("net.ipv4.").next().unwrap_or(name);
        let (value, behind) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_at(after.find([' ', '\n', '\t']).unwrap_or(after.len())),
        };
        let value = value.trim_end_matches(['\\', ';']);
        found.insert(name.to_owned(), value.to_owned());
        rest = behind;
    }
    found
}

/// The settings as flags of the plugin.
fn flags(found: &BTreeMap<String, String>, suite: Suite, local: &str, fast_open: &str) -> String {
    let mut flags = vec![format!("local={local}")];
    let mut set = |name: &str, value: &str| flags.push(format!("{name}={value}"));
    match suite {
        Suite::Linux => {
            // What google/packetdrill's scripts set before all else, in a file beside them.
            set("profile", "linux");
            set("idle_restart", "0");
            set("ecn", "off");
            set("rx", "540000");
            set("shift", "8");
            set("syn_retries", "5");
            set("tx", "262144");
            set("tfo", fast_open);
            set("tfo_key", "a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4");
        }
        Suite::FreeBsd => set("profile", "freebsd"),
    }
    flags.extend(changes(found, suite, ""));
    flags.join(",")
}

/// A number as shell lines write one: digits, or `$((15*1024*1024))`.
fn product(text: &str) -> Option<u64> {
    let factors = text.strip_prefix("$((").and_then(|text| text.strip_suffix("))")).unwrap_or(text);
    factors.split('*').map(|factor| factor.trim().parse::<u64>().ok()).product()
}

/// The MTU that `ip link set` gives the device.
fn device_mtu(shell: &str) -> Option<&str> {
    shell.split_once("dev tun0 mtu ")?.1.split_whitespace().next()
}

/// The shift that FreeBSD announces for the largest buffer that a system allows.
fn shift_for(bytes: u64) -> u32 {
    (0..14).find(|shift| 65_535 << shift >= bytes).unwrap_or(14)
}

/// What settings, and shell lines that are none, change of the flags.
fn changes(settings: &BTreeMap<String, String>, suite: Suite, shell: &str) -> Vec<String> {
    let mut flags = Vec::new();
    let mut set = |name: &str, value: &str| flags.push(format!("{name}={value}"));
    if shell.contains("tcp_metrics flush") {
        set("forget", "1");
    }
    for (name, value) in settings {
        let flag = match (suite, name.as_str()) {
            (Suite::Linux, "tcp_timestamps") | (Suite::FreeBsd, "net.inet.tcp.rfc1323") => "timestamps",
            (Suite::Linux, "tcp_sack") | (Suite::FreeBsd, "net.inet.tcp.sack.enable") => "sack",
            (Suite::Linux, "tcp_window_scaling") => "scale",
            (Suite::Linux, "tcp_slow_start_after_idle") => "idle_restart",
            (Suite::Linux, "tcp_congestion_control") => "cc",
            (Suite::Linux, "tcp_notsent_lowat") => "unsent_low",
            (Suite::Linux, "tcp_syn_retries") => "syn_retries",
            (Suite::Linux, "tcp_synack_retries") => "syn_ack_retries",
            (Suite::Linux, "tcp_mtu_probing") => "mtu_probing",
            (Suite::Linux, "tcp_recovery") => "rack",
            (Suite::Linux, "tcp_min_tso_segs") => "train",
            (Suite::Linux, "tcp_fastopen") => "tfo",
            (Suite::Linux, "tcp_fastopen_key") => "tfo_key",
            (Suite::Linux, "tcp_wmem" | "tcp_rmem") => {
                let mut sizes = value.split_whitespace().skip(1);
                set(if name == "tcp_wmem" { "tx" } else { "rx" }, sizes.next().unwrap_or_default());
                if let (Some(most), "tcp_rmem") = (sizes.next().and_then(product), name.as_str()) {
                    // `tcp_select_initial_window`: for the largest buffer.
                    set("shift", &most.max(1).ilog2().saturating_sub(15).min(14).to_string());
                }
                continue;
            }
            (Suite::Linux, "tcp_rto_max_ms") => "rto_max_ms",
            (Suite::Linux, "tcp_syncookies") => {
                set("cookies", if value == "0" { "0" } else { "1" });
                set("cookies_only", if value == "2" { "1" } else { "0" });
                continue;
            }
            (Suite::Linux, "tcp_ecn") | (Suite::FreeBsd, "net.inet.tcp.ecn.enable") => {
                // From 3 on Linux also has AccECN (RFC 9768) for one side or both; the classic one is what is left.
                let policies = ["off", "request", "accept", "request", "request", "accept"];
                set("ecn", policies.get(value.parse().unwrap_or(0)).unwrap_or(&"off"));
                continue;
            }
            (Suite::FreeBsd, "net.inet.tcp.insecure_rst" | "net.inet.tcp.insecure_syn") if value == "1" => {
                set("blind_defence", "0");
                continue;
            }
            (Suite::FreeBsd, "net.inet.tcp.recvspace") => "rx",
            (Suite::FreeBsd, "net.inet.tcp.sendspace") => "tx",
            (Suite::FreeBsd, "net.inet.tcp.rexmit_initial") => "rto_initial_ms",
            (Suite::FreeBsd, "net.inet.tcp.rexmit_slop") => "rto_margin_ms",
            (Suite::FreeBsd, "net.inet.tcp.delacktime") => "delack_ms",
            (Suite::FreeBsd, "net.inet.tcp.syncookies") => "cookies",
            (Suite::FreeBsd, "kern.ipc.maxsockbuf") => {
                set("shift", &shift_for(value.parse().unwrap_or(0)).to_string());
                continue;
            }
            (Suite::FreeBsd, "net.inet.tcp.rexmit_drop_options") => {
                set("plain_syn_after", if value == "1" { "3" } else { "0" });
                continue;
            }
            (Suite::FreeBsd, "net.inet.tcp.ecn.maxretries") => "ecn_retries",
            (Suite::FreeBsd, "net.inet.tcp.icmp_may_rst") => "icmp_may_end",
            (Suite::FreeBsd, "net.inet.tcp.keepinit") => "open_timeout_ms",
            (Suite::FreeBsd, "net.inet.tcp.syncookies_only") => "cookies_only",
            (Suite::FreeBsd, "net.inet.tcp.udp_tunneling_port") => "udp_port",
            (Suite::FreeBsd, "net.inet.tcp.drop_synfin") => "drop_synfin",
            (Suite::FreeBsd, "net.inet.tcp.keepidle") => "keep_idle_ms",
            (Suite::FreeBsd, "net.inet.tcp.keepintvl") => "keep_interval_ms",
            (Suite::FreeBsd, "net.inet.tcp.keepcnt") => "keep_probes",
            _ => continue,
        };
        set(flag, value);
        if name == "net.inet.tcp.rfc1323" {
            set("scale", value);
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_lines_become_flags_and_keep_their_times() {
        let text = "`../common/defaults.sh\n../common/set_sysctls.py /proc/sys/net/ipv4/tcp_timestamps=0\\`\n\
                    // `not this`\n +0 `sysctl -q net.ipv4.tcp_ecn=1`\n 0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
                    +.1 `sysctl -q net.ipv4.tcp_ecn=0`\n";
        let prepared = prepare(text, How::Strict, Loads::ByName);
        assert!(prepared.flags.ends_with("ecn=request,timestamps=0"), "{}", prepared.flags);
        assert_eq!(prepared.text.matches("`true").count(), 2);
        assert_eq!(prepared.text.lines().count(), text.lines().count());
        assert!(prepared.text.contains("+.1 `: fullpipe ecn=off`"));
    }

    #[test]
    fn shell_lines_of_linux_selftests_become_flags() {
        let text = "`./defaults.sh\nsysctl -q net.ipv4.tcp_rmem=\"4096 131072 $((32*1024*1024))\"\n\
                    sysctl -q net.ipv4.tcp_ecn=5\n ./set_sysctls.py /proc/sys/net/ipv4/tcp_rto_max_ms=1000\n\
                    sysctl -q net.ipv4.tcp_syncookies=2\nip link set dev tun0 mtu 9000\n`\n";
        let prepared = prepare(text, How::Strict, Loads::ByName);
        assert!(prepared.flags.contains(",tfo=0x3,"), "{}", prepared.flags);
        let expected = "ecn=accept,rx=131072,shift=10,rto_max_ms=1000,cookies=1,cookies_only=1,mtu=9000";
        assert!(prepared.flags.ends_with(expected), "{}", prepared.flags);
    }

    #[test]
    fn the_relaxed_way_drops_claims_and_options() {
        let linux = "+0 > S. 0:0(0) ack 1 <mss 1460> // why\n+0 > . 1:1(0) ack 1 <nop>\n+0 < S 0:0(0) <mss 1>\n+.1 %{ assert 1\n }%\n";
        let expected = "+0 > S. 0:0(0) ack 1 <...> \n+0 > . 1:1(0) ack 1 <nop>\n+0 < S 0:0(0) <mss 1>\n+.1 `true\n`\n";
        assert_eq!(prepare(linux, How::Relaxed, Loads::ByName).text, expected);
        let freebsd = "0.0 `sysctl -w net.inet.tcp.sack.enable=0`\n+0 > . 1:1(0) ack 1 win 5\n";
        let prepared = prepare(freebsd, How::Relaxed, Loads::ByName);
        assert_eq!(prepared.text, "0.0 `true`\n+0 > . 1:1(0) ack 1 win 5 <...>\n");
        assert!(prepared.flags.contains("profile=freebsd,sack=0"));
    }

    #[test]
    fn of_two_systems_freebsd_is_chosen() {
        let text = "a\n#ifdef STANDARD\nb\n#endif\n#ifdef FreeBSD\nc\n#endif\nd\n";
        assert_eq!(chosen(text), "a\n\n\n\n\nc\n\nd\n");
    }
}
