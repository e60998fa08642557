//! The identity of an agent: the subject of its certificate and the URI in it.

/// What stands before the SyncTarget's UID in the name (CN) of an agent.
pub const AGENT_PREFIX: &str = "system:syncer:";

/// The group (O) of all agents.
pub const AGENTS: &str = "system:syncers";

/// The name of the signer that issues certificates to agents.
pub const AGENT_SIGNER: &str = "kcp.io/syncer";

/// The longest life of a token that an agent signs itself, in seconds.
///
/// It stands for the agent's certificate where a proxy ends TLS, and so sees it: what leaks there is
/// soon worth nothing.
pub const AGENT_TOKEN_SECONDS: i64 = 3600;

/// The name (CN) of an agent of the SyncTarget with `uid`.
pub fn agent_name(uid: &str) -> String {
    format!("{AGENT_PREFIX}{uid}")
}

/// The SyncTarget in an agent's certificate, as the one URI among its alternative names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentUri<'a> {
    /// The logical cluster of the SyncTarget.
    pub cluster: &'a str,
    /// Its name.
    pub name: &'a str,
}

// === impl AgentUri ===

impl<'a> AgentUri<'a> {
    /// Reads `kcp://clusters/CLUSTER/synctargets/NAME`.
    pub fn parse(uri: &'a str) -> Option<Self> {
        let (cluster, name) = uri.strip_prefix("kcp://clusters/")?.split_once("/synctargets/")?;
        let plain = |part: &str| {
            let usual = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b':');
            !part.is_empty() && part.bytes().all(usual)
        };
        (plain(cluster) && plain(name)).then_some(Self { cluster, name })
    }
}

impl std::fmt::Display for AgentUri<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "kcp://clusters/{}/synctargets/{}", self.cluster, self.name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn uris_come_back(cluster in "[a-z0-9:-]{1,20}", name in "[a-z0-9-]{1,20}") {
            let text = AgentUri { cluster: &cluster, name: &name }.to_string();
            prop_assert_eq!(
                AgentUri::parse(&text),
                Some(AgentUri { cluster: &cluster, name: &name })
            );
        }

        #[test]
        fn any_text(text in ".{0,60}") {
            if let Some(uri) = AgentUri::parse(&text) {
                prop_assert_eq!(uri.to_string(), text);
            }
        }
    }

    #[test]
    fn what_is_no_agent() {
        for text in [
            "",
            "kcp://clusters/a/synctargets/",
            "kcp://clusters//synctargets/b",
            "kcp://clusters/a/b/synctargets/c",
            "kcp://clusters/a/synctargets/c/d",
            "kcp://clusters/a/synctargets/c?x",
            "kcp://clusters/A/synctargets/c",
            "KCP://clusters/a/synctargets/c",
            "https://clusters/a/synctargets/c",
        ] {
            assert_eq!(AgentUri::parse(text), None, "{text}");
        }
    }
}
