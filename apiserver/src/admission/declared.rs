//! What expressions of policies and webhooks see, as types.

use std::sync::{Arc, LazyLock};

use cel_rules::{DeclType, Env, Field, ListSemantics, ObjectType, Opaque, Program, Type};

/// The check of a request's own resource, for the variable `authorizer.requestResource`.
pub(super) static REQUEST_RESOURCE: LazyLock<Program> = LazyLock::new(|| {
    let string = || DeclType::plain(Type::String, cel_rules::decl::UNBOUNDED, 2);
    let authorizer = DeclType::plain(Type::Opaque(Opaque::Authorizer), 0, 0);
    let names = ["g", "r", "s", "n", "o"].map(|name| (name, string()));
    let env = Env::new([("a", authorizer)].into_iter().chain(names));
    let text = "a.group(g).resource(r).subresource(s).namespace(n).name(o)";
    let compiled = env.compile(text).ok().and_then(|expression| expression.program().ok());
    compiled.expect("a fixed expression over declared variables compiles")
});

/// A structure of fields: required ones first, then those that may be absent.
fn object(name: &str, required: Fields<'_>, optional: Fields<'_>) -> Arc<DeclType> {
    let field = |required| {
        move |(name, decl): &(&str, Arc<DeclType>)| Field {
            name: (*name).into(),
            json_name: None,
            decl: decl.clone(),
            required,
        }
    };
    let mut fields: Vec<Field> = required.iter().map(field(true)).collect();
    fields.extend(optional.iter().map(field(false)));
    DeclType::object(Arc::new(ObjectType::new(name, fields)), 2)
}

type Fields<'f> = &'f [(&'f str, Arc<DeclType>)];

fn string() -> Arc<DeclType> {
    DeclType::plain(Type::String, cel_rules::decl::UNBOUNDED, 2)
}

fn strings() -> Arc<DeclType> {
    DeclType::list(string(), cel_rules::decl::UNBOUNDED, ListSemantics::Atomic)
}

fn map(value: Arc<DeclType>) -> Arc<DeclType> {
    DeclType::map(string(), value, cel_rules::decl::UNBOUNDED)
}

/// `request`: the review's request without objects.
pub(super) static REQUEST: LazyLock<Arc<DeclType>> = LazyLock::new(|| {
    let group_version = [("group", string()), ("version", string())];
    let with = |name, last| {
        let fields = group_version.iter().cloned().chain([(last, string())]).collect::<Vec<_>>();
        object(name, &fields, &[])
    };
    let kind = with("kubernetes.GroupVersionKind", "kind");
    let resource = with("kubernetes.GroupVersionResource", "resource");
    let user = [
        ("username", string()),
        ("uid", string()),
        ("groups", strings()),
        ("extra", map(strings())),
    ];
    let required = [
        ("kind", kind.clone()),
        ("resource", resource.clone()),
        ("requestKind", kind),
        ("requestResource", resource),
        ("name", string()),
        ("operation", string()),
        ("userInfo", object("kubernetes.UserInfo", &[], &user)),
    ];
    let optional = [
        ("subResource", string()),
        ("requestSubResource", string()),
        ("namespace", string()),
        ("dryRun", DeclType::plain(Type::Bool, 0, 4)),
        ("options", DeclType::dynamic()),
    ];
    object("kubernetes.AdmissionRequest", &required, &optional)
});

/// `namespaceObject`.
pub(super) static NAMESPACE: LazyLock<Arc<DeclType>> = LazyLock::new(|| {
    let time = || DeclType::plain(Type::Timestamp, 0, 22);
    let int = || DeclType::plain(Type::Int, 0, 1);
    let metadata = [
        ("name", string()),
        ("generateName", string()),
        ("namespace", string()),
        ("labels", map(string())),
        ("annotations", map(string())),
        ("UID", string()),
        ("creationTimestamp", time()),
        ("deletionGracePeriodSeconds", int()),
        ("deletionTimestamp", time()),
        ("generation", int()),
        ("resourceVersion", string()),
        ("finalizers", strings()),
    ];
    let condition = [
        ("status", string()),
        ("type", string()),
        ("lastTransitionTime", time()),
        ("message", string()),
        ("reason", string()),
    ];
    let condition = object("kubernetes.NamespaceCondition", &condition, &[]);
    let unbounded = cel_rules::decl::UNBOUNDED;
    let conditions = DeclType::list(condition, unbounded, ListSemantics::Atomic);
    let status = [("conditions", conditions), ("phase", string())];
    let fields = [
        ("metadata", object("kubernetes.NamespaceMetadata", &metadata, &[])),
        ("spec", object("kubernetes.NamespaceSpec", &[("finalizers", strings())], &[])),
        ("status", object("kubernetes.NamespaceStatus", &status, &[])),
    ];
    object("kubernetes.Namespace", &fields, &[])
});
