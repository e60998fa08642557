//! Expressions of a policy against the types that it is about: what can't be right is told in the policy's
//! status, and changes nothing of what it decides.

use std::fmt::Write as _;
use std::sync::Arc;

use cel_rules::DeclType;
use machinery::Gvk;
use serde_json::{Value, json};

use super::expression::{Scope, Sees};
use super::{items, text};

/// The most kinds that a policy is checked for, as upstream.
const MOST_KINDS: usize = 10;

/// Bytes of expressions, each counted once for each kind, that are checked: a policy of any reasonable
/// size, and some tenths of a second.
const MOST_CHECKED: usize = 512 * 1024;

/// Bytes of all warnings together: they are stored with the policy.
const MOST_TOLD: usize = 64 * 1024;

/// A resource of a version that a policy names, without wildcards.
pub(crate) type Named = (String, String, String);

/// The resources that a policy's rules name, as group, version and plural name. Rules with wildcards name
/// none.
pub(crate) fn named(spec: &Value) -> Vec<Named> {
    let texts = |rule: &Value, field: &str, but: &[char]| {
        let all = items(rule, field).iter().filter_map(Value::as_str).map(str::to_owned);
        let mut all = all.collect::<Vec<_>>();
        // A wildcard of resources stands for itself alone.
        if field == "resources" {
            all.retain(|text| !text.contains(but));
        } else if all.iter().any(|text| text.contains(but)) {
            all.clear();
        }
        all.sort();
        all
    };
    let mut found = Vec::new();
    let constraints = spec.get("matchConstraints").unwrap_or(&Value::Null);
    for rule in items(constraints, "resourceRules") {
        let groups = texts(rule, "apiGroups", &['*']);
        let versions = texts(rule, "apiVersions", &['*']);
        let resources = texts(rule, "resources", &['*', '/']);
        for group in &groups {
            for version in &versions {
                for resource in &resources {
                    let named = (group.clone(), version.clone(), resource.clone());
                    if found.len() < 16 * MOST_KINDS && !found.contains(&named) {
                        found.push(named);
                    }
                }
            }
        }
    }
    found
}

/// The warnings of a policy's status (`expressionWarnings`): for each expression that is wrong, what is
/// wrong with it for which kind. `params` is the type of its parameters, if that is known.
pub(crate) fn warnings(
    spec: &Value,
    mut kinds: Vec<(Gvk, Arc<DeclType>)>,
    params: Option<&Arc<DeclType>>,
) -> Vec<Value> {
    let order = |kind: &Gvk| {
        let Gvk { group_version, kind } = kind;
        (group_version.group.clone(), group_version.version.clone(), kind.clone())
    };
    kinds.sort_by_key(|(kind, _)| order(kind));
    kinds.dedup_by(|a, b| a.0 == b.0);
    kinds.truncate(MOST_KINDS);
    let has_params = spec.get("paramKind").is_some_and(Value::is_object);
    let sees = Sees { params: has_params, authorizer: true, patches: false };
    let mut left = MOST_CHECKED;
    let mut scopes = Vec::new();
    for (kind, object) in kinds {
        let mut scope = Scope::typed(sees, object, params.cloned());
        for variable in items(spec, "variables") {
            let Some(rest) = left.checked_sub(text(variable, "expression").len()) else {
                return Vec::new();
            };
            left = rest;
            let expression = scope.compile(text(variable, "expression"), &[]);
            scope.add(text(variable, "name"), &expression);
        }
        scopes.push((kind, scope));
    }
    let mut found = Vec::new();
    let mut told = 0;
    for (index, validation) in items(spec, "validations").iter().enumerate() {
        for field in ["expression", "messageExpression"] {
            let source = text(validation, field);
            let cost = source.len().saturating_mul(scopes.len());
            let Some(rest) = left.checked_sub(cost) else { return found };
            left = rest;
            let warning = wrong(&scopes, source);
            told += warning.len();
            if source.is_empty() || warning.is_empty() {
                continue;
            }
            if told > MOST_TOLD {
                return found;
            }
            let place = format!("spec.validations[{index}].{field}");
            found.push(json!({"fieldRef": place, "warning": warning}));
        }
    }
    found
}

