//! Go's syntax of regular expressions to Rust's.

use std::fmt::Write as _;

/// Most repetitions that `{n}` may ask for.
const MAX_REPEAT: u32 = 1000;
/// Deepest nesting of groups, as Go's.
const MAX_GROUPS: usize = 1000;

type Result<T> = std::result::Result<T, String>;

/// Rewrites an expression.
///
/// # Errors
/// Go's words for what is wrong with it, without `error parsing regexp: `.
pub(super) fn rewrite(source: &str) -> Result<String> {
    let mut rewriter = Rewriter {
        source,
        rest: source,
        out: String::with_capacity(source.len() + 16),
        has_operand: false,
        repeated: None,
        groups: Vec::new(),
    };
    while !rewriter.rest.is_empty() {
        rewriter.step()?;
    }
    if rewriter.groups.is_empty() {
        Ok(rewriter.out)
    } else {
        Err(format!("missing closing ): `{source}`"))
    }
}

struct Rewriter<'s> {
    source: &'s str,
    rest: &'s str,
    out: String,
    /// Whether there is something that a repetition could repeat.
    has_operand: bool,
    /// What follows from the repetition that was just read.
    repeated: Option<&'s str>,
    /// The open groups.
    groups: Vec<()>,
}

// === impl Rewriter ===

impl<'s> Rewriter<'s> {
    fn step(&mut self) -> Result<()> {
        let before = self.rest;
        let Some(c) = self.next() else { return Ok(()) };
        match c {
            '*' | '+' | '?' => {
                self.out.push(c);
                return self.repeat(before);
            }
            '{' => {
                if let Some((text, valid)) = counts(before) {
                    self.rest = before.strip_prefix(text).unwrap_or_default();
                    if !valid {
                        return Err(format!("invalid repeat count: `{text}`"));
                    }
                    self.out.push_str(text);
                    return self.repeat(before);
                }
                self.out.push_str("\\{");
            }
            '|' => {
                self.out.push('|');
                self.has_operand = false;
                self.repeated = None;
                return Ok(());
            }
            '(' => return self.open(before),
            ')' => {
                if self.groups.pop().is_none() {
                    return Err(format!("unexpected ): `{}`", self.source));
                }
                self.out.push(')');
            }
            '[' => self.class(before)?,
            '\\' => self.escape(before)?,
            ']' | '}' => {
                self.out.push('\\');
                self.out.push(c);
            }
            c => self.out.push(c),
        }
        self.has_operand = true;
        self.repeated = None;
        Ok(())
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next();
        self.rest = chars.as_str();
        c
    }

    fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// After the operator of a repetition, which began at `before`.
    fn repeat(&mut self, before: &'s str) -> Result<()> {
        if self.eat("?") {
            self.out.push('?');
        }
        if let Some(first) = self.repeated {
            return Err(format!("invalid nested repetition operator: `{}`", self.since(first)));
        }
        if !self.has_operand {
            return Err(format!(
                "missing argument to repetition operator: `{}`",
                self.since(before)
            ));
        }
        self.repeated = Some(before);
        Ok(())
    }

