//! The table from every error of the other rooms to an exit code.

use std::{error::Error, io};

#[cfg(target_os = "linux")]
use fullpipe_bpf::BpfError;
use fullpipe_host::{
    ApplyError, ApplyFault, ExportFolderError, HostError, JournalError, windows::connections::StatisticsError,
};
use fullpipe_knobs::{
    export::ExportError,
    reading::{MergeError, ReadingError},
};
#[cfg(target_os = "linux")]
use fullpipe_lab::{CouldNotKeepUp, LabError};
use fullpipe_measure::{AuthError, MeasureError};
use fullpipe_mesh::{Fault, MeshError};
use fullpipe_path::ScenarioError;
use fullpipe_report::json::SeenError;
use fullpipe_sim::{
    SimError,
    reference::ReferenceError,
    share::{ShareError, SocketsError},
};
#[cfg(target_os = "linux")]
use fullpipe_stack::StackError;
use fullpipe_tune::{AllowedError, KeyError, TuneError};
use fullpipe_watch::WatchError;
use fullpipe_web::WebError;

use super::{Failure, exit_of_io};
use crate::exit::Exit;

/// Makes `Failure: From<Error>` out of the function that gives the exit code.
macro_rules! failures {
    ($($error:ty => $exit:expr),* $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::new($exit(&error), &error.to_string())
            }
        })*
    };
}

failures! {
    HostError => host,
    JournalError => journal,
    MeasureError => measure,
    AuthError => auth,
    ScenarioError => |_: &ScenarioError| Exit::ScenarioInvalid,
    KeyError => key,
    AllowedError => |_: &AllowedError| Exit::InputInvalid,
    MeshError => mesh,
    SimError => |_: &SimError| Exit::Usage,
    ReferenceError => |_: &ReferenceError| Exit::ScenarioInvalid,
    ShareError => |_: &ShareError| Exit::Usage,
    SocketsError => |_: &SocketsError| Exit::Usage,
    SeenError => |_: &SeenError| Exit::InputInvalid,
    ReadingError => |_: &ReadingError| Exit::InputInvalid,
    MergeError => |_: &MergeError| Exit::InputInvalid,
    ExportError => export,
    ExportFolderError => export_folder,
    StatisticsError => statistics,
    fullpipe_ingest::Error => ingest,
    WebError => web,
    WatchError => watch,
}

#[cfg(target_os = "linux")]
failures! {
    LabError => lab,
    StackError => stack,
    CouldNotKeepUp => |_: &CouldNotKeepUp| Exit::PathNotKept,
    BpfError => bpf,
}

#[cfg(target_os = "linux")]
fn bpf(error: &BpfError) -> Exit {
    match error {
        BpfError::Denied { .. } => Exit::NoPermission,
        BpfError::Refused { .. } => Exit::Unsupported,
    }
}

fn watch(error: &WatchError) -> Exit {
    match error {
        WatchError::NoDiag | WatchError::Unknown => Exit::Unsupported,
        WatchError::Denied => Exit::NoPermission,
        WatchError::System { source, .. } => exit_of_io(source),
    }
}

fn mesh(error: &MeshError) -> Exit {
    match error.fault() {
        Fault::Usage => Exit::Usage,
        Fault::Input => Exit::InputInvalid,
        Fault::DiskFull => Exit::DiskFull,
        Fault::NoPermission => Exit::NoPermission,
        Fault::Unreachable => Exit::Unreachable,
        Fault::Refused => Exit::Refused,
        Fault::NameUnknown => Exit::NameUnknown,
        Fault::ConnectionLost => Exit::ConnectionLost,
        Fault::Unsupported => Exit::Unsupported,
        Fault::Interrupted => Exit::Interrupted,
        Fault::System => Exit::System,
    }
}

fn statistics(error: &StatisticsError) -> Exit {
    match error {
        StatisticsError::Missing { .. } => Exit::Unsupported,
        StatisticsError::Denied => Exit::NoPermission,
        StatisticsError::System { source, .. } => exit_of_io(source),
        _ => Exit::System,
    }
}

/// What is not there, or is no capture, is the input's fault; the rest is the system's.
fn ingest(error: &fullpipe_ingest::Error) -> Exit {
    match error {
        fullpipe_ingest::Error::Open { source, .. } | fullpipe_ingest::Error::Read { source, .. } => {
            match source.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::IsADirectory => Exit::InputInvalid,
                _ => exit_of_io(source),
            }
        }
        fullpipe_ingest::Error::Decompress { .. }
        | fullpipe_ingest::Error::LongWindow { .. }
        | fullpipe_ingest::Error::Packed { .. }
        | fullpipe_ingest::Error::NotACapture { .. } => Exit::InputInvalid,
    }
}

