//! What a document tells of its transfers beyond rates: written by `check`, and read back by `what-if`, as are the
//! connections of `read`.

use std::fmt;

use fullpipe_diagnose::{End, Limiter, Transfer};
use fullpipe_tune::Direction;
use fullpipe_units::{Bytes, Micros, Rate};
use serde_json::{Value, json};

/// One transfer, as a document tells it.
#[derive(Clone, Debug)]
pub struct SeenTransfer {
    /// `a->b`.
    pub direction: String,
    /// Payload rate, without slow start where that is known apart.
    pub rate: Rate,
    /// What the path was seen to carry.
    pub path: Option<Rate>,
    /// What the judge expects without the limiter.
    pub attainable: Option<Rate>,
    /// Round-trip time without load.
    pub rtt: Option<Micros>,
    /// What limited it.
    pub limiter: Limiter,
    /// Segments with payload, and those of them that were retransmitted.
    pub segments: Option<(u64, u64)>,
    /// The path's largest packet.
    pub mtu: Option<u32>,
    /// The largest window that was offered.
    pub window: Option<Bytes>,
    /// The most in flight.
    pub in_flight: Option<Bytes>,
    /// Connections at once.
    pub streams: u64,
    /// Sender and receiver.
    pub ends: [SeenEnd; 2],
}

/// One end of it.
#[derive(Clone, Debug, Default)]
pub struct SeenEnd {
    /// Its platform, where it is known.
    pub platform: Option<String>,
    /// The platform is a guess.
    pub is_guess: bool,
    /// The window-scale option of its SYN, where that was seen.
    pub scale: Option<Option<u8>>,
}

/// Why a document tells of no transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenError {
    /// It is no JSON of ours.
    Document {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It has no transfers.
    Command {
        /// The file.
        file: String,
        /// The command that printed it.
        command: String,
    },
    /// It has none with this number or name.
    Missing {
        /// The file.
        file: String,
        /// What was asked for.
        what: String,
        /// What there is.
        there: String,
    },
}

impl fmt::Display for SeenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document { file, reason } => write!(
                f,
                "{file} is not a fullpipe document: {reason}; give what `fullpipe check HOST --json` or `fullpipe read \
                 FILE --json` printed"
            ),
            Self::Command { file, command } => write!(
                f,
                "{file} is the document of `{command}`, which has no transfer; give one of `check`, `tune` or `read`"
            ),
            Self::Missing { file, what, there } => write!(f, "{file} has no {what}; it has {there}"),
        }
    }
}

impl std::error::Error for SeenError {}

impl SeenTransfer {
    /// What a run of the loop saw of a direction; `None` where no kernel was read.
    pub fn from_direction(direction: &Direction) -> Option<Self> {
        let first = direction.transfers.first()?;
        let end = |end: &End| SeenEnd {
            platform: end.platform.clone(),
            is_guess: false,
            scale: end.syn.map(|syn| syn.window_scale),
        };
        let samples = || direction.transfers.iter().flat_map(|transfer| &transfer.sender_samples);
        let mss = samples().filter_map(|sample| sample.mss).max();
        let again =
            |again: u64| (direction.bytes.get().div_ceil(mss.map_or(1_448, |mss| mss.max(1)).into()) + again, again);
        Some(Self {
            direction: direction.name.clone(),
            rate: direction.steady_bps.unwrap_or(direction.rate_bps),
            path: first.path_rate.map(|path| path.rate_bps),
            attainable: direction.diagnosis.attainable_bps,
            rtt: direction.rtt_us,
            limiter: direction.diagnosis.limiter,
            segments: direction.retransmits.map(again),
            mtu: first.path_mtu,
            window: offered(&direction.transfers),
            in_flight: samples().filter_map(|sample| sample.in_flight).max(),
            streams: direction.transfers.len() as u64,
            ends: [end(&first.sender), end(&first.receiver)],
        })
    }
}

/// What of a direction's connections a prediction needs, for JSON; `null` where no kernel was read.
pub(super) fn seen(direction: &Direction) -> Value {
    let Some(first) = direction.transfers.first() else { return Value::Null };
    let samples = || direction.transfers.iter().flat_map(|transfer| &transfer.sender_samples);
    let mss = samples().filter_map(|sample| sample.mss).max();
    json!({
        "streams": direction.transfers.len(),
        "path_bps": first.path_rate.map(|path| path.rate_bps),
        "path_mtu": first.path_mtu,
        "mss": mss,
        "in_flight_bytes": samples().filter_map(|sample| sample.in_flight).max(),
        "offered_window_bytes": offered(&direction.transfers),
        "ends": [end("sender", &first.sender), end("receiver", &first.receiver)],
    })
}

