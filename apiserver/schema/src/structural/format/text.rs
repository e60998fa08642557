//! Formats of texts that are no addresses.

use std::sync::LazyLock;

use regex::Regex;

/// Declares a function that asks whether a text matches an expression, compiled at first use.
macro_rules! expression {
    ($(#[$doc:meta])* $name:ident, $pattern:literal) => {
        $(#[$doc])*
        pub(super) fn $name(text: &str) -> bool {
            static REGEX: LazyLock<Regex> =
                LazyLock::new(|| Regex::new($pattern).expect("the expression is well formed"));
            REGEX.is_match(text)
        }
    };
}

expression!(
    /// Three or six hexadecimal digits.
    is_hex_color,
    r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"
);
expression!(
    /// `rgb(255, 0, 0)`.
    is_rgb_color,
    r"^rgb\([\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*,[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*,[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*\)$"
);
expression!(
    /// Labels with letters, symbols and digits, or one of them alone; the shape only.
    has_hostname_shape,
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
);
expression!(
    /// The digits of a card of the known brands.
    has_card_digits,
    r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
);
expression!(
    /// Time of day with a zone, as RFC 3339 has it after the `t`; any character before a fraction.
    is_time_of_day,
    r"^(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$"
);

/// A host's name: at most 255 bytes, labels of at most 63.
pub(super) fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && has_hostname_shape(text)
}

/// A UUID with or without dashes; of a version if one is given.
pub(super) fn is_uuid(text: &str, version: Option<char>) -> bool {
    let groups = [8, 4, 4, 4, 12];
    let mut rest = text;
    for (at, digits) in groups.into_iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, tail)) = rest.split_at_checked(digits) else { return false };
        if !group.bytes().all(|b| b.is_ascii_hexdigit()) {
            return false;
        }
        let first = group.chars().next();
        let wanted = match (at, version) {
            (2, Some(version)) => first == Some(version),
            (3, Some('4' | '5')) => {
                first.is_some_and(|c| matches!(c, '8' | '9' | 'a' | 'b' | 'A' | 'B'))
            }
            _ => true,
        };
        if !wanted {
            return false;
        }
        rest = tail;
    }
    rest.is_empty()
}

/// An ISBN of ten digits, of which the last may be X.
pub(super) fn is_isbn10(text: &str) -> bool {
    let text = without_spaces(text);
    let digits: Option<Vec<u32>> = text
        .chars()
        .enumerate()
        .map(|(at, c)| if at == 9 && c == 'X' { Some(10) } else { c.to_digit(10) })
        .collect();
    digits.is_some_and(|digits| {
        digits.len() == 10 && (1..).zip(&digits).map(|(n, d)| n * d).sum::<u32>() % 11 == 0
    })
}

/// An ISBN of thirteen digits.
pub(super) fn is_isbn13(text: &str) -> bool {
    let text = without_spaces(text);
    let digits: Option<Vec<u32>> = text.chars().map(|c| c.to_digit(10)).collect();
    digits.is_some_and(|digits| {
        let weights = [1, 3].into_iter().cycle();
        digits.len() == 13 && weights.zip(&digits).map(|(w, d)| w * d).sum::<u32>() % 10 == 0
    })
}

fn without_spaces(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '\t' | '\n' | '\u{c}' | '\r' | ' ' | '-')).collect()
}

/// A card's number with a right check digit, and anything between the digits.
pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let sum = |digits: &str| {
        let values = digits.chars().rev().filter_map(|c| c.to_digit(10)).enumerate();
        let luhn = values.map(|(at, d)| if at % 2 == 1 { d * 2 / 10 + d * 2 % 10 } else { d });
        luhn.sum::<u32>()
    };
    has_card_digits(&digits) && sum(&digits) % 10 == 0
}

/// `123-45-6789` or with spaces.
pub(super) fn is_ssn(text: &str) -> bool {
    text.len() == 11
        && text.char_indices().all(|(at, c)| match at {
            3 | 6 => matches!(c, '-' | ' '),
            _ => c.is_ascii_digit(),
        })
}

