//! Checks of a tree after its types are known: literals that some functions can't read, lists and maps
//! of mixed types, and formats that don't fit their arguments.

use crate::ast::{Ast, Id, Kind, Literal};
use crate::check::{Checked, Meaning};
use crate::library::format::{Piece, clause_error, piece};
use crate::library::moment::Moment;
use crate::library::{regexes, time};
use crate::op::Op;
use crate::source::Problems;
use crate::types::Type;

struct Validator<'v> {
    ast: &'v Ast,
    checked: &'v Checked,
    problems: &'v mut Problems,
}

/// Reports what is wrong.
pub(crate) fn validate(ast: &Ast, checked: &Checked, problems: &mut Problems) {
    let mut validator = Validator { ast, checked, problems };
    let exempt = validator.format_arguments();
    for id in 0..ast.len() as Id {
        match ast.kind(id) {
            Kind::Call { target, function, args } => match Op::of(function) {
                Some(Op::ToDuration) => validator.literal(args, "duration", |literal| {
                    matches!(literal, Literal::String(text) if time::parse_go_duration(text).is_some())
                }),
                Some(Op::ToTimestamp) => validator.literal(args, "timestamp", |literal| {
                    match literal {
                        Literal::String(text) => time::is_timestamp(text),
                        Literal::Int(seconds) => Moment::from_unix(*seconds).is_some(),
                        _ => true,
                    }
                }),
                Some(Op::Matches) => validator.literal(args, "matches", |literal| {
                    !matches!(literal, Literal::String(text) if regexes::compile(text).is_err())
                }),
                Some(Op::Format) => {
                    if let (Some(format), [list]) = (target, &**args) {
                        validator.format(id, *format, *list);
                    }
                }
                _ => {}
            },
            Kind::List { elements, optional } if !exempt[id as usize] => {
                validator.list(elements, optional);
            }
            Kind::Map(_) if !exempt[id as usize] => validator.map(id),
            _ => {}
        }
    }
}

impl Validator<'_> {
    fn report(&mut self, id: Id, message: impl std::fmt::Display) {
        self.problems.add(self.ast.node(id).at, message);
    }

    fn ty(&self, id: Id) -> Type {
        self.checked.types[id as usize].clone().unwrap_or(Type::Dyn)
    }

    fn literal(&mut self, args: &[Id], function: &str, valid: impl Fn(&Literal) -> bool) {
        let Some(arg) = args.first() else { return };
        if let Kind::Literal(literal) = self.ast.kind(*arg)
            && !valid(literal)
        {
            self.report(*arg, format_args!("invalid {function} argument"));
        }
    }

    /// Nodes below the arguments of `format`, where lists may be mixed.
    fn format_arguments(&self) -> Vec<bool> {
        let mut exempt = vec![false; self.ast.len()];
        // Parents come after their children, so one walk from the end reaches all.
        for id in (0..self.ast.len() as Id).rev() {
            let below = exempt[id as usize]
                || matches!(self.ast.kind(id), Kind::Call { function, .. } if &**function == "format");
            if below {
                self.ast.each_child(id, |child| exempt[child as usize] = true);
            }
        }
        exempt
    }

    fn element_type(&self, id: Id, optional: bool) -> Type {
        match self.ty(id) {
            Type::Optional(inner) if optional => (*inner).clone(),
            ty => ty,
        }
    }

    fn list(&mut self, elements: &[Id], optional: &[bool]) {
        let mut first: Option<Type> = None;
        for (id, optional) in elements.iter().zip(optional) {
            let ty = self.element_type(*id, *optional);
            match &first {
                None => first = Some(ty),
                Some(first) if !equivalent(first, &ty) => {
                    let message = format!("expected type '{first}' but found '{ty}'");
                    return self.report(*id, message);
                }
                Some(_) => {}
            }
        }
    }

    fn map(&mut self, id: Id) {
        let Kind::Map(entries) = self.ast.kind(id) else { return };
        let mut first: Option<(Type, Type)> = None;
        for entry in entries {
            let key = self.ty(entry.key);
            let value = self.element_type(entry.value, entry.optional);
            let Some((first_key, first_value)) = &first else {
                first = Some((key, value));
                continue;
            };
            if !equivalent(first_key, &key) {
                let message = format!("expected type '{first_key}' but found '{key}'");
                self.problems.add(self.ast.node(entry.key).at, message);
            }
            if !equivalent(first_value, &value) {
                let message = format!("expected type '{first_value}' but found '{value}'");
                self.problems.add(self.ast.node(entry.value).at, message);
            }
        }
    }

    /// A format that is a literal, with a list written out behind it.
    fn format(&mut self, id: Id, format: Id, list: Id) {
        let (Kind::Literal(Literal::String(format)), Kind::List { elements, .. }) =
            (self.ast.kind(format), self.ast.kind(list))
        else {
            return;
        };
        let known = self.checked.meanings[id as usize].as_ref();
        if !matches!(known, Some(Meaning::Overloads(found)) if found.iter().any(|o| o.id == "string_format"))
        {
            return;
        }
        let mut rest: &str = format;
        let mut used = 0;
        loop {
            match piece(rest) {
                Err(message) => return self.report(id, message),
                Ok(None) => break,
                Ok(Some((Piece::Text(_), after))) => rest = after,
                Ok(Some((Piece::Clause(clause), after))) => {
                    rest = after;
                    let Some(arg) = elements.get(used) else {
                        return self.report(id, format_args!("index {used} out of range"));
                    };
                    used += 1;
                    if let Some(bad) = self.unfit(clause.letter, *arg) {
                        let name = self.ty(bad).runtime_name().to_owned();
                        return self.report(bad, clause_error(clause.letter, &name));
                    }
                }
            }
        }
        if elements.len() > used {
            self.report(
                id,
                format_args!(
                    "too many arguments supplied to string.format (expected {used}, got {})",
                    elements.len()
                ),
            );
        }
    }

    /// The part of an argument that a clause can't show.
    fn unfit(&self, letter: char, arg: Id) -> Option<Id> {
        let ty = self.ty(arg);
        let fits = match letter {
            _ if ty.is_dyn() => true,
            's' => !matches!(ty, Type::Object(_) | Type::Optional(_) | Type::Opaque(_)),
            'd' | 'o' => matches!(ty, Type::Int | Type::Uint),
            'f' | 'e' => matches!(ty, Type::Double | Type::String),
            'b' => matches!(ty, Type::Int | Type::Uint | Type::Bool),
            _ => matches!(ty, Type::Int | Type::Uint | Type::String | Type::Bytes),
        };
        if !fits {
            return Some(arg);
        }
        if letter != 's' {
            return None;
        }
        match self.ast.kind(arg) {
            Kind::List { elements, .. } => elements.iter().find_map(|id| self.unfit(letter, *id)),
            Kind::Map(entries) => entries.iter().find_map(|entry| {
                self.unfit(letter, entry.key).or_else(|| self.unfit(letter, entry.value))
            }),
            _ => None,
        }
    }
}

fn equivalent(a: &Type, b: &Type) -> bool {
    a.is_exactly(b)
}
