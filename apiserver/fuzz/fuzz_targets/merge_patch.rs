//! See `fuzz::merge_patch`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::merge_patch(data));
