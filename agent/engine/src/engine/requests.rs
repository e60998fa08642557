//! Requests, written out.

use contract::{AGENT, OBJECT_SYNCS, SYNC_TARGET_LABEL, SYNCER, UPSTREAM, WORKLOAD_GROUP};
use serde_json::{Map, Value, json};

use super::Engine;
use super::entry::{Entry, Id, Key, Place, State, TypeId};
use super::merging::Manner;
use crate::fields::REPLICAS;
use crate::lists::Merged;
use crate::locator::Locator;
use crate::{GroupResource, Method, Request, Side, SyncedType, names};

const JSON: &str = "application/json";
/// A server-side apply; JSON is YAML, too.
const APPLY_PATCH: &str = "application/apply-patch+yaml";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// The version of our own types.
const VERSION: &str = "v1alpha1";

/// A resource version that no object has.
const NEVER: &str = "1";

/// Where ObjectSyncs of objects without a namespace are.
const NOWHERE: &str = "kube-system";

/// Adds the label by which we find copies.
pub(super) fn add_label(object: &mut Value, target: &str) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let Some(metadata) = metadata else { return };
    let labels = metadata.entry("labels").or_insert_with(|| json!({}));
    if let Value::Object(labels) = labels {
        labels.insert(SYNC_TARGET_LABEL.to_owned(), target.into());
    }
}

