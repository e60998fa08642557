//! The program `kcp-agent`.

fn main() {}
