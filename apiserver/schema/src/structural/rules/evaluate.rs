//! Rules on an object.

use std::collections::HashMap;

use cel_rules::{Budget, EvalError, Program, Value as Cel};
use machinery::field::FieldErrorKind;
use machinery::{FieldError, FieldPath};
use serde_json::Value;

use super::{CompiledRule, Place, Rules, Site, Verdict};
use crate::structural::Structural;
use crate::structural::node::{Additional, Kind, ListType, Node, ValidationRule};

/// Cost units of one rule, and of all rules of an object.
const RULE_LIMIT: u64 = 1_000_000;
const OBJECT_LIMIT: u64 = 10_000_000;

/// Bytes of the longest message that an expression makes.
const MAX_MESSAGE: usize = 5 * 1024;

/// The walk ends: what is left of the budget isn't enough.
struct Stop;

struct Walk<'s> {
    rules: &'s Rules,
    path: FieldPath,
    budget: u64,
    verdict: Verdict,
    updates: bool,
}

/// What a value was, for ratcheting: a problem of what didn't change is forgiven.
#[derive(Clone, Copy, Default)]
struct Correlation<'v> {
    /// The new and the old value, where the old one can be found.
    current: Option<(&'v Value, Option<&'v Value>)>,
    /// Those of the nearest part around it.
    parent: Option<(&'v Value, Option<&'v Value>)>,
}

impl<'v> Correlation<'v> {
    fn is_unchanged(self) -> bool {
        let pair = self.current.or(self.parent);
        pair.is_some_and(|(new, old)| old.is_some_and(|old| new == old))
    }

    fn field(self, name: &str) -> Self {
        let Some((new, old)) = self.current else { return self };
        if self.parent.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self::default();
        }
        let current = match (new.as_object(), old.and_then(Value::as_object)) {
            (Some(new), Some(old)) => new.get(name).map(|value| (value, old.get(name))),
            _ => None,
        };
        Self { current, parent: self.current }
    }

    fn item(self, item: &'v Value, old: Option<&'v Value>, correlated: bool) -> Self {
        if self.current.is_none() {
            return self;
        }
        Self { current: correlated.then_some((item, old)), parent: self.current }
    }
}

/// Evaluates all rules of a schema on an object.
pub(super) fn evaluate(
    schema: &Structural,
    rules: &Rules,
    new: &Value,
    old: Option<&Value>,
) -> Verdict {
    let mut walk = Walk {
        rules,
        path: FieldPath::default(),
        budget: OBJECT_LIMIT,
        verdict: Verdict::default(),
        updates: old.is_some(),
    };
    let current = old.map(|old| (new, Some(old)));
    let correlation = Correlation { current, parent: None };
    // The problem that ends a walk is told already.
    walk.place(Place::whole(schema), new, old, correlation).ok();
    walk.verdict
}

