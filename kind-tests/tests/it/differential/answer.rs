//! An answer as one JSON value, so that all of it can be compared and named by paths.

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use kind_tests::client::Response;

/// The headers whose text is compared. Others tell of the connection, not of the answer.
const COMPARED: [&str; 7] =
    ["allow", "cache-control", "content-type", "expires", "retry-after", "vary", "warning"];

/// `{status, headers, form, body}`, or `events` in place of the body.
pub(crate) fn of(response: &Response, events: Option<usize>) -> Result<Value> {
    let mut headers = Map::new();
    for name in COMPARED {
        if let Some(value) = response.headers.get(name) {
            let values = value.split('\n').map(Value::from).collect::<Vec<_>>();
            let value = if let [one] = values.as_slice() { one.clone() } else { json!(values) };
            headers.insert(name.to_owned(), value);
        }
    }
    // An ETag is opaque, but that there is one is not.
    if response.headers.contains_key("etag") {
        headers.insert("etag".to_owned(), json!("<etag>"));
    }
    let mut answer = json!({"status": response.status, "headers": headers});
    let text = String::from_utf8_lossy(&response.body);
    let media = response.headers.get("content-type").map_or("", String::as_str);
    let is_json = media.split(';').next() == Some("application/json");
    if let Some(wanted) = events.filter(|_| response.status == 200) {
        // More may have come than was waited for, up to the middle of a line.
        let events = text.lines().take(wanted).map(serde_json::from_str);
        let events: Vec<Value> =
            events.collect::<Result<_, _>>().with_context(|| format!("events: {text}"))?;
        answer["events"] = Value::from(events);
    } else if is_json && !text.is_empty() {
        let body: Value = serde_json::from_str(&text).with_context(|| format!("body: {text}"))?;
        answer["form"] = json!(if text.contains("\n  ") { "pretty" } else { "plain" });
        answer["body"] = body;
    } else if media == "application/yaml" {
        answer["body"] = serde_saphyr::from_str(&text).with_context(|| format!("body: {text}"))?;
    } else {
        answer["body"] = json!(text);
    }
    Ok(answer)
}
