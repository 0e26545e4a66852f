//! Every exit code, in one place.
//!
//! `docs/exit-codes.md`, `fullpipe help exit-codes` and the manual page are rendered from here.

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done what was asked.
    Ok = 0,
    /// Done, and something came out differently.
    NotAsExpected = 1,
    /// The command line can't be understood.
    Usage = 2,
    /// The right to do it is missing.
    NoPermission = 3,
    /// No answer from the host.
    Unreachable = 4,
    /// The host answers, and nothing listens on the port.
    Refused = 5,
    /// The name has no address.
    NameUnknown = 6,
    /// Something else than a fullpipe or iperf3 server answered.
    NotAServer = 7,
    /// The server is in a test with somebody else.
    Busy = 8,
    /// The two versions don't understand each other.
    VersionMismatch = 9,
    /// The peer vanished in the middle.
    ConnectionLost = 10,
    /// The peer refused what was asked of it.
    PeerDeclined = 11,
    /// A setting can't be read or written.
    SettingUnavailable = 12,
    /// Somebody changed a setting after fullpipe did.
    ChangedSince = 13,
    /// Another run holds the journal.
    JournalLocked = 14,
    /// The journal can't be used.
    JournalUnusable = 15,
    /// No space is left.
    DiskFull = 16,
    /// The scenario can't be used.
    ScenarioInvalid = 17,
    /// The emulated path could not keep up.
    PathNotKept = 18,
    /// The changes did not help.
    NotProven = 19,
    /// Nobody said yes.
    NotConfirmed = 20,
    /// This system lacks something.
    Unsupported = 21,
    /// No such run.
    RunUnknown = 22,
    /// The address can't be listened on.
    AddressUnavailable = 23,
    /// A file that was given can't be understood.
    InputInvalid = 24,
    /// Files are in the way of what shall be written.
    OutputExists = 25,
    /// A limit was found that settings lift, and none could be tried.
    NothingTried = 26,
    /// Applied, and something else wins at the next boot.
    NotLasting = 27,
    /// Any other error of the operating system.
    System = 70,
    /// Ended by Ctrl-C or a signal, after everything that was tried had been undone.
    Interrupted = 130,
}

