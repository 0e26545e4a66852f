//! libFuzzer around [`fullpipe_fuzz::foreign::orders`].
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fullpipe_fuzz::foreign::orders(data));
