//! The fields that an object has: what becomes owned when it is applied.

use serde_json::Value;

use super::element::Element;
use super::items::{Index, ItemKey};
use super::schema::{ApplySchema, Form, ListForm, MapForm, Type};
use super::set::{FieldSet, Node};

/// The set of all leaves of a valid object, of the items of its lists and of the entries of its
/// maps.
pub(super) fn fields_of<'s, S: ApplySchema<'s>>(ty: Type<S>, value: &Value) -> FieldSet {
    walk(ty, value).1
}

/// Whether the place itself counts, and what below it does.
fn walk<'s, S: ApplySchema<'s>>(ty: Type<S>, value: &Value) -> (bool, FieldSet) {
    match (ty.forms().deduce(Some(value)).one(), value) {
        (Some(Form::Scalar(_) | Form::List(ListForm::Atomic) | Form::Map(MapForm::Atomic)), _) => {
            (true, FieldSet::new())
        }
        (Some(Form::List(_)), Value::Array(items)) => (false, of_items(ty, items)),
        (Some(Form::Map(_)), Value::Object(fields)) => {
            let mut nodes = Vec::with_capacity(fields.len());
            for (name, value) in fields {
                let declared = ty.declared(name);
                let Some(inner) = declared.or_else(|| ty.other()) else { continue };
                let (mut member, below) = walk(inner, value);
                member |= match value {
                    Value::Null => true,
                    Value::Object(fields) if fields.is_empty() => true,
                    _ => declared.is_none(),
                };
                if member || !below.is_empty() {
                    nodes.push(Node { element: Element::field(&**name), member, below });
                }
            }
            (false, FieldSet::from_nodes(nodes))
        }
        _ => (false, FieldSet::new()),
    }
}

fn of_items<'s, S: ApplySchema<'s>>(ty: Type<S>, items: &[Value]) -> FieldSet {
    let (index, _) = Index::of(ty, items);
    let nodes = index.groups().filter_map(|group| {
        let (key, at) = group.first()?;
        // Items with the same key are owned together, as one.
        let below = match group {
            [_] => walk(ty.item(), items.get(*at)?).1,
            _ => FieldSet::new(),
        };
        Some(Node { element: ItemKey::to_element(key), member: true, below })
    });
    FieldSet::from_nodes(nodes.collect())
}
