//! The `kcp-apiserver` program.
fn main() {}
