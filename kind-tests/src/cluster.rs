//! A whole Kubernetes cluster on this machine, whose one node runs real pods.
//!
//! A control plane in a network namespace, its controllers and scheduler, and a [`Node`]: containerd
//! with runc, kubelet and kube-proxy. Nothing is pulled: images are files that are loaded into it.
//! Pods reach the host at [`Cluster::host`].

mod node;
mod remains;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::control_plane::{ControlPlane, Options, Release};
use crate::controllers::{ControllerManager, kubeconfigs};
use crate::namespace::{Cut, Namespace, Route};
use crate::process::{Process, is_on_path};
use crate::run::Run;
use crate::scenario::Need;
use crate::tools::{Tool, path};

pub(crate) use self::remains::end_containers_below;

use self::node::Node;

/// The programs of Debian that a node needs, with the packages that have them.
const NODE_PROGRAMS: [(&str, &str); 5] = [
    ("containerd", "containerd"),
    ("runc", "runc"),
    ("iptables", "iptables"),
    ("conntrack", "conntrack"),
    ("socat", "socat"),
];

/// Where Debian's package `containernetworking-plugins` puts them.
const NETWORK_PLUGINS: &str = "/usr/lib/cni";

/// What has to be installed on this machine before a node can run: packages of Debian.
pub fn missing_packages() -> Vec<&'static str> {
    let mut missing: Vec<_> = { NODE_PROGRAMS.into_iter() }
        .filter(|(program, _)| !is_on_path(program))
        .map(|(_, package)| package)
        .collect();
    if !Path::new(NETWORK_PLUGINS).is_dir() {
        missing.push("containernetworking-plugins");
    }
    missing
}

/// How long it may take until pods start again, and reach the API server by its Service, after that
/// was away. Kubelet and kube-proxy look again after pauses that double up to 30 s, of which client-go
/// makes up to a minute by its jitter; and they stay long for two minutes after the last one, so a
/// server that is away twice in that time is found late the second time.
pub const NODE_FOLLOWS: Duration = Duration::from_secs(150);

/// The programs of the harness that a cluster is made of.
pub fn tools() -> Vec<Tool> {
    let tool = |need| match need {
        Need::Tool(tool) => Some(tool),
        Need::Namespaces | Need::Node => None,
    };
    NEEDS.into_iter().filter_map(tool).collect()
}

/// What a cluster is made of, as needs of a test.
pub const NEEDS: [Need; 9] = [
    Need::Namespaces,
    Need::Node,
    Need::Tool(Tool::Etcd),
    Need::Tool(Tool::KubeApiserver),
    Need::Tool(Tool::KubeControllerManager),
    Need::Tool(Tool::KubeScheduler),
    Need::Tool(Tool::Kubelet),
    Need::Tool(Tool::KubeProxy),
    Need::Tool(Tool::Kubectl),
];

/// A running cluster. Stops when it is dropped.
#[derive(Debug)]
pub struct Cluster {
    // Fields drop in this order: the node's programs wait for their API server while they end.
    node: Node,
    controllers: Controllers,
    control_plane: ControlPlane,
    run: Run,
    name: String,
}

/// The programs beside the API server.
#[derive(Debug)]
struct Controllers {
    manager: ControllerManager,
    scheduler: Process,
}

// === impl Cluster ===

impl Cluster {
    /// Starts one with `images` loaded, the first of which is the one of sandboxes (`sample pause`).
    /// Its node is not waited for: [`crate::Kubectl`] can.
    ///
    /// # Errors
    /// When a program is missing, ends, or isn't ready in time.
    pub fn start(run: &Run, name: &str, sandbox: &str, images: &[PathBuf]) -> Result<Self> {
        Self::of(Release::default(), run, name, sandbox, images)
    }

    /// The same, with an API server and controllers of a release. All else is of the current one.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn of(
        release: Release,
        run: &Run,
        name: &str,
        sandbox: &str,
        images: &[PathBuf],
    ) -> Result<Self> {
        let options = Options { namespace: true, release, ..Options::default() };
        let control_plane = ControlPlane::start(run, name, options)?;
        let controllers = Controllers::start(run, name, &control_plane)?;
        let node = Node::start(run, name, &control_plane, sandbox, images)?;
        Ok(Self { node, controllers, control_plane, run: run.clone(), name: name.to_owned() })
    }

    /// Its control plane.
    pub fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    /// The kubeconfig of a user in `system:masters`.
    pub fn kubeconfig(&self) -> &Path {
        self.control_plane.kubeconfig()
    }

    /// The host's address, as pods see it.
    ///
    /// # Errors
    /// Never: a cluster has a network namespace.
    pub fn host(&self) -> Result<Ipv4Addr> {
        Ok(self.namespace()?.host())
    }

    /// Drops all packets of a route, there and back, until that is mended.
    ///
    /// # Errors
    /// When the firewall does not take the rules.
    pub fn cut(&self, route: Route) -> Result<Cut> {
        self.namespace()?.cut(route)
    }

    fn namespace(&self) -> Result<&Namespace> {
        self.control_plane.namespace().context("a cluster has a network namespace")
    }

    /// Ends the API server alone, as a crash does. Pods go on.
    ///
    /// # Errors
    /// When it cannot be ended.
    pub fn kill_api(&mut self) -> Result<()> {
        self.control_plane.kill_api()
    }

    /// Ends the API server alone, in good order. Pods go on.
    ///
    /// # Errors
    /// When it cannot be ended.
    pub fn stop_api(&mut self) -> Result<()> {
        self.control_plane.stop_api()
    }

    /// Starts the API server as that of another release, and then its controllers: an upgrade in
    /// place, over the same etcd, at the same address and with the same certificates.
    ///
    /// # Errors
    /// When one doesn't start.
    pub fn upgrade(&mut self, release: Release) -> Result<()> {
        self.control_plane.set_release(release);
        self.start_api()
    }

    /// Starts the API server again, and its controllers, which may have given up meanwhile. Its node
    /// has [`NODE_FOLLOWS`] to follow.
    ///
    /// # Errors
    /// When one doesn't start.
    pub fn start_api(&mut self) -> Result<()> {
        self.control_plane.start_api(&self.run)?;
        self.controllers = Controllers::start(&self.run, &self.name, &self.control_plane)?;
        Ok(())
    }

    /// Fails if a program of it has ended.
    ///
    /// # Errors
    /// As said.
    pub fn check_running(&mut self) -> Result<()> {
        self.controllers.manager.process().check_running()?;
        self.controllers.scheduler.check_running()?;
        self.node.check_running()
    }
}

// === impl Controllers ===

impl Controllers {
    fn start(run: &Run, name: &str, control_plane: &ControlPlane) -> Result<Self> {
        let mut scheduler = control_plane.command(path(Tool::KubeScheduler)?);
        scheduler.args(kubeconfigs(control_plane)).arg("--leader-elect=false");
        Ok(Self {
            manager: ControllerManager::start(run, name, control_plane)?,
            scheduler: Process::spawn(run, &format!("{name}-scheduler"), scheduler)?,
        })
    }
}
