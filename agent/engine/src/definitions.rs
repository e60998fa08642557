//! Whether a changed CustomResourceDefinition would hurt objects, or those who use the type.
//!
//! Pure. `live` is the definition as it is, `desired` what is to be applied to it: of `desired` the
//! list of versions counts as a whole, as server-side apply takes it; a conversion that it does not
//! name stays.

use std::collections::BTreeSet;

use negotiation::{Difference, Names, Said, Scale, Subresources, Type, differences};
use serde_json::Value;

/// The most differences that are told.
const MOST: usize = 64;

/// Who says what, as differences tell it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Labels<'a> {
    /// Whose the definition is that is there.
    pub(crate) live: &'a str,
    /// Whose the new one is.
    pub(crate) desired: &'a str,
}

/// What keeps a definition from becoming another one: everything by which an object that is stored
/// would be lost or become invalid, or a version in use would go. Empty if nothing does.
pub(crate) fn hurts(live: &Value, desired: &Value, labels: Labels<'_>) -> Vec<Difference> {
    let mut told = Told { labels, found: Vec::new() };
    told.names(live, desired);
    if told.found.is_empty() {
        told.versions(live, desired);
        told.conversion(live, desired);
    }
    told.found.truncate(MOST);
    told.found
}

/// Whether a definition's status says that its type is served.
pub(crate) fn is_established(definition: &Value) -> bool {
    let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        let says = |key: &str, value: &str| condition.get(key).is_some_and(|it| it == value);
        says("type", "Established") && says("status", "True")
    })
}

struct Told<'a> {
    labels: Labels<'a>,
    found: Vec<Difference>,
}

// === impl Told ===

impl Told<'_> {
    fn tell(&mut self, path: &str, what: &str, message: &str, [live, desired]: [&str; 2]) {
        let said = |value: &str, who: &str| Said {
            value: value.chars().take(256).collect(),
            targets: vec![who.to_owned()],
        };
        self.found.push(Difference {
            blocking: true,
            path: path.to_owned(),
            what: what.to_owned(),
            message: message.to_owned(),
            said: vec![said(live, self.labels.live), said(desired, self.labels.desired)],
        });
    }

    fn names(&mut self, live: &Value, desired: &Value) {
        for (pointer, what, why) in [
            ("/spec/group", "group", "it is of another group"),
            ("/spec/scope", "scope", "objects live in different places"),
            ("/spec/names/plural", "names", "it is called differently"),
            ("/spec/names/kind", "kind", "objects are of different kinds"),
        ] {
            let both = [text(live, pointer), text(desired, pointer)];
            if both[0] != both[1] {
                self.tell(pointer, what, why, both);
            }
        }
    }

    fn versions(&mut self, live: &Value, desired: &Value) {
        let kept: Vec<(&str, &Value)> = versions(desired).collect();
        let find = |name: &str| kept.iter().find(|(known, _)| *known == name).map(|(_, v)| *v);
        let stored = stored(live);
        for (name, version) in versions(live) {
            let path = format!("/spec/versions/{name}");
            let Some(new) = find(name) else {
                if stored.contains(name) {
                    let why = "objects are stored in this version";
                    self.tell(&path, "storedVersions", why, [name, ""]);
                } else if flag(version, "served") {
                    self.tell(&path, "served", "this version is in use", [name, ""]);
                }
                continue;
            };
            if flag(version, "served") && !flag(new, "served") {
                self.tell(&path, "served", "this version is in use", ["true", "false"]);
            }
            self.schemas((live, version), (desired, new), &format!("{name}: "));
            let (old, new) = (subresources(version), subresources(new));
            if old.status && !new.status {
                let why = "the status is written apart from the rest";
                self.tell(
                    &format!("{path}/subresources/status"),
                    "subresources",
                    why,
                    ["status", ""],
                );
            }
            if old.scale.is_some() && new.scale.is_none() {
                let why = "the number of replicas is set by scale";
                self.tell(
                    &format!("{path}/subresources/scale"),
                    "subresources",
                    why,
                    ["scale", ""],
                );
            }
        }
        for name in stored.iter().filter(|name| find(name).is_none()) {
            if versions(live).all(|(known, _)| known != *name) {
                let why = "objects are stored in this version";
                let path = format!("/spec/versions/{name}");
                self.tell(&path, "storedVersions", why, [name, ""]);
            }
        }
        self.storage(live, desired, &stored);
    }

    /// Objects that are stored in one version and written in another keep what both know, unless
    /// somebody converts them.
    fn storage(&mut self, live: &Value, desired: &Value, stored: &BTreeSet<&str>) {
        if strategy(desired).or_else(|| strategy(live)) == Some("Webhook") {
            return;
        }
        let new = versions(desired).find(|(_, version)| flag(version, "storage"));
        let Some((storage, new)) = new else { return };
        for (name, version) in versions(live) {
            if stored.contains(name) && name != storage {
                let before = format!("{name}, to be stored as {storage}: ");
                self.schemas((live, version), (desired, new), &before);
            }
        }
    }

    /// Tells what of an object of the one isn't taken by the other.
    fn schemas(&mut self, live: (&Value, &Value), desired: (&Value, &Value), before: &str) {
        if self.found.len() >= MOST {
            return;
        }
        let (old, new) = (of_version(live.0, live.1), of_version(desired.0, desired.1));
        let found = differences(&old, &new, [self.labels.live, self.labels.desired]);
        self.found.extend({ found.into_iter() }.filter(|one| one.blocking).map(|mut one| {
            one.message.insert_str(0, before);
            one
        }));
    }

    fn conversion(&mut self, live: &Value, desired: &Value) {
        let both = [strategy(live), strategy(desired)];
        if both == [Some("Webhook"), Some("None")] && versions(live).count() > 1 {
            let why = "objects of one version would pass for those of another as they are";
            self.tell("/spec/conversion/strategy", "conversion", why, ["Webhook", "None"]);
        }
        let keeps = |of: &Value| of.pointer("/spec/preserveUnknownFields") == Some(&true.into());
        if keeps(live)
            && !keeps(desired)
            && desired.pointer("/spec/preserveUnknownFields").is_some()
        {
            let why = "fields that no schema knows would be lost";
            let path = "/spec/preserveUnknownFields";
            self.tell(path, "preserveUnknownFields", why, ["true", "false"]);
        }
    }
}

