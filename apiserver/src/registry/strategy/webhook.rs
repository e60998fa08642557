//! Webhooks: what their configurations must say.
//!
//! How they are asked is in `registry/admission.rs`.

use machinery::meta::get_i64;
use machinery::{FieldError, FieldPath, name};
use serde_json::{Value, json};

use super::Strategy;
use super::check::{crowded, items, named, other_than, part, text};
use super::condition::match_conditions;

/// The versions of reviews that upstream can send.
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

/// Webhook configurations, of both kinds.
#[derive(Debug)]
pub(super) struct Webhooks {
    pub(super) mutating: bool,
}

impl Strategy for Webhooks {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let webhooks = items(object, "webhooks");
        let path = FieldPath::root("webhooks");
        let mut problems = Vec::new();
        for (index, webhook) in webhooks.iter().enumerate() {
            let path = path.index(index);
            problems.extend(judge_webhook(webhook, self.mutating, &path));
            let earlier = webhooks.iter().take(index);
            let name = text(webhook, "name");
            if !name.is_empty() && earlier.into_iter().any(|other| text(other, "name") == name) {
                problems.push(FieldError::duplicate(&path.child("name"), &json!(name)));
            }
        }
        problems
    }
}

/// A text that must not be empty.
pub(super) fn required(
    object: &Value,
    field: &str,
    why: &str,
    path: &FieldPath,
) -> Option<FieldError> {
    text(object, field).trim().is_empty().then(|| FieldError::required(&path.child(field), why))
}

fn judge_webhook(webhook: &Value, mutating: bool, path: &FieldPath) -> Vec<FieldError> {
    let mut problems = qualified(text(webhook, "name"), &path.child("name"));
    for (index, rule) in items(webhook, "rules").iter().enumerate() {
        problems.extend(judge_rule(rule, &path.child("rules").index(index)));
    }
    let failure = text(webhook, "failurePolicy");
    problems.extend(other_than(&path.child("failurePolicy"), failure, &["Fail", "Ignore"]));
    let policy = text(webhook, "matchPolicy");
    problems.extend(other_than(&path.child("matchPolicy"), policy, &["Equivalent", "Exact"]));
    let (effects, at) = (text(webhook, "sideEffects"), path.child("sideEffects"));
    if effects.is_empty() {
        problems.push(FieldError::required(&at, "must specify one of None, NoneOnDryRun"));
    } else {
        problems.extend(other_than(&at, effects, &["None", "NoneOnDryRun"]));
    }
    if mutating {
        let (again, at) = (text(webhook, "reinvocationPolicy"), path.child("reinvocationPolicy"));
        problems.extend(other_than(&at, again, &["IfNeeded", "Never"]));
    }
    if let Some(seconds) = get_i64(webhook, &["timeoutSeconds"])
        && !(1..=30).contains(&seconds)
    {
        let why = "the timeout value must be between 1 and 30 seconds";
        let path = path.child("timeoutSeconds");
        problems.push(FieldError::invalid(&path, &json!(seconds), why));
    }
    let empty = json!({});
    let client = part(webhook, "clientConfig").unwrap_or(&empty);
    problems.extend(judge_client(client, &path.child("clientConfig")));
    let conditions = items(webhook, "matchConditions");
    problems.extend(match_conditions(conditions, false, &path.child("matchConditions")));
    problems.extend(review_versions(webhook, &path.child("admissionReviewVersions")));
    problems
}

/// A webhook's name is a domain of at least three parts.
fn qualified(given: &str, path: &FieldPath) -> Vec<FieldError> {
    if given.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let problems = named(path, given, name::dns1123_subdomain);
    if problems.is_empty() && given.split('.').count() < 3 {
        let why = "should be a domain with at least three segments separated by dots";
        return vec![FieldError::invalid_str(path, given, why)];
    }
    problems
}

pub(super) fn judge_rule(rule: &Value, path: &FieldPath) -> Vec<FieldError> {
    const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    let mut problems = Vec::new();
    for (field, what) in [
        ("operations", "operations"),
        ("apiGroups", "API groups"),
        ("apiVersions", "API versions"),
        ("resources", "resources"),
    ] {
        let (list, path) = (items(rule, field), path.child(field));
        if list.is_empty() {
            problems.push(FieldError::required(&path, ""));
        }
        if field == "resources" {
            problems.extend(crowded_resources(list, &path));
        } else {
            problems.extend(crowded(&path, list, what));
        }
        for (index, item) in list.iter().enumerate() {
            let item = item.as_str().unwrap_or_default();
            let path = path.index(index);
            match field {
                "operations" => problems.extend(other_than(&path, item, &OPERATIONS)),
                "apiVersions" | "resources" if item.is_empty() => {
                    problems.push(FieldError::required(&path, ""));
                }
                _ => {}
            }
        }
    }
    let scope = text(rule, "scope");
    if !scope.is_empty() {
        let valid = ["*", "Cluster", "Namespaced"];
        problems.extend(other_than(&path.child("scope"), scope, &valid));
    }
    problems
}

