//! Reading further back than memory does: lists and watches out of the store's history.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::StreamExt;
use tracing::debug;

use super::feed::{slot, slot_of};
use super::{Cache, Event, Filter, Listed, Object, Origin, Scope, overlay};
use crate::{Key, KeyPrefix, Range, ReadError, Revision, WatchMessage};

impl Cache {
    pub(super) async fn list_from_history(
        &self,
        prefix: &KeyPrefix,
        after: Option<&Key>,
        limit: usize,
        at: Revision,
    ) -> Result<Listed, ReadError> {
        debug!(%at, ?prefix, "list from history");
        // Tombstones and virtual objects change the count, so the page is cut afterwards.
        let range = Range { prefix: prefix.clone(), after: after.cloned(), limit: 0 };
        let page = self.store.range(range, Some(at)).await?;
        let base = self.store.identity().rv_base;
        let mut slots = overlay::Slots::new();
        for record in page.records {
            let slot = slot(&record, base);
            slots.insert(record.key, slot);
        }
        let (virtuals, _) = self.inner.read().state.range(prefix, after, 0);
        let virtuals = virtuals
            .into_iter()
            .filter(|object| object.origin == Origin::Virtual && object.revision <= at);
        for object in virtuals {
            slots.entry(object.key.clone()).or_insert(object);
        }
        let mut objects = slots.into_values().collect::<Vec<_>>();
        objects.retain(|object| !overlay::is_tombstone(object));
        let kept = if limit == 0 { objects.len() } else { limit.min(objects.len()) };
        let remaining = objects.len() - kept;
        objects.truncate(kept);
        Ok(Listed { objects, revision: at, remaining })
    }

    pub(super) async fn history(
        &self,
        scopes: &[Scope],
        filter: Option<&Filter>,
        after: Revision,
        until: Revision,
    ) -> Result<VecDeque<Arc<Event>>, ReadError> {
        debug!(%after, %until, ?scopes, "watch from history");
        let base = self.store.identity().rv_base;
        let mut events = VecDeque::new();
        let mut messages = self.store.watch(after).await?;
        let visible = |object: Arc<Object>| (!overlay::is_tombstone(&object)).then_some(object);
        while let Some(message) = messages.next().await {
            let changes = match message? {
                WatchMessage::Progress(revision) if revision >= until => break,
                WatchMessage::Progress(_) => continue,
                WatchMessage::Changes(changes) => changes,
            };
            for change in &changes {
                let wanted = scopes.iter().any(|scope| scope.contains(&change.key));
                if change.revision > until || !wanted {
                    continue;
                }
                let current = slot_of(change, base).and_then(visible);
                let previous =
                    change.previous.as_ref().and_then(|record| visible(slot(record, base)));
                if previous.is_none() && current.is_none() {
                    continue;
                }
                let event = Event::new(change.key.clone(), change.revision, previous, current);
                if filter.is_none_or(|wants| wants(&event)) {
                    events.push_back(Arc::new(event));
                }
            }
            if changes.last().is_some_and(|change| change.revision >= until) {
                break;
            }
        }
        Ok(events)
    }
}
