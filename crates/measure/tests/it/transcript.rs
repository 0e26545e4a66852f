//! The bytes of the handshake, beside those of the real server: a proxy between a real client and either server writes
//! down what each says on the control connection, and the two records must be the same.

use std::{
    collections::BTreeSet,
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    process::Command,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::{
    interop::{Iperf3Server, iperf3_is_here},
    options::iperf3_has,
    support::Running,
};

/// Who said what, in the order in which the proxy heard it.
type Record = Arc<Mutex<Vec<(Who, Vec<u8>)>>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Client,
    Server,
}

/// Passes connections on; records the first.
fn proxy(server: SocketAddr) -> (SocketAddr, Record) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let record = Record::default();
    let written = Arc::clone(&record);
    thread::spawn(move || {
        for (number, client) in listener.incoming().flatten().enumerate() {
            let far = TcpStream::connect(server).unwrap();
            let record = (number == 0).then(|| Arc::clone(&written));
            pass((client.try_clone().unwrap(), far.try_clone().unwrap()), Who::Client, record.clone());
            pass((far, client), Who::Server, record);
        }
    });
    (address, record)
}

fn pass((mut from, mut to): (TcpStream, TcpStream), who: Who, record: Option<Record>) {
    thread::spawn(move || {
        let mut bytes = [0u8; 16_384];
        while let Ok(count) = from.read(&mut bytes) {
            // Before it is passed on, or the answer could come into the record first.
            match record.as_ref().map(|record| record.lock().unwrap()) {
                Some(mut record) if count > 0 => record.push((who, bytes[..count].to_vec())),
                _ => {}
            }
            if count == 0 || to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        drop(to.shutdown(Shutdown::Write));
    });
}

/// The record in words: the cookie, states by number, and frames by their keys.
fn words(record: &[(Who, Vec<u8>)]) -> Vec<String> {
    let mut turns: Vec<(Who, Vec<u8>)> = Vec::new();
    for (who, said) in record {
        match turns.last_mut().filter(|(last, _)| last == who) {
            Some((_, before)) => before.extend_from_slice(said),
            None => turns.push((*who, said.clone())),
        }
    }
    let mut words = Vec::new();
    let mut cookie = true;
    for (who, said) in &turns {
        let mut rest = said.as_slice();
        while let Some((&first, after)) = rest.split_first() {
            if *who == Who::Client && std::mem::take(&mut cookie) {
                let (head, tail) = rest.split_at(37);
                words.push(format!("client: cookie of {} bytes, zero at its end: {}", head.len(), head[36] == 0));
                rest = tail;
            } else if first == 0 {
                let (length, tail) = rest.split_at(4);
                let (text, tail) = tail.split_at(u32::from_be_bytes(length.try_into().unwrap()) as usize);
                words.push(format!("{who:?}: {}", keys(&serde_json::from_slice(text).unwrap())));
                rest = tail;
            } else {
                words.push(format!("{who:?}: state {first}"));
                rest = after;
            }
        }
    }
    words
}

/// What a frame says, without its figures.
fn keys(frame: &Value) -> String {
    let of = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let streams: Vec<String> = frame["streams"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|stream| format!("{} of {:?}", stream["id"], required(&of(stream))))
        .collect();
    format!("{:?} {streams:?}", required(&of(frame)))
}

/// Keys that some versions leave out are no difference.
fn required(keys: &BTreeSet<String>) -> Vec<&str> {
    const OPTIONAL: [&str; 3] = ["omitted_errors", "omitted_packets", "congestion_used"];
    /// Not sent by 3.1.
    const LATER: [&str; 2] = ["start_time", "end_time"];
    let is_old = !iperf3_has("--bidir");
    let sent = |key: &&str| !(OPTIONAL.contains(key) || is_old && LATER.contains(key));
    keys.iter().map(String::as_str).filter(sent).collect()
}

fn transcript(server: SocketAddr, options: &[&str]) -> Vec<String> {
    let (address, record) = proxy(server);
    let port = address.port().to_string();
    let output = Command::new("iperf3").args(["-c", "127.0.0.1", "-p", &port]).args(options).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // The client's last word may be on its way through the proxy when the client is gone.
    for _ in 0..200 {
        if record.lock().unwrap().last().is_some_and(|(who, said)| *who == Who::Client && said == &[16]) {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let record = record.lock().unwrap().clone();
    words(&record)
}

#[test]
fn the_handshake_is_that_of_the_real_server_byte_for_byte() {
    if !iperf3_is_here("the_handshake_is_that_of_the_real_server_byte_for_byte") {
        return;
    }
    let ours = Running::start();
    let real = Iperf3Server::start();
    let many: &[&str] =
        if iperf3_has("--bidir") { &["-n", "1M", "--bidir", "-P", "2"] } else { &["-n", "1M", "-P", "2"] };
    for options in [&["-n", "1M"][..], &["-n", "1M", "-R"], many] {
        assert_eq!(transcript(ours.address, options), transcript(real.address, options), "{options:?}");
    }
}
