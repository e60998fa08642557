//! One part of a schema, and what can be asked of it.

mod data;

use serde_json::Value;

use super::Structural;

pub(super) use data::{Facet, Flags, NodeData, NodeId, Property};

/// A part of a [`Structural`] schema; cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Node<'s> {
    schema: &'s Structural,
    id: NodeId,
}

/// The `type` of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A JSON object.
    Object,
    /// A list.
    Array,
    /// Text.
    String,
    /// A number without fraction.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ListType {
    /// Not said, which is as atomic.
    #[default]
    Unset,
    /// The list is one value.
    Atomic,
    /// Items are scalars or atomic and unique.
    Set,
    /// Items are objects, told apart by their keys.
    Map,
}

/// `x-kubernetes-map-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MapType {
    /// Not said, which is as granular.
    #[default]
    Unset,
    /// The object is one value.
    Atomic,
    /// Each field has owners of its own.
    Granular,
}

/// `additionalProperties`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Additional<T> {
    /// Not said: fields that aren't declared are pruned.
    #[default]
    Absent,
    /// `true`.
    Any,
    /// `false`.
    Forbidden,
    /// A schema for the value of each field.
    Of(T),
}

/// A limit of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The limit.
    pub value: f64,
    /// Whether the limit itself is outside.
    pub exclusive: bool,
}

/// One entry of `x-kubernetes-validations`, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ValidationRule {
    /// The CEL expression.
    pub rule: Box<str>,
    /// The message; empty if not given.
    pub message: Box<str>,
    /// The CEL expression that makes the message; empty if not given.
    pub message_expression: Box<str>,
    /// `FieldValueInvalid` and the like; empty if not given.
    pub reason: Box<str>,
    /// The path of the field that is told, relative to the node; empty if not given.
    pub field_path: Box<str>,
    /// Whether the rule also runs where there is no old value.
    pub optional_old_self: Option<bool>,
}

// === impl Kind ===

impl Kind {
    /// The name in schemas.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        let all =
            [Self::Object, Self::Array, Self::String, Self::Integer, Self::Number, Self::Boolean];
        all.into_iter().find(|kind| kind.as_str() == name)
    }
}

// === impl Node ===

impl<'s> Node<'s> {
    pub(super) fn new(schema: &'s Structural, id: NodeId) -> Self {
        Self { schema, id }
    }

    /// A number that equal nodes of one schema share, and no others: a key for what is made of
    /// nodes. It is less than [`Structural::len`].
    pub fn number(self) -> usize {
        self.id.index()
    }

    /// `type`; `None` for int-or-string, for values of which nothing is known, and in value
    /// validations.
    pub fn kind(self) -> Option<Kind> {
        self.data().kind
    }

    /// The declared fields, sorted by name.
    pub fn properties(self) -> impl ExactSizeIterator<Item = (&'s str, Node<'s>)> {
        self.data().properties.iter().map(move |p| (&*p.name, self.with(p.node)))
    }

    /// The declared field of that name.
    pub fn property(self, name: &str) -> Option<Self> {
        self.data().property(name).map(|id| self.with(id))
    }

    /// `additionalProperties`.
    pub fn additional(self) -> Additional<Self> {
        match self.data().additional {
            Additional::Absent => Additional::Absent,
            Additional::Any => Additional::Any,
            Additional::Forbidden => Additional::Forbidden,
            Additional::Of(id) => Additional::Of(self.with(id)),
        }
    }

    /// The schema of a list's items.
    pub fn items(self) -> Option<Self> {
        self.data().items.map(|id| self.with(id))
    }

    /// `x-kubernetes-list-type`.
    pub fn list_type(self) -> ListType {
        self.data().list
    }

