//! Calls of one logical cluster of a hub, or of a physical cluster: JSON there and back.

use std::sync::Arc;

use client::{Ask, Link};
use http::Method;
use serde_json::Value;

/// One API server, below one path.
#[derive(Clone, Debug)]
pub struct Hub {
    link: Link,
    base: Arc<str>,
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// There was no answer.
    #[error("no answer: {0}")]
    Unanswered(String),
    /// It answered with an error.
    #[error("{status}: {message}")]
    Refused {
        /// The code.
        status: u16,
        /// What it said, shortened.
        message: String,
    },
    /// The answer is none that was asked for.
    #[error("the answer can't be read")]
    Unreadable,
}

// === impl HubError ===

impl HubError {
    /// The code of an answer.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}

// === impl Hub ===

impl Hub {
    /// A logical cluster, as `infra`; `*` for all.
    pub fn cluster(link: Link, cluster: &str) -> Self {
        Self { link, base: format!("/clusters/{cluster}").into() }
    }

    /// Whatever the link leads to.
    pub fn root(link: Link) -> Self {
        Self { link, base: "".into() }
    }

    /// Another logical cluster of the same hub.
    pub fn of(&self, cluster: &str) -> Self {
        Self::cluster(self.link.clone(), cluster)
    }

    /// An object or document; `None` if it isn't there.
    ///
    /// # Errors
    /// When the server doesn't give it.
    pub async fn get(&self, path: &str) -> Result<Option<Value>, HubError> {
        self.get_as(path, client::JSON).await
    }

    /// As [`Self::get`], in a form.
    ///
    /// # Errors
    /// When the server doesn't give it.
    pub async fn get_as(&self, path: &str, accept: &str) -> Result<Option<Value>, HubError> {
        let path = format!("{}{path}", self.base);
        match self.ask(Ask { accept, ..Ask::get(&path) }).await {
            Ok(value) => Ok(Some(value)),
            Err(HubError::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects of a collection, page by page.
    ///
    /// # Errors
    /// When the server doesn't give them all.
    pub async fn list(
        &self,
        path: &str,
        query: &str,
        each: impl FnMut(Value) + Send,
    ) -> Result<(), HubError> {
        self.list_as(path, query, client::JSON, each).await
    }

    /// The metadata of all objects of a collection, page by page.
    ///
    /// # Errors
    /// When the server doesn't give them all.
    pub async fn list_metadata(
        &self,
        path: &str,
        each: impl FnMut(Value) + Send,
    ) -> Result<(), HubError> {
        const METADATA: &str =
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
        self.list_as(path, "", METADATA, each).await
    }

    async fn list_as(
        &self,
        path: &str,
        query: &str,
        accept: &str,
        mut each: impl FnMut(Value) + Send,
    ) -> Result<(), HubError> {
        let mut next = String::new();
        loop {
            let mut page = format!("{path}?limit=250");
            for (name, value) in [("&labelSelector=", query), ("&continue=", next.as_str())] {
                if !value.is_empty() {
                    page.push_str(name);
                    page.push_str(&escape(value));
                }
            }
            let mut list = self.get_as(&page, accept).await?.ok_or(HubError::Unreadable)?;
            if let Some(Value::Array(items)) = list.get_mut("items").map(Value::take) {
                items.into_iter().for_each(&mut each);
            }
            match list.pointer("/metadata/continue").and_then(Value::as_str) {
                Some(token) if !token.is_empty() => token.clone_into(&mut next),
                _ => return Ok(()),
            }
        }
    }

    /// Creates an object.
    ///
    /// # Errors
    /// When it isn't created.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value, HubError> {
        self.send(Method::POST, path, client::JSON, object).await
    }

    /// Replaces an object.
    ///
    /// # Errors
    /// When it isn't replaced.
    pub async fn replace(&self, path: &str, object: &Value) -> Result<Value, HubError> {
        self.send(Method::PUT, path, client::JSON, object).await
    }

    /// Applies an object as a field manager; what others own and it says otherwise becomes ours.
    ///
    /// # Errors
    /// When it isn't applied.
    pub async fn apply(
        &self,
        path: &str,
        manager: &str,
        object: &Value,
    ) -> Result<Value, HubError> {
        let path = format!("{path}?fieldManager={manager}&force=true");
        self.send(Method::PATCH, &path, "application/apply-patch+yaml", object).await
    }

    /// Deletes the object of that UID, and no other of the name. One that is gone is as good.
    ///
    /// # Errors
    /// When it isn't deleted.
    pub async fn delete(&self, path: &str, uid: &str) -> Result<(), HubError> {
        let options = serde_json::json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid},
        });
        match self.send(Method::DELETE, path, client::JSON, &options).await {
            Ok(_) | Err(HubError::Refused { status: 404 | 409, .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        object: &Value,
    ) -> Result<Value, HubError> {
        let path = format!("{}{path}", self.base);
        self.ask(Ask::with(method, &path, content_type, object.to_string().into_bytes())).await
    }

    async fn ask(&self, ask: Ask<'_>) -> Result<Value, HubError> {
        const LONGEST: usize = 300;
        let told = self.link.ask(ask).await;
        let told = told.map_err(|error| HubError::Unanswered(error.to_string()))?;
        let body: Value = serde_json::from_slice(&told.body).unwrap_or_default();
        if told.status.is_success() {
            return if body.is_null() { Err(HubError::Unreadable) } else { Ok(body) };
        }
        // What is no API server's answer is repeated to nobody: in mode Push a tenant names the server.
        let message = body.get("message").filter(|_| body["kind"] == "Status");
        let message = message.and_then(Value::as_str).unwrap_or("no reason given");
        let message = message.chars().take(LONGEST).collect();
        Err(HubError::Refused { status: told.status.as_u16(), message })
    }
}

/// A text as a value of a query.
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
