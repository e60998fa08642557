//! Name rules of RFC 1123, RFC 1035 and of labels, with upstream's messages.
//!
//! Each rule returns every problem that it finds; an empty answer means that the name is good.
//! Clients match on these texts, so they are kube-apiserver's to the letter.

/// Longest DNS label, label name and label value, in bytes.
pub const MAX_LABEL: usize = 63;
/// Longest DNS subdomain, in bytes.
pub const MAX_SUBDOMAIN: usize = 253;
/// Longest base that [`generate_name`] keeps, in bytes: a label less the suffix.
pub const MAX_GENERATED_BASE: usize = MAX_LABEL - SUFFIX_LENGTH;

const SUFFIX_LENGTH: usize = 5;
/// No vowels and no digits that look like them, so that no word comes out by accident.
const SUFFIX_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

const DNS1123_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS1123_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS1035_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const CONFIG_MAP_KEY: &str = "[-._a-zA-Z0-9]+";

/// A DNS label of RFC 1123: at most 63 of `[a-z0-9-]`, no dash at either end.
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > MAX_LABEL {
        problems.push(max_characters(MAX_LABEL));
    }
    if !is_dns1123_label(value) {
        if is_dns1123_subdomain(value) {
            problems.push("must not contain dots".into());
        } else {
            problems.push(pattern(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
                 or '-', and must start and end with an alphanumeric character",
                DNS1123_LABEL,
                &["my-name", "123-abc"],
            ));
        }
    }
    problems
}

/// A DNS subdomain of RFC 1123: labels joined by dots, at most 253 bytes together.
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > MAX_SUBDOMAIN {
        problems.push(max_characters(MAX_SUBDOMAIN));
    }
    problems.extend(subdomain_problem(value));
    problems
}

/// A DNS label of RFC 1035: as RFC 1123's, and it begins with a letter (Services, CRD plurals).
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > MAX_LABEL {
        problems.push(max_characters(MAX_LABEL));
    }
    let begins_with_letter = value.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
    if !(begins_with_letter && is_dns1123_label(value)) {
        problems.push(pattern(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character",
            DNS1035_LABEL,
            &["my-name", "abc-123"],
        ));
    }
    problems
}

/// Anything that is one segment of a path: not `.` or `..`, no `/` and no `%` in it.
///
/// The empty name passes, as upstream's `IsValidPathSegmentName` lets it.
pub fn path_segment(value: &str) -> Vec<String> {
    if value == "." || value == ".." {
        return vec![format!("may not be '{value}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|part| value.contains(**part))
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

/// A label key, annotation key or finalizer: `[subdomain/]name`.
pub fn qualified_name(value: &str) -> Vec<String> {
    const MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must \
                           start and end with an alphanumeric character";
    const EXAMPLES: &[&str] = &["MyName", "my.name", "123-abc"];
    let mut problems = Vec::new();
    let name = match value.split_once('/') {
        None => value,
        Some((_, rest)) if rest.contains('/') => {
            let rule = pattern(MESSAGE, LABEL_KEY, EXAMPLES);
            return vec![format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')"
            )];
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".into());
            } else {
                if prefix.len() > MAX_SUBDOMAIN {
                    problems.push(format!("prefix part {}", max_bytes(MAX_SUBDOMAIN)));
                }
                problems.extend(subdomain_problem(prefix).map(|p| format!("prefix part {p}")));
            }
            name
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".into());
    } else if name.len() > MAX_LABEL {
        problems.push(format!("name part {}", max_bytes(MAX_LABEL)));
    }
    if !is_label_key_name(name) {
        problems.push(format!("name part {}", pattern(MESSAGE, LABEL_KEY, EXAMPLES)));
    }
    problems
}

/// A label's value: empty, or at most 63 bytes of the characters of a label's name.
pub fn label_value(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > MAX_LABEL {
        problems.push(max_bytes(MAX_LABEL));
    }
    if !value.is_empty() && !is_label_key_name(value) {
        problems.push(pattern(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character",
            LABEL_VALUE,
            &["MyValue", "my_value", "12345"],
        ));
    }
    problems
}

/// A key of a ConfigMap's or Secret's data: `[-._a-zA-Z0-9]+`, at most 253 bytes, and nothing
/// that means another directory when the data is mounted as files.
pub fn config_map_key(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > MAX_SUBDOMAIN {
        problems.push(max_characters(MAX_SUBDOMAIN));
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if value.is_empty() || !value.bytes().all(allowed) {
        problems.push(pattern(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            CONFIG_MAP_KEY,
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match value {
        "." => problems.push("must not be '.'".into()),
        ".." => problems.push("must not be '..'".into()),
        _ if value.starts_with("..") => problems.push("must not start with '..'".into()),
        _ => {}
    }
    problems
}

/// The name that `generateName: base` gets: the base, cut to [`MAX_GENERATED_BASE`] bytes, and
/// five characters chosen by `random`.
pub fn generate_name(base: &str, random: &mut dyn FnMut() -> u32) -> String {
    // A cut inside a character would be no text: the whole character goes.
    let kept = base.floor_char_boundary(MAX_GENERATED_BASE);
    let mut name = String::with_capacity(kept + SUFFIX_LENGTH);
    name.extend(base.get(..kept));
    for _ in 0..SUFFIX_LENGTH {
        // The product spreads all 32 bits over the alphabet; the high half is the index.
        let index = (u64::from(random()) * SUFFIX_ALPHABET.len() as u64) >> 32;
        let letter = SUFFIX_ALPHABET.get(index as usize).copied().unwrap_or(b'b');
        name.push(char::from(letter));
    }
    name
}

fn subdomain_problem(value: &str) -> Option<String> {
    let problem = || {
        pattern(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character",
            DNS1123_SUBDOMAIN,
            &["example.com"],
        )
    };
    (!is_dns1123_subdomain(value)).then(problem)
}

/// The limit of names; the same limit of labels is told in bytes, for no good reason.
fn max_characters(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

fn max_bytes(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

fn pattern(message: &str, regex: &str, examples: &[&str]) -> String {
    let mut text = format!("{message} (e.g. ");
    for (index, example) in examples.iter().enumerate() {
        if index > 0 {
            text.push_str(" or ");
        }
        text.push('\'');
        text.push_str(example);
        text.push_str("', ");
    }
    text.push_str("regex used for validation is '");
    text.push_str(regex);
    text.push_str("')");
    text
}

fn is_dns1123_label(value: &str) -> bool {
    let bytes = value.as_bytes();
    let inner = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-';
    matches!((bytes.first(), bytes.last()), (Some(a), Some(z)) if *a != b'-' && *z != b'-')
        && bytes.iter().all(inner)
}

fn is_dns1123_subdomain(value: &str) -> bool {
    value.split('.').all(is_dns1123_label)
}

fn is_label_key_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let inner = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let ends = (bytes.first(), bytes.last());
    matches!(ends, (Some(a), Some(z)) if a.is_ascii_alphanumeric() && z.is_ascii_alphanumeric())
        && bytes.iter().all(inner)
}

#[cfg(test)]
mod tests;
