//! A hub, its operator, and a real control plane without nodes whose agent runs as a process: joined,
//! with every connection between them a cable that can be cut.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use kind_tests::control_plane::{ControlPlane, Options};
use kind_tests::kubeconfig::Access;
use kind_tests::scenario::Need;
use kind_tests::{Agent, Cable, ControllerManager, Hub, Kubectl, Operator, Run, Tool, eventually};
use serde_json::{Value, json};

use crate::support::json as parse;

/// The logical cluster of the SyncTarget and of all objects.
const CLUSTER: &str = "infra";

/// The SyncTarget.
pub(crate) const TARGET: &str = "east";

/// The programs of a site, without its controllers.
pub(crate) const NEEDS: [Need; 3] =
    [Need::Tool(Tool::Etcd), Need::Tool(Tool::KubeApiserver), Need::Tool(Tool::Kubectl)];

/// What a site is to be like.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kind<'a> {
    /// Whether Kubernetes' controllers run.
    pub(crate) controllers: bool,
    /// What is synced; the usual types if there are none.
    pub(crate) resources: &'a [&'a str],
}

/// The connections. Each leads from the one that is named first.
#[derive(Debug)]
pub(crate) struct Cables {
    pub(crate) agent_to_hub: Cable,
    pub(crate) agent_to_cluster: Cable,
    pub(crate) operator_to_hub: Cable,
    pub(crate) operator_to_cluster: Cable,
}

/// All of it. Stops when it is dropped.
#[derive(Debug)]
pub(crate) struct Site {
    // Fields drop in this order.
    pub(crate) agent: Agent,
    pub(crate) operator: Operator,
    _controllers: Option<ControllerManager>,
    pub(crate) hub: Hub,
    pub(crate) plane: ControlPlane,
    pub(crate) cables: Cables,
    /// A person in the logical cluster, and one in the physical cluster.
    pub(crate) up: Kubectl,
    pub(crate) down: Kubectl,
    pub(crate) run: Run,
}

// === impl Cables ===

impl Cables {
    fn new(hub: &Hub, plane: &ControlPlane) -> Result<Self> {
        Ok(Self {
            agent_to_hub: Cable::to(hub.url())?,
            agent_to_cluster: Cable::to(plane.url())?,
            operator_to_hub: Cable::to(hub.url())?,
            operator_to_cluster: Cable::to(plane.url())?,
        })
    }
}

// === impl Site ===

impl Site {
    /// Starts it, and waits until the cluster has joined.
    pub(crate) fn start(run: &Run, kind: Kind<'_>) -> Result<Self> {
        let Kind { controllers, resources } = kind;
        let plane = ControlPlane::start(run, TARGET, Options::default())?;
        let controllers =
            controllers.then(|| ControllerManager::start(run, TARGET, &plane)).transpose()?;
        let hub = Hub::start(run, "hub")?;
        let cables = Cables::new(&hub, &plane)?;
        let authority = hub.root().join("pki/ca.crt");
        let kubeconfig = run.folder().join("operator.kubeconfig");
        through(&Operator::kubeconfig(&hub), &cables.operator_to_hub, &kubeconfig)?;
        let operator = Operator::by(
            run,
            "operator",
            &kubeconfig,
            &[
                "--allow-local-hub",
                "--check-interval=2s",
                "--drain-timeout=5s",
                &format!("--hub-url={}", cables.agent_to_hub.url()),
                &format!("--hub-ca-file={}", authority.display()),
            ],
        )?;
        let root = Kubectl::new(run, Tool::Kubectl, &hub.kubeconfig())?;
        let up = root.server(&hub.cluster_url(CLUSTER));
        let down = Kubectl::new(run, Tool::Kubectl, plane.kubeconfig())?;
        eventually("the type of SyncTargets", || root.ok(&["get", "synctargets"]))?;
        let lent = run.folder().join("lent.kubeconfig");
        through(plane.kubeconfig(), &cables.operator_to_cluster, &lent)?;
        register(&up, &lent, resources)?;
        let agent = install(run, "agent", &plane, &cables, &down)?;
        let run = run.clone();
        let site =
            Self { agent, operator, _controllers: controllers, hub, plane, cables, up, down, run };
        // Types take longer than anything else.
        let ready = ["wait", "--for=condition=Ready", "--timeout=110s"];
        site.up.ok(&[&ready[..], &[&format!("synctarget/{TARGET}")]].concat())?;
        Ok(site)
    }

