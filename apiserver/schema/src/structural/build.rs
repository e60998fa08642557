//! JSON to nodes, equal ones once.
//!
//! The schema has been [checked](super::check) before, so that what could be lost here (a type
//! inside of `anyOf` that isn't int-or-string's) isn't there.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use serde_json::Value;

use super::Structural;
use super::format::Format;
use super::json::{self, Keywords, MAX_DEPTH};
use super::node::{
    Additional, Bound, Facet, Flags, Kind, ListType, MapType, NodeData, NodeId, Property,
    ValidationRule,
};
use super::pattern::Pattern;
use crate::model::SchemaHash;

type Result<T> = std::result::Result<T, String>;

/// Compiles a schema.
///
/// # Errors
/// Why there can't be such a schema: it nests too deeply, or a pattern isn't one.
pub(super) fn build(schema: &Value, hash: SchemaHash) -> Result<Structural> {
    let mut builder = Builder::default();
    let empty = Keywords::new();
    let root = builder.node(schema.as_object().unwrap_or(&empty), 0)?;
    Ok(Structural { hash, nodes: builder.nodes.into(), root, rules: std::sync::OnceLock::new() })
}

/// How the schemas of a combination become a facet.
type MakeFacet = fn(Box<[NodeId]>) -> Facet;

#[derive(Default)]
struct Builder {
    nodes: Vec<NodeData>,
    /// Nodes by a hash of their content.
    known: HashMap<u64, Vec<NodeId>>,
    state: RandomState,
}

// === impl Builder ===

impl Builder {
    fn node(&mut self, schema: &Keywords, depth: usize) -> Result<NodeId> {
        if depth > MAX_DEPTH {
            return Err(format!("must not nest deeper than {MAX_DEPTH} levels"));
        }
        let mut node = NodeData {
            kind: Kind::parse(json::text(schema, "type")),
            list: match json::text(schema, "x-kubernetes-list-type") {
                "atomic" => ListType::Atomic,
                "set" => ListType::Set,
                "map" => ListType::Map,
                _ => ListType::Unset,
            },
            map: match json::text(schema, "x-kubernetes-map-type") {
                "atomic" => MapType::Atomic,
                "granular" => MapType::Granular,
                _ => MapType::Unset,
            },
            ..NodeData::default()
        };
        for (keyword, flag) in [
            ("nullable", Flags::NULLABLE),
            ("x-kubernetes-preserve-unknown-fields", Flags::PRESERVE),
            ("x-kubernetes-embedded-resource", Flags::EMBEDDED),
            ("x-kubernetes-int-or-string", Flags::INT_OR_STRING),
        ] {
            node.flags.set(flag, json::flag(schema, keyword));
        }
        self.parts(schema, depth, &mut node)?;
        let mut facets = Vec::new();
        self.combinations(schema, depth, &mut facets)?;
        values(schema, node.kind, &mut facets)?;
        node.flags.set(Flags::DEFAULT, facets.iter().any(|f| matches!(f, Facet::Default(_))));
        node.flags.set(Flags::DEFAULTS, node.has(Flags::DEFAULT));
        node.flags.set(Flags::LISTS, matches!(node.list, ListType::Set | ListType::Map));
        node.flags.set(Flags::RESOURCES, node.has(Flags::EMBEDDED));
        node.flags.set(Flags::RULES, facets.iter().any(|f| matches!(f, Facet::Rules(_))));
        node.facets = facets.into();
        self.intern(node)
    }

    /// What lies below in the object: fields and items.
    fn parts(&mut self, schema: &Keywords, depth: usize, node: &mut NodeData) -> Result<()> {
        let mut properties = Vec::new();
        for (name, part) in json::properties(schema) {
            properties.push(Property { name: name.into(), node: self.node(part, depth + 1)? });
        }
        properties.sort_by(|a, b| a.name.cmp(&b.name));
        node.properties = properties.into();
        node.items = match json::object(schema, "items") {
            Some(items) => Some(self.node(items, depth + 1)?),
            None => None,
        };
        node.additional = match schema.get("additionalProperties") {
            Some(Value::Bool(true)) => Additional::Any,
            Some(Value::Bool(false)) => Additional::Forbidden,
            Some(Value::Object(part)) => Additional::Of(self.node(part, depth + 1)?),
            _ => Additional::Absent,
        };
        let additional = match node.additional {
            Additional::Of(id) => Some(id),
            _ => None,
        };
        let below = node.properties.iter().map(|p| p.node).chain(node.items).chain(additional);
        let mut flags = Flags::default();
        below
            .filter_map(|id| self.nodes.get(id.index()))
            .for_each(|part| flags.inherit(part.flags));
        node.flags.inherit(flags);
        Ok(())
    }

    fn combinations(
        &mut self,
        schema: &Keywords,
        depth: usize,
        facets: &mut Vec<Facet>,
    ) -> Result<()> {
        let make: [(&str, MakeFacet); 3] =
            [("anyOf", Facet::AnyOf), ("oneOf", Facet::OneOf), ("allOf", Facet::AllOf)];
        for (keyword, facet) in make {
            let parts = json::schemas(schema, keyword);
            let ids: Vec<NodeId> =
                parts.map(|(_, part)| self.node(part, depth + 1)).collect::<Result<_>>()?;
            if !ids.is_empty() {
                facets.push(facet(ids.into()));
            }
        }
        if let Some(part) = json::object(schema, "not") {
            facets.push(Facet::Not(self.node(part, depth + 1)?));
        }
        Ok(())
    }

