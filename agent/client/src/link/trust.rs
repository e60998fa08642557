//! What TLS is spoken with: whom we believe, and who we are.

use std::sync::Arc;

use parking_lot::Mutex;
use runtime::Authorities as Believed;
use rustls::ClientConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::Error;
use crate::settings::{Authorities, Credentials, SettingsError};

const BUNDLE: &str = "bundle of certificate authorities";

/// Authorities and credentials, and the configuration that is made of them.
pub(crate) struct Trust {
    state: Mutex<State>,
}

struct State {
    authorities: Authorities,
    identity: Option<Pair>,
    /// The last configuration, with what was in the file of authorities then.
    made: Option<(Option<Vec<u8>>, Arc<ClientConfig>)>,
}

/// A certificate with its chain, and its key.
#[derive(Clone)]
struct Pair {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<PrivateKeyDer<'static>>,
}

// === impl Trust ===

impl Trust {
    pub(crate) fn new(
        authorities: Authorities,
        credentials: &Credentials,
    ) -> Result<Self, SettingsError> {
        let identity = Pair::of(credentials)?;
        check(&authorities)?;
        Ok(Self { state: Mutex::new(State { authorities, identity, made: None }) })
    }

    pub(crate) fn replace_credentials(
        &self,
        credentials: &Credentials,
    ) -> Result<(), SettingsError> {
        let identity = Pair::of(credentials)?;
        let mut state = self.state.lock();
        state.identity = identity;
        state.made = None;
        Ok(())
    }

    pub(crate) fn replace_authorities(
        &self,
        authorities: Authorities,
    ) -> Result<(), SettingsError> {
        check(&authorities)?;
        let mut state = self.state.lock();
        state.authorities = authorities;
        state.made = None;
        Ok(())
    }

    /// The configuration of the next connection. A file of authorities is read; when it can't be, or
    /// holds none, what it held last counts.
    pub(crate) async fn config(&self) -> Result<Arc<ClientConfig>, Error> {
        let authorities = self.state.lock().authorities.clone();
        let file = match &authorities {
            Authorities::File(path) => Some(tokio::fs::read(path).await),
            Authorities::System | Authorities::Pem(_) => None,
        };
        let told = |why: String| Error::Material { what: BUNDLE, why: why.into() };
        let read = match file {
            None => None,
            Some(Ok(read)) => Some(read),
            Some(Err(error)) => {
                let last = self.state.lock().made.as_ref().map(|(_, config)| config.clone());
                return last.ok_or_else(|| told(error.to_string()));
            }
        };
        if let Some((held, config)) = &self.state.lock().made
            && *held == read
        {
            return Ok(config.clone());
        }
        let believed = match (&authorities, &read) {
            (Authorities::Pem(pem), _) | (_, Some(pem)) => Believed::of_bundle(pem),
            // Some hundred files or a large one.
            _ => tokio::task::spawn_blocking(Believed::system)
                .await
                .unwrap_or_else(|_| Believed::system()),
        };
        if believed.is_empty() {
            let last = self.state.lock().made.as_ref().map(|(_, config)| config.clone());
            return last.ok_or_else(|| told("it holds no certificate".to_owned()));
        }
        let mut state = self.state.lock();
        let config =
            configure(believed, state.identity.as_ref()).map_err(|e| told(e.to_string()))?;
        state.made = Some((read, config.clone()));
        Ok(config)
    }
}

// === impl Pair ===

impl Pair {
    fn of(credentials: &Credentials) -> Result<Option<Self>, SettingsError> {
        let Credentials::Certificate { chain, key } = credentials else { return Ok(None) };
        let wrong = |what, why: String| SettingsError::Material { what, why };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(|error| wrong("client certificate", error.to_string()))?;
        if chain.is_empty() {
            return Err(wrong("client certificate", "there is none".to_owned()));
        }
        // What a parser says of a key may show it.
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| wrong("client key", "it is none".to_owned()))?;
        let pair = Self { chain, key: Arc::new(key) };
        // That key and certificate belong together shows when they are configured.
        configure(Believed::of_bundle(b""), Some(&pair))
            .map_err(|error| wrong("client certificate", error.to_string()))?;
        Ok(Some(pair))
    }
}

/// Refuses a bundle without a certificate. A file may still come.
fn check(authorities: &Authorities) -> Result<(), SettingsError> {
    match authorities {
        Authorities::Pem(pem) if Believed::of_bundle(pem).is_empty() => {
            Err(SettingsError::Material { what: BUNDLE, why: "it holds no certificate".to_owned() })
        }
        _ => Ok(()),
    }
}

fn configure(
    believed: Believed,
    identity: Option<&Pair>,
) -> Result<Arc<ClientConfig>, rustls::Error> {
    let builder = believed.client()?;
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(Pair { chain, key }) => {
            builder.with_client_auth_cert(chain.clone(), key.clone_key())?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