/// Wildcards of resources and subresources, and what they make needless.
fn crowded_resources(list: &[Value], path: &FieldPath) -> Vec<FieldError> {
    let has = |wanted: &str| list.iter().any(|item| item == wanted);
    let mut problems = Vec::new();
    for (index, item) in list.iter().enumerate() {
        let given = item.as_str().unwrap_or_default();
        let Some((resource, sub)) = given.split_once('/') else { continue };
        let path = path.index(index);
        let (whole, every) = (format!("{resource}/*"), format!("*/{sub}"));
        let earlier = |wide: &str| list.iter().take(index).any(|item| item == wide);
        let wide = [whole.as_str(), every.as_str()];
        for wide in wide.into_iter().filter(|wide| *wide != given && earlier(wide)) {
            let why = format!("if '{wide}' is present, must not specify {given}");
            problems.push(FieldError::invalid_str(&path, given, why));
        }
    }
    let with_sub = list.iter().any(|item| item.as_str().is_some_and(|item| item.contains('/')));
    if has("*/*") && list.len() > 1 {
        let why = "if '*/*' is present, must not specify other resources";
        problems.push(FieldError::invalid(path, &json!(list), why));
    } else if has("*") && list.len() > 1 && !with_sub {
        let why = "if '*' is present, must not specify other resources without subresources";
        problems.push(FieldError::invalid(path, &json!(list), why));
    }
    problems
}

fn judge_client(client: &Value, path: &FieldPath) -> Vec<FieldError> {
    let (url, service) = (part(client, "url"), part(client, "service"));
    match (url.and_then(Value::as_str), service) {
        (Some(url), None) => judge_url(url, &path.child("url")),
        (None, Some(service)) => judge_service(service, &path.child("service")),
        _ => {
            let why = "exactly one of url or service is required";
            vec![FieldError::required(path, why)]
        }
    }
}

fn judge_url(url: &str, path: &FieldPath) -> Vec<FieldError> {
    const FORM: &str = "; desired format: https://host[/path]";
    let invalid =
        |value: &str, why: &str| FieldError::invalid_str(path, value, format!("{why}{FORM}"));
    let Some((scheme, rest)) = url.split_once("://") else {
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        return vec![invalid(scheme, "'https' is the only allowed URL scheme")];
    };
    let mut problems = Vec::new();
    if scheme != "https" {
        problems.push(invalid(scheme, "'https' is the only allowed URL scheme"));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if host.is_empty() {
        problems.push(invalid(host, "host must be specified"));
    }
    if !user.is_empty() {
        let why = "user information is not permitted in the URL";
        problems.push(FieldError::invalid_str(path, user, why));
    }
    if !fragment.is_empty() {
        let why = "fragments are not permitted in the URL";
        problems.push(FieldError::invalid_str(path, fragment, why));
    }
    if !query.is_empty() {
        let why = "query parameters are not permitted in the URL";
        problems.push(FieldError::invalid_str(path, query, why));
    }
    problems
}

fn judge_service(service: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut problems = Vec::new();
    for field in ["name", "namespace"] {
        if text(service, field).is_empty() {
            let why = format!("service {field} is required");
            problems.push(FieldError::required(&path.child(field), why));
        }
    }
    if let Some(port) = get_i64(service, &["port"]).filter(|port| !(1..=65535).contains(port)) {
        let path = path.child("port");
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        problems.push(FieldError::invalid(&path, &json!(port), why));
    }
    let given = text(service, "path");
    if given.is_empty() {
        return problems;
    }
    let path = path.child("path");
    if given.split('/').next() != Some("") {
        let why = "must start with a '/'";
        problems.push(FieldError::invalid_str(&path, given, why));
        return problems;
    }
    for (index, segment) in given.split('/').skip(1).enumerate() {
        let last = given.ends_with('/') && segment.is_empty();
        let wrong = if last { Vec::new() } else { name::dns1123_subdomain(segment) };
        for why in wrong {
            let why = format!("segment[{index}]: {why}");
            problems.push(FieldError::invalid_str(&path, given, why));
        }
    }
    problems
}

fn review_versions(webhook: &Value, path: &FieldPath) -> Vec<FieldError> {
    let versions = items(webhook, "admissionReviewVersions");
    if versions.is_empty() {
        let why = format!("must specify one of {}", REVIEWS.join(", "));
        return vec![FieldError::required(path, why)];
    }
    let mut problems = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        let given = version.as_str().unwrap_or_default();
        let path = path.index(index);
        if versions.iter().take(index).any(|other| other == version) {
            problems.push(FieldError::invalid_str(&path, given, "duplicate version"));
        } else {
            problems.extend(named(&path, given, name::dns1035_label));
        }
    }
    let known = |version: &Value| version.as_str().is_some_and(|v| REVIEWS.contains(&v));
    if problems.is_empty() && !versions.iter().any(known) {
        let why = format!("must include at least one of {}", REVIEWS.join(", "));
        problems.push(FieldError::invalid(path, &json!(versions), why));
    }
    problems
}
