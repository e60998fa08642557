//! Evaluation with a counted cost.
//!
//! What each step costs is what upstream's interpreter counts, including its peculiarities: a chain of
//! selects and indexes is one unit for its root and one for each link, a branch of `?:` that is such a
//! chain doesn't pay for its root, and constant parts are free. When the budget is spent the evaluation
//! ends, whatever `||`, `&&` or a loop would make of an error.

mod access;
mod loops;

use crate::ast::{Id, Kind, Literal};
use crate::cost::actual_cost;
use crate::expression::Program;
use crate::library;
use crate::op::Op;
use crate::value::{EvalError, Key, List, Map, Text, V, Value, equal};

pub(crate) type Evaluated<'a> = Result<V<'a>, EvalError>;

/// Cost units that may be spent, and those that are.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    limit: u64,
    spent: u64,
}

impl Budget {
    /// A budget of `limit` units.
    pub const fn new(limit: u64) -> Self {
        Self { limit, spent: 0 }
    }

    /// Units spent; may be more than the limit, by the cost of the step that passed it.
    pub const fn spent(&self) -> u64 {
        self.spent
    }

    /// Units left.
    pub const fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.spent)
    }

    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > self.limit { Err(EvalError::CostLimit) } else { Ok(()) }
    }

    /// Whether `cost` can be paid: asked before work that is as large as its cost.
    pub(crate) const fn allows(&self, cost: u64) -> bool {
        cost <= self.remaining()
    }

    pub(crate) fn refund(&mut self, cost: u64) {
        self.spent = self.spent.saturating_sub(cost);
    }
}

/// What a variable of a loop is now.
#[derive(Debug, Default)]
enum Local<'a> {
    #[default]
    Empty,
    /// To be computed when it is read first.
    Lazy(Id),
    Ready(Evaluated<'a>),
}

/// One evaluation.
pub(crate) struct Eval<'a, 'i> {
    program: &'a Program,
    inputs: &'i [Value<'a>],
    pub(crate) budget: &'i mut Budget,
    locals: Vec<Local<'a>>,
}

// Base cost of making a list, a map and a structure.
const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;
const STRUCT_COST: u64 = 40;

