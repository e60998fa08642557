//! Admission policies and what puts them into force.
//!
//! Expressions of validating ones are compiled here, so that none is stored that can't be evaluated.

use machinery::meta::get;
use machinery::{FieldError, FieldPath, GroupVersion, name};
use serde_json::{Value, json};

use super::Strategy;
use super::check::{items, named, one_of, other_than, part, text};
use super::condition::match_conditions;
use super::webhook::{judge_rule, required};
use crate::admission::{Policy, PolicyKind};

/// The most variables of a policy: each is compiled with all that come before it.
const MOST_VARIABLES: usize = 1_000;

/// Admission policies, of both kinds.
#[derive(Debug)]
pub(super) struct Policies {
    pub(super) mutating: bool,
}

/// What puts admission policies into force.
#[derive(Debug)]
pub(super) struct Bindings {
    pub(super) mutating: bool,
}

impl Strategy for Policies {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let empty = json!({});
        let spec = get(object, &["spec"]).unwrap_or(&empty);
        let path = FieldPath::root("spec");
        let mut problems = Vec::new();
        let failure = text(spec, "failurePolicy");
        problems.extend(other_than(&path.child("failurePolicy"), failure, &["Fail", "Ignore"]));
        if let Some(kind) = part(spec, "paramKind") {
            problems.extend(param_kind(kind, &path.child("paramKind")));
        }
        let constraints = path.child("matchConstraints");
        match part(spec, "matchConstraints") {
            None => problems.push(FieldError::required(&constraints, "")),
            Some(matched) => {
                problems.extend(matches(matched, &constraints));
                if items(matched, "resourceRules").is_empty() {
                    problems.push(FieldError::required(&constraints.child("resourceRules"), ""));
                }
            }
        }
        let params = part(spec, "paramKind").is_some();
        let conditions = items(spec, "matchConditions");
        problems.extend(match_conditions(conditions, params, &path.child("matchConditions")));
        let (variables, at) = (items(spec, "variables"), path.child("variables"));
        if variables.len() > MOST_VARIABLES {
            problems.push(FieldError::too_many(&at, variables.len(), MOST_VARIABLES));
        }
        for (index, variable) in variables.iter().enumerate() {
            let path = at.index(index);
            problems.extend(required(variable, "name", "name is not specified", &path));
            problems.extend(required(variable, "expression", "expression is not specified", &path));
        }
        let kind = if self.mutating {
            problems.extend(mutations(spec, &path));
            PolicyKind::Mutating
        } else {
            problems.extend(validations(spec, &path));
            PolicyKind::Validating
        };
        problems.extend(uncompiled(spec, kind, &path, problems.is_empty()));
        problems
    }
}

impl Strategy for Bindings {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let empty = json!({});
        let spec = get(object, &["spec"]).unwrap_or(&empty);
        let path = FieldPath::root("spec");
        let mut problems = Vec::new();
        match text(spec, "policyName") {
            "" => problems.push(FieldError::required(&path.child("policyName"), "")),
            policy => {
                problems.extend(named(&path.child("policyName"), policy, name::dns1123_subdomain));
            }
        }
        if let Some(reference) = part(spec, "paramRef") {
            problems.extend(param_ref(reference, &path.child("paramRef")));
        }
        if let Some(matched) = part(spec, "matchResources") {
            problems.extend(matches(matched, &path.child("matchResources")));
        }
        if !self.mutating {
            problems.extend(actions(spec, &path.child("validationActions")));
        }
        problems
    }
}

/// Expressions that do not compile, told only where all else is right.
fn uncompiled(spec: &Value, kind: PolicyKind, path: &FieldPath, right: bool) -> Vec<FieldError> {
    if !right {
        return Vec::new();
    }
    let problems = Policy::problems_of(spec, kind).into_iter();
    let told = problems.map(|(place, text, why)| {
        FieldError::invalid_str(&FieldPath::root(&format!("{path}.{place}")), &text, why)
    });
    told.collect()
}

fn param_kind(kind: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let (version, at) = (text(kind, "apiVersion"), path.child("apiVersion"));
    if version.is_empty() {
        problems.push(FieldError::required(&at, ""));
    } else if GroupVersion::parse(version).is_none() {
        let why = format!("unexpected GroupVersion string: {version}");
        problems.push(FieldError::invalid_str(&at, version, why));
    }
    problems.extend(required(kind, "kind", "", path));
    problems
}

fn matches(matched: &Value, path: &FieldPath) -> Vec<FieldError> {
    let policy = text(matched, "matchPolicy");
    let mut problems = Vec::new();
    problems.extend(other_than(&path.child("matchPolicy"), policy, &["Equivalent", "Exact"]));
    for field in ["resourceRules", "excludeResourceRules"] {
        for (index, rule) in items(matched, field).iter().enumerate() {
            problems.extend(judge_rule(rule, &path.child(field).index(index)));
        }
    }
    problems
}

