//! Takes back what a process has in force, and puts back buffers of other processes' sockets. For `undo`.

use std::{fs, io, os::fd::OwnedFd};

use fullpipe_socket::{Fixed, processes};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::sockopt,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use crate::{
    Entry, Outcome, UndoOptions,
    held::{AUTOMATIC, FixedBuffers, HeldSocket, Program},
};

/// How long a process that was asked to end has time to.
const PATIENCE: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

/// What is said of a program that is in force.
const ATTACHED: &str = "attached";

/// When a process was started, in ticks since the start of the machine; `None` where it is gone.
pub fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may have anything in it, and ends with the last bracket (proc_pid_stat(5)).
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    // One that nobody has waited for yet has nothing attached any more.
    let state = fields.next()?;
    fields.nth(18)?.parse().ok().filter(|_| !matches!(state, "Z" | "X"))
}

/// Whether what the entry tells of is in force; `None` where it is gone.
pub fn held(entry: &Entry) -> Option<String> {
    if let Ok(program) = entry.place.parse::<Program>() {
        return (started(program.pid) == Some(program.start)).then(|| ATTACHED.to_owned());
    }
    let socket = take(&entry.place.parse().ok()?).ok()??;
    let now = fixed(&socket).ok()?;
    Some(if now == FixedBuffers::default() { AUTOMATIC.to_owned() } else { now.to_string() })
}

/// Has the process end that has it in force. Of this very process it must be detached already.
pub(crate) fn undo_program(place: &str, options: UndoOptions) -> Outcome {
    let Ok(program) = place.parse::<Program>() else { return unreadable(place) };
    let ended = || Outcome::Restored { was: Some(ATTACHED.to_owned()), now: None };
    if program.pid == std::process::id() {
        return ended();
    }
    if started(program.pid) != Some(program.start) {
        let why = format!(
            "process {} has ended, and the kernel detached its programs with it: nothing is attached any more",
            program.pid
        );
        return Outcome::Gone { why };
    }
    if options.dry_run {
        return ended();
    }
    match end(program.pid) {
        Ok(true) => ended(),
        Ok(false) => Outcome::Failed { why: format!("process {} does not end when it is asked to", program.pid) },
        Err(error) => Outcome::Failed { why: format!("process {} can't be asked to end: {error}", program.pid) },
    }
}

fn end(pid: u32) -> io::Result<bool> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    pidfd_send_signal(&process, Signal::TERM)?;
    // Readable once it has ended.
    Ok(poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&PATIENCE))? > 0)
}

/// Sets a socket's buffers as its application had set them.
pub(crate) fn undo_socket(entry: &Entry, options: UndoOptions) -> Outcome {
    let before = entry.before.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    let (Ok(place), Ok(before)) = (entry.place.parse(), before.parse()) else { return unreadable(&entry.place) };
    let socket = match take(&place) {
        Ok(Some(socket)) => socket,
        Ok(None) => return Outcome::Gone { why: "it is closed".to_owned() },
        Err(error) => return Outcome::Failed { why: format!("can't take a descriptor of it: {error}") },
    };
    match put(&socket, &before, options) {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Failed { why: error.to_string() },
    }
}

fn put(socket: &OwnedFd, before: &FixedBuffers, options: UndoOptions) -> io::Result<Outcome> {
    let now = fixed(socket)?;
    if now == *before {
        return Ok(Outcome::AlreadyBack);
    }
    if now != FixedBuffers::default() && !options.force {
        return Ok(Outcome::ChangedSince {
            now: Some(now.to_string()),
            ours: Some(AUTOMATIC.to_owned()),
            before: Some(before.to_string()),
            by: None,
        });
    }
    let was = Some(if now == FixedBuffers::default() { AUTOMATIC.to_owned() } else { now.to_string() });
    if options.dry_run {
        return Ok(Outcome::Restored { was, now: Some(before.to_string()) });
    }
    // The kernel doubles what it is given.
    let half = |size: u32| usize::try_from(size / 2).unwrap_or(usize::MAX);
    if let Some(size) = before.send {
        // Without the right to go beyond the largest size: as the application may.
        if sockopt::set_socket_send_buffer_size_force(socket, half(size)).is_err() {
            sockopt::set_socket_send_buffer_size(socket, half(size))?;
        }
    }
    if let Some(size) = before.receive
        && sockopt::set_socket_recv_buffer_size_force(socket, half(size)).is_err()
    {
        sockopt::set_socket_recv_buffer_size(socket, half(size))?;
    }
    Ok(Outcome::Restored { was, now: Some(fixed(socket)?.to_string()) })
}

/// A descriptor for the very same socket; `None` where it is gone.
fn take(socket: &HeldSocket) -> io::Result<Option<OwnedFd>> {
    processes::take(socket.pid, socket.fd, socket.inode)
}

