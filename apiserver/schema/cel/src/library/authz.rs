//! Functions of the authorizer library.

use std::sync::Arc;

use crate::authorizer::{Authz, ResourceCheck};
use crate::eval::Evaluated;
use crate::op::Op;
use crate::value::{EvalError, Text, V};

fn shared(text: &Text<'_>) -> Arc<str> {
    (**text).into()
}

pub(super) fn call<'a>(op: Op, args: &[V<'a>]) -> Evaluated<'a> {
    let Some(V::Authz(target)) = args.first() else { return Err(EvalError::no_such_overload()) };
    let made = match (&**target, op, args.get(1..).unwrap_or_default()) {
        (Authz::Authorizer { .. }, Op::Path, [V::String(path)]) => {
            Authz::Path { of: Arc::clone(target), path: shared(path) }
        }
        (Authz::Authorizer { .. }, Op::Group, [V::String(group)]) => {
            Authz::Group { of: Arc::clone(target), group: shared(group) }
        }
        (
            Authz::Authorizer { authorizer, .. },
            Op::ServiceAccount,
            [V::String(namespace), V::String(name)],
        ) => Authz::Authorizer {
            authorizer: Arc::clone(authorizer),
            service_account: Some((shared(namespace), shared(name))),
        },
        (Authz::Group { of, group }, Op::Resource, [V::String(resource)]) => {
            let check = ResourceCheck::new(Arc::clone(of), Arc::clone(group), shared(resource));
            Authz::Resource(Box::new(check))
        }
        (Authz::Resource(check), _, [V::String(text)]) if op != Op::Check => {
            Authz::Resource(Box::new(narrowed(check, op, text)?))
        }
        (question, Op::Check, [V::String(verb)]) => {
            Authz::Decision(question.check(verb).ok_or_else(EvalError::no_such_overload)?)
        }
        (Authz::Decision(decision), _, []) => {
            return Ok(match op {
                Op::Allowed => V::Bool(decision.allowed),
                Op::Reason => V::string(&*decision.reason),
                Op::Errored => V::Bool(decision.error.is_some()),
                Op::DecisionError => V::string(decision.error.as_deref().unwrap_or_default()),
                _ => return Err(EvalError::no_such_overload()),
            });
        }
        _ => return Err(EvalError::no_such_overload()),
    };
    Ok(V::Authz(Arc::new(made)))
}

fn narrowed(check: &ResourceCheck, op: Op, text: &Text<'_>) -> Result<ResourceCheck, EvalError> {
    let mut check = check.clone();
    let field = match op {
        Op::Subresource => &mut check.subresource,
        Op::Namespace => &mut check.namespace,
        Op::Name => &mut check.name,
        Op::FieldSelector => &mut check.field_selector,
        Op::LabelSelector => &mut check.label_selector,
        _ => return Err(EvalError::no_such_overload()),
    };
    *field = shared(text);
    Ok(check)
}
