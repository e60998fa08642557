//! Patches of objects, which the expressions of mutating policies make.
//!
//! `Object{…}` is an apply configuration; the structures inside are named by the fields that lead to
//! them (`Object.spec.template{…}`) and take any field. `JSONPatch{op, path, from, value}` is one
//! operation of a JSON patch. Both become JSON here.
//!
//! An expression can share a part many times, so what becomes JSON is bounded in all.

use std::sync::{Arc, LazyLock};

use serde_json::{Map as JsonMap, Number, Value as Json, json};

use crate::decl::{DeclType, Field, ObjectType, UNBOUNDED};
use crate::library::{self, bytes};
use crate::op::Op;
use crate::types::Type;
use crate::value::{Key, List, Map, V, Value};

/// The name of an apply configuration's root.
const OBJECT: &str = "Object";

/// Values, and bytes of text, of the largest patch: several times what a request may have.
const MAX_VALUES: usize = 1 << 20;
const MAX_TEXT: usize = 16 << 20;

/// How deep a patch may nest.
const MAX_DEPTH: usize = 256;

/// The most wrong names that are told of one patch.
const MOST_TOLD: usize = 10;

static OPERATION: LazyLock<Arc<ObjectType>> = LazyLock::new(|| {
    let string = || DeclType::plain(Type::String, UNBOUNDED, 2);
    let field =
        |name: &str, decl| Field { name: name.into(), json_name: None, decl, required: false };
    let fields = vec![
        field("op", string()),
        field("path", string()),
        field("from", string()),
        field("value", DeclType::dynamic()),
    ];
    Arc::new(ObjectType::new("JSONPatch", fields))
});

/// The type of an apply configuration.
pub fn object_type() -> Type {
    Type::Object(Arc::new(ObjectType::open(OBJECT)))
}

/// The type of a JSON patch.
pub fn operations_type() -> Type {
    Type::list(Type::Object(OPERATION.clone()))
}

/// The structure that expressions make under a name.
pub(crate) fn structure(name: &str) -> Option<Arc<ObjectType>> {
    if name == OPERATION.name() {
        return Some(OPERATION.clone());
    }
    let rest = name.strip_prefix(OBJECT)?;
    (rest.is_empty() || rest.starts_with('.')).then(|| Arc::new(ObjectType::open(name)))
}

/// Whether a function is there for patches alone.
pub(crate) fn is_own(function: &str) -> bool {
    function.starts_with("jsonpatch.")
}

impl Value<'_> {
    /// The apply configuration that this is.
    ///
    /// # Errors
    /// Why it is none, in upstream's words where upstream has any.
    pub fn to_configuration(&self) -> Result<Json, String> {
        let V::Map(Map::Made { object, .. }) = &self.0 else {
            let name = self.0.type_name();
            return Err(format!(
                "unsupported return type from ApplyConfiguration expression: {name}"
            ));
        };
        check_names(&self.0, object.name())?;
        Writing { refuses_null: true, ..Writing::default() }.value(&self.0, 0)
    }

    /// The operations of the JSON patch that this is, as one list.
    ///
    /// # Errors
    /// Why it is none, in upstream's words where upstream has any.
    pub fn to_operations(&self) -> Result<Json, String> {
        let wrong = "type mismatch: JSONPatchType.expression should evaluate to array";
        let V::List(list) = &self.0 else { return Err(wrong.to_owned()) };
        let mut writing = Writing::default();
        let mut operations = Vec::with_capacity(list.len());
        for item in list.iter() {
            let item = item.map_err(|error| error.to_string())?;
            let V::Map(Map::Made { object, fields }) = &item else {
                return Err(format!("{wrong} of JSONPatch"));
            };
            if object.name() != OPERATION.name() {
                return Err(format!("{wrong} of JSONPatch"));
            }
            operations.push(writing.operation(fields)?);
        }
        Ok(Json::Array(operations))
    }
}

