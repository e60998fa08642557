//! References to owners.

use serde::Deserialize;

/// `metav1.OwnerReference`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// The owner's `apiVersion`.
    pub api_version: Box<str>,
    /// The owner's kind.
    pub kind: Box<str>,
    /// The owner's name.
    pub name: Box<str>,
    /// The owner's UID.
    pub uid: Box<str>,
    /// Whether the owner manages the object.
    #[serde(deserialize_with = "super::header::or_default")]
    pub controller: bool,
    /// Whether foreground deletion of the owner waits for the object.
    #[serde(deserialize_with = "super::header::or_default")]
    pub block_owner_deletion: bool,
}
