//! Who a caller is, and what a caller may do.

use std::collections::BTreeMap;

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
}

/// The group whose members may do everything.
pub const MASTERS: &str = "system:masters";

// === impl UserInfo ===

impl UserInfo {
    /// Whether the caller is in `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|held| held == group)
    }
}
