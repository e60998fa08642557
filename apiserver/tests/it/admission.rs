//! Webhooks and policies: what they see, change and refuse.

use base64::Engine;
use http::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Ask, Hub};
use crate::deeds::{create, eventually};
use crate::hook::Hook;

const GROUP: &str = "apis/admissionregistration.k8s.io/v1";

fn maps(cluster: &str) -> String {
    format!("/clusters/{cluster}/api/v1/namespaces/default/configmaps")
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

async fn send(hub: &Hub, method: Method, path: &str, body: &Value) -> Answer {
    hub.admin(Ask::new(method, path).json(body)).await
}

async fn delete(hub: &Hub, path: &str) -> Answer {
    hub.admin(Ask::new(Method::DELETE, path)).await
}

/// A webhook of all operations on ConfigMaps, with some fields set otherwise.
fn webhook(hook: &Hook, name: &str, with: &Value) -> Value {
    let mut webhook = json!({
        "name": format!("{name}.example.com"),
        "clientConfig": {"url": hook.url("/hook"), "caBundle": hook.ca()},
        "rules": [{
            "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps"],
        }],
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
    });
    for (field, value) in with.as_object().unwrap() {
        webhook[field] = value.clone();
    }
    webhook
}

async fn configure(hub: &Hub, cluster: &str, kind: &str, name: &str, webhook: &Value) {
    let plural = format!("{}s", kind.to_lowercase());
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": name}, "webhooks": [webhook],
    });
    let path = format!("/clusters/{cluster}/{GROUP}/{plural}");
    let answer = send(hub, Method::POST, &path, &configuration).await;
    assert_eq!((answer.status.as_u16(), answer.header("warning")), (201, ""), "{answer:?}");
}

const MUTATING: &str = "MutatingWebhookConfiguration";
const VALIDATING: &str = "ValidatingWebhookConfiguration";

fn review(asked: &Value, response: &Value) -> Value {
    let mut response = response.clone();
    response["uid"] = asked["request"]["uid"].clone();
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
    })
}

fn patch(patch: &Value) -> Value {
    let patch = base64::engine::general_purpose::STANDARD.encode(patch.to_string());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch, "warnings": ["changed"]})
}

/// Its connections, which the server keeps for the next call, end while nobody uses them.
#[tokio::test]
async fn a_webhook_that_is_restarted_is_called_anew() {
    let hub = Hub::start().await;
    let hook = Hook::start(|asked| review(asked, &json!({"allowed": true}))).await;
    let webhook = webhook(&hook, "checked", &json!({}));
    configure(&hub, "a", VALIDATING, "checked", &webhook).await;
    let path = "/clusters/a/api/v1/namespaces/default/configmaps";
    for n in 0..6 {
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{n}")},
        });
        let answer = send(&hub, Method::POST, path, &body).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        assert!((1..=hub.servers()).contains(&hook.open()), "{}", hook.open());
        if n % 2 == 1 {
            hook.hang_up().await;
        }
    }
    assert_eq!(hook.seen().len(), 6);
    hub.shutdown().await;
}

