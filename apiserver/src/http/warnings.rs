//! `Warning` headers.

use http::header::WARNING;
use http::{HeaderMap, HeaderValue};

/// All warnings of one answer stay below this, in bytes.
const MAX_TOTAL: usize = 4096;

/// When that is passed, each is cut to this length.
const MAX_EACH: usize = 256;

/// Adds a `Warning: 299 - "text"` header for each text. Beyond 4 KiB in total, texts are cut, and
/// then left out.
pub(crate) fn add(headers: &mut HeaderMap, texts: &[String]) {
    let total: usize = texts.iter().map(|text| text.len() + 10).sum();
    let mut left = MAX_TOTAL;
    for text in texts {
        let text = if total > MAX_TOTAL { cut(text) } else { text };
        let value = value_of(text);
        if value.len() > left {
            break;
        }
        left -= value.len();
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            headers.append(WARNING, value);
        }
    }
}

fn cut(text: &str) -> &str {
    let end = (0..=MAX_EACH.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

fn value_of(text: &str) -> String {
    let mut value = String::with_capacity(text.len() + 10);
    value.push_str("299 - \"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                value.push('\\');
                value.push(letter);
            }
            // Nothing that could end the line.
            control if control.is_control() => value.push(' '),
            other => value.push(other),
        }
    }
    value.push('"');
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(texts: &[&str]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        add(&mut headers, &texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        let text = |value: &HeaderValue| String::from_utf8(value.as_bytes().to_vec()).unwrap();
        headers.get_all(WARNING).iter().map(text).collect()
    }

    #[test]
    fn texts_are_quoted() {
        assert_eq!(check(&["unknown field \"a\""]), ["299 - \"unknown field \\\"a\\\"\""]);
        assert_eq!(check(&["a\\b\r\nX: y"]), ["299 - \"a\\\\b  X: y\""]);
        assert_eq!(check(&["é"]), ["299 - \"é\""]);
    }

    #[test]
    fn the_total_is_bounded() {
        let long = "é".repeat(3000);
        let headers = check(&[&long, "b"]);
        assert!(headers[0].len() < MAX_EACH + 10 && headers.len() == 2);
        let many = vec!["x".repeat(200); 100];
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(check(&many).iter().map(String::len).sum::<usize>() <= MAX_TOTAL);
    }
}
