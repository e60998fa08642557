use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use store::Revision;
use store::cache::Origin;

use super::*;

fn key(name: &str) -> Key {
    Key::parse(format!("core/configmaps/one/default/{name}")).unwrap()
}

fn object(name: &str, uid: &str, owners: &[(&str, bool)], finalizer: Option<&str>) -> Arc<Object> {
    let owners = owners.iter().map(|(uid, blocks)| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": uid, "uid": uid,
               "blockOwnerDeletion": blocks})
    });
    let mut metadata = json!({
        "name": name, "namespace": "default", "uid": uid,
        "ownerReferences": owners.collect::<Vec<Value>>(),
    });
    if let Some(finalizer) = finalizer {
        metadata["finalizers"] = json!([finalizer]);
        metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    let json = store::object::encode(&value);
    Arc::new(Object::new(key(name), &json, Revision(1), 0, Origin::Stored).unwrap())
}

fn change(previous: Option<&Arc<Object>>, current: Option<&Arc<Object>>) -> Event {
    let key = previous.or(current).unwrap().key.clone();
    Event::new(key, Revision(1), previous.cloned(), current.cloned())
}

#[track_caller]
fn due(graph: &mut Graph, event: &Event, expect: &[&str]) {
    assert!(matters(event));
    let due = graph.apply(event).into_iter().collect::<BTreeSet<_>>();
    let expect = expect.iter().map(|name| key(name)).collect::<BTreeSet<_>>();
    assert_eq!(due, expect);
}

#[test]
fn an_end_makes_dependents_due() {
    let mut graph = Graph::default();
    let (root, child) = (object("root", "r", &[], None), object("a", "a", &[("r", true)], None));
    due(&mut graph, &change(None, Some(&child)), &["a"]);
    due(&mut graph, &change(Some(&root), None), &["a"]);
    let id = OwnerId::of(&root);
    assert_eq!(graph.end(&id), End { seen: Some(key("root")), proven: None });
    // The same UID in another logical cluster is another owner.
    let elsewhere = Key::parse("core/configmaps/two/default/root").unwrap();
    assert!(graph.dependents(&OwnerId::new(&elsewhere, "r")).is_empty());
    due(&mut graph, &change(Some(&child), None), &[]);
    assert!(graph.owners.is_empty());
}

#[test]
fn an_object_made_anew_is_another() {
    let mut graph = Graph::default();
    let child = object("a", "a", &[("old", false)], None);
    due(&mut graph, &change(None, Some(&child)), &["a"]);
    let (old, new) = (object("root", "old", &[], None), object("root", "new", &[], None));
    due(&mut graph, &change(Some(&old), Some(&new)), &["a"]);
}

#[test]
fn owners_that_wait_hear_of_their_dependents() {
    let mut graph = Graph::default();
    let child = object("a", "a", &[("r", true)], None);
    due(&mut graph, &change(None, Some(&child)), &["a"]);
    let root = object("root", "r", &[], None);
    let waiting = object("root", "r", &[], Some(FINALIZER_FOREGROUND));
    due(&mut graph, &change(Some(&root), Some(&waiting)), &["root", "a"]);
    let unblocked = object("a", "a", &[("r", false)], None);
    due(&mut graph, &change(Some(&child), Some(&unblocked)), &["root", "a"]);
    due(&mut graph, &change(Some(&unblocked), None), &["root"]);
    due(&mut graph, &change(Some(&waiting), None), &[]);
    assert!(graph.waiting.is_empty() && graph.owners.is_empty());
}

#[test]
fn what_changes_nothing_does_not_matter() {
    let child = object("a", "a", &[("r", true)], None);
    assert!(!matters(&change(Some(&child), Some(&child))));
    let plain = object("b", "b", &[], None);
    assert!(!matters(&change(None, Some(&plain))));
    assert!(matters(&change(Some(&plain), None)));
}

proptest! {
    /// After any changes the graph is what the objects that are left say, and nothing more.
    #[test]
    fn it_follows_from_the_objects(
        steps in proptest::collection::vec((0_usize..5, proptest::option::of((0_u8..3, 0_u8..16))), 1..60)
    ) {
        let mut graph = Graph::default();
        let mut state: [Option<Arc<Object>>; 5] = Default::default();
        for (index, next) in steps {
            let name = format!("o{index}");
            let current = next.map(|(life, owners)| {
                let owners = (0..4).filter(|n| owners & (1 << n) != 0).map(|n| format!("u{n}"));
                let owners = owners.collect::<Vec<_>>();
                let owners = owners.iter().map(|uid| (uid.as_str(), true)).collect::<Vec<_>>();
                let finalizer = (life == 0).then_some(FINALIZER_FOREGROUND);
                object(&name, &format!("u{index}-{}", life / 2), &owners, finalizer)
            });
            let event = match (&state[index], &current) {
                (None, None) => continue,
                (previous, current) => change(previous.as_ref(), current.as_ref()),
            };
            if matters(&event) {
                graph.apply(&event);
            }
            state[index] = current;
        }
        let mut expect = BTreeMap::<OwnerId, BTreeSet<Key>>::new();
        for object in state.iter().flatten() {
            for owner in object.header.owner_references() {
                let id = OwnerId::new(&object.key, &owner.uid);
                expect.entry(id).or_default().insert(object.key.clone());
            }
        }
        let found = graph.owners.iter().map(|(id, owner)| (id.clone(), owner.keys.clone()));
        prop_assert_eq!(found.collect::<BTreeMap<_, _>>(), expect);
        let waiting = state.iter().flatten().filter(|object| waits(&object.header)).count();
        prop_assert_eq!(graph.waiting.len(), waiting);
    }
}
