//! The identity of a SyncTarget's agent.
//!
//! # Invariants
//! - It rests on the SyncTarget: who asks with a credential of one that is gone, was made again, or
//!   has revoked the credential, is nobody. That is looked up at each request, and by each live
//!   watch when the SyncTarget changes.
//! - Only the server's own authority gives it. Names and groups alone, from wherever they come, give
//!   none of its rights.
//! - It has the rights in [`rights`], and none that roles and bindings give.

pub(crate) mod rights;
mod token;

use contract::{finalizer, global_name, state_label};
use jiff::Timestamp;
use machinery::ClusterName;

use super::objects::Objects;
use super::targets::{self, SyncTarget};
pub(crate) use token::AgentTokens;

/// An agent, or what is to become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The logical cluster of its SyncTarget.
    pub(crate) cluster: ClusterName,
    /// The SyncTarget's name.
    pub(crate) name: Box<str>,
    /// The SyncTarget's UID.
    pub(crate) uid: Box<str>,
    /// What it is known by.
    pub(crate) credential: Credential,
    /// The label of what it is to hold.
    pub(crate) state_label: Box<str>,
    /// The finalizer of what it may hold.
    pub(crate) finalizer: Box<str>,
}

/// What an agent is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// A bootstrap token, with which it may ask for a certificate.
    Bootstrap,
    /// A certificate, valid between two times in seconds since 1970.
    Certificate {
        /// From when on.
        not_before: i64,
        /// Until when.
        expires: i64,
    },
}

// === impl Agent ===

impl Agent {
    /// The agent of a SyncTarget.
    pub(crate) fn new(cluster: ClusterName, name: &str, uid: &str, credential: Credential) -> Self {
        let global = global_name(cluster.as_str(), name);
        Self {
            state_label: state_label(&global).into(),
            finalizer: finalizer(&global).into(),
            cluster,
            name: name.into(),
            uid: uid.into(),
            credential,
        }
    }

    /// Whether it has its certificate already: then its rights are those of agents, and no others.
    pub(crate) fn is_certified(&self) -> bool {
        matches!(self.credential, Credential::Certificate { .. })
    }

    /// Its SyncTarget, as long as that is the one that the credential is of, and takes it.
    pub(crate) fn target(&self, objects: &dyn Objects) -> Option<SyncTarget> {
        let target = targets::find(objects, &self.cluster, &self.name)?;
        let same = target.uid == self.uid;
        let revoked = match (&self.credential, target.credentials_not_before) {
            (Credential::Certificate { not_before, .. }, Some(first)) => {
                Timestamp::from_second(*not_before).map_or(true, |begin| begin < first)
            }
            _ => false,
        };
        (same && !revoked).then_some(target)
    }
}
