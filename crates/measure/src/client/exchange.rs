//! A test of requests and responses, from the client's side.

use std::{
    net::TcpStream,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use super::{Client, session, test};
use crate::{
    error::MeasureError,
    exchange::{self, Asked, ExchangeReport, ExchangeSpec, Latency},
    measurement::{Cpu, PeerKind},
    patience::Patience,
    report::EndReport,
    spec::{Length, TestSpec},
    sys::cpu::ProcessTime,
    target,
    wire::{OurParams, Params, State},
};

/// How often the control connection is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(10);

const ASKING: &str = "asking and answering";

/// Also gives the times themselves.
pub(super) fn run(
    client: &Client,
    spec: &ExchangeSpec,
    cancel: &AtomicBool,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<(ExchangeReport, Asked), MeasureError> {
    let peer = client.peer;
    if client.kind != PeerKind::Fullpipe {
        return Err(MeasureError::NeedsFullpipe { peer, operation: ASKING });
    }
    let patience = || Patience::new(client.options.answer).unless(cancel);
    let cookie = session::cookie(peer)?;
    let stream = target::connect_control(peer, patience())?;
    let (mut control, state) = session::open_with(stream, peer, &client.signed(params(spec)), &cookie, patience())?;
    if state != State::CreateStreams {
        return Err(session::unexpected(peer, ASKING, state));
    }
    // The data connections are those of any other test.
    let plain = TestSpec {
        streams: spec.streams,
        nodelay: spec.nodelay,
        length: Length::Time(spec.time),
        ..TestSpec::default()
    };
    let lanes = if spec.connect { Vec::new() } else { test::open_lanes(client, &plain, &cookie, cancel)? };
    let streams: Vec<TcpStream> = lanes.into_iter().map(|lane| lane.stream).collect();
    test::expect(&mut control, State::TestStart, patience())?;
    test::expect(&mut control, State::TestRunning, patience())?;

    let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    let (start, process) = (Instant::now(), ProcessTime::now());
    let mut reported_at = Instant::now();
    let (asked, spoke) = thread::scope(|scope| {
        let asking = scope.spawn(|| exchange::ask(spec, (peer, &cookie), &streams, &stop, &answered));
        let mut spoke = Ok(None);
        while start.elapsed() < spec.time && !cancel.load(Ordering::Relaxed) && !asking.is_finished() {
            spoke = control.poll_state(LOOK);
            if !matches!(spoke, Ok(None)) {
                break;
            }
            if reported_at.elapsed() >= Duration::from_secs(1) {
                progress(answered.load(Ordering::Relaxed));
                reported_at = Instant::now();
            }
        }
        stop.store(true, Ordering::Relaxed);
        let asked = asking.join().unwrap_or(Err(MeasureError::Closed { peer, operation: ASKING }));
        (asked, spoke)
    });
    if let Some(state) = spoke? {
        return Err(test::ended_by(&mut control, state, ASKING));
    }
    let asked = asked?;
    let own = used(&process, start);
    let results = test::finish(client, &mut control, &own)?;
    control.close();
    let report = ExchangeReport {
        far_cpu: Some(Cpu::of_results(&results)),
        far_processor: results.ours.as_ref().and_then(|ours| ours.get("processor")?.as_u64()?.try_into().ok()),
        cancelled: cancel.load(Ordering::Relaxed),
        ..report(spec, &asked, answered.load(Ordering::Relaxed), &own)
    };
    Ok((report, asked))
}

fn report(spec: &ExchangeSpec, asked: &Asked, transactions: u64, own: &EndReport) -> ExchangeReport {
    ExchangeReport {
        request: spec.request,
        response: spec.response,
        streams: spec.streams,
        split: spec.split,
        nodelay: spec.nodelay,
        spin: spec.spin,
        transactions,
        seconds: asked.seconds,
        per_second: transactions as f64 / asked.seconds.max(1e-6),
        latency: Latency::from_times(&asked.times),
        at_once_us: None,
        delayed: None,
        connecting: Latency::from_times(&asked.connecting),
        asking: Latency::from_times(&asked.asking),
        own_processor: asked.processor,
        far_processor: None,
        own_cpu: Cpu::of_report(own),
        far_cpu: None,
        cancelled: false,
    }
}

fn params(spec: &ExchangeSpec) -> Params {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let ours = OurParams {
        version: crate::wire::VERSION,
        indexed: !spec.connect,
        time_ms: Some(millis(spec.time)),
        exchange: Some(spec.pattern()),
        ..OurParams::default()
    };
    Params {
        time_s: spec.time.as_secs() + 1,
        parallel: spec.streams,
        nodelay: spec.nodelay,
        block: 131_072,
        ours: Some(ours),
        ..Params::default()
    }
}

fn used(before: &ProcessTime, start: Instant) -> EndReport {
    let now = ProcessTime::now();
    let percent = |now: f64, before: f64| (now - before).max(0.0) / start.elapsed().as_secs_f64().max(1e-6) * 100.0;
    EndReport {
        cpu_user_percent: percent(now.user_s, before.user_s),
        cpu_system_percent: percent(now.system_s, before.system_s),
        ..EndReport::default()
    }
}
