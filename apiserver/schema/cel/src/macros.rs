//! Macros: calls that become loops or presence tests while an expression is parsed.
//!
//! All nodes of an expansion stand where the macro's parenthesis stands.

use std::sync::Arc;

use crate::ast::{Fold, Id, Kind, Literal};
use crate::parser::Parser;

/// The accumulator of every macro but `sortBy`; no expression can name it.
pub(crate) const ACCUMULATOR: &str = "@result";

/// What the accumulator was called once; still no name for a variable of a loop.
const OLD_ACCUMULATOR: &str = "__result__";

/// The list that `sortBy` sorts.
const SORT_INPUT: &str = "@__sortBy_input__";

/// Expands a call of a global macro.
pub(crate) fn global(p: &mut Parser<'_>, at: u32, function: &str, args: &[Id]) -> Option<Id> {
    let ("has", [arg]) = (function, args) else { return None };
    Some(match p.ast.kind(*arg) {
        Kind::Select { operand, field, .. } => {
            let (operand, field) = (*operand, Arc::clone(field));
            p.ast.add(at, Kind::Select { operand, field, test: true })
        }
        _ => {
            let at = p.ast.node(*arg).at;
            p.report(at, "invalid argument to has() macro")
        }
    })
}

/// Expands a call of a macro on `target`.
pub(crate) fn receiver(
    p: &mut Parser<'_>,
    at: u32,
    function: &str,
    target: Id,
    args: &[Id],
) -> Option<Id> {
    let mut m = Expansion { p, at };
    let result = match (function, args) {
        ("all", [var, body]) => m.quantifier(Quantifier::All, target, &[*var], *body),
        ("all", [a, b, body]) => m.quantifier(Quantifier::All, target, &[*a, *b], *body),
        ("exists", [var, body]) => m.quantifier(Quantifier::Exists, target, &[*var], *body),
        ("exists", [a, b, body]) => m.quantifier(Quantifier::Exists, target, &[*a, *b], *body),
        ("exists_one", [var, body]) => m.quantifier(Quantifier::One, target, &[*var], *body),
        ("exists_one" | "existsOne", [a, b, body]) => {
            m.quantifier(Quantifier::One, target, &[*a, *b], *body)
        }
        ("map", [var, body]) => m.map(target, *var, None, *body),
        ("map", [var, filter, body]) => m.map(target, *var, Some(*filter), *body),
        ("filter", [var, body]) => m.filter(target, *var, *body),
        ("transformList", [a, b, body]) => m.transform_list(target, [*a, *b], None, *body),
        ("transformList", [a, b, filter, body]) => {
            m.transform_list(target, [*a, *b], Some(*filter), *body)
        }
        ("transformMap", [a, b, body]) => m.transform_map(target, [*a, *b], None, *body, true),
        ("transformMap", [a, b, filter, body]) => {
            m.transform_map(target, [*a, *b], Some(*filter), *body, true)
        }
        ("transformMapEntry", [a, b, body]) => {
            m.transform_map(target, [*a, *b], None, *body, false)
        }
        ("transformMapEntry", [a, b, filter, body]) => {
            m.transform_map(target, [*a, *b], Some(*filter), *body, false)
        }
        ("sortBy", [var, key]) => m.sort_by(target, *var, *key),
        ("unwrapOpt", _) => return None,
        ("optMap", [var, body]) => m.opt_map(target, *var, *body, false),
        ("optFlatMap", [var, body]) => m.opt_map(target, *var, *body, true),
        _ => return None,
    };
    Some(match result {
        Ok(id) => id,
        Err((at, message)) => p.report(at, message),
    })
}

#[derive(Clone, Copy)]
enum Quantifier {
    All,
    Exists,
    One,
}

/// Where a macro is used wrongly, and how.
type Misuse = (u32, String);

type Expanded = Result<Id, Misuse>;

/// The names of one or two variables of a loop.
type Vars = (Arc<str>, Option<Arc<str>>);

struct Expansion<'p, 't> {
    p: &'p mut Parser<'t>,
    at: u32,
}

impl Expansion<'_, '_> {
    fn add(&mut self, kind: Kind) -> Id {
        self.p.ast.add(self.at, kind)
    }

    fn literal(&mut self, value: Literal) -> Id {
        self.add(Kind::Literal(value))
    }

