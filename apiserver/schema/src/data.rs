//! Reads the data files into a [`Pool`].
//!
//! The files are made by `kind-tests/tools/schema-data`, except `own.json`, which is ours by hand.
//! They are part of the binary, so a fault in them is a fault of the build: a test reads them all.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::default::Rule;
use crate::model::{
    Extra, Field, FieldRef, Omit, Pool, Scalar, Shape, StructType, Text, TypeId, Union,
};

/// One file of types: its text stays in the binary's read-only memory and is borrowed from there.
macro_rules! types {
    ($($name:literal),* $(,)?) => { &[$(include_str!(concat!("../data/", $name, ".json"))),*] };
}

static FILES: &[&str] = types![
    "own",
    "types/io.k8s.api.admissionregistration.v1",
    "types/io.k8s.api.authentication.v1",
    "types/io.k8s.api.authorization.v1",
    "types/io.k8s.api.autoscaling.v1",
    "types/io.k8s.api.certificates.v1",
    "types/io.k8s.api.coordination.v1",
    "types/io.k8s.api.core.v1",
    "types/io.k8s.api.events.v1",
    "types/io.k8s.api.flowcontrol.v1",
    "types/io.k8s.api.rbac.v1",
    "types/io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
    "types/io.k8s.apimachinery.pkg.apis.meta.v1",
    "types/io.k8s.kube-aggregator.pkg.apis.apiregistration.v1",
];

/// The kinds that the server doesn't serve by itself, of the release that it follows: files of their
/// own, with all types that they use, so that a server without imported types reads none of them.
static KNOWN: &[&str] = types![
    "known/io.k8s.api.admissionregistration.v1",
    "known/io.k8s.api.admissionregistration.v1alpha1",
    "known/io.k8s.api.admissionregistration.v1beta1",
    "known/io.k8s.api.apiserverinternal.v1alpha1",
    "known/io.k8s.api.apps.v1",
    "known/io.k8s.api.autoscaling.v1",
    "known/io.k8s.api.autoscaling.v2",
    "known/io.k8s.api.batch.v1",
    "known/io.k8s.api.certificates.v1alpha1",
    "known/io.k8s.api.certificates.v1beta1",
    "known/io.k8s.api.coordination.v1alpha2",
    "known/io.k8s.api.coordination.v1beta1",
    "known/io.k8s.api.core.v1",
    "known/io.k8s.api.discovery.v1",
    "known/io.k8s.api.networking.v1",
    "known/io.k8s.api.networking.v1beta1",
    "known/io.k8s.api.node.v1",
    "known/io.k8s.api.policy.v1",
    "known/io.k8s.api.resource.v1",
    "known/io.k8s.api.resource.v1alpha3",
    "known/io.k8s.api.resource.v1beta1",
    "known/io.k8s.api.resource.v1beta2",
    "known/io.k8s.api.scheduling.v1",
    "known/io.k8s.api.scheduling.v1alpha2",
    "known/io.k8s.api.storage.v1",
    "known/io.k8s.api.storage.v1beta1",
    "known/io.k8s.api.storagemigration.v1beta1",
    "known/io.k8s.apimachinery.pkg.apis.meta.v1",
];

static DEFAULTS: &str = include_str!("../data/defaults.json");

