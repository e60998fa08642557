//! What a change of a CRD may go on to break, because the old CRD breaks it too.

use std::collections::HashSet;

use serde_json::Value;

use super::view::{Version, View};
use super::{conversion, fields, is_condition_true, schema};
use crate::structural::{self, Unpruned};

/// Rules that are not enforced.
#[derive(Debug, Default)]
pub(super) struct Tolerance {
    /// None of the webhook's review versions is known.
    pub(super) unknown_reviews: bool,
    /// Versions may lack a schema.
    pub(super) missing_schemas: bool,
    /// Types may be none of OpenAPI's.
    pub(super) unknown_types: bool,
    /// Schemas may be not structural, where nothing else asks for it.
    pub(super) unstructured: bool,
    /// Defaults may have unknown fields.
    pub(super) unpruned_defaults: bool,
    /// Sets may have items that aren't atomic.
    pub(super) granular_sets: bool,
    /// Keys of maps may be absent or null, and items of sets and maps null.
    pub(super) open_keys: bool,
    /// The webhook's CA bundle may be unreadable.
    pub(super) invalid_ca_bundle: bool,
    /// These versions may have too many selectable fields; the empty name is what all share.
    pub(super) many_fields: HashSet<String>,
}

// === impl Tolerance ===

impl Tolerance {
    /// What a new CRD is forgiven: it isn't called before it is established.
    pub(super) fn of_new() -> Self {
        Self { invalid_ca_bundle: true, ..Self::default() }
    }

    /// What is cheap to know of an old CRD.
    pub(super) fn strict(old: &Value) -> Self {
        let invalid_ca_bundle =
            !is_condition_true(old, "Established") || conversion::has_invalid_ca(old);
        Self { invalid_ca_bundle, ..Self::default() }
    }

    /// What the change from an old CRD to a new one is forgiven.
    pub(super) fn of(new: &Value, old: &Value) -> Self {
        let view = View::of(old);
        let any = |rule: fn(&Value) -> bool| {
            let all = Some(view.shared()).into_iter().chain(view.versions.iter().copied());
            all.filter_map(|version| version.schema_value()).any(rule)
        };
        let has_schema = |version: &Version<'_>| version.schema_value().is_some();
        Self {
            unknown_reviews: !conversion::knows_a_review(old),
            missing_schemas: !has_schema(&view.shared()) && !view.versions.iter().all(has_schema),
            unknown_types: any(schema::has_unknown_types),
            unstructured: any(is_unstructured),
            unpruned_defaults: any(has_unpruned_defaults),
            granular_sets: any(schema::has_granular_sets),
            open_keys: any(schema::has_open_keys),
            many_fields: fields::too_many(new, old),
            ..Self::strict(old)
        }
    }

    pub(super) fn unpruned(&self) -> Unpruned {
        if self.unpruned_defaults { Unpruned::Tolerated } else { Unpruned::Refused }
    }
}

fn is_unstructured(schema: &Value) -> bool {
    structural::check(schema, &machinery::FieldPath::default()).is_err()
}

fn has_unpruned_defaults(schema: &Value) -> bool {
    let nowhere = machinery::FieldPath::default();
    let Ok(compiled) = structural::Structural::compile(schema, &nowhere) else { return false };
    let strict = compiled.validate_defaults(&nowhere, Unpruned::Refused);
    strict.len() > compiled.validate_defaults(&nowhere, Unpruned::Tolerated).len()
}
