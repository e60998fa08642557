//! What is wrong with reviews of access, in upstream's words.

use machinery::meta::{get, get_str};
use machinery::{FieldError, FieldPath, name};
use serde_json::{Value, json};

use super::Review;

/// All that is wrong with a review, in upstream's order.
pub(super) fn of(which: Review, review: &Value) -> Vec<FieldError> {
    let spec = FieldPath::root("spec");
    let mut problems = Vec::new();
    let resource = get(review, &["spec", "resourceAttributes"]);
    let path = get(review, &["spec", "nonResourceAttributes"]);
    // Printed as upstream's internal type.
    let shown = path.map(|path| {
        let text = |field: &str| get_str(path, &[field]).unwrap_or_default();
        json!({"Path": text("path"), "Verb": text("verb")})
    });
    match (resource, &shown) {
        (None, None) => {
            let why =
                "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            let field = spec.child("resourceAttributes");
            problems.push(FieldError::invalid(&field, &Value::Null, why));
        }
        (Some(_), Some(shown)) => {
            let why = "cannot be specified in combination with resourceAttributes";
            let field = spec.child("nonResourceAttributes");
            problems.push(FieldError::invalid(&field, shown, why));
        }
        _ => {}
    }
    if which != Review::Own {
        let user = get_str(review, &["spec", "user"]).unwrap_or_default();
        let groups = get(review, &["spec", "groups"]).and_then(Value::as_array);
        if user.is_empty() && groups.is_none_or(Vec::is_empty) {
            let why = "at least one of user or group must be specified";
            problems.push(FieldError::invalid_str(&spec.child("user"), user, why));
        }
    }
    if let Some(resource) = resource {
        let field = spec.child("resourceAttributes");
        for selector in [Selector::Field, Selector::Label] {
            if let Some(value) = get(resource, &[selector.name()]) {
                problems.extend(selector.problems(value, &field.child(selector.name())));
            }
        }
    }
    problems.extend(metadata_problem(which, review));
    if which == Review::Local {
        let namespace = get_str(review, &["metadata", "namespace"]).unwrap_or_default();
        let asked = resource.map(|part| get_str(part, &["namespace"]).unwrap_or_default());
        if let Some(asked) = asked.filter(|asked| *asked != namespace) {
            let field = spec.child("resourceAttributes").child("namespace");
            problems.push(FieldError::invalid_str(&field, asked, "must match metadata.namespace"));
        }
        if let Some(shown) = &shown {
            let field = spec.child("nonResourceAttributes");
            let why = "disallowed on this kind of request";
            problems.push(FieldError::invalid(&field, shown, why));
        }
    }
    problems
}

/// A review has no name: there is nothing to find by one.
fn metadata_problem(which: Review, review: &Value) -> Option<FieldError> {
    let metadata = get(review, &["metadata"]).and_then(Value::as_object)?;
    let allowed =
        |field: &str| field == "managedFields" || (which == Review::Local && field == "namespace");
    if metadata.keys().all(|field| allowed(field)) {
        return None;
    }
    let why = match which {
        Review::Local => "must be empty except for namespace",
        Review::Any | Review::Own => "must be empty",
    };
    Some(FieldError::invalid(&FieldPath::root("metadata"), &json!(metadata), why))
}

/// The two selectors that a review may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Selector {
    Field,
    Label,
}

// === impl Selector ===

