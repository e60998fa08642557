//! The everyday commands of both kubectl versions. They run against our server, in two logical
//! clusters, and against a real kube-apiserver, so that what they expect is what Kubernetes does.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use anyhow::{Context, Result, ensure};
use kind_tests::scenario::Need;
use kind_tests::{ControlPlane, Kubectl, Run, Tool, control_plane, eventually, scenario};

use crate::support::{check_contains, first_column, json, with_hub};

/// A secret as a person writes it into a file.
const SECRET: &str = "\
apiVersion: v1
kind: Secret
metadata:
  name: secret
stringData:
  password: hunter2
";

#[test]
fn everyday_commands() {
    in_two_clusters("everyday_commands", Tool::Kubectl);
}

#[test]
fn everyday_commands_of_the_older_kubectl() {
    in_two_clusters("everyday_commands_of_the_older_kubectl", Tool::KubectlOlder);
}

#[test]
fn a_real_kube_apiserver_answers_the_same() {
    against_upstream("a_real_kube_apiserver_answers_the_same", Tool::Kubectl);
}

#[test]
fn a_real_kube_apiserver_answers_the_older_kubectl_the_same() {
    against_upstream(
        "a_real_kube_apiserver_answers_the_older_kubectl_the_same",
        Tool::KubectlOlder,
    );
}

#[test]
fn a_deleted_namespace_goes_with_all_it_holds() {
    with_hub("a_deleted_namespace_goes", Tool::Kubectl, |_run, hub, kubectl| {
        let one = kubectl.server(&hub.cluster_url("one"));
        one.ok(&["create", "namespace", "mine"])?;
        one.ok(&["create", "configmap", "c", "--namespace=mine"])?;
        one.ok(&["delete", "namespace", "mine", "--timeout=30s"])?;
        check_contains(&one.fails(&["get", "namespace", "mine"])?, &["NotFound"])?;
        one.ok(&["create", "namespace", "mine"])?;
        check_contains(&one.fails(&["get", "cm", "c", "--namespace=mine"])?, &["NotFound"])
    });
}

fn against_upstream(name: &str, tool: Tool) {
    scenario(name, &[Tool::Etcd, Tool::KubeApiserver, tool].map(Need::Tool), |run| {
        let plane = ControlPlane::start(run, "plane", control_plane::Options::default())?;
        let kubectl = Kubectl::new(run, tool, plane.kubeconfig())?;
        discovery(&kubectl)?;
        life_of_an_object(run, &kubectl)?;
        plane.stop()
    });
}

fn in_two_clusters(name: &str, tool: Tool) {
    with_hub(name, tool, |run, hub, kubectl| {
        let one = kubectl.server(&hub.cluster_url("one"));
        let two = kubectl.server(&hub.cluster_url("two"));
        for kubectl in [&one, &two] {
            discovery(kubectl)?;
            // Its first write makes a logical cluster; a dry run would not.
            kubectl.ok(&["create", "configmap", "first"])?;
            life_of_an_object(run, kubectl)?;
        }
        one.ok(&["create", "configmap", "only-in-one"])?;
        check_contains(&two.fails(&["get", "configmap", "only-in-one"])?, &["NotFound"])?;
        let maps = two.ok(&["get", "configmaps", "--all-namespaces", "--output=name"])?;
        ensure!(!maps.contains("only-in-one"), "{maps}");
        two.ok(&["create", "configmap", "only-in-one", "--from-literal=which=other"])?;
        let data = one.ok(&["get", "configmap", "only-in-one", "--output=jsonpath={.data}"])?;
        ensure!(data.is_empty(), "an object of the same name in another cluster: {data}");
        two.ok(&["delete", "configmap", "only-in-one"])?;
        one.ok(&["get", "configmap", "only-in-one"]).map(|_| ())
    });
}

