//! Makes default objects again that were deleted: stored this time, and with a new UID. The
//! ConfigMap with the server's CA, which every namespace must have, gets its content back, too.

use std::sync::Arc;

use machinery::GroupResource;
use prometheus::IntGauge;
use store::cache::{Audience, Event, Filter, Scope};
use store::{Key, KeyPrefix};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::context;
use super::queue::Queue;
use crate::clusters::virtuals::ROOT_CA;
use crate::registry::Registry;

/// Objects that are read at a time.
const PAGE: usize = 1_000;

/// Follows deletions of default objects until `stop`.
pub(super) async fn run(registry: Arc<Registry>, depth: IntGauge, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = follow(&registry, &depth) => {}
    }
}

async fn follow(registry: &Arc<Registry>, depth: &IntGauge) {
    let of_interest: Filter =
        Arc::new(|event: &Event| event.current.is_none() || is_root_ca(&event.key));
    loop {
        let everything = [Scope::Everything];
        let (revision, tombstones) = registry.cache().tombstones();
        let Ok(mut events) = registry
            .cache()
            .watch(&everything, Some(&of_interest), Audience::Server, revision)
            .await
        else {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            continue;
        };
        let mut queue = Queue::new(depth.clone());
        for key in tombstones {
            queue.add(key, Instant::now());
        }
        for key in changed(registry).await {
            queue.add(key, Instant::now());
        }
        loop {
            while let Some((key, delay)) = queue.take(Instant::now()) {
                if let Err(error) = remake(registry, &key).await {
                    warn!(%key, %error, "cannot make a default object again");
                    queue.retry(key, Instant::now(), delay);
                }
            }
            match queue.next(&mut events).await {
                Some(Some(event)) => queue.add(event.key.clone(), Instant::now()),
                Some(None) => break,
                None => {}
            }
        }
    }
}

/// What may have another content than it must, as after a change of the CA.
async fn changed(registry: &Registry) -> Vec<Key> {
    let prefix = KeyPrefix::resource(&GroupResource::new("", "configmaps"));
    let mut changed = Vec::new();
    let mut after: Option<Key> = None;
    loop {
        let page = registry.cache().scan(&prefix, after.as_ref(), PAGE);
        let Some(last) = page.last() else { return changed };
        after = Some(last.key.clone());
        let keys = page.iter().map(|object| &object.key);
        changed.extend(keys.filter(|key| is_root_ca(key)).cloned());
        tokio::task::yield_now().await;
    }
}

fn is_root_ca(key: &Key) -> bool {
    key.resource_part() == "core/configmaps" && key.parts().2 == ROOT_CA
}

async fn remake(registry: &Registry, key: &Key) -> Result<(), crate::registry::Error> {
    if registry.remake(&context(), key).await? {
        debug!(%key, "made a default object again");
    }
    if is_root_ca(key) && registry.restore_data(key).await? {
        debug!(%key, "gave a default object its content back");
    }
    Ok(())
}