    /// The text from a place up to here.
    fn since(&self, start: &'s str) -> &'s str {
        start.strip_suffix(self.rest).unwrap_or(start)
    }

    fn open(&mut self, before: &'s str) -> Result<()> {
        let opens = if self.eat("?P<") || self.eat("?<") {
            self.group_name(before)?;
            true
        } else if self.eat("?") {
            self.flags(before)?
        } else {
            self.out.push_str("(?:");
            true
        };
        if opens {
            self.groups.push(());
            if self.groups.len() > MAX_GROUPS {
                return Err(format!("expression nests too deeply: `{}`", self.source));
            }
            self.has_operand = false;
        }
        self.repeated = None;
        Ok(())
    }

    fn group_name(&mut self, before: &'s str) -> Result<()> {
        let bad = |text: &str| format!("invalid named capture: `{text}`");
        let Some((name, rest)) = self.rest.split_once('>') else { return Err(bad(before)) };
        self.rest = rest;
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(word) {
            return Err(bad(self.since(before)));
        }
        self.out.push_str("(?:");
        Ok(())
    }

    /// Flags, and whether they open a group.
    fn flags(&mut self, before: &'s str) -> Result<bool> {
        let mut text = String::from("(?");
        let (mut negated, mut some) = (false, false);
        loop {
            match self.next() {
                Some(c @ ('i' | 'm' | 's' | 'U')) => {
                    text.push(c);
                    some = true;
                }
                Some('-') if !negated => {
                    text.push('-');
                    (negated, some) = (true, false);
                }
                Some(c @ (':' | ')')) if some || !negated => {
                    // `(?)` sets nothing; Rust wants a flag there.
                    if !(c == ')' && text == "(?") {
                        self.out.push_str(&text);
                        self.out.push(c);
                    }
                    return Ok(c == ':');
                }
                _ => {
                    let what = self.since(before);
                    return Err(format!("invalid or unsupported Perl syntax: `{what}`"));
                }
            }
        }
    }

    /// After a backslash outside of a class.
    fn escape(&mut self, before: &'s str) -> Result<()> {
        let mut chars = self.rest.chars();
        match chars.next() {
            Some(c @ ('A' | 'z' | 'B')) => {
                self.rest = chars.as_str();
                self.out.push('\\');
                self.out.push(c);
            }
            Some('b') => {
                self.rest = chars.as_str();
                self.out.push_str("(?-u:\\b)");
            }
            Some('Q') => {
                let quoted = chars.as_str();
                let (text, rest) = quoted.split_once("\\E").unwrap_or((quoted, ""));
                self.rest = rest;
                text.chars().for_each(|c| push_char(&mut self.out, c));
            }
            _ => match self.named_class() {
                Some(class) => self.out.push_str(&class),
                None => {
                    let c = self.literal(before)?;
                    push_char(&mut self.out, c);
                }
            },
        }
        Ok(())
    }

    /// `d`, `pL` and the like after a backslash.
    fn named_class(&mut self) -> Option<String> {
        let mut chars = self.rest.chars();
        let class = match chars.next()? {
            'd' => "[0-9]".to_owned(),
            'D' => "[^0-9]".to_owned(),
            's' => "[\\t\\n\\x0c\\r ]".to_owned(),
            'S' => "[^\\t\\n\\x0c\\r ]".to_owned(),
            'w' => "[0-9A-Za-z_]".to_owned(),
            'W' => "[^0-9A-Za-z_]".to_owned(),
            sign @ ('p' | 'P') => {
                let mut name = String::new();
                match chars.next()? {
                    '{' => loop {
                        match chars.next()? {
                            '}' => break,
                            c => name.push(c),
                        }
                    },
                    c => name.push(c),
                }
                let (negated, name) = match name.strip_prefix('^') {
                    Some(rest) => (true, rest),
                    None => (false, name.as_str()),
                };
                let sign = if (sign == 'P') == negated { 'p' } else { 'P' };
                format!("\\{sign}{{{name}}}")
            }
            _ => return None,
        };
        self.rest = chars.as_str();
        Some(class)
    }

    /// The character that an escape means; the backslash has been read.
    fn literal(&mut self, before: &'s str) -> Result<char> {
        let Some(c) = self.next() else {
            return Err("trailing backslash at end of expression: ``".into());
        };
        let value = match c {
            '0'..='7' => {
                let octal = |c: char| c.is_digit(8);
                if c != '0' && !self.rest.starts_with(octal) {
                    None
                } else {
                    let mut value = c.to_digit(8).unwrap_or_default();
                    for _ in 0..2 {
                        if let Some(digit) = self.rest.chars().next().and_then(|c| c.to_digit(8)) {
                            value = value * 8 + digit;
                            self.next();
                        }
                    }
                    char::from_u32(value)
                }
            }
            'x' => self.hexadecimal(),
            'a' => Some('\u{7}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\u{b}'),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(c),
            _ => None,
        };
        value.ok_or_else(|| format!("invalid escape sequence: `{}`", self.since(before)))
    }

    fn hexadecimal(&mut self) -> Option<char> {
        let mut value = 0;
        if self.eat("{") {
            let mut digits = 0;
            loop {
                match self.next()? {
                    '}' if digits > 0 => return char::from_u32(value),
                    c => value = value * 16 + c.to_digit(16)?,
                }
                digits += 1;
                if value > u32::from(char::MAX) {
                    return None;
                }
            }
        }
        for _ in 0..2 {
            value = value * 16 + self.next()?.to_digit(16)?;
        }
        char::from_u32(value)
    }

    /// A class in brackets, of which the first was read.
    fn class(&mut self, before: &'s str) -> Result<()> {
        self.out.push('[');
        if self.eat("^") {
            self.out.push('^');
        }
        let mut first = true;
        while first || !self.rest.starts_with(']') {
            first = false;
            if self.rest.is_empty() {
                return Err(format!("missing closing ]: `{before}`"));
            }
            if self.rest.starts_with("[:") && self.posix_class()? {
                continue;
            }
            let range = self.rest;
            if self.rest.starts_with('\\') {
                let escaped = self.rest;
                self.next();
                if let Some(class) = self.named_class() {
                    self.out.push_str(&class);
                    continue;
                }
                self.rest = escaped;
            }
            let low = self.class_char(before)?;
            let mut high = low;
            if self.rest.starts_with('-') && !self.rest.starts_with("-]") && self.rest.len() > 1 {
                self.next();
                high = self.class_char(before)?;
                if high < low {
                    let what = self.since(range);
                    return Err(format!("invalid character class range: `{what}`"));
                }
            }
            push_char(&mut self.out, low);
            if high > low {
                self.out.push('-');
                push_char(&mut self.out, high);
            }
        }
        self.next();
        self.out.push(']');
        Ok(())
    }

    fn class_char(&mut self, class: &'s str) -> Result<char> {
        let before = self.rest;
        match self.next() {
            None => Err(format!("missing closing ]: `{class}`")),
            Some('\\') => self.literal(before),
            Some(c) => Ok(c),
        }
    }

    /// `[:alpha:]`; whether there was one.
    fn posix_class(&mut self) -> Result<bool> {
        const NAMES: [&str; 14] = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print",
            "punct", "space", "upper", "word", "xdigit",
        ];
        let before = self.rest;
        let Some((text, rest)) = before.split_once(":]") else { return Ok(false) };
        self.rest = rest;
        let name = text.trim_start_matches("[:");
        if NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            self.out.push_str(self.since(before));
            Ok(true)
        } else {
            Err(format!("invalid character class range: `{}`", self.since(before)))
        }
    }
}

/// A repetition's counts at the start of a text, and whether they are within the limits.
fn counts(text: &str) -> Option<(&str, bool)> {
    let end = text.find('}')?;
    let (whole, _) = text.split_at_checked(end + 1)?;
    let inner = whole.strip_prefix('{')?.strip_suffix('}')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let leading_zero = text.len() > 1 && text.starts_with('0');
        (digits && !leading_zero).then(|| text.parse::<u32>().unwrap_or(u32::MAX))
    };
    let (low, high) = match inner.split_once(',') {
        None => (number(inner)?, number(inner)?),
        Some((low, "")) => (number(low)?, number(low)?),
        Some((low, high)) => (number(low)?, number(high)?),
    };
    Some((whole, low <= high && high <= MAX_REPEAT))
}

/// A character that means itself, inside and outside of classes.
fn push_char(out: &mut String, c: char) {
    if c.is_ascii_alphanumeric() || !c.is_ascii() {
        out.push(c);
    } else {
        write!(out, "\\x{:02x}", u32::from(c)).expect("a String takes any text");
    }
}
