//! Webhooks: what is sent to them, and what of their answers is believed.
//!
//! Pure but for the one call, which goes through the [dialer](crate::dialer). Texts of failures are
//! upstream's, but never repeat what came back unless it is a message that the protocol carries
//! for people.

pub(crate) mod admission;
pub(crate) mod conversion;

use std::time::Duration;

use bytes::Bytes;
use machinery::ClusterName;
use serde_json::Value;

use crate::dialer::{Call, CallError, Dialer};

/// The most bytes of an answer beyond four times what was sent: as much as a request to the server
/// itself may have.
const MAX_ANSWER: usize = 3 * 1024 * 1024;

/// Where a webhook is (`WebhookClientConfig`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Client {
    /// Its URL; of a service, the one that upstream shows.
    pub(crate) url: String,
    /// Whether it is a service, which a logical cluster can't have.
    pub(crate) is_service: bool,
    /// Certificate authorities as PEM in base64; empty for the system's.
    pub(crate) ca_bundle: String,
}

// === impl Client ===

impl Client {
    /// Reads a client configuration. Of a service it makes the URL that upstream shows.
    pub(crate) fn of(config: &Value) -> Self {
        let text = |value: &Value, field: &str| {
            value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let service = config.get("service").filter(|service| service.is_object());
        let url = match service {
            None => text(config, "url"),
            Some(service) => {
                let port = service.get("port").and_then(Value::as_u64).unwrap_or(443);
                let (name, namespace) = (text(service, "name"), text(service, "namespace"));
                service_url(&name, &namespace, port, &text(service, "path"))
            }
        };
        Self { url, is_service: service.is_some(), ca_bundle: text(config, "caBundle") }
    }

    /// Sends a review and returns the answer's JSON.
    ///
    /// # Errors
    /// Why there is none, in words for the caller.
    pub(crate) async fn post(
        &self,
        dialer: &Dialer,
        cluster: &ClusterName,
        timeout: Duration,
        review: &Value,
    ) -> Result<Value, String> {
        let url = called(&self.url, timeout);
        if self.is_service {
            return Err(format!(
                "Post {}: services can't be reached from a logical cluster, which has no network: \
                 give the webhook a url",
                machinery::field::go_quote(&url)
            ));
        }
        let body = Bytes::from(serde_json::to_vec(review).map_err(|_| "can't be encoded")?);
        let max_answer = MAX_ANSWER.saturating_add(body.len().saturating_mul(4));
        let ca_bundle = &self.ca_bundle;
        let call = Call { cluster, url: &url, ca_bundle, timeout, body, max_answer };
        let answer = dialer.post(call).await.map_err(|error| told(&url, &error))?;
        let parsed = serde_json::from_slice::<Value>(&answer);
        let object = parsed.ok().filter(Value::is_object);
        object.ok_or_else(|| "the answer is not a JSON object".to_owned())
    }
}

/// The URL under which a service is shown.
pub(crate) fn service_url(name: &str, namespace: &str, port: u64, path: &str) -> String {
    let slash = if path.is_empty() || path.starts_with('/') { "" } else { "/" };
    format!("https://{name}.{namespace}.svc:{port}{slash}{path}")
}

/// The URL that is called for one: its path as Go's client makes it, which joins the parts of a path
/// (so none is empty, `.` or `..`), and how long the answer may take.
fn called(url: &str, timeout: Duration) -> String {
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let (scheme, rest) = place.split_once("://").unwrap_or(("", place));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mark = if scheme.is_empty() { "" } else { "://" };
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let and = if query.is_empty() { "" } else { "&" };
    format!("{scheme}{mark}{host}/{}?{query}{and}timeout={}s", parts.join("/"), timeout.as_secs())
}

fn told(url: &str, error: &CallError) -> String {
    if error.is_transport() {
        format!("Post {}: {error}", machinery::field::go_quote(url))
    } else {
        error.to_string()
    }
}

/// The text of a field; empty if there is none.
fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// `example.com/v1, Kind=Widget`, as Go prints what a value says it is.
fn printed_kind(value: &Value) -> String {
    let version = text(value, "/apiVersion");
    // A core kind is printed with an empty group.
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={}", text(value, "/kind"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_as_go_joins_them() {
        for (url, expect) in [
            ("https://h", "https://h/?timeout=3s"),
            ("https://h:1/", "https://h:1/?timeout=3s"),
            ("https://h/a", "https://h/a?timeout=3s"),
            ("https://h//a//b/", "https://h/a/b?timeout=3s"),
            ("https://h/./a/../b/..", "https://h/?timeout=3s"),
            ("https://h/../../a%2Fb", "https://h/a%2Fb?timeout=3s"),
            ("https://h//a?b=c//d", "https://h/a?b=c//d&timeout=3s"),
            ("https://[::1]:1//a", "https://[::1]:1/a?timeout=3s"),
            ("nonsense", "nonsense/?timeout=3s"),
            ("", "/?timeout=3s"),
        ] {
            assert_eq!(called(url, Duration::from_secs(3)), expect, "{url}");
        }
    }
}
