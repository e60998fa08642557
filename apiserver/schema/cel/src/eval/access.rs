//! Names, selects, indexes and `?:`: what upstream calls an attribute.
//!
//! A chain is resolved from its root. Once a link is optional (`?.`, `[?]`, or a root that is an
//! optional value) the rest of the chain is looked up softly, and the result is optional.

use crate::ast::{Id, Kind};
use crate::check::Meaning;
use crate::eval::{Eval, Evaluated, Local, literal_value};
use crate::library::format::display;
use crate::op::Op;
use crate::value::{EvalError, Text, V};

/// What a chain leads to.
enum Found<'a> {
    Value(V<'a>),
    Optional(Option<V<'a>>),
}

impl<'a> Eval<'a, '_> {
    /// Evaluates a chain and pays for its root.
    pub(super) fn attribute(&mut self, id: Id) -> Evaluated<'a> {
        let result = self.resolve(id);
        if matches!(result, Err(EvalError::CostLimit)) {
            return Err(EvalError::CostLimit);
        }
        let test = matches!(self.program.ast.kind(id), Kind::Select { test: true, .. });
        match (self.root_is_conditional(id), test) {
            (true, true) => self.budget.refund(1),
            (true, false) | (false, true) => {}
            (false, false) => self.budget.charge(1)?,
        }
        result.map(unwrap)
    }

    /// Whether the root of the chain is `?:`, which costs nothing itself.
    fn root_is_conditional(&self, id: Id) -> bool {
        let mut at = id;
        loop {
            at = match self.program.ast.kind(at) {
                Kind::Select { operand, .. } => *operand,
                Kind::Call { args, .. } => match (self.program.op(at), args.first()) {
                    (Some(Op::Conditional), _) => return true,
                    (Some(Op::Index | Op::OptIndex | Op::OptSelect), Some(operand)) => *operand,
                    _ => return false,
                },
                _ => return false,
            };
        }
    }

    fn resolve(&mut self, id: Id) -> Result<Found<'a>, EvalError> {
        let program = self.program;
        match program.ast.kind(id) {
            Kind::Ident(_) => self.name(id).map(Found::Value),
            Kind::Select { operand, field, test } => {
                let base = self.resolve_or_eval(*operand)?;
                let key = V::String(Text::Borrowed(field));
                if *test { self.presence(base, &key) } else { self.link(base, &key, false) }
            }
            Kind::Call { args, .. } => match (program.op(id), &**args) {
                (Some(Op::Conditional), [condition, yes, no]) => match self.eval(*condition)? {
                    V::Bool(true) => self.resolve_or_eval(*yes),
                    V::Bool(false) => self.resolve_or_eval(*no),
                    _ => Err(EvalError::no_such_overload()),
                },
                (Some(Op::OptSelect), [operand, field]) => {
                    let base = self.resolve_or_eval(*operand)?;
                    let Kind::Literal(field) = program.ast.kind(*field) else {
                        return Err(EvalError::no_such_overload());
                    };
                    self.link(base, &literal_value(field), true)
                }
                (Some(op @ (Op::Index | Op::OptIndex)), [operand, index]) => {
                    let base = self.resolve_or_eval(*operand)?;
                    if matches!(base, Found::Optional(None) | Found::Value(V::Optional(None))) {
                        return Ok(Found::Optional(None));
                    }
                    let index = match self.resolve_or_eval(*index).map(unwrap) {
                        Ok(index) => index,
                        Err(error) => {
                            self.budget.charge(1)?;
                            return Err(error);
                        }
                    };
                    self.link(base, &index, op == Op::OptIndex)
                }
                _ => self.eval(id).map(Found::Value),
            },
            _ => self.eval(id).map(Found::Value),
        }
    }

    /// A part of a chain doesn't pay for itself; anything else is evaluated, and its holder pays one.
    fn resolve_or_eval(&mut self, id: Id) -> Result<Found<'a>, EvalError> {
        if self.program.constants.get(id).is_some() {
            return self.eval(id).map(Found::Value);
        }
        self.resolve(id)
    }

    fn name(&mut self, id: Id) -> Evaluated<'a> {
        let program = self.program;
        match program.meaning(id) {
            Some(Meaning::Variable(at)) => match self.inputs.get(*at as usize) {
                Some(value) => Ok(value.0.clone()),
                None => {
                    let name = program.variables.get(*at as usize).map_or("", |name| name);
                    Err(EvalError::failed(format_args!("no such attribute(s): {name}")))
                }
            },
            Some(Meaning::Local(slot)) => self.local(*slot as usize),
            _ => Err(EvalError::no_such_overload()),
        }
    }

    fn local(&mut self, slot: usize) -> Evaluated<'a> {
        let init = match self.locals.get(slot) {
            Some(Local::Ready(value)) => return value.clone(),
            Some(Local::Lazy(init)) => *init,
            _ => return Err(EvalError::no_such_overload()),
        };
        let value = self.eval(init);
        if matches!(value, Err(EvalError::CostLimit)) {
            return value;
        }
        self.locals[slot] = Local::Ready(value.clone());
        value
    }

    /// Follows one link; pays one, unless the link is optional and leads nowhere.
    fn link(&mut self, base: Found<'a>, key: &V<'a>, soft: bool) -> Result<Found<'a>, EvalError> {
        let (value, soft) = match base {
            Found::Optional(None) | Found::Value(V::Optional(None)) => {
                return Ok(Found::Optional(None));
            }
            Found::Optional(Some(value)) => (value, true),
            Found::Value(V::Optional(Some(value))) => ((*value).clone(), true),
            Found::Value(value) => (value, soft),
        };
        match (qualify(&value, key), soft) {
            (Ok(Some(found)), false) => {
                self.budget.charge(1)?;
                Ok(Found::Value(found))
            }
            (Ok(Some(found)), true) => {
                self.budget.charge(1)?;
                Ok(Found::Optional(Some(found)))
            }
            (Ok(None), true) => Ok(Found::Optional(None)),
            (Ok(None), false) => {
                self.budget.charge(1)?;
                match &value {
                    V::Map(map) if map.is_open() => Ok(Found::Value(V::Null)),
                    _ => Err(missing(&value, key)),
                }
            }
            (Err(error), _) => {
                self.budget.charge(u64::from(!soft))?;
                Err(error)
            }
        }
    }

    /// Whether a field is there, for `has`.
    fn presence(&mut self, base: Found<'a>, key: &V<'a>) -> Result<Found<'a>, EvalError> {
        let value = match base {
            Found::Optional(None) | Found::Value(V::Optional(None)) => {
                return Ok(Found::Value(V::Bool(false)));
            }
            Found::Optional(Some(value)) => value,
            Found::Value(V::Optional(Some(value))) => (*value).clone(),
            Found::Value(value) => value,
        };
        self.budget.charge(1)?;
        Ok(Found::Value(V::Bool(qualify(&value, key)?.is_some())))
    }
}

