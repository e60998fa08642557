//! What Go says about texts that are no time.

/// Go's layout of `metav1.Time`, in its parts.
const SECONDS: [&str; 12] =
    ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05", "Z07:00"];

/// The message of Go's `time.Parse` for a text that doesn't parse, with microseconds or without.
pub(super) fn complaint(text: &str, micro: bool) -> String {
    let layout =
        if micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    let mut rest = text;
    let mut date = [0_u32; 3];
    for part in SECONDS {
        if part == "Z07:00" {
            match fraction(rest, micro) {
                Some(after) => rest = after,
                None => return cannot(text, layout, rest, ".000000"),
            }
        }
        let Some((number, after)) = take(part, rest) else {
            return cannot(text, layout, rest, part);
        };
        let range = match part {
            "01" => Some(("month", 1..=12)),
            "15" => Some(("hour", 0..=23)),
            "04" => Some(("minute", 0..=59)),
            "05" => Some(("second", 0..=59)),
            _ => None,
        };
        if let Some((name, range)) = range
            && !range.contains(&number)
        {
            return format!("parsing time {text:?}: {name} out of range");
        }
        match part {
            "2006" => date[0] = number,
            "01" => date[1] = number,
            "02" => date[2] = number,
            _ => {}
        }
        rest = after;
    }
    if !rest.is_empty() {
        return format!("parsing time {text:?}: extra text: {rest:?}");
    }
    if !(1..=days(date[0], date[1])).contains(&date[2]) {
        return format!("parsing time {text:?}: day out of range");
    }
    format!("parsing time {text:?} as {layout:?}: cannot parse {text:?}")
}

fn cannot(text: &str, layout: &str, rest: &str, part: &str) -> String {
    format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}")
}

/// Reads one part of the layout: its number, and what follows.
fn take<'t>(part: &str, rest: &'t str) -> Option<(u32, &'t str)> {
    match part {
        "-" | "T" | ":" => Some((0, rest.strip_prefix(part)?)),
        "Z07:00" => {
            if let Some(after) = rest.strip_prefix('Z') {
                return Some((0, after));
            }
            let zone = rest.strip_prefix(['+', '-'])?;
            let (_, after) = digits(zone, 2)?;
            let (_, after) = digits(after.strip_prefix(':')?, 2)?;
            Some((0, after))
        }
        digit_part => digits(rest, digit_part.len()),
    }
}

fn digits(text: &str, count: usize) -> Option<(u32, &str)> {
    let (number, rest) = text.split_at_checked(count)?;
    let all = number.bytes().all(|b| b.is_ascii_digit());
    all.then_some(()).and_then(|()| Some((number.parse().ok()?, rest)))
}

/// What follows the fraction: exactly six decimals with microseconds, else any or none.
fn fraction(rest: &str, micro: bool) -> Option<&str> {
    let decimals = rest
        .strip_prefix('.')
        .map_or(0, |text| text.bytes().take_while(u8::is_ascii_digit).count());
    match (micro, decimals) {
        (true, 6) => rest.get(7..),
        (true, _) => None,
        (false, 0) => Some(rest),
        (false, count) => rest.get(count + 1..),
    }
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
