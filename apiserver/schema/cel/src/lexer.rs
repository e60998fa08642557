//! Text to tokens. What is no token is reported and left out, as upstream's lexer does.

use crate::source::Problems;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    End,
    /// An operator or bracket.
    Punct(&'static str),
    Int,
    Uint,
    Float,
    String,
    Bytes,
    Ident,
    /// A name between backquotes, which this environment doesn't have.
    EscapedIdent,
    True,
    False,
    Null,
    In,
}

/// A token and the bytes that it stands on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lexeme {
    pub(crate) token: Token,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

const PUNCTUATION: [&str; 25] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!",
    "?", ":", "+", "*", "/", "%", "",
];

/// All tokens of `text`, ended by [`Token::End`].
pub(crate) fn lex(text: &str, problems: &mut Problems) -> Vec<Lexeme> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let blank = blank(rest);
        if blank > 0 {
            at += blank;
            continue;
        }
        let Some((token, length)) = token(rest) else {
            let length = unrecognized(rest);
            let bad = rest.get(..length).unwrap_or_default();
            let message = format_args!("Syntax error: token recognition error at: '{bad}'");
            problems.add(at as u32, message);
            at += length;
            continue;
        };
        out.push(Lexeme { token, start: at as u32, end: (at + length) as u32 });
        at += length;
    }
    let end = text.len() as u32;
    out.push(Lexeme { token: Token::End, start: end, end });
    out
}

/// Length of white space or of a comment.
fn blank(rest: &str) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    let is_blank = |byte: &u8| matches!(byte, b'\t' | b' ' | b'\r' | b'\n' | 0x0c);
    rest.bytes().take_while(is_blank).count()
}

/// How much the lexer gives up at once: an unfinished string goes as a whole.
fn unrecognized(rest: &str) -> usize {
    let first = rest.chars().next().map_or(1, char::len_utf8);
    let prefix = rest.bytes().take_while(|b| matches!(b, b'b' | b'B' | b'r' | b'R')).count();
    let quote = rest.as_bytes().get(prefix).copied();
    if let Some(quote @ (b'"' | b'\'')) = quote
        && prefix <= 2
    {
        let raw = rest.get(..prefix).unwrap_or_default().contains(['r', 'R']);
        let body = rest.get(prefix + 1..).unwrap_or_default();
        let mut length = prefix + 1;
        let mut chars = body.char_indices();
        while let Some((offset, c)) = chars.next() {
            if c == '\n' || c == '\r' {
                // The character that ended the attempt is part of what is given up.
                return prefix + 1 + offset + 1;
            }
            length = prefix + 1 + offset + c.len_utf8();
            if c == '\\' && !raw {
                let after = body.get(offset + 1..).unwrap_or_default();
                match escape(after.as_bytes()) {
                    Some(whole) => {
                        length = prefix + offset + 1 + whole;
                        let skipped = chars.clone().take_while(|(at, _)| *at < offset + whole);
                        let count = skipped.count();
                        chars.by_ref().take(count).for_each(drop);
                    }
                    // What isn't an escape is given up with the character that shows it.
                    None => return length + wrong_escape(after),
                }
            } else if c == char::from(quote) {
                break;
            }
        }
        return length;
    }
    // Both of `&` and `|` begin a longer token, so upstream gives up what follows with them.
    if matches!(rest.as_bytes().first(), Some(b'&' | b'|' | b'=')) {
        return first + rest.get(first..).and_then(|r| r.chars().next()).map_or(0, char::len_utf8);
    }
    first
}

/// Bytes behind a backslash up to the one that makes it no escape.
fn wrong_escape(after: &str) -> usize {
    let first = after.chars().next().map_or(0, char::len_utf8);
    let (most, digit): (usize, fn(&u8) -> bool) = match after.as_bytes().first() {
        Some(b'x' | b'X') => (2, u8::is_ascii_hexdigit),
        Some(b'u') => (4, u8::is_ascii_hexdigit),
        Some(b'U') => (8, u8::is_ascii_hexdigit),
        Some(b'0'..=b'3') => (2, |b| (b'0'..=b'7').contains(b)),
        _ => return first,
    };
    let digits = after.bytes().skip(1).take(most).take_while(digit).count();
    let wrong = after.get(1 + digits..).and_then(|rest| rest.chars().next());
    1 + digits + wrong.map_or(0, char::len_utf8)
}

