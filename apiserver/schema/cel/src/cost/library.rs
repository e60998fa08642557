//! Estimated costs of the functions of Kubernetes' libraries.

use crate::cost::actual::is_accessor;
use crate::cost::estimate::{Arg, CallEstimate, Coster};
use crate::cost::{CHECK, CostEstimate, REGEX, REQUIREMENT, SELECTOR, SizeEstimate, TRAVERSAL};
use crate::op::Op;
use crate::types::{Opaque, Type};

const ONE: CostEstimate = CostEstimate::fixed(1);
/// Upstream's bound on the pattern of a named format.
const MAX_FORMAT_REGEX: f64 = 128.0;
/// Upstream's bound on the name of a format.
const MAX_FORMAT: u64 = 64;
/// Bytes of an address.
const ADDRESS: SizeEstimate = SizeEstimate { min: 4, max: 16 };

const fn only(cost: CostEstimate) -> CallEstimate {
    CallEstimate { cost, size: None }
}

impl Coster<'_> {
    pub(super) fn kubernetes(
        &self,
        op: Op,
        overload: &str,
        target: Option<&Arg>,
        args: &[Arg],
    ) -> Option<CallEstimate> {
        let first = || args.first().map(Arg::size_or_unknown);
        let reads = |size: SizeEstimate| size.scaled(TRAVERSAL);
        Some(match op {
            Op::Check => only(CostEstimate::fixed(CHECK)),
            Op::FieldSelector | Op::LabelSelector => {
                let length = first()?;
                let requirements = length.scaled(0.5).scaled(REQUIREMENT);
                only(CostEstimate::fixed(SELECTOR).plus(reads(length)).plus(requirements))
            }
            Op::IsSorted | Op::Sum | Op::Max | Op::Min | Op::IndexOf | Op::LastIndexOf => {
                only(self.search(target?))
            }
            Op::Url => {
                let sz = first()?;
                CallEstimate { cost: reads(sz), size: Some(sz) }
            }
            Op::LowerAscii | Op::UpperAscii | Op::Substring | Op::Trim => {
                let sz = target?.size_or_unknown();
                CallEstimate { cost: reads(sz), size: Some(sz) }
            }
            Op::Replace => {
                replace(target?.size_or_unknown(), first()?, args.get(1)?.size_or_unknown())
            }
            Op::Split => {
                let sz = target?.size_or_unknown();
                let limit = args.get(1).and_then(|arg| self.literal_int(arg.id));
                let max = limit.map_or(sz.max, |limit| limit as u64);
                let size = Some(SizeEstimate { min: 0, max });
                CallEstimate { cost: sz.scaled(2.0 * TRAVERSAL), size }
            }
            Op::Join => self.join(target?, args),
            Op::Find | Op::FindAll => {
                let sz = target?.size_or_unknown();
                let text = reads(sz.plus(SizeEstimate::fixed(1)));
                let size = Some(SizeEstimate { min: 0, max: sz.max });
                CallEstimate { cost: text.times(first()?.scaled(REGEX)), size }
            }
            Op::Cidr | Op::IsIp | Op::IsCidr => only(reads(first()?)),
            Op::Ip if overload == "cidr_ip" => only(ONE),
            Op::Ip => only(reads(first()?)),
            Op::IpIsCanonical => only(first()?.scaled(2.0 * TRAVERSAL)),
            Op::ContainsIp => {
                let mut cost = ADDRESS.plus(ADDRESS).scaled(TRAVERSAL);
                let text = first()?;
                if overload == "cidr_contains_ip_string" {
                    cost = cost.plus(text.as_cost().scaled(TRAVERSAL));
                }
                only(cost)
            }
            Op::ContainsCidr => {
                let mut cost = ADDRESS.plus(ADDRESS).scaled(TRAVERSAL);
                cost = cost.plus(ADDRESS.scaled(TRAVERSAL)).plus(ONE);
                let text = first()?;
                if overload == "cidr_contains_cidr_string" {
                    cost = cost.plus(text.as_cost().scaled(TRAVERSAL));
                }
                only(cost)
            }
            Op::Quantity | Op::IsQuantity | Op::Semver | Op::IsSemver => only(reads(first()?)),
            Op::Validate => only(reads(first()?).scaled(MAX_FORMAT_REGEX * REGEX)),
            Op::Equals => return equality(args),
            _ if is_accessor(op) => only(ONE),
            _ => return None,
        })
    }

    /// Reading a list, or a string, to find something.
    fn search(&self, target: &Arg) -> CostEstimate {
        let size = target.size_or_unknown();
        let Some((element, element_size)) = self.element_size(target) else {
            return size.scaled(TRAVERSAL);
        };
        let mut one = ONE;
        if matches!(element, Type::String | Type::Bytes) {
            one = one.plus(element_size.scaled(TRAVERSAL));
        }
        size.times_cost(one)
    }

    fn join(&self, target: &Arg, args: &[Arg]) -> CallEstimate {
        let list = target.size_or_unknown();
        let mut size = SizeEstimate::fixed(0);
        if let Some((_, element)) = self.element_size(target) {
            size = list.times(element);
        }
        if let Some(separator) = args.first() {
            let count =
                SizeEstimate { min: list.min.saturating_sub(1), max: list.max.saturating_sub(1) };
            size = size.plus(separator.size_or_unknown().times(count));
        }
        CallEstimate { cost: size.scaled(TRAVERSAL), size: Some(size) }
    }
}

/// The largest result replaces the shortest texts by the longest, the smallest the other way round.
fn replace(text: SizeEstimate, what: SizeEstimate, with: SizeEstimate) -> CallEstimate {
    let quotient = |a: u64, b: u64| (a as f64 / b as f64).ceil() as u64;
    let (max_count, max_kept) = if what.min == 0 {
        (text.max.saturating_add(1), text.max)
    } else if with.max <= what.min {
        (0, text.max)
    } else {
        (quotient(text.max, what.min), 0)
    };
    let (min_count, min_kept) = if what.max == 0 {
        (text.min.saturating_add(1), text.min)
    } else if what.max <= with.min {
        (0, text.min)
    } else {
        (quotient(text.min, what.max), 0)
    };
    let count = SizeEstimate { min: min_count, max: max_count };
    let kept = SizeEstimate { min: min_kept, max: max_kept };
    let size = count.times(with).plus(kept);
    CallEstimate { cost: text.scaled(2.0 * TRAVERSAL), size: Some(size) }
}

/// Equality of two values of one of Kubernetes' types.
fn equality(args: &[Arg]) -> Option<CallEstimate> {
    let [left, right] = args else { return None };
    let (Type::Opaque(a), Type::Opaque(b)) = (&left.ty, &right.ty) else { return None };
    if a != b {
        return None;
    }
    Some(only(match a {
        Opaque::NamedFormat => CostEstimate { min: 1, max: MAX_FORMAT }.scaled(TRAVERSAL),
        Opaque::Url => {
            let max = right.size.map_or(1, |size| size.max);
            CostEstimate { min: 1, max }.scaled(TRAVERSAL)
        }
        _ => ONE,
    }))
}
