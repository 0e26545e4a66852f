//! `fullpipe measure`.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use fullpipe_knobs::reading::LARGEST;
use fullpipe_measure::{
    Client, ClientOptions, Credentials, Direction, ExchangeSpec, Family, Length, MeasureError, Measurement, Padding,
    Phase, Progress, TestDirection, TestSpec, UdpSpec,
};
use fullpipe_report::{
    Comparison, KeptSize, Measured, Survey, charts_of_measured, clean, csv, html::Charts, json, text,
};
use fullpipe_units::{Bytes, Rate};
use serde_json::json;

use super::{Ended, input::Input, printed};
use crate::{
    args::{Bitrate, MeasureArgs, PatternName},
    exit::Exit,
    failure::Failure,
    interrupt,
    output::Output,
    password,
};

/// What fits into one packet of almost every path, with IPv6 and a tunnel around it.
const DATAGRAM: u64 = 1_448;

/// A request that has two halves, and is no whole segment.
const HALVES: Bytes = Bytes::new(100);

/// iperf3's own default for a message over TCP.
const IPERF3_MESSAGE: Bytes = Bytes::new(128 * 1024);

/// iperf3's own default for datagrams, which have nothing that slows them down.
const DATAGRAM_RATE: u64 = 1_000_000;

/// A test takes no longer.
const LONGEST: Duration = Duration::from_secs(86_400);

/// For `--max`: long enough for what differs by a tenth to show, three times over.
const TRIALS: Duration = Duration::from_secs(1);

pub(super) fn run(args: &MeasureArgs, output: Output) -> Ended {
    args.page.check()?;
    let spec = spec(args);
    let before = args.compare.as_deref().map(earlier).transpose()?;
    args.save.as_deref().map(writable).transpose()?;
    let target = args.server()?;
    let family = match (args.ipv4, args.ipv6) {
        (true, _) => Family::V4,
        (_, true) => Family::V6,
        _ => Family::Any,
    };
    // Before Ctrl-C is caught: at the question for a password it ends the program.
    let credentials = credentials(args, output)?;
    let cancel = interrupt::cancel_flag()?;
    let options = ClientOptions { family, ..ClientOptions::default() };
    let first = Some(&spec).filter(|_| !asks_several(args));
    let mut client = if args.iperf2 {
        Client::for_iperf2(&target, options, &cancel)?
    } else {
        Client::connect_for(&target, options, (credentials, first), &cancel)
            .map_err(|error| turned_away(args, error))?
    };
    if let Some(survey) = survey(args, &spec, &mut client, output, &cancel)? {
        client.bye();
        let cancelled = cancel.load(Ordering::Relaxed);
        show_survey(args, output, &survey, before.as_deref())?;
        return Ok(if cancelled { Exit::Interrupted } else { Exit::Ok });
    }
    let mut largest = Rate::ZERO;
    let mut tell = |progress: Progress| live(args, output, &progress, &mut largest);
    let measurement =
        if args.max { client.run_max(&spec, &cancel, &mut tell)? } else { client.run(&spec, &cancel, &mut tell)? };
    client.bye();
    show(args, output, &spec, &measurement)
}

/// The sizes that an earlier run kept. It is read before anything is measured, which may take minutes.
fn earlier(file: &Path) -> Result<Vec<KeptSize>, Failure> {
    let input = Input::read(file, LARGEST)?;
    let sizes = std::str::from_utf8(&input.bytes).ok().and_then(|text| json::kept_sizes(text).ok());
    sizes.filter(|sizes| !sizes.is_empty()).ok_or_else(|| {
        let words = format!("reading {}: it has no sizes; give what `measure --sizes --save FILE` wrote", input.name);
        Failure::new(Exit::InputInvalid, &words)
    })
}

/// Whether the result can be kept there, before anything is measured. What the file holds stays until then, and one that
/// was not there isn't left empty.
fn writable(file: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::system(&format!("writing {}", file.display()), &error);
    let is_new = !file.exists();
    std::fs::OpenOptions::new().append(true).create(true).open(file).map_err(failed)?;
    if is_new { std::fs::remove_file(file).map_err(failed) } else { Ok(()) }
}

