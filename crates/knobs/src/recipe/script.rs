//! Shell scripts: `sysctl` with assignments, writes below /proc/sys, here-documents into sysctl's files, and the commands
//! that set routes and interfaces.
//!
//! No shell: a value that only a running script knows is said to be unknown, and branches count as taken. Loops over words
//! that stand in the script are written out, and variables that it gives are put in (`loops`).

use super::{Action, Problem, Step, known_or_not, loops, measuring};
use crate::{Address, sysctl_conf};

pub(super) fn read(text: &str) -> (Vec<Step>, Vec<Problem>) {
    let (mut steps, mut problems) = (Vec::new(), Vec::new());
    let mut commands: Vec<loops::Command> = Vec::new();
    let mut lines = (1..).zip(text.lines());
    while let Some((number, raw)) = lines.next() {
        let mut line = raw.trim().to_owned();
        while line.ends_with('\\') {
            line.pop();
            let Some((_, next)) = lines.next() else { break };
            line.push_str(next.trim());
        }
        if line.starts_with('#') {
            continue;
        }
        if let Some(end) = here_document(&line) {
            let lines = lines.by_ref().take_while(|(_, raw)| raw.trim() != end);
            commands.extend(lines.map(|(number, raw)| (number, vec![HERE.to_owned(), raw.to_owned()])));
            continue;
        }
        let words = words(&line);
        let of_line = words.split(|word| [";", "&", "&&", "|", "||"].contains(&word.as_str()));
        commands.extend(of_line.filter(|command| !command.is_empty()).map(|command| (number, command.to_vec())));
    }
    for (number, command) in loops::shell(&commands) {
        let actions = match command.as_slice() {
            [first, raw] if first == HERE => {
                let (found, bad) = sysctl_conf::parse(raw);
                problems.extend(bad.into_iter().map(|problem| Problem { line: number, ..problem }));
                found
                    .into_iter()
                    .filter_map(|line| Some(Action::Set(Address::Sysctl(line.name), line.value?)))
                    .collect()
            }
            command => actions(command),
        };
        let known = actions.into_iter().map(|action| known_or_not(known_or_not(action, '$'), '`'));
        steps.extend(known.map(|action| Step { line: number, action }));
    }
    steps.sort_by_key(|step| step.line);
    (steps, problems)
}

/// What stands before a line of a here-document as if it were a command; no command has this name.
const HERE: &str = "<<";

/// The word that ends a here-document which goes into a file of sysctl's.
fn here_document(line: &str) -> Option<String> {
    let (before, after) = line.split_once("<<")?;
    let into_sysctl = line.contains("sysctl.conf") || line.contains("sysctl.d");
    let plain = !before.contains('#') && into_sysctl;
    let word = after.trim_start_matches('-').split_whitespace().next()?.trim_matches(['"', '\'']);
    (plain && !word.is_empty()).then(|| word.to_owned())
}

/// The words of a line; quotation marks hold words together and go away, a comment ends it.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut any, mut quote) = (Vec::new(), String::new(), false, None);
    let mut characters = line.chars().peekable();
    let mut end = |word: &mut String, any: &mut bool| {
        if std::mem::take(any) {
            words.push(std::mem::take(word));
        }
    };
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(mark), _) if c == mark => quote = None,
            (Some(_), _) => word.push(c),
            (None, '"' | '\'') => (quote, any) = (Some(c), true),
            (None, '#') if !any => break,
            (None, ';' | '|' | '&') => {
                end(&mut word, &mut any);
                let double = characters.next_if_eq(&c).is_some();
                (word, any) = (if double { format!("{c}{c}") } else { c.to_string() }, true);
                end(&mut word, &mut any);
            }
            (None, '>') => {
                end(&mut word, &mut any);
                while characters.next_if_eq(&'>').is_some() {}
                (word, any) = (">".to_owned(), true);
                end(&mut word, &mut any);
            }
            (None, c) if c.is_whitespace() => end(&mut word, &mut any),
            (None, _) => (any, ()) = (true, word.push(c)),
        }
    }
    end(&mut word, &mut any);
    words
}

/// What a command sets; nothing for one that is of no concern.
fn actions(command: &[String]) -> Vec<Action> {
    let skip = |word: &&String| {
        ["sudo", "doas", "if", "elif", "then", "do", "else", "{", "(", "!", "exec"].contains(&word.as_str())
    };
    let prefix = command.iter().take_while(skip).count();
    let rest = command.get(prefix..).unwrap_or_default();
    let words: Vec<&str> = rest.iter().map(String::as_str).collect();
    let Some((first, arguments)) = words.split_first() else { return Vec::new() };
    match first.rsplit('/').next().unwrap_or(first) {
        "sysctl" => arguments.iter().filter_map(|word| assignment(word)).collect(),
        "echo" | "printf" => written(arguments).into_iter().collect(),
        "ip" => ip(arguments),
        "ifconfig" => mtu(arguments.first().copied(), arguments).into_iter().collect(),
        _ => measuring::actions(&words),
    }
}

