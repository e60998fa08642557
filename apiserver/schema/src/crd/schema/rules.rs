//! Rules of `x-kubernetes-validations` that need no understanding of CEL.

use machinery::{FieldError, FieldPath};

use super::super::fields::{Brackets, find};
use crate::structural::json::{self, Keywords};

const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// What is wrong with the entries, apart from their expressions.
pub(super) fn validate(schema: &Keywords, at: &FieldPath) -> Vec<FieldError> {
    let rules = json::schemas(schema, "x-kubernetes-validations");
    let at = at.child("x-kubernetes-validations");
    rules.flat_map(|(index, rule)| validate_rule(schema, rule, &at.index(index))).collect()
}

fn validate_rule(schema: &Keywords, rule: &Keywords, at: &FieldPath) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let (expression, message) = (json::text(rule, "rule"), json::text(rule, "message"));
    let breaks = |text: &str| text.contains(['\n', '\r']);
    if is_blank(expression) {
        problems.push(FieldError::required(&at.child("rule"), "rule is not specified"));
    } else if !message.is_empty() && is_blank(message) {
        let why = "must be non-empty if specified";
        problems.push(FieldError::invalid_str(&at.child("message"), message, why));
    } else if breaks(message.trim()) {
        let why = "must not contain line breaks";
        problems.push(FieldError::invalid_str(&at.child("message"), message, why));
    } else if breaks(expression.trim()) && is_blank(message) {
        let why = "message must be specified if rule contains line breaks";
        problems.push(FieldError::required(&at.child("message"), why));
    }
    let expression = json::text(rule, "messageExpression");
    if !expression.is_empty() && is_blank(expression) {
        let why = "messageExpression must be non-empty if specified";
        problems.push(FieldError::required(&at.child("messageExpression"), why));
    }
    let reason = json::text(rule, "reason");
    if json::has(rule, "reason") && !REASONS.contains(&reason) {
        let at = at.child("reason");
        problems.push(FieldError::not_supported(&at, &reason.into(), &REASONS));
    }
    let path = json::text(rule, "fieldPath");
    if !path.is_empty() {
        let at = at.child("fieldPath");
        let mut wrong = |why: &str| problems.push(FieldError::invalid_str(&at, path, why));
        if is_blank(path) {
            wrong("must be non-empty if specified");
        }
        if breaks(path) {
            wrong("must not contain line breaks");
        }
        if find(path, schema, Brackets::Allowed).is_err() {
            wrong("must be a valid path");
        }
    }
    problems
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
