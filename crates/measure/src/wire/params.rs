//! The parameters of a test: client to server, once.

use serde_json::{Map, Value, json};

use super::{MAX_OWN_STREAMS, MAX_STREAMS, VERSION, number};
use crate::exchange::Pattern;

/// iperf3's own default block.
const IPERF3_BLOCK: u64 = 131_072;

/// Blocks in a burst; iperf3 takes no more.
const MOST_IN_BURST: u32 = 1_000;

/// What a key of 16,384 bits makes, in base64.
const LONGEST_TOKEN: usize = 2_732;

/// iperf3's own default for datagrams where it knows nothing of the path.
const UDP_BLOCK: u64 = 1_460;

/// A datagram's header with the longer of its two numbers, and what IPv4 takes in one.
const UDP_BLOCK_LEAST: u64 = 16;
const UDP_BLOCK_MOST: u64 = 65_507;

/// What the client asks for. Keys that we don't know are ignored, as iperf3 does.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Params {
    /// Datagrams instead of a byte stream.
    pub(crate) udp: bool,
    /// Datagrams are numbered with 64 bits.
    pub(crate) counters_64bit: bool,
    /// Seconds that don't count.
    pub(crate) omit_s: u64,
    /// Seconds that do; 0 where `num` or `blockcount` ends the test.
    pub(crate) time_s: u64,
    /// Bytes per direction, 0 for none.
    pub(crate) num: u64,
    /// Blocks, 0 for none; the client counts them.
    pub(crate) blockcount: u64,
    pub(crate) parallel: u32,
    pub(crate) reverse: bool,
    pub(crate) bidirectional: bool,
    pub(crate) block: u64,
    pub(crate) nodelay: bool,
    pub(crate) mss: Option<u16>,
    /// `SO_SNDBUF` and `SO_RCVBUF` of the data sockets.
    pub(crate) window: Option<u32>,
    /// Bits per second and stream that the sending application paces itself to.
    pub(crate) bandwidth: Option<u64>,
    /// Blocks that the sending application writes without a pause, whatever its pace; 0 for one.
    pub(crate) burst: u32,
    /// Bits per second and stream for the kernel's pacing.
    pub(crate) fqrate: Option<u64>,
    pub(crate) tos: Option<u32>,
    pub(crate) congestion: Option<String>,
    /// What the client calls the test.
    pub(crate) title: Option<String>,
    /// Whatever the client wants to stand beside the results.
    pub(crate) extra_data: Option<String>,
    /// The client wants to see what the server would print.
    pub(crate) server_output: bool,
    /// The sender is asked to send without copying.
    pub(crate) zerocopy: bool,
    pub(crate) client_version: Option<String>,
    /// Who the client is, encrypted for the server.
    pub(crate) authtoken: Option<String>,
    /// Present where the client is ours.
    pub(crate) ours: Option<OurParams>,
}

/// What travels under the key `fullpipe`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct OurParams {
    pub(crate) version: u64,
    pub(crate) conversation: bool,
    /// The receiving application copies the payload instead of discarding it in the kernel.
    pub(crate) copy: bool,
    /// Both ends find out in the omitted time how to be fastest.
    pub(crate) max: bool,
    /// Nobody reads `TCP_INFO` while payload moves.
    pub(crate) unsampled: bool,
    /// The ends answer each other instead of filling the path.
    pub(crate) exchange: Option<Pattern>,
    /// Each data connection's cookie is followed by its number.
    pub(crate) indexed: bool,
    /// Milliseconds, where seconds are too coarse; these win over `time` and `omit`.
    pub(crate) time_ms: Option<u64>,
    pub(crate) omit_ms: Option<u64>,
    /// `SO_SNDBUF` and `SO_RCVBUF` apart.
    pub(crate) send_buffer: Option<u32>,
    pub(crate) receive_buffer: Option<u32>,
}

/// Why parameters are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadParams {
    /// iperf3's error code for it.
    pub(crate) code: i32,
    pub(crate) problem: &'static str,
}

