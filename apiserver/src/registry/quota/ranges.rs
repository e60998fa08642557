//! LimitRanges held against pods and claims: what they fill in, and what they refuse. Pure.

use machinery::GroupResource;
use machinery::meta::{get, get_str, set};
use machinery::quantity::Quantity;
use serde_json::{Map, Value, json};

use super::usage::{Amounts, amounts, asked_for};

/// The annotation that tells what was filled in.
const TOLD: [&str; 3] = ["metadata", "annotations", "kubernetes.io/limit-ranger"];

/// Amounts that are compared by thousandths; larger ones by whole units, as upstream.
const MAX_PRECISE: i64 = i64::MAX / 1000;

/// Whether objects of a resource are limited.
pub(in crate::registry) fn is_limited(resource: &GroupResource) -> bool {
    resource.group.is_empty() && matches!(&*resource.resource, "pods" | "persistentvolumeclaims")
}

/// Fills in what containers of a new pod don't ask for, by one LimitRange.
pub(in crate::registry) fn fill(range: &Value, pod: &mut Value) {
    let (mut requests, mut limits) = (Map::new(), Map::new());
    for limit in limits_of(range, "Container") {
        for (field, into) in [("defaultRequest", &mut requests), ("default", &mut limits)] {
            let amounts = limit.get(field).and_then(Value::as_object).into_iter().flatten();
            into.extend(amounts.map(|(name, amount)| (name.clone(), amount.clone())));
        }
    }
    let mut told = Vec::new();
    for (list, called) in [("containers", "container"), ("initContainers", "init container")] {
        let path = format!("/spec/{list}");
        let containers = pod.pointer_mut(&path).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let name = get_str(container, &["name"]).unwrap_or_default().to_owned();
            for (field, defaults) in [("requests", &requests), ("limits", &limits)] {
                let set = fill_field(container, field, defaults);
                if !set.is_empty() {
                    let what = field.trim_end_matches('s');
                    told.push(format!("{} {what} for {called} {name}", set.join(", ")));
                }
            }
        }
    }
    if !told.is_empty() {
        set(pod, &TOLD, json!(format!("LimitRanger plugin set: {}", told.join("; "))));
    }
}

/// Returns the names of what was filled in.
fn fill_field(container: &mut Value, field: &str, defaults: &Map<String, Value>) -> Vec<String> {
    let mut filled = Vec::new();
    for (name, amount) in defaults {
        let path = ["resources", field, name.as_str()];
        if get(container, &path).is_none() {
            set(container, &path, amount.clone());
            filled.push(name.clone());
        }
    }
    filled
}

/// What one LimitRange refuses of a new object, in upstream's words.
pub(in crate::registry) fn refused(
    resource: &GroupResource,
    range: &Value,
    object: &Value,
) -> Vec<String> {
    let mut problems = Vec::new();
    if &*resource.resource == "persistentvolumeclaims" {
        let empty = Value::Null;
        let requests = amounts(get(object, &["spec", "resources"]).unwrap_or(&empty), "requests");
        for limit in limits_of(range, "PersistentVolumeClaim") {
            let asked = Asked { kind: "PersistentVolumeClaim", requests: &requests, limits: None };
            problems.extend(asked.check(limit));
        }
        return problems;
    }
    for limit in limits_of(range, "Container") {
        for list in ["containers", "initContainers"] {
            let containers = get(object, &["spec", list]).and_then(Value::as_array);
            for container in containers.into_iter().flatten() {
                let resources = container.get("resources").unwrap_or(&Value::Null);
                let of = |field| amounts(resources, field);
                let (requests, limits) = (of("requests"), of("limits"));
                let asked = Asked { kind: "Container", requests: &requests, limits: Some(&limits) };
                problems.extend(asked.check(limit));
            }
        }
    }
    for limit in limits_of(range, "Pod") {
        let [requests, limits] = ["requests", "limits"].map(|field| asked_for(object, field));
        let asked = Asked { kind: "Pod", requests: &requests, limits: Some(&limits) };
        problems.extend(asked.check(limit));
    }
    problems
}

fn limits_of<'r>(range: &'r Value, kind: &'r str) -> impl Iterator<Item = &'r Value> {
    let limits = get(range, &["spec", "limits"]).and_then(Value::as_array);
    limits.into_iter().flatten().filter(move |limit| get_str(limit, &["type"]) == Some(kind))
}

/// What something asks for. Claims have no limits.
#[derive(Clone, Copy)]
struct Asked<'a> {
    kind: &'static str,
    requests: &'a Amounts,
    limits: Option<&'a Amounts>,
}

// === impl Asked ===

