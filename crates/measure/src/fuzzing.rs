//! What a fuzzer does with the bytes of a peer. Built for the fuzzer and for the test that replays what it found.

use std::net::{Ipv4Addr, SocketAddr};

use fullpipe_diagnose::{ReceiverSample, SenderSample, diagnose_streams};
use serde_json::Value;

use crate::{
    Foreign, Hello, Target, handshake,
    lane::Role,
    measurement::Accounts,
    report::{EndReport, FarReport, LaneReport},
    wire::{COOKIE_LEN, Cookie, Params, Results, decode, encode},
};

/// Any bytes as each of the messages that a peer may send, up to the verdict on a test with it.
pub fn wire(data: &[u8]) {
    if let Some(first) = data.first_chunk::<COOKIE_LEN>()
        && let Ok(cookie) = Cookie::received(*first)
    {
        assert_eq!(cookie.as_bytes(), first);
    }
    let _named = Foreign::named_by(data).to_string();
    let _syn = handshake::parse_syn(data);
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(target) = text.parse::<Target>()
    {
        assert_eq!(target.to_string().parse::<Target>().ok().as_ref(), Some(&target), "{text}");
    }
    if let Ok(value) = serde_json::from_slice::<Value>(data) {
        message(&value);
    }
}

fn message(value: &Value) {
    if let Ok(params) = Params::from_json(value) {
        let again = Params::from_json(&params.to_json()).ok();
        let known = Params { client_version: again.as_ref().and_then(|again| again.client_version.clone()), ..params };
        assert_eq!(again, Some(known), "{value}");
    }
    if let Some(sent) = decode::<SenderSample>(value) {
        assert_eq!(decode(&encode(&sent)), Some(sent), "{value}");
    }
    if let Some(received) = decode::<ReceiverSample>(value) {
        assert_eq!(decode(&encode(&received)), Some(received), "{value}");
    }
    let _greeting = Hello::from_json(SocketAddr::from((Ipv4Addr::LOCALHOST, 5201)), value);
    accounts(value);
}

/// The results of a far end, with an account of our own that fits its streams, up to the verdict.
fn accounts(value: &Value) {
    let results = Results::from_json(value);
    let ours = results.as_ref().and_then(|results| results.ours.as_ref()).unwrap_or(value);
    let far = FarReport::from_json(ours);
    let ids = results.iter().flat_map(|results| results.streams.iter().map(|stream| stream.id));
    let ids: Vec<u32> = ids.chain(far.iter().flat_map(|far| far.lanes.iter().map(|lane| lane.id))).take(128).collect();
    for role in [Role::Send, Role::Receive] {
        let own = EndReport { lanes: ids.iter().map(|id| lane(*id, role)).collect(), ..EndReport::default() };
        let (far, results) = (far.clone(), results.clone());
        let accounts = Accounts { own, far, results, peer_name: "far", idle_rtt: None, path_mtu: [None; 2] };
        for direction in accounts.directions() {
            let diagnosis = diagnose_streams(&direction.transfers);
            assert!((0.0..=1.000_001).contains(&diagnosis.share), "{diagnosis:?}");
        }
    }
}

fn lane(id: u32, role: Role) -> LaneReport {
    LaneReport {
        id,
        role,
        bytes: 1_000_000,
        duration_us: 1_000_000,
        moved: 1_000_000,
        steady_bytes: 500_000,
        steady_us: 500_000,
        omitted_us: None,
        retransmits: Some(0),
        datagrams: None,
        datagram_series: Vec::new(),
        congestion_control: None,
        send_buffer: None,
        receive_buffer: None,
        view: handshake::View::default(),
        path_mtu: None,
        sender_samples: Vec::new(),
        receiver_samples: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    #[test]
    fn every_input_that_the_fuzzer_kept_passes() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/wire");
        let mut inputs = 0;
        for entry in fs::read_dir(corpus).unwrap() {
            super::wire(&fs::read(entry.unwrap().path()).unwrap());
            inputs += 1;
        }
        assert!(inputs > 0, "the corpus is empty");
    }
}
