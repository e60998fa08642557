//! Lists that merge: by merge key, or as sets of scalars; and their order.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    FieldMerge, Fields, Kind, MergeSchema, PATCH, SET_ORDER, Strategy, lookup, merge_object,
    split_directive, unknown_directive, without_directives,
};
use crate::error::PatchError;
use crate::golang::{Printed, PrintedList, print, type_name};

/// Merges the list of a field; `deletes_items` when `patch` names scalars to remove.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    field: FieldMerge<'_>,
    deletes_items: bool,
) -> Result<Vec<Value>, PatchError> {
    if field.strategy != Strategy::Merge && !deletes_items {
        return Ok(patch);
    }
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let kind = item_kind(&original, &patch)?;
    let key = field.merge_key.unwrap_or_default();
    if kind != Kind::Object {
        if deletes_items {
            let gone: HashSet<_> = patch.into_iter().collect();
            return Ok(original.into_iter().filter(|item| !gone.contains(item)).collect());
        }
        let order = Orders::new(&patch, &original, key, kind)?;
        let mut seen = HashSet::new();
        let both = original.into_iter().chain(patch);
        let merged = both.filter(|item| seen.insert(item.clone())).collect();
        return order.arrange(merged);
    }
    if key.is_empty() {
        return Err(unmergeable("cannot merge lists without merge key for struct"));
    }
    let (original, patch) = take_directives(original, patch, key)?;
    let order = Orders::new(&patch, &original, key, kind)?;
    order.arrange(merge_items(original, patch, key, field.schema)?)
}

/// The document's order, against which `$setElementOrder` weaves in the items that it lacks.
///
/// Upstream deletes items within the document's slice and appends new ones to it, so those that fit
/// into the room that deletions left count as items of the document.
fn server_order<'v>(
    original: &'v [Value],
    patch: &[Value],
    field: FieldMerge<'_>,
) -> Cow<'v, [Value]> {
    let Some(key) = field.merge_key.filter(|_| field.strategy == Strategy::Merge) else {
        return Cow::Borrowed(original);
    };
    let (marked, items): (Vec<_>, Vec<_>) =
        patch.iter().partition(|item| item.get(PATCH).is_some());
    let gone: HashSet<_> =
        marked.iter().filter(|item| is_deletion(item)).filter_map(|item| item.get(key)).collect();
    if gone.is_empty() {
        return Cow::Borrowed(original);
    }
    let mut order: Vec<Value> = original.to_vec();
    order.retain(|item| item.get(key).is_none_or(|value| !gone.contains(value)));
    let room = original.len() - order.len();
    if marked.iter().all(|item| is_deletion(item)) {
        let mut known: HashSet<Value> =
            order.iter().filter_map(|item| item.get(key)).cloned().collect();
        let is_new =
            |item: &&&Value| item.get(key).is_some_and(|value| known.insert(value.clone()));
        let new: Vec<Value> = items.iter().filter(is_new).take(room).copied().cloned().collect();
        order.extend(new);
    }
    Cow::Owned(order)
}

/// Handles all `$setElementOrder` of a patch: merges the lists that they are about, puts them in
/// order, and takes both out of the patch.
pub(super) fn merge_ordered(
    original: &mut Fields,
    patch: &mut Fields,
    schema: Option<&dyn MergeSchema>,
) -> Result<(), PatchError> {
    let directives: Vec<String> =
        patch.keys().filter(|name| name.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let Some(order) = patch.remove(&directive) else { continue };
        let order = list(order)?;
        let Some(name) = split_directive(&directive, SET_ORDER)? else { continue };
        let current = original.get_mut(name).map(as_list).transpose()?;
        let change = patch.remove(name).map(list).transpose()?;
        let field = lookup(schema, name)?;
        let key = field.merge_key.unwrap_or_default();
        if let Some(change) = &change {
            check_order(change, &order, key)?;
        }
        match (current, change) {
            (Some(current), Some(change)) => {
                let kind = item_kind(current, &change)?;
                let server = server_order(current, &change, field);
                let orders = Orders::new(&order, &server, key, kind)?;
                let merged = merge(std::mem::take(current), change, field, false)?;
                *current = orders.arrange(merged)?;
            }
            (Some(current), None) => {
                let kind = item_kind(current, &[])?;
                let orders = Orders::new(&order, current, key, kind)?;
                *current = orders.arrange(std::mem::take(current))?;
            }
            (None, Some(change)) => {
                let kind = item_kind(&change, &[])?;
                let orders = Orders::new(&order, &[], key, kind)?;
                let kept = change.into_iter().filter_map(without_directives).collect();
                original.insert(name.to_owned(), Value::Array(orders.arrange(kept)?));
            }
            (None, None) => {}
        }
    }
    Ok(())
}

