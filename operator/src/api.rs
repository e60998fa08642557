//! Calls of one API server, by path: what the operator needs of a client for objects of any kind.
//!
//! Invariants: every call ends within a time-out; "not there" is told apart from every other
//! failure; what a server of a tenant's choice says is never part of an error.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use serde_json::Value;

/// How long one call may take. A server that is slower is as good as gone.
const PATIENCE: Duration = Duration::from_secs(15);

/// How many objects a page of a list has.
const PAGE: usize = 500;

/// The most objects of one list: more are not looked at in one turn.
const MOST_LISTED: usize = 100_000;

/// The most pages of one list: what never ends comes from a server that means harm.
const MOST_PAGES: usize = 20_000;

/// Asks for metadata alone.
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// An API server, below one path.
#[derive(Clone)]
pub(crate) struct Api {
    client: kube::Client,
    /// What all paths begin with; empty, or a path without a slash at its end.
    prefix: Arc<str>,
    /// Whether its words may be repeated: those of the hub may, those of tenants' servers may not.
    trusted: bool,
}

/// Why a call has failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// The server was not reached, or broke off.
    #[error("{0}")]
    Unreachable(String),
    /// The address may not be reached from here.
    #[error("{0}")]
    Forbidden(String),
    /// It answered with an error.
    #[error("the server answered {code}{reason}{message}")]
    Refused {
        /// The code.
        code: u16,
        /// The reason, after a space, if it is one that we know.
        reason: String,
        /// What it said, after a colon; empty if it is a tenant's server.
        message: String,
    },
    /// What it answered is no such object.
    #[error("the server's answer is not what was asked for")]
    Nonsense,
}

// === impl CallError ===

impl CallError {
    /// The code of an answer.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the server gave no answer, or says that it can't at present.
    pub(crate) fn is_unreachable(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused { code, .. } => matches!(code, 429 | 500..),
            Self::Forbidden(_) | Self::Nonsense => false,
        }
    }

    fn of(error: &kube::Error, trusted: bool) -> Self {
        match client::Error::of(error) {
            Some(refused @ client::Error::Refused(_)) => Self::Forbidden(refused.to_string()),
            Some(broken) => Self::Unreachable(broken.to_string()),
            None => match error {
                kube::Error::Api(status) => Self::Refused {
                    code: status.code,
                    reason: known(&status.reason),
                    message: match trusted {
                        true => format!(": {}", status.message),
                        false => String::new(),
                    },
                },
                _ => Self::Nonsense,
            },
        }
    }
}

/// A reason as Kubernetes has them: one word.
fn known(reason: &str) -> String {
    let word = !reason.is_empty()
        && reason.len() <= 40
        && reason.bytes().all(|byte| byte.is_ascii_alphabetic());
    if word { format!(" {reason}") } else { String::new() }
}

// === impl Api ===

impl Api {
    /// The hub.
    pub(crate) fn of_hub(client: kube::Client) -> Self {
        Self { client, prefix: "".into(), trusted: true }
    }

    /// A server that a tenant named.
    pub(crate) fn of_tenant(client: kube::Client) -> Self {
        Self { client, prefix: "".into(), trusted: false }
    }

    /// One logical cluster of the hub, or `*` for all.
    pub(crate) fn cluster(&self, cluster: &str) -> Self {
        Self { prefix: format!("/clusters/{cluster}").into(), ..self.clone() }
    }

    /// An object, or `None` when it isn't there.
    pub(crate) async fn get(&self, path: &str) -> Result<Option<Value>, CallError> {
        self.found(self.request(Method::GET, path, "application/json", None, Vec::new())).await
    }

    /// An object's metadata, or `None` when it isn't there.
    pub(crate) async fn metadata(&self, path: &str) -> Result<Option<Value>, CallError> {
        self.found(self.request(Method::GET, path, METADATA, None, Vec::new())).await
    }

    /// The metadata of all objects under a path that have the labels; an empty selector is all.
    pub(crate) async fn list(&self, path: &str, selector: &str) -> Result<Vec<Value>, CallError> {
        self.list_those(path, selector, |_| true).await
    }

