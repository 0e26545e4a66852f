//! `poll` and `epoll`.

use std::collections::BTreeMap;

use fullpipe_tcp::socket::State;

use crate::{
    calls::{File, Kind, Outcome},
    host::{self, Held, Host, NO_HOST},
};

const IN: i32 = libc::EPOLLIN | libc::EPOLLRDNORM;
const OUT: i32 = libc::EPOLLOUT | libc::EPOLLWRNORM;

/// How events are reported, not which: where nothing else is left, a one-shot is used up.
const PRIVATE: u32 = (libc::EPOLLET | libc::EPOLLONESHOT | libc::EPOLLEXCLUSIVE | libc::EPOLLWAKEUP) as u32;

/// What an epoll waits for.
#[derive(Debug, Default)]
pub(crate) struct Epoll {
    watched: BTreeMap<i32, Watched>,
}

#[derive(Debug)]
struct Watched {
    events: u32,
    data: u64,
    /// What was last reported, where only changes are.
    reported: Option<(i32, u64)>,
}

/// An event for the application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) events: u32,
    pub(crate) data: u64,
}

impl Host {
    /// What can be done with `fd` now (poll and epoll share the numbers), and a count that grows with what arrives.
    fn readiness(&mut self, fd: i32) -> (i32, u64) {
        let Ok(file) = self.file(fd) else { return (libc::EPOLLERR, 0) };
        let (kind, read_shut, write_shut, reported) =
            (file.kind, file.is_read_shut, file.is_write_shut, file.failure_told);
        let (is_late, told_copies) = (file.late_peer.is_some(), file.settings.tells_copies);
        match kind {
            Kind::Fresh if is_late => (OUT, 0),
            Kind::Fresh => (libc::EPOLLOUT | libc::EPOLLHUP, 0),
            Kind::Listening(listener) => (if self.stack.has_acceptable(listener) { IN } else { 0 }, 0),
            Kind::Connected(id) => {
                let can_write = self.stack.can_write(id) && self.has_send_space(fd);
                let Some(socket) = self.stack.socket(id) else { return (libc::EPOLLHUP, 0) };
                let (info, failed, counts) = (socket.info(), socket.failure().is_some() && !reported, *socket.counts());
                let is_open = socket.is_open();
                let peer_done = matches!(
                    info.state,
                    State::CloseWait | State::LastAck | State::Closing | State::TimeWait | State::Closed
                );
                let handshake = !is_open && matches!(info.state, State::SynSent | State::SynReceived);
                let mut events = 0;
                if info.state == State::Closed || ((peer_done || read_shut) && write_shut) {
                    events |= libc::EPOLLHUP;
                }
                if peer_done || read_shut {
                    events |= IN | libc::EPOLLRDHUP;
                }
                if !handshake && info.readable > 0 {
                    events |= IN;
                }
                if !handshake && (can_write || write_shut || info.state == State::Closed) {
                    events |= OUT;
                }
                if failed || (told_copies && self.file(fd).is_ok_and(|file| file.notices.has_any(counts.bytes_acked))) {
                    events |= libc::EPOLLERR;
                }
                (events, counts.bytes_received + counts.bytes_acked)
            }
        }
    }
}

/// Fills in `revents` for each pair of descriptor and wanted events; the number that have any.
pub(crate) fn poll(held: Held, wanted: &[(i32, i16)], timeout_ms: i32) -> Result<Vec<i16>, i32> {
    let always = libc::EPOLLERR | libc::EPOLLHUP;
    let look = |host: &mut Host| -> Vec<i16> {
        wanted.iter().map(|(fd, events)| (host.readiness(*fd).0 & (i32::from(*events) | always)) as i16).collect()
    };
    let found = |revents: &[i16]| revents.iter().any(|events| *events != 0);
    wait(held, timeout_ms, |host| Some(look(host)).filter(|revents| found(revents)))
        .map(|revents| revents.unwrap_or_else(|| vec![0; wanted.len()]))
}

/// Waits for `attempt` for a time.
fn wait<T>(mut held: Held, timeout_ms: i32, mut attempt: impl FnMut(&mut Host) -> Option<T>) -> Result<Option<T>, i32> {
    let host = held.as_mut().ok_or(NO_HOST)?;
    let start = host.now;
    let end = u64::try_from(timeout_ms).ok().map(|ms| start.as_nanos() + ms * 1_000_000);
    let over = |host: &Host| end.is_some_and(|end| host.now.as_nanos() >= end);
    host.deadline = end.map(fullpipe_units::Instant::from_nanos);
    let (mut held, result) = host::wait_for(held, |host| match attempt(host) {
        Some(result) => Some(Some(result)),
        None => over(host).then_some(None),
    });
    if let Some(host) = held.as_mut() {
        host.deadline = None;
    }
    Ok(result.flatten())
}

pub(crate) fn epoll_control(held: &mut Held, epoll: i32, operation: i32, fd: i32, event: Event) -> Outcome {
    let host = held.as_mut().ok_or(NO_HOST)?;
    let Some(File::Epoll(epoll)) = host.files.get_mut(&epoll) else { return Err(libc::EBADF) };
    match operation {
        libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD => {
            epoll.watched.insert(fd, Watched { events: event.events, data: event.data, reported: None });
        }
        libc::EPOLL_CTL_DEL if epoll.watched.remove(&fd).is_none() => return Err(libc::ENOENT),
        libc::EPOLL_CTL_DEL => {}
        _ => return Err(libc::EINVAL),
    }
    Ok(0)
}

pub(crate) fn epoll_wait(held: Held, epoll: i32, most: usize, timeout_ms: i32) -> Result<Vec<Event>, i32> {
    let attempt = |host: &mut Host| -> Option<Vec<Event>> {
        let found = epoll_look(host, epoll, most);
        (!found.is_empty()).then_some(found)
    };
    wait(held, timeout_ms, attempt).map(Option::unwrap_or_default)
}

fn epoll_look(host: &mut Host, epoll: i32, most: usize) -> Vec<Event> {
    let Some(File::Epoll(watching)) = host.files.get_mut(&epoll) else { return Vec::new() };
    let mut watched = std::mem::take(&mut watching.watched);
    let mut found = Vec::new();
    for (fd, watched) in &mut watched {
        if watched.events & !PRIVATE == 0 {
            continue;
        }
        let always = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
        let (ready, count) = host.readiness(*fd);
        let events = ready as u32 & (watched.events | always);
        let is_edge = watched.events & libc::EPOLLET as u32 != 0;
        let is_news = !is_edge || watched.reported != Some((ready, count));
        if events != 0 && is_news && found.len() < most {
            watched.reported = Some((ready, count));
            if watched.events & libc::EPOLLONESHOT as u32 != 0 {
                watched.events &= PRIVATE;
            }
            found.push(Event { events, data: watched.data });
        }
    }
    if let Some(File::Epoll(watching)) = host.files.get_mut(&epoll) {
        watching.watched = watched;
    }
    found
}
