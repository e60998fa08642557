//! Server-side apply: bodies, managers and sets of fields as hostile clients may write them.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use machinery::GroupVersion;
use machinery::time::Time;
use patch::apply::{
    FieldSet, Managers, Replicas, Tracker, Type, Versions, Write, from_scale, to_scale,
};
use schema::{ApplyType, Schema, Structural, Types};
use serde_json::{Value, json};

use crate::document::Input;

const VERSION: &str = "test.kcp.io/v1";
const KIND: &str = "Thing";

/// A custom type with lists and maps of all kinds.
static THING: LazyLock<Arc<Structural>> = LazyLock::new(|| {
    let item = json!({
        "type": "object", "required": ["name"],
        "properties": {
            "name": {"type": "string"}, "port": {"type": "integer", "default": 1},
            "value": {"type": "string"}, "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    });
    let list = |kind: &str, items: &Value, keys: &[&str]| {
        let mut list = json!({"type": "array", "items": items, "x-kubernetes-list-type": kind});
        if !keys.is_empty() {
            list["x-kubernetes-list-map-keys"] = json!(keys);
        }
        list
    };
    let text = json!({"type": "string"});
    let spec = json!({
        "type": "object",
        "properties": {
            "a": {"type": "string"}, "replicas": {"type": "integer"},
            "items": list("map", &item, &["name", "port"]),
            "ports": list("map", &item, &["name"]),
            "c": list("set", &text, &[]),
            "x": list("atomic", &text, &[]),
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "data": {"type": "object", "x-kubernetes-map-type": "atomic",
                     "additionalProperties": {"type": "string"}},
            "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "port": {"x-kubernetes-int-or-string": true},
            "template": {"type": "object", "x-kubernetes-embedded-resource": true,
                         "x-kubernetes-preserve-unknown-fields": true},
        },
    });
    let schema = json!({
        "type": "object",
        "properties": {"spec": spec, "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}},
    });
    Structural::compile(&schema, &machinery::FieldPath::default()).expect("it is structural")
});

/// Built-in kinds with lists of many forms.
static BUILTIN: LazyLock<Vec<Arc<Schema>>> = LazyLock::new(|| {
    let kinds = [("", "ConfigMap"), ("", "Service"), ("", "Pod"), ("apps", "Deployment")];
    let types = Types::builtin();
    let schemas = kinds.iter().filter_map(|(group, kind)| {
        let kind = GroupVersion::new(group, "v1").kind(kind);
        types.kind(&kind).cloned().or_else(|| Types::known(&kind))
    });
    schemas.collect()
});

/// One version of a type, or none.
#[derive(Debug)]
struct Thing<'s> {
    schema: Option<Type<ApplyType<'s>>>,
    reset: FieldSet,
}

impl<'s> Versions<'s> for Thing<'s> {
    type Schema = ApplyType<'s>;

    fn schema(&self, api_version: &str) -> Option<Type<ApplyType<'s>>> {
        self.schema.filter(|_| api_version == VERSION)
    }

    fn convert<'v>(&self, object: Cow<'v, Value>, _: &str) -> Result<Cow<'v, Value>, String> {
        Ok(object)
    }

    fn reset(&self, _: &str) -> Option<&FieldSet> {
        Some(&self.reset)
    }

    fn empty(&self, api_version: &str) -> Value {
        json!({"apiVersion": api_version, "kind": KIND})
    }
}

fn write(manager: &str) -> Write<'_> {
    let now = Time::at(Timestamp::UNIX_EPOCH);
    Write { manager, api_version: VERSION, kind: KIND, subresource: "", now }
}

/// A document as an object, with these managers.
fn thing(document: Value, managers: Option<Value>) -> Value {
    let mut object = if document.is_object() { document } else { json!({"spec": document}) };
    object["apiVersion"] = VERSION.into();
    object["kind"] = KIND.into();
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = json!({"name": "x"});
    }
    match (metadata.as_object_mut(), managers) {
        (Some(metadata), None) => drop(metadata.remove("managedFields")),
        (_, Some(managers)) => metadata["managedFields"] = managers,
        _ => {}
    }
    object
}

