//! Segments in several IP fragments (RFC 791, section 3.2; RFC 8200, section 4.5). Only the first one has TCP's header,
//! and only the last one tells how long the segment is. What is *not* here: the payload, of which nothing is kept.

use super::{Datagram, protocol, tcp::Header};
use crate::{
    problem::ProblemKind,
    segment::{Address, Segment, Sink},
    view::{View, Walked},
    walk::Walk,
};

/// How many packets wait for fragments at once: about 25 KB. When one more comes, the oldest waits no longer.
const HELD: usize = 64;

/// How long the others of a packet's fragments are waited for, in nanoseconds. They leave back to back; beyond a second
/// the 16 bits of an IPv4 identification may have come round (RFC 4963).
const WAIT_NS: u64 = 1_000_000_000;

/// Where a fragment belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) id: u32,
    /// In bytes.
    pub(crate) offset: u32,
    pub(crate) has_more: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    from: Address,
    to: Address,
    id: u32,
    outer: u32,
}

/// A packet some of whose fragments were seen.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    name: Name,
    number: u64,
    at_ns: u64,
    /// Payload bytes of all fragments so far.
    seen: u32,
    /// The payload's length, once the last fragment was there.
    whole: Option<u32>,
    first: Option<First>,
}

/// What the first fragment said.
#[derive(Clone, Debug)]
struct First {
    /// Its options lie in `options`.
    segment: Segment<'static>,
    header_len: u32,
    options: [u8; 40],
    options_len: u8,
}

impl Held {
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Gives out the segment with as much of its length as is known; `false` where its header was never seen.
    pub(crate) fn emit<S: Sink>(&self, sink: &mut S) -> bool {
        let Some(first) = &self.first else { return false };
        let length = self.whole.unwrap_or(self.seen);
        let ip_header = first.segment.network.length - first.segment.payload_len - first.header_len;
        let mut segment = Segment { options: &first.options[..usize::from(first.options_len)], ..first.segment };
        segment.number = self.number;
        segment.at_ns = self.at_ns;
        segment.payload_len = length.saturating_sub(first.header_len);
        segment.network.length = ip_header.saturating_add(length);
        sink.segment(&segment);
        true
    }
}

/// The packets that wait, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fragments(Vec<Held>);

impl Fragments {
    pub(crate) fn drain(&mut self) -> Vec<Held> {
        core::mem::take(&mut self.0)
    }

    /// Takes out the oldest one if it has waited for too long, or if there is no room.
    fn overdue(&mut self, now_ns: u64) -> Option<Held> {
        let oldest = self.0.first()?;
        let is_overdue = self.0.len() >= HELD || now_ns.saturating_sub(oldest.at_ns) > WAIT_NS;
        is_overdue.then(|| self.0.remove(0))
    }
}

impl<S: Sink> Walk<'_, S> {
    /// One fragment of a packet that carries `next`.
    #[cold]
    pub(super) fn fragment(&mut self, part: Part, next: u8, view: View<'_>, datagram: &Datagram) -> Walked {
        if next != protocol::TCP {
            // What a tunnel carries tells its own length, so that its first fragment is enough.
            return if part.offset == 0 { self.carried(next, view, datagram) } else { Ok(()) };
        }
        while let Some(held) = self.decoder.fragments.overdue(self.at_ns) {
            self.decoder.problems.note(held.number, ProblemKind::FragmentsMissing);
            self.decoder.totals.segments += u64::from(held.emit(self.sink));
        }
        let first = if part.offset == 0 { Some(self.first(view, datagram)?) } else { None };
        let name = Name { from: datagram.from, to: datagram.to, id: part.id, outer: self.outer };
        let waiting = &mut self.decoder.fragments.0;
        let at = waiting.iter().position(|held| held.name == name).unwrap_or_else(|| {
            waiting.push(Held { name, number: 0, at_ns: 0, seen: 0, whole: None, first: None });
            waiting.len() - 1
        });
        let held = &mut waiting[at];
        (held.number, held.at_ns) = (self.number, self.at_ns);
        held.seen = held.seen.saturating_add(view.len);
        if !part.has_more {
            held.whole = Some(part.offset.saturating_add(view.len));
        }
        if first.is_some() {
            held.first = first;
        }
        // The last fragment to arrive completes it, as Wireshark has it too.
        if held.first.is_some() && held.whole.is_some_and(|whole| held.seen >= whole) {
            let held = waiting.remove(at);
            self.decoder.totals.segments += u64::from(held.emit(self.sink));
        }
        Ok(())
    }

    fn first(&self, view: View<'_>, datagram: &Datagram) -> Result<First, ProblemKind> {
        let segment = self.segment(Header::parse(view)?, view, datagram);
        let mut options = [0; 40];
        options[..segment.options.len()].copy_from_slice(segment.options);
        Ok(First {
            header_len: view.len - segment.payload_len,
            options,
            options_len: segment.options.len() as u8,
            segment: Segment { options: &[], ..segment },
        })
    }
}
