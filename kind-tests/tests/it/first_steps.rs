//! What a person types first at a fresh server.

use anyhow::{Context, Result, ensure};
use kind_tests::{Hub, Tool, eventually};

use crate::support::{check_contains, first_column, with_hub};

#[test]
fn a_fresh_server_has_basic_types_and_no_pods() {
    with_hub("a_fresh_server", Tool::Kubectl, |_run, _hub, kubectl| {
        let error = kubectl.fails(&["get", "pods"])?;
        ensure!(error == "error: the server doesn't have a resource type \"pods\"\n", "{error}");
        let types = kubectl.ok(&["api-resources"])?;
        let names = first_column(&types);
        for name in ["configmaps", "namespaces", "secrets", "serviceaccounts", "leases", "events"] {
            ensure!(names.contains(&name), "{name} is missing in:\n{types}");
        }
        ensure!(!types.contains("apps/v1"), "there should be no apps in:\n{types}");
        Ok(())
    });
}

#[test]
fn a_logical_cluster_begins_with_its_first_write() {
    with_hub("a_logical_cluster_begins", Tool::Kubectl, |_run, hub, kubectl| {
        // The address with the host's name, as a person types it.
        let server = |cluster| by_name(hub, cluster).map(|url| kubectl.server(&url));
        let (one, two) = (server("one")?, server("two")?);
        check_contains(&one.ok(&["api-resources"])?, &["configmaps"])?;
        let error = one.fails(&["get", "ns"])?;
        check_contains(&error, &["NotFound", "one"])?;
        let created = one.ok(&["create", "cm", "c", "--from-literal=k=v"])?;
        ensure!(created == "configmap/c created\n", "{created}");
        let namespaces = one.ok(&["get", "ns"])?;
        ensure!(
            first_column(&namespaces)
                == ["default", "kube-node-lease", "kube-public", "kube-system"],
            "{namespaces}"
        );
        check_contains(&two.fails(&["get", "cm", "c"])?, &["NotFound"])
    });
}

#[test]
fn a_context_leads_to_a_logical_cluster() {
    with_hub("a_context_leads", Tool::Kubectl, |_run, hub, kubectl| {
        let set = format!("--server={}", by_name(hub, "two")?);
        // set-cluster would make a cluster without the certificate: it starts from a copy.
        let config = std::fs::read_to_string(hub.kubeconfig())?;
        let authority = kubectl.ok(&[
            "config",
            "view",
            "--raw",
            "--output=jsonpath={.clusters[0].cluster.certificate-authority-data}",
        ])?;
        ensure!(config.contains(&authority), "the kubeconfig should hold its certificate");
        let user = kubectl.ok(&["config", "view", "--output=jsonpath={.users[0].name}"])?;
        kubectl.ok(&["config", "set-cluster", "two", &set])?;
        let field = "clusters.two.certificate-authority-data";
        kubectl.ok(&["config", "set", field, &authority])?;
        let user = format!("--user={user}");
        kubectl.ok(&["config", "set-context", "two", "--cluster=two", &user])?;
        let two = kubectl.context("two");
        two.ok(&["create", "cm", "c", "--from-literal=k=v"])?;
        let maps = two.ok(&["get", "cm"])?;
        ensure!(first_column(&maps).contains(&"c"), "{maps}");
        Ok(())
    });
}

#[test]
fn the_wildcard_shows_all_logical_clusters() {
    with_hub("the_wildcard_shows_all", Tool::Kubectl, |run, hub, kubectl| {
        let create = |cluster: &str, name: &str| {
            kubectl.server(&hub.cluster_url(cluster)).ok(&["create", "cm", name])
        };
        create("one", "first")?;
        create("two", "second")?;
        let all = kubectl.server(&by_name(hub, "*")?);
        check_contains(&all.ok(&["get", "cm", "-A"])?, &["first", "second"])?;
        let mut watch = all.spawn(run, "watch", &["get", "cm", "-A", "-w"])?;
        let log = watch.log().to_owned();
        let seen = |what: &str, parts: &[&str]| {
            eventually(what, || check_contains(&std::fs::read_to_string(&log)?, parts))
        };
        seen("the watch to show what is there", &["first", "second"])?;
        create("one", "third")?;
        create("three", "fourth")?;
        seen("the watch to show what is new", &["third", "fourth"])?;
        watch.check_running()?;
        watch.terminate().map(|_| ())
    });
}

/// The address of a logical cluster by the name `localhost`, which the certificate must cover.
fn by_name(hub: &Hub, cluster: &str) -> Result<String> {
    let (_, port) = hub.url().rsplit_once(':').context("the address has a port")?;
    Ok(format!("https://localhost:{port}/clusters/{cluster}"))
}
