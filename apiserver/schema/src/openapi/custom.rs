//! The components of custom types: what their definitions say, and what every object has.

mod known;
mod schema;

use machinery::GroupVersion;
use serde_json::{Map, Value, json};

use super::Source;
use super::components::reference;
use super::descriptions::common;
use crate::crd;
use crate::resource::ResourceDef;
use crate::types::Types;
use known::Known;
use schema::Writer;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// What a document can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Everything.
    V3,
    /// What clients of OpenAPI v2 understand.
    V2,
}

/// One version of a custom type.
pub(super) struct Custom<'a> {
    pub(super) def: &'a ResourceDef,
    version: &'a str,
    crd: Option<&'a Value>,
    /// Whether it is one of Kubernetes' own types, imported.
    pub(super) imported: bool,
    /// The component of its objects.
    pub(super) name: String,
    /// The component of its lists.
    pub(super) list_name: String,
}

/// The components of all custom resources of a version, by name.
pub(super) fn components(
    gv: &GroupVersion,
    sources: &[Source<'_>],
    types: &Types,
    form: Form,
) -> Map<String, Value> {
    let mut components = Map::new();
    for custom in sources.iter().filter_map(|source| Custom::of(gv, *source, types)) {
        let (object, list) = (custom.object(gv, form), custom.list(gv));
        components.insert(custom.name, object);
        components.insert(custom.list_name, list);
    }
    components
}

// === impl Custom ===

impl<'a> Custom<'a> {
    /// What is published of a resource that isn't built in; `None` for one that is.
    pub(super) fn of(gv: &'a GroupVersion, source: Source<'a>, types: &Types) -> Option<Self> {
        let Source { def, crd } = source;
        if crd.is_none() && types.resource(&def.group, &def.plural).is_some() {
            return None;
        }
        let imported = crd::is_builtin_group(&def.group);
        let name = |kind: &str| {
            let known = Some(()).filter(|()| imported).and_then(|()| Types::known(&gv.kind(kind)));
            match known {
                Some(known) => known.root_struct().name.to_string(),
                None => component_name(&def.group, &gv.version, kind),
            }
        };
        let (own, list) = (name(&def.kind), name(&def.list_kind));
        Some(Self { def, version: &gv.version, crd, imported, name: own, list_name: list })
    }

    fn source(&self) -> Option<&Value> {
        let versions = self.crd?.pointer("/spec/versions")?.as_array()?;
        versions
            .iter()
            .find(|version| version.get("name").and_then(Value::as_str) == Some(self.version))
    }

    /// The schema of the type's objects.
    fn object(&self, gv: &GroupVersion, form: Form) -> Value {
        let source = self.source();
        let schema = source.and_then(|source| source.pointer("/schema/openAPIV3Schema"));
        let mut made = match schema.and_then(Value::as_object) {
            Some(schema) if form == Form::V3 || !self.preserves(schema) => {
                let known = Some(()).filter(|()| self.imported);
                let known = known.and_then(|()| Types::known(&gv.kind(&self.def.kind)));
                let known = known.as_deref().map(Known::of);
                let mut made = Writer::new(form).schema(schema, known.as_ref(), 0);
                with_type_meta(&mut made, OBJECT_META, "metadata");
                made
            }
            // Whatever was described here would be all that clients accept.
            _ => Map::from_iter([("type".to_owned(), "object".into())]),
        };
        self.mark(gv, &self.def.kind, &mut made);
        Value::Object(made)
    }

    /// Whether objects keep what isn't described.
    fn preserves(&self, schema: &Map<String, Value>) -> bool {
        let whole = self.crd.and_then(|crd| crd.pointer("/spec/preserveUnknownFields"));
        schema.get(PRESERVE) == Some(&Value::Bool(true)) || whole == Some(&Value::Bool(true))
    }

    /// The schema of the type's lists.
    fn list(&self, gv: &GroupVersion) -> Value {
        let list_kind = &self.def.list_kind;
        let items = json!({
            "description": common("items"),
            "type": "array",
            "items": reference(&self.name),
        });
        let mut made = Map::from_iter([
            ("description".to_owned(), format!("A list of {}.", self.def.plural).into()),
            ("type".to_owned(), "object".into()),
            ("required".to_owned(), json!(["items"])),
            ("properties".to_owned(), json!({ "items": items })),
        ]);
        with_type_meta(&mut made, LIST_META, "listMetadata");
        self.mark(gv, list_kind, &mut made);
        Value::Object(made)
    }

    fn mark(&self, gv: &GroupVersion, kind: &str, schema: &mut Map<String, Value>) {
        let gvk = json!([{"group": gv.group, "version": gv.version, "kind": kind}]);
        schema.insert("x-kubernetes-group-version-kind".into(), gvk);
        let fields = self.source().and_then(|source| source.get("selectableFields"));
        let paths = fields.and_then(Value::as_array).into_iter().flatten();
        let paths = paths.filter_map(|field| field.get("jsonPath")?.as_str());
        let fields: Vec<Value> = paths
            .map(|path| json!({"fieldPath": path.strip_prefix('.').unwrap_or(path)}))
            .collect();
        if !fields.is_empty() {
            schema.insert("x-kubernetes-selectable-fields".into(), fields.into());
        }
    }
}

/// The component of a kind of any group: `com.example.shop.v1.Gadget`.
pub(super) fn component_name(group: &str, version: &str, kind: &str) -> String {
    let group = if group.is_empty() { crd::CORE } else { group };
    let mut name = String::with_capacity(group.len() + version.len() + kind.len() + 2);
    for label in group.rsplit('.') {
        name.push_str(label);
        name.push('.');
    }
    name.push_str(version);
    name.push('.');
    name.push_str(kind);
    name
}

/// Adds what every object has, in the server's words: `apiVersion`, `kind` and `metadata`.
fn with_type_meta(schema: &mut Map<String, Value>, metadata: &str, text: &str) {
    let properties = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(properties) = properties else { return };
    for name in ["apiVersion", "kind"] {
        let schema = json!({"description": common(name), "type": "string"});
        properties.insert(name.into(), schema);
    }
    // In OpenAPI 3.0 nothing may stand beside `$ref`, so it is in `allOf`.
    let metadata = json!({"description": common(text), "allOf": [reference(metadata)]});
    properties.insert("metadata".into(), metadata);
}
