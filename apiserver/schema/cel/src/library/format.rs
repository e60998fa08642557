//! Values as text: `string.format`, and what errors show.

use crate::eval::Evaluated;
use crate::library::{MAX_TEXT, convert, strings, time};
use crate::value::{EvalError, V, steps};

/// Digits behind the point when a clause doesn't say.
const DEFAULT_PRECISION: usize = 6;
/// More digits than a double has; what is beyond is zeros, and hostile.
const MAX_PRECISION: usize = 1_000;

/// A clause of a format: its letter, and the digits behind the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clause {
    pub(crate) letter: char,
    precision: Option<usize>,
}

/// A piece of a format.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'f> {
    Text(&'f str),
    Clause(Clause),
}

/// The next piece of `format` and what is left.
pub(crate) fn piece(format: &str) -> Result<Option<(Piece<'_>, &str)>, String> {
    if format.is_empty() {
        return Ok(None);
    }
    let Some(clause) = format.strip_prefix('%') else {
        let end = format.find('%').unwrap_or(format.len());
        let (text, rest) = format.split_at_checked(end).unwrap_or((format, ""));
        return Ok(Some((Piece::Text(text), rest)));
    };
    if let Some(rest) = clause.strip_prefix('%') {
        return Ok(Some((Piece::Text("%"), rest)));
    }
    if clause.is_empty() {
        return Err("unexpected end of string".to_owned());
    }
    const WHERE: &str = "could not parse formatting clause: error while parsing precision";
    let mut rest = clause;
    let mut precision = None;
    if let Some(digits) = clause.strip_prefix('.') {
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = digits.split_at_checked(length).unwrap_or((digits, ""));
        if after.is_empty() {
            return Err(format!("{WHERE}: could not find end of precision specifier"));
        }
        precision = Some(number.parse().map_err(|_| {
            let what = if number.is_empty() { "invalid syntax" } else { "value out of range" };
            format!(
                "{WHERE}: error while converting precision to integer: strconv.Atoi: parsing \
                 {number:?}: {what}"
            )
        })?);
        rest = after;
    }
    let mut chars = rest.chars();
    let letter = chars.next().unwrap_or(' ');
    if !"sdfebxXo".contains(letter) {
        let text = "could not parse formatting clause: unrecognized formatting clause";
        return Err(format!("{text} \"{letter}\""));
    }
    Ok(Some((Piece::Clause(Clause { letter, precision }), chars.as_str())))
}

/// What a clause says when it isn't for values of a type.
pub(crate) fn clause_error(letter: char, type_name: &str) -> String {
    let what = match letter {
        's' => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, \
             types, durations, and timestamps"
        }
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'o' => "octal clause can only be used on integers",
        _ => "only integers, byte buffers, and strings can be formatted as hex",
    };
    format!("error during formatting: {what}, was given {type_name}")
}

/// `format.format(args)`.
pub(super) fn call<'a>(args: &[V<'a>]) -> Evaluated<'a> {
    let [V::String(format), V::List(values)] = args else {
        return Err(EvalError::no_such_overload());
    };
    let mut out = String::new();
    let mut rest: &str = format;
    let mut at = 0;
    while let Some((piece, after)) = piece(rest).map_err(EvalError::failed)? {
        rest = after;
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Clause(clause) => {
                if at >= values.len() {
                    return Err(EvalError::failed(format_args!("index {at} out of range")));
                }
                let value = values.get(at)?;
                at += 1;
                let text = apply(clause, &value);
                steps::take(0)?;
                let text = text.ok_or_else(|| {
                    EvalError::failed(clause_error(clause.letter, value.type_name()))
                })?;
                out.push_str(&text);
            }
        }
        if out.len() > MAX_TEXT {
            return Err(EvalError::CostLimit);
        }
    }
    Ok(V::string(out))
}

fn apply(clause: Clause, value: &V<'_>) -> Option<String> {
    let precision = clause.precision.unwrap_or(DEFAULT_PRECISION).min(MAX_PRECISION);
    let double = match value {
        V::Double(value) => Some(*value),
        V::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    };
    match (clause.letter, value) {
        ('s', value) => string(value),
        ('d', V::Int(value)) => Some(value.to_string()),
        ('d', V::Uint(value)) => Some(value.to_string()),
        ('f', _) => double.map(|value| grouped(&fixed(value, precision))),
        ('e', _) => double.map(|value| scientific(value, precision)),
        ('b', V::Int(value)) => Some(signed(*value, |value| format!("{value:b}"))),
        ('b', V::Uint(value)) => Some(format!("{value:b}")),
        ('b', V::Bool(value)) => Some(i32::from(*value).to_string()),
        ('o', V::Int(value)) => Some(signed(*value, |value| format!("{value:o}"))),
        ('o', V::Uint(value)) => Some(format!("{value:o}")),
        ('x', V::Int(value)) => Some(signed(*value, |value| format!("{value:x}"))),
        ('X', V::Int(value)) => Some(signed(*value, |value| format!("{value:X}"))),
        ('x', V::Uint(value)) => Some(format!("{value:x}")),
        ('X', V::Uint(value)) => Some(format!("{value:X}")),
        ('x', V::String(text)) => Some(hex(text.as_bytes())),
        ('X', V::String(text)) => Some(hex(text.as_bytes()).to_ascii_uppercase()),
        ('x', V::Bytes(bytes)) => Some(hex(bytes)),
        ('X', V::Bytes(bytes)) => Some(hex(bytes).to_ascii_uppercase()),
        _ => None,
    }
}

fn signed(value: i64, show: impl Fn(u64) -> String) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", show(value.unsigned_abs()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the locale's printer says of numbers that are none.
fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "∞" } else { "-∞" })
    } else {
        None
    }
}

