//! Expressions of policies and webhooks: what they may use, and how they are evaluated.

use std::sync::{Arc, OnceLock};

use cel_rules::{Budget, DeclType, Env, EvalError, Field, ObjectType, Opaque};
use cel_rules::{Program, Type, Value as Cel};
use parking_lot::Mutex;
use serde_json::Value;

use super::declared::{NAMESPACE, REQUEST};
use super::inputs::{Inputs, Variables};
use super::text;

/// Cost units of one expression, of all match conditions, and of all else of one policy (upstream's
/// `PerCallLimit`, `RuntimeCELCostBudgetMatchConditions` and `RuntimeCELCostBudget`).
pub(super) const PER_EXPRESSION: u64 = 1_000_000;
const OF_CONDITIONS: u64 = 2_500_000;
pub(super) const OF_POLICY: u64 = 10_000_000;

/// What is said when a budget is spent.
pub(super) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Which variables an expression may use besides those that all may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sees {
    pub(super) params: bool,
    pub(super) authorizer: bool,
    /// Whether it may make patches of objects.
    pub(super) patches: bool,
}

/// The declarations of variables, in the order of [`Inputs::values`].
#[derive(Debug)]
pub(super) struct Scope {
    sees: Sees,
    /// The variables of a policy; webhooks have none.
    variables: Option<Vec<Field>>,
    /// The type of the request's object, and that of parameters: known only to those who check types.
    object: Option<Arc<DeclType>>,
    params: Option<Arc<DeclType>>,
    /// All of it as expressions are compiled with it.
    env: OnceLock<Env>,
}

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) text: String,
    /// Why it can't be evaluated, if it can't.
    pub(super) program: Result<Program, String>,
    output: Type,
    sees: Sees,
    /// Whether it reads what may be asked about the caller, which is work to make.
    asks: bool,
}

/// The conditions that a request must meet.
#[derive(Debug)]
pub(crate) struct Conditions {
    list: Vec<Expression>,
    ignores_failure: bool,
}

// === impl Scope ===

impl Scope {
    /// What the expressions of a policy see.
    pub(super) fn new(sees: Sees) -> Self {
        let env = OnceLock::new();
        Self { sees, variables: Some(Vec::new()), object: None, params: None, env }
    }

    /// What the expressions of a policy see of objects whose type is known.
    pub(super) fn typed(sees: Sees, object: Arc<DeclType>, params: Option<Arc<DeclType>>) -> Self {
        Self { object: Some(object), params, ..Self::new(sees) }
    }

    /// What a condition sees when it is written: no variables, whatever it belongs to.
    fn of_condition(params: bool) -> Self {
        let sees = Sees { params, authorizer: true, patches: false };
        Self { variables: None, ..Self::new(sees) }
    }

    /// The same declarations for other expressions of the policy.
    pub(super) fn seeing(&self, sees: Sees) -> Self {
        let (object, params) = (self.object.clone(), self.params.clone());
        Self { sees, variables: self.variables.clone(), object, params, env: OnceLock::new() }
    }

    /// Declares a variable of the policy.
    pub(super) fn add(&mut self, name: &str, expression: &Expression) {
        // As upstream, the fields of structures are not known any more.
        let output = match &expression.output {
            Type::Object(_) => Type::Dyn,
            output => output.clone(),
        };
        let decl = DeclType::plain(output, cel_rules::decl::UNBOUNDED, 1);
        let field = Field { name: name.into(), json_name: None, decl, required: true };
        let variables = self.variables.get_or_insert_default();
        variables.retain(|known| *known.name != *name);
        variables.push(field);
        self.env.take();
    }

    fn env(&self) -> Env {
        let object = self.object.clone().unwrap_or_else(DeclType::dynamic);
        let mut variables = vec![
            ("object", object.clone()),
            ("oldObject", object),
            ("request", REQUEST.clone()),
            ("namespaceObject", NAMESPACE.clone()),
        ];
        if self.sees.params {
            variables.push(("params", self.params.clone().unwrap_or_else(DeclType::dynamic)));
        }
        if self.sees.authorizer {
            let opaque = |of| DeclType::plain(Type::Opaque(of), 0, 0);
            variables.push(("authorizer", opaque(Opaque::Authorizer)));
            variables.push(("authorizer.requestResource", opaque(Opaque::ResourceCheck)));
        }
        if let Some(fields) = self.variables.clone() {
            let object = ObjectType::new("kubernetes.variables", fields);
            variables.push(("variables", DeclType::object(Arc::new(object), 2)));
        }
        let env = Env::new(variables);
        if self.sees.patches { env.with_patches() } else { env }
    }

