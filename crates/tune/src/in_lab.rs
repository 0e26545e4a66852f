//! The loop over an emulated path: both ends are hosts of the lab, in this process.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::Duration,
};

use fullpipe_diagnose::{RttSummary, limit_words, proof::Criteria};
use fullpipe_host::{Host, HostError, Identity, Journal, linux::LinuxHost};
use fullpipe_knobs::{Address, Settings};
use fullpipe_lab::{Lab, LabHost};
use fullpipe_measure::{Client, Length, Measurement, Server, ServerOptions, Target, TestSpec};
use fullpipe_path::{After, Direction, Scenario, Side};
use fullpipe_units::Rate;

use crate::{
    disturbed::Disturbances,
    end::LocalEnd,
    error::TuneError,
    event::{Event, Observer},
    meter::{self, Lengths, Meter},
    outcome::{Expectation, Outcome, ScenarioFacts},
    plans::PlanOptions,
    round::{Applications, Round, RoundGoal, RoundOptions},
};

/// How a scenario is run.
#[derive(Clone, Debug, Default)]
pub struct LabRunOptions {
    /// Only measure and diagnose; do not try the plan.
    pub measure_only: bool,
    /// Instead of the scenario's congestion control.
    pub congestion_control: Option<String>,
    /// Instead of the scenario's lengths.
    pub lengths: Option<Lengths>,
    /// For each measurement of a proof, instead of the scenario's lengths.
    pub trial_lengths: Option<Lengths>,
}

/// Runs a scenario on real kernels: makes the path, measures, diagnoses and plans, tries the plan, proves it, undoes all
/// of it, and compares what came out with what the scenario expects.
pub fn lab_run(
    scenario: &Scenario,
    options: &LabRunOptions,
    cancel: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Outcome, TuneError> {
    let lab = Lab::start(scenario)?;
    let facts = facts(scenario);
    observer.on(Event::PathMade(&facts));
    let server = LabServer::start(&lab, scenario)?;
    let directions: Vec<Direction> = scenario.expect.keys().copied().collect();
    let directions = if directions.is_empty() { Direction::ALL.to_vec() } else { directions };
    let lengths = options.lengths.unwrap_or_else(|| Lengths {
        omit: Duration::from_secs(scenario.test.omit.into()),
        measure: Duration::from_secs(scenario.test.seconds.into()),
    });
    let round_options = RoundOptions {
        directions: directions.iter().copied().map(measured_as).collect(),
        streams: scenario.test.streams,
        congestion_control: options
            .congestion_control
            .clone()
            .or_else(|| Some(scenario.test.congestion.clone()).filter(|name| !name.is_empty())),
        lengths: Some(lengths),
        trial_lengths: options.trial_lengths.or(options.lengths),
        plan_options: PlanOptions::default(),
        criteria: Criteria::default(),
        goal: if options.measure_only { RoundGoal::Plan } else { RoundGoal::Show },
    };
    let mut a = end(&lab, Side::A)?;
    let mut b = end(&lab, Side::B)?;
    let mut meter = LabMeter {
        lab: &lab,
        target: server.target.clone(),
        client: None,
        cancel,
        disturbances: Disturbances::default(),
    };
    let round = Round {
        options: &round_options,
        meter: &mut meter,
        ends: [&mut a, &mut b],
        peers: [Some(address(scenario, Side::B)), Some(address(scenario, Side::A))],
        applications: Applications { client: scenario.a.application.clone(), server: scenario.b.application.clone() },
        consent: &mut |_| true,
        observer,
        cancel,
    };
    let mut outcome = round.run()?;
    outcome.path_error = Some(meter.disturbances.path_error());
    outcome.notes.extend(meter.disturbances.note());
    outcome.scenario = Some(facts);
    outcome.expectations = expectations(scenario, &outcome, options.measure_only);
    Ok(outcome)
}

/// The product's main job on an emulated path, in about a minute: the scenario `wan-80ms` with lengths that fit it.
pub fn demo(cancel: &AtomicBool, observer: &mut dyn Observer) -> Result<Outcome, TuneError> {
    let scenario = Scenario::named("wan-80ms")?;
    let seconds = Duration::from_secs_f64;
    let options = LabRunOptions {
        lengths: Some(Lengths { omit: seconds(1.5), measure: seconds(2.5) }),
        trial_lengths: Some(Lengths { omit: seconds(1.4), measure: seconds(1.8) }),
        ..LabRunOptions::default()
    };
    lab_run(&scenario, &options, cancel, observer)
}

/// What a reader must know of the scenario.
fn facts(scenario: &Scenario) -> ScenarioFacts {
    let imitation = |side: Side| {
        let imitates = scenario.host(side).imitates.as_ref()?;
        Some(format!("host {side} is Linux imitating {imitates}"))
    };
    ScenarioFacts {
        name: scenario.name.clone(),
        summary: scenario.summary.clone(),
        imitations: Side::ALL.into_iter().filter_map(imitation).collect(),
        published: scenario.published.clone(),
    }
}

fn measured_as(direction: Direction) -> fullpipe_measure::Direction {
    match direction {
        Direction::AToB => fullpipe_measure::Direction::Up,
        Direction::BToA => fullpipe_measure::Direction::Down,
    }
}

fn address(scenario: &Scenario, side: Side) -> IpAddr {
    if scenario.path.ip.has_v4() { side.ipv4().into() } else { side.ipv6().into() }
}

fn end<'l>(lab: &'l Lab, side: Side) -> Result<LocalEnd<InHost<'l>>, TuneError> {
    // The lab's hosts end with this process, and so may their journal.
    Ok(LocalEnd::with_journal(side.as_str(), InHost(lab.host(side)), Journal::in_memory()?, "lab run"))
}

