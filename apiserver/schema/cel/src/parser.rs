//! Text to tree: the grammar of CEL, with the positions and limits of upstream's parser.
//!
//! Nesting is counted, and chains are read in loops, so hostile text costs neither stack nor more than
//! its length. A syntax error ends the parse; other problems (a reserved name, a number out of range,
//! a wrong use of a macro) are collected.

mod primary;
mod recovery;

use std::sync::Arc;

use crate::ast::{Ast, Id, Kind, Literal, MAX_DEPTH};
use crate::lexer::{Lexeme, Token, lex};
use crate::macros;
use crate::source::{CompileError, Problems};

use recovery::{STARTS, STARTS_INDEX};

/// Characters that an expression may have.
const MAX_CHARS: usize = 100_000;

/// Levels of nesting, and links of a chain.
const MAX_NESTING: u32 = 250;

/// The error is reported already.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stop;

type Parsed<T = Id> = Result<T, Stop>;

pub(crate) struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Lexeme>,
    at: usize,
    nesting: u32,
    /// What closes each bracket that is open.
    open: Vec<&'static str>,
    /// What may begin the expression at a token, when it isn't what may elsewhere.
    expecting: Option<(usize, &'static str)>,
    pub(crate) ast: Ast,
    pub(crate) problems: Problems,
}

/// Parses `text` to a tree and its root.
///
/// # Errors
/// Everything that is wrong with its syntax.
pub(crate) fn parse(text: &str) -> Result<(Ast, Id), CompileError> {
    let mut problems = Problems::default();
    let length = text.chars().count();
    if length > MAX_CHARS {
        problems.add_nowhere(format_args!(
            "expression code point size exceeds limit: size: {length}, limit {MAX_CHARS}"
        ));
        return Err(problems.into_error(""));
    }
    let tokens = lex(text, &mut problems);
    let mut parser = Parser {
        text,
        tokens,
        at: 0,
        nesting: 0,
        open: Vec::new(),
        expecting: None,
        ast: Ast::default(),
        problems,
    };
    let root = parser.start();
    match root {
        Ok(root) if parser.problems.is_empty() => {
            if parser.ast.node(root).depth > MAX_DEPTH {
                parser.too_deep();
                return Err(parser.problems.into_error(text));
            }
            Ok((parser.ast, root))
        }
        _ => Err(parser.problems.into_error(text)),
    }
}

