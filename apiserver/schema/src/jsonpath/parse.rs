//! Text to steps.

use serde_json::{Number, Value};

use super::{Filter, Operator, Step};

/// Longest path; CRDs bring theirs from outside.
const MAX_LENGTH: usize = 4096;

type Result<T> = std::result::Result<T, &'static str>;

pub(super) fn parse(path: &str) -> Result<Vec<Step>> {
    if path.len() > MAX_LENGTH {
        return Err("too many characters");
    }
    let mut text = path.trim();
    if let Some(inner) = text.strip_prefix('{') {
        text = inner.strip_suffix('}').ok_or("missing }")?.trim();
    }
    let mut input = Input(text.strip_prefix(['$', '@']).unwrap_or(text));
    let steps = input.steps(false)?;
    if input.0.is_empty() { Ok(steps) } else { Err("unexpected character") }
}

struct Input<'t>(&'t str);

// === impl Input ===

impl<'t> Input<'t> {
    fn eat(&mut self, token: &str) -> bool {
        match self.0.strip_prefix(token) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn skip_spaces(&mut self) {
        self.0 = self.0.trim_start();
    }

    /// What lies before the first character that `ends`.
    fn until(&mut self, ends: impl Fn(char) -> bool) -> &'t str {
        let end = self.0.find(ends).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken
    }

    /// Steps up to the end of the text, or inside a filter to an operator or parenthesis.
    fn steps(&mut self, in_filter: bool) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        loop {
            if self.eat("..") {
                return Err("recursive descent is not supported");
            }
            if self.eat(".") {
                if self.eat("*") {
                    steps.push(Step::All);
                } else if !self.0.starts_with('[') {
                    let name = self.name(in_filter)?;
                    if !name.is_empty() {
                        steps.push(Step::Name(name.into()));
                    } else if !(self.0.is_empty() && steps.is_empty()) {
                        return Err("empty name");
                    }
                }
            } else if self.eat("[") {
                steps.push(self.bracket(in_filter)?);
            } else if self.0.is_empty() || in_filter {
                return Ok(steps);
            } else if steps.is_empty() {
                let name = self.name(in_filter)?;
                if name.is_empty() {
                    return Err("unexpected character");
                }
                steps.push(Step::Name(name.into()));
            } else {
                return Err("unexpected character");
            }
        }
    }

    /// A name after a dot; a backslash takes the next character as it is.
    fn name(&mut self, in_filter: bool) -> Result<String> {
        let mut name = String::new();
        let ends = |c: char| {
            matches!(c, '.' | '[' | ']' | '\\' | '{' | '}')
                || (in_filter && (c.is_whitespace() || matches!(c, '=' | '!' | '<' | '>' | ')')))
        };
        loop {
            name.push_str(self.until(ends));
            if !self.eat("\\") {
                return Ok(name);
            }
            let mut rest = self.0.chars();
            name.push(rest.next().ok_or("nothing after a backslash")?);
            self.0 = rest.as_str();
        }
    }

    /// What follows an opening bracket, the closing one included.
    fn bracket(&mut self, in_filter: bool) -> Result<Step> {
        self.skip_spaces();
        let step = if self.eat("*") {
            Step::All
        } else if self.eat("?(") {
            if in_filter {
                return Err("a filter inside a filter is not supported");
            }
            let filter = self.filter()?;
            if !self.eat(")") {
                return Err("missing )");
            }
            Step::Filter(filter)
        } else if self.0.starts_with(['\'', '"']) {
            Step::Name(self.quoted()?.into())
        } else {
            self.index()?
        };
        self.skip_spaces();
        if self.eat("]") { Ok(step) } else { Err("missing ]") }
    }

    fn index(&mut self) -> Result<Step> {
        let text = self.until(|c| c == ']').trim();
        let number = |text: &str| match text.trim() {
            "" => Ok(None),
            digits => digits.parse::<i64>().map(Some).map_err(|_| "a bracket without index"),
        };
        match text.split_once(':') {
            None => number(text)?.map(Step::Index).ok_or("a bracket without index"),
            Some((_, to)) if to.contains(':') => Err("a slice with steps is not supported"),
            Some((from, to)) => Ok(Step::Slice(number(from)?, number(to)?)),
        }
    }

    fn quoted(&mut self) -> Result<String> {
        let mut rest = self.0.chars();
        let quote = rest.next().ok_or("missing quote")?;
        let mut text = String::new();
        loop {
            match rest.next() {
                None => return Err("missing quote"),
                Some('\\') => text.push(rest.next().ok_or("nothing after a backslash")?),
                Some(c) if c == quote => break,
                Some(c) => text.push(c),
            }
        }
        self.0 = rest.as_str();
        Ok(text)
    }

    fn filter(&mut self) -> Result<Filter> {
        self.skip_spaces();
        if !self.eat("@") {
            return Err("a filter without @");
        }
        let left = self.steps(true)?.into();
        self.skip_spaces();
        let operators = [
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        let Some((_, operator)) = operators.into_iter().find(|(token, _)| self.eat(token)) else {
            return Ok(Filter { left, compare: None });
        };
        self.skip_spaces();
        let right = self.literal()?;
        self.skip_spaces();
        Ok(Filter { left, compare: Some((operator, right)) })
    }

    fn literal(&mut self) -> Result<Value> {
        if self.0.starts_with(['\'', '"']) {
            return self.quoted().map(Value::String);
        }
        let text = self.until(|c| c.is_whitespace() || c == ')');
        match text {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => {
                let integer = text.parse::<i64>().ok().map(Number::from);
                let float = || text.parse::<f64>().ok().and_then(Number::from_f64);
                integer.or_else(float).map(Value::Number).ok_or("a filter without value")
            }
        }
    }
}
