//! From a request's body to an object of the resource's kind.

use std::sync::Arc;

use bytes::Bytes;
use machinery::json::{self, Limits};
use machinery::{GroupVersion, Gvk};
use schema::resource::ResourceDef;
use schema::{CoerceMode, Schema, Types};
use serde_json::{Value, json};

use super::managed;
use super::typing::Typing;
use crate::registry::{Body, Context, Error, FieldValidation, Media, Registry, Target};

/// A body's content before it is known to be of the right kind.
#[derive(Default)]
pub(super) struct Raw {
    /// The content; of a protobuf body as JSON.
    pub(super) value: Value,
    /// What a strict decoder objects to so far, in upstream's words.
    pub(super) problems: Vec<String>,
    /// The document of JSON that it was read from; empty if it wasn't.
    pub(super) document: Bytes,
}

impl Registry {
    /// The kind of `resource` in `version`.
    pub(super) fn kind(resource: &ResourceDef, version: &str) -> Gvk {
        GroupVersion::new(&resource.group, version).kind(&resource.kind)
    }

    /// The schema of a kind that the catalog serves.
    pub(super) fn schema(&self, kind: &Gvk) -> Result<Arc<Schema>, Error> {
        let schema = self.types.kind(kind).cloned();
        schema.ok_or_else(|| Error::internal(format!("no schema for {kind:?}")))
    }

    /// A body as JSON, for who only wants to know what was sent; `None` where it is none.
    pub(crate) fn document(&self, media: Media, bytes: &Bytes) -> Option<Value> {
        let body = Body { media, bytes: bytes.clone() };
        self.parse(&body).ok().map(|raw| raw.value)
    }

    /// Parses a body, whatever its form.
    pub(super) fn parse(&self, body: &Body) -> Result<Raw, Error> {
        let limits = Limits::default();
        let parsed = match body.media {
            Media::Json => json::parse(&body.bytes, &limits),
            Media::Yaml => json::yaml(&body.bytes, &limits),
            Media::Protobuf => return self.parse_protobuf(&body.bytes),
        };
        let parsed = parsed.map_err(|error| match body.media {
            Media::Yaml => Error::bad_request(error.message),
            _ => Error::bad_request(format!("{NO_KIND}{}", error.message)),
        })?;
        let duplicate = |path: String| {
            if path.contains(' ') { path } else { format!("duplicate field {path:?}") }
        };
        let problems = parsed.duplicates.into_iter().map(duplicate).collect();
        let document = match body.media {
            Media::Json => body.bytes.clone(),
            Media::Yaml | Media::Protobuf => Bytes::new(),
        };
        Ok(Raw { value: parsed.value, problems, document })
    }

    fn parse_protobuf(&self, bytes: &[u8]) -> Result<Raw, Error> {
        let bad = |error: schema::proto::ProtoError| Error::bad_request(error.to_string());
        let envelope = schema::proto::decode_envelope(bytes).map_err(bad)?;
        let version = GroupVersion::parse(envelope.api_version)
            .ok_or_else(|| Error::bad_request("the body has no apiVersion"))?;
        let kind = version.kind(envelope.kind);
        let mut value = match Types::known(&kind) {
            Some(known) => schema::proto::decode_as(&known, &kind, envelope.raw),
            // The kinds that belong to every group, as options.
            None => schema::proto::decode(&self.types, &kind, envelope.raw),
        }
        .map_err(bad)?;
        value["apiVersion"] = json!(version.to_string());
        value["kind"] = json!(&*kind.kind);
        Ok(Raw { value, problems: Vec::new(), document: Bytes::new() })
    }

    /// Parses a body as an object of the target's kind.
    pub(super) fn decode(
        &self,
        ctx: &Context,
        target: &Target,
        body: &Body,
        validation: FieldValidation,
    ) -> Result<Value, Error> {
        let kind = Self::kind(&target.resource, &target.version);
        let typing = || self.typing(target);
        self.decode_kind(ctx, &kind, typing, body, validation)
    }

    /// Parses a body as an object of one of the server's own kinds.
    pub(super) fn decode_own(
        &self,
        ctx: &Context,
        kind: &Gvk,
        body: &Body,
        validation: FieldValidation,
    ) -> Result<Value, Error> {
        let typing = || self.schema(kind).map(Typing::Builtin);
        self.decode_kind(ctx, kind, typing, body, validation)
    }

