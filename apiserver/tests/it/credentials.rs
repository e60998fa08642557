//! The credentials of agents: what they begin with, and how they end.

use futures::StreamExt;
use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::agents::{secrets, yard};
use crate::authority::{Pair, params};
use crate::client::{Ask, PATIENCE, multiplex};
use crate::deeds::eventually;
use crate::yard::{REQUESTS, Yard, request, uri};

#[tokio::test]
async fn a_token_leads_to_the_certificate_of_its_own_target() {
    let yard = Yard::new().await;
    for cluster in ["infra", "app"] {
        yard.begin(cluster).await;
    }
    let east = yard.target("infra", "east", &json!({}), "aaaaaa").await;
    let west = yard.target("infra", "west", &json!({}), "bbbbbb").await;
    let requests = format!("/clusters/infra/{REQUESTS}");
    let post = |body: &Value| Ask::new(Method::POST, &requests).json(body);
    // Another's subject waits for somebody to approve it.
    let (body, _) = request(&west.params(), "kcp.io/syncer");
    let made = yard.by_token(&east.token, post(&body)).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.json()["status"], json!({}));
    for subject in
        [params("ann", &["system:masters"]), params("system:syncer:x", &["system:syncers"])]
    {
        let (body, _) = request(&subject, "kcp.io/syncer");
        assert_eq!(yard.by_token(&east.token, post(&body)).await.json()["status"], json!({}));
    }
    // Approved by hand, it is still refused where there is no such target.
    let (body, _) = request(&params("system:syncer:x", &["system:syncers"]), "kcp.io/syncer");
    let made = yard.admin(Method::POST, &requests, &body).await;
    let path = format!("{requests}/{}", made["metadata"]["name"].as_str().unwrap());
    let approve = json!({"status": {"conditions": [{"type": "Approved", "status": "True"}]}});
    yard.change(&format!("{path}/approval"), &approve).await;
    let failed = |_: u16, request: &Value| {
        let conditions = request["status"]["conditions"].as_array().unwrap().iter();
        { conditions }.any(|condition| condition["type"] == "Failed")
    };
    let request_of = eventually(&yard.hub, &path, failed).await;
    assert_eq!(request_of["status"]["certificate"], Value::Null);
    // Nothing else comes with the token, and nowhere else.
    for path in [secrets("infra"), east.path(), format!("{requests}/none/approval")] {
        yard.by_token(&east.token, Ask::get(&path)).await.fails(403, "Forbidden");
    }
    let elsewhere = format!("/clusters/app/{REQUESTS}");
    yard.by_token(&east.token, Ask::new(Method::POST, &elsewhere).json(&body))
        .await
        .fails(401, "Unauthorized");
    let agent = yard.agent(&east).await;
    assert_eq!(yard.get(&agent, &east.path()).await.status, 200);
    yard.hub.shutdown().await;
}

#[tokio::test]
async fn a_target_that_is_made_again_knows_no_credential_of_the_one_before() {
    let (yard, east, agent) = yard().await;
    assert_eq!(yard.get(&agent, &east.path()).await.status, 200);
    let gone = yard.hub.admin(Ask::new(Method::DELETE, &east.path())).await;
    assert_eq!(gone.status, 200);
    yard.get(&agent, &east.path()).await.fails(401, "Unauthorized");
    let again = yard.target("infra", "east", &json!({}), "cccccc").await;
    assert_ne!(again.uid, east.uid);
    yard.get(&agent, &east.path()).await.fails(401, "Unauthorized");
    yard.get(&agent, "/clusters/infra/version").await.fails(401, "Unauthorized");
    // The old token names the old UID.
    let (body, _) = request(&again.params(), "kcp.io/syncer");
    let requests = format!("/clusters/infra/{REQUESTS}");
    let asked = yard.by_token(&east.token, Ask::new(Method::POST, &requests).json(&body)).await;
    asked.fails(403, "Forbidden");
    let next = yard.agent(&again).await;
    assert_eq!(yard.get(&next, &again.path()).await.status, 200);
    yard.hub.shutdown().await;
}

