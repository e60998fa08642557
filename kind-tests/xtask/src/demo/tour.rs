//! Two logical clusters of one server, and what each knows of the other.

use anyhow::Result;
use kind_tests::{Hub, Kubectl};

use super::shell::{Shell, explain};

/// Shows every command with its output, and fails at the first that says something else.
pub(super) fn give(hub: &Hub, kubectl: &Kubectl) -> Result<()> {
    let of = |cluster: &str| {
        let url = hub.cluster_url(cluster);
        let quote = if cluster == "*" { "'" } else { "" };
        Shell::new(kubectl.server(&url), &format!("--server={quote}{url}{quote}"))
    };
    let (one, two, all) = (of("one"), of("two"), of("*"));
    explain("A logical cluster answers before anything is written to it.");
    one.shows(&["api-resources"], &["configmaps", "namespaces"])?;
    explain("The first write makes it.");
    let create = ["create", "configmap", "greeting", "--from-literal=text=hello"];
    one.shows(&create, &["configmap/greeting created"])?;
    one.shows(&["get", "namespaces"], &["default", "kube-system"])?;
    one.shows(&["get", "configmap", "greeting"], &["greeting"])?;
    explain("Another logical cluster of the same server knows nothing of it.");
    two.shows(&["create", "namespace", "mine"], &["namespace/mine created"])?;
    two.refuses(&["get", "configmap", "greeting"], "not found")?;
    let create = ["create", "configmap", "other", "--namespace=mine", "--from-literal=n=2"];
    two.shows(&create, &["configmap/other created"])?;
    explain("The administrator sees all logical clusters at once.");
    all.shows(&["get", "configmaps", "--all-namespaces"], &["greeting", "other"])
}
