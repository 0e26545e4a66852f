//! One round of the loop over two ends: measure, diagnose, plan, and, where it is asked for, try, prove and keep or undo.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use fullpipe_diagnose::proof::{self, Criteria, Decision, Pair};
use fullpipe_host::RunId;
use fullpipe_knobs::{Change, Plan, Settings};
use fullpipe_measure::{Length, TestSpec};
use fullpipe_units::{Micros, Rate};
use tracing::debug;

use crate::{
    alternate::{State, alternate},
    end::{End, Kept, Stay, Trial},
    error::TuneError,
    event::{Event, Observer},
    judge::{self, Names, PROBE_STREAMS},
    meter::{Lengths, Meter},
    outcome::{Difference, Direction, DirectionProof, HostSettings, KeptRun, Outcome, Restored},
    plans::{self, Group, PlanOptions, Planned, PlannedHost},
};

/// What a round is to do.
#[derive(Clone, Debug)]
pub(crate) struct RoundOptions {
    /// The directions, each measured alone.
    pub(crate) directions: Vec<fullpipe_measure::Direction>,
    /// Parallel connections in the first measurement.
    pub(crate) streams: u32,
    /// Congestion control of the sending sockets; the system's default where absent.
    pub(crate) congestion_control: Option<String>,
    /// How long to measure; by the round-trip time where absent.
    pub(crate) lengths: Option<Lengths>,
    /// How long each measurement of a proof takes; shorter than `lengths` where absent.
    pub(crate) trial_lengths: Option<Lengths>,
    /// What the plan is for.
    pub(crate) plan_options: PlanOptions,
    /// When a change counts as proved.
    pub(crate) criteria: Criteria,
    /// How far to go.
    pub(crate) goal: RoundGoal,
}

/// How far a round goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoundGoal {
    /// Measure, diagnose and plan; change nothing.
    Plan,
    /// Try the plan and keep what helped.
    Keep {
        /// Also beyond a restart.
        persist: bool,
        /// On trial for this long, until somebody confirms it.
        confirm_within: Option<Duration>,
    },
    /// Try the plan, undo all of it, and show that both hosts read as at the start.
    Show,
}

impl RoundOptions {
    fn stay(&self) -> Stay {
        if matches!(self.goal, RoundGoal::Keep { persist: true, .. }) { Stay::BeyondRestart } else { Stay::Running }
    }
}

/// What the measuring application of each end sets on its own sockets, in a scenario that says so.
#[derive(Clone, Debug, Default)]
pub(crate) struct Applications {
    /// Of the client.
    pub(crate) client: fullpipe_path::ApplicationSpec,
    /// Of the server.
    pub(crate) server: fullpipe_path::ApplicationSpec,
}

/// Everything that a round works on.
pub(crate) struct Round<'r> {
    pub(crate) options: &'r RoundOptions,
    pub(crate) meter: &'r mut dyn Meter,
    /// Client and server.
    pub(crate) ends: [&'r mut dyn End; 2],
    /// The address by which each end knows the other.
    pub(crate) peers: [Option<std::net::IpAddr>; 2],
    pub(crate) applications: Applications,
    /// Asked before anything is changed.
    pub(crate) consent: &'r mut dyn FnMut(&Plan) -> bool,
    pub(crate) observer: &'r mut dyn Observer,
    pub(crate) cancel: &'r AtomicBool,
}

/// How often a plan that was sized from a lower bound of the path's rate is refined. Each time a hundred times more can be seen.
const MOST_FURTHER_PLANS: usize = 3;

/// What is in force of one group: a trial per end that it changes.
type InForce = Vec<(usize, Trial)>;

