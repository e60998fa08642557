//! Laws that hold for any text: nothing panics, time and stack are bounded, and what an evaluation
//! spends is held to its budget.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use cel_rules::{
    Budget, DeclType, Env, EvalError, Field, ListSemantics, ObjectType, Program, Record, Type,
    UnknownSizes, Value,
};
use proptest::prelude::*;
use serde_json::json;

/// `self` with a string, an integer, a list, a map and something dynamic.
fn decl() -> Arc<DeclType> {
    let string = || DeclType::plain(Type::String, 100, 2);
    let field =
        |name: &str, decl| Field { name: name.into(), json_name: None, decl, required: false };
    let fields = vec![
        field("s", string()),
        field("n", DeclType::plain(Type::Int, 0, 1)),
        field("l", DeclType::list(DeclType::plain(Type::Int, 0, 1), 10, ListSemantics::Atomic)),
        field("m", DeclType::map(string(), string(), 10)),
        field("d", DeclType::dynamic()),
    ];
    DeclType::object(Arc::new(ObjectType::new("self", fields)), 2)
}

/// Compiles, estimates and evaluates; the cost that was spent, if it came so far.
fn run(text: &str, limit: u64) -> Option<(u64, Result<(), EvalError>)> {
    let decl = decl();
    let env = Env::new([("self", Arc::clone(&decl))]);
    let expression = env.compile(text).ok()?;
    let estimate = expression.estimate(&UnknownSizes);
    assert!(estimate.min <= estimate.max || estimate.max == u64::MAX, "{text}: {estimate:?}");
    let program = expression.program().ok()?;
    let input =
        json!({"s": "text", "n": 7, "l": [3, 1, 2], "m": {"a": "b"}, "d": {"x": [1, "y", null]}});
    let value = Value::from_json(&input, &decl).unwrap();
    let mut budget = Budget::new(limit);
    let result = program.evaluate(&[value], &mut budget).map(|value| drop(value.render()));
    Some((budget.spent(), result))
}

/// Pieces that make expressions when put together, most of them wrong ones.
fn piece() -> impl Strategy<Value = String> {
    let pieces = [
        "self",
        ".s",
        ".n",
        ".l",
        ".m",
        ".d",
        ".nope",
        "['a']",
        "[0]",
        ".?s",
        "[?0]",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        "?",
        ":",
        " + ",
        " - ",
        " * ",
        " / ",
        " % ",
        " == ",
        " < ",
        " && ",
        " || ",
        " in ",
        "!",
        "-",
        "1",
        "2u",
        "1.5",
        "'a'",
        "b'x'",
        "true",
        "null",
        "x",
        ".size()",
        ".all(x, ",
        ".map(x, ",
        ".filter(x, ",
        ".exists(x, ",
        ".sortBy(x, ",
        ".optMap(x, ",
        "has(self.s)",
        "type(",
        "string(",
        "int(",
        "dyn(",
        "duration('1h')",
        "timestamp(0)",
        ".format([",
        ".matches('",
        "')",
        ".split('",
        ".join('",
        ".replace('a', '",
        ".flatten()",
        "lists.range(",
        "sets.contains(",
        "ip('1.2.3.4')",
        "quantity('1')",
        "optional.of(",
        ".transformMap(k, v, ",
        ".distinct()",
        ".sort()",
        ".sum()",
        "\n",
        "\t",
        "ß",
        "\"",
        "'",
        "\\",
        "`",
        "//",
        "0x",
        "9223372036854775807",
        "-9223372036854775808",
        "1e309",
        "__result__",
    ];
    proptest::sample::select(pieces.to_vec()).prop_map(str::to_owned)
}

