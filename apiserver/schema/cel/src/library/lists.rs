//! Functions of lists.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::eval::{Budget, Evaluated};
use crate::library::{MAX_ELEMENTS, arithmetic};
use crate::op::Op;
use crate::value::{EvalError, List, V, compare, equal};

pub(super) fn call<'a>(op: Op, args: &[V<'a>], budget: &Budget) -> Evaluated<'a> {
    match (op, args) {
        (Op::ListsRange, [V::Int(end)]) => range(*end, budget),
        (Op::Slice, [V::List(list), V::Int(start), V::Int(end)]) => slice(list, *start, *end),
        (Op::Flatten, [V::List(list)]) => flatten(list, 1),
        (Op::Flatten, [V::List(list), V::Int(depth)]) => flatten(list, *depth),
        (Op::Sort, [V::List(list)]) => sort(list, list),
        (Op::SortByKeys, [V::List(list), V::List(keys)]) => sort(list, keys),
        (Op::Reverse, [V::List(list)]) => {
            let mut items = list.to_vec()?;
            items.reverse();
            Ok(V::list(items))
        }
        (Op::Distinct, [V::List(list)]) => distinct(list, budget),
        (Op::First, [V::List(list)]) => end(list, Some(0)),
        (Op::Last, [V::List(list)]) => end(list, list.len().checked_sub(1)),
        (Op::IndexOf, [V::List(list), item]) => position(list, item, 0..list.len()),
        (Op::LastIndexOf, [V::List(list), item]) => position(list, item, (0..list.len()).rev()),
        (Op::IsSorted, [V::List(list)]) => is_sorted(list),
        (Op::Sum, [V::List(list)]) => sum(list),
        (Op::Min, [V::List(list)]) => extreme(list, Ordering::Greater, "min"),
        (Op::Max, [V::List(list)]) => extreme(list, Ordering::Less, "max"),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn range<'a>(end: i64, budget: &Budget) -> Evaluated<'a> {
    // The cost is the length, so a list that can't be paid for isn't made.
    if !budget.allows(u64::try_from(end).unwrap_or(0)) {
        return Err(EvalError::CostLimit);
    }
    Ok(V::list((0..end.max(0)).map(V::Int).collect()))
}

fn slice<'a>(list: &List<'a>, start: i64, end: i64) -> Evaluated<'a> {
    let fail =
        |text: String| Err(EvalError::failed(format_args!("cannot slice({start}, {end}), {text}")));
    if start < 0 || end < 0 {
        return fail("negative indexes not supported".to_owned());
    }
    if start > end {
        return fail("start index must be less than or equal to end index".to_owned());
    }
    let length = list.len();
    if end as u64 > length as u64 {
        return fail(format!("list is length {length}"));
    }
    let items: Result<_, _> = (start as usize..end as usize).map(|at| list.get(at)).collect();
    Ok(V::list(items?))
}

/// Takes lists in the list apart, `depth` levels. Values are no deeper than an expression and its
/// inputs, so a stack of open lists does.
fn flatten<'a>(list: &List<'a>, depth: i64) -> Evaluated<'a> {
    if depth < 0 {
        return Err(EvalError::failed("level must be non-negative"));
    }
    let mut out = Vec::new();
    let mut open = vec![(list.clone(), 0)];
    while let Some((list, at)) = open.pop() {
        if at >= list.len() {
            continue;
        }
        let item = list.get(at)?;
        open.push((list, at + 1));
        match item {
            V::List(inner) if (open.len() as i64) <= depth => open.push((inner, 0)),
            item => out.push(item),
        }
        if out.len() > MAX_ELEMENTS {
            return Err(EvalError::CostLimit);
        }
    }
    Ok(V::list(out))
}

fn sort<'a>(list: &List<'a>, keys: &List<'a>) -> Evaluated<'a> {
    let (length, count) = (list.len(), keys.len());
    if length != count {
        return Err(EvalError::failed(format_args!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, \
             but got {length} and {count} elements respectively"
        )));
    }
    if length == 0 {
        return Ok(V::List(list.clone()));
    }
    let keys = keys.to_vec()?;
    if let [first, rest @ ..] = &*keys {
        if compare(first, first).is_err() {
            return Err(EvalError::failed("list elements must be comparable"));
        }
        let kind = std::mem::discriminant(first);
        if rest.iter().any(|key| std::mem::discriminant(key) != kind) {
            return Err(EvalError::failed("list elements must have the same type"));
        }
    }
    let mut order: Vec<usize> = (0..length).collect();
    order.sort_by(|a, b| {
        let order = compare(&keys[*a], &keys[*b]).ok().flatten();
        order.unwrap_or(Ordering::Equal)
    });
    let items: Result<_, _> = order.into_iter().map(|at| list.get(at)).collect();
    Ok(V::list(items?))
}

fn distinct<'a>(list: &List<'a>, budget: &Budget) -> Evaluated<'a> {
    let length = list.len() as u64;
    if !budget.allows(length.saturating_mul(length)) {
        return Err(EvalError::CostLimit);
    }
    let mut out: Vec<V<'a>> = Vec::new();
    'items: for item in list.iter() {
        let item = item?;
        for other in &out {
            if equal(&item, other)? {
                continue 'items;
            }
        }
        out.push(item);
    }
    Ok(V::list(out))
}

fn end<'a>(list: &List<'a>, at: Option<usize>) -> Evaluated<'a> {
    match at.filter(|at| *at < list.len()) {
        Some(at) => Ok(V::Optional(Some(Arc::new(list.get(at)?)))),
        None => Ok(V::Optional(None)),
    }
}

fn position<'a>(
    list: &List<'a>,
    item: &V<'a>,
    order: impl Iterator<Item = usize>,
) -> Evaluated<'a> {
    for at in order {
        if equal(&list.get(at)?, item)? {
            return Ok(V::Int(at as i64));
        }
    }
    Ok(V::Int(-1))
}

fn is_sorted<'a>(list: &List<'a>) -> Evaluated<'a> {
    let mut before: Option<V<'a>> = None;
    for item in list.iter() {
        let item = item?;
        if let Some(before) = &before
            && compare(before, &item)? == Some(Ordering::Greater)
        {
            return Ok(V::Bool(false));
        }
        before = Some(item);
    }
    Ok(V::Bool(true))
}

fn sum<'a>(list: &List<'a>) -> Evaluated<'a> {
    let mut total: Option<V<'a>> = None;
    for item in list.iter() {
        let item = item?;
        if !matches!(item, V::Int(_) | V::Uint(_) | V::Double(_) | V::Duration(_)) {
            return Err(EvalError::no_such_overload());
        }
        total = Some(match total {
            Some(total) => arithmetic::call(Op::Add, &[total, item])?,
            None => item,
        });
    }
    Ok(total.unwrap_or(V::Int(0)))
}

fn extreme<'a>(list: &List<'a>, replace: Ordering, name: &str) -> Evaluated<'a> {
    let mut found: Option<V<'a>> = None;
    for item in list.iter() {
        let item = item?;
        found = Some(match found {
            Some(found) if compare(&found, &item).ok().flatten() != Some(replace) => found,
            _ => item,
        });
    }
    found.ok_or_else(|| EvalError::failed(format_args!("{name} called on empty list")))
}
