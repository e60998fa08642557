//! See `fuzz::strategic_patch`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::strategic_patch(data));