    fn decode_kind(
        &self,
        ctx: &Context,
        kind: &Gvk,
        typing: impl FnOnce() -> Result<Typing, Error>,
        body: &Body,
        validation: FieldValidation,
    ) -> Result<Value, Error> {
        let unreadable = |error: Error| {
            let (name, why, body) = (&kind.kind, error.message(), summary(&body.bytes));
            Error::bad_request(format!(
                "the object provided is unrecognized (must be of type {name}): {why} ({body})"
            ))
        };
        let raw = self.parse(body).and_then(readable).map_err(unreadable)?;
        self.identify(&raw.value, kind)?;
        let typing = typing()?;
        Self::typed(ctx, &typing, kind, raw, validation).map_err(|why| {
            let (name, version) = (&kind.kind, &kind.group_version.version);
            Error::bad_request(format!(
                "{name} in version {version:?} cannot be handled as a {name}: {why}"
            ))
        })
    }

    /// Makes content an object of `kind`, as a strict or a lenient decoder does. What the content
    /// says of its own kind is overwritten.
    ///
    /// # Errors
    /// Why it is none, in the words of upstream's decoder.
    pub(super) fn typed(
        ctx: &Context,
        typing: &Typing,
        kind: &Gvk,
        raw: Raw,
        validation: FieldValidation,
    ) -> Result<Value, String> {
        let Raw { mut value, mut problems, document } = raw;
        let mode = match validation {
            FieldValidation::Ignore => CoerceMode::Drop,
            FieldValidation::Warn | FieldValidation::Strict => CoerceMode::Report,
        };
        let reset = managed::asks_for_reset(&value);
        let unknown = typing.coerce(&mut value, mode).map_err(|error| error.to_string())?;
        if reset {
            managed::keep_reset(&mut value);
        }
        let from_yaml = problems.iter().any(|problem| problem.starts_with("line "));
        problems.extend(unknown.iter().map(ToString::to_string));
        if problems.len() > 1 && typing.facts().is_some() {
            in_document_order(&document, &mut problems);
        }
        match validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => problems.into_iter().for_each(|problem| ctx.warn(problem)),
            FieldValidation::Strict if problems.is_empty() => {}
            FieldValidation::Strict => {
                let problems = if from_yaml {
                    // Upstream's YAML parser tells its own problems, and no others.
                    let lines = problems.iter().filter(|problem| problem.starts_with("line "));
                    let lines = lines.map(|line| format!("\n  {line}")).collect::<String>();
                    format!("yaml: unmarshal errors:{lines}")
                } else {
                    problems.join(", ")
                };
                return Err(format!("strict decoding error: {problems}"));
            }
        }
        value["apiVersion"] = json!(kind.group_version.to_string());
        value["kind"] = json!(&*kind.kind);
        Ok(value)
    }

    /// Refuses content that says it is of another kind; it may leave out what it is.
    pub(super) fn identify(&self, value: &Value, kind: &Gvk) -> Result<(), Error> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
        let (version, name) = (text("apiVersion"), text("kind"));
        let version = match version {
            "" => Some(kind.group_version.clone()),
            version => GroupVersion::parse(version),
        };
        let Some(version) = version else {
            return Err(Error::bad_request("unexpected GroupVersion string"));
        };
        let given = if name.is_empty() { kind.clone().kind } else { name.into() };
        let given = Gvk { group_version: version, kind: given };
        if given == *kind {
            return Ok(());
        }
        let (here, there) = (internal(&given), internal(kind));
        let expected = &kind.group_version;
        let why = if !self.knows(&given) {
            let Gvk { group_version, kind } = &given;
            let version = group_version.to_string();
            format!("no kind \"{kind}\" is registered for version {version:?}")
        } else if here == there {
            let given = &given.group_version;
            return Err(Error::bad_request(format!(
                "the API version in the data ({given}) does not match the expected API version \
                 ({expected})"
            )));
        } else {
            let (version, name) = (&given.group_version.version, &given.kind);
            format!("converting ({version}.{name}) to ({there}): unknown conversion")
        };
        let (version, name) = (&given.group_version.version, &given.kind);
        let expected = &kind.kind;
        Err(Error::bad_request(format!(
            "{name} in version {version:?} cannot be handled as a {expected}: {why}"
        )))
    }

    /// Whether there is such a type, of an object or of a list.
    fn knows(&self, kind: &Gvk) -> bool {
        let group = &kind.group_version.group;
        let lists = |resource: &ResourceDef| {
            resource.list_kind == kind.kind
                && resource.group == *group
                && resource.version(&kind.group_version.version).is_some()
        };
        self.types.kind(kind).is_some()
            || self.types.resources().iter().any(|resource| lists(resource))
    }
}

