//! A checked expression: its type, what it reads, its estimated cost; and the program it becomes.

use std::collections::HashMap;
use std::sync::Arc;

use regex::Regex;

use crate::ast::{Ast, Id, Kind, Literal};
use crate::check::{Checked, Meaning};
use crate::cost::{CostEstimate, SizeEstimator, estimate};
use crate::decl::ObjectType;
use crate::eval::{Budget, Eval};
use crate::fold::fold_constants;
use crate::functions::Overload;
use crate::library::regexes;
use crate::op::Op;
use crate::types::Type;
use crate::value::{EvalError, V, Value, steps};

/// Values by node; most nodes have none.
#[derive(Debug, Default)]
pub(crate) struct Constants(Box<[Option<Box<V<'static>>>]>);

impl Constants {
    pub(crate) fn new(nodes: usize) -> Self {
        Self(std::iter::repeat_with(|| None).take(nodes).collect())
    }

    pub(crate) fn get(&self, id: Id) -> Option<&V<'static>> {
        self.0.get(id as usize)?.as_deref()
    }

    pub(crate) fn set(&mut self, id: Id, value: V<'static>) {
        if let Some(slot) = self.0.get_mut(id as usize) {
            *slot = Some(Box::new(value));
        }
    }
}

/// An expression that compiled.
#[derive(Debug)]
pub struct Expression {
    pub(crate) ast: Ast,
    pub(crate) root: Id,
    pub(crate) checked: Checked,
    variables: Box<[Box<str>]>,
}

/// An expression that can be evaluated, any number of times and by several threads.
#[derive(Debug)]
pub struct Program {
    pub(crate) ast: Ast,
    pub(crate) root: Id,
    pub(crate) meanings: Box<[Option<Meaning>]>,
    pub(crate) slots: Box<[Option<u32>]>,
    pub(crate) slot_count: u32,
    pub(crate) variables: Box<[Box<str>]>,
    /// What each call does.
    pub(crate) ops: Box<[Option<Op>]>,
    /// Values of what doesn't depend on any input.
    pub(crate) constants: Constants,
    /// Tests of membership in a constant list, which cost nothing; sorted.
    pub(crate) memberships: Box<[Id]>,
    /// Steps of loops that append to the accumulator; sorted.
    pub(crate) appends: Box<[Id]>,
    /// Types of the structures that are made.
    pub(crate) structures: HashMap<Id, Arc<ObjectType>>,
    /// Compiled patterns of the calls whose pattern is constant.
    pub(crate) patterns: HashMap<Id, Regex>,
}

impl Expression {
    pub(crate) const fn new(
        ast: Ast,
        root: Id,
        checked: Checked,
        variables: Box<[Box<str>]>,
    ) -> Self {
        Self { ast, root, checked, variables }
    }

    /// The type of its value.
    pub fn output_type(&self) -> &Type {
        self.checked.types[self.root as usize].as_ref().unwrap_or(&Type::Dyn)
    }

    /// Whether it reads the variable `name`.
    pub fn reads(&self, name: &str) -> bool {
        let at = self.variables.iter().position(|known| **known == *name);
        self.checked.meanings.iter().flatten().any(|meaning| {
            matches!((meaning, at), (Meaning::Variable(read), Some(at)) if *read as usize == at)
        })
    }

    /// What an evaluation may cost, given how large inputs may be.
    pub fn estimate(&self, sizes: &dyn SizeEstimator) -> CostEstimate {
        estimate(self, sizes)
    }

    /// The program. Constant parts are computed now.
    ///
    /// # Errors
    /// If a constant part fails, such as `int('x')`.
    pub fn program(self) -> Result<Program, EvalError> {
        let ops = (0..self.ast.len() as Id).map(|id| match self.ast.kind(id) {
            Kind::Call { function, .. } => Op::of(function),
            _ => None,
        });
        let mut program = Program {
            ops: ops.collect(),
            meanings: self.checked.meanings.into(),
            slots: self.checked.slots.into(),
            slot_count: self.checked.slot_count,
            variables: self.variables,
            ast: self.ast,
            root: self.root,
            constants: Constants::default(),
            memberships: Box::default(),
            appends: Box::default(),
            structures: HashMap::new(),
            patterns: HashMap::new(),
        };
        fold_constants(&mut program)?;
        program.patterns = literal_patterns(&program)?;
        Ok(program)
    }
}

/// Patterns that are constant. One that is wrong refuses the whole program.
fn literal_patterns(program: &Program) -> Result<HashMap<Id, Regex>, EvalError> {
    let mut patterns = HashMap::new();
    for id in 0..program.ast.len() as Id {
        let Kind::Call { target, args, .. } = program.ast.kind(id) else { continue };
        let pattern = match (program.op(id), target, &**args) {
            (Some(Op::Matches), None, [_, pattern]) => *pattern,
            (Some(Op::Matches | Op::Find | Op::FindAll), Some(_), [pattern, ..]) => *pattern,
            _ => continue,
        };
        let text = match (program.ast.kind(pattern), program.constants.get(pattern)) {
            (Kind::Literal(Literal::String(text)), _) => &**text,
            (_, Some(V::String(text))) => text,
            _ => continue,
        };
        patterns.insert(id, regexes::compile(text)?);
    }
    Ok(patterns)
}

impl Program {
    /// Evaluates for inputs in the order of the environment's variables.
    ///
    /// # Errors
    /// What upstream says of the failure; [`EvalError::CostLimit`] when the budget is spent. The cost is
    /// taken from the budget in each case.
    pub fn evaluate<'a>(
        &'a self,
        inputs: &[Value<'a>],
        budget: &mut Budget,
    ) -> Result<Value<'a>, EvalError> {
        let _running = steps::begin(self.ast.node(self.root).depth)?;
        Eval::new(self, inputs, budget).run().map(Value)
    }

    /// Whether it reads the variable `name`.
    pub fn reads(&self, name: &str) -> bool {
        let at = self.variables.iter().position(|known| **known == *name);
        self.meanings.iter().flatten().any(|meaning| {
            matches!((meaning, at), (Meaning::Variable(read), Some(at)) if *read as usize == at)
        })
    }

    pub(crate) fn op(&self, id: Id) -> Option<Op> {
        self.ops.get(id as usize).copied().flatten()
    }

    pub(crate) fn meaning(&self, id: Id) -> Option<&Meaning> {
        self.meanings.get(id as usize)?.as_ref()
    }

    /// The compiled pattern of a call.
    pub(crate) fn pattern(&self, call: Id) -> Option<&Regex> {
        self.patterns.get(&call)
    }

    /// The first slot of a loop.
    pub(crate) fn slot(&self, id: Id) -> Option<usize> {
        self.slots.get(id as usize).copied().flatten().map(|slot| slot as usize)
    }

    /// Whether a call is the step of a loop that appends to its accumulator.
    pub(crate) fn appends(&self, id: Id) -> bool {
        self.appends.binary_search(&id).is_ok()
    }

    /// Whether a call asks for membership in a constant list.
    pub(crate) fn is_membership(&self, id: Id) -> bool {
        self.memberships.binary_search(&id).is_ok()
    }

    /// The overload of a call, when the types allow just one.
    pub(crate) fn overload(&self, id: Id) -> Option<&'static Overload> {
        match self.meaning(id)? {
            Meaning::Overloads(found) => match &**found {
                [only] => Some(only),
                _ => None,
            },
            _ => None,
        }
    }
}
