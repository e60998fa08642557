//! Conversion of custom resources by a webhook (`apiextensions.k8s.io/v1 ConversionReview`).
//!
//! A webhook may change everything of an object but its metadata, of which it may change labels
//! and annotations.

use std::time::Duration;

use machinery::ClusterName;
use machinery::FieldPath;
use schema::crd::Webhook;
use serde_json::{Map, Value, json};

use super::{Client, printed_kind, service_url, text};
use crate::dialer::Dialer;

/// How long a conversion may take, as upstream.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The versions of reviews that are known.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Converts objects of one kind, none of which is in `wanted` (an `apiVersion`) yet. The answer
/// has them in the same order.
///
/// # Errors
/// What is wrong, as upstream tells it.
pub(crate) async fn convert(
    dialer: &Dialer,
    cluster: &ClusterName,
    webhook: &Webhook,
    objects: Vec<Value>,
    wanted: &str,
) -> Result<Vec<Value>, String> {
    let Some(kind) = objects.first().map(printed_kind) else { return Ok(Vec::new()) };
    let known = |version: &&String| VERSIONS.contains(&version.as_str());
    let Some(version) = webhook.review_versions.iter().find(known) else {
        return Err("no supported conversion review versions".to_owned());
    };
    let uid = uuid::Uuid::new_v4().to_string();
    let review = json!({
        "kind": "ConversionReview",
        "apiVersion": format!("apiextensions.k8s.io/{version}"),
        "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": objects},
    });
    let url = match &webhook.service {
        None => webhook.url.clone(),
        Some((namespace, name, path, port)) => service_url(name, namespace, u64::from(*port), path),
    };
    let is_service = webhook.service.is_some();
    let client = Client { url, is_service, ca_bundle: webhook.ca_bundle.clone() };
    let failed = |why: String| format!("conversion webhook for {kind} failed: {why}");
    let answer = client.post(dialer, cluster, TIMEOUT, &review).await.map_err(failed)?;
    let Some(Value::Array(objects)) = { review }.pointer_mut("/request/objects").map(Value::take)
    else {
        return Ok(Vec::new());
    };
    let converted = converted(answer, version, &uid).map_err(failed)?;
    if converted.len() != objects.len() {
        let (given, expected) = (converted.len(), objects.len());
        return Err(format!(
            "conversion webhook for {kind} returned {given} objects, expected {expected}"
        ));
    }
    let many = objects.len() > 1;
    let pairs = objects.iter().zip(converted).enumerate();
    let judged = pairs.map(|(index, (original, converted))| {
        judge(original, converted, wanted).map_err(|wrong| wrong.told(&kind, index, many))
    });
    judged.collect()
}

/// The objects of an answer.
fn converted(mut answer: Value, version: &str, uid: &str) -> Result<Vec<Value>, String> {
    if version == "v1" {
        let expected = "apiextensions.k8s.io/v1, Kind=ConversionReview";
        if printed_kind(&answer) != expected {
            return Err(format!("expected webhook response of {expected}, got another"));
        }
    }
    let Some(response) = answer.get_mut("response").filter(|response| response.is_object()) else {
        return Err("no response provided".to_owned());
    };
    if version == "v1" && text(response, "/uid") != uid {
        return Err(format!("expected response.uid={uid:?}, got another"));
    }
    if text(response, "/result/status") != "Success" {
        let message = text(response, "/result/message");
        return Err(if message.is_empty() {
            "response.result.status was not 'Success'".to_owned()
        } else {
            message.to_owned()
        });
    }
    match response.get_mut("convertedObjects").map(Value::take) {
        Some(Value::Array(objects)) => Ok(objects),
        _ => Ok(Vec::new()),
    }
}

/// What is wrong with a converted object.
enum Wrong {
    Object(String),
    Metadata(String),
}

/// Checks that a converted object is the original one, and gives it its metadata back.
fn judge(original: &Value, mut converted: Value, wanted: &str) -> Result<Value, Wrong> {
    let given = text(&converted, "/apiVersion");
    if given != wanted {
        let why = format!("invalid groupVersion (expected {wanted}, received {given})");
        return Err(Wrong::Object(why));
    }
    let (expected, given) = (text(original, "/kind"), text(&converted, "/kind"));
    if expected != given {
        let why = format!("invalid kind (expected {expected}, received {given})");
        return Err(Wrong::Object(why));
    }
    for (field, shown) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let path = format!("/metadata/{field}");
        let (before, after) = (text(original, &path), text(&converted, &path));
        if before != after {
            let why = format!("must have the same {shown}: {before} != {after}");
            return Err(Wrong::Object(why));
        }
    }
    let metadata = match converted.get_mut("metadata").map(Value::take) {
        None => return Err(Wrong::Metadata("missing metadata in converted object".into())),
        Some(Value::Object(metadata)) => metadata,
        Some(_) => return Err(Wrong::Metadata("invalid metadata in converted object".into())),
    };
    converted["metadata"] = restored(original, metadata).map_err(Wrong::Metadata)?;
    Ok(converted)
}

