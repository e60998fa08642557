//! What a caller may do in a logical cluster.
//!
//! [`Authorizer::authorize`] is the one place that decides; it reads the cache and nothing else, so
//! it never waits. Invariants: a caller who is known in one logical cluster alone is refused in
//! every other; a refusal by the gate of a logical cluster reads the same whether that exists or not.

mod attributes;

use std::sync::Arc;

use machinery::ClusterName;
use store::cache::Cache;

pub(crate) use attributes::{Attributes, is_below, is_public};

use crate::auth::rbac::{Binding, Held, Missing, Policy, RoleKind, Rules};
use crate::auth::rights::{self, Place, Right};
use crate::auth::{self, Agent, MASTERS, UserInfo, operator};
use crate::registry::{ClusterScope, Error, Reason};

/// Decides who may do what, in every logical cluster.
#[derive(Debug)]
pub(crate) struct Authorizer {
    cache: Arc<Cache>,
    held: Arc<Held>,
}

/// The answer of an authorizer.
#[derive(Clone, Debug)]
pub(crate) enum Decision {
    /// It may be done, and why.
    Allow(Grant),
    /// Nothing allows it. The text says what else is to be known, as that a role is missing; it is
    /// mostly empty.
    Deny(String),
}

/// Why something is allowed.
#[derive(Clone, Debug)]
pub(crate) enum Grant {
    /// The caller may do everything, or anybody may do this.
    Always,
    /// The logical cluster does not exist, and the caller may make it. What comes of this must hold
    /// only as long as it doesn't exist, or belongs to the caller: see `Context::creating`.
    Creator,
    /// The caller is the server's operator, or an agent, whose rights follow from what it is. On
    /// what objects they may be used, the registry sees.
    Own,
    /// A binding gives the caller a role that allows it.
    Bound {
        /// The binding.
        binding: Arc<Binding>,
        /// Which of its subjects the caller is.
        subject: u32,
    },
}

// === impl Authorizer ===

impl Authorizer {
    /// Decides by what is in `cache`.
    pub(crate) fn new(cache: Arc<Cache>) -> Self {
        let held = Held::new(&cache);
        Self { cache, held }
    }

    /// How many policies of logical clusters are held, and what they count for in bytes.
    pub(crate) fn policies(&self) -> (usize, usize) {
        self.held.size()
    }

    /// Decides whether `user` may do something in one logical cluster, or over all.
    ///
    /// Public paths are for anybody. A caller known in one logical cluster alone has no business in
    /// any other; masters may do everything. For all others, the roles and bindings of the logical
    /// cluster decide, once the caller has passed its gate ([`may_use`](Self::may_use)). Over all
    /// logical clusters those of `root` decide: they must allow the same at the cluster scope, and
    /// the verb `wildcard` on `logicalclusters/content`.
    pub(crate) fn authorize(
        &self,
        user: &UserInfo,
        scope: &ClusterScope,
        attributes: &Attributes<'_>,
    ) -> Decision {
        if matches!(attributes, Attributes::Path { verb: "get", path } if is_public(path)) {
            return Decision::Allow(Grant::Always);
        }
        if !is_known(user, scope) {
            return Decision::Deny(String::new());
        }
        if let Some(agent) = &user.agent {
            let right = self.right_of_agent(agent, scope, attributes);
            if right != Right::None || agent.is_certified() {
                return Decision::of_right(right != Right::None);
            }
        }
        if user.is_in(MASTERS) {
            return Decision::Allow(Grant::Always);
        }
        if operator::is_operator(user)
            && operator::right(scope, attributes) != operator::Right::None
        {
            return Decision::Allow(Grant::Own);
        }
        self.by_roles(user, scope, attributes)
    }

    /// What roles and bindings say alone.
    pub(crate) fn by_roles(
        &self,
        user: &UserInfo,
        scope: &ClusterScope,
        attributes: &Attributes<'_>,
    ) -> Decision {
        let ClusterScope::One(cluster) = scope else {
            return self.authorize_over_all(user, attributes);
        };
        let Some(policy) = self.held.policy(&self.cache, cluster) else {
            let allowed = self.may_create(user, cluster);
            return if allowed {
                Decision::Allow(Grant::Creator)
            } else {
                Decision::Deny(String::new())
            };
        };
        if !self.may_use(user, cluster, &policy) {
            return Decision::Deny(String::new());
        }
        Decision::of(policy.allows(user, attributes))
    }

    /// What an agent may do, and with which objects.
    pub(crate) fn right_of_agent(
        &self,
        agent: &Agent,
        scope: &ClusterScope,
        attributes: &Attributes<'_>,
    ) -> Right {
        let place = match scope {
            ClusterScope::All => Place::All,
            ClusterScope::One(cluster) if *cluster == agent.cluster => Place::Own,
            ClusterScope::One(cluster) if self.serves(agent, cluster) => Place::Served,
            ClusterScope::One(_) => Place::Foreign,
        };
        if agent.is_certified() {
            let goes_up = |group: &str, resource: &str| self.goes_up(agent, group, resource);
            rights::right(agent, place, attributes, &goes_up)
        } else {
            rights::right_to_begin(place, attributes)
        }
    }

    /// Whether the SyncTarget of an agent serves a logical cluster other than its own.
    fn serves(&self, agent: &Agent, cluster: &ClusterName) -> bool {
        let target = agent.target(&*self.cache);
        target.is_some_and(|target| target.serves(&*self.cache, cluster))
    }

