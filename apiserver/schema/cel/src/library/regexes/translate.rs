//! Patterns of Go's dialect of RE2 as patterns of this engine.
//!
//! The engines agree on what they can match; they differ in notation. In Go `\d`, `\s`, `\w` and `\b`
//! are about ASCII alone, `\Q…\E` quotes, `[` in a class and `{` without a count are plain characters,
//! a count is at most 1,000, and there are no set operations in classes. Where a pattern is wrong, the
//! error has Go's text.

/// The pattern in this engine's notation.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let mut translator =
        Translator { pattern, at: 0, out: String::new(), open: 0, before: Before::Nothing };
    translator.run()?;
    Ok(translator.out)
}

/// What the last item was, for operators that repeat it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Item,
    /// An operator that began at this byte.
    Repeat(usize),
}

struct Translator<'p> {
    pattern: &'p str,
    at: usize,
    out: String,
    open: u32,
    before: Before,
}

fn problem(code: &str, fragment: &str) -> String {
    format!("error parsing regexp: {code}: `{fragment}`")
}

impl<'p> Translator<'p> {
    fn rest(&self) -> &'p str {
        self.pattern.get(self.at..).unwrap_or_default()
    }

    fn from(&self, start: usize) -> &'p str {
        self.pattern.get(start..self.at).unwrap_or_default()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn run(&mut self) -> Result<(), String> {
        loop {
            let start = self.at;
            let Some(c) = self.next() else { break };
            match c {
                '\\' => {
                    self.escape(start, false)?;
                    self.before = Before::Item;
                }
                '[' => {
                    self.class(start)?;
                    self.before = Before::Item;
                }
                '(' => {
                    self.group(start)?;
                    self.before = Before::Nothing;
                }
                ')' => {
                    if self.open == 0 {
                        return Err(problem("unexpected )", self.pattern));
                    }
                    self.open -= 1;
                    self.out.push(')');
                    self.before = Before::Item;
                }
                '|' => {
                    self.out.push('|');
                    self.before = Before::Nothing;
                }
                '*' | '+' | '?' => {
                    self.out.push(c);
                    self.repeated(start)?;
                }
                '{' => self.count(start)?,
                c => {
                    self.out.push(c);
                    self.before = Before::Item;
                }
            }
        }
        if self.open > 0 {
            return Err(problem("missing closing )", self.pattern));
        }
        Ok(())
    }

    /// After an operator: whether there is something to repeat, and a `?` that makes it lazy.
    fn repeated(&mut self, start: usize) -> Result<(), String> {
        match self.before {
            Before::Nothing => {
                return Err(problem("missing argument to repetition operator", self.from(start)));
            }
            Before::Repeat(first) => {
                return Err(problem("invalid nested repetition operator", self.from(first)));
            }
            Before::Item => {}
        }
        if self.rest().starts_with('?') {
            self.at += 1;
            self.out.push('?');
        }
        self.before = Before::Repeat(start);
        Ok(())
    }

    fn count(&mut self, start: usize) -> Result<(), String> {
        let Some((body, _)) = self.rest().split_once('}') else {
            self.out.push_str("\\{");
            self.before = Before::Item;
            return Ok(());
        };
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (low, high) = body.split_once(',').unwrap_or((body, body));
        if !number(low) || !(number(high) || high.is_empty()) {
            self.out.push_str("\\{");
            self.before = Before::Item;
            return Ok(());
        }
        self.at += body.len() + 1;
        let value = |text: &str| text.parse::<u32>().ok().filter(|count| *count <= 1000);
        let valid = match (value(low), value(high)) {
            (Some(_), None) => high.is_empty(),
            (Some(low), Some(high)) => low <= high,
            _ => false,
        };
        if !valid {
            return Err(problem("invalid repeat count", self.from(start)));
        }
        self.out.push_str(self.from(start));
        self.repeated(start)
    }

    fn group(&mut self, start: usize) -> Result<(), String> {
        self.open += 1;
        let Some(extension) = self.rest().strip_prefix('?') else {
            self.out.push('(');
            return Ok(());
        };
        let named = extension.strip_prefix("P<").or_else(|| extension.strip_prefix('<'));
        if let Some(named) = named
            && !named.starts_with(['=', '!'])
        {
            let Some((name, _)) = named.split_once('>') else {
                return Err(problem(
                    "invalid named capture",
                    self.pattern.get(start..).unwrap_or_default(),
                ));
            };
            self.at += self.rest().len() - named.len() + name.len() + 1;
            let valid =
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !valid {
                return Err(problem("invalid named capture", self.from(start)));
            }
            self.out.push_str(&format!("(?P<{name}>"));
            return Ok(());
        }
        // Flags, for the group or for what follows it.
        self.at += 1;
        loop {
            match self.next() {
                Some('i' | 'm' | 's' | 'U' | '-') => {}
                Some(':') => break,
                Some(')') => {
                    self.open -= 1;
                    break;
                }
                _ => {
                    let code = "invalid or unsupported Perl syntax";
                    return Err(problem(code, self.from(start)));
                }
            }
        }
        self.out.push_str(self.from(start));
        Ok(())
    }

    /// One escape; in a class only what a class may have.
    fn escape(&mut self, start: usize, in_class: bool) -> Result<(), String> {
        let Some(c) = self.next() else {
            return Err(problem("trailing backslash at end of expression", ""));
        };
        let plain = match (c, in_class) {
            ('d', false) => "[0-9]",
            ('d', true) => "0-9",
            ('D', _) => "[^0-9]",
            ('s', false) => "[\\t\\n\\x0C\\r ]",
            ('s', true) => "\\t\\n\\x0C\\r ",
            ('S', _) => "[^\\t\\n\\x0C\\r ]",
            ('w', false) => "[0-9A-Za-z_]",
            ('w', true) => "0-9A-Za-z_",
            ('W', _) => "[^0-9A-Za-z_]",
            ('b', false) => "(?-u:\\b)",
            ('B', false) => "\\B",
            ('A', false) => "\\A",
            ('z', false) => "\\z",
            ('a', _) => "\\x07",
            ('f', _) => "\\x0C",
            ('n', _) => "\\n",
            ('r', _) => "\\r",
            ('t', _) => "\\t",
            ('v', _) => "\\x0B",
            ('C', false) => return Err(problem("invalid escape sequence", "\\C")),
            ('Q', false) => {
                let (quoted, skip) = match self.rest().split_once("\\E") {
                    Some((quoted, _)) => (quoted, quoted.len() + 2),
                    None => (self.rest(), self.rest().len()),
                };
                self.at += skip;
                self.out.push_str(&regex::escape(quoted));
                return Ok(());
            }
            ('p' | 'P', _) => return self.property(start),
            ('x', _) => return self.hex(start),
            ('0'..='7', _) => return self.octal(start, c),
            (c, _) if c.is_ascii() && !c.is_ascii_alphanumeric() => {
                let mut buffer = [0; 4];
                self.out.push_str(&regex::escape(c.encode_utf8(&mut buffer)));
                return Ok(());
            }
            _ => return Err(problem("invalid escape sequence", self.from(start))),
        };
        self.out.push_str(plain);
        Ok(())
    }

    fn property(&mut self, start: usize) -> Result<(), String> {
        let bad = |t: &Self| problem("invalid character class range", t.from(start));
        match self.next() {
            Some('{') => {
                let Some((name, _)) = self.rest().split_once('}') else { return Err(bad(self)) };
                self.at += name.len() + 1;
            }
            Some(_) => {}
            None => return Err(bad(self)),
        }
        self.out.push_str(self.from(start));
        Ok(())
    }

    fn hex(&mut self, start: usize) -> Result<(), String> {
        let digits = if let Some(rest) = self.rest().strip_prefix('{') {
            let digits = rest.split_once('}').map_or("", |(digits, _)| digits);
            self.at += digits.len() + 2;
            digits
        } else {
            let digits = self.rest().get(..2).unwrap_or_default();
            self.at += digits.len();
            digits
        };
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
        match code.and_then(char::from_u32) {
            Some(c) => {
                self.push_char(c);
                Ok(())
            }
            None => Err(problem("invalid escape sequence", self.from(start))),
        }
    }

    /// A backreference is no octal number: those have three digits, or begin with 0.
    fn octal(&mut self, start: usize, first: char) -> Result<(), String> {
        let more = self.rest().bytes().take(2).take_while(|b| (b'0'..=b'7').contains(b)).count();
        if first != '0' && more == 0 {
            return Err(problem("invalid escape sequence", self.from(start)));
        }
        self.at += more;
        let digits = self.pattern.get(start + 1..self.at).unwrap_or_default();
        let code = u32::from_str_radix(digits, 8).unwrap_or(0);
        self.push_char(char::from_u32(code).unwrap_or('\0'));
        Ok(())
    }

    fn push_char(&mut self, c: char) {
        self.out.push_str(&format!("\\x{{{:X}}}", u32::from(c)));
    }

    fn class(&mut self, start: usize) -> Result<(), String> {
        self.out.push('[');
        if self.rest().starts_with('^') {
            self.at += 1;
            self.out.push('^');
        }
        let mut first = true;
        loop {
            let here = self.at;
            let Some(c) = self.next() else {
                let rest = self.pattern.get(start..).unwrap_or_default();
                return Err(problem("missing closing ]", rest));
            };
            match c {
                ']' if !first => {
                    self.out.push(']');
                    return Ok(());
                }
                '[' if self.rest().starts_with(':') && self.rest().contains(":]") => {
                    let end = self.rest().find(":]").unwrap_or(0);
                    self.at += end + 2;
                    let name = self.from(here);
                    if regex::Regex::new(&format!("[{name}]")).is_err() {
                        return Err(problem("invalid character class range", name));
                    }
                    self.out.push_str(name);
                }
                '\\' => self.escape(here, true)?,
                '-' => {
                    // A dash at an end is a dash; between two characters it makes a range.
                    let last = self.rest().starts_with(']');
                    self.out.push_str(if first || last { "\\-" } else { "-" });
                }
                '[' | ']' | '&' | '~' | '^' => {
                    self.out.push('\\');
                    self.out.push(c);
                }
                c => self.out.push(c),
            }
            first = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::translate;

    #[test]
    fn notation_is_translated() {
        let check = |pattern: &str, expect: &str| {
            assert_eq!(translate(pattern).as_deref(), Ok(expect), "{pattern}");
        };
        check(r"^\d+\.\w*$", r"^[0-9]+\.[0-9A-Za-z_]*$");
        check(r"[\d\-_.]", r"[0-9\-_.]");
        check(r"[]a]", r"[\]a]");
        check(r"[a-z&&b]", r"[a-z\&\&b]");
        check(r"[[:alpha:]-]", r"[[:alpha:]\-]");
        check(r"\Qa.b\Ec", r"a\.bc");
        check("a{,2}", r"a\{,2}");
        check("a{2,}?", "a{2,}?");
        check("(?i)a(?:b)(?P<n>c)(?<m>d)", "(?i)a(?:b)(?P<n>c)(?P<m>d)");
    }

    #[test]
    fn errors_are_those_of_go() {
        let check = |pattern: &str, expect: &str| {
            let expect = format!("error parsing regexp: {expect}");
            assert_eq!(translate(pattern), Err(expect), "{pattern}");
        };
        check("a[b", "missing closing ]: `[b`");
        check("(a", "missing closing ): `(a`");
        check("a)", "unexpected ): `a)`");
        check("*a", "missing argument to repetition operator: `*`");
        check("a**", "invalid nested repetition operator: `**`");
        check("a{1001}", "invalid repeat count: `{1001}`");
        check("(?=a)", "invalid or unsupported Perl syntax: `(?=`");
        check(r"\q", r"invalid escape sequence: `\q`");
        check(r"a\", "trailing backslash at end of expression: ``");
    }
}