impl Asked<'_> {
    fn check(self, limit: &Value) -> Vec<String> {
        let each = |field, rule: fn(Self, &str, Quantity) -> Option<String>| {
            let bounds = amounts(limit, field).into_iter();
            bounds.filter_map(move |(name, bound)| rule(self, &name, bound)).collect::<Vec<_>>()
        };
        let mut problems = each("min", Self::below);
        problems.extend(each("max", Self::above));
        if self.limits.is_some() {
            problems.extend(each("maxLimitRequestRatio", Self::beyond));
        }
        problems
    }

    fn request(self, name: &str) -> Option<Quantity> {
        self.requests.get(name).copied()
    }

    fn limit(self, name: &str) -> Option<Quantity> {
        self.limits?.get(name).copied()
    }

    fn below(self, name: &str, least: Quantity) -> Option<String> {
        let told = format!("minimum {name} usage per {} is {least}", self.kind);
        let Some(request) = self.request(name) else {
            return Some(format!("{told}.  No request is specified"));
        };
        if request < least {
            return Some(format!("{told}, but request is {request}"));
        }
        let limit = self.limit(name).filter(|limit| *limit < least)?;
        Some(format!("{told}, but limit is {limit}"))
    }

    fn above(self, name: &str, most: Quantity) -> Option<String> {
        let told = format!("maximum {name} usage per {} is {most}", self.kind);
        let request = self.request(name);
        if self.limits.is_some() {
            match self.limit(name) {
                None => return Some(format!("{told}.  No limit is specified")),
                Some(limit) if limit > most => {
                    return Some(format!("{told}, but limit is {limit}"));
                }
                Some(_) => {}
            }
        } else if request.is_none() {
            return Some(format!("{told}.  No request is specified"));
        }
        let request = request.filter(|request| *request > most)?;
        Some(format!("{told}, but request is {request}"))
    }

    fn beyond(self, name: &str, most: Quantity) -> Option<String> {
        let told = format!("{name} max limit to request ratio per {} is {most}", self.kind);
        let given = |amount: Option<Quantity>| amount.filter(|amount| !amount.is_zero());
        let Some(request) = given(self.request(name)) else {
            return Some(format!("{told}, but no request is specified or request is 0"));
        };
        let Some(limit) = given(self.limit(name)) else {
            return Some(format!("{told}, but no limit is specified or limit is 0"));
        };
        let (request, limit) = common(request, limit)?;
        let ratio = limit as f64 / request as f64;
        let wanted = most.milli_value()? as f64 / 1000.0;
        (ratio > wanted).then(|| format!("{told}, but provided ratio is {ratio:.6}"))
    }
}

/// Two amounts as numbers of one precision.
fn common(a: Quantity, b: Quantity) -> Option<(i64, i64)> {
    let whole = (a.value()?, b.value()?);
    if whole.0 <= MAX_PRECISE && whole.1 <= MAX_PRECISE {
        return a.milli_value().zip(b.milli_value());
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(kind: &str, fields: Value) -> Value {
        let mut limit = fields;
        limit["type"] = json!(kind);
        json!({"spec": {"limits": [limit]}})
    }

    fn pod(resources: &Value) -> Value {
        json!({"metadata": {}, "spec": {
            "containers": [{"name": "a", "resources": resources}],
            "initContainers": [{"name": "b", "resources": resources}],
        }})
    }

    #[track_caller]
    fn check(plural: &str, range: &Value, object: &Value, expect: &[&str]) {
        assert_eq!(refused(&GroupResource::new("", plural), range, object), expect);
    }

    #[test]
    fn what_is_missing_is_filled_in() {
        let range = range(
            "Container",
            json!({
                "default": {"cpu": "1", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"},
            }),
        );
        let mut pod = pod(&json!({"limits": {"cpu": "2"}}));
        fill(&range, &mut pod);
        let expect = json!({
            "limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "100m"},
        });
        assert_eq!(pod["spec"]["containers"][0]["resources"], expect);
        assert_eq!(pod["spec"]["initContainers"][0]["resources"], expect);
        assert_eq!(
            get_str(&pod, &TOLD),
            Some(
                "LimitRanger plugin set: cpu request for container a; memory limit for container \
                 a; cpu request for init container b; memory limit for init container b"
            )
        );
        let full = pod.clone();
        fill(&range, &mut pod);
        assert_eq!(pod, full);
    }

    #[test]
    fn bounds_of_containers_pods_and_claims() {
        let bounds = range(
            "Container",
            json!({
                "min": {"cpu": "100m"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "2"},
            }),
        );
        let of = |request: &str, limit: &str| {
            json!({"spec": {"containers": [
                {"resources": {"requests": {"cpu": request}, "limits": {"cpu": limit}}},
            ]}})
        };
        check("pods", &bounds, &of("500m", "1"), &[]);
        check(
            "pods",
            &bounds,
            &of("50m", "2"),
            &[
                "minimum cpu usage per Container is 100m, but request is 50m",
                "maximum cpu usage per Container is 1, but limit is 2",
                "cpu max limit to request ratio per Container is 2, but provided ratio is 40.000000",
            ],
        );
        check(
            "pods",
            &bounds,
            &json!({"spec": {"containers": [{}]}}),
            &[
                "minimum cpu usage per Container is 100m.  No request is specified",
                "maximum cpu usage per Container is 1.  No limit is specified",
                "cpu max limit to request ratio per Container is 2, but no request is specified or \
                 request is 0",
            ],
        );
        let of_pods = range("Pod", json!({"max": {"cpu": "1"}}));
        let two = json!({"limits": {"cpu": "600m"}, "requests": {"cpu": "600m"}});
        let two = json!({"spec": {"containers": [{"resources": two}, {"resources": two}]}});
        check("pods", &of_pods, &two, &["maximum cpu usage per Pod is 1, but limit is 1200m"]);
        let claims = range(
            "PersistentVolumeClaim",
            json!({
                "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"},
            }),
        );
        let claim =
            |storage: &str| json!({"spec": {"resources": {"requests": {"storage": storage}}}});
        check("persistentvolumeclaims", &claims, &claim("1Gi"), &[]);
        check(
            "persistentvolumeclaims",
            &claims,
            &claim("3Gi"),
            &["maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"],
        );
    }
}
