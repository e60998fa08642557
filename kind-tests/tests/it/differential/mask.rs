//! What two servers can never have in common becomes a symbol.
//!
//! Symbols keep what must be the same: UIDs are numbered as they appear, and the versions of
//! objects by their order, so that an object which should keep its version, or not, is seen to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

static UID: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"));

/// Times of now; those that cases give are long past.
static TIME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b20(?:2[5-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"));

static AGE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:\d+[smhd])+( \(x\d+ over )?(?:\d+[smhd])*(\))?$"));
static HASH: LazyLock<Regex> = LazyLock::new(|| pattern(r"\?hash=[0-9A-F]+"));
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b127\.0\.0\.1:\d+\b"));
static NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b\d+\b"));
static CURRENT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(resource version: \d+)(, current: | \()\d+(\)?)"));
static CERTIFICATE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?s)-----BEGIN CERTIFICATE-----.*-----END CERTIFICATE-----\n"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant")
}

/// Masks all answers of one server in one case.
pub(crate) fn all(mut answers: Vec<Value>) -> Vec<Value> {
    let mut versions = BTreeSet::new();
    for answer in &answers {
        collect_versions(answer, &mut versions);
    }
    let ranks = versions.into_iter().zip(1..).map(|(version, rank)| (version.to_string(), rank));
    let mut masks = Masks { versions: ranks.collect(), ..Masks::default() };
    for answer in &answers {
        collect_generated(answer, &mut masks.generated);
    }
    for answer in &mut answers {
        masks.value(answer);
    }
    answers
}

/// The versions of objects: lists and bookmarks have ones that depend on what else happens.
fn collect_versions(value: &Value, versions: &mut BTreeSet<u64>) {
    match value {
        Value::Object(fields) => {
            versions.extend(fields.get("metadata").and_then(object_version));
            fields.values().for_each(|value| collect_versions(value, versions));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_versions(value, versions)),
        _ => {}
    }
}

fn object_version(metadata: &Value) -> Option<u64> {
    metadata.get("name")?;
    metadata.get("resourceVersion")?.as_str()?.parse().ok()
}

/// Names that the server has made up, and what stands for them.
fn collect_generated(value: &Value, generated: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            let text = |name: &str| fields.get("metadata")?.get(name)?.as_str();
            if let (Some(base), Some(name)) = (text("generateName"), text("name"))
                && name.strip_prefix(base).is_some_and(|rest| rest.len() == 5)
            {
                generated.insert(name.to_owned(), format!("{base}<random>"));
            }
            fields.values().for_each(|value| collect_generated(value, generated));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_generated(item, generated)),
        _ => {}
    }
}

/// The symbols of one case.
#[derive(Debug, Default)]
struct Masks {
    versions: BTreeMap<String, usize>,
    uids: BTreeMap<String, usize>,
    generated: BTreeMap<String, String>,
}

// === impl Masks ===

impl Masks {
    fn value(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => self.object(fields),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::String(text) => *text = self.text(text),
            _ => {}
        }
    }

    fn object(&mut self, fields: &mut Map<String, Value>) {
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            self.metadata(metadata);
        }
        if let Some(Value::String(message)) = fields.get_mut("message") {
            *message = self.message(message);
        }
        if let Some(Value::Array(cells)) = fields.get_mut("cells") {
            for cell in cells {
                if cell.as_str().is_some_and(|text| AGE.is_match(text)) {
                    *cell = json!("<age>");
                }
            }
        }
        fields.values_mut().for_each(|value| self.value(value));
    }

    fn metadata(&self, metadata: &mut Map<String, Value>) {
        let text = |name: &str| metadata.get(name).and_then(Value::as_str);
        let named = text("name").is_some();
        let mut masked = Vec::new();
        if let Some(version) = text("resourceVersion").filter(|version| !version.is_empty()) {
            let symbol = match self.versions.get(version).filter(|_| named) {
                Some(rank) => format!("<version {rank}>"),
                None => "<version>".to_owned(),
            };
            masked.push(("resourceVersion", symbol));
        }
        if text("continue").is_some_and(|token| !token.is_empty()) {
            masked.push(("continue", "<token>".to_owned()));
        }
        for (name, symbol) in masked {
            metadata.insert(name.to_owned(), json!(symbol));
        }
    }

    /// Versions stand in messages, too.
    fn message(&self, text: &str) -> String {
        let text = CURRENT.replace_all(text, "$1$2<version>$3");
        let number = |found: &Captures<'_>| match self.versions.get(&found[0]) {
            // One digit means other things.
            Some(rank) if found[0].len() > 1 => format!("<version {rank}>"),
            _ => found[0].to_owned(),
        };
        NUMBER.replace_all(&text, number).into_owned()
    }

    fn text(&mut self, text: &str) -> String {
        let uid = |found: &Captures<'_>| {
            let next = self.uids.len() + 1;
            let number = self.uids.entry(found[0].to_owned()).or_insert(next);
            format!("<uid {number}>")
        };
        let text = UID.replace_all(text, uid);
        let time = |found: &Captures<'_>| match found.get(1) {
            Some(_) => "<microtime>",
            None => "<time>",
        };
        let text = TIME.replace_all(&text, time);
        let text = HASH.replace_all(&text, "?hash=<hash>");
        let text = ADDRESS.replace_all(&text, "<address>");
        let text = CERTIFICATE.replace_all(&text, "<certificate>").into_owned();
        self.generated.iter().fold(text, |text, (name, symbol)| text.replace(name, symbol))
    }
}