fn offered(transfers: &[Transfer]) -> Option<Bytes> {
    let by_sender = transfers.iter().flat_map(|transfer| &transfer.sender_samples).filter_map(|s| s.offered_window);
    let by_receiver = transfers.iter().flat_map(|transfer| &transfer.receiver_samples).filter_map(|s| s.offered_window);
    by_sender.max().or_else(|| by_receiver.max())
}

fn end(role: &str, end: &End) -> Value {
    json!({
        "role": role,
        "name": end.name,
        "platform": end.platform,
        "syn_seen": end.syn.is_some(),
        "window_scale": end.syn.and_then(|syn| syn.window_scale),
        "send_buffer_bytes": end.send_buffer.map(|buffer| buffer.largest),
        "receive_buffer_bytes": end.receive_buffer.map(|buffer| buffer.largest),
    })
}

/// The transfers that a document tells of: all directions of a run of the loop (or the one named), or the main direction of
/// one captured connection (`conn`, else the first).
///
/// # Errors
/// It is no such document, or has no such transfer.
pub fn read_seen(
    file: &str,
    bytes: &[u8],
    conn: Option<u64>,
    direction: Option<&str>,
) -> Result<Vec<SeenTransfer>, SeenError> {
    let wrong = |reason: String| SeenError::Document { file: file.to_owned(), reason };
    let whole: Value = serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
    let schema = whole["schema"].as_str().unwrap_or_default();
    if !schema.starts_with("fullpipe/") {
        return Err(wrong("its key \"schema\" is not \"fullpipe/...\"".to_owned()));
    }
    let missing = |what: String, there: String| SeenError::Missing { file: file.to_owned(), what, there };
    if let Some(connections) = whole["connections"].as_array().filter(|_| whole["command"] == "read") {
        let number = |one: &Value| one["number"].as_u64();
        let numbers: Vec<String> = connections.iter().filter_map(number).map(|n| n.to_string()).collect();
        let found = connections.iter().find(|one| conn.is_none_or(|asked| number(one) == Some(asked)));
        let what = conn.map_or_else(|| "connection".to_owned(), |asked| format!("connection {asked}"));
        let there = if numbers.is_empty() { "none".to_owned() } else { numbers.join(", ") };
        let found = found.and_then(captured).ok_or_else(|| missing(what, there))?;
        return Ok(vec![found]);
    }
    let Some(transfers) = whole["transfers"].as_array() else {
        let command = whole["command"].as_str().unwrap_or("?").to_owned();
        return Err(SeenError::Command { file: file.to_owned(), command });
    };
    let all: Vec<SeenTransfer> = transfers.iter().filter_map(measured).collect();
    let names = all.iter().map(|one| one.direction.clone()).collect::<Vec<_>>().join(", ");
    let there = if names.is_empty() { "none".to_owned() } else { names };
    let wanted = |one: &SeenTransfer| direction.is_none_or(|asked| one.direction == asked);
    let found: Vec<SeenTransfer> = all.into_iter().filter(wanted).collect();
    if found.is_empty() {
        let what = direction.map_or_else(|| "transfer".to_owned(), |asked| format!("direction {asked}"));
        return Err(missing(what, there));
    }
    Ok(found)
}

fn rate(value: &Value) -> Option<Rate> {
    value.as_u64().map(Rate::from_bps)
}

fn size(value: &Value) -> Option<Bytes> {
    value.as_u64().map(Bytes::new)
}

fn time(value: &Value) -> Option<Micros> {
    value.as_u64().map(Micros::new)
}

fn limiter(value: &Value) -> Limiter {
    serde_json::from_value(value.clone()).unwrap_or(Limiter::InsufficientEvidence)
}

/// Segments of `mss` in so many bytes, and those retransmitted.
fn segments(bytes: &Value, mss: Option<u64>, again: &Value) -> Option<(u64, u64)> {
    let again = again.as_u64()?;
    Some((bytes.as_u64()?.div_ceil(mss.unwrap_or(1_448).max(1)).saturating_add(again), again))
}

fn shift(value: &Value) -> Option<u8> {
    value.as_u64().map(|shift| shift.min(14) as u8)
}

fn measured(one: &Value) -> Option<SeenTransfer> {
    let (seen, diagnosis) = (&one["seen"], &one["diagnosis"]);
    let mss = seen["mss"].as_u64();
    let end = |end: &Value| SeenEnd {
        platform: end["platform"].as_str().map(str::to_owned),
        is_guess: false,
        scale: (end["syn_seen"] == true).then(|| shift(&end["window_scale"])),
    };
    Some(SeenTransfer {
        direction: one["direction"].as_str()?.to_owned(),
        rate: rate(&one["steady_bps"]).or_else(|| rate(&one["rate_bps"]))?,
        path: rate(&seen["path_bps"]),
        attainable: rate(&diagnosis["attainable_bps"]),
        rtt: time(&one["rtt_us"]),
        limiter: limiter(&diagnosis["limiter"]),
        segments: segments(&one["bytes"], mss, one.get("retransmissions").unwrap_or_else(|| &one["retransmits"])),
        mtu: seen["path_mtu"].as_u64().and_then(|mtu| u32::try_from(mtu).ok()),
        window: size(&seen["offered_window_bytes"]),
        in_flight: size(&seen["in_flight_bytes"]),
        streams: seen["streams"].as_u64().unwrap_or(1),
        ends: [end(&seen["ends"][0]), end(&seen["ends"][1])],
    })
}

