//! The command line of `kcp-apiserver`.

mod auth;
mod etcd;
mod import;
mod protection;
mod tls;
mod transfer;

use std::convert::Infallible;
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::{Args as ClapArgs, Parser, Subcommand};
use runtime::logs::LogArgs;
use runtime::{Tasks, cores, signals};
use tracing::Span;

use self::etcd::EtcdArgs;
use crate::dialer::Network;
use crate::serve::Server;

/// How often threads look through what they keep of freed memory.
const LOOK_THROUGH: Duration = Duration::from_secs(5);

/// An allocation after which they do, a few sizes at a time: of twice as many bytes as jemalloc's
/// `tcache_gc_incr_bytes`. Nothing is written to it, so it takes no memory.
const NOTICED: usize = 128 << 10;

/// A Kubernetes API server with many cheap, isolated logical clusters.
#[derive(Debug, Parser)]
#[command(name = "kcp-apiserver", version)]
pub struct Args {
    #[command(flatten)]
    serve: ServeArgs,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Store(transfer::StoreArgs),
    ImportTypes(import::ImportArgs),
}

/// The flags of the server itself.
#[derive(Debug, ClapArgs)]
struct ServeArgs {
    /// Holds the store, keys, certificates and admin.kubeconfig.
    #[arg(long, env = "KCP_ROOT_DIRECTORY", default_value = ".kcp", global = true)]
    root_directory: PathBuf,

    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    bind_address: IpAddr,

    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 6443)]
    secure_port: u16,

    /// Name or address under which clients reach the server, for its certificate; repeatable. The
    /// first is the one in admin.kubeconfig.
    #[arg(long = "external-hostname", value_name = "NAME")]
    external_hostnames: Vec<String>,

    #[command(flatten)]
    tls: tls::TlsArgs,

    #[command(flatten)]
    auth: auth::AuthArgs,

    /// Range of loopback, link-local or other special addresses, as 127.0.0.0/8, at which webhooks
    /// of logical clusters may be; repeatable. All others of those are refused.
    #[arg(long = "allow-outbound", value_name = "RANGE")]
    allow_outbound: Vec<Network>,

    /// For how long old revisions can at least be read, as 5m.
    #[arg(long, default_value = "5m", value_parser = duration)]
    history: Duration,

    /// How long events are kept after their last change, as 1h.
    #[arg(long, default_value = "1h", value_parser = duration)]
    event_ttl: Duration,

    /// The most objects that a logical cluster may hold, 0 for any number. The annotation
    /// core.kcp.io/max-objects of a logical cluster overrides it.
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    max_objects_per_cluster: usize,

    /// How often older revisions are forgotten, as 5m.
    #[arg(long, default_value = "5m", value_parser = duration)]
    compaction_interval: Duration,

    #[command(flatten)]
    protection: protection::ProtectionArgs,

    #[command(flatten)]
    etcd: EtcdArgs,

    #[command(flatten)]
    log: LogArgs,
}

// === impl Args ===

impl Args {
    /// Does what the command line says, until it is done or the process is told to end.
    ///
    /// # Errors
    /// With what went wrong, for the one who started the process.
    pub fn run(self) -> anyhow::Result<()> {
        let threads = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("start the runtime")?;
        let done = threads.block_on(async {
            match self.command {
                Some(Command::Store(store)) => {
                    let ServeArgs { root_directory, etcd, .. } = self.serve;
                    store.run(&root_directory, etcd.options().as_ref()).await
                }
                Some(Command::ImportTypes(import)) => import.run(&self.serve.root_directory).await,
                None => self.serve.run().await,
            }
        });
        // Everything that matters has ended by now: what still blocks a thread does not delay us.
        threads.shutdown_timeout(Duration::from_secs(1));
        done
    }
}

// === impl ServeArgs ===

