//! libFuzzer around [`fullpipe_fuzz::text::units`].
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fullpipe_fuzz::text::units(data));