impl Params {
    /// The payload after which the client ends the test, by bytes or by blocks; 0 where time ends it.
    pub(crate) fn payload(&self) -> u64 {
        if self.num > 0 { self.num } else { self.blockcount.saturating_mul(self.block) }
    }

    /// What a session needs that only wants to talk; lawful for a real iperf3 server too.
    pub(crate) fn conversation() -> Self {
        let ours = OurParams { version: VERSION, conversation: true, ..OurParams::default() };
        Self { time_s: 1, parallel: 1, block: IPERF3_BLOCK, ours: Some(ours), ..Self::default() }
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| drop(map.insert(key.to_owned(), value));
        put(if self.udp { "udp" } else { "tcp" }, json!(true));
        put("omit", json!(self.omit_s));
        put("time", json!(self.time_s));
        put("num", json!(self.num));
        put("blockcount", json!(self.blockcount));
        put("parallel", json!(self.parallel));
        put("len", json!(self.block));
        put("pacing_timer", json!(1000));
        for (key, flag) in [("reverse", self.reverse), ("bidirectional", self.bidirectional), ("nodelay", self.nodelay)]
        {
            if flag {
                put(key, json!(true));
            }
        }
        let numbers = [
            ("MSS", self.mss.map(u64::from)),
            ("window", self.window.map(u64::from)),
            ("bandwidth", self.bandwidth),
            ("burst", Some(u64::from(self.burst)).filter(|&burst| burst > 0)),
            ("fqrate", self.fqrate),
            ("TOS", self.tos.map(u64::from)),
        ];
        for (key, number) in numbers.into_iter().filter_map(|(key, number)| Some((key, number?))) {
            put(key, json!(number));
        }
        for (key, flag) in [
            ("get_server_output", self.server_output),
            ("zerocopy", self.zerocopy),
            ("udp_counters_64bit", self.counters_64bit),
        ] {
            if flag {
                put(key, json!(1));
            }
        }
        let texts = [
            ("congestion", &self.congestion),
            ("title", &self.title),
            ("extra_data", &self.extra_data),
            ("authtoken", &self.authtoken),
        ];
        for (key, text) in texts.into_iter().filter_map(|(key, text)| Some((key, text.as_ref()?))) {
            put(key, json!(text));
        }
        put("client_version", json!(concat!("fullpipe ", env!("CARGO_PKG_VERSION"))));
        if let Some(ours) = &self.ours {
            put("fullpipe", ours.to_json());
        }
        Value::Object(map)
    }

