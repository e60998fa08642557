//! Types as expressions of admission policies see them, to check the expressions against.
//!
//! They are what OpenAPI publishes of a kind: policies are not judged by them, only warned.

use std::sync::{Arc, LazyLock};

use cel_rules::decl::UNBOUNDED;
use cel_rules::{DeclType, Field, ListSemantics, ObjectType, Type, escape};

use crate::Types;
use crate::model::{Pool, Scalar, Schema, Shape, TypeId};
use crate::structural::Structural;

/// How deep types are followed; some contain themselves.
const MAX_DEPTH: usize = 24;

/// The metadata of every kind.
const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

static DECLARED_METADATA: LazyLock<Arc<DeclType>> = LazyLock::new(|| {
    let schema = Types::builtin().named(METADATA);
    schema.map_or_else(DeclType::dynamic, |schema| schema.declared())
});

impl Schema {
    /// The type of this kind's objects in expressions.
    pub fn declared(&self) -> Arc<DeclType> {
        structure(self.pool(), self.root(), &mut Vec::new())
    }
}

impl Structural {
    /// The type of this kind's objects in expressions. `kind` names it.
    pub fn declared(&self, kind: &str) -> Arc<DeclType> {
        let own = self.declared_whole(kind);
        let cel_rules::decl::Shape::Object(object) = own.shape() else { return own };
        let fields = object.fields().iter().map(|field| Field {
            name: field.name.clone(),
            json_name: field.json_name.clone(),
            decl: match &*field.name {
                "metadata" => DECLARED_METADATA.clone(),
                _ => field.decl.clone(),
            },
            required: field.required,
        });
        DeclType::object(Arc::new(ObjectType::new(kind, fields.collect())), 2)
    }
}

/// A structure; one that contains itself, or is too deep, is anything there.
fn structure(pool: &Pool, id: TypeId, within: &mut Vec<TypeId>) -> Arc<DeclType> {
    if within.contains(&id) || within.len() > MAX_DEPTH {
        return DeclType::dynamic();
    }
    within.push(id);
    let fields = pool.json_fields(id).filter_map(|field| {
        let decl = declare(pool, &field.shape, within);
        let name = escape(&field.name)?;
        let json_name = (*name != *field.name).then(|| (*field.name).into());
        Some(Field { name: name.into(), json_name, decl, required: field.required })
    });
    let fields = fields.collect();
    within.pop();
    DeclType::object(Arc::new(ObjectType::new(&pool.get(id).name, fields)), 2)
}

/// What a field holds.
fn declare(pool: &Pool, shape: &Shape, within: &mut Vec<TypeId>) -> Arc<DeclType> {
    let string = || DeclType::plain(Type::String, UNBOUNDED, 2);
    match shape {
        Shape::Struct(id) => structure(pool, *id, within),
        Shape::List(item) => {
            DeclType::list(declare(pool, item, within), UNBOUNDED, ListSemantics::Atomic)
        }
        Shape::Map(value) => DeclType::map(string(), declare(pool, value, within), UNBOUNDED),
        Shape::Scalar(scalar) => match scalar {
            Scalar::String | Scalar::Duration | Scalar::Quantity => string(),
            Scalar::Bool => DeclType::plain(Type::Bool, 0, 4),
            Scalar::Int32 | Scalar::Int64 => DeclType::plain(Type::Int, 0, 1),
            Scalar::Double => DeclType::plain(Type::Double, 0, 1),
            Scalar::Bytes => DeclType::plain(Type::Bytes, UNBOUNDED, 2),
            Scalar::Time | Scalar::MicroTime => DeclType::plain(Type::Timestamp, 32, 21),
            Scalar::Strings => DeclType::list(string(), UNBOUNDED, ListSemantics::Atomic),
            Scalar::IntOrString | Scalar::Raw | Scalar::Json | Scalar::FieldsV1 => {
                DeclType::dynamic()
            }
        },
        Shape::Union(..) => DeclType::dynamic(),
    }
}

#[cfg(test)]
mod tests {
    use cel_rules::Env;
    use machinery::FieldPath;
    use serde_json::json;

    use super::*;

    /// What is wrong with an expression over `object`; empty if nothing is.
    fn wrong(declared: Arc<DeclType>, text: &str) -> String {
        let compiled = Env::new([("object", declared)]).compile(text);
        let told = compiled.err().map(|error| error.to_string()).unwrap_or_default();
        told.lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn built_in_kinds_are_declared() {
        let check = |name: &str, text: &str, expect: &str| {
            let schema = Types::builtin().named(name).unwrap();
            assert_eq!(wrong(schema.declared(), text), expect, "{text}");
        };
        let map = "io.k8s.api.core.v1.ConfigMap";
        check(map, "object.data['a'] == 'b' && object.metadata.labels.size() > 1", "");
        check(map, "object.metadata.creationTimestamp < timestamp('2026-01-01T00:00:00Z')", "");
        check(map, "object.dat.size() > 1", "ERROR: <input>:1:7: undefined field 'dat'");
        let wrong = "ERROR: <input>:1:20: found no matching overload for '_>_' applied to \
                     '(string, int)'";
        check(map, "object.data['abc'] > 1", wrong);
        let crd =
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";
        check(crd, "object.spec.versions[0].schema.openAPIV3Schema.not.not.x == 1", "");
    }

    #[test]
    fn custom_kinds_are_declared() {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "size": {"type": "integer"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }},
        }});
        let schema = Structural::compile(&schema, &FieldPath::root("x")).unwrap();
        let check = |text: &str, expect: &str| {
            assert_eq!(wrong(schema.declared("Widget"), text), expect, "{text}");
        };
        check("object.spec.size > 1 && object.metadata.namespace == 'n'", "");
        check("object.spec.none > 1", "ERROR: <input>:1:12: undefined field 'none'");
        check("object.metadata.none > 1", "ERROR: <input>:1:16: undefined field 'none'");
    }
}
