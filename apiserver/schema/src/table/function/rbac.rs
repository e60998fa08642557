//! Cells of bindings of roles.

use serde_json::Value;

use super::{at, str_at};

pub(super) fn role_ref(object: &Value) -> String {
    let role = at(object, "roleRef");
    format!("{}/{}", str_at(role, "kind"), str_at(role, "name"))
}

/// The subjects of one kind, ServiceAccounts with their namespaces.
pub(super) fn subjects(object: &Value, kind: &str) -> String {
    let subjects = at(object, "subjects").as_array();
    let of_kind = subjects.into_iter().flatten().filter(|subject| str_at(subject, "kind") == kind);
    let named = of_kind.map(|subject| match kind {
        "ServiceAccount" => {
            format!("{}/{}", str_at(subject, "namespace"), str_at(subject, "name"))
        }
        _ => str_at(subject, "name").to_owned(),
    });
    named.collect::<Vec<_>>().join(", ")
}
