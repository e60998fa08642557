//! What an expression is built from: names, calls, literals, lists, maps and structures.

use std::sync::Arc;

use super::recovery::{STARTS, STARTS_ARGUMENT, STARTS_LIST, STARTS_MAP, starts};
use super::{Parsed, Parser};
use crate::ast::{Entry, Id, Kind, Literal, StructField};
use crate::escape::RESERVED;
use crate::lexer::{Lexeme, Token};
use crate::literal;

impl Parser<'_> {
    pub(super) fn arguments(&mut self) -> Parsed<Vec<Id>> {
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

    pub(super) fn primary(&mut self) -> Parsed {
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
    pub(super) fn structure(&mut self, name: Id) -> Parsed {
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
}