fn text<'v>(definition: &'v Value, pointer: &str) -> &'v str {
    definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn flag(version: &Value, name: &str) -> bool {
    version.get(name).and_then(Value::as_bool).unwrap_or_default()
}

fn strategy(definition: &Value) -> Option<&str> {
    definition.pointer("/spec/conversion/strategy")?.as_str()
}

fn versions(definition: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let all = definition.pointer("/spec/versions").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(|version| Some((version.get("name")?.as_str()?, version)))
}

/// The versions in which objects may be stored.
fn stored(definition: &Value) -> BTreeSet<&str> {
    let told = definition.pointer("/status/storedVersions").and_then(Value::as_array);
    let told = told.into_iter().flatten().filter_map(Value::as_str);
    let written = versions(definition).filter(|(_, version)| flag(version, "storage"));
    told.chain(written.map(|(name, _)| name)).collect()
}

fn subresources(version: &Value) -> Subresources {
    let part = |name: &str| version.get("subresources").and_then(|all| all.get(name));
    let scale = part("scale").filter(|scale| scale.is_object()).map(|scale| {
        let path = |key: &str| scale.get(key).and_then(Value::as_str).map(str::to_owned);
        Scale {
            spec_replicas_path: path("specReplicasPath").unwrap_or_default(),
            status_replicas_path: path("statusReplicasPath").unwrap_or_default(),
            label_selector_path: path("labelSelectorPath"),
        }
    });
    Subresources { status: part("status").is_some_and(Value::is_object), scale }
}

/// One version, as it is compared: what a table shows and what lists are selected by hurts nobody.
fn of_version(definition: &Value, version: &Value) -> Type {
    let name = |key: &str| text(definition, &format!("/spec/names/{key}")).to_owned();
    // Without a schema everything is taken, as of types from before schemas.
    let open =
        || serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_else(open);
    Type {
        group: text(definition, "/spec/group").to_owned(),
        version: version.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        names: Names {
            plural: name("plural"),
            singular: String::new(),
            kind: name("kind"),
            list_kind: String::new(),
            short_names: Vec::new(),
            categories: Vec::new(),
        },
        scope: text(definition, "/spec/scope").to_owned(),
        schema,
        subresources: None,
        columns: Vec::new(),
        selectable_fields: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
