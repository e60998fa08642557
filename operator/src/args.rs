//! Flags of the program, and what they say, checked.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Parser, ValueEnum};
use client::{Server, Settings};
use machinery::kubeconfig::Access;
use machinery::network::{Network, Reachable};
use runtime::logs::LogArgs;

/// What the operator calls itself.
const USER_AGENT: &str = concat!("kcp-operator/", env!("CARGO_PKG_VERSION"));

/// The operator of kcp: installs agents for SyncTargets, negotiates types, assigns objects.
#[derive(Parser, Clone, Debug)]
#[command(name = "kcp-operator", version)]
pub struct Args {
    /// How the hub is reached: the file operator.kubeconfig that the API server writes.
    #[arg(long, env = "KCP_OPERATOR_KUBECONFIG")]
    pub kubeconfig: PathBuf,

    /// The hub's URL as physical clusters reach it: `https://HOST[:PORT][/PREFIX]`. If it isn't given,
    /// that of the kubeconfig.
    #[arg(long)]
    pub hub_url: Option<String>,

    /// The certificates that vouch for the hub at that URL, as a PEM file; it may hold several, so
    /// that authorities can be changed. If it isn't given, those of the kubeconfig.
    #[arg(long)]
    pub hub_ca_file: Option<PathBuf>,

    /// Accept a hub URL that leads every machine to itself: for agents that run beside the hub.
    #[arg(long)]
    pub allow_local_hub: bool,

    /// The image of agents.
    #[arg(long, default_value = concat!("kcp-agent:", env!("CARGO_PKG_VERSION")))]
    pub agent_image: String,

    /// A file as `docker login` writes it, with which the image is pulled.
    #[arg(long)]
    pub image_pull_secret: Option<PathBuf>,

    /// The mode of SyncTargets that name none.
    #[arg(long, value_enum, default_value_t)]
    pub default_mode: DefaultMode,

    /// A range of special addresses (loopback, link-local) that kubeconfigs of SyncTargets may lead
    /// to. Repeatable.
    #[arg(long)]
    pub allow_outbound: Vec<Network>,

    /// Where /healthz, /readyz and /metrics are served.
    #[arg(long, default_value = "127.0.0.1:8081")]
    pub listen: SocketAddr,

    /// How long the deletion of a SyncTarget waits for a cluster that cannot be reached.
    #[arg(long, default_value = "5m", value_parser = duration)]
    pub drain_timeout: Duration,

    /// How often an installation is looked at.
    #[arg(long, default_value = "60s", value_parser = duration)]
    pub check_interval: Duration,

    #[command(flatten)]
    pub log: LogArgs,
}

/// The mode of SyncTargets that name none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DefaultMode {
    /// An agent in the physical cluster comes to the hub.
    #[default]
    Pull,
    /// The operator goes to the physical cluster.
    Push,
    /// Nobody syncs.
    None,
}

/// What the operator is told, whole.
#[derive(Clone, Debug)]
pub struct Options {
    /// How the hub is reached; a path that leads to a logical cluster is cut off.
    pub hub: Settings,
    /// The file that says so, which is read again when the hub refuses the operator; `None` if there is
    /// none.
    pub kubeconfig: Option<PathBuf>,
    /// What agents are told.
    pub agents: AgentOptions,
    /// The mode of SyncTargets that name none.
    pub default_mode: DefaultMode,
    /// Which addresses kubeconfigs may lead to.
    pub reachable: Reachable,
    /// Where pages about the process are; `None` for nowhere.
    pub listen: Option<SocketAddr>,
    /// How long the deletion of a SyncTarget waits for a cluster that cannot be reached.
    pub drain_timeout: Duration,
    /// How often an installation is looked at.
    pub check_interval: Duration,
}

/// What agents are told.
#[derive(Clone)]
pub struct AgentOptions {
    /// The hub as they reach it.
    pub hub: String,
    /// The certificates that vouch for it, as PEM; `None` for the system's.
    pub authority: Option<String>,
    /// Their image.
    pub image: String,
    /// What it is pulled with.
    pub pull_secret: Option<String>,
}

// === impl DefaultMode ===

impl DefaultMode {
    /// As `spec.mode` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pull => "Pull",
            Self::Push => "Push",
            Self::None => "None",
        }
    }
}

