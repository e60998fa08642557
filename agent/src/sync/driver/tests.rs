//! What the driver takes for proof of who the hub is.

use std::collections::BTreeSet;

use client::{Ask, Link};

use super::*;
use crate::metrics::Metrics;
use crate::sync::testing::server;
use crate::sync::{Shape, Upstream};
use crate::target::TargetRef;

fn driver(link: &Link, tasks: &Tasks, identity: &Identity) -> Driver {
    let settings = Settings {
        target: TargetRef::new("infra", "east", &identity.target),
        upstream: Upstream { link: link.clone(), shape: Shape::Plain },
        downstream: link.clone(),
        types: watch::channel(Arc::from([])).1,
        standing: None,
        reserved_namespaces: BTreeSet::new(),
        parallel: 1,
        version: "0",
        metrics: Metrics::new().unwrap(),
        plain: None,
        handover: None,
    };
    let (progress, seen) = (watch::Sender::default(), watch::Sender::new(None));
    let following = Following::new(&settings, tasks);
    Driver::new(settings, tasks, following, identity, progress, seen)
}

fn identity() -> Identity {
    let text: Arc<str> = "one".into();
    let [hub, logical_cluster, target] = [text.clone(), text.clone(), text];
    Identity { hub, logical_cluster, target, incarnation: 0 }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_answers_over_a_new_connection_has_to_prove_who_it_is() {
    let (running, link) = server().await;
    let tasks = Tasks::new();
    let _end = tasks.cancellation().clone().drop_guard();
    let identity = identity();
    let mut driver = driver(&link, &tasks, &identity);
    let known = |opened| Followed::Known(identity.clone(), Arc::new(Value::Null), opened);
    assert!(link.ask(Ask::get("/version")).await.unwrap().status.is_success());
    let opened = *link.opened().borrow();
    driver.follow(known(opened));
    driver.doubt();
    assert!(!driver.proof.in_doubt, "all connections are older than what was read");

    link.renew_connections();
    assert!(link.ask(Ask::get("/version")).await.unwrap().status.is_success());
    driver.doubt();
    assert!(driver.proof.in_doubt);
    // What was read before says nothing of it, when ever it is told.
    driver.follow(known(opened));
    driver.doubt();
    assert!(driver.proof.in_doubt);
    let opened = *link.opened().borrow();
    driver.follow(known(opened));
    driver.doubt();
    assert!(!driver.proof.in_doubt);
    running.shutdown().await;
}
