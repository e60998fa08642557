//! The compiled form of schemas: a pool of struct types that refer to each other by number.
//!
//! A pool is immutable and shared. A [`Schema`] is one type of a pool, so that all built-in kinds
//! share one pool, and a type that many kinds use exists once.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// Text of a data file (borrowed) or of a schema that came at run time (owned).
pub type Text = Cow<'static, str>;

/// A type's number in its [`Pool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeId(pub(crate) u32);

/// Identity of a schema's content: equal hashes behave equally.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SchemaHash(pub [u8; 16]);

/// One object type: the root of a kind, or any part of it.
#[derive(Clone)]
pub struct Schema {
    pub(crate) pool: Arc<Pool>,
    pub(crate) root: TypeId,
    hash: SchemaHash,
}

/// Types that refer to each other.
pub struct Pool {
    pub(crate) structs: Vec<StructType>,
    by_name: HashMap<Text, TypeId>,
    hash: [u8; 32],
}

/// An object type with named fields.
#[derive(Debug)]
pub struct StructType {
    /// The name under which OpenAPI publishes the type, as `io.k8s.api.core.v1.ConfigMap`.
    pub name: Text,
    /// Whether appliers own the whole object or nothing (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
    /// The fields as declared; an inlined struct is one field without a JSON name.
    pub fields: Box<[Field]>,
    /// All JSON fields, those of inlined structs included, sorted by JSON name.
    pub(crate) flat: Box<[FieldRef]>,
    /// The JSON fields which Go writes even when they are zero.
    pub(crate) always: Box<[FieldRef]>,
    /// What is filled in where a field is absent.
    pub(crate) defaults: Box<[crate::default::Rule]>,
    /// Whether defaults exist in or below this type.
    pub(crate) has_defaults: bool,
}

/// Where a JSON field is declared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldRef {
    pub(crate) owner: TypeId,
    pub(crate) field: u32,
}

/// One field of a struct.
#[derive(Debug)]
pub struct Field {
    /// The JSON name; empty for an inlined struct.
    pub name: Text,
    /// What it holds.
    pub shape: Shape,
    /// The protobuf field number; 0 where protobuf doesn't carry the field (kind and apiVersion).
    ///
    /// The wire kind follows from [`Field::shape`]: varint for `Bool`, `Int32` and `Int64`, fixed64
    /// for `Double`, length-delimited for everything else. Repeated numbers are not packed.
    pub number: u32,
    /// The protobuf name, where it is not the JSON name.
    pub proto_name: Option<Text>,
    /// Whether this is an inlined struct: its JSON fields appear in the struct around it, while in
    /// protobuf it is a message of its own (with [`Field::number`]), or absent (number 0).
    pub inline: bool,
    /// Whether Go has a pointer, which tells absent from zero.
    pub pointer: bool,
    /// When Go's encoder leaves the field out.
    pub omit: Omit,
    /// Whether OpenAPI lists it as required.
    pub required: bool,
    /// What else is known, mostly nothing.
    pub extra: Option<Box<Extra>>,
}

/// When Go's JSON encoder leaves out a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Omit {
    /// Never.
    #[default]
    Never,
    /// `omitempty`: false, zero, empty text, list or map, nil; structs are never empty.
    Empty,
    /// `omitzero`: as `Empty`, and zero times and structs too.
    Zero,
}

/// Rarer facts of a field.
#[derive(Debug, Default)]
pub struct Extra {
    /// The Go type's name in decoding errors, where it doesn't follow from the shape.
    pub go: Option<Text>,
    /// The default that OpenAPI publishes; it documents zero values and fills in nothing.
    pub published_default: Option<Value>,
    /// The same for the items of a list or the values of a map.
    pub item_default: Option<Value>,
    /// The values that OpenAPI lists.
    pub values: Vec<Text>,
    /// `x-kubernetes-patch-strategy`.
    pub patch_strategy: Option<Text>,
    /// `x-kubernetes-patch-merge-key`.
    pub patch_merge_key: Option<Text>,
    /// `x-kubernetes-list-type`: `atomic`, `set` or `map`.
    pub list_type: Option<Text>,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<Text>,
    /// `x-kubernetes-map-type`: `atomic` or `granular`.
    pub map_type: Option<Text>,
}

/// What a value looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A value without parts of its own.
    Scalar(Scalar),
    /// A list of equal items.
    List(Box<Shape>),
    /// An object with any keys and equal values.
    Map(Box<Shape>),
    /// An object with fields.
    Struct(TypeId),
    /// A JSON schema (the type given) or a simpler form.
    Union(Union, TypeId),
}

/// Values without parts, and those with an encoding of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Text.
    String,
    /// True or false.
    Bool,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A number.
    Double,
    /// Bytes; base64 in JSON.
    Bytes,
    /// RFC 3339 with seconds; protobuf message {1: seconds, 2: nanos}.
    Time,
    /// RFC 3339 with microseconds; protobuf as `Time`.
    MicroTime,
    /// Go's duration text; protobuf message {1: nanoseconds}.
    Duration,
    /// An amount such as `100m`; protobuf message {1: text}.
    Quantity,
    /// An integer or text; protobuf message {1: 0 or 1, 2: integer, 3: text}.
    IntOrString,
    /// Any object (`runtime.RawExtension`); protobuf message {1: JSON bytes}.
    Raw,
    /// Any JSON; protobuf message {1: JSON bytes}.
    Json,
    /// A set of fields, kept as JSON; protobuf message {1: JSON bytes}.
    FieldsV1,
    /// A list of strings; protobuf message {1: repeated text}.
    Strings,
}

