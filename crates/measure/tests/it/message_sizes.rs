//! `win10g-delack`: message sizes on a fast local link whose ends had their TCP settings mangled, before and after these
//! are put back. The published figures are 56 to 322 MB/s before and 831 to 1,090 MB/s after, on 10 Gbit/s.
//!
//! The link is a pair of virtual Ethernet devices between two hosts of the lab, since no emulated path carries 10 Gbit/s. Its
//! rates are those of the processors; what is asserted is what held the sender back.

use std::{
    collections::BTreeMap,
    fs::File,
    net::SocketAddr,
    os::fd::AsRawFd,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use fullpipe_lab::{Lab, LabHost, LabOptions};
use fullpipe_measure::{Client, Length, Server, SizeRow, SizeSide, TestSpec};
use fullpipe_path::{HopSpec, IpVersions, PathHop, PathSpec, Side};
use fullpipe_units::{Bytes, Rate};

use crate::{
    accuracy::{eventually, turn},
    support::{self, quick_server, short},
};

const CLIENT: &str = "10.81.0.1/24";
const SERVER: &str = "10.81.0.2/24";

/// A window of less than two segments without scaling, and a small send buffer: the acknowledgement of each window's worth
/// is waited for.
const MANGLED: [(&str, &str); 3] = [
    ("net.ipv4.tcp_window_scaling", "0"),
    ("net.ipv4.tcp_rmem", "4096 4096 4096"),
    ("net.ipv4.tcp_wmem", "4096 16384 16384"),
];

/// Linux's own.
const PUT_BACK: [(&str, &str); 3] = [
    ("net.ipv4.tcp_window_scaling", "1"),
    ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
    ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
];

/// Two hosts with a cable between them; `None`, said by name, where iproute2 is missing.
fn cabled(test: &str) -> Option<Lab> {
    let hop = HopSpec::default();
    let path =
        PathSpec { mtu: 1_500, ip: IpVersions::V4, hops: vec![PathHop { name: None, ab: hop.clone(), ba: hop }] };
    let lab = Lab::join(&path, 7, LabOptions::default()).unwrap();
    // Named by a path, so that nothing of it stands in the file system.
    let far = lab.host(Side::B).run(|| File::open("/proc/thread-self/ns/net").unwrap()).unwrap();
    let far = format!("/proc/{}/fd/{}", std::process::id(), far.as_raw_fd());
    let made = ip(lab.host(Side::A), &format!("link add wire0 type veth peer name wire1 netns {far}"))
        .and_then(|()| ip(lab.host(Side::A), &format!("address add {CLIENT} dev wire0")))
        .and_then(|()| ip(lab.host(Side::B), &format!("address add {SERVER} dev wire1")))
        .and_then(|()| ip(lab.host(Side::A), "link set wire0 up"))
        .and_then(|()| ip(lab.host(Side::B), "link set wire1 up"));
    match made {
        Ok(()) => Some(lab),
        Err(problem) => {
            println!("skipped {test}: {problem}");
            None
        }
    }
}

fn ip(host: &LabHost, words: &str) -> Result<(), String> {
    let run = || Command::new("ip").args(words.split(' ')).output();
    let output = host.run(run).unwrap().map_err(|error| format!("ip: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("ip {words}: {said}")) }
}

/// The table of message sizes with these settings at both ends. A server takes its window from the settings at its start.
fn table(lab: &Lab, settings: &[(&str, &str)]) -> Vec<SizeRow> {
    let settings: BTreeMap<String, String> =
        settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    for side in [Side::A, Side::B] {
        lab.host(side).apply(&settings).unwrap();
    }
    let address: SocketAddr = "10.81.0.2:5201".parse().unwrap();
    let bound = lab.host(Side::B).run(|| Server::bind(address, quick_server(), None).unwrap()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let server = lab.host(Side::B).spawn("server", move || bound.run(&seen).unwrap()).unwrap();
    let measure = || {
        let mut client = Client::connect(&address.to_string().parse().unwrap()).unwrap();
        let spec = TestSpec { length: Length::Time(Duration::from_millis(500)), ..short() };
        let sizes = [1_024, 4_096, 16_384, 65_536].map(Bytes::new);
        let rows = client.sizes(&spec, &sizes, &AtomicBool::new(false), &mut |_, _| ()).unwrap();
        client.bye();
        rows
    };
    let rows = lab.host(Side::A).run(measure).unwrap();
    stop.store(true, Ordering::Relaxed);
    server.join().unwrap();
    rows
}

fn show(when: &str, rows: &[SizeRow]) {
    for row in rows {
        let of = |side: &SizeSide| {
            let megabytes = side.rate_bps.map_or(0.0, |rate| rate.bps() as f64 / 8e6);
            format!("{megabytes:>6.0} MB/s, window {:>3.0} %", side.window_share.unwrap_or(0.0) * 100.0)
        };
        let split = row.split_us.unwrap_or(0.0);
        println!("{when} {:>9}: up {}; down {}; in two halves {split:.0} us", row.size, of(&row.up), of(&row.down));
    }
}

/// The middle of both directions of all sizes.
fn median(rows: &[SizeRow], of: impl Fn(&SizeSide) -> Option<f64>) -> f64 {
    support::median(rows.iter().flat_map(|row| [row.up, row.down]).filter_map(|side| of(&side)))
}

#[test]
fn win10g_delack_shows_what_holds_each_message_size_back() {
    const TEST: &str = "win10g_delack_shows_what_holds_each_message_size_back";
    let Some(_turn) = turn(TEST) else { return };
    let Some(lab) = cabled(TEST) else { return };
    eventually(TEST, || {
        let [before, after] = [&MANGLED, &PUT_BACK].map(|settings| table(&lab, settings));
        show("before", &before);
        show("after ", &after);
        let rate = |side: &SizeSide| side.rate_bps.map(|rate: Rate| rate.bps() as f64);
        let gain = median(&after, rate) / median(&before, rate);
        let window = |rows: &[SizeRow]| median(rows, |side| side.window_share);
        if gain < 1.5 {
            return Err(format!("putting the settings back brought {gain:.2} times the rate"));
        }
        if window(&before) < 0.3 || window(&after) > window(&before) / 2.0 {
            return Err(format!("held back by the window: {} before, {} after", window(&before), window(&after)));
        }
        // What the application does wrong no setting mends: halves of less than a segment wait for the delayed
        // acknowledgement before and after.
        for rows in [&before, &after] {
            let (small, large) = (&rows[0], &rows[3]);
            if small.split_delayed < Some(0.5) || large.split_delayed > Some(0.5) {
                return Err(format!("in two halves: {small:?} {large:?}"));
            }
        }
        Ok(())
    });
}
