//! The program `kcp-agent`.

use clap::Parser;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = agent::args::Args::parse();
    args.logs.install()?;
    let stop = async {
        if let Err(error) = runtime::signals::terminate().await {
            tracing::warn!(%error, "signals are not seen");
            std::future::pending::<()>().await;
        }
    };
    agent::program::run(args, stop).await
}
