//! How long an answer may take, and Go's way to write such times.

use std::time::Duration;

use super::debug;
use super::query::Query;
use super::request_info::{RequestInfo, Verb};
use crate::registry::Error;

/// Longest time for an answer other than a watch; also that of a request which does not say.
const MAX_TIME: Duration = Duration::from_secs(60);

/// How long an answer may take: `timeout=`, at most a minute; a watch has times of its own, and so has
/// a profile.
pub(super) fn time_limit(info: &RequestInfo<'_>, query: &Query<'_>) -> Result<Duration, Error> {
    if info.resource.is_none() && info.path == debug::PROFILE {
        return Ok(debug::LONGEST_PROFILE + MAX_TIME);
    }
    let text = query.text("timeout");
    if text.is_empty() || info.verb == Verb::Watch {
        return Ok(MAX_TIME);
    }
    match parse_duration(text) {
        Some(Duration::ZERO) => Ok(MAX_TIME),
        Some(limit) => Ok(limit.min(MAX_TIME)),
        // A negative one is none.
        None if text.strip_prefix('-').and_then(parse_duration).is_some() => Ok(MAX_TIME),
        None => Err(Error::bad_request(format!(
            "invalid timeout specified in the request URL - time: invalid duration {text:?}"
        ))),
    }
}

/// Go's duration syntax, as `1m30s` or `1.5h`; `None` for anything else and for negative ones.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    let mut total = 0.0_f64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at_checked(digits)?;
        let units = [
            ("ns", 1e-9),
            ("us", 1e-6),
            ("µs", 1e-6),
            ("ms", 1e-3),
            ("s", 1.0),
            ("m", 60.0),
            ("h", 3600.0),
        ];
        let (unit, seconds) = units.iter().find(|(unit, _)| after.starts_with(unit))?;
        total += number.parse::<f64>().ok()? * seconds;
        rest = after.strip_prefix(unit)?;
    }
    (!text.is_empty()).then(|| Duration::try_from_secs_f64(total).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_go_s() {
        let check = |text: &str, expect: Option<u64>| {
            assert_eq!(parse_duration(text), expect.map(Duration::from_millis), "{text}");
        };
        check("0", Some(0));
        check("32s", Some(32_000));
        check("1m30s", Some(90_000));
        check("1.5h", Some(5_400_000));
        check("250ms", Some(250));
        check("+1s", Some(1000));
        for bad in ["", "5", "s", "-5s", "1x", "1..2s", "s1", "9e99s", "99999999999999999999999h"] {
            check(bad, None);
        }
    }
}
