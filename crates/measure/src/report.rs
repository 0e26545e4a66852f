//! One end's account of a test, which also travels to the other end under the key `fullpipe` of the results.

use fullpipe_diagnose::{Buffer, ReceiverSample, SenderSample};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    handshake::View,
    lane::Role,
    max::Push,
    sys::host,
    udp::{DatagramSample, Datagrams},
    wire::{self, Results, StreamResult},
};

/// What one end saw of a test.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndReport {
    /// How busy the busiest processor of the machine was, 0 to 1 (`/proc/stat`), by whatever programs.
    pub(crate) cpu_busy: Option<f64>,
    /// Of this process, in percent of the wall time.
    pub(crate) cpu_user_percent: f64,
    pub(crate) cpu_system_percent: f64,
    /// Which one it ran on at last, where that was looked at.
    pub(crate) processor: Option<u32>,
    /// What it did to be fast, where it was asked to.
    pub(crate) push: Option<Push>,
    pub(crate) lanes: Vec<LaneReport>,
}

/// What one end saw of one connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LaneReport {
    pub(crate) id: u32,
    pub(crate) role: Role,
    /// Acknowledged or read, in the whole transfer.
    pub(crate) bytes: u64,
    /// From the first payload byte to the end.
    pub(crate) duration_us: u64,
    /// Written or read by the application after the omitted time: what iperf3 counts.
    pub(crate) moved: u64,
    /// Acknowledged or read after the omitted time.
    pub(crate) steady_bytes: u64,
    /// The time for that.
    pub(crate) steady_us: u64,
    /// The omitted time after the first payload byte; absent where nothing was omitted.
    #[serde(default)]
    pub(crate) omitted_us: Option<u64>,
    /// After the omitted time; absent for a receiver.
    #[serde(default)]
    pub(crate) retransmits: Option<u64>,
    /// Of a connection that is none: what became of its datagrams after the omitted time.
    #[serde(default)]
    pub(crate) datagrams: Option<Datagrams>,
    /// How that came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) datagram_series: Vec<DatagramSample>,
    #[serde(default)]
    pub(crate) congestion_control: Option<String>,
    #[serde(default)]
    pub(crate) send_buffer: Option<Buffer>,
    #[serde(default)]
    pub(crate) receive_buffer: Option<Buffer>,
    #[serde(default)]
    pub(crate) view: View,
    /// What the kernel believes, in bytes.
    #[serde(default)]
    pub(crate) path_mtu: Option<u32>,
    #[serde(skip)]
    pub(crate) sender_samples: Vec<SenderSample>,
    #[serde(skip)]
    pub(crate) receiver_samples: Vec<ReceiverSample>,
}

/// What the far end, one of ours, says of itself and of the test.
#[derive(Clone, Debug, Default)]
pub(crate) struct FarReport {
    pub(crate) host: String,
    pub(crate) platform: String,
    pub(crate) cpu_busy: Option<f64>,
    pub(crate) push: Option<Push>,
    pub(crate) lanes: Vec<LaneReport>,
}

impl EndReport {
    /// The frame of the results. `series` adds what only our own clients understand, in at most about that many bytes.
    pub(crate) fn results(&self, series: Option<usize>) -> Results {
        let sends = self.lanes.iter().any(|lane| lane.role == Role::Send);
        let stream = |lane: &LaneReport| StreamResult {
            id: lane.id,
            bytes: lane.moved,
            retransmits: lane.retransmits,
            seconds: Some(lane.steady_us as f64 / 1e6),
            datagrams: lane.datagrams.unwrap_or_default(),
        };
        Results {
            cpu_total: self.cpu_user_percent + self.cpu_system_percent,
            cpu_user: self.cpu_user_percent,
            cpu_system: self.cpu_system_percent,
            sender_has_retransmits: sends.then_some(true),
            congestion_used: self.lanes.iter().find_map(|lane| lane.congestion_control.clone()),
            streams: self.lanes.iter().map(stream).collect(),
            server_output: None,
            ours: series.map(|budget| self.to_json(budget)),
        }
    }

    /// How many bytes of series the far end may be sent: what the path that was measured carries in a quarter of a
    /// second, but never so few that the shape of a transfer is lost.
    pub(crate) fn series_budget(&self) -> usize {
        let (bytes, longest) = self
            .lanes
            .iter()
            .fold((0, 1), |(bytes, longest), lane| (bytes + lane.bytes, longest.max(lane.duration_us)));
        let quarter_second = bytes as f64 / (longest as f64 / 1e6) / 4.0;
        (quarter_second as usize).clamp(20_000, 2_000_000)
    }

    fn to_json(&self, budget: usize) -> Value {
        let per_lane = budget / self.lanes.len().max(1);
        let lanes: Vec<Value> = self.lanes.iter().map(|lane| lane.to_json(per_lane)).collect();
        json!({
            "version": wire::VERSION,
            "host": host::name(),
            "platform": host::platform(),
            "cpu_busy": self.cpu_busy,
            "processor": self.processor,
            "max": self.push,
            "streams": lanes,
        })
    }
}

impl LaneReport {
    fn to_json(&self, budget: usize) -> Value {
        let mut thin = self.clone();
        while thin.datagram_series.len() > 64 && thin.datagram_series.len() * DatagramSample::LONGEST_TEXT > budget {
            crate::sampler::every_other(&mut thin.datagram_series);
        }
        let mut value = serde_json::to_value(&thin).unwrap_or_default();
        let (mut sender, mut receiver) = (self.sender_samples.clone(), self.receiver_samples.clone());
        let series = loop {
            let series = match self.role {
                Role::Send => wire::encode(&sender),
                Role::Receive => wire::encode(&receiver),
            };
            // A few dozen samples are sent whatever they cost.
            if sender.len().max(receiver.len()) <= 64 || series.to_string().len() <= budget {
                break series;
            }
            crate::sampler::every_other(&mut sender);
            crate::sampler::every_other(&mut receiver);
        };
        if let Some(map) = value.as_object_mut() {
            map.insert("series".to_owned(), series);
        }
        value
    }

    fn from_json(value: &Value) -> Option<Self> {
        let mut lane: Self = serde_json::from_value(value.clone()).ok()?;
        lane.congestion_control = lane.congestion_control.map(|name| crate::error::clean(&name));
        let series = value.get("series")?;
        match lane.role {
            Role::Send => lane.sender_samples = wire::decode(series)?,
            Role::Receive => lane.receiver_samples = wire::decode(series)?,
        }
        Some(lane)
    }
}

impl FarReport {
    /// `None` where it can't be understood.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let text = |key| value.get(key).and_then(Value::as_str).map(crate::error::clean).unwrap_or_default();
        Some(Self {
            host: text("host"),
            platform: text("platform"),
            cpu_busy: value.get("cpu_busy").and_then(Value::as_f64).filter(|busy| (0.0..=1.0).contains(busy)),
            push: value.get("max").and_then(|push| serde_json::from_value(push.clone()).ok()).map(Push::cleaned),
            lanes: value.get("streams")?.as_array()?.iter().filter_map(LaneReport::from_json).collect(),
        })
    }

    pub(crate) fn lane(&self, id: u32) -> Option<&LaneReport> {
        self.lanes.iter().find(|lane| lane.id == id)
    }
}
