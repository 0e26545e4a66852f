//! libFuzzer around [`fullpipe_fuzz::engine::histories`].
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fullpipe_fuzz::engine::histories(data));
