//! Decisions, over a cache that holds roles and bindings.

use std::time::Duration;

use machinery::ObjectKey;
use serde_json::{Value, json};
use store::{Key, MemoryStore, Op, Store, Txn};

use super::*;
use crate::auth::rbac::RoleKind;
use crate::clusters::bootstrap::{self, Kind};
use crate::clusters::record;
use crate::clusters::virtuals::Virtuals;

/// An authorizer over a store, and what writes to it.
struct Fixture {
    store: Arc<dyn Store>,
    cache: Arc<Cache>,
    authorizer: Authorizer,
    tasks: runtime::Tasks,
}

impl Fixture {
    /// With `root`, and logical clusters of these names and owners.
    async fn new(clusters: &[(&str, &str)]) -> Self {
        let store: Arc<dyn Store> = MemoryStore::new(store::memory::Options::default());
        let tasks = runtime::Tasks::new();
        let overlay =
            Arc::new(Virtuals { ca: "".into(), port: 1, rv_base: 0, api_services: Vec::new() });
        let cache = Cache::start(store.clone(), overlay, &tasks).await.unwrap();
        let authorizer = Authorizer::new(cache.clone());
        let fixture = Self { store, cache, authorizer, tasks };
        for (name, owner) in [("root", "")].iter().chain(clusters) {
            let name = ClusterName::parse(name).unwrap();
            let uid = uuid::Uuid::new_v4().to_string();
            let owner = Some(*owner).filter(|owner| !owner.is_empty());
            let object = record::new(&name, &uid, jiff::Timestamp::UNIX_EPOCH, owner);
            let value = store::object::encode(&object);
            fixture.commit(Op::Put { key: record::key(&name), value }).await;
        }
        fixture
    }

    async fn commit(&self, op: Op) {
        let txn = Txn { ops: vec![op], ..Txn::default() };
        let revision = self.store.commit(txn).await.unwrap();
        self.cache.wait_for(revision, Duration::from_secs(10)).await.unwrap();
    }

    fn key(kind: Kind, cluster: &str, namespace: &str, name: &str) -> Key {
        let cluster = ClusterName::parse(cluster).unwrap();
        Key::new(&kind.resource(), &ObjectKey::new(cluster, namespace, name))
    }

    async fn put(&self, kind: Kind, cluster: &str, mut object: Value) {
        object["apiVersion"] = json!("rbac.authorization.k8s.io/v1");
        object["kind"] = json!(kind.name());
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let key = Self::key(kind, cluster, text("namespace"), text("name"));
        self.commit(Op::Put { key, value: store::object::encode(&object) }).await;
    }

    async fn role(&self, cluster: &str, name: &str, labels: Value, rules: Value) {
        let metadata = json!({"name": name, "labels": labels});
        let object = json!({"metadata": metadata, "rules": rules});
        self.put(Kind::ClusterRole, cluster, object).await;
    }

    async fn bind(&self, cluster: &str, name: &str, role: &str, subjects: Value) {
        let object = json!({
            "metadata": {"name": name},
            "roleRef": {"kind": "ClusterRole", "name": role},
            "subjects": subjects,
        });
        self.put(Kind::ClusterRoleBinding, cluster, object).await;
    }

    async fn delete(&self, kind: Kind, cluster: &str, name: &str) {
        self.commit(Op::Delete { key: Self::key(kind, cluster, "", name) }).await;
    }

    /// `get pods.group/sub name namespace`, or `get /path`.
    fn ask(&self, user: &UserInfo, cluster: &str, text: &str) -> Decision {
        let words: Vec<&str> = text.split(' ').collect();
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        let scope = match cluster {
            "*" => ClusterScope::All,
            name => ClusterScope::One(ClusterName::parse(name).unwrap()),
        };
        let (verb, what) = (word(0), word(1));
        let attributes = if what.starts_with('/') {
            Attributes::Path { verb, path: what }
        } else {
            let (what, subresource) = what.split_once('/').unwrap_or((what, ""));
            let (resource, group) = what.split_once('.').unwrap_or((what, ""));
            let (name, namespace) = (word(2), word(3));
            Attributes::Resource { verb, group, resource, name, subresource, namespace }
        };
        self.authorizer.authorize(user, &scope, &attributes)
    }

