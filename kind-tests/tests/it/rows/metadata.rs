//! Labels, annotations, and how large an object may be.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::row::{Row, config, is};

/// What people take away at the hub goes; what others have put on a copy stays.
pub(super) fn labels_and_annotations(row: &Row<'_>) -> Result<()> {
    let mut object = config("marked", &json!({"a": "1", "b": "2"}));
    object["metadata"]["labels"] = json!({"ours": "one", "stays": "yes"});
    object["metadata"]["annotations"] = json!({"ours/note": "one", "stays/note": "yes"});
    row.apply(object.clone())?;
    let what = "configmap/marked";
    row.copied(what, |copy| is(copy, "/metadata/labels/ours", &json!("one")))?;
    row.down.ok(&["label", what, "foreign=label"])?;
    row.down.ok(&["annotate", what, "foreign/note=annotation"])?;
    object["metadata"]["labels"] = json!({"stays": "yes"});
    object["metadata"]["annotations"] = json!({"stays/note": "yes"});
    object["data"] = json!({"a": "1"});
    row.apply(object)?;
    let copy = row.copied(what, |copy| {
        is(copy, "/metadata/labels/ours", &Value::Null)?;
        is(copy, "/metadata/annotations/ours~1note", &Value::Null)?;
        is(copy, "/data", &json!({"a": "1"}))
    })?;
    is(&copy, "/metadata/labels/stays", &json!("yes"))?;
    is(&copy, "/metadata/labels/foreign", &json!("label"))?;
    is(&copy, "/metadata/annotations/stays~1note", &json!("yes"))?;
    is(&copy, "/metadata/annotations/foreign~1note", &json!("annotation"))?;
    let last = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
    is(&copy, last, &Value::Null)
}

/// The largest ConfigMaps are copied, changed and removed like any other.
pub(super) fn large_config(row: &Row<'_>) -> Result<()> {
    let data = |letter: char| json!({"file": letter.to_string().repeat(900 << 10)});
    // Too large for the annotation that client-side apply writes.
    let write = |verb: &str, letter| {
        let mut object = config("large", &data(letter));
        object["metadata"]["labels"] = json!({contract::INTENT_LABEL: crate::site::TARGET});
        row.up.ok_with_input(&[verb, "--filename=-"], &object.to_string())
    };
    write("create", 'a')?;
    row.copied("configmap/large", |copy| is(copy, "/data", &data('a')))?;
    write("replace", 'b')?;
    row.copied("configmap/large", |copy| is(copy, "/data", &data('b')))?;
    row.up.ok(&["delete", "configmap/large", "--timeout=60s"])?;
    let gone = row.down.fails(&["get", "configmap/large"])?;
    ensure!(gone.contains("NotFound"), "{gone}");
    Ok(())
}
