//! What expressions of policies and webhooks see of a request, as values.

use std::fmt;
use std::sync::Arc;

use cel_rules::authorizer::{Authorizer, Decision, Question, Target};
use cel_rules::{Budget, EvalError, Record, Value as Cel};
use machinery::ClusterName;
use parking_lot::Mutex;
use serde_json::Value;

use super::declared::{NAMESPACE, REQUEST, REQUEST_RESOURCE};
use super::expression::{Expression, PER_EXPRESSION, Sees};
use super::text;
use crate::auth::UserInfo;
use crate::auth::authz;
use crate::auth::tokens::{account_groups, account_name};
use crate::registry::ClusterScope;

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
    pub(super) list: &'a [(String, Expression)],
    pub(super) inputs: &'a Inputs<'a>,
    /// Units that may still be spent, by all expressions that share the variables.
    pub(super) left: &'a Mutex<u64>,
}

// === impl Inputs ===

impl Inputs<'_> {
    /// The values of what an expression sees. `asks` says whether it reads what may be asked about the
    /// caller; if it doesn't, that is nothing.
    pub(super) fn values<'v>(
        &'v self,
        sees: Sees,
        asks: bool,
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
        if sees.authorizer && !asks {
            values.extend([Cel::NULL, Cel::NULL]);
        } else if sees.authorizer {
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
                let groups = account_groups(namespace);
                let groups = groups.each_ref().map(String::as_str);
                let home = Some(self.cluster.clone());
                let known = UserInfo::known(&account_name(namespace, name), &groups);
                account = UserInfo { home, ..known };
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
