//! Types of values, formats of numbers, and membership in enumerations.

use serde_json::{Number, Value};

use super::super::node::{Facet, Flags, Kind, NodeData};
use super::super::print;
use super::Values;

/// What Go's decoder makes of a value: its JSON type and the format that goes with it.
fn kind_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
        Value::Number(number) => match print::integer(number) {
            Some(_) => ("integer", "int64"),
            None => ("number", "float64"),
        },
    }
}

// === impl Values ===

impl Values<'_> {
    /// Null where it may not be; answers what matched.
    pub(super) fn null(&mut self, node: &NodeData) -> u32 {
        if self.is_typed(node) && !node.has(Flags::NULLABLE) {
            self.wrong_type(self.type_name(node), "null");
            return 0;
        }
        1
    }

    /// The type; answers what matched.
    pub(super) fn kind(&mut self, node: &NodeData, value: &Value) -> u32 {
        let format = node.facets.iter().find_map(|facet| match facet {
            Facet::Format(format, name) if format.is_known() || self.as_default => Some(&**name),
            _ => None,
        });
        if !self.is_typed(node) && format.is_none() {
            return 0;
        }
        let (found, found_format) = kind_of(value);
        let is_whole = matches!(value, Value::Number(n) if is_whole_float(n));
        let fits = self.admits(node, found)
            || (is_whole && self.admits(node, "integer"))
            || (found == "integer" && self.admits(node, "number"));
        let plain = !matches!(value, Value::String(_) | Value::Array(_));
        match format {
            Some(format) if plain && !fits && found_format != format => {
                self.wrong_type(format, found_format);
                return 1;
            }
            // Formats of texts say enough of texts, and let lists pass.
            Some(_) if !plain && !self.admits(node, "number") && !self.admits(node, "integer") => {
                return 2;
            }
            _ => {}
        }
        if !fits {
            self.wrong_type(self.type_name(node), found);
            return 1;
        }
        2
    }

    /// Whether a node says of which type its values are.
    fn is_typed(&self, node: &NodeData) -> bool {
        node.kind.is_some() || (node.has(Flags::INT_OR_STRING) && !self.as_default)
    }

    fn admits(&self, node: &NodeData, kind: &str) -> bool {
        if node.has(Flags::INT_OR_STRING) && !self.as_default {
            return matches!(kind, "integer" | "string");
        }
        node.kind.is_some_and(|k| k.as_str() == kind)
    }

    fn type_name(&self, node: &NodeData) -> &'static str {
        if node.has(Flags::INT_OR_STRING) && !self.as_default {
            return "integer,string";
        }
        node.kind.map_or("", Kind::as_str)
    }
}

fn is_whole_float(number: &Number) -> bool {
    print::integer(number).is_none() && number.as_f64().is_some_and(is_json_integer)
}

/// Whether upstream takes a float for an integer: it is whole, or so near to it that the relative
/// error is below 1e-9 (positive ones only), and exact in a float.
pub(super) fn is_json_integer(value: f64) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    const NEAR: f64 = 1e-9;
    let (size, whole) = (value.abs(), value.trunc());
    if size.is_nan() || size > LARGEST {
        return false;
    }
    whole == value || (value > 0.0 && whole > 0.0 && (value - whole) / (value + whole) < NEAR)
}

/// Whether a value is one of an enumeration: Go converts it to the member's type before.
pub(super) fn is_enum_value(value: &Value, member: &Value) -> bool {
    match (value, member) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(value), Value::Number(member)) => {
            match (print::integer(value), print::integer(member)) {
                (Some(value), Some(member)) => value == member,
                (None, Some(member)) => {
                    value.as_f64().is_some_and(|f| f.is_finite() && f.trunc() as i64 == member)
                }
                (_, None) => value.as_f64() == member.as_f64(),
            }
        }
        (value, member) => value == member,
    }
}
