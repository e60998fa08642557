//! The type checker, in the manner of upstream's: every node gets a type, every name a meaning.

mod call;
mod compound;

use std::sync::Arc;

use crate::ast::{Ast, Id, Kind, Literal};
use crate::decl::ObjectType;
use crate::env::Env;
use crate::functions::{self, Overload};
use crate::source::Problems;
use crate::types::Type;
use crate::unify::{Mapping, most_general};

/// What a name or call means.
#[derive(Debug, Clone)]
pub(crate) enum Meaning {
    /// A variable of the environment, by its place there.
    Variable(u32),
    /// A variable of a loop, by its slot.
    Local(u32),
    /// The name of a type.
    TypeName(Type),
    /// Overloads that the types of a call allow, one at least.
    Overloads(Box<[&'static Overload]>),
}

/// What the checker found out.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) types: Vec<Option<Type>>,
    pub(crate) meanings: Vec<Option<Meaning>>,
    /// The first slot of each loop: accumulator, variable, second variable.
    pub(crate) slots: Vec<Option<u32>>,
    pub(crate) slot_count: u32,
}

/// Parts of the largest type.
const MAX_TYPE: usize = 1_000;

struct Checker<'e> {
    env: &'e Env,
    ast: &'e mut Ast,
    problems: &'e mut Problems,
    mapping: Mapping,
    scope: Vec<(Arc<str>, Type, u32)>,
    out: Checked,
}

/// Checks the tree under `root`. Names that are qualified are rewritten in the tree.
pub(crate) fn check(env: &Env, ast: &mut Ast, root: Id, problems: &mut Problems) -> Checked {
    let count = ast.len();
    let out = Checked {
        types: vec![None; count],
        meanings: vec![None; count],
        slots: vec![None; count],
        slot_count: 0,
    };
    let mapping = Mapping::default();
    let mut checker = Checker { env, ast, problems, mapping, scope: Vec::new(), out };
    checker.check(root);
    let Checker { mapping, mut out, .. } = checker;
    for ty in out.types.iter_mut().flatten() {
        *ty = mapping.substitute(ty, true);
    }
    out
}

fn unwrap_optional(ty: Type) -> (Type, bool) {
    match ty {
        Type::Optional(inner) => (Arc::unwrap_or_clone(inner), true),
        other => (other, false),
    }
}

