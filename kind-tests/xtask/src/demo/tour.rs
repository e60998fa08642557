//! The commands of the tour, what each shows, and what each must say.

use anyhow::{Result, ensure};
use kind_tests::kubectl::Output;
use kind_tests::{Hub, Kubectl};

/// The two logical clusters that the tour uses.
const ONE: &str = "one";
const TWO: &str = "two";

/// A tour of one hub.
#[derive(Debug)]
pub(super) struct Tour<'a> {
    hub: &'a Hub,
    kubectl: &'a Kubectl,
}

// === impl Tour ===

impl<'a> Tour<'a> {
    pub(super) fn new(hub: &'a Hub, kubectl: &'a Kubectl) -> Self {
        Self { hub, kubectl }
    }

    /// Shows every command with its output, and fails at the first that says something else.
    pub(super) fn give(&self) -> Result<()> {
        explain("A logical cluster answers before anything is written to it.");
        self.shows(ONE, &["api-resources"], &["configmaps", "namespaces"])?;
        explain("The first write makes it.");
        let create = ["create", "configmap", "greeting", "--from-literal=text=hello"];
        self.shows(ONE, &create, &["configmap/greeting created"])?;
        self.shows(ONE, &["get", "namespaces"], &["default", "kube-system"])?;
        self.shows(ONE, &["get", "configmap", "greeting"], &["greeting"])?;
        explain("Another logical cluster of the same server knows nothing of it.");
        self.shows(TWO, &["create", "namespace", "mine"], &["namespace/mine created"])?;
        self.refuses(TWO, &["get", "configmap", "greeting"], "not found")?;
        let create = ["create", "configmap", "other", "--namespace=mine", "--from-literal=n=2"];
        self.shows(TWO, &create, &["configmap/other created"])?;
        explain("The administrator sees all logical clusters at once.");
        let all = ["get", "configmaps", "--all-namespaces"];
        self.shows("*", &all, &["greeting", "other"])
    }

    fn shows(&self, cluster: &str, arguments: &[&str], expect: &[&str]) -> Result<()> {
        let output = self.run(cluster, arguments)?;
        ensure!(output.code == 0, "that command should have succeeded");
        for word in expect {
            ensure!(output.stdout.contains(word), "the answer should contain {word:?}");
        }
        Ok(())
    }

    fn refuses(&self, cluster: &str, arguments: &[&str], expect: &str) -> Result<()> {
        let output = self.run(cluster, arguments)?;
        ensure!(output.code != 0, "that command should have failed");
        ensure!(output.stderr.contains(expect), "the error should contain {expect:?}");
        Ok(())
    }

    fn run(&self, cluster: &str, arguments: &[&str]) -> Result<Output> {
        let url = self.hub.cluster_url(cluster);
        let quote = if cluster == "*" { "'" } else { "" };
        println!("$ kubectl --server={quote}{url}{quote} {}", arguments.join(" "));
        let output = self.kubectl.server(&url).run(arguments)?;
        print!("{}{}", output.stdout, output.stderr);
        println!();
        Ok(output)
    }
}

fn explain(text: &str) {
    println!("# {text}");
}
