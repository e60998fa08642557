//! Values as Go prints them (`%v`), for error texts that clients know.

use std::fmt::{self, Write};

use serde_json::Value;

/// Formats like Go's `%v` of the decoded value: `map[a:1 b:[x y]]`, `<nil>`.
#[derive(Clone, Copy)]
pub(crate) struct Printed<'a>(pub(crate) &'a Value);

/// Formats a list like Go's `%v`, without a `Value` around it.
#[derive(Clone, Copy)]
pub(crate) struct PrintedList<'a>(pub(crate) &'a [Value]);

/// The longest text taken from a document into an error; the rest is cut.
///
/// Upstream prints everything, up to megabytes.
const MAX_PRINTED: usize = 4096;

/// The Go type that a JSON value decodes to.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Prints and cuts what follows after [`MAX_PRINTED`] bytes.
pub(crate) fn print(shown: impl fmt::Display) -> String {
    let mut cut = Cut { text: String::new() };
    if write!(cut, "{shown}").is_err() {
        cut.text.push_str("...");
    }
    cut.text
}

/// A writer that fails once the text is full.
struct Cut {
    text: String,
}

// === impl Cut ===

impl fmt::Write for Cut {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = MAX_PRINTED.saturating_sub(self.text.len());
        if part.len() <= room {
            self.text.push_str(part);
            return Ok(());
        }
        self.text.extend(part.char_indices().take_while(|(at, _)| *at < room).map(|(_, c)| c));
        Err(fmt::Error)
    }
}

// === impl Printed ===

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("<nil>"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Number(number) => write!(f, "{number}"),
            Value::String(text) => f.write_str(text),
            Value::Array(items) => PrintedList(items).fmt(f),
            Value::Object(fields) => {
                f.write_str("map[")?;
                for (at, (name, value)) in fields.iter().enumerate() {
                    let space = if at == 0 { "" } else { " " };
                    write!(f, "{space}{name}:{}", Printed(value))?;
                }
                f.write_str("]")
            }
        }
    }
}

// === impl PrintedList ===

impl fmt::Display for PrintedList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (at, item) in self.0.iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            write!(f, "{space}{}", Printed(item))?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prints_as_go_does() {
        let value = json!({"b": [1, "x", null], "a": {"c": true}});
        assert_eq!(print(Printed(&value)), "map[a:map[c:true] b:[1 x <nil>]]");
    }

    #[test]
    fn long_values_are_cut() {
        let value = json!(["é".repeat(MAX_PRINTED)]);
        let text = print(Printed(&value));
        assert!(text.len() <= MAX_PRINTED + 4, "{}", text.len());
        assert!(text.ends_with("é..."));
    }
}
