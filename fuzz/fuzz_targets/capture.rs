//! libFuzzer around [`fullpipe_fuzz::captures::capture`].
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fullpipe_fuzz::captures::capture(data));
