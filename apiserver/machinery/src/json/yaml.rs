//! YAML as `sigs.k8s.io/yaml` reads it: the JSON data model, YAML 1.1 scalars, merge keys.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use granit_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput, Tag};
use serde_json::{Map, Value};

use super::error::{JsonError, TOO_DEEP};
use super::path::cut;
use super::{Limits, Parsed, scalar};
use crate::field::go_quote;

/// Parses one YAML document; an empty one is null.
///
/// Keys that are numbers or booleans become strings. The last of duplicate keys wins; keys that
/// came by a merge (`<<`) give way to explicit ones.
///
/// # Errors
/// [`JsonError`] for what is no YAML, no UTF-8, has no JSON form (`.nan`, lists as keys), holds a
/// second document, nests too deep, or multiplies itself by aliases beyond the limits.
pub fn yaml(bytes: &[u8], limits: &Limits) -> Result<Parsed, JsonError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|e| JsonError::new("yaml: invalid UTF-8", e.valid_up_to()))?;
    let mut options = granit_parser::Options::default();
    // As libyaml, and so go-yaml, reads the last line of a file without a line end.
    options.block_scalar_eof_without_line_feed = true;
    let mut composer = Composer {
        parser: Parser::new_from_str_with_options(text, options),
        anchors: HashMap::new(),
        nodes: limits.max_alias_nodes,
        bytes: limits.max_alias_bytes,
        max_duplicates: limits.max_duplicates,
        duplicates: Vec::new(),
        end: text.len(),
    };
    let value = composer.document(limits.max_depth)?;
    Ok(Parsed { value, duplicates: composer.duplicates })
}

/// A finished node that aliases can copy.
struct Anchor {
    value: Value,
    size: Size,
}

/// What a copy of a node costs.
#[derive(Default)]
struct Size {
    nodes: usize,
    bytes: usize,
    depth: usize,
}

/// Builds values from the parser's events.
struct Composer<'a> {
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Anchor>,
    /// Nodes that may still be copied.
    nodes: usize,
    /// Bytes of text that may still be copied.
    bytes: usize,
    max_duplicates: usize,
    duplicates: Vec<String>,
    end: usize,
}

type Step<'a> = (Event<'a>, Span);

// === impl Composer ===

impl<'a> Composer<'a> {
    fn document(&mut self, levels: usize) -> Result<Value, JsonError> {
        let mut document = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(document.unwrap_or_default()),
                event if event.is_node() || event.is_alias() => {
                    let value = self.node((event, span), levels)?;
                    // An empty document behind the last separator is common and harmless.
                    match &mut document {
                        None => document = Some(value),
                        Some(_) if value.is_null() => {}
                        Some(_) => return Err(error("more than one document", span.start)),
                    }
                }
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Result<Step<'a>, JsonError> {
        match self.parser.next_event() {
            Some(Ok(step)) => Ok(step),
            Some(Err(e)) => Err(error(&e.info(), *e.marker())),
            None => Err(JsonError::new("yaml: unexpected end", self.end)),
        }
    }

    /// The node that begins with `step`; `levels` more collections may open.
    fn node(&mut self, step: Step<'a>, levels: usize) -> Result<Value, JsonError> {
        let (event, span) = step;
        let (anchor, value) = match event {
            Event::Alias(id) => return self.alias(id, levels, span.start),
            Event::Scalar(text, style, anchor, tag) => {
                (anchor, read_scalar(text, style, tag.as_deref(), span.start)?)
            }
            Event::SequenceStart(_, anchor, _) => (anchor, self.sequence(levels, span.start)?),
            Event::MappingStart(_, anchor, _) => (anchor, self.mapping(levels, span.start)?),
            _ => return Err(error("did not find expected node content", span.start)),
        };
        if anchor != 0 {
            let size = Size::of(&value);
            self.charge(&size, span.start)?;
            self.anchors.insert(anchor, Anchor { value: value.clone(), size });
        }
        Ok(value)
    }

    fn alias(&mut self, id: usize, levels: usize, at: Marker) -> Result<Value, JsonError> {
        // An anchor becomes known when its node ends, so that a node can't hold itself.
        let Some(anchor) = self.anchors.remove(&id) else {
            return Err(error("anchor value contains itself", at));
        };
        if anchor.size.depth > levels {
            return Err(error(TOO_DEEP, at));
        }
        self.charge(&anchor.size, at)?;
        let value = anchor.value.clone();
        self.anchors.insert(id, anchor);
        Ok(value)
    }

    fn charge(&mut self, size: &Size, at: Marker) -> Result<(), JsonError> {
        let left = self.nodes.checked_sub(size.nodes).zip(self.bytes.checked_sub(size.bytes));
        let Some((nodes, bytes)) = left else {
            return Err(error("document contains excessive aliasing", at));
        };
        (self.nodes, self.bytes) = (nodes, bytes);
        Ok(())
    }

    fn sequence(&mut self, levels: usize, at: Marker) -> Result<Value, JsonError> {
        let levels = levels.checked_sub(1).ok_or_else(|| error(TOO_DEEP, at))?;
        let mut items = Vec::new();
        loop {
            let step = self.next()?;
            if matches!(step.0, Event::SequenceEnd) {
                return Ok(Value::Array(items));
            }
            items.push(self.node(step, levels)?);
        }
    }

