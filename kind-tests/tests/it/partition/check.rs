//! Whether both sides agree.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::model::value;
use crate::site::TARGET;

/// The UID of the object that a copy says it is of.
pub(super) fn origin(metadata: &Value) -> Option<String> {
    let locator = metadata["annotations"][contract::UPSTREAM].as_str()?;
    let locator: Value = serde_json::from_str(locator).ok()?;
    Some(locator["uid"].as_str()?.to_owned())
}

/// Fails unless each object that belongs to the cluster has a copy there that is as it is, with its
/// status told, and there are no other copies.
pub(super) fn agree(
    hub: &BTreeMap<String, Value>,
    cluster: &BTreeMap<String, Value>,
) -> Result<()> {
    for (what, object) in hub {
        ensure!(object["metadata"]["deletionTimestamp"].is_null(), "{what} is still going");
        let intent = &object["metadata"]["labels"][contract::INTENT_LABEL];
        match cluster.get(what) {
            None if intent == TARGET => bail!("{what} has no copy"),
            None => ensure!(
                object["metadata"]["finalizers"].is_null(),
                "{what} is held: {}",
                object["metadata"]
            ),
            Some(_) if intent != TARGET => bail!("{what} has a copy that is to go"),
            Some(copy) => is_copy(object, copy).with_context(|| what.clone())?,
        }
    }
    match cluster.keys().find(|what| !hub.contains_key(*what)) {
        Some(what) => bail!("the copy of {what} has no object"),
        None => Ok(()),
    }
}

fn is_copy(object: &Value, copy: &Value) -> Result<()> {
    let uid = object["metadata"]["uid"].as_str();
    let origin = origin(&copy["metadata"]);
    ensure!(origin.as_deref() == uid, "its copy is of {origin:?}, not of {uid:?}");
    let (there, here) = (value(copy), value(object));
    ensure!(there == here, "its copy has the value {there}, not {here}");
    for path in ["/data", "/spec/replicas"] {
        let (there, here) = (copy.pointer(path), object.pointer(path));
        ensure!(there == here, "{path} of its copy is {there:?}, not {here:?}");
    }
    for path in ["/status/replicas", "/status/readyReplicas"] {
        let (there, here) = (copy.pointer(path), object.pointer(path));
        ensure!(there == here, "{path} is {there:?}, and {here:?} is told");
    }
    Ok(())
}