/// What the type of one group, version and kind is.
pub(crate) struct KindEntry {
    pub(crate) gvk: [&'static str; 3],
    pub(crate) id: TypeId,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawType {
    name: &'static str,
    #[serde(default)]
    kinds: Vec<[&'static str; 3]>,
    #[serde(default)]
    atomic: bool,
    #[serde(default)]
    fields: Vec<RawField>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RawField {
    name: &'static str,
    #[serde(rename = "type")]
    shape: &'static str,
    #[serde(default)]
    num: u32,
    proto: Option<&'static str>,
    #[serde(default)]
    inline: bool,
    #[serde(default)]
    ptr: bool,
    omit: Option<&'static str>,
    go: Option<&'static str>,
    #[serde(default)]
    required: bool,
    default: Option<Value>,
    item_default: Option<Value>,
    #[serde(default, rename = "enum")]
    values: Vec<&'static str>,
    strategy: Option<&'static str>,
    merge_key: Option<&'static str>,
    list: Option<&'static str>,
    #[serde(default)]
    keys: Vec<&'static str>,
    map: Option<&'static str>,
}

/// Reads all built-in types.
pub(crate) fn read() -> (Pool, Vec<KindEntry>) {
    read_files(FILES, DEFAULTS)
}

/// Reads the known types that aren't built in. They have no defaults: those of imported types come
/// with their schemas.
pub(crate) fn read_known() -> (Pool, Vec<KindEntry>) {
    read_files(KNOWN, "{}")
}

fn read_files(files: &[&'static str], defaults: &'static str) -> (Pool, Vec<KindEntry>) {
    let mut hasher = Sha256::new();
    let mut raw: Vec<RawType> = Vec::new();
    for text in files {
        hasher.update(text);
        let file: Vec<RawType> =
            serde_json::from_str(text).expect("the data files are well formed");
        raw.extend(file);
    }
    hasher.update(defaults);
    let mut defaults: HashMap<&'static str, Vec<Rule>> =
        serde_json::from_str(defaults).expect("the defaults are well formed");

    let numbers: HashMap<&str, TypeId> =
        raw.iter().map(|t| t.name).zip((0..).map(TypeId)).collect();
    let mut kinds = Vec::new();
    let mut structs = Vec::with_capacity(raw.len());
    for (ty, id) in raw.into_iter().zip((0..).map(TypeId)) {
        kinds.extend(ty.kinds.iter().map(|gvk| KindEntry { gvk: *gvk, id }));
        structs.push(StructType {
            name: ty.name.into(),
            atomic: ty.atomic,
            fields: ty.fields.into_iter().map(|f| f.compile(&numbers)).collect(),
            flat: Box::default(),
            always: Box::default(),
            defaults: defaults.remove(ty.name).unwrap_or_default().into(),
            has_defaults: false,
        });
    }
    assert!(defaults.is_empty(), "defaults name types that exist: {:?}", defaults.keys());
    link(&mut structs);
    (Pool::new(structs, hasher.finalize().into()), kinds)
}

/// Fills in what follows from all types together.
pub(crate) fn link(structs: &mut [StructType]) {
    for at in 0..structs.len() {
        let mut flat = Vec::new();
        flatten(structs, at, &mut flat);
        let declared = |r: &FieldRef| &structs[r.owner.0 as usize].fields[r.field as usize];
        flat.sort_by(|a, b| declared(a).name.cmp(&declared(b).name));
        let always = flat.iter().copied().filter(|r| {
            let field = declared(r);
            field.is_always_written(&crate::coerce::zero(&field.shape))
        });
        let (flat, always) = (flat.clone().into(), always.collect());
        structs[at].flat = flat;
        structs[at].always = always;
    }
    // A type has defaults if a type below it has; repeated until nothing changes.
    loop {
        let below = |s: &StructType| {
            let mut parts = s.fields.iter().filter_map(|f| struct_of(&f.shape));
            parts.any(|id| structs[id.0 as usize].has_defaults)
        };
        let has = |s: &StructType| s.has_defaults || !s.defaults.is_empty() || below(s);
        let next: Vec<bool> = structs.iter().map(has).collect();
        if structs.iter().zip(&next).all(|(s, has)| s.has_defaults == *has) {
            return;
        }
        structs.iter_mut().zip(next).for_each(|(s, has)| s.has_defaults = has);
    }
}

fn flatten(structs: &[StructType], at: usize, into: &mut Vec<FieldRef>) {
    let owner = TypeId(at as u32);
    for (field, number) in structs[at].fields.iter().zip(0..) {
        match (&field.shape, field.inline) {
            (Shape::Struct(inner), true) => flatten(structs, inner.0 as usize, into),
            _ => into.push(FieldRef { owner, field: number }),
        }
    }
}

/// The struct that a shape holds, once or many times.
pub(crate) fn struct_of(shape: &Shape) -> Option<TypeId> {
    match shape {
        Shape::Struct(id) | Shape::Union(_, id) => Some(*id),
        Shape::List(item) | Shape::Map(item) => struct_of(item),
        Shape::Scalar(_) => None,
    }
}

// === impl RawField ===

impl RawField {
    fn compile(self, numbers: &HashMap<&str, TypeId>) -> Field {
        let text = |t: Option<&'static str>| t.map(Text::from);
        let texts = |list: Vec<&'static str>| list.into_iter().map(Text::from).collect::<Vec<_>>();
        let extra = Extra {
            go: text(self.go),
            published_default: self.default,
            item_default: self.item_default,
            values: texts(self.values),
            patch_strategy: text(self.strategy),
            patch_merge_key: text(self.merge_key),
            list_type: text(self.list),
            list_map_keys: texts(self.keys),
            map_type: text(self.map),
        };
        let omit = match self.omit {
            None => Omit::Never,
            Some("empty") => Omit::Empty,
            Some("zero") => Omit::Zero,
            Some(other) => panic!("omit is empty or zero, not {other}"),
        };
        Field {
            name: self.name.into(),
            shape: shape(self.shape, numbers),
            number: self.num,
            proto_name: text(self.proto),
            inline: self.inline,
            pointer: self.ptr,
            omit,
            required: self.required,
            extra: (!extra.is_empty()).then(|| Box::new(extra)),
        }
    }
}

/// Parses a type expression: a scalar's or struct's name, `[]T` or `{}T`.
fn shape(text: &str, numbers: &HashMap<&str, TypeId>) -> Shape {
    if let Some(item) = text.strip_prefix("[]") {
        return Shape::List(Box::new(shape(item, numbers)));
    }
    if let Some(value) = text.strip_prefix("{}") {
        return Shape::Map(Box::new(shape(value, numbers)));
    }
    let find = |name: &str| {
        *numbers.get(name).unwrap_or_else(|| panic!("type {name} is not in the data files"))
    };
    Shape::Scalar(match text {
        "string" => Scalar::String,
        "bool" => Scalar::Bool,
        "int32" => Scalar::Int32,
        "int64" => Scalar::Int64,
        "double" => Scalar::Double,
        "bytes" => Scalar::Bytes,
        "time" => Scalar::Time,
        "microTime" => Scalar::MicroTime,
        "duration" => Scalar::Duration,
        "quantity" => Scalar::Quantity,
        "intOrString" => Scalar::IntOrString,
        "raw" => Scalar::Raw,
        "json" => Scalar::Json,
        "fieldsV1" => Scalar::FieldsV1,
        "strings" => Scalar::Strings,
        "schemaOrBool" => return Shape::Union(Union::SchemaOrBool, find(JSON_SCHEMA)),
        "schemaOrArray" => return Shape::Union(Union::SchemaOrArray, find(JSON_SCHEMA)),
        "schemaOrStrings" => return Shape::Union(Union::SchemaOrStrings, find(JSON_SCHEMA)),
        name => return Shape::Struct(find(name)),
    })
}

const JSON_SCHEMA: &str =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
