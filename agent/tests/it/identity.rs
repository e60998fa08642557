//! How an agent comes to its certificate, keeps it and loses it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::{Ask, Credentials, Link};
use jiff::Timestamp;
use machinery::kubeconfig::Access;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType,
};
use serde_json::json;

use crate::world::{NAMESPACE, World, entry, until};

fn secret() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/secrets/kcp-agent-identity")
}

const REQUESTS: &str = "/clusters/infra/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// How many certificates were asked for.
async fn requests(world: &World) -> usize {
    world.hub.get(REQUESTS).await.unwrap()["items"].as_array().unwrap().len()
}

/// A bootstrap token and no certificate; then both; then a certificate and a token that is worthless.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_asked_for_once_and_found_again() {
    let world = World::new().await;
    let agent = world.agent();
    agent.ready().await;
    let kept = world.physical.get(&secret()).await.unwrap();
    let (chain, key) = (entry(&kept, "tls.crt").unwrap(), entry(&kept, "tls.key").unwrap());
    assert!(chain.starts_with("-----BEGIN CERTIFICATE") && key.contains("PRIVATE KEY"));
    assert_eq!(entry(&kept, "next.key"), None);
    assert_eq!(requests(&world).await, 1);
    let end = agent.metric("kcp_agent_certificate_expiration_timestamp_seconds").await;
    let day = 86_400.0;
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    let now = Timestamp::now().as_second() as f64;
    assert!(end > now + day * 0.9 && end < now + day * 1.1, "{end}");
    agent.stop().await;

    let agent = world.agent();
    agent.ready().await;
    assert_eq!(requests(&world).await, 1, "it has one");
    agent.stop().await;

    std::fs::write(world.file("token"), "abcdef.ffffffffffffffff").unwrap();
    let agent = world.agent();
    agent.ready().await;
    agent.stop().await;
    let after = world.physical.get(&secret()).await.unwrap();
    assert_eq!(entry(&after, "tls.crt").unwrap(), chain);
    world.end().await;
}

/// Neither is there: it says so, and goes on as soon as there is a token.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_anything_it_waits_for_a_token() {
    let world = World::new().await;
    std::fs::remove_file(world.file("token")).unwrap();
    let agent = world.agent();
    until("leading", async || agent.metric("kcp_agent_leader").await > 0.0).await;
    let (code, why) = agent.page("/readyz").await;
    assert_eq!(code, 503, "{why}");
    assert!(why.contains("certificate") || why.contains("has just begun"), "{why}");
    world.make_token("ghijkl").await;
    agent.ready().await;
    agent.stop().await;
    world.end().await;
}

/// What is kept for another target is not used, whatever its name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_target_s_certificate_is_none() {
    let mut world = World::new().await;
    let agent = world.agent();
    agent.ready().await;
    agent.stop().await;
    let before = world.physical.get(&secret()).await.unwrap();
    // The same name, made again.
    world.hub.delete(&world.target()).await;
    world.hub.until_gone(&world.target()).await;
    let target = json!({
        "apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget",
        "metadata": {"name": "east"}, "spec": {},
    });
    let made = world.hub.create(crate::world::TARGETS, &target).await;
    world.uid = made["metadata"]["uid"].as_str().unwrap().to_owned();
    world.make_token("ghijkl").await;
    let agent = world.agent();
    agent.ready().await;
    let after = world.physical.get(&secret()).await.unwrap();
    assert_ne!(entry(&before, "tls.crt"), entry(&after, "tls.crt"));
    agent.stop().await;
    world.end().await;
}