impl Parser<'_> {
    fn start(&mut self) -> Parsed {
        let root = self.expr()?;
        let rest = self.peek();
        if rest.token != Token::End {
            self.unexpected_end(rest);
            return Err(Stop);
        }
        Ok(root)
    }

    // === tokens ===

    fn peek(&self) -> Lexeme {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Lexeme {
        let last = self.tokens.len() - 1;
        self.tokens[(self.at + ahead).min(last)]
    }

    fn advance(&mut self) -> Lexeme {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn is(&self, punct: &str) -> bool {
        matches!(self.peek().token, Token::Punct(p) if p == punct)
    }

    fn accept(&mut self, punct: &str) -> Option<Lexeme> {
        self.is(punct).then(|| self.advance())
    }

    fn text_of(&self, token: Lexeme) -> &str {
        self.text.get(token.start as usize..token.end as usize).unwrap_or_default()
    }

    fn shown(&self, token: Lexeme) -> String {
        if token.token == Token::End { "<EOF>".to_owned() } else { self.text_of(token).to_owned() }
    }

    fn too_deep(&mut self) {
        self.problems
            .add_nowhere(format_args!("expression recursion limit exceeded: {MAX_NESTING}"));
    }

    fn deeper(&mut self, by: u32) -> Parsed<()> {
        if self.nesting + by > MAX_NESTING {
            self.too_deep();
            return Err(Stop);
        }
        Ok(())
    }

    /// A chain is as deep as it has links.
    fn chain(&mut self, links: u32) -> Parsed<()> {
        if self.nesting + links > MAX_NESTING {
            self.problems.add_nowhere("max recursion depth exceeded");
            return Err(Stop);
        }
        Ok(())
    }

    // === expressions ===

    fn expr(&mut self) -> Parsed {
        self.deeper(1)?;
        self.nesting += 1;
        let result = self.conditional();
        self.nesting -= 1;
        result
    }

    /// An expression, of which errors say that `expecting` may begin it.
    fn expr_where(&mut self, expecting: &'static str) -> Parsed {
        self.expecting = Some((self.at, expecting));
        self.expr()
    }

    fn conditional(&mut self) -> Parsed {
        let condition = self.logical("||", "_||_")?;
        let Some(op) = self.accept("?") else { return Ok(condition) };
        let yes = self.logical("||", "_||_")?;
        self.expect_or_mend(":", "':'")?;
        let no = self.expr()?;
        Ok(self.call(op.start, "_?_:_", &[condition, yes, no]))
    }

    /// A chain of `||` or `&&`, as a balanced tree.
    fn logical(&mut self, op: &'static str, function: &'static str) -> Parsed {
        let mut terms = vec![self.logical_term(op)?];
        let mut ops = Vec::new();
        while let Some(token) = self.accept(op) {
            ops.push(token.start);
            terms.push(self.logical_term(op)?);
        }
        Ok(match terms.as_slice() {
            [only] => *only,
            _ => self.balanced(function, &terms, &ops, 0, ops.len() - 1),
        })
    }

    fn logical_term(&mut self, op: &str) -> Parsed {
        if op == "||" { self.logical("&&", "_&&_") } else { self.relation() }
    }

    /// The tree of `terms` and `ops` from `low` to `high`; its depth is the logarithm of its size.
    fn balanced(
        &mut self,
        function: &'static str,
        terms: &[Id],
        ops: &[u32],
        low: usize,
        high: usize,
    ) -> Id {
        let middle = (low + high).div_ceil(2);
        let left = if middle == low {
            terms[middle]
        } else {
            self.balanced(function, terms, ops, low, middle - 1)
        };
        let right = if middle == high {
            terms[middle + 1]
        } else {
            self.balanced(function, terms, ops, middle + 1, high)
        };
        self.call(ops[middle], function, &[left, right])
    }

    fn relation(&mut self) -> Parsed {
        let mut left = self.sum()?;
        let mut links = 0;
        loop {
            let token = self.peek();
            let function = match token.token {
                Token::In => "@in",
                Token::Punct("<") => "_<_",
                Token::Punct("<=") => "_<=_",
                Token::Punct(">") => "_>_",
                Token::Punct(">=") => "_>=_",
                Token::Punct("==") => "_==_",
                Token::Punct("!=") => "_!=_",
                _ => return Ok(left),
            };
            self.advance();
            links += 1;
            self.chain(links)?;
            let right = self.sum()?;
            left = self.call(token.start, function, &[left, right]);
        }
    }

    fn sum(&mut self) -> Parsed {
        let mut left = self.product()?;
        let mut links = 0;
        loop {
            let token = self.peek();
            let function = match token.token {
                Token::Punct("+") => "_+_",
                Token::Punct("-") => "_-_",
                _ => return Ok(left),
            };
            self.advance();
            links += 1;
            self.chain(links)?;
            let right = self.product()?;
            left = self.call(token.start, function, &[left, right]);
        }
    }

    fn product(&mut self) -> Parsed {
        let mut left = self.unary()?;
        let mut links = 0;
        loop {
            let token = self.peek();
            let function = match token.token {
                Token::Punct("*") => "_*_",
                Token::Punct("/") => "_/_",
                Token::Punct("%") => "_%_",
                _ => return Ok(left),
            };
            self.advance();
            links += 1;
            self.chain(links)?;
            let right = self.unary()?;
            left = self.call(token.start, function, &[left, right]);
        }
    }

    fn unary(&mut self) -> Parsed {
        let first = self.peek();
        let (op, function) = match first.token {
            Token::Punct("!") => ("!", "!_"),
            // One minus before a number is part of the number.
            Token::Punct("-") if !matches!(self.peek_at(1).token, Token::Int | Token::Float) => {
                ("-", "-_")
            }
            _ => return self.member(),
        };
        let mut odd = false;
        while self.accept(op).is_some() {
            odd = !odd;
        }
        let next = self.peek();
        if matches!(next.token, Token::Punct("!" | "-"))
            && !matches!(self.peek_at(1).token, Token::Int | Token::Float)
        {
            let message =
                format!("Syntax error: no viable alternative at input '{op}{}'", self.shown(next));
            self.problems.add(next.start, message);
            return Err(Stop);
        }
        let operand = self.member()?;
        Ok(if odd { self.call(first.start, function, &[operand]) } else { operand })
    }

    /// A primary with its selects, calls and indexes.
    fn member(&mut self) -> Parsed {
        let mut plain = matches!(self.peek().token, Token::Ident) || self.is(".");
        let mut left = self.primary()?;
        plain = plain && matches!(self.ast.kind(left), Kind::Ident(_));
        let mut links = 0;
        loop {
            if self.is("{") && plain {
                left = self.structure(left)?;
                plain = false;
            } else if let Some(dot) = self.accept(".") {
                let optional = self.accept("?").is_some();
                let name = self.field_name()?;
                if !optional && let Some(open) = self.accept("(") {
                    plain = false;
                    let args = self.arguments()?;
                    left = self.receiver_call(open.start, &name.1, left, &args);
                } else if optional {
                    plain = false;
                    let at = name.0;
                    let field = self.ast.add(at, Kind::Literal(Literal::String(name.1)));
                    left = self.call(dot.start, "_?._", &[left, field]);
                } else {
                    let kind = Kind::Select { operand: left, field: name.1, test: false };
                    left = self.ast.add(dot.start, kind);
                }
            } else if let Some(open) = self.accept("[") {
                plain = false;
                self.open.push("]");
                let optional = self.accept("?").is_some();
                let expecting = if optional { STARTS } else { STARTS_INDEX };
                let index = self.expr_where(expecting)?;
                self.close("]", "']'")?;
                let function = if optional { "_[?_]" } else { "_[_]" };
                left = self.call(open.start, function, &[left, index]);
            } else {
                return Ok(left);
            }
            links += 1;
            self.chain(links)?;
        }
    }

    fn field_name(&mut self) -> Parsed<(u32, Arc<str>)> {
        let token = self.advance();
        match token.token {
            Token::Ident => Ok((token.start, self.text_of(token).into())),
            Token::EscapedIdent => {
                self.problems.add(token.start, "unsupported syntax: '`'");
                let text = self.text_of(token).trim_matches('`');
                Ok((token.start, text.into()))
            }
            _ => {
                let shown = self.shown(token);
                let message = match token.token {
                    Token::End => "Syntax error: no viable alternative at input '.'".to_owned(),
                    Token::True | Token::False | Token::Null => {
                        format!("Syntax error: mismatched input '{shown}' expecting IDENTIFIER")
                    }
                    _ => format!("Syntax error: no viable alternative at input '.{shown}'"),
                };
                self.problems.add(token.start, message);
                Err(Stop)
            }
        }
    }

    // === nodes ===

    pub(crate) fn report(&mut self, at: u32, message: impl std::fmt::Display) -> Id {
        self.problems.add(at, message);
        self.ast.add(at, Kind::Nothing)
    }

    fn call(&mut self, at: u32, function: &str, args: &[Id]) -> Id {
        if let Some(expanded) = macros::global(self, at, function, args) {
            return expanded;
        }
        self.ast.add(at, Kind::Call { target: None, function: function.into(), args: args.into() })
    }

    fn receiver_call(&mut self, at: u32, function: &str, target: Id, args: &[Id]) -> Id {
        if let Some(expanded) = macros::receiver(self, at, function, target, args) {
            return expanded;
        }
        let kind =
            Kind::Call { target: Some(target), function: function.into(), args: args.into() };
        self.ast.add(at, kind)
    }
}
