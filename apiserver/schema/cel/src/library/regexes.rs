//! Regular expressions, of the RE2 dialect.

mod translate;

use regex::{Regex, RegexBuilder};

use crate::eval::Evaluated;
use crate::op::Op;
use crate::value::{EvalError, V};

use translate::translate;

/// Bytes that a compiled pattern may take.
const MAX_SIZE: usize = 2 << 20;

/// Compiles a pattern of Go's dialect.
pub(crate) fn compile(pattern: &str) -> Result<Regex, EvalError> {
    let error =
        |text: &str| EvalError::failed(format_args!("error parsing regexp: {text}: `{pattern}`"));
    if pattern.len() > MAX_SIZE {
        return Err(error("expression too large"));
    }
    let translated = translate(pattern).map_err(EvalError::failed)?;
    RegexBuilder::new(&translated)
        .size_limit(MAX_SIZE)
        .dfa_size_limit(MAX_SIZE)
        .nest_limit(200)
        .build()
        .map_err(|err| match err {
            regex::Error::CompiledTooBig(_) => error("expression too large"),
            _ => error("invalid character class range"),
        })
}

pub(super) fn call<'a>(op: Op, args: &[V<'a>], known: Option<&Regex>) -> Evaluated<'a> {
    let (V::String(text), V::String(pattern)) = (
        args.first().ok_or_else(EvalError::no_such_overload)?,
        args.get(1).ok_or_else(EvalError::no_such_overload)?,
    ) else {
        return Err(EvalError::no_such_overload());
    };
    let compiled;
    let regex = match known {
        Some(regex) => regex,
        None => {
            compiled = compile(pattern).map_err(|error| match op {
                Op::Matches => error,
                _ => EvalError::failed(format_args!("Illegal regex: {error}")),
            })?;
            &compiled
        }
    };
    match (op, args.get(2)) {
        (Op::Matches, None) => Ok(V::Bool(regex.is_match(text))),
        (Op::Find, None) => Ok(V::string(regex.find(text).map_or("", |found| found.as_str()))),
        (Op::FindAll, None) => Ok(find_all(regex, text, usize::MAX)),
        (Op::FindAll, Some(V::Int(limit))) => {
            Ok(find_all(regex, text, usize::try_from(*limit).unwrap_or(usize::MAX)))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn find_all<'a>(regex: &Regex, text: &str, limit: usize) -> V<'a> {
    let found = regex.find_iter(text).take(limit);
    V::list(found.map(|found| V::string(found.as_str())).collect())
}
