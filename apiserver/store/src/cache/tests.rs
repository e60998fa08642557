mod feeding;

use std::time::Duration;

use bytes::Bytes;
use machinery::{ClusterName, GroupResource, ObjectKey};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::memory::Options;
use crate::{Compare, Expect, MemoryStore, Op, Txn};

/// How long anything may take. Tests over the memory store run in paused time, which passes only
/// when nothing is left to do: a machine that stalls cannot make them impatient.
const PATIENCE: Duration = Duration::from_secs(30);

fn resource() -> GroupResource {
    GroupResource::new("", "configmaps")
}

fn key(cluster: &str, name: &str) -> Key {
    let cluster = ClusterName::parse(cluster).unwrap();
    Key::new(&resource(), &ObjectKey::new(cluster, "ns", name))
}

fn everything() -> KeyPrefix {
    KeyPrefix::resource(&resource())
}

fn value(name: &str, label: &str) -> Bytes {
    let metadata = json!({"name": name, "namespace": "ns", "uid": "u", "labels": {"l": label}});
    crate::object::encode(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
}

/// A store, the cache that follows it, and the tasks that end with them.
struct Fixture {
    store: Arc<dyn Store>,
    cache: Arc<Cache>,
    tasks: runtime::Tasks,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

impl Fixture {
    async fn new(overlay: impl Overlay, options: Options) -> Self {
        Self::over(MemoryStore::new(options), overlay).await
    }

    async fn over(store: Arc<dyn Store>, overlay: impl Overlay) -> Self {
        let tasks = runtime::Tasks::new();
        let cache = Cache::start(store.clone(), Arc::new(overlay), &tasks).await.unwrap();
        Self { store, cache, tasks }
    }

    async fn commit(&self, op: Op) -> Revision {
        let revision = self.store.commit(Txn { ops: vec![op], ..Txn::default() }).await.unwrap();
        self.cache.wait_for(revision, PATIENCE).await.unwrap();
        revision
    }

    async fn put(&self, cluster: &str, name: &str, label: &str) -> Revision {
        self.commit(Op::Put { key: key(cluster, name), value: value(name, label) }).await
    }

    async fn delete(&self, cluster: &str, name: &str) -> Revision {
        self.commit(Op::Delete { key: key(cluster, name) }).await
    }

    /// What a client sees after a revision.
    async fn watch(&self, scopes: &[Scope], after: Revision) -> Subscription {
        self.cache.watch(scopes, None, Audience::Client, after).await.unwrap()
    }

    fn names(&self, prefix: &KeyPrefix) -> Vec<String> {
        names(&self.cache.list(prefix, None, 0))
    }
}

fn names(listed: &Listed) -> Vec<String> {
    listed
        .objects
        .iter()
        .map(|object| object.key.as_str().replace("core/configmaps/", ""))
        .collect()
}

fn told(event: &Event) -> String {
    let side = |object: &Option<Arc<Object>>| match object {
        Some(object) => object.header.label("l").unwrap_or_default().to_owned(),
        None => "-".into(),
    };
    let (_, _, name) = event.key.parts();
    format!("{}: {name} {}>{}", event.revision, side(&event.previous), side(&event.current))
}

async fn take(subscription: &mut Subscription, count: usize) -> Vec<String> {
    let mut out = Vec::new();
    for _ in 0..count {
        let event = tokio::time::timeout(PATIENCE, subscription.next()).await.unwrap().unwrap();
        out.push(told(&event));
    }
    out
}

/// The object `virtual` in every logical cluster that has an object `owner`.
#[derive(Debug)]
struct Owned;

impl Owned {
    fn made(cluster: &str, owner: &Object) -> Arc<Object> {
        let value = value("virtual", "virtual");
        let key = key(cluster, "virtual");
        Arc::new(Object::new(key, &value, owner.created, 0, Origin::Virtual).unwrap())
    }
}

impl Overlay for Owned {
    fn object(&self, records: Slice<'_>, at: &Key) -> Option<Arc<Object>> {
        let (cluster, _, name) = at.parts();
        let owner = records.get(&key(cluster, "owner"))?;
        (name == "virtual").then(|| Self::made(cluster, owner))
    }

    fn range(&self, records: Slice<'_>, prefix: &KeyPrefix) -> Vec<Arc<Object>> {
        let owners = records.range(prefix).filter(|object| object.header.name() == "owner");
        owners.map(|owner| Self::made(owner.key.parts().0, owner)).collect()
    }

    fn dependents(&self, _records: Slice<'_>, at: &Key) -> Vec<Key> {
        let (cluster, _, name) = at.parts();
        if name == "owner" { vec![key(cluster, "virtual")] } else { Vec::new() }
    }
}

#[tokio::test(start_paused = true)]
async fn lists_are_pages_in_key_order_of_one_prefix() {
    let fixture = Fixture::new(NoOverlay, Options::default()).await;
    for (cluster, name) in [("b", "x"), ("a", "z"), ("a", "y"), ("ab", "w")] {
        fixture.put(cluster, name, "1").await;
    }
    assert_eq!(fixture.names(&everything()), ["a/ns/y", "a/ns/z", "ab/ns/w", "b/ns/x"]);
    let a = KeyPrefix::cluster(&resource(), &ClusterName::parse("a").unwrap());
    assert_eq!(fixture.names(&a), ["a/ns/y", "a/ns/z"]);
    let page = fixture.cache.list(&everything(), Some(&key("a", "y")), 2);
    assert_eq!((names(&page), page.remaining), (vec!["a/ns/z".into(), "ab/ns/w".into()], 1));
}

#[tokio::test(start_paused = true)]
async fn lists_at_a_revision_undo_what_came_later() {
    let fixture = Fixture::new(NoOverlay, Options::default()).await;
    fixture.put("a", "x", "1").await;
    let at = fixture.put("a", "y", "1").await;
    fixture.delete("a", "x").await;
    fixture.put("a", "w", "1").await;
    fixture.put("a", "y", "2").await;
    fixture.put("a", "y", "3").await;
    let then = fixture.cache.list_at(&everything(), None, 0, at).await.unwrap();
    assert_eq!(names(&then), ["a/ns/x", "a/ns/y"]);
    assert_eq!(then.objects[1].header.label("l"), Some("1"));
    let page = fixture.cache.list_at(&everything(), None, 1, at).await.unwrap();
    assert_eq!((names(&page), page.remaining), (vec!["a/ns/x".into()], 1));
    let future = fixture.cache.list_at(&everything(), None, 0, Revision(99)).await;
    assert!(matches!(future, Err(ReadError::Future { .. })));
    fixture.store.compact(Revision(5)).await.unwrap();
    let past = fixture.cache.list_at(&everything(), None, 0, at).await;
    assert!(matches!(past, Err(ReadError::Compacted { oldest: Revision(5) })));
}

#[tokio::test(start_paused = true)]
async fn watches_resume_where_they_were_and_see_their_scope_only() {
    let fixture = Fixture::new(NoOverlay, Options::default()).await;
    let from = fixture.put("a", "x", "1").await;
    fixture.put("a", "x", "2").await;
    fixture.put("b", "x", "2").await;
    let scope = Scope::Prefix(KeyPrefix::cluster(&resource(), &ClusterName::parse("a").unwrap()));
    let mut watch = fixture.watch(std::slice::from_ref(&scope), from).await;
    fixture.delete("a", "x").await;
    fixture.put("b", "y", "1").await;
    fixture.put("a", "z", "1").await;
    assert_eq!(take(&mut watch, 3).await, ["2: x 1>2", "4: x 2>-", "6: z ->1"]);
    assert!(watch.try_next().is_none());
    assert_eq!(watch.progress(), Some(Revision(6)));
    let one = Scope::Key(key("b", "y"));
    let mut watch = fixture.watch(&[one], from).await;
    assert_eq!(watch.progress(), None, "an event waits");
    assert_eq!(take(&mut watch, 1).await, ["5: y ->1"]);
}

#[tokio::test(start_paused = true)]
async fn a_filter_sees_both_sides_of_a_change() {
    let fixture = Fixture::new(NoOverlay, Options::default()).await;
    let wanted: Filter = Arc::new(|event: &Event| {
        let sides = [&event.previous, &event.current];
        sides.into_iter().flatten().any(|object| object.header.label("l") == Some("1"))
    });
    let scope = Scope::Prefix(everything());
    let (_, mut watch) =
        fixture.cache.list_and_watch(&everything(), &[scope], Some(&wanted), Audience::Client);
    fixture.put("a", "x", "1").await;
    fixture.put("a", "x", "2").await;
    fixture.put("a", "x", "3").await;
    fixture.put("a", "y", "1").await;
    assert_eq!(take(&mut watch, 3).await, ["1: x ->1", "2: x 1>2", "4: y ->1"]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_watcher_is_ended_and_no_other_is_held_up() {
    let fixture = Fixture::new(NoOverlay, Options::default()).await;
    let scope = Scope::Prefix(everything());
    let mut slow = fixture.watch(std::slice::from_ref(&scope), Revision(0)).await;
    let mut last = Revision(0);
    for round in 0..1100 {
        last = fixture.put("a", "x", &round.to_string()).await;
    }
    let mut seen = Revision(0);
    while let Some(event) = slow.next().await {
        assert_eq!(event.revision, seen.next());
        seen = event.revision;
    }
    assert!(seen < last && seen > Revision(900));
    let mut resumed = fixture.watch(std::slice::from_ref(&scope), seen).await;
    let rest = take(&mut resumed, usize::try_from(last.0 - seen.0).unwrap()).await;
    assert!(rest.last().unwrap().starts_with(&format!("{last}: x")));
}

#[tokio::test(start_paused = true)]
async fn what_memory_has_forgotten_comes_from_the_store() {
    let fixture = Fixture::new(NoOverlay, Options::default()).await;
    let first = fixture.put("a", "x", "1").await;
    let big = "b".repeat(1 << 20);
    for _ in 0..30 {
        let metadata = json!({"name": "big", "namespace": "ns"});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
            "data": {"b": big}});
        let value = crate::object::encode(&object);
        fixture.commit(Op::Put { key: key("a", "big"), value }).await;
    }
    let deleted = fixture.delete("a", "x").await;
    let scope = Scope::Key(key("a", "x"));
    let mut watch = fixture.watch(std::slice::from_ref(&scope), Revision(0)).await;
    let last = fixture.put("a", "x", "2").await;
    let expected =
        [format!("{first}: x ->1"), format!("{deleted}: x 1>-"), format!("{last}: x ->2")];
    assert_eq!(take(&mut watch, 3).await, expected);
    let then = fixture.cache.list_at(&everything(), None, 0, first).await.unwrap();
    assert_eq!(names(&then), ["a/ns/x"]);
}

#[tokio::test(start_paused = true)]
async fn virtual_objects_come_and_go_with_their_owner() {
    let fixture = Fixture::new(Owned, Options::default()).await;
    let scope = Scope::Prefix(everything());
    let mut watch = fixture.watch(std::slice::from_ref(&scope), Revision(0)).await;
    let hidden = key("a", "virtual");
    assert!(matches!(fixture.cache.slot(&hidden), Slot::Absent));
    let begun = fixture.put("a", "owner", "o").await;
    assert_eq!(fixture.names(&everything()), ["a/ns/owner", "a/ns/virtual"]);
    assert_eq!(take(&mut watch, 2).await, ["1: owner ->o", "1: virtual ->virtual"]);
    let slot = fixture.cache.slot(&hidden);
    assert_eq!(slot.expect(), Some(Expect::Absent));
    // The first write to it is a change, and a tombstone hides it.
    fixture.put("a", "virtual", "real").await;
    let tombstone = Op::Put { key: hidden.clone(), value: Bytes::new() };
    let gone = fixture.commit(tombstone).await;
    assert_eq!(take(&mut watch, 2).await, ["2: virtual virtual>real", "3: virtual real>-"]);
    assert_eq!(fixture.names(&everything()), ["a/ns/owner"]);
    assert_eq!(fixture.cache.slot(&hidden).expect(), Some(Expect::At(gone)));
    assert_eq!(fixture.cache.tombstones(), (gone, vec![hidden.clone()]));
    assert_eq!(fixture.cache.counts(), [("core/configmaps".into(), 1)], "what is stored and shown");
    fixture.delete("a", "virtual").await;
    fixture.delete("a", "owner").await;
    let expected = ["4: virtual ->virtual", "5: owner o>-", "5: virtual virtual>-"];
    assert_eq!(take(&mut watch, 3).await, expected);
    let then = fixture.cache.list_at(&everything(), None, 0, begun).await.unwrap();
    assert_eq!(names(&then), ["a/ns/owner", "a/ns/virtual"]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_shown_to_nobody_and_kept() {
    let fixture = Fixture::new(NoOverlay, Options::default()).await;
    fixture.commit(Op::Put { key: key("a", "x"), value: Bytes::from_static(b"{no") }).await;
    assert!(fixture.names(&everything()).is_empty());
    assert!(matches!(fixture.cache.slot(&key("a", "x")), Slot::Unreadable));
    assert_eq!(fixture.cache.slot(&key("a", "x")).expect(), None);
    assert_eq!(fixture.cache.records(&everything()).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_starts_late_has_everything() {
    let fixture = Fixture::new(Owned, Options::default()).await;
    fixture.put("a", "owner", "o").await;
    fixture.put("b", "x", "1").await;
    let tasks = runtime::Tasks::new();
    let late = Cache::start(fixture.store.clone(), Arc::new(Owned), &tasks).await.unwrap();
    let listed = late.list(&everything(), None, 0);
    assert_eq!(names(&listed), ["a/ns/owner", "a/ns/virtual", "b/ns/x"]);
    assert_eq!(listed.revision, Revision(2));
    tasks.cancel();
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u8),
    Delete(u8),
    Tombstone(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..6_u8, 0..3_u8).prop_map(|(name, label)| Step::Put(name, label)),
        (0..6_u8).prop_map(Step::Delete),
        (4..6_u8).prop_map(Step::Tombstone),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A watch replayed over the state of its start gives the state at every later revision, and
    /// lists at old revisions are what lists were then; with delayed delivery, too.
    #[test]
    fn events_explain_states(steps in prop::collection::vec(step(), 1..40), delayed: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time().build().unwrap();
        runtime.block_on(async {
            tokio::time::pause();
            let watch_delay = if delayed { Duration::from_millis(1) } else { Duration::ZERO };
            let fixture = Fixture::new(Owned, Options { watch_delay, ..Options::default() }).await;
            let scope = Scope::Prefix(everything());
            let mut watch = fixture.watch(std::slice::from_ref(&scope), Revision(0)).await;
            let mut states = Vec::new();
            for step in steps {
                let name = |index: u8| ["a", "b", "c", "d", "owner", "virtual"][usize::from(index)];
                let revision = match step {
                    Step::Put(at, label) => fixture.put("a", name(at), &label.to_string()).await,
                    Step::Delete(at) => fixture.delete("a", name(at)).await,
                    Step::Tombstone(at) => {
                        let op = Op::Put { key: key("a", name(at)), value: Bytes::new() };
                        fixture.commit(op).await
                    }
                };
                states.push((revision, fixture.cache.list(&everything(), None, 0)));
            }
            let shown = |listed: &Listed| {
                let objects = listed.objects.iter();
                objects.map(|o| (o.key.clone(), o.json())).collect::<Vec<_>>()
            };
            let mut replayed = std::collections::BTreeMap::new();
            let mut waiting = watch.try_next();
            for (revision, state) in &states {
                while let Some(event) = waiting.take_if(|event| event.revision <= *revision) {
                    match &event.current {
                        Some(object) => replayed.insert(event.key.clone(), object.json()),
                        None => replayed.remove(&event.key),
                    };
                    waiting = watch.try_next();
                }
                let replayed = replayed.clone().into_iter().collect::<Vec<_>>();
                assert_eq!(replayed, shown(state), "at {revision}");
                let again = fixture.cache.list_at(&everything(), None, 0, *revision).await.unwrap();
                assert_eq!(shown(&again), shown(state), "again at {revision}");
            }
        });
    }
}

#[tokio::test(start_paused = true)]
async fn guards_are_compared_by_what_the_cache_showed() {
    let fixture = Fixture::new(NoOverlay, Options::default()).await;
    fixture.put("a", "owner", "1").await;
    let expect = fixture.cache.slot(&key("a", "owner")).expect().unwrap();
    fixture.put("a", "owner", "2").await;
    let compares = vec![Compare { key: key("a", "owner"), expect }];
    let ops = vec![Op::Put { key: key("a", "x"), value: value("x", "1") }];
    let refused = fixture.store.commit(Txn { compares, ops, ..Txn::default() }).await;
    assert!(matches!(refused, Err(crate::CommitError::Conflict { .. })));
}

#[tokio::test(start_paused = true)]
async fn recent_events_are_let_go_when_they_are_old() {
    let fixture = Fixture::new(NoOverlay, Options::default()).await;
    let first = fixture.put("a", "x", "1").await;
    fixture.put("a", "x", "2").await;
    let recent = || fixture.cache.inner.read().state.recent_events().len();
    tokio::time::sleep(Duration::from_secs(60)).await;
    fixture.put("a", "x", "3").await;
    assert_eq!(recent(), 3);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(recent(), 1, "two are old by now");
    // What has gone from memory is in the store's history.
    let scope = [Scope::Prefix(everything())];
    let mut resumed = fixture.watch(&scope, first).await;
    assert_eq!(take(&mut resumed, 2).await, ["2: x 1>2", "3: x 2>3"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(recent(), 0);
    fixture.put("a", "x", "4").await;
    assert_eq!((recent(), take(&mut resumed, 1).await), (1, vec!["4: x 3>4".to_owned()]));
    // They take their room with them.
    let room = || fixture.cache.inner.read().state.recent_events().capacity();
    for round in 5..200 {
        fixture.put("a", "x", &round.to_string()).await;
    }
    assert!(room() >= 195);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!((recent(), room()), (0, 0));
}
