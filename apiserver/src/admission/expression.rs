//! Expressions of policies and webhooks, and what they see of a request.

use std::fmt;
use std::sync::Arc;

use cel_rules::authorizer::{Authorizer, Decision, Question, Target};
use cel_rules::{Budget, DeclType, Env, EvalError, Field, ObjectType, Opaque};
use cel_rules::{Program, Record, Type, Value as Cel};
use machinery::ClusterName;
use parking_lot::Mutex;
use serde_json::Value;

use super::declared::{NAMESPACE, REQUEST, REQUEST_RESOURCE};
use super::text;
use crate::auth::UserInfo;
use crate::auth::authz;
use crate::registry::ClusterScope;

/// Cost units of one expression, of all match conditions, and of all else of one policy (upstream's
/// `PerCallLimit`, `RuntimeCELCostBudgetMatchConditions` and `RuntimeCELCostBudget`).
const PER_EXPRESSION: u64 = 1_000_000;
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
}

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) text: String,
    /// Why it can't be evaluated, if it can't.
    program: Result<Program, String>,
    output: Type,
    sees: Sees,
}

/// The conditions that a request must meet.
#[derive(Debug)]
pub(crate) struct Conditions {
    list: Vec<Expression>,
    ignores_failure: bool,
}

/// What expressions see of a request.
#[derive(Debug)]
pub(crate) struct Inputs<'a> {
    pub(crate) object: Option<&'a Value>,
    pub(crate) old: Option<&'a Value>,
    pub(crate) request: &'a Value,
    pub(crate) namespace: Option<&'a Value>,
    pub(crate) params: Option<&'a Value>,
    pub(crate) caller: &'a Caller,
}

/// What the user of a request may do, for the variable `authorizer`.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) user: Arc<UserInfo>,
    pub(crate) cluster: ClusterName,
    pub(crate) authorizer: Arc<authz::Authorizer>,
}

/// The variables of a policy, each of which sees those before it. They are evaluated when they are
/// read, each time: what an evaluation gives lives no longer than what it came from.
pub(super) struct Variables<'a> {
    list: &'a [(String, Expression)],
    inputs: &'a Inputs<'a>,
    /// Units that may still be spent, by all expressions that share the variables.
    left: &'a Mutex<u64>,
}

// === impl Scope ===

impl Scope {
    /// What the expressions of a policy see.
    pub(super) fn new(sees: Sees) -> Self {
        Self { sees, variables: Some(Vec::new()) }
    }

    /// What a condition sees when it is written: no variables, whatever it belongs to.
    fn of_condition(params: bool) -> Self {
        Self { sees: Sees { params, authorizer: true, patches: false }, variables: None }
    }

    /// The same declarations for other expressions of the policy.
    pub(super) fn seeing(&self, sees: Sees) -> Self {
        Self { sees, variables: self.fields() }
    }

    /// Declares a variable of the policy.
    pub(super) fn add(&mut self, name: &str, expression: &Expression) {
        let decl = DeclType::plain(expression.output.clone(), cel_rules::decl::UNBOUNDED, 1);
        let field = Field { name: name.into(), json_name: None, decl, required: true };
        let variables = self.variables.get_or_insert_default();
        variables.retain(|known| *known.name != *name);
        variables.push(field);
    }

    /// The declared variables once more: a field can't be copied as it is.
    fn fields(&self) -> Option<Vec<Field>> {
        let copied = self.variables.as_ref()?.iter().map(|field| Field {
            name: field.name.clone(),
            json_name: None,
            decl: field.decl.clone(),
            required: true,
        });
        Some(copied.collect())
    }

    fn env(&self) -> Env {
        let dynamic = DeclType::dynamic();
        let mut variables = vec![
            ("object", dynamic.clone()),
            ("oldObject", dynamic.clone()),
            ("request", REQUEST.clone()),
            ("namespaceObject", NAMESPACE.clone()),
        ];
        if self.sees.params {
            variables.push(("params", dynamic));
        }
        if self.sees.authorizer {
            let opaque = |of| DeclType::plain(Type::Opaque(of), 0, 0);
            variables.push(("authorizer", opaque(Opaque::Authorizer)));
            variables.push(("authorizer.requestResource", opaque(Opaque::ResourceCheck)));
        }
        if let Some(fields) = self.fields() {
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
            let expression = self.env().compile(text);
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
        Expression { text: text.to_owned(), program, output, sees: self.sees }
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

    fn run<'v>(
        &self,
        program: &'v Program,
        inputs: &'v Inputs<'_>,
        variables: &'v Variables<'_>,
        left: &Mutex<u64>,
    ) -> Result<Cel<'v>, EvalError> {
        let values = inputs.values(self.sees, variables)?;
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

// === impl Inputs ===

impl Inputs<'_> {
    fn values<'v>(
        &'v self,
        sees: Sees,
        variables: &'v Variables<'_>,
    ) -> Result<Vec<Cel<'v>>, EvalError> {
        let untyped = |value: Option<&'v Value>| value.map_or(Cel::NULL, Cel::from_untyped);
        let namespace = match self.namespace {
            Some(namespace) => Cel::from_json(namespace, &NAMESPACE)?,
            None => Cel::NULL,
        };
        let request = Cel::from_json(self.request, &REQUEST)?;
        let mut values = vec![untyped(self.object), untyped(self.old), request, namespace];
        if sees.params {
            values.push(untyped(self.params));
        }
        if sees.authorizer {
            let authorizer = Cel::authorizer(Arc::new(self.caller.clone()));
            values.push(authorizer.clone());
            values.push(self.request_resource(authorizer)?);
        }
        values.push(Cel::record(variables));
        Ok(values)
    }

    /// The check of the request's own resource.
    fn request_resource<'v>(&'v self, authorizer: Cel<'v>) -> Result<Cel<'v>, EvalError> {
        let resource = self.request.get("requestResource").unwrap_or(&Value::Null);
        let parts = [
            text(resource, "group"),
            text(resource, "resource"),
            text(self.request, "requestSubResource"),
            text(self.request, "namespace"),
            text(self.request, "name"),
        ];
        let mut values = vec![authorizer];
        values.extend(parts.map(Cel::str));
        REQUEST_RESOURCE.evaluate(&values, &mut Budget::new(PER_EXPRESSION))
    }
}

