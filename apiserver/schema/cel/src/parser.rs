//! Text to tree: the grammar of CEL, with the positions and limits of upstream's parser.
//!
//! Nesting is counted, and chains are read in loops, so hostile text costs neither stack nor more than
//! its length. A syntax error ends the parse; other problems (a reserved name, a number out of range,
//! a wrong use of a macro) are collected.

use std::sync::Arc;

use crate::ast::{Ast, Entry, Id, Kind, Literal, MAX_DEPTH, StructField};
use crate::lexer::{Lexeme, Token, lex};
use crate::source::{CompileError, Problems};
use crate::{literal, macros};

/// Characters that an expression may have.
const MAX_CHARS: usize = 100_000;

/// Levels of nesting, and links of a chain.
const MAX_NESTING: u32 = 250;

/// What begins an expression, in each place.
const STARTS: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, \
                      NUM_UINT, STRING, BYTES, IDENTIFIER}";
const STARTS_ARGUMENT: &str = "{'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', \
                               NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
const STARTS_LIST: &str = "{'[', ']', '{', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', \
                           NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
const STARTS_MAP: &str = "{'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', \
                          NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
const STARTS_INDEX: &str = "{'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', \
                            NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// Names that no variable or function may have; fields may.
const RESERVED: [&str; 17] = [
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

/// Whether an expression may begin with the token.
const fn starts(token: Token) -> bool {
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

    fn expect(&mut self, punct: &'static str, expecting: &str) -> Parsed<Lexeme> {
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
    fn expect_or_mend(&mut self, punct: &'static str, expecting: &str) -> Parsed<Lexeme> {
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
    fn unexpected_end(&mut self, found: Lexeme) {
        let kind = if self.peek_at(1).token == Token::End { "extraneous" } else { "mismatched" };
        let message = format!("Syntax error: {kind} input '{}' expecting <EOF>", self.shown(found));
        self.problems.add(found.start, message);
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

    /// The end of a bracket.
    fn close(&mut self, punct: &'static str, expecting: &str) -> Parsed<()> {
        self.expect_or_mend(punct, expecting)?;
        self.open.pop();
        Ok(())
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

    fn arguments(&mut self) -> Parsed<Vec<Id>> {
        let mut args = Vec::new();
        if self.accept(")").is_some() {
            return Ok(args);
        }
        self.open.push(")");
        // One wrong token before the end of an empty list is left out.
        let first = self.peek();
        if matches!(self.peek_at(1).token, Token::Punct(")")) && !starts(first.token) {
            let shown = self.shown(first);
            self.problems.add(
                first.start,
                format_args!(
                    "Syntax error: extraneous input '{shown}' expecting {STARTS_ARGUMENT}"
                ),
            );
            self.advance();
            self.close(")", "')'")?;
            return Ok(args);
        }
        let mut expecting = STARTS_ARGUMENT;
        loop {
            args.push(self.expr_where(expecting)?);
            expecting = STARTS;
            if self.accept(",").is_none() {
                self.close(")", "')'")?;
                return Ok(args);
            }
        }
    }

    fn primary(&mut self) -> Parsed {
        let token = self.advance();
        match token.token {
            Token::Punct("(") => {
                self.open.push(")");
                let inner = self.expr()?;
                self.close(")", "')'")?;
                Ok(inner)
            }
            Token::Punct("[") => self.list(token.start),
            Token::Punct("{") => self.map(token.start),
            Token::Punct("-") => {
                let number = self.advance();
                self.number(token.start, number, true)
            }
            Token::Punct(".") if self.peek().token == Token::Ident => {
                let name = self.advance();
                self.name(token.start, name, ".")
            }
            Token::Ident => self.name(token.start, token, ""),
            Token::Int | Token::Uint | Token::Float => self.number(token.start, token, false),
            Token::String | Token::Bytes => Ok(self.string(token)),
            Token::True => Ok(self.literal(token.start, Literal::Bool(true))),
            Token::False => Ok(self.literal(token.start, Literal::Bool(false))),
            Token::Null => Ok(self.literal(token.start, Literal::Null)),
            _ => self.no_primary(token),
        }
    }

    /// Reports a token that begins no expression. One before an expression is left out, and an operator
    /// is taken for one without its left side, as upstream recovers.
    fn no_primary(&mut self, token: Lexeme) -> Parsed {
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

    fn name(&mut self, at: u32, token: Lexeme, dot: &str) -> Parsed {
        let text = self.text_of(token);
        let name: Arc<str> = format!("{dot}{text}").into();
        let reserved = RESERVED.contains(&text);
        if let Some(open) = self.accept("(") {
            let args = self.arguments()?;
            if reserved {
                return Ok(self.report(at, format_args!("reserved identifier: {name}")));
            }
            return Ok(self.call(open.start, &name, &args));
        }
        if reserved {
            return Ok(self.report(at, format_args!("reserved identifier: {name}")));
        }
        Ok(self.ast.add(token.start, Kind::Ident(name)))
    }

    fn number(&mut self, at: u32, token: Lexeme, negative: bool) -> Parsed {
        let text = self.text_of(token);
        let (value, kind) = match token.token {
            Token::Int => (literal::int(text, negative), "int"),
            Token::Uint => (literal::uint(text), "uint"),
            _ => (literal::double(text, negative), "double"),
        };
        Ok(match value {
            Some(value) => self.literal(at, value),
            None => self.report(at, format_args!("invalid {kind} literal")),
        })
    }

    fn string(&mut self, token: Lexeme) -> Id {
        let text = self.text_of(token);
        let value = if token.token == Token::Bytes {
            literal::bytes(text.get(1..).unwrap_or_default()).map(Literal::Bytes)
        } else {
            literal::string(text).map(Literal::String)
        };
        match value {
            Ok(value) => self.literal(token.start, value),
            Err(message) => self.report(token.start, message),
        }
    }

    fn literal(&mut self, at: u32, value: Literal) -> Id {
        self.ast.add(at, Kind::Literal(value))
    }

    fn list(&mut self, at: u32) -> Parsed {
        let mut elements = Vec::new();
        let mut optional = Vec::new();
        let mut expecting = STARTS_LIST;
        self.open.push("]");
        while !self.ends("]", elements.is_empty())? {
            let is_optional = self.accept("?").is_some();
            optional.push(is_optional);
            elements.push(self.expr_where(if is_optional { STARTS } else { expecting })?);
            expecting = STARTS;
            if self.accept(",").is_none() {
                self.close("]", "{']', ','}")?;
                break;
            }
        }
        Ok(self.ast.add(at, Kind::List { elements: elements.into(), optional: optional.into() }))
    }

    /// Whether a list, map or structure ends here: after nothing, a lone comma, or a last comma.
    fn ends(&mut self, punct: &'static str, empty: bool) -> Parsed<bool> {
        let quoted = format!("'{punct}'");
        let lone = empty && self.accept(",").is_some();
        let last = !empty && (self.is(",") || self.peek().token == Token::End);
        if self.is(punct) || lone || last {
            self.close(punct, &quoted)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn map(&mut self, at: u32) -> Parsed {
        let mut entries = Vec::new();
        let mut expecting = STARTS_MAP;
        self.open.push("}");
        while !self.ends("}", entries.is_empty())? {
            let optional = self.accept("?").is_some();
            let key = self.expr_where(if optional { STARTS } else { expecting })?;
            expecting = STARTS;
            self.expect_or_mend(":", "':'")?;
            let value = self.expr()?;
            entries.push(Entry { key, value, optional });
            if self.accept(",").is_none() {
                self.close("}", "{'}', ','}")?;
                break;
            }
        }
        Ok(self.ast.add(at, Kind::Map(entries.into())))
    }

    /// A structure; `name` is the chain of names before the brace.
    fn structure(&mut self, name: Id) -> Parsed {
        let at = self.advance().start;
        let name: Arc<str> = self.ast.qualified_name(name).unwrap_or_default().into();
        let mut fields = Vec::new();
        self.open.push("}");
        while !self.ends("}", fields.is_empty())? {
            let optional = self.accept("?").is_some();
            let (_, field) = self.field_name()?;
            let colon = self.expect_or_mend(":", "':'")?;
            let value = self.expr()?;
            fields.push(StructField { at: colon.start, name: field, value, optional });
            if self.accept(",").is_none() {
                self.close("}", "{'}', ','}")?;
                break;
            }
        }
        Ok(self.ast.add(at, Kind::Struct { name, fields: fields.into() }))
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