fn captured(one: &Value) -> Option<SeenTransfer> {
    let direction = one["direction"].as_str()?;
    let (sender, receiver) = direction.split_once("->")?;
    let (side, other) = (&one["sides"][sender], &one["sides"][receiver]);
    let end = |side: &Value| SeenEnd {
        platform: side["platform"].as_str().map(str::to_owned),
        is_guess: true,
        scale: side["syn"].as_object().map(|syn| syn.get("window_scale").and_then(shift)),
    };
    let mss = side["mss"].as_u64().filter(|mss| *mss > 0);
    Some(SeenTransfer {
        direction: direction.to_owned(),
        rate: rate(&side["rate_bps"]).or_else(|| rate(&one["rate_bps"]))?,
        path: None,
        attainable: rate(&one["diagnosis"]["attainable_bps"]),
        rtt: time(&one["rtt_us"]),
        limiter: limiter(&one["diagnosis"]["limiter"]),
        segments: side["data_packets"].as_u64().zip(side["retransmissions"].as_u64()),
        mtu: mss.and_then(|mss| u32::try_from(mss.saturating_add(52)).ok()),
        window: size(&side["offered_to_it"]),
        in_flight: None,
        streams: 1,
        ends: [end(side), end(other)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json, sample};

    #[test]
    fn what_a_run_of_the_loop_tells_is_read_back() {
        let text = json::to_string(&json::outcome("check", &sample::demo()));
        let seen = read_seen("x", text.as_bytes(), None, None).unwrap();
        let first = &seen[0];
        assert_eq!(first.direction, "a->b");
        let before = text.replace("\"retransmissions\"", "\"retransmits\"").replace("fullpipe/2", "fullpipe/1");
        assert_eq!(read_seen("x", before.as_bytes(), None, None).unwrap()[0].segments, first.segments);
        assert!(first.segments.is_some());
        assert_eq!((first.window, first.in_flight), (Some(Bytes::new(64_512)), Some(Bytes::new(64_000))));
        assert_eq!(first.ends[0].platform.as_deref(), Some("linux-6.18.44"));
        assert_eq!(first.ends[1].scale, Some(Some(0)));
        let one = read_seen("x", text.as_bytes(), None, Some(&first.direction)).unwrap();
        assert_eq!(one.len(), 1);
        let error = read_seen("x", text.as_bytes(), None, Some("c->d")).unwrap_err().to_string();
        assert!(error.starts_with("x has no direction c->d; it has "), "{error}");
    }

    #[test]
    fn a_captured_connection_is_read_back() {
        let text = json::to_string(&json::captures("read", &sample::captures()));
        let seen = read_seen("x", text.as_bytes(), Some(1), None).unwrap();
        let [one] = seen.as_slice() else { panic!("{seen:?}") };
        assert_eq!(one.limiter, Limiter::ReceiveWindow);
        assert!(one.rtt.is_some() && one.window.is_some() && one.segments.is_some(), "{one:?}");
        let error = read_seen("x", text.as_bytes(), Some(9), None).unwrap_err().to_string();
        assert_eq!(error, "x has no connection 9; it has 1");
    }

    #[test]
    fn captures_are_written_one_by_one_as_they_are_together() {
        let list = sample::captures();
        let mut written = Vec::new();
        json::write(&json::Captures::new("read", &list), &mut written).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), json::to_string(&json::captures("read", &list)));
    }

    #[test]
    fn what_is_no_such_document_says_what_is() {
        for (text, starts) in [
            ("", "x is not a fullpipe document: EOF"),
            ("{}", "x is not a fullpipe document: its key \"schema\""),
            (r#"{"schema": "fullpipe/1", "command": "lint"}"#, "x is the document of `lint`"),
            (r#"{"schema": "fullpipe/1", "command": "check", "transfers": []}"#, "x has no transfer; it has none"),
            (r#"{"schema": "fullpipe/1", "command": "read", "connections": [{"number": 3}]}"#, "x has no connection"),
        ] {
            let error = read_seen("x", text.as_bytes(), None, None).unwrap_err().to_string();
            assert!(error.starts_with(starts), "{error}");
        }
    }
}
