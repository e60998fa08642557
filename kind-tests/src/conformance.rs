//! The Kubernetes conformance suite, run by exact names against a server without nodes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::eventually::within;
use crate::process::Process;
use crate::run::Run;
use crate::tools::{self, Tool};

/// Past this the suite hangs.
const LONGEST: Duration = Duration::from_secs(40 * 60);

/// One spec that the suite has run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Its full name, as in the lists in `specs/`.
    pub name: String,
    /// How it ended: `passed`, `failed`, `skipped` and so on.
    pub state: String,
    /// Why, if it did not pass.
    pub message: String,
    /// How long it took.
    pub duration: Duration,
}

/// A suite in the suite's JSON report.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SuiteReport {
    #[serde(default)]
    special_suite_failure_reasons: Option<Vec<String>>,
    spec_reports: Option<Vec<SpecReport>>,
}

/// A node of the suite in its JSON report. Only leaf nodes of type `It` are specs.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SpecReport {
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    leaf_node_text: String,
    state: String,
    run_time: u64,
    failure: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    message: String,
}

/// The names in a list of `specs/`.
///
/// # Errors
/// When there is no such list, or it names a spec twice.
pub fn list(name: &str) -> Result<BTreeSet<String>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("specs").join(name);
    let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let names: BTreeSet<String> = lines.iter().map(|&line| line.to_owned()).collect();
    ensure!(names.len() == lines.len(), "{} names a spec twice", file.display());
    Ok(names)
}

/// A spec of `specs/conformance-extra.txt` that is not run with the others.
#[derive(Clone, Debug, Deserialize)]
pub struct Elsewhere {
    /// Its full name.
    pub spec: String,
    /// Why, and where it runs instead.
    pub reason: String,
}

/// The specs of `specs/conformance-extra.txt` that are not run with the others.
///
/// # Errors
/// When the list is malformed.
pub fn elsewhere() -> Result<Vec<Elsewhere>> {
    let list = include_str!("../specs/extra-elsewhere.yaml");
    serde_saphyr::from_str(list).context("specs/extra-elsewhere.yaml")
}

/// Runs exactly the named specs against the server of `kubeconfig`, and returns what ran. `name` is
/// that of the suite's folder and log: several may run at a time.
///
/// # Errors
/// When the suite cannot run, or says nothing about one of the specs. Failed specs are no error:
/// see [`check_passed`].
pub fn run(
    run: &Run,
    name: &str,
    kubeconfig: &Path,
    names: &BTreeSet<String>,
) -> Result<Vec<Spec>> {
    let report = run.folder().join(format!("{name}.json"));
    let mut suite = Command::new(tools::path(Tool::E2eTest)?);
    let alternatives: Vec<String> = names.iter().map(|name| escape(name)).collect();
    suite
        .current_dir(run.subfolder(name)?)
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .arg(format!("--kubectl-path={}", tools::path(Tool::Kubectl)?.display()))
        .arg(format!("--ginkgo.focus=({})$", alternatives.join("|")))
        .arg(format!("--ginkgo.json-report={}", report.display()))
        .args(["--ginkgo.no-color", "--ginkgo.silence-skips", "--ginkgo.timeout=35m"])
        // A server without nodes: what the suite expects of nodes and of its own pods is off.
        .args(["--provider=skeleton", "--num-nodes=1", "--allowed-not-ready-nodes=-1"])
        .args(["--minStartupPods=-1", "--e2e-verify-service-account=false"])
        .args(["--dump-logs-on-failure=false", "--disable-log-dump", "--delete-namespace=true"]);
    let mut suite = Process::spawn(run, name, suite)?;
    let status = within(LONGEST, "the conformance suite", || suite.exited())?;
    let specs = read_report(&report).with_context(|| format!("the suite ended with {status}"))?;
    // The suite lists every spec that it knows; those that were not asked for are skipped.
    let ran: Vec<Spec> = specs.into_iter().filter(|s| names.contains(&s.name)).collect();
    let found: BTreeSet<&str> = ran.iter().map(|spec| spec.name.as_str()).collect();
    let unknown: Vec<&String> = names.iter().filter(|n| !found.contains(n.as_str())).collect();
    ensure!(unknown.is_empty(), "the suite has no such specs: {unknown:#?}");
    ensure!(found.len() == ran.len(), "the suite ran a spec twice");
    Ok(ran)
}

/// Fails, naming each spec and its reason, unless all have passed.
///
/// # Errors
/// As said.
pub fn check_passed(specs: &[Spec]) -> Result<()> {
    let bad: Vec<String> = specs
        .iter()
        .filter(|spec| spec.state != "passed")
        .map(|spec| format!("{}: {}\n  {}", spec.state, spec.name, spec.message))
        .collect();
    if !bad.is_empty() {
        bail!("{} of {} specs did not pass:\n{}", bad.len(), specs.len(), bad.join("\n"));
    }
    Ok(())
}

pub(crate) fn read_report(file: &Path) -> Result<Vec<Spec>> {
    let bytes = fs::read(file).context("the suite wrote no report")?;
    let suites: Vec<SuiteReport> = serde_json::from_slice(&bytes).context("parse the report")?;
    let mut specs = Vec::new();
    for suite in suites {
        // Before and after the specs, the suite runs nodes of its own: their failure is its own.
        for node in suite.spec_reports.unwrap_or_default() {
            let message = node.failure.map(|f| f.message).unwrap_or_default();
            if node.leaf_node_type == "It" {
                let mut words = node.container_hierarchy_texts.unwrap_or_default();
                words.push(node.leaf_node_text);
                let duration = Duration::from_nanos(node.run_time);
                specs.push(Spec { name: words.join(" "), state: node.state, message, duration });
            } else if node.state != "passed" && node.state != "skipped" {
                bail!("the suite's own {} {}: {message}", node.leaf_node_type, node.state);
            }
        }
        let reasons = suite.special_suite_failure_reasons.unwrap_or_default();
        ensure!(reasons.is_empty(), "the suite itself failed: {}", reasons.join("; "));
    }
    Ok(specs)
}

/// Makes a regular expression that matches exactly `name`.
fn escape(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len() + 16);
    for c in name.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(escape("[sig-x] a.b (c)"), r"\[sig-x\] a\.b \(c\)");
    }

    #[test]
    fn the_first_part_is_in_the_whole_list() {
        let first = list("api-server-first-part.txt").unwrap();
        assert_eq!(first.len(), 39);
        assert!(first.is_subset(&list("conformance-api-only.txt").unwrap()));
    }
}