/// The buffers that its application has set (Linux 5.15).
fn fixed(socket: &OwnedFd) -> io::Result<FixedBuffers> {
    let fixed = Fixed::read(socket).ok_or_else(|| {
        io::Error::new(io::ErrorKind::Unsupported, "the kernel does not tell which buffers are fixed; Linux 5.15 does")
    })?;
    let size = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
    let (send, receive) = (sockopt::socket_send_buffer_size(socket)?, sockopt::socket_recv_buffer_size(socket)?);
    Ok(FixedBuffers { send: fixed.send.then(|| size(send)), receive: fixed.receive.then(|| size(receive)) })
}

fn unreadable(place: &str) -> Outcome {
    Outcome::Failed { why: format!("the journal's entry can't be read: {place}") }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{TcpListener, TcpStream},
        os::fd::AsRawFd,
        process::Command,
    };

    use super::*;
    use crate::{EntryState, Identity, Journal, Which, linux::LinuxHost, undo};

    fn program(pid: u32, start: u64) -> Program {
        Program { what: "a test".to_owned(), pid, start }
    }

    #[test]
    fn a_process_is_known_by_its_number_and_its_start() {
        let own = std::process::id();
        assert!(started(own).is_some_and(|ticks| ticks > 0));
        assert_eq!(started(u32::MAX), None);
    }

    #[test]
    fn an_undo_ends_the_process_and_says_where_it_had_ended_already() {
        let mut journal = Journal::in_memory().unwrap();
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let start = started(child.id()).unwrap();
        let identity = Identity::default();
        let later = journal.hold("a", &program(child.id(), start + 1), &identity).unwrap();
        let running = journal.hold("b", &program(child.id(), start), &identity).unwrap();
        let held_of = |journal: &Journal, run| held(&journal.run(run).unwrap().entries[0]);
        assert_eq!(held_of(&journal, running).as_deref(), Some("attached"));
        assert_eq!(held_of(&journal, later), None, "another process with that number");
        let report = undo(&mut LinuxHost::new(), &mut journal, Which::Run(later), UndoOptions::default()).unwrap();
        let gone = format!("process {} has ended", child.id());
        assert!(matches!(&report.entries[0].outcome, Outcome::Gone { why } if why.starts_with(&gone)), "{report:?}");
        assert_eq!(child.try_wait().unwrap(), None, "it is left alone");
        let report = undo(&mut LinuxHost::new(), &mut journal, Which::All, UndoOptions::default()).unwrap();
        assert_eq!(report.entries[0].outcome, Outcome::Restored { was: Some(ATTACHED.to_owned()), now: None });
        assert!(!child.wait().unwrap().success());
        assert!(journal.outstanding().unwrap().is_empty());
    }

    #[test]
    fn buffers_of_a_socket_are_put_back_unless_its_application_set_them_again() {
        let mut journal = Journal::in_memory().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = HeldSocket {
            inode: u32::try_from(rustix::fs::fstat(&stream).unwrap().st_ino).unwrap(),
            pid: std::process::id(),
            fd: u32::try_from(stream.as_raw_fd()).unwrap(),
        };
        match take(&socket) {
            Ok(Some(taken)) if fixed(&taken).is_ok() => {}
            other => return println!("skipped buffers_of_a_socket_are_put_back: {other:?}"),
        }
        let buffers = FixedBuffers { send: Some(100_000), receive: None };
        let run = journal.hold("unpin", &program(std::process::id(), 1), &Identity::default()).unwrap();
        journal.hold_socket(run, &socket, &buffers, || Ok(())).unwrap().unwrap();
        assert_eq!(held(&journal.run(run).unwrap().entries[1]).as_deref(), Some(AUTOMATIC));
        let mut back = |force| {
            let report = undo(
                &mut LinuxHost::new(),
                &mut journal,
                Which::Run(run),
                UndoOptions { force, ..UndoOptions::default() },
            )
            .unwrap();
            report.entries.into_iter().map(|entry| entry.outcome).collect::<Vec<_>>()
        };
        sockopt::set_socket_send_buffer_size(&stream, 30_000).unwrap();
        let outcomes = back(false);
        assert_eq!(outcomes[0], Outcome::Restored { was: Some(ATTACHED.to_owned()), now: None }, "the program first");
        assert!(matches!(outcomes[1], Outcome::ChangedSince { .. }), "{outcomes:?}");
        let [was, now] = ["SO_SNDBUF 60000", "SO_SNDBUF 100000"].map(|text| Some(text.to_owned()));
        assert_eq!(back(true), [Outcome::Restored { was, now }]);
        assert_eq!(sockopt::socket_send_buffer_size(&stream).unwrap(), 100_000);
        journal.hold_socket(run, &socket, &buffers, || Err(io::ErrorKind::NotFound.into())).unwrap().unwrap_err();
        assert_eq!(journal.run(run).unwrap().entries[2].state, EntryState::Gone);
        journal.hold_socket(run, &socket, &buffers, || Ok(())).unwrap().unwrap();
        drop(stream);
        let report = undo(&mut LinuxHost::new(), &mut journal, Which::All, UndoOptions::default()).unwrap();
        assert_eq!(report.entries[0].outcome, Outcome::Gone { why: "it is closed".to_owned() });
    }
}
