//! Requests for certificates: who asks, who decides, and what comes of it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

use crate::authority::{Pair, params};
use crate::client::Ask;
use crate::deeds::{allow, eventually, merge};
use crate::yard::{REQUESTS, Yard, request};

const CLIENT: &str = "kubernetes.io/kube-apiserver-client";

fn approve() -> Value {
    json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "ByHand"}]}})
}

/// Asks as `who` and approves as the administrator; the path of the request.
async fn approved(yard: &Yard, who: &Pair, cluster: &str, body: &Value) -> String {
    let requests = format!("/clusters/{cluster}/{REQUESTS}");
    let made = yard.send(who, Method::POST, &requests, body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let path = format!("{requests}/{}", made.json()["metadata"]["name"].as_str().unwrap());
    yard.change(&format!("{path}/approval"), &approve()).await;
    path
}

async fn failure(yard: &Yard, path: &str) -> String {
    let conditions = |request: &Value| request["status"]["conditions"].as_array().unwrap().clone();
    let failed = |condition: &&Value| condition["type"] == "Failed";
    let decided = |_: u16, request: &Value| conditions(request).iter().any(|c| failed(&c));
    let request = eventually(&yard.hub, path, decided).await;
    assert_eq!(request["status"]["certificate"], Value::Null);
    let conditions = conditions(&request);
    conditions.iter().find(failed).unwrap()["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn people_get_certificates_in_root_alone() {
    let yard = Yard::new().await;
    yard.begin("a").await;
    let may = json!([{
        "verbs": ["create", "get"], "apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests"],
    }]);
    for cluster in ["root", "a"] {
        allow(&yard.hub, cluster, "bob", &may).await;
    }
    let bob = yard.person("bob", &["dev"]);
    let (mut body, key) = request(&params("ann", &["dev"]), CLIENT);
    // Who asks is said by the server, and nothing is decided beforehand.
    body["spec"]["username"] = json!("admin");
    body["spec"]["groups"] = json!(["system:masters"]);
    body["status"] = approve()["status"].clone();
    let requests = format!("/clusters/root/{REQUESTS}");
    let made = yard.send(&bob, Method::POST, &requests, &body).await.json();
    assert_eq!(made["spec"]["username"], "bob");
    assert_eq!(made["spec"]["groups"], json!(["dev", "system:authenticated"]));
    assert_eq!(made["status"], json!({}));
    let path = approved(&yard, &bob, "root", &body).await;
    let ann = (yard.issued(async || yard.hub.get(&path).await).await, key);
    let whoami = "/clusters/root/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let answer = yard.send(&ann, Method::POST, whoami, &json!({})).await.json();
    assert_eq!(answer["status"]["userInfo"]["username"], "ann", "{answer}");
    assert_eq!(answer["status"]["userInfo"]["groups"], json!(["dev", "system:authenticated"]));

    let elsewhere = approved(&yard, &bob, "a", &body).await;
    assert!(failure(&yard, &elsewhere).await.contains("root alone"));
    for (name, group) in
        [("system:admin", "dev"), ("ann", "system:kcp:operators"), ("ann", "system:syncers")]
    {
        let (body, _) = request(&params(name, &[group]), CLIENT);
        let path = approved(&yard, &bob, "root", &body).await;
        assert!(failure(&yard, &path).await.contains("system:"), "{name} {group}");
    }
    let (masters, _) = request(&params("ann", &["system:masters"]), CLIENT);
    let refused = yard.send(&bob, Method::POST, &requests, &masters).await;
    let why = refused.fails(403, "Forbidden");
    let text = "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed";
    assert!(why.ends_with(text), "{why}");
    yard.hub.shutdown().await;
}

#[tokio::test]
async fn deciding_and_signing_need_rights_on_the_signer() {
    let yard = Yard::new().await;
    let parts = json!(["certificatesigningrequests/approval", "certificatesigningrequests/status"]);
    let on_parts = json!({"verbs": ["update", "patch"], "apiGroups": ["certificates.k8s.io"], "resources": parts});
    let signers = |verb: &str, name: &str| {
        json!({"verbs": [verb], "apiGroups": ["certificates.k8s.io"], "resources": ["signers"],
            "resourceNames": [name]})
    };
    allow(&yard.hub, "root", "none", json!([on_parts])).await;
    allow(&yard.hub, "root", "one", json!([on_parts, signers("approve", "example.com/x")])).await;
    allow(&yard.hub, "root", "all", json!([on_parts, signers("approve", "example.com/*")])).await;
    allow(&yard.hub, "root", "other", json!([on_parts, signers("approve", "example.com/y")])).await;
    allow(&yard.hub, "root", "signs", json!([on_parts, signers("sign", "example.com/x")])).await;
    let own = rcgen::generate_simple_self_signed(Vec::new()).unwrap().cert.pem();
    let signed = json!({"status": {"certificate": STANDARD.encode(own)}});
    let requests = format!("/clusters/root/{REQUESTS}");
    for (name, approves, signs) in [
        ("none", 403, 403),
        ("one", 200, 403),
        ("all", 200, 403),
        ("other", 403, 403),
        ("signs", 403, 200),
    ] {
        let (body, _) = request(&params("ann", &[]), "example.com/x");
        let made = yard.admin(Method::POST, &requests, &body).await;
        let path = format!("{requests}/{}", made["metadata"]["name"].as_str().unwrap());
        let who = yard.person(name, &[]);
        for (part, patch, code, verb) in [
            ("approval", approve(), approves, "approve"),
            ("status", signed.clone(), signs, "sign"),
        ] {
            let answer = yard.ask(&who, merge(&format!("{path}/{part}"), &patch)).await;
            assert_eq!(answer.status, code, "{name} {part}: {answer:?}");
            if code == 403 {
                let text = format!(
                    "user not permitted to {verb} requests with signerName \"example.com/x\""
                );
                assert!(answer.fails(403, "Forbidden").ends_with(&text));
            }
        }
    }
    // What is asked for never changes, and the main endpoint decides nothing.
    let (body, _) = request(&params("ann", &[]), "example.com/x");
    let made = yard.admin(Method::POST, &requests, &body).await;
    let path = format!("{requests}/{}", made["metadata"]["name"].as_str().unwrap());
    let mut patch = approve();
    patch["spec"] = json!({"signerName": "example.com/z", "username": "x"});
    let same = yard.change(&path, &patch).await;
    assert_eq!((&same["spec"], &same["status"]), (&made["spec"], &made["status"]));
    let table = Ask::get(&path).header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let row = yard.hub.admin(table).await.json()["rows"][0]["cells"].clone();
    let cells = row.as_array().unwrap();
    assert_eq!(
        cells[2..],
        [json!("example.com/x"), json!("kcp-admin"), json!("<none>"), json!("Pending")]
    );
    yard.hub.shutdown().await;
}
