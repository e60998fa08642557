//! Admission policies: compiled once for each distinct content, and what validating ones decide.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use cel_rules::Type;
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};
use store::cache::Object;

use super::criteria::Criteria;
use super::expression::{Conditions, Expression, OF_POLICY, Scope, Sees};
use super::inputs::Inputs;
use super::mutation::Mutation;
use super::{items, text};
use crate::registry::Reason;

/// Longest message that an expression may give, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

/// A policy, shared by all logical clusters that have one of the same content.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) criteria: Criteria,
    /// `apiVersion` and `kind` of its parameters.
    pub(crate) param_kind: Option<(String, String)>,
    pub(crate) ignores_failure: bool,
    pub(super) conditions: Conditions,
    pub(super) variables: Vec<(String, Expression)>,
    validations: Vec<Validation>,
    audits: Vec<Audit>,
    pub(super) mutations: Vec<Mutation>,
    /// Whether it is asked again when the object changes after it.
    pub(crate) again: bool,
}

/// Which of the two kinds a policy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicyKind {
    /// A ValidatingAdmissionPolicy.
    Validating,
    /// A MutatingAdmissionPolicy.
    Mutating,
}

#[derive(Debug)]
struct Validation {
    expression: Expression,
    message: String,
    message_expression: Option<Expression>,
    reason: Reason,
}

#[derive(Debug)]
struct Audit {
    key: String,
    value: Expression,
}

/// What puts a policy into force.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) policy: String,
    pub(crate) criteria: Criteria,
    /// `paramRef`, if there is one.
    pub(crate) param_ref: Option<Value>,
    pub(crate) actions: Vec<Action>,
}

/// What happens when a validation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Deny,
    Warn,
    Audit,
}

/// A validation that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(crate) message: String,
    pub(crate) reason: Reason,
    /// Whether it denies whatever the binding's actions are.
    pub(crate) always: bool,
}

type Known = HashMap<[u8; 32], Weak<Policy>>;

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

// === impl Policy ===

impl Policy {
    /// The policy of a stored object, compiled at its first use.
    pub(crate) fn of(object: &Arc<Object>, kind: PolicyKind) -> Option<Arc<Self>> {
        let read = || -> Arc<dyn std::any::Any + Send + Sync> {
            let value = serde_json::from_slice::<Value>(&object.json()).unwrap_or_default();
            Arc::new(Self::compiled(value.get("spec").unwrap_or(&Value::Null), kind))
        };
        let derived = object.derived.get_or_init(read);
        derived.downcast_ref::<Arc<Self>>().cloned()
    }

    fn compiled(spec: &Value, kind: PolicyKind) -> Arc<Self> {
        let identity: [u8; 32] = Sha256::digest(format!("{kind:?} {spec}")).into();
        if let Some(found) = KNOWN.lock().get(&identity).and_then(Weak::upgrade) {
            return found;
        }
        let made = Arc::new(Self::new(spec, kind));
        let mut known = KNOWN.lock();
        if known.len() >= 64 && known.len() == known.capacity() {
            known.retain(|_, policy| policy.strong_count() > 0);
        }
        known.insert(identity, Arc::downgrade(&made));
        made
    }

    fn new(spec: &Value, kind: PolicyKind) -> Self {
        let param_kind = spec.get("paramKind").filter(|kind| kind.is_object());
        let params = param_kind.is_some();
        let ignores_failure = text(spec, "failurePolicy") == "Ignore";
        let mut scope = Scope::new(Sees { params, authorizer: true, patches: false });
        let mut variables = Vec::new();
        for variable in items(spec, "variables") {
            let expression = scope.compile(text(variable, "expression"), &[]);
            scope.add(text(variable, "name"), &expression);
            variables.push((text(variable, "name").to_owned(), expression));
        }
        // Upstream lets neither messages nor annotations ask what a user may do.
        let plain = scope.seeing(Sees { params, authorizer: false, patches: false });
        let only = |wanted: PolicyKind, field: &str| {
            if kind == wanted { items(spec, field) } else { &[] }
        };
        let validations =
            only(PolicyKind::Validating, "validations").iter().map(|validation| Validation {
                expression: scope.compile(text(validation, "expression"), &[Type::Bool]),
                message: text(validation, "message").trim().to_owned(),
                message_expression: Some(text(validation, "messageExpression"))
                    .filter(|text| !text.is_empty())
                    .map(|text| plain.compile(text, &[Type::String])),
                reason: match text(validation, "reason") {
                    "Forbidden" => Reason::Forbidden,
                    "Unauthorized" => Reason::Unauthorized,
                    "RequestEntityTooLarge" => Reason::RequestEntityTooLarge,
                    _ => Reason::Invalid,
                },
            });
        let audits = only(PolicyKind::Validating, "auditAnnotations").iter().map(|audit| Audit {
            key: text(audit, "key").to_owned(),
            value: plain.compile(text(audit, "valueExpression"), &[Type::String, Type::Null]),
        });
        Self {
            criteria: Criteria::of_policy(
                spec.get("matchConstraints").unwrap_or(&Value::Null),
                false,
            ),
            param_kind: param_kind
                .map(|kind| (text(kind, "apiVersion").to_owned(), text(kind, "kind").to_owned())),
            ignores_failure,
            conditions: Conditions::new(&scope, items(spec, "matchConditions"), ignores_failure),
            validations: validations.collect(),
            audits: audits.collect(),
            mutations: Mutation::all(
                &scope.seeing(Sees { params, authorizer: true, patches: true }),
                only(PolicyKind::Mutating, "mutations"),
            ),
            again: text(spec, "reinvocationPolicy") == "IfNeeded",
            variables,
        }
    }

