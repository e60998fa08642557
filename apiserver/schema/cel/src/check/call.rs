//! Calls: which overloads the types of the arguments allow, and what comes of them.

use super::{Checker, Meaning};
use crate::ast::{Id, Kind};
use crate::functions::{Function, Overload};
use crate::types::Type;

impl Checker<'_> {
    pub(super) fn call(&mut self, id: Id, target: Option<Id>, function: &str, args: &[Id]) {
        if function == "_?._" {
            return self.optional_select(id, args);
        }
        for arg in args {
            self.check(*arg);
        }
        let Some(target) = target else {
            match self.env.function(function) {
                Some(found) => {
                    self.rename_call(id, None, found, args);
                    self.resolve(id, found, None, args);
                }
                None => self.undeclared(id, function),
            }
            return;
        };
        if let Some(prefix) = self.ast.qualified_name(target)
            && let Some(found) = self.env.function(&format!("{prefix}.{function}"))
        {
            self.rename_call(id, None, found, args);
            return self.resolve(id, found, None, args);
        }
        self.check(target);
        match self.env.function(function) {
            Some(found) => self.resolve(id, found, Some(target), args),
            None => self.undeclared(id, function),
        }
    }

    fn rename_call(&mut self, id: Id, target: Option<Id>, found: &Function, args: &[Id]) {
        let kind = Kind::Call { target, function: found.name.into(), args: args.into() };
        self.ast.replace(id, kind);
    }

    fn resolve(&mut self, id: Id, function: &'static Function, target: Option<Id>, args: &[Id]) {
        let arg_types: Vec<Type> =
            target.iter().chain(args).map(|arg| self.type_of(*arg)).collect();
        if matches!(function.name, "_&&_" | "_||_") {
            return self.logical(id, function, args, &arg_types);
        }
        let mut result: Option<Type> = None;
        let mut found: Vec<&'static Overload> = Vec::new();
        for overload in &function.overloads {
            if overload.member != target.is_some() || overload.args.len() != arg_types.len() {
                continue;
            }
            let mut params = Vec::new();
            let (agrees, this) = if overload.generic {
                let wanted: Vec<Type> = overload
                    .args
                    .iter()
                    .map(|arg| self.mapping.instantiate(arg, &mut params))
                    .collect();
                let this = self.mapping.instantiate(&overload.result, &mut params);
                (self.mapping.all_assignable(&arg_types, &wanted), this)
            } else {
                let agrees = self.mapping.all_assignable(&arg_types, &overload.args);
                (agrees, overload.result.clone())
            };
            if !agrees {
                continue;
            }
            found.push(overload);
            let this = self.mapping.substitute(&this, false);
            result = Some(match result {
                None => this,
                Some(before) if before.is_dyn() || this.is_exactly(&before) => before,
                Some(_) => Type::Dyn,
            });
        }
        match result {
            Some(ty) => {
                self.set(id, ty);
                self.mean(id, Meaning::Overloads(found.into()));
            }
            None => {
                let message = self.no_overload(function.name, target.is_some(), &arg_types);
                self.report(id, message);
                self.set(id, Type::Error);
            }
        }
    }

    fn no_overload(&self, name: &str, member: bool, args: &[Type]) -> String {
        let mut shown: Vec<String> =
            args.iter().map(|arg| self.mapping.substitute(arg, true).to_string()).collect();
        let target = if member { format!("{}.", shown.remove(0)) } else { String::new() };
        let signature = format!("{target}({})", shown.join(", "));
        format!("found no matching overload for '{name}' applied to '{signature}'")
    }

    fn logical(&mut self, id: Id, function: &'static Function, args: &[Id], types: &[Type]) {
        let mut wrong = false;
        for (arg, ty) in args.iter().zip(types) {
            if !self.mapping.assignable(ty, &Type::Bool) {
                self.mismatch(*arg, &Type::Bool, ty);
                wrong = true;
            }
        }
        if wrong {
            return self.set(id, Type::Error);
        }
        self.set(id, Type::Bool);
        self.mean(id, Meaning::Overloads(function.overloads.iter().take(1).collect()));
    }
}