/// The original's metadata with the labels and annotations of the converted one.
fn restored(original: &Value, mut given: Map<String, Value>) -> Result<Value, String> {
    let mut restored = original.get("metadata").cloned().unwrap_or_else(|| json!({}));
    let Some(fields) = restored.as_object_mut() else {
        return Err("invalid metadata in input object".to_owned());
    };
    for field in ["labels", "annotations"] {
        let new = match given.remove(field) {
            None | Some(Value::Null) => {
                fields.remove(field);
                continue;
            }
            Some(Value::Object(new)) => new,
            Some(_) => return Err(format!("invalid metadata.{field} in converted object")),
        };
        if let Some((key, _)) = new.iter().find(|(_, value)| !value.is_string()) {
            return Err(format!(
                "metadata.{field}[{key}] must be a string, but is not in converted object"
            ));
        }
        let new = Value::Object(new);
        if fields.get(field) != Some(&new) {
            let path = FieldPath::root("metadata");
            // Only the field in question is there to be wrong.
            let alone = json!({"metadata": {"name": "x", field: new}});
            let wrong = machinery::meta::validate_object_meta(&alone, false, |_| Vec::new(), &path);
            if !wrong.is_empty() {
                return Err(machinery::field::aggregate(&wrong));
            }
        }
        fields.insert(field.to_owned(), new);
    }
    Ok(restored)
}

// === impl Wrong ===

impl Wrong {
    fn told(&self, kind: &str, index: usize, many: bool) -> String {
        let what = match self {
            Self::Object(_) if many => format!("invalid converted object at index {index}"),
            Self::Object(_) => "invalid object".to_owned(),
            Self::Metadata(_) if many => format!("invalid metadata in object at index {index}"),
            Self::Metadata(_) => "invalid metadata".to_owned(),
        };
        let (Self::Object(why) | Self::Metadata(why)) = self;
        format!("conversion webhook for {kind} returned {what}: {why}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn original() -> Value {
        json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "w", "uid": "u", "labels": {"a": "b"}, "generation": 3},
            "spec": {"size": 1},
        })
    }

    fn converted_to(metadata: &Value) -> Value {
        json!({
            "apiVersion": "example.com/v2", "kind": "Widget", "metadata": metadata,
            "spec": {"width": 1},
        })
    }

    #[test]
    fn metadata_stays_but_for_labels_and_annotations() {
        let given = json!({
            "name": "w", "uid": "u", "labels": {"c": "d"}, "annotations": {"e": "f"},
            "generation": 9, "finalizers": ["x/y"],
        });
        let judged = judge(&original(), converted_to(&given), "example.com/v2").ok().unwrap();
        let expected = json!({
            "name": "w", "uid": "u", "generation": 3, "labels": {"c": "d"},
            "annotations": {"e": "f"},
        });
        assert_eq!(judged["metadata"], expected);
        assert_eq!(judged["spec"], json!({"width": 1}));
    }

    #[test]
    fn other_objects_are_refused() {
        let check = |metadata: Value, expect: &str| {
            let judged = judge(&original(), converted_to(&metadata), "example.com/v2");
            let told = judged.err().map(|wrong| wrong.told("K", 0, false)).unwrap_or_default();
            assert_eq!(told, format!("conversion webhook for K returned {expect}"));
        };
        check(json!({"name": "x", "uid": "u"}), "invalid object: must have the same name: w != x");
        check(json!({"name": "w"}), "invalid object: must have the same UID: u != ");
        check(
            json!({"name": "w", "uid": "u", "labels": {"a": 1}}),
            "invalid metadata: metadata.labels[a] must be a string, but is not in converted object",
        );
        let wrong = judge(&original(), converted_to(&json!({})), "example.com/v3").err().unwrap();
        assert_eq!(
            wrong.told("K", 2, true),
            "conversion webhook for K returned invalid converted object at index 2: invalid \
             groupVersion (expected example.com/v3, received example.com/v2)"
        );
    }

    #[test]
    fn answers_are_believed_when_they_are_for_the_question() {
        let answer = |uid: &str, status: &str, message: &str| {
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
                "response": {
                    "uid": uid, "result": {"status": status, "message": message},
                    "convertedObjects": [{}, {}],
                },
            })
        };
        let check = |answer: Value, expect: Result<usize, &str>| {
            let found = converted(answer, "v1", "u").map(|objects| objects.len());
            assert_eq!(found, expect.map_err(str::to_owned));
        };
        check(answer("u", "Success", ""), Ok(2));
        check(answer("x", "Success", ""), Err("expected response.uid=\"u\", got another"));
        check(answer("u", "Failure", "no way"), Err("no way"));
        check(answer("u", "", ""), Err("response.result.status was not 'Success'"));
        check(
            json!({}),
            Err(
                "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got \
                 another",
            ),
        );
    }
}