impl Walk<'_> {
    /// A value with its parts. The recursion ends with the schema.
    fn place<'v>(
        &mut self,
        place: Place<'_>,
        new: &'v Value,
        old: Option<&'v Value>,
        correlation: Correlation<'v>,
    ) -> Result<(), Stop> {
        if new.is_null() || !place.node.has_rules() {
            return Ok(());
        }
        let old = old.filter(|old| !old.is_null());
        let rules = self.rules;
        if let Some(site) = rules.sites.get(&place.key()) {
            self.site(place, site, new, old, correlation)?;
        }
        match new {
            Value::Array(items) => self.items(place, items, old, correlation),
            Value::Object(_) => self.fields(place, new, old, correlation),
            _ => Ok(()),
        }
    }

    fn items<'v>(
        &mut self,
        place: Place<'_>,
        items: &'v [Value],
        old: Option<&'v Value>,
        correlation: Correlation<'v>,
    ) -> Result<(), Stop> {
        let Some(part) = place.node.items().filter(|items| items.has_rules()) else {
            return Ok(());
        };
        let part = Place::part(part);
        let correlated = place.node.list_type() == ListType::Map;
        let keys = place.node.list_map_keys();
        let old = old.and_then(Value::as_array).filter(|_| correlated);
        let old: HashMap<String, &Value> =
            old.into_iter().flatten().map(|item| (keys_of(item, keys), item)).collect();
        for (index, item) in items.iter().enumerate() {
            let was = if old.is_empty() { None } else { old.get(&keys_of(item, keys)).copied() };
            let mark = self.path.enter_index(index);
            let result = self.place(part, item, was, correlation.item(item, was, correlated));
            self.path.leave(mark);
            result?;
        }
        Ok(())
    }

    fn fields<'v>(
        &mut self,
        place: Place<'_>,
        new: &'v Value,
        old: Option<&'v Value>,
        correlation: Correlation<'v>,
    ) -> Result<(), Stop> {
        let Some(fields) = new.as_object() else { return Ok(()) };
        let old = old.and_then(Value::as_object);
        if let Additional::Of(values) = place.node.additional() {
            for (name, value) in fields {
                let was = old.and_then(|old| old.get(name));
                let mark = self.path.enter_key(name);
                let result = self.place(Place::part(values), value, was, correlation.field(name));
                self.path.leave(mark);
                result?;
            }
        }
        for (name, field) in place.node.properties() {
            let Some(value) = fields.get(name).filter(|_| field.has_rules()) else { continue };
            let was = old.and_then(|old| old.get(name));
            let mark = self.path.enter_child(name);
            let result = self.place(Place::part(field), value, was, correlation.field(name));
            self.path.leave(mark);
            result?;
        }
        Ok(())
    }

    // === rules ===

    fn path(&self, below: &str) -> FieldPath {
        match (self.path.as_str(), below) {
            // The whole object has no path; upstream prints a nil one.
            ("", "") => FieldPath::root("<nil>"),
            (_, "") => self.path.clone(),
            _ => self.path.child(below),
        }
    }

    /// A problem with a rule itself; the type stands for the value.
    fn broken(&mut self, node: Node<'_>, why: String) {
        let kind = node.kind().map_or("", Kind::as_str);
        self.verdict.problems.push(FieldError::invalid_str(&self.path(""), kind, why));
    }

    fn exhausted(&mut self, node: Node<'_>) -> Stop {
        let why = "validation failed due to running out of cost budget, no further validation rules \
                   will be run";
        self.broken(node, why.to_owned());
        Stop
    }

    fn site<'v>(
        &mut self,
        place: Place<'_>,
        site: &Site,
        new: &'v Value,
        old: Option<&'v Value>,
        correlation: Correlation<'v>,
    ) -> Result<(), Stop> {
        let node = place.node;
        let Some(decl) = &site.decl else {
            let why = "rule compiler initialization error: failed to convert to declType for CEL \
                       validation rules";
            self.broken(node, why.to_owned());
            return Ok(());
        };
        if site.rules.is_empty() {
            return Ok(());
        }
        if self.budget == 0 {
            return Err(self.exhausted(node));
        }
        let value = match Cel::from_json(new, decl) {
            Ok(value) => value,
            Err(why) => {
                self.broken(node, why.to_string());
                return Ok(());
            }
        };
        let was = old.filter(|_| site.uses_old_self);
        let was = was.and_then(|old| Cel::from_json(old, decl).ok());
        let inputs = Inputs { value, was };
        for (rule, compiled) in place.node.validation_rules().iter().zip(&site.rules) {
            self.rule(place, rule, compiled, &inputs, new, correlation)?;
        }
        Ok(())
    }

    fn rule<'v>(
        &mut self,
        place: Place<'_>,
        rule: &ValidationRule,
        compiled: &CompiledRule,
        inputs: &Inputs<'_>,
        new: &'v Value,
        correlation: Correlation<'v>,
    ) -> Result<(), Stop> {
        let node = place.node;
        let program = match &compiled.program {
            Ok(Some(program)) => program,
            Ok(None) => return Ok(()),
            Err(why) => {
                self.broken(node, format!("rule compile error: {why}"));
                return Ok(());
            }
        };
        let optional = rule.optional_old_self == Some(true);
        if compiled.uses_old_self && inputs.was.is_none() && !optional {
            return Ok(());
        }
        let result = self.run(program, &inputs.of(optional)).map_err(|()| self.exhausted(node))?;
        let named = rule_name(rule);
        match result {
            Ok(value) if value.as_bool() == Some(true) => return Ok(()),
            Ok(_) => {}
            Err(EvalError::CostLimit) => {
                let why = EvalError::CostLimit;
                self.broken(
                    node,
                    format!(
                        "'{why}': no further validation rules will be run due to call cost exceeds \
                         limit for rule: {named}"
                    ),
                );
                return Err(Stop);
            }
            Err(EvalError::Failed(why)) => {
                let text = if why.starts_with("no such overload") {
                    format!(
                        "'{why}': call arguments did not match a supported operator, function or \
                         macro signature for rule: {named}"
                    )
                } else {
                    format!("{why} evaluating rule: {named}")
                };
                self.broken(node, text);
                return Ok(());
            }
        }
        let forgiven = !compiled.uses_old_self && correlation.is_unchanged();
        let path = self.path(&compiled.field_path);
        let detail = match self.message(rule, compiled, inputs) {
            Ok(Some(detail)) => detail,
            Ok(None) if rule.message.is_empty() => format!("failed rule: {named}"),
            Ok(None) => named.to_owned(),
            Err(why) => {
                let kind = node.kind().map_or("", Kind::as_str);
                self.tell(FieldError::invalid_str(&path, kind, why), forgiven);
                return Err(Stop);
            }
        };
        let shown = !matches!(node.kind(), Some(Kind::Object | Kind::Array));
        self.tell(problem(&path, shown.then_some(new), detail, &rule.reason), forgiven);
        Ok(())
    }

    fn tell(&mut self, problem: FieldError, forgiven: bool) {
        if forgiven && self.updates {
            self.verdict.warnings.push(problem);
        } else {
            self.verdict.problems.push(problem);
        }
    }

    /// Runs a program and pays for it; an error if the object's budget isn't enough.
    fn run<'a>(
        &mut self,
        program: &'a Program,
        inputs: &[Cel<'a>],
    ) -> Result<Result<Cel<'a>, EvalError>, ()> {
        let mut budget = Budget::new(RULE_LIMIT);
        let result = program.evaluate(inputs, &mut budget);
        match self.budget.checked_sub(budget.spent()) {
            Some(left) => {
                self.budget = left;
                Ok(result)
            }
            None => Err(()),
        }
    }

    /// The message that the rule's expression makes, if there is one and it is fit to be shown; the
    /// error ends the walk.
    fn message(
        &mut self,
        rule: &ValidationRule,
        compiled: &CompiledRule,
        inputs: &Inputs<'_>,
    ) -> Result<Option<String>, String> {
        let Some(program) = &compiled.message else { return Ok(None) };
        // Upstream gives it the old value itself even where the rule gets an optional one.
        let result = self.run(program, &inputs.of(false)).map_err(|()| {
            "messageExpression evaluation failed due to running out of cost budget, no further \
             validation rules will be run"
                .to_owned()
        })?;
        match result {
            Ok(value) => {
                let text = value.as_str().unwrap_or_default().trim();
                let fit = !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
                Ok(fit.then(|| text.to_owned()))
            }
            Err(EvalError::CostLimit) => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for \
                 messageExpression: {}",
                machinery::field::go_quote(&rule.message_expression)
            )),
            Err(EvalError::Failed(_)) => Ok(None),
        }
    }
}

