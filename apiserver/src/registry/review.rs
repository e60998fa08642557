//! Kinds whose objects are answers: nothing is stored.

use machinery::meta::{get, get_str, set};
use machinery::{FieldError, FieldPath};
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
        let resource = get(&review, &["spec", "resourceAttributes"]);
        let path = get(&review, &["spec", "nonResourceAttributes"]);
        let field = FieldPath::root("spec").child("resourceAttributes");
        let problem = match (resource, path) {
            (None, None) => {
                let why =
                    "exactly one of nonResourceAttributes or resourceAttributes must be specified";
                Some(FieldError::invalid(&field, &Value::Null, why))
            }
            (Some(_), Some(_)) => {
                let field = FieldPath::root("spec").child("nonResourceAttributes");
                let why = "cannot be specified in combination with resourceAttributes";
                Some(FieldError::invalid(&field, &Value::Null, why))
            }
            _ => None,
        };
        if let Some(problem) = problem {
            let kind = Self::kind(&target.resource, &target.version);
            return Err(Error::invalid(&kind, "", &[problem]));
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
