//! The `kcp-apiserver` program.

use clap::Parser;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> anyhow::Result<()> {
    // Fails only when a provider is installed already, which is then as good.
    let _installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
    apiserver::Args::parse().run()
}

#[cfg(test)]
mod tests {
    use std::fs;

    /// The allocator has threads of its own, as .cargo/config.toml says: without them, what a busy time
    /// has left stays until the next one.
    #[test]
    fn memory_is_given_back_while_the_server_is_idle() {
        let tasks = fs::read_dir("/proc/self/task").unwrap();
        let mut names =
            tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
        assert!(names.any(|name| name.trim() == "jemalloc_bg_thd"));
    }
}