impl Exit {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: &'static [Self] = &[
        Self::Ok,
        Self::NotAsExpected,
        Self::Usage,
        Self::NoPermission,
        Self::Unreachable,
        Self::Refused,
        Self::NameUnknown,
        Self::NotAServer,
        Self::Busy,
        Self::VersionMismatch,
        Self::ConnectionLost,
        Self::PeerDeclined,
        Self::SettingUnavailable,
        Self::ChangedSince,
        Self::JournalLocked,
        Self::JournalUnusable,
        Self::DiskFull,
        Self::ScenarioInvalid,
        Self::PathNotKept,
        Self::NotProven,
        Self::NotConfirmed,
        Self::Unsupported,
        Self::RunUnknown,
        Self::AddressUnavailable,
        Self::InputInvalid,
        Self::OutputExists,
        Self::NothingTried,
        Self::NotLasting,
        Self::System,
        Self::Interrupted,
    ];

    /// The number that the shell sees.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// The word in `error.kind`; also for the codes that come with a result instead of an error.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotAsExpected => "not_as_expected",
            Self::Usage => "usage",
            Self::NoPermission => "no_permission",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::NameUnknown => "name_unknown",
            Self::NotAServer => "not_a_server",
            Self::Busy => "busy",
            Self::VersionMismatch => "version_mismatch",
            Self::ConnectionLost => "connection_lost",
            Self::PeerDeclined => "peer_declined",
            Self::SettingUnavailable => "setting_unavailable",
            Self::ChangedSince => "changed_since",
            Self::JournalLocked => "journal_locked",
            Self::JournalUnusable => "journal_unusable",
            Self::DiskFull => "disk_full",
            Self::ScenarioInvalid => "scenario_invalid",
            Self::PathNotKept => "path_not_kept",
            Self::NotProven => "not_proven",
            Self::NotConfirmed => "not_confirmed",
            Self::Unsupported => "unsupported",
            Self::RunUnknown => "run_unknown",
            Self::AddressUnavailable => "address_unavailable",
            Self::InputInvalid => "input_invalid",
            Self::OutputExists => "output_exists",
            Self::NothingTried => "nothing_tried",
            Self::NotLasting => "not_lasting",
            Self::System => "system",
            Self::Interrupted => "interrupted",
        }
    }

    /// When the program ends so, as a sentence for the documentation.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Ok => {
                "Done what was asked. For `check`: measured and judged, whatever the verdict, unless a gate was given."
            }
            Self::NotAsExpected => {
                "Done, but a verdict or figure is not as the scenario expects, or a host does not read as at the \
                 start; the report says which. For `lint`: a finding is an error. For `plan --verify`: a value is not as the \
                 plan wants it, or the files don't tell. For `check`: a gate was not passed (`--min-rate`, \
                 `--fail-on`). For `mesh`: a direction is slow, slower than before, or could not be measured."
            }
            Self::Usage => "The command line can't be understood.",
            Self::NoPermission => "The right to change a setting, make a namespace or open a device is missing.",
            Self::Unreachable => "The host does not answer: no route, or no answer in time.",
            Self::Refused => "The host answers, and nothing listens on that port.",
            Self::NameUnknown => "The name of the host has no address.",
            Self::NotAServer => "What answered is neither a fullpipe nor an iperf3 server.",
            Self::Busy => "The server is in a test with somebody else.",
            Self::VersionMismatch => "The two versions don't understand each other.",
            Self::ConnectionLost => "The peer vanished in the middle. What was tried has been undone.",
            Self::PeerDeclined => "The peer refused what was asked: it does not allow tuning, or the key is another.",
            Self::SettingUnavailable => {
                "A setting is missing, read-only, or did not take the value: nothing else was changed, and what had \
                 been was undone."
            }
            Self::ChangedSince => {
                "Somebody changed a setting after fullpipe did; it was left alone. `undo` puts the rest back, `undo --force` that, \
                 too, and `undo --leave-changed` leaves it to them for good."
            }
            Self::JournalLocked => {
                "Another run of fullpipe holds the journal, or has the setting on trial. For `archive`: another run writes \
                 there."
            }
            Self::JournalUnusable => {
                "The journal can't be read or written, is damaged or was lost, or others could have written it: nothing \
                 was changed. `undo` puts back what can be read of it, and ends so, too."
            }
            Self::DiskFull => {
                "No space is left for the journal or a drop-in file, so nothing was changed. For `archive`: what is there is \
                 whole, and the same command goes on from it."
            }
            Self::ScenarioInvalid => "The scenario is unknown, or its file has an unknown or impossible field.",
            Self::PathNotKept => {
                "This machine was too busy: the emulated path could not keep up with its own plan, measurements that were \
                 repeated were disturbed again, and what came out is not what was expected."
            }
            Self::NotProven => {
                "The changes were tried and none cleared the threshold, so all of them were undone; the report has \
                 the figures."
            }
            Self::NotConfirmed => "The answer was no, or standard input is no terminal and `--yes` was not given.",
            Self::Unsupported => {
                "This system lacks something that the command needs; the message names it. For `archive` and `report`: the \
                 Python package."
            }
            Self::RunUnknown => "The journal has no such run, or, for `confirm`, it is not on trial (any more).",
            Self::AddressUnavailable => {
                "The address can't be listened on, or the device can't be used: it is in use, or not one of this machine."
            }
            Self::InputInvalid => {
                "A file that was given is not there, is too large, can't be understood, or is for another machine; the \
                 message names file, line and column. For `read` and `archive`: so is one of several captures, or it \
                 breaks off; what could be read is printed all the same."
            }
            Self::OutputExists => "The folder to write into has files; `--force` writes over them.",
            Self::NothingTried => {
                "For `tune`: a setting limits a direction, and none could be tried from here, because the far host does not \
                 allow tuning, or because the value is not fullpipe's to change; the report says what to set where."
            }
            Self::NotLasting => {
                "For `apply --persist`, `tune --persist` and `confirm`: applied, but some of it is gone after the next reboot: \
                 another file sets it otherwise, or no boot-time file can hold it; the notes name file, line and the way out."
            }
            Self::System => "Any other error of the operating system; the message names operation and object.",
            Self::Interrupted => "Ended by Ctrl-C or a signal, after what was tried had been undone.",
        }
    }
}

/// `docs/exit-codes.md`.
pub(crate) fn markdown() -> String {
    let mut text = String::from(
        "# Exit codes\n\n\
         With `--json`, an error prints an object whose `error.kind` is the word in the second column. `lab shell` ends \
         with the exit code of the command that it ran, `archive` and `report` with the Python package's.\n\n\
         | code | kind | when |\n|---:|---|---|\n",
    );
    for exit in Exit::ALL {
        text += &format!("| {} | `{}` | {} |\n", exit.code(), exit.kind(), exit.meaning());
    }
    text
}

/// The list for `fullpipe help exit-codes`.
pub(crate) fn table() -> String {
    let mut text = String::new();
    for exit in Exit::ALL {
        text += &format!("{:>4}  {:<20}  {}\n", exit.code(), exit.kind(), exit.meaning());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_kinds_are_unique_and_in_order() {
        assert!(Exit::ALL.is_sorted_by(|a, b| a.code() < b.code()));
        let mut kinds: Vec<_> = Exit::ALL.iter().map(|exit| exit.kind()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), Exit::ALL.len());
    }

    #[test]
    fn no_code_collides_with_what_a_shell_means() {
        for exit in Exit::ALL {
            assert!(!matches!(exit.code(), 126..=129), "{exit:?}");
        }
    }
}