/// A set of fields is what it is read and written as, and operations on two agree.
fn sets(a: &Value, b: &Value) {
    let (Ok(a), Ok(b)) = (FieldSet::from_value(a), FieldSet::from_value(b)) else { return };
    assert_eq!(FieldSet::from_value(&a.to_value()).as_ref(), Ok(&a));
    let text: Value = serde_json::from_str(&a.to_json()).expect("it is JSON");
    assert_eq!(text, a.to_value());
    let (mut union, mut only) = (a.clone(), a.clone());
    union.add(b.clone());
    only.subtract(&b);
    let both = a.intersection(&b);
    for path in union.paths() {
        let (in_a, in_b) = (a.contains(&path), b.contains(&path));
        assert!(in_a || in_b);
        assert_eq!(only.contains(&path), in_a && !in_b);
        assert_eq!(both.contains(&path), in_a && in_b);
    }
}

/// How the input is used: which type, by force or not, by whom.
pub fn apply(data: &[u8]) {
    let mut input = Input::new(data);
    let how = input.byte();
    let (live, given) = (input.document(), input.document());
    let (config, own) = (input.document(), input.document());
    if let (Some(a), Some(b)) = (given.get(0), given.get(1)) {
        sets(a.get("fieldsV1").unwrap_or(a), b.get("fieldsV1").unwrap_or(b));
    }
    let any;
    let schema = match how & 7 {
        0 => {
            any = Structural::compile(&input.document(), &machinery::FieldPath::default());
            any.as_ref().ok().map(|schema| schema.apply())
        }
        1 => Some(Type::Deduced),
        2 => Some(Type::Whole),
        3..=5 => Some(THING.apply()),
        _ => BUILTIN.get(usize::from(how >> 6)).map(|schema| schema.apply()),
    };
    let versions = Thing { schema, reset: FieldSet::of_fields([&["status"][..]]) };
    let tracker = Tracker::new(&versions);
    let force = how & 8 != 0;
    let manager = if how & 16 == 0 { "ann" } else { "kubectl" };

    // Managers of any form.
    let hostile = thing(live.clone(), Some(given.clone()));
    let changed = thing(config.clone(), Some(own));
    for live in [None, Some(&hostile)] {
        let updated = tracker.update(&write("eve"), live, changed.clone());
        managed(&updated);
        for live in [live, Some(&updated)] {
            if let Ok(applied) =
                tracker.apply(&write(manager), live, &thing(config.clone(), None), force)
            {
                managed(&applied);
            }
        }
    }
    let replicas = |_: &str| Replicas::at(".spec.replicas");
    if let Ok(scale) = to_scale(Some(&given), replicas) {
        let back = from_scale(Some(&given), scale.as_ref(), VERSION, replicas);
        back.expect("what was made of managers can be read");
    }

    // Managers that the server wrote itself.
    let live = tracker.update(&write("eve"), None, thing(live, None));
    let config = thing(config, None);
    if let Ok(once) = tracker.apply(&write("ann"), Some(&live), &config, true) {
        managed(&once);
        let twice = tracker.apply(&write("ann"), Some(&once), &config, false);
        assert_eq!(twice.as_ref(), Ok(&once), "applying twice is applying once");
    }
}

/// Whatever a write leaves can be read by the next one. Numbers in keys are floats then, as
/// upstream reads them, so that it takes a reading until nothing changes.
fn managed(object: &Value) {
    if let Some(fields) = object.pointer("/metadata/managedFields") {
        let read = |fields: &Value| {
            let managers = Managers::from_value(fields).expect("written fields are read");
            managers.into_value().expect("they don't vanish")
        };
        let once = read(fields);
        assert_eq!(read(&once), once);
    }
}
