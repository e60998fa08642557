//! Values as Go prints them.

use std::fmt::Write as _;

/// A string as Go's `%q` prints it.
pub fn go_quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        push_quoted(&mut out, c);
    }
    out.push('"');
    out
}

/// A value as Go's `encoding/json` writes it: maps sorted, and `<`, `>`, `&` and the two Unicode
/// line separators escaped.
pub fn go_json(value: &serde_json::Value) -> String {
    // These characters occur in strings only, so that replacing them in the text is right.
    let mut out = String::new();
    for c in value.to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => push_escape(&mut out, 'u', c, 4),
            c => out.push(c),
        }
    }
    out
}

fn push_quoted(out: &mut String, c: char) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        ' '..='~' => out.push(c),
        '\0'..='\u{7f}' => push_escape(out, 'x', c, 2),
        c if is_printable(c) => out.push(c),
        c if u32::from(c) <= 0xffff => push_escape(out, 'u', c, 4),
        c => push_escape(out, 'U', c, 8),
    }
}

fn push_escape(out: &mut String, letter: char, c: char, width: usize) {
    write!(out, "\\{letter}{:0width$x}", u32::from(c)).expect("writing to a String can't fail");
}

/// Whether a character beyond ASCII has a shape of its own.
///
/// The standard library knows, but tells only by escaping; a combining mark is escaped when it
/// stands alone, so it is asked about behind a letter.
fn is_printable(c: char) -> bool {
    let mut buffer = ['a'; 2].iter().collect::<String>();
    buffer.pop();
    buffer.push(c);
    buffer.escape_debug().nth(1) == Some(c)
}
