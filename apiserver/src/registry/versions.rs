//! `resourceVersion` on the wire, and the tokens of paged lists.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use store::Revision;

use crate::registry::{Error, ListOptions, VersionMatch};

/// Longest continue token that is looked at: a key has at most a few hundred bytes.
const MAX_TOKEN: usize = 4096;

/// Which state a list is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// The most recent: it includes every write acknowledged before.
    Latest,
    /// Any that the cache has.
    Any,
    /// Any not older than this.
    NotOlderThan(Revision),
    /// Exactly this.
    Exact(Revision),
}

/// Where a page starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// The revision of all pages; `None` goes on at the latest.
    pub(super) revision: Option<Revision>,
    /// The last key of the page before, without the prefix that is listed.
    pub(super) after: String,
}

#[derive(Serialize, Deserialize)]
struct Token {
    v: String,
    rv: i64,
    start: String,
}

/// The wire form of revisions of one store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Versions {
    /// `rv_base` of the store.
    pub(super) base: u64,
}

// === impl Versions ===

impl Versions {
    pub(super) fn format(self, revision: Revision) -> String {
        (revision.0 + self.base).to_string()
    }

    /// Parses a `resourceVersion` parameter other than the empty one. Versions from before the
    /// store's base are history that is gone: they read as revision 0.
    pub(super) fn parse(self, text: &str) -> Result<Revision, Error> {
        let number = text.parse::<u64>().map_err(|_| {
            let why = "strconv.ParseUint: parsing";
            let message =
                format!("resourceVersion: Invalid value: {text:?}: {why} {text:?}: invalid syntax");
            Error::invalid_options(&message, "resourceVersion", "FieldValueInvalid")
        })?;
        Ok(Revision(number.saturating_sub(self.base)))
    }

    /// The state that a list without a continue token is of (KEP-2523's table).
    pub(super) fn list_state(self, options: &ListOptions) -> Result<At, Error> {
        let version = options.resource_version.as_str();
        let field = "resourceVersionMatch";
        match (version, options.version_match) {
            ("", Some(_)) => Err(Error::invalid_options(
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless \
                 resourceVersion is provided",
                field,
                "FieldValueForbidden",
            )),
            ("", None) => Ok(At::Latest),
            ("0", Some(VersionMatch::Exact)) => Err(Error::invalid_options(
                "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for \
                 resourceVersion \"0\"",
                field,
                "FieldValueForbidden",
            )),
            ("0", _) => Ok(At::Any),
            (version, Some(VersionMatch::Exact)) => Ok(At::Exact(self.parse(version)?)),
            (version, Some(VersionMatch::NotOlderThan)) => {
                Ok(At::NotOlderThan(self.parse(version)?))
            }
            (version, None) if options.limit > 0 => Ok(At::Exact(self.parse(version)?)),
            (version, None) => Ok(At::NotOlderThan(self.parse(version)?)),
        }
    }

    /// The token with which a list goes on after a key; at the latest revision when `revision` is
    /// `None`. The key is given without the prefix that is listed.
    pub(super) fn token(self, revision: Option<Revision>, after: &str) -> String {
        let rv = revision
            .map_or(-1, |revision| i64::try_from(revision.0 + self.base).unwrap_or(i64::MAX));
        let start = format!("{after}\0");
        let token = Token { v: "meta.k8s.io/v1".into(), rv, start };
        let json = serde_json::to_vec(&token).expect("a token of plain strings serialises");
        URL_SAFE_NO_PAD.encode(json)
    }

    pub(super) fn start(self, token: &str) -> Result<Start, Error> {
        let invalid = |why: &str| Error::bad_request(format!("continue key is not valid: {why}"));
        if token.len() > MAX_TOKEN {
            return Err(invalid("it is too long"));
        }
        let trimmed = token.trim_end_matches('=');
        let json = URL_SAFE_NO_PAD.decode(trimmed).map_err(|error| invalid(&error.to_string()))?;
        let parsed =
            serde_json::from_slice::<Token>(&json).map_err(|error| invalid(&error.to_string()))?;
        if parsed.v != "meta.k8s.io/v1" {
            return Err(invalid("the version is not known"));
        }
        let after = parsed.start.strip_suffix('\0').unwrap_or(&parsed.start);
        if after.is_empty() || after.contains("..") && after.split('/').any(|part| part == "..") {
            return Err(invalid("the start key is not valid"));
        }
        let revision = match parsed.rv {
            -1 => None,
            rv => {
                let rv = u64::try_from(rv).map_err(|_| invalid("the revision is not valid"))?;
                Some(Revision(rv.saturating_sub(self.base)))
            }
        };
        Ok(Start { revision, after: after.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_round_trip() {
        let versions = Versions { base: 1000 };
        for revision in [None, Some(Revision(7))] {
            let token = versions.token(revision, "ns/name");
            assert_eq!(
                versions.start(&token).unwrap(),
                Start { revision, after: "ns/name".into() }
            );
        }
    }

    #[test]
    fn hostile_tokens_are_refused() {
        let versions = Versions { base: 0 };
        for token in ["", "x", "%%%", "e30", &"A".repeat(5000)] {
            let error = versions.start(token).unwrap_err();
            assert!(error.message().starts_with("continue key is not valid"), "{token}");
        }
    }

    #[test]
    fn list_states() {
        let versions = Versions { base: 0 };
        let state = |version: &str, version_match, limit| {
            let resource_version = version.into();
            let options =
                ListOptions { resource_version, version_match, limit, ..ListOptions::default() };
            versions.list_state(&options).map_err(|error| error.reason())
        };
        let invalid = Err(crate::registry::Reason::Invalid);
        assert_eq!(state("", None, 0), Ok(At::Latest));
        assert_eq!(state("", Some(VersionMatch::Exact), 0), invalid);
        assert_eq!(state("0", None, 5), Ok(At::Any));
        assert_eq!(state("0", Some(VersionMatch::Exact), 0), invalid);
        assert_eq!(state("9", None, 0), Ok(At::NotOlderThan(Revision(9))));
        assert_eq!(state("9", None, 1), Ok(At::Exact(Revision(9))));
        assert_eq!(state("9", Some(VersionMatch::Exact), 0), Ok(At::Exact(Revision(9))));
        assert_eq!(state("x", None, 0), invalid);
    }
}
