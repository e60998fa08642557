//! Declared types: a type with the facts about JSON that it stands for.
//!
//! The checker reads the type, the estimate reads the sizes, and evaluation reads how a JSON value
//! becomes a CEL value. A declared type is built once for a schema and shared by all its rules.

use std::sync::{Arc, LazyLock};

use crate::types::Type;

/// The largest size when nothing bounds it.
pub const UNBOUNDED: u64 = i64::MAX as u64;

/// A type, and what is known about the JSON behind it.
#[derive(Debug)]
pub struct DeclType {
    ty: Type,
    max_elements: u64,
    min_serialized_size: u64,
    shape: Shape,
}

/// What is inside a declared type.
#[derive(Debug)]
pub enum Shape {
    /// Nothing that the JSON value doesn't say.
    Plain,
    List {
        element: Arc<DeclType>,
        semantics: ListSemantics,
    },
    Map {
        key: Arc<DeclType>,
        value: Arc<DeclType>,
    },
    Object(Arc<ObjectType>),
}

/// `x-kubernetes-list-type`: how two lists compare and add up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ListSemantics {
    /// Order counts; `+` concatenates.
    #[default]
    Atomic,
    /// Order doesn't count; `+` adds what is missing.
    Set,
    /// Items with equal values of these keys are the same item; order doesn't count, and `+` puts
    /// items of the right side in the place of items of the left.
    Map(Box<[Box<str>]>),
}

/// A structure with named fields.
#[derive(Debug)]
pub struct ObjectType {
    name: Box<str>,
    /// Sorted by the escaped name.
    fields: Box<[Field]>,
    /// Whether any field may be set, of any type.
    open: bool,
}

/// A field of a structure.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name in expressions (see [`crate::escape`]).
    pub name: Box<str>,
    /// The name in JSON, when it is another one.
    pub json_name: Option<Box<str>>,
    pub decl: Arc<DeclType>,
    pub required: bool,
}

impl Field {
    /// The name in JSON.
    pub fn json_name(&self) -> &str {
        self.json_name.as_deref().unwrap_or(&self.name)
    }
}

impl ObjectType {
    /// A structure; `fields` may come in any order.
    pub fn new(name: &str, mut fields: Vec<Field>) -> Self {
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        Self { name: name.into(), fields: fields.into_boxed_slice(), open: false }
    }

    /// A structure that takes any field, of any type.
    pub fn open(name: &str) -> Self {
        Self { name: name.into(), fields: Box::default(), open: true }
    }

    /// Whether it takes any field.
    pub const fn is_open(&self) -> bool {
        self.open
    }

    /// The qualified name, unique within an environment.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All fields, sorted by name.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field that expressions call `name`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let found = |name: &str| {
            let at = self.fields.binary_search_by(|field| (*field.name).cmp(name)).ok()?;
            self.fields.get(at)
        };
        // A reserved word may stand where only a field can be meant.
        found(name).or_else(|| {
            crate::escape::is_reserved(name).then(|| found(&format!("__{name}__"))).flatten()
        })
    }
}

impl DeclType {
    /// A type without parts. `max_elements` is the largest length of a string or of bytes, and 0 for
    /// what has no length; `min_serialized_size` is the shortest JSON text in bytes.
    pub fn plain(ty: Type, max_elements: u64, min_serialized_size: u64) -> Arc<Self> {
        Arc::new(Self { ty, max_elements, min_serialized_size, shape: Shape::Plain })
    }

    /// A list of at most `max_items`.
    pub fn list(element: Arc<Self>, max_items: u64, semantics: ListSemantics) -> Arc<Self> {
        Arc::new(Self {
            ty: Type::list(element.ty.clone()),
            max_elements: max_items,
            min_serialized_size: 2,
            shape: Shape::List { element, semantics },
        })
    }

    /// A map of at most `max_properties`.
    pub fn map(key: Arc<Self>, value: Arc<Self>, max_properties: u64) -> Arc<Self> {
        Arc::new(Self {
            ty: Type::map(key.ty.clone(), value.ty.clone()),
            max_elements: max_properties,
            min_serialized_size: 2,
            shape: Shape::Map { key, value },
        })
    }

    /// A structure; `min_serialized_size` counts its required fields.
    pub fn object(object: Arc<ObjectType>, min_serialized_size: u64) -> Arc<Self> {
        Arc::new(Self {
            ty: Type::Object(Arc::clone(&object)),
            max_elements: 0,
            min_serialized_size,
            shape: Shape::Object(object),
        })
    }

    /// A value whose type shows at run time.
    pub fn dynamic() -> Arc<Self> {
        Self::plain(Type::Dyn, UNBOUNDED, 1)
    }

    /// The type that the checker sees.
    pub const fn ty(&self) -> &Type {
        &self.ty
    }

    /// The largest length or number of elements.
    pub const fn max_elements(&self) -> u64 {
        self.max_elements
    }

    /// The shortest JSON text of a value, in bytes.
    pub const fn min_serialized_size(&self) -> u64 {
        self.min_serialized_size
    }

    /// What is inside.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The declared type of a part: of a field, or of `@items`, `@values`, `@keys`.
    pub fn part_of(&self, step: &str) -> Option<&Arc<Self>> {
        match (&self.shape, step) {
            (Shape::List { element, .. }, "@items" | "@values") => Some(element),
            (Shape::Map { value, .. }, "@items" | "@values") => Some(value),
            (Shape::Map { key, .. }, "@keys") => Some(key),
            (Shape::Object(object), name) => object.field(name).map(|field| &field.decl),
            _ => None,
        }
    }
}

/// The declared type of JSON about which nothing is known.
pub(crate) static DYN: LazyLock<Arc<DeclType>> = LazyLock::new(DeclType::dynamic);
