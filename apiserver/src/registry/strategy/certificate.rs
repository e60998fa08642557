//! CertificateSigningRequests: who asks is said by the server, what is asked for never changes, and
//! decisions are made through subresources. The rules and texts are upstream's.

use std::collections::{HashMap, HashSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use machinery::meta::{get, get_i64, get_str, remove, set};
use machinery::{FieldError, FieldPath, name};
use serde_json::{Value, json};
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::Strategy;
use super::check::{MOST_PROBLEMS, each, items, part, text};
use crate::certificates::{APPROVED, DENIED, FAILED, Request, request_of};
use crate::registry::Context;

/// What keys can be used for, sorted.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// The shortest life that can be asked for, in seconds.
const SHORTEST: i64 = 600;

/// The longest domain of a signer's name.
const LONGEST_DOMAIN: usize = 253;

/// The longest name of a signer: two domains, a label, a dot and a slash.
const LONGEST_SIGNER: usize = 2 * LONGEST_DOMAIN + 63 + 2;

/// Where decisions are.
const CONDITIONS: [&str; 2] = ["status", "conditions"];

#[derive(Debug)]
pub(super) struct Requests;

impl Strategy for Requests {
    fn prepare_create(&self, object: &mut Value, ctx: &Context) {
        for field in ["username", "uid", "groups", "extra"] {
            remove(object, &["spec", field]);
        }
        let user = &ctx.user;
        set(object, &["spec", "username"], json!(user.name));
        if !user.uid.is_empty() {
            set(object, &["spec", "uid"], json!(user.uid));
        }
        if !user.groups.is_empty() {
            set(object, &["spec", "groups"], json!(user.groups));
        }
        if !user.extra.is_empty() {
            set(object, &["spec", "extra"], json!(user.extra));
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        match get(old, &["spec"]) {
            Some(spec) => set(new, &["spec"], spec.clone()),
            None => remove(new, &["spec"]).is_some(),
        };
    }

    fn prepare_part(&self, part: &str, new: &mut Value, old: &Value, ctx: &Context) {
        let mut conditions = items_at(new).to_vec();
        if part == "status" {
            for kind in [APPROVED, DENIED] {
                preserve(&mut conditions, items_at(old), kind);
            }
        }
        if conditions.is_empty() {
            return;
        }
        let now = machinery::time::Time::at(ctx.now).to_string();
        let known = times(items_at(old));
        conditions.iter_mut().for_each(|condition| date(condition, &known, &now));
        set(new, &CONDITIONS, json!(conditions));
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        problems(object, None)
    }

    fn validate_part(&self, part: &str, new: &Value, old: &Value) -> Vec<FieldError> {
        let mut problems = problems(new, Some(old));
        problems.extend(decisions(part, items_at(new), items_at(old)));
        let certificate = |object| get_str(object, &["status", "certificate"]).unwrap_or_default();
        let (given, present) = (certificate(new), certificate(old));
        let path = FieldPath::root("status").child("certificate");
        if given != present && part != "status" {
            problems.push(FieldError::forbidden(&path, "updates may not set certificate content"));
        } else if given != present && !present.is_empty() {
            let why = "updates may not modify existing certificate content";
            problems.push(FieldError::forbidden(&path, why));
        }
        problems
    }
}

fn items_at(object: &Value) -> &[Value] {
    get(object, &CONDITIONS).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn of_kind<'c>(conditions: &'c [Value], kind: &str) -> impl Iterator<Item = &'c Value> {
    conditions.iter().filter(move |condition| text(condition, "type") == kind)
}

/// Puts back the conditions of a kind as they were, if there are as many as before.
fn preserve(conditions: &mut [Value], old: &[Value], kind: &str) {
    let kept: Vec<Value> = of_kind(old, kind).cloned().collect();
    if of_kind(conditions, kind).count() != kept.len() {
        return;
    }
    let present = conditions.iter_mut().filter(|condition| text(condition, "type") == kind);
    present.zip(kept).for_each(|(present, kept)| *present = kept);
}

/// The times of transition of conditions, by type and status; of several the first.
fn times(conditions: &[Value]) -> HashMap<(&str, &str), &str> {
    let mut times = HashMap::new();
    for condition in conditions {
        if part(condition, "lastTransitionTime").is_some() {
            let kind = (text(condition, "type"), text(condition, "status"));
            times.entry(kind).or_insert(text(condition, "lastTransitionTime"));
        }
    }
    times
}

/// Fills in the times of a condition that has none; `known` are those from before.
fn date(condition: &mut Value, known: &HashMap<(&str, &str), &str>, now: &str) {
    if part(condition, "lastUpdateTime").is_none() {
        set(condition, &["lastUpdateTime"], json!(now));
    }
    if part(condition, "lastTransitionTime").is_none() {
        let kind = (text(condition, "type"), text(condition, "status"));
        let time = json!(known.get(&kind).copied().unwrap_or(now));
        set(condition, &["lastTransitionTime"], time);
    }
}

/// All that is wrong with a request. What was wrong with it already is let be.
fn problems(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut problems = Vec::new();
    // What is asked for never changes, so it is judged once.
    if old.is_none() {
        problems.extend(asked(object));
    }
    problems.extend(conditions(items_at(object), old.map(items_at)));
    let certificate = |object| get_str(object, &["status", "certificate"]).unwrap_or_default();
    let given = certificate(object);
    if old.is_none_or(|old| certificate(old) != given)
        && let Err(why) = check_certificates(given)
    {
        let path = FieldPath::root("status").child("certificate");
        problems.push(FieldError::invalid_str(&path, "<certificate data>", why));
    }
    problems
}

/// What is wrong with what is asked for.
fn asked(object: &Value) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let path = FieldPath::root("spec");
    if let Err(why) = request_of(object).and_then(|pem| Request::parse(&pem)) {
        let given = get_str(object, &["spec", "request"]).unwrap_or_default();
        problems.push(FieldError::invalid_str(&path.child("request"), given, why));
    }
    let spec = get(object, &["spec"]).unwrap_or(&Value::Null);
    let usages = items(spec, "usages");
    let field = path.child("usages");
    if usages.is_empty() {
        problems.push(FieldError::required(&field, ""));
    }
    problems.extend(each(usages, &field, |usage, path| {
        let known = USAGES.contains(&usage.as_str().unwrap_or_default());
        (!known).then(|| FieldError::not_supported(path, usage, &USAGES))
    }));
    let mut before = HashSet::new();
    problems.extend(each(usages, &field, |usage, path| {
        (!before.insert(usage)).then(|| FieldError::duplicate(path, usage))
    }));
    problems.extend(signer(&path.child("signerName"), text(spec, "signerName")));
    if let Some(seconds) = get_i64(spec, &["expirationSeconds"])
        && seconds < SHORTEST
    {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        problems.push(FieldError::invalid(&path.child("expirationSeconds"), &json!(seconds), why));
    }
    problems
}

