//! ResourceQuotas: names of what is bounded, amounts, and scopes that fit them.

use std::collections::BTreeSet;

use machinery::meta::get;
use machinery::quantity::Quantity;
use machinery::{FieldError, FieldPath};
use serde_json::{Map, Value, json};

use super::Strategy;
use super::check::{items, text};
use super::limits::bad_name;

#[derive(Debug)]
pub(super) struct ResourceQuotas;

/// What upstream's quotas know without a group.
const STANDARD: [&str; 19] = [
    "configmaps",
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// Those of which there are whole ones only.
const WHOLE: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// Scopes, and those that exclude each other.
const SCOPES: [&str; 7] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
];
const CONFLICTS: [[&str; 2]; 2] =
    [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];

impl Strategy for ResourceQuotas {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let mut problems = Vec::new();
        for [part, field] in [["spec", "hard"], ["status", "hard"], ["status", "used"]] {
            let path = FieldPath::root(part).child(field);
            for (name, amount) in amounts(object, part, field) {
                problems.extend(bad_amount(name, amount, &path.key(name)));
            }
        }
        let empty = Value::Null;
        let spec = get(object, &["spec"]).unwrap_or(&empty);
        let hard = amounts(object, "spec", "hard").map(|(name, _)| name.as_str());
        let hard = hard.collect::<BTreeSet<_>>();
        problems.extend(bad_scopes(spec, &hard));
        problems.extend(bad_selector(spec, &hard));
        problems
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        let scopes = |object: &Value| {
            let scopes = get(object, &["spec", "scopes"]).and_then(Value::as_array).cloned();
            let scopes = scopes.into_iter().flatten();
            scopes.map(|scope| scope.as_str().unwrap_or_default().to_owned()).collect()
        };
        let (before, after): (BTreeSet<String>, BTreeSet<String>) = (scopes(old), scopes(new));
        if before == after {
            return Vec::new();
        }
        let path = FieldPath::root("spec").child("scopes");
        vec![FieldError::invalid(&path, &json!(after), "field is immutable")]
    }

    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        if old.is_some() {
            return Vec::new();
        }
        let amount = |name: &str| {
            let text = get(object, &["spec", "hard", name])?.as_str()?;
            Some((Quantity::parse(text).ok()?, text))
        };
        let mut warnings = Vec::new();
        for resource in ["cpu", "memory", "storage", "ephemeral-storage"] {
            let full = format!("requests.{resource}");
            let bare = matches!(resource, "cpu" | "memory").then_some(resource);
            let mut names = std::iter::once(full.as_str()).chain(bare);
            let request = names.find_map(|name| Some((name, amount(name)?)));
            let limit = format!("limits.{resource}");
            if let Some((name, (requested, shown))) = request
                && let Some((most, most_shown)) = amount(&limit)
                && requested > most
            {
                warnings.push(format!(
                    "ResourceQuota {name} ({shown}) should be less than {limit} ({most_shown})"
                ));
            }
        }
        warnings
    }
}

fn amounts<'o>(
    object: &'o Value,
    part: &str,
    field: &str,
) -> impl Iterator<Item = (&'o String, &'o Value)> + use<'o> {
    let list = get(object, &[part, field]).and_then(Value::as_object);
    list.into_iter().flat_map(Map::iter)
}

fn bad_amount(name: &str, amount: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut problems = bad_name(name, path);
    if !name.contains('/') && !is_standard(name) {
        problems.push(FieldError::invalid_str(path, name, "must be a standard resource for quota"));
    }
    let shown = amount.as_str().unwrap_or_default();
    let Ok(quantity) = Quantity::parse(shown) else {
        return problems;
    };
    if quantity.is_negative() {
        let why = "must be greater than or equal to 0";
        problems.push(FieldError::invalid_str(path, shown, why));
    }
    let fraction = quantity.milli_value().is_some_and(|milli| milli % 1000 != 0);
    if fraction && (WHOLE.contains(&name) || is_extended(name)) {
        problems.push(FieldError::invalid_str(path, shown, "must be an integer"));
    }
    problems
}