#[tokio::test]
async fn revoking_cuts_off_a_stolen_key_and_its_watches() {
    let (yard, east, agent) = yard().await;
    for scope in ["infra", "app", "*"] {
        let path =
            format!("/clusters/{scope}/api/v1/secrets?{}&watch=1&resourceVersion=0", east.query());
        let mut watch = Watching::start(&yard, &agent, &path).await;
        assert_eq!(watch.next().await.unwrap()["object"]["metadata"]["name"], "given");
        if scope == "*" {
            assert_eq!(watch.next().await.unwrap()["type"], "ADDED");
        }
        // Other changes of the SyncTarget don't matter.
        let spec = json!({"spec": {"unschedulable": scope == "infra"}});
        yard.change(&east.path(), &spec).await;
        let map = |value: &str| json!({"stringData": {"c": value}});
        yard.change(
            &format!("{}/given", secrets(if scope == "*" { "infra" } else { scope })),
            &map(scope),
        )
        .await;
        assert_eq!(watch.next().await.unwrap()["type"], "MODIFIED");
        let current = yard.agent(&east).await;
        // Certificates reach back some minutes, so this is after all of them so far.
        let now = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(2);
        let revoke = json!({"status": {"credentialsNotBefore": now.to_string()}});
        yard.change(&format!("{}/status", east.path()), &revoke).await;
        yard.change(&format!("{}/given", secrets("infra")), &map("unseen")).await;
        let ended = watch.next().await.unwrap();
        assert_eq!((&ended["type"], &ended["object"]["code"]), (&json!("ERROR"), &json!(401)));
        assert_eq!(watch.next().await, None);
        for stolen in [&agent, &current] {
            yard.get(stolen, &east.path()).await.fails(401, "Unauthorized");
            yard.get(stolen, &path).await.fails(401, "Unauthorized");
        }
        // As if it had never been revoked, for the next round; the agent may begin anew, too.
        let fresh = yard.agent(&east).await;
        assert_eq!(yard.get(&fresh, &east.path()).await.status, 200);
        let back = json!({"status": {"credentialsNotBefore": null}});
        yard.change(&format!("{}/status", east.path()), &back).await;
    }
    // A logical cluster that the target no longer serves.
    let path = format!("{}?{}&watch=1&resourceVersion=0", secrets("app"), east.query());
    let mut watch = Watching::start(&yard, &agent, &path).await;
    assert_eq!(watch.next().await.unwrap()["type"], "ADDED");
    yard.change(&east.path(), &json!({"spec": {"allowedClusters": null}})).await;
    assert_eq!(watch.next().await.unwrap()["type"], "ERROR");
    yard.get(&agent, &path).await.fails(403, "Forbidden");
    yard.hub.shutdown().await;
}

#[tokio::test]
async fn certificates_that_end_or_are_of_others() {
    let (yard, east, _) = yard().await;
    let with = |name: &str, groups: &[&str], uris: &[&str], seconds: i64| {
        let mut params = params(name, groups);
        params.subject_alt_names = uris.iter().map(|text| uri(text)).collect();
        let at = |seconds: i64| {
            let at = jiff::Timestamp::now().as_second() + seconds;
            let since = std::time::Duration::from_secs(u64::try_from(at).unwrap());
            rcgen::date_time_ymd(1970, 1, 1) + since
        };
        (params.not_before, params.not_after) = (at(-60), at(seconds));
        params
    };
    let (name, uri) = (format!("system:syncer:{}", east.uid), east.uri());
    let good = || with(&name, &["system:syncers"], &[&uri], 600);
    assert_eq!(yard.get(&yard.by_server(&good()), &east.path()).await.status, 200);
    let other = "kcp://clusters/infra/synctargets/west";
    for bad in [
        yard.by_people(&good()),
        yard.by_server(&with(&name, &["system:syncers"], &[], 600)),
        yard.by_server(&with(&name, &["system:syncers"], &[other], 600)),
        yard.by_server(&with(&name, &["system:syncers"], &[&uri, other], 600)),
        yard.by_server(&with("system:syncer:x", &["system:syncers"], &[&uri], 600)),
        yard.by_server(&with(&name, &["system:masters"], &[&uri], 600)),
        yard.by_server(&with("ann", &["system:syncers"], &[&uri], 600)),
        yard.by_people(&with("ann", &["system:syncers"], &[], 600)),
        yard.by_people(&with(&name, &["dev"], &[], 600)),
        yard.by_server(&with(&name, &["system:syncers"], &[&uri], -1)),
    ] {
        yard.get(&bad, &east.path()).await.fails(401, "Unauthorized");
        yard.get(&bad, "/clusters/root/healthz").await.fails(401, "Unauthorized");
    }
    // A connection and a watch of a certificate that ends soon end with it.
    let short = yard.by_server(&with(&name, &["system:syncers"], &[&uri], 4));
    let path = format!("{}?{}&watch=1&resourceVersion=0", secrets("infra"), east.query());
    let mut watch = Watching::start(&yard, &short, &path).await;
    assert_eq!(watch.next().await.unwrap()["type"], "ADDED");
    assert_eq!(watch.next().await, None);
    yard.get(&short, &east.path()).await.fails(401, "Unauthorized");
    yard.hub.shutdown().await;
}

/// A watch, event by event.
struct Watching(futures::stream::BoxStream<'static, Value>);

impl Watching {
    async fn start(yard: &Yard, who: &Pair, path: &str) -> Self {
        let (mut sender, connection) = multiplex(yard.hub.connect_as(Some(who)).await).await;
        let mut connection = Box::pin(connection);
        let request = Ask::get(path).request("https://localhost");
        let answer = tokio::select! {
            answer = sender.send_request(request) => answer.unwrap(),
            ended = &mut connection => panic!("the connection ended: {ended:?}"),
        };
        assert_eq!(answer.status(), 200, "{path}");
        let body = answer.into_body().into_data_stream();
        let start = (body, Vec::<u8>::new(), sender, connection);
        let lines = futures::stream::unfold(start, async |mut state| {
            let (body, held, _, connection) = &mut state;
            loop {
                if let Some(end) = held.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = held.drain(..=end).collect();
                    return Some((serde_json::from_slice(&line).unwrap(), state));
                }
                let more = tokio::select! {
                    biased;
                    more = body.next() => more?.ok()?,
                    _ = &mut *connection => return None,
                };
                held.extend_from_slice(&more);
            }
        });
        Self(lines.boxed())
    }

    /// The next event; `None` at the end.
    async fn next(&mut self) -> Option<Value> {
        tokio::time::timeout(PATIENCE, self.0.next()).await.expect("it comes in time")
    }
}
