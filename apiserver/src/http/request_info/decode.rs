//! Percent-decoding of paths and queries.

use std::borrow::Cow;

use crate::registry::Error;

/// Decodes a whole path, encoded slashes included: whatever reads it sees one interpretation.
///
/// # Errors
/// For an escape that is no escape, bytes that are not UTF-8, and control characters.
pub(crate) fn decode_path(raw: &str) -> Result<Cow<'_, str>, Error> {
    let path = percent_decode(raw, false)
        .ok_or_else(|| Error::bad_request("the request's path is not valid"))?;
    if path.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(Error::bad_request("the request's path is not valid"));
    }
    Ok(path)
}

/// Decodes a name or value of a query, where `+` is a space.
///
/// # Errors
/// For an escape that is no escape, and bytes that are not UTF-8.
pub(crate) fn decode_query(raw: &str) -> Result<Cow<'_, str>, Error> {
    percent_decode(raw, true).ok_or_else(|| Error::bad_request("the request's query is not valid"))
}

fn percent_decode(raw: &str, plus: bool) -> Option<Cow<'_, str>> {
    let special = |byte: u8| byte == b'%' || (plus && byte == b'+');
    if !raw.bytes().any(special) {
        return Some(Cow::Borrowed(raw));
    }
    let mut decoded = Vec::with_capacity(raw.len());
    let mut bytes = raw.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => decoded.push(hex(bytes.next()?)? << 4 | hex(bytes.next()?)?),
            b'+' if plus => decoded.push(b' '),
            _ => decoded.push(byte),
        }
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