fn is_standard(name: &str) -> bool {
    let huge = ["hugepages-", "requests.hugepages-"];
    STANDARD.contains(&name) || huge.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether a name is that of a resource of some vendor.
fn is_extended(name: &str) -> bool {
    let group = name.split_once('/').map(|(group, _)| group);
    group.is_some_and(|group| {
        group != "kubernetes.io" && !group.ends_with(".kubernetes.io") && group != "count"
    }) && !name.starts_with("requests.")
}

/// Whether what is bounded can be told apart by a scope.
fn fits(scope: &str, name: &str) -> bool {
    let compute =
        ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
    match scope {
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => matches!(name, "persistentvolumeclaims" | "requests.storage"),
        scope if SCOPES.contains(&scope) => name == "pods" || compute.contains(&name),
        _ => true,
    }
}

fn conflict(scopes: &[&str]) -> usize {
    CONFLICTS.iter().filter(|pair| pair.iter().all(|scope| scopes.contains(scope))).count()
}

fn bad_scopes(spec: &Value, hard: &BTreeSet<&str>) -> Vec<FieldError> {
    let given = items(spec, "scopes");
    let scopes = given.iter().filter_map(Value::as_str).collect::<Vec<_>>();
    let path = FieldPath::root("spec").child("scopes");
    let invalid = |why: &str| FieldError::invalid(&path, &json!(given), why);
    let mut problems = Vec::new();
    for scope in &scopes {
        if !SCOPES.contains(scope) {
            problems.push(invalid("unsupported scope"));
        }
        let misfits = hard.iter().filter(|name| is_standard(name) && !fits(scope, name));
        problems.extend(misfits.map(|_| invalid("unsupported scope applied to resource")));
    }
    problems.extend((0..conflict(&scopes)).map(|_| invalid("conflicting scopes")));
    problems
}

fn bad_selector(spec: &Value, hard: &BTreeSet<&str>) -> Vec<FieldError> {
    let Some(selector) = spec.get("scopeSelector").filter(|selector| selector.is_object()) else {
        return Vec::new();
    };
    let path = FieldPath::root("spec").child("scopeSelector").child("matchExpressions");
    let mut problems = Vec::new();
    let mut scopes = Vec::new();
    for requirement in items(selector, "matchExpressions") {
        let (scope, operator) = (text(requirement, "scopeName"), text(requirement, "operator"));
        scopes.push(scope);
        if !SCOPES.contains(&scope) {
            let path = path.child("scopeName");
            problems.push(FieldError::invalid_str(&path, scope, "unsupported scope"));
        }
        let misfits = hard.iter().filter(|name| is_standard(name) && !fits(scope, name));
        problems.extend(misfits.map(|_| {
            FieldError::invalid(&path, selector, "unsupported scope applied to resource")
        }));
        if !matches!(scope, "PriorityClass" | "VolumeAttributesClass")
            && SCOPES.contains(&scope)
            && operator != "Exists"
        {
            let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                       ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                       ResourceQuotaScopeNotBestEffort or \
                       ResourceQuotaScopeCrossNamespacePodAffinity";
            problems.push(FieldError::invalid_str(&path.child("operator"), operator, why));
        }
        let values = items(requirement, "values");
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be at least one value when `operator` is 'In' or 'NotIn' for \
                           scope selector";
                problems.push(FieldError::required(&path.child("values"), why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for \
                           scope selector";
                problems.push(FieldError::invalid(&path.child("values"), &json!(values), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            operator => {
                let why = "not a valid selector operator";
                problems.push(FieldError::invalid_str(&path.child("operator"), operator, why));
            }
        }
    }
    let at = FieldPath::root("spec").child("scopes");
    let given = json!(items(spec, "scopes"));
    let conflicts = (0..conflict(&scopes)).map(|_| "conflicting scopes");
    problems.extend(conflicts.map(|why| FieldError::invalid(&at, &given, why)));
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "cases are written where they are used")]
    fn check(spec: Value, expect: &[&str]) {
        let problems = ResourceQuotas.validate(&json!({"spec": spec}));
        let told = problems.iter().map(|problem| format!("{}: {}", problem.field, problem.detail));
        assert_eq!(told.collect::<Vec<_>>(), expect);
    }

    #[test]
    fn names_amounts_and_scopes() {
        check(json!({"hard": {"count/widgets.example.com": "3", "requests.cpu": "1500m"}}), &[]);
        check(
            json!({"hard": {"pods": "-1", "secrets": "1500m", "wings": "2"}}),
            &[
                "spec.hard[pods]: must be greater than or equal to 0",
                "spec.hard[secrets]: must be an integer",
                "spec.hard[wings]: must be a standard resource type or fully qualified",
                "spec.hard[wings]: must be a standard resource for quota",
            ],
        );
        check(json!({"hard": {"pods": "1"}, "scopes": ["BestEffort", "Terminating"]}), &[]);
        check(
            json!({"hard": {"secrets": "1"}, "scopes": ["BestEffort", "NotBestEffort", "Mine"]}),
            &[
                "spec.scopes: unsupported scope applied to resource",
                "spec.scopes: unsupported scope applied to resource",
                "spec.scopes: unsupported scope",
                "spec.scopes: conflicting scopes",
            ],
        );
        let of = |scope: &str, operator: &str, values: &[&str]| {
            let one = json!({"scopeName": scope, "operator": operator, "values": values});
            json!({"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [one]}})
        };
        check(of("PriorityClass", "In", &["high"]), &[]);
        check(
            of("PriorityClass", "In", &[]),
            &["spec.scopeSelector.matchExpressions.values: must be at least one value when \
               `operator` is 'In' or 'NotIn' for scope selector"],
        );
        check(
            of("PriorityClass", "Equals", &["high"]),
            &["spec.scopeSelector.matchExpressions.operator: not a valid selector operator"],
        );
    }

    #[test]
    fn scopes_are_fixed_and_crossed_bounds_are_told() {
        let of = |scopes: Value| json!({"spec": {"scopes": scopes}});
        let (one, two) = (of(json!(["Terminating"])), of(json!(["NotTerminating"])));
        assert_eq!(ResourceQuotas.validate_update(&one, &one).len(), 0);
        assert_eq!(ResourceQuotas.validate_update(&two, &one).len(), 1);
        let crossed = json!({"spec": {"hard": {"cpu": "2", "limits.cpu": "1"}}});
        assert_eq!(
            ResourceQuotas.warnings(&crossed, None),
            ["ResourceQuota cpu (2) should be less than limits.cpu (1)"]
        );
    }
}
