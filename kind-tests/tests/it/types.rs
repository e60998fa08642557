//! Types of real clusters: what they serve is served by the hub, what they gain is gained here, and
//! where they differ is told.
//!
//! The part of an agent that reads types runs in this process; all else are processes.

use std::path::Path;
use std::time::Duration;

use agent::target::TargetRef;
use agent::types::{Settings, run};
use anyhow::{Context, Result, ensure};
use client::Link;
use kind_tests::clock::Stopwatch;
use kind_tests::control_plane::Options;
use kind_tests::{ControlPlane, Hub, Kubectl, Operator, Run, Tool, eventually, scenario};
use runtime::Tasks;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tracing::info_span;

use crate::site::NEEDS;
use crate::support::{check_contains, json as parse};

/// How often the types of a cluster are looked at here; what a poll takes is less.
const POLL: Duration = Duration::from_secs(5);

/// A hub with an operator, and what reads types.
struct Yard {
    hub: Hub,
    operator: Operator,
    root: Kubectl,
    infra: Kubectl,
    runtime: Runtime,
    tasks: Tasks,
}

impl Yard {
    fn start(run: &Run) -> Result<Self> {
        let hub = Hub::start(run, "hub")?;
        let flags = ["--allow-local-hub", "--check-interval=2s"];
        let operator = Operator::start(run, "operator", &hub, &flags)?;
        let root = Kubectl::new(run, Tool::Kubectl, &hub.kubeconfig())?;
        let infra = root.server(&hub.cluster_url("infra"));
        eventually("the type of SyncTargets", || root.ok(&["get", "synctargets"]))?;
        let runtime = Runtime::new()?;
        Ok(Self { hub, operator, root, infra, runtime, tasks: Tasks::new() })
    }

    /// Registers a cluster, and begins to read its types.
    fn join(&self, name: &str, resources: &[&str], plane: &ControlPlane) -> Result<()> {
        let target = json!({
            "apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget",
            "metadata": {"name": name}, "spec": {"mode": "None", "resources": resources},
        });
        self.infra.ok_with_input(&["create", "--filename=-"], &target.to_string())?;
        let uid =
            self.infra.ok(&["get", "synctarget", name, "--output=jsonpath={.metadata.uid}"])?;
        // Nobody is told of what is synced here.
        let (types, _) = watch::channel(Vec::new().into());
        let settings = Settings {
            target: TargetRef::new("infra", name, &uid),
            hub: link(&self.hub.kubeconfig(), true)?,
            cluster: link(plane.kubeconfig(), false)?,
            every: POLL,
            types,
        };
        let _inside = self.runtime.enter();
        drop(self.tasks.spawn(info_span!("types"), run(settings)));
        Ok(())
    }

    fn target(&self, name: &str) -> Result<Value> {
        parse(&self.infra.ok(&["get", "synctarget", name, "--output=json"])?)
    }

    fn end(mut self) -> Result<()> {
        let left = self.runtime.block_on(self.tasks.shutdown(Duration::ZERO));
        // What is dropped with its runtime needs no time to end.
        ensure!(left <= 2, "{left} tasks");
        self.operator.terminate()?;
        self.hub.terminate()
    }
}

/// A link to a server, or to what stands before the path in a kubeconfig.
fn link(kubeconfig: &Path, whole: bool) -> Result<Link> {
    let text = std::fs::read(kubeconfig)?;
    let access = machinery::kubeconfig::Access::parse(&text, None)?;
    let mut settings = client::Settings::of_access(access, Path::new(""), "kind-tests/0")?;
    if whole {
        settings.server = settings.server.with_path("");
    }
    Ok(Link::new(settings)?)
}

/// A definition of Gadgets whose `size` is of a type.
fn gadgets(size: &str) -> String {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.shop.example.com"},
        "spec": {
            "group": "shop.example.com", "scope": "Namespaced",
            "names": {
                "plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList",
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "additionalPrinterColumns":
                    [{"name": "Size", "type": "string", "jsonPath": ".spec.size"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "size": {"type": size}, "color": {"type": "string", "enum": ["red"]},
                    }},
                }}},
            }],
        },
    })
    .to_string()
}

fn gadget(size: &Value) -> String {
    json!({
        "apiVersion": "shop.example.com/v1", "kind": "Gadget",
        "metadata": {"name": "one"}, "spec": {"size": size, "color": "red"},
    })
    .to_string()
}