/// What is wrong with an expression, a paragraph for each kind.
fn wrong(scopes: &[(Gvk, Scope)], source: &str) -> String {
    let mut told = String::new();
    for (kind, scope) in scopes {
        let expression = scope.compile(source, &[]);
        let Some(why) = expression.problem() else { continue };
        let why = why.strip_prefix("compilation failed: ").unwrap_or(why);
        let Gvk { group_version, kind } = kind;
        let (group, version) = (&group_version.group, &group_version.version);
        let between = if told.is_empty() { "" } else { "\n" };
        writeln!(told, "{between}{group}/{version}, Kind={kind}: {why}")
            .expect("a String takes any text");
    }
    told
}

#[cfg(test)]
mod tests {
    use schema::Types;

    use super::*;

    #[test]
    fn rules_name_resources() {
        let rule = |groups: Value, versions: Value, resources: Value| json!({"apiGroups": groups, "apiVersions": versions, "resources": resources});
        let check = |rules: Value, expect: &[&str]| {
            let found = named(&json!({"matchConstraints": {"resourceRules": rules}}));
            let found = found.iter().map(|(g, v, r)| format!("{g}/{v}/{r}")).collect::<Vec<_>>();
            assert_eq!(found, expect);
        };
        check(
            json!([rule(json!([""]), json!(["v1"]), json!(["pods", "pods/log"]))]),
            &["/v1/pods"],
        );
        check(json!([rule(json!(["*"]), json!(["v1"]), json!(["pods"]))]), &[]);
        check(
            json!([rule(json!(["b", "a"]), json!(["v1"]), json!(["x", "*"]))]),
            &["a/v1/x", "b/v1/x"],
        );
        check(json!([]), &[]);
    }

    #[test]
    fn expressions_are_checked_for_each_kind() {
        let kinds = ["ConfigMap", "Secret"].map(|kind| {
            let kind = machinery::GroupVersion::new("", "v1").kind(kind);
            let declared = Types::builtin().kind(&kind).unwrap().declared();
            (kind, declared)
        });
        let check = |spec: Value, expect: Value| {
            assert_eq!(json!(warnings(&spec, kinds.to_vec(), None)), expect, "{spec}");
        };
        check(json!({"validations": [{"expression": "object.data.size() > 1"}]}), json!([]));
        let why = |kind: &str, text: &str, at: usize, field: &str| {
            let caret = ".".repeat(at - 1);
            format!(
                "/v1, Kind={kind}: ERROR: <input>:1:{at}: undefined field \
                 '{field}'\n | {text}\n | {caret}^\n"
            )
        };
        let text = "object.binaryData.size() > 1";
        check(
            json!({"validations": [{"expression": "true"}, {"expression": text}]}),
            json!([{
                "fieldRef": "spec.validations[1].expression",
                "warning": why("Secret", text, 7, "binaryData"),
            }]),
        );
        let both = ["ConfigMap", "Secret"].map(|kind| why(kind, "object.none", 7, "none"));
        check(
            json!({"validations": [{"expression": "true", "messageExpression": "object.none"}]}),
            json!([{
                "fieldRef": "spec.validations[0].messageExpression",
                "warning": both.join("\n"),
            }]),
        );
        // As upstream: what a variable's fields are is not known.
        let variables = json!([{"name": "x", "expression": "object.metadata"}]);
        check(
            json!({"variables": variables, "validations": [{"expression": "variables.x.none == 1"}]}),
            json!([]),
        );
        let large = format!("object.none == '{}'", "x".repeat(MOST_CHECKED));
        check(json!({"validations": [{"expression": large}]}), json!([]));
    }
}
