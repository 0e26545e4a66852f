//! A series of samples in few bytes: one column per field, each value as the difference from the one before.
//!
//! `{"n": 3, "columns": {"at_us": [0, [10000, 2]], "lost": [[null, 3]]}}`: an item is a difference, `null` where the
//! value is absent, or `[item, times]` for a run of equal ones. The first difference is from zero. A column that is
//! absent throughout is left out. Most columns of a steady transfer are one run.

use fullpipe_diagnose::{CongestionState, ReceiverSample, SenderSample};
use fullpipe_units::{Bytes, Micros, Rate};
use serde_json::{Map, Value, json};

/// The longest series that is accepted.
const MAX_SAMPLES: usize = 8_192;

/// One field of a sample, by name.
pub(crate) struct Column<S> {
    name: &'static str,
    read: fn(&S) -> Option<u64>,
    write: fn(&mut S, Option<u64>),
}

/// A kind of sample that can travel.
pub(crate) trait Sampled: Default + Clone + 'static {
    const COLUMNS: &'static [Column<Self>];
}

pub(crate) fn encode<S: Sampled>(samples: &[S]) -> Value {
    let mut columns = Map::new();
    for column in S::COLUMNS {
        if samples.iter().any(|sample| (column.read)(sample).is_some()) {
            columns.insert(column.name.to_owned(), encode_column(samples.iter().map(column.read)));
        }
    }
    json!({ "n": samples.len(), "columns": columns })
}

/// `None` where the text is no series; columns that we don't know are ignored.
pub(crate) fn decode<S: Sampled>(value: &Value) -> Option<Vec<S>> {
    let n = usize::try_from(value.get("n")?.as_u64()?).ok().filter(|&n| n <= MAX_SAMPLES)?;
    let mut samples = vec![S::default(); n];
    let columns = value.get("columns")?.as_object()?;
    for column in S::COLUMNS {
        let Some(items) = columns.get(column.name) else { continue };
        decode_column(items, &mut samples, column.write)?;
    }
    Some(samples)
}

fn encode_column(values: impl Iterator<Item = Option<u64>>) -> Value {
    let mut runs: Vec<(Option<i64>, u64)> = Vec::new();
    let mut last = 0;
    for value in values {
        let difference = value.map(|value| {
            // No counter of the kernel comes near 2^63.
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            let difference = value - last;
            last = value;
            difference
        });
        match runs.last_mut() {
            Some((item, times)) if *item == difference => *times += 1,
            _ => runs.push((difference, 1)),
        }
    }
    runs.into_iter().map(|(item, times)| if times == 1 { json!(item) } else { json!([item, times]) }).collect()
}

fn decode_column<S>(items: &Value, samples: &mut [S], write: fn(&mut S, Option<u64>)) -> Option<()> {
    let mut samples = samples.iter_mut();
    let mut last = 0i64;
    for item in items.as_array()? {
        let (item, times) = match item.as_array().map(Vec::as_slice) {
            Some([item, times]) => (item, usize::try_from(times.as_u64()?).ok().filter(|&t| t <= MAX_SAMPLES)?),
            Some(_) => return None,
            None => (item, 1),
        };
        let difference = if item.is_null() { None } else { Some(item.as_i64()?) };
        for _ in 0..times {
            if let Some(difference) = difference {
                last = last.checked_add(difference)?;
            }
            let value = difference.and_then(|_| u64::try_from(last).ok());
            write(samples.next()?, value);
        }
    }
    // A column shorter than the series would mean that the two disagree.
    samples.next().is_none().then_some(())
}

/// One line per field; the functions convert between the field's type and a number.
macro_rules! columns {
    ($($name:ident: $kind:ident),* $(,)?) => {
        &[$(Column {
            name: stringify!($name),
            read: |sample| columns!(@read $kind sample.$name),
            write: |sample, value| columns!(@write $kind sample.$name, value),
        }),*]
    };
    (@read at $field:expr) => { Some($field.get()) };
    (@write at $field:expr, $value:expr) => { $field = Micros::new($value.unwrap_or(0)) };
    (@read total $field:expr) => { Some($field.get()) };
    (@write total $field:expr, $value:expr) => { $field = Bytes::new($value.unwrap_or(0)) };
    (@read bytes $field:expr) => { $field.map(Bytes::get) };
    (@write bytes $field:expr, $value:expr) => { $field = $value.map(Bytes::new) };
    (@read time $field:expr) => { $field.map(Micros::get) };
    (@write time $field:expr, $value:expr) => { $field = $value.map(Micros::new) };
    (@read rate $field:expr) => { $field.map(Rate::bps) };
    (@write rate $field:expr, $value:expr) => { $field = $value.map(Rate::from_bps) };
    (@read word $field:expr) => { $field.map(u64::from) };
    (@write word $field:expr, $value:expr) => { $field = $value.and_then(|n| u32::try_from(n).ok()) };
    (@read count $field:expr) => { $field };
    (@write count $field:expr, $value:expr) => { $field = $value };
    (@read flag $field:expr) => { $field.map(u64::from) };
    (@write flag $field:expr, $value:expr) => { $field = $value.map(|n| n != 0) };
    (@read state $field:expr) => { $field.map(state_number) };
    (@write state $field:expr, $value:expr) => { $field = $value.and_then(state_named) };
}

