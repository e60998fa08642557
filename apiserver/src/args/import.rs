//! The types of a physical cluster on the command line.

use std::path::{Path, PathBuf};

use clap::Args;
use machinery::ClusterName;

use crate::import::Import;

/// Import the types of a physical cluster into a logical cluster of a running server.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Kubeconfig of the physical cluster; its current context is used.
    #[arg(long, value_name = "KUBECONFIG")]
    from: PathBuf,

    /// The logical cluster that gets the types.
    #[arg(long, value_name = "NAME", value_parser = cluster)]
    cluster: ClusterName,

    /// Kubeconfig of the running server, instead of admin.kubeconfig in its root directory.
    #[arg(long, value_name = "KUBECONFIG")]
    to: Option<PathBuf>,

    /// What to import, as deployments.apps,services; all that can be, if not given.
    #[arg(long, value_name = "PLURAL.GROUP", value_delimiter = ',')]
    resources: Vec<String>,
}

// === impl ImportArgs ===

impl ImportArgs {
    /// Does it, and tells what became of each type on standard output.
    pub(super) async fn run(self, root: &Path) -> anyhow::Result<()> {
        let to = self.to.unwrap_or_else(|| root.join("admin.kubeconfig"));
        let import = Import {
            from: &self.from,
            to: &to,
            cluster: &self.cluster,
            resources: &self.resources,
        };
        import.run(&mut std::io::stdout()).await
    }
}

fn cluster(text: &str) -> Result<ClusterName, String> {
    ClusterName::parse(text).map_err(|error| error.to_string())
}
