//! Timestamps and durations.
//!
//! Timestamps are those of the years 1 to 9999, durations are nanoseconds in 64 bits, and texts are
//! those of Go: `1h30m`, and RFC 3339.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

use crate::eval::Evaluated;
use crate::op::Op;
use crate::value::{EvalError, V};

/// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z.
const MIN_UNIX: i64 = -62_135_596_800;
const MAX_UNIX: i64 = 253_402_300_799;

const SECOND: i64 = 1_000_000_000;

/// Whole seconds since 1970, rounded down.
pub(super) fn unix_seconds(timestamp: Timestamp) -> i64 {
    let nanos = timestamp.as_nanosecond().div_euclid(i128::from(SECOND));
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

pub(super) fn in_range(timestamp: Timestamp) -> bool {
    (MIN_UNIX..=MAX_UNIX).contains(&unix_seconds(timestamp))
}

pub(super) fn from_unix(seconds: i64) -> Option<Timestamp> {
    let valid = (MIN_UNIX..=MAX_UNIX).contains(&seconds);
    valid.then(|| Timestamp::from_second(seconds).ok()).flatten()
}

/// The timestamp some nanoseconds later, if it is in range.
pub(super) fn shift(timestamp: Timestamp, nanos: i128) -> Option<Timestamp> {
    let shifted = Timestamp::from_nanosecond(timestamp.as_nanosecond() + nanos).ok()?;
    in_range(shifted).then_some(shifted)
}

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
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let whole = digits(rest);
        let (whole_text, mut after) = rest.split_at_checked(whole)?;
        let mut fraction = "";
        if let Some(point) = after.strip_prefix('.') {
            let length = digits(point);
            (fraction, after) = point.split_at_checked(length)?;
        }
        if whole_text.is_empty() && fraction.is_empty() {
            return None;
        }
        let unit_length = after.bytes().take_while(|b| *b != b'.' && !b.is_ascii_digit()).count();
        let (unit, after) = after.split_at_checked(unit_length)?;
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: i128 =
            if whole_text.is_empty() { 0 } else { whole_text.parse::<u64>().ok()?.into() };
        total = total.checked_add(whole.checked_mul(unit)?)?;
        // More digits than fit add less than a nanosecond.
        let kept = fraction.get(..fraction.len().min(18)).unwrap_or_default();
        if !kept.is_empty() {
            let scale = 10_i128.pow(kept.len() as u32);
            total += kept.parse::<i128>().ok()? * unit / scale;
        }
        if total > i128::from(i64::MAX) + 1 {
            return None;
        }
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// Seconds with their fraction and `s`, as Go prints the number.
pub(super) fn show_duration(nanos: i64) -> String {
    format!("{}s", super::convert::float(nanos as f64 / SECOND as f64))
}

/// RFC 3339 in UTC, with as much of the fraction as there is.
pub(super) fn show_timestamp(timestamp: Timestamp) -> String {
    let civil = TimeZone::UTC.to_datetime(timestamp);
    let mut text = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        civil.year(),
        civil.month(),
        civil.day(),
        civil.hour(),
        civil.minute(),
        civil.second()
    );
    let nanos = civil.subsec_nanosecond();
    if nanos > 0 {
        let fraction = format!("{nanos:09}");
        text.push('.');
        text.push_str(fraction.trim_end_matches('0'));
    }
    text.push('Z');
    text
}