impl From<ApplyError> for Failure {
    fn from(error: ApplyError) -> Self {
        let stuck = error.rollback.iter().filter(|entry| !entry.outcome.is_restored()).count();
        let fault = Self::from(*error.fault);
        if stuck == 0 {
            return Self { message: format!("{} (nothing stays changed)", fault.message), ..fault };
        }
        let stuck = format!("{stuck} of the changes made before it could not be taken back");
        Self { message: format!("{}; {stuck}", fault.message), hint: Some("run `fullpipe undo`".to_owned()), ..fault }
    }
}

impl Failure {
    /// A confirmation that fails leaves the run on trial: unlike with other commands, it stays changed for now.
    pub(crate) fn of_confirmation(error: ApplyError) -> Self {
        if matches!(*error.fault, ApplyFault::Journal(JournalError::NotOnTrial { .. } | JournalError::NoSuchRun { .. }))
        {
            return (*error.fault).into();
        }
        let stuck = error.rollback.iter().filter(|entry| !entry.outcome.is_restored());
        let stuck: String = stuck.map(|entry| format!("; {} could not be put back", entry.place)).collect();
        let fault = Self::from(*error.fault);
        let message =
            format!("{}{stuck}; nothing is confirmed, and what is on trial is taken back in time", fault.message);
        let hint = "fix that and run `fullpipe confirm` again before the deadline".to_owned();
        Self { message, hint: Some(hint), ..fault }
    }
}

impl From<ApplyFault> for Failure {
    fn from(fault: ApplyFault) -> Self {
        match fault {
            ApplyFault::Host(error) => error.into(),
            ApplyFault::Journal(error) => error.into(),
            other => Self::new(apply(&other), &other.to_string()),
        }
    }
}

impl From<TuneError> for Failure {
    fn from(error: TuneError) -> Self {
        match error {
            TuneError::Measure(error) => error.into(),
            #[cfg(target_os = "linux")]
            TuneError::Lab(error) => error.into(),
            #[cfg(target_os = "linux")]
            TuneError::CouldNotKeepUp(error) => error.into(),
            TuneError::Scenario(error) => error.into(),
            TuneError::Host(error) => error.into(),
            TuneError::Journal(error) => error.into(),
            TuneError::Apply(error) => error.into(),
            TuneError::Key(error) => error.into(),
            other => Self::new(tune(&other), &other.to_string()),
        }
    }
}

fn tune(error: &TuneError) -> Exit {
    match error {
        TuneError::Remote { .. } => Exit::PeerDeclined,
        TuneError::NotUndone { .. } => Exit::SettingUnavailable,
        TuneError::TakenBack { .. } => Exit::ChangedSince,
        TuneError::NothingMeasured { .. } => Exit::Unreachable,
        TuneError::File { source, .. } => exit_of_io(source),
        TuneError::Interrupted => Exit::Interrupted,
        TuneError::OtherDestination { .. } => Exit::Usage,
        _ => Exit::System,
    }
}

/// What a file lacks is the input's fault.
fn auth(error: &AuthError) -> Exit {
    match error {
        AuthError::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => Exit::InputInvalid,
        AuthError::Read { source, .. } => exit_of_io(source),
        AuthError::Unfit => Exit::Usage,
        _ => Exit::InputInvalid,
    }
}

fn measure(error: &MeasureError) -> Exit {
    match error {
        MeasureError::BadTarget { .. } | MeasureError::BadSpec { .. } => Exit::Usage,
        MeasureError::UnknownName { .. } | MeasureError::LookupTimeout { .. } => Exit::NameUnknown,
        MeasureError::Unreachable { source, .. } => permission_or(source, Exit::Unreachable),
        MeasureError::Timeout { .. } => Exit::Unreachable,
        MeasureError::Refused { .. } | MeasureError::NoIperf2 { .. } | MeasureError::OneTest { .. } => Exit::Refused,
        MeasureError::Busy { .. } => Exit::Busy,
        MeasureError::NotAServer { .. } | MeasureError::BadMessage { .. } | MeasureError::TooLarge { .. } => {
            Exit::NotAServer
        }
        MeasureError::VersionMismatch { .. } => Exit::VersionMismatch,
        MeasureError::Closed { .. } | MeasureError::Terminated { .. } | MeasureError::Stalled { .. } => {
            Exit::ConnectionLost
        }
        MeasureError::NeedsFullpipe { .. } | MeasureError::ServerError { .. } | MeasureError::Refusal { .. } => {
            Exit::PeerDeclined
        }
        MeasureError::OverLimit { .. } => Exit::PeerDeclined,
        MeasureError::Option { source, .. } => permission_or(source, Exit::Unsupported),
        MeasureError::Cancelled => Exit::Interrupted,
        MeasureError::Bind { source, .. } => permission_or(source, Exit::AddressUnavailable),
        MeasureError::Io { source, .. } => exit_of_io(source),
        _ => Exit::System,
    }
}

