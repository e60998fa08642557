//! What is installed in a physical cluster: an agent, and what it needs to run there.
//!
//! Invariants: no I/O; the same [`Settings`] give the same objects. Everything of one SyncTarget is
//! in a namespace of its own, named after the hub and the SyncTarget's UID, so that several
//! SyncTargets and hubs share a cluster without knowing of each other. The agent holds no right
//! beyond [`rights::cluster_rules`] and [`rights::own_rules`].
//!
//! The operator applies these objects, `kcp-agent join` prints them.

mod names;
mod objects;
pub mod rights;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use names::{
    AGENT_NAME, HUB_SECRET, IDENTITY_SECRET, Kind, MANAGED_BY, MANAGED_BY_OPERATOR, PULL_SECRET,
    cluster_scoped_name, labels, namespace,
};
pub use rights::SyncedType;

/// What an agent that is to be installed is told.
#[derive(Clone)]
pub struct Settings {
    /// The hub as the physical cluster reaches it: `https://HOST[:PORT][/PREFIX]`.
    pub hub: String,
    /// The certificates that vouch for the hub, as PEM; `None` for the system's.
    pub authority: Option<String>,
    /// The bootstrap token by which an agent without a certificate introduces itself; `None` when
    /// it has one.
    pub token: Option<String>,
    /// The logical cluster of the SyncTarget.
    pub cluster: String,
    /// The SyncTarget's name.
    pub target: String,
    /// The SyncTarget's UID.
    pub uid: String,
    /// The agent's image.
    pub image: String,
    /// What the image is pulled with: the content of a `.dockerconfigjson`.
    pub pull_secret: Option<String>,
    /// The agent's version, for people.
    pub version: String,
    /// The types whose objects it syncs.
    pub types: Vec<SyncedType>,
    /// Those of them to whose copies status goes down.
    pub statuses: Vec<SyncedType>,
}

// === impl Settings ===

impl Settings {
    /// The namespace of everything that is installed, and the name of what has no namespace.
    pub fn namespace(&self) -> String {
        namespace(&self.hub, &self.uid)
    }

    /// The objects in the order in which they are applied. They are whole for server-side apply:
    /// what is not said is not ours.
    pub fn render(&self) -> Vec<Value> {
        objects::render(self)
    }

    /// The objects as one YAML stream.
    ///
    /// # Errors
    /// When a text cannot be written as YAML.
    pub fn to_yaml(&self) -> Result<String, serde_saphyr::ser::Error> {
        let mut text = String::new();
        for object in self.render() {
            text.push_str("---\n");
            text.push_str(&serde_saphyr::to_string(&object)?);
        }
        Ok(text)
    }

    /// A digest of everything that is installed but the token, in hex. It is kept on the Deployment
    /// ([`contract::MANIFEST_DIGEST`]): another one there means that something is to be applied.
    pub fn digest(&self) -> String {
        objects::digest(self)
    }
}

/// Whether a text is what images can be pulled with: JSON as `docker login` writes it.
pub fn is_pull_secret(text: &str) -> bool {
    let read: Result<serde_json::Map<String, Value>, _> = serde_json::from_str(text);
    read.is_ok_and(|read| read.get("auths").is_some_and(Value::is_object))
}

/// Never shows the tokens.
impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("hub", &self.hub)
            .field("cluster", &self.cluster)
            .field("target", &self.target)
            .field("uid", &self.uid)
            .field("image", &self.image)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Kind, namespace and name of an object that was rendered, as `Secret kcp-agent-1/kcp-agent-hub`.
pub fn describe(object: &Value) -> String {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    match text("/metadata/namespace") {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}
