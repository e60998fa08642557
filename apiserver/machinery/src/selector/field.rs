//! Field selectors: `metadata.name=x,status.phase!=Running`.

use std::borrow::Cow;
use std::fmt;

use super::{MAX_SELECTOR, SelectorError};

/// A conjunction of requirements on fields, sorted. Without requirements all objects match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldSelector {
    requirements: Box<[FieldRequirement]>,
}

/// One requirement of a [`FieldSelector`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldRequirement {
    /// The field, as `metadata.name`.
    pub path: Box<str>,
    /// What must hold.
    pub op: FieldOperator,
    /// The value; an absent field counts as empty.
    pub value: Box<str>,
}

/// What a [`FieldRequirement`] asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldOperator {
    /// `f=v` and `f==v`.
    Equal,
    /// `f!=v`.
    NotEqual,
}

// === impl FieldSelector ===

impl FieldSelector {
    /// Matches every object.
    pub fn everything() -> Self {
        Self::default()
    }

    /// A selector of these requirements.
    pub fn new(mut requirements: Vec<FieldRequirement>) -> Self {
        requirements.sort_unstable();
        Self { requirements: requirements.into() }
    }

    /// Reads the text of `fieldSelector=`. In values, `\` escapes `\`, `,` and `=`.
    ///
    /// Which fields exist is the caller's matter.
    ///
    /// # Errors
    /// [`SelectorError`] with upstream's text.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > MAX_SELECTOR {
            return Err(SelectorError(format!("selector is longer than {MAX_SELECTOR} bytes")));
        }
        let mut terms = split_terms(text);
        // Upstream sorts the terms as texts, and complains about the first bad one in that order.
        terms.sort_unstable();
        let mut requirements = Vec::new();
        for term in terms.into_iter().filter(|term| !term.is_empty()) {
            let (path, op, value) = split_term(term).ok_or_else(|| {
                SelectorError(format!("invalid selector: '{text}'; can't understand '{term}'"))
            })?;
            let value = unescape(value)?;
            // Upstream forgets a term without field and value.
            if !(path.is_empty() && value.is_empty()) {
                requirements.push(FieldRequirement { path: path.into(), op, value: value.into() });
            }
        }
        Ok(Self::new(requirements))
    }

    /// The requirements, sorted.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// Whether an object is selected; `get` looks a field up, `None` counts as empty.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<Cow<'a, str>>) -> bool {
        self.requirements.iter().all(|r| {
            let equal = get(&r.path).as_deref().unwrap_or_default() == &*r.value;
            equal == (r.op == FieldOperator::Equal)
        })
    }

    /// Whether every object matches.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The one value that the field must have, if the selector says so.
    pub fn exact(&self, path: &str) -> Option<&str> {
        let wanted = |r: &&FieldRequirement| r.op == FieldOperator::Equal && &*r.path == path;
        self.requirements.iter().find(wanted).map(|r| &*r.value)
    }
}

/// Prints a text that parses to an equal selector.
impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for FieldRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        f.write_str(match self.op {
            FieldOperator::Equal => "=",
            FieldOperator::NotEqual => "!=",
        })?;
        for c in self.value.chars() {
            if matches!(c, '\\' | ',' | '=') {
                f.write_str("\\")?;
            }
            write!(f, "{c}")?;
        }
        Ok(())
    }
}

/// Cuts at commas that no backslash escapes.
fn split_terms(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(|c| {
        let cut = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        cut
    })
    .collect()
}

fn split_term(term: &str) -> Option<(&str, FieldOperator, &str)> {
    let at = term
        .char_indices()
        .find(|(at, c)| *c == '=' || (*c == '!' && term.as_bytes().get(at + 1) == Some(&b'=')))?;
    let (path, rest) = term.split_at_checked(at.0)?;
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((path, FieldOperator::NotEqual, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((path, FieldOperator::Equal, value))
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                other => {
                    let sequence: String = Some('\\').into_iter().chain(other).collect();
                    return Err(SelectorError(format!(
                        "invalid field selector: invalid escape sequence: {sequence}"
                    )));
                }
            },
            ',' | '=' => {
                // Upstream prints the number of the character.
                return Err(SelectorError(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                )));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}
