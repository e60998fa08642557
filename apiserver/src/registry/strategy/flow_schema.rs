//! Flow control: which requests belong to which flow.

use machinery::meta::{get, get_bool, get_i64, get_str};
use machinery::{FieldError, FieldPath, name};
use serde_json::{Value, json};

use super::Strategy;
use super::check::{crowded, items, named, part, text};

const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

#[derive(Debug)]
pub(super) struct FlowSchemas;

impl Strategy for FlowSchemas {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let empty = json!({});
        let spec = get(object, &["spec"]).unwrap_or(&empty);
        let path = FieldPath::root("spec");
        let mut problems = precedence(object, &path.child("matchingPrecedence"));
        if let Some(method) = part(spec, "distinguisherMethod") {
            let kind = text(method, "type");
            let valid = ["ByNamespace", "ByUser"];
            if !valid.contains(&kind) {
                let path = path.child("distinguisherMethod").child("type");
                let shown = json!({"Type": kind});
                problems.push(FieldError::not_supported(&path, &shown, &valid));
            }
        }
        let level = get_str(spec, &["priorityLevelConfiguration", "name"]).unwrap_or_default();
        let level_path = path.child("priorityLevelConfiguration").child("name");
        if level.is_empty() {
            let why = "must reference a priority level";
            problems.push(FieldError::required(&level_path, why));
        } else {
            problems.extend(named(&level_path, level, name::dns1123_subdomain));
        }
        for (index, rule) in items(spec, "rules").iter().enumerate() {
            problems.extend(judge_rule(rule, &path.child("rules").index(index)));
        }
        problems
    }
}

fn precedence(object: &Value, path: &FieldPath) -> Vec<FieldError> {
    let precedence = get_i64(object, &["spec", "matchingPrecedence"]).unwrap_or_default();
    let name = get_str(object, &["metadata", "name"]).unwrap_or_default();
    let mut problems = Vec::new();
    let mut wrong = |why: &str| problems.push(FieldError::invalid(path, &json!(precedence), why));
    if precedence <= 0 {
        wrong("must be a positive value");
    }
    if precedence > 10_000 {
        wrong("must not be greater than 10000");
    }
    if precedence == 1 && name != "exempt" {
        wrong("only the schema named 'exempt' may have matchingPrecedence 1");
    }
    problems
}

fn judge_rule(rule: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let subjects = items(rule, "subjects");
    let at = path.child("subjects");
    if subjects.is_empty() {
        problems.push(FieldError::required(&at, "subjects must contain at least one value"));
    }
    for (index, subject) in subjects.iter().enumerate() {
        problems.extend(judge_subject(subject, &at.index(index)));
    }
    let (resources, others) = (items(rule, "resourceRules"), items(rule, "nonResourceRules"));
    if resources.is_empty() && others.is_empty() {
        let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
        problems.push(FieldError::required(path, why));
    }
    for (index, rule) in resources.iter().enumerate() {
        problems.extend(resource_rule(rule, &path.child("resourceRules").index(index)));
    }
    for (index, rule) in others.iter().enumerate() {
        problems.extend(other_rule(rule, &path.child("nonResourceRules").index(index)));
    }
    problems
}

