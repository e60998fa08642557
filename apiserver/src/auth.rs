//! Who a caller is, and what a caller may do.

pub(crate) mod authn;
pub(crate) mod authz;

use std::collections::BTreeMap;

use machinery::ClusterName;

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

    /// Whether the caller is in `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|held| held == group)
    }
}
