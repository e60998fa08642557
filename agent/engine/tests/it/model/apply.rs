//! Server-side apply: fields as paths to leaves; lists are whole, but for those of objects that
//! are called `name`, which are maps by name, unless the type says otherwise.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{Key, Server, status};

/// A path to a leaf, in the words of `fieldsV1`.
type Path = Vec<String>;
type Fields = BTreeSet<Path>;

const UNOWNED: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Lists of objects with names that are whole all the same, as those of ServiceAccounts are.
const WHOLE: [&str; 1] = ["f:imagePullSecrets"];

fn is_map_by_name(items: &[Value]) -> bool {
    // Versions of definitions are called so, too.
    let is_version = |item: &Value| item.get("served").is_some();
    let named = |item: &Value| item["name"].is_string() && !is_version(item);
    !items.is_empty() && items.iter().all(named)
}

fn is_whole(path: &Path) -> bool {
    path.last().is_some_and(|last| WHOLE.contains(&last.as_str()))
}

/// All leaves of an object that can be owned.
pub(crate) fn fields_of(object: &Value) -> Fields {
    let mut fields = Fields::new();
    for (key, value) in object.as_object().unwrap() {
        if !UNOWNED.contains(&key.as_str()) {
            leaves(value, &mut vec![format!("f:{key}")], &mut fields);
        }
    }
    for part in ["labels", "annotations", "finalizers"] {
        let value = &object["metadata"][part];
        if !value.is_null() {
            leaves(value, &mut vec!["f:metadata".into(), format!("f:{part}")], &mut fields);
        }
    }
    fields
}

fn leaves(value: &Value, path: &mut Path, into: &mut Fields) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (key, value) in members {
                path.push(format!("f:{key}"));
                leaves(value, path, into);
                path.pop();
            }
        }
        Value::Array(items) if is_map_by_name(items) && !is_whole(path) => {
            for item in items {
                path.push(format!("k:{}", json!({"name": item["name"]})));
                leaves(item, path, into);
                path.pop();
            }
        }
        _ => drop(into.insert(path.clone())),
    }
}

fn get<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    let Some((first, rest)) = path.split_first() else { return Some(value) };
    let next = match first.split_once(':').unwrap() {
        ("f", key) => value.get(key)?,
        (_, keys) => {
            let keys: Value = serde_json::from_str(keys).unwrap();
            value.as_array()?.iter().find(|item| item["name"] == keys["name"])?
        }
    };
    get(next, rest)
}

fn set(value: &mut Value, path: &[String], to: &Value) {
    let Some((first, rest)) = path.split_first() else {
        *value = to.clone();
        return;
    };
    match first.split_once(':').unwrap() {
        ("f", key) => {
            if !value.is_object() {
                *value = json!({});
            }
            set(&mut value[key], rest, to);
        }
        (_, keys) => {
            let keys: Value = serde_json::from_str(keys).unwrap();
            if !value.is_array() {
                *value = json!([]);
            }
            let items = value.as_array_mut().unwrap();
            let at = items.iter().position(|item| item["name"] == keys["name"]);
            let at = at.unwrap_or_else(|| {
                items.push(keys.clone());
                items.len() - 1
            });
            set(&mut items[at], rest, to);
        }
    }
}

/// Removes a leaf, and what it leaves empty.
fn remove(value: &mut Value, path: &[String]) {
    let Some((first, rest)) = path.split_first() else { return };
    let (kind, key) = first.split_once(':').unwrap();
    let keys: Value = if kind == "k" { serde_json::from_str(key).unwrap() } else { Value::Null };
    let is_empty = |value: &Value| match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(members) => {
            if rest.is_empty() {
                members.remove(key);
            } else if let Some(next) = members.get_mut(key) {
                remove(next, rest);
                if is_empty(next) {
                    members.remove(key);
                }
            }
        }
        Value::Array(items) => {
            for item in items.iter_mut().filter(|item| item["name"] == keys["name"]) {
                remove(item, rest);
            }
            items.retain(|item| !is_empty(item) && item.get("name").is_some());
        }
        _ => {}
    }
}

fn tree(fields: &Fields) -> Value {
    let mut root = json!({});
    for path in fields {
        let mut at = &mut root;
        for part in path {
            if part.starts_with("k:") {
                at = &mut at[part.as_str()];
                if at.is_null() {
                    *at = json!({".": {}});
                }
            } else {
                at = &mut at[part.as_str()];
                if at.is_null() {
                    *at = json!({});
                }
            }
        }
    }
    root
}

