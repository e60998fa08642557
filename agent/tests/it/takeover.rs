//! Two agents of one SyncTarget: one works, and the other takes over.

use serde_json::json;

use crate::world::{Agent, NAMESPACE, World, until};

const THINGS: &str = "/apis/x.io/v1/namespaces/default/things";

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
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/kcp-agent");
    let lease = world.physical.get(&path).await.unwrap();
    assert_eq!(lease["spec"]["leaseTransitions"], 2, "{lease}");
    third.stop().await;
    let lease = world.physical.get(&path).await.unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "", "it is given back");
    world.end().await;
}
