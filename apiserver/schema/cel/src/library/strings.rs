//! Functions of strings. Indexes count characters.

use crate::eval::Evaluated;
use crate::library::MAX_TEXT;
use crate::op::Op;
use crate::value::{EvalError, V, chars};

pub(super) fn call<'a>(op: Op, args: &[V<'a>]) -> Evaluated<'a> {
    if op == Op::Join {
        return join(args);
    }
    let Some(V::String(text)) = args.first() else { return Err(EvalError::no_such_overload()) };
    match (op, args.get(1..).unwrap_or_default()) {
        (Op::Contains, [V::String(part)]) => Ok(V::Bool(text.contains(&**part))),
        (Op::StartsWith, [V::String(part)]) => Ok(V::Bool(text.starts_with(&**part))),
        (Op::EndsWith, [V::String(part)]) => Ok(V::Bool(text.ends_with(&**part))),
        (Op::CharAt, [V::Int(at)]) => char_at(text, *at),
        (Op::IndexOf, [V::String(part)]) => index_of(text, part, 0),
        (Op::IndexOf, [V::String(part), V::Int(from)]) => index_of(text, part, *from),
        (Op::LastIndexOf, [V::String(part)]) => last_index_of(text, part, None),
        (Op::LastIndexOf, [V::String(part), V::Int(from)]) => {
            last_index_of(text, part, Some(*from))
        }
        (Op::LowerAscii, []) => Ok(V::string(text.to_ascii_lowercase())),
        (Op::UpperAscii, []) => Ok(V::string(text.to_ascii_uppercase())),
        (Op::Trim, []) => Ok(V::string(text.trim_matches(is_space))),
        (Op::Replace, [V::String(old), V::String(new)]) => replace(text, old, new, -1),
        (Op::Replace, [V::String(old), V::String(new), V::Int(limit)]) => {
            replace(text, old, new, *limit)
        }
        (Op::Split, [V::String(separator)]) => Ok(split(text, separator, -1)),
        (Op::Split, [V::String(separator), V::Int(limit)]) => Ok(split(text, separator, *limit)),
        (Op::Substring, [V::Int(start)]) => substring(text, *start, None),
        (Op::Substring, [V::Int(start), V::Int(end)]) => substring(text, *start, Some(*end)),
        (Op::StringsQuote, []) => Ok(V::string(quote(text))),
        // At once, so that what the one makes is not read by the other.
        (Op::EscapeKey, []) => {
            let escaped = text.split('~').map(|part| part.replace('/', "~1"));
            Ok(V::string(escaped.collect::<Vec<_>>().join("~0")))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

/// White space as Go's `unicode.IsSpace` has it.
fn is_space(c: char) -> bool {
    c.is_whitespace()
}

fn out_of_range(index: i64) -> EvalError {
    EvalError::failed(format_args!("index out of range: {index}"))
}

/// The byte where character `index` begins; the end for the number of characters.
fn byte_at(text: &str, index: usize) -> Option<usize> {
    text.char_indices().map(|(at, _)| at).chain(std::iter::once(text.len())).nth(index)
}

fn char_at<'a>(text: &str, at: i64) -> Evaluated<'a> {
    let index = usize::try_from(at).map_err(|_| out_of_range(at))?;
    let byte = byte_at(text, index).ok_or_else(|| out_of_range(at))?;
    let rest = text.get(byte..).unwrap_or_default();
    Ok(V::string(rest.chars().next().map(String::from).unwrap_or_default()))
}

fn index_of<'a>(text: &str, part: &str, from: i64) -> Evaluated<'a> {
    if part.is_empty() {
        return Ok(V::Int(from));
    }
    let start = usize::try_from(from).map_err(|_| out_of_range(from))?;
    let Some(byte) = byte_at(text, start) else { return Ok(V::Int(-1)) };
    let rest = text.get(byte..).unwrap_or_default();
    Ok(V::Int(match rest.find(part) {
        Some(found) => from + chars(rest.get(..found).unwrap_or_default()) as i64,
        None => -1,
    }))
}

fn last_index_of<'a>(text: &str, part: &str, from: Option<i64>) -> Evaluated<'a> {
    let length = chars(text) as i64;
    if part.is_empty() {
        return Ok(V::Int(from.unwrap_or(length)));
    }
    let from = match from {
        None if text.len() < part.len() => return Ok(V::Int(-1)),
        None => length - 1,
        Some(from) if from < 0 => return Err(out_of_range(from)),
        Some(from) => from,
    };
    if from >= length {
        return Ok(V::Int(-1));
    }
    // An occurrence may begin at `from` and go on behind it.
    let end = byte_at(text, from as usize).unwrap_or(text.len()) + part.len();
    let mut end = end.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let head = text.get(..end).unwrap_or(text);
    let mut found = head.rfind(part);
    if let Some(at) = found
        && chars(head.get(..at).unwrap_or_default()) as i64 > from
    {
        found = None;
    }
    Ok(V::Int(found.map_or(-1, |at| chars(head.get(..at).unwrap_or_default()) as i64)))
}

fn substring<'a>(text: &str, start: i64, end: Option<i64>) -> Evaluated<'a> {
    if let Some(end) = end
        && start > end
    {
        let text = format_args!("invalid substring range. start: {start}, end: {end}");
        return Err(EvalError::failed(text));
    }
    let place = |at: i64| {
        let index = usize::try_from(at).map_err(|_| out_of_range(at))?;
        byte_at(text, index).ok_or_else(|| out_of_range(at))
    };
    let from = place(start)?;
    let to = end.map_or(Ok(text.len()), place)?;
    Ok(V::string(text.get(from..to).unwrap_or_default()))
}

fn replace<'a>(text: &str, old: &str, new: &str, limit: i64) -> Evaluated<'a> {
    let count = text.matches(old).count();
    let count = usize::try_from(limit).map_or(count, |limit| count.min(limit));
    if text.len().saturating_add(count.saturating_mul(new.len())) > MAX_TEXT {
        return Err(EvalError::CostLimit);
    }
    Ok(V::string(text.replacen(old, new, count)))
}

fn split<'a>(text: &str, separator: &str, limit: i64) -> V<'a> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if limit == 0 {
        return V::list(Vec::new());
    }
    let mut parts = Vec::new();
    if separator.is_empty() {
        // Each character is a part, the last part is what is left.
        let mut rest = text;
        while !rest.is_empty() {
            let length = rest.chars().next().map_or(rest.len(), char::len_utf8);
            let last = parts.len() + 1 == limit;
            let (part, after) = rest.split_at(if last { rest.len() } else { length });
            parts.push(V::string(part));
            rest = after;
        }
        return V::list(parts);
    }
    parts.extend(text.splitn(limit, separator).map(V::string));
    V::list(parts)
}

fn join<'a>(args: &[V<'a>]) -> Evaluated<'a> {
    let (list, separator) = match args {
        [V::List(list)] => (list, ""),
        [V::List(list), V::String(separator)] => (list, &**separator),
        _ => return Err(EvalError::no_such_overload()),
    };
    let mut out = String::new();
    for (at, item) in list.iter().enumerate() {
        if at > 0 {
            out.push_str(separator);
        }
        if out.len() > MAX_TEXT {
            return Err(EvalError::CostLimit);
        }
        match item? {
            V::String(text) => out.push_str(&text),
            _ => return Err(EvalError::no_such_overload()),
        }
    }
    Ok(V::string(out))
}

/// The text between quotes, with escapes for what can't be printed.
fn quote(text: &str) -> String {
    quoted(text, String::push)
}

/// The text between quotes, with Go's short escapes; `other` writes what has none.
pub(super) fn quoted(text: &str, other: impl Fn(&mut String, char)) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => other(&mut out, c),
        }
    }
    out.push('"');
    out
}
