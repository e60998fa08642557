//! What several subjects share.

use anyhow::{Context, Result, ensure};
use kind_tests::scenario::Need;
use kind_tests::{Hub, Kubectl, Run, Tool, scenario};
use serde_json::Value;

/// A scenario with our server and one kubectl.
pub(crate) fn with_hub(
    name: &str,
    tool: Tool,
    test: impl FnOnce(&Run, &Hub, &Kubectl) -> Result<()>,
) {
    scenario(name, &[Need::Tool(tool)], |run| {
        let mut hub = Hub::start(run, "hub")?;
        let kubectl = Kubectl::new(run, tool, &hub.kubeconfig())?;
        test(run, &hub, &kubectl)?;
        hub.terminate()
    });
}

/// Parses what `--output=json` printed.
pub(crate) fn json(text: &str) -> Result<Value> {
    serde_json::from_str(text).context("parse kubectl's JSON")
}

/// Checks that `text` contains each of `parts`, in any order.
pub(crate) fn check_contains(text: &str, parts: &[&str]) -> Result<()> {
    for part in parts {
        ensure!(text.contains(part), "expected {part:?} in:\n{text}");
    }
    Ok(())
}

/// The first words of all lines of a table but its header.
pub(crate) fn first_column(table: &str) -> Vec<&str> {
    table.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect()
}
