//! Estimated costs of the functions of the language itself, and of the lists and sets extensions.

use crate::ast::Id;
use crate::cost::estimate::{Arg, CallEstimate, Coster};
use crate::cost::{CostEstimate, REGEX, SizeEstimate, TRAVERSAL};
use crate::op::Op;
use crate::types::Type;

const ONE: CostEstimate = CostEstimate::fixed(1);

impl Coster<'_> {
    /// The cost of one overload of a call, its arguments included.
    pub(super) fn function(
        &mut self,
        id: Id,
        op: Op,
        overload: &str,
        target: Option<&Arg>,
        args: &[Arg],
        costs: &[CostEstimate],
    ) -> CallEstimate {
        let sum = costs.iter().fold(CostEstimate::default(), |sum, cost| sum.plus(*cost));
        let found = self
            .extension(overload, target, args)
            .or_else(|| self.kubernetes(op, overload, target, args));
        if let Some(found) = found {
            return CallEstimate { cost: found.cost.plus(sum), size: found.size };
        }
        if let (Op::And | Op::Or, [left, right]) = (op, costs) {
            let cost = CostEstimate { min: left.min, max: left.plus(*right).max };
            return CallEstimate { cost, size: None };
        }
        if let (Op::Conditional, [condition, yes, no], [_, a, b]) = (op, costs, args) {
            let entry = self.joined_entry(a.id, b.id);
            self.set_entry(id, entry);
            let size = a.size_or_unknown().union(b.size_or_unknown());
            return CallEstimate { cost: condition.plus(yes.union(*no)), size: Some(size) };
        }
        let (cost, size) = self.standard(id, overload, target, args).unwrap_or((ONE, None));
        CallEstimate { cost: cost.plus(sum), size }
    }

    fn standard(
        &mut self,
        id: Id,
        overload: &str,
        target: Option<&Arg>,
        args: &[Arg],
    ) -> Option<(CostEstimate, Option<SizeEstimate>)> {
        let size = |at: usize| args.get(at).map(Arg::size_or_unknown);
        let traversal = |size: SizeEstimate| size.scaled(TRAVERSAL);
        Some(match overload {
            "string_format" => (traversal(target?.size_or_unknown()), None),
            "string_to_bytes" => {
                let sz = size(0)?;
                let result = SizeEstimate { min: sz.min, max: sz.max.wrapping_mul(4) };
                (traversal(sz), Some(result))
            }
            "bytes_to_string" => {
                let sz = size(0)?;
                (traversal(sz), Some(SizeEstimate { min: sz.min / 4, max: sz.max }))
            }
            "strings_quote" => {
                let sz = size(0)?;
                let max = sz.max.wrapping_mul(2).wrapping_add(2);
                (traversal(sz), Some(SizeEstimate { min: sz.min.wrapping_add(2), max }))
            }
            "starts_with_string" | "ends_with_string" => (traversal(size(0)?), None),
            "in_list" => (size(1)?.scaled(1.0), None),
            "matches_string" => {
                let text = target?.size_or_unknown().plus(SizeEstimate::fixed(1));
                (traversal(text).times(size(0)?.scaled(REGEX)), None)
            }
            "contains_string" => {
                let text = traversal(target?.size_or_unknown());
                (text.times(traversal(size(0)?)), None)
            }
            "add_string" | "add_bytes" | "add_list" => {
                let result = size(0)?.plus(size(1)?);
                let entry = self.joined_entry(args.first()?.id, args.get(1)?.id);
                self.set_entry(id, entry);
                let cost = if overload == "add_list" { ONE } else { traversal(result) };
                (cost, Some(result))
            }
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes"
            | "equals"
            | "not_equals" => {
                let smallest = size(0)?.max.min(size(1)?.max);
                let compared = SizeEstimate { min: u64::from(smallest > 0), max: smallest };
                (traversal(compared), None)
            }
            _ => return None,
        })
    }

    /// Functions of the lists and sets extensions.
    fn extension(
        &self,
        overload: &str,
        target: Option<&Arg>,
        args: &[Arg],
    ) -> Option<CallEstimate> {
        let lists = |factor: f64, size: SizeEstimate| {
            let cost = size.scaled(factor).plus(ONE).plus(CostEstimate::fixed(10));
            Some(CallEstimate { cost, size: Some(size) })
        };
        let int = |at: usize, default: u64| {
            let value = args.get(at).and_then(|arg| self.literal_int(arg.id));
            value.map_or(default, |value| u64::try_from(value).unwrap_or(0))
        };
        let sets = |factor: f64| {
            let (a, b) = (args.first()?.size_or_unknown(), args.get(1)?.size_or_unknown());
            let cost = a.times(b).scaled(factor).plus(ONE);
            Some(CallEstimate { cost, size: None })
        };
        let compares = |node: &Arg| {
            let sz = node.size_or_unknown();
            let texts = overload.starts_with("list_string_") || overload.starts_with("list_bytes_");
            lists(if texts { 2.0 + TRAVERSAL } else { 2.0 }, sz.times(sz))
        };
        match overload {
            "list_slice" => {
                let sz = target?.size_or_unknown();
                let length = int(1, sz.max).wrapping_sub(int(0, 0));
                lists(1.0, SizeEstimate::fixed(length))
            }
            "lists_range" => lists(1.0, SizeEstimate::fixed(int(0, u64::MAX))),
            "list_reverse" => lists(1.0, target?.size_or_unknown()),
            "list_flatten" | "list_flatten_int" => {
                let depth = if args.is_empty() { 1 } else { int(0, u64::MAX) };
                lists(depth as f64, target?.size_or_unknown())
            }
            "list_distinct" => {
                let sz = target?.size_or_unknown();
                lists(2.0, sz.times(sz))
            }
            "list_sets_contains_list" | "list_sets_intersects_list" => sets(1.0),
            "list_sets_equivalent_list" => sets(2.0),
            _ if overload.starts_with("list_") && overload.ends_with("_sort") => compares(target?),
            _ if overload.starts_with("list_") && overload.ends_with("_sortByAssociatedKeys") => {
                compares(args.first()?)
            }
            _ => None,
        }
    }

    /// The size of an element of a list, from its path.
    pub(super) fn element_size(&self, list: &Arg) -> Option<(Type, SizeEstimate)> {
        let element = match &list.ty {
            Type::List(element) | Type::Optional(element) => (**element).clone(),
            Type::Map(entry) => entry.0.clone(),
            _ => return None,
        };
        let known = list.path.as_ref().and_then(|path| {
            let mut path = path.clone();
            path.push("@items".into());
            self.path_size(&path, &element)
        });
        Some((element, known.unwrap_or(SizeEstimate::UNKNOWN)))
    }
}
