//! Numbers as they come back from a store that Go wrote.

use serde_json::{Number, Value};

/// Deepest nesting that is looked into; more than JSON of a request can hold.
const MAX_DEPTH: usize = 256;

/// Makes floats without a fraction integers, as they are after Go has written and read them.
///
/// A body's `3.0` is a float as long as it is validated, and `3` in the answer and from then on.
/// To be called once an object has been validated, before it is answered or stored.
pub fn settle_numbers(value: &mut Value) {
    settle(value, 0);
}

fn settle(value: &mut Value, depth: usize) {
    match value {
        Value::Number(number) if number.is_f64() => {
            // Above 2⁶³ Go reads a float again.
            const LARGEST: f64 = 9_223_372_036_854_775_808.0;
            let float = number.as_f64().unwrap_or_default();
            if float.trunc() == float && float.abs() < LARGEST {
                *number = Number::from(float as i64);
            }
        }
        Value::Array(items) if depth < MAX_DEPTH => {
            items.iter_mut().for_each(|item| settle(item, depth + 1));
        }
        Value::Object(fields) if depth < MAX_DEPTH => {
            fields.values_mut().for_each(|field| settle(field, depth + 1));
        }
        _ => {}
    }
}