impl Checker<'_> {
    fn report(&mut self, id: Id, message: impl std::fmt::Display) {
        let at = self.ast.node(id).at;
        self.problems.add(at, message);
    }

    fn type_of(&self, id: Id) -> Type {
        self.out.types[id as usize].clone().unwrap_or(Type::Error)
    }

    fn set(&mut self, id: Id, ty: Type) {
        // Each loop can double a type, and nothing of that kind is ever meant.
        let ty = if ty.is_within(MAX_TYPE) {
            ty
        } else {
            self.report(id, "type of the expression is too large");
            Type::Error
        };
        self.out.types[id as usize] = Some(ty);
    }

    fn mean(&mut self, id: Id, meaning: Meaning) {
        self.out.meanings[id as usize] = Some(meaning);
    }

    fn undeclared(&mut self, id: Id, name: &str) {
        self.report(id, format_args!("undeclared reference to '{name}' (in container '')"));
        self.set(id, Type::Error);
    }

    fn mismatch(&mut self, id: Id, expected: &Type, found: &Type) {
        self.report(id, format_args!("expected type '{expected}' but found '{found}'"));
    }

    fn check(&mut self, id: Id) {
        // A part that a macro uses twice is checked once.
        if self.out.types[id as usize].is_some() {
            return;
        }
        match self.ast.kind(id) {
            Kind::Nothing => self.set(id, Type::Error),
            Kind::Literal(literal) => {
                let ty = literal_type(literal);
                self.set(id, ty);
            }
            Kind::Ident(name) => {
                let name = Arc::clone(name);
                match self.lookup(&name) {
                    Some((ty, meaning)) => {
                        self.set(id, ty);
                        self.mean(id, meaning);
                    }
                    None => self.undeclared(id, &name),
                }
            }
            Kind::Select { operand, field, test } => {
                let (operand, field, test) = (*operand, Arc::clone(field), *test);
                self.select(id, operand, &field, test);
            }
            Kind::Call { target, function, args } => {
                let (target, function, args) = (*target, Arc::clone(function), args.clone());
                self.call(id, target, &function, &args);
            }
            Kind::List { elements, optional } => {
                let (elements, optional) = (elements.clone(), optional.clone());
                self.list(id, &elements, &optional);
            }
            Kind::Map(_) => self.map(id),
            Kind::Struct { .. } => self.structure(id),
            Kind::Fold(_) => self.fold(id),
        }
    }

    /// The type and meaning of a (qualified) name.
    fn lookup(&self, name: &str) -> Option<(Type, Meaning)> {
        let global = name.strip_prefix('.');
        if global.is_none()
            && let Some((_, ty, slot)) = self.scope.iter().rev().find(|(n, ..)| **n == *name)
        {
            return Some((ty.clone(), Meaning::Local(*slot)));
        }
        let name = global.unwrap_or(name);
        if let Some((at, decl)) = self.env.variable(name) {
            return Some((decl.ty().clone(), Meaning::Variable(at)));
        }
        let named = match name {
            "list" => Type::list(Type::Dyn),
            "map" => Type::map(Type::Dyn, Type::Dyn),
            "dyn" => return None,
            "optional_type" => Type::optional(Type::Dyn),
            _ => match self.env.structure(name) {
                Some(object) => Type::Object(object),
                // Of Kubernetes' types only those of addresses have names in expressions.
                None => match functions::named(name)? {
                    Type::Opaque(opaque) if opaque.is_struct() => return None,
                    ty => ty,
                },
            },
        };
        let ty = Type::Type(Some(Arc::new(named.clone())));
        Some((ty, Meaning::TypeName(named)))
    }

    fn select(&mut self, id: Id, operand: Id, field: &str, test: bool) {
        if !test
            && let Some(name) = self.ast.qualified_name(id)
            && let Some((ty, meaning)) = self.lookup(&name)
        {
            self.set(id, ty);
            self.mean(id, meaning);
            self.ast.replace(id, Kind::Ident(name.into()));
            return;
        }
        let result = self.field(id, operand, field, false);
        let result = if test { Type::Bool } else { self.mapping.substitute(&result, false) };
        self.set(id, result);
    }

    /// The type of a field of `operand`.
    fn field(&mut self, id: Id, operand: Id, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand_type = self.mapping.substitute(&self.type_of(operand), false);
        let (target, was_optional) = unwrap_optional(operand_type);
        let result = match &target {
            Type::Map(entry) => entry.1.clone(),
            Type::Object(object) => self.object_field(id, object, field),
            Type::Var(_) => {
                self.mapping.assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Opaque(opaque) if opaque.is_struct() => {
                let name = opaque.name();
                self.report(id, format_args!("unexpected failed resolution of '{name}'"));
                Type::Error
            }
            other => {
                if !other.is_dyn_or_error() {
                    let message = format!("type '{other}' does not support field selection");
                    self.report(id, message);
                }
                Type::Dyn
            }
        };
        if was_optional || optional { Type::optional(result) } else { result }
    }

    fn object_field(&mut self, id: Id, object: &ObjectType, field: &str) -> Type {
        match self.env.field_type(object, field) {
            Some(ty) => ty,
            None => {
                self.report(id, format_args!("undefined field '{field}'"));
                Type::Error
            }
        }
    }

    fn optional_select(&mut self, id: Id, args: &[Id]) {
        let [operand, field] = args else {
            let message = format!(
                "unsupported optional field selection: incorrect signature. argument count: {}",
                args.len()
            );
            self.report(id, message);
            return self.set(id, Type::Error);
        };
        let Kind::Literal(Literal::String(name)) = self.ast.kind(*field) else {
            self.report(*field, "unsupported optional field selection: no string");
            return self.set(id, Type::Error);
        };
        let name = Arc::clone(name);
        self.set(*field, Type::String);
        let result = self.field(id, *operand, &name, true);
        let result = self.mapping.substitute(&result, false);
        self.set(id, result);
        if let Some(function) = functions::find("_?._") {
            self.mean(id, Meaning::Overloads(function.overloads.iter().take(1).collect()));
        }
    }

    /// Joins the type of one more element.
    fn join(&mut self, before: Option<Type>, this: Type) -> Type {
        let Some(before) = before else { return this };
        if self.mapping.assignable(&before, &this) {
            return most_general(&before, &this).clone();
        }
        // Mixed types are refused later, where they aren't the arguments of `format`.
        Type::Dyn
    }

    /// The type of an element or entry; one behind `?` is optional and counts unwrapped.
    fn element_type(&mut self, id: Id, optional: bool) -> Type {
        let ty = self.type_of(id);
        if !optional {
            return ty;
        }
        let (inner, was_optional) = unwrap_optional(ty);
        if !was_optional && !inner.is_dyn() {
            self.mismatch(id, &Type::optional(inner.clone()), &inner);
        }
        inner
    }

    fn list(&mut self, id: Id, elements: &[Id], optional: &[bool]) {
        let mut joined = None;
        for (element, optional) in elements.iter().zip(optional) {
            self.check(*element);
            let ty = self.element_type(*element, *optional);
            joined = Some(self.join(joined, ty));
        }
        let element = joined.unwrap_or_else(|| self.mapping.fresh());
        self.set(id, Type::list(element));
    }

    fn map(&mut self, id: Id) {
        let Kind::Map(entries) = self.ast.kind(id).clone() else { return };
        let (mut keys, mut values) = (None, None);
        for entry in &entries {
            self.check(entry.key);
            let key = self.type_of(entry.key);
            keys = Some(self.join(keys, key));
            self.check(entry.value);
            let value = self.element_type(entry.value, entry.optional);
            values = Some(self.join(values, value));
        }
        let key = keys.unwrap_or_else(|| self.mapping.fresh());
        let value = values.unwrap_or_else(|| self.mapping.fresh());
        self.set(id, Type::map(key, value));
    }

    fn require(&mut self, id: Id, wanted: &Type) {
        let found = self.type_of(id);
        if !self.mapping.assignable(wanted, &found) {
            self.mismatch(id, wanted, &found);
        }
    }
}

const fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