// === impl AgentOptions ===

/// Never shows the pull secret.
impl std::fmt::Debug for AgentOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentOptions")
            .field("hub", &self.hub)
            .field("image", &self.image)
            .finish_non_exhaustive()
    }
}

// === impl Args ===

impl Args {
    /// Reads what the flags name.
    ///
    /// # Errors
    /// What cannot be read or is of no use; a hub URL that leads agents to themselves.
    pub fn options(&self) -> anyhow::Result<Options> {
        let (hub, own_authority) = read_hub(&self.kubeconfig)?;
        let url = match &self.hub_url {
            Some(url) => base(&url.parse().context("the flag --hub-url")?),
            None => hub.server.clone(),
        };
        if !self.allow_local_hub && is_local(url.host()) {
            bail!(
                "{url} leads every machine to itself, so agents in other clusters cannot reach the \
                 hub there: give an address with --hub-url that pods reach, and let the API server \
                 have a certificate for it (--external-hostname); --allow-local-hub is for agents \
                 that run on this machine"
            );
        }
        let authority = match &self.hub_ca_file {
            Some(path) => Some(String::from_utf8(read(path)?).context("the flag --hub-ca-file")?),
            None => own_authority,
        };
        if authority.as_ref().is_some_and(|pem| !pem.contains("-----BEGIN CERTIFICATE-----")) {
            bail!("there is no certificate among those that vouch for the hub");
        }
        let pull_secret = match &self.image_pull_secret {
            Some(path) => Some(String::from_utf8(read(path)?).context("--image-pull-secret")?),
            None => None,
        };
        // Its content is a secret, and so is what a parser would say of it.
        if pull_secret.as_deref().is_some_and(|text| !agent::manifest::is_pull_secret(text)) {
            bail!("the file of --image-pull-secret is not as docker writes it: it has no auths");
        }
        Ok(Options {
            hub,
            kubeconfig: Some(self.kubeconfig.clone()),
            agents: AgentOptions {
                hub: url.to_string(),
                authority,
                image: self.agent_image.clone(),
                pull_secret,
            },
            default_mode: self.default_mode,
            reachable: Reachable::new(self.allow_outbound.clone()),
            listen: Some(self.listen),
            drain_timeout: self.drain_timeout,
            check_interval: self.check_interval,
        })
    }
}

/// How a kubeconfig leads to the hub, and the certificates in it that vouch for the hub, as PEM.
///
/// # Errors
/// What is wrong with the file, or cannot be read.
pub(crate) fn read_hub(kubeconfig: &Path) -> anyhow::Result<(Settings, Option<String>)> {
    let directory = kubeconfig.parent().unwrap_or(Path::new("."));
    let text = read(kubeconfig)?;
    let files = |path: &str| std::fs::read(directory.join(path)).map_err(|error| error.to_string());
    let access = Access::parse(&text, Some(&files))
        .with_context(|| format!("the kubeconfig {} can't be used", kubeconfig.display()))?;
    let authority = match &access.authority {
        Some(pem) => Some(String::from_utf8(pem.clone()).context("the hub's certificates")?),
        None => None,
    };
    let mut hub = Settings::of_access(access, directory, USER_AGENT)?;
    hub.server = base(&hub.server);
    Ok((hub, authority))
}

/// The server without the logical cluster that a kubeconfig leads to.
fn base(server: &Server) -> Server {
    match server.path().split_once("/clusters/") {
        Some((prefix, _)) => server.with_path(prefix),
        None => server.clone(),
    }
}

/// Whether a host is the machine itself, on every machine.
fn is_local(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => !Reachable::default().permits(address),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("read {}", path.display()))
}

/// `90s`, `5m` or `1h`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "not a duration, as 90s or 5m".to_owned();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text.strip_prefix(number) {
        Some("s") => 1,
        Some("m") => 60,
        Some("h") => 3600,
        _ => return Err(wrong()),
    };
    let number: u32 = number.parse().map_err(|_| wrong())?;
    let seconds = u64::from(number) * factor;
    if seconds == 0 { Err(wrong()) } else { Ok(Duration::from_secs(seconds)) }
}

#[cfg(test)]
mod tests;
