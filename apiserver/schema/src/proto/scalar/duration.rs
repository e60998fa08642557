//! Durations as Go writes and reads them: `1h0m0.5s`, `1.5ms`, `0s`.

const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Go's text for a number of nanoseconds.
pub(super) fn print(nanos: i64) -> String {
    let amount = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    match amount {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{amount}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", decimal(amount, 1_000)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", decimal(amount, 1_000_000)),
        _ => {
            let (minutes, rest) = (amount / 60_000_000_000, amount % 60_000_000_000);
            let (hours, minutes) = (minutes / 60, minutes % 60);
            let mut text = sign.to_owned();
            if hours > 0 {
                text += &format!("{hours}h");
            }
            if hours > 0 || minutes > 0 {
                text += &format!("{minutes}m");
            }
            text + &decimal(rest, 1_000_000_000) + "s"
        }
    }
}

/// Go's `time.ParseDuration`, in nanoseconds; `None` for anything that it doesn't read.
pub(super) fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total = 0_i128;
    loop {
        let (whole, after) = digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let whole = if whole.is_empty() { 0 } else { i128::from(whole.parse::<u64>().ok()?) };
        total += whole * scale;
        let mut place = *scale;
        for digit in fraction.bytes() {
            place /= 10;
            total += i128::from(digit - b'0') * place;
        }
        if total > i128::from(i64::MAX) + 1 {
            return None;
        }
        rest = after;
        if rest.is_empty() {
            return i64::try_from(if negative { -total } else { total }).ok();
        }
    }
}

/// `amount / unit` with as many decimals as it needs.
fn decimal(amount: u64, unit: u64) -> String {
    let (whole, rest) = (amount / unit, amount % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    let fraction = format!("{rest:0width$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_of_go() {
        let second = 1_000_000_000;
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (3_300_000_000, "3.3s"),
            (90 * second, "1m30s"),
            (3_600 * second, "1h0m0s"),
            (-(24 * 3_600 * second + 1), "-24h0m0.000000001s"),
            (i64::MAX, "2562047h47m16.854775807s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(print(nanos), text);
            assert_eq!(parse(text), Some(nanos), "{text}");
        }
    }

    #[test]
    fn reads_what_go_reads() {
        for (text, nanos) in [
            ("0", Some(0)),
            ("+5s", Some(5_000_000_000)),
            (".5s", Some(500_000_000)),
            ("1.s", Some(1_000_000_000)),
            ("1h1h", Some(7_200_000_000_000)),
            ("1us1µs1μs", Some(3_000)),
            ("", None),
            ("3", None),
            ("s", None),
            (".s", None),
            ("1d", None),
            ("1s ", None),
            ("--1s", None),
            ("9223372036854775808ns", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(parse(text), nanos, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_parsing_agree(nanos in any::<i64>()) {
            prop_assert_eq!(parse(&print(nanos)), Some(nanos));
        }
    }
}