fn validations(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    const REASONS: [&str; 4] = ["", "Forbidden", "Invalid", "RequestEntityTooLarge"];
    let (validations, audits) = (items(spec, "validations"), items(spec, "auditAnnotations"));
    let mut problems = Vec::new();
    if validations.is_empty() && audits.is_empty() {
        let why = "validations or auditAnnotations must contain at least one item";
        let fields = ["validations", "auditAnnotations"];
        return fields.map(|field| FieldError::required(&path.child(field), why)).into();
    }
    for (index, validation) in validations.iter().enumerate() {
        let path = path.child("validations").index(index);
        problems.extend(required(validation, "expression", "expression is not specified", &path));
        let message = text(validation, "message");
        if !message.is_empty() && message.trim().is_empty() {
            let why = "must be non-empty if specified";
            problems.push(FieldError::invalid_str(&path.child("message"), message, why));
        }
        let (reason, path) = (text(validation, "reason"), path.child("reason"));
        if !REASONS.contains(&reason) && reason != "Unauthorized" {
            let valid = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
            problems.push(FieldError::not_supported(&path, &json!(reason), &valid));
        }
    }
    for (index, audit) in audits.iter().enumerate() {
        let path = path.child("auditAnnotations").index(index);
        problems.extend(required(audit, "key", "", &path));
        let why = "valueExpression is not specified";
        problems.extend(required(audit, "valueExpression", why, &path));
    }
    problems
}

fn mutations(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    const FORMS: [(&str, &str); 2] =
        [("JSONPatch", "jsonPatch"), ("ApplyConfiguration", "applyConfiguration")];
    let mutations = items(spec, "mutations");
    let mut problems = Vec::new();
    if mutations.is_empty() {
        let why = "mutations must contain at least one item";
        problems.push(FieldError::required(&path.child("mutations"), why));
    }
    for (index, mutation) in mutations.iter().enumerate() {
        let path = path.child("mutations").index(index);
        let kind = text(mutation, "patchType");
        let Some((_, field)) = FORMS.into_iter().find(|(form, _)| *form == kind) else {
            let valid = ["ApplyConfiguration", "JSONPatch"];
            problems.extend(one_of(&path.child("patchType"), kind, &valid));
            continue;
        };
        match part(mutation, field) {
            None => {
                let why = format!("must be specified when patchType is {kind}");
                problems.push(FieldError::required(&path.child(field), why));
            }
            Some(patch) => {
                problems.extend(required(patch, "expression", "", &path.child(field)));
            }
        }
    }
    let again = text(spec, "reinvocationPolicy");
    problems.extend(one_of(&path.child("reinvocationPolicy"), again, &["IfNeeded", "Never"]));
    problems
}

fn param_ref(reference: &Value, path: &FieldPath) -> Vec<FieldError> {
    let (given, selector) = (text(reference, "name"), part(reference, "selector"));
    let mut problems = Vec::new();
    match (given.is_empty(), selector) {
        (false, Some(_)) => {
            let why = "name and selector are mutually exclusive";
            problems.push(FieldError::forbidden(&path.child("name"), why));
            problems.push(FieldError::forbidden(&path.child("selector"), why));
        }
        (true, None) => {
            let why = "one of name or selector must be specified";
            problems.push(FieldError::required(path, why));
        }
        _ => {}
    }
    let (action, path) = (text(reference, "parameterNotFoundAction"), path);
    let path = path.child("parameterNotFoundAction");
    problems.extend(one_of(&path, action, &["Deny", "Allow"]));
    problems
}

fn actions(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    let actions = items(spec, "validationActions");
    if actions.is_empty() {
        let why = "at least one validation action is required";
        return vec![FieldError::required(path, why)];
    }
    let mut problems = Vec::new();
    for (index, action) in actions.iter().enumerate() {
        let path = path.index(index);
        let given = action.as_str().unwrap_or_default();
        problems.extend(other_than(&path, given, &["Audit", "Deny", "Warn"]));
        if actions.iter().take(index).any(|other| other == action) {
            problems.push(FieldError::duplicate(&path, action));
        }
    }
    let has = |wanted: &str| actions.iter().any(|action| action == wanted);
    if has("Deny") && has("Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure \
                   information in the API response and headers serves no purpose)";
        problems.push(FieldError::invalid(path, &json!(actions), why));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_bounded() {
        let check = |count: usize, expect: &[&str]| {
            let variable = |at: usize| json!({"name": format!("v{at}"), "expression": "1"});
            let rule = json!({
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
                "operations": ["CREATE"], "scope": "*",
            });
            let object = json!({"spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule], "matchPolicy": "Equivalent"},
                "variables": (0..count).map(variable).collect::<Vec<_>>(),
                "validations": [{"expression": "true"}],
            }});
            let problems = Policies { mutating: false }.validate(&object);
            let problems = problems.iter().map(ToString::to_string).collect::<Vec<_>>();
            assert_eq!(problems, expect);
        };
        check(3, &[]);
        check(
            MOST_VARIABLES + 1,
            &["spec.variables: Too many: 1001: must have at most 1000 items"],
        );
    }
}
