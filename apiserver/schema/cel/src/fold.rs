//! Constant parts of a program, computed once.
//!
//! As upstream does: lists and maps of constants, names of types, and conversions of a constant. What
//! was folded costs nothing at run time, and a conversion that fails refuses the whole program.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::ast::{Id, Kind, Literal};
use crate::check::Meaning;
use crate::decl::ObjectType;
use crate::eval::{Budget, literal_value};
use crate::expression::{Constants, Program};
use crate::library;
use crate::op::Op;
use crate::types::Type;
use crate::value::{EvalError, Key, Map, Text, V};

/// Fills in the constants of `program`, its free tests of membership and its appends.
pub(crate) fn fold_constants(program: &mut Program) -> Result<(), EvalError> {
    let mut memberships = Vec::new();
    program.constants = Constants::new(program.ast.len());
    // Children come before their parents.
    for id in 0..program.ast.len() as Id {
        if let Some(value) = constant(program, id)? {
            program.constants.set(id, value);
        } else if is_membership(program, id) {
            memberships.push(id);
        }
    }
    program.memberships = memberships.into();
    let mut appends = appends(program);
    appends.sort_unstable();
    program.appends = appends.into();
    program.structures = structures(program);
    Ok(())
}

/// The value of a node that is constant, unless it is a plain literal.
fn constant(program: &Program, id: Id) -> Result<Option<V<'static>>, EvalError> {
    Ok(match program.ast.kind(id) {
        Kind::Ident(_) => match program.meaning(id) {
            Some(Meaning::TypeName(ty)) => Some(V::Type(Arc::new(ty.clone()))),
            _ => None,
        },
        Kind::List { elements, optional } if !optional.contains(&true) => {
            let values: Option<Vec<_>> = elements.iter().map(|id| value(program, *id)).collect();
            values.map(V::list)
        }
        Kind::Map(entries) if !entries.iter().any(|entry| entry.optional) => {
            let mut map = BTreeMap::new();
            for entry in entries {
                let parts = (value(program, entry.key), value(program, entry.value));
                let (Some(key), Some(value)) = parts else { return Ok(None) };
                let Ok(key) = Key::of(&key) else { return Ok(None) };
                map.insert(key, value);
            }
            Some(V::Map(Map::Owned(map.into())))
        }
        Kind::Call { target: None, args, .. } => match (program.op(id), &**args) {
            (Some(op), [arg]) if op.is_conversion() => match value(program, *arg) {
                Some(value) => {
                    let budget = Budget::new(u64::MAX);
                    Some(library::call(op, false, &[value], None, &budget)?)
                }
                None => None,
            },
            _ => None,
        },
        _ => None,
    })
}

fn value(program: &Program, id: Id) -> Option<V<'static>> {
    if let Some(value) = program.constants.get(id) {
        return Some(value.clone());
    }
    match program.ast.kind(id) {
        Kind::Literal(Literal::String(text)) => Some(V::String(Text::Shared(Arc::clone(text)))),
        Kind::Literal(literal) => match literal_value(literal) {
            V::Null => Some(V::Null),
            V::Bool(value) => Some(V::Bool(value)),
            V::Int(value) => Some(V::Int(value)),
            V::Uint(value) => Some(V::Uint(value)),
            V::Double(value) => Some(V::Double(value)),
            V::Bytes(bytes) => Some(V::Bytes(bytes)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a call of `in` asks a constant list of plain values.
fn is_membership(program: &Program, id: Id) -> bool {
    let Kind::Call { args, .. } = program.ast.kind(id) else { return false };
    let ([_, list], Some(Op::In)) = (&**args, program.op(id)) else { return false };
    if program.overload(id).is_none_or(|overload| overload.id != "in_list") {
        return false;
    }
    let Some(V::List(list)) = program.constants.get(*list) else { return false };
    list.iter().all(|item| {
        matches!(item, Ok(V::Bool(_) | V::Int(_) | V::Uint(_) | V::Double(_) | V::String(_)))
    })
}

/// Steps of loops that append to the accumulator.
fn appends(program: &Program) -> Vec<Id> {
    let mut found = Vec::new();
    for id in 0..program.ast.len() as Id {
        let Kind::Fold(fold) = program.ast.kind(id) else { continue };
        let mut step = fold.step;
        if let (Kind::Call { args, .. }, Some(Op::Conditional)) =
            (program.ast.kind(step), program.op(step))
            && let [_, yes, _] = **args
        {
            step = yes;
        }
        if let (Kind::Call { args, .. }, Some(Op::Add | Op::MapInsert)) =
            (program.ast.kind(step), program.op(step))
            && let Some(Kind::Ident(name)) = args.first().map(|accu| program.ast.kind(*accu))
            && *name == fold.accu
            && matches!(program.ast.kind(fold.init), Kind::List { .. } | Kind::Map(_))
        {
            found.push(step);
        }
    }
    found
}

fn structures(program: &Program) -> HashMap<Id, Arc<ObjectType>> {
    let made = |id: Id| match (program.ast.kind(id), program.meaning(id)) {
        (Kind::Struct { .. }, Some(Meaning::TypeName(Type::Object(object)))) => {
            Some((id, Arc::clone(object)))
        }
        _ => None,
    };
    (0..program.ast.len() as Id).filter_map(made).collect()
}
