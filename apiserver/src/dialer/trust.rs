//! Whose certificates are trusted: those of a bundle, or the system's.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use runtime::Authorities;
use rustls::ClientConfig;
use rustls::client::Resumption;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::CallError;

/// Configurations that are held: one for each bundle in use. Others are made again.
const MOST: usize = 256;

/// TLS configurations by their authorities.
#[derive(Debug, Default)]
pub(super) struct Trust {
    system: OnceCell<Arc<ClientConfig>>,
    bundles: Mutex<HashMap<[u8; 32], Arc<ClientConfig>>>,
}

// === impl Trust ===

impl Trust {
    /// The configuration for a bundle (PEM in base64), and its identity.
    ///
    /// # Errors
    /// If the bundle has no certificate.
    pub(super) async fn config(
        &self,
        bundle: &str,
    ) -> Result<([u8; 32], Arc<ClientConfig>), CallError> {
        if bundle.is_empty() {
            let config = self.system.get_or_try_init(system).await?;
            return Ok(([0; 32], config.clone()));
        }
        let identity: [u8; 32] = Sha256::digest(bundle.as_bytes()).into();
        if let Some(config) = self.bundles.lock().get(&identity) {
            return Ok((identity, config.clone()));
        }
        let pem = STANDARD.decode(bundle).map_err(|_| CallError::Bundle)?;
        if pem.trim_ascii().is_empty() {
            let config = self.system.get_or_try_init(system).await?;
            return Ok(([0; 32], config.clone()));
        }
        let authorities = Authorities::of_bundle(&pem);
        if authorities.is_empty() {
            return Err(CallError::Bundle);
        }
        let config = configure(authorities)?;
        let mut bundles = self.bundles.lock();
        if bundles.len() >= MOST {
            bundles.clear();
        }
        bundles.insert(identity, config.clone());
        Ok((identity, config))
    }
}

/// Reads the system's authorities, once: some hundred files or a large one.
async fn system() -> Result<Arc<ClientConfig>, CallError> {
    let read = || configure(Authorities::system());
    tokio::task::spawn_blocking(read).await.unwrap_or(Err(CallError::Bundle))
}

fn configure(authorities: Authorities) -> Result<Arc<ClientConfig>, CallError> {
    let builder = authorities.client().map_err(|_| CallError::Bundle)?;
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Connections are kept instead, and sessions would be shared by logical clusters.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}