    /// Whether the SyncTarget of an agent lets objects of a type go up from its physical cluster.
    pub(crate) fn goes_up(&self, agent: &Agent, group: &str, resource: &str) -> bool {
        let goes = || agent.target(&*self.cache).is_some_and(|t| t.goes_up(group, resource));
        contract::may_go_up(group, resource) && goes()
    }

    fn authorize_over_all(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Decision {
        let Some(root) = self.held.policy(&self.cache, &ClusterName::root()) else {
            return Decision::Deny(String::new());
        };
        if let Err(why) = root.allows(user, &clusters("wildcard", "content", "")) {
            return Decision::Deny(why);
        }
        Decision::of(root.allows(user, &attributes.at_cluster_scope()))
    }

    /// Whether the caller may use a logical cluster at all, which comes before what its roles and
    /// bindings allow: those give everybody who is known some rights, and everybody who is known
    /// somewhere else is not meant.
    ///
    /// It is open to those who are known in this logical cluster alone, to whom its stored bindings
    /// name as a user or by a group that not everybody is in, and to whom the policy of `root` gives
    /// the verb `access` on the logical cluster. `root` is open to all.
    fn may_use(&self, user: &UserInfo, cluster: &ClusterName, policy: &Policy) -> bool {
        if cluster.is_root() || user.home.is_some() || policy.names(user) {
            return true;
        }
        let root = self.held.policy(&self.cache, &ClusterName::root());
        let access = clusters("access", "", cluster.as_str());
        root.is_some_and(|root| root.allows(user, &access).is_ok())
    }

    /// Whether the caller may make a logical cluster: the verb `create` on `logicalclusters` in
    /// `root`. The server's own are made by the server alone.
    pub(crate) fn may_create(&self, user: &UserInfo, cluster: &ClusterName) -> bool {
        if cluster.is_system() || user.certified_agent().is_some() {
            return false;
        }
        let root = ClusterName::root();
        if !is_known(user, &ClusterScope::One(root.clone())) {
            return false;
        }
        let create = clusters("create", "", cluster.as_str());
        let allows = |root: Arc<Policy>| root.allows(user, &create).is_ok();
        user.is_in(MASTERS) || self.held.policy(&self.cache, &root).is_some_and(allows)
    }

    /// The rules that the roles and bindings of a logical cluster give to a caller in a namespace,
    /// and the roles that are missing.
    pub(crate) fn rules(
        &self,
        user: &UserInfo,
        scope: &ClusterScope,
        namespace: &str,
    ) -> (Vec<Rules>, Missing) {
        let ClusterScope::One(cluster) = scope else { return Default::default() };
        if !is_known(user, scope) {
            return Default::default();
        }
        match self.held.policy(&self.cache, cluster) {
            Some(policy) if user.is_in(MASTERS) || self.may_use(user, cluster, &policy) => {
                policy.rules_for(user, namespace)
            }
            _ => Default::default(),
        }
    }

    /// The rules of a role in a logical cluster; `namespace` is that of a Role.
    pub(crate) fn role(
        &self,
        cluster: &ClusterName,
        kind: RoleKind,
        namespace: &str,
        name: &str,
    ) -> Option<Rules> {
        self.held.policy(&self.cache, cluster)?.role(kind, namespace, name).cloned()
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

/// Whether a caller is known where they want to do something.
fn is_known(user: &UserInfo, scope: &ClusterScope) -> bool {
    user.home.as_ref().is_none_or(|home| auth::Place::Named(scope).admits(home))
}

/// A verb on the objects that stand for logical clusters.
fn clusters<'a>(verb: &'a str, subresource: &'a str, name: &'a str) -> Attributes<'a> {
    Attributes::Resource {
        verb,
        group: "core.kcp.io",
        resource: "logicalclusters",
        name,
        subresource,
        namespace: "",
    }
}

/// The answer to a request that nothing allows; `why` may be empty.
pub(crate) fn refused(user: &UserInfo, attributes: &Attributes<'_>, why: &str) -> Error {
    let mut text = attributes.refusal(user);
    if !why.is_empty() {
        text.push_str(": ");
        text.push_str(why);
    }
    match attributes {
        Attributes::Resource { group, resource, name, .. } => {
            Error::forbidden(&machinery::GroupResource::new(group, resource), name, &text)
        }
        Attributes::Path { .. } => Error::generic(Reason::Forbidden, format!("forbidden: {text}")),
    }
}

// === impl Decision ===

impl Decision {
    fn of(found: Result<(Arc<Binding>, u32), String>) -> Self {
        match found {
            Ok((binding, subject)) => Self::Allow(Grant::Bound { binding, subject }),
            Err(why) => Self::Deny(why),
        }
    }

    fn of_right(allowed: bool) -> Self {
        if allowed { Self::Allow(Grant::Own) } else { Self::Deny(String::new()) }
    }

    /// Whether it may be done.
    pub(crate) fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow(_))
    }

    /// Why, as reviews tell it; empty where there is nothing to say.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Allow(Grant::Always) => String::new(),
            Self::Allow(Grant::Own) => "the caller's identity gives the right".to_owned(),
            Self::Allow(Grant::Creator) => "the caller may create the logical cluster".to_owned(),
            Self::Allow(Grant::Bound { binding, subject }) => {
                format!("RBAC: allowed by {}", binding.described(*subject))
            }
            Self::Deny(why) => why.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
