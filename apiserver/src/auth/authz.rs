//! What a caller may do in a logical cluster.
//!
//! [`Authorizer::authorize`] is the one place that decides; it reads the cache and nothing else, so
//! it never waits. Invariants: a caller who is known in one logical cluster alone is refused in
//! every other; a refusal by the gate of a logical cluster reads the same whether that exists or not.

mod attributes;

use std::sync::Arc;

use machinery::ClusterName;
use serde_json::{Value, json};
use store::cache::Cache;

pub(crate) use attributes::{Attributes, is_public};

use crate::auth::{MASTERS, UserInfo};
use crate::registry::{ClusterScope, Error, Reason};

/// Decides who may do what, in every logical cluster.
#[derive(Debug)]
pub(crate) struct Authorizer {
    #[expect(dead_code, reason = "the policy of a logical cluster will be read from it")]
    cache: Arc<Cache>,
}

/// The answer of an authorizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It may be done, and why.
    Allow(Grant),
    /// Nothing allows it. The text says what else is to be known, as that a role is missing; it is
    /// mostly empty.
    Deny(String),
}

/// Why something is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// The caller may do everything, or anybody may do this.
    Always,
}

// === impl Authorizer ===

impl Authorizer {
    /// Decides by what is in `cache`.
    pub(crate) fn new(cache: Arc<Cache>) -> Self {
        Self { cache }
    }

    /// Decides whether `user` may do something in one logical cluster, or over all.
    pub(crate) fn authorize(
        &self,
        user: &UserInfo,
        scope: &ClusterScope,
        attributes: &Attributes<'_>,
    ) -> Decision {
        if matches!(attributes, Attributes::Path { verb: "get", path } if is_public(path)) {
            return Decision::Allow(Grant::Always);
        }
        if let Some(home) = &user.home
            && !matches!(scope, ClusterScope::One(cluster) if cluster == home)
        {
            return Decision::Deny(String::new());
        }
        if user.is_in(MASTERS) {
            return Decision::Allow(Grant::Always);
        }
        Decision::Deny(String::new())
    }

    /// Whether the caller may make a logical cluster: the verb `create` on `logicalclusters` in
    /// `root`. The server's own are made by the server alone.
    pub(crate) fn may_create(&self, user: &UserInfo, cluster: &ClusterName) -> bool {
        if cluster.is_system() {
            return false;
        }
        let attributes = Attributes::Resource {
            verb: "create",
            group: "core.kcp.io",
            resource: "logicalclusters",
            name: "",
            subresource: "",
            namespace: "",
        };
        let root = ClusterScope::One(ClusterName::root());
        self.authorize(user, &root, &attributes).is_allowed()
    }

    /// What `user` may do in a namespace and outside of all, as the status of a
    /// `SelfSubjectRulesReview`.
    pub(crate) fn rules_status(
        &self,
        user: &UserInfo,
        scope: &ClusterScope,
        _namespace: &str,
    ) -> Value {
        let everything = Attributes::Path { verb: "*", path: "*" };
        let all = self.authorize(user, scope, &everything).is_allowed();
        let resources =
            all.then(|| json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
        let paths = all.then(|| json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
        json!({
            "resourceRules": Vec::from_iter(resources),
            "nonResourceRules": Vec::from_iter(paths),
            "incomplete": false,
        })
    }

    /// As [`authorize`](Self::authorize), with a refusal as the answer to the request.
    ///
    /// # Errors
    /// [`Reason::Forbidden`], in upstream's words.
    pub(crate) fn permit(
        &self,
        user: &UserInfo,
        scope: &ClusterScope,
        attributes: &Attributes<'_>,
    ) -> Result<Grant, Error> {
        match self.authorize(user, scope, attributes) {
            Decision::Allow(grant) => Ok(grant),
            Decision::Deny(why) => Err(refused(user, attributes, &why)),
        }
    }
}

/// The answer to a request that nothing allows.
fn refused(user: &UserInfo, attributes: &Attributes<'_>, why: &str) -> Error {
    let mut text = attributes.refusal(user);
    if !why.is_empty() {
        text.push_str(": ");
        text.push_str(why);
    }
    match attributes {
        Attributes::Resource { group, resource, name, .. } => {
            Error::forbidden(&machinery::GroupResource::new(group, resource), name, &text)
        }
        Attributes::Path { .. } => Error::new(Reason::Forbidden, format!("forbidden: {text}")),
    }
}

// === impl Decision ===

impl Decision {
    /// Whether it may be done.
    pub(crate) fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow(_))
    }

    /// Why, as reviews tell it; empty where there is nothing to say.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Allow(Grant::Always) => String::new(),
            Self::Deny(why) => why.clone(),
        }
    }
}
