//! Unification: which types agree, and what that says about free variables.
//!
//! The rules are those of upstream's checker. A failed attempt leaves no trace.

use crate::types::Type;

/// What free variables stand for.
#[derive(Debug, Default)]
pub(crate) struct Mapping {
    bound: Vec<Option<Type>>,
    /// What was bound before, to undo a failed attempt.
    trail: Vec<(u32, Option<Type>)>,
}

impl Mapping {
    /// A new free variable.
    pub(crate) fn fresh(&mut self) -> Type {
        self.bound.push(None);
        Type::Var((self.bound.len() - 1) as u32)
    }

    fn find(&self, ty: &Type) -> Option<&Type> {
        match ty {
            Type::Var(number) => self.bound.get(*number as usize)?.as_ref(),
            _ => None,
        }
    }

    fn bind(&mut self, var: &Type, to: Type) {
        if let Type::Var(number) = var
            && let Some(slot) = self.bound.get_mut(*number as usize)
        {
            self.trail.push((*number, slot.replace(to)));
        }
    }

    /// Runs `attempt`, and undoes its bindings if it fails.
    fn attempt(&mut self, attempt: impl FnOnce(&mut Self) -> bool) -> bool {
        self.trail.clear();
        let agrees = attempt(self);
        if !agrees {
            for (number, before) in std::mem::take(&mut self.trail).into_iter().rev() {
                if let Some(slot) = self.bound.get_mut(number as usize) {
                    *slot = before;
                }
            }
        }
        agrees
    }

    /// Whether a value of `from` may stand where `to` is expected.
    pub(crate) fn assignable(&mut self, to: &Type, from: &Type) -> bool {
        self.attempt(|m| m.agree(to, from))
    }

    /// The same for each of two lists of types.
    pub(crate) fn all_assignable(&mut self, left: &[Type], right: &[Type]) -> bool {
        self.attempt(|m| m.all_agree(left, right))
    }

    fn all_agree(&mut self, left: &[Type], right: &[Type]) -> bool {
        left.len() == right.len() && left.iter().zip(right).all(|(a, b)| self.agree(a, b))
    }

    fn agree(&mut self, t1: &Type, t2: &Type) -> bool {
        if matches!(t2, Type::Var(_)) {
            match self.substitutes(t1, t2) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if matches!(t1, Type::Var(_)) {
            return self.substitutes(t2, t1).0;
        }
        if t1.is_dyn_or_error() || t2.is_dyn_or_error() {
            return true;
        }
        match (t1, t2) {
            (Type::Null, other) | (other, Type::Null) => nullable(other),
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
                self.agree(a, b)
            }
            (Type::Map(a), Type::Map(b)) => self.agree(&a.0, &b.0) && self.agree(&a.1, &b.1),
            (a, b) => a.is_exactly(b),
        }
    }

    /// Whether `var` may stand for `ty`, and whether it stands for something already.
    fn substitutes(&mut self, ty: &Type, var: &Type) -> (bool, bool) {
        if ty.is_exactly(var) {
            return (true, true);
        }
        if let Some(bound) = self.find(var).cloned() {
            if ty.is_exactly(&bound) {
                return (true, true);
            }
            if self.agree(ty, &bound) {
                let general = most_general(ty, &bound).clone();
                if !self.occurs(var, &general) {
                    self.bind(var, general);
                }
                return (true, true);
            }
            return (false, true);
        }
        if self.occurs(var, ty) {
            return (false, false);
        }
        self.bind(var, ty.clone());
        (true, false)
    }

    /// Whether `var` is a part of `within`.
    fn occurs(&self, var: &Type, within: &Type) -> bool {
        if var.is_exactly(within) {
            return true;
        }
        match within {
            Type::Var(_) => self.find(within).is_some_and(|bound| self.occurs(var, bound)),
            Type::List(inner) | Type::Optional(inner) | Type::Type(Some(inner)) => {
                self.occurs(var, inner)
            }
            Type::Map(entry) => self.occurs(var, &entry.0) || self.occurs(var, &entry.1),
            _ => false,
        }
    }

    /// `ty` with variables replaced by what they stand for; free ones become dyn if `to_dyn`.
    pub(crate) fn substitute(&self, ty: &Type, to_dyn: bool) -> Type {
        if let Some(bound) = self.find(ty) {
            return self.substitute(bound, to_dyn);
        }
        match ty {
            Type::Var(_) if to_dyn => Type::Dyn,
            Type::List(inner) => Type::list(self.substitute(inner, to_dyn)),
            Type::Optional(inner) => Type::optional(self.substitute(inner, to_dyn)),
            Type::Type(Some(inner)) => Type::Type(Some(self.substitute(inner, to_dyn).into())),
            Type::Map(entry) => {
                Type::map(self.substitute(&entry.0, to_dyn), self.substitute(&entry.1, to_dyn))
            }
            other => other.clone(),
        }
    }

    /// `ty` of a declaration, with a variable for each parameter.
    pub(crate) fn instantiate(&mut self, ty: &Type, params: &mut Vec<(char, Type)>) -> Type {
        match ty {
            Type::Param(name) => {
                if let Some((_, var)) = params.iter().find(|(known, _)| known == name) {
                    return var.clone();
                }
                let var = self.fresh();
                params.push((*name, var.clone()));
                var
            }
            Type::List(inner) => Type::list(self.instantiate(inner, params)),
            Type::Optional(inner) => Type::optional(self.instantiate(inner, params)),
            Type::Type(Some(inner)) => Type::Type(Some(self.instantiate(inner, params).into())),
            Type::Map(entry) => {
                let key = self.instantiate(&entry.0, params);
                Type::map(key, self.instantiate(&entry.1, params))
            }
            other => other.clone(),
        }
    }
}

const fn nullable(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Null
            | Type::Optional(_)
            | Type::Opaque(_)
            | Type::Object(_)
            | Type::Duration
            | Type::Timestamp
    )
}

/// The more general of two types that agree.
pub(crate) fn most_general<'t>(t1: &'t Type, t2: &'t Type) -> &'t Type {
    if equal_or_less_specific(t1, t2) { t1 } else { t2 }
}

fn equal_or_less_specific(t1: &Type, t2: &Type) -> bool {
    if matches!(t1, Type::Dyn | Type::Var(_)) {
        return true;
    }
    if matches!(t2, Type::Dyn | Type::Var(_)) {
        return false;
    }
    match (t1, t2) {
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
            equal_or_less_specific(a, b)
        }
        (Type::Map(a), Type::Map(b)) => {
            equal_or_less_specific(&a.0, &b.0) && equal_or_less_specific(&a.1, &b.1)
        }
        (Type::Type(_), Type::Type(_)) => true,
        (a, b) => a.is_exactly(b),
    }
}
