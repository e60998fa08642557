//! The functions: of the language, of the extensions and of Kubernetes.
//!
//! Arguments are evaluated already. A function looks at the types of its values and fails with "no such
//! overload" when it has none for them, as happens where the checker saw `dyn`.

mod addresses;
mod arithmetic;
mod authz;
pub(crate) mod bytes;
pub(crate) mod cidr;
mod convert;
pub(crate) mod format;
mod lists;
pub(crate) mod moment;
pub(crate) mod named_format;
mod optionals;
mod quantities;
pub(crate) mod regexes;
pub(crate) mod semver;
mod sets;
mod strings;
pub(crate) mod time;
pub(crate) mod url;

use regex::Regex;

use crate::eval::{Budget, Evaluated};
use crate::op::Op;
use crate::value::{EvalError, Map, NO_OVERLOAD, V};

/// Bytes of the largest text, and elements of the largest list, that a function makes. Upstream's costs
/// count what some functions read and not what they make; beyond this an evaluation ends as if its
/// budget were spent.
const MAX_TEXT: usize = 8 << 20;
const MAX_ELEMENTS: usize = 4 << 20;

/// Calls a function. `pattern` is the compiled pattern of a call whose pattern is a literal. Work that is
/// larger than its arguments is refused when `budget` can't pay for it.
pub(crate) fn call<'a>(
    op: Op,
    member: bool,
    args: &[V<'a>],
    pattern: Option<&Regex>,
    budget: &Budget,
) -> Evaluated<'a> {
    let result = dispatch(op, member, args, pattern, budget);
    match result {
        Err(EvalError::Failed(text)) if &*text == NO_OVERLOAD => {
            if op == Op::Size {
                return Err(EvalError::failed(format_args!("{NO_OVERLOAD}: size")));
            }
            let known = pattern.is_some();
            let invalid = op == Op::ContainsIp && matches!(args.get(1), Some(V::String(_)));
            if is_operator(op) || known || invalid {
                return Err(EvalError::Failed(text));
            }
            let types: Vec<&str> = args.iter().map(V::type_name).collect();
            let (name, types) = (op.name(), types.join(", "));
            Err(EvalError::failed(format_args!("{NO_OVERLOAD}: {name}({types})")))
        }
        result => result,
    }
}

/// Whether upstream finds the function in the value rather than in a table; errors then name no types.
const fn is_operator(op: Op) -> bool {
    matches!(
        op,
        Op::Add
            | Op::Subtract
            | Op::Multiply
            | Op::Divide
            | Op::Modulo
            | Op::Negate
            | Op::Not
            | Op::Less
            | Op::LessEquals
            | Op::Greater
            | Op::GreaterEquals
            | Op::In
            | Op::Contains
            | Op::StartsWith
            | Op::EndsWith
            | Op::Matches
    )
}

fn dispatch<'a>(
    op: Op,
    member: bool,
    args: &[V<'a>],
    pattern: Option<&Regex>,
    budget: &Budget,
) -> Evaluated<'a> {
    match op {
        Op::Add | Op::Subtract | Op::Multiply | Op::Divide | Op::Modulo | Op::Negate | Op::Not => {
            arithmetic::call(op, args)
        }
        Op::Less | Op::LessEquals | Op::Greater | Op::GreaterEquals => {
            arithmetic::compares(op, args)
        }
        Op::In => contains(args),
        Op::Size => size(args),
        Op::ToBool
        | Op::ToBytes
        | Op::ToDouble
        | Op::ToDuration
        | Op::ToDyn
        | Op::ToInt
        | Op::ToString
        | Op::ToTimestamp
        | Op::TypeOf
        | Op::ToUint => convert::call(op, args),
        Op::GetDate
        | Op::GetDayOfMonth
        | Op::GetDayOfWeek
        | Op::GetDayOfYear
        | Op::GetFullYear
        | Op::GetHours
        | Op::GetMilliseconds
        | Op::GetMinutes
        | Op::GetMonth
        | Op::GetSeconds => time::call(op, args),
        Op::Matches | Op::Find | Op::FindAll => regexes::call(op, args, pattern),
        Op::Format => format::call(args),
        Op::MapInsert => map_insert(args),
        Op::OptionalNone
        | Op::OptionalOf
        | Op::OptionalOfNonZeroValue
        | Op::OptionalUnwrap
        | Op::UnwrapOpt
        | Op::HasValue
        | Op::Value
        | Op::OptionalOr
        | Op::OrValue => optionals::call(op, args),
        Op::SetsContains | Op::SetsEquivalent | Op::SetsIntersects => sets::call(op, args),
        _ => extension(op, member, args, budget),
    }
}

