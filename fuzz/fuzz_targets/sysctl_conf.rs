//! libFuzzer around [`fullpipe_fuzz::text::sysctl_conf`].
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| fullpipe_fuzz::text::sysctl_conf(data));