    /// The number of a node that may be there already.
    fn intern(&mut self, node: NodeData) -> Result<NodeId> {
        let hash = self.hash(&node);
        let known = self.known.entry(hash).or_default();
        let same = |id: &&NodeId| self.nodes.get(id.index()) == Some(&node);
        if let Some(found) = known.iter().find(same) {
            return Ok(*found);
        }
        let id = NodeId::at(self.nodes.len()).ok_or("has too many parts")?;
        known.push(id);
        self.nodes.push(node);
        Ok(id)
    }

    /// Nodes with equal hashes are compared, so the hash may pass over what is costly.
    fn hash(&self, node: &NodeData) -> u64 {
        let facets: Vec<(u8, u64)> = node.facets.iter().map(|f| self.facet_hash(f)).collect();
        self.state.hash_one((
            (node.kind, node.list, node.map, node.flags),
            (node.items, node.additional, &node.properties),
            facets,
        ))
    }

    fn facet_hash(&self, facet: &Facet) -> (u8, u64) {
        let hash = |value: &Value| self.state.hash_one(value.to_string());
        match facet {
            Facet::Format(_, text) => (0, self.state.hash_one(text)),
            Facet::AnyOf(ids) => (1, self.state.hash_one(ids)),
            Facet::OneOf(ids) => (2, self.state.hash_one(ids)),
            Facet::AllOf(ids) => (3, self.state.hash_one(ids)),
            Facet::Not(id) => (4, self.state.hash_one(id)),
            Facet::MaxLength(n) => (5, n.cast_unsigned()),
            Facet::MinLength(n) => (6, n.cast_unsigned()),
            Facet::Pattern(pattern) => (7, self.state.hash_one(pattern.source())),
            Facet::MultipleOf(n) => (8, n.to_bits()),
            Facet::Minimum(bound) => (9, bound.value.to_bits()),
            Facet::Maximum(bound) => (10, bound.value.to_bits()),
            Facet::MinItems(n) => (11, n.cast_unsigned()),
            Facet::MaxItems(n) => (12, n.cast_unsigned()),
            Facet::Enum(values) => (13, values.iter().map(hash).fold(0, u64::wrapping_add)),
            Facet::MinProperties(n) => (14, n.cast_unsigned()),
            Facet::MaxProperties(n) => (15, n.cast_unsigned()),
            Facet::Required(names) => (16, self.state.hash_one(names)),
            Facet::Default(value) => (17, hash(value)),
            Facet::ListMapKeys(names) => (18, self.state.hash_one(names)),
            Facet::Rules(rules) => (19, self.state.hash_one(rules)),
        }
    }
}

/// What a value itself must be.
fn values(schema: &Keywords, kind: Option<Kind>, facets: &mut Vec<Facet>) -> Result<()> {
    let count = |keyword| schema.get(keyword).and_then(Value::as_i64);
    let number = |keyword| schema.get(keyword).and_then(Value::as_f64);
    let bound = |value, keyword| Bound { value, exclusive: json::flag(schema, keyword) };
    let names = |keyword| json::texts(schema, keyword).map(Into::into).collect::<Box<[Box<str>]>>();
    facets.extend(count("maxLength").map(Facet::MaxLength));
    facets.extend(count("minLength").map(Facet::MinLength));
    let pattern = json::text(schema, "pattern");
    if !pattern.is_empty() {
        facets.push(Facet::Pattern(Pattern::get(pattern)?));
    }
    let format = json::text(schema, "format");
    if !format.is_empty() {
        let int_or_string = json::flag(schema, "x-kubernetes-int-or-string");
        let known = Format::parse(format, kind.filter(|_| !int_or_string));
        facets.push(Facet::Format(known, format.into()));
    }
    facets.extend(number("multipleOf").map(Facet::MultipleOf));
    facets.extend(number("minimum").map(|n| Facet::Minimum(bound(n, "exclusiveMinimum"))));
    facets.extend(number("maximum").map(|n| Facet::Maximum(bound(n, "exclusiveMaximum"))));
    facets.extend(count("minItems").map(Facet::MinItems));
    facets.extend(count("maxItems").map(Facet::MaxItems));
    let allowed = json::list(schema, "enum");
    if !allowed.is_empty() {
        facets.push(Facet::Enum(allowed.into()));
    }
    facets.extend(count("minProperties").map(Facet::MinProperties));
    facets.extend(count("maxProperties").map(Facet::MaxProperties));
    facets.extend(Some(names("required")).filter(|n| !n.is_empty()).map(Facet::Required));
    if json::has(schema, "default") {
        facets.extend(schema.get("default").map(|v| Facet::Default(Box::new(v.clone()))));
    }
    let keys = names("x-kubernetes-list-map-keys");
    facets.extend(Some(keys).filter(|n| !n.is_empty()).map(Facet::ListMapKeys));
    let rules: Box<[ValidationRule]> = json::schemas(schema, "x-kubernetes-validations")
        .map(|(_, rule)| ValidationRule {
            rule: json::text(rule, "rule").into(),
            message: json::text(rule, "message").into(),
            message_expression: json::text(rule, "messageExpression").into(),
            reason: json::text(rule, "reason").into(),
            field_path: json::text(rule, "fieldPath").into(),
            optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool),
        })
        .collect();
    facets.extend(Some(rules).filter(|r| !r.is_empty()).map(Facet::Rules));
    Ok(())
}
