//! See `fuzz::object_bytes`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::object_bytes(data));
