//! From the registry's errors to `Status` bodies: the only place that knows HTTP status codes.
//!
//! Texts and details are the error's own, but for failures of the server itself: their cause goes
//! to the log and the client is told where to look.

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use machinery::status::{ListMeta, Status, StatusCause, StatusDetails};
use tracing::error;

use super::body::Body;
use super::negotiate::Encoding;
use crate::audit::Record;
use crate::registry::{Details, Error, Reason, View};

/// The HTTP code of a reason.
pub(crate) fn code(reason: Reason) -> StatusCode {
    match reason {
        Reason::BadRequest => StatusCode::BAD_REQUEST,
        Reason::Unauthorized => StatusCode::UNAUTHORIZED,
        Reason::Forbidden => StatusCode::FORBIDDEN,
        Reason::NotFound => StatusCode::NOT_FOUND,
        Reason::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Reason::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
        Reason::AlreadyExists | Reason::Conflict => StatusCode::CONFLICT,
        Reason::Expired => StatusCode::GONE,
        Reason::RequestEntityTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Reason::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Reason::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        Reason::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
        Reason::InternalError | Reason::Unknown => StatusCode::INTERNAL_SERVER_ERROR,
        Reason::ServiceUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        Reason::Timeout => StatusCode::GATEWAY_TIMEOUT,
    }
}

/// The HTTP code of an error: its reason's, unless a webhook has given another.
pub(crate) fn code_of(error: &Error) -> StatusCode {
    let told = error.told_status().and_then(|(code, _)| StatusCode::from_u16(code).ok());
    told.unwrap_or_else(|| code(error.reason()))
}

/// The word for a reason on the wire; empty for [`Reason::Unknown`].
fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::BadRequest => "BadRequest",
        Reason::Unauthorized => "Unauthorized",
        Reason::Forbidden => "Forbidden",
        Reason::NotFound => "NotFound",
        Reason::AlreadyExists => "AlreadyExists",
        Reason::Conflict => "Conflict",
        Reason::Invalid => "Invalid",
        Reason::MethodNotAllowed => "MethodNotAllowed",
        Reason::NotAcceptable => "NotAcceptable",
        Reason::UnsupportedMediaType => "UnsupportedMediaType",
        Reason::RequestEntityTooLarge => "RequestEntityTooLarge",
        Reason::Expired => "Expired",
        Reason::Timeout => "Timeout",
        Reason::TooManyRequests => "TooManyRequests",
        Reason::ServiceUnavailable => "ServiceUnavailable",
        Reason::InternalError => "InternalError",
        Reason::Unknown => "",
    }
}

/// The `Status` that tells of an error. A cause that only the server may know is logged under
/// `audit_id`.
pub(crate) fn status_of(failure: &Error, audit_id: &str) -> Status {
    let reason = failure.reason();
    let mut message = failure.message().to_owned();
    if let Some(cause) = std::error::Error::source(failure) {
        error!(audit_id, error = chain(cause), "request failed: {message}");
    }
    if reason == Reason::InternalError {
        message = format!("internal error, see the server's log for audit ID {audit_id}");
    }
    let details = failure.details();
    let metadata = ListMeta {
        continue_: details.continue_token.clone().unwrap_or_default(),
        ..ListMeta::default()
    };
    Status {
        metadata,
        message,
        reason: failure.told_status().map_or(word(reason), |(_, reason)| reason).to_owned(),
        details: details_of(details),
        code: code_of(failure).as_u16(),
        ..Status::default()
    }
}

/// The answer that tells of an error, as one line of JSON (or protobuf, for who takes only that).
/// The audit log is told, too.
pub(crate) fn failure(
    error: &Error,
    encoding: Encoding,
    audit_id: &str,
    record: Option<&Record>,
) -> Response<Body> {
    let status = status_of(error, audit_id);
    let retry = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    let json = status.to_bytes();
    if let Some(record) = record {
        record.failed(&json);
    }
    let mut response = encoded(json, encoding);
    *response.status_mut() = code_of(error);
    if retry > 0 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry));
    }
    response
}

