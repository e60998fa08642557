//! Kinds whose objects are answers: nothing is stored.

mod access;
mod token;

use serde_json::Value;
use store::cache::{Object, Origin};

use crate::registry::{Context, Error, Registry, Target, View, Written};

impl Registry {
    /// Answers a decoded review with the whole object that its sender gets back.
    pub(super) async fn answer(
        &self,
        ctx: &Context,
        target: &Target,
        review: Value,
    ) -> Result<Written, Error> {
        let answer = match &*target.resource.plural {
            "selfsubjectrulesreviews" => self.own_rules(ctx, target, &review)?,
            token::TOKEN_REVIEWS => self.review_token(ctx, target, review).await?,
            token::SELF_REVIEWS => token::review_self(ctx, review),
            _ => self.access_review(ctx, target, review)?,
        };
        self.answered(target, &answer)
    }

    /// Makes an answer what a write gives.
    pub(super) fn answered(&self, target: &Target, answer: &Value) -> Result<Written, Error> {
        let json = store::object::encode(answer);
        let cluster = Self::cluster(target)?;
        let key = Self::object_key(target, cluster, "review");
        let revision = store::Revision::default();
        let object =
            Object::new(key, &json, revision, 0, Origin::Virtual).map_err(Error::internal)?;
        Ok(Written { view: View { json, object: object.into() }, created: true })
    }
}