/// `self`, and `oldSelf` if there is one.
struct Inputs<'a> {
    value: Cel<'a>,
    was: Option<Cel<'a>>,
}

impl<'a> Inputs<'a> {
    fn of(&self, optional: bool) -> Vec<Cel<'a>> {
        let mut inputs = vec![self.value.clone()];
        if optional {
            inputs.push(Cel::optional(self.was.clone()));
        } else {
            inputs.extend(self.was.clone());
        }
        inputs
    }
}

/// How messages call a rule.
fn rule_name(rule: &ValidationRule) -> &str {
    if rule.message.is_empty() { rule.rule.trim() } else { rule.message.trim() }
}

fn problem(path: &FieldPath, value: Option<&Value>, detail: String, reason: &str) -> FieldError {
    match reason {
        "FieldValueForbidden" => FieldError::forbidden(path, detail),
        "FieldValueRequired" => FieldError::required(path, detail),
        "FieldValueDuplicate" => match value {
            Some(value) => FieldError::duplicate(path, value),
            None => without_value(FieldErrorKind::Duplicate, path, String::new()),
        },
        _ => match value {
            Some(value) => FieldError::invalid(path, value, detail),
            None => without_value(FieldErrorKind::Invalid, path, detail),
        },
    }
}

fn without_value(kind: FieldErrorKind, path: &FieldPath, detail: String) -> FieldError {
    FieldError { kind, field: path.as_str().to_owned(), value: None, detail }
}

/// A text that only items of a list-map with equal keys share.
fn keys_of(item: &Value, keys: &[Box<str>]) -> String {
    let mut text = String::new();
    for key in keys {
        let value = item.get(&**key).unwrap_or(&Value::Null);
        // JSON has no zero bytes.
        text.push_str(&value.to_string());
        text.push('\0');
    }
    text
}
