//! What a fuzzer does with a message to `serve --allow-tune`. Built for the fuzzer and for the test that replays what it found.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use base64ct::{Base64, Encoding};
use fullpipe_host::FolderHost;
use fullpipe_measure::{Disconnect, Ends, RequestHandler};
use serde_json::{Value, json};

use crate::{
    channel::Asked,
    end::LocalEnd,
    handler::{HostHandler, Terms},
    key::Key,
};

const SERVER: &str = "192.0.2.1:5201";
const RMEM: &str = "4096 131072 33554432\n";
const SECRET: &str = "0-0-0-a-secret";

/// After so many messages the journal is begun anew: each look at it reads all of it.
const LIFE: u32 = 200;

/// A host in a folder, and the server on it.
struct Machine {
    handler: HostHandler<FolderHost>,
    folder: PathBuf,
    key: Key,
    age: u32,
}

impl Machine {
    fn new() -> Self {
        // In memory, where the system has such a folder: each order syncs its journal.
        let memory = Path::new("/dev/shm");
        let above = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = above.join(format!("fullpipe-orders-{}", std::process::id()));
        fs::remove_dir_all(&folder).unwrap_or_default();
        let sysctls = folder.join("machine/proc/sys/net/ipv4");
        fs::create_dir_all(&sysctls).expect("a folder in memory");
        for (file, content) in [("tcp_rmem", RMEM), ("tcp_fastopen_key", SECRET)] {
            fs::write(sysctls.join(file), content).expect("written");
        }
        fs::write(folder.join("machine/platform"), "linux 6.18.44\n").expect("written");
        let key = Key::from_bytes(b"a key of more than sixteen bytes");
        let host = FolderHost::new(folder.join("machine"));
        let end = LocalEnd::in_folder("b", host, folder.join("state"), "serve", None);
        let terms = Terms { key: Some(key.clone()), ..Terms::default() };
        Self {
            handler: HostHandler::new(end, terms, Arc::new(|_: &fullpipe_measure::ServerEvent| {})),
            folder,
            key,
            age: 0,
        }
    }

    /// What a stranger is answered.
    fn asked(&self, ends: Ends, message: Value) -> Value {
        let answer = self.handler.handle(message, ends);
        answer.unwrap_or_else(|error| json!({ "refused": { "reason": error.message } }))
    }

    /// What a holder of the key is answered to text in place of an order, sealed.
    fn ordered(&self, ends: Ends, text: &str) {
        let (asked, asking) = Asked::new(&self.key, SERVER).expect("a handshake");
        let answer = self.asked(ends, json!({ "request": "channel", "to": SERVER, "asking": asking }));
        let answer = answer["channel"].as_str().expect("the key is the server's");
        let mut channel = asked.open(answer).expect("the server's answer");
        let sealed = channel.seal(text).expect("sealed");
        let answer = self.asked(ends, json!({ "request": "order", "sealed": sealed }));
        let answered = channel.open(answer["sealed"].as_str().expect("a sealed answer")).expect("the server's seal");
        assert!(!answered.contains(SECRET), "{text}: {answered}");
    }

    /// The end of a conversation leaves the machine as it was.
    fn ends_as_it_began(&self, ends: Ends, data: &[u8]) {
        self.handler.on_disconnect(ends.peer, Disconnect::Lost);
        for (file, content) in [("tcp_rmem", RMEM), ("tcp_fastopen_key", SECRET)] {
            let now = fs::read_to_string(self.folder.join("machine/proc/sys/net/ipv4").join(file)).expect("there");
            assert_eq!(now.trim(), content.trim(), "{file} after {}", String::from_utf8_lossy(data));
        }
    }
}

/// Any bytes as a message of a stranger, as what goes through a stranger's channel, and as the order of a key holder.
pub fn orders(data: &[u8]) {
    static MACHINE: OnceLock<Mutex<Option<Machine>>> = OnceLock::new();
    let mut machine = MACHINE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if machine.as_ref().is_none_or(|machine| machine.age >= LIFE) {
        *machine = Some(Machine::new());
    }
    let Some(machine) = machine.as_mut() else { return };
    machine.age += 1;
    let ends = Ends { peer: SocketAddr::from(([192, 0, 2, 9], 7)), local: SocketAddr::from(([192, 0, 2, 1], 5201)) };
    let sealed = Base64::encode_string(data);
    let strange = [
        serde_json::from_slice(data).unwrap_or(Value::Null),
        json!({ "request": "channel", "to": SERVER, "asking": sealed }),
        json!({ "request": "order", "sealed": sealed }),
    ];
    for message in strange {
        let answered = machine.asked(ends, message).to_string();
        assert!(answered.contains("refused"), "{answered}");
    }
    machine.ends_as_it_began(ends, data);
    if let Ok(text) = std::str::from_utf8(data) {
        machine.ordered(ends, text);
        machine.ends_as_it_began(ends, data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_input_that_the_fuzzer_kept_passes() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/orders");
        let mut inputs = 0;
        for entry in fs::read_dir(corpus).expect("a corpus") {
            orders(&fs::read(entry.expect("an entry").path()).expect("an input"));
            inputs += 1;
        }
        assert!(inputs > 0, "the corpus is empty");
        orders(&[]);
    }
}
