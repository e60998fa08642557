//! What the server knows of an object without parsing its body.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, de};

use super::OwnerReference;
use crate::json::{JsonError, Object};

/// The fields of an object that selectors, garbage collection and deletion ask for.
///
/// Kept beside every object's bytes, so it is small: absent parts own no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// `apiVersion`.
    pub api_version: Box<str>,
    /// `kind`.
    pub kind: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.namespace`, empty when absent.
    pub namespace: Box<str>,
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.generation`.
    pub generation: Option<i64>,
    /// `metadata.resourceVersion` as the bytes have it.
    pub resource_version: Option<Box<str>>,
    /// `metadata.creationTimestamp` as the bytes have it.
    pub creation_timestamp: Option<Box<str>>,
    /// `metadata.deletionTimestamp` as the bytes have it.
    pub deletion_timestamp: Option<Box<str>>,
    /// `metadata.labels`, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// `metadata.finalizers`.
    pub finalizers: Box<[Box<str>]>,
    /// `metadata.ownerReferences`.
    pub owner_references: Box<[OwnerReference]>,
}

// === impl Header ===

impl Header {
    /// Reads the header out of an object's JSON and skips the rest.
    ///
    /// The whole text is checked to be JSON, but what is skipped is not looked at more closely.
    /// Null counts as absent.
    ///
    /// # Errors
    /// [`JsonError`] for what is no JSON object, for a header field of the wrong type, and for a
    /// header field that comes twice (stored objects have none).
    pub fn scan(bytes: &[u8]) -> Result<Self, JsonError> {
        let Object(Whole { api_version, kind, metadata: Object(metadata) }) =
            serde_json::from_slice(bytes).map_err(|e| JsonError::from_serde(&e, bytes))?;
        Ok(Self {
            api_version,
            kind,
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            generation: metadata.generation,
            resource_version: metadata.resource_version,
            creation_timestamp: metadata.creation_timestamp,
            deletion_timestamp: metadata.deletion_timestamp,
            labels: metadata.labels.0,
            finalizers: metadata.finalizers,
            owner_references: metadata.owner_references,
        })
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        self.labels.get(at).map(|(_, value)| &**value)
    }

    /// Whether the object waits for its finalizers.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// The owner that manages the object.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Whole {
    #[serde(default, deserialize_with = "or_default")]
    api_version: Box<str>,
    #[serde(default, deserialize_with = "or_default")]
    kind: Box<str>,
    #[serde(default, deserialize_with = "or_default")]
    metadata: Object<Metadata>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    #[serde(deserialize_with = "or_default")]
    name: Box<str>,
    #[serde(deserialize_with = "or_default")]
    namespace: Box<str>,
    #[serde(deserialize_with = "or_default")]
    uid: Box<str>,
    generation: Option<i64>,
    resource_version: Option<Box<str>>,
    creation_timestamp: Option<Box<str>>,
    deletion_timestamp: Option<Box<str>>,
    #[serde(deserialize_with = "or_default")]
    labels: Labels,
    #[serde(deserialize_with = "or_default")]
    finalizers: Box<[Box<str>]>,
    #[serde(deserialize_with = "owners")]
    owner_references: Box<[OwnerReference]>,
}

/// Labels sorted by key; of duplicates the last one.
#[derive(Default)]
struct Labels(Box<[(Box<str>, Box<str>)]>);

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Labels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                let mut labels: Vec<(Box<str>, Box<str>)> = Vec::new();
                while let Some(key) = map.next_key()? {
                    labels.push((key, map.next_value::<OrDefault<Box<str>>>()?.0));
                }
                if !labels.is_sorted_by(|a, b| a.0 < b.0) {
                    // The sort is stable: reversed, the last of equals comes first and stays.
                    labels.reverse();
                    labels.sort_by(|a, b| a.0.cmp(&b.0));
                    labels.dedup_by(|later, kept| later.0 == kept.0);
                }
                Ok(Labels(labels.into()))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

fn owners<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[OwnerReference]>, D::Error> {
    let list: Vec<Object<OwnerReference>> = or_default(deserializer)?;
    Ok(list.into_iter().map(|Object(owner)| owner).collect())
}

/// A value of which null means the default.
struct OrDefault<T>(T);

impl<'de, T: Default + Deserialize<'de>> Deserialize<'de> for OrDefault<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        or_default(deserializer).map(Self)
    }
}

/// Reads null as the default, as Go does.
pub(super) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: de::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}
