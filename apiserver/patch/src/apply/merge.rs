//! An applied configuration, laid over an object.

use serde_json::{Map, Value};

use super::items::{Index, ItemKey};
use super::problem::Problems;
use super::schema::{ApplySchema, Form, ListForm, MapForm, Type};
use super::validate::{Duplicates, check_scalar, invalid_atom};

/// Merges two valid objects of one type: what `over` has counts, and everything else stays.
/// `None` when nothing remains.
///
/// # Errors
/// When they aren't valid, `over` being one whose lists repeat no key.
pub(super) fn merge<'s, S: ApplySchema<'s>>(
    ty: Type<S>,
    base: Option<&Value>,
    over: Option<&Value>,
) -> Result<Option<Value>, Problems> {
    let (Some(_), Some(_)) = (base, over) else {
        return Ok(base.or(over).cloned());
    };
    // Where the two have different forms, that of the new value counts.
    let form = ty.forms().deduce(over).one().ok_or_else(invalid_atom)?;
    match form {
        Form::Scalar(scalar) => {
            let base = check_scalar(scalar, base, "lhs: ");
            let new = check_scalar(scalar, over, "rhs: ");
            if let (Err(mut problems), Err(more)) = (base, new) {
                problems.add(more);
                return Err(problems);
            }
            Ok(over.cloned())
        }
        Form::List(form) => {
            let (old, new) = (items(base), items(over));
            if form == ListForm::Atomic || (old.is_empty() && new.is_empty()) {
                return Ok(over.cloned());
            }
            let merged = merge_items(ty, old, new)?;
            Ok((!merged.is_empty()).then_some(Value::Array(merged)))
        }
        Form::Map(form) => {
            let (old, new) = (fields(base), fields(over));
            let empty = |fields: Option<&Map<String, Value>>| fields.is_none_or(Map::is_empty);
            if form == MapForm::Atomic || (empty(old) && empty(new)) {
                return Ok(over.cloned());
            }
            let merged = merge_fields(ty, old, new)?;
            Ok((!merged.is_empty()).then_some(Value::Object(merged)))
        }
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn fields(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn merge_fields<'s, S: ApplySchema<'s>>(
    ty: Type<S>,
    old: Option<&Map<String, Value>>,
    new: Option<&Map<String, Value>>,
) -> Result<Map<String, Value>, Problems> {
    let mut merged = old.cloned().unwrap_or_default();
    let mut problems = Problems::default();
    for (name, value) in new.into_iter().flatten() {
        let Some(inner) = ty.field(name) else {
            problems.add(invalid_atom().below(format_args!(".{name}")));
            continue;
        };
        let base = old.and_then(|old| old.get(name));
        match merge(inner, base, Some(value)) {
            Ok(Some(value)) => {
                merged.insert(name.clone(), value);
            }
            Ok(None) => {
                merged.remove(name);
            }
            Err(found) => problems.add(found.below(format_args!(".{name}"))),
        }
    }
    problems.result()?;
    Ok(merged)
}

/// Merges two lists item by item.
///
/// Items that only one list has keep their places relative to the items that both have, and the
/// latter come in the order of the new list. Where that leaves a choice, the old list's come first.
fn merge_items<'s, S: ApplySchema<'s>>(
    ty: Type<S>,
    old: &[Value],
    new: &[Value],
) -> Result<Vec<Value>, Problems> {
    let old = Side::of(ty, old, Duplicates::Allowed)?;
    let new = Side::of(ty, new, Duplicates::Refused)?;
    let item = |at_old: Option<usize>, at_new: usize| {
        let base = at_old.and_then(|at| old.items.get(at));
        merge(ty.item(), base, new.items.get(at_new))
    };
    // The places of the items that both have, in the order of the new list.
    let mut shared = new.keys.iter().filter(|key| old.has(key)).peekable();
    let mut merged = Vec::with_capacity(old.items.len().max(new.items.len()));
    let mut taken = vec![false; new.items.len()];
    let (mut i, mut j) = (0, 0);
    while i < old.keys.len() || j < new.keys.len() {
        if let (Some(here), Some(there)) = (old.keys.get(i), new.keys.get(j)) {
            if here.cmp(there).is_eq() {
                mark(&mut taken, j);
                // What upstream finds wrong in an item that both have, it forgets here.
                merged.extend(item(old.sole(here), j).unwrap_or_default());
                i += 1;
                j += 1;
                shared.next();
                continue;
            }
            // An item of both, but not the one whose turn it is.
            if new.has(here) && shared.peek().is_some_and(|next| next.cmp(here).is_ne()) {
                i += 1;
                continue;
            }
        }
        if let Some(here) = old.keys.get(i) {
            match new.place(here) {
                None => {
                    merged.extend(old.items.get(i).cloned());
                    i += 1;
                    continue;
                }
                // It has come with the new list already: a repeated one goes.
                Some(at) if taken.get(at) == Some(&true) => i += 1,
                Some(_) => {}
            }
        }
        if let Some(there) = new.keys.get(j) {
            mark(&mut taken, j);
            merged.extend(item(old.sole(there), j).unwrap_or_default());
            if shared.peek().is_some_and(|next| next.cmp(there).is_eq()) {
                shared.next();
            }
            j += 1;
        }
    }
    Ok(merged)
}

fn mark(taken: &mut [bool], at: usize) {
    if let Some(taken) = taken.get_mut(at) {
        *taken = true;
    }
}

/// One of the two lists: its items, their keys in its order, and where each key is.
struct Side<'v> {
    items: &'v [Value],
    keys: Vec<ItemKey<'v>>,
    index: Index<'v>,
}

// === impl Side ===

impl<'v> Side<'v> {
    fn of<'s: 'v, S: ApplySchema<'s>>(
        ty: Type<S>,
        items: &'v [Value],
        duplicates: Duplicates,
    ) -> Result<Self, Problems> {
        let (index, missing) = Index::of(ty, items);
        let mut problems = Problems::default();
        for (at, why) in missing {
            problems.add(Problems::new(format!("element {at}: {why}")));
        }
        for group in index.groups().filter(|group| group.len() > 1) {
            if let (Duplicates::Refused, Some((key, _))) = (duplicates, group.first()) {
                let key = key.to_element();
                problems.add(Problems::new(format!("duplicate entries for key {key}")));
            }
        }
        problems.result()?;
        let keys = items.iter().filter_map(|item| ItemKey::of(ty, item).ok()).collect();
        Ok(Self { items, keys, index })
    }

    fn has(&self, key: &ItemKey<'_>) -> bool {
        !self.index.get(key).is_empty()
    }

    /// Where the item with a key is; the first of several.
    fn place(&self, key: &ItemKey<'_>) -> Option<usize> {
        self.index.get(key).first().map(|(_, at)| *at)
    }

    /// Where the item with a key is, if it is the only one: repeated ones are not merged with.
    fn sole(&self, key: &ItemKey<'_>) -> Option<usize> {
        match self.index.get(key) {
            [(_, at)] => Some(*at),
            _ => None,
        }
    }
}