    #[track_caller]
    fn check(&self, user: &UserInfo, cluster: &str, text: &str, allowed: bool) {
        let decision = self.ask(user, cluster, text);
        assert_eq!(decision.is_allowed(), allowed, "{}: {text} in {cluster}", user.name);
    }

    async fn end(self) {
        self.tasks.shutdown(Duration::from_secs(10)).await;
    }
}

fn user(name: &str) -> UserInfo {
    UserInfo::known(name, &[])
}

fn at_home(name: &str, cluster: &str) -> UserInfo {
    UserInfo { home: Some(ClusterName::parse(cluster).unwrap()), ..user(name) }
}

fn named(name: &str) -> Value {
    json!([{"kind": "User", "name": name}])
}

#[tokio::test]
async fn masters_may_everything_where_they_are_known() {
    let fixture = Fixture::new(&[("a", "")]).await;
    let admin = UserInfo::known("admin", &[MASTERS]);
    let inside = UserInfo { groups: admin.groups.clone(), ..at_home("x", "a") };
    for cluster in ["root", "a", "nowhere", "*"] {
        fixture.check(&admin, cluster, "delete secrets x ns", true);
        fixture.check(&inside, cluster, "delete secrets x ns", cluster == "a");
    }
    fixture.check(&UserInfo::known("eve", &["system:master"]), "a", "get pods", false);
    fixture.end().await;
}

#[tokio::test]
async fn public_paths_are_for_anybody_and_tell_nothing() {
    let fixture = Fixture::new(&[("a", "")]).await;
    for cluster in ["root", "a", "nowhere", "*"] {
        fixture.check(&UserInfo::anonymous(), cluster, "get /healthz", true);
        fixture.check(&UserInfo::anonymous(), cluster, "get /api", false);
        fixture.check(&UserInfo::anonymous(), cluster, "list pods", false);
    }
    // What the bootstrap policy gives to everybody counts in root, and for those of the place.
    fixture.check(&user("eve"), "root", "get /api", true);
    fixture.check(&user("eve"), "a", "get /api", false);
    fixture.check(&user("eve"), "a", "create selfsubjectaccessreviews.authorization.k8s.io", false);
    fixture.check(&at_home("eve", "a"), "a", "get /api", true);
    fixture.check(&at_home("eve", "a"), "root", "get /api", false);
    fixture.end().await;
}

#[tokio::test]
async fn bindings_count_in_their_logical_cluster_and_namespace_alone() {
    let fixture = Fixture::new(&[("a", ""), ("b", "")]).await;
    fixture.bind("a", "v", "view", named("eve")).await;
    let eve = user("eve");
    fixture.check(&eve, "a", "list pods  ns", true);
    fixture.check(&eve, "a", "list secrets  ns", false);
    // Whoever is named there has what everybody has there, too.
    fixture.check(&eve, "a", "get /apis", true);
    for other in ["b", "root", "nowhere"] {
        fixture.check(&eve, other, "list pods  ns", false);
    }
    let binding = json!({
        "metadata": {"name": "e", "namespace": "n1"},
        "roleRef": {"kind": "ClusterRole", "name": "edit"},
        "subjects": [
            {"kind": "ServiceAccount", "name": "s"},
            {"kind": "ServiceAccount", "name": "t", "namespace": "n2"},
            {"kind": "Group", "name": "devs"},
        ],
    });
    fixture.put(Kind::RoleBinding, "b", binding).await;
    for (name, allowed) in [("n1:s", true), ("n2:t", true), ("n2:s", false), ("n1:t", false)] {
        let account = at_home(&format!("system:serviceaccount:{name}"), "b");
        fixture.check(&account, "b", "delete secrets x n1", allowed);
        fixture.check(&account, "b", "delete secrets x n2", false);
        fixture.check(&account, "b", "get /metrics", false);
    }
    let dev = UserInfo::known("dev", &["devs"]);
    fixture.check(&dev, "b", "delete secrets x n1", true);
    fixture.check(&dev, "a", "delete secrets x n1", false);
    fixture.end().await;
}

