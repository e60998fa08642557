//! Content negotiation: which form a body has, and which form the answer takes.
//!
//! Protobuf comes last, whatever the order of `Accept`: clients that prefer it name JSON too, and
//! objects are JSON in memory. Only a client that takes nothing else gets it, and one that asks for
//! metadata alone: Go's clients tell items of such lists by their form, too.

#[cfg(test)]
mod tests;

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};

use crate::registry::{Error, Media, PatchType, Reason};

/// The media type of JSON.
pub(crate) const JSON: &str = "application/json";
/// The media type of YAML.
pub(crate) const YAML: &str = "application/yaml";
/// The media type of Kubernetes' protobuf envelope.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// An `Accept` clause is looked at only this far down a header: nobody sends more.
const MAX_CLAUSES: usize = 64;

/// The bytes of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Encoding {
    #[default]
    Json,
    Yaml,
    Protobuf,
}

/// What is shown of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// The object itself.
    #[default]
    Object,
    /// `meta.k8s.io` Table, in `v1` or `v1beta1`.
    Table(MetaVersion),
    /// Its metadata only (`PartialObjectMetadata`, or the list of these).
    Metadata(MetaVersion),
    /// `apidiscovery.k8s.io/v2 APIGroupDiscoveryList`.
    Discovery,
}

/// A version of `meta.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MetaVersion {
    V1,
    V1Beta1,
}

/// The form that an answer takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) encoding: Encoding,
    pub(crate) shape: Shape,
}

/// Which shapes an endpoint can give beside the plain one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offers {
    /// Table.
    pub(crate) tables: bool,
    /// PartialObjectMetadata, and lists of it.
    pub(crate) metadata: bool,
    /// Aggregated discovery.
    pub(crate) discovery: bool,
    /// Protobuf.
    pub(crate) protobuf: bool,
}

// === impl MetaVersion ===

impl MetaVersion {
    /// The whole `apiVersion`.
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

// === impl Encoding ===

impl Encoding {
    /// The media type of an answer.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::Yaml => YAML,
            Self::Protobuf => PROTOBUF,
        }
    }
}

/// Chooses the answer's form from the `Accept` header.
///
/// # Errors
/// [`Reason::NotAcceptable`] when the client takes nothing that can be given.
pub(crate) fn accept(headers: &HeaderMap, offers: Offers) -> Result<Accepted, Error> {
    let mut values = headers.get_all(ACCEPT).iter();
    let Some(first) = values.next() else {
        return Ok(Accepted::default());
    };
    if matches!(first.as_bytes(), b"application/json" | b"*/*") {
        return Ok(Accepted::default());
    }
    let texts = std::iter::once(first).chain(values).filter_map(|value| value.to_str().ok());
    let mut best: Option<(Rank, Accepted)> = None;
    let clauses = texts.flat_map(|text| text.split(',')).map(str::trim).filter(|c| !c.is_empty());
    let mut seen = false;
    for (index, clause) in clauses.take(MAX_CLAUSES).enumerate() {
        seen = true;
        let Some((accepted, quality)) = read_clause(clause, offers) else { continue };
        let text =
            accepted.encoding != Encoding::Protobuf || matches!(accepted.shape, Shape::Metadata(_));
        let rank = Rank { text, quality, earlier: MAX_CLAUSES - index };
        if best.as_ref().is_none_or(|(held, _)| rank > *held) {
            best = Some((rank, accepted));
        }
    }
    match best {
        Some((_, accepted)) => Ok(accepted),
        None if !seen => Ok(Accepted::default()),
        None => Err(not_acceptable(offers)),
    }
}

/// The order of preference between acceptable clauses; the greatest wins.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    text: bool,
    /// Thousandths.
    quality: u16,
    earlier: usize,
}

