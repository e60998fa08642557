//! A physical cluster, as far as a tenant's kubeconfig leads to it.
//!
//! Invariants: a kubeconfig is data, and nothing that it names is followed but an address; addresses
//! are checked when they are connected to; nothing of a kubeconfig's secrets is in any message.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::{Link, Settings};
use crds::ConditionStatus::False;
use jiff::Timestamp;
use machinery::kubeconfig::{Access, Identity};
use machinery::network::Reachable;
use serde_json::Value;
use x509_parser::pem::Pem;

use super::conditions::Verdict;
use super::index::Target;
use crate::api::{Api, CallError};

/// What the operator calls itself.
const USER_AGENT: &str = concat!("kcp-operator/", env!("CARGO_PKG_VERSION"));

/// The largest kubeconfig in a Secret, as inline.
const LARGEST: usize = 64 << 10;

/// A physical cluster that answers.
pub(crate) struct Physical {
    /// Its API.
    pub(crate) api: Api,
    /// Which cluster it is: the UID of its namespace `kube-system`.
    pub(crate) uid: String,
    /// The connections to it.
    pub(crate) link: Link,
    /// What it was reached with.
    pub(crate) kubeconfig: Vec<u8>,
}

/// The kubeconfig of a target, read live.
pub(crate) async fn kubeconfig(hub: &Api, target: &Target) -> Result<Vec<u8>, Verdict> {
    if let Some(inline) = &target.spec.kubeconfig {
        return Ok(inline.clone().into_bytes());
    }
    let Some(reference) = &target.spec.kubeconfig_secret_ref else {
        let message = "it has no kubeconfig: print a manifest with `kcp-agent join` and apply it in \
                       the physical cluster, or run an agent by hand";
        return Err(Verdict::new(False, "NoKubeconfig", message));
    };
    let (namespace, name, key) = (&reference.namespace, &reference.name, &reference.key);
    let missing = |what: String| Verdict::new(False, "SecretNotFound", what);
    // Names that would lead elsewhere.
    if [namespace, name].iter().any(|part| !is_name(part)) {
        return Err(missing("kubeconfigSecretRef names no Secret".to_owned()));
    }
    let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
    let secret = hub.get(&path).await.map_err(|error| {
        missing(format!("the Secret {namespace}/{name} cannot be read: {error}"))
    })?;
    let Some(secret) = secret else {
        return Err(missing(format!("there is no Secret {namespace}/{name}")));
    };
    let entry = secret["data"].get(key).and_then(Value::as_str);
    let Some(entry) = entry else {
        return Err(missing(format!("the Secret {namespace}/{name} has no entry {key:?}")));
    };
    let content = STANDARD.decode(entry).ok().filter(|content| content.len() <= LARGEST);
    content.ok_or_else(|| {
        let message = format!("the entry {key:?} of the Secret {namespace}/{name} is too large");
        Verdict::new(False, "InvalidKubeconfig", message)
    })
}

fn is_name(text: &str) -> bool {
    let usual =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    text.bytes().all(usual) && !text.is_empty() && !text.starts_with('.')
}

/// How the cluster of a kubeconfig is reached.
///
/// # Errors
/// Everything that is wrong with it.
pub(crate) fn read(kubeconfig: &[u8], now: Timestamp) -> Result<Access, Verdict> {
    let access = Access::judge(kubeconfig, None).map_err(|problems| {
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let message = format!("the kubeconfig cannot be used: {}", told.join("; "));
        Verdict::new(False, "InvalidKubeconfig", message)
    })?;
    if let Identity::Certificate { chain, .. } = &access.identity
        && let Some(end) = end_of(chain)
        && end <= now
    {
        let message = format!("the client certificate in the kubeconfig has expired at {end}");
        return Err(Verdict::new(False, "CredentialsExpired", message));
    }
    Ok(access)
}

/// Until when a certificate is valid, if it can be told.
fn end_of(chain: &[u8]) -> Option<Timestamp> {
    let pem = Pem::iter_from_buffer(chain).next()?.ok()?;
    let certificate = pem.parse_x509().ok()?;
    Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}

