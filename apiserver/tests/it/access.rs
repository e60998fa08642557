//! Who may do what: tenants with certificates, roles and bindings, reviews of access.

use http::Method;
use serde_json::{Value, json};

use crate::authority::{Authority, Pair};
use crate::client::{Answer, Ask, Hub, Who, ask_over, connect_by, pem};
use crate::deeds::eventually;

const RBAC: &str = "apis/rbac.authorization.k8s.io/v1";
const CLUSTERS: &str = "/clusters/root/apis/core.kcp.io/v1alpha1/logicalclusters";

/// A server that knows people by the certificates of an authority of theirs.
struct Town {
    hub: Hub,
    people: Authority,
    _folder: tempfile::TempDir,
}

impl Town {
    async fn new() -> Self {
        let (people, folder) = (Authority::new(), tempfile::tempdir().unwrap());
        let options = people.trusted(folder.path());
        let hub = Hub::start_with(|server| server.auth(options.clone())).await;
        Self { hub, people, _folder: folder }
    }

    fn person(&self, name: &str, groups: &[&str]) -> Pair {
        self.people.person(name, groups)
    }

    async fn ask(&self, who: &Pair, ask: Ask) -> Answer {
        let ca = pem(self.hub.kubeconfig(), "certificate-authority-data");
        let stream = connect_by(self.hub.address(), &ca, Some(who), b"h2").await;
        ask_over(stream, &ask).await
    }

    async fn get(&self, who: &Pair, path: &str) -> Answer {
        self.ask(who, Ask::get(path)).await
    }

    async fn post(&self, who: &Pair, path: &str, body: Value) -> Answer {
        self.ask(who, Ask::new(Method::POST, path).json(&body)).await
    }

    async fn admin(&self, method: Method, path: &str, body: Value) -> Value {
        let answer = self.hub.admin(Ask::new(method, path).json(&body)).await;
        assert!(answer.status.is_success(), "{path}: {answer:?}");
        answer.json()
    }

    /// Gives a ClusterRole to a user.
    async fn bind(&self, cluster: &str, name: &str, role: &str, user: &str) {
        let path = format!("/clusters/{cluster}/{RBAC}/clusterrolebindings");
        self.admin(Method::POST, &path, binding(name, role, user)).await;
    }

    async fn role(&self, cluster: &str, name: &str, rules: Value) {
        let path = format!("/clusters/{cluster}/{RBAC}/clusterroles");
        let body = json!({"metadata": {"name": name}, "rules": rules});
        self.admin(Method::POST, &path, body).await;
    }

    /// People in `makers` may create logical clusters.
    async fn let_makers_create(&self) {
        let rules = json!([{
            "verbs": ["create"], "apiGroups": ["core.kcp.io"], "resources": ["logicalclusters"],
        }]);
        self.role("root", "makers", rules).await;
        let mut body = binding("makers", "makers", "");
        body["subjects"] = json!([{"kind": "Group", "name": "makers"}]);
        let path = format!("/clusters/root/{RBAC}/clusterrolebindings");
        self.admin(Method::POST, &path, body).await;
    }
}

