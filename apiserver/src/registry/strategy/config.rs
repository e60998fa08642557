//! ConfigMaps and Secrets: data under keys.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use machinery::meta::{get, get_bool, get_str, remove, set};
use machinery::{FieldError, FieldPath, name};
use serde_json::{Map, Value, json};

use super::Strategy;
use crate::registry::Context;

/// Most bytes of all values together (`MaxSecretSize` upstream).
const MAX_DATA: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct ConfigMaps;

#[derive(Debug)]
pub(super) struct Secrets;

impl Strategy for ConfigMaps {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut problems = Vec::new();
        let empty = Map::new();
        let map = |field: &str| get(object, &[field]).and_then(Value::as_object).unwrap_or(&empty);
        let (data, binary) = (map("data"), map("binaryData"));
        let mut size = 0;
        for (key, value) in data {
            let path = FieldPath::root("data").key(key);
            problems.extend(bad_key(&path, key));
            if binary.contains_key(key) {
                let why = "duplicate of key present in binaryData";
                problems.push(FieldError::invalid(&path, &json!(key), why));
            }
            size += value.as_str().map_or(0, str::len);
        }
        for (key, value) in binary {
            let path = FieldPath::root("binaryData").key(key);
            problems.extend(bad_key(&path, key));
            size += decoded_len(value);
        }
        if size > MAX_DATA {
            // Upstream's path of the object itself.
            problems.push(FieldError::too_long(&FieldPath::root("[]"), MAX_DATA));
        }
        problems
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        immutable(new, old, &["data", "binaryData"])
    }
}

impl Strategy for Secrets {
    fn prepare_create(&self, object: &mut Value, _ctx: &Context) {
        merge_string_data(object);
    }

    fn prepare_update(&self, new: &mut Value, _old: &Value) {
        merge_string_data(new);
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut problems = Vec::new();
        let empty = Map::new();
        let data = get(object, &["data"]).and_then(Value::as_object).unwrap_or(&empty);
        let mut size = 0;
        for (key, value) in data {
            problems.extend(bad_key(&FieldPath::root("data").key(key), key));
            size += decoded_len(value);
        }
        if size > MAX_DATA {
            problems.push(FieldError::too_long(&FieldPath::root("data"), MAX_DATA));
        }
        problems.extend(required_keys(object, data));
        problems
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut problems = Vec::new();
        if get(new, &["type"]) != get(old, &["type"]) {
            let kind = get(new, &["type"]).cloned().unwrap_or_default();
            let path = FieldPath::root("type");
            problems.push(FieldError::invalid(&path, &kind, "field is immutable"));
        }
        problems.extend(immutable(new, old, &["data"]));
        problems
    }
}

/// `stringData` is written only: it ends up in `data`.
fn merge_string_data(object: &mut Value) {
    let Some(Value::Object(strings)) = remove(object, &["stringData"]) else {
        return;
    };
    for (key, value) in strings {
        let encoded = STANDARD.encode(value.as_str().unwrap_or_default());
        set(object, &["data", &key], json!(encoded));
    }
}

/// What some types of secrets must hold.
fn required_keys(object: &Value, data: &Map<String, Value>) -> Vec<FieldError> {
    let missing = |key: &str| {
        (!data.contains_key(key))
            .then(|| FieldError::required(&FieldPath::root("data").key(key), ""))
    };
    match get_str(object, &["type"]).unwrap_or_default() {
        "kubernetes.io/service-account-token" => {
            let annotation = "kubernetes.io/service-account.name";
            let named = get_str(object, &["metadata", "annotations", annotation]);
            let path = FieldPath::root("metadata").child("annotations").key(annotation);
            match named {
                Some(name) if !name.is_empty() => Vec::new(),
                _ => vec![FieldError::required(&path, "")],
            }
        }
        "kubernetes.io/dockercfg" => json_key(data, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => json_key(data, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" => {
            // One of the two is enough.
            let both = ["username", "password"].map(missing);
            if both.iter().all(Option::is_some) {
                both.into_iter().flatten().collect()
            } else {
                Vec::new()
            }
        }
        "kubernetes.io/ssh-auth" => {
            let empty = data.get("ssh-privatekey").is_none_or(|value| decoded_len(value) == 0);
            let path = FieldPath::root("data").key("ssh-privatekey");
            empty.then(|| FieldError::required(&path, "")).into_iter().collect()
        }
        "kubernetes.io/tls" => ["tls.crt", "tls.key"].into_iter().filter_map(missing).collect(),
        _ => Vec::new(),
    }
}

fn json_key(data: &Map<String, Value>, key: &str) -> Vec<FieldError> {
    let path = FieldPath::root("data").key(key);
    let Some(value) = data.get(key) else {
        return vec![FieldError::required(&path, "")];
    };
    let bytes = STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
    match machinery::json::parse(&bytes, &machinery::json::Limits::default()) {
        Ok(_) => Vec::new(),
        Err(error) => {
            let redacted = json!("<secret contents redacted>");
            vec![FieldError::invalid(&path, &redacted, error.message)]
        }
    }
}

/// `immutable: true` can't be taken back, and keeps the data as they are.
fn immutable(new: &Value, old: &Value, fields: &[&str]) -> Vec<FieldError> {
    if get_bool(old, &["immutable"]) != Some(true) {
        return Vec::new();
    }
    let why = "field is immutable when `immutable` is set";
    let mut problems = Vec::new();
    if get_bool(new, &["immutable"]) != Some(true) {
        problems.push(FieldError::forbidden(&FieldPath::root("immutable"), why));
    }
    for field in fields {
        if get(new, &[field]) != get(old, &[field]) {
            problems.push(FieldError::forbidden(&FieldPath::root(field), why));
        }
    }
    problems
}

fn bad_key(path: &FieldPath, key: &str) -> Vec<FieldError> {
    let problems = name::config_map_key(key).into_iter();
    problems.map(|problem| FieldError::invalid(path, &json!(key), problem)).collect()
}

/// Bytes that base64 text stands for.
fn decoded_len(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}
