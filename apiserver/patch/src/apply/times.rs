//! Writes that would change nothing but the times of managers.

use serde_json::{Map, Value};

/// Puts back the times of `old` into `new` when nothing else is different, so that there is nothing
/// to write. As upstream, a manager more or less is a difference.
pub fn keep_times(old: &Value, new: &mut Value) {
    let (Some(before), Some(after)) = (entries(old), entries(new)) else { return };
    if before == after || !same_entries(before, after) || !same_object(old, new) {
        return;
    }
    let before = Value::Array(before.to_vec());
    machinery::meta::set(new, &["metadata", "managedFields"], before);
}

fn entries(object: &Value) -> Option<&[Value]> {
    let fields = object.get("metadata")?.get("managedFields")?.as_array()?;
    (!fields.is_empty()).then_some(fields)
}

fn same_entries(old: &[Value], new: &[Value]) -> bool {
    let same = |(old, new): (&Value, &Value)| match (old, new) {
        (Value::Object(old), Value::Object(new)) => same_but(old, new, "time", |_, _| true),
        (old, new) => old == new,
    };
    old.len() == new.len() && old.iter().zip(new).all(same)
}

fn same_object(old: &Value, new: &Value) -> bool {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return old == new };
    same_but(old, new, "metadata", |old, new| match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            same_but(old, new, "managedFields", |_, _| true)
        }
        (old, new) => old == new,
    })
}

/// Whether two objects are the same but for one field, which `same` compares when both have it.
fn same_but(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    field: &str,
    same: impl Fn(&Value, &Value) -> bool,
) -> bool {
    let mut others = 0;
    for (name, value) in old {
        match new.get(name) {
            Some(new) if name == field => {
                if !same(value, new) {
                    return false;
                }
            }
            None if name == field => {}
            other => {
                if other != Some(value) {
                    return false;
                }
                others += 1;
            }
        }
    }
    others + usize::from(new.contains_key(field)) == new.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_times_are_put_back() {
        let object = |time: Option<&str>, data: &str| {
            let mut entry = json!({"manager": "m", "fieldsV1": {}});
            if let Some(time) = time {
                entry["time"] = json!(time);
            }
            json!({"metadata": {"name": "x", "managedFields": [entry]}, "data": {"a": data}})
        };
        let check = |old: Value, new: Value, kept: bool| {
            let mut result = new.clone();
            keep_times(&old, &mut result);
            assert_eq!(result, if kept { old } else { new });
        };
        check(object(Some("1"), "a"), object(Some("2"), "a"), true);
        check(object(None, "a"), object(Some("2"), "a"), true);
        check(object(Some("1"), "a"), object(Some("2"), "b"), false);
        let mut more = object(Some("2"), "a");
        more["metadata"]["labels"] = json!({});
        check(object(Some("1"), "a"), more, false);
        let mut another = object(Some("2"), "a");
        another["metadata"]["managedFields"][0]["manager"] = json!("n");
        check(object(Some("1"), "a"), another, false);
        check(json!({}), object(Some("2"), "a"), false);
    }
}