    /// Compiles an expression, whose value must be of one of some types; of any if none are given.
    pub(super) fn compile(&self, text: &str, wanted: &[Type]) -> Expression {
        let mut output = Type::Dyn;
        let compiled = || {
            let expression = self.env.get_or_init(|| self.env()).compile(text);
            let expression = expression.map_err(|error| format!("compilation failed: {error}"))?;
            output = expression.output_type().clone();
            let fits = wanted.is_empty() || wanted.iter().any(|wanted| wanted.is_exactly(&output));
            if !fits {
                return Err(match wanted {
                    [only] => format!("must evaluate to {only} but got {output}"),
                    several => {
                        let several = several.iter().map(ToString::to_string);
                        let several = several.collect::<Vec<_>>().join(" ");
                        format!("must evaluate to one of [{several}] but got {output}")
                    }
                });
            }
            let program = expression.program();
            program.map_err(|error| format!("program instantiation failed: {error}"))
        };
        let program = { compiled }();
        let asked = ["authorizer", "authorizer.requestResource"];
        let asks =
            program.as_ref().is_ok_and(|program| asked.iter().any(|name| program.reads(name)));
        Expression { text: text.to_owned(), program, output, sees: self.sees, asks }
    }
}

// === impl Expression ===

impl Expression {
    /// Why it does not compile, if it doesn't.
    pub(super) fn problem(&self) -> Option<&str> {
        self.program.as_ref().err().map(String::as_str)
    }

    /// Evaluates within what is left of a budget, and hands the value on: it lives no longer.
    ///
    /// # Errors
    /// [`OUT_OF_BUDGET`] as the outer one; the expression's own failure as the inner one.
    pub(super) fn evaluate<T>(
        &self,
        inputs: &Inputs<'_>,
        variables: &[(String, Self)],
        left: &Mutex<u64>,
        then: impl FnOnce(&Cel<'_>) -> T,
    ) -> Result<Result<T, String>, &'static str> {
        let program = match &self.program {
            Ok(program) => program,
            Err(why) => return Ok(Err(format!("compilation error: {why}"))),
        };
        let record = Variables { list: variables, inputs, left };
        let outcome = self.run(program, inputs, &record, left).map(|value| then(&value));
        if *left.lock() == 0 {
            return Err(OUT_OF_BUDGET);
        }
        Ok(outcome
            .map_err(|error| format!("expression '{}' resulted in error: {error}", self.text)))
    }

    pub(super) fn run<'v>(
        &self,
        program: &'v Program,
        inputs: &'v Inputs<'_>,
        variables: &'v Variables<'_>,
        left: &Mutex<u64>,
    ) -> Result<Cel<'v>, EvalError> {
        let values = inputs.values(self.sees, self.asks, variables)?;
        let mut budget = Budget::new(PER_EXPRESSION.min(*left.lock()));
        let value = program.evaluate(&values, &mut budget);
        let mut left = left.lock();
        *left = left.saturating_sub(budget.spent());
        value
    }
}

// === impl Conditions ===

impl Conditions {
    pub(super) fn of_webhook(conditions: &[Value], ignores_failure: bool) -> Self {
        Self::new(&Scope::of_condition(false), conditions, ignores_failure)
    }

    /// Why a condition may not be written, if it may not. `params` says whether it belongs to a policy
    /// that has some.
    pub(crate) fn problem(text: &str, params: bool) -> Option<String> {
        let condition = Scope::of_condition(params).compile(text, &[Type::Bool]);
        condition.problem().map(str::to_owned)
    }

    pub(super) fn new(scope: &Scope, conditions: &[Value], ignores_failure: bool) -> Self {
        let compile = |condition| scope.compile(text(condition, "expression"), &[Type::Bool]);
        Self { list: conditions.iter().map(compile).collect(), ignores_failure }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether a request meets all conditions. One that is false decides, whatever fails.
    ///
    /// # Errors
    /// What failed, unless failures are ignored: then the request doesn't meet them.
    pub(crate) fn met(&self, inputs: &Inputs<'_>) -> Result<bool, String> {
        self.met_with(inputs, &[])
    }

    pub(super) fn met_with(
        &self,
        inputs: &Inputs<'_>,
        variables: &[(String, Expression)],
    ) -> Result<bool, String> {
        let left = Mutex::new(OF_CONDITIONS);
        let mut failures: Vec<String> = Vec::new();
        for condition in &self.list {
            match condition.evaluate(inputs, variables, &left, |value| value.as_bool()) {
                Ok(Ok(Some(false))) => return Ok(false),
                Ok(Ok(_)) => {}
                Ok(Err(why)) if failures.contains(&why) => {}
                Ok(Err(why)) => failures.push(why),
                Err(why) => {
                    failures = vec![why.to_owned()];
                    break;
                }
            }
        }
        match failures.as_slice() {
            [] => Ok(true),
            _ if self.ignores_failure => Ok(false),
            [only] => Err(only.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests;
