//! See `fuzz::object`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::object(data));