#[tokio::test]
async fn a_webhook_changes_what_is_written() {
    let hub = Hub::start().await;
    let hook = Hook::start(|asked| {
        let changes = json!([
            {"op": "add", "path": "/data/seen", "value": "yes"},
            {"op": "add", "path": "/unknown", "value": 1},
        ]);
        let deleted = asked["request"]["operation"] == "DELETE";
        review(asked, &if deleted { json!({"allowed": true}) } else { patch(&changes) })
    })
    .await;
    configure(&hub, "a", MUTATING, "m", &webhook(&hook, "one", &json!({}))).await;
    assert!(hook.seen().is_empty(), "configurations are exempt");

    let answer = send(&hub, Method::POST, &maps("a"), &map("x")).await;
    assert_eq!(answer.header("warning"), "299 - \"changed\"");
    assert_eq!(answer.json()["data"], json!({"a": "b", "seen": "yes"}), "{answer:?}");
    assert_eq!(answer.json()["unknown"], Value::Null, "read by the type again");
    let seen = hook.take_seen();
    assert_eq!(seen.len(), 1);
    let request = &seen[0]["request"];
    assert_eq!(request["operation"], "CREATE");
    assert_eq!(request["kind"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    assert_eq!((&request["resource"], &request["requestResource"]), (&resource, &resource));
    assert_eq!((&request["name"], &request["namespace"]), (&json!("x"), &json!("default")));
    assert_eq!((&request["dryRun"], &request["oldObject"]), (&json!(false), &Value::Null));
    assert_eq!(request["object"]["data"], json!({"a": "b"}));
    assert_eq!(request["object"]["metadata"]["uid"], Value::Null, "given later");

    let path = format!("{}/x", maps("a"));
    let merge = Ask::new(Method::PATCH, &path).body(r#"{"data":{"seen":null,"c":"d"}}"#);
    let patched = hub.admin(merge.header("content-type", "application/merge-patch+json")).await;
    assert_eq!(patched.json()["data"], json!({"a": "b", "c": "d", "seen": "yes"}));
    let put = send(&hub, Method::PUT, &path, &map("x")).await;
    assert_eq!(put.json()["data"], json!({"a": "b", "seen": "yes"}));
    let seen = hook.take_seen();
    assert_eq!(seen[1]["request"]["operation"], "UPDATE");
    assert_eq!(seen[1]["request"]["oldObject"]["data"]["c"], "d");
    assert_eq!(delete(&hub, &path).await.status, 200);
    let request = &hook.take_seen()[0]["request"];
    assert_eq!((&request["operation"], &request["object"]), (&json!("DELETE"), &Value::Null));
    assert_eq!(request["oldObject"]["metadata"]["name"], "x");

    // Another logical cluster is asked nothing.
    create(&hub, &maps("b"), &map("x")).await;
    assert!(hook.seen().is_empty());
    hub.shutdown().await;
}

#[tokio::test]
async fn refusals_are_told_in_the_webhooks_words() {
    let hub = Hub::start().await;
    let hook = Hook::start(|asked| {
        let status = json!({"code": 403, "reason": "Forbidden", "message": "not today"});
        review(asked, &json!({"allowed": false, "status": status}))
    })
    .await;
    configure(&hub, "a", VALIDATING, "v", &webhook(&hook, "no", &json!({}))).await;
    let refused = send(&hub, Method::POST, &maps("a"), &map("x")).await;
    let text = "admission webhook \"no.example.com\" denied the request: not today";
    assert_eq!(refused.fails(403, "Forbidden"), text);
    assert_eq!(hub.get(&format!("{}/x", maps("a"))).await.status, 404);
    let request = &hook.seen()[0]["request"];
    assert!(request["object"]["metadata"]["uid"].is_string(), "as it would be stored: {request}");
    // Secrets are not its business.
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    create(&hub, "/clusters/a/api/v1/namespaces/default/secrets", &secret).await;
    hub.shutdown().await;
}

#[tokio::test]
async fn selectors_conditions_and_dry_runs_decide_whether_a_webhook_is_asked() {
    let hub = Hub::start().await;
    let hook = Hook::start(|asked| review(asked, &json!({"allowed": true}))).await;
    let with = json!({
        "objectSelector": {"matchLabels": {"watched": "yes"}},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        "matchConditions": [{"name": "c", "expression": "object.data.a == 'b'"}],
    });
    configure(&hub, "a", VALIDATING, "v", &webhook(&hook, "sel", &with)).await;
    let system = "/clusters/a/api/v1/namespaces/kube-system/configmaps";
    let check = async |path: &str, labels: Value, data: &str, asked: usize| {
        let mut object = map("x");
        object["metadata"] = json!({"generateName": "x-", "labels": labels});
        object["data"]["a"] = json!(data);
        create(&hub, path, &object).await;
        assert_eq!(hook.take_seen().len(), asked, "{path} {labels} {data}");
    };
    check(&maps("a"), json!({"watched": "yes"}), "b", 1).await;
    check(&maps("a"), json!({"watched": "no"}), "b", 0).await;
    check(&maps("a"), json!({"watched": "yes"}), "c", 0).await;
    check(system, json!({"watched": "yes"}), "b", 0).await;

    let sided = json!({"sideEffects": "NoneOnDryRun"});
    configure(&hub, "b", VALIDATING, "v", &webhook(&hook, "dry", &sided)).await;
    create(&hub, &format!("{}?dryRun=All", maps("b")), &map("x")).await;
    let request = &hook.take_seen()[0]["request"];
    assert_eq!(
        (&request["dryRun"], &request["options"]["dryRun"]),
        (&json!(true), &json!(["All"]))
    );
    hub.shutdown().await;
}

#[tokio::test]
async fn failures_follow_the_failure_policy() {
    let hub = Hub::start().await;
    let hook = Hook::start(|_| json!({"secret": "of the network"})).await;
    configure(&hub, "a", VALIDATING, "v", &webhook(&hook, "bad", &json!({}))).await;
    let refused = send(&hub, Method::POST, &maps("a"), &map("x")).await;
    let why = "failed calling webhook \"bad.example.com\": received invalid webhook response: \
               webhook response was absent";
    assert_eq!(refused.fails(500, "InternalError"), format!("Internal error occurred: {why}"));
    assert_eq!(refused.json()["details"]["causes"], json!([{"message": why}]));

    let ignore = json!({"failurePolicy": "Ignore"});
    configure(&hub, "b", VALIDATING, "v", &webhook(&hook, "bad", &ignore)).await;
    create(&hub, &maps("b"), &map("x")).await;

    let service = json!({"clientConfig": {"service": {"name": "s", "namespace": "n"}}});
    configure(&hub, "c", MUTATING, "m", &webhook(&hook, "svc", &service)).await;
    let refused = send(&hub, Method::POST, &maps("c"), &map("x")).await;
    let text = refused.fails(500, "InternalError");
    let begins = "Internal error occurred: failed calling webhook \"svc.example.com\": failed to \
                  call webhook: Post \"https://s.n.svc:443/?timeout=10s\": services can't be reached";
    assert!(text.starts_with(begins), "{text}");
    // The configuration can be removed all the same.
    let path = format!("/clusters/c/{GROUP}/mutatingwebhookconfigurations/m");
    assert_eq!(delete(&hub, &path).await.status, 200);
    create(&hub, &maps("c"), &map("x")).await;
    hub.shutdown().await;
}

#[tokio::test]
async fn a_webhook_is_asked_again_when_a_later_one_changes_the_object() {
    let hub = Hub::start().await;
    let first = Hook::start(|asked| {
        let count = asked["request"]["object"]["data"].as_object().unwrap().len().to_string();
        review(asked, &patch(&json!([{"op": "add", "path": "/data/count", "value": count}])))
    })
    .await;
    let second = Hook::start(|asked| {
        review(asked, &patch(&json!([{"op": "add", "path": "/data/second", "value": "x"}])))
    })
    .await;
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    configure(&hub, "a", MUTATING, "a", &webhook(&first, "first", &again)).await;
    configure(&hub, "a", MUTATING, "b", &webhook(&second, "second", &json!({}))).await;
    let map = create(&hub, &maps("a"), &map("x")).await;
    assert_eq!(map["data"], json!({"a": "b", "count": "3", "second": "x"}));
    assert_eq!((first.seen().len(), second.seen().len()), (2, 1));
    hub.shutdown().await;
}

async fn policy(hub: &Hub, cluster: &str, spec: &Value, binding: &Value) {
    let base = json!({
        "matchConstraints": {"resourceRules": [{
            "operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps"],
        }]},
    });
    let merged = |base: &Value, with: &Value| {
        let mut merged = base.clone();
        for (field, value) in with.as_object().unwrap() {
            merged[field] = value.clone();
        }
        merged
    };
    let object = |kind: &str, spec: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "p"}, "spec": spec,
        })
    };
    let path = format!("/clusters/{cluster}/{GROUP}/validatingadmissionpolicies");
    create(hub, &path, &object("ValidatingAdmissionPolicy", merged(&base, spec))).await;
    let bound = merged(&json!({"policyName": "p", "validationActions": ["Deny"]}), binding);
    let path = format!("/clusters/{cluster}/{GROUP}/validatingadmissionpolicybindings");
    create(hub, &path, &object("ValidatingAdmissionPolicyBinding", bound)).await;
}

