//! Values of an applied configuration as Go prints them: all numbers are floats there.

use std::fmt;

use machinery::field::go_quote;
use serde_json::Value;

use super::value::{Layout, push_float};

/// How a value is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// `%v`: `map[a:1 b:[x y]]`, `<nil>`.
    Plain,
    /// `%#v`: `map[string]interface {}{"a":1}`.
    Syntax,
}

/// A value that prints as Go prints it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown<'a>(pub(super) &'a Value, pub(super) Verb);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value, verb) = *self;
        let syntax = verb == Verb::Syntax;
        match value {
            Value::Null if syntax => f.write_str("interface {}(nil)"),
            Value::Null => f.write_str("<nil>"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Number(number) => {
                let mut text = String::new();
                push_float(&mut text, number.as_f64().unwrap_or(0.0), Layout::General);
                f.write_str(&text)
            }
            Value::String(text) if syntax => f.write_str(&go_quote(text)),
            Value::String(text) => f.write_str(text),
            Value::Array(items) => {
                let [open, between, close] =
                    if syntax { ["[]interface {}{", ", ", "}"] } else { ["[", " ", "]"] };
                f.write_str(open)?;
                for (at, item) in items.iter().enumerate() {
                    let between = if at == 0 { "" } else { between };
                    write!(f, "{between}{}", Self(item, verb))?;
                }
                f.write_str(close)
            }
            Value::Object(fields) => {
                let [open, between, close] = if syntax {
                    ["map[string]interface {}{", ", ", "}"]
                } else {
                    ["map[", " ", "]"]
                };
                f.write_str(open)?;
                for (at, (name, value)) in fields.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { between })?;
                    if syntax {
                        write!(f, "{}:{}", go_quote(name), Self(value, verb))?;
                    } else {
                        write!(f, "{name}:{}", Self(value, verb))?;
                    }
                }
                f.write_str(close)
            }
        }
    }
}
