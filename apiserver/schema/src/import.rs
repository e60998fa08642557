//! Turns types that a cluster serves, whatever serves them there, into CustomResourceDefinitions.
//!
//! Input are the OpenAPI v3 documents and the discovery of one API group, as any kube-apiserver
//! answers them; output is one CRD for each resource, named `<plural>.<group>` (`pods.core` for
//! the core group, whose `spec.group` is empty), with structural schemas of all its versions.
//! What a CRD can't say is left out and told, by path and reason; it never fails the whole.
//!
//! Flow: [`groups`] reads discovery, [`import_group`] makes the CRDs of one group from it and from
//! a document for each version.
//! Guarantees: an object that such a cluster returned is valid under the schema made here (though
//! items of its lists may have equal keys), loses nothing by pruning, and gains nothing by defaulting
//! but empty keys that its lists are merged by.
//! Assumptions: documents are kube-apiserver's; others give odd types, but no panic, and work and
//! size are bounded ([`MAX_NODES`], [`MAX_DEPTH`]).
//!
//! Names, scope and subresources come from the preferred version, which is also the one that
//! objects are stored in. A version whose fields differ from those of the preferred one would need a
//! conversion that only the cluster knows; it is left out, unless [`known::converts`]. Columns aren't made: those of known types
//! are in [`crate::known`].

mod discovery;
mod facts;
mod node;
mod shape;
mod validation;

use std::fmt;

use serde_json::{Map, Value, json};

use crate::resource::Verb;
use crate::{Types, known};
use node::Converter;

pub use shape::same as same_fields;

pub use discovery::{
    DiscoveredGroup, DiscoveredResource, DiscoveredVersion, groups, resource_list,
};

/// The most parts that the schema of one version may have; that of a Pod has 1,600.
pub const MAX_NODES: usize = 20_000;

/// How deep schemas may nest; that of a CronJob nests 17 deep.
pub const MAX_DEPTH: usize = 48;

/// What the core group is called where a name needs a group.
const CORE: &str = "core";

/// Groups whose types are no content: they steer the API server that serves them, which would not
/// be this one.
const STEERING: [&str; 10] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "rbac.authorization.k8s.io",
    "storagemigration.k8s.io",
];

/// One version of a group, as the cluster describes it.
#[derive(Clone, Copy, Debug)]
pub struct VersionSource<'a> {
    /// Its discovery.
    pub discovered: &'a DiscoveredVersion,
    /// Its OpenAPI v3 document, which is at [`document_path`].
    pub openapi: &'a Value,
}

/// What became of one API group.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// The types, in the order of discovery.
    pub types: Vec<ImportedType>,
    /// The resources that no CRD was made for.
    pub skipped: Vec<Skipped>,
}

/// A type that was made.
#[derive(Clone, Debug)]
pub struct ImportedType {
    /// The CustomResourceDefinition, without a status.
    pub crd: Value,
    /// What it doesn't say of the type.
    pub losses: Vec<Loss>,
}

/// A resource that no CRD was made for. Prints as `pods.metrics.k8s.io: reason`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// `<plural>.<group>`.
    pub name: String,
    /// Why not, in words.
    pub reason: &'static str,
}

/// Something that a CRD doesn't say of a type. Prints as `path: reason`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The version and the place in its objects, as `v1.spec.template`, or a subresource, as
    /// `pods/exec`.
    pub path: String,
    /// What is missing, and why.
    pub reason: &'static str,
}

