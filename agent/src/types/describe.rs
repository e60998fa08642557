//! Types as APIResourceSchemas describe them: pure.

use crds::{APIResourceSchemaSpec, Column, Scale, Scope, Subresources, TypeNames};
use schema::import::{DiscoveredResource, VersionSource, import_those};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The longest text about a loss, and how many there are of them, as APIResourceImports have them.
const LONGEST_LOSS: usize = 1_000;
const MOST_LOSSES: usize = 64;

/// The longest description of a type that is sent. A server takes objects of three megabytes; schemas
/// of Kubernetes' own types have up to a third of one.
const LARGEST: usize = 1_500_000;

/// One version of a type, described.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// The group; empty for core.
    pub group: String,
    /// The version.
    pub version: String,
    /// The resource.
    pub plural: String,
    /// The kind of objects.
    pub kind: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether the status is written apart.
    pub status: bool,
    /// The description, as the `spec` of an APIResourceSchema.
    pub spec: Value,
    /// The name of that APIResourceSchema.
    pub schema: String,
    /// What the description doesn't say of the type.
    pub losses: Vec<String>,
}

/// What of a CustomResourceDefinition is read.
#[derive(Deserialize)]
struct Definition {
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Spec {
    #[serde(default)]
    group: String,
    names: Names,
    scope: Scope,
    versions: Vec<Version>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Names {
    plural: String,
    singular: String,
    kind: String,
    list_kind: String,
    short_names: Vec<String>,
    categories: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    accepted_names: Option<Names>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    name: String,
    #[serde(default)]
    served: bool,
    #[serde(default)]
    schema: Value,
    #[serde(default)]
    subresources: Option<Parts>,
    #[serde(default)]
    additional_printer_columns: Vec<Column>,
    #[serde(default)]
    selectable_fields: Vec<Selectable>,
}

#[derive(Deserialize)]
struct Parts {
    #[serde(default)]
    status: Option<Value>,
    #[serde(default)]
    scale: Option<Scale>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Selectable {
    json_path: String,
}

/// The name of the APIResourceSchema with a `spec`, whose numbers are settled on the way.
pub fn content_name(spec: &mut Value) -> String {
    schema::structural::settle_numbers(spec);
    contract::schema_name(&Sha256::digest(spec.to_string()).into())
}

/// The versions that a CustomResourceDefinition serves.
///
/// # Errors
/// What about it can't be understood.
pub fn of_definition(definition: &Value) -> Result<Vec<Described>, String> {
    let read = Definition::deserialize(definition);
    let Definition { spec, status } = read.map_err(|error| error.to_string())?;
    let names = status.accepted_names.filter(|names| !names.plural.is_empty());
    let names = names.unwrap_or(spec.names);
    let served = spec.versions.into_iter().filter(|version| version.served);
    served.map(|version| version.describe(&spec.group, &names, spec.scope)).collect()
}

/// The types of a group that aren't custom resources, from discovery and OpenAPI documents; and which
/// can't be described, and why. `why_not` says which are passed over.
pub(super) fn of_group(
    group: &str,
    versions: &[VersionSource<'_>],
    why_not: &dyn Fn(&DiscoveredResource) -> Option<&'static str>,
) -> (Vec<Described>, Vec<(String, String)>) {
    let imported = import_those(group, versions, why_not);
    let mut failed = Vec::new();
    // What `why_not` speaks against isn't worth a word.
    let passed = |name: &str| {
        let all = versions.iter().flat_map(|source| &source.discovered.resources);
        let named = |one: &&DiscoveredResource| contract::type_name(group, &one.plural) == name;
        all.filter(named).any(|one| why_not(one).is_some())
    };
    for skipped in imported.skipped.iter().filter(|skipped| !passed(&skipped.name)) {
        failed.push((skipped.name.clone(), skipped.reason.to_owned()));
    }
    let mut made = Vec::new();
    for ty in imported.types {
        match of_definition(&ty.crd) {
            Ok(versions) => made.extend(versions.into_iter().map(|mut described| {
                let own = format!("{}.", described.version);
                let losses = ty
                    .losses
                    .iter()
                    .filter(|loss| loss.path.starts_with(&own) || loss.path == described.version);
                let text = |loss: &schema::import::Loss| {
                    loss.to_string().chars().take(LONGEST_LOSS).collect()
                };
                described.losses = losses.take(MOST_LOSSES).map(text).collect();
                described
            })),
            Err(why) => {
                let name = ty.crd["metadata"]["name"].as_str().unwrap_or_default();
                failed.push((name.to_owned(), why));
            }
        }
    }
    (made, failed)
}

// === impl Names ===

impl Default for Names {
    fn default() -> Self {
        let empty = String::new;
        Self {
            plural: empty(),
            singular: empty(),
            kind: empty(),
            list_kind: empty(),
            short_names: Vec::new(),
            categories: Vec::new(),
        }
    }
}

// === impl Version ===

impl Version {
    fn describe(self, group: &str, names: &Names, scope: Scope) -> Result<Described, String> {
        let sorted = |list: &[String]| {
            let mut list = list.to_vec();
            list.sort_unstable();
            list.dedup();
            list
        };
        let or_else = |name: &str, other: String| match name {
            "" => other,
            name => name.to_owned(),
        };
        let schema = match self.schema.get("openAPIV3Schema") {
            Some(schema @ Value::Object(_)) => schema.clone(),
            // Nothing is known of its objects.
            _ => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        };
        let parts = self
            .subresources
            .map(|parts| Subresources { status: parts.status.is_some(), scale: parts.scale });
        let parts = parts.filter(|parts| *parts != Subresources::default());
        let status = parts.as_ref().is_some_and(|parts| parts.status);
        let spec = APIResourceSchemaSpec {
            group: group.to_owned(),
            version: self.name.clone(),
            names: TypeNames {
                plural: names.plural.clone(),
                singular: or_else(&names.singular, names.kind.to_lowercase()),
                kind: names.kind.clone(),
                list_kind: or_else(&names.list_kind, format!("{}List", names.kind)),
                short_names: sorted(&names.short_names),
                categories: sorted(&names.categories),
            },
            scope,
            schema,
            subresources: parts,
            columns: self.additional_printer_columns,
            selectable_fields: {
                let paths = self.selectable_fields.into_iter().map(|field| field.json_path);
                sorted(&paths.collect::<Vec<_>>())
            },
        };
        let mut spec = serde_json::to_value(&spec).map_err(|error| error.to_string())?;
        let schema = content_name(&mut spec);
        if spec.to_string().len() > LARGEST {
            return Err(format!("the description of {} is too large", self.name));
        }
        Ok(Described {
            group: group.to_owned(),
            version: self.name,
            plural: names.plural.clone(),
            kind: names.kind.clone(),
            namespaced: scope == Scope::Namespaced,
            status,
            spec,
            schema,
            losses: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> Value {
        json!({
            "metadata": {"name": "things.x.io"},
            "spec": {
                "group": "x.io",
                "names": {"plural": "things", "kind": "Thing", "shortNames": ["tt", "t"]},
                "scope": "Namespaced",
                "versions": [
                    {"name": "v1", "served": true, "storage": true,
                     "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                        "spec": {"type": "object", "maxProperties": 3.0}}}},
                     "subresources": {"status": {}},
                     "additionalPrinterColumns":
                        [{"name": "A", "type": "string", "jsonPath": ".spec.a"}]},
                    {"name": "v0", "served": false, "storage": false},
                ],
            },
        })
    }

    #[test]
    fn a_definition() {
        let [one] = &*of_definition(&definition()).unwrap() else { panic!("one version") };
        assert_eq!((&*one.group, &*one.version, &*one.kind), ("x.io", "v1", "Thing"));
        assert!(one.status && one.namespaced);
        assert_eq!(one.spec["names"]["listKind"], "ThingList");
        assert_eq!(one.spec["names"]["shortNames"], json!(["t", "tt"]));
        assert_eq!(one.spec["schema"]["properties"]["spec"]["maxProperties"].to_string(), "3");
        // The same content has the same name, however it came about.
        let mut other = definition();
        other["metadata"]["name"] = json!("another");
        other["spec"]["names"]["shortNames"] = json!(["t", "tt", "t"]);
        assert_eq!(of_definition(&other).unwrap()[0].schema, one.schema);
        other["spec"]["names"]["shortNames"] = json!(["t"]);
        assert_ne!(of_definition(&other).unwrap()[0].schema, one.schema);
    }

    #[test]
    fn what_is_no_definition() {
        for strange in [json!({}), json!(7), json!({"spec": {"names": [], "versions": 3}})] {
            assert!(of_definition(&strange).is_err(), "{strange}");
        }
        let mut bare = definition();
        bare["spec"]["versions"][0] = json!({"name": "v1", "served": true});
        let made = of_definition(&bare).unwrap();
        assert_eq!(made[0].spec["schema"]["x-kubernetes-preserve-unknown-fields"], true);
        let mut large = definition();
        large["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] =
            json!("x".repeat(LARGEST));
        assert!(of_definition(&large).is_err());
    }
}
