//! Rules of conversion between versions, by webhook or by nothing but the version's name.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::{FieldError, FieldPath, name};
use serde_json::{Value, json};

use super::text;
use super::tolerance::Tolerance;
use crate::structural::uri;

/// The versions of ConversionReview that the server speaks.
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

/// What is wrong with `spec.conversion`.
///
/// Paths are those of upstream's internal form, in which the webhook's parts stand one level up.
pub(super) fn validate(crd: &Value, tolerance: &Tolerance) -> Vec<FieldError> {
    let Some(conversion) = crd.pointer("/spec/conversion").filter(|c| c.is_object()) else {
        return Vec::new();
    };
    let at = FieldPath::root("spec").child("conversion");
    let mut problems = Vec::new();
    let strategy = text(conversion, &["strategy"]);
    let path = at.child("strategy");
    match strategy {
        "" => problems.push(FieldError::required(&path, "")),
        "None" | "Webhook" => {}
        _ => {
            let known = ["None", "Webhook"];
            problems.push(FieldError::not_supported(&path, &strategy.into(), &known));
        }
    }
    let client = conversion.pointer("/webhook/clientConfig").filter(|c| c.is_object());
    let reviews = reviews(crd);
    if strategy != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            problems.push(FieldError::forbidden(&at.child("webhookClientConfig"), why));
        }
        if !reviews.is_empty() {
            problems.push(FieldError::forbidden(&at.child("conversionReviewVersions"), why));
        }
        return problems;
    }
    problems.extend(validate_client(client, tolerance, &at.child("webhookClientConfig")));
    problems.extend(validate_reviews(&reviews, tolerance, &at.child("conversionReviewVersions")));
    problems
}

/// Whether one of a CRD's review versions is known, or it has none.
pub(super) fn knows_a_review(crd: &Value) -> bool {
    let reviews = reviews(crd);
    reviews.is_empty() || reviews.iter().any(|version| REVIEWS.contains(version))
}

/// Whether a CRD's CA bundle is one that can't be read.
pub(super) fn has_invalid_ca(crd: &Value) -> bool {
    let bundle = text(crd, &["spec", "conversion", "webhook", "clientConfig", "caBundle"]);
    !bundle.is_empty() && read_ca_bundle(bundle).is_err()
}