/// Whole expressions of the kinds that cost.
fn costly() -> impl Strategy<Value = String> {
    let leaf = proptest::sample::select(vec![
        "self.l".to_owned(),
        "[1, 2, 3]".to_owned(),
        "self.s.split('')".to_owned(),
        "lists.range(40)".to_owned(),
        "self.m.map(k, k)".to_owned(),
    ]);
    leaf.prop_recursive(5, 40, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}.map(x, {b}.size())")),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| format!("{a}.filter(x, {b}.size() > 2)")),
            inner.clone().prop_map(|a| format!("dyn({a}).map(x, string(x) + string(x))")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(dyn({a}) + dyn({b}))")),
            inner.clone().prop_map(|a| format!("dyn({a}).distinct()")),
            inner.prop_map(|a| format!("'%s'.format([dyn({a})]).split('')")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_text_is_read(text in ".{0,80}") {
        run(&text, 10_000);
    }

    #[test]
    fn any_tokens_are_read(pieces in proptest::collection::vec(piece(), 0..25)) {
        run(&pieces.concat(), 10_000);
    }

    #[test]
    fn a_budget_holds(text in costly(), limit in 0_u64..20_000) {
        let (spent, result) = run(&text, limit).unwrap();
        match result {
            Err(EvalError::CostLimit) => prop_assert!(spent > limit),
            _ => prop_assert!(spent <= limit),
        }
        // With enough it costs the same each time, and never more than what was enough.
        let (enough, _) = run(&text, u64::MAX).unwrap();
        if enough <= limit {
            prop_assert_eq!(spent, enough);
        } else {
            prop_assert!(spent <= enough);
        }
    }
}

#[test]
fn hostile_texts_are_bounded() {
    let repeat = |text: &str, count: usize| text.repeat(count);
    let nested = |open: &str, inner: &str, close: &str, count: usize| {
        format!("{}{inner}{}", repeat(open, count), repeat(close, count))
    };
    let texts = [
        repeat("(", 99_000),
        repeat("[", 99_000),
        repeat("{1:", 30_000),
        repeat("!", 99_000),
        repeat("-", 99_000),
        repeat("a.", 40_000),
        repeat("a(", 40_000),
        repeat("1?", 40_000),
        repeat("1+", 40_000),
        repeat("true&&", 16_000) + "true",
        repeat("true||", 16_000) + "true",
        repeat("'", 99_000),
        repeat("\\", 99_000),
        nested("[1].all(x, ", "true", ")", 249),
        nested("[1].map(x, ", "x", ")", 249),
        nested("[[1]].map(x, x", "", ")", 249),
        nested("true ? ", "1", " : 2", 200),
        nested("optional.of(1).optMap(x, ", "x", ")", 120),
        format!("optional.of(1){}", repeat(".optMap(x, x)", 240)),
        format!("dyn(self){}", repeat(".d", 240)),
        format!("dyn(self){}", repeat(".?d", 240)),
        format!("dyn(self){}", repeat("[0]", 240)),
        format!("'a'{}", repeat(".replace('a', 'aa')", 200)),
        format!("[1]{}", repeat(".map(x, x)", 200)),
        format!("[{}]", repeat("1,", 40_000)),
        format!("'a'.matches('{}')", repeat("(", 90_000)),
        format!("'a'.matches('{}')", repeat("a{1000}", 10_000)),
        format!("'a'.matches('{}{}')", repeat("(", 1_000), repeat("{1000})", 1_000)),
        "lists.range(9223372036854775807)".to_owned(),
        format!("[1]{}", repeat(".map(x, {x: x})", 60)),
        format!("[[1]]{}", repeat(".map(x, [x, x])", 200)),
        format!("dyn([1]){}.sum()", repeat(".map(x, dyn([x, x]))", 60)),
        format!("'%s'.format([dyn([1]){}])", repeat(".map(x, dyn([x, x]))", 60)),
        format!("dyn([1]){0} == dyn([1]){0}", repeat(".map(x, dyn([x, x]))", 60)),
        format!("dyn([1]){}.isSorted()", repeat(".map(x, dyn({'a': x, 'b': x}))", 60)),
        "'%.999999999f'.format([1.0])".to_owned(),
        "lists.range(1000).map(x, lists.range(1000)).flatten().distinct()".to_owned(),
    ];
    for text in texts {
        let head: String = text.chars().take(40).collect();
        if let Some((spent, result)) = run(&text, 1_000_000) {
            assert!(spent <= 1_000_000 || result == Err(EvalError::CostLimit), "{head}");
        }
    }
}

/// A variable whose fields are expressions that see the next one, as the variables of policies are.
#[derive(Debug)]
struct Link {
    program: Program,
    next: Option<Box<Link>>,
}

impl Record for Link {
    fn field<'s>(&'s self, _: &str) -> Option<Result<Value<'s>, EvalError>> {
        let next = self.next.as_deref().map_or(Value::NULL, |next| Value::record(next));
        Some(self.program.evaluate(&[next], &mut Budget::new(u64::MAX)))
    }
}

/// The last of `texts` is evaluated, and sees the ones before it as fields of `v`.
fn run_nested<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Option<bool>, EvalError> {
    let mut link = None;
    for text in texts {
        let field = |name: &str| Field {
            name: name.into(),
            json_name: None,
            decl: DeclType::plain(Type::Bool, 0, 1),
            required: true,
        };
        let object = ObjectType::new("variables", vec![field("x")]);
        let env = Env::new([("v", DeclType::object(Arc::new(object), 2))]);
        let program = env.compile(text).unwrap().program().unwrap();
        link = Some(Box::new(Link { program, next: link }));
    }
    let value = link.as_ref().unwrap().field("x").unwrap();
    value.map(|value| value.as_bool())
}

#[test]
fn evaluations_inside_others_are_bounded_together() {
    let chain = |count: usize, text: &'static str| {
        run_nested(std::iter::once("true").chain(std::iter::repeat_n(text, count)))
    };
    let too_deep = Err(EvalError::failed("evaluations nest too deeply"));
    assert_eq!(chain(30, "v.x && true"), Ok(Some(true)));
    assert_eq!(chain(1_000, "v.x"), too_deep);
    // The deepest that compile: their stack is what the bound is for.
    let deep = "!".repeat(2) + &"[[1].all(x, ".repeat(60) + "v.x" + &")][0]".repeat(60);
    let deep: &'static str = deep.leak();
    assert_eq!(chain(2, deep), Ok(Some(true)));
    assert_eq!(chain(200, deep), too_deep);
    // What one reads does not begin the count of the other anew.
    let large = format!("dyn([1]){}", ".map(x, dyn([x, x]))".repeat(19));
    let alone = format!("{large}.map(l, lists.range(40).all(i, l == l)) == [true]");
    assert_eq!(run_nested([&*alone]), Err(EvalError::CostLimit));
    let reads = format!("{large}.map(l, lists.range(40).all(i, v.x && l == l)) == [true]");
    assert_eq!(run_nested(["true", &*reads]), Err(EvalError::CostLimit));
}
