//! When requests are old enough to go. The times are upstream's.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use machinery::meta::{get, get_str};
use serde_json::Value;
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{APPROVED, DENIED, FAILED};

/// How long after the decision a request is kept whose outcome is there.
const DECIDED: SignedDuration = SignedDuration::from_hours(1);

/// How long a request waits for a decision, and an approved one for its certificate.
const PENDING: SignedDuration = SignedDuration::from_hours(24);

/// Whether a request has been fulfilled or refused for an hour, has waited for a day, or holds a
/// certificate that has ended.
pub(crate) fn is_old(object: &Value, now: Timestamp) -> bool {
    let time = |holder: &Value, path: &[&str]| -> Option<Timestamp> {
        get_str(holder, path)?.parse().ok()
    };
    let past = |since: Option<Timestamp>, length| {
        since.is_some_and(|since| now.duration_since(since) > length)
    };
    let conditions = get(object, &["status", "conditions"]).and_then(Value::as_array);
    let conditions = conditions.map_or(&[][..], Vec::as_slice);
    if conditions.is_empty() {
        return past(time(object, &["metadata", "creationTimestamp"]), PENDING);
    }
    let certificate = get_str(object, &["status", "certificate"]).filter(|text| !text.is_empty());
    conditions.iter().any(|condition| {
        let updated = time(condition, &["lastUpdateTime"]);
        match get_str(condition, &["type"]) {
            Some(APPROVED) => match certificate {
                Some(certificate) => past(updated, DECIDED) || is_ended(certificate, now),
                None => past(updated, PENDING),
            },
            Some(DENIED | FAILED) => past(updated, DECIDED),
            _ => false,
        }
    })
}

/// Whether a certificate in base64 has ended; one that can't be read has not.
fn is_ended(certificate: &str, now: Timestamp) -> bool {
    let end = || {
        let pem = STANDARD.decode(certificate).ok()?;
        let block = Pem::iter_from_buffer(&pem).next()?.ok()?;
        let (_, certificate) = X509Certificate::from_der(&block.contents).ok()?;
        Some(certificate.validity().not_after.timestamp())
    };
    end().is_some_and(|end| now.as_second() > end)
}