impl ServeArgs {
    async fn run(self) -> anyhow::Result<()> {
        let logs = self.log.install()?;
        let store = match self.etcd.server(self.history) {
            Some(etcd) => transfer::open_etcd(&etcd).await?,
            None => transfer::open(&self.root_directory, self.history, self.compaction_interval)?,
        };
        let store = self.protection.open(store)?;
        let mut server = Server::builder(store)
            .bind_address(self.bind_address)
            .port(self.secure_port)
            .root_directory(&self.root_directory)
            .external_hostnames(self.external_hostnames)
            .auth(self.auth.options()?)
            .event_ttl(self.event_ttl)
            .max_objects_per_cluster(self.max_objects_per_cluster)
            .allow_outbound(self.allow_outbound)
            .inflight(self.protection.inflight())
            .tls(self.tls.options());
        if let Some(audit) = self.protection.audit() {
            server = server.audit(audit);
        }
        if let Some(profiling) = self.protection.profiling(logs) {
            server = server.profiling(profiling);
        }
        let running = server.start().await?;
        let kubeconfig = self.root_directory.join("admin.kubeconfig");
        let line = format!(
            "kcp-apiserver listens on https://{}, kubeconfig {}\n",
            running.address(),
            kubeconfig.display()
        );
        // Nobody may be reading: that is no reason to end.
        let _written = std::io::stdout().write_all(line.as_bytes());
        let signal = tokio::select! {
            signal = signals::terminate() => signal.context("wait for signals")?,
            never = look_through_memory() => match never {},
        };
        tracing::info!(signal, "ending");
        running.shutdown().await;
        Ok(())
    }
}

/// Has all threads give up what they have kept for themselves of a busy time, for ever: the allocator
/// looks at that only as they allocate. It is little, but scattered: each piece holds pages of others'.
async fn look_through_memory() -> Infallible {
    let tasks = Tasks::new();
    let allocate = || drop(std::hint::black_box(Vec::<u8>::with_capacity(NOTICED)));
    let mut ticks = tokio::time::interval(LOOK_THROUGH);
    loop {
        ticks.tick().await;
        // Some more than there are threads, as none is sure to take one of them.
        for _ in 0..2 * cores() {
            drop(tasks.spawn(Span::none(), async move {
                allocate();
                tokio::task::yield_now().await;
                allocate();
            }));
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed = crate::http::parse_duration(text).filter(|parsed| !parsed.is_zero());
    parsed.ok_or_else(|| "not a duration, as 90s or 5m".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn flags_are_as_documented() {
        Args::command().debug_assert();
        let args = Args::try_parse_from([
            "kcp-apiserver",
            "--root-directory=/x",
            "--external-hostname=a",
            "--external-hostname=b",
            "--history=10m",
            "--etcd-servers=http://a:1,http://b:1",
            "--etcd-servers=http://c:1",
        ])
        .unwrap();
        assert_eq!(args.serve.external_hostnames, ["a", "b"]);
        assert_eq!(args.serve.history, Duration::from_secs(600));
        assert_eq!(args.serve.secure_port, 6443);
        let etcd = args.serve.etcd.server(args.serve.history).unwrap();
        assert_eq!(etcd.endpoints, ["http://a:1", "http://b:1", "http://c:1"]);
        assert_eq!(
            (etcd.prefix.as_str(), etcd.compaction_interval),
            ("/kcp", Some(args.serve.history))
        );
        let export = ["kcp-apiserver", "store", "export", "-", "--root-directory", "/y"];
        let args = Args::try_parse_from(export).unwrap();
        assert!(args.command.is_some() && args.serve.root_directory.ends_with("y"));
        let profiling = |flags: &[&str]| {
            let args = Args::try_parse_from([&["kcp-apiserver"], flags].concat());
            args.unwrap().serve.protection.is_profiled()
        };
        assert!(!profiling(&[]) && !profiling(&["--profiling=false"]));
        assert!(profiling(&["--profiling"]) && profiling(&["--profiling=true"]));
        for bad in [
            "--profiling=x",
            "--etcd-cafile=x",
            "--tls-cert-file=x",
            "--history=0s",
            "--history=x",
            "--insecure-port=1",
        ] {
            assert!(Args::try_parse_from(["kcp-apiserver", bad]).is_err(), "{bad}");
        }
    }
}
