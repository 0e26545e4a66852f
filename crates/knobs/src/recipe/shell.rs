//! `loader.conf` and `rc.conf`: shell assignments, one to a line.

use super::{Action, Problem, Step, reg};
use crate::{Address, sysctl_conf};

pub(super) fn read(text: &str) -> (Vec<Step>, Vec<Problem>) {
    let (mut steps, mut problems) = (Vec::new(), Vec::new());
    for (number, raw) in (1..).zip(text.lines()) {
        match line(raw) {
            Ok(Some(action)) => steps.push(Step::new(number, action)),
            Ok(None) => {}
            Err((column, message)) => problems.push(Problem { line: number, column, message }),
        }
    }
    (steps, problems)
}

/// The setting of one line; `None` where the line sets nothing that bounds TCP (`hostname`, `sshd_enable`).
fn line(raw: &str) -> Result<Option<Action>, (u32, String)> {
    let text = raw.trim();
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let Some((written, value)) = text.split_once('=') else {
        return Err((1, "no `=` in the line; a setting is written name=\"value\"".to_owned()));
    };
    let name = written.trim_end();
    let column = u32::try_from(raw.find('=').unwrap_or(0)).unwrap_or(u32::MAX).saturating_add(2);
    let value = if is_of_loader(name) {
        of_loader(value).map_err(|why| (column, why.to_owned()))?
    } else {
        if sysctl_conf::is_spaced(written, value) && setting(name, "mtu 1").is_some() {
            let words = format!(
                "rc.conf is a shell script: with blanks around the `=` {name} is run as a command, and nothing is set"
            );
            return Err((column, words));
        }
        unquoted(value).ok_or_else(|| (column, "the quotation is not closed".to_owned()))?
    };
    Ok(setting(name, &value))
}

/// Whether a name is one that the boot loader sets for the kernel, and no variable of a shell.
fn is_of_loader(name: &str) -> bool {
    name.contains('.') || is_module(name)
}

/// The value of a line of loader.conf, as both loaders read it: that in Forth up to FreeBSD 11 (sys/boot/forth/support.4th of 5.0
/// to 10.4) and that in Lua from 12.0 on (stand/lua/config.lua). Blanks around the `=` are nothing to them.
fn of_loader(value: &str) -> Result<String, &'static str> {
    const WORD: &str = "FreeBSD's boot loader takes a value in double quotes, or a word of letters, digits, `.`, `_` and `-`: it refuses this line, and up to FreeBSD 11 all that are behind it";
    const BEHIND: &str = "only a comment may follow the value: FreeBSD's boot loader refuses this line, and up to FreeBSD 11 all that are behind it";
    let value = value.trim_start();
    let (inner, rest) = match value.strip_prefix('"') {
        Some(quoted) => reg::unquoted(quoted).ok_or("the quotation is not closed")?,
        None => {
            let is_of_word = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            let (word, rest) = value.split_at(value.find(|c| !is_of_word(c)).unwrap_or(value.len()));
            (word.to_owned(), if word.is_empty() { return Err(WORD) } else { rest })
        }
    };
    let rest = rest.trim_start();
    if rest.is_empty() || rest.starts_with('#') { Ok(inner) } else { Err(BEHIND) }
}

/// What one name of these files sets; `None` where it sets nothing that bounds TCP.
pub(super) fn setting(name: &str, value: &str) -> Option<Action> {
    if let Some(interface) = name.strip_prefix("ifconfig_") {
        let mtu = value.split_whitespace().skip_while(|word| *word != "mtu").nth(1)?;
        let device = interface.split('_').next().unwrap_or(interface).to_owned();
        return Some(Action::Set(Address::Link { device, property: "mtu".to_owned() }, mtu.to_owned()));
    }
    // rc.conf(5) of the releases that had it: whether /etc/rc sets net.inet.tcp.rfc1323.
    if name == "tcp_extensions" {
        let value = if value.eq_ignore_ascii_case("yes") { "1" } else { "0" };
        return Some(Action::Set(Address::sysctl("net.inet.tcp.rfc1323"), value.to_owned()));
    }
    // A congestion control's module, without which the sysctl that chooses it fails (mod_cc(4)).
    if is_module(name) {
        return Some(Action::Set(Address::sysctl(name), value.to_owned()));
    }
    // Only names with dots are tunables and sysctls; the rest of the file is no concern of TCP.
    let address = name.parse::<Address>().ok().filter(|address| matches!(address, Address::Sysctl(_)))?;
    Some(Action::Set(address, value.to_owned()))
}

/// Whether a name loads the module of a congestion control.
fn is_module(name: &str) -> bool {
    name.starts_with("cc_") && name.ends_with("_load")
}

/// The value without its quotation marks and without a comment after it.
fn unquoted(value: &str) -> Option<String> {
    let value = value.trim_start();
    match value.chars().next() {
        Some(mark @ ('"' | '\'')) => {
            let inner = value.get(1..)?;
            inner.find(mark).and_then(|end| inner.get(..end)).map(str::to_owned)
        }
        _ => Some(value.split(['#', ' ', '\t']).next().unwrap_or_default().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_tunables_and_the_mtu_of_an_interface() {
        let text = "# x\nkern.ipc.nmbclusters=\"65536\" # clusters\nhostname=\"h\"\nifconfig_em0=\"inet 10.0.0.1/24 mtu 9014\"\n";
        let (steps, problems) = read(text);
        assert_eq!(problems, []);
        let mtu = Address::Link { device: "em0".to_owned(), property: "mtu".to_owned() };
        assert_eq!(
            steps,
            [
                Step::new(2, Action::Set(Address::sysctl("kern.ipc.nmbclusters"), "65536".to_owned())),
                Step::new(4, Action::Set(mtu, "9014".to_owned())),
            ]
        );
    }

    #[test]
    fn the_old_switch_for_window_scaling_is_the_sysctl_that_it_sets() {
        let (steps, _) = read("tcp_extensions=\"NO\"\n");
        let scaling = Address::sysctl("net.inet.tcp.rfc1323");
        assert_eq!(steps, [Step::new(1, Action::Set(scaling, "0".to_owned()))]);
    }

    #[test]
    fn blanks_around_an_equals_sign_are_nothing_to_the_loader_and_a_mistake_in_rc_conf() {
        let clusters = |value: &str| Some(Action::Set(Address::sysctl("kern.ipc.nmbclusters"), value.to_owned()));
        for text in ["= \"40000\"", " = \"40000\" # x", " =40000", "\t=\t40000\t#x"] {
            assert_eq!(line(&format!("kern.ipc.nmbclusters{text}")), Ok(clusters("40000")), "{text}");
        }
        for (text, why) in [
            ("kern.ipc.nmbclusters='40000'", "double quotes"),
            ("kern.ipc.nmbclusters=", "double quotes"),
            ("kern.ipc.nmbclusters=\"40000\";", "only a comment"),
            ("kern.ipc.nmbclusters=40000 50000", "only a comment"),
            ("ifconfig_em0 = \"inet 10.0.0.1/24 mtu 9000\"", "is run as a command"),
            ("tcp_extensions = \"NO\"", "is run as a command"),
        ] {
            assert!(line(text).unwrap_err().1.contains(why), "{text}");
        }
        // What is no concern of TCP may be a variable of either file.
        assert_eq!(line("autoboot_delay = \"3\""), Ok(None));
    }

    #[test]
    fn an_open_quotation_is_a_problem_with_its_place() {
        let (_, problems) = read("a=\"1\"\nkern.ipc.maxsockbuf=\"2097152\n");
        assert_eq!((problems[0].line, problems[0].column), (2, 21));
    }
}
