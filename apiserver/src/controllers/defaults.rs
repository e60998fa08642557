//! Makes default objects again that were deleted: stored this time, and with a new UID.

use std::sync::Arc;

use store::Key;
use store::cache::{Event, Filter, Scope};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::context;
use super::queue::Queue;
use crate::registry::Registry;

/// Follows deletions of default objects until `stop`.
pub(super) async fn run(registry: Arc<Registry>, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = follow(&registry) => {}
    }
}

async fn follow(registry: &Arc<Registry>) {
    let gone: Filter = Arc::new(|event: &Event| event.current.is_none());
    loop {
        let everything = [Scope::Everything];
        let (revision, tombstones) = registry.cache().tombstones();
        let Ok(mut events) = registry.cache().watch(&everything, Some(&gone), revision).await
        else {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            continue;
        };
        let mut queue = Queue::new();
        for key in tombstones {
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

async fn remake(registry: &Registry, key: &Key) -> Result<(), crate::registry::Error> {
    if registry.remake(&context(), key).await? {
        debug!(%key, "made a default object again");
    }
    Ok(())
}
