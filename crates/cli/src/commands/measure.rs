//! `fullpipe measure`.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use fullpipe_measure::{
    Client, ClientOptions, Direction, ExchangeSpec, Family, Length, Measurement, Phase, Progress, TestDirection,
    TestSpec, UdpSpec,
};
use fullpipe_report::{Measured, Survey, csv, json, text};
use fullpipe_units::{Bytes, Rate};

use super::{Ended, printed};
use crate::{
    args::{MeasureArgs, PatternName},
    exit::Exit,
    failure::Failure,
    interrupt,
    output::Output,
};

/// What fits into one packet of almost every path, with IPv6 and a tunnel around it.
const DATAGRAM: u64 = 1_448;

/// iperf3's own default for datagrams, which have nothing that slows them down.
const DATAGRAM_RATE: u64 = 1_000_000;

/// For `--max`: long enough for what differs by a tenth to be told apart, three times over.
const TRIALS: Duration = Duration::from_secs(1);

pub(super) fn run(args: &MeasureArgs, output: Output) -> Ended {
    let spec = spec(args);
    let target: fullpipe_measure::Target = args.host.parse()?;
    let family = match (args.ipv4, args.ipv6) {
        (true, _) => Family::V4,
        (_, true) => Family::V6,
        _ => Family::Any,
    };
    let cancel = interrupt::cancel_flag()?;
    let options = ClientOptions { family, ..ClientOptions::default() };
    let mut client = Client::connect_with(&target, options, &cancel)?;
    if let Some(survey) = survey(args, &spec, &mut client, output, &cancel)? {
        client.bye();
        let cancelled = cancel.load(Ordering::Relaxed);
        printed(output.result(|| json::survey("measure", &survey), |look| text::survey(&survey, look)))?;
        return Ok(if cancelled { Exit::Interrupted } else { Exit::Ok });
    }
    let mut tell = |progress: Progress| live(args, output, &progress);
    let measurement =
        if args.max { client.run_max(&spec, &cancel, &mut tell)? } else { client.run(&spec, &cancel, &mut tell)? };
    client.bye();
    show(args, output, &spec, &measurement)
}

/// A question of several tests, where one was asked.
fn survey(
    args: &MeasureArgs,
    spec: &TestSpec,
    client: &mut Client,
    output: Output,
    cancel: &AtomicBool,
) -> Result<Option<Survey>, Failure> {
    // Many tests: each shorter than one alone.
    let time = args.time.map_or(Duration::from_secs(2), Duration::from);
    let spec = TestSpec { length: Length::Time(time), ..spec.clone() };
    let mut done = |done: usize, of: usize| output.remark(&format!("{done} of {of} done\n"));
    let mut survey = Survey::new(&args.host, client.peer(), client.peer_kind());
    if let Some(range) = args.sizes {
        let sizes: Vec<Bytes> = range.steps().into_iter().map(Bytes::new).collect();
        survey.sizes = client.sizes(&spec, &sizes, cancel, &mut done)?;
    } else if let Some(range) = args.streams {
        let numbers: Vec<u32> = range.steps().into_iter().filter_map(|step| step.try_into().ok()).collect();
        survey.streams = client.sweep_streams(&spec, &numbers, cancel, &mut done)?;
    } else if let Some(pattern) = args.pattern {
        let pairs = if args.pair.is_empty() { &[(Bytes::new(1), Bytes::new(1))][..] } else { &args.pair };
        for (index, &(request, response)) in pairs.iter().enumerate() {
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            done(index, pairs.len());
            let spec = ExchangeSpec {
                request,
                response,
                streams: args.parallel.into(),
                time,
                split: args.split,
                nodelay: !args.split || args.no_delay,
                spin: args.spin,
                connect: pattern == PatternName::ConnectRequestResponse,
            };
            survey.exchanges.push(client.exchange(&spec, cancel, &mut |_| ())?);
        }
    } else if args.latency_under_load {
        survey.under_load = Some(client.under_load(&spec, cancel, &mut done)?);
    } else if args.mtu {
        survey.mtu = Some(client.probe_mtu()?);
    } else if args.capacity {
        survey.capacity = Some(client.capacity(&[Direction::Up, Direction::Down], cancel, &mut done)?);
    } else {
        return Ok(None);
    }
    survey.cancelled = cancel.load(Ordering::Relaxed);
    Ok(Some(survey))
}

fn show(args: &MeasureArgs, output: Output, spec: &TestSpec, measurement: &Measurement) -> Ended {
    let measured = Measured { host: &args.host, spec, measurement, series: args.series };
    let shown = if args.iperf3_json {
        output.verbatim(&json::to_string(&json::iperf3(&measured)))
    } else if args.csv {
        output.verbatim(&csv::measured(&measured))
    } else {
        output.result(|| json::measured("measure", &measured), |look| text::measured(&measured, look))
    };
    printed(shown)?;
    Ok(if measurement.cancelled { Exit::Interrupted } else { Exit::Ok })
}

/// A line per interval for a person who looks on.
fn live(args: &MeasureArgs, output: Output, progress: &Progress) {
    if args.iperf3_json || args.csv || !matches!(progress.phase, Phase::Running | Phase::Omitted) {
        return;
    }
    output.remark(&text::interval(progress));
}

fn spec(args: &MeasureArgs) -> TestSpec {
    let usual = TestSpec::default();
    let block = args.length.unwrap_or(if args.udp { Bytes::new(DATAGRAM) } else { usual.block });
    let length = match (args.bytes, args.blockcount) {
        (Some(bytes), _) => Length::Bytes(bytes),
        (None, Some(count)) => Length::Bytes(Bytes::new(count.saturating_mul(block.get()))),
        (None, None) => args.time.map_or(usual.length, |time| Length::Time(time.into())),
    };
    let unlimited = args.bitrate.is_some_and(|rate| rate.bps() == 0);
    let pace = args.bitrate.or_else(|| args.udp.then(|| Rate::from_bps(DATAGRAM_RATE))).filter(|_| !unlimited);
    let direction = match (args.reverse, args.bidir) {
        (true, _) => TestDirection::Down,
        (_, true) => TestDirection::Both,
        _ => TestDirection::Up,
    };
    TestSpec {
        direction,
        streams: args.parallel.into(),
        length,
        omit: args.omit.map_or(if args.max { TRIALS } else { Duration::ZERO }, Duration::from),
        block,
        udp: args.udp.then_some(UdpSpec { counters_64bit: args.udp_counters_64bit }),
        copy: args.copy,
        congestion_control: args.congestion.clone(),
        send_buffer: args.window,
        receive_buffer: args.window,
        pace,
        max_pacing_rate: args.fq_rate,
        nodelay: args.no_delay,
        mss: args.set_mss,
        tos: args.tos,
        zerocopy: args.zerocopy,
        title: args.title.clone(),
        extra_data: args.extra_data.clone(),
        server_output: args.get_server_output,
        progress_every: args.interval.into(),
        ..usual
    }
}