/// Checks that structures are named by the fields that lead to them. `root` is the name of `value`.
fn check_names(value: &V<'_>, root: &str) -> Result<(), String> {
    let mut wrong = Vec::new();
    // Bounds what is looked at, and the text of all paths together.
    let mut seen = Writing::default();
    let mut open: Vec<(V<'_>, Arc<str>)> = vec![(value.clone(), root.into())];
    while let Some((value, path)) = open.pop() {
        seen.add(0)?;
        match &value {
            V::Map(Map::Made { object, fields }) => {
                if object.name() != &*path {
                    wrong.push(format!(
                        "unexpected type name {:?}, expected {path:?}, which matches field name \
                         path from root Object type",
                        object.name()
                    ));
                    if wrong.len() == MOST_TOLD {
                        break;
                    }
                }
                // Last in, first out.
                for (key, value) in fields.iter().rev() {
                    if let (Key::String(name), true) = (key, may_hold_names(value)) {
                        seen.add(path.len() + name.len())?;
                        open.push((value.clone(), format!("{path}.{name}").into()));
                    }
                }
            }
            V::Map(Map::Owned(entries)) => {
                let values = entries.values().rev().filter(|value| may_hold_names(value));
                open.extend(values.map(|value| (value.clone(), path.clone())));
            }
            V::List(List::Owned { items, .. }) => {
                let items = items.iter().rev().filter(|item| may_hold_names(item));
                open.extend(items.map(|item| (item.clone(), path.clone())));
            }
            _ => {}
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("type mismatch: {}", wrong.join("\n"))) }
}

/// Whether structures can be inside: what comes from JSON has none.
const fn may_hold_names(value: &V<'_>) -> bool {
    matches!(value, V::Map(Map::Made { .. } | Map::Owned(_)) | V::List(List::Owned { .. }))
}

/// What has been made of a patch so far.
#[derive(Debug, Default)]
struct Writing {
    values: usize,
    text: usize,
    /// Whether null has no meaning: an apply configuration leaves out what it doesn't set.
    refuses_null: bool,
}

impl Writing {
    fn operation(
        &mut self,
        fields: &std::collections::BTreeMap<Key, V<'_>>,
    ) -> Result<Json, String> {
        let mut operation = JsonMap::new();
        for (key, value) in fields {
            let Key::String(name) = key else { continue };
            if &**name == "value" {
                if let V::Map(Map::Made { object, .. }) = value {
                    check_names(value, object.name())?;
                }
                let value = self.value(value, 0).map_err(|why| {
                    format!(
                        "JSONPath valueExpression evaluated to a type that could not marshal to \
                         JSON: {why}"
                    )
                })?;
                operation.insert("value".to_owned(), value);
                continue;
            }
            let V::String(text) = value else {
                let found = value.type_name();
                return Err(format!("unexpected type {found} for JSONPatchType '{name}' field"));
            };
            self.add(text.len())?;
            if !(text.is_empty() && &**name == "from") {
                operation.insert((**name).to_owned(), json!(&**text));
            }
        }
        for name in ["op", "path"] {
            operation.entry(name).or_insert_with(|| json!(""));
        }
        Ok(Json::Object(operation))
    }

    fn add(&mut self, text: usize) -> Result<(), String> {
        self.values += 1;
        self.text = self.text.saturating_add(text);
        if self.values > MAX_VALUES || self.text > MAX_TEXT {
            return Err("the patch is too large".to_owned());
        }
        Ok(())
    }

    /// A value as JSON. The recursion ends at [`MAX_DEPTH`].
    fn value(&mut self, value: &V<'_>, depth: usize) -> Result<Json, String> {
        if depth > MAX_DEPTH {
            return Err("the patch nests too deeply".to_owned());
        }
        self.add(0)?;
        Ok(match value {
            V::Null | V::Optional(None) if self.refuses_null => {
                return Err("null can't be applied: leave the field out".to_owned());
            }
            V::Null | V::Optional(None) => Json::Null,
            V::Bool(value) => Json::Bool(*value),
            V::Int(value) => json!(value),
            V::Uint(value) => json!(value),
            V::Double(value) => double(*value)?,
            V::String(text) => {
                self.add(text.len())?;
                json!(&**text)
            }
            V::Bytes(given) => {
                let text = bytes::encode(given);
                self.add(text.len())?;
                Json::String(text)
            }
            V::Duration(_) | V::Timestamp(_) => {
                let budget = crate::eval::Budget::new(u64::MAX);
                let text =
                    library::call(Op::ToString, false, std::slice::from_ref(value), None, &budget);
                match text.map_err(|error| error.to_string())? {
                    V::String(text) => json!(&*text),
                    _ => Json::Null,
                }
            }
            V::Optional(Some(inner)) => self.value(inner, depth + 1)?,
            V::List(list) => {
                let mut items = Vec::with_capacity(list.len().min(MAX_VALUES));
                for item in list.iter() {
                    let item = item.map_err(|error| error.to_string())?;
                    items.push(self.value(&item, depth + 1)?);
                }
                Json::Array(items)
            }
            V::Map(map) => self.map(map, depth)?,
            other => {
                return Err(format!("type conversion error from '{}' to JSON", other.type_name()));
            }
        })
    }

    fn map(&mut self, map: &Map<'_>, depth: usize) -> Result<Json, String> {
        let mut fields = JsonMap::new();
        for key in map.keys() {
            let V::String(name) = &key else {
                let found = key.type_name();
                return Err(format!("map key is of type {found}, not string"));
            };
            if let Some(value) = map.get(&key).map_err(|error| error.to_string())? {
                self.add(name.len())?;
                fields.insert((**name).to_owned(), self.value(&value, depth + 1)?);
            }
        }
        Ok(Json::Object(fields))
    }
}

/// A double as Go writes it: a whole one without a fraction.
fn double(value: f64) -> Result<Json, String> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Ok(json!(value as i64));
    }
    let number = Number::from_f64(value);
    number.map(Json::Number).ok_or_else(|| format!("{value} is no number of JSON"))
}

