//! Flags that say how callers are known.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;

use super::duration;
use crate::auth::{AuthOptions, FrontProxies, OidcOptions, ServiceAccountOptions};

/// The longest that a token may live: what a request for one can say.
const LONGEST: Duration = Duration::from_secs(1 << 32);

#[derive(Debug, Args)]
pub(super) struct AuthArgs {
    /// Certificate authorities, as PEM: clients with a certificate of one of them are known by its
    /// CN (their name) and O (their groups), as those with one of the server's own authority are.
    #[arg(long, value_name = "FILE")]
    client_ca_file: Option<PathBuf>,

    /// File that holds a bearer token of the administrator.
    #[arg(long, value_name = "FILE")]
    static_admin_token_file: Option<PathBuf>,

    /// File of static bearer tokens: token,user,uid,"group1,group2" in each line. It is read again
    /// when it changes.
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,

    /// Whether requests without credentials are let in as system:anonymous, who may see little.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set,
        num_args = 0..=1, default_missing_value = "true")]
    anonymous_auth: bool,

    /// Certificate authorities of front proxies, as PEM: on connections with a certificate of one
    /// of them, X-Remote-User, -Group, -Uid and -Extra- say who the caller is.
    #[arg(long, value_name = "FILE")]
    requestheader_client_ca_file: Option<PathBuf>,

    /// Name (CN) of a front proxy, if not every certificate of those authorities is one;
    /// repeatable.
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        requires = "requestheader_client_ca_file"
    )]
    requestheader_allowed_names: Vec<String>,

    #[command(flatten)]
    oidc: OidcArgs,

    /// Key that signs tokens of ServiceAccounts, as PEM (RSA, P-256, P-384 or P-521), instead of
    /// one of our own.
    #[arg(long, value_name = "FILE")]
    service_account_signing_key_file: Option<PathBuf>,

    /// Further keys that tokens of ServiceAccounts may be signed with, private or public, as PEM;
    /// repeatable.
    #[arg(long = "service-account-key-file", value_name = "FILE")]
    service_account_key_files: Vec<PathBuf>,

    /// Issuer of tokens of ServiceAccounts in root; that of another logical cluster is
    /// /clusters/NAME below it. Repeatable: further ones are believed. [default:
    /// https://kubernetes.default.svc]
    #[arg(long = "service-account-issuer", value_name = "URL")]
    service_account_issuers: Vec<String>,

    /// Where the public keys of these tokens are, if not at this server.
    #[arg(long, value_name = "URL")]
    service_account_jwks_uri: Option<String>,

    /// Audience that tokens for this API have; repeatable. [default: the issuer]
    #[arg(long = "api-audiences", value_name = "NAME", value_delimiter = ',')]
    api_audiences: Vec<String>,

    /// The longest life of a token of a ServiceAccount, as 24h, one hour at least; those who ask
    /// for more get this much. [default: no limit]
    #[arg(long, value_parser = duration, value_name = "TIME")]
    service_account_max_token_expiration: Option<Duration>,
}

/// An issuer of ID tokens (OpenID Connect).
#[derive(Debug, Args)]
struct OidcArgs {
    /// Issuer of ID tokens (OpenID Connect) by which callers are known, as tokens name it.
    #[arg(long, requires = "oidc_client_id", value_name = "URL")]
    oidc_issuer_url: Option<String>,

    /// Whom these tokens are for.
    #[arg(long, requires = "oidc_issuer_url", value_name = "ID")]
    oidc_client_id: Option<String>,

    /// The claim that is the caller's name.
    #[arg(long, requires = "oidc_issuer_url", default_value = "sub", value_name = "CLAIM")]
    oidc_username_claim: String,

    /// What stands before the name, "-" for nothing. [default: the issuer and "#", before all
    /// but email]
    #[arg(long, requires = "oidc_issuer_url", value_name = "TEXT")]
    oidc_username_prefix: Option<String>,

    /// The claim that is the caller's groups.
    #[arg(long, requires = "oidc_issuer_url", value_name = "CLAIM")]
    oidc_groups_claim: Option<String>,

