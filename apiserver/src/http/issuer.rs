//! What those are told who trust the issuer of ServiceAccounts' tokens (OpenID Connect Discovery).
//!
//! Each logical cluster is an issuer of its own, with the server's keys; a token of one says nothing
//! to those who trust another.

use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use serde_json::{Value, json};

use super::body::Body;
use super::{App, Call};
use crate::registry::ClusterScope;

/// The issuer's description.
pub(super) const CONFIGURATION: &str = "/.well-known/openid-configuration";

/// The issuer's keys.
pub(super) const KEYS: &str = "/openid/v1/jwks";

/// Where what is told stands.
#[derive(Debug)]
pub(crate) struct IssuerPages {
    /// `https://HOST:PORT` of this server.
    pub(crate) server: String,
    /// Where the keys are, if not here.
    pub(crate) jwks: Option<String>,
}

impl App {
    /// The description or the keys of a logical cluster's issuer.
    pub(super) fn issuer_page(&self, call: Call<'_>, path: &str) -> Option<Response<Body>> {
        let ClusterScope::One(cluster) = &call.info.cluster else { return None };
        let accounts = self.registry.bearers().accounts();
        let (page, media) = if path == KEYS {
            let keys = accounts.keys().verifying().map(|(id, key)| key.jwk(id));
            let keys: Vec<Value> = keys.collect();
            (json!({"keys": keys}), "application/jwk-set+json")
        } else {
            let mut algorithms: Vec<&str> =
                accounts.keys().verifying().map(|(_, key)| key.algorithm().name()).collect();
            algorithms.sort_unstable();
            algorithms.dedup();
            let place = if call.info.names_cluster {
                format!("/clusters/{cluster}")
            } else {
                String::new()
            };
            let here = || format!("{}{place}{KEYS}", self.issuer.server);
            let page = json!({
                "issuer": accounts.issuer(cluster),
                "jwks_uri": self.issuer.jwks.clone().unwrap_or_else(here),
                "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": algorithms,
            });
            (page, "application/json")
        };
        let mut response = Response::new(Body::full(page.to_string()));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
        // As long as upstream lets it be kept.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
        Some(response)
    }
}
