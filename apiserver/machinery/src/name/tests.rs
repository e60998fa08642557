//! Names, good and bad, and the exact words about the bad ones.

use proptest::prelude::*;

use super::*;

type Rule = fn(&str) -> Vec<String>;

const RULES: [Rule; 7] = [
    dns1123_label,
    dns1123_subdomain,
    dns1035_label,
    path_segment,
    qualified_name,
    label_value,
    config_map_key,
];

#[track_caller]
fn check(rule: Rule, name: &str, expect: &[&str]) {
    assert_eq!(rule(name), expect, "{name:?}");
}

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
    characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  \
    or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or \
    '-', start with an alphabetic character, and end with an alphanumeric character (e.g. \
    'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
    '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, \
    '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
    'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' \
    or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
    '[-._a-zA-Z0-9]+')";

#[test]
fn labels() {
    for good in ["a", "0", "a-b", &"a".repeat(63)] {
        check(dns1123_label, good, &[]);
    }
    for bad in ["", "-a", "a-", "A", "a_b", "é", "a..b", ".", "a\n"] {
        check(dns1123_label, bad, &[LABEL]);
    }
    check(dns1123_label, "a.b", &["must not contain dots"]);
    check(dns1123_label, &"a".repeat(64), &["must be no more than 63 characters"]);
    check(dns1035_label, "a1", &[]);
    for bad in ["1a", "", "a.b", "-"] {
        check(dns1035_label, bad, &[LABEL_1035]);
    }
}

#[test]
fn subdomains() {
    for good in ["a", "a.b", "1.2-3.c", &"a".repeat(253)] {
        check(dns1123_subdomain, good, &[]);
    }
    for bad in ["", ".a", "a.", "a..b", "a.-b", "A.b", "a/b"] {
        check(dns1123_subdomain, bad, &[SUBDOMAIN]);
    }
    check(dns1123_subdomain, &"a".repeat(254), &["must be no more than 253 characters"]);
}

#[test]
fn path_segments() {
    for good in ["a", "A:b", "...", "", "é"] {
        check(path_segment, good, &[]);
    }
    check(path_segment, ".", &["may not be '.'"]);
    check(path_segment, "..", &["may not be '..'"]);
    check(path_segment, "a%/", &["may not contain '/'", "may not contain '%'"]);
}

#[test]
fn qualified_names() {
    for good in ["a", "A.b_c-d", "example.com/A", "kubernetes.io/arch"] {
        check(qualified_name, good, &[]);
    }
    check(qualified_name, "-", &[NAME_PART]);
    check(qualified_name, "", &["name part must be non-empty", NAME_PART]);
    check(qualified_name, "/a", &["prefix part must be non-empty"]);
    check(qualified_name, "A/a", &[&format!("prefix part {SUBDOMAIN}")]);
    check(qualified_name, &"a".repeat(64), &["name part must be no more than 63 bytes"]);
    let long = format!("{}/a", "a".repeat(254));
    check(qualified_name, &long, &["prefix part must be no more than 253 bytes"]);
    let twice = NAME_PART.replacen("name part", "a valid label key", 1)
        + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
    check(qualified_name, "a/b/c", &[&twice]);
}

#[test]
fn values_and_keys() {
    for good in ["", "a", "A_b.c-1"] {
        check(label_value, good, &[]);
    }
    check(label_value, "a/b", &[VALUE]);
    check(label_value, &"a".repeat(64), &["must be no more than 63 bytes"]);
    for good in ["a", "-", "_.-A1"] {
        check(config_map_key, good, &[]);
    }
    check(config_map_key, "", &[CONFIG_KEY]);
    check(config_map_key, ".", &["must not be '.'"]);
    check(config_map_key, "..", &["must not be '..'"]);
    check(config_map_key, "..a", &["must not start with '..'"]);
}

#[test]
fn generated_names() {
    let mut next = 0_u32;
    let mut random = || {
        next = next.wrapping_add(0x3333_3333);
        next
    };
    let name = generate_name("web-", &mut random);
    assert_eq!(name.len(), 9);
    assert!(name.starts_with("web-"), "{name}");
    assert_eq!(generate_name("a", &mut || 0), "abbbbb");
    assert_eq!(generate_name("a", &mut || u32::MAX), "a99999");
    assert_eq!(generate_name(&"a".repeat(80), &mut || 0), format!("{}bbbbb", "a".repeat(58)));
    // The 58th byte lies inside the character.
    let base = format!("{}é", "a".repeat(57));
    assert_eq!(generate_name(&base, &mut || 0), format!("{}bbbbb", "a".repeat(57)));
}

proptest! {
    #[test]
    fn rules_imply_each_other(text in "[a-z0-9.A-Z_/-]{0,70}") {
        if dns1035_label(&text).is_empty() {
            prop_assert!(dns1123_label(&text).is_empty());
        }
        if dns1123_label(&text).is_empty() {
            prop_assert!(dns1123_subdomain(&text).is_empty());
            prop_assert!(label_value(&text).is_empty());
            prop_assert!(qualified_name(&text).is_empty());
            prop_assert!(config_map_key(&text).is_empty());
        }
        if dns1123_subdomain(&text).is_empty() {
            prop_assert!(path_segment(&text).is_empty());
        }
    }

    #[test]
    fn generated_names_stay_names(base in "[a-z][a-z-]{0,80}", seed: u32) {
        let mut state = seed;
        let name = generate_name(&base, &mut || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state
        });
        prop_assert!(dns1035_label(&name).is_empty(), "{name}");
    }

    #[test]
    fn no_text_panics(text: String) {
        for rule in RULES {
            rule(&text);
        }
        generate_name(&text, &mut || 7);
    }
}