/// Goes to a physical cluster.
///
/// # Errors
/// Why it can't be used: an address that is refused, no answer, or an answer that it can't be.
pub(crate) async fn reach(access: Access, rule: Reachable) -> Result<Physical, Verdict> {
    let server = access.server.clone();
    let invalid = |what: String| {
        let message = format!("the kubeconfig cannot be used: {what}");
        Verdict::new(False, "InvalidKubeconfig", message)
    };
    let settings = Settings::of_access(access, Path::new("/"), USER_AGENT)
        .map_err(|error| invalid(error.to_string()))?;
    let settings = Settings { reachable: Some(rule), ..settings };
    let link = Link::new(settings).map_err(|error| invalid(error.to_string()))?;
    let api = Api::of_tenant(link.client());
    let found = api.get("/api/v1/namespaces/kube-system").await;
    let found = found.map_err(|error| unreached(&server, &error))?;
    let uid = found.as_ref().and_then(|found| found["metadata"]["uid"].as_str());
    let Some(uid) = uid.filter(|uid| !uid.is_empty() && uid.len() <= 64) else {
        let message = format!("{server} has no namespace kube-system: it is no Kubernetes cluster");
        return Err(Verdict::new(False, "Unreachable", message));
    };
    Ok(Physical { api, uid: uid.to_owned(), link, kubeconfig: Vec::new() })
}

/// What a call that had no success says of the cluster.
pub(crate) fn unreached(server: &str, error: &CallError) -> Verdict {
    match error {
        CallError::Forbidden(_) => {
            let message = format!(
                "{server}: {error}: name an address under which the operator and agents reach the \
                 cluster, not one of a single machine"
            );
            Verdict::new(False, "AddressNotAllowed", message)
        }
        _ => match error.code() {
            Some(401) => {
                let message = format!("{server} does not know the credentials in the kubeconfig");
                Verdict::new(False, "Unauthorized", message)
            }
            Some(403) => {
                let message = format!(
                    "the kubeconfig of {server} lacks rights: it may not read the namespace \
                     kube-system"
                );
                Verdict::new(False, "MissingRights", message)
            }
            _ => Verdict::new(False, "Unreachable", format!("{server}: {error}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kubeconfig that holds placeholders, as in an example that was not filled in.
    #[test]
    fn placeholders_are_named() {
        let text = r#"
apiVersion: v1
kind: Config
clusters:
- name: c
  cluster: {server: "...", certificate-authority-data: "..."}
users:
- name: u
  user: {token: "..."}
"#;
        let verdict = read(text.as_bytes(), Timestamp::UNIX_EPOCH).unwrap_err();
        assert_eq!((verdict.status, verdict.reason), (False, "InvalidKubeconfig"));
        for field in ["server", "certificate-authority-data", "token"] {
            assert!(
                verdict.message.contains(&format!("its {field} is a placeholder")),
                "{verdict:?}"
            );
        }
    }

    #[test]
    fn certificates_expire() {
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        let text = serde_json::json!({
            "clusters": [{"name": "c", "cluster": {"server": "https://a"}}],
            "users": [{"name": "u", "user": {
                "client-certificate-data": STANDARD.encode(certificate),
                "client-key-data": STANDARD.encode(key.serialize_pem()),
            }}],
        });
        let read = |now: &str| read(text.to_string().as_bytes(), now.parse().unwrap());
        assert!(read("2020-06-01T00:00:00Z").is_ok());
        assert_eq!(read("2021-06-01T00:00:00Z").unwrap_err().reason, "CredentialsExpired");
    }

    #[test]
    fn what_calls_say_of_a_cluster() {
        let refused =
            |code| CallError::Refused { code, reason: String::new(), message: String::new() };
        for (error, reason) in [
            (CallError::Unreachable("connection refused".into()), "Unreachable"),
            (CallError::Forbidden("no".into()), "AddressNotAllowed"),
            (refused(401), "Unauthorized"),
            (refused(403), "MissingRights"),
            (refused(503), "Unreachable"),
        ] {
            assert_eq!(unreached("https://a", &error).reason, reason, "{error}");
        }
    }

    #[test]
    fn names_lead_nowhere_else() {
        for good in ["a", "east-1", "a.b"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "..", "a/b", "a?b", "A", "a b", "a%2f"] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
