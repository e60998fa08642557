//! What the watch of an agent rests on: its SyncTarget, which the watch follows, too.
//!
//! # Guarantees
//! - When the SyncTarget is gone, or has revoked the agent's credential, the watch ends before it
//!   shows anything that came later.
//! - It ends with the credential.

use std::sync::Arc;
use std::time::Duration;

use store::Key;
use store::cache::{Event, Filter};

use crate::auth::{Agent, Credential, targets};
use crate::registry::{Context, Error, Reason, Registry, Target};

/// Whose a watch is, if that may end.
#[derive(Debug)]
pub(super) struct Standing {
    agent: Arc<Agent>,
    target: Target,
    /// The key of the SyncTarget.
    pub(super) key: Key,
}

// === impl Standing ===

impl Standing {
    /// That of the caller; `None` for those who are no agents.
    pub(super) fn of(ctx: &Context, target: &Target) -> Option<Self> {
        let agent = ctx.user.certified_agent()?.clone();
        let key = targets::key(&agent.cluster, &agent.name);
        Some(Self { agent, target: target.clone(), key })
    }

    /// A filter that lets the SyncTarget through beside what it lets through itself.
    pub(super) fn beside(&self, filter: Filter) -> Filter {
        let key = self.key.clone();
        Arc::new(move |event: &Event| event.key == key || filter(event))
    }

    /// Whether the agent is still who it was, and the logical cluster still its business.
    ///
    /// # Errors
    /// 401 when it is not.
    pub(super) fn check(&self, registry: &Registry) -> Result<(), Error> {
        let cache = registry.cache();
        let gone = || Error::new(Reason::Unauthorized, "Unauthorized");
        let target = self.agent.target(&**cache).ok_or_else(gone)?;
        match self.target.one_cluster() {
            Some(cluster) if *cluster != self.agent.cluster => {
                target.serves(&**cache, cluster).then_some(()).ok_or_else(gone)
            }
            _ => Ok(()),
        }
    }

    /// How long the agent's credential is good for.
    ///
    /// # Errors
    /// 401 when it is not.
    pub(super) fn left(&self, registry: &Registry, ctx: &Context) -> Result<Duration, Error> {
        self.check(registry)?;
        let Credential::Certificate { expires, .. } = self.agent.credential else {
            return Ok(Duration::MAX);
        };
        let left = u64::try_from(expires.saturating_sub(ctx.now.as_second())).unwrap_or_default();
        Ok(Duration::from_secs(left))
    }
}
