//! The whole product on this machine: a hub, the operator, and physical clusters with real pods.
//!
//! Flow: the clusters start first, since their network namespaces bring the addresses by which pods
//! reach the hub; then the hub listens on all addresses, and the operator is told which of them
//! agents are to use.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, anyhow};

use crate::cargo::{self, Profile};
use crate::cluster::Cluster;
use crate::hub::{self, Hub};
use crate::image::Image;
use crate::kubectl::Kubectl;
use crate::process::Process;
use crate::run::Run;
use crate::tools::Tool;

/// The image of what tests and demos run in pods.
pub const SAMPLE_IMAGE: &str = "sample:dev";

/// The image of agents.
pub const AGENT_IMAGE: &str = "kcp-agent:dev";

/// The image of sandboxes, as containerd looks for it.
const SANDBOX_IMAGE: &str = "docker.io/library/pause:dev";

/// The kubeconfig that the server writes for the operator.
const OPERATOR_KUBECONFIG: &str = "operator.kubeconfig";

/// The programs that a fleet runs.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The API server.
    pub apiserver: PathBuf,
    /// The operator.
    pub operator: PathBuf,
    /// The agent, statically linked, for its image.
    pub agent: PathBuf,
    /// What pods run, statically linked.
    pub sample: PathBuf,
}

/// A hub, the operator, and physical clusters. Stops when it is dropped.
#[derive(Debug)]
pub struct Fleet {
    // Fields drop in this order.
    operator: Process,
    hub: Hub,
    clusters: Vec<Cluster>,
    hub_url: String,
    run: Run,
    programs: Programs,
}

// === impl Programs ===

impl Programs {
    /// Builds all of them.
    ///
    /// # Errors
    /// When one does not build.
    pub fn build(profile: Profile) -> Result<Self> {
        Ok(Self {
            apiserver: hub::program(profile)?,
            operator: cargo::build("operator", "kcp-operator", profile)?,
            agent: cargo::build_static("agent", "kcp-agent", profile)?,
            sample: cargo::build_static("sample", "sample", profile)?,
        })
    }

    /// Writes the images that clusters need into the run's folder, sandboxes' first.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn images(&self, run: &Run) -> Result<Vec<PathBuf>> {
        let image = |name: &str, program: &PathBuf, argument: Option<&str>| {
            let arguments = argument.map(str::to_owned).into_iter().collect();
            let file = run.folder().join(format!("{}.tar", name.replace(['/', ':'], "-")));
            let image = Image { name: name.to_owned(), program: program.clone(), arguments };
            image.write(&file).map(|()| file)
        };
        Ok(vec![
            image("pause:dev", &self.sample, Some("pause"))?,
            image(SAMPLE_IMAGE, &self.sample, Some("serve"))?,
            image(AGENT_IMAGE, &self.agent, None)?,
        ])
    }
}

// === impl Fleet ===

impl Fleet {
    /// Starts a hub with the operator, and a cluster of each of these names, all at once.
    ///
    /// # Errors
    /// When a program ends, or is not ready in time.
    pub fn start(run: &Run, programs: &Programs, names: &[&str]) -> Result<Self> {
        let images = programs.images(run)?;
        let clusters = thread::scope(|scope| {
            let starts: Vec<_> = names
                .iter()
                .map(|name| scope.spawn(|| Cluster::start(run, name, SANDBOX_IMAGE, &images)))
                .collect();
            let join = |start: thread::ScopedJoinHandle<'_, Result<Cluster>>| {
                start.join().map_err(|_| anyhow!("starting a cluster panicked"))?
            };
            starts.into_iter().map(join).collect::<Result<Vec<_>>>()
        })?;
        let address = clusters.first().context("a fleet has a cluster")?.host()?;
        let mut options = hub::Options::new(programs.apiserver.clone());
        // Agents know it by its address, so it comes back at the same one.
        let port = free_port()?;
        options.port = port;
        options.arguments = vec![
            "--bind-address=0.0.0.0".to_owned(),
            "--external-hostname=localhost".to_owned(),
            format!("--external-hostname={address}"),
        ];
        let hub = Hub::with(run, "hub", options)?;
        let hub_url = format!("https://{address}:{port}");
        let operator = start_operator(run, programs, &hub, &hub_url)?;
        let (run, programs) = (run.clone(), programs.clone());
        Ok(Self { operator, hub, clusters, hub_url, run, programs })
    }

    /// The hub.
    pub fn hub(&mut self) -> &mut Hub {
        &mut self.hub
    }

    /// The hub's address as clusters reach it.
    pub fn hub_url(&self) -> &str {
        &self.hub_url
    }

    /// The operator's process.
    pub fn operator(&mut self) -> &mut Process {
        &mut self.operator
    }

    /// Starts the operator again; ends it first, if it still runs.
    ///
    /// # Errors
    /// When it does not start.
    pub fn restart_operator(&mut self) -> Result<()> {
        self.operator.terminate()?;
        self.operator = start_operator(&self.run, &self.programs, &self.hub, &self.hub_url)?;
        Ok(())
    }

    /// A cluster, by its place among the names that the fleet was started with.
    ///
    /// # Errors
    /// When there is none.
    pub fn cluster(&mut self, index: usize) -> Result<&mut Cluster> {
        self.clusters.get_mut(index).context("no such cluster")
    }

    /// kubectl for a logical cluster of the hub.
    ///
    /// # Errors
    /// When kubectl is not built.
    pub fn kubectl(&self, cluster: &str) -> Result<Kubectl> {
        let kubectl = Kubectl::new(&self.run, Tool::Kubectl, &self.hub.kubeconfig())?;
        Ok(kubectl.server(&self.hub.cluster_url(cluster)))
    }
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).context("find a free port")?;
    Ok(listener.local_addr()?.port())
}

fn start_operator(run: &Run, programs: &Programs, hub: &Hub, hub_url: &str) -> Result<Process> {
    let mut operator = Command::new(&programs.operator);
    operator.args([
        format!("--kubeconfig={}", hub.root().join(OPERATOR_KUBECONFIG).display()),
        format!("--hub-url={hub_url}"),
        format!("--hub-ca-file={}", hub.root().join("pki/ca.crt").display()),
        format!("--agent-image={AGENT_IMAGE}"),
    ]);
    Process::spawn(run, "operator", operator)
}
