//! What happens while the loop runs, for whoever shows progress.

use fullpipe_knobs::{Address, Plan};
use fullpipe_units::{Micros, Rate};

use crate::outcome::{Direction, DirectionProof, Restored, ScenarioFacts};

/// Something that happened. Borrowed: an observer copies what it keeps.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The emulated path stands.
    PathMade(&'a ScenarioFacts),
    /// A phase begins; `expected` is about how long it will take.
    Phase {
        /// What is being done, as a short sentence: `measuring a->b`.
        what: &'a str,
        /// About how long it will take, where that is known.
        expected: Option<Micros>,
    },
    /// A measurement goes on.
    Tick {
        /// Since it began.
        elapsed: Micros,
        /// The payload rate of the last interval.
        rate: Rate,
        /// The sender's smoothed round-trip time.
        rtt: Option<Micros>,
    },
    /// A direction was measured and judged, before any change.
    Judged(&'a Direction),
    /// The plan stands.
    Planned(&'a Plan),
    /// One change is in force and was read back.
    Applied {
        /// The host.
        host: &'a str,
        /// The setting.
        knob: &'a Address,
        /// What it was.
        from: Option<&'a str>,
        /// What it reads now.
        to: Option<&'a str>,
    },
    /// One pair of the proof was measured.
    Pair {
        /// The direction.
        direction: &'a str,
        /// Counted from 1.
        number: u32,
        /// Without the changes.
        before: Rate,
        /// With them.
        after: Rate,
    },
    /// A direction's proof is complete.
    Proved(&'a DirectionProof),
    /// Changes were undone.
    Undone {
        /// The host.
        host: &'a str,
        /// How many settings.
        count: usize,
    },
    /// A host was compared with its state at the start.
    Compared(&'a Restored),
    /// Anything else that the user should know at once.
    Note(&'a str),
}

/// Whoever wants to know.
pub trait Observer: Send {
    /// Called in the thread that runs the loop; must not block for long.
    fn on(&mut self, event: Event<'_>);
}

impl<F: FnMut(Event<'_>) + Send> Observer for F {
    fn on(&mut self, event: Event<'_>) {
        self(event);
    }
}
