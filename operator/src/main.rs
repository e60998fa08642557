//! The program `kcp-operator`.

fn main() {}
