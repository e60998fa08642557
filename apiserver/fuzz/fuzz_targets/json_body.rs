//! See `fuzz::json_body`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::json_body(data));