    /// Runs the agent that is installed now in the place of the one before: of a cluster that was made
    /// anew it is another one.
    pub(crate) fn install_agent(&mut self, name: &str) -> Result<()> {
        self.agent = install(&self.run, name, &self.plane, &self.cables, &self.down)?;
        Ok(())
    }

    /// The SyncTarget.
    pub(crate) fn target(&self) -> Result<Value> {
        parse(&self.up.ok(&["get", "synctarget", TARGET, "--output=json"])?)
    }

    /// Waits until a condition of the SyncTarget has a status or a reason, and gives its message.
    pub(crate) fn says(&self, kind: &str, expect: &str) -> Result<String> {
        eventually(&format!("{kind} to be {expect}"), || {
            let target = self.target()?;
            let condition = condition(&target, kind)?;
            let is = |field: &str| condition[field] == expect;
            ensure!(is("status") || is("reason"), "{condition}");
            Ok(condition["message"].as_str().unwrap_or_default().to_owned())
        })
    }

    /// Applies objects at the hub.
    pub(crate) fn apply(&self, objects: &[Value]) -> Result<()> {
        apply(&self.up, objects)
    }
}

/// A condition in the status of an object.
pub(crate) fn condition<'v>(object: &'v Value, kind: &str) -> Result<&'v Value> {
    let conditions = object["status"]["conditions"].as_array().context("no conditions")?;
    let found = conditions.iter().find(|one| one["type"] == kind);
    found.with_context(|| format!("no {kind} in {conditions:?}"))
}

/// Applies objects as a person would.
pub(crate) fn apply(kubectl: &Kubectl, objects: &[Value]) -> Result<()> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    kubectl.ok_with_input(&["apply", "--filename=-"], &list.to_string()).map(drop)
}

/// Registers the cluster that a kubeconfig leads to.
fn register(up: &Kubectl, kubeconfig: &Path, resources: &[&str]) -> Result<()> {
    let from = format!("--from-file=kubeconfig={}", kubeconfig.display());
    up.ok(&["create", "secret", "generic", TARGET, &from])?;
    let target = json!({
        "apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget",
        "metadata": {"name": TARGET},
        "spec": {
            "kubeconfigSecretRef": {"namespace": "default", "name": TARGET}, "resources": resources,
        },
    });
    apply(up, &[target])
}

/// Runs the agent that is installed for the SyncTarget, as soon as it is.
fn install(
    run: &Run,
    name: &str,
    plane: &ControlPlane,
    cables: &Cables,
    down: &Kubectl,
) -> Result<Agent> {
    let kubeconfig = run.folder().join(format!("{name}.kubeconfig"));
    through(plane.kubeconfig(), &cables.agent_to_cluster, &kubeconfig)?;
    let namespace = installed(down, TARGET)?;
    Agent::start(run, name, down, &kubeconfig, &namespace)
}

/// Waits until an agent is installed for a SyncTarget; gives its namespace.
pub(crate) fn installed(cluster: &Kubectl, target: &str) -> Result<String> {
    let flag = format!("--sync-target={target}");
    eventually(&format!("the agent's Deployment of {target}"), || {
        let all = ["get", "deployments", "--all-namespaces", "--output=json"];
        let all = parse(&cluster.ok(&all)?)?;
        let is_it = |one: &&Value| {
            let arguments = &one["spec"]["template"]["spec"]["containers"][0]["args"];
            arguments.as_array().is_some_and(|all| all.iter().any(|argument| *argument == flag))
        };
        let found = all["items"].as_array().context("a list")?.iter().find(is_it);
        let found = found.context("it is not there")?;
        Ok(found["metadata"]["namespace"].as_str().context("a namespace")?.to_owned())
    })
}

/// Copies a kubeconfig, with a cable in the place of its server.
fn through(kubeconfig: &Path, cable: &Cable, copy: &Path) -> Result<()> {
    let server = Access::read(kubeconfig, None)?.server;
    let host = server.strip_prefix("https://").context("not https")?;
    let host = host.split('/').next().unwrap_or(host);
    let text = std::fs::read_to_string(kubeconfig)?;
    Ok(std::fs::write(copy, text.replace(&format!("https://{host}"), &cable.url()))?)
}
