use machinery::{ClusterName, GroupResource, ObjectKey};
use serde_json::json;
use store::cache::NoOverlay;
use store::{MemoryStore, Op, Store, Txn};

use super::*;

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

struct World {
    store: Arc<dyn Store>,
    cache: Arc<Cache>,
    tasks: runtime::Tasks,
}

fn resource() -> GroupResource {
    GroupResource::new("", "configmaps")
}

fn prefix(cluster: &str) -> KeyPrefix {
    KeyPrefix::cluster(&resource(), &ClusterName::parse(cluster).unwrap())
}

impl World {
    async fn new() -> Self {
        let store: Arc<dyn Store> = MemoryStore::new(Default::default());
        let tasks = runtime::Tasks::new();
        let cache = Cache::start(store.clone(), Arc::new(NoOverlay), &tasks).await.unwrap();
        Self { store, cache, tasks }
    }

    /// Writes an object with a UID, or removes it; waits until the cache has that.
    async fn put(&self, cluster: &str, name: &str, uid: Option<&str>) {
        let cluster = ClusterName::parse(cluster).unwrap();
        let key = Key::new(&resource(), &ObjectKey::new(cluster, "default", name));
        let op = match uid {
            Some(uid) => {
                let value = json!({"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": name, "namespace": "default", "uid": uid}});
                Op::Put { key, value: store::object::encode(&value) }
            }
            None => Op::Delete { key },
        };
        let revision = self.store.commit(Txn { ops: vec![op], ..Txn::default() }).await.unwrap();
        self.cache.wait_for(revision, PATIENCE).await.unwrap();
    }

    #[track_caller]
    fn find(&self, uids: &mut Uids, cluster: &str, uid: &str, expect: Option<&str>) {
        let found = uids.find(&self.cache, &prefix(cluster), uid, Instant::now());
        let name = found.as_ref().map(|object| object.header.name());
        assert_eq!(name, expect, "{cluster} {uid}");
    }
}

#[tokio::test]
async fn a_list_is_followed() {
    let world = World::new().await;
    world.put("a", "x", Some("1")).await;
    world.put("b", "y", Some("2")).await;
    let mut uids = Uids::default();
    world.find(&mut uids, "a", "1", Some("x"));
    world.find(&mut uids, "a", "2", None);
    // What comes, goes, and is made again.
    world.put("a", "z", Some("3")).await;
    world.put("a", "x", None).await;
    world.find(&mut uids, "a", "3", Some("z"));
    world.find(&mut uids, "a", "1", None);
    world.put("a", "x", Some("4")).await;
    world.find(&mut uids, "a", "4", Some("x"));
    world.put("a", "x", Some("5")).await;
    world.find(&mut uids, "a", "4", None);
    world.find(&mut uids, "a", "5", Some("x"));
    assert_eq!(uids.lists.len(), 1);
    // More than a watch holds back.
    for number in 0..5_000 {
        world.put("a", "x", Some(&format!("n{number}"))).await;
    }
    world.find(&mut uids, "a", "5", None);
    world.find(&mut uids, "a", "n4999", Some("x"));
    world.tasks.shutdown(PATIENCE).await;
}

#[tokio::test]
async fn lists_are_kept_for_a_while_and_for_so_many_objects() {
    let world = World::new().await;
    world.put("a", "x", Some("1")).await;
    let (mut uids, now) = (Uids::default(), Instant::now());
    for (second, cluster) in [(0, "a"), (1, "b"), (2, "c")] {
        let now = now + std::time::Duration::from_secs(second);
        uids.find(&world.cache, &prefix(cluster), "1", now);
    }
    assert_eq!((uids.lists.len(), uids.due()), (3, Some(now + KEEP)));
    uids.make_room(MOST);
    assert_eq!(uids.lists.len(), 2, "the empty ones take no room");
    uids.find(&world.cache, &prefix("a"), "1", now);
    uids.forget(now + KEEP);
    assert_eq!(uids.lists.len(), 2);
    uids.forget(now + KEEP * 2);
    assert_eq!((uids.lists.len(), uids.due()), (0, None));
    world.tasks.shutdown(PATIENCE).await;
}
