//! libFuzzer around [`fullpipe_fuzz::ethernet::frames`].
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fullpipe_fuzz::ethernet::frames(data));
