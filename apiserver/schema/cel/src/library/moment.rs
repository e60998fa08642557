//! A point in time, with the offset that it was written with.

use std::cmp::Ordering;

/// Nanoseconds of a second.
pub(crate) const SECOND: i64 = 1_000_000_000;

/// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z.
const MIN: i64 = -62_135_596_800;
const MAX: i64 = 253_402_300_799;

const DAY: i64 = 86_400;

/// A point in time. The offset only shows when it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Since 1970, rounded down.
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
    offset: i32,
}

/// A date and the time of its day.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    /// From 0.
    pub(crate) day_of_year: i64,
    /// 0 is Sunday.
    pub(crate) weekday: i64,
    pub(crate) second_of_day: i64,
}

impl PartialEq for Moment {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Moment {}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

impl Moment {
    /// Seconds since 1970, if that is in range.
    pub(crate) fn from_unix(seconds: i64) -> Option<Self> {
        (MIN..=MAX).contains(&seconds).then_some(Self { seconds, nanos: 0, offset: 0 })
    }

    /// Whether the year is one of 1 to 9999.
    pub(crate) fn in_range(self) -> bool {
        (MIN..=MAX).contains(&self.seconds)
    }

    /// Whether it is Go's zero time.
    pub(crate) const fn is_zero(self) -> bool {
        self.seconds == MIN && self.nanos == 0
    }

    fn total(self) -> i128 {
        i128::from(self.seconds) * i128::from(SECOND) + i128::from(self.nanos)
    }

    /// The time `nanos` later, if it is in range.
    pub(crate) fn shift(self, nanos: i128) -> Option<Self> {
        let total = self.total() + nanos;
        let seconds = i64::try_from(total.div_euclid(SECOND.into())).ok()?;
        let nanos = u32::try_from(total.rem_euclid(SECOND.into())).ok()?;
        let moment = Self { seconds, nanos, offset: self.offset };
        moment.in_range().then_some(moment)
    }

    /// Nanoseconds since `earlier`, if 64 bits hold them.
    pub(crate) fn since(self, earlier: Self) -> Option<i64> {
        i64::try_from(self.total() - earlier.total()).ok()
    }

    /// The date and time where clocks are `ahead` of UTC by some seconds.
    pub(crate) fn civil(self, ahead: i64) -> Civil {
        let local = self.seconds + ahead;
        let days = local.div_euclid(DAY);
        // Years of this reckoning begin in March, so that leap days come last.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let from_march = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let index = (5 * from_march + 2) / 153;
        let month = if index < 10 { index + 3 } else { index - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Civil {
            year,
            month,
            day: from_march - (153 * index + 2) / 5 + 1,
            day_of_year: days - days_to(year, 1, 1),
            weekday: (days + 4).rem_euclid(7),
            second_of_day: local.rem_euclid(DAY),
        }
    }

    /// A time of RFC 3339, in the strict form that Go's `time.RFC3339` reads.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let number = |from: usize, length: usize| -> Option<i64> {
            let digits = text.get(from..from + length)?;
            if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
        };
        let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
        if separators.iter().any(|(at, byte)| bytes.get(*at) != Some(byte)) {
            return None;
        }
        let mut at = 19;
        let mut nanos = 0;
        if matches!(bytes.get(at), Some(b'.' | b',')) {
            let digits = bytes.iter().skip(at + 1).take_while(|b| b.is_ascii_digit()).count();
            let kept = text.get(at + 1..at + 1 + digits.min(9)).filter(|kept| !kept.is_empty())?;
            nanos = kept.parse::<u32>().ok()? * 10_u32.pow(9 - kept.len() as u32);
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
        let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
        let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
        let valid = (1..=12).contains(&month)
            && (1..=days_in(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        if !valid {
            return None;
        }
        let local = days_to(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
        Some(Self { seconds: local - offset, nanos, offset: i32::try_from(offset).ok()? })
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date.
fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let from_march = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + from_march - 719_468
}

/// RFC 3339, with as much of the fraction as there is.
impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let civil = self.civil(self.offset.into());
        let second = civil.second_of_day;
        write!(f, "{:04}-{:02}-{:02}", civil.year, civil.month, civil.day)?;
        write!(f, "T{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)?;
        if self.nanos > 0 {
            let fraction = format!("{:09}", self.nanos);
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        if self.offset == 0 {
            return f.write_str("Z");
        }
        let sign = if self.offset < 0 { '-' } else { '+' };
        let minutes = self.offset.unsigned_abs() / 60;
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

impl Moment {
    /// The same time, written in UTC.
    pub(crate) const fn utc(self) -> Self {
        Self { offset: 0, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::Moment;

    #[test]
    fn times_are_read_and_written() {
        let check = |text: &str, expect: Option<&str>| {
            let shown = Moment::parse(text).map(|moment| moment.to_string());
            assert_eq!(shown.as_deref(), expect, "{text}");
        };
        check("2024-02-29T13:14:15Z", Some("2024-02-29T13:14:15Z"));
        check("2024-02-29T13:14:15.120+02:30", Some("2024-02-29T13:14:15.12+02:30"));
        check("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z"));
        check("9999-12-31T23:59:59.999999999Z", Some("9999-12-31T23:59:59.999999999Z"));
        check("1969-12-31T23:59:59-00:00", Some("1969-12-31T23:59:59Z"));
        check("2023-02-29T00:00:00Z", None);
        check("2023-01-01T24:00:00Z", None);
        check("2023-01-01T00:00:00", None);
        check("2023-01-01T00:00:00.Z", None);
    }

    #[test]
    fn days_are_counted() {
        let mut seconds = -62_135_596_800;
        let mut before = Moment::from_unix(seconds).unwrap().civil(0);
        while seconds < 253_402_300_799 - 86_400 * 13 {
            // Thirteen days at a time meets all days of months and weeks.
            seconds += 86_400 * 13;
            let moment = Moment::from_unix(seconds).unwrap();
            let civil = moment.civil(0);
            assert_eq!((before.weekday + 13) % 7, civil.weekday);
            assert!((civil.year, civil.month, civil.day) > (before.year, before.month, before.day));
            assert_eq!(Moment::parse(&moment.to_string()), Some(moment));
            before = civil;
        }
    }
}
