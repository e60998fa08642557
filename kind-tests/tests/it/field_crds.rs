//! Definitions of the field: those of cert-manager, Gateway API, Argo CD and the Prometheus operator
//! install, establish, and serve objects of ours, as at a real kube-apiserver.

use anyhow::{Context, Result, ensure};
use kind_tests::field_crds::{Definition, definitions};
use kind_tests::progress::say;
use kind_tests::scenario::{Need, in_ci};
use kind_tests::{ControlPlane, Hub, Kubectl, Run, Tool, control_plane, scenario};

use crate::support::{check_contains, first_column, with_hub};

const SAMPLES: &str = include_str!("field_crds/samples.yaml");
const REFUSED: &str = include_str!("field_crds/refused.yaml");

const DATABASES: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: databases.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: databases, singular: database, kind: Database}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Engine, type: string, jsonPath: .spec.engine}]
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {engine: {type: string}}}}
";

/// What refused samples are refused for, in their order.
const REASONS: [&str; 7] = [
    "spec.issuerRef: Required value",
    "spec.privateKey.algorithm: Unsupported value: \"Caesar\"",
    "spec.listeners: Invalid value",
    "spec.hostnames[0]: Invalid value",
    "spec.project: Required value",
    "spec.endpoints[0].interval",
    "spec.retention",
];

#[test]
fn definitions_of_the_field_are_served() {
    with_definitions("definitions_of_the_field_are_served", &[Tool::Kubectl], |run, all| {
        let mut hub = Hub::start(run, "hub")?;
        let kubectl = Kubectl::new(run, Tool::Kubectl, &hub.kubeconfig())?;
        live(&kubectl.server(&hub.cluster_url("one")), all)?;
        // What one logical cluster has, no other has.
        let two = kubectl.server(&hub.cluster_url("two"));
        two.ok(&["create", "configmap", "c"])?;
        let error = two.fails(&["get", "certificates.cert-manager.io"])?;
        check_contains(&error, &["doesn't have a resource type"])?;
        hub.terminate()
    });
}

#[test]
fn a_real_kube_apiserver_serves_them_as_well() {
    let tools = [Tool::Etcd, Tool::KubeApiserver, Tool::Kubectl];
    with_definitions("a_real_kube_apiserver_serves_them", &tools, |run, all| {
        let plane = ControlPlane::start(run, "plane", control_plane::Options::default())?;
        live(&Kubectl::new(run, Tool::Kubectl, plane.kubeconfig())?, all)?;
        plane.stop()
    });
}

/// A type of one's own, as a person makes it first.
#[test]
fn a_type_is_there_in_its_own_logical_cluster_only() {
    with_hub("a_type_is_there_in_its_own", Tool::Kubectl, |_run, hub, kubectl| {
        let one = kubectl.server(&hub.cluster_url("one"));
        let two = kubectl.server(&hub.cluster_url("two"));
        let created = one.ok_with_input(&["create", "--filename=-"], DATABASES)?;
        let name = "databases.example.org";
        ensure!(
            created == format!("customresourcedefinition.apiextensions.k8s.io/{name} created\n"),
            "{created}"
        );
        one.ok(&["wait", "--for=condition=Established", "--timeout=60s", "crd", name])?;
        let none = one.run(&["get", "databases"])?;
        ensure!(none.stderr == "No resources found in default namespace.\n", "{none}");
        let database = "{apiVersion: example.org/v1, kind: Database, metadata: {name: d}, \
                        spec: {engine: lite}}";
        one.ok_with_input(&["create", "--filename=-"], database)?;
        let table = one.ok(&["get", "databases"])?;
        ensure!(first_column(&table) == ["d"], "{table}");
        check_contains(&table, &["ENGINE", "lite"])?;

        two.ok(&["create", "configmap", "c"])?;
        let error = two.fails(&["get", "databases"])?;
        let expected = "error: the server doesn't have a resource type \"databases\"\n";
        ensure!(error == expected, "{error}");
        // The same name may mean something else there.
        let other = DATABASES.replace("engine", "maker").replace("Engine", "Maker");
        two.ok_with_input(&["create", "--filename=-"], &other)?;
        two.ok(&["wait", "--for=condition=Established", "--timeout=60s", "crd", name])?;
        let refused = two.run_with_input(&["create", "--filename=-"], database)?;
        check_contains(&refused.stderr, &["unknown field \"spec.engine\""])
    });
}

