//! What a connection's figures show besides its verdict, each with what would lift it.
//!
//! These are facts about sockets, not another verdict: what limited the connection is the judge's to say.

use fullpipe_diagnose::{Diagnosis, Limiter};
use fullpipe_units::{Bytes, Micros};
use serde::{Deserialize, Serialize};

use crate::{
    limits::Pin,
    story::{Ends, Story, Way},
};

/// One remark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// What it is about.
    pub subject: Subject,
    /// Whether the system itself says so; else it is only likely.
    pub is_sure: bool,
    /// Whether it holds the connection back; else it is only good to know.
    pub is_trouble: bool,
    /// What was seen.
    pub text: String,
    /// What would lift it, or that nothing would.
    pub fix: String,
}

/// What a remark is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Subject {
    /// The application set `SO_RCVBUF`.
    ReceiveBufferSet,
    /// The application set `SO_SNDBUF`.
    SendBufferSet,
    /// The ends did not agree on window scaling.
    NoScaling,
    /// The peer closed its window.
    ZeroWindow,
    /// The application here reads slowly, or not at all.
    Unread,
    /// Segments are small.
    SmallMss,
    /// A large part of what is sent is retransmitted.
    Retransmissions,
    /// The application keeps a window of its own.
    OwnWindow,
    /// Connections wait to be accepted, and no more may wait.
    ListenQueue,
}

/// Segments of payload below this part of what the path's MTU (of Ethernet at the most) has room for are small, as the judge
/// has it.
const SMALL: f64 = 0.6;
const ETHERNET: u32 = 1_500;
const HEADERS: u32 = 40;
/// So large a part retransmitted is more than congestion control makes of a full queue, and so many segments no chance.
const STORM: f64 = 0.1;
const STORM_LEAST: u64 = 10;
/// A segment that was sent again so often waits for seconds.
const BACKOFFS: u8 = 3;
/// What is in flight is a ceiling's where it is within this part of the most for half of the looks, which are so many, over so long ...
const AT_CEILING: f64 = 0.9;
const CEILING_LOOKS: usize = 8;
const CEILING_SPAN: Micros = Micros::new(400_000);
/// ... while something was in flight for this part of the time, and there was room for more by this part.
const CEILING_BUSY: f64 = 0.9;
const CEILING_ROOM: f64 = 0.8;
/// Fewer segments are a message, not a ceiling.
const CEILING_SEGMENTS: u64 = 4;