/// What several tests found, kept and beside an earlier run where that was asked.
fn show_survey(args: &MeasureArgs, output: Output, survey: &Survey, before: Option<&[KeptSize]>) -> Ended {
    let document = json::survey("measure", survey);
    if let Some(file) = &args.save {
        std::fs::write(file, json::to_string(&document))
            .map_err(|error| Failure::system(&format!("writing {}", file.display()), &error))?;
    }
    let Some(before) = before else {
        if args.csv {
            let alone = Comparison::new(&[], &json::sizes_of(&document));
            return printed(output.verbatim(&csv::comparison(&alone)));
        }
        args.page.result(output, || document, Charts::default, |look| text::survey(survey, look))?;
        return Ok(Exit::Ok);
    };
    let comparison = Comparison::new(before, &json::sizes_of(&document));
    if args.csv {
        return printed(output.verbatim(&csv::comparison(&comparison)));
    }
    args.page.result(
        output,
        || json::comparison(document, &comparison),
        Charts::default,
        |look| text::survey(survey, look) + &text::comparison(&comparison, look),
    )?;
    Ok(Exit::Ok)
}

/// Who the user is, where the server wants to know.
fn credentials(args: &MeasureArgs, output: Output) -> Result<Option<Credentials>, Failure> {
    let (Some(name), Some(key)) = (&args.username, &args.rsa_public_key_path) else { return Ok(None) };
    let padding = if args.use_pkcs1_padding { Padding::Pkcs1 } else { Padding::Oaep };
    Ok(Some(Credentials::new(name, &password::ask(name, output)?, key, padding)?))
}

/// What a server that wants names says of a wrong one; 3.21 only closes the connection.
fn turned_away(args: &MeasureArgs, error: MeasureError) -> Failure {
    let hint = match (&error, args.username.is_some()) {
        (MeasureError::ServerError { code: 142, .. } | MeasureError::Closed { .. }, true) => {
            "check the name, the password, the clocks of both ends and the padding (up to 3.16 iperf3 takes only \
             --use-pkcs1-padding, from 3.17 on only what comes without it)"
        }
        (MeasureError::ServerError { code: 142, .. }, false) => "give --username and --rsa-public-key-path",
        _ => return error.into(),
    };
    let exit = Failure::from(error).exit;
    Failure::new(exit, &format!("the server does not let this client in; {hint}"))
}

/// Whether the question takes several tests.
fn asks_several(args: &MeasureArgs) -> bool {
    let single = args.sizes.is_none() && args.streams.is_none() && args.pattern.is_none();
    !single || args.latency_under_load || args.mtu || args.capacity
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
    let usual = if args.latency_under_load { Duration::from_secs(4) } else { Duration::from_secs(2) };
    let time = args.time.map_or(usual, Duration::from);
    let spec = TestSpec { length: Length::Time(time), ..spec.clone() };
    let mut survey = Survey::new(args.host(), client.peer(), client.peer_kind());
    if let Some(range) = args.sizes {
        let sizes: Vec<Bytes> = range.steps().into_iter().map(Bytes::new).collect();
        let mut largest = Rate::ZERO;
        let mut place = 0;
        survey.sizes = client.sizes(&spec, &sizes, cancel, &mut |row, of| {
            let rates = [row.up.rate_bps, row.down.rate_bps];
            largest = rates.into_iter().flatten().fold(largest, Rate::max);
            place += 1;
            output.remark(&text::sweep_row(
                place,
                of,
                &row.size.to_string(),
                rates,
                output.shows_progress().then_some(largest),
                output.look(),
            ));
        })?;
    } else if let Some(range) = args.streams {
        let numbers: Vec<u32> = range.steps().into_iter().filter_map(|step| step.try_into().ok()).collect();
        let mut largest = Rate::ZERO;
        let mut place = 0;
        survey.streams = client.sweep_streams(&spec, &numbers, cancel, &mut |row, of| {
            let rates = [row.up_bps, row.down_bps];
            largest = rates.into_iter().flatten().fold(largest, Rate::max);
            place += 1;
            let label = format!("{} {}", row.streams, if row.streams == 1 { "stream" } else { "streams" });
            output.remark(&text::sweep_row(
                place,
                of,
                &label,
                rates,
                output.shows_progress().then_some(largest),
                output.look(),
            ));
        })?;
    } else if let Some(pattern) = args.pattern {
        let usual = [(if args.split { HALVES } else { Bytes::new(1) }, Bytes::new(1))];
        let pairs = if args.pair.is_empty() { &usual[..] } else { &args.pair };
        for (index, &(request, response)) in pairs.iter().enumerate() {
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            let spec = ExchangeSpec {
                request,
                response,
                streams: spec.streams,
                time,
                split: args.split,
                nodelay: !args.split || args.no_delay,
                spin: args.spin,
                connect: pattern == PatternName::ConnectRequestResponse,
                every: None,
            };
            let report = client.exchange(&spec, cancel, &mut |_| ())?;
            output.remark(&text::exchange_row(index + 1, pairs.len(), &report));
            survey.exchanges.push(report);
        }
    } else if args.latency_under_load {
        survey.under_load = Some(client.under_load(&spec, cancel, &mut steps(output, &LOADS))?);
    } else if args.mtu || args.capacity {
        if args.mtu {
            survey.mtu = Some(client.probe_mtu()?);
            survey.tcp_mtu = client.tcp_mtu(cancel)?;
        }
        if args.capacity {
            let both = [Direction::Up, Direction::Down];
            survey.capacity = Some(client.capacity(&both, cancel, &mut steps(output, &WAYS))?);
        }
    } else {
        return Ok(None);
    }
    survey.cancelled = cancel.load(Ordering::Relaxed);
    Ok(Some(survey))
}

