//! Cases as they stand in files.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// A script of requests. It has a namespace of its own, `${ns}`, unless it wants none.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// Unique among all files.
    #[serde(rename = "case")]
    pub(crate) name: String,
    /// Whether a namespace is made before the first step.
    #[serde(default = "yes")]
    pub(crate) namespace: bool,
    /// The requests, in order.
    pub(crate) steps: Vec<Step>,
}

/// One request. In all its texts `${x}` stands for what was saved as `x`, and `${a*5}` for `aaaaa`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// Method and path, `GET /api/v1/namespaces?limit=1`.
    #[serde(rename = "do")]
    pub(crate) request: String,
    /// What the list of differences calls the step, if not by `do`.
    name: Option<String>,
    /// The header `Accept`.
    pub(crate) accept: Option<String>,
    /// The header `Content-Type`; `application/json` for bodies unless given.
    #[serde(rename = "type")]
    pub(crate) content_type: Option<String>,
    /// Any other headers.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// A body that is sent as JSON.
    pub(crate) body: Option<Value>,
    /// A body that is sent as it stands.
    pub(crate) text: Option<String>,
    /// What is saved of the answer's body, by JSON pointer.
    #[serde(default)]
    pub(crate) save: BTreeMap<String, String>,
    /// How many events a watch is to give; it is ended after them.
    pub(crate) events: Option<usize>,
    /// What the answer has to be, by JSON pointer, before it is compared: the request is repeated
    /// until then. For what takes effect a moment after it is written.
    #[serde(default)]
    pub(crate) until: BTreeMap<String, Value>,
    /// Lists of which only the items are compared that ours has, as `items.versions by version`.
    #[serde(default)]
    pub(crate) common: Vec<String>,
}

// === impl Step ===

impl Step {
    /// What the list of differences calls the step.
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.request)
    }
}

/// Reads all cases of all files of a folder, in the order of their names.
///
/// # Errors
/// When one cannot be read.
pub(crate) fn read_all(folder: &Path) -> Result<Vec<Case>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        files.push(entry?.path());
    }
    files.sort_unstable();
    let mut cases: Vec<Case> = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        let read: Vec<Case> =
            serde_saphyr::from_str(&text).with_context(|| format!("parse {}", file.display()))?;
        for case in read {
            let twice = cases.iter().any(|other| other.name == case.name);
            anyhow::ensure!(!twice, "there are two cases {:?}", case.name);
            cases.push(case);
        }
    }
    Ok(cases)
}

fn yes() -> bool {
    true
}
