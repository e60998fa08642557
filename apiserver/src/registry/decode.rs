//! From a request's body to an object of the resource's kind.

use std::sync::Arc;

use machinery::json::{self, Limits};
use machinery::{GroupVersion, Gvk};
use schema::resource::ResourceDef;
use schema::{CoerceMode, Schema};
use serde_json::{Value, json};

use crate::registry::{Body, Context, Error, FieldValidation, Media, Registry, Target};

/// A body's content before it is known to be of the right kind.
pub(super) struct Raw {
    /// The content; of a protobuf body as JSON.
    pub(super) value: Value,
    /// What a strict decoder objects to so far, in upstream's words.
    pub(super) problems: Vec<String>,
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

    /// Parses a body, whatever its form.
    pub(super) fn parse(&self, body: &Body) -> Result<Raw, Error> {
        let limits = Limits::default();
        let parsed = match body.media {
            Media::Json => json::parse(&body.bytes, &limits),
            Media::Yaml => json::yaml(&body.bytes, &limits),
            Media::Protobuf => return self.parse_protobuf(&body.bytes),
        };
        let parsed = parsed.map_err(|error| Error::bad_request(error.to_string()))?;
        let duplicate = |path: String| {
            if path.contains(' ') { path } else { format!("duplicate field {path:?}") }
        };
        let problems = parsed.duplicates.into_iter().map(duplicate).collect();
        Ok(Raw { value: parsed.value, problems })
    }

    fn parse_protobuf(&self, bytes: &[u8]) -> Result<Raw, Error> {
        let bad = |error: schema::proto::ProtoError| Error::bad_request(error.to_string());
        let envelope = schema::proto::decode_envelope(bytes).map_err(bad)?;
        let version = GroupVersion::parse(envelope.api_version)
            .ok_or_else(|| Error::bad_request("the body has no apiVersion"))?;
        let kind = version.kind(envelope.kind);
        let mut value = schema::proto::decode(&self.types, &kind, envelope.raw).map_err(bad)?;
        value["apiVersion"] = json!(version.to_string());
        value["kind"] = json!(&*kind.kind);
        Ok(Raw { value, problems: Vec::new() })
    }

    /// Parses a body as an object of the target's kind, or of `kind` where a subresource has
    /// another one.
    pub(super) fn decode(
        &self,
        ctx: &Context,
        target: &Target,
        body: &Body,
        validation: FieldValidation,
    ) -> Result<Value, Error> {
        let kind = Self::kind(&target.resource, &target.version);
        let raw = self.parse(body).map_err(|error| unreadable(&kind, &error))?;
        self.typed(ctx, &kind, raw, validation)
    }

    /// Makes content an object of `kind`, as a strict or a lenient decoder does.
    pub(super) fn typed(
        &self,
        ctx: &Context,
        kind: &Gvk,
        raw: Raw,
        validation: FieldValidation,
    ) -> Result<Value, Error> {
        let Raw { mut value, mut problems } = raw;
        identify(&mut value, kind)?;
        let schema = self.schema(kind)?;
        let mode = match validation {
            FieldValidation::Ignore => CoerceMode::Drop,
            FieldValidation::Warn | FieldValidation::Strict => CoerceMode::Report,
        };
        let version = &kind.group_version.version;
        let unknown = schema.coerce(&mut value, mode).map_err(|error| {
            let name = &kind.kind;
            Error::bad_request(format!(
                "{name} in version {version:?} cannot be handled as a {name}: {error}"
            ))
        })?;
        problems.extend(unknown.iter().map(ToString::to_string));
        match validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => problems.into_iter().for_each(|problem| ctx.warn(problem)),
            FieldValidation::Strict if problems.is_empty() => {}
            FieldValidation::Strict => {
                let name = &kind.kind;
                let problems = problems.join(", ");
                return Err(Error::bad_request(format!(
                    "{name} in version {version:?} cannot be handled as a {name}: strict decoding \
                     error: {problems}"
                )));
            }
        }
        value["apiVersion"] = json!(kind.group_version.to_string());
        value["kind"] = json!(&*kind.kind);
        Ok(value)
    }
}

/// Fills in `apiVersion` and `kind`, which a body may leave out, or refuses others.
fn identify(value: &mut Value, kind: &Gvk) -> Result<(), Error> {
    let Value::Object(fields) = value else {
        return Err(Error::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): it is no JSON object",
            kind.kind
        )));
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let (given_version, given_kind) = (text("apiVersion"), text("kind"));
    let version = kind.group_version.to_string();
    if !given_version.is_empty() && given_version != version {
        return Err(Error::bad_request(format!(
            "the API version in the data ({given_version}) does not match the expected API version \
             ({version})"
        )));
    }
    if !given_kind.is_empty() && given_kind != &*kind.kind {
        let (name, short) = (&kind.kind, &kind.group_version.version);
        return Err(Error::bad_request(format!(
            "{given_kind} in version {short:?} cannot be handled as a {name}: converting \
             ({given_kind}) to ({name}): unknown conversion"
        )));
    }
    Ok(())
}

fn unreadable(kind: &Gvk, error: &Error) -> Error {
    Error::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {}",
        kind.kind,
        error.message()
    ))
}
