//! One event: what is known of a request at one stage of it, as a line of JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use machinery::field::go_json;
use machinery::json::Limits;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::object::CLUSTER_ANNOTATION;

use super::policy::{Level, Told};
use crate::auth::UserInfo;

/// Whether a request was allowed.
const DECISION: &str = "authorization.k8s.io/decision";

/// Why.
const REASON: &str = "authorization.k8s.io/reason";

/// Where a request is.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It came, and the caller is known.
    RequestReceived,
    /// A watch has begun.
    ResponseStarted,
    /// It is answered.
    ResponseComplete,
    /// It ended in a panic.
    Panic,
}

/// What is known of a request from the start.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The audit id.
    pub(crate) id: String,
    /// Path and query, as sent.
    pub(crate) uri: String,
    /// The verb.
    pub(crate) verb: &'static str,
    /// The logical cluster, or `*`.
    pub(crate) cluster: String,
    /// The caller.
    pub(crate) user: Option<Arc<UserInfo>>,
    /// Addresses that the request came over, the client's first.
    pub(crate) source_ips: Vec<String>,
    /// The client's program.
    pub(crate) user_agent: String,
    /// What it is about.
    pub(crate) object: Option<ObjectRef>,
    /// When it came.
    pub(crate) received: Timestamp,
}

/// `audit.k8s.io/v1` ObjectReference.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectRef {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) api_group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) subresource: String,
}

/// A request of which something is told.
#[derive(Debug)]
pub(crate) struct Record {
    told: Told,
    request: Request,
    known: Mutex<Known>,
}

/// What comes to be known on the way.
#[derive(Debug, Default)]
struct Known {
    acts_as: Option<Arc<UserInfo>>,
    request: Option<Box<RawValue>>,
    response: Option<Box<RawValue>>,
    failure: Option<Value>,
    annotations: BTreeMap<String, String>,
}

/// The line, field by field as upstream has them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    kind: &'static str,
    api_version: &'static str,
    level: Level,
    #[serde(rename = "auditID")]
    audit_id: &'a str,
    stage: Stage,
    #[serde(rename = "requestURI")]
    request_uri: &'a str,
    verb: &'a str,
    user: User<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonated_user: Option<User<'a>>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "<[_]>::is_empty")]
    source_ips: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    user_agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ref: Option<&'a ObjectRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_status: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_object: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_object: Option<&'a RawValue>,
    request_received_timestamp: String,
    stage_timestamp: String,
    annotations: &'a BTreeMap<String, String>,
}

#[derive(Default, Serialize)]
struct User<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    username: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<&'a BTreeMap<String, Vec<String>>>,
}

// === impl Record ===

impl Record {
    pub(super) fn new(told: Told, request: Request) -> Self {
        let mut known = Known::default();
        known.annotations.insert(CLUSTER_ANNOTATION.into(), request.cluster.clone());
        Self { told, request, known: Mutex::new(known) }
    }

    /// The caller acts as another.
    pub(crate) fn acts_as(&self, user: &Arc<UserInfo>) {
        self.known.lock().acts_as = Some(user.clone());
    }

    /// The authorizer's decision, and why.
    pub(crate) fn decided(&self, allowed: bool, why: impl Into<String>) {
        let decision = if allowed { "allow" } else { "forbid" };
        let mut known = self.known.lock();
        known.annotations.insert(DECISION.into(), decision.into());
        known.annotations.insert(REASON.into(), why.into());
    }

    /// What admission says beside.
    pub(crate) fn annotate(&self, annotations: impl IntoIterator<Item = (String, String)>) {
        self.known.lock().annotations.extend(annotations);
    }

    /// Whether bodies of requests are told.
    pub(crate) fn wants_request(&self) -> bool {
        self.told.level >= Level::Request
    }

    /// The request's body, as JSON.
    pub(crate) fn request_body(&self, body: &Value) {
        if self.wants_request() {
            self.known.lock().request = self.raw(body);
        }
    }

    /// The object that is answered, as JSON.
    pub(crate) fn response_body(&self, body: &Bytes) {
        if self.told.level < Level::RequestResponse {
            return;
        }
        let parsed = machinery::json::parse(body, &Limits::default());
        let raw = parsed.ok().and_then(|parsed| self.raw(&parsed.value));
        self.known.lock().response = raw;
    }

    /// The `Status` of a failure, as JSON.
    pub(crate) fn failed(&self, status: &[u8]) {
        let Ok(mut status) = serde_json::from_slice::<Value>(status) else { return };
        if self.told.level >= Level::RequestResponse {
            self.known.lock().response = self.raw(&status);
        }
        if let Some(fields) = status.as_object_mut() {
            fields.retain(|name, _| name != "kind" && name != "apiVersion");
        }
        self.known.lock().failure = Some(status);
    }

