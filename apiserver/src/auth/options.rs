//! How callers are known, as the operator of the server has set it up.

use std::path::PathBuf;

use super::OidcOptions;

/// What callers are known by, beside the server's own certificates.
#[derive(Clone, Debug, Default)]
pub struct AuthOptions {
    /// Certificate authorities whose client certificates are taken beside our own, as PEM.
    pub client_authorities: Option<PathBuf>,
    /// A bearer token of the administrator.
    pub admin_token: Option<String>,
    /// A file of static tokens, see `token_file`.
    pub token_file: Option<PathBuf>,
    /// Whether callers without credentials are refused, rather than anonymous.
    pub refuse_anonymous: bool,
    /// Front proxies, which may say who a caller is.
    pub front_proxies: Option<FrontProxies>,
    /// An issuer of ID tokens.
    pub oidc: Option<OidcOptions>,
    /// Tokens of ServiceAccounts.
    pub service_accounts: ServiceAccountOptions,
}

/// Front proxies, which may say who a caller is.
#[derive(Clone, Debug)]
pub struct FrontProxies {
    /// The authorities of their certificates, as PEM. They sign for nobody else.
    pub authorities: PathBuf,
    /// The names (CN) in their certificates; any, if empty.
    pub names: Vec<String>,
}

/// How tokens of ServiceAccounts are made and checked.
#[derive(Clone, Debug, Default)]
pub struct ServiceAccountOptions {
    /// The private key that signs, as PEM; one of the server's own if there is none.
    pub signing_key: Option<PathBuf>,
    /// Files of keys that are believed beside the one that signs, as PEM.
    pub keys: Vec<PathBuf>,
    /// Issuers that are believed; the first is that of new tokens.
    pub issuers: Vec<String>,
    /// Audiences of the API, if they aren't the issuer.
    pub audiences: Vec<String>,
    /// The longest life of a token in seconds, if there is a limit.
    pub max_seconds: Option<i64>,
    /// Where the public keys are, if not at this server.
    pub jwks_uri: Option<String>,
}