    /// What fails for a request, with one parameter or none.
    ///
    /// What the audit log is to be told is added to `told`, by key.
    pub(crate) fn judge(
        &self,
        inputs: &Inputs<'_>,
        told: &mut Vec<(String, String)>,
    ) -> Vec<Denial> {
        let broken = |message: String| {
            let denial = Denial { message, reason: Reason::Invalid, always: false };
            if self.ignores_failure { Vec::new() } else { vec![denial] }
        };
        match self.conditions.met_with(inputs, &self.variables) {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            Err(why) => return broken(why),
        }
        let left = Mutex::new(OF_POLICY);
        let mut denials = Vec::new();
        for validation in &self.validations {
            let outcome =
                validation.expression.evaluate(inputs, &self.variables, &left, |v| v.as_bool());
            match outcome {
                Err(why) => return broken(why.to_owned()),
                Ok(Ok(Some(true))) => {}
                Ok(Ok(_)) => match self.message(validation, inputs, &left) {
                    Ok(message) => {
                        let reason = validation.reason;
                        denials.push(Denial { message, reason, always: false });
                    }
                    Err(why) => denials.extend(broken(format!("failed messageExpression: {why}"))),
                },
                Ok(Err(why)) => denials.extend(broken(why)),
            }
        }
        denials.extend(self.audit(inputs, told));
        denials
    }

    fn message(
        &self,
        validation: &Validation,
        inputs: &Inputs<'_>,
        left: &Mutex<u64>,
    ) -> Result<String, &'static str> {
        let mut message = String::new();
        if let Some(expression) = &validation.message_expression {
            let text = |value: &cel_rules::Value<'_>| value.as_str().map(str::to_owned);
            let made = expression.evaluate(inputs, &self.variables, left, text)?;
            message = made.ok().flatten().unwrap_or_default().trim().to_owned();
            if message.len() > MAX_MESSAGE || message.contains('\n') {
                message.clear();
            }
        }
        if message.is_empty() {
            message.clone_from(&validation.message);
        }
        if message.is_empty() {
            message = format!("failed expression: {}", validation.expression.text.trim());
        }
        Ok(message)
    }

    /// Evaluates what is annotated; one that fails denies.
    fn audit(&self, inputs: &Inputs<'_>, told: &mut Vec<(String, String)>) -> Vec<Denial> {
        let left = Mutex::new(OF_POLICY);
        let mut denials = Vec::new();
        for audit in &self.audits {
            let text = |value: &cel_rules::Value<'_>| value.as_str().map(str::to_owned);
            let failed = match audit.value.evaluate(inputs, &self.variables, &left, text) {
                Ok(Ok(value)) => {
                    let value = value.map(|value| value.trim().to_owned());
                    if let Some(value) = value.filter(|value| !value.is_empty()) {
                        told.push((audit.key.clone(), value));
                    }
                    continue;
                }
                Ok(Err(why)) => why,
                Err(why) => why.to_owned(),
            };
            if !self.ignores_failure {
                denials.push(Denial { message: failed, reason: Reason::Invalid, always: true });
            }
        }
        denials
    }

    /// Everything that does not compile, with the place of the expression below `spec`; conditions are
    /// judged by themselves.
    pub(crate) fn problems(&self) -> Vec<(String, String, String)> {
        let mut problems = Vec::new();
        let mut look = |place: String, expression: &Expression| {
            if let Some(why) = expression.problem() {
                problems.push((place, expression.text.clone(), why.to_owned()));
            }
        };
        for (index, (_, expression)) in self.variables.iter().enumerate() {
            look(format!("variables[{index}].expression"), expression);
        }
        for (index, validation) in self.validations.iter().enumerate() {
            look(format!("validations[{index}].expression"), &validation.expression);
            if let Some(expression) = &validation.message_expression {
                look(format!("validations[{index}].messageExpression"), expression);
            }
        }
        for (index, audit) in self.audits.iter().enumerate() {
            look(format!("auditAnnotations[{index}].valueExpression"), &audit.value);
        }
        for (index, mutation) in self.mutations.iter().enumerate() {
            let field = mutation.field();
            look(format!("mutations[{index}].{field}.expression"), mutation.expression());
        }
        problems
    }

    /// What does not compile of a policy's spec.
    pub(crate) fn problems_of(spec: &Value, kind: PolicyKind) -> Vec<(String, String, String)> {
        Self::compiled(spec, kind).problems()
    }
}

// === impl Binding ===

impl Binding {
    /// The binding of a stored object, read once.
    pub(crate) fn of(object: &Arc<Object>) -> Option<Arc<Self>> {
        let read = || -> Arc<dyn std::any::Any + Send + Sync> {
            let value = serde_json::from_slice::<Value>(&object.json()).unwrap_or_default();
            Arc::new(Self::new(value.get("spec").unwrap_or(&Value::Null)))
        };
        object.derived.get_or_init(read).clone().downcast().ok()
    }

    fn new(spec: &Value) -> Self {
        let actions =
            items(spec, "validationActions").iter().filter_map(|action| match action.as_str()? {
                "Deny" => Some(Action::Deny),
                "Warn" => Some(Action::Warn),
                "Audit" => Some(Action::Audit),
                _ => None,
            });
        Self {
            policy: text(spec, "policyName").to_owned(),
            criteria: Criteria::of_policy(spec.get("matchResources").unwrap_or(&Value::Null), true),
            param_ref: spec.get("paramRef").filter(|reference| reference.is_object()).cloned(),
            actions: actions.collect(),
        }
    }
}
