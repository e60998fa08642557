//! `kcp-agent join`: the manifest that installs an agent, for clusters that nobody reaches from
//! outside.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::{Ask, Authorities, JSON, Link, Server};
use contract::{BOOTSTRAP_TARGET_NAME, BOOTSTRAP_TARGET_UID};
use engine::StatusDown;
use http::Method;
use jiff::{Timestamp, ToSpan};
use rustls::crypto::aws_lc_rs;
use serde_json::{Value, json};

use super::setup::{Led, read};
use super::{USER_AGENT, VERSION};
use crate::args::JoinArgs;
use crate::manifest::{self, Settings, SyncedType};
use crate::target::{Read, TargetRef};
use crate::types::{Asked, Selection, USUAL};

/// How long the token is good for: as long as it may take until somebody applies the manifest.
const LIFE_HOURS: i64 = 24;

/// Prints the manifest.
pub(super) async fn run(args: &JoinArgs) -> anyhow::Result<()> {
    let manifest = manifest(args).await?;
    #[expect(clippy::print_stdout, reason = "the manifest is what is asked for")]
    {
        print!("{manifest}");
    }
    Ok(())
}

/// The manifest that installs an agent, with a fresh token in it: `kcp-agent join` prints it.
///
/// # Errors
/// What is wrong with the flags and the files that they name; when the hub does not answer, or has no
/// such SyncTarget.
pub async fn manifest(args: &JoinArgs) -> anyhow::Result<String> {
    let Led { mut settings, cluster, root } = read(&args.from_kubeconfig)?;
    let cluster = args.cluster.clone().or(cluster);
    let cluster =
        cluster.context("--cluster is needed: the kubeconfig names no logical cluster")?;
    let hub: Server = match &args.hub {
        Some(hub) => hub.parse().context("--hub")?,
        None => root.clone(),
    };
    ensure!(
        !is_loopback(hub.host()),
        "{hub} means another machine in the physical cluster: say by --hub how it reaches the hub"
    );
    let authority = match &settings.authorities {
        Authorities::Pem(pem) => Some(String::from_utf8_lossy(pem).into_owned()),
        Authorities::System | Authorities::File(_) => None,
    };
    // Before anything is made at the hub.
    let pull_secret = args.image_pull_secret.as_deref().map(pull_secret).transpose()?;
    settings.server = root;
    settings.user_agent = USER_AGENT;
    let link = Link::new(settings)?;
    let unknown = TargetRef::new(&cluster, &args.sync_target, "");
    let object = match unknown.read_any(&link).await.context("read the SyncTarget")? {
        Read::Found(object) => object,
        Read::Gone => bail!("there is no SyncTarget {:?} in {cluster}", args.sync_target),
        other => bail!("the SyncTarget can't be read: {other:?}"),
    };
    let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
    let uid = uid.context("the SyncTarget has no UID")?;
    let token = token(&link, &TargetRef::new(&cluster, &args.sync_target, uid)).await?;
    let manifest = Settings {
        hub: hub.to_string(),
        authority,
        token: Some(token),
        cluster,
        target: args.sync_target.clone(),
        uid: uid.to_owned(),
        image: args.image.clone(),
        pull_secret,
        version: VERSION.to_owned(),
        types: types(&object),
        statuses: statuses(&object),
    };
    Ok(manifest.to_yaml()?)
}

/// What is in a file as `docker login` writes it. Nothing of it is ever told, not even by an error.
fn pull_secret(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    ensure!(
        manifest::is_pull_secret(&text),
        "the file of --image-pull-secret is not as docker writes it: it has no auths"
    );
    Ok(text)
}

/// Whether an address means the machine itself, wherever it is read.
fn is_loopback(host: &str) -> bool {
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Makes a bootstrap token for the SyncTarget's agent.
async fn token(hub: &Link, target: &TargetRef) -> anyhow::Result<String> {
    let (id, key) = (letters(6)?, letters(16)?);
    let expires = Timestamp::now() + LIFE_HOURS.hours();
    let text = |text: &str| Value::from(STANDARD.encode(text));
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": format!("bootstrap-token-{id}"), "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "data": {
            "description": text(&format!("The agent of SyncTarget {}, by hand.", target.name)),
            "token-id": text(&id),
            "token-secret": text(&key),
            "expiration": text(&format!("{expires:.0}")),
            "usage-bootstrap-authentication": text("true"),
            BOOTSTRAP_TARGET_NAME: text(&target.name),
            BOOTSTRAP_TARGET_UID: text(&target.uid),
        },
    });
    let path = format!("{}/api/v1/namespaces/kube-system/secrets", target.base());
    let ask = Ask::with(Method::POST, &path, JSON, secret.to_string().into_bytes());
    let told = hub.ask(ask).await.context("make a bootstrap token")?;
    ensure!(
        told.status.is_success(),
        "the hub answers {} to the bootstrap token: Secrets in kube-system must be allowed",
        told.status
    );
    Ok(format!("{id}.{key}"))
}