/// The server on host b, until it is dropped.
struct LabServer {
    target: Target,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LabServer {
    fn start(lab: &Lab, scenario: &Scenario) -> Result<Self, TuneError> {
        let host = lab.host(Side::B);
        let listen = SocketAddr::new(address(scenario, Side::B), 0);
        let server = host.run(|| Server::bind(listen, ServerOptions::default(), None))??;
        let target = Target { host: server.local_addr().ip().to_string(), port: server.local_addr().port() };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        // Its end is seen by the client, whose errors say more than the server's own.
        let thread = host.spawn("server", move || drop(server.run(&stopped)))?;
        Ok(Self { target, stop, thread: Some(thread) })
    }
}

impl Drop for LabServer {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // A server thread that panicked has said so on standard error.
            drop(thread.join());
        }
    }
}

/// Measures from host a to the server on host b.
struct LabMeter<'l> {
    lab: &'l Lab,
    target: Target,
    client: Option<Client>,
    cancel: &'l AtomicBool,
    disturbances: Disturbances,
}

impl LabMeter<'_> {
    /// Runs `work` with the client on host a, whose sockets must be opened there.
    fn with_client<R: Send>(
        &mut self,
        work: impl FnOnce(&mut Client) -> Result<R, TuneError> + Send,
    ) -> Result<R, TuneError> {
        let Self { lab, target, client, .. } = self;
        lab.host(Side::A).run(|| {
            let connected = match client.take() {
                Some(connected) => client.insert(connected),
                None => client.insert(Client::connect(target)?),
            };
            work(connected)
        })?
    }
}

impl Meter for LabMeter<'_> {
    fn prepare(&mut self) -> Result<Option<RttSummary>, TuneError> {
        self.with_client(meter::prepare)
    }

    /// A measurement during which the lab did not keep its path's promises is repeated.
    fn measure(&mut self, spec: &TestSpec, observer: &mut dyn Observer) -> Result<Measurement, TuneError> {
        let cancel = self.cancel;
        let mut attempt = 1;
        loop {
            self.lab.reset_error_stats();
            let measured = self.with_client(|client| meter::run(client, spec, cancel, observer));
            let kept = self.lab.valid();
            match (&measured, kept) {
                (Err(TuneError::Interrupted), _) | (Err(_), Ok(())) => return measured,
                (Ok(_), Ok(())) => {
                    self.disturbances.kept(self.lab.path_error());
                    return measured;
                }
                (_, Err(why)) if self.disturbances.repeat(attempt) => {
                    observer.on(Event::Note(&format!("{why}; measuring this again")));
                    // What failed may have left a connection that waits for the other end.
                    self.client = self.client.take().filter(|_| measured.is_ok());
                    attempt += 1;
                }
                (Ok(_), Err(_)) => {
                    let length = match spec.length {
                        Length::Time(length) => length,
                        Length::Bytes(_) => Duration::ZERO,
                    };
                    self.disturbances.accepted(self.lab.path_error(), length);
                    return measured;
                }
                // A connection that broke while the lab stood still broke because of it.
                (Err(_), Err(why)) => return Err(why.into()),
            }
        }
    }
}