/// Carries out the items of `patch` that are directives; gives the list to merge into and the
/// items that are left.
fn take_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut items = Vec::with_capacity(patch.len());
    let mut gone = HashSet::new();
    let mut replace = false;
    for mut item in patch {
        let Value::Object(fields) = &mut item else { continue };
        let Some(directive) = fields.get(PATCH) else {
            items.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => match fields.remove(key) {
                Some(value) => gone.insert(value),
                None => return Err(no_merge_key(&item, key)),
            },
            Some("replace") => {
                replace = true;
                continue;
            }
            Some("merge") => {
                return Err(unmergeable("merging lists cannot yet be specified in the patch"));
            }
            _ => return Err(unknown_directive(directive, fields)),
        };
    }
    if replace {
        return Ok((items, Vec::new()));
    }
    original.retain(|item| item.get(key).is_none_or(|value| !gone.contains(value)));
    Ok((original, items))
}

/// Merges objects by `key`: each item of `patch` into the first of `original` with its key, or
/// behind the last.
fn merge_items(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
    schema: Option<&dyn MergeSchema>,
) -> Result<Vec<Value>, PatchError> {
    let mut places = HashMap::with_capacity(original.len());
    for (at, item) in original.iter().enumerate() {
        if let Some(value) = item.get(key) {
            places.entry(value.clone()).or_insert(at);
        }
    }
    for item in patch {
        let Some(value) = item.get(key) else { return Err(no_merge_key(&item, key)) };
        let place = *places.entry(value.clone()).or_insert(original.len());
        match (original.get_mut(place), item) {
            (Some(Value::Object(current)), Value::Object(item)) => {
                *current = merge_object(std::mem::take(current), item, schema)?;
            }
            (_, item) => original.push(item),
        }
    }
    Ok(original)
}

/// Where the items of two lists stand, by merge key or, for scalars, by themselves.
#[derive(Debug)]
struct Orders<'a> {
    key: &'a str,
    kind: Kind,
    /// The order of the directive or of the patch; its items are the patch's.
    patch: HashMap<Value, usize>,
    /// The order of the document.
    server: HashMap<Value, usize>,
}

// === impl Orders ===

impl<'a> Orders<'a> {
    fn new(
        patch: &[Value],
        server: &[Value],
        key: &'a str,
        kind: Kind,
    ) -> Result<Self, PatchError> {
        let places = |items: &[Value]| {
            let mut places = HashMap::with_capacity(items.len());
            for (at, item) in items.iter().enumerate() {
                places.entry(identity(item, key, kind)?.clone()).or_insert(at);
            }
            Ok(places)
        };
        Ok(Self { key, kind, patch: places(patch)?, server: places(server)? })
    }

    /// Puts the items that the patch names into its order, the rest into the document's order, and
    /// weaves the rest in: before the first item of the patch that follows it in the document.
    fn arrange(&self, items: Vec<Value>) -> Result<Vec<Value>, PatchError> {
        let mut named = Vec::new();
        let mut rest = Vec::new();
        for item in items {
            let identity = identity(&item, self.key, self.kind)?;
            let server = self.server.get(identity).copied();
            match self.patch.get(identity) {
                Some(place) => named.push(Placed { place: Some(*place), server, item }),
                None => rest.push(Placed { place: server, server, item }),
            }
        }
        let mut rest = sort(rest).into_iter().peekable();
        let mut named = sort(named).into_iter().peekable();
        let mut all = Vec::with_capacity(rest.len() + named.len());
        while let Some(next) = named.peek() {
            let before = |item: &Placed| item.server.zip(next.server).is_some_and(|(a, b)| a < b);
            let taken = rest.next_if(before).or_else(|| named.next());
            all.extend(taken.map(|placed| placed.item));
        }
        all.extend(rest.map(|placed| placed.item));
        Ok(all)
    }
}