    fn ident(&mut self, name: &str) -> Id {
        self.add(Kind::Ident(name.into()))
    }

    fn accu(&mut self) -> Id {
        self.ident(ACCUMULATOR)
    }

    fn call(&mut self, function: &str, args: &[Id]) -> Id {
        self.add(Kind::Call { target: None, function: function.into(), args: args.into() })
    }

    fn list(&mut self, elements: &[Id]) -> Id {
        let optional = vec![false; elements.len()].into();
        self.add(Kind::List { elements: elements.into(), optional })
    }

    fn at_of(&self, id: Id) -> u32 {
        self.p.ast.node(id).at
    }

    fn name_of(&self, id: Id) -> Option<Arc<str>> {
        match self.p.ast.kind(id) {
            Kind::Ident(name) => Some(Arc::clone(name)),
            _ => None,
        }
    }

    /// The name of the one variable of a loop.
    fn var(&self, id: Id, wrong: &str) -> Result<Arc<str>, Misuse> {
        let name = self.name_of(id).ok_or_else(|| (self.at_of(id), wrong.to_owned()))?;
        if matches!(&*name, ACCUMULATOR | OLD_ACCUMULATOR) {
            let message = "iteration variable overwrites accumulator variable";
            return Err((self.at_of(id), message.to_owned()));
        }
        Ok(name)
    }

    /// The names of one or two variables of a loop.
    fn vars(&self, ids: &[Id]) -> Result<Vars, Misuse> {
        const SIMPLE: &str = "argument must be a simple name";
        match ids {
            [a, b] => {
                let plain =
                    |id: Id| self.name_of(id).ok_or_else(|| (self.at_of(id), SIMPLE.to_owned()));
                let (first, second) = (plain(*a)?, plain(*b)?);
                if first == second {
                    let message = format!("duplicate variable name: {first}");
                    return Err((self.at_of(*b), message));
                }
                Ok((self.var(*a, SIMPLE)?, Some(self.var(*b, SIMPLE)?)))
            }
            [a] => Ok((self.var(*a, SIMPLE)?, None)),
            _ => Err((self.at, SIMPLE.to_owned())),
        }
    }

    fn fold(&mut self, range: Id, vars: Vars, init: Id, [condition, step, result]: [Id; 3]) -> Id {
        let accu = ACCUMULATOR.into();
        let (var, var2) = vars;
        let fold = Fold { range, var, var2, accu, init, condition, step, result };
        self.add(Kind::Fold(Box::new(fold)))
    }

    fn quantifier(&mut self, kind: Quantifier, target: Id, vars: &[Id], body: Id) -> Expanded {
        let vars = self.vars(vars)?;
        let (init, parts) = match kind {
            Quantifier::All => {
                let init = self.literal(Literal::Bool(true));
                let accu = self.accu();
                let condition = self.call("@not_strictly_false", &[accu]);
                let accu = self.accu();
                let step = self.call("_&&_", &[accu, body]);
                (init, [condition, step, self.accu()])
            }
            Quantifier::Exists => {
                let init = self.literal(Literal::Bool(false));
                let accu = self.accu();
                let not = self.call("!_", &[accu]);
                let condition = self.call("@not_strictly_false", &[not]);
                let accu = self.accu();
                let step = self.call("_||_", &[accu, body]);
                (init, [condition, step, self.accu()])
            }
            Quantifier::One => {
                let init = self.literal(Literal::Int(0));
                let condition = self.literal(Literal::Bool(true));
                let (accu, one) = (self.accu(), self.literal(Literal::Int(1)));
                let more = self.call("_+_", &[accu, one]);
                let accu = self.accu();
                let step = self.call("_?_:_", &[body, more, accu]);
                let (accu, one) = (self.accu(), self.literal(Literal::Int(1)));
                (init, [condition, step, self.call("_==_", &[accu, one])])
            }
        };
        Ok(self.fold(target, vars, init, parts))
    }

