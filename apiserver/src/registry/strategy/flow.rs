//! Flow control: priority levels.
//!
//! These are stored and shown; requests are not queued by them.

use machinery::meta::{get, get_i64, get_str};
use machinery::{FieldError, FieldPath};
use serde_json::{Value, json};

use super::Strategy;
use super::check::{one_of, part, text};

/// Most queues of a level.
const MAX_QUEUES: i64 = 10_000_000;

/// Most bits of randomness that dealing a hand may take.
const MAX_HAND_ENTROPY: f64 = 60.0;

#[derive(Debug)]
pub(super) struct PriorityLevels;

impl Strategy for PriorityLevels {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let name = get_str(object, &["metadata", "name"]).unwrap_or_default();
        let empty = json!({});
        let spec = get(object, &["spec"]).unwrap_or(&empty);
        let path = FieldPath::root("spec");
        let kind = text(spec, "type");
        let mut problems = Vec::new();
        if (name == "exempt") != (kind == "Exempt") && matches!(kind, "Exempt" | "Limited") {
            let why = "must be 'Exempt' if and only if `name` is 'exempt'";
            problems.push(FieldError::invalid_str(&path.child("type"), kind, why));
        }
        match kind {
            "Exempt" => {
                if part(spec, "limited").is_some() {
                    let why = "must be nil if the type is not Limited";
                    problems.push(FieldError::forbidden(&path.child("limited"), why));
                }
                if let Some(exempt) = part(spec, "exempt") {
                    problems.extend(shares(exempt, &path.child("exempt")));
                }
            }
            "Limited" => {
                if part(spec, "exempt").is_some() {
                    let why = "must be nil if the type is Limited";
                    problems.push(FieldError::forbidden(&path.child("exempt"), why));
                }
                match part(spec, "limited") {
                    Some(limited) => problems.extend(limits(limited, &path.child("limited"))),
                    None => {
                        let why = "must not be empty when type is Limited";
                        problems.push(FieldError::required(&path.child("limited"), why));
                    }
                }
            }
            other => problems.extend(one_of(&path.child("type"), other, &["Exempt", "Limited"])),
        }
        problems
    }
}

/// Numbers that both types of levels have.
fn shares(level: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut problems = negative_shares(level, path);
    problems.extend(lendable(level, path));
    problems
}

fn negative_shares(level: &Value, path: &FieldPath) -> Vec<FieldError> {
    let field = "nominalConcurrencyShares";
    let shares = get_i64(level, &[field]).filter(|shares| *shares < 0);
    let problem = shares.map(|shares| {
        let why = "must be a non-negative integer";
        FieldError::invalid(&path.child(field), &json!(shares), why)
    });
    problem.into_iter().collect()
}

fn lendable(level: &Value, path: &FieldPath) -> Option<FieldError> {
    let field = "lendablePercent";
    let percent = get_i64(level, &[field]).filter(|percent| !(0..=100).contains(percent))?;
    let why = "must be between 0 and 100, inclusive";
    Some(FieldError::invalid(&path.child(field), &json!(percent), why))
}

fn limits(limited: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut problems = negative_shares(limited, path);
    let empty = json!({});
    let response = part(limited, "limitResponse").unwrap_or(&empty);
    problems.extend(limit_response(response, &path.child("limitResponse")));
    problems.extend(lendable(limited, path));
    if let Some(percent) = get_i64(limited, &["borrowingLimitPercent"]).filter(|p| *p < 0) {
        let path = path.child("borrowingLimitPercent");
        let why = "if specified, must be a non-negative integer";
        problems.push(FieldError::invalid(&path, &json!(percent), why));
    }
    problems
}

fn limit_response(response: &Value, path: &FieldPath) -> Vec<FieldError> {
    let queuing = part(response, "queuing");
    let at = path.child("queuing");
    match (text(response, "type"), queuing) {
        ("Reject", Some(_)) => {
            let why = "must be nil if limited.limitResponse.type is not Limited";
            vec![FieldError::forbidden(&at, why)]
        }
        ("Reject", None) => Vec::new(),
        ("Queue", None) => {
            let why = "must not be empty if limited.limitResponse.type is Limited";
            vec![FieldError::required(&at, why)]
        }
        ("Queue", Some(queuing)) => queues(queuing, &at),
        (other, _) => {
            one_of(&path.child("type"), other, &["Queue", "Reject"]).into_iter().collect()
        }
    }
}

fn queues(queuing: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut problems = Vec::new();
    let number = |field: &str| get_i64(queuing, &[field]).unwrap_or_default();
    let (queues, hand, length) = (number("queues"), number("handSize"), number("queueLengthLimit"));
    let mut wrong = |field: &str, value: i64, why: String| {
        problems.push(FieldError::invalid(&path.child(field), &json!(value), why));
    };
    if length <= 0 {
        wrong("queueLengthLimit", length, "must be positive".to_owned());
    }
    if queues <= 0 {
        wrong("queues", queues, "must be positive".to_owned());
    } else if queues > MAX_QUEUES {
        wrong("queues", queues, format!("must not be greater than {MAX_QUEUES}"));
    }
    if hand <= 0 {
        wrong("handSize", hand, "must be positive".to_owned());
    } else if hand > queues {
        wrong("handSize", hand, format!("should not be greater than queues ({queues})"));
    } else if hand_entropy(queues, hand) > MAX_HAND_ENTROPY {
        let why = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater \
             than {MAX_HAND_ENTROPY}"
        );
        wrong("handSize", hand, why);
    }
    problems
}

/// Bits of randomness that it takes to deal `hand` different cards out of `deck`.
fn hand_entropy(deck: i64, hand: i64) -> f64 {
    // A hand of a thousand cards takes more than the most already.
    (0..hand.min(1000)).map(|dealt| ((deck - dealt) as f64).log2()).sum()
}
