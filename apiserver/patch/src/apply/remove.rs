//! An object without some of its fields.

use serde_json::{Map, Value};

use super::items::ItemKey;
use super::schema::{ApplySchema, Form, ListForm, MapForm, Type};
use super::set::FieldSet;

/// A copy of a valid value without the fields and items in `items`. What has nothing left in it is
/// null, as upstream leaves it.
pub(super) fn remove<'s, S: ApplySchema<'s>>(
    ty: Type<S>,
    value: &Value,
    items: &FieldSet,
) -> Value {
    match (ty.forms().deduce(Some(value)).one(), value) {
        (Some(Form::Scalar(_)), value) => value.clone(),
        (Some(Form::List(ListForm::Set | ListForm::Map)), Value::Array(list)) => {
            let kept = from_list(ty, list, items);
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        (Some(Form::Map(MapForm::Granular)), Value::Object(fields)) => {
            let kept = from_map(ty, fields, items);
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        // Of an atomic whole, what one part of is removed is removed.
        _ => Value::Null,
    }
}

fn from_list<'s, S: ApplySchema<'s>>(ty: Type<S>, list: &[Value], items: &FieldSet) -> Vec<Value> {
    let mut kept = Vec::with_capacity(list.len());
    for item in list {
        let element = ItemKey::of(ty, item).ok().map(|key| key.to_element());
        match element.and_then(|element| items.node(&element)) {
            None => kept.push(item.clone()),
            Some(node) if node.member => {}
            Some(node) => kept.push(remove(ty.item(), item, &node.below)),
        }
    }
    kept
}

fn from_map<'s, S: ApplySchema<'s>>(
    ty: Type<S>,
    fields: &Map<String, Value>,
    items: &FieldSet,
) -> Map<String, Value> {
    let mut kept = Map::new();
    for (name, value) in fields {
        let value = match (items.field_node(name), ty.field(name)) {
            (Some(node), _) if node.member => continue,
            (Some(node), Some(inner)) => remove(inner, value, &node.below),
            _ => value.clone(),
        };
        kept.insert(name.clone(), value);
    }
    kept
}
