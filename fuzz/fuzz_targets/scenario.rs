//! libFuzzer around [`fullpipe_fuzz::text::scenario`].
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fullpipe_fuzz::text::scenario(data));