#[tokio::test]
async fn policies_judge_with_variables_and_messages() {
    let hub = Hub::start().await;
    let spec = json!({
        "variables": [
            {"name": "value", "expression": "object.data.a"},
            {"name": "long", "expression": "variables.value.size() > 3"},
        ],
        "validations": [
            {"expression": "!variables.long", "messageExpression": "'too long: ' + variables.value"},
            {"expression": "object.data.a != 'no'", "reason": "Forbidden", "message": "no is no"},
            {"expression": "object.data.a != 'x'"},
        ],
    });
    policy(&hub, "a", &spec, &json!({})).await;
    let check = async |value: &str, code: u16, reason: &str, expect: &str| {
        let mut object = map("x");
        object["data"]["a"] = json!(value);
        let refused = send(&hub, Method::POST, &maps("a"), &object).await;
        let text = format!(
            "configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied \
             request: {expect}"
        );
        assert_eq!(refused.fails(code, reason), text);
    };
    check("long one", 422, "Invalid", "too long: long one").await;
    check("no", 403, "Forbidden", "no is no").await;
    check("x", 422, "Invalid", "failed expression: object.data.a != 'x'").await;
    create(&hub, &maps("a"), &map("x")).await;
    let mut other = map("x");
    other["data"]["a"] = json!("no");
    create(&hub, &maps("b"), &other).await;
    hub.shutdown().await;
}

