//! The estimate: a walk over the checked tree with the sizes of what each part yields.

use std::sync::Arc;

use crate::ast::{Fold, Id, Kind, Literal};
use crate::check::Meaning;
use crate::cost::{CostEstimate, SizeEstimate, SizeEstimator};
use crate::expression::Expression;
use crate::functions::Overload;
use crate::macros::ACCUMULATOR;
use crate::op::Op;
use crate::types::Type;
use crate::value::chars;

/// A way from a variable to a part of it.
pub(super) type Path = Vec<Arc<str>>;

/// The sizes of keys and values of a list or map that an expression makes.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntrySize {
    list: bool,
    key: SizeEstimate,
    value: SizeEstimate,
}

impl EntrySize {
    fn union(self, other: Self) -> Self {
        Self {
            list: self.list,
            key: self.key.union(other.key),
            value: self.value.union(other.value),
        }
    }
}

struct Local {
    name: Arc<str>,
    path: Path,
    size: Option<SizeEstimate>,
    entry: Option<EntrySize>,
}

/// An argument of a call, as functions see it.
#[derive(Debug, Clone)]
pub(super) struct Arg {
    pub(super) id: Id,
    /// None where no variable leads to it.
    pub(super) path: Option<Path>,
    pub(super) ty: Type,
    pub(super) size: Option<SizeEstimate>,
}

impl Arg {
    pub(super) fn size_or_unknown(&self) -> SizeEstimate {
        self.size.unwrap_or(SizeEstimate::UNKNOWN)
    }
}

/// A call's cost, and the size of its result if that is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallEstimate {
    pub(super) cost: CostEstimate,
    pub(super) size: Option<SizeEstimate>,
}

pub(super) struct Coster<'e> {
    pub(super) expression: &'e Expression,
    sizes: &'e dyn SizeEstimator,
    paths: Vec<Path>,
    computed: Vec<Option<SizeEstimate>>,
    entries: Vec<Option<EntrySize>>,
    /// What has been estimated already: macros use some parts twice.
    costs: Vec<Option<CostEstimate>>,
    locals: Vec<Local>,
}

/// Estimates `expression`.
pub(crate) fn estimate(expression: &Expression, sizes: &dyn SizeEstimator) -> CostEstimate {
    let count = expression.ast.len();
    let mut coster = Coster {
        expression,
        sizes,
        paths: vec![Vec::new(); count],
        computed: vec![None; count],
        entries: vec![None; count],
        costs: vec![None; count],
        locals: Vec::new(),
    };
    coster.cost(expression.root)
}

const ONE: CostEstimate = CostEstimate::fixed(1);
const NONE: CostEstimate = CostEstimate::fixed(0);