/// `net.ipv4.tcp_rmem=4096 131072 6291456`, as one word.
fn assignment(word: &str) -> Option<Action> {
    let (name, value) = word.split_once('=').filter(|(name, _)| !name.starts_with('-'))?;
    let name = sysctl_conf::dotted(name.trim());
    let knob = if name.contains('$') { Address::Sysctl(name) } else { name.parse().ok()? };
    matches!(knob, Address::Sysctl(_)).then(|| Action::Set(knob, value.trim().to_owned()))
}

/// `echo 1 > /proc/sys/net/ipv4/tcp_sack`, or `echo net.ipv4.tcp_sack=1 >> /etc/sysctl.conf`.
fn written(words: &[&str]) -> Option<Action> {
    let at = words.iter().position(|word| *word == ">")?;
    let (what, into) = (words.get(..at)?, words.get(at + 1)?);
    let what: Vec<&str> = what.iter().copied().filter(|word| !["-n", "-e", "%s\\n"].contains(word)).collect();
    if into.contains("sysctl.conf") || into.contains("sysctl.d") {
        return assignment(&what.join(" "));
    }
    let name = into.strip_prefix("/proc/sys/")?;
    Some(Action::Set(Address::Sysctl(sysctl_conf::dotted(name)), what.join(" ")))
}

/// `ip route change default via 10.0.0.1 initcwnd 10`, `ip link set dev eth0 mtu 9000`.
fn ip(words: &[&str]) -> Vec<Action> {
    const ATTRIBUTES: [&str; 8] = ["window", "initcwnd", "initrwnd", "mtu", "advmss", "rto_min", "quickack", "congctl"];
    let words: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with('-')).collect();
    match words.as_slice() {
        ["link" | "l", "set", rest @ ..] => {
            let device = if rest.first() == Some(&"dev") { rest.get(1) } else { rest.first() };
            mtu(device.copied(), rest).into_iter().collect()
        }
        ["route" | "r" | "ro", "add" | "change" | "replace" | "append", destination, rest @ ..] => {
            let after = rest.windows(2).filter(|pair| ATTRIBUTES.contains(&pair[0]));
            let route = |attribute: &str| Address::Route {
                destination: (*destination).to_owned(),
                attribute: attribute.to_owned(),
            };
            after.map(|pair| Action::Set(route(pair[0]), pair[1].to_owned())).collect()
        }
        _ => Vec::new(),
    }
}

/// What stands behind the word `mtu`.
fn mtu(device: Option<&str>, words: &[&str]) -> Option<Action> {
    let at = words.iter().position(|word| *word == "mtu")?;
    let knob = Address::Link { device: device?.to_owned(), property: "mtu".to_owned() };
    Some(Action::Set(knob, (*words.get(at + 1)?).to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_ways_in_which_scripts_set_tcp_are_read() {
        let text = "#!/bin/sh\nsudo sysctl -w net.ipv4.tcp_rmem=\"4096 131072 6291456\" && sysctl -qw net.ipv4.tcp_sack=1 # on\n/sbin/sysctl net.inet.tcp.sendspace=262144\necho 0 > /proc/sys/net/ipv4/tcp_timestamps\necho 'net.ipv4.tcp_fack = 1' >> /etc/sysctl.conf\ncat <<EOF > /etc/sysctl.d/9.conf\nnet.core.rmem_max = 1\n\n# x\nEOF\nif true; then ifconfig em0 mtu 9014; fi\nip route change default via 10.0.0.1 dev eth0 initcwnd 20\nip link set dev eth0 mtu 9000\nsysctl -a | grep tcp\n# sysctl -w net.ipv4.tcp_sack=0\n";
        let (steps, problems) = read(text);
        assert_eq!(problems, []);
        let found = steps.into_iter().map(|step| match step.action {
            Action::Set(knob, value) => format!("{} {knob} = {value}", step.line),
            other => format!("{other:?}"),
        });
        assert_eq!(
            found.collect::<Vec<_>>(),
            [
                "2 net.ipv4.tcp_rmem = 4096 131072 6291456",
                "2 net.ipv4.tcp_sack = 1",
                "3 net.inet.tcp.sendspace = 262144",
                "4 net.ipv4.tcp_timestamps = 0",
                "5 net.ipv4.tcp_fack = 1",
                "7 net.core.rmem_max = 1",
                "11 link em0 mtu = 9014",
                "12 route default initcwnd = 20",
                "13 link eth0 mtu = 9000",
            ]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(sysctl|-w|a.b=1|echo|>|>>|<<|EOF|sysctl.conf|ip|route|mtu| |\"|'|;|&|\\\\|#|\n){0,40}") {
            read(&text);
        }
    }
}
