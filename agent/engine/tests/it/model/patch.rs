//! Merge patch (RFC 7386) and JSON patch (RFC 6902), as far as the engine uses them.

use serde_json::{Value, json};

pub(crate) fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in members {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut into[key], value);
        }
    }
}

/// Whether all operations could be done.
pub(crate) fn json_patch(object: &mut Value, patch: &Value) -> bool {
    patch.as_array().unwrap().iter().all(|operation| {
        let path = operation["path"].as_str().unwrap();
        let (parent, last) = path.rsplit_once('/').unwrap();
        let last = last.replace("~1", "/").replace("~0", "~");
        match operation["op"].as_str().unwrap() {
            "test" => object.pointer(path) == Some(&operation["value"]),
            "add" => match object.pointer_mut(parent) {
                Some(Value::Object(members)) => {
                    members.insert(last, operation["value"].clone());
                    true
                }
                Some(Value::Array(items)) if last == "-" => {
                    items.push(operation["value"].clone());
                    true
                }
                _ => false,
            },
            "remove" => match object.pointer_mut(parent) {
                Some(Value::Object(members)) => members.remove(&last).is_some(),
                Some(Value::Array(items)) => match last.parse::<usize>() {
                    Ok(index) if index < items.len() => {
                        items.remove(index);
                        true
                    }
                    _ => false,
                },
                _ => false,
            },
            other => panic!("{other} is not modelled"),
        }
    })
}
