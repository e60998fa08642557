//! Kinds whose objects are answers: nothing is stored.

use machinery::meta::{get, get_str, set};
use machinery::{FieldError, FieldPath, GroupVersion};
use serde_json::{Value, json};
use store::cache::{Object, Origin};

use crate::auth::authz::{self, Attributes, Decision};
use crate::registry::{Context, Error, Registry, Target, View, Written};

impl Registry {
    /// Answers a SelfSubjectAccessReview: whether the caller may do something.
    pub(super) fn answer(
        &self,
        ctx: &Context,
        target: &Target,
        mut review: Value,
    ) -> Result<Written, Error> {
        let problems = problems(&review);
        if !problems.is_empty() {
            // Upstream leaves out the kind here.
            let group = &target.resource.group;
            let kind = GroupVersion::new(group, &target.version).kind("");
            return Err(Error::invalid(&kind, "", &problems));
        }
        let decision = authz::authorize(&ctx.user, &asked(&review));
        let mut status = json!({"allowed": decision == Decision::Allow});
        if let Decision::Deny(why) = decision {
            status["reason"] = json!(why);
        }
        set(&mut review, &["status"], status);
        let json = store::object::encode(&review);
        let cluster = Self::cluster(target)?;
        let key = Self::object_key(target, cluster, "review");
        let revision = store::Revision::default();
        let object =
            Object::new(key, &json, revision, 0, Origin::Virtual).map_err(Error::internal)?;
        Ok(Written { view: View { json, object: object.into() }, created: true })
    }
}

/// What is wrong with a review, in upstream's words.
fn problems(review: &Value) -> Vec<FieldError> {
    let spec = FieldPath::root("spec");
    let mut problems = Vec::new();
    let resource = get(review, &["spec", "resourceAttributes"]);
    let path = get(review, &["spec", "nonResourceAttributes"]);
    match (resource, path) {
        (None, None) => {
            let why =
                "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            let field = spec.child("resourceAttributes");
            problems.push(FieldError::invalid(&field, &Value::Null, why));
        }
        (Some(_), Some(path)) => {
            // Printed as upstream's internal type.
            let text = |field: &str| get_str(path, &[field]).unwrap_or_default();
            let shown = json!({"Path": text("path"), "Verb": text("verb")});
            let why = "cannot be specified in combination with resourceAttributes";
            let field = spec.child("nonResourceAttributes");
            problems.push(FieldError::invalid(&field, &shown, why));
        }
        (Some(resource), None) => {
            let field = spec.child("resourceAttributes");
            for selector in ["fieldSelector", "labelSelector"] {
                if let Some(value) = get(resource, &[selector]) {
                    problems.extend(selector_problems(value, &field.child(selector)));
                }
            }
        }
        (None, Some(_)) => {}
    }
    // A review has no name: there is nothing to find by one.
    let metadata = get(review, &["metadata"]).and_then(Value::as_object);
    if let Some(metadata) = metadata.filter(|metadata| !metadata.is_empty()) {
        let field = FieldPath::root("metadata");
        problems.push(FieldError::invalid(&field, &json!(metadata), "must be empty"));
    }
    problems
}

fn selector_problems(selector: &Value, path: &FieldPath) -> Vec<FieldError> {
    let raw = get_str(selector, &["rawSelector"]).unwrap_or_default();
    let requirements = get(selector, &["requirements"]).and_then(Value::as_array);
    let given = requirements.is_some_and(|list| !list.is_empty());
    if !raw.is_empty() && given {
        let why = "may not specified at the same time as requirements";
        return vec![FieldError::invalid_str(&path.child("rawSelector"), raw, why)];
    }
    if raw.is_empty() && !given {
        let path = path.child("requirements");
        let parent = path.as_str().strip_suffix(".requirements").unwrap_or_default();
        let why = format!("when {parent} is specified, requirements or rawSelector is required");
        return vec![FieldError::required(&path, why)];
    }
    Vec::new()
}

/// What the review asks about.
fn asked(review: &Value) -> Attributes<'_> {
    let text =
        |part: &str, field: &str| get_str(review, &["spec", part, field]).unwrap_or_default();
    if get(review, &["spec", "nonResourceAttributes"]).is_some() {
        let part = "nonResourceAttributes";
        return Attributes::Path { verb: text(part, "verb"), path: text(part, "path") };
    }
    let part = "resourceAttributes";
    Attributes::Resource {
        verb: text(part, "verb"),
        group: text(part, "group"),
        resource: text(part, "resource"),
        name: text(part, "name"),
        subresource: text(part, "subresource"),
        namespace: text(part, "namespace"),
    }
}
