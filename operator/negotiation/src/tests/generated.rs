//! Schemas and objects, made of a number.

use machinery::FieldPath;
use schema::CoerceMode;
use schema::structural::Structural;
use serde_json::{Map, Value, json};

/// A source of choices, the same for the same seed.
pub(super) struct Choices(u64);

const NAMES: [&str; 3] = ["a", "b", "c"];
const TEXTS: [&str; 5] = ["x", "xy", "y", "2026-01-01", ""];

// === impl Choices ===

impl Choices {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()].clone()
    }

    fn some<T: Clone>(&mut self, all: &[T]) -> Vec<T> {
        all.iter().filter(|_| self.one_in(2)).cloned().collect()
    }

    /// A structural schema.
    pub(super) fn schema(&mut self, depth: u32) -> Value {
        let leaf = if depth == 0 { 6 } else { 10 };
        let mut made = match self.below(leaf) {
            0 | 1 => self.text(),
            2 => self.number("integer"),
            3 => self.number("number"),
            4 => json!({"type": "boolean"}),
            5 => match self.below(3) {
                0 => json!({"x-kubernetes-preserve-unknown-fields": true}),
                1 => json!({"x-kubernetes-int-or-string": true,
                            "anyOf": [{"type": "integer"}, {"type": "string"}]}),
                _ => json!({"x-kubernetes-int-or-string": true, "pattern": "^x"}),
            },
            6 => self.list(depth),
            _ => self.object(depth),
        };
        if self.one_in(4) {
            made["nullable"] = json!(true);
        }
        made
    }

    fn text(&mut self) -> Value {
        let mut made = json!({"type": "string"});
        match self.below(9) {
            0 => made["enum"] = json!(self.some(&TEXTS)),
            1 => made["minLength"] = json!(self.below(3)),
            2 => made["maxLength"] = json!(self.below(3)),
            3 => made["pattern"] = json!(self.pick(&["^x", "y$"])),
            4 => made["format"] = json!("date"),
            5 => made["not"] = json!({"enum": [self.pick(&TEXTS)]}),
            6 => made["anyOf"] = json!([{"pattern": "^x"}, {"maxLength": self.below(2)}]),
            7 => made["allOf"] = json!([{"pattern": "^x"}, {"maxLength": 1, "pattern": "y$"}]),
            _ => {}
        }
        made
    }

    fn number(&mut self, kind: &str) -> Value {
        let mut made = json!({"type": kind});
        let limit = self.pick(&[json!(0), json!(1), json!(2), json!(1.5)]);
        let exclusive = self.one_in(3);
        match self.below(7) {
            0 => made["minimum"] = limit,
            1 => made["maximum"] = limit,
            2 => made["multipleOf"] = self.pick(&[json!(1), json!(2), json!(3), json!(0.5)]),
            3 => made["enum"] = self.some(&[json!(0), json!(1), json!(1.5), json!(2)]).into(),
            4 => made["format"] = json!(self.pick(&["int32", "int64", "double"])),
            _ => {}
        }
        if exclusive && made.get("minimum").is_some() {
            made["exclusiveMinimum"] = json!(true);
        }
        if exclusive && made.get("maximum").is_some() {
            made["exclusiveMaximum"] = json!(true);
        }
        made
    }

    fn list(&mut self, depth: u32) -> Value {
        let mut made = json!({"type": "array", "items": self.schema(depth - 1)});
        match self.below(6) {
            0 => made["maxItems"] = json!(self.below(3)),
            1 => made["minItems"] = json!(self.below(3)),
            2 => {
                made["items"] = self.text();
                made["x-kubernetes-list-type"] = json!("set");
            }
            3 => {
                let key = self.pick(&NAMES);
                made["items"] = json!({"type": "object", "required": [key], "properties": {
                    key: {"type": "string"}, "d": self.schema(depth - 1),
                }});
                made["x-kubernetes-list-type"] = json!("map");
                made["x-kubernetes-list-map-keys"] = json!([key]);
            }
            _ => {}
        }
        made
    }

    fn object(&mut self, depth: u32) -> Value {
        let mut made = json!({"type": "object"});
        match self.below(8) {
            0 => made["additionalProperties"] = self.schema(depth - 1),
            1 => made["additionalProperties"] = self.pick(&[json!(true), json!(false)]),
            kind => {
                let fields: Map<String, Value> = { self.some(&NAMES).into_iter() }
                    .map(|name| (name.to_owned(), self.schema(depth - 1)))
                    .collect();
                made["properties"] = Value::Object(fields);
                if kind == 2 {
                    made["x-kubernetes-preserve-unknown-fields"] = json!(true);
                }
            }
        }
        let fields: Vec<String> = made["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect();
        let required = self.some(&fields);
        if self.one_in(3) && !required.is_empty() {
            made["required"] = json!(required);
        }
        match self.below(10) {
            0 => made["maxProperties"] = json!(self.below(3)),
            1 => made["minProperties"] = json!(self.below(3)),
            2 => made["oneOf"] = json!([{"required": ["a"]}, {"required": ["b"]}]),
            3 => made["not"] = json!({"required": [self.pick(&NAMES)]}),
            4 => made["x-kubernetes-map-type"] = json!("atomic"),
            _ => {}
        }
        made
    }

    /// A schema that is like another one, more or less.
    pub(super) fn like(&mut self, schema: &Value, depth: u32) -> Value {
        if self.one_in(12) {
            return self.schema(depth);
        }
        let mut made = schema.clone();
        let Some(keywords) = made.as_object_mut() else { return made };
        if let Some(Value::Object(fields)) = keywords.get_mut("properties") {
            for (_, part) in fields.iter_mut() {
                *part = self.like(part, depth.saturating_sub(1));
            }
            if self.one_in(6) {
                fields.insert(self.pick(&NAMES).to_owned(), self.schema(depth.saturating_sub(1)));
            }
            if self.one_in(8) {
                fields.remove(self.pick(&NAMES));
            }
        }
        for key in ["items", "additionalProperties"] {
            if let Some(part) = keywords.get_mut(key) {
                *part = self.like(part, depth.saturating_sub(1));
            }
        }
        if self.one_in(6) {
            let droppable = ["required", "maximum", "pattern", "enum", "nullable", "oneOf", "not"];
            droppable.iter().for_each(|key| drop(keywords.remove(*key)));
        }
        made
    }

    /// A value that a schema may take.
    pub(super) fn value(&mut self, schema: &Value, depth: u32) -> Value {
        if self.one_in(12) {
            return self.pick(&[json!(null), json!("x"), json!(1), json!({"a": 1}), json!(true)]);
        }
        if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.is_empty()) {
            return self.pick(allowed);
        }
        let kind = schema["type"].as_str().unwrap_or_default();
        match kind {
            "string" => json!(self.pick(&TEXTS)),
            "integer" => json!(self.pick(&[-1, 0, 1, 2, 3, 6, 5_000_000_000_i64])),
            "number" => self.pick(&[json!(0), json!(1), json!(1.5), json!(2), json!(0.5)]),
            "boolean" => json!(self.one_in(2)),
            "array" => {
                let count = self.below(4);
                (0..count).map(|_| self.value(&schema["items"], depth.saturating_sub(1))).collect()
            }
            "object" => self.fields(schema, depth),
            _ if schema.get("x-kubernetes-int-or-string").is_some() => {
                self.pick(&[json!(1), json!("x"), json!("y")])
            }
            _ => self.pick(&[json!({"a": {"b": 1}}), json!([{"a": 1}]), json!("x"), json!(1.5)]),
        }
    }

    fn fields(&mut self, schema: &Value, depth: u32) -> Value {
        let mut made = Map::new();
        let values = &schema["additionalProperties"];
        for name in self.some(&["a", "b", "c", "d"]) {
            let part = schema["properties"].get(name).or(Some(values)).filter(|p| p.is_object());
            let value = match part {
                Some(part) => self.value(part, depth.saturating_sub(1)),
                None if schema["properties"].get(name).is_none() && self.one_in(2) => continue,
                None => {
                    self.pick(&[json!({"a": {"b": 1}}), json!([{"a": 1}]), json!("x"), json!(1)])
                }
            };
            made.insert(name.to_owned(), value);
        }
        Value::Object(made)
    }
}

/// The server's judge of a schema for `spec`; `None` if that isn't structural.
pub(super) fn judge(schema: &Value) -> Option<std::sync::Arc<Structural>> {
    Structural::compile(schema, &FieldPath::root("schema")).ok()
}

/// Whether an object is valid, and loses nothing.
pub(super) fn takes(judge: &Structural, object: &Value) -> bool {
    let mut pruned = object.clone();
    judge.prune(&mut pruned, CoerceMode::Drop);
    pruned == *object && judge.validate(object, None).is_empty()
}
