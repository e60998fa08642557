//! Roles and bindings: rules that can be meant, subjects that can be somebody.

use machinery::meta::get;
use machinery::{FieldError, FieldPath, name};
use serde_json::{Value, json};

use super::Strategy;
use super::check::{MOST_PROBLEMS, each, items, named, other_than, part, text};
use crate::clusters::bootstrap::GROUP;

/// Roles, and ClusterRoles.
#[derive(Debug)]
pub(super) struct Roles {
    pub(super) namespaced: bool,
}

/// RoleBindings, and ClusterRoleBindings.
#[derive(Debug)]
pub(super) struct Bindings {
    pub(super) namespaced: bool,
}

impl Strategy for Roles {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let path = FieldPath::root("rules");
        let mut problems = each(items(object, "rules"), &path, |rule, path| self.rule(rule, path));
        if let Some(aggregation) = part(object, "aggregationRule") {
            let path = FieldPath::root("aggregationRule").child("clusterRoleSelectors");
            let selectors = items(aggregation, "clusterRoleSelectors");
            if selectors.is_empty() {
                let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
                problems.push(FieldError::required(&path, why));
            }
            problems.extend(each(selectors, &path, selector));
        }
        problems
    }
}

// === impl Roles ===

impl Roles {
    fn rule(&self, rule: &Value, path: &FieldPath) -> Vec<FieldError> {
        let empty = |field: &str| items(rule, field).is_empty();
        let mut problems = Vec::new();
        if empty("verbs") {
            let why = "verbs must contain at least one value";
            problems.push(FieldError::required(&path.child("verbs"), why));
        }
        let urls = items(rule, "nonResourceURLs");
        if !urls.is_empty() {
            let at = path.child("nonResourceURLs");
            if self.namespaced {
                let why = "namespaced rules cannot apply to non-resource URLs";
                problems.push(FieldError::invalid(&at, &json!(urls), why));
            }
            if !empty("apiGroups") || !empty("resources") || !empty("resourceNames") {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                problems.push(FieldError::invalid(&at, &json!(urls), why));
            }
            return problems;
        }
        if empty("apiGroups") {
            let why = "resource rules must supply at least one api group";
            problems.push(FieldError::required(&path.child("apiGroups"), why));
        }
        if empty("resources") {
            let why = "resource rules must supply at least one resource";
            problems.push(FieldError::required(&path.child("resources"), why));
        }
        problems
    }
}

/// What is wrong with a label selector.
fn selector(selector: &Value, path: &FieldPath) -> Vec<FieldError> {
    let labels = path.child("matchLabels");
    let pairs = get(selector, &["matchLabels"]).and_then(Value::as_object).into_iter().flatten();
    let of_pairs = pairs.flat_map(|(key, value)| {
        let mut problems = named(&labels, key, name::qualified_name);
        let value = value.as_str().unwrap_or_default();
        problems.extend(named(&labels, value, name::label_value));
        problems
    });
    let mut problems: Vec<FieldError> = of_pairs.take(MOST_PROBLEMS).collect();
    let expressions = path.child("matchExpressions");
    problems.extend(each(items(selector, "matchExpressions"), &expressions, expression));
    if machinery::selector::LabelSelector::from_value(selector).is_err() {
        problems.push(FieldError::invalid(path, &Value::Null, "invalid label selector."));
    }
    problems
}

/// What is wrong with one expression of a label selector.
fn expression(expression: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let values = items(expression, "values");
    match text(expression, "operator") {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            problems.push(FieldError::required(&path.child("values"), why));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            problems.push(FieldError::forbidden(&path.child("values"), why));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            let why = "not a valid selector operator";
            problems.push(FieldError::invalid_str(&path.child("operator"), other, why));
        }
    }
    problems.extend(named(&path.child("key"), text(expression, "key"), name::qualified_name));
    problems.extend(each(values, &path.child("values"), |value, path| {
        named(path, value.as_str().unwrap_or_default(), name::label_value)
    }));
    problems
}

impl Strategy for Bindings {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let empty = json!({});
        let role = part(object, "roleRef").unwrap_or(&empty);
        let path = FieldPath::root("roleRef");
        let mut problems = Vec::new();
        problems.extend(other_than(&path.child("apiGroup"), text(role, "apiGroup"), &[GROUP]));
        let kinds: &[&str] =
            if self.namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
        problems.extend(other_than(&path.child("kind"), text(role, "kind"), kinds));
        match text(role, "name") {
            "" => problems.push(FieldError::required(&path.child("name"), "")),
            given => problems.extend(named(&path.child("name"), given, name::path_segment)),
        }
        let path = FieldPath::root("subjects");
        let subjects = items(object, "subjects");
        problems.extend(each(subjects, &path, |subject, path| self.subject(subject, path)));
        problems
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        if get(new, &["roleRef"]) == get(old, &["roleRef"]) {
            return Vec::new();
        }
        let empty = json!({});
        let role = part(new, "roleRef").unwrap_or(&empty);
        // Printed as upstream's internal type.
        let shown = json!({
            "APIGroup": text(role, "apiGroup"),
            "Kind": text(role, "kind"),
            "Name": text(role, "name"),
        });
        vec![FieldError::invalid(&FieldPath::root("roleRef"), &shown, "cannot change roleRef")]
    }
}

// === impl Bindings ===

