//! Who a bearer token is: one way of knowing tokens after the other.
//!
//! Invariant: a token that says whose it is (by its issuer) is judged by that alone; one that
//! nobody knows is refused, never taken for none.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use machinery::ClusterName;
use store::Store;
use store::cache::Cache;

use crate::auth::oidc::Oidc;
use crate::auth::recent::{TokenDigest, digest, same};
use crate::auth::token_file::TokenFile;
use crate::auth::tokens::AccountTokens;
use crate::auth::{AgentTokens, Known, MASTERS, Place, Refusal, UserInfo, bootstrap};

/// How long a token of something that was just made may wait for it to be seen.
const PATIENCE: Duration = Duration::from_secs(3);

/// Everything by which tokens are known.
#[derive(Debug)]
pub(crate) struct Bearers {
    admin: Option<(TokenDigest, Arc<UserInfo>)>,
    file: Option<TokenFile>,
    agents: AgentTokens,
    accounts: AccountTokens,
    oidc: Option<Oidc>,
    store: Arc<dyn Store>,
    cache: Arc<Cache>,
}

// === impl Bearers ===

impl Bearers {
    /// Tokens of ServiceAccounts and agents, of the administrator if there is one, of a file, and of
    /// an issuer.
    pub(crate) fn new(
        accounts: AccountTokens,
        agents: AgentTokens,
        admin: Option<&str>,
        file: Option<TokenFile>,
        oidc: Option<Oidc>,
        store: Arc<dyn Store>,
        cache: Arc<Cache>,
    ) -> Self {
        let user = || Arc::new(UserInfo::known("kcp-admin", &[MASTERS]));
        let admin = admin.map(|token| (digest(token), user()));
        Self { admin, file, agents, accounts, oidc, store, cache }
    }

    /// The tokens of ServiceAccounts.
    pub(crate) fn accounts(&self) -> &AccountTokens {
        &self.accounts
    }

    /// Who a token is at a place, for the API itself or for `audiences`.
    ///
    /// # Errors
    /// When it is nobody's there.
    pub(crate) async fn identify(
        &self,
        token: &str,
        place: Place<'_>,
        audiences: Option<&[String]>,
        now: Timestamp,
    ) -> Result<Known, Refusal> {
        let digest = digest(token);
        if let Some(user) = self.fixed(&digest) {
            return self.for_api(user, place, audiences);
        }
        if let Some(user) = self.agents.identify(token, &digest, now)? {
            return self.for_api(user, place, audiences);
        }
        let account = match self.accounts.identify(token, &digest, place, audiences, now) {
            // What the token is of may just have been written, by another server perhaps.
            Err(refusal) if refusal.is_absent() && self.catch_up().await => {
                self.accounts.identify(token, &digest, place, audiences, now)
            }
            outcome => outcome,
        };
        if let Some(known) = account? {
            return Ok(known);
        }
        let bootstrap = place
            .cluster()
            .and_then(|cluster| bootstrap::identify(&*self.cache, &cluster, token, now));
        if let Some(user) = bootstrap {
            return self.for_api(Arc::new(user), place, audiences);
        }
        if let Some(oidc) = &self.oidc
            && let Some(user) = oidc.identify(token, &digest, now).await?
        {
            return self.for_api(user, place, audiences);
        }
        Err(Refusal::unknown())
    }

    /// Who a token is that the operator has fixed.
    fn fixed(&self, digest: &TokenDigest) -> Option<Arc<UserInfo>> {
        if let Some((_, user)) = self.admin.as_ref().filter(|(known, _)| same(known, digest)) {
            return Some(user.clone());
        }
        self.file.as_ref()?.identify(digest)
    }

    /// A caller by a token that knows nothing of audiences: it is for the API.
    fn for_api(
        &self,
        user: Arc<UserInfo>,
        place: Place<'_>,
        audiences: Option<&[String]>,
    ) -> Result<Known, Refusal> {
        let cluster = place.cluster().unwrap_or_else(ClusterName::root);
        let mut own = self.accounts.audiences(&cluster);
        if let Some(wanted) = audiences {
            own.retain(|audience| wanted.contains(audience));
            if own.is_empty() {
                return Err(Refusal::unknown());
            }
        }
        Ok(Known { user, audiences: own })
    }

    /// Waits until everything that is written by now can be seen; whether it can.
    async fn catch_up(&self) -> bool {
        let Ok(revision) = self.store.revision().await else { return false };
        self.cache.wait_for(revision, PATIENCE).await.is_ok()
    }
}
