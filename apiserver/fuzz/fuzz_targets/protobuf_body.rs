//! See `fuzz::protobuf_body`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::protobuf_body(data));