/// An item on its way into order.
struct Placed {
    /// Its place in the order that it is sorted by.
    place: Option<usize>,
    /// Its place in the document.
    server: Option<usize>,
    item: Value,
}

/// Sorts by place, stably. Items without one follow, and items that are still marked for deletion
/// come last.
fn sort(mut items: Vec<Placed>) -> Vec<Placed> {
    items.sort_by_key(|placed| (is_deletion(&placed.item), placed.place.unwrap_or(usize::MAX)));
    items
}

/// Checks that `patch` has its items in the order of `order`, and none besides. Directives among
/// the items are passed over.
fn check_order(patch: &[Value], order: &[Value], key: &str) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let is_kept = |item: &&Value| key.is_empty() || !is_deletion(item);
    let mut items = patch.iter().filter(is_kept).peekable();
    let mut places = order.iter();
    while let Some(item) = items.peek() {
        let Some(place) = places.as_slice().first() else {
            let (patch, order) = (print(PrintedList(patch)), print(PrintedList(order)));
            return Err(unmergeable(&format!(
                "The order in patch list:\n{patch}\n doesn't match {SET_ORDER} list:\n{order}\n"
            )));
        };
        if item.get(PATCH).is_some() {
            items.next();
            continue;
        }
        if by_key(item, key)? == by_key(place, key)? {
            items.next();
        }
        places.next();
    }
    Ok(())
}

fn is_deletion(item: &Value) -> bool {
    item.get(PATCH).and_then(Value::as_str) == Some("delete")
}

/// What identifies an item of a list whose items are of `kind`.
fn identity<'v>(item: &'v Value, key: &str, kind: Kind) -> Result<&'v Value, PatchError> {
    match (kind, item) {
        (Kind::Object, Value::Object(_)) => item.get(key).ok_or_else(|| no_merge_key(item, key)),
        (Kind::Object, other) => Err(wrong_type("map[string]interface {}", other)),
        (_, scalar) if key.is_empty() => Ok(scalar),
        (_, scalar) => Err(wrong_type("map[string]interface {}", scalar)),
    }
}

fn by_key<'v>(item: &'v Value, key: &str) -> Result<&'v Value, PatchError> {
    let kind = if key.is_empty() { Kind::of(item) } else { Kind::Object };
    identity(item, key, kind)
}

/// The kind of all items of both lists, which must be the same.
fn item_kind(left: &[Value], right: &[Value]) -> Result<Kind, PatchError> {
    let mut kinds = left.iter().chain(right).map(Kind::of);
    let Some(first) = kinds.next() else {
        return Err(unmergeable("no elements in any of the given slices"));
    };
    if first == Kind::List {
        return Err(PatchError::Failed("lists of lists are not supported".into()));
    }
    if first == Kind::Null || kinds.any(|kind| kind != first) {
        let (left, right) = (print(PrintedList(left)), print(PrintedList(right)));
        return Err(unmergeable(&format!(
            "list element types are not identical: [{left} {right}]"
        )));
    }
    Ok(first)
}

fn list(value: Value) -> Result<Vec<Value>, PatchError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(wrong_type("[]interface {}", &other)),
    }
}

fn as_list(value: &mut Value) -> Result<&mut Vec<Value>, PatchError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(wrong_type("[]interface {}", other)),
    }
}

fn wrong_type(expected: &str, actual: &Value) -> PatchError {
    unmergeable(&format!("expected a {expected}, but received a {}", type_name(actual)))
}

fn no_merge_key(item: &Value, key: &str) -> PatchError {
    let item = print(Printed(item));
    unmergeable(&format!("map: {item} does not contain declared merge key: {key}"))
}

fn unmergeable(text: &str) -> PatchError {
    PatchError::Unmergeable(text.to_owned())
}
