//! Cells of requests for certificates.

use serde_json::Value;

use super::{NONE, at, str_at};
use crate::table::age::human_duration;

/// How long the certificate is to live.
pub(super) fn duration(object: &Value) -> String {
    let seconds = at(at(object, "spec"), "expirationSeconds").as_i64();
    seconds.map_or_else(|| NONE.to_owned(), human_duration)
}

/// The decision, and what came of it.
pub(super) fn condition(object: &Value) -> String {
    let status = at(object, "status");
    let conditions = at(status, "conditions").as_array().map_or(&[][..], Vec::as_slice);
    let has = |kind: &str| conditions.iter().any(|condition| str_at(condition, "type") == kind);
    let decided = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if str_at(status, "certificate").is_empty() { "" } else { ",Issued" };
    format!("{decided}{failed}{issued}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells() {
        let check = |spec: Value, status: Value, expect: [&str; 2]| {
            let object = json!({"spec": spec, "status": status});
            assert_eq!([duration(&object), condition(&object)], expect, "{object}");
        };
        let of = |kinds: &[&str]| -> Value {
            kinds.iter().map(|kind| json!({"type": kind, "status": "True"})).collect()
        };
        check(json!({}), json!({}), ["<none>", "Pending"]);
        let month = json!({"expirationSeconds": 2_592_000});
        check(month, json!({"conditions": of(&["Approved"])}), ["30d", "Approved"]);
        let issued = json!({"conditions": of(&["Approved"]), "certificate": "LS0t"});
        check(json!({"expirationSeconds": 600}), issued, ["10m", "Approved,Issued"]);
        check(json!({}), json!({"conditions": of(&["Denied"])}), ["<none>", "Denied"]);
        let failed = json!({"conditions": of(&["Failed", "Approved"])});
        check(json!({}), failed, ["<none>", "Approved,Failed"]);
        check(json!({}), json!({"conditions": of(&["Other"])}), ["<none>", "Pending"]);
    }
}