impl Selector {
    fn name(self) -> &'static str {
        match self {
            Self::Field => "fieldSelector",
            Self::Label => "labelSelector",
        }
    }

    fn problems(self, selector: &Value, path: &FieldPath) -> Vec<FieldError> {
        let raw = get_str(selector, &["rawSelector"]).unwrap_or_default();
        let requirements = get(selector, &["requirements"]).and_then(Value::as_array);
        let requirements = requirements.map_or(&[][..], Vec::as_slice);
        let mut problems = Vec::new();
        if !raw.is_empty() && !requirements.is_empty() {
            let why = "may not specified at the same time as requirements";
            problems.push(FieldError::invalid_str(&path.child("rawSelector"), raw, why));
        }
        let list = path.child("requirements");
        if raw.is_empty() && requirements.is_empty() {
            let path = path.as_str();
            let why = format!("when {path} is specified, requirements or rawSelector is required");
            problems.push(FieldError::required(&list, why));
        }
        for (index, requirement) in requirements.iter().enumerate() {
            problems.extend(self.requirement(requirement, &list.index(index)));
        }
        problems
    }

    /// Operators that this server doesn't know are for the authorizer to judge.
    fn requirement(self, requirement: &Value, path: &FieldPath) -> Vec<FieldError> {
        let text = |field: &str| get_str(requirement, &[field]).unwrap_or_default();
        let values = get(requirement, &["values"]).and_then(Value::as_array);
        let values = values.map_or(&[][..], Vec::as_slice);
        let mut problems = Vec::new();
        let key = text("key");
        if self == Self::Field && key.is_empty() {
            problems.push(FieldError::required(&path.child("key"), "must be specified"));
        }
        match text("operator") {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                problems.push(FieldError::required(&path.child("values"), why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                problems.push(FieldError::forbidden(&path.child("values"), why));
            }
            _ => {}
        }
        if self == Self::Label {
            let at = path.child("key");
            let wrong = name::qualified_name(key).into_iter();
            problems.extend(wrong.map(|why| FieldError::invalid_str(&at, key, why)));
            for (index, value) in values.iter().filter_map(Value::as_str).enumerate() {
                let at = path.child("values").index(index);
                let wrong = name::label_value(value).into_iter();
                problems.extend(wrong.map(|why| FieldError::invalid_str(&at, value, why)));
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_upstream_s() {
        let check = |which: Review, review: Value, expect: &[&str]| {
            let found: Vec<String> = of(which, &review).iter().map(ToString::to_string).collect();
            assert_eq!(found, expect, "{review}");
        };
        let resource = json!({"resource": "pods"});
        check(Review::Own, json!({"spec": {"resourceAttributes": resource}}), &[]);
        check(
            Review::Any,
            json!({"metadata": {"name": "a"}, "spec": {}}),
            &[
                "spec.resourceAttributes: Invalid value: null: exactly one of \
                 nonResourceAttributes or resourceAttributes must be specified",
                "spec.user: Invalid value: \"\": at least one of user or group must be specified",
                "metadata: Invalid value: {\"name\":\"a\"}: must be empty",
            ],
        );
        check(
            Review::Local,
            json!({
                "metadata": {"namespace": "n"},
                "spec": {"user": "u", "resourceAttributes": {"namespace": "m"}},
            }),
            &["spec.resourceAttributes.namespace: Invalid value: \"m\": must match \
               metadata.namespace"],
        );
        check(
            Review::Local,
            json!({
                "metadata": {"namespace": "n"},
                "spec": {"groups": ["g"], "nonResourceAttributes": {"path": "/"}},
            }),
            &["spec.nonResourceAttributes: Invalid value: {\"Path\":\"/\",\"Verb\":\"\"}: \
               disallowed on this kind of request"],
        );
        let selectors = json!({
            "fieldSelector": {"requirements": [{"operator": "Exists", "values": ["x"]}]},
            "labelSelector": {},
        });
        check(
            Review::Own,
            json!({"spec": {"resourceAttributes": selectors}}),
            &[
                "spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must \
                 be specified",
                "spec.resourceAttributes.fieldSelector.requirements[0].values: Forbidden: may not \
                 be specified when `operator` is 'Exists' or 'DoesNotExist'",
                "spec.resourceAttributes.labelSelector.requirements: Required value: when \
                 spec.resourceAttributes.labelSelector is specified, requirements or rawSelector \
                 is required",
            ],
        );
    }
}
