//! What `measure` found in the layout of iperf3's own `-J` (3.12), so that what reads that reads this.
//!
//! What fullpipe does not know as iperf3 does is left out or zero: the number of a socket, and on systems whose kernels don't tell
//! it, a variance of round trips or a path MTU.

use std::{net::SocketAddr, time::SystemTime};

use fullpipe_diagnose::{SenderSample, Transfer};
use fullpipe_measure::{Counted, Direction, DirectionMeasurement, Length, Measurement, system};
use fullpipe_units::{Bytes, Micros};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::measured::{Interval, Measured, intervals, of_transfer, sent};

/// iperf3 numbers sockets; ours count from here.
const FIRST_SOCKET: usize = 5;

/// The document.
pub fn iperf3(measured: &Measured<'_>) -> Value {
    let measurement = measured.measurement;
    json!({ "start": start(measured), "intervals": all_intervals(measured), "end": end(measurement) })
}

fn start(measured: &Measured<'_>) -> Value {
    let (spec, measurement) = (measured.spec, measured.measurement);
    let (duration, bytes) = match spec.length {
        Length::Time(time) => (time.as_secs_f64(), 0),
        Length::Bytes(bytes) => (0.0, bytes.get()),
    };
    let has = |wanted| measurement.directions.iter().any(|direction| direction.direction == wanted);
    let connected = sockets(measurement).zip(measurement.local_ends.iter().map(Some).chain(std::iter::repeat(None)));
    let connected = connected.map(|((socket, _, _), local)| {
        json!({
            "socket": socket,
            "local_host": local.map_or_else(String::new, |local| local.ip().to_string()),
            "local_port": local.map_or(0, SocketAddr::port),
            "remote_host": measurement.peer.ip().to_string(),
            "remote_port": measurement.peer.port(),
        })
    });
    json!({
        "connected": connected.collect::<Vec<_>>(),
        "version": concat!("fullpipe ", env!("CARGO_PKG_VERSION")),
        "system_info": system(),
        "timestamp": timestamp(measurement.started),
        "cookie": measurement.cookie,
        "connecting_to": { "host": measured.host, "port": measurement.peer.port() },
        "title": spec.title,
        "extra_data": spec.extra_data,
        "tcp_mss_default": spec.mss.unwrap_or(0),
        "sock_bufsize": spec.send_buffer.map_or(0, Bytes::get),
        "target_bitrate": spec.pace.map_or(0, fullpipe_units::Rate::bps),
        "test_start": {
            "protocol": if spec.udp.is_some() { "UDP" } else { "TCP" },
            "num_streams": spec.streams,
            "blksize": spec.block,
            "omit": spec.omit.as_secs_f64(),
            "duration": duration,
            "bytes": bytes,
            "blocks": 0,
            "reverse": i32::from(has(Direction::Down) && !has(Direction::Up)),
            "bidir": i32::from(has(Direction::Down) && has(Direction::Up)),
            "tos": spec.tos.unwrap_or(0),
            "target_bitrate": spec.pace.map_or(0, fullpipe_units::Rate::bps),
        },
    })
}

/// `Thu, 01 Jan 2026 00:00:00 GMT`, and as seconds since 1970.
fn timestamp(started: SystemTime) -> Value {
    let time = Timestamp::try_from(started).unwrap_or_default();
    json!({ "time": time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string(), "timesecs": time.as_second() })
}

/// Every connection with its number; of datagrams there are none.
fn sockets(measurement: &Measurement) -> impl Iterator<Item = (usize, &DirectionMeasurement, Connection<'_>)> {
    let all = measurement.directions.iter().flat_map(|d| d.transfers.iter().zip(&d.counted).map(move |one| (d, one)));
    all.enumerate().map(|(index, (direction, one))| (FIRST_SOCKET + index, direction, one))
}

/// A connection, and what counts of it.
type Connection<'a> = (&'a Transfer, &'a Counted);

/// In iperf3's words: the client is the sender of what goes up.
fn sends(direction: &DirectionMeasurement) -> bool {
    direction.direction == Direction::Up
}

/// With both directions at once the sums of what comes down have another name.
fn key(name: &str, direction: &DirectionMeasurement, measurement: &Measurement) -> String {
    let is_second = measurement.directions.len() > 1 && direction.direction == Direction::Down;
    if is_second { format!("{name}_bidir_reverse") } else { name.to_owned() }
}

fn all_intervals(measured: &Measured<'_>) -> Vec<Value> {
    let every = Micros::from(measured.spec.progress_every);
    let measurement = measured.measurement;
    let of_sockets: Vec<_> = sockets(measurement)
        .map(|(socket, direction, (transfer, _))| {
            (socket, direction, of_transfer(transfer, direction.omitted_us, every))
        })
        .collect();
    let sums: Vec<_> = measurement.directions.iter().map(|d| (d, intervals(d, every))).collect();
    let count = sums.iter().map(|(_, intervals)| intervals.len()).max().unwrap_or(0);
    (0..count)
        .map(|index| {
            let streams = of_sockets.iter().filter_map(|(socket, direction, intervals)| {
                let mut stream = figures(intervals.get(index)?, direction);
                stream.insert("socket".to_owned(), json!(socket));
                Some(Value::Object(stream))
            });
            let mut value = Map::new();
            value.insert("streams".to_owned(), streams.collect());
            for (direction, intervals) in &sums {
                let Some(interval) = intervals.get(index) else { continue };
                let sum = figures(interval, direction);
                value.insert(key("sum", direction, measurement), Value::Object(sum));
            }
            Value::Object(value)
        })
        .collect()
}