/// The steps of a test that has several, in their order.
const LOADS: [&str; 3] = ["round trips without load", "round trips beside upload", "round trips beside download"];
const WAYS: [&str; 2] = ["packet trains up", "packet trains down"];

/// A line for each step as it begins.
fn steps(output: Output, names: &'static [&'static str]) -> impl FnMut(usize, usize) {
    move |done, of| {
        if let Some(name) = names.get(done) {
            output.remark(&format!("{} of {of}  {name}\n", done + 1));
        }
    }
}

fn show(args: &MeasureArgs, output: Output, spec: &TestSpec, measurement: &Measurement) -> Ended {
    let measured = Measured { host: args.host(), spec, measurement, series: args.series };
    if args.iperf3_json {
        printed(output.verbatim(&json::to_string(&json::iperf3(&measured))))?;
    } else if args.csv {
        printed(output.verbatim(&csv::measured(&measured)))?;
    } else {
        args.page.result(
            output,
            || json::measured("measure", &measured),
            || charts_of_measured(&measured),
            |look| titled(args, text::measured(&measured, look)),
        )?;
    }
    Ok(if measurement.cancelled { Exit::Interrupted } else { Exit::Ok })
}

/// Text with the title in front of each line, as iperf3 has it.
fn titled(args: &MeasureArgs, text: String) -> String {
    let Some(title) = &args.title else { return text };
    let title = clean(title);
    text.lines().map(|line| format!("{}\n", format!("{title}:  {line}").trim_end())).collect()
}

/// A line per interval for a person who looks on.
fn live(args: &MeasureArgs, output: Output, progress: &Progress, largest: &mut Rate) {
    if output.tells_progress() {
        let seconds = |time: Duration| time.as_secs_f64();
        output.progress(
            "measure",
            &json!({
                "kind": "tick", "elapsed_s": seconds(progress.elapsed), "expected_s": progress.expected.map(seconds),
                "up_bps": progress.up_bps, "down_bps": progress.down_bps, "rtt_us": progress.rtt_us,
                "cwnd": progress.cwnd, "window": progress.window, "retransmissions": progress.retransmits,
            }),
        );
        return;
    }
    if args.iperf3_json || args.csv || !matches!(progress.phase, Phase::Running | Phase::Omitted) {
        return;
    }
    *largest = (*largest).max(progress.up_bps.max(progress.down_bps).unwrap_or_default());
    if args.interval.get() == 0 {
        return;
    }
    let columns = output.draws_progress().then(|| output.look().width);
    output.remark(&titled(args, text::interval(progress, *largest, columns)));
}

