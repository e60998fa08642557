//! A physical cluster joins and leaves, by kubectl: a real control plane, our hub and our operator as
//! processes. No node runs the agent here.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use kind_tests::control_plane::{ControlPlane, Options};
use kind_tests::{Hub, Kubectl, Operator, Run, Tool, eventually, scenario};

use crate::site::{NEEDS, condition};
use crate::support::{check_contains, json};

/// The flags of an operator whose agents would run on this machine.
const FLAGS: [&str; 3] = ["--allow-local-hub", "--check-interval=2s", "--drain-timeout=5s"];

/// The hub, a real cluster, and a person at both.
struct Sides {
    hub: Kubectl,
    real: Kubectl,
}

fn with_sides(
    name: &str,
    test: impl FnOnce(&Run, &Sides, &mut ControlPlane, &mut Hub) -> Result<()>,
) {
    scenario(name, &NEEDS, |run| {
        let mut plane = ControlPlane::start(run, "east", Options::default())?;
        let mut hub = Hub::start(run, "hub")?;
        let mut operator = Operator::start(run, "operator", &hub, &FLAGS)?;
        let root = Kubectl::new(run, Tool::Kubectl, &hub.kubeconfig())?;
        let sides = Sides {
            hub: root.server(&hub.cluster_url("infra")),
            real: Kubectl::new(run, Tool::Kubectl, plane.kubeconfig())?,
        };
        // The types are installed by the operator itself.
        eventually("the type of SyncTargets", || root.ok(&["get", "synctargets"]))?;
        test(run, &sides, &mut plane, &mut hub)?;
        operator.terminate()?;
        hub.terminate()
    });
}

// === impl Sides ===

impl Sides {
    /// Registers a cluster by a kubeconfig, in a Secret.
    fn register(&self, run: &Run, name: &str, kubeconfig: &Path) -> Result<()> {
        let from = format!("--from-file=kubeconfig={}", kubeconfig.display());
        self.hub.ok(&["create", "secret", "generic", name, &from])?;
        let file = run.folder().join(format!("{name}.yaml"));
        let text = format!(
            "apiVersion: workload.kcp.io/v1alpha1\nkind: SyncTarget\nmetadata: {{name: {name}}}\n\
             spec:\n  kubeconfigSecretRef: {{namespace: default, name: {name}}}\n"
        );
        std::fs::write(&file, text)?;
        let file = file.to_str().context("a path in UTF-8")?;
        self.hub.ok(&["create", "--filename", file]).map(drop)
    }

    /// Waits until a condition has a reason, and gives its message.
    fn says(&self, name: &str, kind: &str, reason: &str) -> Result<String> {
        eventually(&format!("{name} to say {kind} {reason}"), || {
            let found = json(&self.hub.ok(&["get", "synctarget", name, "--output=json"])?)?;
            let condition = condition(&found, kind)?;
            ensure!(condition["reason"] == reason, "{condition}");
            Ok(condition["message"].as_str().unwrap_or_default().to_owned())
        })
    }

    /// The namespaces that agents are installed in.
    fn namespaces(&self) -> Result<Vec<String>> {
        let selector = "--selector=app.kubernetes.io/managed-by=kcp-operator";
        let names = self.real.ok(&["get", "namespaces", selector, "--output=name"])?;
        let names = names.lines().filter_map(|line| line.strip_prefix("namespace/"));
        Ok(names.map(str::to_owned).collect())
    }
}