impl Sampled for SenderSample {
    const COLUMNS: &'static [Column<Self>] = columns! {
        at_us: at, acked: total, in_flight: bytes, not_sent: bytes, offered_window: bytes, cwnd: bytes, ssthresh: bytes,
        mss: word, rtt_us: time, min_rtt_us: time, retransmits: count, retransmitted: bytes, timeouts: count, lost: word,
        reordering_seen: word, dsacks: word, delivered_ce: word, delivery_rate_bps: rate, delivery_app_limited: flag,
        pacing_rate_bps: rate, congestion_state: state, busy_us: time, rwnd_limited_us: time, sndbuf_limited_us: time,
        send_buffer: bytes, send_queued: bytes, rtt_var_us: time, path_mtu: word,
        heard: word,
    };
}

impl Sampled for ReceiverSample {
    const COLUMNS: &'static [Column<Self>] = columns! {
        at_us: at, received: total, offered_window: bytes, unread: bytes, out_of_order: word, receive_buffer: bytes,
        receive_space: bytes,
    };
}

/// In the kernel's order (`enum tcp_ca_state`), which [`state_named`] also serves.
const CONGESTION_STATES: [CongestionState; 5] = [
    CongestionState::Open,
    CongestionState::Disorder,
    CongestionState::CwndReduced,
    CongestionState::Recovery,
    CongestionState::Loss,
];

fn state_number(state: CongestionState) -> u64 {
    CONGESTION_STATES.iter().zip(0..).find(|(known, _)| **known == state).map_or(0, |(_, number)| number)
}

/// The state that the kernel numbers so.
pub(crate) fn state_named(number: u64) -> Option<CongestionState> {
    CONGESTION_STATES.get(usize::try_from(number).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sender_sample() -> impl Strategy<Value = SenderSample> {
        let optional = || proptest::option::of(0u64..1 << 50);
        let words = proptest::option::of(any::<u32>());
        (0u64..1 << 40, 0u64..1 << 50, [optional(), optional(), optional()], words, 0u64..6, any::<bool>()).prop_map(
            |(at, acked, [a, b, c], word, state, flag)| SenderSample {
                at_us: Micros::new(at),
                acked: Bytes::new(acked),
                in_flight: a.map(Bytes::new),
                rtt_us: b.map(Micros::new),
                retransmits: c,
                lost: word,
                delivery_rate_bps: b.map(Rate::from_bps),
                delivery_app_limited: a.map(|_| flag),
                congestion_state: state_named(state),
                ..SenderSample::default()
            },
        )
    }

    proptest! {
        #[test]
        fn a_series_survives_the_wire(samples in proptest::collection::vec(sender_sample(), 0..50)) {
            let text = encode(&samples).to_string();
            prop_assert_eq!(decode::<SenderSample>(&serde_json::from_str(&text).unwrap()), Some(samples));
        }

        #[test]
        fn no_foreign_column_panics(items in "[\\[\\],null0-9-]{0,60}") {
            let text = format!("{{\"n\":3,\"columns\":{{\"received\":[{items}]}}}}");
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                drop(decode::<ReceiverSample>(&value));
            }
        }
    }

    #[test]
    fn a_steady_column_is_one_run() {
        let sample = |at| ReceiverSample { at_us: Micros::new(at), unread: Some(Bytes::ZERO), ..Default::default() };
        let samples: Vec<_> = (0..1_000).map(|i| sample(i * 10_000)).collect();
        let text = encode(&samples).to_string();
        assert!(text.len() < 200, "{text}");
    }

    #[test]
    fn a_series_that_announces_more_than_it_has_or_may_is_refused() {
        for text in [
            r#"{"n": 9000000000, "columns": {}}"#,
            r#"{"n": 3, "columns": {"received": [1]}}"#,
            r#"{"n": 1, "columns": {"received": [[1, 99999999999]]}}"#,
            r#"{"n": 1, "columns": {"received": [9223372036854775807, 9223372036854775807]}}"#,
            r#"{"n": 2, "columns": {"received": "x"}}"#,
        ] {
            assert_eq!(decode::<ReceiverSample>(&serde_json::from_str(text).unwrap()), None, "{text}");
        }
    }
}