/// Sorts problems as Go's decoder comes upon them. It reads structs key by key, while of custom
/// resources all duplicates are found before the first unknown field.
fn in_document_order(document: &[u8], problems: &mut Vec<String>) {
    const DUPLICATE: &str = "duplicate field ";
    let path = |problem: &str| {
        let (_, path) = problem.split_once(" field ").unwrap_or_default();
        path.trim_matches('"').to_owned()
    };
    let paths = problems.iter().map(|problem| path(problem)).collect::<Vec<_>>();
    let paths = paths.iter().map(String::as_str).collect::<Vec<_>>();
    let places = json::appearances(document, &paths, &Limits::default());
    let placed = places.iter().zip(std::mem::take(problems));
    let mut placed = placed
        .map(|([first, second], problem)| {
            (if problem.starts_with(DUPLICATE) { *second } else { *first }, problem)
        })
        .collect::<Vec<_>>();
    placed.sort_by_key(|(place, _)| *place);
    problems.extend(placed.into_iter().map(|(_, problem)| problem));
}

/// What upstream's decoder says before why it cannot tell what a body is.
const NO_KIND: &str = "couldn't get version/kind; json parse error: ";

/// Checks that content says of itself what it is in the form of an object. Null is an empty one.
fn readable(mut raw: Raw) -> Result<Raw, Error> {
    let wrong = |what: &str, wanted: &str| {
        let why = format!("{NO_KIND}json: cannot unmarshal {what} into {wanted}");
        Err(Error::bad_request(why))
    };
    match &raw.value {
        Value::Null => raw.value = json!({}),
        Value::Object(fields) => {
            for name in ["apiVersion", "kind"] {
                let what = match fields.get(name) {
                    None | Some(Value::Null | Value::String(_)) => continue,
                    Some(other) => go_name(other),
                };
                return wrong(what, &format!("Go struct field .{name} of type string"));
            }
            let version = fields.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            if !version.is_empty() && GroupVersion::parse(version).is_none() {
                let why = format!("unexpected GroupVersion string: {version}");
                return Err(Error::bad_request(why));
            }
        }
        other => return wrong(go_name(other), "Go value of an object's type"),
    }
    Ok(raw)
}

/// What Go's decoder calls a JSON value of a wrong type.
pub(super) fn go_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The type into which upstream converts objects of all versions, as its messages name it.
fn internal(kind: &Gvk) -> String {
    let group = match &*kind.group_version.group {
        // Events of both groups are one type.
        "" | "events.k8s.io" => "core",
        group => group.split('.').next().unwrap_or(group),
    };
    format!("{group}.{}", kind.kind)
}

/// The beginning of a body, as messages show it: text of JSON, hexadecimal of anything else.
fn summary(body: &[u8]) -> String {
    const MOST: usize = 30;
    if body.is_empty() {
        return "<empty>".to_owned();
    }
    let shown = body.get(..MOST).unwrap_or(body);
    let mut text = if body.first() == Some(&b'{') {
        String::from_utf8_lossy(shown).into_owned()
    } else {
        shown.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    if body.len() > MOST {
        text.push_str(" ...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries() {
        let check = |body: &[u8], expect: &str| assert_eq!(summary(body), expect);
        check(b"", "<empty>");
        check(b"{}", "{}");
        check(b"hi", "6869");
        check(&[b'{'; 31], &format!("{} ...", "{".repeat(30)));
        check(&[b'{', 0xff], "{\u{fffd}");
    }

    #[test]
    fn content_says_what_it_is() {
        let check = |value: Value, expect: Option<&str>| {
            let read = readable(Raw { value, ..Raw::default() });
            let why = read.err().map(|error| error.message().to_owned());
            assert_eq!(why.as_deref(), expect);
        };
        check(json!(null), None);
        check(json!({"kind": null, "apiVersion": "a/b"}), None);
        check(json!({"apiVersion": "a/b/c"}), Some("unexpected GroupVersion string: a/b/c"));
        check(
            json!({"kind": 5}),
            Some(
                "couldn't get version/kind; json parse error: json: cannot unmarshal number into \
                 Go struct field .kind of type string",
            ),
        );
    }
}
