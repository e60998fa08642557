//! The values of literals.

use std::sync::Arc;

use crate::ast::Literal;

/// The value of a string literal, quotes and prefix included.
pub(crate) fn string(text: &str) -> Result<Arc<str>, &'static str> {
    let bytes = unescape(text, false)?;
    String::from_utf8(bytes).map(Arc::from).map_err(|_| "invalid unicode code point")
}

/// The value of a bytes literal, without its `b`.
pub(crate) fn bytes(text: &str) -> Result<Arc<[u8]>, &'static str> {
    unescape(text, true).map(Arc::from)
}

/// The value of `text` as an integer; `negative` if a minus stands before it.
pub(crate) fn int(text: &str, negative: bool) -> Option<Literal> {
    let (digits, radix) = digits(text);
    let magnitude = i128::from_str_radix(digits, radix).ok()?;
    let value = if negative { -magnitude } else { magnitude };
    i64::try_from(value).ok().map(Literal::Int)
}

/// The value of `text`, which ends with `u`.
pub(crate) fn uint(text: &str) -> Option<Literal> {
    let (digits, radix) = digits(text.strip_suffix(['u', 'U'])?);
    u64::from_str_radix(digits, radix).ok().map(Literal::Uint)
}

/// The value of `text` as a double; one that is too large is none.
pub(crate) fn double(text: &str, negative: bool) -> Option<Literal> {
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(Literal::Double(if negative { -value } else { value }))
}

fn digits(text: &str) -> (&str, u32) {
    text.strip_prefix("0x").map_or((text, 10), |hex| (hex, 16))
}

fn unescape(text: &str, is_bytes: bool) -> Result<Vec<u8>, &'static str> {
    const BAD: &str = "unable to unescape string";
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let (raw, quoted) = match text.strip_prefix(['r', 'R']) {
        Some(rest) => (true, rest),
        None => (false, text.as_str()),
    };
    let quotes = if quoted.len() >= 6 && (quoted.starts_with("'''") || quoted.starts_with("\"\"\""))
    {
        3
    } else {
        1
    };
    let inner = quoted.get(quotes..quoted.len().saturating_sub(quotes)).ok_or(BAD)?;
    if raw || !inner.contains('\\') {
        return Ok(inner.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        if c == '\\' {
            escape(&mut rest, &mut out, is_bytes)?;
        } else {
            push(&mut out, c);
        }
    }
    Ok(out)
}

fn push(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

fn escape(
    rest: &mut std::str::Chars<'_>,
    out: &mut Vec<u8>,
    is_bytes: bool,
) -> Result<(), &'static str> {
    const BAD: &str = "unable to unescape string";
    let c = rest.next().ok_or("unable to unescape string, found '\\' as last character")?;
    let simple = match c {
        'a' => Some(7),
        'b' => Some(8),
        'f' => Some(12),
        'n' => Some(b'\n'),
        'r' => Some(b'\r'),
        't' => Some(b'\t'),
        'v' => Some(11),
        '\\' | '\'' | '"' | '`' | '?' => Some(c as u8),
        _ => None,
    };
    if let Some(byte) = simple {
        out.push(byte);
        return Ok(());
    }
    let (first, digits, radix) = match c {
        'x' | 'X' => (None, 2, 16),
        'u' if !is_bytes => (None, 4, 16),
        'U' if !is_bytes => (None, 8, 16),
        '0'..='3' => (Some(c), 2, 8),
        _ => return Err(BAD),
    };
    let mut value = first.and_then(|c| c.to_digit(8)).unwrap_or(0);
    for _ in 0..digits {
        let digit = rest.next().and_then(|c| c.to_digit(radix)).ok_or(BAD)?;
        value = value.wrapping_mul(radix) | digit;
    }
    if is_bytes {
        out.push(u8::try_from(value).map_err(|_| BAD)?);
    } else {
        push(out, char::from_u32(value).ok_or("invalid unicode code point")?);
    }
    Ok(())
}
