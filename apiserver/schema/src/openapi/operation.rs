//! One operation: its bodies, answers and parameters.

use serde_json::{Map, Value, json};

use super::components::{patch, reference};

/// Encodings of answers; what this server writes.
const PRODUCED: [&str; 3] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
/// Encodings of watches.
const STREAMED: [&str; 2] = ["application/json", "application/vnd.kubernetes.protobuf"];
/// Encodings of custom resources, in bodies and answers.
const CUSTOM: [&str; 2] = ["application/json", "application/yaml"];
/// Patch formats that this server accepts for all kinds.
const PATCHES: [&str; 3] =
    ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
/// The one that it accepts for built-in and imported kinds only: it needs what Go knows of them.
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// One operation to describe.
pub(super) struct Operation<'a> {
    /// The action that `x-kubernetes-action` tells.
    pub(super) action: &'a str,
    pub(super) id: String,
    pub(super) kind: [&'a str; 3],
    /// The component of the body, if there is one.
    pub(super) body: Option<Value>,
    /// Status codes and the component of their bodies.
    pub(super) answers: Vec<(&'a str, String)>,
    pub(super) parameters: Vec<Value>,
    pub(super) summary: String,
    pub(super) style: Style,
}

/// How bodies of an operation look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// As Kubernetes' own types have them.
    BuiltIn,
    /// As custom resources have them: no protobuf, no strategic merge patch.
    Custom,
}

// === impl Operation ===

impl Operation<'_> {
    /// The operation as documents show it.
    pub(super) fn to_json(&self, tag: &str) -> Value {
        let (produced, streams): (&[&str], &[&str]) = match (self.style, self.action) {
            (Style::Custom, _) => (&CUSTOM, &[]),
            (Style::BuiltIn, "list") => (&PRODUCED, &STREAMED),
            (Style::BuiltIn, _) => (&PRODUCED, &[]),
        };
        let answers = self.answers.iter().map(|(code, name)| {
            let media = |kind: &str| (kind.to_owned(), json!({"schema": reference(name)}));
            let mut content: Map<String, Value> = produced.iter().map(|kind| media(kind)).collect();
            content.extend(streams.iter().map(|kind| media(&format!("{kind};stream=watch"))));
            let description = match *code {
                "201" => "Created",
                "202" => "Accepted",
                _ => "OK",
            };
            ((*code).to_owned(), json!({"description": description, "content": content}))
        });
        let mut responses: Map<String, Value> = answers.collect();
        responses.insert("401".into(), json!({"description": "Unauthorized"}));
        let mut operation = json!({
            "tags": [tag],
            "description": self.summary,
            "operationId": self.id,
            "responses": responses,
        });
        let mut set = |name: &str, value: Value| {
            if let Value::Object(operation) = &mut operation {
                operation.insert(name.to_owned(), value);
            }
        };
        if !self.parameters.is_empty() {
            set("parameters", self.parameters.clone().into());
        }
        match (&self.body, self.action) {
            (_, "patch") => {
                let strategic = Some(STRATEGIC).filter(|_| self.style == Style::BuiltIn);
                let kinds = PATCHES.into_iter().chain(strategic);
                let content: Map<String, Value> =
                    kinds.map(|kind| (kind.to_owned(), json!({"schema": patch()}))).collect();
                set("requestBody", json!({"content": content, "required": true}));
            }
            (Some(body), action) => {
                let media: &[&str] = if self.style == Style::Custom { &CUSTOM } else { &["*/*"] };
                let content: Map<String, Value> = media
                    .iter()
                    .map(|kind| ((*kind).to_owned(), json!({"schema": body})))
                    .collect();
                let mut request = json!({ "content": content });
                if !action.starts_with("delete")
                    && let Value::Object(request) = &mut request
                {
                    request.insert("required".into(), true.into());
                }
                set("requestBody", request);
            }
            (None, _) => {}
        }
        if !self.action.is_empty() {
            set("x-kubernetes-action", self.action.into());
            let [group, version, kind] = self.kind;
            set(
                "x-kubernetes-group-version-kind",
                json!({"group": group, "version": version, "kind": kind}),
            );
        }
        operation
    }
}
