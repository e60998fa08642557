//! Rules of a CRD that is written: whether they compile, and whether they may cost too much.

use std::sync::Arc;

use cel_rules::DeclType;
use machinery::field::FieldErrorKind;
use machinery::{FieldError, FieldPath};
use serde_json::Value;

use super::compile::{Report, compile_site};
use super::declare::declare;
use super::{CompiledRule, Estimates, Place};
use crate::structural::Structural;
use crate::structural::node::{Additional, Kind, ListType, Node, ValidationRule};

/// The most that one rule may cost in one object, and all rules of a schema.
const RULE_LIMIT: u64 = 10_000_000;
const SCHEMA_LIMIT: u64 = 100_000_000;

/// Rules that are told when the sum is too large.
const TOLD: usize = 4;

/// A walk over the schema of a CRD.
struct Walk {
    path: FieldPath,
    estimates: Estimates,
    problems: Vec<FieldError>,
    total: u64,
    /// The most expensive rules, with their paths.
    expensive: Vec<(u64, FieldPath)>,
}

/// What the rules around a part say about it.
#[derive(Clone)]
struct Context {
    /// How often the part may be in one object; none if that isn't limited.
    cardinality: Option<u64>,
    /// The path of the list within which old values can't be found.
    uncorrelated: Option<FieldPath>,
    /// The type of the part, if a part around it has rules.
    decl: Option<Arc<DeclType>>,
}

