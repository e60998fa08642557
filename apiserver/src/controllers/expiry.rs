//! Objects that vanish after a while: events.
//!
//! # Flow
//! Nothing is kept for an object and no timer runs for one. The store's revisions grow with time:
//! every so often the present one is noted, so that of any revision it is known by when it was
//! there. At each of these ticks what was written before the time to live began is deleted, a
//! bounded number at a time.
//!
//! # Guarantees
//! - An object is deleted only if it is still the one that was judged. A change begins its time
//!   anew, as upstream.
//! - What others write into an object's own times can only shorten what a restart adds: after one,
//!   those times tell the age of what was there before, at most that of the restart itself.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use jiff::Timestamp;
use machinery::meta::get_str;
use schema::resource::Flag;
use serde_json::Value;
use store::cache::Object;
use store::{Key, KeyPrefix, Revision};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::registry::Registry;

/// Objects that are read at a time.
const PAGE: usize = 1_000;

/// Objects that are deleted at a tick: so many writes a server does beside its others. What is left
/// over has its turn a second later.
const MOST: usize = 10_000;

/// Deletions at a time: they share the store's commits and leave room for others.
const AT_ONCE: usize = 16;

/// Ticks in a time to live: an object lives longer than it by one of them at most.
const TICKS: u32 = 60;

/// When revisions were there.
#[derive(Debug)]
struct Ages {
    time_to_live: Duration,
    start: (Revision, Timestamp),
    /// Revisions that were reached, with the time; none older than is needed.
    reached: VecDeque<(Revision, Timestamp)>,
}

/// Lets objects expire until `stop`.
pub(super) async fn run(registry: Arc<Registry>, time_to_live: Duration, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = expire(&registry, time_to_live) => {}
    }
}

async fn expire(registry: &Registry, time_to_live: Duration) {
    let kinds = registry.types().resources().iter();
    let kinds = kinds.filter(|def| def.has(Flag::Expires) && def.view_of.is_none());
    let prefixes = kinds.map(|def| KeyPrefix::resource(&Registry::storage(def)));
    let prefixes = prefixes.collect::<Vec<_>>();
    let mut ages = Ages::new(time_to_live, registry.cache().revision(), Timestamp::now());
    let tick = (time_to_live / TICKS).clamp(Duration::from_millis(100), Duration::from_secs(60));
    loop {
        ages.note(registry.cache().revision(), Timestamp::now());
        let mut left = MOST;
        for prefix in &prefixes {
            sweep(registry, prefix, &ages, &mut left).await;
        }
        let all = left > 0;
        tokio::time::sleep(if all { tick } else { tick.min(Duration::from_secs(1)) }).await;
    }
}

/// Deletes what has expired under a prefix, at most `left` objects.
async fn sweep(registry: &Registry, prefix: &KeyPrefix, ages: &Ages, left: &mut usize) {
    let mut after: Option<Key> = None;
    let mut gone = 0_usize;
    loop {
        let page = registry.cache().scan(prefix, after.as_ref(), PAGE);
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        let mut expired = page;
        expired.retain(|object| ages.has_expired(object));
        expired.truncate(*left);
        *left -= expired.len();
        gone += expired.len();
        let purged = stream::iter(expired).map(|object| async move {
            if let Err(error) = registry.purge(&object.key, object.revision).await {
                warn!(key = %object.key, %error, "cannot let an object expire");
            }
        });
        purged.buffer_unordered(AT_ONCE).for_each(|()| std::future::ready(())).await;
        if *left == 0 {
            break;
        }
        tokio::task::yield_now().await;
    }
    if gone > 0 {
        debug!(gone, "objects have expired");
    }
}

// === impl Ages ===

impl Ages {
    fn new(time_to_live: Duration, revision: Revision, now: Timestamp) -> Self {
        Self { time_to_live, start: (revision, now), reached: VecDeque::new() }
    }

    /// Notes that the store is at `revision` now.
    fn note(&mut self, revision: Revision, now: Timestamp) {
        self.reached.push_back((revision, now));
        // Of those that are old enough the newest tells all.
        while self.reached.get(1).is_some_and(|(_, then)| self.is_past(*then)) {
            self.reached.pop_front();
        }
    }

    /// The last time that was noted.
    fn now(&self) -> Timestamp {
        self.reached.back().map_or(self.start.1, |(_, now)| *now)
    }

