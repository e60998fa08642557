//! One schema of an OpenAPI document to one structural schema, with everything inlined.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::facts::{PRESERVE, anything, can_be_null, has_keys, is_nil, is_scalar};
use super::validation;
use super::{Loss, MAX_DEPTH, MAX_NODES};
use crate::Types;
use crate::model::is_zero;

/// Amounts: what `machinery::quantity` reads, where they are texts.
const QUANTITY: &str = r"^[+-]?(\d+\.?\d*|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?$";

const REFERENCE: &str = "#/components/schemas/";

/// What is taken over as it is.
const KEPT: [&str; 17] = [
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "nullable",
    "pattern",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-validations",
];

/// Inlines the schemas of one document.
pub(super) struct Converter<'d> {
    components: Option<&'d Map<String, Value>>,
    /// What is known of types by their names in documents: which fields can be null.
    facts: Arc<Types>,
    /// The components that are being inlined, outermost first.
    open: Vec<&'d str>,
    path: String,
    nodes_left: usize,
    losses: Vec<Loss>,
}

/// The schemas that describe one place: a component, and what was written at the references to it,
/// outermost first.
struct Layers<'d> {
    all: Vec<&'d Map<String, Value>>,
    /// The innermost component.
    component: Option<&'d str>,
}

// === impl Converter ===

impl<'d> Converter<'d> {
    pub(super) fn new(document: &'d Value, version: &str) -> Self {
        Self {
            components: document.pointer("/components/schemas").and_then(Value::as_object),
            facts: Types::beyond(),
            open: Vec::new(),
            path: version.to_owned(),
            nodes_left: MAX_NODES,
            losses: Vec::new(),
        }
    }