/// The size of a message of a paced sender: 10 ms of payload, from a segment to iperf3's own 128 KB. A larger one would come
/// in bursts that a path sees as a higher rate, and one of 1 MB is eight seconds at 1 Mbit/s.
fn paced_message(rate: Rate) -> Bytes {
    Bytes::new((rate.bps() / 8 / 100).clamp(DATAGRAM, IPERF3_MESSAGE.get()))
}

fn spec(args: &MeasureArgs) -> TestSpec {
    let usual = TestSpec::default();
    // One connection may not fill the path, and then nothing waits in its queues.
    let usual_streams = if args.latency_under_load { 4 } else { usual.streams };
    // What -k counts is a message of iperf3's, whatever is written at once here.
    let counted = args.length.unwrap_or(if args.udp { Bytes::new(DATAGRAM) } else { IPERF3_MESSAGE });
    let block = args.length.unwrap_or_else(|| match args.bitrate {
        _ if args.udp => Bytes::new(DATAGRAM),
        Some(Bitrate { rate, .. }) if rate.bps() > 0 => paced_message(rate),
        _ if args.blockcount.is_some() => counted,
        _ => usual.block,
    });
    let length = match (args.bytes, args.blockcount) {
        (Some(bytes), _) => Length::Bytes(bytes),
        (None, Some(count)) => Length::Bytes(Bytes::new(count.saturating_mul(counted.get()))),
        (None, None) => args.time.map_or(usual.length, |time| Length::Time(time.into())),
    };
    let asked = args.bitrate.map(|bitrate| bitrate.rate);
    let unlimited = asked.is_some_and(|rate| rate.bps() == 0);
    let pace = asked.or_else(|| args.udp.then(|| Rate::from_bps(DATAGRAM_RATE))).filter(|_| !unlimited);
    let direction = match (args.reverse, args.bidir) {
        (true, _) => TestDirection::Down,
        (_, true) => TestDirection::Both,
        _ => TestDirection::Up,
    };
    TestSpec {
        direction,
        streams: args.parallel.map_or(usual_streams, u32::from),
        length,
        omit: args.omit.map_or(if args.max { TRIALS } else { Duration::ZERO }, Duration::from),
        block,
        udp: args.udp.then_some(UdpSpec { counters_64bit: args.udp_counters_64bit }),
        copy: args.copy,
        congestion_control: args.congestion.clone(),
        send_buffer: args.window,
        receive_buffer: args.window,
        pace,
        burst: args.bitrate.map_or(0, |bitrate| bitrate.burst),
        max_pacing_rate: args.fq_rate,
        nodelay: args.no_delay,
        mss: args.set_mss,
        tos: args.tos.or(args.dscp),
        zerocopy: args.zerocopy,
        title: args.title.clone(),
        extra_data: args.extra_data.clone(),
        server_output: args.get_server_output,
        // Without interval lines a test is one interval.
        progress_every: if args.interval.get() == 0 { LONGEST } else { args.interval.into() },
        ..usual
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_messages_is_one_of_iperf3s() {
        let of = |words: &[&str]| {
            let words: Vec<_> =
                ["fullpipe", "measure", "far", "-k", "10"].iter().chain(words).map(Into::into).collect();
            let crate::args::Command::Measure(args) = crate::args::parse(&words).unwrap().command else {
                panic!("no measure")
            };
            let spec = spec(&args);
            (spec.length, spec.block.get())
        };
        let bytes = |count| Length::Bytes(Bytes::new(count));
        assert_eq!(of(&[]), (bytes(1_310_720), 131_072));
        assert_eq!(of(&["-l", "1000"]), (bytes(10_000), 1_000));
        assert_eq!(of(&["-b", "1M"]), (bytes(1_310_720), 1_448));
        assert_eq!(of(&["-u"]), (bytes(14_480), 1_448));
    }

    #[test]
    fn a_paced_sender_writes_small_messages() {
        let size = |bps| paced_message(Rate::from_bps(bps)).get();
        assert_eq!(
            [size(1), size(1_000_000), size(8_000_000), size(100_000_000), size(1_000_000_000)],
            [1_448, 1_448, 10_000, 125_000, 131_072]
        );
    }
}