/// The answer to a delete that is done.
pub(crate) fn deleted(
    view: &View,
    resource: &machinery::GroupResource,
    encoding: Encoding,
) -> Response<Body> {
    let header = &view.object.header;
    let details = StatusDetails {
        name: header.name().to_string(),
        group: resource.group.to_string(),
        kind: resource.resource.to_string(),
        uid: header.uid().to_string(),
        ..StatusDetails::default()
    };
    let status = Status { status: "Success", details: Some(details), ..Status::default() };
    encoded(status.to_bytes(), encoding)
}

fn encoded(json: Vec<u8>, encoding: Encoding) -> Response<Body> {
    let (bytes, media_type) = super::encode::whole(json.into(), encoding);
    let mut response = Response::new(Body::full(bytes));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

fn details_of(details: &Details) -> Option<StatusDetails> {
    let told = StatusDetails {
        name: details.name.clone(),
        group: details.group.clone(),
        kind: details.kind.clone(),
        uid: details.uid.clone(),
        causes: details
            .causes
            .iter()
            .map(|cause| StatusCause {
                reason: cause.reason.clone(),
                message: cause.message.clone(),
                field: cause.field.clone(),
            })
            .collect(),
        retry_after_seconds: details.retry_after_seconds,
    };
    (details.shown_empty || told != StatusDetails::default()).then_some(told)
}

/// The texts of an error and of all its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use machinery::GroupResource;
    use machinery::field::{FieldError, FieldPath};
    use serde_json::{Value, json};

    use super::*;

    fn check(error: &Error, expect: &Value) {
        let status = status_of(error, "id-1");
        let mut told: Value = serde_json::from_slice(&status.to_bytes()).unwrap();
        let fields = told.as_object_mut().unwrap();
        for (name, value) in [("kind", "Status"), ("apiVersion", "v1"), ("status", "Failure")] {
            assert_eq!(fields.remove(name), Some(Value::from(value)));
        }
        assert_eq!(&told, expect);
    }

    #[test]
    fn bodies() {
        let configmaps = GroupResource::new("", "configmaps");
        let things = GroupResource::new("g.io", "things");
        check(
            &Error::not_found(&configmaps, "a"),
            &json!({
                "metadata": {}, "message": "configmaps \"a\" not found", "reason": "NotFound",
                "details": {"name": "a", "kind": "configmaps"}, "code": 404,
            }),
        );
        check(
            &Error::modified(&things, "a"),
            &json!({
                "metadata": {}, "reason": "Conflict", "code": 409,
                "details": {"name": "a", "group": "g.io", "kind": "things"},
                "message": "Operation cannot be fulfilled on things.g.io \"a\": the object has \
                            been modified; please apply your changes to the latest version and \
                            try again",
            }),
        );
        let required = FieldError::required(&FieldPath::root("metadata").child("name"), "why");
        let kind = machinery::GroupVersion::new("", "v1").kind("ConfigMap");
        check(
            &Error::invalid(&kind, "a", &[required]),
            &json!({
                "metadata": {}, "reason": "Invalid", "code": 422,
                "message": "ConfigMap \"a\" is invalid: metadata.name: Required value: why",
                "details": {"name": "a", "kind": "ConfigMap", "causes": [{
                    "reason": "FieldValueRequired", "message": "Required value: why",
                    "field": "metadata.name",
                }]},
            }),
        );
        check(
            &Error::new(Reason::Expired, "too old").continue_with("token".into()),
            &json!({
                "metadata": {"continue": "token"}, "message": "too old", "reason": "Expired",
                "code": 410,
            }),
        );
        check(
            &Error::internal("disk on fire"),
            &json!({
                "metadata": {}, "reason": "InternalError", "code": 500,
                "message": "internal error, see the server's log for audit ID id-1",
            }),
        );
        check(
            &Error::new(Reason::Unknown, "odd"),
            &json!({"metadata": {}, "message": "odd", "code": 500}),
        );
    }

    #[test]
    fn retry_after_is_a_header_too() {
        let busy = Error::new(Reason::TooManyRequests, "busy").retry_after(3);
        let response = failure(&busy, Encoding::Json, "id", None);
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()[RETRY_AFTER], "3");
    }
}