/// The types of apiextensions that have two JSON forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Union {
    /// A schema or a boolean; protobuf {1: allows, 2: schema}.
    SchemaOrBool,
    /// A schema or a list of them; protobuf {1: schema, 2: schemas}.
    SchemaOrArray,
    /// A schema or a list of strings; protobuf {1: schema, 2: strings}.
    SchemaOrStrings,
}

// === impl Schema ===

impl Schema {
    /// The type with that number in the pool.
    pub(crate) fn new(pool: Arc<Pool>, root: TypeId) -> Self {
        let hash = pool.hash_of(root);
        Self { pool, root, hash }
    }

    /// Identity of the content, the same in every process with the same data.
    pub fn hash(&self) -> SchemaHash {
        self.hash
    }

    /// The types that this one may refer to.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The number of this type in its pool.
    pub fn root(&self) -> TypeId {
        self.root
    }

    /// This type's fields and facts.
    pub fn root_struct(&self) -> &StructType {
        self.pool.get(self.root)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.root_struct().name).finish()
    }
}

// === impl Pool ===

impl Pool {
    pub(crate) fn new(structs: Vec<StructType>, hash: [u8; 32]) -> Self {
        let numbered = structs.iter().zip(0..).map(|(s, id)| (s.name.clone(), TypeId(id)));
        let by_name = numbered.collect();
        Self { structs, by_name, hash }
    }

    /// The type with that number; numbers come from the same pool.
    pub fn get(&self, id: TypeId) -> &StructType {
        self.structs.get(id.0 as usize).expect("type numbers are made by the pool that holds them")
    }

    /// The type of that OpenAPI name.
    pub fn find(&self, name: &str) -> Option<TypeId> {
        self.by_name.get(name).copied()
    }

    /// The field of an object that has this JSON name, inlined structs included.
    pub fn field(&self, id: TypeId, json_name: &str) -> Option<&Field> {
        let flat = &self.get(id).flat;
        let at = flat.binary_search_by(|r| (*self.declared(*r).name).cmp(json_name)).ok()?;
        flat.get(at).map(|r| self.declared(*r))
    }

    /// All JSON fields of an object, inlined structs included, sorted by name.
    pub fn json_fields(&self, id: TypeId) -> impl Iterator<Item = &Field> {
        self.get(id).flat.iter().map(|r| self.declared(*r))
    }

    pub(crate) fn declared(&self, r: FieldRef) -> &Field {
        let fields = &self.get(r.owner).fields;
        fields.get(r.field as usize).expect("references are made from the declared fields")
    }

    fn hash_of(&self, id: TypeId) -> SchemaHash {
        use sha2::{Digest, Sha256};
        let mut hasher = Sha256::new();
        hasher.update(self.hash);
        hasher.update(self.get(id).name.as_bytes());
        let full: [u8; 32] = hasher.finalize().into();
        let mut short = [0; 16];
        short.copy_from_slice(&full[..16]);
        SchemaHash(short)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("types", &self.structs.len()).finish_non_exhaustive()
    }
}

// === impl StructType ===

impl StructType {
    /// The name after the package: `ConfigMap`.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or_default()
    }

    /// The name that Go prints, with its package: `v1.ConfigMap`.
    pub fn go_name(&self) -> &str {
        let mut dots = self.name.rmatch_indices('.').map(|(at, _)| at);
        let package = dots.nth(1).map_or(0, |at| at + 1);
        self.name.get(package..).unwrap_or_default()
    }
}

// === impl Extra ===

impl Extra {
    /// Whether nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        let texts = [&self.go, &self.patch_strategy, &self.patch_merge_key, &self.list_type];
        texts.iter().all(|t| t.is_none())
            && self.map_type.is_none()
            && self.published_default.is_none()
            && self.item_default.is_none()
            && self.values.is_empty()
            && self.list_map_keys.is_empty()
    }
}

// === impl Field ===

impl Field {
    /// The rarer facts, empty ones included.
    pub fn extra(&self) -> &Extra {
        static NONE: Extra = Extra {
            go: None,
            published_default: None,
            item_default: None,
            values: Vec::new(),
            patch_strategy: None,
            patch_merge_key: None,
            list_type: None,
            list_map_keys: Vec::new(),
            map_type: None,
        };
        self.extra.as_deref().unwrap_or(&NONE)
    }

    /// Whether Go leaves this value out when it writes the field. Lists and maps without items
    /// count as nil, which is what remains of them in protobuf.
    pub(crate) fn is_omitted(&self, value: &Value) -> bool {
        if self.pointer || self.omit == Omit::Never {
            return false;
        }
        let opaque = matches!(
            self.shape,
            Shape::Struct(_)
                | Shape::Union(..)
                | Shape::Scalar(
                    Scalar::Time
                        | Scalar::MicroTime
                        | Scalar::Duration
                        | Scalar::Quantity
                        | Scalar::IntOrString
                        | Scalar::Raw
                        | Scalar::Json
                        | Scalar::FieldsV1
                )
        );
        (self.omit == Omit::Zero || !opaque) && is_zero(value)
    }

    /// Whether Go writes the field even when the object lacks it.
    pub(crate) fn is_always_written(&self, zero: &Value) -> bool {
        match self.omit {
            Omit::Never => true,
            Omit::Empty | Omit::Zero => !self.pointer && !self.is_omitted(zero),
        }
    }
}

/// Whether a value is Go's zero value of its type: false, 0, or empty.
pub(crate) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        Value::Object(o) => o.is_empty(),
    }
}

// === impl SchemaHash ===

impl fmt::Debug for SchemaHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
