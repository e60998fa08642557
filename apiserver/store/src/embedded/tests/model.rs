//! Random histories against a model: every state and every change is kept in plain maps.

use std::collections::BTreeMap;

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::{collection, sample};

use super::disk::Disk;
use super::fixture;
use crate::conformance::harness::{Fixture, key, prefix};
use crate::{
    Change, CommitError, EmbeddedOptions, EmbeddedStore, Expect, Key, Op, Range, ReadError, Record,
    Revision, Txn,
};

#[derive(Clone, Debug)]
enum Step {
    /// Writes or deletes (with `None`) in up to two resources, with the compare right or wrong.
    Commit {
        names: [usize; 2],
        values: [Option<u16>; 2],
        pair: bool,
        holds: bool,
    },
    Compact(sample::Index),
    Reopen,
    /// Reads pages of the given size at some revision.
    Pages(sample::Index, usize),
    Watch(sample::Index),
}

/// All states, by revision, and all changes.
#[derive(Debug)]
struct Model {
    states: Vec<BTreeMap<Key, Record>>,
    changes: Vec<Vec<Change>>,
    oldest: u64,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let commit = (any::<[u8; 2]>(), any::<[Option<u16>; 2]>(), any::<bool>(), 0..8_u8);
    let commit = commit.prop_map(|(names, values, pair, fails)| Step::Commit {
        names: names.map(|name| usize::from(name % 6)),
        values,
        pair,
        holds: fails > 0,
    });
    let step = prop_oneof![
        12 => commit,
        1 => any::<sample::Index>().prop_map(Step::Compact),
        1 => Just(Step::Reopen),
        2 => (any::<sample::Index>(), 0..5_usize).prop_map(|(at, limit)| Step::Pages(at, limit)),
        2 => any::<sample::Index>().prop_map(Step::Watch),
    ];
    collection::vec(step, 1..60)
}

// === impl Model ===

impl Model {
    fn new() -> Self {
        Self { states: vec![BTreeMap::new()], changes: vec![], oldest: 0 }
    }

    fn revision(&self) -> u64 {
        self.changes.len() as u64
    }

    fn state(&self) -> &BTreeMap<Key, Record> {
        self.states.last().unwrap()
    }

    /// A revision from before the oldest to after the last.
    fn pick(&self, index: sample::Index) -> u64 {
        index.index(self.changes.len() + 2) as u64
    }

    fn apply(&mut self, ops: Vec<Op>) -> Revision {
        let revision = Revision(self.revision() + 1);
        let mut state = self.state().clone();
        let mut changes = Vec::new();
        for op in ops {
            let (key, value) = match op {
                Op::Put { key, value } => (key, Some(value)),
                Op::Delete { key } => (key, None),
            };
            let previous = state.remove(&key);
            if let Some(value) = value.clone() {
                let old = previous.as_ref().filter(|previous: &&Record| !previous.value.is_empty());
                let created = old.map_or(revision, |previous| previous.created);
                state.insert(key.clone(), Record { key: key.clone(), value, revision, created });
            }
            if value.is_some() || previous.is_some() {
                changes.push(Change { key, value, previous, revision });
            }
        }
        if changes.is_empty() {
            return Revision(revision.0 - 1);
        }
        self.states.push(state);
        self.changes.push(changes);
        revision
    }
}

async fn commit(model: &mut Model, fixture: &Fixture, step: Step) {
    let Step::Commit { names, values, pair, holds } = step else { return };
    let resources = ["things", "others"];
    let count = if pair { 2 } else { 1 };
    let ops = (0..count).map(|at| {
        let key = key(resources[at], &format!("k{}", names[at]));
        match values[at] {
            // The empty value is one of those that are written.
            Some(value) if value % 8 == 0 => Op::Put { key, value: "".into() },
            Some(value) => Op::Put { key, value: value.to_string().into() },
            None => Op::Delete { key },
        }
    });
    let ops = ops.collect::<Vec<_>>();
    let guard = ops[0].key().clone();
    let current = model.state().get(&guard).cloned();
    let expect = match (&current, holds) {
        (Some(record), true) => Expect::At(record.revision),
        (None, true) => Expect::Absent,
        (Some(record), false) => Expect::At(Revision(record.revision.0 + 1)),
        (None, false) => Expect::Present,
    };
    let result = fixture.commit(&[(&guard, expect)], ops.clone()).await;
    if holds {
        assert_eq!(result.unwrap(), model.apply(ops));
    } else {
        let Err(CommitError::Conflict { current: found, .. }) = result else {
            panic!("{result:?}");
        };
        assert_eq!(found.map(|record| *record), current);
    }
}

async fn pages(model: &Model, fixture: &Fixture, at: u64, limit: usize) {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let range = Range { prefix: prefix("things"), after, limit };
        let page = match fixture.store.range(range, Some(Revision(at))).await {
            Ok(page) => page,
            Err(ReadError::Compacted { oldest }) => {
                assert!(at < model.oldest && oldest.0 == model.oldest);
                return;
            }
            Err(ReadError::Future { current }) => {
                assert!(at > model.revision() && current.0 == model.revision());
                return;
            }
            Err(error) => panic!("{error}"),
        };
        found.extend(page.records);
        if !page.more {
            break;
        }
        assert_eq!(found.len() % limit, 0, "a page that is not the last is full");
        after = found.last().map(|record: &Record| record.key.clone());
    }
    assert!(at >= model.oldest && at <= model.revision());
    let state = &model.states[usize::try_from(at).unwrap()];
    let expect = state.values().filter(|record| prefix("things").contains(&record.key));
    assert_eq!(found, expect.cloned().collect::<Vec<_>>());
}

async fn watch(model: &Model, fixture: &Fixture, after: u64) {
    match fixture.store.watch(Revision(after)).await {
        Ok(_) => assert!(after >= model.oldest && after <= model.revision()),
        Err(ReadError::Compacted { .. }) => return assert!(after < model.oldest),
        Err(ReadError::Future { .. }) => return assert!(after > model.revision()),
        Err(error) => panic!("{error}"),
    }
    let changes = fixture.watch(Revision(after)).await.until(Revision(model.revision())).await;
    let expect = model.changes[usize::try_from(after).unwrap()..].concat();
    assert_eq!(changes, expect);
}

async fn run(steps: Vec<Step>) {
    // So small that most of history is on disk only.
    let options = EmbeddedOptions { recent_bytes: 1500, ..EmbeddedOptions::default() };
    let mut disk = Disk::new();
    let mut store = fixture(EmbeddedStore::open_on(disk.clone(), &options).unwrap());
    let mut model = Model::new();
    for step in steps {
        match step {
            step @ Step::Commit { .. } => commit(&mut model, &store, step).await,
            Step::Compact(index) => {
                let before = model.pick(index);
                store.store.compact(Revision(before)).await.unwrap();
                model.oldest = model.oldest.max(before.min(model.revision()));
            }
            Step::Reopen => {
                store.end().await;
                disk = disk.restart();
                store = fixture(EmbeddedStore::open_on(disk.clone(), &options).unwrap());
            }
            Step::Pages(index, limit) => pages(&model, &store, model.pick(index), limit).await,
            Step::Watch(index) => watch(&model, &store, model.pick(index)).await,
        }
        assert_eq!(store.store.revision().await.unwrap().0, model.revision());
        assert_eq!(store.store.oldest().await.unwrap().0, model.oldest);
    }
    pages(&model, &store, model.revision(), 0).await;
    let all = store.store.commit(Txn::default()).await.unwrap();
    assert_eq!(all.0, model.revision());
    store.end().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn histories_are_as_the_model_says(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(steps));
    }
}