    /// Reads what a client sent; a value of the wrong type counts as absent, as with iperf3 since 3.18.
    pub(crate) fn from_json(value: &Value) -> Result<Self, BadParams> {
        let refuse = |code, problem| Err(BadParams { code, problem });
        if !value.is_object() {
            return refuse(114, "the parameters are no JSON object");
        }
        if number::flag(value.get("sctp")) {
            return refuse(13, "only TCP and UDP tests are served");
        }
        let count = |key| number::count(value.get(key));
        let udp = number::flag(value.get("udp"));
        let params = Self {
            udp,
            counters_64bit: number::flag(value.get("udp_counters_64bit")),
            omit_s: count("omit").unwrap_or(0),
            time_s: count("time").unwrap_or(0),
            num: count("num").unwrap_or(0),
            blockcount: count("blockcount").unwrap_or(0),
            parallel: u32::try_from(count("parallel").unwrap_or(1)).unwrap_or(u32::MAX),
            reverse: number::flag(value.get("reverse")),
            bidirectional: number::flag(value.get("bidirectional")),
            block: count("len").filter(|&len| len > 0).unwrap_or(if udp { UDP_BLOCK } else { IPERF3_BLOCK }),
            nodelay: number::flag(value.get("nodelay")),
            mss: count("MSS").and_then(|n| u16::try_from(n).ok()).filter(|&n| n > 0),
            window: count("window").and_then(|n| u32::try_from(n).ok()).filter(|&n| n > 0),
            bandwidth: count("bandwidth").filter(|&n| n > 0),
            burst: count("burst").map_or(0, |n| u32::try_from(n).unwrap_or(MOST_IN_BURST).min(MOST_IN_BURST)),
            fqrate: count("fqrate").filter(|&n| n > 0),
            tos: count("TOS").and_then(|n| u32::try_from(n).ok()).filter(|&n| n <= 255),
            congestion: text(value.get("congestion")),
            title: text(value.get("title")),
            extra_data: text(value.get("extra_data")),
            authtoken: value
                .get("authtoken")
                .and_then(Value::as_str)
                .filter(|t| t.len() <= LONGEST_TOKEN)
                .map(str::to_owned),
            server_output: number::flag(value.get("get_server_output")),
            zerocopy: number::flag(value.get("zerocopy")),
            client_version: text(value.get("client_version")),
            ours: value.get("fullpipe").and_then(OurParams::from_json),
        };
        match () {
            () if params.time_s > 86_400 => refuse(5, "the test would last more than a day"),
            () if params.omit_s > 600 => refuse(12, "more than 600 s would be omitted"),
            () if !(1..=params.most_streams()).contains(&params.parallel) => {
                refuse(6, "the number of streams is not 1 to 128 (2,048 of a fullpipe client)")
            }
            () if params.block > 16 << 20 => refuse(7, "the block is larger than 16 MiB"),
            () if params.udp && !(UDP_BLOCK_LEAST..=UDP_BLOCK_MOST).contains(&params.block) => {
                refuse(20, "the datagram is not 16 B to 65,507 B long")
            }
            () if params.window.is_some_and(|w| w > 512 << 20) => refuse(8, "the socket buffer is larger than 512 MiB"),
            () => Ok(params),
        }
    }

    fn most_streams(&self) -> u32 {
        if self.ours.is_some() && !self.udp { MAX_OWN_STREAMS } else { MAX_STREAMS }
    }

    /// Data connections that belong to the test.
    pub(crate) fn connections(&self) -> usize {
        self.parallel as usize * if self.bidirectional { 2 } else { 1 }
    }
}

impl OurParams {
    fn to_json(self) -> Value {
        let mut map = Map::new();
        map.insert("version".to_owned(), json!(self.version));
        let flags = [
            ("conversation", self.conversation),
            ("copy", self.copy),
            ("max", self.max),
            ("unsampled", self.unsampled),
            ("indexed", self.indexed),
        ];
        for (key, flag) in flags {
            if flag {
                map.insert(key.to_owned(), json!(true));
            }
        }
        let numbers = [
            ("time_ms", self.time_ms),
            ("omit_ms", self.omit_ms),
            ("send_buffer", self.send_buffer.map(u64::from)),
            ("receive_buffer", self.receive_buffer.map(u64::from)),
        ];
        map.extend(numbers.into_iter().filter_map(|(key, number)| Some((key.to_owned(), json!(number?)))));
        if let Some(pattern) = self.exchange {
            let Pattern { request, response, spin, connect } = pattern;
            let value = json!({ "request": request, "response": response, "spin": spin, "connect": connect });
            map.insert("exchange".to_owned(), value);
        }
        Value::Object(map)
    }

    fn from_json(value: &Value) -> Option<Self> {
        let count = |key| number::count(value.get(key));
        let buffer = |key| count(key).and_then(|n| u32::try_from(n).ok()).filter(|n| (1..=512 << 20).contains(n));
        Some(Self {
            version: count("version")?,
            exchange: value.get("exchange").and_then(pattern),
            conversation: number::flag(value.get("conversation")),
            copy: number::flag(value.get("copy")),
            max: number::flag(value.get("max")),
            unsampled: number::flag(value.get("unsampled")),
            indexed: number::flag(value.get("indexed")),
            time_ms: count("time_ms").filter(|&ms| ms <= 86_400_000),
            omit_ms: count("omit_ms").filter(|&ms| ms <= 600_000),
            send_buffer: buffer("send_buffer"),
            receive_buffer: buffer("receive_buffer"),
        })
    }
}

