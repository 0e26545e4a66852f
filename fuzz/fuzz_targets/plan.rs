//! libFuzzer around [`fullpipe_fuzz::plans::plan`].
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fullpipe_fuzz::plans::plan(data));
