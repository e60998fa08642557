//! `resourceVersion` on the wire, and the tokens of paged lists.

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::{DecodeError, Engine};
use machinery::field::go_quote;
use machinery::json::Limits;
use serde::{Deserialize, Serialize};
use store::Revision;

use crate::registry::{Error, ListOptions, Reason, VersionMatch};

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

/// The version of tokens, which upstream has not changed yet.
const TOKEN_VERSION: &str = "meta.k8s.io/v1";

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
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
    ///
    /// # Errors
    /// 500 without a reason for text, as upstream, which takes it for a failure of its own.
    pub(super) fn parse(self, text: &str) -> Result<Revision, Error> {
        match text.parse::<u64>() {
            Ok(number) => Ok(Revision(number.saturating_sub(self.base))),
            Err(_) => {
                let quoted = go_quote(text);
                let why = format!("strconv.ParseUint: parsing {quoted}: invalid syntax");
                let message = format!("resourceVersion: Invalid value: {quoted}: {why}");
                Err(Error::new(Reason::Unknown, message))
            }
        }
    }

    /// The state that a list without a continue token is of (KEP-2523's table). `options` have
    /// been checked.
    pub(super) fn list_state(self, options: &ListOptions) -> Result<At, Error> {
        let parse = |text| {
            let refused = |error: Error| {
                Error::bad_request(format!("invalid resource version: {}", error.message()))
            };
            self.parse(text).map_err(refused)
        };
        match (options.resource_version.as_str(), &options.version_match) {
            ("", _) => Ok(At::Latest),
            ("0", _) => Ok(At::Any),
            (version, Some(VersionMatch::Exact)) => parse(version).map(At::Exact),
            (version, None) if options.limit > 0 => parse(version).map(At::Exact),
            (version, _) => parse(version).map(At::NotOlderThan),
        }
    }

    /// The token with which a list goes on after a key; at the latest revision when `revision` is
    /// `None`. The key is given without the prefix that is listed.
    pub(super) fn token(self, revision: Option<Revision>, after: &str) -> String {
        let rv = revision
            .map_or(-1, |revision| i64::try_from(revision.0 + self.base).unwrap_or(i64::MAX));
        let start = format!("{after}\0");
        let token = Token { v: TOKEN_VERSION.into(), rv, start };
        let json = serde_json::to_vec(&token).expect("a token of plain strings serialises");
        URL_SAFE_NO_PAD.encode(json)
    }

    pub(super) fn start(self, token: &str) -> Result<Start, Error> {
        let invalid = |why: &str| {
            let message = format!("invalid continue token: continue key is not valid: {why}");
            Error::bad_request(message)
        };
        if token.len() > MAX_TOKEN {
            return Err(invalid("it is too long"));
        }
        let trimmed = token.trim_end_matches('=');
        let json = URL_SAFE_NO_PAD.decode(trimmed).map_err(|error| {
            let at = match error {
                DecodeError::InvalidByte(at, _)
                | DecodeError::InvalidLastSymbol { offset: at, .. } => at,
                _ => trimmed.len(),
            };
            invalid(&format!("illegal base64 data at input byte {at}"))
        })?;
        machinery::json::parse(&json, &Limits::default()).map_err(|e| invalid(&e.message))?;
        let Token { v, rv, start } =
            serde_json::from_slice::<Token>(&json).map_err(|error| invalid(&error.to_string()))?;
        if v != TOKEN_VERSION {
            return Err(invalid(&format!("server does not recognize this encoded version {v}")));
        }
        if rv == 0 {
            let why = format!("incorrect encoded start resourceVersion (version {v})");
            return Err(invalid(&why));
        }
        if start.is_empty() {
            return Err(invalid(&format!("encoded start key empty (version {v})")));
        }
        let after = start.strip_suffix('\0').unwrap_or(&start);
        let path = after.strip_prefix('/').unwrap_or(after);
        if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(invalid(&start));
        }
        let revision = match rv {
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
            assert!(error.message().starts_with("invalid continue token: "), "{token}");
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
        assert_eq!(state("", None, 0), Ok(At::Latest));
        assert_eq!(state("0", None, 5), Ok(At::Any));
        assert_eq!(state("9", None, 0), Ok(At::NotOlderThan(Revision(9))));
        assert_eq!(state("9", None, 1), Ok(At::Exact(Revision(9))));
        assert_eq!(state("9", Some(VersionMatch::Exact), 0), Ok(At::Exact(Revision(9))));
        assert_eq!(state("x", None, 0), Err(Reason::BadRequest));
    }
}