/// A timestamp of RFC 3339, in the strict form that Go's `time.RFC3339` reads.
pub(super) fn parse_rfc3339(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let number = |from: usize, length: usize| -> Option<i64> {
        let digits = text.get(from..from + length)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if separators.iter().any(|(at, byte)| bytes.get(*at) != Some(byte)) {
        return None;
    }
    let mut at = 19;
    let mut nanos = 0;
    if matches!(bytes.get(at), Some(b'.' | b',')) {
        let digits = bytes.iter().skip(at + 1).take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        let kept = text.get(at + 1..at + 1 + digits.min(9))?;
        nanos = kept.parse::<i32>().ok()? * 10_i32.pow(9 - kept.len() as u32);
        at += 1 + digits;
    }
    let offset = match bytes.get(at)? {
        b'Z' if bytes.len() == at + 1 => 0,
        sign @ (b'+' | b'-') if bytes.len() == at + 6 && bytes.get(at + 3) == Some(&b':') => {
            let (hours, minutes) = (number(at + 1, 2)?, number(at + 4, 2)?);
            if hours > 24 || minutes > 60 {
                return None;
            }
            let seconds = (hours * 60 + minutes) * 60;
            if *sign == b'-' { -seconds } else { seconds }
        }
        _ => return None,
    };
    let civil = DateTime::new(
        i16::try_from(number(0, 4)?).ok()?,
        i8::try_from(number(5, 2)?).ok()?,
        i8::try_from(number(8, 2)?).ok()?,
        i8::try_from(number(11, 2)?).ok()?,
        i8::try_from(number(14, 2)?).ok()?,
        i8::try_from(number(17, 2)?).ok()?,
        nanos,
    )
    .ok()?;
    let utc = TimeZone::UTC.to_timestamp(civil).ok()?;
    Timestamp::from_nanosecond(utc.as_nanosecond() - i128::from(offset) * i128::from(SECOND)).ok()
}

/// Whether `timestamp(text)` gives a value.
pub(crate) fn is_timestamp(text: &str) -> bool {
    parse_rfc3339(text).is_some_and(in_range)
}

/// A date or a date with a time, as the formats `date` and `date-time` of a schema have them.
pub(crate) fn parse_json_time(text: &str) -> Option<Timestamp> {
    if text.len() == 10 {
        return parse_rfc3339(&format!("{text}T00:00:00Z"));
    }
    // The format takes small letters too.
    parse_rfc3339(text).or_else(|| parse_rfc3339(&text.to_ascii_uppercase()))
}

/// A time zone by its name or as an offset such as `+02:00`.
fn zone(name: &str) -> Result<TimeZone, EvalError> {
    let Some((hours, minutes)) = name.split_once(':') else {
        return match name {
            "" | "UTC" => Ok(TimeZone::UTC),
            _ => TimeZone::get(name)
                .map_err(|_| EvalError::failed(format_args!("unknown time zone {name}"))),
        };
    };
    let number = |text: &str| {
        text.parse::<i32>().map_err(|_| {
            EvalError::failed(format_args!("strconv.Atoi: parsing {text:?}: invalid syntax"))
        })
    };
    let (h, m) = (number(hours)?, number(minutes)?);
    let negative = hours.starts_with('-');
    let seconds = h.checked_mul(3600).and_then(|h| {
        m.checked_mul(if negative { -60 } else { 60 }).and_then(|m| h.checked_add(m))
    });
    seconds
        .and_then(|seconds| Offset::from_seconds(seconds).ok())
        .map(TimeZone::fixed)
        .ok_or_else(|| EvalError::failed(format_args!("unknown time zone {name}")))
}

/// Parts of a timestamp, in UTC or in a zone, and whole units of a duration.
pub(super) fn call<'a>(op: Op, args: &[V<'a>]) -> Evaluated<'a> {
    let (timestamp, zone) = match args {
        [V::Duration(nanos)] => return duration_part(op, *nanos),
        [V::Timestamp(timestamp)] => (*timestamp, TimeZone::UTC),
        [V::Timestamp(timestamp), V::String(name)] => (*timestamp, zone(name)?),
        _ => return Err(EvalError::no_such_overload()),
    };
    let civil = zone.to_datetime(timestamp);
    Ok(V::Int(match op {
        Op::GetFullYear => civil.year().into(),
        Op::GetMonth => i64::from(civil.month()) - 1,
        Op::GetDayOfYear => i64::from(civil.day_of_year()) - 1,
        Op::GetDayOfMonth => i64::from(civil.day()) - 1,
        Op::GetDate => civil.day().into(),
        Op::GetDayOfWeek => civil.weekday().to_sunday_zero_offset().into(),
        Op::GetHours => civil.hour().into(),
        Op::GetMinutes => civil.minute().into(),
        Op::GetSeconds => civil.second().into(),
        _ => i64::from(civil.subsec_nanosecond()) / 1_000_000,
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
