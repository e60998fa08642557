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
