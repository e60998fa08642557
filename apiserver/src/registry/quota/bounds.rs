//! A ResourceQuota held against an object: pure.

use std::collections::BTreeSet;

use machinery::GroupResource;
use machinery::meta::{get, get_str};
use machinery::quantity::Quantity;
use serde_json::{Map, Value};

use super::usage::{self, Amounts, add, concerns};

/// The bounds of one ResourceQuota.
#[derive(Debug)]
pub(super) struct Bounds {
    pub(super) name: String,
    /// The bounds that are in force.
    pub(super) hard: Amounts,
    pub(super) used: Amounts,
    /// Scopes with operators and values, all of which must hold.
    scopes: Vec<(String, String, Vec<String>)>,
}

// === impl Bounds ===

impl Bounds {
    /// Those of a stored quota, as its status has them.
    pub(super) fn of(quota: &Value) -> Self {
        let empty = Value::Null;
        let status = quota.get("status").unwrap_or(&empty);
        Self {
            name: get_str(quota, &["metadata", "name"]).unwrap_or_default().to_owned(),
            hard: usage::amounts(status, "hard"),
            used: usage::amounts(status, "used"),
            scopes: scopes(quota),
        }
    }

    /// The bounds that a quota asks for, whether or not they are in force.
    pub(super) fn wanted(quota: &Value) -> Self {
        let empty = Value::Null;
        let spec = quota.get("spec").unwrap_or(&empty);
        Self { hard: usage::amounts(spec, "hard"), ..Self::of(quota) }
    }

    /// Whether objects without further properties can count.
    pub(super) fn has_scopes(&self) -> bool {
        !self.scopes.is_empty()
    }

    /// Whether the quota counts an object of this resource.
    pub(super) fn covers(&self, resource: &GroupResource, object: &Value) -> bool {
        self.hard.keys().any(|name| concerns(resource, name)) && self.selects(resource, object)
    }

    /// Whether an object has the properties of all scopes.
    pub(super) fn selects(&self, resource: &GroupResource, object: &Value) -> bool {
        self.scopes.iter().all(|(scope, operator, values)| {
            let values = values.iter().map(String::as_str).collect::<Vec<_>>();
            usage::in_scope(resource, object, scope, operator, &values)
        })
    }

    /// What the quota counts of `requested`, without what is zero.
    pub(super) fn charged(&self, requested: &Amounts) -> Amounts {
        let counted = requested
            .iter()
            .filter(|(name, amount)| self.hard.contains_key(*name) && !amount.is_zero());
        counted.map(|(name, amount)| (name.clone(), *amount)).collect()
    }

    /// What would be used with `requested`.
    ///
    /// # Errors
    /// What is exceeded, or not known yet, in upstream's words.
    pub(super) fn with(
        &self,
        resource: &GroupResource,
        requested: &Amounts,
    ) -> Result<Amounts, String> {
        let known = self.hard.keys().filter(|name| concerns(resource, name));
        let unknown = known.filter(|name| !self.used.contains_key(*name)).cloned();
        let unknown = unknown.collect::<Vec<_>>();
        if !unknown.is_empty() {
            let unknown = unknown.join(",");
            return Err(format!("status unknown for quota: {}, resources: {unknown}", self.name));
        }
        let mut used = self.used.clone();
        let mut exceeded = BTreeSet::new();
        for (name, amount) in requested {
            let before = used.get(name).copied().unwrap_or(usage::number(0));
            let after = add(before, *amount);
            if self.hard.get(name).is_some_and(|hard| after > *hard) {
                exceeded.insert(name.as_str());
            }
            used.insert(name.clone(), after);
        }
        if exceeded.is_empty() {
            return Ok(used);
        }
        let shown = |amounts: &Amounts| {
            let parts = amounts.iter().filter(|(name, _)| exceeded.contains(name.as_str()));
            parts.map(|(name, amount)| format!("{name}={amount}")).collect::<Vec<_>>().join(",")
        };
        Err(format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            self.name,
            shown(requested),
            shown(&self.used),
            shown(&self.hard),
        ))
    }
}

fn scopes(quota: &Value) -> Vec<(String, String, Vec<String>)> {
    let list = |path: &[&str]| get(quota, path).and_then(Value::as_array).into_iter().flatten();
    let plain = list(&["spec", "scopes"]).filter_map(Value::as_str);
    let plain = plain.map(|scope| (scope.to_owned(), "Exists".to_owned(), Vec::new()));
    let selected = list(&["spec", "scopeSelector", "matchExpressions"]).map(|requirement| {
        let text = |field| get_str(requirement, &[field]).unwrap_or_default().to_owned();
        let values = requirement.get("values").and_then(Value::as_array).into_iter().flatten();
        let values = values.filter_map(Value::as_str).map(str::to_owned).collect();
        (text("scopeName"), text("operator"), values)
    });
    plain.chain(selected).collect()
}

