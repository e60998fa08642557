//! The custom types: installed once, for all logical clusters.

use std::time::Duration;

use serde_json::Value;

use crate::api::{Api, CallError};
use crate::args::DefaultMode;

/// The logical cluster whose CRDs are served in all.
const SHARED: &str = "system:crds";

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// How often it is asked whether a type is served.
const POLL: Duration = Duration::from_millis(200);

/// How long a type may take to be served.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why the types are not there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DefinitionError {
    /// The hub does not take one.
    #[error("install the type {0}")]
    Apply(String, #[source] CallError),
    /// One is not served.
    #[error("the type {name} is not served: {why}")]
    NotServed {
        /// Which one.
        name: String,
        /// What its conditions say.
        why: String,
    },
}

/// Applies all types and waits until they are served.
///
/// # Errors
/// When the hub does not take one, or does not serve one in time.
pub(crate) async fn install(hub: &Api, mode: DefaultMode) -> Result<(), DefinitionError> {
    let shared = hub.cluster(SHARED);
    let rendered = rendered(mode);
    for (name, definition) in &rendered {
        let applied = shared.apply(&format!("{PATH}/{name}"), definition).await;
        applied.map_err(|error| DefinitionError::Apply(name.clone(), error))?;
    }
    for (name, _) in &rendered {
        served(&shared, name).await?;
    }
    Ok(())
}

/// The types by name, without status, with the mode that SyncTargets have which name none.
fn rendered(mode: DefaultMode) -> Vec<(String, Value)> {
    let definitions = crds::definitions().into_iter();
    let rendered = definitions.filter_map(|definition| {
        let name = definition.metadata.name.clone()?;
        let mut value = serde_json::to_value(&definition).ok()?;
        value.as_object_mut()?.remove("status");
        for version in value["spec"]["versions"].as_array_mut().into_iter().flatten() {
            let mode_of = "/schema/openAPIV3Schema/properties/spec/properties/mode/default";
            if let Some(default) = version.pointer_mut(mode_of) {
                *default = mode.name().into();
            }
        }
        Some((name, value))
    });
    rendered.collect()
}

async fn served(shared: &Api, name: &str) -> Result<(), DefinitionError> {
    let error = |why: String| DefinitionError::NotServed { name: name.to_owned(), why };
    let mut why = "it is not there".to_owned();
    let established = async {
        loop {
            match shared.get(&format!("{PATH}/{name}")).await {
                Ok(Some(found)) => {
                    let conditions = found["status"]["conditions"].as_array().into_iter().flatten();
                    let told: Vec<String> = conditions
                        .map(|one| format!("{}={}: {}", one["type"], one["status"], one["message"]))
                        .collect();
                    if agent::types::is_established(&found) {
                        return;
                    }
                    why = told.join("; ");
                }
                Ok(None) => {}
                Err(error) => why = error.to_string(),
            }
            tokio::time::sleep(POLL).await;
        }
    };
    let served = tokio::time::timeout(PATIENCE, established).await;
    served.map_err(|_| error(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_mode_is_the_flags() {
        for (mode, expect) in [(DefaultMode::Pull, "Pull"), (DefaultMode::Push, "Push")] {
            let all = rendered(mode);
            let (_, target) =
                all.iter().find(|(name, _)| name == "synctargets.workload.kcp.io").unwrap();
            let schema = &target["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            assert_eq!(schema["properties"]["spec"]["properties"]["mode"]["default"], expect);
            assert_eq!(target.get("status"), None);
        }
        assert_eq!(rendered(DefaultMode::Pull).len(), crds::definitions().len());
    }
}
