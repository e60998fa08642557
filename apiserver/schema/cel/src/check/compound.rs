//! What has names of its own inside: structures and their fields, loops and their variables.

use std::sync::Arc;

use super::{Checker, Meaning};
use crate::ast::{Id, Kind, StructField};
use crate::types::Type;

impl Checker<'_> {
    pub(super) fn structure(&mut self, id: Id) {
        let Kind::Struct { name, fields } = self.ast.kind(id).clone() else { return };
        let object = match self.lookup(&name) {
            None => return self.undeclared(id, &name),
            Some((_, Meaning::TypeName(Type::Object(object)))) => object,
            Some((_, Meaning::TypeName(other))) => {
                let shown = other.runtime_name().to_owned();
                self.report(id, format_args!("'{shown}' is not a message type"));
                self.set(id, Type::Error);
                return self.initializers(&fields);
            }
            Some((ty, _)) => {
                let shown = ty.runtime_name().to_owned();
                self.report(id, format_args!("'{shown}' is not a type"));
                return self.set(id, Type::Error);
            }
        };
        self.set(id, Type::Object(Arc::clone(&object)));
        self.mean(id, Meaning::TypeName(Type::Object(Arc::clone(&object))));
        for field in &fields {
            self.check(field.value);
            let ty = self.element_type(field.value, field.optional);
            let Some(wanted) = self.env.field_type(&object, &field.name) else {
                self.problems.add(field.at, format_args!("undefined field '{}'", field.name));
                continue;
            };
            if !self.mapping.assignable(&wanted, &ty) {
                let message = format!(
                    "expected type of field '{}' is '{wanted}' but provided type is '{ty}'",
                    field.name
                );
                self.problems.add(field.at, message);
            }
        }
    }

    /// Fields of a structure that isn't known.
    fn initializers(&mut self, fields: &[StructField]) {
        for field in fields {
            self.check(field.value);
            self.problems.add(field.at, format_args!("undefined field '{}'", field.name));
        }
    }

    pub(super) fn fold(&mut self, id: Id) {
        let Kind::Fold(fold) = self.ast.kind(id).clone() else { return };
        self.check(fold.range);
        self.check(fold.init);
        let range = self.mapping.substitute(&self.type_of(fold.range), false);
        let accu = self.type_of(fold.init);
        let slot = self.out.slot_count;
        self.out.slot_count += 3;
        self.out.slots[id as usize] = Some(slot);
        let outer = self.scope.len();
        self.scope.push((Arc::clone(&fold.accu), accu.clone(), slot));
        let two = fold.var2.is_some();
        let (first, second) = match &range {
            Type::List(element) if two => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Error),
            Type::Map(entry) => (entry.0.clone(), entry.1.clone()),
            Type::Dyn | Type::Error | Type::Var(_) => {
                self.mapping.assignable(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                );
                self.report(fold.range, message);
                (Type::Error, Type::Error)
            }
        };
        self.scope.push((Arc::clone(&fold.var), first, slot + 1));
        if let Some(var2) = &fold.var2 {
            self.scope.push((Arc::clone(var2), second, slot + 2));
        }
        self.check(fold.condition);
        self.require(fold.condition, &Type::Bool);
        self.check(fold.step);
        self.require(fold.step, &accu);
        self.scope.truncate(outer + 1);
        self.check(fold.result);
        self.scope.truncate(outer);
        let result = self.mapping.substitute(&self.type_of(fold.result), false);
        self.set(id, result);
    }
}