#[tokio::test]
async fn policies_take_parameters_and_may_only_warn() {
    let hub = Hub::start().await;
    let params = "/clusters/a/api/v1/namespaces/kube-system/configmaps";
    let mut limits = map("limits");
    limits["data"] = json!({"most": "2"});
    create(&hub, params, &limits).await;
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{
            "expression": "object.data.size() <= int(params.data.most)",
            "messageExpression": "'at most ' + params.data.most",
        }],
    });
    let reference = json!({
        "name": "limits", "namespace": "kube-system", "parameterNotFoundAction": "Deny",
    });
    policy(&hub, "a", &spec, &json!({"paramRef": reference})).await;
    create(&hub, &maps("a"), &map("x")).await;
    let mut large = map("large");
    large["data"] = json!({"a": "1", "b": "2", "c": "3"});
    let refused = send(&hub, Method::POST, &maps("a"), &large).await;
    assert!(refused.fails(422, "Invalid").ends_with("denied request: at most 2"));
    let gone = delete(&hub, &format!("{params}/limits")).await;
    assert_eq!(gone.status, 200);
    let refused = send(&hub, Method::POST, &maps("a"), &map("y")).await;
    let why = "failed to configure binding: no params found for policy binding with `Deny` \
               parameterNotFoundAction";
    assert!(refused.fails(422, "Invalid").ends_with(why), "{refused:?}");

    let spec = json!({"validations": [{"expression": "false", "message": "hm"}]});
    policy(&hub, "b", &spec, &json!({"validationActions": ["Warn", "Audit"]})).await;
    let answer = send(&hub, Method::POST, &maps("b"), &map("x")).await;
    assert_eq!(answer.status, 201);
    let text = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': hm";
    assert_eq!(answer.header("warning"), format!("299 - \"{text}\""));
    hub.shutdown().await;
}

#[tokio::test]
async fn expressions_that_do_not_compile_are_not_stored() {
    let hub = Hub::start().await;
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                "resources": ["configmaps"],
            }]},
            "validations": [{"expression": "nothing == 1"}, {"expression": "'text'"}],
        },
    });
    let path = format!("/clusters/a/{GROUP}/validatingadmissionpolicies");
    let refused = send(&hub, Method::POST, &path, &policy).await;
    let text = refused.fails(422, "Invalid");
    assert!(text.contains("undeclared reference to 'nothing'"), "{text}");
    assert!(text.contains("spec.validations[1].expression"), "{text}");
    assert!(text.contains("must evaluate to bool but got string"), "{text}");
    hub.shutdown().await;
}

