//! Crowds: what each of many watchers of one scope is told, and when.

use machinery::{ClusterName, GroupResource, ObjectKey};
use proptest::prelude::*;

use super::*;

fn key(cluster: &str, name: &str) -> Key {
    let cluster = ClusterName::parse(cluster).unwrap();
    Key::new(&GroupResource::new("", "configmaps"), &ObjectKey::new(cluster, "ns", name))
}

fn event(key: &Key, revision: u64) -> Arc<Event> {
    Arc::new(Event::new(key.clone(), Revision(revision), None, None))
}

/// Everything of a logical cluster.
fn scope(cluster: &str) -> Scope {
    let cluster = ClusterName::parse(cluster).unwrap();
    Scope::Prefix(KeyPrefix::cluster(&GroupResource::new("", "configmaps"), &cluster))
}

struct One {
    after: u64,
    events: mpsc::Receiver<Arc<Event>>,
    scopes: Scopes,
}

impl One {
    fn add(watchers: &mut Watchers, scope: &Scope, audience: Audience, after: u64) -> Self {
        let scopes = std::slice::from_ref(scope);
        let (events, scopes) = watchers.add(scopes, None, audience, Revision(after));
        Self { after, events, scopes }
    }

    fn told(&mut self) -> Vec<u64> {
        std::iter::from_fn(|| self.events.try_recv().ok().map(|event| event.revision.0)).collect()
    }
}

fn crowd(watchers: &mut Watchers, scope: &Scope, count: usize) -> Vec<One> {
    (0..count).map(|_| One::add(watchers, scope, Audience::Client, 0)).collect()
}

#[test]
fn a_crowd_keeps_nobody_waiting() {
    let mut watchers = Watchers::default();
    let (busy, quiet) = (scope("busy"), scope("quiet"));
    let mut many = crowd(&mut watchers, &busy, AT_ONCE + 1);
    let mut own = One::add(&mut watchers, &busy, Audience::Server, 0);
    let mut other = One::add(&mut watchers, &quiet, Audience::Client, 0);
    assert!(watchers.dispatch(&event(&key("busy", "a"), 1)), "somebody has to be told later");
    assert!(!watchers.dispatch(&event(&key("busy", "a"), 2)), "that is known");
    assert!(!watchers.dispatch(&event(&key("quiet", "a"), 3)));
    assert_eq!((own.told(), other.told()), (vec![1, 2], vec![3]));
    assert!(!other.scopes.is_behind());
    assert!(many.iter_mut().all(|one| one.told().is_empty() && one.scopes.is_behind()));
    assert_eq!(watchers.aside(), 2);
    // Whoever comes now knows what is aside.
    many.push(One::add(&mut watchers, &busy, Audience::Client, 2));
    let mut turns = 1;
    while watchers.turn() {
        turns += 1;
    }
    assert_eq!(turns, 4, "two for each event");
    let late = many.pop().map(|mut one| one.told());
    assert_eq!(late, Some(Vec::new()));
    assert!(many.iter_mut().all(|one| one.told() == [1, 2] && !one.scopes.is_behind()));
    assert!(watchers.dispatch(&event(&key("busy", "a"), 4)), "and so on");
}

#[test]
fn crowds_take_turns() {
    let mut watchers = Watchers::default();
    let mut all = ["a", "b"].map(|name| crowd(&mut watchers, &scope(name), AT_ONCE * 2));
    for revision in 1..=10 {
        watchers.dispatch(&event(&key("a", "x"), revision));
    }
    watchers.dispatch(&event(&key("b", "x"), 11));
    for _ in 0..4 {
        watchers.turn();
    }
    assert!(all[1].iter_mut().all(|one| one.told() == [11]), "long before the first ones are done");
}

#[test]
fn who_is_too_far_behind_is_ended() {
    let mut watchers = Watchers::default();
    let scope = scope("busy");
    let mut many = crowd(&mut watchers, &scope, AT_ONCE + 1);
    let mut own = One::add(&mut watchers, &scope, Audience::Server, 0);
    let count = QUEUE as u64 + 1;
    for revision in 1..=count {
        watchers.dispatch(&event(&key("busy", "a"), revision));
        assert_eq!(own.told(), [revision]);
    }
    assert!(many.iter_mut().all(|one| one.told().is_empty() && one.events.is_closed()));
    assert_eq!(watchers.aside(), 0);
    let mut next = One::add(&mut watchers, &scope, Audience::Client, count);
    watchers.dispatch(&event(&key("busy", "a"), count + 1));
    while watchers.turn() {}
    assert_eq!(next.told(), [count + 1]);
    assert!(!next.scopes.is_behind());
    drop((next, own));
    watchers.sweep();
    assert_eq!(watchers.scopes(), 0, "nothing is left of it");
}

#[derive(Clone, Debug)]
enum Act {
    Come(usize),
    Go(usize),
    Change,
    Turn,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        (1..400_usize).prop_map(Act::Come),
        (0..2000_usize).prop_map(Act::Go),
        Just(Act::Change),
        Just(Act::Turn),
    ];
    proptest::collection::vec(act, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whoever stays is told of everything after its beginning, once and in order, whoever comes and
    /// goes meanwhile.
    #[test]
    fn nothing_is_missed_or_repeated(acts in acts()) {
        let mut watchers = Watchers::default();
        let scope = scope("busy");
        let mut all: Vec<One> = Vec::new();
        let mut revision = 0;
        for act in acts {
            match act {
                Act::Come(count) => {
                    let one = |_| One::add(&mut watchers, &scope, Audience::Client, revision);
                    all.extend((0..count).map(one));
                }
                Act::Go(index) => {
                    if !all.is_empty() {
                        all.swap_remove(index % all.len());
                    }
                }
                Act::Change => {
                    revision += 1;
                    watchers.dispatch(&event(&key("busy", "a"), revision));
                }
                Act::Turn => {
                    watchers.turn();
                }
            }
        }
        while watchers.turn() {}
        for one in &mut all {
            let expect: Vec<u64> = (one.after + 1..=revision).collect();
            prop_assert!(!one.scopes.is_behind());
            prop_assert_eq!(one.told(), expect);
        }
        drop(all);
        watchers.sweep();
        prop_assert_eq!(watchers.scopes(), 0);
    }
}
