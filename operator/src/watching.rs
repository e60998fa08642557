//! Watches over all logical clusters, as events without their transport.
//!
//! Invariants: what a list no longer holds is told as one set when the list is whole, never object by
//! object; a watch that breaks is resumed, with growing pauses, and says nothing meanwhile.

use std::fmt::Debug;

use futures::{Stream, StreamExt};
use kube::Api;
use kube::api::ApiResource;
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};

/// A type, for a watch.
pub(crate) fn resource(group: &str, version: &str, resource: &str) -> ApiResource {
    let api_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version,
        // Answers say their kind; requests need none.
        kind: String::new(),
        plural: resource.to_owned(),
    }
}

/// Whole objects. `client` leads to all logical clusters.
pub(crate) fn objects(
    client: kube::Client,
    kind: &ApiResource,
    config: watcher::Config,
) -> impl Stream<Item = Event<DynamicObject>> + Send + use<> {
    let api: Api<DynamicObject> = Api::all_with(client, kind);
    calm(watcher::watcher(api, config))
}

/// Objects' metadata. `client` leads to all logical clusters.
pub(crate) fn metadata(
    client: kube::Client,
    kind: &ApiResource,
    config: watcher::Config,
) -> impl Stream<Item = Event<PartialObjectMeta<DynamicObject>>> + Send + use<> {
    let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(client, kind);
    calm(watcher::watcher(api, config))
}

fn calm<K: Debug + Send + 'static>(
    events: impl Stream<Item = watcher::Result<Event<K>>> + Send,
) -> impl Stream<Item = Event<K>> + Send {
    events.default_backoff().filter_map(async |event| match event {
        Ok(event) => Some(event),
        Err(error) => {
            tracing::debug!(error = %error, "a watch of the hub broke off");
            None
        }
    })
}
