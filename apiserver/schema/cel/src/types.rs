//! The types that the checker knows, and how errors write them.

use std::fmt;
use std::sync::Arc;

use crate::decl::ObjectType;

/// A type of CEL.
#[derive(Clone, Debug)]
pub enum Type {
    /// The type of what has an error already; it agrees with everything.
    Error,
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Arc<Type>),
    Map(Arc<(Type, Type)>),
    Object(Arc<ObjectType>),
    Optional(Arc<Type>),
    /// The type of a type, and of which if that is known.
    Type(Option<Arc<Type>>),
    Opaque(Opaque),
    /// A parameter in a declaration of a function.
    Param(char),
    /// A free variable of the checker.
    Var(u32),
}

/// Types of Kubernetes' libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opaque {
    Url,
    Quantity,
    Ip,
    Cidr,
    Semver,
    NamedFormat,
    Authorizer,
    PathCheck,
    GroupCheck,
    ResourceCheck,
    Decision,
}

impl Opaque {
    /// The name as errors and declarations write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Url => "kubernetes.URL",
            Self::Quantity => "kubernetes.Quantity",
            Self::Ip => "net.IP",
            Self::Cidr => "net.CIDR",
            Self::Semver => "kubernetes.Semver",
            Self::NamedFormat => "kubernetes.NamedFormat",
            Self::Authorizer => "kubernetes.authorization.Authorizer",
            Self::PathCheck => "kubernetes.authorization.PathCheck",
            Self::GroupCheck => "kubernetes.authorization.GroupCheck",
            Self::ResourceCheck => "kubernetes.authorization.ResourceCheck",
            Self::Decision => "kubernetes.authorization.Decision",
        }
    }

    /// Whether upstream declares the type as a structure; addresses alone are abstract.
    pub(crate) const fn is_struct(self) -> bool {
        !matches!(self, Self::Ip | Self::Cidr)
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        const ALL: [Opaque; 11] = [
            Opaque::Url,
            Opaque::Quantity,
            Opaque::Ip,
            Opaque::Cidr,
            Opaque::Semver,
            Opaque::NamedFormat,
            Opaque::Authorizer,
            Opaque::PathCheck,
            Opaque::GroupCheck,
            Opaque::ResourceCheck,
            Opaque::Decision,
        ];
        ALL.into_iter().find(|opaque| opaque.name() == name)
    }
}

impl Type {
    /// A list of `element`.
    pub fn list(element: Type) -> Self {
        Self::List(Arc::new(element))
    }

    /// A map from `key` to `value`.
    pub fn map(key: Type, value: Type) -> Self {
        Self::Map(Arc::new((key, value)))
    }

    /// An optional value of type `inner`.
    pub fn optional(inner: Type) -> Self {
        Self::Optional(Arc::new(inner))
    }

    /// Whether the type has at most `parts` parts; types share parts, so counting all may take for ever.
    pub(crate) fn is_within(&self, parts: usize) -> bool {
        let mut left = parts;
        let mut open = vec![self];
        while let Some(ty) = open.pop() {
            let Some(rest) = left.checked_sub(1) else { return false };
            left = rest;
            match ty {
                Self::List(inner) | Self::Optional(inner) | Self::Type(Some(inner)) => {
                    open.push(inner);
                }
                Self::Map(entry) => open.extend([&entry.0, &entry.1]),
                _ => {}
            }
        }
        true
    }

    /// Whether the checker leaves the type open.
    pub const fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn)
    }

    pub(crate) const fn is_dyn_or_error(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// Whether both are the same type, parameters included.
    pub fn is_exactly(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => {
                a.is_exactly(b)
            }
            (Self::Map(a), Self::Map(b)) => a.0.is_exactly(&b.0) && a.1.is_exactly(&b.1),
            (Self::Object(a), Self::Object(b)) => Arc::ptr_eq(a, b) || a.name() == b.name(),
            (Self::Type(Some(a)), Self::Type(Some(b))) => a.is_exactly(b),
            (Self::Type(None), Self::Type(None)) => true,
            (Self::Opaque(a), Self::Opaque(b)) => a == b,
            (Self::Param(a), Self::Param(b)) => a == b,
            (Self::Var(a), Self::Var(b)) => a == b,
            (a, b) => a.is_simple() && std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }

    const fn is_simple(&self) -> bool {
        !matches!(
            self,
            Self::List(_)
                | Self::Map(_)
                | Self::Object(_)
                | Self::Optional(_)
                | Self::Type(_)
                | Self::Opaque(_)
                | Self::Param(_)
                | Self::Var(_)
        )
    }

    /// The name that `type(x)` gives at run time, without parameters.
    pub fn runtime_name(&self) -> &str {
        match self {
            Self::Error => "!error!",
            Self::Dyn => "dyn",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Duration => "google.protobuf.Duration",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Object(object) => object.name(),
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Opaque(opaque) => opaque.name(),
            Self::Param(_) | Self::Var(_) => "dyn",
        }
    }
}

/// As errors of the checker write a type.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::List(element) => write!(f, "list({element})"),
            Self::Map(entry) => write!(f, "map({}, {})", entry.0, entry.1),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Type(Some(inner)) => write!(f, "type({inner})"),
            Self::Param(name) => write!(f, "{name}"),
            Self::Var(number) => write!(f, "_var{number}"),
            other => f.write_str(other.runtime_name()),
        }
    }
}
