//! Which fields of a copy are not as they should be, and who has changed them.

use serde_json::Value;

use crate::fields;

/// How many fields are told.
const MOST: usize = 16;

/// How much of a value is told, in characters.
const LONGEST: usize = 256;

/// A field that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Drift {
    /// Which, as a JSON pointer into the copy.
    pub(crate) path: String,
    /// What it should be, and is, as JSON; empty for nothing, and where values aren't told.
    pub(crate) desired: String,
    pub(crate) live: String,
    /// Who has set it last, as a field manager; empty if nobody knows.
    pub(crate) manager: String,
}

/// The fields of `desired` that an object has otherwise, at most 16. Nothing is said of what is
/// only in the object: it may be anybody's. `values` says whether values are told.
pub(crate) fn drift(desired: &Value, object: &Value, values: bool) -> Vec<Drift> {
    let mut found = Vec::new();
    let managers = fields::managers(object);
    let mut path = Vec::new();
    for (key, wanted) in desired.as_object().into_iter().flatten() {
        match key.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                for part in ["labels", "annotations"] {
                    let there = object.get("metadata").and_then(|all| all.get(part));
                    if let Some(wanted) = wanted.get(part) {
                        let names = [("metadata", "f:metadata"), (part, &*format!("f:{part}"))];
                        path.extend(names.map(|(name, entry)| (name.to_owned(), entry.to_owned())));
                        compare(wanted, there, &mut path, &managers, values, &mut found);
                        path.clear();
                    }
                }
            }
            _ => {
                path.push((key.clone(), format!("f:{key}")));
                compare(wanted, object.get(key), &mut path, &managers, values, &mut found);
                path.clear();
            }
        }
    }
    found
}

/// Names on the way, and entries of `fieldsV1` for them.
type Way = Vec<(String, String)>;

fn compare(
    desired: &Value,
    live: Option<&Value>,
    path: &mut Way,
    managers: &[(&str, &Value)],
    values: bool,
    found: &mut Vec<Drift>,
) {
    if found.len() >= MOST || live == Some(desired) {
        return;
    }
    match (desired, live) {
        (Value::Object(wanted), Some(Value::Object(there))) => {
            for (key, wanted) in wanted {
                path.push((key.clone(), format!("f:{key}")));
                compare(wanted, there.get(key), path, managers, values, found);
                path.pop();
            }
        }
        (Value::Array(wanted), Some(Value::Array(there))) if are_named(wanted) => {
            for wanted in wanted {
                let name = wanted.get("name");
                let at = there.iter().position(|item| item.get("name") == name);
                let entry = format!("k:{}", serde_json::json!({"name": name}));
                let index = at.map_or_else(|| "-".to_owned(), |at| at.to_string());
                path.push((index, entry));
                let live = at.and_then(|at| there.get(at));
                compare(wanted, live, path, managers, values, found);
                path.pop();
            }
        }
        _ => {
            let text = |value: Option<&Value>| match value {
                Some(value) if values => value.to_string().chars().take(LONGEST).collect(),
                _ => String::new(),
            };
            let pointer = |(name, _): &(String, String)| name.replace('~', "~0").replace('/', "~1");
            let path: Vec<_> = path.iter().map(|part| (pointer(part), &*part.1)).collect();
            let entries: Vec<_> = path.iter().map(|(_, entry)| *entry).collect();
            let manager = managers.iter().find(|(_, fields)| owns(fields, &entries));
            found.push(Drift {
                path: path.iter().map(|(name, _)| format!("/{name}")).collect(),
                desired: text(Some(desired)),
                live: text(live),
                manager: manager.map(|(name, _)| (*name).to_owned()).unwrap_or_default(),
            });
        }
    }
}

/// Whether items of a list are told apart by their names, as containers are.
fn are_named(items: &[Value]) -> bool {
    !items.is_empty() && items.iter().all(|item| item.get("name").is_some_and(Value::is_string))
}

fn owns(fields: &Value, entries: &[&str]) -> bool {
    let Some((first, rest)) = entries.split_first() else { return true };
    match fields.get(first) {
        Some(Value::Object(below)) if below.is_empty() => true,
        Some(below) => owns(below, rest),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn copy() -> Value {
        json!({
            "metadata": {
                "labels": {"app": "other", "team": "a"},
                "managedFields": [
                    {"manager": "kcp-syncer", "operation": "Apply", "fieldsV1": {"f:spec": {
                        "f:template": {"f:containers": {"k:{\"name\":\"web\"}": {"f:env": {}}}}}}},
                    {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:app": {}}},
                        "f:spec": {"f:replicas": {}, "f:template": {"f:containers":
                            {"k:{\"name\":\"web\"}": {"f:image": {}}}}},
                    }},
                ],
            },
            "spec": {"replicas": 9, "paused": true, "template": {"containers": [
                {"name": "sidecar"}, {"name": "web", "image": "web:2"},
            ]}},
        })
    }

    fn desired() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"labels": {"app": "web"}, "annotations": {"a/b": "c"}},
            "spec": {"replicas": 2, "template": {"containers": [
                {"name": "web", "image": "web:1"},
            ]}},
        })
    }

    #[test]
    fn what_has_changed_and_who_did() {
        let expect = [
            ("/metadata/labels/app", "\"web\"", "\"other\"", "kubectl-edit"),
            ("/metadata/annotations", "{\"a/b\":\"c\"}", "", ""),
            ("/spec/replicas", "2", "9", "kubectl-edit"),
            ("/spec/template/containers/1/image", "\"web:1\"", "\"web:2\"", "kubectl-edit"),
        ];
        let expect: Vec<_> = { expect.into_iter() }
            .map(|(path, desired, live, manager)| Drift {
                path: path.to_owned(),
                desired: desired.to_owned(),
                live: live.to_owned(),
                manager: manager.to_owned(),
            })
            .collect();
        assert_eq!(drift(&desired(), &copy(), true), expect);
        let hidden = drift(&desired(), &copy(), false);
        assert!(hidden.iter().all(|one| one.desired.is_empty() && one.live.is_empty()));
        assert_eq!(hidden.len(), 4);
    }

    #[test]
    fn nothing_has_changed() {
        assert_eq!(drift(&desired(), &desired(), true), []);
        assert_eq!(drift(&json!(null), &copy(), true), []);
    }

    #[test]
    fn what_is_told_is_bounded() {
        let many: serde_json::Map<String, Value> =
            (0..100).map(|n| (format!("k{n}"), json!("x".repeat(1000)))).collect();
        let found = drift(&json!({"data": many}), &json!({"data": {}}), true);
        assert_eq!(found.len(), MOST);
        assert!(found.iter().all(|one| one.desired.len() <= LONGEST));
    }
}