fn token(rest: &str) -> Option<(Token, usize)> {
    let first = *rest.as_bytes().first()?;
    if let Some(found) = string(rest) {
        return Some(found);
    }
    if first.is_ascii_digit()
        || first == b'.' && rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit)
    {
        return Some(number(rest.as_bytes()));
    }
    if first.is_ascii_alphabetic() || first == b'_' {
        let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let token = match rest.get(..length)? {
            "true" => Token::True,
            "false" => Token::False,
            "null" => Token::Null,
            "in" => Token::In,
            _ => Token::Ident,
        };
        return Some((token, length));
    }
    if first == b'`' {
        let allowed = |b: &u8| b.is_ascii_alphanumeric() || b"_.-/ ".contains(b);
        let inner = rest.bytes().skip(1).take_while(allowed).count();
        let closed = rest.as_bytes().get(1 + inner) == Some(&b'`');
        return (closed && inner > 0).then_some((Token::EscapedIdent, inner + 2));
    }
    let found = PUNCTUATION.into_iter().find(|p| !p.is_empty() && rest.starts_with(p))?;
    Some((Token::Punct(found), found.len()))
}

fn number(bytes: &[u8]) -> (Token, usize) {
    let digits = |from: usize| bytes.iter().skip(from).take_while(|b| b.is_ascii_digit()).count();
    let suffix = |at: usize| matches!(bytes.get(at), Some(b'u' | b'U'));
    if bytes.starts_with(b"0x") {
        let hex = bytes.iter().skip(2).take_while(|b| b.is_ascii_hexdigit()).count();
        if hex > 0 {
            let end = 2 + hex;
            return if suffix(end) { (Token::Uint, end + 1) } else { (Token::Int, end) };
        }
    }
    let mut end = digits(0);
    let mut float = false;
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
        float = true;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
            float = true;
        }
    }
    if float {
        (Token::Float, end)
    } else if suffix(end) {
        (Token::Uint, end + 1)
    } else {
        (Token::Int, end)
    }
}

/// A string or bytes literal with its prefix.
fn string(rest: &str) -> Option<(Token, usize)> {
    let bytes = rest.as_bytes();
    let mut at = 0;
    let mut token = Token::String;
    if matches!(bytes.first(), Some(b'b' | b'B')) {
        token = Token::Bytes;
        at += 1;
    }
    let raw = matches!(bytes.get(at), Some(b'r' | b'R'));
    at += usize::from(raw);
    let quote = *bytes.get(at)?;
    if quote != b'"' && quote != b'\'' {
        return None;
    }
    let triple = [quote; 3];
    if bytes.get(at..)?.starts_with(&triple)
        && let Some(length) = body(bytes.get(at + 3..)?, &triple, raw, true)
    {
        return Some((token, at + 3 + length));
    }
    let length = body(bytes.get(at + 1..)?, &[quote], raw, false)?;
    Some((token, at + 1 + length))
}

/// Length of what stands before the end of a string and of its closing quotes.
fn body(bytes: &[u8], close: &[u8], raw: bool, lines: bool) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..)?;
        if rest.starts_with(close) {
            return Some(at + close.len());
        }
        match rest.first()? {
            b'\n' | b'\r' if !lines => return None,
            b'\\' if !raw => at += escape(rest.get(1..)?)?,
            _ => at += 1,
        }
    }
}

/// Length of an escape sequence with its backslash, if the grammar has it.
fn escape(after: &[u8]) -> Option<usize> {
    let hex = |count: usize| {
        let digits = after.get(1..=count)?;
        digits.iter().all(u8::is_ascii_hexdigit).then_some(count + 2)
    };
    match after.first()? {
        b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`' => {
            Some(2)
        }
        b'x' | b'X' => hex(2),
        b'u' => hex(4),
        b'U' => hex(8),
        b'0'..=b'3' => {
            let digits = after.get(1..3)?;
            digits.iter().all(|b| (b'0'..=b'7').contains(b)).then_some(4)
        }
        _ => None,
    }
}