// === impl Variables ===

impl Record for Variables<'_> {
    fn field<'s>(&'s self, name: &str) -> Option<Result<Cel<'s>, EvalError>> {
        let at = self.list.iter().position(|(known, _)| known == name)?;
        let (_, expression) = self.list.get(at)?;
        let failed = |what: &str, why: &dyn fmt::Display| {
            EvalError::failed(format_args!("composited variable {name:?} fails to {what}: {why}"))
        };
        let program = match &expression.program {
            Ok(program) => program,
            Err(why) => return Some(Err(failed("compile", why))),
        };
        if *self.left.lock() == 0 {
            return Some(Err(EvalError::CostLimit));
        }
        let value = expression.run(program, self.inputs, self, self.left);
        Some(value.map_err(|error| match error {
            EvalError::CostLimit => EvalError::CostLimit,
            EvalError::Failed(why) => failed("evaluate", &why),
        }))
    }
}

impl fmt::Debug for Variables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list.iter().map(|(name, _)| name)).finish()
    }
}

// === impl Caller ===

impl Authorizer for Caller {
    fn authorize(&self, question: &Question<'_>) -> Decision {
        let account;
        let user = match question.service_account {
            None => &*self.user,
            Some((namespace, name)) => {
                let groups =
                    ["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}")];
                let name = format!("system:serviceaccount:{namespace}:{name}");
                let home = Some(self.cluster.clone());
                account = UserInfo { home, ..UserInfo::known(&name, &groups) };
                &account
            }
        };
        let verb = question.verb;
        let asked = match question.target {
            Target::Path(path) => authz::Attributes::Path { verb, path },
            Target::Resource { group, resource, subresource, namespace, name, .. } => {
                authz::Attributes::Resource { verb, group, resource, subresource, namespace, name }
            }
        };
        let scope = ClusterScope::One(self.cluster.clone());
        let decision = self.authorizer.authorize(user, &scope, &asked);
        let (allowed, reason) = (decision.is_allowed(), decision.reason());
        Decision { allowed, reason, error: None }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn met(expressions: &[&str], ignores_failure: bool) -> Result<bool, String> {
        let store = store::MemoryStore::new(store::memory::Options::default());
        let overlay = Arc::new(store::cache::NoOverlay);
        let tasks = runtime::Tasks::new();
        let cache = store::cache::Cache::start(store, overlay, &tasks).await.unwrap();
        let caller = Caller {
            user: Arc::new(UserInfo::known("eve", &[])),
            cluster: ClusterName::root(),
            authorizer: Arc::new(authz::Authorizer::new(cache)),
        };
        let conditions: Vec<Value> =
            expressions.iter().map(|text| json!({"name": "c", "expression": text})).collect();
        let conditions = Conditions::of_webhook(&conditions, ignores_failure);
        let object = json!({"metadata": {"name": "a"}, "spec": {"replicas": 3}});
        let request = json!({
            "operation": "CREATE", "userInfo": {"username": "eve", "groups": ["g"]},
            "requestResource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "resource": {}, "kind": {}, "requestKind": {}, "name": "a", "namespace": "n",
        });
        let namespace = json!({
            "metadata": {"labels": {"env": "test"}, "creationTimestamp": "2026-01-01T00:00:00Z"},
        });
        let inputs = Inputs {
            object: Some(&object),
            old: None,
            request: &request,
            namespace: Some(&namespace),
            params: None,
            caller: &caller,
        };
        conditions.met(&inputs)
    }

    #[tokio::test]
    async fn conditions_see_the_request() {
        let check = async |text: &str, expect: bool| {
            assert_eq!(met(&[text], false).await, Ok(expect), "{text}");
        };
        check("object.spec.replicas == 3", true).await;
        check("oldObject == null", true).await;
        check("request.operation == 'UPDATE'", false).await;
        check("request.userInfo.username == 'eve'", true).await;
        check("namespaceObject.metadata.labels['env'] == 'test'", true).await;
        check("namespaceObject.metadata.creationTimestamp.getFullYear() == 2026", true).await;
        check("authorizer.group('').resource('pods').check('get').allowed()", false).await;
        check("authorizer.path('/healthz').check('get').allowed()", true).await;
        check("authorizer.requestResource.check('create').allowed()", false).await;
    }

    #[tokio::test]
    async fn a_false_condition_decides_and_failures_follow_the_policy() {
        let fails = "object.nothing == 1";
        let why = "expression 'object.nothing == 1' resulted in error: no such key: nothing";
        assert_eq!(met(&[fails], false).await, Err(why.into()));
        assert_eq!(met(&[fails], true).await, Ok(false));
        assert_eq!(met(&[fails, "false"], false).await, Ok(false));
        assert_eq!(met(&["true", fails], true).await, Ok(false));
        let wrong = met(&["1"], false).await.unwrap_err();
        assert_eq!(wrong, "compilation error: must evaluate to bool but got int");
    }
}
