//! What a MutatingAdmissionPolicy makes of a request: patches of its object.

use cel_rules::patches::{object_type, operations_type};
use parking_lot::Mutex;
use serde_json::Value;

use super::expression::{Expression, OF_POLICY, Scope};
use super::inputs::Inputs;
use super::policy::Policy;
use super::text;

/// One mutation of a policy.
#[derive(Debug)]
pub(super) struct Mutation {
    form: Form,
    expression: Expression,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Configuration,
    Operations,
}

/// A patch of an object, as an expression has made it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Patch {
    /// An apply configuration.
    Configuration(Value),
    /// The operations of a JSON patch.
    Operations(Value),
}

// === impl Mutation ===

impl Mutation {
    /// The mutations of a policy; those of no known form can't be stored.
    pub(super) fn all(scope: &Scope, mutations: &[Value]) -> Vec<Self> {
        let read = |mutation: &Value| {
            let form = match text(mutation, "patchType") {
                "ApplyConfiguration" => Form::Configuration,
                "JSONPatch" => Form::Operations,
                _ => return None,
            };
            let wanted = match form {
                Form::Configuration => object_type(),
                Form::Operations => operations_type(),
            };
            let source = text(mutation.get(form.field())?, "expression");
            Some(Self { form, expression: scope.compile(source, &[wanted]) })
        };
        mutations.iter().filter_map(read).collect()
    }

    /// The field that it is in.
    pub(super) fn field(&self) -> &'static str {
        self.form.field()
    }

    pub(super) fn expression(&self) -> &Expression {
        &self.expression
    }
}

impl Form {
    fn field(self) -> &'static str {
        match self {
            Self::Configuration => "applyConfiguration",
            Self::Operations => "jsonPatch",
        }
    }
}

// === impl Policy ===

impl Policy {
    /// How many mutations there are, which are made in order.
    pub(crate) fn mutations(&self) -> usize {
        self.mutations.len()
    }

    /// Whether a request meets the conditions of the policy.
    ///
    /// # Errors
    /// What failed, in upstream's words, unless failures are ignored.
    pub(crate) fn met(&self, inputs: &Inputs<'_>) -> Result<bool, String> {
        self.conditions.met_with(inputs, &self.variables)
    }

    /// The patch that a mutation makes of a request; `None` if there is no such mutation.
    ///
    /// # Errors
    /// Why there is none, in upstream's words.
    pub(crate) fn patch(&self, at: usize, inputs: &Inputs<'_>) -> Result<Option<Patch>, String> {
        let Some(Mutation { form, expression }) = self.mutations.get(at) else { return Ok(None) };
        if let Some(why) = expression.problem() {
            return Err(why.to_owned());
        }
        let left = Mutex::new(OF_POLICY);
        let made = expression.evaluate(inputs, &self.variables, &left, |value| match form {
            Form::Configuration => value.to_configuration().map(Patch::Configuration),
            Form::Operations => value.to_operations().map(Patch::Operations),
        });
        made.map_err(str::to_owned)??.map(Some)
    }
}
