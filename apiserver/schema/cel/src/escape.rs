//! Names of fields as names of expressions.
//!
//! `__` becomes `__underscores__`, `.` `__dot__`, `-` `__dash__`, `/` `__slash__`; a name that is a
//! reserved word stands between `__`. A field with any other character can't be named.

/// Words of the language itself.
const WORDS: [&str; 4] = ["true", "false", "null", "in"];

/// Names that no variable or function may have; fields may, where they are not escaped.
pub(crate) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The name that expressions use for a field, if they can name it.
pub fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if WORDS.contains(&name) || RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '_' if rest.peek() == Some(&'_') => {
                rest.next();
                out.push_str("__underscores__");
            }
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            '_' | 'a'..='z' | 'A'..='Z' | '0'..='9' => out.push(c),
            _ => return None,
        }
    }
    Some(out)
}

/// Whether a name is a reserved word.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        let check = |name: &str, expect: Option<&str>| {
            assert_eq!(escape(name).as_deref(), expect, "{name:?}");
        };
        check("plain", Some("plain"));
        check("a__b___c", Some("a__underscores__b__underscores___c"));
        check("a.b-c/d", Some("a__dot__b__dash__c__slash__d"));
        check("namespace", Some("__namespace__"));
        check("int", Some("int"));
        check("1a", None);
        check("", None);
        check("$ref", None);
        check("ü", None);
    }
}
