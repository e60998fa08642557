//! One sentence for each type and field, in our own words: `data/descriptions.json`.

use std::collections::HashMap;

/// Texts by type, and by type and field; read when a document is made, and not kept.
pub(super) struct Descriptions {
    types: HashMap<&'static str, HashMap<&'static str, &'static str>>,
}

/// Fields of every object, wherever they appear without a text of their own.
const COMMON: [(&str, &str); 5] = [
    ("apiVersion", "APIVersion defines the group and version of this object's schema."),
    (
        "kind",
        "Kind names the type of this object, as in its endpoint but singular and capitalised.",
    ),
    ("metadata", "Standard object's metadata: name, labels, annotations and the like."),
    ("listMetadata", "Standard list metadata: the revision, and where the next page begins."),
    ("items", "The objects of this list."),
];

// === impl Descriptions ===

impl Descriptions {
    pub(super) fn read() -> Self {
        let text = include_str!("../../data/descriptions.json");
        Self { types: serde_json::from_str(text).expect("the descriptions are well formed") }
    }

    /// What a type is; its text stands under the empty field name.
    pub(super) fn of_type(&self, name: &str) -> Option<&'static str> {
        self.types.get(name)?.get("").copied()
    }

    /// What a field holds.
    pub(super) fn of_field(&self, ty: &str, field: &str) -> Option<&'static str> {
        let own = self.types.get(ty).and_then(|fields| fields.get(field)).copied();
        own.or_else(|| COMMON.iter().find(|(name, _)| *name == field).map(|(_, text)| *text))
    }
}

/// What a field of every object or list holds: `apiVersion`, `kind`, `metadata`, `items`, and
/// `listMetadata` for the metadata of lists.
pub(super) fn common(field: &str) -> &'static str {
    COMMON.iter().find(|(name, _)| *name == field).map(|(_, text)| *text).unwrap_or_default()
}
