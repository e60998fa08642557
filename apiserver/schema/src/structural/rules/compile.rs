//! Rules to programs.

use std::sync::Arc;

use cel_rules::{DeclType, DeclaredSizes, Env, Expression, Type};

use super::declare::{MAX_REQUEST, declare};
use super::{CompiledRule, Place, Rules, Site, field_path};
use crate::structural::Structural;
use crate::structural::node::{Additional, Node, ValidationRule};

/// What is known of a rule when its CRD is written, beside its program.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// The most that one evaluation costs.
    pub(super) max_cost: u64,
    /// How often the value may be in an object whose limits don't say it.
    pub(super) cardinality: u64,
    /// Why the message's expression was refused, or the most it costs.
    pub(super) message: Option<Result<u64, String>>,
}

/// Compiles all rules of a schema.
pub(super) fn compile(schema: &Structural) -> Rules {
    let mut rules = Rules::default();
    let decl = declare(schema.root(), true, "selfType");
    collect(Place::whole(schema), decl.as_ref(), &mut rules);
    rules
}

/// Compiles the rules of a place and of its parts. The recursion ends with the schema.
fn collect(place: Place<'_>, decl: Option<&Arc<DeclType>>, rules: &mut Rules) {
    let node = place.node;
    if !node.has_rules() || rules.sites.contains_key(&place.key()) {
        return;
    }
    if !node.validation_rules().is_empty() {
        let (site, _) = compile_site(place, decl.cloned());
        rules.sites.insert(place.key(), site);
    }
    let declared = |part: Node<'_>| declare(part, part.is_embedded(), "selfType");
    if let Some(items) = node.items().filter(|items| items.has_rules()) {
        collect(Place::part(items), declared(items).as_ref(), rules);
    }
    if let Additional::Of(values) = node.additional()
        && values.has_rules()
    {
        collect(Place::part(values), declared(values).as_ref(), rules);
    }
    for (_, field) in node.properties().filter(|(_, field)| field.has_rules()) {
        // Rules of a field that expressions can't see are left out.
        if let Some(decl) = declared(field) {
            collect(Place::part(field), Some(&decl), rules);
        }
    }
}

/// Compiles the rules of one place; the reports are in the order of the rules.
pub(super) fn compile_site(place: Place<'_>, decl: Option<Arc<DeclType>>) -> (Site, Vec<Report>) {
    let rules = place.node.validation_rules();
    let mut compiled = Vec::with_capacity(rules.len());
    let mut reports = Vec::with_capacity(rules.len());
    if let Some(decl) = &decl {
        let self_type = || ("self", Arc::clone(decl));
        let optional = DeclType::plain(Type::optional(decl.ty().clone()), 0, 0);
        let plain = Env::new([self_type(), ("oldSelf", Arc::clone(decl))]);
        let soft = Env::new([self_type(), ("oldSelf", optional)]);
        for rule in rules {
            let env = if rule.optional_old_self == Some(true) { &soft } else { &plain };
            let (rule, report) = compile_rule(place, rule, env, decl);
            compiled.push(rule);
            reports.push(report);
        }
    }
    let uses_old_self = compiled.iter().any(|rule| rule.uses_old_self);
    (Site { decl, rules: compiled.into(), uses_old_self }, reports)
}

fn compile_rule(
    place: Place<'_>,
    rule: &ValidationRule,
    env: &Env,
    decl: &DeclType,
) -> (CompiledRule, Report) {
    let mut out = CompiledRule {
        program: Ok(None),
        uses_old_self: false,
        message: None,
        field_path: Box::default(),
    };
    let mut report = Report::default();
    if rule.rule.trim().is_empty() {
        return (out, report);
    }
    let expression = match expression(env, &rule.rule, &Type::Bool) {
        Ok(expression) => expression,
        Err(Refusal::Compilation(why)) => {
            out.program = Err(format!("compilation failed: {why}").into());
            return (out, report);
        }
        Err(Refusal::Type) => {
            out.program = Err("cel expression must evaluate to a bool".into());
            return (out, report);
        }
    };
    out.uses_old_self = expression.reads("oldSelf");
    let max_cost = expression.estimate(&DeclaredSizes(decl)).max;
    match expression.program() {
        Ok(program) => out.program = Ok(Some(program)),
        Err(why) => {
            out.program = Err(format!("program instantiation failed: {why}").into());
            return (out, report);
        }
    }
    report.max_cost = max_cost;
    report.cardinality = MAX_REQUEST / (decl.min_serialized_size() + 1);
    if !rule.message_expression.is_empty() {
        match message(env, &rule.message_expression, decl) {
            Ok((program, cost)) => {
                out.message = Some(program);
                report.message = Some(Ok(cost));
            }
            Err(why) => report.message = Some(Err(why)),
        }
    }
    if !rule.field_path.is_empty()
        && let Some(path) = field_path::normalize(&rule.field_path, place.node)
    {
        out.field_path = path.into();
    }
    (out, report)
}

enum Refusal {
    Compilation(String),
    Type,
}

fn expression(env: &Env, text: &str, wanted: &Type) -> Result<Expression, Refusal> {
    let expression = env.compile(text).map_err(|why| Refusal::Compilation(why.to_string()))?;
    if expression.output_type().is_exactly(wanted) { Ok(expression) } else { Err(Refusal::Type) }
}

fn message(env: &Env, text: &str, decl: &DeclType) -> Result<(cel_rules::Program, u64), String> {
    let expression = expression(env, text, &Type::String).map_err(|refusal| match refusal {
        Refusal::Compilation(why) => format!("messageExpression compilation failed: {why}"),
        Refusal::Type => "messageExpression must evaluate to a string".to_owned(),
    })?;
    let cost = expression.estimate(&DeclaredSizes(decl)).max;
    let program = expression
        .program()
        .map_err(|why| format!("messageExpression instantiation failed: {why}"))?;
    Ok((program, cost))
}