#[test]
fn an_agent_is_installed_repaired_and_uninstalled() {
    with_sides("an_agent_is_installed", |run, sides, plane, _| {
        sides.register(run, "east", plane.kubeconfig())?;
        sides.says("east", "Installed", "Installed")?;
        sides.says("east", "Ready", "AgentNotConnected")?;
        let namespaces = sides.namespaces()?;
        let [namespace] = namespaces.as_slice() else { panic!("one namespace: {namespaces:?}") };
        let in_it = sides.real.with(&format!("--namespace={namespace}"));
        let all = in_it.ok(&[
            "get",
            "deployments,secrets,serviceaccounts,roles,rolebindings",
            "--output=name",
        ])?;
        check_contains(
            &all,
            &[
                "deployment.apps/kcp-agent",
                "secret/kcp-agent-hub",
                "secret/kcp-agent-identity",
                "serviceaccount/kcp-agent",
                "role.rbac.authorization.k8s.io/kcp-agent",
                "rolebinding.rbac.authorization.k8s.io/kcp-agent",
            ],
        )?;
        // What the agent may do, as the real server sees it.
        let agent = format!("--as=system:serviceaccount:{namespace}:kcp-agent");
        let may = |words: &[&str]| -> Result<bool> {
            let all: Vec<&str> = ["auth", "can-i", &agent].iter().chain(words).copied().collect();
            Ok(sides.real.run(&all)?.stdout.trim() == "yes")
        };
        ensure!(may(&["watch", "customresourcedefinitions"])?);
        ensure!(may(&["create", "namespaces"])?);
        ensure!(!may(&["get", "secrets", "--all-namespaces"])?);
        ensure!(!may(&["create", "clusterrolebindings"])?);
        let namespaced = format!("--namespace={namespace}");
        ensure!(may(&["update", "secrets/kcp-agent-identity", &namespaced])?);
        ensure!(!may(&["get", "secrets/kcp-agent-hub", &namespaced])?);
        ensure!(may(&["update", "leases.coordination.k8s.io/kcp-agent", &namespaced])?);

        // Nothing is written while nothing changes: that would be seen in the generation, and is seen
        // in the version.
        let version = |kind: &str| {
            in_it.ok(&["get", kind, "kcp-agent", "--output=jsonpath={.metadata.resourceVersion}"])
        };
        let before = version("role")?;
        in_it.ok(&["delete", "deployment", "kcp-agent"])?;
        eventually("the Deployment to come back", || version("deployment"))?;
        ensure!(version("role")? == before, "what was as it should be was written");

        // Somebody's own object there is kept, with its namespace, and that is told.
        in_it.ok(&["create", "configmap", "mine"])?;
        sides.hub.ok(&["delete", "synctarget", "east", "--timeout=60s"])?;
        let gone = in_it.ok(&["get", "deployments,secrets,roles", "--output=name"])?;
        ensure!(gone.is_empty(), "{gone}");
        ensure!(sides.namespaces()? == [namespace.as_str()]);
        in_it.ok(&["get", "configmap", "mine"])?;
        let events = sides.hub.ok(&["get", "events", "--output=yaml"])?;
        check_contains(&events, &["LeftBehind", "configmaps mine"])?;
        let roles = sides.real.ok(&["get", "clusterroles,clusterrolebindings", "--output=name"])?;
        ensure!(!roles.contains(namespace.as_str()), "{roles}");

        // Registered again it is another one, whose namespace goes with it.
        sides.hub.ok(&["delete", "secret", "east"])?;
        sides.register(run, "east", plane.kubeconfig())?;
        sides.says("east", "Installed", "Installed")?;
        let second = sides.namespaces()?.into_iter().find(|name| name != namespace);
        let second = second.context("a namespace of its own")?;
        sides.hub.ok(&["delete", "synctarget", "east", "--timeout=60s"])?;
        let found = sides.real.ok(&[
            "get",
            "namespace",
            &second,
            "--ignore-not-found",
            "--output=jsonpath={.metadata.deletionTimestamp}{.metadata.name}",
        ])?;
        // No controller of this control plane finishes deletions of namespaces.
        ensure!(found.is_empty() || found.starts_with("20"), "{second} is not deleted: {found}");
        Ok(())
    });
}

#[test]
fn a_cluster_that_stops_is_told_and_given_up() {
    with_sides("a_cluster_that_stops", |run, sides, plane, hub| {
        sides.register(run, "east", plane.kubeconfig())?;
        sides.says("east", "Installed", "Installed")?;
        plane.kill_api()?;
        sides.says("east", "Installed", "Unreachable")?;
        // Who asks while it ends sees the connection break; later ones find nobody there.
        eventually("the refusal to be told", || {
            let told = sides.says("east", "Ready", "Unreachable")?;
            check_contains(&told, &["connection refused"])
        })?;
        plane.start_api(run)?;
        sides.says("east", "Installed", "Installed")?;
        // The hub goes and comes back: nothing is forgotten.
        hub.kill()?;
        hub.restart()?;
        let sides = Sides {
            hub: Kubectl::new(run, Tool::Kubectl, &hub.kubeconfig())?
                .server(&hub.cluster_url("infra")),
            real: sides.real.clone(),
        };
        sides.says("east", "Ready", "AgentNotConnected")?;
        ensure!(sides.namespaces()?.len() == 1);
        Ok(())
    });
}

/// Who lends a kubeconfig without enough rights is told which are missing.
#[test]
fn missing_rights_are_named() {
    with_sides("missing_rights_are_named", |run, sides, plane, _| {
        sides.real.ok(&["create", "serviceaccount", "lent", "--namespace=default"])?;
        sides.real.ok(&[
            "create",
            "clusterrolebinding",
            "lent",
            "--clusterrole=view",
            "--serviceaccount=default:lent",
        ])?;
        sides.real.ok(&[
            "create",
            "clusterrole",
            "names",
            "--verb=get,create,patch,delete,list",
            "--resource=namespaces,clusterroles,clusterrolebindings",
        ])?;
        sides.real.ok(&[
            "create",
            "clusterrolebinding",
            "names",
            "--clusterrole=names",
            "--serviceaccount=default:lent",
        ])?;
        let token = sides.real.ok(&["create", "token", "lent", "--namespace=default"])?;
        // The administrator's kubeconfig, as somebody else.
        let lent = run.folder().join("lent.kubeconfig");
        std::fs::copy(plane.kubeconfig(), &lent)?;
        let config = Kubectl::new(run, Tool::Kubectl, &lent)?;
        let user = config.ok(&["config", "view", "--output=jsonpath={.users[0].name}"])?;
        let token = format!("--token={}", token.trim());
        config.ok(&["config", "set-credentials", &user, &token])?;
        sides.register(run, "lent", &lent)?;
        let told = sides.says("lent", "Ready", "MissingRights")?;
        check_contains(&told, &["create deployments.apps in kcp-agent-"])?;
        ensure!(sides.namespaces()?.is_empty(), "something was installed");
        Ok(())
    });
}
