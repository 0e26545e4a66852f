//! The loops that send and receive by whatever mechanism the pilot says.

use std::{
    io::{self, IoSlice, Write},
    num::NonZeroU64,
    sync::{Arc, atomic::Ordering},
    thread,
    time::Duration,
};

use fullpipe_probe::is_pause;

use super::{Mechanism, Pilot};
use crate::{
    lane::{self, Manner, Run, Shared},
    sys::{
        ring::Ring,
        sockopt,
        splice::{Pages, Splicer},
    },
};

/// What one write of several messages holds together: a large segment (GSO), so that each leaves full.
const GATHERED: usize = 64 << 10;

/// So many messages at the most.
const MOST_GATHERED: usize = 64;

/// A drain looks again after between so long ...
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);
/// ... and so long, which stays below the round trip that counts as harm.
const LONGEST_SLEEP: Duration = Duration::from_micros(400);

/// What a sleep shall let arrive: more would fall out of the processor's cache, less would cost too many calls.
const PER_SLEEP: usize = 512 << 10;

/// What the kernel is made to lend a drained connection: it sizes the buffer by what an application reads, and one that sleeps
/// reads too late to be seen.
const ROOM: i32 = 4 << 20;

/// What a message may have to be worth gathering.
pub(super) const GATHERABLE: usize = GATHERED / 2;

/// Fills a connection until a brake is set.
pub(crate) fn send(shared: &Shared, manner: &Manner, run: &Run, pilot: &Pilot) -> io::Result<()> {
    let mut tools = Tools { splicer: None, ring: None };
    let mut last = Mechanism::Write;
    while !run.brakes.senders.load(Ordering::Relaxed) {
        let mechanism = pilot.sending();
        if let Some(ring) = tools.ring.as_mut().filter(|_| mechanism != last) {
            // What is queued would otherwise be counted for the next one.
            shared.add(ring.settle()?);
        }
        last = mechanism;
        shared.begin(run.start);
        let block = manner.block;
        let sent = match mechanism {
            Mechanism::Gather => gather(shared, pilot.pages(), block),
            Mechanism::Ring => tools.ring(pilot).and_then(|ring| ring.send(&shared.stream, block)),
            Mechanism::Splice => tools.splicer().and_then(|pipe| pipe.send(&shared.stream, pilot.pages(), block)),
            _ => lane::write_repeating(&shared.stream, &run.payload, block),
        };
        match sent {
            Ok(count) => {
                shared.add(count);
                if mechanism == Mechanism::Write && count < block {
                    lane::wait_for_room(&shared.stream, run)?;
                }
            }
            Err(error) if is_pause(&error) => lane::wait_for_room(&shared.stream, run)?,
            Err(error) if is_of_mechanism(&error) && mechanism != Mechanism::Write => pilot.refuse(mechanism, &error),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Empties a connection until a brake is set or the peer closes it.
pub(crate) fn receive(shared: &Shared, run: &Run, pilot: &Pilot) -> io::Result<()> {
    // Without it, sleeps end up to 50 us late, which is as long again as the shortest.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).ok();
    let mut sleep = SHORTEST_SLEEP;
    let mut has_room = false;
    while !run.brakes.receivers.load(Ordering::Relaxed) {
        let drains = pilot.receiving() == Mechanism::Drain;
        if drains && !has_room {
            // The buffer grows with the mark and does not shrink with it.
            drop(sockopt::set_receive_mark(&shared.stream, ROOM));
            drop(sockopt::set_receive_mark(&shared.stream, 1));
            has_room = true;
        }
        let count = if drains {
            sockopt::discard_now(&shared.stream, 1 << 30)
        } else {
            sockopt::discard(&shared.stream, 1 << 20)
        };
        match count {
            Ok(0) => return Ok(()),
            Ok(count) => {
                shared.add(count);
                sleep = next_sleep(sleep, count);
            }
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error),
        }
        if drains {
            thread::sleep(sleep);
        }
    }
    Ok(())
}

/// Towards what lets as much arrive as is best, by at most half at once.
fn next_sleep(sleep: Duration, came: usize) -> Duration {
    let factor = (PER_SLEEP as f64 / came.max(1) as f64).clamp(0.5, 1.5);
    sleep.mul_f64(factor).clamp(SHORTEST_SLEEP, LONGEST_SLEEP)
}

fn gather(shared: &Shared, pages: &Pages, block: usize) -> io::Result<usize> {
    let messages = [IoSlice::new(pages.first(block)); MOST_GATHERED];
    let count = (GATHERED / block.max(1)).clamp(1, MOST_GATHERED);
    (&shared.stream).write_vectored(messages.get(..count).unwrap_or_default())
}

/// The system, or what surrounds this process, does not take this way of sending; the connection is as good as before.
fn is_of_mechanism(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    let kind = error.kind();
    matches!(kind, Kind::InvalidInput | Kind::Unsupported | Kind::PermissionDenied | Kind::OutOfMemory)
        // Too many open files (of the process, or of all), or too many pages in pipes of this user.
        || matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOSYS))
}

/// What a thread needs for its connection, made when it is needed.
struct Tools {
    splicer: Option<Splicer>,
    ring: Option<Ring>,
}

impl Tools {
    fn splicer(&mut self) -> io::Result<&mut Splicer> {
        match &mut self.splicer {
            Some(splicer) => Ok(splicer),
            none => Ok(none.insert(Splicer::new()?)),
        }
    }

    fn ring(&mut self, pilot: &Pilot) -> io::Result<&mut Ring> {
        match &mut self.ring {
            Some(ring) => Ok(ring),
            none => Ok(none.insert(Ring::new(Arc::clone(pilot.pages()))?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nap_grows_until_enough_comes_and_has_its_limits() {
        let mut sleep = SHORTEST_SLEEP;
        for _ in 0..20 {
            // 10 Gbit/s.
            let came = (sleep.as_secs_f64() * 10e9 / 8.0) as usize;
            sleep = next_sleep(sleep, came);
        }
        assert!(sleep > Duration::from_micros(380), "{sleep:?}");
        assert_eq!(next_sleep(LONGEST_SLEEP, 0), LONGEST_SLEEP);
        assert_eq!(next_sleep(SHORTEST_SLEEP, 8 << 20), SHORTEST_SLEEP);
    }
}
