//! CustomResourceDefinitions of negotiated types: pure.
//!
//! Versions of one type are shown without conversion, so all that are served have the same fields. The
//! newest of them, in Kubernetes' order, is stored. A version that is there stays.

use std::collections::BTreeMap;

use contract::{PUBLISHED_BY, type_name};
use negotiation::{Column, Scale, Subresources, Type};
use schema::import::same_fields;
use serde_json::{Map, Value, json};

/// Where definitions are.
pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What becomes of versions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    /// The versions, the most preferred first.
    pub(super) versions: Vec<(String, Type)>,
    /// The one that objects are stored in.
    pub(super) storage: String,
    /// Versions that can't be served beside the others.
    pub(super) left: Vec<String>,
}

/// What is published of a type.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Published {
    /// Whether it is ours.
    pub(super) ours: bool,
    pub(super) versions: BTreeMap<String, Type>,
    pub(super) storage: String,
    /// Whether it is served.
    pub(super) established: bool,
    /// Why it isn't, in words.
    pub(super) why: String,
    /// Whether it won't be before somebody does something: its names are another's.
    pub(super) stuck: bool,
}

// === impl Published ===

impl Published {
    /// Reads a definition.
    ///
    /// # Errors
    /// What can't be understood of it.
    pub(super) fn read(definition: &Value) -> Result<Self, String> {
        let mut versions = BTreeMap::new();
        for described in agent::types::of_definition(definition)? {
            let ty = serde_json::from_value(described.spec).map_err(|error| error.to_string())?;
            versions.insert(described.version, ty);
        }
        let list = definition.pointer("/spec/versions").and_then(Value::as_array);
        let storage = list.into_iter().flatten().find(|version| version["storage"] == true);
        let storage = storage.and_then(|version| version["name"].as_str()).unwrap_or_default();
        let annotations = definition.pointer("/metadata/annotations");
        let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
        let condition = |kind: &str| {
            conditions.into_iter().flatten().find(|condition| condition["type"] == kind)
        };
        let is = |kind: &str| condition(kind).is_some_and(|found| found["status"] == "True");
        let going = definition.pointer("/metadata/deletionTimestamp").is_some();
        let why = ["NamesAccepted", "Established"].into_iter().filter_map(condition);
        let why = why.filter(|found| found["status"] != "True");
        let why = why.filter_map(|found| found["message"].as_str()).next().unwrap_or_default();
        Ok(Self {
            ours: annotations.is_some_and(|all| all.get(PUBLISHED_BY).is_some()),
            versions,
            storage: storage.to_owned(),
            established: is("Established") && is("NamesAccepted") && !going,
            stuck: condition("NamesAccepted").is_some_and(|found| found["status"] == "False"),
            why: if going { "it is being deleted".to_owned() } else { why.to_owned() },
        })
    }
}

/// Decides which versions are served, and which is stored. `None` where there is none.
pub(super) fn plan(types: &BTreeMap<String, Type>, current: Option<&Published>) -> Option<Plan> {
    let mut names: Vec<&String> = types.keys().collect();
    names.sort_by(|a, b| machinery::version::compare(a, b));
    // What is there has its fields; without that, what is most preferred.
    let stored = current.and_then(|current| types.get(&current.storage));
    let model = stored.or_else(|| types.get(*names.first()?))?;
    let same = |ty: &Type| same_fields(&ty.schema, &model.schema) && ty.scope == model.scope;
    let mut versions = Vec::new();
    let mut left = Vec::new();
    let mut storage = None;
    for name in names {
        let Some(ty) = types.get(name) else { continue };
        if same(ty) {
            storage.get_or_insert_with(|| name.clone());
            versions.push((name.clone(), ty.clone()));
        } else if let Some(old) = current.and_then(|current| current.versions.get(name)) {
            // It was the same once; growing alone, it would lose what the others have.
            versions.push((name.clone(), old.clone()));
            left.push(name.clone());
        } else {
            left.push(name.clone());
        }
    }
    Some(Plan { versions, storage: storage?, left })
}

/// A definition that says what is planned, and what else the current one says.
pub(super) fn definition(group: &str, plural: &str, plan: &Plan, current: Option<&Value>) -> Value {
    let mut made = current.cloned().unwrap_or_else(|| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": type_name(group, plural)},
        })
    });
    let stored = plan.versions.iter().find(|(name, _)| *name == plan.storage);
    let names = stored.map(|(_, ty)| &ty.names);
    let scope = stored.map(|(_, ty)| &ty.scope);
    if let Some(object) = made.as_object_mut() {
        object.remove("status");
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.remove("managedFields");
            let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
            if let Value::Object(annotations) = annotations {
                annotations.insert(PUBLISHED_BY.into(), type_name(group, plural).into());
                if is_protected(group) {
                    // Without it such a group is refused; it says by whom the API was approved.
                    let text = "unapproved, imported from a cluster that serves it";
                    annotations.entry("api-approved.kubernetes.io").or_insert_with(|| text.into());
                }
            }
        }
        let versions: Vec<Value> = { plan.versions.iter() }
            .map(|(name, ty)| version(name, ty, *name == plan.storage))
            .collect();
        let spec = json!({
            "group": group,
            "names": names,
            "scope": scope,
            "versions": versions,
        });
        let spec = match (object.remove("spec"), spec) {
            (Some(Value::Object(mut old)), Value::Object(new)) => {
                old.extend(new);
                Value::Object(old)
            }
            (_, new) => new,
        };
        object.insert("spec".into(), spec);
    }
    made
}

