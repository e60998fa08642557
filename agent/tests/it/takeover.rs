//! Two agents of one SyncTarget: one works, and the other takes over.

use agent::leader::{Candidate, Handover};
use serde_json::json;

use crate::world::{Agent, NAMESPACE, World, until};

const THINGS: &str = "/apis/x.io/v1/namespaces/default/things";

fn lease() -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/kcp-agent")
}

async fn leads(agent: &Agent) -> bool {
    agent.metric("kcp_agent_leader").await > 0.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_works_and_the_other_takes_over() {
    let world = World::new().await;
    let first = world.agent();
    first.ready().await;
    assert!(leads(&first).await);
    let second = world.agent();
    // It could take over, which is all that it has to be ready for.
    second.ready().await;
    assert!(!leads(&second).await);
    world.assign("infra", THINGS, "one", &json!({"spec": {"n": 1}})).await;
    world.physical.until(&format!("{THINGS}/one"), "there", |_| true).await;
    let writes = "kcp_sync_writes_total{side=\"downstream\"}";
    assert!(first.metric(writes).await > 0.0);
    assert!(second.metric(writes).await.abs() < f64::EPSILON);

    // In good order it is given over at once.
    let begun = tokio::time::Instant::now();
    first.stop().await;
    until("the second leads", async || leads(&second).await).await;
    assert!(begun.elapsed() < agent::leader::LEASE, "{:?}", begun.elapsed());
    world.assign("infra", THINGS, "two", &json!({"spec": {"n": 2}})).await;
    world.physical.until(&format!("{THINGS}/two"), "there", |_| true).await;

    // After a crash it takes as long as the Lease holds.
    let third = world.agent();
    third.ready().await;
    second.kill().await;
    until("the third leads", async || leads(&third).await).await;
    world.assign("infra", THINGS, "three", &json!({"spec": {"n": 3}})).await;
    world.physical.until(&format!("{THINGS}/three"), "there", |_| true).await;
    let there = world.physical.get(&lease()).await.unwrap();
    assert_eq!(there["spec"]["leaseTransitions"], 2, "{there}");
    third.stop().await;
    let lease = world.physical.get(&lease()).await.unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "", "it is given back");
    world.end().await;
}

/// Whose work ends while a renewal is under way may have renewed without knowing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_given_back_that_was_renewed_unseen() {
    let world = World::new().await;
    let candidate = Candidate {
        link: world.physical.link.clone(),
        namespace: NAMESPACE.to_owned(),
        name: "kcp-agent".to_owned(),
        identity: "one".to_owned(),
        handover: Handover::default(),
    };
    let term = candidate.lead(|| {}).await;
    let unseen = json!({"spec": {"renewTime": "2100-01-01T00:00:00.000000Z"}});
    world.physical.merge(&lease(), &unseen).await;
    candidate.handover.set("seen".to_owned());
    candidate.release(term).await;
    let given = world.physical.get(&lease()).await.unwrap();
    assert_eq!(given["spec"]["holderIdentity"], "", "{given}");
    assert_eq!(given["metadata"]["annotations"]["workloads.kcp.io/hub-seen"], "seen");

    // What is another's by then stays so.
    let term = candidate.lead(|| {}).await;
    world.physical.merge(&lease(), &json!({"spec": {"holderIdentity": "two"}})).await;
    candidate.release(term).await;
    let kept = world.physical.get(&lease()).await.unwrap();
    assert_eq!(kept["spec"]["holderIdentity"], "two", "{kept}");
    world.end().await;
}