#[tokio::test]
async fn names_of_objects_are_pinned() {
    let fixture = Fixture::new(&[("a", "")]).await;
    let rules = json!([{
        "verbs": ["get", "list", "watch", "create"], "apiGroups": [""],
        "resources": ["configmaps"], "resourceNames": ["mine"],
    }]);
    fixture.role("a", "mine", json!({}), rules).await;
    fixture.bind("a", "mine", "mine", named("eve")).await;
    let eve = user("eve");
    fixture.check(&eve, "a", "get configmaps mine ns", true);
    fixture.check(&eve, "a", "list configmaps mine ns", true);
    for text in ["get configmaps other ns", "list configmaps  ns", "create configmaps  ns"] {
        fixture.check(&eve, "a", text, false);
    }
    fixture.end().await;
}

#[tokio::test]
async fn a_revoked_binding_is_refused_at_once() {
    let fixture = Fixture::new(&[("a", "")]).await;
    let eve = user("eve");
    for _ in 0..20 {
        fixture.bind("a", "v", "view", named("eve")).await;
        fixture.check(&eve, "a", "list pods", true);
        fixture.bind("a", "v", "view", named("bob")).await;
        fixture.check(&eve, "a", "list pods", false);
        fixture.check(&user("bob"), "a", "list pods", true);
        fixture.delete(Kind::ClusterRoleBinding, "a", "v").await;
        fixture.check(&user("bob"), "a", "list pods", false);
    }
    // So is what a role no longer has, and what went with its logical cluster.
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    fixture.role("a", "r", json!({}), rules).await;
    fixture.bind("a", "r", "r", named("eve")).await;
    fixture.check(&eve, "a", "get pods", true);
    fixture.role("a", "r", json!({}), json!([])).await;
    fixture.check(&eve, "a", "get pods", false);
    fixture.bind("a", "r", "cluster-admin", named("eve")).await;
    fixture.check(&eve, "a", "get pods", true);
    let key = record::key(&ClusterName::parse("a").unwrap());
    fixture.commit(Op::Delete { key }).await;
    fixture.check(&eve, "a", "get pods", false);
    fixture.end().await;
}

#[tokio::test]
async fn the_gate_of_a_logical_cluster() {
    let fixture = Fixture::new(&[("a", ""), ("b", "")]).await;
    let eve = UserInfo::known("eve", &["devs"]);
    // Bindings to groups of everybody open nothing to those who are known elsewhere.
    let broad = ["system:authenticated", "system:unauthenticated", "system:serviceaccounts"];
    let broad = broad.map(|name| json!({"kind": "Group", "name": name}));
    fixture.bind("a", "everybody", "cluster-admin", json!(broad)).await;
    fixture.check(&eve, "a", "get pods", false);
    fixture.check(&UserInfo::anonymous(), "a", "get pods", false);
    fixture.check(&at_home("s", "a"), "a", "get pods", true);
    // Root's policy opens a logical cluster; what may be done there is for that to say.
    let rules = json!([{
        "verbs": ["access"], "apiGroups": ["core.kcp.io"],
        "resources": ["logicalclusters"], "resourceNames": ["a"],
    }]);
    fixture.role("root", "to-a", json!({}), rules).await;
    fixture.bind("root", "to-a", "to-a", json!([{"kind": "Group", "name": "devs"}])).await;
    fixture.check(&eve, "a", "get pods", true);
    fixture.check(&eve, "b", "get /api", false);
    fixture.delete(Kind::ClusterRoleBinding, "root", "to-a").await;
    fixture.check(&eve, "a", "get pods", false);
    // So does a binding that names the caller, even one in a namespace.
    let binding = json!({
        "metadata": {"name": "e", "namespace": "n"},
        "roleRef": {"kind": "Role", "name": "none"},
        "subjects": [{"kind": "Group", "name": "devs"}],
    });
    fixture.put(Kind::RoleBinding, "b", binding).await;
    fixture.check(&eve, "b", "get /api", true);
    fixture.check(&eve, "b", "get pods  n", false);
    fixture.end().await;
}