/// A host of the lab, as the settings see it: every call runs on a thread inside it.
struct InHost<'l>(&'l LabHost);

impl InHost<'_> {
    fn inside<R: Send>(
        &self,
        work: impl FnOnce(&mut LinuxHost) -> Result<R, HostError> + Send,
    ) -> Result<R, HostError> {
        self.0.run(|| work(&mut LinuxHost::new())).map_err(|error| HostError::File {
            operation: "enter",
            path: format!("the lab's host {}", self.0.name()),
            source: std::io::Error::other(error),
        })?
    }
}

impl Host for InHost<'_> {
    fn settings(&mut self) -> Result<Settings, HostError> {
        self.inside(Host::settings)
    }

    fn read(&mut self, address: &Address) -> Result<Option<String>, HostError> {
        self.inside(|host| host.read(address))
    }

    fn write(&mut self, address: &Address, value: Option<&str>) -> Result<(), HostError> {
        self.inside(|host| host.write(address, value))
    }

    fn writable(&mut self, address: &Address) -> Result<(), HostError> {
        self.inside(|host| host.writable(address))
    }

    fn identity(&mut self) -> Result<Identity, HostError> {
        self.inside(Host::identity)
    }
}

/// Compares an outcome with what the scenario expects.
fn expectations(scenario: &Scenario, outcome: &Outcome, measured_only: bool) -> Vec<Expectation> {
    let mut all = Vec::new();
    for (direction, expect) in &scenario.expect {
        let name = direction.as_str();
        let Some(before) = outcome.before.iter().find(|measured| measured.name == name) else { continue };
        let mut add = |expected: String, found: String, met: bool| {
            all.push(Expectation { direction: name.to_owned(), expected, found, met });
        };

        let verdict = |limiter, detail| format!("limited by {}", limit_words(limiter, detail));
        let found = (before.diagnosis.limiter, expect.detail.as_ref().and(before.diagnosis.detail));
        let expected = named(&expect.limiter).map(|limiter| (limiter, expect.detail.as_deref().and_then(named)));
        let wanted = expected.map_or_else(|| expect.limiter.clone(), |(limiter, detail)| verdict(limiter, detail));
        add(wanted, verdict(found.0, found.1), expected == Some(found));
        if let Some(rate) = expect.rate {
            let found = before.compared_rate();
            let off = (found.bps() as f64 / rate.bps() as f64 - 1.0).abs();
            add(format!("{rate} within {:.0} %", expect.tolerance * 100.0), found.to_string(), off <= expect.tolerance);
        }
        match expect.after {
            After::NoChange => {
                let count = outcome.plan.changes.len();
                add("no change proposed".to_owned(), format!("{count} changes proposed"), count == 0);
            }
            After::Fraction(_) if measured_only => {}
            After::Fraction(fraction) => {
                let Some(payload) = before.payload_rate(&scenario.path, *direction) else { continue };
                let wanted = Rate::from_bps((payload.bps() as f64 * fraction) as u64);
                let proof = outcome.proofs.iter().find(|proof| proof.direction == name);
                let found = proof.map_or(Rate::ZERO, |proof| proof.proof.after_bps);
                add(
                    format!("at least {wanted} with the changes ({:.0} % of the path's {payload})", fraction * 100.0),
                    found.to_string(),
                    found >= wanted,
                );
            }
        }
    }
    all
}

/// The limiter or detail that a scenario names; it names none that there isn't.
fn named<T: serde::de::DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(word.into()).ok()
}
