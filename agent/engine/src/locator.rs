//! The annotation of copies that says what they are copies of.

use std::collections::BTreeMap;

use contract::UPSTREAM;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Digest;

/// Longer annotations are nobody's: names take two thousand bytes at most, what is ours in lists
/// ([`crate::lists::MOST`]) ten thousand.
const LONGEST: usize = 16_384;

/// What a copy is a copy of: the annotation [`UPSTREAM`], as JSON. There is no other ledger.
///
/// Readers ignore members that they don't know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Locator {
    /// The hub's UID.
    pub(crate) hub: String,
    /// The logical cluster.
    pub(crate) cluster: String,
    /// The namespace; empty for none.
    #[serde(default)]
    pub(crate) namespace: String,
    /// The name.
    pub(crate) name: String,
    /// The object's UID; empty in namespaces that stand for upstream ones.
    #[serde(default)]
    pub(crate) uid: String,
    /// Where the copy was made, as `namespace/name`: one that others have made of a copy is not ours.
    #[serde(default)]
    pub(crate) copy: String,
    /// The generation of the object that was applied.
    #[serde(default)]
    pub(crate) generation: i64,
    /// The object's resource version when it was applied: what is older is no evidence.
    #[serde(default)]
    pub(crate) resource_version: String,
    /// The digest of what was applied, so that a new process needn't apply it again.
    #[serde(default)]
    pub(crate) digest: String,
    /// What of lists that are merged is ours ([`crate::lists`]), by their JSON pointers. `None` where
    /// there are no such lists, or the agent knew none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) added: Option<BTreeMap<String, Vec<String>>>,
}

// === impl Locator ===

impl Locator {
    /// That of an object, if it has one that can be read.
    pub(crate) fn of(object: &Value) -> Option<Self> {
        let text = object.pointer("/metadata/annotations")?.get(UPSTREAM)?.as_str()?;
        if text.len() > LONGEST { None } else { serde_json::from_str(text).ok() }
    }

    pub(crate) fn applied(&self) -> Option<Digest> {
        Digest::parse(&self.digest)
    }

    pub(crate) fn revision(&self) -> u64 {
        self.resource_version.parse().unwrap_or(0)
    }
}

impl std::fmt::Display for Locator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| std::fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn any_annotation(text in ".{0,80}") {
            let object = json!({"metadata": {"annotations": {UPSTREAM: text}}});
            prop_assert_eq!(Locator::of(&object), None);
        }

        #[test]
        fn locators_come_back(hub in ".{0,20}", name in ".{0,20}", generation: i64) {
            let locator = Locator {
                hub, cluster: "infra".into(), namespace: "shop".into(), name,
                uid: "1".into(), copy: "shop/a".into(), generation, resource_version: "7".into(),
                digest: Digest::of(&json!(1)).to_string(),
                added: Some(BTreeMap::from([("/a".into(), vec!["1".into()])])),
            };
            let object = json!({"metadata": {"annotations": {UPSTREAM: locator.to_string()}}});
            prop_assert_eq!(Locator::of(&object), Some(locator));
        }
    }

    #[test]
    fn those_of_others() {
        let of = |text: &str| Locator::of(&json!({"metadata": {"annotations": {UPSTREAM: text}}}));
        let newer = r#"{"hub":"h","cluster":"c","name":"n","uid":"u","colour":"red"}"#;
        assert_eq!(of(newer).map(|locator| locator.uid), Some("u".to_owned()));
        for text in ["", "{}", "[]", "{\"hub\":1}", &"x".repeat(20_000)] {
            assert_eq!(of(text), None, "{text}");
        }
        assert_eq!(Locator::of(&json!({"metadata": {"annotations": 1}})), None);
    }
}
