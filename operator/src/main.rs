//! The program `kcp-operator`.

use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use operator::{Args, Operator};
use runtime::signals;

/// How long tasks may take to end: a call of a physical cluster has a time-out of this order.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() -> anyhow::Result<()> {
    // Fails only when a provider is installed already, which is then as good.
    let _installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let args = Args::parse();
    args.log.install()?;
    let options = args.options()?;
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = threads.block_on(async {
        let terminate = signals::terminate();
        tokio::pin!(terminate);
        let start = Operator::start(options);
        let operator = tokio::select! {
            started = start => started?,
            // The hub may be away for long.
            signal = &mut terminate => {
                tracing::info!(signal = signal?, "ending before the hub was there");
                return Ok(());
            }
        };
        let signal = terminate.await.context("wait for signals")?;
        tracing::info!(signal, "ending");
        operator.shutdown(PATIENCE).await;
        Ok(())
    });
    // Everything that matters has ended by now.
    threads.shutdown_timeout(Duration::from_secs(1));
    done
}
