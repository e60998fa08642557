//! Times as Kubernetes writes them: RFC 3339 in UTC, with seconds or with microseconds.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

/// `metav1.Time`: prints whole seconds, as `2026-01-02T03:04:05Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(Timestamp);

/// `metav1.MicroTime`: prints six decimals, as `2026-01-02T03:04:05.000006Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MicroTime(Timestamp);

/// Why a text is no time.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is no time of RFC 3339")]
pub struct InvalidTime(pub String);

// === impl Time ===

impl Time {
    /// The time, cut to whole seconds as it is printed.
    pub fn at(now: Timestamp) -> Self {
        Self(floor(now, 1_000_000_000))
    }

    /// Parses RFC 3339 with any offset and any fraction, which is cut off.
    ///
    /// # Errors
    /// [`InvalidTime`] for anything else.
    pub fn parse(text: &str) -> Result<Self, InvalidTime> {
        let parsed = parse(text, |_| true).ok_or_else(|| InvalidTime(text.to_owned()))?;
        Ok(Self::at(parsed))
    }

    /// The moment.
    pub fn timestamp(self) -> Timestamp {
        self.0
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_seconds(f, Offset::UTC.to_datetime(self.0))?;
        f.write_str("Z")
    }
}

// === impl MicroTime ===

impl MicroTime {
    /// The time, cut to microseconds as it is printed.
    pub fn at(now: Timestamp) -> Self {
        Self(floor(now, 1_000))
    }

    /// Parses RFC 3339 with any offset and exactly six decimals, which is all that upstream takes.
    ///
    /// # Errors
    /// [`InvalidTime`] for anything else.
    pub fn parse(text: &str) -> Result<Self, InvalidTime> {
        let parsed = parse(text, |decimals| decimals == 6);
        parsed.map(Self).ok_or_else(|| InvalidTime(text.to_owned()))
    }

    /// The moment.
    pub fn timestamp(self) -> Timestamp {
        self.0
    }
}

impl fmt::Display for MicroTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = Offset::UTC.to_datetime(self.0);
        write_seconds(f, time)?;
        write!(f, ".{:06}Z", time.subsec_nanosecond() / 1_000)
    }
}

fn write_seconds(f: &mut fmt::Formatter<'_>, t: DateTime) -> fmt::Result {
    let (date, time) = (t.date(), t.time());
    write!(f, "{:04}-{:02}-{:02}T", date.year(), date.month(), date.day())?;
    write!(f, "{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second())
}

/// Cuts to a multiple of `unit` nanoseconds towards the past, as printing does.
fn floor(at: Timestamp, unit: i128) -> Timestamp {
    let nanoseconds = at.as_nanosecond();
    // Only the very first second of the range can fall out of it.
    Timestamp::from_nanosecond(nanoseconds - nanoseconds.rem_euclid(unit)).unwrap_or(at)
}

/// `YYYY-MM-DDThh:mm:ss[.fraction](Z|±hh:mm)`; the number of decimals must suit `decimals`.
fn parse(text: &str, decimals: fn(usize) -> bool) -> Option<Timestamp> {
    let (seconds, rest) = text.split_at_checked("YYYY-MM-DDThh:mm:ss".len())?;
    let fields = seconds.as_bytes();
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if separators.iter().any(|(at, byte)| fields.get(*at) != Some(byte)) {
        return None;
    }
    let year = i16::try_from(number(seconds.get(..4)?)?).ok()?;
    let two = |at: usize| i8::try_from(number(seconds.get(at..at + 2)?)?).ok();
    let (nanoseconds, count, offset) = fraction(rest)?;
    if !decimals(count) {
        return None;
    }
    let local = DateTime::new(year, two(5)?, two(8)?, two(11)?, two(14)?, two(17)?, nanoseconds);
    parse_offset(offset)?.to_timestamp(local.ok()?).ok()
}

/// Nanoseconds, the number of decimals, and what follows them.
fn fraction(text: &str) -> Option<(i32, usize, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Some((0, 0, text)) };
    let count = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = rest.split_at_checked(count)?;
    let mut nanoseconds = 0;
    for position in 0..9 {
        let digit = digits.as_bytes().get(position).map_or(0, |b| i32::from(b - b'0'));
        nanoseconds = nanoseconds * 10 + digit;
    }
    (count > 0).then_some((nanoseconds, count, rest))
}

fn parse_offset(text: &str) -> Option<Offset> {
    if text == "Z" {
        return Some(Offset::UTC);
    }
    let sign = match text.bytes().next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    if hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    Offset::from_seconds(sign * i32::from(hours * 60 + minutes) * 60).ok()
}

/// Digits only: no sign, no space.
fn number(digits: &str) -> Option<u16> {
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<&str>) {
        assert_eq!(Time::parse(text).ok().map(|t| t.to_string()).as_deref(), expect, "{text:?}");
    }

    #[test]
    fn seconds() {
        check("2020-01-02T03:04:05Z", Some("2020-01-02T03:04:05Z"));
        check("2020-01-02T03:04:05.999999999999Z", Some("2020-01-02T03:04:05Z"));
        check("2020-01-02T00:30:05+01:00", Some("2020-01-01T23:30:05Z"));
        check("1969-12-31T23:59:59.5Z", Some("1969-12-31T23:59:59Z"));
        check("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z"));
        for bad in [
            "",
            "2020-01-02",
            "2020-01-02 03:04:05Z",
            "2020-01-02T03:04:05",
            "2020-13-02T03:04:05Z",
            "2020-02-30T03:04:05Z",
            "2020-01-02T24:04:05Z",
            "2020-01-02T03:04:60Z",
            "2020-01-02T03:04:05.Z",
            "2020-01-02T03:04:05z",
            "2020-01-02T03:04:05+0100",
            "2020-01-02T03:04:05Z ",
            "+020-01-02T03:04:05Z",
            "2020-01-02T03:04:05+25:00",
        ] {
            check(bad, None);
        }
    }

    #[test]
    fn microseconds() {
        let text = "2020-01-02T03:04:05.000006Z";
        assert_eq!(MicroTime::parse(text).unwrap().to_string(), text);
        assert!(MicroTime::parse("2020-01-02T03:04:05Z").is_err());
        assert!(MicroTime::parse("2020-01-02T03:04:05.0000061Z").is_err());
        let before = Timestamp::from_nanosecond(-1).unwrap();
        assert_eq!(MicroTime::at(before).to_string(), "1969-12-31T23:59:59.999999Z");
        assert_eq!(Time::at(before).to_string(), "1969-12-31T23:59:59Z");
    }

    proptest! {
        #[test]
        fn round_trip(nanoseconds in -60_000_000_000_000_000_000_i128..250_000_000_000_000_000_000) {
            let at = Timestamp::from_nanosecond(nanoseconds).unwrap();
            let (time, micro) = (Time::at(at), MicroTime::at(at));
            prop_assert_eq!(Time::parse(&time.to_string()), Ok(time));
            prop_assert_eq!(MicroTime::parse(&micro.to_string()), Ok(micro));
            prop_assert!(time.timestamp() <= micro.timestamp() && micro.timestamp() <= at);
        }

        #[test]
        fn no_text_panics(text in "[0-9]{4}-[0-9é]{2}-[0-9]{2}T.{0,20}", other: String) {
            for text in [text, other] {
                prop_assert!(Time::parse(&text).is_ok() || MicroTime::parse(&text).is_err());
            }
        }
    }
}
