//! libFuzzer around [`fullpipe_fuzz::engine::segments`].
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fullpipe_fuzz::engine::segments(data));
