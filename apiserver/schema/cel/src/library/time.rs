//! Timestamps and durations.
//!
//! Timestamps are those of the years 1 to 9999, durations are nanoseconds in 64 bits, and texts are
//! those of Go: `1h30m`, and RFC 3339.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::eval::Evaluated;
use crate::library::moment::{Moment, SECOND};
use crate::op::Op;
use crate::value::{EvalError, V};

/// Go's notation of a duration: numbers with units `ns`, `us`, `ms`, `s`, `m` and `h`.
pub(crate) fn parse_go_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (nanos, after) = duration_unit(rest)?;
        total = total.checked_add(nanos)?;
        if total > i128::from(i64::MAX) + 1 {
            return None;
        }
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// The first number and unit of a duration in nanoseconds, and what follows.
fn duration_unit(text: &str) -> Option<(i128, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, mut after) = text.split_at_checked(digits(text))?;
    let mut fraction = "";
    if let Some(point) = after.strip_prefix('.') {
        (fraction, after) = point.split_at_checked(digits(point))?;
    }
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let length = after.bytes().take_while(|b| *b != b'.' && !b.is_ascii_digit()).count();
    let (unit, after) = after.split_at_checked(length)?;
    let unit: i128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut nanos = i128::from(whole).checked_mul(unit)?;
    // More digits than these add less than a nanosecond.
    let kept = fraction.get(..fraction.len().min(18))?;
    if !kept.is_empty() {
        nanos += kept.parse::<i128>().ok()? * unit / 10_i128.pow(kept.len() as u32);
    }
    Some((nanos, after))
}

/// A duration as an OpenAPI schema's format has it: Go's notation, or numbers with longer units.
pub(crate) fn parse_json_duration(text: &str) -> Option<i64> {
    parse_go_duration(text)
}

/// Seconds with their fraction and `s`.
pub(super) fn show_duration(nanos: i64) -> String {
    format!("{}s", nanos as f64 / SECOND as f64)
}

/// A date or a date with a time, as the formats `date` and `date-time` of a schema have them.
pub(crate) fn parse_json_time(text: &str) -> Option<Moment> {
    if text.len() == 10 {
        return Moment::parse(&format!("{text}T00:00:00Z"));
    }
    // The format takes small letters too.
    Moment::parse(text).or_else(|| Moment::parse(&text.to_ascii_uppercase()))
}

/// Whether `timestamp(text)` gives a value.
pub(crate) fn is_timestamp(text: &str) -> bool {
    Moment::parse(text).is_some_and(Moment::in_range)
}

/// Seconds that a time zone, given by its name or as `+02:00`, is ahead of UTC at some time.
fn offset(name: &str, at: Moment) -> Result<i64, EvalError> {
    let Some((hours, minutes)) = name.split_once(':') else {
        if matches!(name, "" | "UTC") {
            return Ok(0);
        }
        let zone = TimeZone::get(name)
            .map_err(|_| EvalError::failed(format_args!("unknown time zone {name}")))?;
        // The zone data ends a few hours before the last timestamp.
        let seconds = at.seconds.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
        let at = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
        return Ok(zone.to_offset(at).seconds().into());
    };
    let number = |text: &str| {
        text.parse::<i32>().map(i64::from).map_err(|_| {
            EvalError::failed(format_args!("strconv.Atoi: parsing {text:?}: invalid syntax"))
        })
    };
    let (h, m) = (number(hours)?, number(minutes)?);
    Ok(h * 3600 + if hours.starts_with('-') { -m * 60 } else { m * 60 })
}

/// Parts of a timestamp, in UTC or in a zone, and whole units of a duration.
pub(super) fn call<'a>(op: Op, args: &[V<'a>]) -> Evaluated<'a> {
    let (moment, ahead) = match args {
        [V::Duration(nanos)] => return duration_part(op, *nanos),
        [V::Timestamp(moment)] => (*moment, 0),
        [V::Timestamp(moment), V::String(name)] => (*moment, offset(name, *moment)?),
        _ => return Err(EvalError::no_such_overload()),
    };
    let civil = moment.civil(ahead);
    Ok(V::Int(match op {
        Op::GetFullYear => civil.year,
        Op::GetMonth => civil.month - 1,
        Op::GetDayOfYear => civil.day_of_year,
        Op::GetDayOfMonth => civil.day - 1,
        Op::GetDate => civil.day,
        Op::GetDayOfWeek => civil.weekday,
        Op::GetHours => civil.second_of_day / 3600,
        Op::GetMinutes => civil.second_of_day / 60 % 60,
        Op::GetSeconds => civil.second_of_day % 60,
        _ => i64::from(moment.nanos) / 1_000_000,
    }))
}

fn duration_part<'a>(op: Op, nanos: i64) -> Evaluated<'a> {
    let unit = match op {
        Op::GetHours => 3600 * SECOND,
        Op::GetMinutes => 60 * SECOND,
        Op::GetSeconds => SECOND,
        Op::GetMilliseconds => 1_000_000,
        _ => return Err(EvalError::no_such_overload()),
    };
    Ok(V::Int(nanos / unit))
}