fn with_definitions(
    name: &str,
    tools: &[Tool],
    test: impl FnOnce(&Run, &[Definition]) -> Result<()>,
) {
    let needs: Vec<Need> = tools.iter().copied().map(Need::Tool).collect();
    scenario(name, &needs, |run| match definitions() {
        Ok(all) => test(run, &all),
        Err(error) if in_ci() => Err(error),
        Err(error) => {
            say(format!("skipped {name}: {error:#}"));
            Ok(())
        }
    });
}

/// From their creation to their end.
fn live(kubectl: &Kubectl, definitions: &[Definition]) -> Result<()> {
    ensure!(definitions.len() >= 25, "only {} definitions", definitions.len());
    let names: Vec<&str> = definitions.iter().map(|one| one.name.as_str()).collect();
    for definition in definitions {
        let file = definition.file.to_str().context("a path in UTF-8")?;
        // Some are too large for the annotation of `kubectl apply`.
        let created = kubectl.ok(&["create", "--filename", file])?;
        let name = &definition.name;
        let expected = format!("customresourcedefinition.apiextensions.k8s.io/{name} created\n");
        ensure!(created == expected, "{created}");
    }
    let wait = ["wait", "--for=condition=Established", "--timeout=60s", "crd"];
    kubectl.ok(&[&wait, names.as_slice()].concat())?;
    let served = kubectl.ok(&["api-resources", "--output=name"])?;
    for name in &names {
        ensure!(served.lines().any(|line| line == *name), "{name} is not served:\n{served}");
    }
    check_contains(&kubectl.ok(&["explain", "certificate.spec"])?, &["issuerRef", "-required-"])?;
    samples(kubectl)?;
    for (document, reason) in REFUSED.split("---\n").zip(REASONS) {
        let output = kubectl.run_with_input(&["create", "--filename=-"], document)?;
        ensure!(output.code != 0, "this should be refused:\n{document}");
        check_contains(&output.stderr, &[reason])?;
    }
    // One after the other: a real server that takes down thirty types at once may need more than a
    // minute for one of them, and on a busy machine for a single one, too.
    for name in &names {
        kubectl.ok(&["delete", "--timeout=240s", "crd", name])?;
    }
    let error = kubectl.fails(&["get", "certificates"])?;
    // What kubectl says depends on whether its discovery is from before.
    check_contains(&error, &["certificates"])
}

fn samples(kubectl: &Kubectl) -> Result<()> {
    let count = SAMPLES.split("---\n").count();
    let applied = kubectl.ok_with_input(&["apply", "--filename=-"], SAMPLES)?;
    ensure!(applied.lines().count() == count, "{applied}");
    // What was applied is what is there.
    let again = kubectl.ok_with_input(&["apply", "--filename=-"], SAMPLES)?;
    // Gateway API fills in items of lists that kubectl replaces as a whole.
    let replaced = |line: &str| line.contains(".gateway.networking.k8s.io/");
    let same = again.lines().all(|line| line.ends_with(" unchanged") || replaced(line));
    ensure!(same, "{again}");
    let diff = kubectl.run_with_input(&["diff", "--filename=-"], SAMPLES)?;
    ensure!((diff.code, diff.stdout.as_str()) == (0, ""), "{diff}");
    // Lists that the definitions fill in were written by the first manager, and are taken over.
    let by_server = ["apply", "--server-side", "--force-conflicts", "--filename=-"];
    let applied = kubectl.ok_with_input(&by_server, SAMPLES)?;
    ensure!(applied.lines().count() == count, "{applied}");
    let table = kubectl.ok(&["get", "certificates"])?;
    check_contains(&table, &["NAME", "READY", "SECRET", "AGE", "shop-tls"])?;
    let table = kubectl.ok(&["get", "prometheuses"])?;
    check_contains(&table, &["VERSION", "DESIRED", "READY"])?;
    let routes = kubectl.ok(&["get", "httproutes,grpcroutes", "--no-headers"])?;
    check_contains(&routes, &["shop.example.org", "grpcroute.gateway.networking.k8s.io/stock"])?;
    // Defaults of the definition.
    let path = "--output=jsonpath={.spec.rules[0].backendRefs[1].weight}";
    ensure!(kubectl.ok(&["get", "httproute", "shop", path])? == "1");
    let free = "--output=jsonpath={.spec.source.helm.valuesObject.nested.any[1]}";
    ensure!(kubectl.ok(&["get", "application", "shop", free])? == "two");
    let scaled = kubectl.ok(&["scale", "prometheus/main", "--replicas=5"])?;
    ensure!(scaled == "prometheus.monitoring.coreos.com/main scaled\n", "{scaled}");
    let issuers = kubectl.ok(&["get", "clusterissuers"])?;
    ensure!(first_column(&issuers) == ["acme"], "{issuers}");
    Ok(())
}