fn unwrap<'a>(found: Found<'a>) -> V<'a> {
    match found {
        Found::Value(value) => value,
        Found::Optional(value) => V::Optional(value.map(std::sync::Arc::new)),
    }
}

/// The part of `value` that `key` names; none if it isn't there.
fn qualify<'a>(value: &V<'a>, key: &V<'a>) -> Result<Option<V<'a>>, EvalError> {
    match value {
        V::Map(map) => map.get(key),
        V::List(list) => {
            let index = match key {
                V::Int(index) => usize::try_from(*index).ok(),
                V::Uint(index) => usize::try_from(*index).ok(),
                V::Double(index) if index.fract() == 0.0 => {
                    (*index >= 0.0).then_some(*index as usize)
                }
                other => {
                    let name = other.type_name();
                    return Err(EvalError::failed(format_args!(
                        "unsupported index type '{name}' in list"
                    )));
                }
            };
            match index.filter(|index| *index < list.len()) {
                Some(index) => list.get(index).map(Some),
                None => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

fn missing(value: &V<'_>, key: &V<'_>) -> EvalError {
    let key = display(key);
    match value {
        V::List(_) => EvalError::failed(format_args!("index out of bounds: {key}")),
        _ => EvalError::failed(format_args!("no such key: {key}")),
    }
}