impl Coster<'_> {
    fn kind(&self, id: Id) -> &Kind {
        self.expression.ast.kind(id)
    }

    pub(super) fn ty(&self, id: Id) -> Type {
        self.expression.checked.types[id as usize].clone().unwrap_or(Type::Dyn)
    }

    fn overloads(&self, id: Id) -> &[&'static Overload] {
        match self.expression.checked.meanings[id as usize].as_ref() {
            Some(Meaning::Overloads(found)) => found,
            _ => &[],
        }
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| *local.name == *name)
    }

    fn pop(&mut self, name: &str) {
        if let Some(at) = self.locals.iter().rposition(|local| *local.name == *name) {
            self.locals.remove(at);
        }
    }

    fn path(&self, id: Id) -> &Path {
        if let Kind::Ident(name) = self.kind(id)
            && let Some(local) = self.local(name)
        {
            return &local.path;
        }
        &self.paths[id as usize]
    }

    fn path_with(&self, id: Id, step: &str) -> Path {
        let mut path = self.path(id).clone();
        path.push(step.into());
        path
    }

    fn set_path(&mut self, id: Id, path: Path) {
        self.paths[id as usize] = path;
    }

    fn set_size(&mut self, id: Id, size: Option<SizeEstimate>) {
        if size.is_some() {
            self.computed[id as usize] = size;
        }
    }

    pub(super) fn set_entry(&mut self, id: Id, entry: Option<EntrySize>) {
        if entry.is_some() {
            self.entries[id as usize] = entry;
        }
    }

    /// The size of what a path leads to.
    pub(super) fn path_size(&self, path: &[Arc<str>], ty: &Type) -> Option<SizeEstimate> {
        if path.is_empty() {
            return None;
        }
        let steps: Vec<&str> = path.iter().map(|step| &**step).collect();
        self.sizes.size(&steps, ty)
    }

    fn size(&mut self, id: Id) -> Option<SizeEstimate> {
        if let Some(size) = self.computed[id as usize] {
            return Some(size);
        }
        if let Some(size) = self.literal_size(id) {
            return Some(size);
        }
        let ty = self.ty(id);
        if let Some(size) = self.path_size(self.path(id), &ty) {
            self.computed[id as usize] = Some(size);
            return Some(size);
        }
        if is_scalar(&ty) {
            return Some(SizeEstimate::fixed(1));
        }
        match self.kind(id) {
            Kind::Ident(name) => self.local(name)?.size,
            _ => None,
        }
    }

    fn literal_size(&self, id: Id) -> Option<SizeEstimate> {
        Some(SizeEstimate::fixed(match self.kind(id) {
            Kind::Literal(Literal::String(text)) => chars(text),
            Kind::Literal(Literal::Bytes(bytes)) => bytes.len() as u64,
            Kind::Literal(_) => 1,
            Kind::List { elements, .. } => elements.len() as u64,
            Kind::Map(entries) => entries.len() as u64,
            _ => return None,
        }))
    }

    fn size_or_unknown(&mut self, id: Id) -> SizeEstimate {
        self.size(id).unwrap_or(SizeEstimate::UNKNOWN)
    }

    pub(super) fn entry(&self, id: Id) -> Option<EntrySize> {
        if let Some(entry) = self.entries[id as usize] {
            return Some(entry);
        }
        match self.kind(id) {
            Kind::Ident(name) => self.local(name)?.entry,
            _ => None,
        }
    }

    pub(super) fn joined_entry(&self, a: Id, b: Id) -> Option<EntrySize> {
        Some(self.entry(a)?.union(self.entry(b)?))
    }

    pub(super) fn literal_int(&self, id: Id) -> Option<i64> {
        match self.kind(id) {
            Kind::Literal(Literal::Int(value)) => Some(*value),
            _ => None,
        }
    }

    fn cost(&mut self, id: Id) -> CostEstimate {
        if let Some(cost) = self.costs[id as usize] {
            return cost;
        }
        let expression = self.expression;
        let cost = match expression.ast.kind(id) {
            Kind::Nothing | Kind::Literal(_) => NONE,
            Kind::Ident(name) => {
                let path = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => vec![Arc::clone(name)],
                };
                self.set_path(id, path);
                ONE
            }
            Kind::Select { operand, test: true, .. } => self.cost(*operand),
            Kind::Select { operand, field, .. } => {
                let mut sum = self.cost(*operand);
                if matches!(self.ty(*operand), Type::Map(_) | Type::Object(_) | Type::Var(_)) {
                    sum = sum.plus(ONE);
                }
                let path = self.path_with(*operand, field);
                self.set_path(id, path);
                sum
            }
            Kind::Call { target, args, .. } => self.call(id, *target, args),
            Kind::List { elements, .. } => self.list(id, elements),
            Kind::Map(_) => self.map(id),
            Kind::Struct { fields, .. } => {
                let mut sum = CostEstimate::fixed(40);
                for field in fields {
                    sum = sum.plus(self.cost(field.value));
                }
                sum
            }
            Kind::Fold(fold) if self.is_bind(fold) => self.bind(id, fold),
            Kind::Fold(fold) => self.fold(id, fold),
        };
        self.costs[id as usize] = Some(cost);
        cost
    }

    fn list(&mut self, id: Id, elements: &[Id]) -> CostEstimate {
        let mut sum = CostEstimate::fixed(10);
        let mut sizes = Sizes::new(elements.is_empty());
        for element in elements {
            sum = sum.plus(self.cost(*element));
            sizes.add(self.size_or_unknown(*element));
        }
        let entry = EntrySize { list: true, key: SizeEstimate::fixed(1), value: sizes.0 };
        self.set_entry(id, Some(entry));
        sum
    }

    fn map(&mut self, id: Id) -> CostEstimate {
        let expression = self.expression;
        let Kind::Map(entries) = expression.ast.kind(id) else { return NONE };
        let mut sum = CostEstimate::fixed(30);
        let mut keys = Sizes::new(entries.is_empty());
        let mut values = Sizes::new(entries.is_empty());
        for entry in entries {
            sum = sum.plus(self.cost(entry.key)).plus(self.cost(entry.value));
            keys.add(self.size_or_unknown(entry.key));
            values.add(self.size_or_unknown(entry.value));
        }
        self.set_entry(id, Some(EntrySize { list: false, key: keys.0, value: values.0 }));
        sum
    }

    /// Whether a loop only gives a name to a value.
    fn is_bind(&self, fold: &Fold) -> bool {
        let empty =
            matches!(self.kind(fold.range), Kind::List { elements, .. } if elements.is_empty());
        let never = matches!(self.kind(fold.condition), Kind::Literal(Literal::Bool(false)));
        empty && never && &*fold.accu != ACCUMULATOR
    }

    fn push_value(&mut self, name: &Arc<str>, value: Id) {
        let local = Local {
            name: Arc::clone(name),
            path: self.path(value).clone(),
            size: self.size(value),
            entry: self.entry(value),
        };
        self.locals.push(local);
    }

    fn push_part(&mut self, name: &Arc<str>, path: Path, size: Option<SizeEstimate>) {
        self.locals.push(Local { name: Arc::clone(name), path, size, entry: None });
    }

    fn bind(&mut self, id: Id, fold: &Fold) -> CostEstimate {
        let mut sum = self.cost(fold.range).plus(self.cost(fold.init));
        self.push_value(&fold.accu, fold.init);
        sum = sum.plus(self.cost(fold.result));
        // The size of the result may be that of the name, so it is read before the name goes.
        let (size, entry) = (self.size(fold.result), self.entry(fold.result));
        self.pop(&fold.accu);
        self.set_size(id, size);
        self.set_entry(id, entry);
        sum
    }

    fn fold(&mut self, id: Id, fold: &Fold) -> CostEstimate {
        let mut sum = self.cost(fold.range).plus(self.cost(fold.init));
        self.push_value(&fold.accu, fold.init);
        let entry = self.entry(fold.range);
        let list = match entry {
            Some(entry) => entry.list,
            None => matches!(self.ty(fold.range), Type::List(_)),
        };
        let (key, value) = (entry.map(|entry| entry.key), entry.map(|entry| entry.value));
        match &fold.var2 {
            Some(var2) => {
                let keys = if list { "@indices" } else { "@keys" };
                let values = if list { "@items" } else { "@values" };
                let path = self.path_with(fold.range, keys);
                self.push_part(&fold.var, path, key);
                let path = self.path_with(fold.range, values);
                self.push_part(var2, path, value);
            }
            None if list => {
                let path = self.path_with(fold.range, "@items");
                self.push_part(&fold.var, path, value);
            }
            None => {
                let path = self.path_with(fold.range, "@keys");
                self.push_part(&fold.var, path, key);
            }
        }
        let turn = self.cost(fold.condition).plus(self.cost(fold.step));
        self.pop(&fold.var);
        if let Some(var2) = &fold.var2 {
            self.pop(var2);
        }
        sum = sum.plus(self.cost(fold.result));
        self.pop(&fold.accu);
        let turns = self.size_or_unknown(fold.range);
        sum = sum.plus(turns.times_cost(turn));
        match self.kind(fold.init) {
            Kind::Literal(_) => {
                let size = self.size(fold.init);
                self.set_size(id, size);
            }
            Kind::List { .. } | Kind::Map(_) => {
                self.set_size(id, Some(turns));
                let entry = self.entry(fold.step);
                self.set_entry(id, entry);
            }
            _ => {}
        }
        sum
    }

    fn arg(&mut self, id: Id) -> Arg {
        let path = self.path(id).clone();
        let hidden = path.first().is_none_or(|root| &**root == ACCUMULATOR);
        let size = self.size(id);
        Arg { id, path: (!hidden).then_some(path), ty: self.ty(id), size }
    }

    fn call(&mut self, id: Id, target: Option<Id>, args: &[Id]) -> CostEstimate {
        let expression = self.expression;
        let Kind::Call { function, .. } = expression.ast.kind(id) else { return NONE };
        let Some(op) = Op::of(function) else { return NONE };
        if op == Op::ToDyn
            && let [arg] = args
        {
            let cost = self.cost(*arg);
            let (size, entry) = (self.size(*arg), self.entry(*arg));
            self.set_size(id, size);
            self.set_entry(id, entry);
            return ONE.plus(cost);
        }
        let mut costs = Vec::with_capacity(args.len());
        let mut nodes = Vec::with_capacity(args.len());
        for arg in args {
            costs.push(self.cost(*arg));
            nodes.push(self.arg(*arg));
        }
        let overloads: Vec<&'static Overload> = self.overloads(id).to_vec();
        if overloads.is_empty() {
            return NONE;
        }
        let mut sum = NONE;
        let target = target.map(|target| {
            sum = sum.plus(self.cost(target));
            self.arg(target)
        });
        let mut cost = CostEstimate { min: u64::MAX, max: 0 };
        let mut size: Option<SizeEstimate> = None;
        for overload in overloads {
            let one = self.function(id, op, overload.id, target.as_ref(), &nodes, &costs);
            cost = cost.union(one.cost);
            if let Some(this) = one.size {
                size = Some(size.map_or(this, |size| size.union(this)));
            }
            let step = match overload.id {
                "index_list" => Some("@items"),
                "index_map" => Some("@values"),
                _ => None,
            };
            if let (Some(step), Some(list)) = (step, args.first()) {
                size = self.entry(*list).map(|entry| entry.value);
                let path = self.path_with(*list, step);
                self.set_path(id, path);
            }
            if size.is_none() {
                size = self.size(id);
            }
        }
        self.set_size(id, size);
        sum.plus(cost)
    }
}

/// The sizes of several parts together.
struct Sizes(SizeEstimate);

impl Sizes {
    const fn new(empty: bool) -> Self {
        Self(SizeEstimate { min: if empty { 0 } else { u64::MAX }, max: 0 })
    }

    fn add(&mut self, size: SizeEstimate) {
        self.0 = self.0.union(size);
    }
}

/// Whether values of the type are of one size.
fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}
