//! Conditions, over requests.

use machinery::ClusterName;
use serde_json::json;

use super::*;
use crate::admission::Caller;
use crate::auth::{UserInfo, authz};

async fn met(expressions: &[&str], ignores_failure: bool) -> Result<bool, String> {
    let store = store::MemoryStore::new(store::memory::Options::default());
    let overlay = Arc::new(store::cache::NoOverlay);
    let tasks = runtime::Tasks::new();
    let cache = store::cache::Cache::start(store, overlay, &tasks).await.unwrap();
    let caller = Caller {
        user: Arc::new(UserInfo::known("eve", &[])),
        cluster: ClusterName::root(),
        authorizer: Arc::new(authz::Authorizer::new(cache)),
    };
    let conditions: Vec<Value> =
        expressions.iter().map(|text| json!({"name": "c", "expression": text})).collect();
    let conditions = Conditions::of_webhook(&conditions, ignores_failure);
    let object = json!({"metadata": {"name": "a"}, "spec": {"replicas": 3}});
    let request = json!({
        "operation": "CREATE", "userInfo": {"username": "eve", "groups": ["g"]},
        "requestResource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "resource": {}, "kind": {}, "requestKind": {}, "name": "a", "namespace": "n",
    });
    let namespace = json!({
        "metadata": {"labels": {"env": "test"}, "creationTimestamp": "2026-01-01T00:00:00Z"},
    });
    let inputs = Inputs {
        object: Some(&object),
        old: None,
        request: &request,
        namespace: Some(&namespace),
        params: None,
        caller: &caller,
    };
    conditions.met(&inputs)
}

#[tokio::test]
async fn conditions_see_the_request() {
    let check = async |text: &str, expect: bool| {
        assert_eq!(met(&[text], false).await, Ok(expect), "{text}");
    };
    check("object.spec.replicas == 3", true).await;
    check("oldObject == null", true).await;
    check("request.operation == 'UPDATE'", false).await;
    check("request.userInfo.username == 'eve'", true).await;
    check("namespaceObject.metadata.labels['env'] == 'test'", true).await;
    check("namespaceObject.metadata.creationTimestamp.getFullYear() == 2026", true).await;
    check("authorizer.group('').resource('pods').check('get').allowed()", false).await;
    check("authorizer.path('/healthz').check('get').allowed()", true).await;
    check("authorizer.requestResource.check('create').allowed()", false).await;
}

#[tokio::test]
async fn a_false_condition_decides_and_failures_follow_the_policy() {
    let fails = "object.nothing == 1";
    let why = "expression 'object.nothing == 1' resulted in error: no such key: nothing";
    assert_eq!(met(&[fails], false).await, Err(why.into()));
    assert_eq!(met(&[fails], true).await, Ok(false));
    assert_eq!(met(&[fails, "false"], false).await, Ok(false));
    assert_eq!(met(&["true", fails], true).await, Ok(false));
    let wrong = met(&["1"], false).await.unwrap_err();
    assert_eq!(wrong, "compilation error: must evaluate to bool but got int");
}
