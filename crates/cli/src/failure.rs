//! Every error of the other rooms, turned into a kind with an exit code, a message and a hint: here and nowhere else.

mod rooms;

use std::{
    ffi::OsString,
    io::{self, Write},
};

use fullpipe_report::{Problem, clean};

use crate::{
    args::{Global, iperf3},
    exit::Exit,
    output::Output,
};

/// Why a command could not be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// An error whose text is `message` and perhaps, behind the last `; `, the way out: so the other rooms write them.
    pub(crate) fn new(exit: Exit, text: &str) -> Self {
        match text.rsplit_once("; ") {
            Some((message, hint)) => Self { exit, message: message.to_owned(), hint: Some(hint.to_owned()) },
            None => Self { exit, message: text.to_owned(), hint: None },
        }
    }

    /// An operation of the system that failed, named.
    pub(crate) fn system(operation: &str, error: &io::Error) -> Self {
        Self::new(exit_of_io(error), &format!("{operation}: {error}"))
    }

    /// A result that could not be printed.
    pub(crate) fn unprinted(error: io::Error) -> Self {
        Self::system("writing to standard output", &error)
    }

    /// Nobody can be asked and `--yes` is missing.
    pub(crate) fn nobody_to_ask() -> Self {
        Self::new(
            Exit::NotConfirmed,
            "this changes settings, and there is nobody to ask: standard input or error is no terminal, or --json was \
             given; add --yes to go ahead",
        )
    }

    /// The answer was no.
    pub(crate) fn declined() -> Self {
        Self::new(Exit::NotConfirmed, "cancelled; nothing was changed")
    }

    /// As a user sees it.
    pub(crate) fn problem(&self) -> Problem {
        Problem { kind: self.exit.kind(), message: self.message.clone(), hint: self.hint.clone() }
    }
}

/// The exit code for an error of the operating system.
pub(crate) fn exit_of_io(error: &io::Error) -> Exit {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Exit::NoPermission,
        io::ErrorKind::ConnectionRefused => Exit::Refused,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable | io::ErrorKind::TimedOut => {
            Exit::Unreachable
        }
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::UnexpectedEof => {
            Exit::ConnectionLost
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Exit::DiskFull,
        io::ErrorKind::Interrupted => Exit::Interrupted,
        _ => Exit::System,
    }
}

/// Shows what clap has to say: help and version, or what is wrong with the command line.
pub(crate) fn usage(error: &clap::Error, line: &[OsString]) -> Exit {
    use clap::error::ErrorKind;
    let json = line.iter().any(|word| word == "--json");
    let asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) && !error.use_stderr();
    let foreign = foreign(error, line);
    // Help, asked for or instead of a command.
    let is_help = asked_for || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    let shown = if error.kind() == ErrorKind::DisplayVersion {
        // clap would name the subcommand as if it were a program.
        writeln!(anstream::stdout(), concat!("fullpipe ", env!("CARGO_PKG_VERSION")))
    } else if asked_for || (is_help && !json) {
        error.print()
    } else if !json && foreign.is_none() {
        let width = Output::new(Global::default()).look().width;
        write!(anstream::stderr(), "{}", wrapped(&error.render().ansi().to_string(), width))
    } else {
        let output = Output::new(Global { json, quiet: true, ..Global::default() });
        let problem = foreign.map_or_else(|| usage_problem(error), |failure| failure.problem());
        output.problem("fullpipe", &problem)
    };
    // A reader that went away can't be written to.
    drop(shown);
    if asked_for { Exit::Ok } else { Exit::Usage }
}

/// Lines, with their styles, broken at spaces where they are too long; the rest of each goes on two columns further in.
fn wrapped(text: &str, width: usize) -> String {
    let seen = |text: &str| anstream::adapter::strip_str(text).to_string().chars().count();
    let mut lines = String::new();
    for line in text.lines() {
        let indent = line.chars().take_while(|c| *c == ' ').count();
        let mut used = indent;
        lines += &" ".repeat(indent);
        for (place, word) in line[indent..].split(' ').enumerate() {
            let length = seen(word);
            if place > 0 && used + 1 + length > width {
                used = indent + 2;
                lines += &format!("\n{}", " ".repeat(used));
            } else if place > 0 {
                lines.push(' ');
                used += 1;
            }
            lines += word;
            used += length;
        }
        lines.push('\n');
    }
    lines
}

/// An option of iperf3 that is not one of ours.
fn foreign(error: &clap::Error, line: &[OsString]) -> Option<Failure> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let command = line.iter().skip(1).find(|word| !word.as_encoded_bytes().starts_with(b"-"));
    let of_command = command.and_then(|command| iperf3::instead(command.to_str()?, argument));
    let is_first = || line.get(1).is_some_and(|word| word.as_encoded_bytes().starts_with(b"-"));
    let words = of_command.or_else(|| iperf3::command_instead(argument).filter(|_| is_first()))?;
    Some(Failure::new(Exit::Usage, &words))
}

/// Clap's message without its colours, its usage paragraph as the hint.
pub(crate) fn usage_problem(error: &clap::Error) -> Problem {
    let text = error.to_string();
    let mut paragraphs = text.split("\n\n");
    let message = paragraphs.next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let words = |text: &str| clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let hint = paragraphs.map(words).filter(|paragraph| !paragraph.is_empty()).collect::<Vec<_>>().join("; ");
    Problem { kind: Exit::Usage.kind(), message: words(message), hint: (!hint.is_empty()).then_some(hint) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_out_becomes_the_hint() {
        let failure =
            Failure::new(Exit::Refused, "connecting to 192.0.2.1:5201: refused; start `fullpipe serve` there");
        assert_eq!(
            failure.problem(),
            Problem {
                kind: "refused",
                message: "connecting to 192.0.2.1:5201: refused".to_owned(),
                hint: Some("start `fullpipe serve` there".to_owned()),
            }
        );
        assert_eq!(Failure::new(Exit::System, "reading x: gone").problem().hint, None);
    }

    #[test]
    fn a_full_disk_and_a_missing_right_have_codes_of_their_own() {
        for (kind, exit) in [
            (io::ErrorKind::StorageFull, Exit::DiskFull),
            (io::ErrorKind::PermissionDenied, Exit::NoPermission),
            (io::ErrorKind::Other, Exit::System),
        ] {
            assert_eq!(Failure::system("writing /x", &kind.into()).exit, exit);
        }
    }

    #[test]
    fn what_is_wrong_with_a_command_line_is_wrapped_with_its_colours() {
        let line = ["fullpipe", "check", "h", "--fail-on", "nonsense"].map(Into::into);
        let error = crate::args::parse(&line).unwrap_err().render().ansi().to_string();
        let plain = |text: &str| anstream::adapter::strip_str(text).to_string();
        let wrapped = wrapped(&error, 60);
        assert!(wrapped.contains('\x1b') && plain(&error).lines().any(|line| line.chars().count() > 150), "{error}");
        assert!(plain(&wrapped).lines().all(|line| line.chars().count() <= 60), "{wrapped}");
        let words = |text: &str| plain(text).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&wrapped), words(&error));
    }

    #[test]
    fn a_wrong_command_line_is_a_problem_of_one_line() {
        let line = ["fullpipe", "check", "h", "--direction", "in"].map(Into::into);
        let error = crate::args::parse(&line).unwrap_err();
        let problem = usage_problem(&error);
        assert_eq!(problem.kind, "usage");
        assert!(problem.message.starts_with("invalid value 'in' for '--direction <WHICH>'"), "{problem:?}");
        assert!(!problem.message.contains('\n'));
    }
}