fn figures(interval: &Interval, direction: &DirectionMeasurement) -> Map<String, Value> {
    let sender = sends(direction);
    // iperf3's clock starts again where the omitted time ends.
    let zero = if interval.omitted { 0 } else { direction.omitted_us.get() };
    let [from, to] = [interval.from_us, interval.to_us].map(|us| us.saturating_sub(zero) as f64 / 1e6);
    let mut map = span(from, to, interval.bytes, sender);
    map.insert("omitted".to_owned(), json!(interval.omitted));
    if let Some(packets) = interval.packets {
        // Those that were lost had been sent.
        let packets = packets.saturating_add(interval.lost.unwrap_or(0));
        map.insert("packets".to_owned(), json!(packets));
        if let Some(lost) = interval.lost.filter(|_| !sender) {
            let share = lost as f64 / packets.max(1) as f64;
            map.insert("jitter_ms".to_owned(), json!(interval.jitter_us.unwrap_or(0.0) / 1e3));
            map.insert("lost_packets".to_owned(), json!(lost));
            map.insert("lost_percent".to_owned(), json!(share * 100.0));
        }
    } else if sender {
        map.insert("retransmits".to_owned(), json!(interval.retransmits.unwrap_or(0)));
        map.insert("snd_cwnd".to_owned(), json!(interval.cwnd.map_or(0, Bytes::get)));
        map.insert("snd_wnd".to_owned(), json!(interval.window.map_or(0, Bytes::get)));
        map.insert("rtt".to_owned(), json!(interval.rtt_us.map_or(0, Micros::get)));
        map.insert("rttvar".to_owned(), json!(interval.rtt_var_us.map_or(0, Micros::get)));
        map.insert("pmtu".to_owned(), json!(interval.path_mtu.unwrap_or(0)));
    }
    map
}

fn span(from: f64, to: f64, bytes: u64, sender: bool) -> Map<String, Value> {
    let seconds = to - from;
    let rate = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    let value = json!({
        "start": from, "end": to, "seconds": seconds, "bytes": bytes, "bits_per_second": rate, "sender": sender,
    });
    value.as_object().cloned().unwrap_or_default()
}

fn end(measurement: &Measurement) -> Value {
    let mut end = Map::new();
    let streams: Vec<Value> = sockets(measurement).map(stream).collect();
    end.insert("streams".to_owned(), json!(streams));
    for direction in &measurement.directions {
        let mut sum = |name: &str, value| end.insert(key(name, direction, measurement), Value::Object(value));
        let mut sent = span(0.0, direction.seconds, sent(direction), sends(direction));
        let mut received = span(0.0, direction.seconds, direction.bytes.get(), sends(direction));
        if let Some(datagrams) = direction.datagrams {
            for part in [&mut sent, &mut received] {
                part.insert("jitter_ms".to_owned(), json!(datagrams.jitter_us.unwrap_or(0.0) / 1e3));
                part.insert("lost_packets".to_owned(), json!(datagrams.lost));
                part.insert("packets".to_owned(), json!(datagrams.packets));
                part.insert("lost_percent".to_owned(), json!(datagrams.loss().unwrap_or(0.0) * 100.0));
            }
            drop(sum("sum", received.clone()));
        } else {
            sent.insert("retransmits".to_owned(), json!(direction.retransmits));
        }
        drop(sum("sum_sent", sent));
        drop(sum("sum_received", received));
    }
    let (own, far) = (measurement.own_cpu, measurement.far_cpu.unwrap_or_default());
    end.insert(
        "cpu_utilization_percent".to_owned(),
        json!({
            "host_total": own.percent(), "host_user": own.user_percent, "host_system": own.system_percent,
            "remote_total": far.percent(), "remote_user": far.user_percent, "remote_system": far.system_percent,
        }),
    );
    let first = measurement.directions.iter().find_map(|direction| direction.transfers.first());
    if let Some(transfer) = first {
        end.insert("sender_tcp_congestion".to_owned(), json!(transfer.sender.congestion_control));
        end.insert("receiver_tcp_congestion".to_owned(), json!(transfer.receiver.congestion_control));
    }
    Value::Object(end)
}

fn stream((socket, direction, (transfer, counted)): (usize, &DirectionMeasurement, Connection<'_>)) -> Value {
    let seconds = counted.duration_us.as_secs_f64();
    let mut sender = span(0.0, seconds, counted.sent.get(), sends(direction));
    let mut receiver = span(0.0, seconds, counted.bytes.get(), sends(direction));
    for part in [&mut sender, &mut receiver] {
        part.insert("socket".to_owned(), json!(socket));
    }
    let samples = || transfer.sender_samples.iter().filter(|sample| sample.at_us >= direction.omitted_us);
    let of = |field: fn(&SenderSample) -> Option<u64>| samples().filter_map(field);
    let rtts: Vec<u64> = of(|sample| sample.rtt_us.map(Micros::get)).collect();
    let mean = rtts.iter().sum::<u64>() / (rtts.len() as u64).max(1);
    let numbers = [
        ("retransmits", counted.retransmits.unwrap_or(0)),
        ("max_snd_cwnd", of(|sample| sample.cwnd.map(Bytes::get)).max().unwrap_or(0)),
        ("max_snd_wnd", of(|sample| sample.offered_window.map(Bytes::get)).max().unwrap_or(0)),
        ("max_rtt", rtts.iter().copied().max().unwrap_or(0)),
        ("min_rtt", rtts.iter().copied().min().unwrap_or(0)),
        ("mean_rtt", mean),
    ];
    sender.extend(numbers.into_iter().map(|(name, number)| (name.to_owned(), json!(number))));
    json!({ "sender": sender, "receiver": receiver })
}
