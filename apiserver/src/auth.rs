//! Who a caller is, and what a caller may do.

mod agent;
pub(crate) mod authn;
pub(crate) mod authz;
pub(crate) mod bearer;
mod bootstrap;
pub(crate) mod impersonation;
mod jwt;
mod objects;
pub(crate) mod oidc;
pub(crate) mod operator;
mod options;
pub(crate) mod rbac;
mod recent;
mod refusal;
pub(crate) mod targets;
mod token_file;
pub(crate) mod tokens;

use std::collections::BTreeMap;
use std::sync::Arc;

use machinery::ClusterName;

use crate::registry::ClusterScope;
pub use agent::{Agent, Credential};
pub(crate) use agent::{AgentTokens, rights};
pub(crate) use objects::secret_entry;
pub use oidc::{OidcOptionError, OidcOptions};
pub use options::{AuthOptions, FrontProxies, ServiceAccountOptions};
pub(crate) use refusal::Refusal;
pub(crate) use token_file::TokenFile;
pub use token_file::TokenFileError;

/// An authenticated caller (`user.Info` upstream).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// The name, as `system:anonymous`.
    pub name: String,
    /// A stable id, or empty.
    pub uid: String,
    /// Groups, as `system:masters`.
    pub groups: Vec<String>,
    /// Anything else that the authenticator says.
    pub extra: BTreeMap<String, Vec<String>>,
    /// The one logical cluster that knows this identity, as for ServiceAccounts; `None` for those
    /// that are known everywhere, as client certificates are.
    pub home: Option<ClusterName>,
    /// The SyncTarget whose agent it is, or is to become.
    pub agent: Option<Arc<Agent>>,
}

/// What stands between callers and objects.
#[derive(Clone, Debug)]
pub(crate) struct Guards {
    /// Says what a caller may do.
    pub(crate) authorizer: Arc<authz::Authorizer>,
    /// Says whose a token is.
    pub(crate) bearers: Arc<bearer::Bearers>,
}

/// Who a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// The caller.
    pub(crate) user: Arc<UserInfo>,
    /// The audiences that are both the token's and wanted.
    pub(crate) audiences: Vec<String>,
}

/// Where a caller wants to go, as the path says. Identities of one logical cluster are known there
/// alone, and a path that names none leads to theirs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'r> {
    /// The path names no logical cluster.
    Unnamed,
    /// The path names one, or all.
    Named(&'r ClusterScope),
}

/// The group whose members may do everything.
pub const MASTERS: &str = "system:masters";

/// The group of everybody who is known.
pub const AUTHENTICATED: &str = "system:authenticated";

/// The group of everybody who is not.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The name of everybody who is not known.
pub const ANONYMOUS: &str = "system:anonymous";

// === impl UserInfo ===

impl UserInfo {
    /// A caller who is known by name and groups; `system:authenticated` is added.
    pub fn known(name: &str, groups: &[&str]) -> Self {
        let mut groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self { name: name.to_owned(), groups, ..Self::default() }
    }

    /// The caller who gave no credentials.
    pub fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// The same caller in `system:authenticated`, unless that or its opposite is there already.
    pub(crate) fn authenticated(mut self) -> Self {
        let said = self.is_in(AUTHENTICATED) || self.is_in(UNAUTHENTICATED);
        if !said && self.name != ANONYMOUS {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    /// The agent of a SyncTarget that the caller is, by its certificate.
    pub(crate) fn certified_agent(&self) -> Option<&Arc<Agent>> {
        self.agent.as_ref().filter(|agent| agent.is_certified())
    }

    /// Whether the caller is in `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|held| held == group)
    }
}

// === impl Place ===

impl Place<'_> {
    /// Whether an identity of `home` is known here.
    pub(crate) fn admits(self, home: &ClusterName) -> bool {
        match self {
            Self::Unnamed => true,
            Self::Named(ClusterScope::One(cluster)) => cluster == home,
            Self::Named(ClusterScope::All) => false,
        }
    }

    /// The logical cluster whose own credentials count here, where they don't name theirs.
    pub(crate) fn cluster(self) -> Option<ClusterName> {
        match self {
            Self::Unnamed => Some(ClusterName::root()),
            Self::Named(ClusterScope::One(cluster)) => Some(cluster.clone()),
            Self::Named(ClusterScope::All) => None,
        }
    }
}
