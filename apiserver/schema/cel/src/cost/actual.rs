//! What calls cost when they are made.

use crate::cost::{CHECK, REGEX, REQUIREMENT, SELECTOR, TRAVERSAL, scale};
use crate::library::named_format::NamedFormat;
use crate::op::Op;
use crate::value::{V, steps};

/// The cost of a call. `overload` is the one that the checker found, if it found just one; `result` is
/// none if the call failed.
pub(crate) fn actual_cost(
    op: Op,
    overload: Option<&str>,
    args: &[V<'_>],
    result: Option<&V<'_>>,
) -> u64 {
    let cost = overload.and_then(|overload| lists_and_sets(overload, args, result));
    let cost = cost.or_else(|| kubernetes(op, overload, args, result));
    cost.unwrap_or_else(|| standard(op, overload, args))
}

fn size(args: &[V<'_>], at: usize) -> u64 {
    args.get(at).map_or(1, V::size)
}

fn traversal(args: &[V<'_>], at: usize) -> u64 {
    scale(size(args, at), TRAVERSAL)
}

/// Functions of the lists and sets extensions, which go by overload.
fn lists_and_sets(overload: &str, args: &[V<'_>], result: Option<&V<'_>>) -> Option<u64> {
    // A negative depth makes a negative cost, which wraps around as upstream's does.
    let allocating = |factor: f64, size: u64| {
        let cost = size as f64 * factor;
        let cost = if cost < 0.0 { cost as i64 as u64 } else { cost as u64 };
        cost.wrapping_add(11)
    };
    let sets = |factor: u64| size(args, 0).saturating_mul(size(args, 1)).saturating_mul(factor) + 1;
    let compares = |at: usize| {
        let size = size(args, at);
        let texts = match args.get(at) {
            Some(V::List(list)) if list.len() > 0 => {
                matches!(list.get(0), Ok(V::String(_) | V::Bytes(_)))
            }
            _ => false,
        };
        allocating(if texts { 2.0 + TRAVERSAL } else { 2.0 }, size.saturating_mul(size))
    };
    Some(match overload {
        "list_slice" | "lists_range" | "list_reverse" => allocating(1.0, result.map_or(1, V::size)),
        "list_flatten" => allocating(1.0, size(args, 0)),
        "list_flatten_int" => match args.get(1) {
            Some(V::Int(depth)) => allocating(*depth as f64, size(args, 0)),
            _ => return None,
        },
        "list_distinct" => compares(0),
        "list_sets_contains_list" | "list_sets_intersects_list" => sets(1),
        "list_sets_equivalent_list" => sets(2),
        _ if overload.starts_with("list_") && overload.ends_with("_sort") => compares(0),
        _ if overload.starts_with("list_") && overload.ends_with("_sortByAssociatedKeys") => {
            compares(1)
        }
        _ => return None,
    })
}

/// Functions of Kubernetes' libraries, which go by name.
fn kubernetes(
    op: Op,
    overload: Option<&str>,
    args: &[V<'_>],
    result: Option<&V<'_>>,
) -> Option<u64> {
    Some(match op {
        Op::Check => CHECK,
        Op::FieldSelector | Op::LabelSelector => {
            let length = size(args, 1);
            SELECTOR + scale(length, TRAVERSAL) + scale(scale(length, 0.5), REQUIREMENT)
        }
        Op::IsSorted | Op::Sum | Op::Max | Op::Min | Op::IndexOf | Op::LastIndexOf => {
            args.first().map_or(0, tree)
        }
        Op::Url | Op::LowerAscii | Op::UpperAscii | Op::Substring | Op::Trim | Op::EscapeKey => {
            traversal(args, 0)
        }
        Op::Replace | Op::Split | Op::IpIsCanonical => scale(size(args, 0), 2.0 * TRAVERSAL),
        Op::Join => scale(result.map_or(1, V::size), 2.0 * TRAVERSAL),
        Op::Find | Op::FindAll => regex(size(args, 0), size(args, 1)),
        Op::Cidr | Op::IsIp | Op::IsCidr => traversal(args, 0),
        Op::Ip if overload == Some("cidr_ip") => 1,
        Op::Ip => traversal(args, 0),
        Op::ContainsIp => {
            let text =
                if overload == Some("cidr_contains_ip_string") { traversal(args, 1) } else { 0 };
            scale(2 * size(args, 0), TRAVERSAL) + text
        }
        Op::ContainsCidr => {
            let string = overload == Some("cidr_contains_cidr_string");
            let text = if string { traversal(args, 1) } else { 0 };
            scale(2 * size(args, 0), TRAVERSAL) + traversal(args, 0) + 1 + text
        }
        Op::Quantity | Op::IsQuantity | Op::Semver | Op::IsSemver => traversal(args, 0),
        Op::Validate => match args.first() {
            Some(V::Format(format)) => regex(size(args, 1), NamedFormat::max_regex_size(*format)),
            _ => return None,
        },
        Op::Equals if constant_equality(args) => 1,
        _ if is_accessor(op) => 1,
        _ => return None,
    })
}

/// Cost of matching a pattern of `pattern` characters against a text of `text`.
fn regex(text: u64, pattern: u64) -> u64 {
    let text = (text as f64 + 1.0) * TRAVERSAL;
    (text.ceil() as u64).saturating_mul(scale(pattern, REGEX))
}

/// Equality of values of Kubernetes' types.
fn constant_equality(args: &[V<'_>]) -> bool {
    matches!(
        args.first(),
        Some(
            V::Quantity(_)
                | V::Ip(_)
                | V::Cidr(_)
                | V::Format(_)
                | V::Url(_)
                | V::Semver(_)
                | V::Authz(_)
        )
    )
}

/// Functions that only read a part of a value, or step through an authorizer.
pub(crate) const fn is_accessor(op: Op) -> bool {
    matches!(
        op,
        Op::ServiceAccount
            | Op::Path
            | Op::Group
            | Op::Resource
            | Op::Subresource
            | Op::Namespace
            | Op::Name
            | Op::Allowed
            | Op::Reason
            | Op::DecisionError
            | Op::Errored
            | Op::Masked
            | Op::PrefixLength
            | Op::Family
            | Op::IsUnspecified
            | Op::IsLoopback
            | Op::IsLinkLocalMulticast
            | Op::IsLinkLocalUnicast
            | Op::IsGlobalUnicast
            | Op::FormatNamed
            | Op::Sign
            | Op::AsInteger
            | Op::IsInteger
            | Op::AsApproximateFloat
            | Op::IsGreaterThan
            | Op::IsLessThan
            | Op::CompareTo
            | Op::QuantityAdd
            | Op::QuantitySub
            | Op::Major
            | Op::Minor
            | Op::Patch
            | Op::GetScheme
            | Op::GetHostname
            | Op::GetHost
            | Op::GetPort
            | Op::GetEscapedPath
            | Op::GetQuery
    )
}

/// Functions of the language itself, which go by overload.
fn standard(op: Op, overload: Option<&str>, args: &[V<'_>]) -> u64 {
    match op {
        // These have one overload whatever the types are.
        Op::Equals | Op::NotEquals => {
            return scale(size(args, 0).min(size(args, 1)), TRAVERSAL);
        }
        _ => {}
    }
    match overload {
        Some(
            "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
            | "strings_quote" | "string_format",
        ) => traversal(args, 0),
        Some("in_list") => size(args, 1),
        Some(
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes",
        ) => scale(size(args, 0).min(size(args, 1)), TRAVERSAL),
        Some("add_string" | "add_bytes") => {
            scale(size(args, 0).saturating_add(size(args, 1)), TRAVERSAL)
        }
        Some("matches_string") => regex(size(args, 0), size(args, 1)),
        Some("contains_string") => traversal(args, 0).saturating_mul(traversal(args, 1)),
        _ => 1,
    }
}

/// Cost of reading a value with all that is in it. A walk that is too long costs more than there is.
fn tree(value: &V<'_>) -> u64 {
    if steps::take(1).is_err() {
        return u64::MAX;
    }
    let sum = |sum: u64, cost: u64| sum.saturating_add(cost);
    match value {
        V::String(text) => (text.len() as f64 * TRAVERSAL) as u64,
        V::Bytes(bytes) => (bytes.len() as f64 * TRAVERSAL) as u64,
        V::List(list) => list.iter().map(|item| item.map_or(1, |item| tree(&item))).fold(0, sum),
        V::Map(map) => {
            let entry = |key: &V<'_>| match map.get(key) {
                Ok(Some(value)) => tree(key).saturating_add(tree(&value)),
                _ => tree(key),
            };
            map.keys().iter().map(entry).fold(0, sum)
        }
        _ => 1,
    }
}