    /// `x-kubernetes-list-map-keys`.
    pub fn list_map_keys(self) -> &'s [Box<str>] {
        self.data().list_map_keys()
    }

    /// `x-kubernetes-map-type`.
    pub fn map_type(self) -> MapType {
        self.data().map
    }

    /// `default`.
    pub fn default_value(self) -> Option<&'s Value> {
        self.data().default_value()
    }

    /// `nullable`.
    pub fn is_nullable(self) -> bool {
        self.data().has(Flags::NULLABLE)
    }

    /// `x-kubernetes-preserve-unknown-fields`.
    pub fn preserves_unknown(self) -> bool {
        self.data().has(Flags::PRESERVE)
    }

    /// `x-kubernetes-embedded-resource`.
    pub fn is_embedded(self) -> bool {
        self.data().has(Flags::EMBEDDED)
    }

    /// `x-kubernetes-int-or-string`.
    pub fn is_int_or_string(self) -> bool {
        self.data().has(Flags::INT_OR_STRING)
    }

    /// Whether the node or a part of it has `x-kubernetes-validations`.
    pub fn has_rules(self) -> bool {
        self.data().has(Flags::RULES)
    }

    /// `x-kubernetes-validations`, in the order in which they are written.
    pub fn validation_rules(self) -> &'s [ValidationRule] {
        let rules = self.facets().find_map(|f| match f {
            Facet::Rules(rules) => Some(&**rules),
            _ => None,
        });
        rules.unwrap_or_default()
    }

    /// `format` as it is written, known or not; empty if not given.
    pub fn format(self) -> &'s str {
        let text = self.facets().find_map(|f| match f {
            Facet::Format(_, text) => Some(&**text),
            _ => None,
        });
        text.unwrap_or_default()
    }

    /// `pattern` as it is written.
    pub fn pattern(self) -> Option<&'s str> {
        self.facets().find_map(|f| match f {
            Facet::Pattern(pattern) => Some(pattern.source()),
            _ => None,
        })
    }

    /// `enum`; empty if not given.
    pub fn enum_values(self) -> &'s [Value] {
        let values = self.facets().find_map(|f| match f {
            Facet::Enum(values) => Some(&**values),
            _ => None,
        });
        values.unwrap_or_default()
    }

    /// `required`; empty if not given.
    pub fn required(self) -> &'s [Box<str>] {
        let names = self.facets().find_map(|f| match f {
            Facet::Required(names) => Some(&**names),
            _ => None,
        });
        names.unwrap_or_default()
    }

    /// `maximum` and `exclusiveMaximum`.
    pub fn maximum(self) -> Option<Bound> {
        self.facets().find_map(|f| match f {
            Facet::Maximum(bound) => Some(*bound),
            _ => None,
        })
    }

    /// `minimum` and `exclusiveMinimum`.
    pub fn minimum(self) -> Option<Bound> {
        self.facets().find_map(|f| match f {
            Facet::Minimum(bound) => Some(*bound),
            _ => None,
        })
    }

    /// `multipleOf`.
    pub fn multiple_of(self) -> Option<f64> {
        self.facets().find_map(|f| match f {
            Facet::MultipleOf(value) => Some(*value),
            _ => None,
        })
    }

    /// `maxLength`, in characters.
    pub fn max_length(self) -> Option<i64> {
        self.count(|f| if let Facet::MaxLength(n) = f { Some(*n) } else { None })
    }

    /// `minLength`, in characters.
    pub fn min_length(self) -> Option<i64> {
        self.count(|f| if let Facet::MinLength(n) = f { Some(*n) } else { None })
    }

    /// `maxItems`.
    pub fn max_items(self) -> Option<i64> {
        self.count(|f| if let Facet::MaxItems(n) = f { Some(*n) } else { None })
    }

    /// `minItems`.
    pub fn min_items(self) -> Option<i64> {
        self.count(|f| if let Facet::MinItems(n) = f { Some(*n) } else { None })
    }

    /// `maxProperties`.
    pub fn max_properties(self) -> Option<i64> {
        self.count(|f| if let Facet::MaxProperties(n) = f { Some(*n) } else { None })
    }

    /// `minProperties`.
    pub fn min_properties(self) -> Option<i64> {
        self.count(|f| if let Facet::MinProperties(n) = f { Some(*n) } else { None })
    }

    /// `allOf`: value validations that all hold.
    pub fn all_of(self) -> impl Iterator<Item = Node<'s>> {
        self.parts(|f| if let Facet::AllOf(ids) = f { Some(&**ids) } else { None })
    }

    /// `anyOf`: value validations of which one holds.
    pub fn any_of(self) -> impl Iterator<Item = Node<'s>> {
        self.parts(|f| if let Facet::AnyOf(ids) = f { Some(&**ids) } else { None })
    }

    /// `oneOf`: value validations of which exactly one holds.
    pub fn one_of(self) -> impl Iterator<Item = Node<'s>> {
        self.parts(|f| if let Facet::OneOf(ids) = f { Some(&**ids) } else { None })
    }

    /// `not`: a value validation that doesn't hold.
    pub fn none_of(self) -> Option<Self> {
        self.facets().find_map(|f| match f {
            Facet::Not(id) => Some(self.with(*id)),
            _ => None,
        })
    }

    fn facets(self) -> impl Iterator<Item = &'s Facet> {
        self.data().facets.iter()
    }

    fn count(self, pick: fn(&Facet) -> Option<i64>) -> Option<i64> {
        self.facets().find_map(pick)
    }

    fn parts(self, pick: fn(&'s Facet) -> Option<&'s [NodeId]>) -> impl Iterator<Item = Node<'s>> {
        let ids = self.facets().find_map(pick).unwrap_or_default();
        ids.iter().map(move |id| self.with(*id))
    }

    fn with(self, id: NodeId) -> Self {
        Self { id, ..self }
    }

    fn data(self) -> &'s NodeData {
        self.schema.data(self.id)
    }
}