fn read_clause(clause: &str, offers: Offers) -> Option<(Accepted, u16)> {
    let mut parts = clause.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    let encoding = match media {
        "*/*" | "application/*" => Encoding::Json,
        _ if media.eq_ignore_ascii_case(JSON) => Encoding::Json,
        _ if media.eq_ignore_ascii_case(YAML) => Encoding::Yaml,
        _ if media.eq_ignore_ascii_case(PROTOBUF) && offers.protobuf => Encoding::Protobuf,
        _ => return None,
    };
    let (mut group, mut version, mut kind, mut quality) = ("", "", "", 1000);
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        match name.trim() {
            "g" => group = value.trim(),
            "v" => version = value.trim(),
            "as" => kind = value.trim(),
            "q" => quality = parse_quality(value.trim())?,
            _ => {}
        }
    }
    if quality == 0 {
        return None;
    }
    let shape = match (kind, group) {
        ("", _) => Shape::Object,
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io") if offers.discovery && version == "v2" => {
            Shape::Discovery
        }
        (_, "meta.k8s.io") => {
            let version = match version {
                "v1" => MetaVersion::V1,
                "v1beta1" => MetaVersion::V1Beta1,
                _ => return None,
            };
            match kind {
                "Table" if offers.tables => Shape::Table(version),
                "PartialObjectMetadata" | "PartialObjectMetadataList" if offers.metadata => {
                    Shape::Metadata(version)
                }
                _ => return None,
            }
        }
        _ => return None,
    };
    // Tables and discovery are given as JSON only: a client that names another form first takes
    // its next clause.
    if matches!(shape, Shape::Table(_) | Shape::Discovery) && encoding != Encoding::Json {
        return None;
    }
    Some((Accepted { encoding, shape }, quality))
}

/// A quality of `0` to `1` with at most three digits, in thousandths.
fn parse_quality(text: &str) -> Option<u16> {
    let value = text.parse::<f32>().ok().filter(|value| (0.0..=1.0).contains(value))?;
    // In range by the check above.
    Some((value * 1000.0).round() as u16)
}

fn not_acceptable(offers: Offers) -> Error {
    let mut types = vec![JSON, YAML];
    if offers.protobuf {
        types.push(PROTOBUF);
    }
    let message = format!("only the following media types are accepted: {}", types.join(", "));
    Error::new(Reason::NotAcceptable, message)
}

/// The form of a request's body; JSON when no type is given.
///
/// # Errors
/// [`Reason::UnsupportedMediaType`] for any other type.
pub(crate) fn content_type(headers: &HeaderMap) -> Result<Media, Error> {
    let media = media_type(headers);
    if media.is_empty() || media.eq_ignore_ascii_case(JSON) {
        Ok(Media::Json)
    } else if media.eq_ignore_ascii_case(PROTOBUF) {
        Ok(Media::Protobuf)
    } else if media.eq_ignore_ascii_case(YAML) {
        Ok(Media::Yaml)
    } else {
        Err(unsupported(&[JSON, YAML, PROTOBUF]))
    }
}

/// The kind of a patch, and the form of its body. `strategic` says whether the resource has
/// strategic merge patches.
///
/// # Errors
/// [`Reason::UnsupportedMediaType`] that lists what the resource takes.
pub(crate) fn patch_type(headers: &HeaderMap, strategic: bool) -> Result<PatchType, Error> {
    const JSON_PATCH: &str = "application/json-patch+json";
    const MERGE: &str = "application/merge-patch+json";
    const STRATEGIC: &str = "application/strategic-merge-patch+json";
    const APPLY: &str = "application/apply-patch+yaml";
    match media_type(headers) {
        JSON_PATCH => Ok(PatchType::Json),
        MERGE => Ok(PatchType::Merge),
        STRATEGIC if strategic => Ok(PatchType::Strategic),
        APPLY => Ok(PatchType::Apply),
        _ if strategic => Err(unsupported(&[JSON_PATCH, MERGE, STRATEGIC, APPLY])),
        _ => Err(unsupported(&[JSON_PATCH, MERGE, APPLY])),
    }
}

/// Whether the client takes gzip.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok()).any(|text| {
        text.split(',').any(|clause| {
            let (name, parameters) = clause.split_once(';').unwrap_or((clause, ""));
            let refused = parameters.trim().strip_prefix("q=").and_then(parse_quality) == Some(0);
            name.trim().eq_ignore_ascii_case("gzip") && !refused
        })
    })
}

/// The `Content-Type` without its parameters.
fn media_type(headers: &HeaderMap) -> &str {
    let text = headers.get(CONTENT_TYPE).map_or(Ok(""), |value| value.to_str());
    text.unwrap_or("?").split(';').next().unwrap_or_default().trim()
}

fn unsupported(types: &[&str]) -> Error {
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        types.join(", ")
    );
    Error::new(Reason::UnsupportedMediaType, message)
}
