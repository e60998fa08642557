//! The declared functions of Kubernetes' environment, read from `data/functions.txt`.
//!
//! Each line of that file is one overload: function, overload, call style, types of the arguments, type
//! of the result. `kind-tests/tools/cel-oracle` writes it; the order of overloads is upstream's, and
//! decides which result type a call with several has.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::types::{Opaque, Type};

static DECLARATIONS: &str = include_str!("../data/functions.txt");

/// Those for patches alone.
static FOR_PATCHES: &str =
    "jsonpatch.escapeKey|string_jsonpatch_escapeKey_string|global|string|string\n";

static FUNCTIONS: LazyLock<HashMap<&'static str, Function>> = LazyLock::new(read);

/// A function with its overloads.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) overloads: Vec<Overload>,
}

#[derive(Debug)]
pub(crate) struct Overload {
    pub(crate) id: &'static str,
    pub(crate) member: bool,
    pub(crate) args: Vec<Type>,
    pub(crate) result: Type,
    /// Whether the types have parameters.
    pub(crate) generic: bool,
}

/// The function of that qualified name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.get(name.strip_prefix('.').unwrap_or(name))
}

fn read() -> HashMap<&'static str, Function> {
    let mut functions = HashMap::new();
    for line in DECLARATIONS.lines().chain(FOR_PATCHES.lines()) {
        let mut parts = line.split('|').collect::<Vec<_>>();
        // `_||_` has the separator in its name, and so has its line.
        if line.starts_with("_||_|") {
            parts.splice(..3, ["_||_"]);
        }
        let [name, id, style, args, result] = parts.as_slice() else { continue };
        let args: Vec<Type> = args.split(';').filter(|arg| !arg.is_empty()).map(ty).collect();
        let overload = Overload {
            id,
            member: *style == "member",
            generic: line.contains('<'),
            args,
            result: ty(result),
        };
        let function =
            functions.entry(*name).or_insert_with(|| Function { name, overloads: Vec::new() });
        function.overloads.push(overload);
    }
    functions
}

/// The type that `text` writes.
fn ty(text: &str) -> Type {
    let inner = |prefix: &str| text.strip_prefix(prefix)?.strip_suffix(')');
    if let Some(element) = inner("list(") {
        return Type::list(ty(element));
    }
    if let Some((key, value)) = inner("map(").and_then(|entry| entry.split_once(", ")) {
        return Type::map(ty(key), ty(value));
    }
    if let Some(value) = inner("optional_type(") {
        return Type::optional(ty(value));
    }
    if let Some(value) = inner("type(") {
        return Type::Type(Some(ty(value).into()));
    }
    if let Some(name) = text.strip_prefix('<').and_then(|rest| rest.chars().next()) {
        return Type::Param(name);
    }
    named(text).unwrap_or(Type::Dyn)
}

/// The type of a plain name.
pub(crate) fn named(name: &str) -> Option<Type> {
    Some(match name {
        "dyn" => Type::Dyn,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "null_type" => Type::Null,
        "google.protobuf.Duration" => Type::Duration,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "type" => Type::Type(None),
        other => Type::Opaque(Opaque::of_name(other)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_whole() {
        let lines = DECLARATIONS.lines().chain(FOR_PATCHES.lines()).count();
        let overloads: usize = FUNCTIONS.values().map(|f| f.overloads.len()).sum();
        assert_eq!(overloads, lines);
        for function in FUNCTIONS.values() {
            for overload in &function.overloads {
                let open = overload.args.iter().any(Type::is_dyn);
                let may = matches!(function.name, "_?._" | "flatten" | "format");
                assert!(!open || may, "{}: a type was not understood", overload.id);
            }
        }
        assert_eq!(find("_||_").unwrap().overloads.len(), 1);
        assert_eq!(find(".size").unwrap().overloads.len(), 8);
    }
}
