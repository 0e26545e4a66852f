//! The results of a test: client to server, then server to client.

use serde_json::{Map, Value, json};

use super::number;
use crate::udp::Datagrams;

/// Of the server's output; each line is cut, too.
const MOST_LINES: usize = 10_000;

/// One end's figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Results {
    /// Percent of the wall time.
    pub(crate) cpu_total: f64,
    pub(crate) cpu_user: f64,
    pub(crate) cpu_system: f64,
    /// `None` where this end only receives.
    pub(crate) sender_has_retransmits: Option<bool>,
    pub(crate) congestion_used: Option<String>,
    pub(crate) streams: Vec<StreamResult>,
    /// What the server would print, where the client asked for it.
    pub(crate) server_output: Option<String>,
    /// What travels under the key `fullpipe`.
    pub(crate) ours: Option<Value>,
}

/// One stream, as one end saw it after the omitted time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StreamResult {
    pub(crate) id: u32,
    pub(crate) bytes: u64,
    /// `None` for a receiver.
    pub(crate) retransmits: Option<u64>,
    /// Seconds; absent before iperf3 3.2.
    pub(crate) seconds: Option<f64>,
    /// Of a test with datagrams; zeros where the stream was none.
    pub(crate) datagrams: Datagrams,
}

impl Results {
    pub(crate) fn to_json(&self) -> Value {
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| drop(map.insert(key.to_owned(), value));
        put("cpu_util_total", json!(self.cpu_total));
        put("cpu_util_user", json!(self.cpu_user));
        put("cpu_util_system", json!(self.cpu_system));
        put("sender_has_retransmits", json!(self.sender_has_retransmits.map_or(-1, i32::from)));
        if let Some(name) = &self.congestion_used {
            put("congestion_used", json!(name));
        }
        put("streams", Value::Array(self.streams.iter().map(StreamResult::to_json).collect()));
        if let Some(text) = &self.server_output {
            put("server_output_text", json!(text));
        }
        if let Some(ours) = &self.ours {
            put("fullpipe", ours.clone());
        }
        Value::Object(map)
    }

    /// Takes what is there; only the streams are needed.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let percent = |key| number::float(value.get(key)).unwrap_or(0.0);
        let congestion = value.get("congestion_used").and_then(Value::as_str).map(crate::error::clean);
        Some(Self {
            cpu_total: percent("cpu_util_total"),
            cpu_user: percent("cpu_util_user"),
            cpu_system: percent("cpu_util_system"),
            sender_has_retransmits: number::count(value.get("sender_has_retransmits")).map(|n| n != 0),
            congestion_used: congestion.filter(|name| !name.is_empty()),
            streams: value.get("streams")?.as_array()?.iter().filter_map(StreamResult::from_json).collect(),
            server_output: server_output(value),
            ours: value.get("fullpipe").cloned(),
        })
    }

    pub(crate) fn stream(&self, id: u32) -> Option<&StreamResult> {
        self.streams.iter().find(|stream| stream.id == id)
    }
}

/// A real server sends text, or an object where it prints JSON itself.
fn server_output(value: &Value) -> Option<String> {
    if let Some(text) = value.get("server_output_text").and_then(Value::as_str) {
        let lines = text.lines().take(MOST_LINES).map(crate::error::clean);
        return Some(lines.collect::<Vec<_>>().join("\n"));
    }
    value.get("server_output_json").map(ToString::to_string)
}

impl StreamResult {
    fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "bytes": self.bytes,
            "retransmits": self.retransmits.and_then(|n| i64::try_from(n).ok()).unwrap_or(-1),
            "jitter": self.datagrams.jitter_us.unwrap_or(0.0) / 1e6,
            "errors": self.datagrams.lost,
            "omitted_errors": 0,
            "packets": self.datagrams.packets,
            "omitted_packets": 0,
            "start_time": 0,
            "end_time": self.seconds.unwrap_or(0.0),
        })
    }

    fn from_json(value: &Value) -> Option<Self> {
        let start = number::float(value.get("start_time")).unwrap_or(0.0);
        let net = |all, omitted| {
            let all = number::count(value.get(all)).unwrap_or(0);
            all.saturating_sub(number::count(value.get(omitted)).unwrap_or(0))
        };
        let datagrams = Datagrams {
            packets: net("packets", "omitted_packets"),
            lost: net("errors", "omitted_errors"),
            out_of_order: None,
            jitter_us: number::float(value.get("jitter")).map(|s| s * 1e6).filter(|us| *us >= 0.0),
        };
        Some(Self {
            datagrams,
            id: u32::try_from(number::count(value.get("id"))?).ok()?,
            bytes: number::count(value.get("bytes")).unwrap_or(0),
            retransmits: number::count(value.get("retransmits")),
            seconds: number::float(value.get("end_time")).map(|end| end - start).filter(|&s| s > 0.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_old_peer_is_understood() {
        let value = json!({"cpu_util_total": 1.5, "cpu_util_user": 0.5, "cpu_util_system": 1,
            "sender_has_retransmits": 18_446_744_073_709_551_615_u64,
            "streams": [{"id": 1, "bytes": 1e10, "retransmits": 18_446_744_073_709_551_615_u64, "jitter": 0,
                "errors": 0, "packets": 0}]});
        let results = Results::from_json(&value).unwrap();
        assert_eq!(results.sender_has_retransmits, None);
        let stream = StreamResult {
            id: 1,
            bytes: 10_000_000_000,
            retransmits: None,
            seconds: None,
            datagrams: Datagrams { jitter_us: Some(0.0), ..Datagrams::default() },
        };
        assert_eq!(results.streams, [stream]);
    }

    #[test]
    fn results_without_streams_are_none() {
        assert_eq!(Results::from_json(&json!({"cpu_util_total": 1})), None);
        assert_eq!(Results::from_json(&json!(7)), None);
    }

    proptest! {
        #[test]
        fn results_survive_the_wire(id in 1u32..300, bytes in 0u64..1 << 50,
            retransmits in proptest::option::of(0u64..1 << 40), seconds in proptest::option::of(0.1f64..1e5),
            has in proptest::option::of(any::<bool>())) {
            let results = Results { sender_has_retransmits: has,
                streams: vec![StreamResult { id, bytes, retransmits, seconds, ..StreamResult::default() }], ..Results::default() };
            let text = results.to_json().to_string();
            let read = Results::from_json(&serde_json::from_str(&text).unwrap()).unwrap();
            prop_assert_eq!(read.streams[0].seconds.is_some(), seconds.is_some());
            prop_assert_eq!((read.streams[0].id, read.streams[0].bytes, read.streams[0].retransmits),
                (id, bytes, retransmits));
            prop_assert_eq!(read.sender_has_retransmits, has);
        }
    }
}
