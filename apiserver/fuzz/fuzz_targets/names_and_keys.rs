//! See `fuzz::names_and_keys`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::names_and_keys(data));
