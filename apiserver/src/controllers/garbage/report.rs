//! What users are told of owners that can't be followed.

use std::sync::Arc;

use machinery::meta::OwnerReference;
use machinery::{GroupResource, ObjectKey};
use serde_json::json;
use store::Key;
use store::cache::Object;
use uuid::Uuid;

use super::context;
use crate::registry::{Body, Error, Media, Reason, Registry, WriteOptions};

/// Longest part of an object's name in the name of an event about it, in bytes.
const MAX_NAME: usize = 200;

/// Writes the event of upstream about an owner in another namespace, once for each reference.
///
/// # Errors
/// When the event can't be stored, but for reasons that are the tenant's own.
pub(super) async fn invalid_namespace(
    registry: &Registry,
    object: &Arc<Object>,
    reference: &OwnerReference,
) -> Result<(), Error> {
    let header = &object.header;
    let namespace = if header.namespace().is_empty() { "default" } else { header.namespace() };
    let about = format!("{} {}", header.uid(), reference.uid);
    let suffix = Uuid::new_v5(&Uuid::NAMESPACE_OID, about.as_bytes()).simple().to_string();
    let suffix = suffix.get(..16).unwrap_or_default();
    let stem: String = header.name().chars().take(MAX_NAME).collect();
    let name = format!("{stem}.{suffix}");
    let cluster = object.key.object().cluster;
    let events = GroupResource::new("", "events");
    let key = Key::new(&events, &ObjectKey::new(cluster, namespace, &name));
    if registry.cache().get(&key).is_some() {
        return Ok(());
    }
    let Some(target) = registry.target_of(&key) else {
        return Err(Error::internal("no resource events"));
    };
    let context = context();
    let now = machinery::time::Time::at(context.now).to_string();
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": header.api_version(),
            "kind": header.kind(),
            "namespace": header.namespace(),
            "name": header.name(),
            "uid": header.uid(),
        },
        "type": "Warning",
        "reason": "OwnerRefInvalidNamespace",
        "message": format!(
            "ownerRef [{}/{}, namespace: {}, name: {}, uid: {}] does not exist in namespace {:?}",
            reference.api_version, reference.kind, header.namespace(), reference.name,
            reference.uid, header.namespace(),
        ),
        "source": {"component": "garbage-collector-controller"},
        "reportingComponent": "garbage-collector-controller",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    });
    let body = Body { media: Media::Json, bytes: event.to_string().into() };
    match registry.create(&context, &target, body, WriteOptions::default()).await {
        Ok(_) => Ok(()),
        Err(error) => match error.reason() {
            Reason::AlreadyExists | Reason::Forbidden | Reason::NotFound | Reason::Invalid => {
                Ok(())
            }
            _ => Err(error),
        },
    }
}
