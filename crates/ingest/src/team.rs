//! Connections followed by other threads than the one that reads packets: it sorts segments into parts, and each part's
//! connections are one follower's. What is *not* here: following them; nothing that is found depends on the threads.

use std::{
    num::NonZeroUsize,
    panic::resume_unwind,
    sync::mpsc::{self, Receiver, Sender, SyncSender},
    thread::{self, JoinHandle},
};

use fullpipe_capture::{Batch, Findings, Follower, Keep, PARTS, Segment, Sink, Sorter, TooBig, Tracker};

/// Segments in a batch: 213 kB, of which a second-level cache of 2 MB holds those that wait. Each hand-over may wake a
/// thread: with 512, 2 million packets took 6,800 calls of the kernel, with these 2,000.
const BATCH: usize = 2_048;

/// Batches that wait for a follower: enough for it never to wait for the reader's next one.
const WAITING: usize = 4;

/// Follows the connections of captures with as many threads as it may.
#[derive(Debug)]
pub struct Team(Kind);

#[derive(Debug)]
enum Kind {
    /// The thread that reads.
    Alone(Box<Tracker>),
    Shared(Box<Shared>),
}

#[derive(Debug)]
struct Shared {
    sorter: Sorter,
    crew: Crew,
}

/// Who follows which part.
#[derive(Debug)]
struct Crew {
    workers: Vec<Worker>,
    /// What the reader does itself, where it has one worker: sorting alone would leave it half of the time without work.
    own: Option<(usize, Box<Follower>)>,
    used: Receiver<Batch>,
}

/// A thread that follows the connections of some parts.
#[derive(Debug)]
struct Worker {
    work: SyncSender<Batch>,
    thread: JoinHandle<Vec<(usize, Follower)>>,
}

impl Team {
    /// More threads than this find no work: one reads bytes, one packets, and each part has one.
    pub const MOST_THREADS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1 + PARTS);

    /// `threads` counts the one that reads packets, and from three on also one that reads bytes ahead of it (see
    /// [`crate::Options::beside`]). `seed` must be one that the author of a capture can't foresee.
    pub fn new(seed: u64, keep: Keep, threads: NonZeroUsize) -> Self {
        let followers = match threads.get() {
            few @ 1..=2 => few - 1,
            more => (more - 2).min(PARTS),
        };
        if followers == 0 {
            return Self(Kind::Alone(Box::new(Tracker::new(seed, keep))));
        }
        let mut parts: Vec<_> = (0..PARTS).map(|part| (part, Follower::new(seed, keep))).collect();
        let own = if followers == 1 { parts.pop().map(|(part, follower)| (part, Box::new(follower))) } else { None };
        let (to_reader, used) = mpsc::channel();
        let mut shares: Vec<Vec<_>> = (0..followers).map(|_| Vec::new()).collect();
        for (part, follower) in parts {
            shares[part % followers].push((part, follower));
        }
        let workers = shares.into_iter().map(|share| Worker::start(share, to_reader.clone())).collect();
        Self(Kind::Shared(Box::new(Shared { sorter: Sorter::new(seed, BATCH), crew: Crew { workers, own, used } })))
    }

    /// The stories of all connections.
    pub fn finish(self) -> Findings {
        match self.0 {
            Kind::Alone(tracker) => tracker.finish(),
            Kind::Shared(shared) => shared.finish(),
        }
    }
}

impl Sink for Team {
    #[inline]
    fn segment(&mut self, segment: &Segment<'_>) {
        match &mut self.0 {
            Kind::Alone(tracker) => tracker.segment(segment),
            Kind::Shared(shared) => {
                if let Some(batch) = shared.sorter.segment(segment) {
                    shared.crew.take(batch);
                }
            }
        }
    }

    fn too_big(&mut self, notice: &TooBig) {
        match &mut self.0 {
            Kind::Alone(tracker) => tracker.too_big(notice),
            Kind::Shared(shared) => {
                if let Some(batch) = shared.sorter.too_big(notice) {
                    shared.crew.take(batch);
                }
            }
        }
    }
}

impl Shared {
    /// The last part of the work is telling the stories, which is shared out as well.
    fn finish(mut self) -> Findings {
        for batch in self.sorter.batches() {
            self.crew.take(batch);
        }
        let Crew { workers, own, .. } = self.crew;
        let threads = workers.len() + 1;
        let mut parts: Vec<(usize, Follower)> = workers.into_iter().flat_map(Worker::finish).collect();
        parts.extend(own.map(|(part, follower)| (part, *follower)));
        let mut shares: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
        for (part, follower) in parts {
            shares[part % threads].push((part, follower));
        }
        let tell = |share: Vec<(usize, Follower)>| {
            share.into_iter().map(|(part, follower)| (part, follower.finish())).collect::<Vec<_>>()
        };
        let mut found = thread::scope(|scope| {
            let mine = shares.pop().unwrap_or_default();
            let others: Vec<_> = shares.into_iter().map(|share| scope.spawn(move || tell(share))).collect();
            let mine = tell(mine);
            let joined = others.into_iter().flat_map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            joined.chain(mine).collect::<Vec<_>>()
        });
        found.sort_by_key(|(part, _)| *part);
        Findings::join(found.into_iter().map(|(_, found)| found))
    }
}

impl Crew {
    /// Follows a batch, or gives it to whoever does, and waits while that one has enough to do.
    fn take(&mut self, batch: &mut Batch) {
        if let Some((part, follower)) = &mut self.own
            && *part == batch.part()
        {
            follower.follow(batch);
            batch.clear();
            return;
        }
        let empty = self.used.try_recv().unwrap_or_else(|_| batch.another());
        let worker = &self.workers[batch.part() % self.workers.len()];
        // Nobody there any more: then it panicked, which `finish` passes on.
        drop(worker.work.send(batch.exchange(empty)));
    }
}

impl Worker {
    fn start(mut parts: Vec<(usize, Follower)>, used: Sender<Batch>) -> Self {
        let (work, batches) = mpsc::sync_channel::<Batch>(WAITING);
        let thread = thread::spawn(move || {
            for batch in batches {
                if let Some((_, follower)) = parts.iter_mut().find(|(part, _)| *part == batch.part()) {
                    follower.follow(&batch);
                }
                // The reader may be done already.
                drop(used.send(batch));
            }
            parts
        });
        Self { work, thread }
    }

    fn finish(self) -> Vec<(usize, Follower)> {
        drop(self.work);
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

#[cfg(test)]
mod tests;
