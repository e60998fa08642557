//! Which encoding of a document a client wants.
//!
//! As kube-apiserver: the clause of the highest quality, exact ones before wildcards; JSON where
//! all is well; protobuf under its own name and under the one that clients have asked for since
//! before it was a proper media type. YAML isn't offered.

use http::HeaderMap;
use http::header::ACCEPT;

use crate::http::negotiate::JSON;
use crate::registry::{Error, Reason};

/// A clause is looked at only this far down a header: nobody sends more.
const MAX_CLAUSES: usize = 64;

/// A generation of OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V2,
    V3,
}

/// An encoding of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Protobuf,
}

// === impl Family ===

impl Family {
    /// The media type of its protobuf form.
    pub(super) fn protobuf(self) -> &'static str {
        match self {
            Self::V2 => "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            Self::V3 => "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
        }
    }

    /// The name that clients ask for it by.
    fn old_protobuf(self) -> &'static str {
        match self {
            Self::V2 => "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
            Self::V3 => "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
        }
    }
}

/// Chooses the encoding from the `Accept` header.
///
/// # Errors
/// [`Reason::NotAcceptable`] when the client takes nothing that can be given.
pub(super) fn form(headers: &HeaderMap, family: Family) -> Result<Form, Error> {
    let texts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let clauses = texts.flat_map(|text| text.split(',')).map(str::trim).filter(|c| !c.is_empty());
    let mut best: Option<((f32, u8), Form)> = None;
    let mut asked = false;
    for clause in clauses.take(MAX_CLAUSES) {
        asked = true;
        let (media, parameters) = clause.split_once(';').unwrap_or((clause, ""));
        let Some((form, exact)) = offered(media.trim(), family) else { continue };
        let quality = parameters.split(';').find_map(|part| part.trim().strip_prefix("q="));
        let quality = quality.map_or(Ok(1.0), str::parse).unwrap_or(0.0_f32);
        let rank = (quality, exact);
        if quality > 0.0 && best.is_none_or(|(held, _)| rank > held) {
            best = Some((rank, form));
        }
    }
    match best {
        Some((_, form)) => Ok(form),
        None if !asked => Ok(Form::Json),
        None => Err(not_acceptable(family)),
    }
}

/// The media type of a document that is given to a client.
///
/// # Errors
/// [`Reason::NotAcceptable`] when the client takes nothing that can be given.
pub(crate) fn media_type(headers: &HeaderMap, family: Family) -> Result<&'static str, Error> {
    Ok(match form(headers, family)? {
        Form::Json => JSON,
        Form::Protobuf => family.protobuf(),
    })
}

/// What a media range matches, and how exactly.
fn offered(media: &str, family: Family) -> Option<(Form, u8)> {
    match media {
        "*/*" => Some((Form::Json, 0)),
        "application/*" => Some((Form::Json, 1)),
        _ if media.eq_ignore_ascii_case(JSON) => Some((Form::Json, 2)),
        _ if media == family.protobuf() || media == family.old_protobuf() => {
            Some((Form::Protobuf, 2))
        }
        _ => None,
    }
}

fn not_acceptable(family: Family) -> Error {
    let message = format!(
        "only the following media types are accepted: {JSON}, {}, {}",
        family.protobuf(),
        family.old_protobuf()
    );
    Error::new(Reason::NotAcceptable, message)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn encodings() {
        let check = |accept: &'static str, expect: Option<Form>| {
            let mut headers = HeaderMap::new();
            if !accept.is_empty() {
                headers.insert(ACCEPT, HeaderValue::from_static(accept));
            }
            assert_eq!(form(&headers, Family::V2).ok(), expect, "{accept}");
        };
        check("", Some(Form::Json));
        check("*/*", Some(Form::Json));
        check("application/json", Some(Form::Json));
        check("application/json, */*", Some(Form::Json));
        check("text/html, */*;q=0.1", Some(Form::Json));
        check("application/yaml", None);
        check("text/html", None);
        check("application/json;q=0", None);
        check("application/com.github.proto-openapi.spec.v3@v1.0+protobuf", None);
        let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
        check(protobuf, Some(Form::Protobuf));
        check("application/com.github.proto-openapi.spec.v2.v1.0+protobuf", Some(Form::Protobuf));
        check(
            "application/json;q=0.5, application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            Some(Form::Protobuf),
        );
        check(
            "*/*, application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            Some(Form::Protobuf),
        );
    }
}