    /// The event of a stage, with its line feed; `None` where the policy omits it.
    pub(super) fn line(&self, stage: Stage, code: u16, now: Timestamp) -> Option<Bytes> {
        if self.told.omitted.contains(&stage) {
            return None;
        }
        let known = self.known.lock();
        let answered = stage != Stage::RequestReceived;
        let status = answered.then(|| match &known.failure {
            Some(failure) if code >= 400 => failure.clone(),
            _ => json!({"metadata": {}, "code": code}),
        });
        let request = &self.request;
        let line = Line {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level: self.told.level,
            audit_id: &request.id,
            stage,
            request_uri: &request.uri,
            verb: request.verb,
            user: request.user.as_deref().map(User::of).unwrap_or_default(),
            impersonated_user: known.acts_as.as_deref().map(User::of),
            source_ips: &request.source_ips,
            user_agent: &request.user_agent,
            object_ref: request.object.as_ref(),
            response_status: status,
            request_object: known.request.as_deref(),
            response_object: known.response.as_deref().filter(|_| answered),
            request_received_timestamp: micros(request.received),
            stage_timestamp: micros(now),
            annotations: &known.annotations,
        };
        // Maps have texts as keys, and nothing else here can fail.
        let mut line = serde_json::to_vec(&line).ok()?;
        line.push(b'\n');
        Some(line.into())
    }

    /// One line of JSON, without managed fields where they are not wanted.
    fn raw(&self, body: &Value) -> Option<Box<RawValue>> {
        if !self.told.omit_managed_fields {
            return RawValue::from_string(go_json(body)).ok();
        }
        let mut body = body.clone();
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        RawValue::from_string(go_json(&body)).ok()
    }
}

// === impl User ===

impl<'a> User<'a> {
    fn of(user: &'a UserInfo) -> Self {
        Self {
            username: &user.name,
            uid: &user.uid,
            groups: &user.groups,
            extra: Some(&user.extra).filter(|extra| !extra.is_empty()),
        }
    }
}

/// `metav1.MicroTime`.
fn micros(time: Timestamp) -> String {
    format!("{time:.6}")
}

// === impl Level ===

impl Serialize for Level {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::None => "None",
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(level: Level, omit_managed_fields: bool) -> Record {
        let told = Told { level, omitted: vec![Stage::Panic], omit_managed_fields };
        Record::new(
            told,
            Request {
                id: "id-1".into(),
                uri: "/clusters/a/api/v1/namespaces/n/pods?x=1".into(),
                verb: "create",
                cluster: "a".into(),
                user: Some(Arc::new(UserInfo::known("ann", &["g"]))),
                source_ips: vec!["::1".into()],
                user_agent: "kubectl".into(),
                object: Some(ObjectRef {
                    resource: "pods".into(),
                    namespace: "n".into(),
                    api_version: "v1".into(),
                    ..ObjectRef::default()
                }),
                received: "2026-01-02T03:04:05.123456789Z".parse().unwrap(),
            },
        )
    }

    fn told(record: &Record, stage: Stage, code: u16) -> Option<Value> {
        let line = record.line(stage, code, "2026-01-02T03:04:06Z".parse().unwrap())?;
        assert!(line.ends_with(b"\n") && !line[..line.len() - 1].contains(&b'\n'));
        Some(serde_json::from_slice(&line).unwrap())
    }

    #[test]
    fn events_are_as_upstream_writes_them() {
        let object = json!({"a": "x\ny", "metadata": {"name": "p", "managedFields": [1]}});
        let record = record(Level::RequestResponse, true);
        record.request_body(&object);
        record.acts_as(&Arc::new(UserInfo::known("bob", &[])));
        record.decided(true, "RBAC: allowed");
        record.annotate([("hook/a".to_owned(), "b".to_owned())]);
        let expect = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse",
            "auditID": "id-1", "stage": "RequestReceived", "verb": "create",
            "requestURI": "/clusters/a/api/v1/namespaces/n/pods?x=1",
            "user": {"username": "ann", "groups": ["g", "system:authenticated"]},
            "impersonatedUser": {"username": "bob", "groups": ["system:authenticated"]},
            "sourceIPs": ["::1"], "userAgent": "kubectl",
            "objectRef": {"resource": "pods", "namespace": "n", "apiVersion": "v1"},
            "requestObject": {"a": "x\ny", "metadata": {"name": "p"}},
            "requestReceivedTimestamp": "2026-01-02T03:04:05.123456Z",
            "stageTimestamp": "2026-01-02T03:04:06.000000Z",
            "annotations": {
                "authorization.k8s.io/decision": "allow",
                "authorization.k8s.io/reason": "RBAC: allowed", "hook/a": "b",
                "kcp.io/cluster": "a",
            },
        });
        assert_eq!(told(&record, Stage::RequestReceived, 0), Some(expect));
        record.response_body(&object.to_string().into());
        let complete = told(&record, Stage::ResponseComplete, 201).unwrap();
        assert_eq!(complete["responseStatus"], json!({"metadata": {}, "code": 201}));
        assert_eq!(complete["responseObject"], json!({"a": "x\ny", "metadata": {"name": "p"}}));
        record.failed(br#"{"kind":"Status","apiVersion":"v1","reason":"Gone","code":410}"#);
        let failed = told(&record, Stage::ResponseComplete, 410).unwrap();
        assert_eq!(failed["responseStatus"], json!({"reason": "Gone", "code": 410}));
        assert_eq!(told(&record, Stage::Panic, 500), None);
    }

    #[test]
    fn levels_bound_what_is_told() {
        let check = |level, request: bool, response: bool| {
            let record = record(level, false);
            record.request_body(&json!({"q": 1}));
            record.response_body(&Bytes::from_static(b"{\"r\":1}"));
            let told = told(&record, Stage::ResponseComplete, 200).unwrap();
            let has = (told.get("requestObject").is_some(), told.get("responseObject").is_some());
            assert_eq!(has, (request, response), "{told}");
        };
        check(Level::Metadata, false, false);
        check(Level::Request, true, false);
        check(Level::RequestResponse, true, true);
    }
}
