//! What a fuzzer does with the datagrams of a peer. Built for the fuzzer and for the test that replays what it found.

/// Any bytes as each of the datagrams that a peer may send.
pub fn datagram(data: &[u8]) {
    crate::train::read_any(data);
    crate::mtu::read_any(data);
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    #[test]
    fn every_input_that_the_fuzzer_kept_passes() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/wire");
        let mut inputs = 0;
        for entry in fs::read_dir(corpus).unwrap() {
            super::datagram(&fs::read(entry.unwrap().path()).unwrap());
            inputs += 1;
        }
        assert!(inputs > 0, "the corpus is empty");
    }
}
