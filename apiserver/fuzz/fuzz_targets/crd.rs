//! See `fuzz::definition`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::definition(data));
