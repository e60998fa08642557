//! See `fuzz::selectors`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::selectors(data));
