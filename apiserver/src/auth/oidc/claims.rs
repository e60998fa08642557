//! From the claims of an ID token to a caller.

use serde::Deserialize;
use serde_json::{Map, Value};
use tracing::debug;

use super::Rules;
use crate::auth::jwt::Texts;
use crate::auth::{Refusal, UserInfo};

/// What names and groups of Kubernetes' own begin with.
pub(super) const SYSTEM: &str = "system:";

/// A claim that every token has.
pub(super) fn required<T: for<'v> Deserialize<'v>>(
    claims: &Map<String, Value>,
    name: &str,
) -> Result<T, Refusal> {
    let Some(value) = claims.get(name) else {
        return Err(Refusal::wrong(format!("oidc: the claim {name:?} is missing")));
    };
    serde_json::from_value(value.clone())
        .map_err(|_| Refusal::wrong(format!("oidc: the claim {name:?} is malformed")))
}

impl Rules {
    /// The caller that the claims are of.
    pub(super) fn user(&self, claims: &Map<String, Value>) -> Result<UserInfo, Refusal> {
        for (name, value) in &self.required_claims {
            let given: String = required(claims, name)?;
            if given != *value {
                return Err(Refusal::wrong(format!(
                    "oidc: required claim {name} value does not match"
                )));
            }
        }
        let name: String = required(claims, &self.username_claim)?;
        if self.username_claim == "email" && claims.contains_key("email_verified") {
            let verified: bool = required(claims, "email_verified")?;
            if !verified {
                return Err(Refusal::wrong("oidc: email not verified"));
            }
        }
        let name = format!("{}{name}", self.username_prefix);
        if name.is_empty() || name.starts_with(SYSTEM) {
            return Err(Refusal::wrong("oidc: the name is one of Kubernetes' own"));
        }
        let groups = if claims.contains_key(&self.groups_claim) {
            required::<Texts>(claims, &self.groups_claim)?.0
        } else {
            Vec::new()
        };
        let mut groups: Vec<String> =
            groups.iter().map(|group| format!("{}{group}", self.groups_prefix)).collect();
        let given = groups.len();
        // Whoever names groups at the issuer must not gain rights here by it.
        groups.retain(|group| !group.is_empty() && !group.starts_with(SYSTEM));
        if groups.len() < given {
            debug!(left_out = given - groups.len(), "groups of Kubernetes' own are left out");
        }
        Ok(UserInfo { name, groups, ..UserInfo::default() }.authenticated())
    }
}