fn read(tree: &Value) -> Fields {
    fn walk(node: &Map<String, Value>, path: &mut Path, into: &mut Fields) {
        for (key, below) in node.iter().filter(|(key, _)| *key != ".") {
            path.push(key.clone());
            let below = below.as_object().unwrap();
            if below.is_empty() {
                into.insert(path.clone());
            }
            walk(below, path, into);
            path.pop();
        }
    }
    let mut fields = Fields::new();
    walk(tree.as_object().unwrap(), &mut Vec::new(), &mut fields);
    fields
}

/// (manager, operation, subresource) → fields.
type Managed = BTreeMap<(String, String, String), Fields>;

fn managed(object: &Value) -> Managed {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    { entries.iter() }
        .map(|entry| {
            let key =
                (text(entry, "manager"), text(entry, "operation"), text(entry, "subresource"));
            (key, read(&entry["fieldsV1"]))
        })
        .collect()
}

fn write(object: &mut Value, managed: &Managed) {
    let entries: Vec<_> = { managed.iter() }
        .filter(|(_, fields)| !fields.is_empty())
        .map(|((manager, operation, subresource), fields)| {
            let mut entry = json!({
                "manager": manager, "operation": operation, "fieldsType": "FieldsV1",
                "fieldsV1": tree(fields),
            });
            if !subresource.is_empty() {
                entry["subresource"] = subresource.clone().into();
            }
            entry
        })
        .collect();
    object["metadata"]["managedFields"] = entries.into();
}

pub(crate) fn set_managed(
    object: &mut Value,
    manager: &str,
    operation: &str,
    subresource: &str,
    fields: &Fields,
) {
    let mut all = managed(object);
    all.insert((manager.into(), operation.into(), subresource.into()), fields.clone());
    write(object, &all);
}

/// What an update means for who owns what: what it changed is its own, and nobody else's.
pub(crate) fn update(old: &Value, new: &mut Value, manager: &str, subresource: &str) {
    let mut all = managed(old);
    let (before, after) = (fields_of(old), fields_of(new));
    let changed: Fields =
        { before.union(&after) }.filter(|path| get(old, path) != get(new, path)).cloned().collect();
    for fields in all.values_mut() {
        fields.retain(|path| !changed.contains(path));
    }
    let own = (manager.to_owned(), "Update".to_owned(), subresource.to_owned());
    all.entry(own).or_default().extend(changed.intersection(&after).cloned());
    write(new, &all);
}

impl Server {
    pub(super) fn apply(
        &mut self,
        key: &Key,
        body: &Value,
        manager: &str,
        subresource: &str,
        force: bool,
        dry_run: bool,
    ) -> (u16, Value) {
        let mut wanted = body.clone();
        let metadata = wanted["metadata"].as_object_mut().unwrap();
        let uid = metadata.remove("uid");
        let version = metadata.remove("resourceVersion");
        if subresource != "status" {
            wanted.as_object_mut().unwrap().remove("status");
        }
        let fields = fields_of(&wanted);
        let own = (manager.to_owned(), "Apply".to_owned(), subresource.to_owned());
        let Some(old) = self.get(key) else {
            if uid.is_some() {
                return status(409, "Conflict", "uid mismatch: no object was found", json!({}));
            }
            if subresource == "status" {
                return Self::missing(key);
            }
            if let Some(refused) = self.lacks_namespace(key) {
                return refused;
            }
            let mut object = wanted;
            write(&mut object, &Managed::from([(own, fields)]));
            self.mutate(&mut object);
            return (201, self.put_new(key, object));
        };
        if uid.is_some_and(|uid| uid != old["metadata"]["uid"]) {
            return status(409, "Conflict", "Precondition failed: UID", json!({}));
        }
        if version.is_some_and(|version| version != old["metadata"]["resourceVersion"]) {
            return status(409, "Conflict", "the object has been modified", json!({}));
        }
        let mut all = managed(&old);
        let before = all.remove(&own).unwrap_or_default();
        let mut causes = Vec::new();
        for (other, theirs) in &mut all {
            let lost: Fields = { theirs.intersection(&fields) }
                .filter(|path| get(&old, path) != get(&wanted, path))
                .cloned()
                .collect();
            for path in lost {
                causes.push(json!({"reason": "FieldManagerConflict", "message": other.0,
                    "field": path.join(".")}));
                theirs.remove(&path);
            }
        }
        if !causes.is_empty() && !force {
            let details = json!({"name": key.3, "causes": causes});
            return status(409, "Conflict", "Apply failed with conflicts", details);
        }
        let mut new = old.clone();
        for path in before.difference(&fields) {
            if !all.values().any(|fields| fields.contains(path)) {
                remove(&mut new, path);
            }
        }
        for path in &fields {
            set(&mut new, path, get(&wanted, path).unwrap());
        }
        all.insert(own, fields);
        write(&mut new, &all);
        if dry_run {
            return (200, new);
        }
        self.put_changed(key, new, subresource)
    }
}