fn reviews(crd: &Value) -> Vec<&str> {
    let list = crd.pointer("/spec/conversion/webhook/conversionReviewVersions");
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn validate_client(
    client: Option<&Value>,
    tolerance: &Tolerance,
    at: &FieldPath,
) -> Vec<FieldError> {
    let Some(client) = client else {
        return vec![FieldError::required(at, "required when strategy is set to Webhook")];
    };
    let url = client.get("url").and_then(Value::as_str);
    let service = client.get("service").filter(|s| s.is_object());
    let mut problems = match (url, service) {
        (Some(url), None) => validate_url(url, &at.child("url")),
        (None, Some(service)) => validate_service(service, &at.child("service")),
        _ => vec![FieldError::required(at, "exactly one of url or service is required")],
    };
    let bundle = text(client, &["caBundle"]);
    if !bundle.is_empty()
        && !tolerance.invalid_ca_bundle
        && let Err(why) = read_ca_bundle(bundle)
    {
        let why = format!("unable to load root certificates: {why}");
        problems.push(FieldError::invalid_str(&at.child("caBundle"), bundle, why));
    }
    problems
}

fn validate_url(url: &str, at: &FieldPath) -> Vec<FieldError> {
    const FORM: &str = "; desired format: https://host[/path]";
    let parts = match uri::parse(url) {
        Ok(parts) => parts,
        Err(why) => {
            return vec![FieldError::required(at, format!("url must be a valid URL: {why}{FORM}"))];
        }
    };
    let mut problems = Vec::new();
    if !parts.scheme.eq_ignore_ascii_case("https") {
        let why = format!("'https' is the only allowed URL scheme{FORM}");
        problems.push(FieldError::invalid_str(at, &parts.scheme.to_lowercase(), why));
    }
    if parts.host.is_empty() {
        problems.push(FieldError::invalid_str(at, "", format!("host must be specified{FORM}")));
    }
    if let Some(user) = parts.user {
        let why = "user information is not permitted in the URL";
        problems.push(FieldError::invalid_str(at, user, why));
    }
    if !parts.fragment.is_empty() {
        let why = "fragments are not permitted in the URL";
        problems.push(FieldError::invalid_str(at, parts.fragment, why));
    }
    if !parts.query.is_empty() {
        let why = "query parameters are not permitted in the URL";
        problems.push(FieldError::invalid_str(at, parts.query, why));
    }
    problems
}

fn validate_service(service: &Value, at: &FieldPath) -> Vec<FieldError> {
    let mut problems = Vec::new();
    // Upstream takes one for the other when it tells which is missing.
    for (field, told) in [("namespace", "name"), ("name", "namespace")] {
        if text(service, &[field]).is_empty() {
            problems.push(FieldError::required(&at.child(told), ""));
        }
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or_default();
    if !(1..=65535).contains(&port) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        problems.push(FieldError::invalid(&at.child("port"), &port.into(), why));
    }
    let path = text(service, &["path"]);
    let at = at.child("path");
    let mut wrong = |why: String| problems.push(FieldError::invalid_str(&at, path, why));
    match path {
        "" | "/" => return problems,
        "//" => {
            wrong("segment[0] may not be empty".into());
            return problems;
        }
        _ => {}
    }
    if !path.starts_with('/') {
        wrong("must start with a '/'".into());
    }
    let mut rest = path.chars();
    rest.next();
    let rest = rest.as_str();
    for (index, segment) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if segment.is_empty() {
            wrong(format!("segment[{index}] may not be empty"));
            continue;
        }
        for why in name::dns1123_subdomain(segment) {
            wrong(format!("segment[{index}]: {why}"));
        }
    }
    problems
}

fn validate_reviews(versions: &[&str], tolerance: &Tolerance, at: &FieldPath) -> Vec<FieldError> {
    if versions.is_empty() {
        return vec![FieldError::required(at, "")];
    }
    let mut problems = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        let at = at.index(index);
        if versions.iter().take(index).any(|earlier| earlier == version) {
            problems.push(FieldError::invalid_str(&at, version, "duplicate version"));
            continue;
        }
        let wrong = name::dns1035_label(version);
        problems.extend(wrong.into_iter().map(|why| FieldError::invalid_str(&at, version, why)));
    }
    if !tolerance.unknown_reviews && !versions.iter().any(|version| REVIEWS.contains(version)) {
        let why = format!("must include at least one of {}", REVIEWS.join(", "));
        problems.push(FieldError::invalid(at, &json!(versions), why));
    }
    problems
}

/// Looks for a certificate in base64 text of PEM. Whether it is one that can be used shows when
/// the webhook is called.
fn read_ca_bundle(base64: &str) -> Result<(), &'static str> {
    const NO_PEM: &str = "unable to parse bytes as PEM block";
    const MALFORMED: &str = "failed to parse certificate: x509: malformed certificate";
    let bytes = STANDARD.decode(base64).map_err(|_| NO_PEM)?;
    let pem = String::from_utf8(bytes).map_err(|_| NO_PEM)?;
    let (_, rest) = pem.split_once("-----BEGIN CERTIFICATE-----").ok_or(NO_PEM)?;
    let (body, _) = rest.split_once("-----END CERTIFICATE-----").ok_or(NO_PEM)?;
    let body: String = body.split_whitespace().collect();
    let der = STANDARD.decode(body).map_err(|_| NO_PEM)?;
    // A certificate is a DER sequence.
    if der.first() == Some(&0x30) { Ok(()) } else { Err(MALFORMED) }
}