/// What the agent is to have rights for: what the SyncTarget names, or the usual types. Custom
/// resources are named, as their groups are not known here.
fn types(object: &Value) -> Vec<SyncedType> {
    let named = object.pointer("/spec/resources").and_then(Value::as_array);
    let named = named.into_iter().flatten().filter_map(Value::as_str);

    let synced = |(group, resource): (&str, &str)| SyncedType {
        group: group.to_owned(),
        resource: resource.to_owned(),
    };
    let accepted = object.pointer("/status/syncedResources").and_then(Value::as_array);
    let text = |value: &Value, field: &str| value.get(field)?.as_str().map(str::to_owned);
    let selection = Selection::of(named, false);
    let mut types: Vec<SyncedType> = match selection.asked() {
        Asked::All => vec![synced(("*", "*"))],
        Asked::Usual => USUAL.map(synced).to_vec(),
        Asked::Named(named) => named.iter().map(|(g, r)| synced((g, r))).collect(),
    };
    types.extend(selection.has_definitions().then(|| synced(contract::DEFINITIONS)));
    types.extend(accepted.into_iter().flatten().filter_map(|resource| {
        let group = text(resource, "group").unwrap_or_default();
        Some(SyncedType { group, resource: text(resource, "resource")? })
    }));
    types.sort();
    types.dedup();
    types
}

/// The types to whose copies status goes down.
fn statuses(object: &Value) -> Vec<SyncedType> {
    let all = StatusDown::of(object);
    let mut types: Vec<SyncedType> = { all.iter() }
        .map(|one| SyncedType {
            group: one.resource.group.to_string(),
            resource: one.resource.resource.to_string(),
        })
        .collect();
    types.sort();
    types
}

/// Random letters and digits, as bootstrap tokens are made of.
fn letters(count: usize) -> anyhow::Result<String> {
    const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let provider = aws_lc_rs::default_provider();
    let mut text = String::with_capacity(count);
    let mut bytes = [0; 32];
    while text.len() < count {
        let failed = |_| anyhow::anyhow!("there is no randomness");
        provider.secure_random.fill(&mut bytes).map_err(failed)?;
        // Seven times 36: every letter is as likely as another.
        let fair = bytes.iter().filter(|byte| **byte < 252).map(|byte| usize::from(*byte) % 36);
        let wanted = count - text.len();
        text.extend(fair.take(wanted).filter_map(|at| LETTERS.get(at)).map(|l| char::from(*l)));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_follow_the_target() {
        let check = |object: Value, expect: &[(&str, &str)]| {
            let types = types(&object);
            let found: Vec<_> = types.iter().map(|t| (&*t.group, &*t.resource)).collect();
            assert_eq!(found, expect, "{object}");
        };
        check(json!({"spec": {"resources": ["*"]}}), &[("*", "*")]);
        let named = json!({
            "spec": {"resources": ["deployments.apps", "services"]},
            "status": {"syncedResources": [{"group": "x.io", "resource": "things"}]},
        });
        check(named, &[("", "services"), ("apps", "deployments"), ("x.io", "things")]);
        assert_eq!(types(&json!({})).len(), USUAL.len());
        let (group, resource) = contract::DEFINITIONS;
        let definitions = json!({
            "spec": {"resources": ["things.x.io", format!("{resource}.{group}")]},
            "status": {"syncedResources": [{"group": group, "resource": resource}]},
        });
        check(definitions, &[(group, resource), ("x.io", "things")]);
    }

    #[test]
    fn tokens_have_their_form() {
        for count in [6, 16] {
            let text = letters(count).unwrap();
            assert_eq!(text.len(), count);
            assert!(text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
        }
        assert_ne!(letters(16).unwrap(), letters(16).unwrap());
    }

    #[test]
    fn loopback_means_another_machine_there() {
        for (host, expect) in
            [("localhost", true), ("127.0.0.1", true), ("::1", true), ("a.io", false)]
        {
            assert_eq!(is_loopback(host), expect, "{host}");
        }
    }
}
