//! Kinds whose objects are answers: nothing is stored.

use machinery::meta::{get, set};
use machinery::{FieldError, FieldPath};
use serde_json::{Value, json};
use store::cache::{Object, Origin};

use crate::auth::MASTERS;
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
        let allowed = ctx.user.is_in(MASTERS);
        let mut status = json!({"allowed": allowed});
        if !allowed {
            status["reason"] = json!("");
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