/// What the server says of itself and of its types.
fn discovery(kubectl: &Kubectl) -> Result<()> {
    let version = json(&kubectl.ok(&["version", "--output=json"])?)?;
    let server = version["serverVersion"]["gitVersion"].as_str().context("no server version")?;
    ensure!(server.starts_with("v1."), "{server}");
    let versions = kubectl.ok(&["api-versions"])?;
    for version in ["v1", "coordination.k8s.io/v1", "events.k8s.io/v1"] {
        ensure!(versions.lines().any(|line| line == version), "{version} in:\n{versions}");
    }
    let types = kubectl.ok(&["api-resources", "--output=wide"])?;
    let secrets = types.lines().find(|line| line.starts_with("secrets "));
    check_contains(secrets.context("no secrets")?, &["v1", "true", "Secret", "create", "watch"])?;
    let namespaced = kubectl.ok(&["api-resources", "--namespaced=false", "--output=name"])?;
    ensure!(namespaced.lines().any(|line| line == "namespaces"), "{namespaced}");
    let text = kubectl.ok(&["explain", "configmap.data"])?;
    check_contains(&text, &["KIND:       ConfigMap", "FIELD: data <map[string]string>"])?;
    let text = kubectl.ok(&["explain", "namespace", "--recursive"])?;
    check_contains(&text, &["FIELDS:", "finalizers\t<[]string>"])?;
    let answer = kubectl.ok(&["auth", "can-i", "create", "configmaps"])?;
    ensure!(answer == "yes\n", "{answer}");
    check_contains(&kubectl.ok(&["get", "--raw", "/version"])?, &["gitVersion"])
}

/// One configmap from its creation to its deletion, and a secret beside it.
fn life_of_an_object(run: &Run, kubectl: &Kubectl) -> Result<()> {
    create_and_read(kubectl)?;
    let log = run.folder().join("get-watch.log");
    let rows = || {
        let text = fs::read_to_string(&log).unwrap_or_default();
        text.lines().filter(|line| line.starts_with("life ")).count()
    };
    let mut last = rows();
    let mut watch = kubectl.spawn(run, "get-watch", &["get", "cm", "life", "--watch"])?;
    let mut next_row = |what: &str| -> Result<()> {
        last = eventually(what, || {
            let now = rows();
            ensure!(now > last, "nothing new");
            Ok(now)
        })?;
        Ok(())
    };
    next_row("the watch to show the object")?;
    change(run, kubectl)?;
    next_row("the watch to show a change")?;
    watch.check_running()?;
    watch.terminate()?;
    wait_and_delete(run, kubectl)
}

fn create_and_read(kubectl: &Kubectl) -> Result<()> {
    let create = ["create", "configmap", "life", "--from-literal=k=v"];
    let dry = kubectl.ok(&[&create[..], &["--dry-run=server"]].concat())?;
    ensure!(dry == "configmap/life created (server dry run)\n", "{dry}");
    check_contains(&kubectl.fails(&["get", "cm", "life"])?, &["NotFound", "\"life\" not found"])?;
    ensure!(kubectl.ok(&create)? == "configmap/life created\n");
    let again = kubectl.fails(&create)?;
    check_contains(&again, &["configmaps \"life\" already exists"])?;
    let created = kubectl.ok_with_input(&["create", "--filename=-"], SECRET)?;
    ensure!(created == "secret/secret created\n", "{created}");
    let unknown = SECRET.replace("stringData", "stringDate");
    let refused = kubectl.run_with_input(&["create", "--filename=-"], &unknown)?;
    check_contains(&refused.stderr, &["strict decoding error", "unknown field \"stringDate\""])?;

    let table = kubectl.ok(&["get", "configmaps"])?;
    ensure!(table.starts_with("NAME "), "{table}");
    ensure!(first_column(&table).contains(&"life"), "{table}");
    check_contains(&kubectl.ok(&["get", "cm,secrets"])?, &["configmap/life", "secret/secret"])?;
    check_contains(&kubectl.ok(&["get", "secret", "secret"])?, &["TYPE", "Opaque", " 1 "])?;
    let object = json(&kubectl.ok(&["get", "cm", "life", "--output=json"])?)?;
    ensure!(object["kind"] == "ConfigMap" && object["data"]["k"] == "v", "{object}");
    check_contains(&kubectl.ok(&["get", "cm", "life", "--output=yaml"])?, &["\n  k: v\n"])?;
    let password = ["get", "secret", "secret", "--output=jsonpath={.data.password}"];
    ensure!(kubectl.ok(&password)? == "aHVudGVyMg==");
    check_contains(&kubectl.ok(&["describe", "cm", "life"])?, &["Name:", "life", "k:\n----\nv"])?;
    let described = kubectl.ok(&["describe", "secret", "secret"])?;
    check_contains(&described, &["Opaque", "password:", "7 bytes"])?;
    check_contains(&kubectl.ok(&["describe", "namespace", "default"])?, &["Active"])
}

