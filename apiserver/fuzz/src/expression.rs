//! Expressions in CEL.

use std::sync::{Arc, LazyLock};

use cel_rules::authorizer::{Authorizer, Decision, Question};
use cel_rules::{
    Budget, DeclType, DeclaredSizes, Env, EvalError, Field, ListSemantics, ObjectType, Opaque,
    Type, UnknownSizes, Value,
};

use crate::document::Input;

/// A tenth of what one rule may cost, so that runs are many.
const LIMIT: u64 = 100_000;

/// Parts of every type, with and without bounds.
static DECL: LazyLock<Arc<DeclType>> = LazyLock::new(|| {
    let text = |most| DeclType::plain(Type::String, most, 2);
    let number = || DeclType::plain(Type::Int, 0, 1);
    let list = |of, semantics| DeclType::list(of, 10, semantics);
    let object = |name: &str, parts: Vec<(&str, Arc<DeclType>)>| {
        let fields = parts.into_iter().map(|(name, decl)| Field {
            name: name.into(),
            json_name: None,
            decl,
            required: false,
        });
        DeclType::object(Arc::new(ObjectType::new(name, fields.collect())), 2)
    };
    let item = object("self.items.@idx", vec![("name", text(10)), ("port", number())]);
    let keyed = ListSemantics::Map(["name".into()].into());
    object(
        "self",
        vec![
            ("s", text(100)),
            ("n", number()),
            ("u", DeclType::plain(Type::Uint, 0, 1)),
            ("f", DeclType::plain(Type::Double, 0, 1)),
            ("y", DeclType::plain(Type::Bool, 0, 4)),
            ("b", DeclType::plain(Type::Bytes, 100, 2)),
            ("t", DeclType::plain(Type::Timestamp, 32, 21)),
            ("w", DeclType::plain(Type::Duration, 32, 3)),
            ("l", list(number(), ListSemantics::Atomic)),
            ("e", list(text(100), ListSemantics::Set)),
            ("items", list(item, keyed)),
            ("m", DeclType::map(text(100), text(cel_rules::decl::UNBOUNDED), 10)),
            ("d", DeclType::dynamic()),
        ],
    )
});

static ENV: LazyLock<Env> = LazyLock::new(|| {
    let authorizer = DeclType::plain(Type::Opaque(Opaque::Authorizer), 0, 1);
    Env::new([
        ("self", Arc::clone(&DECL)),
        ("oldSelf", Arc::clone(&DECL)),
        ("authorizer", authorizer),
    ])
});

/// Allows what is read.
#[derive(Debug)]
struct Readers;

impl Authorizer for Readers {
    fn authorize(&self, question: &Question<'_>) -> Decision {
        Decision { allowed: question.verb == "get", ..Decision::default() }
    }
}

/// A text, a zero, and two documents that it is about.
pub fn cel(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (text, rest) = data.split_at(end);
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(expression) = ENV.compile(text) else { return };
    for estimate in [expression.estimate(&UnknownSizes), expression.estimate(&DeclaredSizes(&DECL))]
    {
        assert!(estimate.min <= estimate.max, "{estimate:?}");
    }
    let Ok(program) = expression.program() else { return };
    let mut input = Input::new(rest.get(1..).unwrap_or_default());
    let documents = [input.document(), input.document()];
    let of = |at: usize| documents.get(at).and_then(|json| Value::from_json(json, &DECL).ok());
    let (Some(new), Some(old)) = (of(0), of(1)) else { return };
    let inputs = [new, old, Value::authorizer(Arc::new(Readers))];
    let run = |limit: u64| {
        let mut budget = Budget::new(limit);
        let result = program.evaluate(&inputs, &mut budget).map(|value| value.render());
        (result, budget.spent())
    };
    let (result, spent) = run(LIMIT);
    match &result {
        Err(EvalError::CostLimit) => assert!(spent > LIMIT),
        _ => {
            assert!(spent <= LIMIT);
            assert_eq!(run(spent), (result, spent), "what is spent is enough");
        }
    }
}