impl<'a, 'i> Eval<'a, 'i> {
    pub(crate) fn new(
        program: &'a Program,
        inputs: &'i [Value<'a>],
        budget: &'i mut Budget,
    ) -> Self {
        let mut locals = Vec::new();
        locals.resize_with(program.slot_count as usize, Local::default);
        Self { program, inputs, budget, locals }
    }

    pub(crate) fn run(mut self) -> Evaluated<'a> {
        self.eval(self.program.root)
    }

    pub(crate) fn eval(&mut self, id: Id) -> Evaluated<'a> {
        if let Some(constant) = self.program.constants.get(id) {
            return Ok(constant.clone());
        }
        match self.program.ast.kind(id) {
            Kind::Literal(literal) => Ok(literal_value(literal)),
            Kind::Ident(_) | Kind::Select { .. } => self.attribute(id),
            Kind::Call { .. } => self.call(id),
            Kind::List { .. } => self.list(id),
            Kind::Map(_) => self.map(id),
            Kind::Struct { .. } => self.structure(id),
            Kind::Fold(_) => self.fold(id),
            Kind::Nothing => Err(EvalError::no_such_overload()),
        }
    }

    fn call(&mut self, id: Id) -> Evaluated<'a> {
        let program = self.program;
        let Kind::Call { target, args, .. } = program.ast.kind(id) else {
            return Err(EvalError::no_such_overload());
        };
        let Some(op) = program.op(id) else { return Err(EvalError::no_such_overload()) };
        match (op, &**args) {
            (Op::Conditional | Op::Index | Op::OptIndex | Op::OptSelect, _) => self.attribute(id),
            (Op::And, [a, b]) => self.logical(*a, *b, false),
            (Op::Or, [a, b]) => self.logical(*a, *b, true),
            (Op::NotStrictlyFalse, [arg]) => self.not_strictly_false(*arg),
            (Op::Equals | Op::NotEquals, [a, b]) => self.equality(op, *a, *b),
            (Op::OptionalOr | Op::OrValue, [other]) if target.is_some() => {
                self.alternative(op, target.unwrap_or(*other), *other)
            }
            (Op::Add | Op::MapInsert, [_, _, ..]) if program.appends(id) => {
                self.append(id, op, args)
            }
            (Op::In, [element, _]) if program.is_membership(id) => self.membership(*element, args),
            _ => self.function(id, op, *target, args),
        }
    }

    /// `&&` and `||`: the decisive value wins over an error of the other side.
    fn logical(&mut self, a: Id, b: Id, decisive: bool) -> Evaluated<'a> {
        let mut error = None;
        for term in [a, b] {
            match self.eval(term) {
                Ok(V::Bool(value)) if value == decisive => return Ok(V::Bool(decisive)),
                Ok(V::Bool(_)) => {}
                Ok(_) => error = error.or_else(|| Some(EvalError::no_such_overload())),
                Err(EvalError::CostLimit) => return Err(EvalError::CostLimit),
                Err(failed) => error = error.or(Some(failed)),
            }
        }
        error.map_or(Ok(V::Bool(!decisive)), Err)
    }

    fn not_strictly_false(&mut self, arg: Id) -> Evaluated<'a> {
        let value = self.eval(arg);
        if matches!(value, Err(EvalError::CostLimit)) {
            return value;
        }
        self.budget.charge(1)?;
        Ok(V::Bool(!matches!(value, Ok(V::Bool(false)))))
    }

    fn equality(&mut self, op: Op, a: Id, b: Id) -> Evaluated<'a> {
        let (left, right) = (self.eval(a), self.eval(b));
        if matches!(left, Err(EvalError::CostLimit)) || matches!(right, Err(EvalError::CostLimit)) {
            return Err(EvalError::CostLimit);
        }
        let (left, right) = match (left, right) {
            (Ok(left), Ok(right)) => (left, right),
            (left, right) => {
                let size = |side: &Evaluated<'_>| side.as_ref().map_or(1, V::size);
                let smaller = size(&left).min(size(&right));
                self.budget.charge(smaller.div_ceil(10))?;
                left?;
                return right;
            }
        };
        let pair = [left, right];
        self.budget.charge(actual_cost(op, None, &pair, None))?;
        let same = equal(&pair[0], &pair[1])?;
        Ok(V::Bool(same == (op == Op::Equals)))
    }

    /// `or` and `orValue`, which read the right side only when the left one is none.
    fn alternative(&mut self, op: Op, left: Id, right: Id) -> Evaluated<'a> {
        match self.eval(left)? {
            V::Optional(Some(value)) if op == Op::OrValue => Ok((*value).clone()),
            V::Optional(None) => self.eval(right),
            other => Ok(other),
        }
    }

    /// Membership in a list of constants, which upstream looks up in a set for nothing.
    fn membership(&mut self, element: Id, args: &[Id]) -> Evaluated<'a> {
        let list = args.get(1).and_then(|list| self.program.constants.get(*list));
        let Some(V::List(list)) = list else { return Err(EvalError::no_such_overload()) };
        if list.len() == 0 {
            return Ok(V::Bool(false));
        }
        let value = self.eval(element)?;
        let list: &List<'a> = list;
        list.contains(&value).map(V::Bool)
    }

    fn function(&mut self, id: Id, op: Op, target: Option<Id>, args: &[Id]) -> Evaluated<'a> {
        // Most calls have one or two arguments, which need no vector.
        match (target, args) {
            (None, &[only]) | (Some(only), &[]) => {
                let value = self.eval(only);
                let value = value.or_else(|error| self.uncalled(error))?;
                self.invoke(id, op, target.is_some(), &[value])
            }
            (None, &[first, second]) | (Some(first), &[second]) => {
                let (first, second) = (self.eval(first), self.eval(second));
                match (first, second) {
                    (Ok(first), Ok(second)) => {
                        self.invoke(id, op, target.is_some(), &[first, second])
                    }
                    (_, Err(EvalError::CostLimit)) => Err(EvalError::CostLimit),
                    (Err(error), _) | (_, Err(error)) => self.uncalled(error),
                }
            }
            _ => {
                let mut values = Vec::with_capacity(args.len() + 1);
                for arg in target.iter().chain(args) {
                    values.push(self.eval(*arg)?);
                }
                self.invoke(id, op, target.is_some(), &values)
            }
        }
    }

    /// Upstream counts a call of one or two arguments although an error kept it from being made.
    fn uncalled(&mut self, error: EvalError) -> Evaluated<'a> {
        if error != EvalError::CostLimit {
            self.budget.charge(1)?;
        }
        Err(error)
    }

    fn invoke(&mut self, id: Id, op: Op, member: bool, values: &[V<'a>]) -> Evaluated<'a> {
        let program = self.program;
        let pattern = match op {
            Op::Matches | Op::Find | Op::FindAll => program.pattern(id),
            _ => None,
        };
        let overload = program.overload(id).map(|overload| overload.id);
        let mut result = library::call(op, member, values, pattern, self.budget);
        if let (Op::Sum, [V::List(list)]) = (op, values)
            && list.len() == 0
        {
            // The sum of nothing has the type of the elements, which only the overload shows.
            result = Ok(match overload {
                Some("list_double_sum_double") => V::Double(0.0),
                Some("list_uint_sum_uint") => V::Uint(0),
                Some("list_duration_sum_duration") => V::Duration(0),
                _ => V::Int(0),
            });
        }
        if matches!(result, Err(EvalError::CostLimit)) {
            self.budget.charge(self.budget.remaining().saturating_add(1))?;
        }
        self.budget.charge(actual_cost(op, overload, values, result.as_ref().ok()))?;
        result
    }

    fn list(&mut self, id: Id) -> Evaluated<'a> {
        let program = self.program;
        let Kind::List { elements, optional } = program.ast.kind(id) else {
            return Err(EvalError::no_such_overload());
        };
        let result = self.elements(elements, optional);
        self.budget.charge(LIST_COST)?;
        result.map(V::list)
    }

    fn elements(&mut self, elements: &[Id], optional: &[bool]) -> Result<Vec<V<'a>>, EvalError> {
        let mut values = Vec::with_capacity(elements.len());
        for (element, optional) in elements.iter().zip(optional) {
            let value = self.eval(*element)?;
            match (optional, value) {
                (false, value) => values.push(value),
                (true, V::Optional(None)) => {}
                (true, V::Optional(Some(value))) => values.push((*value).clone()),
                (true, other) => {
                    let shown = library::format::display(&other);
                    return Err(EvalError::failed(format_args!(
                        "cannot initialize optional list element from non-optional value {shown}"
                    )));
                }
            }
        }
        Ok(values)
    }

    fn map(&mut self, id: Id) -> Evaluated<'a> {
        let result = self.entries(id);
        self.budget.charge(MAP_COST)?;
        Ok(V::Map(Map::Owned(result?.into())))
    }

    fn entries(&mut self, id: Id) -> Result<std::collections::BTreeMap<Key, V<'a>>, EvalError> {
        let program = self.program;
        let mut entries = std::collections::BTreeMap::new();
        let Kind::Map(parts) = program.ast.kind(id) else { return Ok(entries) };
        for part in parts {
            let key = Key::of(&self.eval(part.key)?)?;
            let value = self.eval(part.value)?;
            self.put(&mut entries, key, value, part.optional)?;
        }
        Ok(entries)
    }

    fn put(
        &self,
        entries: &mut std::collections::BTreeMap<Key, V<'a>>,
        key: Key,
        value: V<'a>,
        optional: bool,
    ) -> Result<(), EvalError> {
        match (optional, value) {
            (false, value) => {
                entries.insert(key, value);
            }
            (true, V::Optional(None)) => {
                entries.remove(&key);
            }
            (true, V::Optional(Some(value))) => {
                entries.insert(key, (*value).clone());
            }
            (true, other) => {
                let key = library::format::display(&key.value());
                let shown = library::format::display(&other);
                return Err(EvalError::failed(format_args!(
                    "cannot initialize optional entry '{key}' from non-optional value {shown}"
                )));
            }
        }
        Ok(())
    }

    fn structure(&mut self, id: Id) -> Evaluated<'a> {
        let program = self.program;
        let Kind::Struct { fields, .. } = program.ast.kind(id) else {
            return Err(EvalError::no_such_overload());
        };
        let mut made = std::collections::BTreeMap::new();
        for field in fields {
            let value = self.eval(field.value)?;
            let key = Key::String(std::sync::Arc::clone(&field.name));
            self.put(&mut made, key, value, field.optional)?;
        }
        self.budget.charge(STRUCT_COST)?;
        let Some(object) = program.structures.get(&id) else {
            return Err(EvalError::no_such_overload());
        };
        Ok(V::Map(Map::Made { object: std::sync::Arc::clone(object), fields: made.into() }))
    }
}

/// The value of a literal.
pub(crate) fn literal_value<'a>(literal: &'a Literal) -> V<'a> {
    match literal {
        Literal::Null => V::Null,
        Literal::Bool(value) => V::Bool(*value),
        Literal::Int(value) => V::Int(*value),
        Literal::Uint(value) => V::Uint(*value),
        Literal::Double(value) => V::Double(*value),
        Literal::String(text) => V::String(Text::Borrowed(text)),
        Literal::Bytes(bytes) => V::Bytes(std::sync::Arc::clone(bytes)),
    }
}
