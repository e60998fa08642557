//! Fields of an object by path.

use serde_json::{Map, Value};

/// The value at a path of field names.
pub fn get<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, name| value.as_object()?.get(*name))
}

/// The string at a path; `None` when it is absent or no string.
pub fn get_str<'a>(object: &'a Value, path: &[&str]) -> Option<&'a str> {
    get(object, path)?.as_str()
}

/// The integer at a path; `None` when it is absent or no integer.
pub fn get_i64(object: &Value, path: &[&str]) -> Option<i64> {
    get(object, path)?.as_i64()
}

/// The boolean at a path; `None` when it is absent or no boolean.
pub fn get_bool(object: &Value, path: &[&str]) -> Option<bool> {
    get(object, path)?.as_bool()
}

/// Puts a value at a path, making the objects on the way.
///
/// Answers whether it could: something on the way may be there and be no object (null counts as
/// absent), and the empty path has no place.
pub fn set(object: &mut Value, path: &[&str], value: Value) -> bool {
    let Some((last, parents)) = path.split_last() else { return false };
    let mut at = object;
    for name in parents {
        let Some(map) = as_object(at) else { return false };
        at = map.entry(*name).or_insert(Value::Null);
    }
    let Some(map) = as_object(at) else { return false };
    map.insert((*last).to_owned(), value);
    true
}

/// Takes the value at a path away and returns it.
pub fn remove(object: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    let mut at = object;
    for name in parents {
        at = at.as_object_mut()?.get_mut(*name)?;
    }
    at.as_object_mut()?.remove(*last)
}

fn as_object(value: &mut Value) -> Option<&mut Map<String, Value>> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}
