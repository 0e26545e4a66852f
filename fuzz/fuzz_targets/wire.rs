//! libFuzzer around [`fullpipe_fuzz::foreign::wire`].
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fullpipe_fuzz::foreign::wire(data));