#[tokio::test]
async fn who_may_create_a_logical_cluster_may_begin_it() {
    let fixture = Fixture::new(&[("a", "eve")]).await;
    let (eve, bob) = (user("eve"), user("bob"));
    let rules = json!([{
        "verbs": ["create"], "apiGroups": ["core.kcp.io"], "resources": ["logicalclusters"],
    }]);
    fixture.role("root", "maker", json!({}), rules).await;
    fixture.bind("root", "bob", "maker", named("bob")).await;
    assert!(matches!(fixture.ask(&bob, "new", "get /api"), Decision::Allow(Grant::Creator)));
    fixture.check(&eve, "new", "get /api", false);
    fixture.check(&bob, "a", "get /api", false);
    fixture.check(&bob, "system:new", "get /api", false);
    fixture.check(&at_home("bob", "a"), "new", "get /api", false);
    // The owner administers it, as long as the binding for that is not changed or deleted.
    fixture.check(&eve, "a", "delete secrets x ns", true);
    let reason = "RBAC: allowed by ClusterRoleBinding \"logicalcluster-admin\" of ClusterRole \
                  \"cluster-admin\" to User \"eve\"";
    assert_eq!(fixture.ask(&eve, "a", "get pods").reason(), reason);
    let key = Fixture::key(Kind::ClusterRoleBinding, "a", "", bootstrap::OWNER_BINDING);
    assert!(fixture.cache.get(&key).is_some());
    fixture.commit(Op::Put { key: key.clone(), value: bytes::Bytes::new() }).await;
    assert!(fixture.cache.get(&key).is_none());
    fixture.check(&eve, "a", "get pods", false);
    fixture.end().await;
}

#[tokio::test]
async fn all_logical_clusters_at_once() {
    let fixture = Fixture::new(&[("a", "")]).await;
    let eve = user("eve");
    let rule = |verbs: &[&str], group: &str, resource: &str| json!({"verbs": verbs, "apiGroups": [group], "resources": [resource]});
    let pods = rule(&["list", "watch"], "", "pods");
    fixture.role("root", "pods", json!({}), json!([pods])).await;
    fixture.bind("root", "pods", "pods", named("eve")).await;
    fixture.check(&eve, "root", "list pods", true);
    fixture.check(&eve, "*", "list pods", false);
    let wild = rule(&["wildcard"], "core.kcp.io", "logicalclusters/content");
    fixture.role("root", "wild", json!({}), json!([wild])).await;
    fixture.bind("root", "wild", "wild", named("eve")).await;
    fixture.check(&eve, "*", "list pods", true);
    fixture.check(&eve, "*", "watch pods  ns", true);
    fixture.check(&eve, "*", "get /apis", true);
    fixture.check(&eve, "*", "list secrets", false);
    fixture.check(&eve, "a", "list pods", false);
    // Those of other logical clusters say nothing of this.
    fixture.bind("a", "eve", "cluster-admin", named("bob")).await;
    fixture.check(&user("bob"), "*", "list pods", false);
    fixture.check(&at_home("eve", "root"), "*", "list pods", false);
    fixture.end().await;
}

#[tokio::test]
async fn labelled_roles_are_collected() {
    let fixture = Fixture::new(&[("a", ""), ("b", "")]).await;
    let eve = user("eve");
    fixture.bind("a", "v", "view", named("eve")).await;
    fixture.bind("b", "v", "view", named("eve")).await;
    fixture.bind("a", "admin", "admin", named("bob")).await;
    let rules = json!([{"verbs": ["get"], "apiGroups": ["x.io"], "resources": ["things"]}]);
    let label = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    fixture.check(&eve, "a", "get things.x.io", false);
    fixture.role("a", "things", label, rules.clone()).await;
    fixture.check(&eve, "a", "get things.x.io", true);
    fixture.check(&user("bob"), "a", "get things.x.io", true);
    fixture.check(&eve, "a", "list pods", true);
    fixture.check(&eve, "b", "get things.x.io", false);
    fixture.role("a", "things", json!({}), rules.clone()).await;
    fixture.check(&eve, "a", "get things.x.io", false);
    // Roles that collect from each other end; rules that stand in them by hand don't count.
    let circle = |name: &str, from: &str| {
        json!({
            "metadata": {"name": name, "labels": {"circle": name}},
            "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "aggregationRule": {"clusterRoleSelectors": [
                {"matchLabels": {"circle": from}},
                {"matchExpressions": [{"key": "extra", "operator": "Exists"}]},
            ]},
        })
    };
    fixture.put(Kind::ClusterRole, "a", circle("one", "two")).await;
    fixture.put(Kind::ClusterRole, "a", circle("two", "one")).await;
    fixture.role("a", "things", json!({"extra": ""}), rules).await;
    fixture.bind("a", "c", "one", named("eve")).await;
    fixture.check(&eve, "a", "get things.x.io", true);
    fixture.check(&eve, "a", "get secrets", false);
    fixture.end().await;
}