#[cfg(test)]
mod tests {
    use crate::eval::Budget;
    use crate::{Env, Value};

    use super::*;

    /// What `text` gives with the variable `object`: JSON, or what is wrong.
    fn made(text: &str, then: impl FnOnce(&Value<'_>) -> Result<Json, String>) -> String {
        let env = Env::new([("object", DeclType::dynamic())]).with_patches();
        let expression = match env.compile(text) {
            Ok(expression) => expression,
            Err(error) => return error.to_string(),
        };
        let program = expression.program().unwrap();
        let object = json!({"a": {"b": [1, 2.5]}, "n": "m"});
        let mut budget = Budget::new(1_000_000);
        let inputs = [Value::from_untyped(&object)];
        match program.evaluate(&inputs, &mut budget) {
            Ok(value) => then(&value).map_or_else(|why| why, |json| json.to_string()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn configurations_become_json() {
        let check = |text: &str, expect: &str| {
            assert_eq!(made(text, |value| value.to_configuration()), expect, "{text}");
        };
        check("Object{}", "{}");
        check("Object{spec: Object.spec{replicas: 3}}", r#"{"spec":{"replicas":3}}"#);
        check("Object{a: object.a}", r#"{"a":{"b":[1,2.5]}}"#);
        check(
            "Object{a: {'k': b'ab'}, b: 3.0, c: duration('1h')}",
            r#"{"a":{"k":"YWI="},"b":3,"c":"3600s"}"#,
        );
        check("Object{?a: optional.none(), ?b: optional.of('x')}", r#"{"b":"x"}"#);
        check("Object{l: [Object.l{n: 1}]}", r#"{"l":[{"n":1}]}"#);
        let wrong = "type mismatch: unexpected type name \"Object.x\", expected \"Object.spec\", which \
                     matches field name path from root Object type";
        check("Object{spec: Object.x{}}", wrong);
        check("Object{spec: [{'a': Object.x{}}]}", wrong);
        check("Object{a: {1: 2}}", "map key is of type int, not string");
        check("Object{a: null}", "null can't be applied: leave the field out");
        check("Object{a: type(1)}", "type conversion error from 'type' to JSON");
        check("object", "unsupported return type from ApplyConfiguration expression: map");
        assert!(
            made("Thing{}", |value| value.to_configuration())
                .contains("undeclared reference to 'Thing'")
        );
    }

    #[test]
    fn operations_become_json() {
        let check = |text: &str, expect: &str| {
            assert_eq!(made(text, |value| value.to_operations()), expect, "{text}");
        };
        check("[]", "[]");
        check(
            "[JSONPatch{op: 'add', path: '/a', value: Object.a{b: 1}}]",
            r#"[{"op":"add","path":"/a","value":{"b":1}}]"#,
        );
        check("[JSONPatch{op: 'move', from: '/b'}]", r#"[{"from":"/b","op":"move","path":""}]"#);
        check("[JSONPatch{op: object.n, from: ''}]", r#"[{"op":"m","path":""}]"#);
        check(
            "[JSONPatch{path: '/' + jsonpatch.escapeKey('a/b~c')}]",
            r#"[{"op":"","path":"/a~1b~0c"}]"#,
        );
        check("[JSONPatch{op: object.a}]", "unexpected type map for JSONPatchType 'op' field");
        check("'x'", "type mismatch: JSONPatchType.expression should evaluate to array");
        assert!(
            made("[JSONPatch{x: 1}]", |value| value.to_operations())
                .contains("undefined field 'x'")
        );
    }

    #[test]
    fn structures_are_looked_into_and_compared() {
        let check = |text: &str, expect: bool| {
            let held = made(text, |value| Ok(json!(value.as_bool())));
            assert_eq!(held, expect.to_string(), "{text}");
        };
        check("Object{a: [1, 2]}.a.sum() == 3", true);
        check("Object{a: 1} == Object{a: 1}", true);
        check("Object{a: 1} == Object{a: 2}", false);
        check("dyn(Object.a{b: 1}) == dyn(Object.c{b: 1})", false);
        check("dyn(Object.a{b: 1}) == dyn({'b': 1})", false);
        check("Object{}.a == null", true);
        check("has(Object{}.a)", false);
        check("Object{}.?a.hasValue()", false);
    }

    #[test]
    fn patches_are_bounded() {
        // Each step doubles.
        let doubled = (0..40).fold("[1]".to_owned(), |text, _| format!("{text}.map(x, [x, x])"));
        let told = made(&format!("Object{{a: {doubled}}}"), |value| value.to_configuration());
        assert_eq!(told, "the patch is too large");
        // Of many wrong names some are told, and long paths are not written often.
        let many =
            (0..12).fold("[Object.b{}]".to_owned(), |text, _| format!("{text}.map(x, [x, x])"));
        let told = made(&format!("Object{{a: {many}}}"), |value| value.to_configuration());
        assert_eq!(told.matches("unexpected type name \"Object.b\"").count(), MOST_TOLD);
        let long = "a".repeat(1 << 13);
        let many = (0..12).fold(format!("[Object.{long}{{b: Object.{long}.b{{}}}}]"), |text, _| {
            format!("{text}.map(x, [x, x])")
        });
        let told = made(&format!("Object{{{long}: {many}}}"), |value| value.to_configuration());
        assert_eq!(told, "the patch is too large");
        let env = Env::new([("object", DeclType::dynamic())]);
        let refused = env.compile("jsonpatch.escapeKey('a')").unwrap_err().to_string();
        assert!(refused.contains("undeclared reference"), "{refused}");
        assert!(env.compile("Object{}").is_err());
    }
}
