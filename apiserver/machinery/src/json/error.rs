//! Why a body is no document.

use std::fmt;

/// Why bytes are no JSON or YAML document, in words like those of Go's parsers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// What is wrong, as `invalid character 'x' looking for beginning of value`.
    pub message: String,
    /// Where, in bytes from the start.
    pub offset: usize,
}

impl JsonError {
    pub(super) fn new(message: impl Into<String>, offset: usize) -> Self {
        Self { message: message.into(), offset }
    }

    /// Translates a message of `serde_json`.
    pub(crate) fn from_serde(error: &serde_json::Error, bytes: &[u8]) -> Self {
        let full = error.to_string();
        let text = full.split(" at line ").next().unwrap_or(&full);
        let offset = offset_of(bytes, error.line(), error.column());
        let message = match text {
            _ if error.is_eof() => "unexpected end of JSON input".to_owned(),
            "recursion limit exceeded" => TOO_DEEP.to_owned(),
            "expected value" => found(bytes, offset, "looking for beginning of value"),
            "trailing comma" => found(bytes, offset, "looking for beginning of value"),
            "trailing characters" => found(bytes, offset, "after top-level value"),
            "key must be a string" => {
                found(bytes, offset, "looking for beginning of object key string")
            }
            "expected `:`" => found(bytes, offset, "after object key"),
            "expected `,` or `}`" => found(bytes, offset, "after object key:value pair"),
            "expected `,` or `]`" => found(bytes, offset, "after array element"),
            "expected ident" => found(bytes, offset, "in literal"),
            "invalid escape" => found(bytes, offset, "in string escape code"),
            "invalid number" => found(bytes, offset, "in numeric literal"),
            "control character (\\u0000-\\u001F) found while parsing a string" => {
                found(bytes, offset, "in string literal")
            }
            "invalid unicode code point" => "invalid UTF-8 in string literal".to_owned(),
            other => other.to_owned(),
        };
        Self { message, offset }
    }
}

pub(super) const TOO_DEEP: &str = "exceeded max depth";

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.message, self.offset)
    }
}

impl std::error::Error for JsonError {}

/// `serde_json` counts lines from 1 and columns in bytes; its column is that of the last
/// byte read, 0 for the end of the line before.
fn offset_of(bytes: &[u8], line: usize, column: usize) -> usize {
    let mut start = 0;
    for _ in 1..line {
        let rest = bytes.get(start..).unwrap_or_default();
        match rest.iter().position(|b| *b == b'\n') {
            Some(end) => start += end + 1,
            None => break,
        }
    }
    (start + column).saturating_sub(1).min(bytes.len())
}

fn found(bytes: &[u8], offset: usize, place: &str) -> String {
    match bytes.get(offset) {
        Some(b'\'') => format!("invalid character '\\'' {place}"),
        Some(byte @ b' '..=b'~') => format!("invalid character '{}' {place}", char::from(*byte)),
        Some(byte) => format!("invalid character '\\x{byte:02x}' {place}"),
        None => "unexpected end of JSON input".to_owned(),
    }
}
