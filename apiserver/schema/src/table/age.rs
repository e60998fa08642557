//! Durations as kubectl prints them.

use jiff::Timestamp;
use machinery::time::Time;
use serde_json::Value;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// What is shown where there is no time.
pub(super) const UNKNOWN: &str = "<unknown>";
/// What is shown of a text that is no time, and of times in the future.
pub(super) const INVALID: &str = "<invalid>";

/// How long ago a time was; `<unknown>` when there is no time.
pub(super) fn since(time: Option<&Value>, now: Timestamp) -> String {
    let parsed = time.and_then(Value::as_str).and_then(|text| Time::parse(text).ok());
    match parsed {
        None => UNKNOWN.to_owned(),
        Some(time) => {
            // Whole seconds, cut towards zero as upstream cuts them.
            let elapsed = now.as_millisecond().saturating_sub(time.timestamp().as_millisecond());
            human_duration(elapsed / 1000)
        }
    }
}

/// A duration in seconds as kubectl prints it: two units at most, fewer as it grows.
///
/// Slightly negative ones are `0s` (clocks differ), others `<invalid>`.
pub fn human_duration(seconds: i64) -> String {
    let pair = |first: i64, unit: char, rest: i64, small: char| {
        if rest == 0 { format!("{first}{unit}") } else { format!("{first}{unit}{rest}{small}") }
    };
    match seconds {
        ..-1 => INVALID.to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => pair(seconds / MINUTE, 'm', seconds % MINUTE, 's'),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => pair(seconds / HOUR, 'h', seconds % HOUR / MINUTE, 'm'),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => pair(seconds / DAY, 'd', seconds % DAY / HOUR, 'h'),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => pair(seconds / YEAR, 'y', seconds % YEAR / DAY, 'd'),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let cases = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (11_100, "3h5m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (183_600, "2d3h"),
            (691_200, "8d"),
            (YEAR * 2, "2y"),
            (YEAR * 3 + DAY * 4, "3y4d"),
            (YEAR * 9, "9y"),
            (i64::MAX, "292471208677y"),
        ];
        for (seconds, text) in cases {
            assert_eq!(human_duration(seconds), text, "{seconds}");
        }
    }
}