fn extension<'a>(op: Op, member: bool, args: &[V<'a>], budget: &Budget) -> Evaluated<'a> {
    let text = matches!(args.first(), Some(V::String(_)));
    match op {
        Op::IndexOf | Op::LastIndexOf | Op::Reverse if !text => lists::call(op, args, budget),
        Op::CharAt
        | Op::Contains
        | Op::EndsWith
        | Op::StartsWith
        | Op::IndexOf
        | Op::LastIndexOf
        | Op::Join
        | Op::LowerAscii
        | Op::UpperAscii
        | Op::Replace
        | Op::Split
        | Op::Substring
        | Op::Trim
        | Op::StringsQuote
        | Op::EscapeKey => strings::call(op, args),
        Op::Distinct
        | Op::First
        | Op::Last
        | Op::Flatten
        | Op::IsSorted
        | Op::ListsRange
        | Op::Max
        | Op::Min
        | Op::Slice
        | Op::Sort
        | Op::SortByKeys
        | Op::Sum => lists::call(op, args, budget),
        Op::Url
        | Op::IsUrl
        | Op::GetScheme
        | Op::GetHost
        | Op::GetHostname
        | Op::GetPort
        | Op::GetEscapedPath
        | Op::GetQuery => url::call(op, args),
        Op::Quantity
        | Op::IsQuantity
        | Op::AsApproximateFloat
        | Op::AsInteger
        | Op::IsInteger
        | Op::QuantityAdd
        | Op::QuantitySub
        | Op::Sign => quantities::call(op, args),
        Op::CompareTo | Op::IsGreaterThan | Op::IsLessThan => match args.first() {
            Some(V::Semver(_)) => semver::call(op, args),
            _ => quantities::call(op, args),
        },
        Op::Semver | Op::IsSemver | Op::Major | Op::Minor | Op::Patch => semver::call(op, args),
        Op::Validate | Op::FormatNamed => named_format::call(op, args),
        Op::Ip
        | Op::IpIsCanonical
        | Op::IsIp
        | Op::Family
        | Op::IsUnspecified
        | Op::IsLoopback
        | Op::IsLinkLocalMulticast
        | Op::IsLinkLocalUnicast
        | Op::IsGlobalUnicast
        | Op::Cidr
        | Op::IsCidr
        | Op::ContainsIp
        | Op::ContainsCidr
        | Op::PrefixLength
        | Op::Masked => addresses::call(op, args),
        _ if op.name().starts_with("format.") => named_format::constant(op),
        _ if member => authz::call(op, args),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn contains<'a>(args: &[V<'a>]) -> Evaluated<'a> {
    match args {
        [value, V::List(list)] => list.contains(value).map(V::Bool),
        [key, V::Map(map)] => match key {
            V::Bool(_) | V::Int(_) | V::Uint(_) | V::Double(_) | V::String(_) => {
                Ok(V::Bool(matches!(map.get(key), Ok(Some(_)))))
            }
            _ => Ok(V::Bool(false)),
        },
        _ => Err(EvalError::no_such_overload()),
    }
}

fn size<'a>(args: &[V<'a>]) -> Evaluated<'a> {
    match args {
        [value @ (V::String(_) | V::Bytes(_) | V::List(_) | V::Map(_))] => {
            Ok(V::Int(i64::try_from(value.size()).unwrap_or(i64::MAX)))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

/// `cel.@mapInsert` outside of a loop's step.
fn map_insert<'a>(args: &[V<'a>]) -> Evaluated<'a> {
    let exists = |key: &V<'_>| {
        let shown = format::display(key);
        EvalError::failed(format_args!("insert failed: key {shown} already exists"))
    };
    let (map, added) = match args {
        [V::Map(map), key, value] => (map, vec![(key.clone(), value.clone())]),
        [V::Map(map), V::Map(more)] => {
            let mut added = Vec::new();
            for key in more.keys() {
                if let Some(value) = more.get(&key)? {
                    added.push((key, value));
                }
            }
            (map, added)
        }
        _ => return Err(EvalError::no_such_overload()),
    };
    let mut entries = map.clone().into_entries()?;
    let grown = std::sync::Arc::make_mut(&mut entries);
    for (key, value) in added {
        if grown.insert(crate::value::Key::of(&key)?, value).is_some() {
            return Err(exists(&key));
        }
    }
    Ok(V::Map(Map::Owned(entries)))
}
