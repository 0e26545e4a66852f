//! libFuzzer around [`fullpipe_fuzz::transfer::transfer`].
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fullpipe_fuzz::transfer::transfer(data));
