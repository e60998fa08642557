use bytes::Bytes;
use proptest::prelude::{Strategy, any, proptest};

use super::super::proto::{KeyValue, ResponseHeader};
use super::*;
use crate::{Key, Record};

fn layout() -> Layout {
    Layout::new("/kcp")
}

fn key(name: &str) -> Key {
    Key::parse(format!("core/{name}/root/ns/x")).unwrap()
}

fn kv(key: Bytes, value: &str, create: i64, revision: i64) -> KeyValue {
    let version = if create == revision { 1 } else { 2 };
    let value = value.as_bytes().to_vec();
    KeyValue { key, create_revision: create, mod_revision: revision, version, value }
}

fn put(name: &str, revision: i64) -> Event {
    let kv = kv(layout().object(&key(name)), "v", revision, revision);
    Event { kind: EventType::Put.into(), kv: Some(kv), prev_kv: None }
}

fn delete(key: Bytes, revision: i64, previous: Option<KeyValue>) -> Event {
    let kv = KeyValue { key, mod_revision: revision, ..KeyValue::default() };
    Event { kind: EventType::Delete.into(), kv: Some(kv), prev_kv: previous }
}

fn answer(events: Vec<Event>, fragment: bool) -> WatchResponse {
    WatchResponse { events, fragment, ..WatchResponse::default() }
}

fn progress(revision: i64) -> WatchResponse {
    let header = Some(ResponseHeader { cluster_id: 1, revision });
    WatchResponse { header, ..WatchResponse::default() }
}

/// Messages in short words: `a@3 b@3` are the changes of one, `|5` is progress.
fn told(messages: &[WatchMessage]) -> String {
    let words = messages.iter().map(|message| match message {
        WatchMessage::Progress(revision) => format!("|{revision}"),
        WatchMessage::Changes(changes) => {
            let words = changes.iter().map(|change| {
                let (part, revision) = (change.key.resource_part(), change.revision);
                format!("{}@{revision}", part.trim_start_matches("core/"))
            });
            words.collect::<Vec<_>>().join(" ")
        }
    });
    words.collect::<Vec<_>>().join("; ")
}

fn check(answers: Vec<WatchResponse>, expect: &str) {
    let mut assembler = Assembler::new(layout(), Revision(2));
    let mut messages = Vec::new();
    for answer in answers {
        match assembler.take(answer) {
            Ok(assembled) => messages.extend(assembled.messages),
            Err(ended) => {
                assert_eq!(format!("{}; {ended:?}", told(&messages)), expect);
                return;
            }
        }
    }
    assert_eq!(told(&messages), expect);
}

#[test]
fn whole_revisions() {
    check(vec![answer(vec![put("a", 3), put("b", 3), put("a", 5)], false)], "a@3 b@3 a@5");
    // The last revision of a fragment waits for what may follow, and progress for both.
    check(
        vec![
            answer(vec![put("a", 3), put("a", 4)], true),
            progress(9),
            answer(vec![put("b", 4), put("a", 5)], true),
            answer(vec![put("b", 5)], false),
            progress(9),
        ],
        "a@3; a@4 b@4; a@5 b@5; |9",
    );
    check(vec![answer(vec![put("a", 3)], true), answer(vec![], false)], "");
    // What is nobody's business still is progress.
    let other = delete("/kcp/meta/identity".into(), 7, None);
    check(vec![answer(vec![put("a", 3), other.clone()], false)], "a@3; |7");
    check(vec![answer(vec![other], false), progress(7), progress(6)], "|7");
}

#[test]
fn ends() {
    check(
        vec![progress(6), answer(vec![put("a", 5)], false)],
        "|6; Broken(\"a change of revision 5 came after all up to 6\")",
    );
    check(
        vec![answer(vec![put("a", 5), put("b", 4)], false)],
        "; Broken(\"a change of revision 4 came after all up to 5\")",
    );
    let compacted =
        WatchResponse { compact_revision: 9, canceled: true, ..WatchResponse::default() };
    check(vec![compacted], "; Compacted(Revision(9))");
    let gone = delete(layout().object(&key("a")), 4, None);
    check(vec![answer(vec![gone], false)], "; PreviousCompacted");
    let cancelled =
        WatchResponse { canceled: true, cancel_reason: "no".into(), ..WatchResponse::default() };
    check(vec![cancelled], "; Cancelled(\"no\")");
    check(vec![answer(vec![Event::default()], false)], "; Broken(\"an event has no key\")");
}

