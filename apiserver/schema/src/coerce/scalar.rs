//! Scalars: what Go reads, and the text that it writes.

use machinery::quantity::Quantity;
use machinery::time::{MicroTime, Time};
use serde_json::{Number, Value};

use super::{Declared, DecodeError, Walk, bytes, time};
use crate::model::Scalar;

const ZERO_TIMES: [&str; 2] = ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"];

// === impl Walk ===

impl<'s> Walk<'s> {
    pub(super) fn scalar(
        &mut self,
        declared: Declared<'s>,
        scalar: Scalar,
        value: &mut Value,
    ) -> Result<(), DecodeError> {
        let canonical = match (scalar, &mut *value) {
            (Scalar::String, Value::String(_))
            | (Scalar::Bool, Value::Bool(_))
            | (Scalar::Double, Value::Number(_))
            | (Scalar::Json, _)
            | (Scalar::Raw | Scalar::FieldsV1, Value::Object(_)) => return Ok(()),
            (Scalar::Int32 | Scalar::Int64, Value::Number(number)) => {
                return self.integer(declared, scalar, number);
            }
            (Scalar::IntOrString, Value::String(_)) => return Ok(()),
            (Scalar::IntOrString, Value::Number(number)) => {
                let int = Declared { name: Some("int32"), depth: 0, ..declared };
                return self.integer(int, Scalar::Int32, number);
            }
            (Scalar::Bytes, Value::String(text)) => bytes::canonical(text).map_err(|at| {
                DecodeError(format!("illegal base64 data at input byte {at}").into())
            })?,
            (Scalar::Bytes, Value::Array(numbers)) => self.byte_list(declared, numbers)?,
            (Scalar::Time, Value::String(text)) => match Time::parse(text) {
                Ok(parsed) => parsed.to_string(),
                Err(_) => return Err(DecodeError(time::complaint(text, false).into())),
            },
            (Scalar::MicroTime, Value::String(text)) => match MicroTime::parse(text) {
                Ok(parsed) => parsed.to_string(),
                Err(_) => return Err(DecodeError(time::complaint(text, true).into())),
            },
            (Scalar::Quantity, Value::String(text)) => quantity_text(text)?,
            (Scalar::Quantity, other) => quantity_text(&other.to_string())?,
            (Scalar::Duration, Value::String(text)) => {
                return if is_duration(text) {
                    Ok(())
                } else {
                    Err(DecodeError(format!("time: invalid duration {text:?}").into()))
                };
            }
            (Scalar::Strings, Value::Array(items)) => {
                let item = Declared { name: Some("string"), depth: 0, ..declared };
                for entry in items {
                    match entry {
                        Value::String(_) => {}
                        Value::Null => *entry = Value::String(String::new()),
                        other => return Err(self.mismatch(other, item)),
                    }
                }
                return Ok(());
            }
            (Scalar::Raw | Scalar::FieldsV1, _) => return Ok(()),
            (scalar, other) => {
                let name = scalar.text_type().or(declared.name);
                return Err(self.mismatch(other, Declared { name, ..declared }));
            }
        };
        match value {
            // Go's zero time is nil.
            _ if ZERO_TIMES.contains(&&*canonical) => *value = Value::Null,
            Value::String(text) if *text == canonical => {}
            _ => *value = Value::String(canonical),
        }
        Ok(())
    }

    fn byte_list(&self, declared: Declared<'s>, numbers: &[Value]) -> Result<String, DecodeError> {
        let item = Declared { name: Some("uint8"), depth: 0, ..declared };
        let byte = |value: &Value| match value {
            Value::Null => Ok(0),
            Value::Number(number) => {
                let small = number.as_u64().and_then(|n| u8::try_from(n).ok());
                small.ok_or_else(|| self.cannot(&format!("number {number}"), "uint8"))
            }
            other => Err(self.mismatch(other, item)),
        };
        let list: Vec<u8> = numbers.iter().map(byte).collect::<Result<_, _>>()?;
        Ok(bytes::from_list(&list))
    }

    fn integer(
        &self,
        declared: Declared<'s>,
        scalar: Scalar,
        number: &Number,
    ) -> Result<(), DecodeError> {
        let fits = match number.as_i64() {
            Some(value) => scalar == Scalar::Int64 || i32::try_from(value).is_ok(),
            None => false,
        };
        if fits {
            Ok(())
        } else {
            Err(self.cannot(&format!("number {number}"), &declared.go_type(self.pool)))
        }
    }
}

// === impl Scalar ===

impl Scalar {
    /// The Go type that errors name.
    pub(super) fn go_type(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Bool => "bool",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Double => "float64",
            Self::Bytes => "[]uint8",
            Self::Time => "v1.Time",
            Self::MicroTime => "v1.MicroTime",
            Self::Duration => "v1.Duration",
            Self::Quantity => "resource.Quantity",
            Self::IntOrString => "intstr.IntOrString",
            Self::Raw => "runtime.RawExtension",
            Self::Json => "v1.JSON",
            Self::FieldsV1 => "v1.FieldsV1",
            Self::Strings => "[]string",
        }
    }

    /// Types that read a text themselves complain of that text's type.
    fn text_type(self) -> Option<&'static str> {
        match self {
            Self::Time | Self::MicroTime | Self::Duration => Some("string"),
            Self::IntOrString => Some("int32"),
            _ => None,
        }
    }

    /// Go's zero value as JSON.
    pub(super) fn zero(self) -> Value {
        match self {
            Self::String => Value::String(String::new()),
            Self::Bool => Value::Bool(false),
            Self::Int32 | Self::Int64 | Self::Double | Self::IntOrString => Value::from(0),
            Self::Quantity => Value::String("0".into()),
            Self::Duration => Value::String("0s".into()),
            Self::Bytes
            | Self::Time
            | Self::MicroTime
            | Self::Raw
            | Self::Json
            | Self::FieldsV1
            | Self::Strings => Value::Null,
        }
    }
}

fn fault(error: &dyn std::fmt::Display) -> DecodeError {
    DecodeError(error.to_string().into())
}

fn quantity_text(text: &str) -> Result<String, DecodeError> {
    Quantity::parse(text).map(|q| q.to_string()).map_err(|e| fault(&e))
}

/// Go's `time.ParseDuration`: numbers with units, as `1h30m`, or a bare `0`.
pub(crate) fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    let mut parts = 0;
    while !rest.is_empty() {
        let number =
            rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (digits, tail) = rest.split_at(number);
        let valid = digits.bytes().filter(|b| *b == b'.').count() < 2
            && digits.bytes().any(|b| b.is_ascii_digit());
        let units = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"];
        let Some(next) = units.iter().find_map(|u| {
            let next = tail.strip_prefix(u)?;
            let whole =
                next.is_empty() || next.starts_with(|c: char| c.is_ascii_digit() || c == '.');
            whole.then_some(next)
        }) else {
            return false;
        };
        if !valid {
            return false;
        }
        parts += 1;
        rest = next;
    }
    parts > 0
}
