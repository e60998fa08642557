//! The `kcp-apiserver` program.

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    // Fails only when a provider is installed already, which is then as good.
    let _installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
    apiserver::Args::parse().run()
}
