//! Words and signs of a label selector.

/// A word or sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A key or value; `in` and `notin` too, which are operators only behind a key.
    Word(&'a str),
    /// `=`, `==`, `!=`, `!`, `<`, `>`, `(`, `)` or `,`.
    Sign(&'a str),
    /// The end.
    End,
}

/// Cuts a selector into tokens, without copying.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    rest: &'a str,
}

// === impl Token ===

impl<'a> Token<'a> {
    /// The text, as messages quote it.
    pub(super) fn text(self) -> &'a str {
        match self {
            Token::Word(text) | Token::Sign(text) => text,
            Token::End => "",
        }
    }
}

// === impl Lexer ===

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// The next token; at the end it is [`Token::End`] for ever.
    pub(super) fn next_token(&mut self) -> Token<'a> {
        self.rest = self.rest.trim_start_matches(is_space);
        let Some(first) = self.rest.chars().next() else { return Token::End };
        if is_sign(first) {
            let two = self.rest.get(..2).filter(|s| matches!(*s, "==" | "!="));
            return Token::Sign(self.take(two.map_or(1, str::len)));
        }
        let length = self.rest.find(|c| is_sign(c) || is_space(c)).unwrap_or(self.rest.len());
        Token::Word(self.take(length))
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (token, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        token
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_sign(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}