#[tokio::test]
async fn what_is_missing_is_told() {
    let fixture = Fixture::new(&[("a", "")]).await;
    let eve = user("eve");
    fixture.bind("a", "one", "none", named("eve")).await;
    let text = "RBAC: clusterrole.rbac.authorization.k8s.io \"none\" not found";
    assert_eq!(fixture.ask(&eve, "a", "get pods").reason(), text);
    fixture.bind("a", "two", "nil", named("eve")).await;
    fixture.bind("a", "three", "none", named("eve")).await;
    let text = "RBAC: [clusterrole.rbac.authorization.k8s.io \"none\" not found, \
                clusterrole.rbac.authorization.k8s.io \"nil\" not found]";
    assert_eq!(fixture.ask(&eve, "a", "get /metrics").reason(), text);
    let asked = Attributes::Path { verb: "get", path: "/metrics" };
    let scope = ClusterScope::One(ClusterName::parse("a").unwrap());
    let error = fixture.authorizer.permit(&eve, &scope, &asked).unwrap_err();
    let expected = format!("forbidden: User \"eve\" cannot get path \"/metrics\": {text}");
    assert_eq!(error.message(), expected);
    // A role of the bootstrap policy that was deleted is missing, too.
    let key = Fixture::key(Kind::ClusterRole, "a", "", "view");
    fixture.commit(Op::Put { key, value: bytes::Bytes::new() }).await;
    let a = ClusterName::parse("a").unwrap();
    assert!(fixture.authorizer.role(&a, RoleKind::ClusterRole, "", "view").is_none());
    assert!(fixture.authorizer.role(&a, RoleKind::ClusterRole, "", "edit").is_some());
    fixture.end().await;
}

#[tokio::test]
async fn rules_of_a_caller_are_listed() {
    let fixture = Fixture::new(&[("a", "")]).await;
    fixture.bind("a", "x", "system:monitoring", named("eve")).await;
    let scope = ClusterScope::One(ClusterName::parse("a").unwrap());
    let (rules, missing) = fixture.authorizer.rules(&user("eve"), &scope, "default");
    assert!(missing.is_empty());
    // Basic user, discovery, public information, and monitoring.
    assert_eq!(rules.len(), 4);
    let (rules, _) = fixture.authorizer.rules(&user("bob"), &scope, "default");
    assert!(rules.is_empty(), "those who may not come in have none");
    fixture.end().await;
}

/// Without optimization, and on a busy machine; a few microseconds are what a server takes.
#[tokio::test]
async fn a_decision_is_cheap() {
    let fixture = Fixture::new(&[("a", "")]).await;
    for n in 0..10 {
        fixture.bind("a", &format!("b{n}"), "view", named("eve")).await;
    }
    let (eve, admin) = (user("eve"), UserInfo::known("admin", &[MASTERS]));
    for (who, text) in
        [(&eve, "list pods  ns"), (&eve, "delete secrets x ns"), (&admin, "list pods  ns")]
    {
        const ROUNDS: u32 = 2000;
        let start = tokio::time::Instant::now();
        for _ in 0..ROUNDS {
            std::hint::black_box(fixture.ask(who, "a", text));
        }
        let each = start.elapsed() / ROUNDS;
        assert!(each < Duration::from_micros(500), "{} {text}: {each:?}", who.name);
    }
    fixture.end().await;
}

/// Two at a time: a policy that is made while its records change is not kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_is_made_during_a_change_is_not_kept() {
    let fixture = Arc::new(Fixture::new(&[("a", "")]).await);
    let reader = fixture.clone();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = stop.clone();
    let reading = std::thread::spawn(move || {
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            std::hint::black_box(reader.ask(&user("eve"), "a", "list pods"));
        }
    });
    for _ in 0..300 {
        fixture.bind("a", "v", "view", named("eve")).await;
        fixture.check(&user("eve"), "a", "list pods", true);
        fixture.delete(Kind::ClusterRoleBinding, "a", "v").await;
        fixture.check(&user("eve"), "a", "list pods", false);
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    reading.join().unwrap();
}
