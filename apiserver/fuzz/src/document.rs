//! JSON documents as a short byte code, so that mutating an input gives another document and not
//! broken text.
//!
//! Each value is a tag and what follows it; tags from [`FIRST_WORD`] on are whole texts that
//! schemas and objects are made of. Any bytes are documents: what ends early is closed, and what
//! can't be where it stands is skipped. Nesting ends at [`MAX_DEPTH`].

mod words;

use serde_json::{Map, Number, Value};

use words::WORDS;

/// Documents nest this deep, which is more than a request's body may.
pub const MAX_DEPTH: usize = 130;

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
/// One byte, signed.
const SMALL: u8 = 3;
/// Eight bytes of an `i64`, little end first.
const INTEGER: u8 = 4;
/// Eight bytes of an `f64`.
const FLOAT: u8 = 5;
/// A byte with the length, and as many of text.
const TEXT: u8 = 6;
/// Two bytes with the length, and as many of text.
const LONG_TEXT: u8 = 7;
const LIST: u8 = 8;
const OBJECT: u8 = 9;
/// Of a list or object.
const END: u8 = 10;
/// The word that this tag stands for is the first.
const FIRST_WORD: u8 = 16;

/// A place in an input.
#[derive(Debug)]
pub struct Input<'a> {
    rest: &'a [u8],
}

enum Token {
    Value(Value),
    Open(Value),
    End,
}

/// A list or object that isn't closed yet.
enum Open {
    List(Vec<Value>),
    Object(Map<String, Value>, Option<String>),
}

// === impl Input ===

impl<'a> Input<'a> {
    /// The beginning of an input.
    pub fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next byte, 0 if there is none.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    /// The next document, null if there is none.
    pub fn document(&mut self) -> Value {
        let mut open: Vec<Open> = Vec::new();
        while !self.rest.is_empty() {
            let value = match self.token() {
                Token::Open(value) if open.len() < MAX_DEPTH => {
                    open.push(match value {
                        Value::Object(fields) => Open::Object(fields, None),
                        _ => Open::List(Vec::new()),
                    });
                    continue;
                }
                Token::Value(value) | Token::Open(value) => value,
                Token::End => match open.pop() {
                    Some(closed) => closed.close(),
                    None => continue,
                },
            };
            match open.last_mut() {
                Some(parent) => parent.add(value),
                None => return value,
            }
        }
        let mut value = Value::Null;
        while let Some(mut last) = open.pop() {
            if !value.is_null() {
                last.add(value);
            }
            value = last.close();
        }
        value
    }

    fn token(&mut self) -> Token {
        Token::Value(match self.byte() {
            FALSE => false.into(),
            TRUE => true.into(),
            SMALL => i8::from_le_bytes([self.byte()]).into(),
            INTEGER => i64::from_le_bytes(self.eight()).into(),
            FLOAT => Number::from_f64(f64::from_le_bytes(self.eight())).into(),
            TEXT => {
                let length = usize::from(self.byte());
                self.text(length).into()
            }
            LONG_TEXT => {
                let length = u16::from_le_bytes([self.byte(), self.byte()]);
                self.text(length.into()).into()
            }
            LIST => return Token::Open(Value::Array(Vec::new())),
            OBJECT => return Token::Open(Value::Object(Map::new())),
            END => return Token::End,
            tag => match tag.checked_sub(FIRST_WORD).and_then(|at| WORDS.get(usize::from(at))) {
                Some(word) => (*word).into(),
                None => Value::Null,
            },
        })
    }

    fn eight(&mut self) -> [u8; 8] {
        std::array::from_fn(|_| self.byte())
    }

    fn text(&mut self, length: usize) -> String {
        let (text, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        String::from_utf8_lossy(text).into_owned()
    }
}

// === impl Open ===

impl Open {
    fn add(&mut self, value: Value) {
        match self {
            Self::List(items) => items.push(value),
            Self::Object(fields, name) => match (name.take(), value) {
                (Some(name), value) => {
                    fields.insert(name, value);
                }
                (None, Value::String(text)) => *name = Some(text),
                // No name: it is skipped.
                (None, _) => {}
            },
        }
    }

    fn close(self) -> Value {
        match self {
            Self::List(items) => Value::Array(items),
            Self::Object(fields, _) => Value::Object(fields),
        }
    }
}

/// Writes a document so that [`Input::document`] reads it; of texts above 64 KB only the beginning.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(NULL),
        Value::Bool(false) => out.push(FALSE),
        Value::Bool(true) => out.push(TRUE),
        Value::Number(number) => match number.as_i64() {
            Some(number) => match i8::try_from(number) {
                Ok(small) => out.extend([SMALL, small.to_le_bytes()[0]]),
                Err(_) => {
                    out.push(INTEGER);
                    out.extend(number.to_le_bytes());
                }
            },
            None => {
                out.push(FLOAT);
                out.extend(number.as_f64().unwrap_or_default().to_le_bytes());
            }
        },
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push(LIST);
            items.iter().for_each(|item| write(item, out));
            out.push(END);
        }
        Value::Object(fields) => {
            out.push(OBJECT);
            for (name, value) in fields {
                write_text(name, out);
                write(value, out);
            }
            out.push(END);
        }
    }
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    let word = WORDS.iter().position(|word| *word == text);
    if let Some(tag) = word.and_then(|at| u8::try_from(at + usize::from(FIRST_WORD)).ok()) {
        out.push(tag);
    } else if let Ok(length) = u8::try_from(text.len()) {
        out.extend([TEXT, length]);
        out.extend(text.bytes());
    } else {
        let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
        out.push(LONG_TEXT);
        out.extend(length.to_le_bytes());
        out.extend(text.bytes().take(length.into()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let documents = [
            json!(null),
            json!({"spec": {"a": [1, -200, 1.5, true, false, null, "", "type"], "x": {}}}),
            json!(["x".repeat(300), {"properties": []}]),
            json!(i64::MIN),
        ];
        let mut bytes = Vec::new();
        documents.iter().for_each(|document| write(document, &mut bytes));
        let mut input = Input::new(&bytes);
        for document in documents {
            assert_eq!(input.document(), document);
        }
        assert!(input.rest().is_empty());
    }

    #[test]
    fn any_bytes_are_documents() {
        let check = |bytes: &[u8], expect: Value| {
            assert_eq!(Input::new(bytes).document(), expect, "{bytes:?}");
        };
        check(&[], json!(null));
        check(&[OBJECT, TEXT, 1, b'a', LIST, TRUE], json!({"a": [true]}));
        check(&[OBJECT, TRUE, TEXT, 9, b'a'], json!({}));
        check(&[END, END, TRUE], json!(true));
        let deep = Input::new(&[LIST; 1000]).document();
        assert_eq!(machinery::json::depth(&deep, 1000), MAX_DEPTH + 1);
    }

    #[test]
    fn every_word_has_a_tag() {
        assert!(WORDS.len() <= usize::from(u8::MAX - FIRST_WORD) + 1);
        let mut sorted = WORDS.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), WORDS.len());
    }
}