fn host(error: &HostError) -> Exit {
    match error {
        HostError::NoPermission { .. } => Exit::NoPermission,
        HostError::UnknownAddress { .. }
        | HostError::InvalidValue { .. }
        | HostError::Missing { .. }
        | HostError::ObjectGone { .. }
        | HostError::ReadOnly { .. }
        | HostError::NeverAbsent { .. }
        | HostError::Refused { .. } => Exit::SettingUnavailable,
        HostError::File { source, .. } => permission_or(source, exit_of_io(source)),
        other => exit_of_cause(other),
    }
}

fn journal(error: &JournalError) -> Exit {
    match error {
        JournalError::JournalLocked { .. } => Exit::JournalLocked,
        JournalError::DiskFull { .. } => Exit::DiskFull,
        JournalError::NoSuchRun { .. }
        | JournalError::NoRun
        | JournalError::NotOnTrial { .. }
        | JournalError::NoTrial => Exit::RunUnknown,
        JournalError::StateDir { source, .. } => match exit_of_io(source) {
            Exit::System => Exit::JournalUnusable,
            known => known,
        },
        JournalError::Host { source } => host(source),
        _ => Exit::JournalUnusable,
    }
}

fn apply(fault: &ApplyFault) -> Exit {
    match fault {
        ApplyFault::Stale { .. } => Exit::ChangedSince,
        ApplyFault::NoEffect { .. } | ApplyFault::Lifeline { .. } => Exit::SettingUnavailable,
        ApplyFault::OnTrial { .. } => Exit::JournalLocked,
        ApplyFault::Persist { source, .. } => exit_of_io(source),
        _ => Exit::System,
    }
}

#[cfg(target_os = "linux")]
fn lab(error: &LabError) -> Exit {
    match error {
        LabError::NeedsNamespaceRights
        | LabError::UserNamespacesOff { .. }
        | LabError::AppArmor
        | LabError::TunDenied { .. }
        | LabError::TunRights { .. } => Exit::NoPermission,
        LabError::TunMissing => Exit::Unsupported,
        LabError::Host { source, .. } | LabError::System { source, .. } => exit_of_io(source),
        LabError::Setting { source, .. } => source.downcast_ref::<HostError>().map_or(Exit::SettingUnavailable, host),
        other => exit_of_cause(other),
    }
}

#[cfg(target_os = "linux")]
fn stack(error: &StackError) -> Exit {
    use fullpipe_tcp::stack::OpenError;
    match error {
        StackError::Port(error) => lab(error),
        StackError::Open { source: OpenError::Budget { .. }, .. } | StackError::Setting(_) => Exit::Usage,
        StackError::Open { source: OpenError::InUse(_) | OpenError::NoAddress, .. } => Exit::AddressUnavailable,
        StackError::Open { source: OpenError::BadPeer(_), .. } => Exit::Usage,
        StackError::Connection { source, .. } => exit_of_io(&io::Error::from(fullpipe_stack::kind_of(*source))),
        StackError::TimedOut { .. } | StackError::OutOfTime => Exit::Unreachable,
        StackError::Stopped => Exit::Interrupted,
        StackError::System { source, .. } => exit_of_io(source),
        _ => Exit::System,
    }
}

fn key(error: &KeyError) -> Exit {
    match error {
        KeyError::Read { source, .. } => permission_or(source, Exit::Usage),
        KeyError::Write { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => Exit::OutputExists,
        KeyError::Write { source, .. } => exit_of_io(source),
        _ => Exit::Usage,
    }
}

fn export(error: &ExportError) -> Exit {
    match error {
        ExportError::SeveralHosts { .. } | ExportError::Unfit { .. } => Exit::InputInvalid,
        _ => Exit::Unsupported,
    }
}

fn export_folder(error: &ExportFolderError) -> Exit {
    match error {
        ExportFolderError::NotEmpty { .. } | ExportFolderError::NotAFolder { .. } => Exit::OutputExists,
        ExportFolderError::System { source, .. } => exit_of_io(source),
        _ => Exit::System,
    }
}

fn web(error: &WebError) -> Exit {
    match error {
        WebError::Listen { source, .. } | WebError::Folder { source, .. } => exit_of_io(source),
        WebError::Serve(_) => Exit::System,
    }
}

fn permission_or(error: &io::Error, other: Exit) -> Exit {
    if error.kind() == io::ErrorKind::PermissionDenied { Exit::NoPermission } else { other }
}

/// The exit code of the operating system's error among the causes, where there is one.
fn exit_of_cause(error: &dyn Error) -> Exit {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return exit_of_io(io);
        }
        cause = error.source();
    }
    Exit::System
}

#[cfg(test)]
mod tests;
