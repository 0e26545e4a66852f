//! Every connection that there is, a short story of the busy ones, and what the judge says of these.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
    net::{IpAddr, SocketAddr},
};

use fullpipe_diagnose::{CommonEnd, Diagnosis, Limiter, Passage, Run, diagnose_with_runs, shared_bottleneck};
use fullpipe_socket::Fixed;
use fullpipe_units::{Bytes, Micros, Rate};

use crate::{
    account::{self, Account, Seconds},
    filter::Filter,
    frame::{Row, Sort, urgency},
    limits::{Limits, Pin},
    look::Look,
    meter::Slice,
    notes::{Note, notes},
    owner::Owner,
    story::{Ends, Story, Way},
    wire::SocketId,
};

/// Stories take memory and judging takes time: this many connections have one, the busiest.
pub(crate) const MOST_STORIES: usize = 512;
/// This many, the busiest, are looked at between the looks at all.
const MOST_QUICK: usize = 64;
/// Of more connections than this, those that have long been quiet are looked at less often.
const MANY: usize = 10_000;
/// A connection's buffers are asked about again after so many looks: an application may set them late.
const ASK_AGAIN: u64 = 30;

/// Whose socket it is and what its application did to it: asked of the system by who may.
pub(crate) trait Owners {
    /// Looks for the owners of the sockets with these handles ([`Look::handle`]).
    fn find(&mut self, handles: &mut dyn Iterator<Item = u64>);
    /// An owner that was found.
    fn owner(&self, handle: u64) -> Option<&Owner>;
    /// Which buffers the application set, where that takes a question of its own: not where the table of connections has it
    /// ([`Look::fixed`]), or nothing tells.
    fn fixed(&mut self, _handle: u64) -> Option<Fixed> {
        None
    }
}

/// A listening socket whose queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FullListener {
    pub(crate) local: SocketAddr,
    pub(crate) handle: u64,
    pub(crate) waiting: u32,
    pub(crate) most: u32,
}

#[derive(Debug)]
struct Entry {
    id: SocketId,
    handle: u64,
    uid: Option<u32>,
    first_at: Micros,
    /// When it was looked at last, and before that.
    looked_at: Micros,
    since: Micros,
    /// When it last did something; `None` where it never did.
    last_active: Option<Micros>,
    round: u64,
    /// `None` where the system counts no bytes.
    moved: Option<[u64; 2]>,
    /// What moved since the look at all before.
    delta: Option<[u64; 2]>,
    segments: [u64; 2],
    /// Segments since the look at all before.
    segments_delta: [u64; 2],
    unread: u32,
    waiting: u32,
    rtt_us: Option<u32>,
    story: Option<Box<Story>>,
    fixed: Option<Fixed>,
    /// When the application's buffers were asked about, as a round.
    asked: Option<u64>,
    judged: Option<Box<Judged>>,
    account: Account,
}

/// Connections by their own address and the peer's.
type ByEnds = HashMap<(SocketAddr, SocketAddr), u64>;

/// What the judge says of one connection by itself.
#[derive(Debug)]
struct Found {
    cookie: u64,
    way: Way,
    ends: Ends,
    start: Micros,
    diagnosis: Diagnosis,
    runs: Vec<Run>,
    /// What it shows of a bottleneck that others share.
    passage: Option<Passage>,
}

/// Looks at those together that send to the same address.
fn look_together(all: &mut [Found]) {
    let mut groups: HashMap<IpAddr, Vec<usize>> = HashMap::new();
    for (place, found) in all.iter().enumerate().filter(|(_, found)| found.passage.is_some()) {
        groups.entry(found.ends.peer.ip()).or_default().push(place);
    }
    for (peer, group) in groups.into_iter().filter(|(_, group)| group.len() > 1) {
        let passage = |&place: &usize| Some((all[place].passage.as_ref()?, &all[place].diagnosis));
        let Some(bottleneck) = shared_bottleneck(&group.iter().filter_map(passage).collect::<Vec<_>>()) else {
            continue;
        };
        let peer = peer.to_string();
        for place in group {
            let Found { diagnosis, runs, passage, .. } = &mut all[place];
            if let Some(passage) = passage {
                bottleneck.explain(passage, diagnosis, runs, CommonEnd::Receiver, &peer);
            }
        }
    }
}

