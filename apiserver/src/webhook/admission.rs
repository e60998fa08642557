//! Reviews of requests (`admission.k8s.io AdmissionReview`): the question, and what of the answer
//! is believed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use machinery::{Gvk, Gvr};
use serde_json::{Value, json};

use super::{printed_kind, text};
use crate::admission::{Attributes, Objects};

/// The most warnings, and bytes of one, that are passed on.
const MAX_WARNINGS: usize = 64;

/// The longest key and value that the audit log is told, in bytes.
const MAX_ANNOTATION_KEY: usize = 253;
const MAX_ANNOTATION: usize = 4 << 10;

/// What a webhook answers.
#[derive(Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) allowed: bool,
    /// The `Status` of a refusal.
    pub(crate) result: Value,
    pub(crate) warnings: Vec<String>,
    /// What the audit log is to be told.
    pub(crate) annotations: Vec<(String, String)>,
    /// A JSON patch, if there is one.
    pub(crate) patch: Option<Vec<u8>>,
}

/// A question about a request, taken as one for `resource` and `kind`.
pub(crate) fn review(
    version: &str,
    uid: &str,
    attributes: &Attributes,
    matched: (&Gvr, &Gvk),
    objects: &Objects,
) -> Value {
    let mut request = attributes.request(matched.0, matched.1);
    request["uid"] = json!(uid);
    request["object"] = objects.new.clone().unwrap_or_default();
    request["oldObject"] = objects.old.clone().unwrap_or_default();
    json!({
        "kind": "AdmissionReview",
        "apiVersion": format!("admission.k8s.io/{version}"),
        "request": request,
    })
}

/// What an answer says.
///
/// # Errors
/// Why it is not believed, as upstream tells it.
pub(crate) fn verdict(
    mut answer: Value,
    version: &str,
    uid: &str,
    mutating: bool,
) -> Result<Verdict, String> {
    let is_v1 = version == "v1";
    let named = printed_kind(&answer);
    let Some(response) = answer.get_mut("response").filter(|response| response.is_object()) else {
        return Err("webhook response was absent".to_owned());
    };
    if is_v1 {
        let given = text(response, "/uid");
        if given != uid {
            let given = if given.is_empty() { "\"\"" } else { "another" };
            return Err(format!("expected response.uid={uid:?}, got {given}"));
        }
        let expected = "admission.k8s.io/v1, Kind=AdmissionReview";
        if named != expected {
            return Err(format!("expected webhook response of {expected}, got another"));
        }
    }
    let encoded = text(response, "/patch");
    let kind = response.get("patchType").filter(|kind| !kind.is_null()).map(Value::as_str);
    if is_v1 {
        match (mutating, encoded.is_empty(), kind) {
            (true, false, None) => {
                return Err("webhook returned response.patch but not response.patchType".into());
            }
            (true, true, Some(_)) => {
                return Err("webhook returned response.patchType but not response.patch".into());
            }
            (true, false, Some(kind)) if kind != Some("JSONPatch") => {
                return Err("webhook returned invalid response.patchType".into());
            }
            (false, false, _) => {
                return Err("validating webhook may not return response.patch".into());
            }
            (false, true, Some(_)) => {
                return Err("validating webhook may not return response.patchType".into());
            }
            _ => {}
        }
    }
    let patch = match encoded {
        encoded if encoded.is_empty() || !mutating => None,
        encoded => {
            let patch = STANDARD.decode(encoded);
            Some(patch.map_err(|_| "webhook returned a patch that is not base64")?)
        }
    };
    let warnings = response.get("warnings").and_then(Value::as_array).into_iter().flatten();
    let warnings = warnings.filter_map(Value::as_str).map(str::to_owned).take(MAX_WARNINGS);
    let annotations = response.get("auditAnnotations").and_then(Value::as_object);
    let annotations = annotations.into_iter().flatten().filter_map(|(key, value)| {
        let value = value.as_str().filter(|value| value.len() <= MAX_ANNOTATION)?;
        (key.len() <= MAX_ANNOTATION_KEY).then(|| (key.clone(), value.to_owned()))
    });
    Ok(Verdict {
        annotations: annotations.take(MAX_WARNINGS).collect(),
        allowed: response.get("allowed") == Some(&Value::Bool(true)),
        warnings: warnings.collect(),
        patch,
        result: response.get_mut("status").or(None).map(Value::take).unwrap_or_else(|| json!({})),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(response: &Value) -> Value {
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
        })
    }

    #[test]
    fn answers_are_checked() {
        let check = |response: Value, mutating: bool, expect: &str| {
            let told = verdict(answer(&response), "v1", "u", mutating).err().unwrap_or_default();
            assert_eq!(told, expect, "{response}");
        };
        check(json!({"uid": "u", "allowed": true}), true, "");
        check(json!({"uid": ""}), true, "expected response.uid=\"u\", got \"\"");
        check(json!({"uid": "x"}), true, "expected response.uid=\"u\", got another");
        check(json!(null), true, "webhook response was absent");
        check(
            json!({"uid": "u", "patch": "W10="}),
            true,
            "webhook returned response.patch but not response.patchType",
        );
        check(
            json!({"uid": "u", "patchType": "JSONPatch"}),
            true,
            "webhook returned response.patchType but not response.patch",
        );
        check(
            json!({"uid": "u", "patch": "W10=", "patchType": "x"}),
            true,
            "webhook returned invalid response.patchType",
        );
        check(
            json!({"uid": "u", "patch": "W10=", "patchType": "JSONPatch"}),
            false,
            "validating webhook may not return response.patch",
        );
        let good = json!({"uid": "u", "patch": "W10=", "patchType": "JSONPatch"});
        let verdict = verdict(answer(&good), "v1", "u", true).unwrap();
        assert_eq!((verdict.allowed, verdict.patch), (false, Some(b"[]".to_vec())));
    }
}