impl Round<'_> {
    /// Goes as far as the goal says. Whatever goes wrong, what is on trial is undone before the error is returned.
    pub(crate) fn run(mut self) -> Result<Outcome, TuneError> {
        let names = Names { client: self.ends[0].name().to_owned(), server: self.ends[1].name().to_owned() };
        self.phase("measuring round trips without load", None);
        let rtt = self.meter.prepare()?.map(|rtt| rtt.min_us);
        let lengths = self.options.lengths.unwrap_or_else(|| Lengths::for_rtt(rtt.unwrap_or(Micros::from_millis(50))));

        let mut outcome = Outcome { ends: Some([names.client.clone(), names.server.clone()]), ..Outcome::default() };
        for &direction in &self.options.directions.clone() {
            let judged = self.measure_and_judge(direction, "", lengths, &names)?;
            self.observer.on(Event::Judged(&judged));
            outcome.before.push(judged);
        }

        let settings = self.settings(&mut outcome)?;
        outcome.hosts = self.named(&settings);
        let mut planned = self.plan(&outcome.before.iter().collect::<Vec<_>>(), &settings);
        let mut further = 0..MOST_FURTHER_PLANS;
        let groups = loop {
            outcome.plan.clone_from(&planned.whole);
            self.observer.on(Event::Planned(&outcome.plan));
            if self.options.goal == RoundGoal::Plan || outcome.plan.changes.is_empty() {
                return Ok(outcome);
            }
            let groups = self.open_to_change(plans::groups(&planned), &mut outcome);
            if groups.is_empty() || !(self.consent)(&outcome.plan) {
                return Ok(outcome);
            }
            let wider = match further.next() {
                Some(_) => self.wider(&planned, &groups, lengths, &names, &mut outcome)?,
                None => None,
            };
            match wider {
                Some(wider) => planned = wider,
                None => break groups,
            }
        };
        self.prove(&groups, lengths, &names, &mut outcome)?;
        if self.options.goal == RoundGoal::Show {
            outcome.restored = self.compare(&settings)?;
        }
        Ok(outcome)
    }

    fn measure_and_judge(
        &mut self,
        direction: fullpipe_measure::Direction,
        when: &str,
        lengths: Lengths,
        names: &Names,
    ) -> Result<Direction, TuneError> {
        let name = names.direction(direction);
        self.phase(format!("measuring {name} {when}").trim_end(), Some(lengths));
        let mut judged = self.measure(direction, self.options.streams, lengths, names)?;
        if self.options.plan_options.rate.is_none() && judged.hides_the_path() {
            self.probe_path(direction, &mut judged, lengths, names)?;
        }
        Ok(judged)
    }

    fn measure(
        &mut self,
        direction: fullpipe_measure::Direction,
        streams: u32,
        lengths: Lengths,
        names: &Names,
    ) -> Result<Direction, TuneError> {
        if self.cancel.load(Relaxed) {
            return Err(TuneError::Interrupted);
        }
        let (sender, receiver) = match direction {
            fullpipe_measure::Direction::Up => (&self.applications.client, &self.applications.server),
            fullpipe_measure::Direction::Down => (&self.applications.server, &self.applications.client),
        };
        let spec = TestSpec {
            direction: direction.into(),
            streams,
            length: Length::Time(lengths.measure),
            omit: lengths.omit,
            congestion_control: sender.congestion.clone().or_else(|| self.options.congestion_control.clone()),
            send_buffer: sender.sndbuf,
            max_pacing_rate: sender.max_pacing_rate,
            receive_buffer: receiver.rcvbuf,
            pings: 0,
            ..TestSpec::default()
        };
        debug!(direction = names.direction(direction), streams, ?lengths, "measuring");
        let measured = self.meter.measure(&spec, self.observer)?;
        let nothing = || TuneError::NothingMeasured { direction: names.direction(direction) };
        judge::directions(measured, names, None).into_iter().next().ok_or_else(nothing)
    }

    /// One stream that is held by a window says nothing of the path: several together do.
    fn probe_path(
        &mut self,
        direction: fullpipe_measure::Direction,
        judged: &mut Direction,
        lengths: Lengths,
        names: &Names,
    ) -> Result<(), TuneError> {
        let short = Lengths { omit: lengths.omit.mul_f64(0.7), measure: lengths.measure / 2 };
        for streams in PROBE_STREAMS {
            self.phase(&format!("finding what the path carries: {} with {streams} streams", judged.name), Some(short));
            let together = self.measure(direction, streams, short, names)?.carried();
            let found = judge::path_rate(judged.compared_rate(), streams, together);
            judged.judge_with(found);
            if !found.lower_bound {
                break;
            }
        }
        Ok(())
    }

    /// The settings of both ends; `None` for one that can't be read, which is said.
    fn settings(&mut self, outcome: &mut Outcome) -> Result<[Option<Settings>; 2], TuneError> {
        let mut read = [None, None];
        for (end, found) in self.ends.iter_mut().zip(&mut read) {
            match end.settings() {
                Ok(settings) => *found = Some(settings),
                Err(TuneError::Remote { host, reason, .. }) => {
                    outcome.notes.push(format!("the settings of {host} could not be read: {reason}"));
                }
                Err(TuneError::Measure(error)) => {
                    outcome.notes.push(format!("the settings of {} could not be read: {error}", end.name()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn named(&self, settings: &[Option<Settings>; 2]) -> Vec<HostSettings> {
        let known = self.ends.iter().zip(settings).filter_map(|(end, settings)| Some((end, settings.clone()?)));
        known.map(|(end, settings)| HostSettings { host: end.name().to_owned(), settings }).collect()
    }

    /// What `planned` becomes once it was tried: where windows or buffers hid what the path carries, it is planned again with it in
    /// force. `None` where nothing is added.
    ///
    /// A hundred connections that a window of 17,520 B holds fill only a part of a long path.
    fn wider(
        &mut self,
        planned: &Planned,
        groups: &[Group],
        lengths: Lengths,
        names: &Names,
        outcome: &mut Outcome,
    ) -> Result<Option<Planned>, TuneError> {
        if !planned.path_may_carry_more || self.options.plan_options.rate.is_some() {
            return Ok(None);
        }
        let tried = plans::directions(groups);
        let changes: Vec<&Change> = groups.iter().flat_map(|group| &group.changes).collect();
        let mut in_force = vec![self.put_in_force(&changes, Stay::Running)?];
        let seen = self.seen_with_changes(&tried, lengths, names);
        // Where even the undo fails, that is the error to tell.
        self.end_trials(&mut in_force)?;
        let (measured, settings) = seen?;
        let mut further = self.plan(&measured.iter().collect::<Vec<_>>(), &settings);
        for (&at, with) in tried.iter().zip(&measured) {
            let before = &mut outcome.before[at];
            let (least, now) = (before.path_rate(), with.path_rate());
            if now.rate_bps <= least.rate_bps {
                continue;
            }
            before.judge_with(now);
            further.whole.notes.push(format!(
                "{}: several connections at once carried {} without the changes; with them the path carried {}, and this plan is \
                 for that",
                before.name, least.rate_bps, now.rate_bps
            ));
        }
        Ok((!further.whole.changes.is_empty()).then(|| planned.gone_on(&tried, further)))
    }

    /// Measures the directions `tried`, and reads the settings, while the plan is in force.
    fn seen_with_changes(
        &mut self,
        tried: &[usize],
        lengths: Lengths,
        names: &Names,
    ) -> Result<(Vec<Direction>, [Option<Settings>; 2]), TuneError> {
        let directions: Vec<fullpipe_measure::Direction> =
            tried.iter().map(|&at| self.options.directions[at]).collect();
        let measured = directions
            .into_iter()
            .map(|direction| self.measure_and_judge(direction, "with the changes", lengths, names));
        let measured = measured.collect::<Result<Vec<_>, _>>()?;
        // What could not be read has been said.
        let settings = self.settings(&mut Outcome::default())?;
        Ok((measured, settings))
    }

    fn plan(&self, before: &[&Direction], settings: &[Option<Settings>; 2]) -> Planned {
        let hosts: Vec<PlannedHost<'_>> = self
            .ends
            .iter()
            .zip(settings)
            .zip(self.peers)
            .filter_map(|((end, settings), peer)| {
                Some(PlannedHost { name: end.name(), settings: settings.as_ref()?, peer })
            })
            .collect();
        let plan_options = &self.options.plan_options;
        let narrowed = |plan: Plan| {
            let known = self.ends.iter().zip(settings).filter_map(|(end, settings)| Some((end, settings.as_ref()?)));
            known.fold(plan, |plan, (end, settings)| end.narrowed(plan, settings))
        };
        let planned = |directions: &[&Direction]| narrowed(plans::for_directions(&hosts, directions, plan_options));
        let of_each: Vec<Plan> = before.iter().map(|direction| planned(&[direction])).collect();
        Planned {
            whole: planned(before),
            path_may_carry_more: before
                .iter()
                .zip(&of_each)
                .any(|(direction, plan)| !plan.changes.is_empty() && direction.path_rate().lower_bound),
            of_each,
        }
    }

    /// Leaves out what lies on an end that nobody here may change, and says so.
    fn open_to_change(&self, groups: Vec<Group>, outcome: &mut Outcome) -> Vec<Group> {
        let closed = |change: &Change| {
            let end = self.ends.iter().find(|end| end.name() == change.host)?;
            Some(format!("{} on {} is not tried: {}", change.knob, change.host, end.closed()?))
        };
        let (open, shut): (Vec<Group>, Vec<Group>) =
            groups.into_iter().partition(|group| group.changes.iter().all(|change| closed(change).is_none()));
        let told: Vec<String> = shut.iter().flat_map(|group| &group.changes).filter_map(closed).collect();
        outcome.notes.retain(|note| !told.contains(note));
        outcome.notes.extend(told);
        open
    }

    /// Measures with and without the plan in alternation, and leaves in force what the goal and the proofs say.
    fn prove(
        &mut self,
        groups: &[Group],
        lengths: Lengths,
        names: &Names,
        outcome: &mut Outcome,
    ) -> Result<(), TuneError> {
        let lengths = self.options.trial_lengths.unwrap_or_else(|| lengths.shortened());
        let tried = plans::directions(groups);
        let directions: Vec<fullpipe_measure::Direction> = tried.iter().map(|&i| self.options.directions[i]).collect();
        let labels: Vec<String> = directions.iter().map(|&direction| names.direction(direction)).collect();

        let mut in_force: Vec<InForce> = Vec::new();
        let mut last = Vec::new();
        let mut first_time = true;
        let criteria = self.options.criteria;
        // Both closures need the round; they are never called at the same time.
        let round = std::cell::RefCell::new(&mut *self);
        let pairs = alternate(
            directions.len(),
            &criteria,
            |state| {
                let mut round = round.borrow_mut();
                let (what, tell) = match state {
                    State::Before => ("without the changes", false),
                    State::After => ("with the changes", std::mem::take(&mut first_time)),
                };
                round.put_in_state(state, groups, &mut in_force, tell)?;
                let mut measured = Vec::new();
                for (&direction, label) in directions.iter().zip(&labels) {
                    round.phase(&format!("proving: {label} {what}"), Some(lengths));
                    measured.push(round.measure(direction, 1, lengths, names)?);
                }
                let rates: Vec<Rate> = measured.iter().map(Direction::compared_rate).collect();
                if state == State::After {
                    last = measured;
                }
                Ok(rates)
            },
            |number, pairs| {
                let mut round = round.borrow_mut();
                for (label, pair) in labels.iter().zip(pairs) {
                    round.observer.on(Event::Pair { direction: label, number, before: pair.before, after: pair.after });
                }
            },
        );
        let pairs: Vec<Vec<Pair>> = match pairs {
            Ok(pairs) => pairs,
            Err(error) => {
                // The first error is the one to tell; where even the undo fails, that one matters more.
                self.undo_all(&mut in_force)?;
                return Err(error);
            }
        };
        outcome.after = last;
        self.settle(groups, &tried, &labels, &pairs, in_force, outcome)
    }

    /// Decides per group, and brings about what was decided.
    fn settle(
        &mut self,
        groups: &[Group],
        tried: &[usize],
        labels: &[String],
        pairs: &[Vec<Pair>],
        mut in_force: Vec<InForce>,
        outcome: &mut Outcome,
    ) -> Result<(), TuneError> {
        let decisions: Vec<Decision> = pairs.iter().map(|pairs| proof::decide(pairs, &self.options.criteria)).collect();
        let place = |direction: &usize| tried.iter().position(|t| t == direction);
        let decided = |group: &Group, wanted: Decision| {
            group.directions.iter().filter_map(place).any(|at| decisions[at] == wanted)
        };
        let helped: Vec<bool> =
            groups.iter().map(|group| decided(group, Decision::Helped) && !decided(group, Decision::Harmed)).collect();
        let keep = |at: usize| matches!(self.options.goal, RoundGoal::Keep { .. }) && helped[at];
        let kept: Vec<bool> = (0..groups.len()).map(keep).collect();

        // Everything goes back first, so that what is kept is one run of its own in the journal of each end.
        self.end_trials(&mut in_force)?;
        let keepers: Vec<&Change> =
            groups.iter().zip(&kept).filter(|(_, kept)| **kept).flat_map(|(group, _)| &group.changes).collect();
        let trials = self.put_in_force(&keepers, self.options.stay())?;
        self.keep_all(trials, outcome)?;
        for (at, label) in labels.iter().enumerate() {
            let of_group = |group: &&Group| group.directions.contains(&tried[at]);
            let index = groups.iter().position(|group| of_group(&group));
            let mut proof = proof::compare(&pairs[at], self.options.criteria.threshold);
            proof.kept = index.is_some_and(|index| kept[index]);
            let proof = DirectionProof {
                direction: label.clone(),
                knobs: index.map_or_else(Vec::new, |i| groups[i].changes.iter().map(|c| c.knob.clone()).collect()),
                proof,
                decision: decisions[at],
                helped: index.is_some_and(|index| helped[index]),
                kept: proof.kept,
                predicted: None,
            };
            self.observer.on(Event::Proved(&proof));
            outcome.proofs.push(proof);
        }
        Ok(())
    }

    /// Keeps what is in force at every end, or leaves it on trial there, or at none; notes in `outcome` what became of it.
    fn keep_all(&mut self, trials: InForce, outcome: &mut Outcome) -> Result<(), TuneError> {
        let within = match self.options.goal {
            RoundGoal::Keep { confirm_within, .. } => confirm_within,
            RoundGoal::Plan | RoundGoal::Show => None,
        };
        let kept = trials.iter().try_for_each(|(at, trial)| {
            let end = &mut self.ends[*at];
            let Some(within) = within else {
                let kept = end.keep(trial)?;
                let host = end.name().to_owned();
                // The first end is where this program runs.
                let place = if *at == 0 { "" } else { " there" };
                note_kept(outcome, host, trial.run, place, kept);
                return Ok(());
            };
            let seconds = end.hold(trial, within)?.as_secs();
            if let Some(run) = trial.run {
                let name = end.name();
                outcome.notes.push(format!(
                    "{name}: on trial as run {run}, and taken back in {seconds} s unless `fullpipe confirm {run}` comes \
                     there; try a new connection to it first"
                ));
            }
            Ok(())
        });
        let Err(error) = kept else { return Ok(()) };
        // One end with the changes and one without them is what nobody tried; where even the undo fails, that is the
        // error to tell.
        self.undo_all(&mut vec![trials])?;
        Err(error)
    }

    fn put_in_state(
        &mut self,
        state: State,
        groups: &[Group],
        in_force: &mut Vec<InForce>,
        tell: bool,
    ) -> Result<(), TuneError> {
        match state {
            State::Before => self.end_trials(in_force),
            State::After if in_force.is_empty() => {
                for group in groups {
                    let changes: Vec<&Change> = group.changes.iter().collect();
                    let trials = self.put_in_force(&changes, Stay::Running)?;
                    if tell {
                        self.tell_applied(&changes, &trials);
                    }
                    in_force.push(trials);
                }
                Ok(())
            }
            State::After => Ok(()),
        }
    }

    /// Applies changes, each on its end; where one fails, those before it are undone.
    fn put_in_force(&mut self, changes: &[&Change], stay: Stay) -> Result<InForce, TuneError> {
        let mut trials = InForce::new();
        for at in 0..self.ends.len() {
            let name = self.ends[at].name();
            let here: Vec<Change> = changes.iter().filter(|c| c.host == name).map(|&c| c.clone()).collect();
            if here.is_empty() {
                continue;
            }
            debug!(host = name, changes = here.len(), ?stay, "putting on trial");
            match self.ends[at].apply(&here, stay, self.time_of_a_trial()) {
                Ok(trial) => trials.push((at, trial)),
                Err(error) => {
                    self.undo_all(&mut vec![trials])?;
                    return Err(error);
                }
            }
        }
        Ok(trials)
    }

    /// Undoes what was measured with. Where somebody else did so before, it is not wanted there, and what was measured since
    /// tells nothing.
    fn end_trials(&mut self, in_force: &mut Vec<InForce>) -> Result<(), TuneError> {
        match self.undo_all(in_force)?.first() {
            Some(&at) => Err(TuneError::TakenBack { host: self.ends[at].name().to_owned() }),
            None => Ok(()),
        }
    }

    /// Undoes everything that is in force, the latest first; gives the ends at which something had been taken back already.
    /// Goes on past a failure and returns the first one; what failed is tried once more at the end, when what was put there
    /// after it is gone.
    fn undo_all(&mut self, in_force: &mut Vec<InForce>) -> Result<Vec<usize>, TuneError> {
        let trials: InForce = in_force.drain(..).rev().flat_map(|trials| trials.into_iter().rev()).collect();
        let (mut again, mut gone) = (InForce::new(), Vec::new());
        for (at, trial) in trials {
            match self.undo_one(at, &trial) {
                Ok(0) if trial.run.is_some() => gone.push(at),
                Ok(_) => {}
                Err(_) => again.push((at, trial)),
            }
        }
        let mut ended = Ok(gone);
        for (at, trial) in again {
            // The first time may have succeeded without an answer.
            let undone = self.undo_one(at, &trial);
            ended = ended.and_then(|gone| undone.map(|_| gone));
        }
        ended
    }

    fn undo_one(&mut self, at: usize, trial: &Trial) -> Result<usize, TuneError> {
        let undone = self.ends[at].undo(trial);
        debug!(host = self.ends[at].name(), run = ?trial.run, ?undone, "taking back");
        let count = undone?;
        self.observer.on(Event::Undone { host: self.ends[at].name(), count });
        Ok(count)
    }

    /// How long changes may be on trial before their end takes them back by itself: as long as the measurements between
    /// two changes can take, with time for slow paths.
    fn time_of_a_trial(&self) -> Duration {
        let lengths = self.options.trial_lengths.or(self.options.lengths);
        let one = lengths.map_or(Duration::from_secs(20), |lengths| lengths.whole());
        Duration::from_secs(60) + one * 3 * u32::try_from(self.options.directions.len()).unwrap_or(2)
    }

    fn tell_applied(&mut self, changes: &[&Change], trials: &InForce) {
        for (at, trial) in trials {
            let host = self.ends[*at].name();
            let here = changes.iter().filter(|change| change.host == host);
            for (change, now) in here.zip(&trial.read_back) {
                self.observer.on(Event::Applied {
                    host,
                    knob: &change.knob,
                    from: change.from.as_deref(),
                    to: now.as_deref(),
                });
            }
        }
    }

    /// Compares both ends with what they read at the start.
    fn compare(&mut self, before: &[Option<Settings>; 2]) -> Result<Vec<Restored>, TuneError> {
        let mut all = Vec::new();
        for (end, before) in self.ends.iter_mut().zip(before) {
            let Some(before) = before else { continue };
            let now = end.settings()?;
            let restored = compare_settings(end.name(), before, &now);
            self.observer.on(Event::Compared(&restored));
            all.push(restored);
        }
        Ok(all)
    }

    fn phase(&mut self, what: &str, lengths: Option<Lengths>) {
        self.observer.on(Event::Phase { what, expected: lengths.map(|lengths| Micros::from(lengths.whole())) });
    }
}

/// What differs between two readings of a host.
fn compare_settings(host: &str, before: &Settings, now: &Settings) -> Restored {
    let knobs: std::collections::BTreeSet<_> = before.values.keys().chain(now.values.keys()).collect();
    let differences = knobs
        .iter()
        .map(|&knob| Difference {
            knob: knob.clone(),
            before: before.values.get(knob).cloned().flatten(),
            now: now.values.get(knob).cloned().flatten(),
        })
        .filter(|difference| difference.before != difference.now)
        .collect();
    Restored { host: host.to_owned(), compared: knobs.len(), differences }
}

/// Notes what was kept at an end: the run, how it is taken back, and for how long it lasts.
fn note_kept(outcome: &mut Outcome, host: String, run: Option<RunId>, place: &str, kept: Kept) {
    let Kept { lasts, boot_files, until_reboot, notes } = kept;
    if let Some(run) = run {
        let files = if boot_files.is_empty() { String::new() } else { format!(" ({})", boot_files.join(", ")) };
        let how_long = match (lasts, until_reboot.is_empty()) {
            (true, _) => format!(", which lasts beyond a reboot{files}"),
            (false, true) if boot_files.is_empty() => ", which lasts until the next reboot".to_owned(),
            (false, _) => files,
        };
        let undo = format!("`fullpipe undo {run}`{place} takes it back");
        outcome.notes.push(format!("{host}: kept as run {run}{how_long}; {undo}"));
        outcome.notes.extend(until_reboot.iter().map(|what| format!("{host}: until reboot: {what}")));
        outcome.kept.push(KeptRun { host: host.clone(), run, lasts, boot_files, until_reboot });
    }
    outcome.notes.extend(notes.into_iter().map(|note| format!("{host}: {note}")));
}

#[cfg(test)]
mod tests;
