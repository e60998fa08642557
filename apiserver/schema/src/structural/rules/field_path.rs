//! `fieldPath` of a rule: `.spec.x`, `['a']`.

use crate::structural::node::{Additional, Node};

/// The path as messages print it, if it leads to a field of `node`.
pub(super) fn normalize(path: &str, node: Node<'_>) -> Option<String> {
    let mut out = String::new();
    let mut node = node;
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = step(rest)?;
        rest = after;
        if node.properties().len() > 0 {
            node = node.property(&name)?;
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&name);
        } else {
            let Additional::Of(values) = node.additional() else { return None };
            node = values;
            out.push('[');
            out.push_str(&name);
            out.push(']');
        }
    }
    Some(out)
}

/// The name in the first step, and what follows it.
fn step(text: &str) -> Option<(String, &str)> {
    if let Some(quoted) = text.strip_prefix("['") {
        let mut name = String::new();
        let mut chars = quoted.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\'' => return Some((name, quoted.get(at + 1..)?.strip_prefix(']')?)),
                '\\' => name.push(match chars.next()?.1 {
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'v' => '\u{b}',
                    c @ ('\'' | '\\') => c,
                    _ => return None,
                }),
                c => name.push(c),
            }
        }
        return None;
    }
    let rest = text.strip_prefix('.')?;
    let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
    let (name, after) = rest.split_at_checked(end)?;
    (!name.is_empty()).then(|| (name.to_owned(), after))
}