#[tokio::test]
async fn conditions_that_do_not_compile_are_not_stored() {
    let hub = Hub::start().await;
    let hook = Hook::start(|asked| review(asked, &json!({"allowed": true}))).await;
    let path = format!("/clusters/a/{GROUP}/validatingwebhookconfigurations");
    let undeclared = |text: &str, name: &str| {
        format!(
            "expression: Invalid value: \"{text}\": compilation failed: ERROR: <input>:1:1: undeclared \
             reference to '{name}' (in container '')\n | {text}\n | ^"
        )
    };
    // As a real kube-apiserver answers.
    let check = async |conditions: Value, expect: &str| {
        let webhook = webhook(&hook, "c", &json!({"matchConditions": conditions}));
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": VALIDATING,
            "metadata": {"name": "c"}, "webhooks": [webhook],
        });
        let refused = send(&hub, Method::POST, &path, &configuration).await;
        let named =
            "ValidatingWebhookConfiguration.admissionregistration.k8s.io \"c\" is invalid: ";
        let text = refused.fails(422, "Invalid");
        assert_eq!(text.strip_prefix(named), Some(expect), "{text}");
    };
    let at = |index: usize| format!("webhooks[0].matchConditions[{index}].");
    let one = |text: &str| json!([{"name": "a", "expression": text}]);
    let expect = at(0) + &undeclared("nothing", "nothing");
    check(one("nothing"), &expect).await;
    let expect = at(0) + "expression: Invalid value: \"1\": must evaluate to bool but got int";
    check(one(" 1 "), &expect).await;
    check(one("variables.x"), &(at(0) + &undeclared("variables.x", "variables"))).await;
    let two = json!([{"name": "a", "expression": "true"}, {"name": "a", "expression": "params.x"}]);
    let (params, at) = (undeclared("params.x", "params"), at(1));
    check(two, &format!("[{at}{params}, {at}name: Duplicate value: \"a\"]")).await;
    let many = vec![json!({"name": "a", "expression": "true"}); 65];
    let expect = "webhooks[0].matchConditions: Too many: 65: must have at most 64 items";
    check(json!(many), expect).await;
    hub.shutdown().await;
}

#[tokio::test]
async fn types_of_policies_are_checked_in_their_status() {
    let hub = Hub::start().await;
    let path = format!("/clusters/a/{GROUP}/validatingadmissionpolicies");
    let definition = crate::types::definition(&json!([crate::types::version("v1", true)]));
    let crds = format!("/clusters/a/{}", crate::types::CRDS);
    create(&hub, &crds, &definition).await;
    let served = format!("{crds}/widgets.example.com");
    eventually(&hub, &served, crate::types::is("Established")).await;
    let check = async |name: &str, groups: Value, resources: Value, text: &str, expect: Value| {
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [{
                    "operations": ["CREATE"], "apiGroups": groups, "apiVersions": ["v1"],
                    "resources": resources,
                }]},
                "validations": [{"expression": text}],
            },
        });
        create(&hub, &path, &policy).await;
        let seen = |_: u16, policy: &Value| policy["status"]["observedGeneration"] == 1;
        let policy = eventually(&hub, &format!("{path}/{name}"), seen).await;
        let place = "spec.validations[0].expression";
        let warnings = json!({"expressionWarnings": [{"fieldRef": place, "warning": expect}]});
        let expect = if expect.is_null() { json!({}) } else { warnings };
        assert_eq!(policy["status"]["typeChecking"], expect, "{text}");
    };
    // As a real kube-apiserver with its controller manager says.
    let warning = "/v1, Kind=Secret: ERROR: <input>:1:7: undefined field 'binaryData'\n | \
                   object.binaryData.size() > 1\n | ......^\n";
    let kinds = json!(["configmaps", "secrets"]);
    check("a", json!([""]), kinds, "object.binaryData.size() > 1", json!(warning)).await;
    let warning = "example.com/v1, Kind=Widget: ERROR: <input>:1:12: undefined field 'siz'\n | \
                   object.spec.siz > 1\n | ...........^\n";
    check("b", json!(["example.com"]), json!(["widgets"]), "object.spec.siz > 1", json!(warning))
        .await;
    check("c", json!(["*"]), json!(["secrets"]), "object.none == 1", Value::Null).await;
    check("d", json!([""]), json!(["secrets"]), "object.data['a'] == b'x'", Value::Null).await;
    hub.shutdown().await;
}