#[test]
fn all_types_of_a_real_cluster_are_served_and_follow_it() {
    scenario("types_of_a_real_cluster", &NEEDS, |run| {
        let plane = ControlPlane::start(run, "east", Options::default())?;
        let yard = Yard::start(run)?;
        let begun = Stopwatch::start();
        yard.join("east", &["*"], &plane)?;
        let found = eventually("all types to be imported", || {
            let target = yard.target("east")?;
            let all = target["status"]["syncedResources"].as_array().context("none yet")?;
            let waiting = all.iter().filter(|one| one["state"] != "Accepted");
            let waiting: Vec<&Value> = waiting.map(|one| &one["resource"]).collect();
            ensure!(all.len() > 20 && waiting.is_empty(), "{} types, not {waiting:?}", all.len());
            Ok(target)
        })?;
        let count = found["status"]["syncedResources"].as_array().map_or(0, Vec::len);
        println!("{count} types were imported in {:?}", begun.elapsed());
        yard.infra.ok(&[
            "wait",
            "synctarget/east",
            "--for=condition=TypesImported",
            "--timeout=10s",
        ])?;
        // As a person sees them.
        let names = yard.infra.ok(&["api-resources", "--no-headers"])?;
        check_contains(&names, &["deployments ", "services ", "cronjobs ", "nodes "])?;
        let told = yard.infra.ok(&["explain", "deployment.spec.template.spec.containers.image"])?;
        check_contains(&told, &["FIELD: image <string>"])?;
        yard.infra.ok(&["create", "deployment", "web", "--image=nginx:1", "--replicas=2"])?;
        let scaled = yard.infra.ok(&["scale", "deployment/web", "--replicas=3"])?;
        check_contains(&scaled, &["deployment.apps/web scaled"])?;
        // Other logical clusters have nothing of it.
        yard.root.fails(&["get", "deployments"])?;

        // A definition that is added there is usable here, before the next poll.
        let real = Kubectl::new(run, Tool::Kubectl, plane.kubeconfig())?;
        real.ok_with_input(&["create", "--filename=-"], &gadgets("integer"))?;
        let begun = Stopwatch::start();
        eventually("a gadget to be made", || {
            yard.infra.ok_with_input(&["create", "--filename=-"], &gadget(&json!(3)))
        })?;
        let took = begun.elapsed();
        println!("a definition was usable upstream after {took:?}");
        ensure!(took < POLL, "{took:?}");
        let table = yard.infra.ok(&["get", "gadgets"])?;
        check_contains(&table, &["SIZE", "one", "3"])?;
        yard.end()
    });
}

#[test]
fn clusters_whose_definitions_conflict_are_told_apart() {
    scenario("types_that_conflict", &NEEDS, |run| {
        let east = ControlPlane::start(run, "east", Options::default())?;
        let west = ControlPlane::start(run, "west", Options::default())?;
        let yard = Yard::start(run)?;
        for (plane, size) in [(&east, "integer"), (&west, "string")] {
            let real = Kubectl::new(run, Tool::Kubectl, plane.kubeconfig())?;
            real.ok_with_input(&["create", "--filename=-"], &gadgets(size))?;
        }
        let resources = ["gadgets.shop.example.com", "deployments.apps"];
        let state = |name: &str, resource: &str, expect: &str| {
            eventually(&format!("{resource} to be {expect} at {name}"), || {
                let target = yard.target(name)?;
                let all = target["status"]["syncedResources"].as_array().context("none yet")?;
                let one = all.iter().find(|one| one["resource"] == resource);
                let one = one.context("it is not there yet")?;
                ensure!(one["state"] == expect, "{one}");
                Ok(one["message"].as_str().unwrap_or_default().to_owned())
            })
        };
        yard.join("east", &resources, &east)?;
        state("east", "gadgets", "Accepted")?;
        yard.join("west", &resources, &west)?;
        let message = state("west", "gadgets", "Incompatible")?;
        check_contains(&message, &[".spec.size", "(type)"])?;
        // What fits is not kept out by what does not.
        state("west", "deployments", "Accepted")?;
        state("east", "deployments", "Accepted")?;
        let names = yard.infra.ok(&["get", "apiresourceschemas", "--no-headers"])?;
        let deployments = names.lines().filter(|line| line.contains("Deployment")).count();
        ensure!(deployments == 1, "equal clusters share a description:\n{names}");
        let import = ["get", "apiresourceimport", "gadgets.v1.shop.example.com--west"];
        let object = parse(&yard.infra.ok(&[&import[..], &["--output=json"]].concat())?)?;
        let difference = &object["status"]["differences"][0];
        ensure!(difference["path"] == ".spec.size", "{difference}");
        let table = yard.infra.ok(&import)?;
        check_contains(&table, &["COMPATIBLE", "False", "IncompatibleSchema"])?;
        // A person makes both the same: it heals.
        let real = Kubectl::new(run, Tool::Kubectl, west.kubeconfig())?;
        real.ok_with_input(&["apply", "--filename=-"], &gadgets("integer"))?;
        state("west", "gadgets", "Accepted")?;
        yard.end()
    });
}
