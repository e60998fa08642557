//! What the administrator does with success, and waits for.

use std::borrow::Borrow;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Ask, Hub, PATIENCE};

/// How long it is until an answer that was not as wanted is asked for again.
const PAUSE: Duration = Duration::from_millis(5);

/// Makes an object; what it is then.
pub(crate) async fn create(hub: &Hub, path: &str, object: impl Borrow<Value>) -> Value {
    let answer = hub.admin(Ask::new(Method::POST, path).json(object.borrow())).await;
    assert_eq!(answer.status, 201, "{path}: {answer:?}");
    answer.json()
}

/// A JSON merge patch.
pub(crate) fn merge(path: &str, patch: &Value) -> Ask {
    let ask = Ask::new(Method::PATCH, path).header("content-type", "application/merge-patch+json");
    ask.body(patch.to_string())
}

/// Changes an object by a merge patch; what it is then.
pub(crate) async fn change(hub: &Hub, path: &str, patch: impl Borrow<Value>) -> Value {
    let answer = hub.admin(merge(path, patch.borrow())).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json()
}

/// Gives a user rights in a logical cluster, by a ClusterRole and a binding of the user's name.
pub(crate) async fn allow(hub: &Hub, cluster: &str, user: &str, rules: impl Borrow<Value>) {
    let path = format!("/clusters/{cluster}/apis/rbac.authorization.k8s.io/v1");
    let role = json!({"metadata": {"name": user}, "rules": rules.borrow()});
    create(hub, &format!("{path}/clusterroles"), role).await;
    let binding = json!({
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
        "subjects": [{"kind": "User", "name": user}],
    });
    create(hub, &format!("{path}/clusterrolebindings"), binding).await;
}

/// Asks until code and body are as wanted: controllers work on their own time.
pub(crate) async fn eventually(
    hub: &Hub,
    path: &str,
    wanted: impl Fn(u16, &Value) -> bool,
) -> Value {
    until(async || hub.get(path).await, wanted).await
}

/// Waits until an object is not there any more.
pub(crate) async fn gone(hub: &Hub, path: &str) {
    eventually(hub, path, |status, _| status == 404).await;
}

/// Asks somehow, until code and body are as wanted.
pub(crate) async fn until(
    get: impl AsyncFn() -> Answer,
    wanted: impl Fn(u16, &Value) -> bool,
) -> Value {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        let answer = get().await;
        let value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if wanted(answer.status.as_u16(), &value) {
            return value;
        }
        assert!(tokio::time::Instant::now() < end, "it is still {answer:?}");
        tokio::time::sleep(PAUSE).await;
    }
}