    fn mapping(&mut self, levels: usize, at: Marker) -> Result<Value, JsonError> {
        let levels = levels.checked_sub(1).ok_or_else(|| error(TOO_DEEP, at))?;
        let mut map = Map::new();
        let mut merged = HashSet::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(Value::Object(map));
            }
            let merge = is_merge(&event);
            let key = self.node((event, span), levels)?;
            let step = self.next()?;
            let value_at = step.1.start;
            if merge {
                let value = self.node(step, levels)?;
                merge_into(&mut map, &mut merged, value, value_at)?;
                continue;
            }
            let before = self.duplicates.len();
            let (key, printed) = read_key(key, span.start)?;
            let value = self.node(step, levels)?;
            let duplicate = map.contains_key(&key) && !merged.remove(&key);
            map.insert(key, value);
            if duplicate && before < self.max_duplicates {
                let line = span.start.line();
                let text = format!("line {line}: key {printed} already set in map");
                self.duplicates.insert(before, text);
                self.duplicates.truncate(self.max_duplicates);
            }
        }
    }
}

// === impl Size ===

impl Size {
    fn of(value: &Value) -> Self {
        let mut size = Self { nodes: 1, bytes: 0, depth: 0 };
        match value {
            Value::String(text) => size.bytes = text.len(),
            Value::Array(items) => items.iter().for_each(|item| size.hold("", item)),
            Value::Object(map) => map.iter().for_each(|(key, value)| size.hold(key, value)),
            _ => {}
        }
        size.depth += usize::from(value.is_array() || value.is_object());
        size
    }

    fn hold(&mut self, key: &str, value: &Value) {
        let inner = Self::of(value);
        self.nodes += inner.nodes;
        self.bytes += inner.bytes + key.len();
        self.depth = self.depth.max(inner.depth);
    }
}

fn error(message: &str, at: Marker) -> JsonError {
    let offset = at.byte_offset().unwrap_or_else(|| at.index());
    JsonError::new(format!("yaml: line {}: {message}", at.line()), offset)
}

/// A standard tag without its namespace: `str` of `!!str`. Other tags have no meaning here.
fn kind(tag: &Tag) -> Cow<'_, str> {
    // The tag `!` alone makes a scalar a text.
    if matches!(tag.parts(), ("", "!") | ("!", "")) {
        return Cow::Borrowed("str");
    }
    tag.suffix_in_namespace("tag:yaml.org,2002:").unwrap_or_default()
}

fn is_merge(event: &Event<'_>) -> bool {
    match event {
        Event::Scalar(text, ScalarStyle::Plain, _, None) => text == "<<",
        Event::Scalar(text, _, _, Some(tag)) => text == "<<" && kind(tag) == "merge",
        _ => false,
    }
}

fn read_scalar(
    text: Cow<'_, str>,
    style: ScalarStyle,
    tag: Option<&Tag>,
    at: Marker,
) -> Result<Value, JsonError> {
    match tag.map(kind).as_deref() {
        Some("str") => return Ok(Value::String(text.into_owned())),
        Some("binary") => {
            let bytes = STANDARD.decode(text.split_ascii_whitespace().collect::<String>());
            let wrong = |_| error("!!binary value contains invalid base64 data", at);
            let text = String::from_utf8(bytes.map_err(wrong)?);
            return text.map(Value::String).map_err(|_| error("!!binary value is no text", at));
        }
        Some(kind @ ("int" | "float" | "bool" | "null")) => {
            let value = scalar::resolve(&text);
            let fits = match kind {
                "int" | "float" => matches!(value, Some(Value::Number(_))),
                "bool" => matches!(value, Some(Value::Bool(_))),
                _ => matches!(value, Some(Value::Null)),
            };
            let quoted = go_quote(cut(&text));
            let wrong = || error(&format!("cannot decode {quoted} as a !!{kind}"), at);
            return value.filter(|_| fits).ok_or_else(wrong);
        }
        _ => {}
    }
    if style == ScalarStyle::Plain {
        let no_json = || error(&format!("unsupported value: {}", cut(&text)), at);
        return scalar::resolve(&text).ok_or_else(no_json);
    }
    Ok(Value::String(text.into_owned()))
}

/// The key as JSON has it, and as Go prints it.
fn read_key(key: Value, at: Marker) -> Result<(String, String), JsonError> {
    match key {
        Value::String(text) => {
            let printed = go_quote(cut(&text));
            Ok((text, printed))
        }
        Value::Number(_) | Value::Bool(_) => Ok((key.to_string(), key.to_string())),
        Value::Null => Err(error("unsupported map key: null", at)),
        Value::Array(_) | Value::Object(_) => Err(error("invalid map key", at)),
    }
}

/// Adds the entries of a map, or of several maps, that are not there yet.
fn merge_into(
    map: &mut Map<String, Value>,
    merged: &mut HashSet<String>,
    value: Value,
    at: Marker,
) -> Result<(), JsonError> {
    let sources = match value {
        Value::Array(items) => items,
        one => vec![one],
    };
    for source in sources {
        let Value::Object(entries) = source else {
            return Err(error("map merge requires map or sequence of maps as the value", at));
        };
        for (key, value) in entries {
            if !map.contains_key(&key) {
                merged.insert(key.clone());
                map.insert(key, value);
            }
        }
    }
    Ok(())
}