    /// What stands before each group. Groups that begin with system: all the same are left out.
    #[arg(long, requires = "oidc_issuer_url", value_name = "TEXT")]
    oidc_groups_prefix: Option<String>,

    /// A claim that tokens must have, as CLAIM=VALUE; repeatable.
    #[arg(long = "oidc-required-claim", requires = "oidc_issuer_url", value_parser = pair,
        value_name = "CLAIM=VALUE")]
    oidc_required_claims: Vec<(String, String)>,

    /// Certificate authorities of the issuer, as PEM. [default: the system's]
    #[arg(long, requires = "oidc_issuer_url", value_name = "FILE")]
    oidc_ca_file: Option<PathBuf>,

    /// Algorithm that tokens may be signed by; repeatable.
    #[arg(
        long,
        requires = "oidc_issuer_url",
        value_delimiter = ',',
        default_value = "RS256",
        value_name = "NAME"
    )]
    oidc_signing_algs: Vec<String>,
}

// === impl OidcArgs ===

impl OidcArgs {
    fn options(self) -> Option<OidcOptions> {
        Some(OidcOptions {
            issuer: self.oidc_issuer_url?,
            client_id: self.oidc_client_id.unwrap_or_default(),
            username_claim: self.oidc_username_claim,
            username_prefix: self.oidc_username_prefix.unwrap_or_default(),
            groups_claim: self.oidc_groups_claim.unwrap_or_default(),
            groups_prefix: self.oidc_groups_prefix.unwrap_or_default(),
            required_claims: self.oidc_required_claims,
            authorities: self.oidc_ca_file,
            algorithms: self.oidc_signing_algs,
        })
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(claim, _)| !claim.is_empty());
    let pair = pair.map(|(claim, value)| (claim.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "not a claim and its value, as team=blue".to_owned())
}

// === impl AuthArgs ===

impl AuthArgs {
    /// What the flags say.
    pub(super) fn options(self) -> anyhow::Result<AuthOptions> {
        for issuer in &self.service_account_issuers {
            let url = !issuer.contains(':') || issuer.parse::<http::Uri>().is_ok();
            anyhow::ensure!(
                url && !issuer.is_empty(),
                "--service-account-issuer {issuer:?} has a colon, and is no URL"
            );
        }
        if let Some(uri) = &self.service_account_jwks_uri {
            let https = uri.parse::<http::Uri>().is_ok_and(|uri| uri.scheme_str() == Some("https"));
            anyhow::ensure!(https, "--service-account-jwks-uri {uri:?} is no URL of https");
        }
        let max_seconds = match self.service_account_max_token_expiration {
            Some(longest) => {
                let allowed = Duration::from_secs(3600)..=LONGEST;
                anyhow::ensure!(
                    allowed.contains(&longest),
                    "--service-account-max-token-expiration is not between one hour and 2^32 seconds"
                );
                Some(i64::try_from(longest.as_secs())?)
            }
            None => None,
        };
        Ok(AuthOptions {
            client_authorities: self.client_ca_file,
            admin_token: self.static_admin_token_file.map(|path| read_token(&path)).transpose()?,
            token_file: self.token_auth_file,
            refuse_anonymous: !self.anonymous_auth,
            front_proxies: self.requestheader_client_ca_file.map(|authorities| FrontProxies {
                authorities,
                names: self.requestheader_allowed_names,
            }),
            oidc: self.oidc.options(),
            service_accounts: ServiceAccountOptions {
                signing_key: self.service_account_signing_key_file,
                keys: self.service_account_key_files,
                issuers: self.service_account_issuers,
                audiences: self.api_audiences,
                max_seconds,
                jwks_uri: self.service_account_jwks_uri,
            },
        })
    }
}

fn read_token(path: &std::path::Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let token = text.trim();
    anyhow::ensure!(!token.is_empty(), "{} holds no token", path.display());
    anyhow::ensure!(
        !token.contains(char::is_whitespace),
        "{} holds more than a token",
        path.display()
    );
    Ok(token.to_owned())
}