/// Checks all rules of a schema.
pub(super) fn check(schema: &Structural, at: &FieldPath, estimates: Estimates) -> Vec<FieldError> {
    let mut walk =
        Walk { path: at.clone(), estimates, problems: Vec::new(), total: 0, expensive: Vec::new() };
    let context = Context { cardinality: Some(1), uncorrelated: None, decl: None };
    walk.place(Place::whole(schema), &context);
    if walk.total > SCHEMA_LIMIT {
        let why = "contributed to estimated rule cost total exceeding cost limit for entire \
                   OpenAPIv3 schema";
        for (_, path) in &walk.expensive {
            walk.problems.push(FieldError::forbidden(path, why));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let why = over_budget(what, walk.total, SCHEMA_LIMIT);
        walk.problems.push(FieldError::forbidden(at, why));
    }
    walk.problems
}

/// How often a part may be in its whole: `maxItems`, `maxProperties`, or once.
fn most_parts(node: Node<'_>) -> Option<u64> {
    let limit = match (node.kind(), node.additional()) {
        (Some(Kind::Object), Additional::Of(_) | Additional::Any | Additional::Forbidden) => {
            node.max_properties()
        }
        (Some(Kind::Array), _) => node.max_items(),
        _ => return Some(1),
    };
    limit.map(|limit| u64::try_from(limit).unwrap_or(0))
}

/// A product of counts that may be zero.
const fn times(a: u64, b: u64) -> u64 {
    a.saturating_mul(b)
}

/// How far over its limit something is.
fn over_budget(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, \
         maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

impl Walk {
    /// Judges the parts of a place, then its own rules. The recursion ends with the schema.
    fn place(&mut self, place: Place<'_>, context: &Context) {
        if !place.node.has_rules() {
            return;
        }
        let rules = place.node.validation_rules();
        let mut context = context.clone();
        if context.decl.is_none() && !rules.is_empty() {
            context.decl = declare(place.node, place.root || place.node.is_embedded(), "selfType");
        }
        let below = Context {
            cardinality: context
                .cardinality
                .zip(most_parts(place.node))
                .map(|(outer, inner)| times(outer, inner)),
            ..context.clone()
        };
        self.parts(place, &below);
        if !rules.is_empty() {
            self.rules(place, rules, &context);
        }
    }

    fn parts(&mut self, place: Place<'_>, below: &Context) {
        let node = place.node;
        let decl_of = |step: &str| below.decl.as_ref().and_then(|decl| decl.part_of(step).cloned());
        if let Additional::Of(values) = node.additional() {
            let mark = self.path.enter_child("additionalProperties");
            let context = Context { decl: decl_of("@values"), ..below.clone() };
            self.place(Place::part(values), &context);
            self.path.leave(mark);
        }
        for (name, field) in node.properties() {
            let mark = self.path.enter_child("properties");
            self.path.enter_key(name);
            let decl = cel_rules::escape(name).and_then(|name| decl_of(&name));
            self.place(Place::part(field), &Context { decl, ..below.clone() });
            self.path.leave(mark);
        }
        if let Some(items) = node.items() {
            let mut context = Context { decl: decl_of("@items"), ..below.clone() };
            if node.list_type() != ListType::Map && context.uncorrelated.is_none() {
                context.uncorrelated = Some(self.path.clone());
            }
            let mark = self.path.enter_child("items");
            self.place(Place::part(items), &context);
            self.path.leave(mark);
        }
    }

    fn rules(&mut self, place: Place<'_>, rules: &[ValidationRule], context: &Context) {
        let at = self.path.child("x-kubernetes-validations");
        let Some(decl) = context.decl.clone() else {
            let why = "internal error: failed to construct type information for \
                       x-kubernetes-validations rules: unable to convert structural schema to CEL \
                       declarations";
            self.problems.push(FieldError::internal(&at, why));
            return;
        };
        let (site, reports) = compile_site(place, Some(decl));
        for (index, ((rule, compiled), report)) in
            rules.iter().zip(&site.rules).zip(&reports).enumerate()
        {
            self.rule(&at.index(index), rule, compiled, report, context);
        }
    }

    fn observe(&mut self, path: FieldPath, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost >= SCHEMA_LIMIT / 100 {
            self.expensive.push((cost, path));
            self.expensive.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.expensive.truncate(TOLD);
        }
    }

    fn rule(
        &mut self,
        at: &FieldPath,
        rule: &ValidationRule,
        compiled: &CompiledRule,
        report: &Report,
        context: &Context,
    ) {
        let judged = self.estimates == Estimates::Judged;
        let at_rule = at.child("rule");
        let count = context.cardinality.unwrap_or(report.cardinality);
        let cost = times(report.max_cost, count);
        if judged && cost > RULE_LIMIT {
            let why = over_budget("estimated rule cost", cost, RULE_LIMIT);
            self.problems.push(FieldError::forbidden(&at_rule, why));
        }
        self.observe(at_rule.clone(), cost);
        if let Err(why) = &compiled.program {
            self.problems.push(refused(&at_rule, rule, why));
        }
        let at_message = at.child("messageExpression");
        match &report.message {
            Some(Err(why)) => self.problems.push(refused(&at_message, rule, why)),
            Some(Ok(cost)) => {
                if judged && *cost > RULE_LIMIT {
                    let why = over_budget("estimated messageExpression cost", *cost, RULE_LIMIT);
                    self.problems.push(FieldError::forbidden(&at_message, why));
                }
                self.observe(at_message, *cost);
            }
            None => {}
        }
        if compiled.uses_old_self {
            if let Some(list) = &context.uncorrelated {
                let why = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                );
                self.problems.push(FieldError::invalid_str(&at_rule, &rule.rule, why));
            }
        } else if let Some(optional) = rule.optional_old_self {
            let why = "may not be set if oldSelf is not used in rule";
            let at = at.child("optionalOldSelf");
            self.problems.push(FieldError::invalid(&at, &Value::Bool(optional), why));
        }
    }
}

/// A refused expression, with the whole entry as upstream prints it.
fn refused(at: &FieldPath, rule: &ValidationRule, why: &str) -> FieldError {
    let text = |text: &str| Value::from(text).to_string();
    let optional = |set: bool, text: String| if set { text } else { "null".to_owned() };
    let value = format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\
         \"OptionalOldSelf\":{}}}",
        go_json(&text(&rule.rule)),
        go_json(&text(&rule.message)),
        go_json(&text(&rule.message_expression)),
        optional(!rule.reason.is_empty(), text(&rule.reason)),
        go_json(&text(&rule.field_path)),
        rule.optional_old_self.map_or("null".to_owned(), |value| value.to_string()),
    );
    FieldError {
        kind: FieldErrorKind::Invalid,
        field: at.as_str().to_owned(),
        value: Some(value),
        detail: why.to_owned(),
    }
}

/// JSON as Go writes it, which escapes what HTML gives a meaning.
fn go_json(json: &str) -> String {
    json.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}