/// Amounts as a status holds them.
pub(super) fn shown(amounts: &Amounts) -> Value {
    let fields = amounts.iter().map(|(name, amount)| (name.clone(), amount.to_string().into()));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// `after` without what was there `before`, and never below zero.
pub(super) fn growth(after: &Amounts, before: &Amounts) -> Amounts {
    let grown = after.iter().filter_map(|(name, amount)| {
        let grown = match before.get(name) {
            Some(before) => amount.checked_sub(*before)?,
            None => *amount,
        };
        (grown > Quantity::new(0, amount.notation())).then(|| (name.clone(), grown))
    });
    grown.collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn quota(hard: &Value, used: &Value) -> Bounds {
        Bounds::of(&json!({"metadata": {"name": "q"}, "status": {"hard": hard, "used": used}}))
    }

    #[track_caller]
    fn check(hard: &Value, used: &Value, expect: Result<&[(&str, &str)], &str>) {
        let secrets = GroupResource::new("", "secrets");
        let requested = usage::usage(&secrets, &json!({}), Timestamp::UNIX_EPOCH);
        let quota = quota(hard, used);
        let with = quota.with(&secrets, &quota.charged(&requested));
        let with = with.map(|used| {
            used.into_iter().map(|(name, amount)| (name, amount.to_string())).collect::<Vec<_>>()
        });
        let expect = expect.map(|used| {
            used.iter().map(|(name, amount)| ((*name).into(), (*amount).into())).collect()
        });
        assert_eq!(with, expect.map_err(str::to_owned));
    }

    #[test]
    fn bounds_hold() {
        check(&json!({"secrets": "2"}), &json!({"secrets": "1"}), Ok(&[("secrets", "2")]));
        check(
            &json!({"secrets": "2", "configmaps": "1"}),
            &json!({"secrets": "1", "configmaps": "9"}),
            Ok(&[("configmaps", "9"), ("secrets", "2")]),
        );
        check(
            &json!({"secrets": "1", "count/secrets": "1"}),
            &json!({"secrets": "1", "count/secrets": "0"}),
            Err("exceeded quota: q, requested: secrets=1, used: secrets=1, limited: secrets=1"),
        );
        check(
            &json!({"secrets": "1", "configmaps": "1"}),
            &json!({}),
            Err("status unknown for quota: q, resources: secrets"),
        );
        check(&json!({"configmaps": "0"}), &json!({"configmaps": "3"}), Ok(&[("configmaps", "3")]));
    }

    #[test]
    fn scopes_select() {
        let pods = GroupResource::new("", "pods");
        let of = |scopes: &Value, selector: &Value| {
            Bounds::of(&json!({
                "spec": {"scopes": scopes, "scopeSelector": {"matchExpressions": selector}},
                "status": {"hard": {"pods": "1"}},
            }))
        };
        let plain = json!({"spec": {"containers": [{}]}});
        let ends = json!({"spec": {"activeDeadlineSeconds": 5, "priorityClassName": "high"}});
        let check = |scopes: &Value, selector: &Value, expect: [bool; 2]| {
            let bounds = of(scopes, selector);
            let covers = [&plain, &ends].map(|pod| bounds.covers(&pods, pod));
            assert_eq!(covers, expect, "{scopes} {selector}");
            let secrets = GroupResource::new("", "secrets");
            assert!(!bounds.covers(&secrets, &plain));
        };
        check(&json!([]), &json!([]), [true, true]);
        check(&json!(["Terminating"]), &json!([]), [false, true]);
        check(&json!(["NotTerminating", "BestEffort"]), &json!([]), [true, false]);
        check(&json!(["NotBestEffort"]), &json!([]), [false, false]);
        let class = |operator: &str, values: &[&str]| json!([{"scopeName": "PriorityClass", "operator": operator, "values": values}]);
        check(&json!([]), &class("Exists", &[]), [false, true]);
        check(&json!([]), &class("DoesNotExist", &[]), [true, false]);
        check(&json!([]), &class("In", &["high"]), [false, true]);
        check(&json!([]), &class("NotIn", &["high"]), [true, false]);
    }

    #[test]
    fn growth_is_never_negative() {
        let services = GroupResource::new("", "services");
        let of = |kind: &str, ports: usize| {
            let ports = vec![json!({"port": 1}); ports];
            let service = json!({"spec": {"type": kind, "ports": ports}});
            usage::usage(&services, &service, Timestamp::UNIX_EPOCH)
        };
        let grown = growth(&of("LoadBalancer", 2), &of("NodePort", 1));
        assert_eq!(
            shown(&grown),
            json!({"services.loadbalancers": "1", "services.nodeports": "1"})
        );
        assert!(growth(&of("ClusterIP", 2), &of("NodePort", 5)).is_empty());
    }
}
