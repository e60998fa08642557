//! Quantities: texts, numbers, order.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, expect: &str) {
    assert_eq!(Quantity::parse(text).map(|q| q.to_string()).as_deref(), Ok(expect), "{text:?}");
}

#[test]
fn canonical_texts() {
    for same in [
        "0", "1", "-1", "100m", "1500m", "1n", "5u", "12k", "3M", "1023", "1Ki", "1025Ki", "12e6",
        "1e-3", "1Ei", "500E",
    ] {
        check(same, same);
    }
    for (text, canonical) in [
        ("1.5", "1500m"),
        ("0.5", "500m"),
        ("00012", "12"),
        ("+3", "3"),
        ("1000", "1k"),
        ("1000000m", "1k"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("0.0001Ki", "102400u"),
        ("1000Ki", "1000Ki"),
        ("1e1", "10"),
        ("1E6", "1e6"),
        ("123E-1", "12300e-3"),
        ("0.0000000001", "1n"),
        ("-0.0000000001", "-1n"),
        ("1.0000000001", "1000000001n"),
        ("9Ei", "9223372036854775807"),
        ("-9Ei", "-9223372036854775807"),
        ("99999999999999999999999999999999999999999999Ei", "9223372036854775807"),
        ("0Ki", "0"),
        ("-", "0"),
        ("k", "0"),
        (".", "0"),
        ("0e999999999", "0"),
        ("1e-999999999", "1e-9"),
    ] {
        check(text, canonical);
    }
}

#[test]
fn no_quantities() {
    use InvalidQuantity::{Format, Number, Suffix, TooLarge};
    for (text, expect) in [
        ("", Format),
        (" 1", Format),
        ("1 ", Format),
        ("1.2.3", Format),
        ("--1", Suffix),
        ("é", Format),
        ("1x", Format),
        ("1ki", Suffix),
        ("1KiKi", Suffix),
        ("1m3", Suffix),
        ("1e", Suffix),
        ("1ee3", Suffix),
        ("1e99999999999999999999", Suffix),
        ("Ei", Number),
        ("-e-10", Number),
        ("1e40", TooLarge),
        ("1e9223372036854775807", TooLarge),
    ] {
        assert_eq!(Quantity::parse(text).map(|q| q.to_string()), Err(expect), "{text:?}");
    }
}

#[test]
fn whole_and_milli_values() {
    let q = |text| Quantity::parse(text).unwrap();
    assert_eq!(q("1.1").value(), Some(2));
    assert_eq!(q("-1.1").value(), Some(-2));
    assert_eq!(q("2Ki").value(), Some(2048));
    assert_eq!(q("1.5").milli_value(), Some(1500));
    assert_eq!(q("1e20").value(), None);
    assert_eq!(Quantity::new(5, Notation::BinarySi).to_string(), "5");
    assert_eq!(Quantity::from_milli(1500, Notation::DecimalSi), q("1.5"));
}

#[test]
fn sums_keep_the_notation_of_the_first() {
    let q = |text| Quantity::parse(text).unwrap();
    assert_eq!(q("1Ki").checked_add(q("1k")).unwrap().to_string(), "2024");
    assert_eq!(q("1Ki").checked_add(q("1024")).unwrap().to_string(), "2Ki");
    assert_eq!(Quantity::ZERO.checked_add(q("2048Mi")).unwrap().to_string(), "2Gi");
    assert_eq!(q("1").checked_sub(q("100m")).unwrap().to_string(), "900m");
    let huge = q("1e29");
    assert_eq!(huge.checked_add(huge).and_then(|q| q.checked_add(huge)), None);
    assert!(q("-1") < q("-999m") && q("1Ki") > q("1k") && q("0.001") == q("1m"));
}

proptest! {
    #[test]
    fn texts_round_trip(digits in "[+-]?[0-9]{0,12}(\\.[0-9]{0,12})?", suffix in
        "(n|u|m||k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e[0-9]|E-[0-9])")
    {
        let Ok(q) = Quantity::parse(&format!("{digits}{suffix}")) else { return Ok(()) };
        let again = Quantity::parse(&q.to_string()).unwrap();
        prop_assert_eq!(again, q);
        prop_assert_eq!(again.to_string(), q.to_string());
    }

    #[test]
    fn numbers_keep_order_and_sum(a: i64, b: i64) {
        let q = |v| Quantity::new(v, Notation::DecimalSi);
        prop_assert_eq!(q(a).cmp(&q(b)), a.cmp(&b));
        let sum = q(a).checked_add(q(b)).unwrap();
        prop_assert_eq!(sum.checked_sub(q(b)), Some(q(a)));
        prop_assert_eq!(Quantity::parse(&a.to_string()), Ok(q(a)));
    }

    #[test]
    fn no_text_panics(text: String, shaped in "[-+.0-9eEinumkKMGTP]{0,60}") {
        for text in [text, shaped] {
            if let Ok(q) = Quantity::parse(&text) {
                q.to_string();
            }
        }
    }
}