#[derive(Debug)]
struct Judged {
    diagnosis: Diagnosis,
    now: Option<Limiter>,
    /// What held it when, since `start`; nothing where there was too little to say so.
    runs: Vec<Run>,
    start: Micros,
    /// Seconds of the last interval.
    lately: Seconds,
    notes: Vec<Note>,
}

/// All connections.
#[derive(Debug)]
pub(crate) struct Table {
    entries: HashMap<u64, Entry, BuildHasherDefault<CookieHasher>>,
    /// Those that were active within the past that a story holds, or have a story.
    lively: Vec<u64>,
    pub(crate) full: Vec<FullListener>,
    pub(crate) limits: Limits,
    round: u64,
    at: Micros,
    before: Micros,
    /// When all were looked at last, and before that; `None` before the second time.
    whole: Micros,
    whole_before: Option<Micros>,
    /// How much of the past a story holds.
    span: Micros,
    pub(crate) active: usize,
}

impl Table {
    pub(crate) fn new(span: Micros, limits: Limits) -> Self {
        Self {
            entries: HashMap::default(),
            lively: Vec::new(),
            full: Vec::new(),
            limits,
            round: 0,
            at: Micros::ZERO,
            before: Micros::ZERO,
            whole: Micros::ZERO,
            whole_before: None,
            span,
            active: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Begins a look at all.
    pub(crate) fn begin(&mut self, at: Micros) {
        self.whole_before = (self.round > 0).then_some(self.whole);
        self.whole = at;
        self.round += 1;
        (self.before, self.at) = (self.at, at);
        self.full.clear();
    }

    /// Whether most are many and quiet, so that a look at the lively ones alone is worth it.
    pub(crate) fn is_large(&self) -> bool {
        self.entries.len() > MANY && self.lively.len() < self.entries.len() / 4
    }

    /// Begins a look at the lively ones alone, and gives those. All others stay as they are, and moved nothing.
    pub(crate) fn begin_lively(&mut self, at: Micros) -> Vec<SocketId> {
        self.round += 1;
        (self.before, self.at) = (self.at, at);
        self.lively.iter().filter_map(|cookie| Some(self.entries.get(cookie)?.id)).collect()
    }

    /// Ends it.
    pub(crate) fn end_lively(&mut self) -> Vec<SocketId> {
        self.end_with(self.lively.clone())
    }

    /// One that is gone.
    pub(crate) fn forget(&mut self, cookie: u64) {
        self.entries.remove(&cookie);
    }

    /// Takes one socket of a look at all.
    pub(crate) fn take(&mut self, look: &dyn Look, at: Micros) {
        if let Some([waiting, most]) = look.queue() {
            if most > 0 && waiting >= most {
                self.full.push(FullListener { local: look.id().local, handle: look.handle(), waiting, most });
            }
            return;
        }
        let (moved, segments) = (look.moved(), look.segments());
        // What was not there when all were looked at before has moved everything since then.
        let (since, known) =
            self.whole_before.map_or((at, (moved, segments)), |before| (before, (moved.map(|_| [0; 2]), [0; 2])));
        let entry = self.entries.entry(look.id().cookie).or_insert_with(|| Entry {
            id: look.id(),
            handle: look.handle(),
            uid: look.uid(),
            first_at: at,
            looked_at: since,
            since,
            last_active: None,
            round: 0,
            moved: known.0,
            delta: None,
            segments: known.1,
            segments_delta: [0; 2],
            unread: 0,
            waiting: 0,
            rtt_us: None,
            story: None,
            fixed: None,
            asked: None,
            judged: None,
            account: Account::default(),
        });
        let grown = |now: [u64; 2], before: [u64; 2]| [0, 1].map(|at| now[at].saturating_sub(before[at]));
        entry.delta = moved.zip(entry.moved).map(|(now, before)| grown(now, before));
        entry.segments_delta = grown(segments, entry.segments);
        (entry.since, entry.looked_at) = (entry.looked_at, at);
        (entry.moved, entry.segments, entry.round) = (moved, segments, self.round);
        (entry.unread, entry.waiting, entry.handle) = (look.unread(), look.waiting(), look.handle());
        entry.rtt_us = look.rtt_us();
        entry.fixed = look.fixed().or(entry.fixed);
        // At the first look nothing has moved yet, and some systems count no bytes: how long ago it did tells as much. Where that is
        // not reported either, it may have been just now.
        let is_first = entry.first_at == at;
        let lately = match look.quiet_ms().into_iter().min().unwrap_or(u32::MAX) {
            u32::MAX => is_first && moved.is_some(),
            quiet => (is_first || moved.is_none()) && quiet < 1_000,
        };
        if entry.delta.is_some_and(|delta| delta != [0; 2]) || look.waiting() > 0 || look.unread() > 0 || lately {
            entry.last_active = Some(at);
        }
        if let Some(story) = &mut entry.story {
            story.add(look, at, self.span);
        }
    }

    /// Takes a look at one socket between two looks at all.
    pub(crate) fn take_quick(&mut self, look: &dyn Look, at: Micros) {
        let story = self.entries.get_mut(&look.id().cookie).and_then(|entry| entry.story.as_mut());
        if let Some(story) = story {
            story.add(look, at, self.span);
        }
    }

    /// What was known of a connection that has ended: its socket's handle, and what it had moved, in bytes and in segments. One
    /// that was there at no look has moved all of it since.
    pub(crate) fn known(&self, cookie: Option<u64>) -> (Option<u64>, [[u64; 2]; 2]) {
        let entry = cookie.and_then(|cookie| self.entries.get(&cookie));
        entry.map_or((None, [[0; 2]; 2]), |entry| {
            (Some(entry.handle), [entry.moved.unwrap_or_default(), entry.segments])
        })
    }

    /// Ends a look at all: forgets what is gone, and gives the busiest a story. Returns those to look at in between.
    pub(crate) fn end(&mut self) -> Vec<SocketId> {
        let (round, at, span) = (self.round, self.at, self.span);
        let mut lively = Vec::new();
        self.entries.retain(|cookie, entry| {
            let is_there = entry.round == round;
            if is_there && (entry.story.is_some() || !is_quiet(entry, at, span)) {
                lively.push(*cookie);
            }
            is_there
        });
        self.end_with(lively)
    }

    fn end_with(&mut self, lively: Vec<u64>) -> Vec<SocketId> {
        let (at, span) = (self.at, self.span);
        let is_active = |entry: &Entry| entry.last_active == Some(at);
        let load = |entry: &Entry| entry.delta.iter().flatten().sum::<u64>().saturating_add(entry.waiting.into());
        let known = lively.iter().filter_map(|cookie| Some((*cookie, self.entries.get(cookie)?)));
        let mut active: Vec<(Reverse<u64>, u64)> =
            known.filter(|(_, entry)| is_active(entry)).map(|(cookie, entry)| (Reverse(load(entry)), cookie)).collect();
        self.active = active.len();
        active.sort_unstable();
        active.truncate(MOST_STORIES);
        let busiest: HashSet<u64> = active.iter().map(|(_, cookie)| *cookie).collect();
        let others = || lively.iter().filter(|cookie| !busiest.contains(cookie));
        let has_story = |cookie: &&u64| self.entries.get(*cookie).is_some_and(|entry| entry.story.is_some());
        // Room for the busiest goes before the past of those that are less so.
        let is_full = others().filter(has_story).count() + busiest.len() > MOST_STORIES;
        for cookie in others() {
            if let Some(entry) = self.entries.get_mut(cookie).filter(|entry| is_full || is_quiet(entry, at, span)) {
                (entry.story, entry.judged) = (None, None);
                entry.account.over();
            }
        }
        let mut quick = Vec::new();
        for (_, cookie) in active {
            let Some(entry) = self.entries.get_mut(&cookie) else { continue };
            entry.story.get_or_insert_default();
            if quick.len() < MOST_QUICK {
                quick.push(entry.id);
            }
        }
        let is_lively = |entry: &Entry| entry.story.is_some() || !is_quiet(entry, at, span);
        self.lively = lively;
        self.lively.retain(|cookie| self.entries.get(cookie).is_some_and(is_lively));
        quick
    }

    /// Has the judge look at every story.
    pub(crate) fn judge(&mut self, owners: &mut dyn Owners) {
        let has_story = |cookie: &&u64| self.entries.get(*cookie).is_some_and(|entry| entry.story.is_some());
        let with_story: Vec<u64> = self.lively.iter().filter(has_story).copied().collect();
        owners.find(&mut with_story.iter().filter_map(|cookie| Some(self.entries.get(cookie)?.handle)));
        let round = self.round;
        for cookie in &with_story {
            let Some(entry) = self.entries.get_mut(cookie) else { continue };
            if entry.asked.is_none_or(|asked| round >= asked + ASK_AGAIN) {
                let fixed = owners.fixed(entry.handle);
                entry.fixed = fixed.or(entry.fixed);
                // An owner that was not found yet may be found at the next look.
                entry.asked = fixed.map(|_| round);
            }
        }
        let by_ends: ByEnds = with_story
            .iter()
            .filter_map(|cookie| Some((self.entries.get(cookie)?, *cookie)))
            .map(|(entry, cookie)| ((entry.id.local, entry.id.peer), cookie))
            .collect();
        let peer = |cookie: &u64| self.entries.get(cookie).map(|entry| entry.id.peer.ip());
        let mut company: HashMap<IpAddr, u32> = HashMap::new();
        with_story.iter().filter_map(peer).for_each(|peer| *company.entry(peer).or_default() += 1);
        let has_company = |cookie| peer(cookie).is_some_and(|peer| company.get(&peer).is_some_and(|&count| count > 1));
        let found = with_story.iter().filter_map(|cookie| self.found(*cookie, &by_ends, has_company(cookie)));
        let mut found: Vec<Found> = found.collect();
        look_together(&mut found);
        let mut found = found.into_iter().peekable();
        for cookie in &with_story {
            let judged = found.next_if(|found| found.cookie == *cookie).and_then(|found| self.judged(found));
            let Some(entry) = self.entries.get_mut(cookie) else { continue };
            // Where too little is left to judge, what was said of it before holds.
            if let Some(judged) = judged.as_ref().filter(|judged| !judged.runs.is_empty()) {
                entry.account.judged(judged.start, &judged.runs);
            }
            entry.judged = judged.map(Box::new);
        }
    }

    /// What the judge says of one connection by itself; `has_company` where there are others to its peer.
    fn found(&self, cookie: u64, by_ends: &ByEnds, has_company: bool) -> Option<Found> {
        let entry = self.entries.get(&cookie)?;
        let story = entry.story.as_deref()?;
        let far = by_ends.get(&(entry.id.peer, entry.id.local)).and_then(|far| self.entries.get(far));
        let far = far.and_then(|far| Some((far, far.story.as_deref()?)));
        let (way, ends) = (story.way()?, self.ends(entry, story, far));
        let transfer = story.transfer(way, &ends, far.map(|(_, story)| story));
        let (diagnosis, runs) = diagnose_with_runs(&transfer);
        let start = story.points.front()?.at;
        let passage = if way == Way::Out && has_company { Passage::new(&transfer, start.get()) } else { None };
        let runs = if diagnosis.limiter == Limiter::InsufficientEvidence { Vec::new() } else { runs };
        Some(Found { cookie, way, ends, start, diagnosis, runs, passage })
    }

    /// The verdict, and the seconds of the last interval by limiter.
    fn judged(&self, found: Found) -> Option<Judged> {
        let Found { cookie, way, ends, start, diagnosis, runs, .. } = found;
        let story = self.entries.get(&cookie)?.story.as_deref()?;
        let mut lately = Seconds::new();
        account::add(&mut lately, &runs, &(self.before.saturating_sub(start).get()..u64::MAX));
        let now = lately.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(limiter, _)| *limiter);
        let notes = notes(story, way, &ends, Some(&diagnosis));
        Some(Judged { diagnosis, now, runs, start, lately, notes })
    }

    fn ends(&self, entry: &Entry, story: &Story, far: Option<(&Entry, &Story)>) -> Ends {
        let limits = self.limits;
        Ends {
            peer: entry.id.peer,
            send: Pin::of_send(entry.fixed, &story.memory, &story.info, &limits),
            receive: Pin::of_receive(entry.fixed, &story.memory, &limits),
            far_receive: far
                .map_or(Pin::Unknown, |(entry, story)| Pin::of_receive(entry.fixed, &story.memory, &limits)),
            limits,
        }
    }

    /// The first `limit` of the connections that pass, and how many do.
    pub(crate) fn rows(&self, owners: &mut dyn Owners, filter: &Filter, sort: Sort, limit: usize) -> (Vec<Row>, usize) {
        let mut passing: Vec<&Entry> = self.entries.values().filter(|entry| filter.passes_address(&entry.id)).collect();
        if filter.needs_owner() || sort == Sort::Process {
            owners.find(&mut passing.iter().map(|entry| entry.handle));
            passing.retain(|entry| filter.passes(&entry.id, owners.owner(entry.handle)));
        }
        let matching = passing.len();
        // All of them in order would take longer than all the rest: only the first ones are.
        if let Some(last) = limit.checked_sub(1).filter(|&last| last < passing.len() && sort != Sort::Process) {
            let mut ranked: Vec<_> = passing.iter().map(|entry| (self.rank(entry, sort), entry.id.cookie)).collect();
            ranked.select_nth_unstable(last);
            ranked.truncate(limit);
            passing = ranked.iter().filter_map(|(_, cookie)| self.entries.get(cookie)).collect();
        }
        passing.sort_by_cached_key(|entry| self.key(entry, sort, owners));
        passing.truncate(limit);
        owners.find(&mut passing.iter().map(|entry| entry.handle));
        (passing.into_iter().map(|entry| self.row(entry, owners)).collect(), matching)
    }

    /// The smaller, the further up; as [`Sort::apply`] has it, and the same each time.
    fn key(&self, entry: &Entry, sort: Sort, owners: &dyn Owners) -> (u8, String, Reverse<u64>, SocketId) {
        let owner = owners.owner(entry.handle).filter(|_| sort == Sort::Process);
        let name = owner.map_or_else(String::new, |owner| owner.process.clone());
        let (first, then) = self.rank(entry, sort);
        (first + u8::from(sort == Sort::Process && owner.is_none()), name, then, entry.id)
    }

    /// What of the key takes no names.
    fn rank(&self, entry: &Entry, sort: Sort) -> (u8, Reverse<u64>) {
        let load = self.delta(entry).iter().flatten().sum::<u64>();
        let (first, then) = match sort {
            Sort::Worst => {
                let judged = entry.judged.as_deref();
                let limiter = judged.map(|judged| judged.diagnosis.limiter);
                let is_troubled = judged.is_some_and(|judged| judged.notes.iter().any(|note| note.is_trouble));
                (urgency(limiter, is_troubled), load.max(entry.waiting.into()))
            }
            Sort::Rate | Sort::Process => (0, load),
            Sort::Rtt => (0, entry.rtt_us.unwrap_or(0).into()),
            Sort::Retransmissions => (0, self.retransmissions(entry).unwrap_or(0)),
            Sort::Age => (0, u64::MAX - entry.first_at.get()),
        };
        (first, Reverse(then))
    }

    /// What moved at this look; nothing of one that was left out.
    fn delta(&self, entry: &Entry) -> Option<[u64; 2]> {
        if entry.round == self.round { entry.delta } else { entry.delta.map(|_| [0; 2]) }
    }

    /// Segments retransmitted since the look at all before.
    fn retransmissions(&self, entry: &Entry) -> Option<u64> {
        let points = &entry.story.as_deref()?.points;
        let first = points.iter().find(|point| point.at >= self.before)?.sender.retransmits?;
        Some(points.back()?.sender.retransmits?.saturating_sub(first))
    }

    fn row(&self, entry: &Entry, owners: &dyn Owners) -> Row {
        let (time, delta) = (entry.looked_at.saturating_sub(entry.since), self.delta(entry));
        let rate = |way: usize| Some(Rate::from_bytes(Bytes::new(delta?[way]), time).unwrap_or_default());
        let story = entry.story.as_deref().filter(|story| !story.points.is_empty());
        let info = story.map(|story| &story.info);
        let judged = entry.judged.as_deref();
        let last = story.and_then(|story| story.points.back());
        Row {
            local: entry.id.local,
            peer: entry.id.peer,
            owner: owners.owner(entry.handle).cloned(),
            uid: entry.uid,
            seen_s: self.at.saturating_sub(entry.first_at).get() as f64 / 1e6,
            // The first look of all is the time zero.
            is_older: entry.first_at == Micros::ZERO,
            sent_bps: rate(0),
            received_bps: rate(1),
            rtt_us: entry.rtt_us.map(|us| Micros::new(us.into())),
            min_rtt_us: info.and_then(|info| info.min_rtt),
            peer_window: info.and_then(|info| info.send_window),
            own_window: info.and_then(|info| info.receive_window),
            cwnd: info.and_then(|info| info.cwnd),
            in_flight: last.and_then(|point| point.sender.in_flight),
            unread: Bytes::new(entry.unread.into()),
            waiting: Bytes::new(entry.waiting.into()),
            send_buffer: story.and_then(|story| story.memory.send_buffer),
            receive_buffer: story.and_then(|story| story.memory.receive_buffer),
            mss: info.and_then(|info| info.mss),
            congestion_control: story.and_then(|story| story.congestion.clone()),
            retransmissions: self.retransmissions(entry),
            now: judged.and_then(|judged| judged.now),
            seconds: entry.account.seconds(),
            diagnosis: judged.map(|judged| judged.diagnosis.clone()),
            notes: judged.map(|judged| judged.notes.clone()).unwrap_or_default(),
        }
    }

    /// What the last interval added to each connection's figures.
    pub(crate) fn slices<'a>(&'a self, owners: &'a dyn Owners) -> impl Iterator<Item = Slice<'a>> {
        self.entries.values().map(|entry| Slice {
            peer: entry.id.peer.ip(),
            owner: owners.owner(entry.handle),
            moved: self.delta(entry).unwrap_or_default(),
            segments: if entry.round == self.round { entry.segments_delta } else { [0; 2] },
            rtt: entry.rtt_us.filter(|_| entry.last_active == Some(self.at)).map(|us| Micros::new(us.into())),
            seconds: entry.judged.as_deref().map(|judged| &judged.lately),
            fixed: entry.fixed.unwrap_or_default(),
        })
    }

    /// The handles of all that are there.
    pub(crate) fn handles(&self) -> HashSet<u64> {
        self.entries.values().map(|entry| entry.handle).chain(self.full.iter().map(|full| full.handle)).collect()
    }
}

/// Whether it has moved nothing in the past that a story holds.
fn is_quiet(entry: &Entry, at: Micros, span: Micros) -> bool {
    entry.last_active.is_none_or(|active| active.get().saturating_add(span.get()) < at.get())
}

/// The kernel counts cookies: nobody chooses them, so that spreading them out is enough.
#[derive(Debug, Default)]
struct CookieHasher(u64);

impl Hasher for CookieHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        // Of the golden ratio; the table uses the highest and the lowest bits.
        let spread = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ (spread >> 32);
    }
}

#[cfg(test)]
mod tests;
