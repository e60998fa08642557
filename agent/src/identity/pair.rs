//! A certificate and its key.

use std::sync::Arc;
use std::time::Duration;

use contract::{AgentUri, agent_name};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use x509_parser::extensions::GeneralName;
use x509_parser::pem::parse_x509_pem;

use crate::target::TargetRef;

/// A certificate of an agent, and its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    chain: Arc<[u8]>,
    key: Arc<[u8]>,
    names: Vec<String>,
    uris: Vec<String>,
    not_before: Timestamp,
    not_after: Timestamp,
    /// Which part of its life, in thousandths, is left when the next one is asked for.
    renew_at: u64,
}

/// A text that is no certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no certificate: {0}")]
pub struct PairError(String);

// === impl Pair ===

impl Pair {
    /// Reads a certificate (PEM, its chain after it). The key is taken as it is.
    ///
    /// # Errors
    /// When the first text is no certificate.
    pub fn new(chain: &[u8], key: &[u8]) -> Result<Self, PairError> {
        let wrong = |error: &dyn std::fmt::Display| PairError(error.to_string());
        let (_, pem) = parse_x509_pem(chain).map_err(|error| wrong(&error))?;
        let certificate = pem.parse_x509().map_err(|error| wrong(&error))?;
        let names = certificate.subject().iter_common_name();
        let names = names.filter_map(|name| name.as_str().ok()).map(str::to_owned).collect();
        let extension = certificate.subject_alternative_name().ok().flatten();
        let alternatives = extension.map(|extension| extension.value.general_names.as_slice());
        let uris = alternatives.unwrap_or_default().iter().filter_map(|name| match name {
            GeneralName::URI(uri) => Some((*uri).to_owned()),
            _ => None,
        });
        let time = |seconds: i64| Timestamp::from_second(seconds).map_err(|error| wrong(&error));
        let validity = certificate.validity();
        // A certificate has its own point between 20 and 25 %, so that a fleet that was installed at
        // once does not renew at once.
        let [first, second, ..] = <[u8; 32]>::from(Sha256::digest(&pem.contents));
        let renew_at = 200 + u64::from(u16::from_be_bytes([first, second])) * 50 / 65535;
        Ok(Self {
            uris: uris.collect(),
            names,
            not_before: time(validity.not_before.timestamp())?,
            not_after: time(validity.not_after.timestamp())?,
            renew_at,
            chain: chain.into(),
            key: key.into(),
        })
    }

    /// The certificate, as PEM.
    pub fn chain(&self) -> &[u8] {
        &self.chain
    }

    /// Its key, as PEM. It is a secret.
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// When it ends.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// Whether it is of the agent of this SyncTarget.
    pub fn is_of(&self, target: &TargetRef) -> bool {
        let uri = AgentUri { cluster: &target.cluster, name: &target.name }.to_string();
        self.names == [agent_name(&target.uid)] && self.uris == [uri]
    }

    /// How long it is until the next one is to be asked for: when 20 to 25 % of its life are left.
    pub fn until_renewal(&self, now: Timestamp) -> Duration {
        let seconds = |time: Timestamp| u64::try_from(time.as_second()).unwrap_or(0);
        let (begin, end) = (seconds(self.not_before), seconds(self.not_after));
        let left = end.saturating_sub(begin) * self.renew_at / 1000;
        Duration::from_secs(end.saturating_sub(left).saturating_sub(seconds(now)))
    }
}

/// The key is not shown.
impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair")
            .field("names", &self.names)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}
