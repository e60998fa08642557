//! What a server knows its callers by, put together as its options say.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use store::cache::Cache;

use super::{Builder, StartError};
use crate::auth::authn::{Authenticator, Authorities, FrontProxy};
use crate::auth::bearer::Bearers;
use crate::auth::oidc::{IssuerDocuments, Oidc, OidcOptions};
use crate::auth::tokens::{AccountTokens, KeyFiles, Keys, TokenSettings};
use crate::auth::{AgentTokens, FrontProxies, TokenFile};
use crate::dialer::{Dialer, Network};
use crate::pki::{self, Pki};

// === impl Builder ===

impl Builder {
    /// What callers are known by.
    pub(super) fn authenticator(
        &self,
        certificates: Authorities,
        bearers: Arc<Bearers>,
    ) -> Result<Authenticator, StartError> {
        let proxy = match &self.auth.front_proxies {
            Some(FrontProxies { authorities, names }) => {
                let certificates = pki::verifier_of(authorities)?;
                Some(FrontProxy { certificates, names: names.clone() })
            }
            None => None,
        };
        Ok(Authenticator::new(certificates, proxy, bearers, !self.auth.refuse_anonymous))
    }

    /// What bearer tokens are known by.
    pub(super) fn bearers(&self, pki: &Pki, cache: Arc<Cache>) -> Result<Bearers, StartError> {
        let options = &self.auth.service_accounts;
        let files =
            KeyFiles { signing: options.signing_key.clone(), verifying: options.keys.clone() };
        let keys = Keys::open(self.root.as_deref(), &files)?;
        let settings = TokenSettings {
            issuers: options.issuers.clone(),
            audiences: options.audiences.clone(),
            max_seconds: options.max_seconds,
        };
        let accounts = AccountTokens::new(keys, settings, cache.clone());
        let agents = AgentTokens::new(pki.own_verifier()?, cache.clone());
        let file = self.auth.token_file.as_deref().map(TokenFile::open).transpose()?;
        let admin = self.auth.admin_token.as_deref();
        let oidc = self.auth.oidc.as_ref().map(oidc).transpose()?;
        Ok(Bearers::new(accounts, agents, admin, file, oidc, self.store.clone(), cache))
    }
}

/// Knows callers by tokens of the operator's issuer.
fn oidc(options: &OidcOptions) -> Result<Oidc, StartError> {
    let ca_bundle = match &options.authorities {
        Some(path) => STANDARD.encode(pki::files::read(path)?),
        None => String::new(),
    };
    // The operator has named the issuer: it may be anywhere.
    let dialer = Dialer::new(Network::everything().to_vec());
    let documents = Arc::new(IssuerDocuments { dialer, ca_bundle });
    Ok(Oidc::new(options, documents)?)
}