/// `None` where the sizes are none that can be.
fn pattern(value: &Value) -> Option<Pattern> {
    let size = |key| number::count(value.get(key)).and_then(|n| u32::try_from(n).ok());
    let flag = |key| number::flag(value.get(key));
    let (request, response) = (size("request")?, size("response")?);
    let pattern = Pattern { request, response, spin: flag("spin"), connect: flag("connect") };
    pattern.is_possible().then_some(pattern)
}

/// A short text without control characters.
fn text(value: Option<&Value>) -> Option<String> {
    let text = crate::error::clean(value?.as_str()?);
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_real_client_is_understood() {
        let value = json!({"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":2,"len":16384,
            "bandwidth":20_000_000,"pacing_timer":1000,"client_version":"3.21+"});
        let params = Params::from_json(&value).unwrap();
        assert_eq!((params.parallel, params.block, params.bandwidth), (2, 16_384, Some(20_000_000)));
        assert_eq!(params.ours, None);
    }

    #[test]
    fn bytes_or_blocks_tell_how_much_the_client_sends() {
        let params = Params { block: 131_072, ..Params::default() };
        assert_eq!(params.payload(), 0, "time ends it");
        assert_eq!(Params { blockcount: 40, ..params.clone() }.payload(), 5_242_880);
        assert_eq!(Params { num: 2_000_000, ..params }.payload(), 2_000_000);
    }

    #[test]
    fn the_least_that_is_lawful_is_enough() {
        let params = Params::from_json(&json!({"tcp": true})).unwrap();
        assert_eq!((params.parallel, params.block), (1, IPERF3_BLOCK));
    }

    #[test]
    fn values_out_of_range_get_the_code_that_iperf3_gives() {
        for (key, number, code) in
            [("time", 86_401u64, 5), ("omit", 601, 12), ("parallel", 129, 6), ("parallel", 0, 6), ("len", 1 << 40, 7)]
        {
            assert_eq!(Params::from_json(&json!({ "tcp": true, key: number })).unwrap_err().code, code, "{key}");
        }
        assert_eq!(Params::from_json(&json!({"sctp": true})).unwrap_err().code, 13);
        assert_eq!(Params::from_json(&json!({"udp": true, "len": 8})).unwrap_err().code, 20);
        assert_eq!(Params::from_json(&json!([])).unwrap_err().code, 114);
    }

    #[test]
    fn parameters_fit_what_iperf3_takes() {
        let text = Params::conversation().to_json().to_string();
        assert!(text.len() < 8 * 1024);
    }

    proptest! {
        #[test]
        fn parameters_survive_the_wire(
            omit_s in 0u64..600, time_s in 0u64..86_400, num in 0u64..1 << 50, parallel in 1u32..=128,
            (reverse, bidirectional, nodelay, copy) in any::<(bool, bool, bool, bool)>(), block in 1u64..1 << 20,
            mss in proptest::option::of(1u16..32_767), window in proptest::option::of(1u32..1 << 29),
            time_ms in proptest::option::of(0u64..86_400_000),
            (congestion, title) in (proptest::option::of("[a-z]{1,15}"), proptest::option::of("[ -~]{1,40}")),
        ) {
            let ours = OurParams { version: VERSION, copy, max: reverse, indexed: nodelay, time_ms, send_buffer: window, ..OurParams::default() };
            let params = Params { omit_s, time_s, num, parallel, reverse, bidirectional, nodelay, block, mss, window,
                congestion, extra_data: title.clone(), title, server_output: copy, zerocopy: reverse, ours: Some(ours),
                ..Params::default() };
            let mut read = Params::from_json(&params.to_json()).unwrap();
            read.client_version = None;
            prop_assert_eq!(read, params);
        }

        #[test]
        fn no_json_of_a_stranger_panics(text in "[\\[\\]{}\":,a-z0-9.e+-]{0,80}") {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                drop(Params::from_json(&value));
            }
        }
    }
}