fn judge_subject(subject: &Value, path: &FieldPath) -> Vec<FieldError> {
    const FORMS: [(&str, &str); 3] =
        [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = text(subject, "kind");
    if !FORMS.iter().any(|(known, _)| *known == kind) {
        let valid = ["Group", "ServiceAccount", "User"];
        return vec![FieldError::not_supported(&path.child("kind"), &json!(kind), &valid)];
    }
    let mut problems = Vec::new();
    let (own, other): (Vec<_>, Vec<_>) = FORMS.into_iter().partition(|(form, _)| *form == kind);
    for (_, field) in own {
        let path = path.child(field);
        match part(subject, field) {
            None => {
                let why = format!("{field} is required when subject kind is '{kind}'");
                problems.push(FieldError::required(&path, why));
            }
            Some(holder) => problems.extend(judge_holder(holder, field, &path)),
        }
    }
    for (form, field) in other {
        if part(subject, field).is_some() {
            let why = format!("{field} is forbidden when subject kind is not '{form}'");
            problems.push(FieldError::forbidden(&path.child(field), why));
        }
    }
    problems
}

fn judge_holder(holder: &Value, field: &str, path: &FieldPath) -> Vec<FieldError> {
    let given = text(holder, "name");
    let mut problems = Vec::new();
    if given.is_empty() {
        problems.push(FieldError::required(&path.child("name"), ""));
    } else if field == "serviceAccount" && given != "*" {
        problems.extend(named(&path.child("name"), given, name::dns1123_subdomain));
    }
    if field == "serviceAccount" {
        let path = path.child("namespace");
        match text(holder, "namespace") {
            "" => {
                let why = "must specify namespace for service account";
                problems.push(FieldError::required(&path, why));
            }
            namespace => problems.extend(named(&path, namespace, name::dns1123_label)),
        }
    }
    problems
}

fn verbs(rule: &Value, path: &FieldPath) -> Vec<FieldError> {
    let path = path.child("verbs");
    let verbs = items(rule, "verbs");
    if verbs.is_empty() {
        return vec![FieldError::required(&path, "verbs must contain at least one value")];
    }
    if verbs.iter().any(|verb| verb == "*") {
        return crowded(&path, verbs, "verbs").into_iter().collect();
    }
    let known = |verb: &Value| verb.as_str().is_some_and(|verb| VERBS.contains(&verb));
    if verbs.iter().all(known) {
        return Vec::new();
    }
    vec![FieldError::not_supported(&path, &json!(verbs), &VERBS)]
}

fn resource_rule(rule: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut problems = verbs(rule, path);
    for (field, what, each) in
        [("apiGroups", "api groups", "api group"), ("resources", "resources", "resource")]
    {
        let (list, path) = (items(rule, field), path.child(field));
        if list.is_empty() {
            let why = format!("resource rules must supply at least one {each}");
            problems.push(FieldError::required(&path, why));
        }
        problems.extend(crowded(&path, list, what));
    }
    let (namespaces, at) = (items(rule, "namespaces"), path.child("namespaces"));
    if namespaces.is_empty() && get_bool(rule, &["clusterScope"]) != Some(true) {
        let why = "resource rules that are not cluster scoped must supply at least one namespace";
        problems.push(FieldError::required(&at, why));
    }
    match crowded(&at, namespaces, "namespaces") {
        Some(problem) => problems.push(problem),
        None => {
            for (index, namespace) in namespaces.iter().enumerate() {
                let given = namespace.as_str().unwrap_or_default();
                if given == "*" {
                    continue;
                }
                for why in name::dns1123_label(given) {
                    let why =
                        format!("each member of this list must be '*' or a DNS-1123 label; {why}");
                    problems.push(FieldError::invalid_str(&at.index(index), given, why));
                }
            }
        }
    }
    problems
}

fn other_rule(rule: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut problems = verbs(rule, path);
    let (urls, path) = (items(rule, "nonResourceURLs"), path.child("nonResourceURLs"));
    if urls.is_empty() {
        let why = "nonResourceURLs must contain at least one value";
        problems.push(FieldError::required(&path, why));
    }
    match crowded(&path, urls, "non-resource URLs") {
        Some(problem) => problems.push(problem),
        None => {
            for (index, url) in urls.iter().enumerate() {
                let given = url.as_str().unwrap_or_default();
                let why = bad_url(given);
                problems
                    .extend(why.map(|why| FieldError::invalid_str(&path.index(index), given, why)));
            }
        }
    }
    problems
}

/// What is wrong with a path, whose last segment may be a wildcard.
fn bad_url(url: &str) -> Option<&'static str> {
    if url == "*" {
        return None;
    }
    let fixed = url.strip_suffix("/*").unwrap_or(url);
    if !url.starts_with('/') {
        Some("must start with slash")
    } else if url.contains(' ') {
        Some("must not contain white-space")
    } else if fixed.contains("//") {
        Some("must not contain double slash")
    } else if fixed.contains('*') {
        Some("wildcard can only do suffix matching")
    } else {
        None
    }
}