fn change(run: &Run, kubectl: &Kubectl) -> Result<()> {
    let value =
        |key: &str| kubectl.ok(&["get", "cm", "life", &format!("--output=jsonpath={{.{key}}}")]);
    let edited = edit(run, kubectl)?;
    ensure!(edited == "configmap/life edited\n", "{edited}");
    ensure!(value("data.k")? == "edited");

    for (kind, patch) in [
        ("strategic", r#"{"data":{"a":"strategic"}}"#),
        ("merge", r#"{"data":{"b":"merge","k":null}}"#),
        ("json", r#"[{"op":"add","path":"/data/c","value":"json"}]"#),
    ] {
        let patched = kubectl.ok(&["patch", "cm", "life", "--type", kind, "--patch", patch])?;
        ensure!(patched == "configmap/life patched\n", "{patched}");
    }
    ensure!(value("data")? == r#"{"a":"strategic","b":"merge","c":"json"}"#);
    let nothing = ["patch", "cm", "life", "--type=merge", r#"--patch={"data":{"b":"merge"}}"#];
    ensure!(kubectl.ok(&nothing)? == "configmap/life patched (no change)\n");

    ensure!(kubectl.ok(&["label", "cm", "life", "stage=one"])? == "configmap/life labeled\n");
    let refused = kubectl.fails(&["label", "cm", "life", "stage=two"])?;
    check_contains(&refused, &["--overwrite is false"])?;
    kubectl.ok(&["label", "cm", "life", "stage=two", "--overwrite"])?;
    let selected =
        kubectl.ok(&["get", "cm", "--selector=stage in (two,three)", "--output=name"])?;
    ensure!(selected == "configmap/life\n", "{selected}");
    let columns = kubectl.ok(&["get", "cm", "life", "--label-columns=stage", "--show-labels"])?;
    check_contains(&columns, &["STAGE", "two", "stage=two"])?;
    ensure!(kubectl.ok(&["label", "cm", "life", "stage-"])? == "configmap/life unlabeled\n");
    let annotated = kubectl.ok(&["annotate", "cm", "life", "note=some text"])?;
    ensure!(annotated == "configmap/life annotated\n", "{annotated}");
    ensure!(value("metadata.annotations.note")? == "some text");
    let bad = kubectl.fails(&["label", "cm", "life", "bad=not a value"])?;
    check_contains(&bad, &["invalid"])
}

fn wait_and_delete(run: &Run, kubectl: &Kubectl) -> Result<()> {
    let wait = ["wait", "cm/life", "--for=jsonpath={.data.c}=json", "--timeout=30s"];
    ensure!(kubectl.ok(&wait)? == "configmap/life condition met\n");
    let late = ["wait", "cm/life", "--for=jsonpath={.data.c}=other", "--timeout=1s"];
    check_contains(&kubectl.fails(&late)?, &["timed out waiting"])?;
    let wait = ["wait", "cm/life", "--for=delete", "--timeout=60s"];
    let mut waiting = kubectl.spawn(run, "wait-for-deletion", &wait)?;
    let deleted = kubectl.ok(&["delete", "configmap", "life"])?;
    check_contains(&deleted, &["configmap \"life\" deleted"])?;
    let status =
        eventually("the wait for the deletion", || waiting.exited()?.context("it still waits"))?;
    ensure!(status.success(), "the wait for the deletion ended with {status}");
    check_contains(&kubectl.fails(&["delete", "cm", "life"])?, &["NotFound"])?;
    kubectl.ok(&["delete", "cm", "life", "--ignore-not-found"])?;
    kubectl.ok(&["label", "secret", "secret", "sweep=yes"])?;
    let swept = kubectl.ok(&["delete", "secrets", "--selector=sweep=yes"])?;
    check_contains(&swept, &["secret \"secret\" deleted"])
}

/// `kubectl edit` with an editor that replaces the value.
fn edit(run: &Run, kubectl: &Kubectl) -> Result<String> {
    let editor = run.folder().join("editor.sh");
    fs::write(&editor, "#!/bin/sh\nexec sed -i 's/^  k: v$/  k: edited/' \"$1\"\n")?;
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755))?;
    kubectl.variable("EDITOR", &editor.display().to_string()).ok(&["edit", "cm", "life"])
}
