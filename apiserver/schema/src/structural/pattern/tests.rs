//! Asked from Go's `regexp`.

use proptest::prelude::*;

use super::*;

#[test]
fn refused_as_go_refuses() {
    let cases = [
        ("[abc", "missing closing ]: `[abc`"),
        ("[]", "missing closing ]: `[]`"),
        ("(abc", "missing closing ): `(abc`"),
        ("abc)", "unexpected ): `abc)`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("(*)", "missing argument to repetition operator: `*`"),
        ("|*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a++", "invalid nested repetition operator: `++`"),
        ("x{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("(?!x)", "invalid or unsupported Perl syntax: `(?!`"),
        ("(?=x)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
        ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
        ("(?<=x)", "invalid named capture: `(?<=x)`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\8", r"invalid escape sequence: `\8`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\u00e9", r"invalid escape sequence: `\u`"),
        (r"[\Q]", r"invalid escape sequence: `\Q`"),
        (r"[a-\d]", r"invalid escape sequence: `\d`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        (r"\", "trailing backslash at end of expression: ``"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("a{99999999999}", "invalid repeat count: `{99999999999}`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        (r"\pX", r"invalid character class range: `\pX`"),
    ];
    for (source, expect) in cases {
        let why = Pattern::get(source).unwrap_err();
        assert_eq!(why, format!("error parsing regexp: {expect}"), "{source}");
    }
}

#[test]
fn matches_as_go_matches() {
    let cases = [
        ("^a{,2}$", "a{,2}", true),
        ("^{a}$", "{a}", true),
        ("^[[a]+$", "[a", true),
        (r"^\Q.*\E$", ".*", true),
        (r"^\Q.*\E$", "ab", false),
        (r"^\<\_\-\/$", "<_-/", true),
        (r"^\01$", "\u{1}", true),
        (r"^\x41\x{42}$", "AB", true),
        ("^(?P<1n>a)(?<b>b)$", "ab", true),
        ("^[]a]+$", "]a", true),
        ("^[^]a]$", "b", true),
        (r"^\d$", "٣", false),
        (r"^\w+$", "é", false),
        (r"^[\w.-]+$", "a.b-c", true),
        (r"^\s$", "\u{a0}", false),
        (r"é\b", "é", false),
        (r"\ba", "éa", true),
        ("^[&&~~-]+$", "&~-", true),
        ("^[a&&b]+$", "a&b", true),
        ("^[[:alpha:]_]+$", "a_b", true),
        (r"^\p{Greek}\pL\P{^L}$", "αaa", true),
        ("(?i)^straße$", "STRAßE", true),
        ("(?)a", "a", true),
        ("^(?i:a)b$", "Ab", true),
        ("a$", "a\n", false),
        (r"a\z", "a", true),
        ("(?s)^.$", "\n", true),
        ("^.$", "\n", false),
        ("a}]", "a}]", true),
        ("^a{02}$", "a{02}", true),
        ("", "anything", true),
        ("^*", "", true),
    ];
    for (source, text, expect) in cases {
        let pattern = Pattern::get(source).unwrap();
        assert_eq!(pattern.is_match(text), expect, "{source} on {text:?}");
    }
}

#[test]
fn the_same_pattern_is_one() {
    let (a, b) = (Pattern::get("^one$").unwrap(), Pattern::get("^one$").unwrap());
    assert!(Arc::ptr_eq(&a, &b));
}

#[test]
fn size_is_bounded() {
    let why = Pattern::get(r"((((\pL{100}){100}){100}){100})").unwrap_err();
    assert_eq!(why, "error parsing regexp: expression too large");
}

proptest! {
    #[test]
    fn any_text_is_a_pattern_or_refused(source in ".{0,40}", text in ".{0,10}") {
        if let Ok(pattern) = Pattern::get(&source) {
            pattern.is_match(&text);
        }
    }

    #[test]
    fn what_looks_like_a_pattern_too(source in r"[a\[\](){}^*+?|\\dwpLQEx0-9:,<>P!=-]{0,12}") {
        if let Ok(pattern) = Pattern::get(&source) {
            pattern.is_match("a");
        }
    }
}
