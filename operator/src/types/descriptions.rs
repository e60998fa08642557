//! APIResourceSchemas, which never change, so that one that was read needn't be read again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use agent::types::{Hub, HubError, SERVED_BY_HUBS, content_name};
use contract::{API_RESOURCE_SCHEMAS, APIRESOURCE_GROUP};
use negotiation::Type;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::WorkError;

/// How many descriptions are kept, and how much text of them: those of three clusters of different
/// releases.
const MOST: usize = 400;
const MOST_BYTES: usize = 24 << 20;

/// Descriptions, by the names of their APIResourceSchemas.
#[derive(Debug, Default)]
pub(super) struct Descriptions {
    kept: Mutex<Kept>,
    /// What every hub has itself.
    own: tokio::sync::OnceCell<Vec<Type>>,
}

#[derive(Debug, Default)]
struct Kept {
    by_name: BTreeMap<String, (Arc<Type>, usize)>,
    /// Names in the order in which they came.
    order: VecDeque<String>,
    bytes: usize,
}

// === impl Descriptions ===

impl Descriptions {
    /// The description of a name; `None` if the logical cluster has none.
    ///
    /// # Errors
    /// When the hub doesn't give it, or it isn't what its name says.
    pub(super) async fn get(&self, hub: &Hub, name: &str) -> Result<Option<Arc<Type>>, WorkError> {
        if let Some((found, _)) = self.kept.lock().by_name.get(name) {
            return Ok(Some(found.clone()));
        }
        let Some(mut object) = hub.get(&format!("{}/{name}", collection())).await? else {
            return Ok(None);
        };
        let mut spec = object["spec"].take();
        if content_name(&mut spec) != name {
            return Err(WorkError::Unreadable(format!("{name} is not what its name says")));
        }
        let bytes = spec.to_string().len();
        let ty: Type = serde_json::from_value(spec)
            .map_err(|error| WorkError::Unreadable(format!("{name}: {error}")))?;
        let ty = Arc::new(ty);
        self.kept.lock().insert(name.to_owned(), ty.clone(), bytes);
        Ok(Some(ty))
    }

    /// Makes sure that a logical cluster has the description of a type; answers its name.
    ///
    /// # Errors
    /// When it can't be written.
    pub(super) async fn put(&self, hub: &Hub, ty: &Type) -> Result<String, WorkError> {
        let mut spec =
            serde_json::to_value(ty).map_err(|error| WorkError::Unreadable(error.to_string()))?;
        let name = content_name(&mut spec);
        if hub.get(&format!("{}/{name}", collection())).await?.is_some() {
            return Ok(name);
        }
        let object = json!({
            "apiVersion": format!("{APIRESOURCE_GROUP}/v1alpha1"),
            "kind": "APIResourceSchema",
            "metadata": {"name": name},
            "spec": spec,
        });
        match hub.create(&collection(), &object).await {
            Ok(_) | Err(HubError::Refused { status: 409, .. }) => Ok(name),
            Err(error) => Err(error.into()),
        }
    }

    /// The type of a resource that every hub has itself, in a version.
    ///
    /// # Errors
    /// When the hub doesn't describe it.
    pub(super) async fn own(&self, hub: &Hub) -> Result<&[Type], WorkError> {
        let read = async || {
            let described = agent::types::served_by_hub(hub).await?;
            let types = described.into_iter().map(|one| serde_json::from_value(one.spec));
            let types: Result<Vec<Type>, _> = types.collect();
            types.map_err(|error| WorkError::Unreadable(error.to_string()))
        };
        Ok(self.own.get_or_try_init(read).await?)
    }
}

/// Whether every hub has a resource itself.
pub(super) fn is_own(group: &str, plural: &str) -> bool {
    SERVED_BY_HUBS.contains(&(group, plural)) || schema::import::is_served_here(group, plural)
}

fn collection() -> String {
    format!("/apis/{APIRESOURCE_GROUP}/v1alpha1/{API_RESOURCE_SCHEMAS}")
}

// === impl Kept ===

impl Kept {
    fn insert(&mut self, name: String, ty: Arc<Type>, bytes: usize) {
        if self.by_name.insert(name.clone(), (ty, bytes)).is_none() {
            self.order.push_back(name);
            self.bytes += bytes;
        }
        while self.order.len() > MOST || (self.bytes > MOST_BYTES && self.order.len() > 1) {
            let Some(oldest) = self.order.pop_front() else { return };
            if let Some((_, bytes)) = self.by_name.remove(&oldest) {
                self.bytes = self.bytes.saturating_sub(bytes);
            }
        }
    }
}

/// What a logical cluster's object has where a value is to be told.
pub(super) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