    /// The schema of a kind, and what it doesn't say; `None` if the document doesn't have the kind.
    pub(super) fn root(
        mut self,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Option<(Value, Vec<Loss>)> {
        let gvk = json!({"group": group, "version": version, "kind": kind});
        let is_it = |schema: &Value| {
            let kinds = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
            kinds.is_some_and(|kinds| kinds.contains(&gvk))
        };
        let (name, _) = self.components?.iter().find(|(_, schema)| is_it(schema))?;
        let mut layers = Layers { all: Vec::new(), component: None };
        self.enter(name, &mut layers);
        let mut root = self.described(&layers, &[], 0);
        let odd = root.get("type").is_some_and(|kind| kind != "object");
        if odd || root.contains_key("x-kubernetes-int-or-string") {
            self.lose("it is described as something else than an object: not checked");
            root = anything();
            root.extend(layers.description());
        }
        if root.remove("additionalProperties").is_some() {
            self.lose("a CRD can't describe fields of any name beside metadata: not checked");
            root.insert(PRESERVE.into(), true.into());
        }
        root.insert("type".into(), "object".into());
        root.remove("nullable");
        root.remove("default");
        let properties = root.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties {
            for name in ["apiVersion", "kind"] {
                let mut schema = json!({"type": "string"});
                if let Some(text) = properties.get(name).and_then(|p| p.get("description")) {
                    schema["description"] = text.clone();
                }
                properties.insert(name.into(), schema);
            }
            // Metadata is described by the server, and nowhere else.
            properties.insert("metadata".into(), json!({"type": "object"}));
        }
        Some((Value::Object(root), self.losses))
    }

    fn lose(&mut self, reason: &'static str) {
        self.losses.push(Loss { path: self.path.clone(), reason });
    }

    /// Follows references from a schema to what describes it. The components on the way are open
    /// afterwards; false if there is nothing, or a component that is open already.
    fn resolve(&mut self, schema: &'d Value, layers: &mut Layers<'d>) -> bool {
        let mut next = schema;
        loop {
            let Some(object) = next.as_object() else { return true };
            layers.all.push(object);
            let single = object.get("allOf").and_then(Value::as_array).filter(|all| all.len() == 1);
            if let Some(name) = object.get("$ref").and_then(Value::as_str) {
                return self.enter(name.strip_prefix(REFERENCE).unwrap_or(name), layers);
            }
            match single.and_then(|all| all.first()) {
                Some(inner) => next = inner,
                None => return true,
            }
        }
    }

    fn enter(&mut self, name: &'d str, layers: &mut Layers<'d>) -> bool {
        if self.open.contains(&name) {
            self.lose("it contains itself: what lies below isn't checked");
            return false;
        }
        let Some(component) = self.components.and_then(|all| all.get(name)) else {
            self.lose("it refers to a schema that the document lacks: not checked");
            return false;
        };
        self.open.push(name);
        layers.component = Some(name);
        self.resolve(component, layers)
    }

    /// Converts the schema of one place. `keys` are the fields by which the list around it tells its
    /// items apart.
    fn node(&mut self, schema: &'d Value, keys: &[&str], depth: usize) -> Map<String, Value> {
        if depth > MAX_DEPTH {
            self.lose("it nests too deep: what lies below isn't checked");
            return anything();
        }
        let Some(left) = self.nodes_left.checked_sub(1) else { return anything() };
        self.nodes_left = left;
        if left == 0 {
            self.lose("the schema is too large: from here on nothing is checked");
        }
        let open = self.open.len();
        let mut layers = Layers { all: Vec::new(), component: None };
        let made = if self.resolve(schema, &mut layers) {
            self.described(&layers, keys, depth)
        } else {
            let mut made = anything();
            made.extend(layers.description());
            made
        };
        self.open.truncate(open);
        made
    }

    fn described(
        &mut self,
        layers: &Layers<'d>,
        keys: &[&str],
        depth: usize,
    ) -> Map<String, Value> {
        if layers.is_int_or_string() {
            return layers.int_or_string();
        }
        let has = |key| layers.get(key).is_some();
        let kind = layers.get("type").and_then(Value::as_str).unwrap_or(match () {
            () if has("properties") || has("additionalProperties") => "object",
            () if has("items") => "array",
            () => "",
        });
        let mut made = match kind {
            "object" => self.object(layers, keys, depth),
            "array" => self.array(layers, depth),
            "string" | "integer" | "number" | "boolean" => Map::new(),
            _ => {
                let mut made = anything();
                made.extend(layers.description());
                return made;
            }
        };
        made.insert("type".into(), kind.into());
        made.extend(layers.description());
        for key in KEPT {
            if let Some(value) = layers.get(key) {
                made.insert(key.into(), value.clone());
            }
        }
        if layers.get(PRESERVE) == Some(&Value::Bool(true)) {
            made.insert(PRESERVE.into(), true.into());
        }
        for key in ["anyOf", "oneOf", "not"] {
            let Some(source) = layers.get(key) else { continue };
            match validation::only(source, &made, 0) {
                Some(value) => drop(made.insert(key.into(), value)),
                None => self.lose("a combination of conditions that CRDs don't have: not checked"),
            }
        }
        made
    }

    fn object(&mut self, layers: &Layers<'d>, keys: &[&str], depth: usize) -> Map<String, Value> {
        let mut made = Map::new();
        let values = layers.get("additionalProperties");
        match (layers.get("properties").and_then(Value::as_object), values) {
            (Some(properties), values) => {
                let fields = self.properties(properties, layers, keys, depth);
                made.insert("properties".into(), Value::Object(fields));
                if values.is_some_and(|values| *values != Value::Bool(false)) {
                    self.lose("fields beside the named ones: they are kept, but not checked");
                    made.insert(PRESERVE.into(), true.into());
                }
                let required = layers.get("required").and_then(Value::as_array);
                let exists = |name: &&Value| {
                    name.as_str().is_some_and(|n| {
                        let head = depth == 0 && matches!(n, "apiVersion" | "kind" | "metadata");
                        properties.contains_key(n) && !head
                    })
                };
                let required: Vec<&Value> = required.into_iter().flatten().filter(exists).collect();
                if !required.is_empty() {
                    made.insert("required".into(), json!(required));
                }
            }
            (None, Some(values @ Value::Object(schema))) if !schema.is_empty() => {
                let mut inner = self.inside("*", |at| at.node(values, &[], depth + 1));
                if is_nil(&inner) {
                    inner.insert("nullable".into(), true.into());
                }
                made.insert("additionalProperties".into(), Value::Object(inner));
            }
            // Go publishes types that take any object like this, and types without fields alike.
            _ => drop(made.insert(PRESERVE.into(), true.into())),
        }
        if let Some(kind) = layers.get("x-kubernetes-map-type") {
            made.insert("x-kubernetes-map-type".into(), kind.clone());
        }
        made
    }

    fn properties(
        &mut self,
        properties: &'d Map<String, Value>,
        layers: &Layers<'d>,
        keys: &[&str],
        depth: usize,
    ) -> Map<String, Value> {
        let types = self.facts.clone();
        let pool = types.pool();
        let known = layers.component.and_then(|name| pool.find(name));
        let required = layers.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|n| n == name));
        let mut made = Map::new();
        for (name, schema) in properties {
            if depth == 0 && name == "metadata" {
                continue;
            }
            let mut field = self.inside(name, |at| at.node(schema, &[], depth + 1));
            let is_key = keys.contains(&&**name);
            if is_key {
                field.remove("nullable");
            } else if is_nil(&field) || can_be_null(pool, known, name) {
                field.insert("nullable".into(), true.into());
            }
            // Zero values stand in documents wherever Go has no pointer. Go's decoder fills them in,
            // and its encoder leaves most of them out again, so they are no defaults; but a list
            // needs a value of each key.
            let needed = is_key && !is_required(name);
            let default = schema.get("default").filter(|d| needed || !is_zero(d));
            if let Some(default) = default {
                field.insert("default".into(), default.clone());
            }
            made.insert(name.clone(), Value::Object(field));
        }
        made
    }

    fn array(&mut self, layers: &Layers<'d>, depth: usize) -> Map<String, Value> {
        let mut made = Map::new();
        let kind = layers.get("x-kubernetes-list-type").and_then(Value::as_str);
        let keys = layers.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
        let keys: Vec<&str> = keys.into_iter().flatten().filter_map(Value::as_str).collect();
        let items = match layers.get("items") {
            Some(items) => self.inside("*", |at| at.node(items, &keys, depth + 1)),
            None => anything(),
        };
        match kind {
            Some("map") if has_keys(&items, &keys) => {
                made.insert("x-kubernetes-list-map-keys".into(), json!(keys));
                made.insert("x-kubernetes-list-type".into(), "map".into());
            }
            Some("set") if is_scalar(&items) => {
                made.insert("x-kubernetes-list-type".into(), "set".into());
            }
            Some("map" | "set") => {
                self.lose("items that CRDs can't tell apart: the list is owned as a whole");
                made.insert("x-kubernetes-list-type".into(), "atomic".into());
            }
            Some(other) => drop(made.insert("x-kubernetes-list-type".into(), other.into())),
            None => {}
        }
        made.insert("items".into(), Value::Object(items));
        made
    }

    /// Runs with the path one step longer.
    fn inside<T>(&mut self, name: &str, run: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        self.path.push('.');
        self.path.push_str(name);
        let made = run(self);
        self.path.truncate(length);
        made
    }
}

// === impl Layers ===

impl<'d> Layers<'d> {
    /// What the outermost layer that says something says.
    fn get(&self, key: &str) -> Option<&'d Value> {
        self.all.iter().find_map(|layer| layer.get(key))
    }

    fn description(&self) -> Option<(String, Value)> {
        let text = self.get("description").filter(|text| text.is_string())?;
        Some(("description".into(), text.clone()))
    }

    fn is_quantity(&self) -> bool {
        self.component.is_some_and(|name| name.ends_with(".api.resource.Quantity"))
    }

    fn is_int_or_string(&self) -> bool {
        let flag = self.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
        let format = self.get("format").is_some_and(|format| format == "int-or-string");
        flag || format || self.is_quantity()
    }

    fn int_or_string(&self) -> Map<String, Value> {
        let mut made = Map::new();
        made.extend(self.description());
        made.insert("anyOf".into(), json!([{"type": "integer"}, {"type": "string"}]));
        made.insert("x-kubernetes-int-or-string".into(), true.into());
        if self.is_quantity() {
            made.insert("pattern".into(), QUANTITY.into());
        }
        made
    }
}
