//! The flags of `kcp-agent`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use runtime::logs::LogArgs;

/// Syncs the objects of one SyncTarget between a hub and a physical cluster.
///
/// In a pod of the physical cluster it is told where the hub is, and gets a certificate with a
/// bootstrap token. By hand it is given two kubeconfigs, and runs anywhere.
#[derive(Debug, Parser)]
#[command(name = "kcp-agent", version, args_conflicts_with_subcommands = true)]
#[command(subcommand_negates_reqs = true)]
pub struct Args {
    /// What to do instead of syncing.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// What is synced, and from where.
    #[command(flatten)]
    pub sync: SyncArgs,

    /// Logs.
    #[command(flatten)]
    pub logs: LogArgs,
}

/// What to do instead of syncing.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the manifest that installs an agent in a physical cluster, for `kubectl apply -f -`
    /// there: for clusters that the hub's operator can't reach.
    ///
    /// It makes a bootstrap token at the hub that is good for a day.
    Join(JoinArgs),
}

/// What is synced, and from where.
#[derive(Debug, ClapArgs)]
pub struct SyncArgs {
    /// The hub: `https://HOST:PORT[/PREFIX]`.
    #[arg(long, conflicts_with = "from_kubeconfig", required_unless_present = "from_kubeconfig")]
    pub hub: Option<String>,

    /// The certificates that vouch for the hub (PEM); the system's, if absent. It is read again for
    /// each connection, so that they can be replaced.
    #[arg(long, requires = "hub")]
    pub hub_ca_file: Option<PathBuf>,

    /// The file with the bootstrap token. It may be missing when there is a certificate.
    #[arg(long, requires = "hub")]
    pub bootstrap_token_file: Option<PathBuf>,

    /// The Secret of the agent's namespace in which it keeps its certificate.
    #[arg(long, default_value = crate::manifest::IDENTITY_SECRET, requires = "hub")]
    pub identity_secret: String,

    /// The agent's namespace. Its Secret and its Lease are there, and it is never synced to. By
    /// hand, agents that are given the same namespace elect one that works.
    #[arg(long, env = "POD_NAMESPACE")]
    pub namespace: Option<String>,

    /// A kubeconfig that leads to the hub, or to a plain Kubernetes API server, where the flags
    /// say what a SyncTarget would.
    #[arg(long, requires = "to_kubeconfig")]
    pub from_kubeconfig: Option<PathBuf>,

    /// A kubeconfig that leads to the physical cluster; if absent, the cluster that this pod is in.
    #[arg(long)]
    pub to_kubeconfig: Option<PathBuf>,

    /// The name of the SyncTarget. Objects with the label sync.workloads.kcp.io/CLUSTER.NAME are
    /// synced.
    #[arg(long, required = true)]
    pub sync_target: Option<String>,

    /// The UID of the SyncTarget. By hand: whatever it has, if absent.
    #[arg(long, required_unless_present = "from_kubeconfig")]
    pub sync_target_uid: Option<String>,

    /// The logical cluster of the SyncTarget; by hand, that of the kubeconfig if absent. A plain
    /// Kubernetes API server has none, and is called "local".
    #[arg(long, required_unless_present = "from_kubeconfig")]
    pub cluster: Option<String>,

    /// Sync these resources, as deployments.apps, and no others; may be repeated. If absent: what hub
    /// and operator have agreed on, or at a plain Kubernetes API server the usual ones.
    #[arg(long = "resource")]
    pub resources: Vec<String>,

    /// What becomes of objects that are there already, where no SyncTarget says so.
    #[arg(long, value_enum, default_value_t)]
    pub adoption: Adoption,

    /// Where /healthz, /readyz and /metrics are served; nowhere, if absent.
    #[arg(long)]
    pub listen: Option<SocketAddr>,

    /// Requests under way at a time.
    #[arg(long, default_value_t = crate::sync::PARALLEL)]
    pub parallel: usize,
}

/// What becomes of objects that are there already and not ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Adoption {
    /// They are left alone, and reported.
    #[default]
    Never,
    /// They become ours if that changes nothing in them.
    IfNoDiff,
    /// They become ours.
    Always,
}

/// How an agent is to be installed.
#[derive(Clone, Debug, ClapArgs)]
pub struct JoinArgs {
    /// A kubeconfig of somebody who may read the SyncTarget and make Secrets in kube-system.
    #[arg(long)]
    pub from_kubeconfig: PathBuf,

    /// The logical cluster of the SyncTarget; that of the kubeconfig if absent.
    #[arg(long)]
    pub cluster: Option<String>,

    /// The name of the SyncTarget, which is there already.
    #[arg(long)]
    pub sync_target: String,

    /// The hub as the physical cluster reaches it; as the kubeconfig says, if absent.
    #[arg(long)]
    pub hub: Option<String>,

    /// The agent's image.
    #[arg(long)]
    pub image: String,

    /// A file as `docker login` writes it, with which the image is pulled.
    #[arg(long)]
    pub image_pull_secret: Option<PathBuf>,
}

// === impl Adoption ===

impl From<Adoption> for engine::Adoption {
    fn from(adoption: Adoption) -> Self {
        match adoption {
            Adoption::Never => Self::Never,
            Adoption::IfNoDiff => Self::IfNoDiff,
            Adoption::Always => Self::Always,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn flags_of_both_forms() {
        Args::command().debug_assert();
        let parse = |text: &str| Args::try_parse_from(text.split_whitespace());
        let pod = parse(
            "kcp-agent --hub=https://h:1/x --hub-ca-file=/etc/kcp/hub/ca.crt --cluster=infra \
             --sync-target=east --sync-target-uid=u --bootstrap-token-file=/etc/kcp/hub/token \
             --identity-secret=kcp-agent-identity --namespace=ns --listen=0.0.0.0:8080",
        )
        .unwrap();
        assert_eq!(pod.sync.hub.as_deref(), Some("https://h:1/x"));
        let hand =
            parse("kcp-agent --from-kubeconfig F --to-kubeconfig G --sync-target N").unwrap();
        assert_eq!(hand.sync.cluster, None);
        let join = "kcp-agent join --from-kubeconfig F --sync-target N --image I";
        assert!(matches!(parse(join).unwrap().command, Some(Command::Join(_))));
        for wrong in [
            "kcp-agent",
            "kcp-agent --hub https://h",
            "kcp-agent --hub https://h --from-kubeconfig F --to-kubeconfig G --sync-target N",
            "kcp-agent --from-kubeconfig F --sync-target N",
            "kcp-agent join --sync-target N",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
