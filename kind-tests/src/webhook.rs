//! A mutating webhook of a cluster: an HTTPS server that answers reviews with JSON patches.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::PrivateKeyDer;
use serde_json::{Value, json};

use crate::listener::Listener;

/// The largest review that is read.
const LARGEST: u64 = 4 << 20;

/// What a webhook makes of an object: operations of a JSON patch.
pub type Answer = dyn Fn(&Value) -> Vec<Value> + Send + Sync;

/// A running webhook on loopback. Ends when it is dropped.
#[derive(Debug)]
pub struct Webhook {
    listener: Listener,
    authority: String,
    asked: Arc<AtomicUsize>,
}

// === impl Webhook ===

impl Webhook {
    /// A webhook that changes each object as `answer` says.
    ///
    /// # Errors
    /// When there is no free port, or no certificate can be made.
    pub fn start(answer: impl Fn(&Value) -> Vec<Value> + Send + Sync + 'static) -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
        let authority = STANDARD.encode(made.cert.pem());
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der());
        let key = key.map_err(anyhow::Error::msg)?;
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let config = ServerConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)?;
        let (config, answer) = (Arc::new(config), Arc::new(answer));
        let asked = Arc::<AtomicUsize>::default();
        let counter = asked.clone();
        let listener = Listener::start(move |client| {
            let (config, answer, counter) = (config.clone(), answer.clone(), counter.clone());
            // A connection that breaks is the caller's to notice.
            thread::spawn(move || serve(client, config, &*answer, &counter).ok());
        })?;
        Ok(Self { listener, authority, asked })
    }

    /// Its configuration, for objects of these rules (as in `webhooks[].rules`).
    pub fn configuration(&self, name: &str, rules: &Value) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{
                "name": format!("{name}.example.com"),
                "clientConfig": {
                    "url": format!("{}/", self.listener.url()), "caBundle": self.authority,
                },
                "rules": rules,
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }],
        })
    }

    /// How many reviews it has answered.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Acquire)
    }
}

/// Answers the reviews of one connection.
fn serve(
    client: TcpStream,
    config: Arc<ServerConfig>,
    answer: &Answer,
    asked: &AtomicUsize,
) -> Result<()> {
    let mut stream = BufReader::new(StreamOwned::new(ServerConnection::new(config)?, client));
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse::<u64>()?;
            }
        }
        let mut body = Vec::new();
        (&mut stream).take(length.min(LARGEST)).read_to_end(&mut body)?;
        let review: Value = serde_json::from_slice(&body)?;
        let patch = answer(&review["request"]["object"]);
        let mut response = json!({"uid": review["request"]["uid"], "allowed": true});
        if !patch.is_empty() {
            response["patchType"] = "JSONPatch".into();
            response["patch"] = STANDARD.encode(serde_json::to_vec(&patch)?).into();
        }
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
        });
        let review = review.to_string();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length:";
        asked.fetch_add(1, Ordering::AcqRel);
        let out = stream.get_mut();
        write!(out, "{head} {}\r\n\r\n{review}", review.len())?;
        out.flush()?;
    }
}
