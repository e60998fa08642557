//! Webhooks are asked about a request.

use machinery::{Gvk, Gvr};
use serde_json::Value;
use tracing::debug;

use super::Admission;
use crate::admission::{Hook, Objects};
use crate::registry::{Cause, Context, Details, Error, Registry};
use crate::webhook::admission::{Verdict, review, verdict};

/// A request as a webhook sees it.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) resource: Gvr,
    pub(super) kind: Gvk,
    pub(super) objects: Objects,
}

impl Registry {
    /// Asks a webhook. `None` if it could not be asked and that is ignored.
    ///
    /// # Errors
    /// Its refusal, or that it could not be asked.
    pub(super) async fn ask_hook(
        &self,
        ctx: &Context,
        admission: &Admission,
        hook: &Hook,
        seen: &Seen,
        mutating: bool,
    ) -> Result<Option<Verdict>, Error> {
        let attributes = &admission.attributes;
        if attributes.dry_run && !hook.takes_dry_run {
            let name = &hook.name;
            return Err(Error::bad_request(format!(
                "admission webhook {name:?} does not support dry run"
            )));
        }
        let uid = uuid::Uuid::new_v4().to_string();
        let answer = match hook.review {
            None => Err("could not create admission objects: webhook does not accept known \
                         AdmissionReview versions (v1, v1beta1)"
                .to_owned()),
            Some(version) => {
                let matched = (&seen.resource, &seen.kind);
                let question = review(version, &uid, attributes, matched, &seen.objects);
                let cluster = &attributes.cluster;
                let call = hook.client.post(&self.dialer, cluster, hook.timeout, &question);
                match call.await {
                    Err(why) => Err(format!("failed to call webhook: {why}")),
                    Ok(answer) => verdict(answer, version, &uid, mutating)
                        .map_err(|why| format!("received invalid webhook response: {why}")),
                }
            }
        };
        let verdict = match answer {
            Ok(verdict) => verdict,
            Err(why) if hook.ignores_failure => {
                debug!(webhook = hook.name, why, "a webhook that may fail has failed");
                return Ok(None);
            }
            Err(why) => return Err(failed_calling(&hook.name, &why)),
        };
        verdict.warnings.iter().for_each(|warning| ctx.warn(warning));
        for (key, value) in &verdict.annotations {
            ctx.annotate(&format!("{}/{key}", hook.name), value);
        }
        if verdict.allowed {
            Ok(Some(verdict))
        } else {
            Err(rejection(&hook.name, &verdict.result))
        }
    }
}

/// That a webhook could not be asked.
pub(super) fn failed_calling(name: &str, why: &str) -> Error {
    internal(&format!("failed calling webhook {name:?}: {why}"))
}

/// A failure that clients are told of in words (`apierrors.NewInternalError`).
pub(super) fn internal(why: &str) -> Error {
    let details = Details {
        causes: vec![Cause {
            reason: String::new(),
            message: why.to_owned(),
            field: String::new(),
        }],
        ..Details::default()
    };
    Error::told(500, "InternalError", format!("Internal error occurred: {why}"), details)
}

/// A webhook's refusal: its `Status`, made one of failure.
fn rejection(name: &str, result: &Value) -> Error {
    let text = |value: &Value, field: &str| {
        value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let code = result.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let code = code.filter(|code| (400..600).contains(code)).unwrap_or(400);
    let (message, reason) = (text(result, "message"), text(result, "reason"));
    let denied = format!("admission webhook {name:?} denied the request");
    let message = match (message.as_str(), reason.as_str()) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let given = result.get("details").unwrap_or(&Value::Null);
    let causes = given.get("causes").and_then(Value::as_array).into_iter().flatten();
    let causes = causes.map(|cause| Cause {
        reason: text(cause, "reason"),
        message: text(cause, "message"),
        field: text(cause, "field"),
    });
    let retry = given.get("retryAfterSeconds").and_then(Value::as_u64);
    let details = Details {
        name: text(given, "name"),
        group: text(given, "group"),
        kind: text(given, "kind"),
        uid: text(given, "uid"),
        causes: causes.collect(),
        retry_after_seconds: retry.and_then(|retry| u32::try_from(retry).ok()).unwrap_or(0),
        ..Details::default()
    };
    Error::told(code, &reason, message, details)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refusals_are_what_the_webhook_says() {
        let check = |result: Value, code: u16, reason: &str, message: &str| {
            let error = rejection("a.b.c", &result);
            let denied = "admission webhook \"a.b.c\" denied the request";
            assert_eq!(error.message(), format!("{denied}{message}"));
            assert_eq!(error.told_status(), Some((code, reason)));
            assert_eq!(error.reason(), crate::registry::Reason::Unknown);
        };
        check(json!({}), 400, "", " without explanation");
        check(json!({"code": 200}), 400, "", " without explanation");
        check(json!({"reason": "Gone"}), 400, "Gone", ": Gone");
        check(json!({"code": 418, "message": "tea"}), 418, "", ": tea");
        check(json!({"code": 99999, "message": "x"}), 400, "", ": x");
    }
}