/// Whether a definition says what is planned.
pub(super) fn is_as_planned(current: &Published, plan: &Plan) -> bool {
    current.storage == plan.storage
        && current.versions.len() == plan.versions.len()
        && plan.versions.iter().all(|(name, ty)| {
            let settled = |ty: &Type| {
                let mut value = serde_json::to_value(ty).unwrap_or_default();
                agent::types::content_name(&mut value)
            };
            current.versions.get(name).is_some_and(|there| settled(there) == settled(ty))
        })
}

fn version(name: &str, ty: &Type, storage: bool) -> Value {
    let mut made = Map::new();
    made.insert("name".into(), name.into());
    made.insert("served".into(), true.into());
    made.insert("storage".into(), storage.into());
    made.insert("schema".into(), json!({"openAPIV3Schema": ty.schema}));
    if let Some(Subresources { status, scale }) = &ty.subresources {
        let mut parts = Map::new();
        if *status {
            parts.insert("status".into(), json!({}));
        }
        if let Some(scale) = scale {
            parts.insert("scale".into(), paths(scale));
        }
        made.insert("subresources".into(), Value::Object(parts));
    }
    if !ty.columns.is_empty() {
        let columns: Vec<&Column> = ty.columns.iter().collect();
        made.insert("additionalPrinterColumns".into(), json!(columns));
    }
    if !ty.selectable_fields.is_empty() {
        let fields = ty.selectable_fields.iter().map(|path| json!({"jsonPath": path}));
        made.insert("selectableFields".into(), fields.collect());
    }
    Value::Object(made)
}

fn paths(scale: &Scale) -> Value {
    serde_json::to_value(scale).unwrap_or_default()
}

/// Groups of the Kubernetes community.
fn is_protected(group: &str) -> bool {
    let below = |domain: &str| {
        group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    below("k8s.io") || below("kubernetes.io")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ty(version: &str, fields: &[&str]) -> Type {
        let fields = fields.iter().map(|name| ((*name).to_owned(), json!({"type": "string"})));
        let properties = Value::Object(fields.collect());
        serde_json::from_value(json!({
            "group": "x.io", "version": version, "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing",
                      "listKind": "ThingList", "shortNames": ["th"]},
            "schema": {"type": "object", "properties": properties},
            "subresources": {"status": true},
            "columns": [{"name": "A", "type": "string", "jsonPath": ".a"}],
        }))
        .unwrap()
    }

    fn types(all: &[(&str, &[&str])]) -> BTreeMap<String, Type> {
        all.iter().map(|(name, fields)| ((*name).to_owned(), ty(name, fields))).collect()
    }

    fn names(plan: &Plan) -> (Vec<&str>, &str, Vec<&str>) {
        let versions = plan.versions.iter().map(|(name, _)| &**name).collect();
        (versions, &plan.storage, plan.left.iter().map(String::as_str).collect())
    }

    #[test]
    fn versions_that_have_the_same_fields_are_served() {
        let made = plan(&types(&[("v1beta1", &["a"]), ("v1", &["a"]), ("v2alpha1", &["b"])]), None);
        assert_eq!(names(&made.unwrap()), (vec!["v1", "v1beta1"], "v1", vec!["v2alpha1"]));
        assert_eq!(plan(&BTreeMap::new(), None), None);
    }

    #[test]
    fn what_is_there_stays() {
        let first = plan(&types(&[("v1beta1", &["a"])]), None).unwrap();
        let written = definition("x.io", "things", &first, None);
        let current = Published::read(&written).unwrap();
        assert!(current.ours && !current.established);
        assert!(is_as_planned(&current, &first));
        let next = plan(&types(&[("v1beta1", &["a"]), ("v1", &["a"])]), Some(&current)).unwrap();
        assert_eq!(names(&next), (vec!["v1", "v1beta1"], "v1", vec![]));
        assert!(!is_as_planned(&current, &next));
        // A newer version with other fields is not served, and one that stays behind is as it was.
        let next = plan(&types(&[("v1beta1", &["a"]), ("v1", &["b"])]), Some(&current)).unwrap();
        assert_eq!(names(&next), (vec!["v1beta1"], "v1beta1", vec!["v1"]));
    }

    #[test]
    fn a_definition_says_what_is_planned() {
        let first = plan(&types(&[("v1", &["a"])]), None).unwrap();
        let mut written = definition("apps.k8s.io", "things", &first, None);
        assert_eq!(written["metadata"]["name"], "things.apps.k8s.io");
        let annotations = written["metadata"]["annotations"].as_object().unwrap();
        assert!(annotations.contains_key("api-approved.kubernetes.io"));
        let version = &written["spec"]["versions"][0];
        assert_eq!(version["subresources"], json!({"status": {}}));
        assert_eq!(version["additionalPrinterColumns"][0]["jsonPath"], ".a");
        // What others have said in it is kept.
        written["metadata"]["labels"] = json!({"a": "b"});
        written["spec"]["conversion"] = json!({"strategy": "None"});
        let again = definition("apps.k8s.io", "things", &first, Some(&written));
        assert_eq!(again["metadata"]["labels"], json!({"a": "b"}));
        assert_eq!(again["spec"]["conversion"], json!({"strategy": "None"}));
        written["metadata"]["annotations"].as_object_mut().unwrap().remove(PUBLISHED_BY);
        assert!(!Published::read(&written).unwrap().ours);
    }
}