fn binding(name: &str, role: &str, user: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": user}],
    })
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn who_creates_a_logical_cluster_administers_it_alone() {
    let town = Town::new().await;
    town.let_makers_create().await;
    let (eve, bob) = (town.person("eve", &["makers"]), town.person("bob", &["makers"]));
    let maps = "/clusters/eves/api/v1/namespaces/default/configmaps";
    // Before it exists it can be discovered, and begun.
    assert_eq!(town.get(&eve, "/clusters/eves/apis").await.status, 200);
    let text = town.get(&eve, &format!("{maps}/a")).await.fails(404, "NotFound");
    assert_eq!(text, "logicalclusters.core.kcp.io \"eves\" not found");
    let made = town.post(&eve, maps, json!({"metadata": {"name": "a"}})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let record = town.hub.get(&format!("{CLUSTERS}/eves")).await.json();
    assert_eq!(record["spec"]["owner"], "eve");
    // The very next request finds her its administrator.
    assert_eq!(town.get(&eve, "/clusters/eves/api/v1/secrets").await.status, 200);
    assert_eq!(town.get(&eve, &format!("{maps}/a")).await.status, 200);
    // Others learn nothing, not even whether it is there.
    for path in ["api/v1/secrets", "apis", "openapi/v2", "api/v1/namespaces/default/configmaps/a"] {
        let seen = town.get(&bob, &format!("/clusters/eves/{path}")).await;
        let text = seen.fails(403, "Forbidden");
        assert!(text.contains("User \"bob\" cannot "), "{text}");
        let carol = town.person("carol", &[]);
        let there = town.get(&carol, &format!("/clusters/eves/{path}")).await;
        let nowhere = town.get(&carol, &format!("/clusters/none/{path}")).await;
        assert_eq!(there.json(), nowhere.json());
    }
    let answer = town.post(&bob, maps, json!({"metadata": {"name": "b"}})).await;
    answer.fails(403, "Forbidden");
    assert_eq!(town.get(&bob, "/clusters/eves/version").await.status, 200);
    // She shares it, and then gives it away.
    let bindings = format!("/clusters/eves/{RBAC}/clusterrolebindings");
    let shown = town.get(&eve, &format!("{bindings}/logicalcluster-admin")).await.json();
    assert_eq!(shown["subjects"][0]["name"], "eve");
    let shared = town.post(&eve, &bindings, binding("bob", "admin", "bob")).await;
    assert_eq!(shared.status, 201, "{shared:?}");
    let list = town.get(&bob, "/clusters/eves/api/v1/namespaces/default/configmaps").await;
    assert_eq!(list.status, 200, "{list:?}");
    let gone = Ask::new(Method::DELETE, &format!("{bindings}/logicalcluster-admin"));
    assert_eq!(town.ask(&eve, gone).await.status, 200);
    town.get(&eve, "/clusters/eves/apis").await.fails(403, "Forbidden");
    let left = town.hub.get(&bindings).await.json();
    assert!(names(&left).contains(&"bob") && !names(&left).contains(&"logicalcluster-admin"));
    town.hub.shutdown().await;
}

#[tokio::test]
async fn the_server_says_who_owns_a_logical_cluster() {
    let town = Town::new().await;
    town.let_makers_create().await;
    let eve = town.person("eve", &["makers"]);
    let body = json!({"metadata": {"name": "x"}, "spec": {"owner": "bob"}});
    let made = town.post(&eve, CLUSTERS, body).await;
    assert_eq!((made.status.as_u16(), &made.json()["spec"]["owner"]), (201, &json!("eve")));
    let body = json!({"metadata": {"name": "y"}, "spec": {"owner": "bob"}});
    let made = town.admin(Method::POST, CLUSTERS, body).await;
    assert_eq!(made["spec"], json!({}));
    let path = format!("{CLUSTERS}/x");
    let patch = Ask::new(Method::PATCH, &path)
        .header("content-type", "application/merge-patch+json")
        .body(r#"{"spec":{"owner":"bob"}}"#);
    assert_eq!(town.hub.admin(patch).await.json()["spec"]["owner"], "eve");
    // Nothing in root follows from owning: that is for root's policy to give.
    town.get(&eve, &path).await.fails(403, "Forbidden");
    town.get(&eve, CLUSTERS).await.fails(403, "Forbidden");
    assert_eq!(town.get(&eve, "/clusters/root/apis").await.status, 200);
    town.hub.shutdown().await;
}

#[tokio::test]
async fn nobody_gives_rights_that_they_lack() {
    let town = Town::new().await;
    let bob = town.person("bob", &["devs"]);
    let may_write = ["create", "get", "list", "patch", "update", "delete"];
    let rules = json!([
        {"verbs": may_write, "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]},
    ]);
    town.admin(Method::POST, CLUSTERS, json!({"metadata": {"name": "c"}})).await;
    town.role("c", "writer", rules).await;
    town.bind("c", "writer", "writer", "bob").await;
    let roles = format!("/clusters/c/{RBAC}/clusterroles");
    let role = |rules: Value| json!({"metadata": {"name": "r"}, "rules": rules});
    let pods = |verbs: &[&str]| json!([{"verbs": verbs, "apiGroups": [""], "resources": ["pods"]}]);
    let refused = "clusterroles.rbac.authorization.k8s.io \"r\" is forbidden: user \"bob\" \
                   (groups=[\"devs\" \"system:authenticated\"]) is attempting to grant RBAC \
                   permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], \
                   Verbs:[\"list\" \"watch\"]}";
    let more = role(pods(&["get", "list", "watch"]));
    let answer = town.post(&bob, &roles, more.clone()).await;
    assert_eq!(answer.fails(403, "Forbidden"), refused);
    let collecting = json!({
        "metadata": {"name": "r"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
    });
    let text = town.post(&bob, &roles, collecting).await.fails(403, "Forbidden");
    assert!(text.ends_with("must have cluster-admin privileges to use the aggregationRule"));
    let made = town.post(&bob, &roles, role(pods(&["get"]))).await;
    assert_eq!(made.status, 201, "{made:?}");
    // Changes of any form are checked alike.
    let one = format!("{roles}/r");
    let put = Ask::new(Method::PUT, &one).json(&more);
    assert_eq!(town.ask(&bob, put).await.fails(403, "Forbidden"), refused);
    let merge = Ask::new(Method::PATCH, &one)
        .header("content-type", "application/merge-patch+json")
        .body(json!({"rules": more["rules"]}).to_string());
    assert_eq!(town.ask(&bob, merge).await.fails(403, "Forbidden"), refused);
    let mut applied = more.clone();
    applied["apiVersion"] = json!("rbac.authorization.k8s.io/v1");
    applied["kind"] = json!("ClusterRole");
    let apply = Ask::new(Method::PATCH, &format!("{one}?fieldManager=x&force=true"))
        .header("content-type", "application/apply-patch+yaml")
        .body(applied.to_string());
    assert_eq!(town.ask(&bob, apply).await.fails(403, "Forbidden"), refused);
    let dry = Ask::new(Method::PUT, &format!("{one}?dryRun=All")).json(&more);
    assert_eq!(town.ask(&bob, dry).await.fails(403, "Forbidden"), refused);
    // A label that adds the role to others needs no more than its rules.
    let label = Ask::new(Method::PATCH, &one)
        .header("content-type", "application/merge-patch+json")
        .body(r#"{"metadata":{"labels":{"rbac.authorization.k8s.io/aggregate-to-view":"true"}}}"#);
    assert_eq!(town.ask(&bob, label).await.status, 200);
    // Bindings give what their roles hold.
    let bindings = format!("/clusters/c/{RBAC}/clusterrolebindings");
    let text = town.post(&bob, &bindings, binding("b", "view", "bob")).await;
    assert!(text.fails(403, "Forbidden").contains("attempting to grant RBAC permissions"));
    let text = town.post(&bob, &bindings, binding("b", "none", "bob")).await.fails(404, "NotFound");
    assert_eq!(text, "clusterrolebindings.rbac.authorization.k8s.io \"none\" not found");
    let made = town.post(&bob, &bindings, binding("b", "r", "carol")).await;
    assert_eq!(made.status, 201, "{made:?}");
    // The verbs bind and escalate lift it.
    let lifts = json!([
        {"verbs": ["bind"], "apiGroups": ["rbac.authorization.k8s.io"],
         "resources": ["clusterroles"], "resourceNames": ["view"]},
        {"verbs": ["escalate"], "apiGroups": ["rbac.authorization.k8s.io"],
         "resources": ["clusterroles"], "resourceNames": ["r"]},
    ]);
    town.role("c", "lifts", lifts).await;
    town.bind("c", "lifts", "lifts", "bob").await;
    let made = town.post(&bob, &bindings, binding("v", "view", "bob")).await;
    assert_eq!(made.status, 201, "{made:?}");
    town.post(&bob, &bindings, binding("e", "edit", "bob")).await.fails(403, "Forbidden");
    let put = Ask::new(Method::PUT, &one).json(&role(pods(&["*"])));
    assert_eq!(town.ask(&bob, put).await.status, 200);
    town.hub.shutdown().await;
}

#[tokio::test]
async fn every_logical_cluster_begins_with_the_bootstrap_policy() {
    let town = Town::new().await;
    town.admin(Method::POST, CLUSTERS, json!({"metadata": {"name": "c"}})).await;
    let roles = format!("/clusters/c/{RBAC}/clusterroles");
    let list = town.hub.get(&roles).await.json();
    for name in ["admin", "cluster-admin", "edit", "view", "system:discovery"] {
        assert!(names(&list).contains(&name), "{name}");
    }
    assert!(names(&list).is_sorted());
    let wild = town.hub.get(&format!("/clusters/*/{RBAC}/clusterroles")).await.json();
    assert_eq!(names(&wild), Vec::<&str>::new(), "nothing is stored");
    let bindings = town.hub.get(&format!("/clusters/c/{RBAC}/clusterrolebindings")).await.json();
    assert!(!names(&bindings).contains(&"logicalcluster-admin"));
    let in_system = town.hub.get(&format!("/clusters/c/{RBAC}/namespaces/kube-system/roles")).await;
    assert!(names(&in_system.json()).contains(&"extension-apiserver-authentication-reader"));
    // A labelled role shows in those that collect it, and goes from there with it.
    let view = format!("{roles}/view");
    let before = town.hub.get(&view).await.json();
    let rule = json!({"verbs": ["get"], "apiGroups": ["x.io"], "resources": ["things"]});
    let label = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    let things = json!({"metadata": {"name": "things", "labels": label}, "rules": [rule]});
    town.admin(Method::POST, &roles, things).await;
    let has = |role: &Value| role["rules"].as_array().is_some_and(|rules| rules.contains(&rule));
    for role in ["view", "edit", "admin"] {
        let shown = eventually(&town.hub, &format!("{roles}/{role}"), |_, role| has(role)).await;
        assert_eq!(
            shown["metadata"]["managedFields"][0]["manager"], "clusterrole-aggregation-controller",
            "{shown}"
        );
    }
    assert_eq!(town.hub.get(&view).await.json()["metadata"]["uid"], before["metadata"]["uid"]);
    town.hub.admin(Ask::new(Method::DELETE, &format!("{roles}/things"))).await;
    for role in ["view", "edit", "admin"] {
        eventually(&town.hub, &format!("{roles}/{role}"), |_, role| !has(role)).await;
    }
    assert_eq!(town.hub.get(&view).await.json()["rules"], before["rules"]);
    // A role of one's own that collects.
    let own = json!({
        "metadata": {"name": "own"},
        "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"mine": "yes"}}]},
    });
    town.admin(Method::POST, &roles, own).await;
    eventually(&town.hub, &format!("{roles}/own"), |_, role| role["rules"].is_null()).await;
    // One that is deleted comes back, with another UID.
    let discovery = format!("{roles}/system:discovery");
    let first = town.hub.get(&discovery).await.json();
    town.hub.admin(Ask::new(Method::DELETE, &discovery)).await;
    let uid = &first["metadata"]["uid"];
    let other =
        |_: u16, role: &Value| role["kind"] == "ClusterRole" && role["metadata"]["uid"] != *uid;
    let back = eventually(&town.hub, &discovery, other).await;
    assert_eq!(back["rules"], first["rules"]);
    town.hub.shutdown().await;
}

#[tokio::test]
async fn reviews_of_access() {
    let town = Town::new().await;
    town.admin(Method::POST, CLUSTERS, json!({"metadata": {"name": "c"}})).await;
    town.bind("c", "bob", "view", "bob").await;
    let bob = town.person("bob", &["devs"]);
    let path = |kind: &str| format!("/clusters/c/apis/authorization.k8s.io/v1/{kind}");
    let pods = json!({"verb": "list", "resource": "pods", "namespace": "n"});
    let reason = "RBAC: allowed by ClusterRoleBinding \"bob\" of ClusterRole \"view\" to User \
                  \"bob\"";
    let allowed = json!({"allowed": true, "reason": reason});
    let refused = json!({"allowed": false});
    let own = async |attributes: &Value| {
        let body = json!({"spec": {"resourceAttributes": attributes}});
        let answer = town.post(&bob, &path("selfsubjectaccessreviews"), body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["status"].clone()
    };
    assert_eq!(own(&pods).await, allowed);
    let secrets = json!({"verb": "list", "resource": "secrets"});
    assert_eq!(own(&secrets).await, refused);
    // Bob may not ask about others; the administrator may, and hears of this place alone.
    let of = |user: &str, groups: &[&str]| json!({"spec": {"user": user, "groups": groups, "resourceAttributes": secrets}});
    let body = of("carol", &[]);
    town.post(&bob, &path("subjectaccessreviews"), body).await.fails(403, "Forbidden");
    let review = async |body: Value| {
        let made = town.admin(Method::POST, &path("subjectaccessreviews"), body).await;
        made["status"].clone()
    };
    assert_eq!(review(of("bob", &[])).await, refused);
    assert_eq!(review(of("", &["system:masters"])).await, json!({"allowed": true}));
    let mut body = of("bob", &[]);
    body["spec"]["resourceAttributes"] = pods.clone();
    assert_eq!(review(body.clone()).await, allowed);
    let local = path("namespaces/n/localsubjectaccessreviews");
    assert_eq!(town.admin(Method::POST, &local, body).await["status"], allowed);
    let path_rules = json!({"spec": {"user": "x", "nonResourceAttributes": {"path": "/api"}}});
    let answer = town.hub.admin(Ask::new(Method::POST, &local).json(&path_rules)).await;
    answer.fails(422, "Invalid");
    let rules = path("selfsubjectrulesreviews");
    town.post(&bob, &rules, json!({"spec": {}})).await.fails(400, "BadRequest");
    let answer = town.post(&bob, &rules, json!({"spec": {"namespace": "n"}})).await.json();
    let listed = answer["status"]["resourceRules"].as_array().unwrap();
    let reads = json!(["get", "list", "watch"]);
    assert!(listed.iter().any(|rule| rule["verbs"] == reads), "{answer}");
    assert_eq!(answer["status"]["incomplete"], false);
    assert!(!answer["status"]["nonResourceRules"].as_array().unwrap().is_empty());
    town.hub.shutdown().await;
}

#[tokio::test]
async fn what_was_revoked_is_refused_from_the_next_request_on() {
    let town = Town::new().await;
    town.admin(Method::POST, CLUSTERS, json!({"metadata": {"name": "c"}})).await;
    let bob = town.person("bob", &[]);
    let bindings = format!("/clusters/c/{RBAC}/clusterrolebindings");
    for round in 0..10 {
        town.bind("c", "bob", "view", "bob").await;
        let list = town.get(&bob, "/clusters/c/api/v1/configmaps").await;
        assert_eq!(list.status, 200, "round {round}: {list:?}");
        let gone = Ask::new(Method::DELETE, &format!("{bindings}/bob"));
        assert_eq!(town.hub.admin(gone).await.status, 200);
        town.get(&bob, "/clusters/c/api/v1/configmaps").await.fails(403, "Forbidden");
    }
    // Root's policy decides about all logical clusters at once.
    town.role(
        "root",
        "wild",
        json!([
            {"verbs": ["wildcard"], "apiGroups": ["core.kcp.io"],
             "resources": ["logicalclusters/content"]},
            {"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]},
        ]),
    )
    .await;
    town.get(&bob, "/clusters/*/api/v1/configmaps").await.fails(403, "Forbidden");
    town.bind("root", "bob", "wild", "bob").await;
    assert_eq!(town.get(&bob, "/clusters/*/api/v1/configmaps").await.status, 200);
    town.get(&bob, "/clusters/*/api/v1/secrets").await.fails(403, "Forbidden");
    town.get(&bob, "/clusters/c/api/v1/configmaps").await.fails(403, "Forbidden");
    town.hub.ask(Who::Anonymous, Ask::get("/clusters/*/api")).await.fails(403, "Forbidden");
    town.hub.shutdown().await;
}