/// A key as a part of a JSON pointer.
fn pointer(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

impl Engine {
    /// A request about an upstream object.
    pub(super) fn at_hub(key: &Key, synced: &SyncedType, method: Method) -> Request {
        Request {
            side: Side::Upstream,
            cluster: Some(key.cluster.clone()),
            method,
            resource: synced.resource.clone(),
            version: synced.version.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            subresource: "",
            query: Vec::new(),
            content_type: "",
            accept: JSON,
            body: Vec::new(),
        }
    }

    /// A request about a downstream object.
    pub(super) fn at_place(place: &Place, synced: &SyncedType, method: Method) -> Request {
        Request {
            side: Side::Downstream,
            cluster: None,
            method,
            resource: synced.resource.clone(),
            version: synced.version.clone(),
            namespace: place.namespace.clone(),
            name: place.name.clone(),
            subresource: "",
            query: Vec::new(),
            content_type: "",
            accept: JSON,
            body: Vec::new(),
        }
    }

    fn parts(&self, id: Id) -> Option<(&Entry, &SyncedType)> {
        let entry = self.index.get(id)?;
        Some((entry, self.synced(entry.key.kind)?))
    }

    pub(super) fn get_upstream(&self, id: Id) -> Option<Request> {
        let (entry, synced) = self.parts(id)?;
        Some(Self::at_hub(&entry.key, synced, Method::Get))
    }

    pub(super) fn get_downstream(&self, id: Id) -> Option<Request> {
        let (entry, synced) = self.parts(id)?;
        Some(Self::at_place(&entry.place, synced, Method::Get))
    }

    /// An apply of what is to be there; to the object with `uid`, or of a new one.
    pub(super) fn apply(&self, id: Id, uid: Option<&str>, manner: Manner) -> Option<Request> {
        let (entry, synced) = self.parts(id)?;
        let up = entry.up.as_ref()?;
        let mut object: Value = serde_json::from_slice(up.body.as_ref()?).ok()?;
        add_label(&mut object, &self.target.identity.target);
        let there = uid.map(|_| self.there(id)).unwrap_or_default();
        let merged = self.merged(id, &there, manner);
        let locator = Locator {
            hub: self.target.identity.hub.to_string(),
            cluster: entry.key.cluster.to_string(),
            namespace: entry.key.namespace.to_string(),
            name: entry.key.name.to_string(),
            uid: up.uid.to_string(),
            copy: format!("{}/{}", entry.place.namespace, entry.place.name),
            generation: up.generation,
            resource_version: up.revision.to_string(),
            digest: up.digest.to_string(),
            added: merged.as_ref().map(|merged| merged.added.clone()),
        };
        let metadata = object.get_mut("metadata")?.as_object_mut()?;
        metadata.insert("name".to_owned(), (&*entry.place.name).into());
        if !entry.place.namespace.is_empty() {
            metadata.insert("namespace".to_owned(), (&*entry.place.namespace).into());
        }
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        annotations.as_object_mut()?.insert(UPSTREAM.to_owned(), locator.to_string().into());
        match uid {
            Some(uid) => {
                metadata.insert("uid".to_owned(), uid.into());
                if merged.is_some() && !there.version.is_empty() {
                    metadata.insert("resourceVersion".to_owned(), there.version.into());
                }
                if let Some(checked) = &entry.checked {
                    // What was compared, and nothing that has come since.
                    let version = (&*checked.resource_version).into();
                    metadata.insert("resourceVersion".to_owned(), version);
                }
            }
            // Servers ignore it in what they create, and refuse it for what is there: so nothing is
            // added to an object that somebody else has made in between.
            None => drop(metadata.insert("resourceVersion".to_owned(), NEVER.into())),
        }
        if let Some(merged) = merged {
            let rule = &self.kind(entry.key.kind)?.rule;
            merged.put(&rule.merge, &mut object);
        }
        let others_scale = entry.ours().is_some_and(|down| down.replicas.is_some());
        if others_scale && self.yielded(id).is_some() {
            // Left out it stays as it is: it is somebody else's.
            let [spec, replicas] = REPLICAS;
            if let Some(Value::Object(spec)) = object.get_mut(spec) {
                spec.remove(replicas);
            }
        }
        let request = Self::at_place(&entry.place, synced, Method::Patch);
        Some(applied(request, SYNCER, manner == Manner::Forced, &object))
    }

    /// An apply of what of the copy's status is the hub's.
    pub(super) fn apply_status(&self, id: Id, uid: &str, status: &Value) -> Option<Request> {
        let (entry, synced) = self.parts(id)?;
        let mut object = Self::bare(entry, synced, uid);
        // What is empty would be owned, too.
        if status.as_object().is_some_and(|status| !status.is_empty()) {
            object["status"] = status.clone();
        }
        let mut request = Self::at_place(&entry.place, synced, Method::Patch);
        request.subresource = "status";
        Some(applied(request, SYNCER, true, &object))
    }

    /// The copy with that UID, and nothing in it.
    fn bare(entry: &Entry, synced: &SyncedType, uid: &str) -> Value {
        let mut metadata = json!({"name": &*entry.place.name, "uid": uid});
        if !entry.place.namespace.is_empty() {
            metadata["namespace"] = (&*entry.place.namespace).into();
        }
        json!({"apiVersion": synced.api_version(), "kind": &*synced.kind, "metadata": metadata})
    }

    /// An apply of nothing: what only we own goes. Of merged lists what isn't ours stays.
    pub(super) fn give_up(&self, id: Id, uid: &str) -> Option<Request> {
        let (entry, synced) = self.parts(id)?;
        let mut object = Self::bare(entry, synced, uid);
        let (rule, there) = (&self.kind(entry.key.kind)?.rule, self.there(id));
        let rest = Merged::of(&rule.merge, None, there.lists.as_ref());
        if rest.put(&rule.merge, &mut object) && !there.version.is_empty() {
            object["metadata"]["resourceVersion"] = there.version.into();
        }
        let request = Self::at_place(&entry.place, synced, Method::Patch);
        Some(applied(request, SYNCER, true, &object))
    }

    /// Takes our marks off a copy.
    pub(super) fn orphan(&self, id: Id, uid: &str) -> Option<Request> {
        let (entry, synced) = self.parts(id)?;
        let mut request = Self::at_place(&entry.place, synced, Method::Patch);
        request.query = vec![("fieldManager", SYNCER.to_owned())];
        request.content_type = MERGE_PATCH;
        let patch = json!({"metadata": {
            "uid": uid,
            "labels": {SYNC_TARGET_LABEL: null},
            "annotations": {UPSTREAM: null},
        }});
        request.body = patch.to_string().into_bytes();
        Some(request)
    }

    pub(super) fn delete(&self, id: Id, uid: &str) -> Option<Request> {
        let (entry, synced) = self.parts(id)?;
        let mut request = Self::at_place(&entry.place, synced, Method::Delete);
        request.content_type = JSON;
        request.body = deletion(uid);
        Some(request)
    }

    /// Adds our finalizer, if the object is as we know it.
    pub(super) fn claim(&self, id: Id) -> Option<Request> {
        let (entry, synced) = self.parts(id)?;
        let up = entry.up.as_ref()?;
        let label = format!("/metadata/labels/{}", pointer(&self.state_label));
        let mut patch = vec![
            json!({"op": "test", "path": "/metadata/uid", "value": &*up.uid}),
            json!({"op": "test", "path": label, "value": contract::STATE_SYNC}),
        ];
        patch.push(if up.finalizers {
            json!({"op": "add", "path": "/metadata/finalizers/-", "value": self.finalizer})
        } else {
            json!({"op": "add", "path": "/metadata/finalizers", "value": [self.finalizer]})
        });
        Some(self.patch_marks(entry, synced, &patch))
    }

    /// Takes state label and finalizer off, if the object is as we know it.
    pub(super) fn release(&self, id: Id) -> Option<Request> {
        let (entry, synced) = self.parts(id)?;
        let up = entry.up.as_ref()?;
        let mut patch = vec![json!({"op": "test", "path": "/metadata/uid", "value": &*up.uid})];
        let label = format!("/metadata/labels/{}", pointer(&self.state_label));
        if let Some(deleted) = &up.deleted {
            let path = "/metadata/deletionTimestamp";
            patch.push(json!({"op": "test", "path": path, "value": &**deleted}));
        } else {
            patch.push(json!({"op": "test", "path": label, "value": contract::STATE_REMOVE}));
        }
        if up.state != State::None {
            patch.push(json!({"op": "remove", "path": label}));
        }
        if let Some(at) = up.finalizer {
            let path = format!("/metadata/finalizers/{at}");
            patch.push(json!({"op": "test", "path": path, "value": self.finalizer}));
            patch.push(json!({"op": "remove", "path": path}));
        }
        Some(self.patch_marks(entry, synced, &patch))
    }

    fn patch_marks(&self, entry: &Entry, synced: &SyncedType, patch: &[Value]) -> Request {
        let mut request = Self::at_hub(&entry.key, synced, Method::Patch);
        request.query = vec![("fieldManager", AGENT.to_owned())];
        request.content_type = JSON_PATCH;
        request.body = Value::from(patch).to_string().into_bytes();
        request
    }

    /// A merge patch of a subresource of the upstream object.
    pub(super) fn patch_upstream(
        &self,
        id: Id,
        subresource: &'static str,
        mut patch: Value,
    ) -> Option<Request> {
        let (entry, synced) = self.parts(id)?;
        if subresource == "status" {
            // A namesake that was made in between has another status.
            patch["metadata"] = json!({"uid": &*entry.up.as_ref()?.uid});
        }
        let mut request = Self::at_hub(&entry.key, synced, Method::Patch);
        request.subresource = subresource;
        request.query = vec![("fieldManager", AGENT.to_owned())];
        request.content_type = MERGE_PATCH;
        request.body = patch.to_string().into_bytes();
        Some(request)
    }

    /// The namespace and name of an entry's ObjectSync.
    pub(super) fn record_name(&self, entry: &Entry) -> Option<(String, String)> {
        let kind = self.kind(entry.key.kind)?;
        let name = names::record(&kind.resource, &entry.key.name, &self.target.name);
        let namespace = &*entry.key.namespace;
        let namespace = if namespace.is_empty() { NOWHERE } else { namespace };
        Some((namespace.to_owned(), name))
    }

    /// An apply of an ObjectSync: of the object itself, or of its status.
    pub(super) fn record(&self, id: Id, status: Option<&Value>) -> Option<Request> {
        let (entry, synced) = self.parts(id)?;
        let up = entry.up.as_ref()?;
        let (namespace, name) = self.record_name(entry)?;
        let mut object = json!({
            "apiVersion": format!("{WORKLOAD_GROUP}/{VERSION}"),
            "kind": "ObjectSync",
            "metadata": {"name": name, "namespace": namespace},
        });
        if let Some(status) = status {
            object["status"] = status.clone();
        } else {
            object["metadata"]["labels"] =
                json!({SYNC_TARGET_LABEL: &*self.target.identity.target});
            // Owners of objects in namespaces are in the same one.
            object["metadata"]["ownerReferences"] = json!([{
                "apiVersion": synced.api_version(), "kind": &*synced.kind,
                "name": &*entry.key.name, "uid": &*up.uid,
            }]);
            object["spec"] = json!({
                "target": {
                    "cluster": &*self.target.cluster,
                    "name": &*self.target.name,
                    "uid": &*self.target.identity.target,
                },
                "object": {
                    "group": &*synced.resource.group,
                    "version": &*synced.version,
                    "plural": &*synced.resource.resource,
                    "namespace": &*entry.key.namespace,
                    "name": &*entry.key.name,
                    "uid": &*up.uid,
                },
            });
        }
        let mut request = self.record_request(entry, Method::Patch)?;
        request.subresource = if status.is_some() { "status" } else { "" };
        Some(applied(request, AGENT, true, &object))
    }

    pub(super) fn delete_record(&self, id: Id) -> Option<Request> {
        self.record_request(self.index.get(id)?, Method::Delete)
    }

    fn record_request(&self, entry: &Entry, method: Method) -> Option<Request> {
        let (namespace, name) = self.record_name(entry)?;
        Some(Request {
            side: Side::Upstream,
            cluster: Some(entry.key.cluster.clone()),
            method,
            resource: GroupResource::new(WORKLOAD_GROUP, OBJECT_SYNCS),
            version: VERSION.into(),
            namespace: namespace.into(),
            name: name.into(),
            subresource: "",
            query: Vec::new(),
            content_type: "",
            accept: JSON,
            body: Vec::new(),
        })
    }

    /// A Kubernetes Event about an upstream object.
    pub(super) fn tell(&self, id: Id, now: crate::Now) -> Option<Request> {
        let (entry, synced) = self.parts(id)?;
        let (up, note) = (entry.up.as_ref()?, entry.note.as_ref()?);
        let namespace = &*entry.key.namespace;
        let namespace = if namespace.is_empty() { "default" } else { namespace };
        let moment = now.wall.as_microsecond();
        let head: String = entry.key.name.chars().take(200).collect();
        let seconds = jiff::Timestamp::from_second(now.wall.as_second()).ok()?.to_string();
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": format!("{head}.{moment:x}.{id:x}"), "namespace": namespace},
            "involvedObject": {
                "apiVersion": synced.api_version(), "kind": &*synced.kind,
                "namespace": &*entry.key.namespace, "name": &*entry.key.name, "uid": &*up.uid,
            },
            "type": if note.warning { "Warning" } else { "Normal" },
            "reason": note.reason,
            "message": note.message,
            "count": 1,
            "firstTimestamp": seconds,
            "lastTimestamp": seconds,
            "source": {"component": AGENT, "host": self.target.global_name()},
        });
        Some(Request {
            side: Side::Upstream,
            cluster: Some(entry.key.cluster.clone()),
            method: Method::Post,
            resource: GroupResource::new("", "events"),
            version: "v1".into(),
            namespace: namespace.into(),
            name: "".into(),
            subresource: "",
            query: Vec::new(),
            content_type: JSON,
            accept: JSON,
            body: event.to_string().into_bytes(),
        })
    }

    pub(super) fn class(&self, id: Id) -> crate::rules::Class {
        let kind = self.index.get(id).map_or(TypeId::MAX, |entry| entry.key.kind);
        self.kind(kind).map(|kind| kind.rule.class).unwrap_or_default()
    }
}

/// What a delete says: what is to be deleted, and that what it owns goes after it.
pub(super) fn deletion(uid: &str) -> Vec<u8> {
    let mut options = Map::new();
    options.insert("apiVersion".to_owned(), "v1".into());
    options.insert("kind".to_owned(), "DeleteOptions".into());
    options.insert("preconditions".to_owned(), json!({"uid": uid}));
    options.insert("propagationPolicy".to_owned(), "Background".into());
    Value::Object(options).to_string().into_bytes()
}

pub(super) fn applied(mut request: Request, manager: &str, force: bool, object: &Value) -> Request {
    request.query = vec![("fieldManager", manager.to_owned()), ("force", force.to_string())];
    request.content_type = APPLY_PATCH;
    request.body = object.to_string().into_bytes();
    request
}