/// Standard base64 with padding, of at least one byte.
pub(super) fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && padding <= 2
        && digits.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}

/// A day of the calendar, as `2006-01-02`.
pub(super) fn is_date(text: &str) -> bool {
    let shape = text.len() == 10
        && text.char_indices().all(|(at, c)| match at {
            4 | 7 => c == '-',
            _ => c.is_ascii_digit(),
        });
    let part = |range: std::ops::Range<usize>| text.get(range).and_then(|p| p.parse().ok());
    let day = |year, month, day| {
        // Go counts the year 0, which is a leap year as 2000 is.
        let year: i16 = if year == 0 { 2000 } else { year };
        jiff::civil::Date::new(year, month, day).is_ok()
    };
    shape
        && match (text.get(..4).and_then(|p| p.parse::<i16>().ok()), part(5..7), part(8..10)) {
            (Some(year), Some(m), Some(d)) => day(year, m, d),
            _ => false,
        }
}

/// A day, a `t` and a time with a zone, in either case.
pub(super) fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time_of_day(time)
}

/// Go's durations, or numbers followed by units in words, of which unknown ones are passed over.
pub(super) fn is_duration(text: &str) -> bool {
    crate::coerce::is_duration(text) || has_worded_duration(text)
}

fn has_worded_duration(text: &str) -> bool {
    const WHOLE: [&str; 11] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    const BEGINNINGS: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    let mut rest = text;
    let mut found = false;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let tail = rest.get(start..).unwrap_or_default();
        let unit = tail.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = tail.strip_suffix(unit).unwrap_or_default();
        let spaces = |c: char| matches!(c, '\t' | '\n' | '\u{c}' | '\r' | ' ');
        let unit = unit.trim_start_matches(spaces);
        let after = unit.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == 'µ');
        let word = unit.strip_suffix(after).unwrap_or_default().to_lowercase();
        rest = after;
        if word.is_empty() {
            continue;
        }
        if digits.parse::<i64>().is_err() {
            return false;
        }
        found = found
            || WHOLE.contains(&word.as_str())
            || BEGINNINGS.iter().any(|unit| word.starts_with(unit));
    }
    found
}

/// A DNS label (RFC 1123).
pub(super) fn is_short_name(text: &str) -> bool {
    machinery::name::dns1123_label(text).is_empty()
}

/// A DNS subdomain (RFC 1123).
pub(super) fn is_long_name(text: &str) -> bool {
    machinery::name::dns1123_subdomain(text).is_empty()
}

/// An address of RFC 5322 with or without a name before it, as Go's `mail.ParseAddress` takes it.
pub(super) fn is_email(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    if is_address(text) {
        return true;
    }
    let Some((name, rest)) = text.split_once('<') else { return false };
    let Some(address) = rest.strip_suffix('>') else { return false };
    let name = name.trim_matches([' ', '\t']);
    let quoted = is_quoted(name);
    let phrase = name.split([' ', '\t']).filter(|word| !word.is_empty()).all(|word| {
        is_quoted(word) || word.chars().all(|c| is_atom(c) || c == '.' || !c.is_ascii())
    });
    (name.is_empty() || quoted || phrase) && is_address(address)
}

fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let dot_atom = |text: &str| {
        text.split('.')
            .all(|atom| !atom.is_empty() && atom.chars().all(|c| is_atom(c) || !c.is_ascii()))
    };
    let literal = domain.strip_prefix('[').and_then(|d| d.strip_suffix(']')).is_some_and(|d| {
        super::net::is_ip(d.trim_start_matches("IPv6:"), super::net::Zeros::Refused)
    });
    (dot_atom(local) || is_quoted(local)) && (dot_atom(domain) || literal)
}

fn is_atom(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c)
}

fn is_quoted(text: &str) -> bool {
    let Some(inner) = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) else {
        return false;
    };
    let mut escaped = false;
    let plain = inner.chars().all(|c| {
        let fits =
            if escaped { !c.is_control() } else { c != '"' && (!c.is_control() || c == '\t') };
        escaped = !escaped && c == '\\';
        fits
    });
    plain && !escaped
}
