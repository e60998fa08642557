//! Label selectors: `a=b,c in (x,y),!d`.

use std::fmt;

use super::lexer::{Lexer, Token};
use super::{MAX_SELECTOR, SelectorError};
use crate::field::{FieldError, FieldPath, aggregate};
use crate::name;

/// A conjunction of requirements on labels, sorted by key. Without requirements all match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LabelSelector {
    requirements: Box<[LabelRequirement]>,
    /// Matches nothing whatever the requirements: a structured selector that is null.
    nothing: bool,
}

/// One requirement of a [`LabelSelector`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LabelRequirement {
    /// The label's key.
    pub key: Box<str>,
    /// What must hold.
    pub operator: LabelOperator,
    /// Sorted, without repetition; as many as the operator wants.
    pub values: Box<[Box<str>]>,
}

/// What a [`LabelRequirement`] asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LabelOperator {
    /// `k=v` and `k==v`.
    Equals,
    /// `k!=v`; also matches objects without the label.
    NotEquals,
    /// `k in (v,w)`.
    In,
    /// `k notin (v,w)`; also matches objects without the label.
    NotIn,
    /// `k`.
    Exists,
    /// `!k`.
    DoesNotExist,
    /// `k>1`: both integers.
    GreaterThan,
    /// `k<1`: both integers.
    LessThan,
}

// === impl LabelSelector ===

impl LabelSelector {
    /// Matches every object.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Matches no object.
    pub fn nothing() -> Self {
        Self { requirements: Box::default(), nothing: true }
    }

    /// A selector of these requirements.
    pub fn new(mut requirements: Vec<LabelRequirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { requirements: requirements.into(), nothing: false }
    }

    /// Reads the text of `labelSelector=`.
    ///
    /// # Errors
    /// [`SelectorError`] with upstream's text.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > MAX_SELECTOR {
            return Err(SelectorError(format!("selector is longer than {MAX_SELECTOR} bytes")));
        }
        Parser::new(text).selector().map(Self::new)
    }

    /// Whether an object with these labels is selected; `get` looks a label up.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.nothing && self.requirements.iter().all(|r| r.matches(get(&r.key)))
    }

    /// Whether every object matches.
    pub fn is_empty(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// Whether no object matches, without looking at labels.
    pub fn is_nothing(&self) -> bool {
        self.nothing
    }

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[LabelRequirement] {
        &self.requirements
    }

    /// The one value that the label must have, if the selector says so.
    pub fn exact(&self, key: &str) -> Option<&str> {
        self.requirements.iter().filter(|r| &*r.key == key).find_map(LabelRequirement::exact)
    }
}

/// Prints the canonical text, which parses to an equal selector.
impl fmt::Display for LabelSelector {
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

// === impl LabelRequirement ===

impl LabelRequirement {
    /// A checked requirement.
    ///
    /// # Errors
    /// Every problem with the key, the number of values and the values.
    pub fn new(
        key: &str,
        operator: LabelOperator,
        mut values: Vec<Box<str>>,
    ) -> Result<Self, Vec<FieldError>> {
        values.sort();
        values.dedup();
        let mut problems: Vec<FieldError> =
            key_problem(&FieldPath::root("key"), key).into_iter().collect();
        problems.extend(operator.value_problems(key, &values));
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self { key: key.into(), operator, values: values.into() })
    }

    /// Whether a label with this value, or its absence, satisfies the requirement.
    pub fn matches(&self, value: Option<&str>) -> bool {
        match (self.operator, value) {
            (LabelOperator::Equals | LabelOperator::In, Some(value)) => self.has(value),
            (LabelOperator::NotEquals | LabelOperator::NotIn, Some(value)) => !self.has(value),
            (LabelOperator::GreaterThan, Some(value)) => self.compare(value, |a, b| a > b),
            (LabelOperator::LessThan, Some(value)) => self.compare(value, |a, b| a < b),
            (LabelOperator::Exists, value) => value.is_some(),
            (LabelOperator::DoesNotExist, value) => value.is_none(),
            (operator, None) => {
                matches!(operator, LabelOperator::NotEquals | LabelOperator::NotIn)
            }
        }
    }

    fn has(&self, value: &str) -> bool {
        match &*self.values {
            [one] => **one == *value,
            values => values.binary_search_by(|v| (**v).cmp(value)).is_ok(),
        }
    }

    fn compare(&self, value: &str, order: fn(i64, i64) -> bool) -> bool {
        let bound = self.values.first().and_then(|v| v.parse().ok());
        value.parse().ok().zip(bound).is_some_and(|(value, bound)| order(value, bound))
    }

    fn exact(&self) -> Option<&str> {
        match (self.operator, &*self.values) {
            (LabelOperator::Equals | LabelOperator::In, [one]) => Some(one),
            _ => None,
        }
    }
}

