//! What the flags come to: links, the SyncTarget, who leads.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use client::{Authorities, Credentials, Link, Server, Settings};
use machinery::kubeconfig::Access;
use sha2::{Digest, Sha256};

use super::USER_AGENT;
use crate::args::SyncArgs;
use crate::identity::Keep;
use crate::leader::{Candidate, Handover};
use crate::manifest::AGENT_NAME;
use crate::sync::{Plain, Shape, Upstream};

/// What a plain API server's only logical cluster is called.
const LOCAL: &str = "local";

/// What the flags come to.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) upstream: Upstream,
    pub(super) downstream: Link,
    /// With a bootstrap token's link, and where the certificate is kept; `None` by hand.
    pub(super) identity: Option<(Option<Link>, Arc<Keep>)>,
    pub(super) candidate: Option<Candidate>,
    pub(super) cluster: String,
    pub(super) name: String,
    /// `None` for whatever it has.
    pub(super) uid: Option<String>,
    pub(super) resources: Vec<String>,
    pub(super) plain: Option<Plain>,
    pub(super) reserved_namespaces: BTreeSet<Arc<str>>,
    pub(super) parallel: usize,
}

/// What a kubeconfig leads to.
pub(super) struct Led {
    pub(super) settings: Settings,
    /// The logical cluster in its path, and what stands before.
    pub(super) cluster: Option<String>,
    pub(super) root: Server,
}

// === impl Setup ===

impl Setup {
    pub(super) fn of(args: &SyncArgs) -> anyhow::Result<Self> {
        let downstream = match &args.to_kubeconfig {
            Some(path) => read(path)?.settings,
            None => Settings::in_cluster(USER_AGENT)?,
        };
        let downstream = Link::new(downstream).context("prepare for the physical cluster")?;
        let candidate = args.namespace.clone().map(|namespace| Candidate {
            link: downstream.clone(),
            namespace,
            name: AGENT_NAME.to_owned(),
            identity: own_name(),
            handover: Handover::default(),
        });
        let reserved = args.namespace.iter().map(|namespace| namespace.as_str().into()).collect();
        let mut setup = Self {
            upstream: Upstream { link: downstream.clone(), shape: Shape::Hub },
            downstream,
            identity: None,
            candidate,
            cluster: args.cluster.clone().unwrap_or_default(),
            name: args.sync_target.clone().context("--sync-target is needed")?,
            uid: args.sync_target_uid.clone(),
            resources: args.resources.clone(),
            plain: None,
            reserved_namespaces: reserved,
            parallel: args.parallel.max(1),
        };
        match (&args.from_kubeconfig, &args.hub) {
            (Some(path), _) => setup.by_hand(path, args)?,
            (None, Some(hub)) => setup.in_pod(hub, args)?,
            (None, None) => bail!("--hub or --from-kubeconfig is needed"),
        }
        Ok(setup)
    }

    /// With a certificate of its own.
    fn in_pod(&mut self, hub: &str, args: &SyncArgs) -> anyhow::Result<()> {
        let settings = Settings {
            server: hub.parse().context("--hub")?,
            server_name: None,
            authorities: args.hub_ca_file.clone().map_or(Authorities::System, Authorities::File),
            credentials: Credentials::None,
            reachable: None,
            user_agent: USER_AGENT,
        };
        let bootstrap = args.bootstrap_token_file.clone().map(|file| {
            Link::new(Settings { credentials: Credentials::TokenFile(file), ..settings.clone() })
        });
        let bootstrap = bootstrap.transpose().context("--hub")?;
        let namespace = args.namespace.clone().context("--namespace is needed with --hub")?;
        let keep = Keep::Secret {
            link: self.downstream.clone(),
            namespace,
            name: args.identity_secret.clone(),
        };
        self.upstream.link = Link::new(settings).context("--hub")?;
        self.identity = Some((bootstrap, Arc::new(keep)));
        Ok(())
    }

    /// As whoever the kubeconfig says.
    fn by_hand(&mut self, path: &Path, args: &SyncArgs) -> anyhow::Result<()> {
        let Led { mut settings, cluster, root } = read(path)?;
        settings.server = root;
        self.upstream.link = Link::new(settings).context("--from-kubeconfig")?;
        match args.cluster.clone().or(cluster) {
            Some(cluster) => self.cluster = cluster,
            None => {
                self.upstream.shape = Shape::Plain;
                LOCAL.clone_into(&mut self.cluster);
                self.plain =
                    Some(Plain { adoption: args.adoption.into(), mapping: engine::Mapping::Same });
                // It must be the same in the next run, and fit a label.
                let digest = Sha256::digest(&self.name);
                let hex: String = digest.iter().take(16).map(|b| format!("{b:02x}")).collect();
                self.uid.get_or_insert(hex);
            }
        }
        Ok(())
    }
}

/// Reads a kubeconfig of the user's own: files that it names are read, too.
pub(super) fn read(path: &Path) -> anyhow::Result<Led> {
    let of_file = || format!("the kubeconfig {}", path.display());
    let text = std::fs::read(path).with_context(of_file)?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let file = |path: &str| std::fs::read(directory.join(path)).map_err(|e| e.to_string());
    let access = Access::parse(&text, Some(&file)).with_context(of_file)?;
    let settings = Settings::of_access(access, directory, USER_AGENT).with_context(of_file)?;
    let (root, cluster) = match settings.server.path().rsplit_once("/clusters/") {
        Some((root, cluster)) if !cluster.contains('/') => {
            (root.to_owned(), Some(cluster.to_owned()))
        }
        _ => (settings.server.path().to_owned(), None),
    };
    let root = settings.server.with_path(&root);
    Ok(Led { settings, cluster, root })
}

/// Unlike any other process: the pod's name, or the host's, and something of this run alone.
fn own_name() -> String {
    let host = std::env::var("POD_NAME").ok();
    let host = host.or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok());
    let host = host.as_deref().map_or("agent", str::trim);
    let now = jiff::Timestamp::now().as_nanosecond();
    let digest = Sha256::digest(format!("{host}|{}|{now}", std::process::id()));
    let run: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("{host}_{run}")
}
