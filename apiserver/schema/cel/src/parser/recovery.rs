//! What upstream's parser says of wrong syntax, and how it goes on.
//!
//! Upstream's grammar is compiled by ANTLR, whose way of recovering from one wrong or missing token
//! shows in what users read. The common cases are the same here; what isn't is in the list of
//! differences beside the tests.

use super::{Parsed, Parser, Stop};
use crate::ast::Kind;
use crate::lexer::{Lexeme, Token};

/// What begins an expression, in each place.
pub(super) const STARTS: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, \
                      NUM_UINT, STRING, BYTES, IDENTIFIER}";
pub(super) const STARTS_ARGUMENT: &str = "{'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', \
                               NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
pub(super) const STARTS_LIST: &str = "{'[', ']', '{', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', \
                           NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
pub(super) const STARTS_MAP: &str = "{'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', \
                          NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
pub(super) const STARTS_INDEX: &str = "{'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', \
                            NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// Whether an expression may begin with the token.
pub(super) const fn starts(token: Token) -> bool {
    match token {
        Token::Punct(punct) => matches!(punct.as_bytes(), b"[" | b"{" | b"(" | b"." | b"-" | b"!"),
        Token::End | Token::In | Token::EscapedIdent => false,
        _ => true,
    }
}

/// Whether the token stands between two expressions.
const fn is_operator(token: Token) -> bool {
    match token {
        Token::In => true,
        Token::Punct(punct) => matches!(
            punct.as_bytes(),
            b"&&" | b"||" | b"==" | b"!=" | b"<" | b"<=" | b">" | b">=" | b"+" | b"*" | b"/" | b"%"
        ),
        _ => false,
    }
}

impl Parser<'_> {
    pub(super) fn expect(&mut self, punct: &'static str, expecting: &str) -> Parsed<Lexeme> {
        if let Some(token) = self.accept(punct) {
            return Ok(token);
        }
        let found = self.peek();
        let shown = self.shown(found);
        self.problems.add(
            found.start,
            format_args!("Syntax error: mismatched input '{shown}' expecting {expecting}"),
        );
        Err(Stop)
    }

    /// The same where upstream gets over one token: a wrong one before it is left out, a missing one is
    /// taken for given when what follows fits.
    pub(super) fn expect_or_mend(
        &mut self,
        punct: &'static str,
        expecting: &str,
    ) -> Parsed<Lexeme> {
        let found = self.peek();
        if self.is(punct) {
            return Ok(self.advance());
        }
        let shown = self.shown(found);
        let is_next = matches!(self.peek_at(1).token, Token::Punct(next) if next == punct);
        if is_next && found.token != Token::End {
            self.problems.add(
                found.start,
                format_args!("Syntax error: extraneous input '{shown}' expecting {expecting}"),
            );
            self.advance();
            return Ok(self.advance());
        }
        let outer = self.open.len().checked_sub(2).and_then(|at| self.open.get(at));
        let fits = match (punct, outer) {
            (":", _) => starts(found.token),
            (_, None) => found.token == Token::End,
            (_, Some(outer)) => matches!(found.token, Token::Punct(found) if found == *outer),
        };
        if !fits || expecting.starts_with('{') {
            return self.expect(punct, expecting);
        }
        self.problems
            .add(found.start, format_args!("Syntax error: missing '{punct}' at '{shown}'"));
        Ok(found)
    }

    /// Reports what stands after a whole expression.
    pub(super) fn unexpected_end(&mut self, found: Lexeme) {
        let kind = if self.peek_at(1).token == Token::End { "extraneous" } else { "mismatched" };
        let message = format!("Syntax error: {kind} input '{}' expecting <EOF>", self.shown(found));
        self.problems.add(found.start, message);
    }

    /// The end of a bracket.
    pub(super) fn close(&mut self, punct: &'static str, expecting: &str) -> Parsed<()> {
        self.expect_or_mend(punct, expecting)?;
        self.open.pop();
        Ok(())
    }

    /// Whether a list, map or structure ends here: after nothing, a lone comma, or a last comma.
    pub(super) fn ends(&mut self, punct: &'static str, empty: bool) -> Parsed<bool> {
        let quoted = format!("'{punct}'");
        let lone = empty && self.accept(",").is_some();
        let last = !empty && (self.is(",") || self.peek().token == Token::End);
        if self.is(punct) || lone || last {
            self.close(punct, &quoted)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Reports a token that begins no expression. One before an expression is left out, and an operator
    /// is taken for one without its left side, as upstream recovers.
    pub(super) fn no_primary(&mut self, token: Lexeme) -> Parsed {
        let recovers = token.token != Token::End && starts(self.peek().token);
        let kind = if recovers { "extraneous" } else { "mismatched" };
        let expecting = match self.expecting {
            Some((at, expecting)) if at + 1 == self.at => expecting,
            _ => STARTS,
        };
        let message =
            format!("Syntax error: {kind} input '{}' expecting {expecting}", self.shown(token));
        self.problems.add(token.start, message);
        if recovers {
            return self.primary();
        }
        if is_operator(token.token) {
            self.at -= 1;
            return Ok(self.ast.add(token.start, Kind::Nothing));
        }
        Err(Stop)
    }
}
