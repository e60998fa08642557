//! Reviews of who somebody is: a token, or the caller.

use machinery::meta::{get, get_str, set};
use serde_json::{Map, Value, json};

use crate::auth::{Place, UserInfo};
use crate::registry::{Context, Error, Registry, Target};

/// Reviews of a token.
pub(super) const TOKEN_REVIEWS: &str = "tokenreviews";

/// Reviews of the caller.
pub(super) const SELF_REVIEWS: &str = "selfsubjectreviews";

impl Registry {
    /// Answers a TokenReview: who a token is, in the logical cluster that is asked.
    pub(super) async fn review_token(
        &self,
        ctx: &Context,
        target: &Target,
        mut review: Value,
    ) -> Result<Value, Error> {
        let token = get_str(&review, &["spec", "token"]).unwrap_or_default();
        if token.is_empty() {
            let text = "token is required for TokenReview in authentication";
            return Err(Error::bad_request(text));
        }
        let wanted = get(&review, &["spec", "audiences"]).and_then(Value::as_array);
        let wanted: Option<Vec<String>> = wanted
            .filter(|wanted| !wanted.is_empty())
            .map(|wanted| wanted.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        let place = Place::Named(&target.cluster);
        let known = self.bearers.identify(token, place, wanted.as_deref(), ctx.now).await;
        let status = match known {
            Ok(known) => json!({
                "authenticated": true,
                "user": user_info(&known.user),
                "audiences": known.audiences,
            }),
            Err(refusal) => json!({"user": {}, "error": refusal.to_string()}),
        };
        set(&mut review, &["status"], status);
        Ok(review)
    }
}

/// Answers a SelfSubjectReview: who the caller is.
pub(super) fn review_self(ctx: &Context, mut review: Value) -> Value {
    let now = machinery::time::Time::at(ctx.now).to_string();
    set(&mut review, &["metadata"], json!({"creationTimestamp": now}));
    set(&mut review, &["status"], json!({"userInfo": user_info(&ctx.user)}));
    review
}

/// A caller as reviews show it; what is empty is left out.
fn user_info(user: &UserInfo) -> Value {
    let parts = [
        ("username", json!(user.name)),
        ("uid", json!(user.uid)),
        ("groups", json!(user.groups)),
        ("extra", json!(user.extra)),
    ];
    let is_empty = |value: &Value| match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    let given = parts.into_iter().filter(|(_, value)| !is_empty(value));
    Value::Object(given.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}