    /// A loop that appends `element` to a list, perhaps only where `filter` holds.
    fn collect(&mut self, target: Id, vars: Vars, filter: Option<Id>, element: Id) -> Id {
        let init = self.list(&[]);
        let condition = self.literal(Literal::Bool(true));
        let (accu, more) = (self.accu(), self.list(&[element]));
        let mut step = self.call("_+_", &[accu, more]);
        if let Some(filter) = filter {
            let accu = self.accu();
            step = self.call("_?_:_", &[filter, step, accu]);
        }
        let result = self.accu();
        self.fold(target, vars, init, [condition, step, result])
    }

    fn map(&mut self, target: Id, var: Id, filter: Option<Id>, body: Id) -> Expanded {
        let var = self.var(var, "argument is not an identifier")?;
        Ok(self.collect(target, (var, None), filter, body))
    }

    fn filter(&mut self, target: Id, var: Id, body: Id) -> Expanded {
        let name = self.var(var, "argument is not an identifier")?;
        Ok(self.collect(target, (name, None), Some(body), var))
    }

    fn transform_list(
        &mut self,
        target: Id,
        vars: [Id; 2],
        filter: Option<Id>,
        body: Id,
    ) -> Expanded {
        let vars = self.vars(&vars)?;
        Ok(self.collect(target, vars, filter, body))
    }

    /// A loop that makes a map: of the first variable and `body`, or of maps with one entry.
    fn transform_map(
        &mut self,
        target: Id,
        vars: [Id; 2],
        filter: Option<Id>,
        body: Id,
        keyed: bool,
    ) -> Expanded {
        let vars = self.vars(&vars)?;
        let init = self.add(Kind::Map(Box::default()));
        let condition = self.literal(Literal::Bool(true));
        let accu = self.accu();
        let mut step = if keyed {
            let key = self.ident(&vars.0.clone());
            self.call("cel.@mapInsert", &[accu, key, body])
        } else {
            self.call("cel.@mapInsert", &[accu, body])
        };
        if let Some(filter) = filter {
            let accu = self.accu();
            step = self.call("_?_:_", &[filter, step, accu]);
        }
        let result = self.accu();
        Ok(self.fold(target, vars, init, [condition, step, result]))
    }

    /// A loop over nothing, whose accumulator is a name for `value` in `result`.
    fn bind(&mut self, name: &str, value: Id, result: Id) -> Id {
        let range = self.list(&[]);
        let condition = self.literal(Literal::Bool(false));
        let step = self.ident(name);
        let fold = Fold {
            range,
            var: "#unused".into(),
            var2: None,
            accu: name.into(),
            init: value,
            condition,
            step,
            result,
        };
        self.add(Kind::Fold(Box::new(fold)))
    }

    fn sort_by(&mut self, target: Id, var: Id, key: Id) -> Expanded {
        let sortable = matches!(
            self.p.ast.kind(target),
            Kind::List { .. }
                | Kind::Select { .. }
                | Kind::Ident(_)
                | Kind::Fold(_)
                | Kind::Call { .. }
        );
        if !sortable {
            let message = "sortBy can only be applied to a list, identifier, comprehension, call \
                           or select expression";
            return Err((self.at_of(target), message.to_owned()));
        }
        let input = self.ident(SORT_INPUT);
        let keys = self.map(input, var, None, key)?;
        let input = self.ident(SORT_INPUT);
        let sorted = self.add(Kind::Call {
            target: Some(input),
            function: "@sortByAssociatedKeys".into(),
            args: [keys].into(),
        });
        Ok(self.bind(SORT_INPUT, target, sorted))
    }

    /// `target.hasValue() ? optional.of(bind(var, target.value(), body)) : optional.none()`.
    fn opt_map(&mut self, target: Id, var: Id, body: Id, flat: bool) -> Expanded {
        let name = self.name_of(var).ok_or_else(|| {
            let which = if flat { "optFlatMap()" } else { "optMap()" };
            (self.at_of(var), format!("{which} variable name must be a simple identifier"))
        })?;
        let member = |m: &mut Self, target: Id, function: &str| {
            m.add(Kind::Call {
                target: Some(target),
                function: function.into(),
                args: Box::default(),
            })
        };
        let has = member(self, target, "hasValue");
        let value = member(self, target, "value");
        let bound = self.bind(&name, value, body);
        let yes = if flat { bound } else { self.call("optional.of", &[bound]) };
        let no = self.call("optional.none", &[]);
        Ok(self.call("_?_:_", &[has, yes, no]))
    }
}
