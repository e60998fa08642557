//! JSON Web Tokens in compact form (RFC 7519, RFC 7515): how they are read, checked and signed.
//!
//! Invariants: pure; the algorithm of a signature is one that the key is for, whatever the token
//! says of itself; a token whose header asks for an extension is none of ours; what is read is
//! bounded before it is decoded.

mod algorithm;
mod jwk;
mod key;
mod pem;
mod signing;
#[cfg(test)]
mod tests;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rustls_pki_types::CertificateDer;
use serde::Deserialize;

pub(crate) use algorithm::Algorithm;
pub(crate) use jwk::JwkSet;
pub(crate) use key::{KeyError, PublicKey};
pub(crate) use pem::{PemKey, read_keys};
pub(crate) use signing::{SignError, SigningKey};

/// The longest token that is looked at. Those with many groups have some KB.
const MAX_LENGTH: usize = 64 * 1024;

/// A token that has been taken apart. Nothing in it is to be believed before
/// [`Token::is_signed_by`].
#[derive(Debug)]
pub(crate) struct Token<'t> {
    header: Header,
    payload: Vec<u8>,
    signed: &'t str,
    signature: Vec<u8>,
}

/// What a token says of its signature. Extensions (`crit`) are unknown here.
#[derive(Debug, Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    x5c: Option<Vec<String>>,
    #[serde(default)]
    crit: Option<serde_json::Value>,
}

/// Seconds since 1970, as tokens have them; fractions are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NumericDate(pub(crate) i64);

/// One text or several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Texts(pub(crate) Vec<String>);

// === impl Token ===

impl<'t> Token<'t> {
    /// Takes a token apart; `None` for what is none.
    pub(crate) fn parse(text: &'t str) -> Option<Self> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        let (signed, signature) = text.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let header: Header = serde_json::from_slice(&decode(header)?).ok()?;
        if header.crit.is_some() {
            return None;
        }
        Some(Self { header, payload: decode(payload)?, signed, signature: decode(signature)? })
    }

    /// The id of the key that it says it was signed with.
    pub(crate) fn key_id(&self) -> Option<&str> {
        self.header.kid.as_deref().filter(|id| !id.is_empty())
    }

    /// The certificates that it shows, that of its key first (RFC 7515 section 4.1.6). `None` where
    /// it shows none, or what can't be one.
    pub(crate) fn chain(&self) -> Option<Vec<CertificateDer<'static>>> {
        let texts = self.header.x5c.as_ref()?;
        let chain = texts.iter().map(|text| STANDARD.decode(text).map(CertificateDer::from));
        chain.collect::<Result<Vec<_>, _>>().ok().filter(|chain| !chain.is_empty())
    }

    /// The algorithm that it says it was signed with, if that is one of ours.
    pub(crate) fn algorithm(&self) -> Option<Algorithm> {
        Algorithm::parse(&self.header.alg)
    }

    /// What it claims.
    pub(crate) fn claims<C: for<'c> Deserialize<'c>>(&self) -> Option<C> {
        serde_json::from_slice(&self.payload).ok()
    }

    /// Whether `key` has signed it, by `algorithm`.
    pub(crate) fn is_signed_by(&self, key: &PublicKey, algorithm: Algorithm) -> bool {
        self.algorithm() == Some(algorithm)
            && key.verify(algorithm, self.signed.as_bytes(), &self.signature)
    }
}

// === impl NumericDate ===

impl<'de> Deserialize<'de> for NumericDate {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        let whole = number.as_i64().or_else(|| {
            let number = number.as_f64().filter(|number| number.abs() < 9e15)?;
            #[allow(clippy::cast_possible_truncation, reason = "within what 64 bits hold")]
            Some(number.trunc() as i64)
        });
        whole.map(Self).ok_or_else(|| serde::de::Error::custom("no time"))
    }
}

// === impl Texts ===

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            One(String),
            Many(Vec<String>),
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::One(text) => Self(vec![text]),
            Form::Many(texts) => Self(texts),
        })
    }
}