    fn is_past(&self, written: Timestamp) -> bool {
        let end = written.checked_add(self.time_to_live).unwrap_or(Timestamp::MAX);
        end <= self.now()
    }

    fn has_expired(&self, object: &Object) -> bool {
        let (first, begin) = self.start;
        if object.revision > first {
            // Written before the revision was noted, so at least as old as that.
            let index = self.reached.partition_point(|(noted, _)| *noted < object.revision);
            return self.reached.get(index).is_some_and(|(_, then)| self.is_past(*then));
        }
        if self.is_past(begin) {
            return true;
        }
        let created = time(object.header.creation_timestamp());
        // Parsing is for those alone that may be old.
        created.is_none_or(|created| self.is_past(created))
            && self.is_past(last_time(object).min(begin))
    }
}

/// The latest of the times that an event has. They are what its writers say.
fn last_time(object: &Object) -> Timestamp {
    let value = serde_json::from_slice::<Value>(&object.json()).unwrap_or_default();
    let paths: [&[&str]; 5] = [
        &["metadata", "creationTimestamp"],
        &["lastTimestamp"],
        &["deprecatedLastTimestamp"],
        &["eventTime"],
        &["series", "lastObservedTime"],
    ];
    let times = paths.iter().filter_map(|path| get_str(&value, path)).filter_map(time);
    times.max().unwrap_or(Timestamp::UNIX_EPOCH)
}

fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use store::cache::Origin;

    use super::*;

    fn event(revision: u64, created: &str, last: Option<&str>) -> Object {
        let value = json!({
            "apiVersion": "v1", "kind": "Event", "lastTimestamp": last,
            "metadata": {"name": "e", "namespace": "default", "creationTimestamp": created},
        });
        let key = Key::parse("core/events/one/default/e").unwrap();
        let json = store::object::encode(&value);
        Object::new(key, &json, Revision(revision), 0, Origin::Stored).unwrap()
    }

    fn at(minute: u32) -> Timestamp {
        "2026-01-01T12:00:00Z".parse::<Timestamp>().unwrap() + Duration::from_secs(60) * minute
    }

    #[test]
    fn revisions_tell_the_age() {
        let mut ages = Ages::new(Duration::from_secs(600), Revision(100), at(0));
        let check = |ages: &Ages, revision: u64, expect: bool| {
            // Whatever it says of itself.
            for (created, last) in [("1990-01-01T00:00:00Z", None), ("2999-01-01T00:00:00Z", None)]
            {
                let event = event(revision, created, last);
                assert_eq!(ages.has_expired(&event), expect, "{revision} {created}");
            }
        };
        for minute in 0..=9 {
            ages.note(Revision(100 + 10 * u64::from(minute)), at(minute));
        }
        check(&ages, 101, false);
        ages.note(Revision(300), at(11));
        check(&ages, 105, true);
        check(&ages, 110, true);
        check(&ages, 111, false);
        check(&ages, 300, false);
        ages.note(Revision(300), at(100));
        check(&ages, 300, true);
        check(&ages, 301, false);
        assert!(ages.reached.len() <= 2, "{ages:?}");
    }

    #[test]
    fn after_a_restart_an_events_own_times_tell() {
        let mut ages = Ages::new(Duration::from_secs(600), Revision(100), at(0));
        ages.note(Revision(100), at(0));
        let check = |created: &str, last: Option<&str>, expect: bool| {
            assert_eq!(ages.has_expired(&event(50, created, last)), expect, "{created} {last:?}");
        };
        check("2026-01-01T11:00:00Z", None, true);
        check("2026-01-01T11:55:00Z", None, false);
        check("2026-01-01T11:00:00Z", Some("2026-01-01T11:55:00Z"), false);
        check("2026-01-01T11:00:00Z", Some("2026-01-01T11:05:00Z"), true);
        check("2026-01-01T11:00:00Z", Some("2999-01-01T00:00:00Z"), false);
        // The future ends with the restart.
        let mut later = Ages::new(Duration::from_secs(600), Revision(100), at(0));
        later.note(Revision(100), at(11));
        let event = event(50, "2999-01-01T00:00:00Z", Some("2999-01-01T00:00:00Z"));
        assert!(later.has_expired(&event));
    }
}
