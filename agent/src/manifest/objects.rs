//! The objects themselves, one function for each.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::Settings;
use super::names::{AGENT_NAME, HUB_SECRET, IDENTITY_SECRET, Kind, PULL_SECRET, hex, labels};
use super::rights::{cluster_rules, own_rules};

/// A user that no image gives a meaning to.
const USER: i64 = 65532;

/// Where the agent's probes and metrics are.
const PORT: u16 = 8080;

/// Where [`HUB_SECRET`] is in the agent's container.
const HUB_DIRECTORY: &str = "/etc/kcp/hub";

pub(super) fn render(settings: &Settings) -> Vec<Value> {
    let mut objects = around(settings);
    objects.push(deployment(settings, &digest(settings)));
    objects
}

/// A digest of everything that is installed but the token, which comes and goes.
pub(super) fn digest(settings: &Settings) -> String {
    let settings = Settings { token: None, ..settings.clone() };
    let mut digest = Sha256::new();
    for object in around(&settings).iter().chain([&deployment(&settings, "")]) {
        digest.update(object.to_string());
    }
    hex(&digest.finalize(), 16)
}

/// Everything but the Deployment, which comes last: it needs the others.
fn around(settings: &Settings) -> Vec<Value> {
    let mut objects = vec![
        namespace(settings),
        object(settings, "ServiceAccount", AGENT_NAME, json!({})),
        hub_secret(settings),
        // Without data: what the agent keeps there is its own.
        object(settings, "Secret", IDENTITY_SECRET, json!({"type": "Opaque"})),
    ];
    objects.extend(settings.pull_secret.as_ref().map(|content| {
        let kind = "kubernetes.io/dockerconfigjson";
        let body = json!({"type": kind, "data": {".dockerconfigjson": STANDARD.encode(content)}});
        object(settings, "Secret", PULL_SECRET, body)
    }));
    let named = settings.namespace();
    let rules = cluster_rules(&settings.types, &settings.statuses);
    objects.push(object(settings, "ClusterRole", &named, json!({"rules": rules})));
    objects.push(binding(settings, "ClusterRoleBinding", "ClusterRole", &named));
    objects.push(object(settings, "Role", AGENT_NAME, json!({"rules": own_rules()})));
    objects.push(binding(settings, "RoleBinding", "Role", AGENT_NAME));
    objects
}

/// An object of ours: `body` with its head.
fn object(settings: &Settings, kind: &'static str, name: &str, mut body: Value) -> Value {
    let Some(kind) = Kind::named(kind) else { return Value::Null };
    let mut metadata = json!({"name": name, "labels": labels(&settings.uid)});
    if kind.namespaced {
        metadata["namespace"] = settings.namespace().into();
    }
    body["apiVersion"] = kind.api_version.into();
    body["kind"] = kind.kind.into();
    body["metadata"] = metadata;
    body
}

fn namespace(settings: &Settings) -> Value {
    let mut namespace = object(settings, "Namespace", &settings.namespace(), json!({}));
    // Nothing that runs there needs more.
    namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted".into();
    namespace["metadata"]["annotations"] = json!({
        "kubernetes.io/description": format!(
            "The kcp agent of SyncTarget {:?} in logical cluster {:?} of {}.",
            settings.target, settings.cluster, settings.hub
        ),
    });
    namespace
}

fn hub_secret(settings: &Settings) -> Value {
    // Not `stringData`: an entry that is no longer applied would stay in `data`, where it was put.
    let mut data = Map::new();
    if let Some(authority) = &settings.authority {
        data.insert("ca.crt".into(), STANDARD.encode(authority).into());
    }
    if let Some(token) = &settings.token {
        data.insert("token".into(), STANDARD.encode(token).into());
    }
    object(settings, "Secret", HUB_SECRET, json!({"type": "Opaque", "data": data}))
}

fn binding(settings: &Settings, kind: &'static str, role: &str, name: &str) -> Value {
    let body = json!({
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name},
        "subjects": [{
            "kind": "ServiceAccount", "name": AGENT_NAME, "namespace": settings.namespace(),
        }],
    });
    object(settings, kind, name, body)
}

fn deployment(settings: &Settings, digest: &str) -> Value {
    let selector = json!({
        "app.kubernetes.io/name": AGENT_NAME,
        contract::SYNC_TARGET_LABEL: settings.uid,
    });
    let mut pod = json!({
        "serviceAccountName": AGENT_NAME,
        "enableServiceLinks": false,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container(settings)],
        "volumes": [{
            "name": "hub",
            // 0440: for the group of the pod's user.
            "secret": {"secretName": HUB_SECRET, "defaultMode": 288},
        }],
    });
    if settings.pull_secret.is_some() {
        pod["imagePullSecrets"] = json!([{"name": PULL_SECRET}]);
    }
    let mut labels = json!(labels(&settings.uid));
    labels["app.kubernetes.io/version"] = label(&settings.version).into();
    let body = json!({"spec": {
        // The next one takes over as soon as the one before has let go of its Lease.
        "replicas": 1,
        "revisionHistoryLimit": 2,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "selector": {"matchLabels": selector},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }});
    let mut deployment = object(settings, "Deployment", AGENT_NAME, body);
    deployment["metadata"]["annotations"] = json!({contract::MANIFEST_DIGEST: digest});
    deployment
}

fn container(settings: &Settings) -> Value {
    let mut args = vec![
        format!("--hub={}", settings.hub.trim_end_matches('/')),
        format!("--cluster={}", settings.cluster),
        format!("--sync-target={}", settings.target),
        format!("--sync-target-uid={}", settings.uid),
        format!("--bootstrap-token-file={HUB_DIRECTORY}/token"),
        format!("--identity-secret={IDENTITY_SECRET}"),
        "--namespace=$(POD_NAMESPACE)".to_owned(),
        format!("--listen=0.0.0.0:{PORT}"),
    ];
    if settings.authority.is_some() {
        args.insert(1, format!("--hub-ca-file={HUB_DIRECTORY}/ca.crt"));
    }
    let probe = |path: &str, period: u8| {
        json!({
            "httpGet": {"path": path, "port": "http"},
            "periodSeconds": period,
            "timeoutSeconds": 5,
        })
    };
    let field = |name: &str, path: &str| {
        json!({
            "name": name,
            "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}},
        })
    };
    json!({
        "name": "agent",
        "image": settings.image,
        "args": args,
        "env": [
            field("POD_NAME", "metadata.name"),
            field("POD_NAMESPACE", "metadata.namespace"),
        ],
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "livenessProbe": probe("/healthz", 10),
        "readinessProbe": probe("/readyz", 5),
        // Some 30 MiB with two thousand objects; the limit leaves room for fifty thousand.
        "resources": {
            "requests": {"cpu": "10m", "memory": "32Mi"},
            "limits": {"memory": "512Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "hub", "mountPath": HUB_DIRECTORY, "readOnly": true}],
    })
}

/// What of a text a label's value can hold.
fn label(text: &str) -> String {
    let usual = |byte: char| byte.is_ascii_alphanumeric() || matches!(byte, '-' | '_' | '.');
    let kept: String = text.chars().map(|c| if usual(c) { c } else { '_' }).take(63).collect();
    kept.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}