/// What is wrong with the name of a signer.
fn signer(path: &FieldPath, signer: &str) -> Vec<FieldError> {
    if signer == "kubernetes.io/legacy-unknown" {
        let why = "the legacy signerName is not allowed via this API version";
        return vec![FieldError::invalid_str(path, signer, why)];
    }
    if signer.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let Some((domain, rest)) = signer.split_once('/').filter(|(_, rest)| !rest.contains('/'))
    else {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return vec![FieldError::invalid_str(path, signer, why)];
    };
    let mut problems = Vec::new();
    if domain.len() > LONGEST_DOMAIN {
        problems.push(FieldError::too_long(path, LONGEST_DOMAIN));
    }
    let mut check = |part: &str, rule: fn(&str) -> Vec<String>| {
        let wrong = part.split('.').map(|label| (label, rule(label)));
        if let Some((label, whys)) = { wrong }.find(|(_, whys)| !whys.is_empty()) {
            let label = machinery::field::go_quote(label);
            problems.extend(whys.into_iter().map(|why| {
                FieldError::invalid_str(path, part, format!("validating label {label}: {why}"))
            }));
        }
    };
    check(domain, name::dns1123_label);
    check(rest, name::dns1123_subdomain);
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        problems.push(FieldError::invalid_str(path, domain, why));
    }
    if signer.len() > LONGEST_SIGNER {
        problems.push(FieldError::too_long(path, LONGEST_SIGNER));
    }
    problems
}

