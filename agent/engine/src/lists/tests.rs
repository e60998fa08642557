//! Tables and laws of merged lists.

use proptest::prelude::*;

use super::*;

const LIST: &str = "/spec/items";

fn ways() -> Vec<Way> {
    vec![Way::parse(LIST).unwrap()]
}

fn object(items: &Value, owned: bool) -> Value {
    let fields = if owned { json!({"f:spec": {"f:items": {}}}) } else { json!({}) };
    json!({
        "metadata": {"managedFields": [
            {"manager": "kcp-syncer", "operation": "Apply", "fieldsV1": fields},
        ]},
        "spec": {"items": items},
    })
}

fn locator(added: Option<&[&str]>) -> Locator {
    let added = added.map(|added| {
        let marks = added.iter().map(|item| mark(&json!(item)).into()).collect();
        BTreeMap::from([(LIST.to_owned(), marks)])
    });
    Locator {
        hub: "h".into(),
        cluster: "c".into(),
        namespace: String::new(),
        name: "n".into(),
        uid: String::new(),
        copy: String::new(),
        generation: 1,
        resource_version: String::new(),
        digest: String::new(),
        added,
    }
}

fn wanted(items: &[&str]) -> Option<Wanted> {
    Wanted::take(&ways(), &mut json!({"spec": {"items": items}}))
}

/// What is said of the list, and what of it is ours then.
fn said(merged: &Merged) -> (Option<Value>, Vec<String>) {
    let list = merged.values[0].clone().map(Value::from);
    (list, merged.added.get(LIST).cloned().unwrap_or_default())
}

/// What is there, whether we own it, what of it was ours, what the hub has; what is applied, what is ours
/// then.
type Case<'a> =
    (&'a [&'a str], bool, &'a [&'a str], &'a [&'a str], Option<&'a [&'a str]>, &'a [&'a str]);

/// Where nothing is applied (`None`), nothing is said of the list.
#[test]
fn merging() {
    let cases: &[Case<'_>] = &[
        // Nothing is there.
        (&[], false, &[], &[], None, &[]),
        (&[], false, &[], &["a"], Some(&["a"]), &["a"]),
        // Others' stay.
        (&["x"], false, &[], &["a"], Some(&["x", "a"]), &["a"]),
        (&["x", "a"], true, &["a"], &["a"], Some(&["x", "a"]), &["a"]),
        (&["x", "a"], true, &["a"], &["b"], Some(&["x", "b"]), &["b"]),
        (&["x", "a"], true, &["a"], &[], Some(&["x"]), &[]),
        (&["x"], false, &[], &[], None, &[]),
        // It is the only thing, and goes by not being said.
        (&["a"], true, &["a"], &[], None, &[]),
        // It was there before us: it is not ours, and stays.
        (&["a"], false, &[], &["a"], None, &[]),
        (&["a", "b"], true, &["b"], &["a"], Some(&["a"]), &[]),
        // What was ours is gone, by others' doing.
        (&["x"], false, &["a"], &["a"], Some(&["x", "a"]), &["a"]),
        (&["x"], false, &["a"], &[], None, &[]),
        // Left by what we were before; it is left to be.
        (&["x"], true, &[], &[], Some(&["x"]), &[]),
    ];
    for (there, owned, ours, hub, list, added) in cases {
        let name = format!("{there:?} {owned} {ours:?} {hub:?}");
        let held =
            Held::of(&ways(), &object(&json!(there), *owned), Some(&locator(Some(ours))), None);
        let merged = Merged::of(&ways(), wanted(hub).as_ref(), held.as_ref());
        let marks: Vec<String> = added.iter().map(|item| mark(&json!(item)).into()).collect();
        assert_eq!(said(&merged), (list.map(|list| json!(list)), marks), "{name}");
    }
}

/// An agent of before has applied the whole list, and its locator says nothing of it.
#[test]
fn lists_of_an_older_agent() {
    let of = |owned: bool| {
        let held =
            Held::of(&ways(), &object(&json!(["a", "b"]), owned), Some(&locator(None)), None);
        said(&Merged::of(&ways(), wanted(&["a"]).as_ref(), held.as_ref()))
    };
    assert_eq!(of(true), (Some(json!(["a"])), vec![mark(&json!("a")).into()]));
    assert_eq!(of(false), (None, vec![]), "others have changed it since");
}

/// Somebody has taken the locator off: what was known of the copy counts.
#[test]
fn lists_without_a_locator() {
    let there = object(&json!(["a"]), true);
    let known = Held::of(&ways(), &there, Some(&locator(Some(&["a"]))), None);
    assert_eq!(Held::of(&ways(), &there, None, known.as_ref()), known);
    let stranger = Held::of(&ways(), &there, None, None);
    assert_eq!(said(&Merged::of(&ways(), None, stranger.as_ref())).0, Some(json!(["a"])));
}

#[test]
fn nothing_else_is_taken_out() {
    let whole = object(&json!(["a"]), true);
    let rest = apart(&ways(), &whole);
    assert_eq!(rest["spec"], json!({}));
    let fields = fields::ours(&rest).unwrap();
    assert!(fields.is_empty(), "an empty field would be owned whole: {fields:?}");
    for odd in [json!(null), json!({"spec": 1}), json!({"spec": {"items": {"a": 1}}})] {
        assert_eq!(Held::of(&ways(), &odd, None, None), None, "{odd}");
        assert_eq!(Wanted::take(&ways(), &mut odd.clone()), None, "{odd}");
    }
}

#[test]
fn places_of_lists() {
    assert_eq!(Way::parse("/a/b~1c").unwrap().names, ["a", "b/c"]);
    for wrong in ["", "a", "/", "/a/", "/a/*/b"] {
        assert_eq!(Way::parse(wrong), None, "{wrong}");
    }
}

proptest! {
    /// Once merged nothing is to do; all of the hub's and of others' is there; what comes at the hub
    /// goes again and leaves what was there before.
    #[test]
    fn laws(
        theirs in prop::collection::btree_set("[a-d]", 0..4),
        hub in prop::collection::btree_set("[a-f]", 0..4),
        later in prop::collection::btree_set("[a-f]", 0..4),
    ) {
        let list = |items: &std::collections::BTreeSet<String>| {
            let items: Vec<&str> = items.iter().map(String::as_str).collect();
            wanted(&items)
        };
        let mut there = object(&json!(theirs), false);
        let mut held = Held::of(&ways(), &there, None, None);
        for step in [&hub, &later, &Default::default()] {
            let merged = Merged::of(&ways(), list(step).as_ref(), held.as_ref());
            let next = Locator { added: Some(merged.added.clone()), ..locator(None) };
            let said = merged.values[0].is_some();
            let owned = fields::ours(&there).is_some_and(|ours| !ours.is_empty());
            if said {
                there = object(&json!(merged.values[0]), true);
            } else if owned {
                there = object(&json!([]), false);
            }
            held = Held::of(&ways(), &there, Some(&next), None);
            prop_assert!(wrong(&ways(), list(step).as_ref(), held.as_ref()).is_empty());
            let items = there["spec"]["items"].as_array().unwrap();
            let all: std::collections::BTreeSet<_> =
                items.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            prop_assert_eq!(items.len(), all.len());
            prop_assert_eq!(all, theirs.union(step).cloned().collect());
        }
    }
}
