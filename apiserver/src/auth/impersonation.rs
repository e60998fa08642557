//! Acting as somebody else: the `Impersonate-` headers.
//!
//! # Invariants
//! - Each thing that is said of the other (name, groups, UID, extras) needs the verb `impersonate`
//!   in the logical cluster that is asked.
//! - Rights of one logical cluster never become an identity beyond it: who impersonates by them is
//!   known in that logical cluster alone. Only members of `system:masters` are not bound so.
//! - Identities of the server's own, above all `system:masters`, are for members of
//!   `system:masters`: no rule of a logical cluster gives them.
//! - A ServiceAccount is known in its logical cluster alone, whoever impersonates it.

#[cfg(test)]
mod tests;

use contract::{AGENT_PREFIX, AGENTS};
use http::HeaderMap;

use crate::auth::authn::unescape;
use crate::auth::authz::{Attributes, Authorizer, Grant, refused};
use crate::auth::tokens::{ACCOUNT_PREFIX, account_groups, account_name};
use crate::auth::{ANONYMOUS, MASTERS, UNAUTHENTICATED, UserInfo};
use crate::registry::{ClusterScope, Error};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

/// The group of what belongs to authentication.
const API_GROUP: &str = "authentication.k8s.io";

/// What a request says of the one it acts as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Impersonation {
    said: Vec<Said>,
}

/// One thing that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    ServiceAccount { namespace: String, name: String },
    User(String),
    Group(String),
    Extra { key: String, value: String },
    Uid(String),
}

/// What a request says of the one it acts as, if it acts as another.
///
/// # Errors
/// 400 when groups or the like are given without a name, as upstream.
pub(crate) fn read(headers: &HeaderMap) -> Result<Option<Impersonation>, Error> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let first = |name| headers.get(name).map(text).filter(|value| !value.is_empty());
    let mut said = Vec::new();
    let user = first(USER);
    let is_named = user.is_some();
    if let Some(user) = user {
        said.push(match account(&user) {
            Some((namespace, name)) => {
                Said::ServiceAccount { namespace: namespace.to_owned(), name: name.to_owned() }
            }
            None => Said::User(user),
        });
    }
    said.extend(headers.get_all(GROUP).iter().map(|group| Said::Group(text(group))));
    for (header, value) in headers {
        if let Some(key) = header.as_str().strip_prefix(EXTRA) {
            said.push(Said::Extra { key: unescape(key), value: text(value) });
        }
    }
    said.extend(first(UID).map(Said::Uid));
    if said.is_empty() {
        return Ok(None);
    }
    if !is_named {
        let said: Vec<String> = said.iter().map(Said::printed).collect();
        let said = said.join(" ");
        return Err(Error::bad_request(format!(
            "requested [{said}] without impersonating a user name"
        )));
    }
    Ok(Some(Impersonation { said }))
}

/// The namespace and name of a ServiceAccount's user name.
fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(ACCOUNT_PREFIX)?.split_once(':')?;
    let good = machinery::name::dns1123_label(namespace).is_empty()
        && machinery::name::dns1123_subdomain(name).is_empty();
    good.then_some((namespace, name))
}

/// Whether a name or group is the server's own: no rule of a logical cluster gives it.
fn is_ours(name: &str) -> bool {
    let prefixes = ["system:kcp:", AGENT_PREFIX, "system:bootstrap:"];
    matches!(name, MASTERS | AGENTS) || prefixes.iter().any(|own| name.starts_with(own))
}

// === impl Impersonation ===

impl Impersonation {
    /// Whom the caller acts as, where it may.
    ///
    /// # Errors
    /// 403 for the first thing that the caller may not say.
    pub(crate) fn allow(
        self,
        caller: &UserInfo,
        scope: &ClusterScope,
        authorizer: &Authorizer,
    ) -> Result<UserInfo, Error> {
        let is_master = caller.is_in(MASTERS) && caller.home.is_none();
        for said in &self.said {
            let asked = said.attributes();
            if !is_master && said.is_ours() {
                let why = "only members of system:masters act as the server's own identities";
                return Err(refused(caller, &asked, why));
            }
            if matches!(authorizer.permit(caller, scope, &asked)?, Grant::Creator) {
                // It may be somebody else's a moment later, and then the other's rights count.
                let why = "nobody acts as another before the logical cluster is there";
                return Err(refused(caller, &asked, why));
            }
        }
        let user = self.user();
        let bound = !is_master || user.name.starts_with(ACCOUNT_PREFIX);
        match (bound, scope) {
            (false, _) => Ok(user),
            (true, ClusterScope::One(home)) => Ok(UserInfo { home: Some(home.clone()), ..user }),
            (true, ClusterScope::All) => {
                // Nobody who is known in one logical cluster alone is known over all of them.
                let why = "such an identity is known in one logical cluster alone";
                let asked = self.said.first().map(Said::attributes);
                Err(asked.map_or_else(
                    || Error::internal("an impersonation of nobody"),
                    |asked| refused(caller, &asked, why),
                ))
            }
        }
    }

    /// Whom the caller acts as, groups completed as upstream does.
    fn user(&self) -> UserInfo {
        let mut user = UserInfo::default();
        for said in &self.said {
            match said {
                Said::ServiceAccount { namespace, name } => {
                    user.name = account_name(namespace, name);
                }
                Said::User(name) => user.name.clone_from(name),
                Said::Group(group) => user.groups.push(group.clone()),
                Said::Extra { key, value } => {
                    user.extra.entry(key.clone()).or_default().push(value.clone());
                }
                Said::Uid(uid) => user.uid.clone_from(uid),
            }
        }
        if let (true, Some(Said::ServiceAccount { namespace, .. })) =
            (user.groups.is_empty(), self.said.first())
        {
            user.groups.extend(account_groups(namespace));
        }
        if user.name == ANONYMOUS && !user.is_in(UNAUTHENTICATED) {
            user.groups.push(UNAUTHENTICATED.to_owned());
        }
        user.authenticated()
    }
}

// === impl Said ===

impl Said {
    fn is_ours(&self) -> bool {
        match self {
            Self::User(name) | Self::Group(name) => is_ours(name),
            Self::ServiceAccount { .. } | Self::Extra { .. } | Self::Uid(_) => false,
        }
    }

    /// What the caller must be allowed.
    fn attributes(&self) -> Attributes<'_> {
        let (group, resource, subresource, namespace, name) = match self {
            Self::ServiceAccount { namespace, name } => {
                ("", "serviceaccounts", "", &**namespace, &**name)
            }
            Self::User(name) => ("", "users", "", "", &**name),
            Self::Group(name) => ("", "groups", "", "", &**name),
            Self::Extra { key, value } => (API_GROUP, "userextras", &**key, "", &**value),
            Self::Uid(uid) => (API_GROUP, "uids", "", "", &**uid),
        };
        let verb = "impersonate";
        Attributes::Resource { verb, group, resource, name, subresource, namespace }
    }

    /// As Go prints the reference that upstream makes of it.
    fn printed(&self) -> String {
        const VERSION: &str = "authentication.k8s.io/v1";
        match self {
            Self::ServiceAccount { namespace, name } => {
                format!("{{ServiceAccount {namespace} {name}    }}")
            }
            Self::User(name) => format!("{{User  {name}    }}"),
            Self::Group(name) => format!("{{Group  {name}    }}"),
            Self::Extra { key, value } => format!("{{UserExtra  {value}  {VERSION}  {key}}}"),
            Self::Uid(uid) => format!("{{UID  {uid}  {VERSION}  }}"),
        }
    }
}