/// Revocation cuts a stolen key off, and the agent comes back by a token.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_certificate_is_replaced_and_a_stolen_one_is_worthless() {
    let world = World::new().await;
    let agent = world.agent();
    agent.ready().await;
    let kept = world.physical.get(&secret()).await.unwrap();
    let stolen = Credentials::Certificate {
        chain: entry(&kept, "tls.crt").unwrap().into_bytes(),
        key: entry(&kept, "tls.key").unwrap().into_bytes(),
    };
    let access = Access::parse(world.hub.kubeconfig().as_bytes(), None).unwrap();
    let mut settings =
        client::Settings::of_access(access, std::path::Path::new(""), "thief/0").unwrap();
    settings.server = settings.server.with_path("");
    settings.credentials = stolen;
    let thief = Link::new(settings).unwrap();
    let target = world.target();
    let maps = "/clusters/infra/api/v1/namespaces/default/configmaps";
    let watched = format!(
        "/clusters/infra/api/v1/configmaps?watch=true&labelSelector={}",
        "sync.workloads.kcp.io%2Finfra.east"
    );
    assert_eq!(thief.ask(Ask::get(&target)).await.unwrap().status, 200);
    // What is not assigned is not seen; the target's kubeconfig neither.
    world.hub.create(maps, &json!({"metadata": {"name": "plain"}})).await;
    for path in [format!("{maps}/plain"), maps.to_owned(), "/clusters/root/api/v1/secrets".into()] {
        assert_eq!(thief.ask(Ask::get(&path)).await.unwrap().status, 403, "{path}");
    }
    let mut live = thief.follow(Ask::get(&watched)).await.unwrap().unwrap();

    // Certificates say when they begin in whole seconds, and a little before they were made.
    let revoked = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    world
        .hub
        .merge(&format!("{target}/status"), &json!({"status": {"credentialsNotBefore": revoked}}))
        .await;
    until("the thief is cut off", async || {
        thief.ask(Ask::get(&target)).await.unwrap().status == 401
    })
    .await;
    let ended = async { while let Ok(Some(_)) = live.next().await {} };
    tokio::time::timeout(crate::world::PATIENCE, ended).await.expect("the live watch ends, too");

    // The token is still good: the agent has another certificate, and goes on.
    let before = entry(&kept, "tls.crt");
    until("another certificate", async || {
        let kept = world.physical.get(&secret()).await.unwrap();
        entry(&kept, "tls.crt") != before
    })
    .await;
    // One that is asked for in the very second of the revocation is void.
    assert!((2..=3).contains(&requests(&world).await));
    world.assign("infra", "/api/v1/namespaces/default/configmaps", "late", &json!({})).await;
    world.physical.until("/api/v1/namespaces/default/configmaps/late", "there", |_| true).await;
    assert_eq!(thief.ask(Ask::get(&target)).await.unwrap().status, 401);
    agent.stop().await;
    world.end().await;
}

/// Authorities change with an overlap: the agent takes the new ones up without a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bundle_of_authorities_is_read_again() {
    let mut world = World::new().await;
    let agent = world.agent();
    agent.ready().await;
    // The old one, and one more before it.
    let own = std::fs::read(world.file("ca.crt")).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let other = rcgen::CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap();
    std::fs::write(world.file("ca.crt"), [other.pem().into_bytes(), own.clone()].concat()).unwrap();
    world.hub.stop().await;
    world.hub.resume().await;
    world.assign("infra", "/api/v1/namespaces/default/configmaps", "late", &json!({})).await;
    world.physical.until("/api/v1/namespaces/default/configmaps/late", "there", |_| true).await;
    agent.stop().await;
    world.end().await;
}

/// A certificate with a fifth of its life left is replaced by asking with it: nothing else is needed, and
/// its end is not noticed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_near_its_end_is_renewed_with_itself() {
    let world = World::new().await;
    std::fs::remove_file(world.file("token")).unwrap();
    let (chain, key, end) = ending(&world);
    let data =
        json!({"data": {"tls.crt": STANDARD.encode(&chain), "tls.key": STANDARD.encode(&key)}});
    world.physical.merge(&secret(), &data).await;
    let agent = world.agent();
    agent.ready().await;
    let renewed = async || {
        let kept = world.physical.get(&secret()).await.unwrap();
        entry(&kept, "tls.crt").is_some_and(|now| now != chain)
    };
    until("it is renewed", renewed).await;
    assert!(Timestamp::now() < end, "before its end");
    assert_eq!(requests(&world).await, 1);
    let shown = "kcp_agent_certificate_expiration_timestamp_seconds";
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    let end_seconds = end.as_second() as f64;
    until("it is told", async || agent.metric(shown).await > end_seconds + 3600.0).await;
    until("the first has ended", async || Timestamp::now() > end).await;
    world.assign("infra", "/api/v1/namespaces/default/configmaps", "late", &json!({})).await;
    world.physical.until("/api/v1/namespaces/default/configmaps/late", "there", |_| true).await;
    agent.stop().await;
    world.end().await;
}

/// A certificate of the agent by the hub's own authority, with a fifth of 100 seconds left; its key; and
/// when it ends.
fn ending(world: &World) -> (String, String, Timestamp) {
    let read = |name: &str| std::fs::read_to_string(world.file("hub/pki").join(name)).unwrap();
    let authority = KeyPair::from_pem(&read("ca.key")).unwrap();
    let issuer = Issuer::from_ca_cert_pem(&read("ca.crt"), authority).unwrap();
    let now = Timestamp::now();
    let at = |seconds: i64| {
        let since = u64::try_from(now.as_second() + seconds).unwrap();
        rcgen::date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(since)
    };
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, contract::agent_name(&world.uid));
    params.distinguished_name.push(DnType::OrganizationName, contract::AGENTS);
    let uri = contract::AgentUri { cluster: "infra", name: "east" }.to_string();
    params.subject_alt_names = vec![SanType::URI(uri.try_into().unwrap())];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    (params.not_before, params.not_after) = (at(-80), at(20));
    let key = KeyPair::generate().unwrap();
    let chain = params.signed_by(&key, &issuer).unwrap().pem();
    (chain, key.serialize_pem(), now + jiff::SignedDuration::from_secs(20))
}
