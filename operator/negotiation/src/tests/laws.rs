//! Laws, on schemas that are like each other, judged by the validator that the server has.

use proptest::prelude::*;

use super::generated::{Choices, judge, takes};
use super::*;

/// How many objects are tried with each pair of schemas.
const OBJECTS: usize = 60;

/// Objects that a type takes.
fn objects(choices: &mut Choices, ty: &Type) -> Vec<Value> {
    let Some(judge) = judge(&ty.schema) else { return Vec::new() };
    let spec = ty.schema["properties"]["spec"].clone();
    let made = (0..OBJECTS).map(|_| json!({"spec": choices.value(&spec, 4)}));
    made.filter(|object| takes(&judge, object)).collect()
}

/// Types that are like each other, each with a structural schema.
fn types(seed: u64, count: usize) -> Vec<Type> {
    let mut choices = Choices::new(seed);
    let first = choices.schema(3);
    let mut all = vec![first.clone()];
    all.extend((1..count).map(|_| choices.like(&first, 3)));
    let all = all.iter().map(thing);
    all.filter(|ty| judge(&ty.schema).is_some()).collect()
}

fn is_blocked(existing: &Type, new: &Type) -> bool {
    differences(existing, new, ["hub", "x"]).iter().any(|difference| difference.blocking)
}

fn inputs(types: &[Type]) -> Vec<(&'static str, &'static str, &Type)> {
    let names = ["a", "b", "c"];
    names.into_iter().zip(types).map(|(name, ty)| (name, "2026-01-01T00:00:00Z", ty)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    /// What isn't reported makes no difference to objects.
    #[test]
    fn what_fits_takes_every_object(seed: u64) {
        let all = types(seed, 2);
        let [existing, new] = &*all else { return Ok(()) };
        if is_blocked(existing, new) {
            return Ok(());
        }
        let judge = judge(&new.schema).unwrap();
        for object in objects(&mut Choices::new(!seed), existing) {
            prop_assert!(takes(&judge, &object), "{object}\n{}\n{}", existing.schema, new.schema);
        }
    }

    #[test]
    fn a_type_fits_itself(seed: u64) {
        for ty in types(seed, 1) {
            prop_assert_eq!(differences(&ty, &ty, ["hub", "x"]), []);
            let alone = agree(&inputs(std::slice::from_ref(&ty))).merged.unwrap();
            prop_assert!(!is_blocked(&alone, &ty), "{}\n{}", alone.schema, ty.schema);
            prop_assert!(!is_blocked(&ty, &alone), "{}\n{}", alone.schema, ty.schema);
        }
    }

    /// What is agreed on is a structural schema, and all who agree take its objects.
    #[test]
    fn what_is_agreed_on_is_taken_by_all(seed: u64) {
        let all = types(seed, 3);
        let agreement = agree(&inputs(&all));
        let Some(merged) = agreement.merged else { return Ok(()) };
        prop_assert!(judge(&merged.schema).is_some(), "{}", merged.schema);
        let left: Vec<&str> = agreement.left.iter().map(|left| &*left.target).collect();
        let made = objects(&mut Choices::new(!seed), &merged);
        for (target, _, ty) in inputs(&all).into_iter().filter(|input| !left.contains(&input.0)) {
            let list = differences(&merged, ty, ["hub", target]);
            prop_assert_eq!(told(&list, true), Vec::<String>::new(), "{}\n{}", merged.schema, ty.schema);
            let judge = judge(&ty.schema).unwrap();
            for object in &made {
                prop_assert!(takes(&judge, object), "{object}\n{}\n{}", merged.schema, ty.schema);
            }
        }
    }

    /// The order in which types come makes no difference, byte for byte.
    #[test]
    fn the_order_makes_no_difference(seed: u64) {
        let all = types(seed, 3);
        let mut inputs = inputs(&all);
        let text = |inputs: &[(&str, &str, &Type)]| {
            let Agreement { merged, differences, left } = agree(inputs);
            (serde_json::to_string(&merged).unwrap(), differences, left)
        };
        let expect = text(&inputs);
        for _ in 0..inputs.len() {
            inputs.rotate_left(1);
            prop_assert_eq!(&text(&inputs), &expect);
            let reversed: Vec<_> = inputs.iter().rev().copied().collect();
            prop_assert_eq!(&text(&reversed), &expect);
        }
        // Nor does it who is called what, where all agree.
        if expect.2.is_empty() {
            let swapped: Vec<_> = { inputs.iter().zip(["c", "a", "b"]) }
                .map(|((_, _, ty), name)| (name, "2026-02-01T00:00:00Z", *ty))
                .collect();
            prop_assert_eq!(text(&swapped).0, expect.0);
        }
    }

    /// Merging what was merged with one of its parts changes nothing.
    #[test]
    fn what_is_agreed_on_stays(seed: u64) {
        let all = types(seed, 2);
        let agreement = agree(&inputs(&all));
        let Some(merged) = agreement.merged else { return Ok(()) };
        if !agreement.left.is_empty() {
            return Ok(());
        }
        for ty in &all {
            let again = [merged.clone(), ty.clone()];
            let again = agree(&inputs(&again)).merged.unwrap();
            prop_assert!(!is_blocked(&again, &merged), "{}\n{}", again.schema, merged.schema);
            prop_assert!(!is_blocked(&merged, &again), "{}\n{}", again.schema, merged.schema);
        }
    }
}