    /// As [`Self::list`], of those that pass a test; the others are not kept for a moment.
    pub(crate) async fn list_those(
        &self,
        path: &str,
        selector: &str,
        passes: impl Fn(&Value) -> bool + Send,
    ) -> Result<Vec<Value>, CallError> {
        let mut found = Vec::new();
        let mut resume = String::new();
        for _ in 0..MOST_PAGES {
            let mut query = vec![format!("limit={PAGE}")];
            if !selector.is_empty() {
                query.push(format!("labelSelector={}", escape(selector)));
            }
            if !resume.is_empty() {
                query.push(format!("continue={}", escape(&resume)));
            }
            let path = format!("{path}?{}", query.join("&"));
            let asked = self.request(Method::GET, &path, METADATA_LIST, None, Vec::new());
            let mut page = self.ask(asked).await?;
            let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) else {
                // A list of none may be null.
                return Ok(found);
            };
            found.extend(items.into_iter().filter(|item| passes(item)));
            let next = page["metadata"]["continue"].as_str().unwrap_or_default();
            if next.is_empty() || found.len() >= MOST_LISTED {
                return Ok(found);
            }
            next.clone_into(&mut resume);
        }
        Err(CallError::Nonsense)
    }

    /// Makes an object.
    pub(crate) async fn create(&self, path: &str, object: &Value) -> Result<Value, CallError> {
        let kind = "application/json";
        self.ask(self.request(Method::POST, path, kind, Some(kind), object.to_string().into()))
            .await
    }

    /// Applies what an object says under our field manager: what others own and it says otherwise
    /// becomes ours.
    pub(crate) async fn apply(&self, path: &str, object: &Value) -> Result<Value, CallError> {
        let manager = contract::OPERATOR_MANAGER;
        let path = format!("{path}?fieldManager={manager}&force=true");
        let (kind, body) = ("application/apply-patch+yaml", object.to_string().into());
        self.ask(self.request(Method::PATCH, &path, "application/json", Some(kind), body)).await
    }

    /// Merges a patch into an object. It names the UID and the resourceVersion that it was made for,
    /// so that it changes nothing else.
    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> Result<Value, CallError> {
        let manager = contract::OPERATOR_MANAGER;
        let path = format!("{path}?fieldManager={manager}");
        let (kind, body) = ("application/merge-patch+json", patch.to_string().into());
        self.ask(self.request(Method::PATCH, &path, METADATA, Some(kind), body)).await
    }

    /// Deletes the object of that UID, and no other of the name. One that is gone is as good.
    pub(crate) async fn delete(&self, path: &str, uid: &str) -> Result<(), CallError> {
        let options = serde_json::json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        });
        let kind = "application/json";
        let asked =
            self.request(Method::DELETE, path, kind, Some(kind), options.to_string().into());
        match self.ask(asked).await {
            Ok(_) => Ok(()),
            // 409 says that another object has the name by now.
            Err(CallError::Refused { code: 404 | 409, .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn found(&self, request: Request<Vec<u8>>) -> Result<Option<Value>, CallError> {
        match self.ask(request).await {
            Ok(value) => Ok(Some(value)),
            Err(CallError::Refused { code: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        accept: &'static str,
        content: Option<&'static str>,
        body: Vec<u8>,
    ) -> Request<Vec<u8>> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        let whole = format!("{}{path}", self.prefix);
        // A path that is none leads nowhere, which the server says better than we.
        *request.uri_mut() = whole.parse().unwrap_or_else(|_| http::Uri::from_static("/invalid"));
        let headers = request.headers_mut();
        headers.insert(http::header::ACCEPT, http::HeaderValue::from_static(accept));
        if let Some(content) = content {
            headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(content));
        }
        request
    }

    async fn ask(&self, request: Request<Vec<u8>>) -> Result<Value, CallError> {
        match tokio::time::timeout(PATIENCE, self.client.request(request)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(CallError::of(&error, self.trusted)),
            Err(_) => Err(CallError::Unreachable("the server took too long to answer".into())),
        }
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

/// A text as a part of a query.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_escaped() {
        assert_eq!(escape("a/b=c,d e"), "a%2Fb%3Dc%2Cd%20e");
        assert_eq!(escape("A-z_0.~"), "A-z_0.~");
    }

    #[test]
    fn words_of_tenants_servers_are_not_repeated() {
        let check = |reason: &str, trusted: bool, expect: &str| {
            let status = kube::core::Status {
                code: 403,
                reason: reason.into(),
                message: "inner secret".into(),
                ..Default::default()
            };
            let error = CallError::of(&kube::Error::Api(Box::new(status)), trusted);
            assert_eq!(error.to_string(), expect);
        };
        check("Forbidden", false, "the server answered 403 Forbidden");
        check("Forbidden", true, "the server answered 403 Forbidden: inner secret");
        check("<b>any words</b>", false, "the server answered 403");
    }

    #[test]
    fn what_may_pass_by_itself() {
        let refused =
            |code| CallError::Refused { code, reason: String::new(), message: String::new() };
        for (code, expect) in [(400, false), (403, false), (409, false), (429, true), (503, true)] {
            assert_eq!(refused(code).is_unreachable(), expect, "{code}");
        }
    }
}