/// Makes CRDs of the resources of one group. `versions` are in the order of discovery, the preferred
/// one first.
pub fn import_group(group: &str, versions: &[VersionSource<'_>]) -> Imported {
    import_those(group, versions, &|resource| why_not(group, resource))
}

/// As [`import_group`], of the resources that nothing is said against by `why_not`.
pub fn import_those(
    group: &str,
    versions: &[VersionSource<'_>],
    why_not: &dyn Fn(&DiscoveredResource) -> Option<&'static str>,
) -> Imported {
    let mut imported = Imported::default();
    let mut seen: Vec<&str> = Vec::new();
    for resource in versions.iter().flat_map(|v| &v.discovered.resources) {
        if seen.contains(&&*resource.plural) {
            continue;
        }
        seen.push(&resource.plural);
        match why_not(resource) {
            Some(reason) => {
                imported.skipped.push(Skipped { name: crd_name(group, &resource.plural), reason });
            }
            None => match import_resource(group, resource, versions) {
                Ok(made) => imported.types.push(made),
                Err(reason) => {
                    let name = crd_name(group, &resource.plural);
                    imported.skipped.push(Skipped { name, reason });
                }
            },
        }
    }
    imported
}

/// Where a cluster serves the OpenAPI v3 document of a group version, as
/// `/openapi/v3/apis/apps/v1`.
pub fn document_path(group: &str, version: &str) -> String {
    match group {
        "" => format!("/openapi/v3/api/{version}"),
        _ => format!("/openapi/v3/apis/{group}/{version}"),
    }
}

/// The name of the CRD that holds a type.
pub fn crd_name(group: &str, plural: &str) -> String {
    format!("{plural}.{}", if group.is_empty() { CORE } else { group })
}

/// Why a resource is not imported, if it isn't.
pub fn why_not(group: &str, resource: &DiscoveredResource) -> Option<&'static str> {
    if is_served_here(group, &resource.plural) {
        return Some("this server serves it itself");
    }
    if STEERING.contains(&group) {
        return Some("it steers the API server that serves it");
    }
    let lacks = |verb: &str| !resource.verbs.iter().any(|v| &**v == verb);
    if lacks("list") || lacks("get") {
        return Some("it has no objects to read: a request is answered and forgotten");
    }
    lacks("create").then_some("its objects can't be created by clients")
}

/// Whether this server serves a resource itself, so that no CRD can take its place. Read-only views
/// which stand in for a type until it is imported don't count.
pub fn is_served_here(group: &str, plural: &str) -> bool {
    let types = Types::builtin();
    types
        .resource(group, plural)
        .is_some_and(|def| def.allows(Verb::Create) || known::resource(group, plural).is_none())
}

fn import_resource(
    group: &str,
    resource: &DiscoveredResource,
    versions: &[VersionSource<'_>],
) -> Result<ImportedType, &'static str> {
    let mut losses = Vec::new();
    let mut made: Vec<Value> = Vec::new();
    for source in versions {
        let version = &*source.discovered.version;
        let found = source.discovered.resources.iter().find(|r| r.plural == resource.plural);
        let Some(found) = found else { continue };
        let converter = Converter::new(source.openapi, version);
        let Some((schema, mut lost)) = converter.root(group, version, &found.kind) else {
            losses.push(Loss { path: version.into(), reason: "no schema is published for it" });
            continue;
        };
        let stored = made.first().and_then(|v| v.pointer("/schema/openAPIV3Schema"));
        let differs =
            stored.is_some_and(|s| !shape::same(s, &schema) || found.kind != resource.kind);
        let first = made.first().and_then(|v| v.pointer("/name")).and_then(Value::as_str);
        let converts = |first| known::converts(group, &found.kind, [first, version]);
        if differs && !first.is_some_and(converts) {
            let reason = "left out: its fields differ from those of the stored version, and only \
                          the cluster can convert between them";
            losses.push(Loss { path: version.into(), reason });
            continue;
        }
        losses.append(&mut lost);
        let subresources = subresources(found, &schema, version, &mut losses);
        let mut entry = json!({"name": version, "served": true, "storage": made.is_empty()});
        if !subresources.is_empty() {
            set(&mut entry, "subresources", Value::Object(subresources));
        }
        let schema = Map::from_iter([("openAPIV3Schema".to_owned(), schema)]);
        set(&mut entry, "schema", Value::Object(schema));
        made.push(entry);
    }
    if made.is_empty() {
        return Err("no schema is published for it");
    }
    Ok(ImportedType { crd: definition(group, resource, made), losses })
}

/// Sets a member of an object.
fn set(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(object) = object {
        object.insert(name.to_owned(), value);
    }
}

fn definition(group: &str, resource: &DiscoveredResource, versions: Vec<Value>) -> Value {
    let mut metadata = json!({"name": crd_name(group, &resource.plural)});
    if is_protected(group) {
        // Without the annotation such a group is refused; it says by whom the API was approved.
        let approval = "unapproved, imported from a cluster that serves it";
        set(&mut metadata, "annotations", json!({"api-approved.kubernetes.io": approval}));
    }
    let mut names = json!({
        "plural": &*resource.plural,
        "singular": &*resource.singular,
        "kind": &*resource.kind,
        "listKind": format!("{}List", resource.kind),
    });
    for (key, list) in [("shortNames", &resource.short_names), ("categories", &resource.categories)]
    {
        if !list.is_empty() {
            set(&mut names, key, json!(list));
        }
    }
    let mut spec = json!({
        "group": group,
        "names": names,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
    });
    set(&mut spec, "versions", Value::Array(versions));
    let mut crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
    });
    set(&mut crd, "spec", spec);
    crd
}

/// Groups of the Kubernetes community, whose CRDs must tell of an approval.
fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|d| group.strip_suffix(d).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// `status` and `scale` as a CRD has them; the others are told as losses.
fn subresources(
    resource: &DiscoveredResource,
    schema: &Value,
    version: &str,
    losses: &mut Vec<Loss>,
) -> Map<String, Value> {
    let mut made = Map::new();
    for name in &resource.subresources {
        let reason = match &**name {
            "status" => {
                made.insert("status".into(), json!({}));
                continue;
            }
            "scale" => match scale(schema) {
                Some(scale) => {
                    made.insert("scale".into(), scale);
                    continue;
                }
                None => "no number of replicas in the schema",
            },
            _ => "a CRD can't have this subresource",
        };
        losses.push(Loss { path: format!("{version}.{}/{name}", resource.plural), reason });
    }
    made
}

/// The paths of `/scale`. The selector is an object in these types (a map of labels in the oldest),
/// not a text as in CRDs; whoever serves it prints it.
fn scale(schema: &Value) -> Option<Value> {
    let has = |part: &str, field: &str| {
        schema.pointer(&format!("/properties/{part}/properties/{field}")).is_some()
    };
    if !has("spec", "replicas") || !has("status", "replicas") {
        return None;
    }
    let mut scale = json!({
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
    });
    if has("spec", "selector") {
        set(&mut scale, "labelSelectorPath", ".spec.selector".into());
    }
    Some(scale)
}

// === impl Skipped ===

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)
    }
}

// === impl Loss ===

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.reason)
    }
}

#[cfg(test)]
mod tests;
