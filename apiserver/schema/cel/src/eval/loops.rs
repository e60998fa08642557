//! Loops over lists and maps.

use std::sync::Arc;

use crate::ast::{Fold, Id, Kind};
use crate::check::Meaning;
use crate::cost::actual_cost;
use crate::eval::{Eval, Evaluated, LIST_COST, Local};
use crate::op::Op;
use crate::value::{EvalError, Key, List, Map, V};

impl<'a> Eval<'a, '_> {
    pub(super) fn fold(&mut self, id: Id) -> Evaluated<'a> {
        let program = self.program;
        let (Kind::Fold(fold), Some(slot)) = (program.ast.kind(id), program.slot(id)) else {
            return Err(EvalError::no_such_overload());
        };
        let range = self.eval(fold.range)?;
        self.locals[slot] = Local::Lazy(fold.init);
        let looped = match range {
            V::List(list) => self.over_list(fold, slot, &list),
            V::Map(map) => self.over_map(fold, slot, &map),
            other => {
                let name = implementation_name(&other);
                Err(EvalError::failed(format_args!("got '{name}', expected iterable type")))
            }
        };
        let result = looped.and_then(|()| self.eval(fold.result));
        for local in &mut self.locals[slot..slot + 3] {
            *local = Local::Empty;
        }
        result
    }

    fn over_list(&mut self, fold: &Fold, slot: usize, list: &List<'a>) -> Result<(), EvalError> {
        for index in 0..list.len() {
            let item = list.get(index);
            let go_on = if fold.var2.is_some() {
                self.turn(fold, slot, Ok(V::Int(index as i64)), Some(item))?
            } else {
                self.turn(fold, slot, item, None)?
            };
            if !go_on {
                break;
            }
        }
        Ok(())
    }

    fn over_map(&mut self, fold: &Fold, slot: usize, map: &Map<'a>) -> Result<(), EvalError> {
        for key in map.keys() {
            let value = if fold.var2.is_some() {
                let value = map.get(&key)?.ok_or_else(EvalError::no_such_overload);
                Some(value)
            } else {
                None
            };
            if !self.turn(fold, slot, Ok(key), value)? {
                break;
            }
        }
        Ok(())
    }

    /// One turn; false when the condition ends the loop. A step that fails leaves its error in the
    /// accumulator, where `&&` and `||` may get over it.
    fn turn(
        &mut self,
        fold: &Fold,
        slot: usize,
        first: Evaluated<'a>,
        second: Option<Evaluated<'a>>,
    ) -> Result<bool, EvalError> {
        self.locals[slot + 1] = Local::Ready(first);
        if let Some(second) = second {
            self.locals[slot + 2] = Local::Ready(second);
        }
        match self.eval(fold.condition) {
            Ok(V::Bool(false)) => return Ok(false),
            Err(EvalError::CostLimit) => return Err(EvalError::CostLimit),
            _ => {}
        }
        let value = self.eval(fold.step);
        if matches!(value, Err(EvalError::CostLimit)) {
            return Err(EvalError::CostLimit);
        }
        self.locals[slot] = Local::Ready(value);
        Ok(true)
    }

    /// The step of a loop that appends to its accumulator. The accumulator is taken rather than
    /// copied, so that a loop over n elements costs n and not n².
    pub(super) fn append(&mut self, id: Id, op: Op, args: &[Id]) -> Evaluated<'a> {
        let program = self.program;
        let (Some(accu), Some(Meaning::Local(slot))) =
            (args.first(), args.first().and_then(|accu| program.meaning(*accu)))
        else {
            return Err(EvalError::no_such_overload());
        };
        let slot = *slot as usize;
        let mut failed = self.attribute(*accu).err();
        let mut values = Vec::with_capacity(args.len() - 1);
        for arg in args.iter().skip(1) {
            match (self.appended(*arg), &failed) {
                (Ok(value), _) => values.push(value),
                (Err(EvalError::CostLimit), _) => return Err(EvalError::CostLimit),
                (Err(error), None) => failed = Some(error),
                (Err(_), Some(_)) => {}
            }
        }
        if let Some(error) = failed {
            // Upstream counts the call of two arguments although it isn't made.
            self.budget.charge(u64::from(args.len() == 2))?;
            return Err(error);
        }
        let overload = program.overload(id).map(|overload| overload.id);
        let base = match std::mem::take(&mut self.locals[slot]) {
            Local::Ready(base) => base?,
            _ => return Err(EvalError::no_such_overload()),
        };
        let cost = if op == Op::Add { 1 } else { actual_cost(op, overload, &values, None) };
        self.budget.charge(cost)?;
        match (op, base, &*values) {
            (Op::Add, V::List(list), [V::List(more)]) => list.concat(more).map(V::List),
            (Op::MapInsert, V::Map(map), [key, value]) => insert(map, key, value),
            (Op::MapInsert, V::Map(map), [V::Map(entries)]) => {
                let mut map = V::Map(map);
                for key in entries.keys() {
                    let Some(value) = entries.get(&key)? else { continue };
                    let V::Map(grown) = map else { return Err(EvalError::no_such_overload()) };
                    map = insert(grown, &key, &value)?;
                }
                Ok(map)
            }
            _ => Err(EvalError::no_such_overload()),
        }
    }

    /// One more argument of an append. A list of one needs no list around it but pays for it.
    fn appended(&mut self, arg: Id) -> Evaluated<'a> {
        let program = self.program;
        match program.ast.kind(arg) {
            Kind::List { elements, .. } if program.constants.get(arg).is_none() => {
                let [element] = **elements else { return self.eval(arg) };
                let value = self.eval(element);
                self.budget.charge(LIST_COST)?;
                Ok(V::list(vec![value?]))
            }
            _ => self.eval(arg),
        }
    }
}

fn insert<'a>(map: Map<'a>, key: &V<'a>, value: &V<'a>) -> Evaluated<'a> {
    let mut entries = map.into_entries()?;
    let entry = Key::of(key)?;
    if entries.contains_key(&entry) {
        let shown = crate::library::format::display(key);
        return Err(EvalError::failed(format_args!("insert failed: key {shown} already exists")));
    }
    Arc::make_mut(&mut entries).insert(entry, value.clone());
    Ok(V::Map(Map::Owned(entries)))
}

/// The name of a value's type in upstream's implementation, which one of its errors shows.
fn implementation_name(value: &V<'_>) -> String {
    let name = match value {
        V::Null => "Null",
        V::Bool(_) => "Bool",
        V::Int(_) => "Int",
        V::Uint(_) => "Uint",
        V::Double(_) => "Double",
        V::String(_) => "String",
        V::Bytes(_) => "Bytes",
        V::Duration(_) => "Duration",
        V::Timestamp(_) => "Timestamp",
        other => return other.type_name().to_owned(),
    };
    format!("types.{name}")
}
