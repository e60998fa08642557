//! Single rules; whole objects are compared with upstream in `table/tests.rs`.

use serde_json::json;

use super::*;
use crate::Types;

#[allow(clippy::needless_pass_by_value)]
fn check(kind: &str, mut input: Value, expect: Value) {
    let schema = Types::builtin().named(kind).unwrap();
    schema.default(&mut input);
    assert_eq!(input, expect, "{kind}");
}

#[test]
fn rules() {
    let secret = "io.k8s.api.core.v1.Secret";
    check(secret, json!({}), json!({"type": "Opaque"}));
    check(secret, json!({"type": "x"}), json!({"type": "x"}));
    check(secret, json!({"stringData": {}}), json!({"type": "Opaque"}));

    let port = "io.k8s.api.core.v1.ServicePort";
    let filled = json!({"port": 80, "protocol": "TCP", "targetPort": 80});
    check(port, json!({"port": 80, "targetPort": 0}), filled.clone());
    check(port, json!({"port": 80, "targetPort": ""}), filled.clone());
    check(port, filled.clone(), filled);

    let exempt = "io.k8s.api.flowcontrol.v1.ExemptPriorityLevelConfiguration";
    let zeros = json!({"nominalConcurrencyShares": 0, "lendablePercent": 0});
    check(exempt, json!({}), zeros);

    let limited = "io.k8s.api.flowcontrol.v1.LimitedPriorityLevelConfiguration";
    let shares = json!({"nominalConcurrencyShares": 0, "lendablePercent": 5});
    check(limited, shares.clone(), shares);

    let spec = "io.k8s.api.core.v1.ServiceSpec";
    let sticky = json!({"sessionAffinity": "ClientIP", "type": "ExternalName"});
    let mut expect = sticky.clone();
    expect["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": 10800}});
    check(spec, sticky, expect);
}

#[test]
fn types_without_rules_are_left_alone() {
    for odd in [json!({"type": 5}), json!([]), json!(null), json!({"spec": {"limits": [1, null]}})]
    {
        check("io.k8s.api.core.v1.ConfigMap", odd.clone(), odd);
    }
}

#[test]
fn odd_values_do_no_harm() {
    for odd in [json!([]), json!(null), json!({"spec": {"limits": [1, null, {"max": 3}]}})] {
        check("io.k8s.api.core.v1.LimitRange", odd.clone(), odd);
    }
}