fn fixed(value: f64, precision: usize) -> String {
    special(value).map_or_else(|| format!("{value:.precision$}"), str::to_owned)
}

/// Thousands apart, as in the locale en_US that upstream prints in.
fn grouped(number: &str) -> String {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", number),
    };
    let whole = digits.bytes().take_while(u8::is_ascii_digit).count();
    let mut out = sign.to_owned();
    for (at, c) in digits.chars().enumerate() {
        if at > 0 && at < whole && (whole - at) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Upstream takes the digits for a width, and always writes six behind the point.
fn scientific(value: f64, width: usize) -> String {
    let text = special(value).map_or_else(
        || {
            let text = format!("{value:.DEFAULT_PRECISION$e}");
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ("-", exponent),
                None => ("", exponent),
            };
            format!("{digits}×10{}", superscript(&format!("{sign}{exponent:0>2}")))
        },
        str::to_owned,
    );
    format!("{text:>width$}")
}

fn superscript(exponent: &str) -> String {
    let raised = |c: char| match c {
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        '-' => '⁻',
        other => other,
    };
    exponent.chars().map(raised).collect()
}

/// Steps that each part of a value counts when it is written, so that texts stay small.
const STEPS: u64 = 100;

/// The text of a value for `%s`; none for values that have none, and when the walk is too long.
fn string(value: &V<'_>) -> Option<String> {
    steps::take(STEPS).ok()?;
    Some(match value {
        V::Null => "null".to_owned(),
        V::Bool(value) => value.to_string(),
        V::Int(value) => value.to_string(),
        V::Uint(value) => value.to_string(),
        V::Double(value) => convert::float(*value),
        V::String(text) => (**text).to_owned(),
        V::Bytes(bytes) => String::from_utf8(bytes.to_vec()).ok()?,
        V::Duration(nanos) => time::show_duration(*nanos),
        V::Timestamp(timestamp) => timestamp.to_string(),
        V::Type(ty) => ty.runtime_name().to_owned(),
        V::List(list) => {
            let items: Option<Vec<String>> = list.iter().map(|item| element(&item.ok()?)).collect();
            format!("[{}]", items?.join(", "))
        }
        V::Map(map) => {
            let mut entries = Vec::new();
            for key in map.keys() {
                let value = map.get(&key).ok()??;
                entries.push((element(&key)?, element(&value)?));
            }
            entries.sort();
            let entries: Vec<String> =
                entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            format!("{{{}}}", entries.join(", "))
        }
        _ => return None,
    })
}

/// The text of a part of a list or map.
fn element(value: &V<'_>) -> Option<String> {
    Some(match value {
        V::String(text) => quoted(text),
        V::Bytes(bytes) => format!("b{}", quoted(&String::from_utf8_lossy(bytes))),
        V::Double(value) => match special(*value) {
            Some(_) => format!("\"{}\"", convert::float(*value)),
            None => format!("{value:.DEFAULT_PRECISION$}"),
        },
        V::Duration(nanos) => format!("duration({})", quoted(&time::show_duration(*nanos))),
        V::Timestamp(timestamp) => {
            format!("timestamp({})", quoted(&timestamp.to_string()))
        }
        other => string(other)?,
    })
}

/// A text as Go quotes it.
fn quoted(text: &str) -> String {
    strings::quoted(text, |out, c| match c {
        c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", c as u32)),
        c => out.push(c),
    })
}

/// A value as errors show it.
pub(crate) fn display(value: &V<'_>) -> String {
    string(value).unwrap_or_else(|| value.type_name().to_owned())
}

/// Parts of a value that its text shows.
const MAX_RENDERED: usize = 10_000;

/// A value as text that shows its type.
pub(crate) fn render(value: &V<'_>) -> String {
    let mut left = MAX_RENDERED;
    render_within(value, &mut left)
}

fn render_within(value: &V<'_>, left: &mut usize) -> String {
    let Some(rest) = left.checked_sub(1) else { return "…".to_owned() };
    *left = rest;
    let text = |text: &str| serde_json::Value::from(text).to_string();
    match value {
        V::Null => "null".to_owned(),
        V::Bool(value) => value.to_string(),
        V::Int(value) => value.to_string(),
        V::Uint(value) => format!("{value}u"),
        V::Double(value) if value.is_infinite() => {
            format!("double({}Inf)", if *value > 0.0 { "+" } else { "-" })
        }
        V::Double(value) => format!("double({value})"),
        V::String(value) => text(value),
        V::Bytes(bytes) => format!("b{}", hex(bytes)),
        V::Duration(nanos) => format!("duration({nanos})"),
        V::Timestamp(timestamp) => format!("timestamp({})", timestamp.utc()),
        V::Type(ty) => format!("type({})", ty.runtime_name()),
        V::Optional(None) => "optional.none".to_owned(),
        V::Optional(Some(value)) => format!("optional({})", render_within(value, left)),
        V::Quantity(quantity) => format!("quantity({quantity})"),
        V::Ip(address) => format!("ip({address})"),
        V::Cidr(cidr) => format!("cidr({cidr})"),
        V::Url(url) => format!("url({})", url.text()),
        V::Semver(version) => format!("semver({version})"),
        V::List(list) => {
            let items = list.iter().map(|item| match item {
                Ok(item) => render_within(&item, left),
                Err(error) => format!("error({error})"),
            });
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        V::Map(map) => {
            let mut entries = Vec::new();
            for key in map.keys() {
                if let Ok(Some(value)) = map.get(&key) {
                    entries.push(format!(
                        "{}: {}",
                        render_within(&key, left),
                        render_within(&value, left)
                    ));
                }
            }
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        other => format!("other({})", other.type_name()),
    }
}