impl fmt::Display for LabelRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.values.join(",");
        let key = &self.key;
        match self.operator {
            LabelOperator::Equals => write!(f, "{key}={values}"),
            LabelOperator::NotEquals => write!(f, "{key}!={values}"),
            LabelOperator::In => write!(f, "{key} in ({values})"),
            LabelOperator::NotIn => write!(f, "{key} notin ({values})"),
            LabelOperator::Exists => f.write_str(key),
            LabelOperator::DoesNotExist => write!(f, "!{key}"),
            LabelOperator::GreaterThan => write!(f, "{key}>{values}"),
            LabelOperator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

// === impl LabelOperator ===

impl LabelOperator {
    fn value_problems(self, key: &str, values: &[Box<str>]) -> Vec<FieldError> {
        let path = FieldPath::root("values");
        let mut problems = Vec::new();
        let count = match self {
            Self::In | Self::NotIn if values.is_empty() => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            Self::Equals | Self::NotEquals if values.len() != 1 => {
                Some("exact-match compatibility requires one single value")
            }
            Self::Exists | Self::DoesNotExist if !values.is_empty() => {
                Some("values set must be empty for exists and does not exist")
            }
            Self::GreaterThan | Self::LessThan if values.len() != 1 => {
                Some("for 'Gt', 'Lt' operators, exactly one value is required")
            }
            _ => None,
        };
        if let Some(detail) = count {
            let values = values.iter().map(|v| (**v).into()).collect();
            problems.push(FieldError::invalid(&path, &serde_json::Value::Array(values), detail));
        }
        let numeric = matches!(self, Self::GreaterThan | Self::LessThan);
        for (index, value) in values.iter().enumerate() {
            let path = path.index(index);
            if numeric && value.parse::<i64>().is_err() {
                let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
                problems.push(FieldError::invalid_str(&path, value, detail));
            }
            let wrong = name::label_value(value);
            if !wrong.is_empty() {
                problems.push(FieldError::invalid_str(&path.key(key), value, wrong.join("; ")));
            }
        }
        problems
    }
}

fn key_problem(path: &FieldPath, key: &str) -> Option<FieldError> {
    let wrong = name::qualified_name(key);
    (!wrong.is_empty()).then(|| FieldError::invalid_str(path, key, wrong.join("; ")))
}

/// Reads a selector; one token of lookahead.
struct Parser<'a> {
    lexer: Lexer<'a>,
    next: Token<'a>,
}

type Parsed<T> = Result<T, String>;

// === impl Parser ===

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        let mut lexer = Lexer::new(text);
        let next = lexer.next_token();
        Self { lexer, next }
    }

    fn advance(&mut self) -> Token<'a> {
        std::mem::replace(&mut self.next, self.lexer.next_token())
    }

    fn selector(&mut self) -> Result<Vec<LabelRequirement>, SelectorError> {
        let mut requirements = Vec::new();
        match self.next {
            Token::End => return Ok(requirements),
            Token::Word(_) | Token::Sign("!") => {}
            Token::Sign(other) => {
                let expected = "expected: !, identifier, or 'end of string'";
                return Err(SelectorError(format!("found '{other}', {expected}")));
            }
        }
        loop {
            let requirement = self
                .requirement()
                .map_err(|e| SelectorError(format!("unable to parse requirement: {e}")))?;
            requirements.push(requirement);
            match self.advance() {
                Token::End => return Ok(requirements),
                Token::Sign(",") => {}
                other => {
                    let found = other.text();
                    let expected = "expected: ',' or 'end of string'";
                    return Err(SelectorError(format!("found '{found}', {expected}")));
                }
            }
            if !matches!(self.next, Token::Word(_) | Token::Sign("!")) {
                let found = self.next.text();
                let expected = "expected: identifier after ','";
                return Err(SelectorError(format!("found '{found}', {expected}")));
            }
        }
    }

    fn requirement(&mut self) -> Parsed<LabelRequirement> {
        let absent = self.next == Token::Sign("!");
        if absent {
            self.advance();
        }
        let key = match self.advance() {
            Token::Word(key) => key,
            other => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        // Upstream names no field here, which its printer shows as a nil path.
        if let Some(problem) = key_problem(&FieldPath::root("<nil>"), key) {
            return Err(problem.to_string());
        }
        let (operator, values) = if absent {
            (LabelOperator::DoesNotExist, Vec::new())
        } else if matches!(self.next, Token::End | Token::Sign(",")) {
            (LabelOperator::Exists, Vec::new())
        } else {
            let operator = self.operator()?;
            let set = matches!(operator, LabelOperator::In | LabelOperator::NotIn);
            (operator, if set { self.values()? } else { vec![self.value()?] })
        };
        LabelRequirement::new(key, operator, values).map_err(|problems| aggregate(&problems))
    }

    fn operator(&mut self) -> Parsed<LabelOperator> {
        match self.advance() {
            Token::Word("in") => Ok(LabelOperator::In),
            Token::Word("notin") => Ok(LabelOperator::NotIn),
            Token::Sign("=" | "==") => Ok(LabelOperator::Equals),
            Token::Sign("!=") => Ok(LabelOperator::NotEquals),
            Token::Sign(">") => Ok(LabelOperator::GreaterThan),
            Token::Sign("<") => Ok(LabelOperator::LessThan),
            other => {
                Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text()))
            }
        }
    }

    /// The value behind `=`, which may be missing.
    fn value(&mut self) -> Parsed<Box<str>> {
        if matches!(self.next, Token::End | Token::Sign(",")) {
            return Ok("".into());
        }
        match self.advance() {
            Token::Word(value) => Ok(value.into()),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    /// `(a,b)`; an item may be empty.
    fn values(&mut self) -> Parsed<Vec<Box<str>>> {
        match self.advance() {
            Token::Sign("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let mut values = Vec::new();
        loop {
            let value = match self.next {
                Token::Word(value) => {
                    self.advance();
                    value
                }
                Token::Sign("," | ")") => "",
                other => {
                    let found = other.text();
                    return Err(format!("found '{found}', expected: ',', ')' or identifier"));
                }
            };
            values.push(value.into());
            match self.advance() {
                Token::Sign(",") => {}
                Token::Sign(")") => return Ok(values),
                other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
            }
        }
    }
}