impl Bindings {
    fn subject(&self, subject: &Value, path: &FieldPath) -> Vec<FieldError> {
        let mut problems = Vec::new();
        let (given, group) = (text(subject, "name"), text(subject, "apiGroup"));
        if given.is_empty() {
            problems.push(FieldError::required(&path.child("name"), ""));
        }
        match text(subject, "kind") {
            "ServiceAccount" => {
                if !given.is_empty() {
                    problems.extend(named(&path.child("name"), given, name::dns1123_subdomain));
                }
                problems.extend(other_than(&path.child("apiGroup"), group, &[""]));
                if !self.namespaced && text(subject, "namespace").is_empty() {
                    problems.push(FieldError::required(&path.child("namespace"), ""));
                }
            }
            "User" | "Group" => {
                problems.extend(other_than(&path.child("apiGroup"), group, &[GROUP]));
            }
            other => {
                let kinds = ["ServiceAccount", "User", "Group"];
                problems.extend(other_than(&path.child("kind"), other, &kinds));
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(strategy: &dyn Strategy, object: &Value, expect: &[&str]) {
        let problems = strategy.validate(object);
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems, expect, "{object}");
    }

    #[test]
    fn roles() {
        let (role, cluster_role) = (Roles { namespaced: true }, Roles { namespaced: false });
        check(&role, &json!({"rules": null}), &[]);
        let url = json!({"verbs": ["get"], "nonResourceURLs": ["/a", "b"]});
        let why = "namespaced rules cannot apply to non-resource URLs";
        let text = format!("rules[0].nonResourceURLs: Invalid value: [\"/a\",\"b\"]: {why}");
        check(&role, &json!({"rules": [url]}), &[&text]);
        check(&cluster_role, &json!({"rules": [url]}), &[]);
        check(
            &cluster_role,
            &json!({"rules": [{"nonResourceURLs": ["/a"], "apiGroups": [""]}, {}]}),
            &[
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].nonResourceURLs: Invalid value: [\"/a\"]: rules cannot apply to both \
                 regular resources and non-resource URLs",
                "rules[1].verbs: Required value: verbs must contain at least one value",
                "rules[1].apiGroups: Required value: resource rules must supply at least one api \
                 group",
                "rules[1].resources: Required value: resource rules must supply at least one \
                 resource",
            ],
        );
        check(
            &cluster_role,
            &json!({"aggregationRule": {}}),
            &["aggregationRule.clusterRoleSelectors: Required value: at least one \
               clusterRoleSelector required if aggregationRule is non-nil"],
        );
        let selector = json!({"matchExpressions": [
            {"key": "", "operator": "In"},
            {"key": "x", "operator": "Foo"},
        ]});
        let at = "aggregationRule.clusterRoleSelectors[0]";
        let problems = cluster_role
            .validate(&json!({"aggregationRule": {"clusterRoleSelectors": [selector]}}));
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let first = format!(
            "{at}.matchExpressions[0].values: Required value: must be specified when `operator` \
             is 'In' or 'NotIn'"
        );
        assert_eq!(problems.first(), Some(&first));
        let last = format!("{at}: Invalid value: null: invalid label selector.");
        assert_eq!(problems.last(), Some(&last));
        assert_eq!(problems.len(), 5, "{problems:?}");
    }

    #[test]
    fn not_all_of_very_many_problems_are_told() {
        let many = |item: Value| Value::from(vec![item; 100_000]);
        let problems = |strategy: &dyn Strategy, object: Value| strategy.validate(&object).len();
        let roles = Roles { namespaced: false };
        assert_eq!(problems(&roles, json!({"rules": many(json!({}))})), MOST_PROBLEMS);
        let role = json!({"kind": "ClusterRole", "apiGroup": GROUP, "name": "r"});
        let binding = json!({"roleRef": role, "subjects": many(json!({}))});
        assert_eq!(problems(&Bindings { namespaced: false }, binding), MOST_PROBLEMS);
    }

    #[test]
    fn bindings() {
        let cluster = Bindings { namespaced: false };
        let subjects = json!([
            {},
            {"kind": "User", "apiGroup": "x", "name": "u"},
            {"kind": "ServiceAccount", "name": "a", "apiGroup": "x"},
            {"kind": "Group", "apiGroup": GROUP},
        ]);
        let role = json!({"kind": "Role", "apiGroup": "x", "name": "a/b"});
        let supported = "supported values: \"rbac.authorization.k8s.io\"";
        check(
            &cluster,
            &json!({"roleRef": role, "subjects": subjects}),
            &[
                &format!("roleRef.apiGroup: Unsupported value: \"x\": {supported}"),
                "roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\"",
                "roleRef.name: Invalid value: \"a/b\": may not contain '/'",
                "subjects[0].name: Required value",
                "subjects[0].kind: Unsupported value: \"\": supported values: \
                 \"ServiceAccount\", \"User\", \"Group\"",
                &format!("subjects[1].apiGroup: Unsupported value: \"x\": {supported}"),
                "subjects[2].apiGroup: Unsupported value: \"x\": supported values: \"\"",
                "subjects[2].namespace: Required value",
                "subjects[3].name: Required value",
            ],
        );
        let role =
            |name: &str| json!({"roleRef": {"kind": "Role", "apiGroup": GROUP, "name": name}});
        check(&Bindings { namespaced: true }, &role("r"), &[]);
        let changed = cluster.validate_update(&role("a"), &role("b"));
        let text = "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\
                    \"Kind\":\"Role\",\"Name\":\"a\"}: cannot change roleRef";
        assert_eq!(changed.first().map(ToString::to_string).as_deref(), Some(text));
        assert_eq!(cluster.validate_update(&role("a"), &role("a")).len(), 0);
    }
}