/// What is wrong with conditions.
fn conditions(conditions: &[Value], old: Option<&[Value]>) -> Vec<FieldError> {
    let path = FieldPath::root("status").child("conditions");
    let has = |conditions: &[Value], kind| of_kind(conditions, kind).next().is_some();
    let both = old.is_some_and(|old| has(old, APPROVED) && has(old, DENIED));
    let repeats = |conditions: &[Value]| {
        let mut before = HashSet::new();
        conditions.iter().any(|condition| !before.insert(text(condition, "type")))
    };
    let repeated = old.is_some_and(repeats);
    let mut before = HashSet::new();
    let mut problems = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        if problems.len() >= MOST_PROBLEMS {
            break;
        }
        let (kind, status) = (text(condition, "type"), text(condition, "status"));
        let field = path.index(index);
        if kind.is_empty() {
            problems.push(FieldError::required(&field.child("type"), ""));
        }
        let valid: &[&str] = match kind {
            APPROVED | DENIED | FAILED => &["True"],
            _ => &["False", "True", "Unknown"],
        };
        let field_of_status = field.child("status");
        if status.is_empty() {
            problems.push(FieldError::required(&field_of_status, ""));
        } else if !valid.contains(&status) {
            problems.push(FieldError::not_supported(&field_of_status, &json!(status), valid));
        }
        let other = match kind {
            APPROVED => Some(DENIED),
            DENIED => Some(APPROVED),
            _ => None,
        };
        if !both && other.is_some_and(|other| before.contains(other)) {
            let why = "Approved and Denied conditions are mutually exclusive";
            problems.push(FieldError::invalid_str(&path, kind, why));
        }
        if !before.insert(kind) && !repeated {
            problems.push(FieldError::duplicate(&field.child("type"), &json!(kind)));
        }
    }
    problems
}

/// What is wrong with a change of the decisions.
fn decisions(part: &str, new: &[Value], old: &[Value]) -> Vec<FieldError> {
    let path = FieldPath::root("status").child("conditions");
    let count = |conditions, kind| of_kind(conditions, kind).count();
    let mut problems = Vec::new();
    for kind in [APPROVED, DENIED, FAILED] {
        if count(new, kind) < count(old, kind) {
            let why = format!("updates may not remove a condition of type \"{kind}\"");
            problems.push(FieldError::forbidden(&path, why));
        }
    }
    for kind in [APPROVED, DENIED] {
        if part != "approval" && count(new, kind) > count(old, kind) {
            let why = format!("updates may not add a condition of type \"{kind}\"");
            problems.push(FieldError::forbidden(&path, why));
        }
    }
    problems
}

/// That a certificate in base64 is one as PEM, or several.
fn check_certificates(given: &str) -> Result<(), String> {
    if given.is_empty() {
        return Ok(());
    }
    let pem = STANDARD.decode(given).map_err(|error| error.to_string())?;
    let mut blocks = 0;
    for block in Pem::iter_from_buffer(&pem) {
        let block = match block {
            Ok(block) => block,
            Err(x509_parser::error::PEMError::MissingHeader) => break,
            Err(error) => return Err(error.to_string()),
        };
        if block.label != "CERTIFICATE" {
            let label = machinery::field::go_quote(&block.label);
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {label}"));
        }
        X509Certificate::from_der(&block.contents)
            .map_err(|_| "x509: malformed certificate".to_owned())?;
        blocks += 1;
    }
    if blocks == 0 {
        return Err("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
