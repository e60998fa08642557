//! The whole product on this machine: a hub, the operator, and physical clusters with real pods.
//!
//! Flow: the clusters start first, since their network namespaces bring the addresses by which pods
//! reach the hub; then the hub listens on all addresses, and the operator is told which of them
//! agents are to use.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::thread;

use anyhow::{Context, Result, anyhow};

use crate::cargo::{self, Profile};
use crate::cluster::Cluster;
use crate::control_plane::Release;
use crate::hub::{self, Hub};
use crate::image::Image;
use crate::kubectl::Kubectl;
use crate::operator::{self, Operator};
use crate::run::Run;
use crate::tools::Tool;

/// The image of what tests and demos run in pods.
pub const SAMPLE_IMAGE: &str = "sample:dev";

/// The image of agents.
pub const AGENT_IMAGE: &str = "kcp-agent:dev";

/// The image of sandboxes, as containerd looks for it.
const SANDBOX_IMAGE: &str = "docker.io/library/pause:dev";

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

/// What a fleet is to be like.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan<'a> {
    /// Its physical clusters by name, and the release that each begins with.
    pub clusters: &'a [(&'a str, Release)],
    /// Further flags of operators.
    pub operator: &'a [&'a str],
}

/// A hub and its operator. Stops when it is dropped.
#[derive(Debug)]
pub struct Center {
    // Fields drop in this order.
    _operator: Operator,
    hub: Hub,
    run: Run,
}

/// A hub, the operator, and physical clusters. Stops when it is dropped.
#[derive(Debug)]
pub struct Fleet {
    // Fields drop in this order.
    center: Center,
    clusters: Vec<Cluster>,
}

// === impl Programs ===

impl Programs {
    /// Builds all of them.
    ///
    /// # Errors
    /// When one does not build.
    pub fn build(profile: Profile) -> Result<Self> {
        Ok(Self {
            apiserver: hub::PROGRAM.path(profile)?,
            operator: operator::PROGRAM.path(profile)?,
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

// === impl Center ===

impl Center {
    /// Starts a hub with its operator, which pods of all physical clusters reach at an address of
    /// this machine. Names of their logs end with `suffix`.
    ///
    /// # Errors
    /// When a program ends, or is not ready in time.
    pub fn start(
        run: &Run,
        suffix: &str,
        programs: &Programs,
        address: Ipv4Addr,
        flags: &[&str],
    ) -> Result<Self> {
        let mut options = hub::Options::new(programs.apiserver.clone());
        options.arguments = vec![
            "--bind-address=0.0.0.0".to_owned(),
            "--external-hostname=localhost".to_owned(),
            format!("--external-hostname={address}"),
        ];
        let hub = Hub::with(run, &format!("hub{suffix}"), options)?;
        let arguments = [
            format!("--hub-url=https://{address}:{}", hub.port()),
            format!("--hub-ca-file={}", hub.root().join("pki/ca.crt").display()),
            format!("--agent-image={AGENT_IMAGE}"),
        ];
        let arguments = arguments.each_ref().map(String::as_str);
        let arguments = [&arguments, flags].concat();
        let kubeconfig = Operator::kubeconfig(&hub);
        let name = format!("operator{suffix}");
        let operator = Operator::of(&programs.operator, run, &name, &kubeconfig, &arguments)?;
        Ok(Self { _operator: operator, hub, run: run.clone() })
    }

    /// The hub.
    pub fn hub(&mut self) -> &mut Hub {
        &mut self.hub
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

// === impl Fleet ===

impl Fleet {
    /// Starts a hub with the operator, and the clusters, all at once.
    ///
    /// # Errors
    /// When a program ends, or is not ready in time.
    pub fn start(run: &Run, programs: &Programs, plan: &Plan<'_>) -> Result<Self> {
        let images = programs.images(run)?;
        let start = &|name: &str, release| Cluster::of(release, run, name, SANDBOX_IMAGE, &images);
        let clusters = thread::scope(|scope| {
            let starts: Vec<_> = { plan.clusters.iter() }
                .map(|&(name, release)| scope.spawn(move || start(name, release)))
                .collect();
            let join = |start: thread::ScopedJoinHandle<'_, Result<Cluster>>| {
                start.join().map_err(|_| anyhow!("starting a cluster panicked"))?
            };
            starts.into_iter().map(join).collect::<Result<Vec<_>>>()
        })?;
        let address = clusters.first().context("a fleet has a cluster")?.host()?;
        let center = Center::start(run, "", programs, address, plan.operator)?;
        Ok(Self { center, clusters })
    }

    /// The hub.
    pub fn hub(&mut self) -> &mut Hub {
        self.center.hub()
    }

    /// A cluster, by its place among those of the plan.
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
        self.center.kubectl(cluster)
    }
}