/// All that there is to remark.
pub(crate) fn notes(story: &Story, way: Way, ends: &Ends, diagnosis: Option<&Diagnosis>) -> Vec<Note> {
    let limiter = diagnosis.map(|diagnosis| diagnosis.limiter);
    [
        buffer_set(story, ends, limiter.filter(|_| way == Way::In), Way::In),
        buffer_set(story, ends, limiter.filter(|_| way == Way::Out), Way::Out),
        no_scaling(story, ends, limiter),
        zero_window(story, way),
        unread(story, way),
        small_mss(story, ends),
        retransmissions(story),
        own_window(story, way, limiter),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A full queue of connections that wait to be accepted; `setting` bounds it.
pub(crate) fn listen_queue(waiting: u32, most: u32, overflows: Option<u64>, setting: &str) -> Option<Note> {
    // The kernel takes one more than it says (`sk_acceptq_is_full`), and drops what comes then.
    if most == 0 || waiting < most {
        return None;
    }
    let dropped = match overflows {
        Some(0) => ", and none was dropped in this interval".to_owned(),
        Some(count) => format!(", and {count} were dropped in this interval (all listeners together)"),
        None => String::new(),
    };
    Some(Note {
        subject: Subject::ListenQueue,
        is_sure: true,
        is_trouble: true,
        text: format!("{waiting} connections wait to be accepted, {most} may{dropped}"),
        fix: format!(
            "let the application accept faster, or raise {setting} and what it gives to listen(), whichever is smaller"
        ),
    })
}

fn buffer_set(story: &Story, ends: &Ends, limiter: Option<Limiter>, which: Way) -> Option<Note> {
    let (pin, option, size, subject, by) = match which {
        Way::In => {
            (ends.receive, "SO_RCVBUF", story.memory.receive_buffer, Subject::ReceiveBufferSet, Limiter::ReceiveWindow)
        }
        Way::Out => (ends.send, "SO_SNDBUF", story.memory.send_buffer, Subject::SendBufferSet, Limiter::SendBuffer),
    };
    let size = size?;
    let (is_sure, text) = match pin {
        Pin::Set => {
            (true, format!("the application set {option}: {size} as the kernel counts, and automatic sizing is off"))
        }
        Pin::Likely => (
            false,
            format!(
                "the application likely set {option}: {size} as the kernel counts is no size that automatic sizing makes"
            ),
        ),
        Pin::Left | Pin::Unknown => return None,
    };
    let is_trouble = limiter == Some(by);
    let fix = if is_trouble {
        format!("leave {option} out of the application, or set it to what the path needs (`fullpipe plan`)")
    } else {
        "nothing to set while it does not limit".to_owned()
    };
    Some(Note { subject, is_sure, is_trouble, text, fix })
}

fn no_scaling(story: &Story, ends: &Ends, limiter: Option<Limiter>) -> Option<Note> {
    if story.info.scaling != Some(false) {
        return None;
    }
    let (who, fix) = match ends.limits.scaling {
        Some(true) => {
            ("the peer left it out, or something on the path removed it", "switch window scaling on at the peer")
        }
        Some(false) => ("it is switched off here", "set net.ipv4.tcp_window_scaling to 1 here"),
        None => ("which end left it out is not visible", "switch window scaling on at both ends"),
    };
    Some(Note {
        subject: Subject::NoScaling,
        // The setting may have been another when the connection was opened.
        is_sure: false,
        is_trouble: limiter == Some(Limiter::ReceiveWindow),
        text: format!("no window scaling, so that no window exceeds 65,535 B: {who}"),
        fix: format!("{fix}; it applies to new connections"),
    })
}

fn zero_window(story: &Story, way: Way) -> Option<Note> {
    let closed = |window: Option<Bytes>| window == Some(Bytes::ZERO);
    let points = story.points.iter().filter(|point| closed(point.sender.offered_window)).count();
    (way == Way::Out && points > 0 && story.points.len() > 1).then(|| Note {
        subject: Subject::ZeroWindow,
        is_sure: true,
        is_trouble: true,
        text: format!("the peer's window was closed in {points} of {} looks: it reads too slowly", story.points.len()),
        fix: "nothing to set: the application on the peer must read faster".to_owned(),
    })
}

fn unread(story: &Story, way: Way) -> Option<Note> {
    let is_full = |unread: Bytes, window: Bytes| unread > Bytes::ZERO && unread >= window;
    let behind = story.points.iter().filter(|point| {
        point.receiver.unread.zip(point.receiver.offered_window).is_some_and(|(unread, window)| is_full(unread, window))
    });
    let (behind, most) = (behind.count(), story.points.iter().filter_map(|point| point.receiver.unread).max()?);
    (way == Way::In && story.points.len() > 1 && 2 * behind >= story.points.len()).then(|| Note {
        subject: Subject::Unread,
        is_sure: true,
        is_trouble: true,
        text: format!(
            "up to {most} lay unread, more than the window still offered in {behind} of {} looks: the application here \
             reads too slowly",
            story.points.len()
        ),
        fix: "nothing to set: the application here must read faster".to_owned(),
    })
}

fn small_mss(story: &Story, ends: &Ends) -> Option<Note> {
    let (mss, mtu) = story.info.mss.filter(|&mss| mss > 0).zip(story.info.path_mtu)?;
    let room = mtu.min(ETHERNET).saturating_sub(HEADERS);
    (!ends.peer.ip().is_loopback() && f64::from(mss) < SMALL * f64::from(room)).then(|| Note {
        subject: Subject::SmallMss,
        is_sure: true,
        is_trouble: true,
        text: format!("segments carry {mss} B, and the path's MTU of {mtu} B has room for {room} B"),
        fix:
            "find who announces so small a segment: a clamp on the path, the peer's MTU, TCP_MAXSEG or a route's advmss"
                .to_owned(),
    })
}

fn retransmissions(story: &Story) -> Option<Note> {
    let (first, last) = story.points.front().zip(story.points.back())?;
    let grown = |count: fn(&crate::story::Point) -> Option<u64>| Some(count(last)?.saturating_sub(count(first)?));
    let again = grown(|point| point.sender.retransmitted.map(Bytes::get)).unwrap_or(0);
    let segments = grown(|point| point.sender.retransmits).unwrap_or(0);
    let sent = grown(|point| point.sent).unwrap_or(0);
    let text = if story.backoffs >= BACKOFFS {
        format!("the same segment was sent {} times without an answer", u32::from(story.backoffs) + 1)
    } else if segments >= STORM_LEAST && again as f64 >= STORM * sent as f64 {
        let part = 100.0 * again as f64 / sent.max(1) as f64;
        format!("{segments} segments were retransmitted, {part:.0} % of what was sent")
    } else {
        return None;
    };
    Some(Note {
        subject: Subject::Retransmissions,
        is_sure: true,
        is_trouble: true,
        text,
        fix: "nothing to set: find where the path loses packets".to_owned(),
    })
}

/// What is in flight meets the same ceiling again and again, and neither window, congestion control nor buffer makes it.
fn own_window(story: &Story, way: Way, limiter: Option<Limiter>) -> Option<Note> {
    if way != Way::Out || limiter != Some(Limiter::Application) {
        return None;
    }
    let in_flight = || story.points.iter().filter_map(|point| point.sender.in_flight).map(Bytes::get);
    let most = in_flight().max()?;
    let at = in_flight().filter(|&bytes| bytes as f64 >= AT_CEILING * most as f64).count();
    let (first, last) = story.points.front().zip(story.points.back())?;
    let busy = last.sender.busy_us?.saturating_sub(first.sender.busy_us?).get() as f64;
    let room = [story.info.cwnd, story.info.send_window].into_iter().flatten().map(Bytes::get).min()?;
    let is_ceiling = story.points.len() >= CEILING_LOOKS
        && story.span() >= CEILING_SPAN
        && 2 * at >= story.points.len()
        && busy >= CEILING_BUSY * story.span().get() as f64
        && most >= CEILING_SEGMENTS * u64::from(story.info.mss?)
        && most as f64 <= CEILING_ROOM * room as f64;
    is_ceiling.then(|| Note {
        subject: Subject::OwnWindow,
        is_sure: false,
        is_trouble: true,
        text: format!(
            "never more than {} in flight, while windows and buffers had room for more: a window of the applications' own \
             (SSH, HTTP/2, a fixed number of requests)",
            Bytes::new(most)
        ),
        fix: "nothing to set in TCP: use several connections, or a program with a larger window".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_with_room_is_no_trouble_and_a_full_one_is() {
        assert_eq!(listen_queue(0, 128, None, "s"), None);
        assert_eq!(listen_queue(127, 128, Some(0), "s"), None);
        let note = listen_queue(129, 128, Some(7), "net.core.somaxconn").unwrap();
        assert!(note.is_trouble && note.text.contains("129 connections wait") && note.text.contains("7 were dropped"));
        assert!(note.fix.contains("somaxconn"));
        assert_eq!(listen_queue(5, 0, None, "s"), None, "a socket that is being closed");
    }
}