#[test]
fn tombstones_are_one_change() {
    let (object, tombstone) = (layout().object(&key("a")), layout().tombstone(&key("a")));
    let mut created = kv(tombstone.clone(), "", 6, 6);
    created.value = 4_u64.to_be_bytes().to_vec();
    let hide = vec![
        delete(object.clone(), 6, Some(kv(object.clone(), "v", 4, 5))),
        Event { kind: 0, kv: Some(created.clone()), prev_kv: None },
    ];
    let show = vec![
        Event { kind: 0, kv: Some(kv(object, "w", 7, 7)), prev_kv: None },
        delete(tombstone, 7, Some(created)),
    ];
    let mut assembler = Assembler::new(layout(), Revision(2));
    let mut take = |events| match assembler.take(answer(events, false)).unwrap().messages.as_slice()
    {
        [WatchMessage::Changes(changes)] => changes.clone(),
        other => panic!("{other:?}"),
    };
    let record = |value: &str, revision, created| Record {
        key: key("a"),
        value: Bytes::copy_from_slice(value.as_bytes()),
        revision: Revision(revision),
        created: Revision(created),
    };
    let hidden = take(hide);
    assert_eq!(hidden[0].previous, Some(record("v", 5, 4)));
    assert_eq!(hidden[0].record(), Some(record("", 6, 4)));
    let shown = take(show);
    assert_eq!(shown[0].previous, Some(record("", 6, 4)));
    assert_eq!(shown[0].record(), Some(record("w", 7, 7)));
    assert_eq!((hidden.len(), shown.len()), (1, 1));
}

#[test]
fn compactions_are_heard_of() {
    let mut noted = kv("/kcp/meta/compacted".into(), "41", 9, 9);
    noted.version = 3;
    let event = Event { kind: 0, kv: Some(noted), prev_kv: None };
    let assembled = Assembler::new(layout(), Revision(2)).take(answer(vec![event], false)).unwrap();
    assert_eq!(assembled.compacted, Some(Revision(41)));
    assert_eq!(told(&assembled.messages), "|9");
}

/// Commits as etcd may send them: in answers, which come in fragments, with progress between.
fn sent() -> impl Strategy<Value = (Vec<usize>, Vec<(bool, bool)>)> {
    let commits = proptest::collection::vec(1..4_usize, 1..12);
    (commits, proptest::collection::vec(any::<(bool, bool)>(), 40))
}

proptest! {
    #[test]
    fn every_change_comes_once_and_whole((commits, cuts) in sent()) {
        let mut events = Vec::new();
        for (index, size) in commits.iter().enumerate() {
            for name in 0..*size {
                let revision = i64::try_from(index).unwrap() * 2 + 3;
                events.push((put(&format!("k{name}"), revision), name + 1 == *size));
            }
        }
        let mut assembler = Assembler::new(layout(), Revision(2));
        let mut messages = Vec::new();
        let mut batch = Vec::new();
        let mut take = |answer| messages.extend(assembler.take(answer).unwrap().messages);
        let count = events.len();
        for (index, (event, ends)) in events.into_iter().enumerate() {
            let revision = event.kv.as_ref().unwrap().mod_revision;
            batch.push(event);
            let (fragment, whole) = cuts[index];
            // A whole answer ends at a revision's end.
            if index + 1 == count || (ends && whole) {
                take(answer(std::mem::take(&mut batch), false));
                take(progress(revision + 1));
            } else if fragment {
                take(answer(std::mem::take(&mut batch), true));
                // Of a server that lets progress overtake.
                take(progress(revision + 1));
            }
        }
        let mut reached = Revision(2);
        let mut seen = Vec::new();
        for message in messages {
            match message {
                WatchMessage::Progress(revision) => {
                    assert!(revision >= reached);
                    reached = revision;
                }
                WatchMessage::Changes(changes) => {
                    assert!(changes[0].revision > reached);
                    assert!(changes.is_sorted_by_key(|change| change.revision));
                    reached = changes.last().unwrap().revision;
                    seen.extend(changes.into_iter().map(|change| change.revision));
                }
            }
        }
        let expect = commits.iter().enumerate().flat_map(|(index, size)| {
            std::iter::repeat_n(Revision(index as u64 * 2 + 3), *size)
        });
        assert_eq!(seen, expect.collect::<Vec<_>>());
    }
}
