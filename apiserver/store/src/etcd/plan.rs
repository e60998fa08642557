//! A commit as one transaction of etcd, and what its answer means.
//!
//! # Flow
//! A first [`Plan`] is made without knowing what the keys hold. When etcd refuses it, it tells what
//! each key holds at that revision ([`Seen`]); either a compare of the commit fails on that, or the
//! plan rested on an assumption that was wrong, and one that rests on what was seen is made.
//!
//! Assumptions are needed for tombstones only: that what a put replaces by revision is an object,
//! and that a new tombstone stands for nothing. Whatever is assumed is compared.

use std::collections::HashMap;

use bytes::Bytes;

use super::layout::{Layout, Span};
use super::proto::{
    Compare, CompareOperand, CompareResult, RangeRequest, RequestOp, Response, TxnRequest,
    TxnResponse,
};
use super::{Error, record, wire};
use crate::{CommitError, Expect, Key, Op, Record, Txn};

/// What keys held when etcd refused a plan.
#[derive(Debug, Default)]
pub(super) struct Seen(HashMap<Key, Option<Record>>);

/// A transaction, and the keys that it tells of when it is refused.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) request: TxnRequest,
    asked: Vec<Key>,
}

/// What came of a plan.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It happened, and perhaps changed nothing.
    Done {
        /// Whether anything was written.
        changed: bool,
    },
    /// It did not.
    Refused(Seen),
}

/// Compares that a single object, a tombstone, or either of them must pass.
enum Target {
    Object,
    Tombstone,
    Either,
}

// === impl Plan ===

impl Plan {
    /// The transaction for a commit whose keys hold what was seen, as far as anything was.
    pub(super) fn new(layout: &Layout, txn: &Txn, seen: &Seen) -> Self {
        let (compares, ops) = (txn.compares.len(), txn.ops.len());
        let mut plan = Self { request: TxnRequest::default(), asked: Vec::with_capacity(compares) };
        plan.request.compare.reserve(compares);
        plan.request.success.reserve(ops);
        for compare in &txn.compares {
            plan.compare(layout, txn, seen, compare);
        }
        for op in &txn.ops {
            match op {
                Op::Put { key, value } if value.is_empty() => plan.hide(layout, key, seen),
                Op::Put { key, value } => {
                    plan.put(layout.object(key), value.clone());
                    if may_replace_tombstone(txn, seen, key) {
                        plan.delete(Span::one(layout.tombstone(key)));
                    }
                }
                Op::Delete { key } => plan.delete(layout.both(key)),
            }
        }
        let tell = |key: &Key| {
            let Span { start, end } = layout.both(key);
            RequestOp::range(RangeRequest { key: start, range_end: end, ..RangeRequest::default() })
        };
        plan.request.failure = plan.asked.iter().map(tell).collect();
        plan
    }

    fn compare(&mut self, layout: &Layout, txn: &Txn, seen: &Seen, compare: &crate::Compare) {
        let crate::Compare { key, expect } = compare;
        let replaced = txn
            .ops
            .iter()
            .any(|op| matches!(op, Op::Put { key: put, value } if put == key && !value.is_empty()));
        // A put need not remove a tombstone that its compare excludes.
        let target = match (expect, replaced) {
            (Expect::At(_), true) if seen.is_tombstone(key) => Target::Tombstone,
            (Expect::At(_), true) => Target::Object,
            _ => Target::Either,
        };
        let (result, revision) = match expect {
            Expect::Absent => (CompareResult::Equal, 0),
            Expect::Present => (CompareResult::Greater, 0),
            Expect::At(revision) => (CompareResult::Equal, wire(*revision)),
        };
        self.require(layout, key, &target, result, revision);
        self.ask(key);
    }

    /// Writes the empty value, which tells when what it hides was created.
    fn hide(&mut self, layout: &Layout, key: &Key, seen: &Seen) {
        let mut created = Bytes::new();
        match seen.get(key) {
            Some(hidden) if hidden.value.is_empty() => {
                let revision = wire(hidden.revision);
                self.require(layout, key, &Target::Tombstone, CompareResult::Equal, revision);
            }
            Some(object) => {
                let revision = wire(object.revision);
                self.require(layout, key, &Target::Object, CompareResult::Equal, revision);
                self.delete(Span::one(layout.object(key)));
                created = Bytes::copy_from_slice(&object.created.0.to_be_bytes());
            }
            None => self.require(layout, key, &Target::Either, CompareResult::Equal, 0),
        }
        self.put(layout.tombstone(key), created);
        self.ask(key);
    }

    fn require(
        &mut self,
        layout: &Layout,
        key: &Key,
        target: &Target,
        result: CompareResult,
        revision: i64,
    ) {
        let span = match target {
            Target::Object => Span::one(layout.object(key)),
            Target::Tombstone => Span::one(layout.tombstone(key)),
            Target::Either => layout.both(key),
        };
        let operand = CompareOperand::ModRevision(revision);
        self.request.compare.push(Compare::new(span, result, operand));
    }

    fn put(&mut self, key: Bytes, value: Bytes) {
        self.request.success.push(RequestOp::put(key, value));
    }

    fn delete(&mut self, span: Span) {
        self.request.success.push(RequestOp::delete(span));
    }

    fn ask(&mut self, key: &Key) {
        if !self.asked.contains(key) {
            self.asked.push(key.clone());
        }
    }

    /// What an answer to this plan says.
    pub(super) fn outcome(self, answer: TxnResponse) -> Result<Outcome, Error> {
        if answer.responses.len() != self.request_ops(answer.succeeded) {
            return Err(Error::Garbled("answers do not fit the transaction".into()));
        }
        let responses = answer.responses.into_iter().map(|op| op.response);
        if answer.succeeded {
            let wrote = |response| match response {
                Some(Response::Put(_)) => true,
                Some(Response::DeleteRange(deleted)) => deleted.deleted > 0,
                _ => false,
            };
            let changed = responses.into_iter().any(wrote);
            return Ok(Outcome::Done { changed });
        }
        let mut seen = HashMap::with_capacity(self.asked.len());
        for (key, response) in self.asked.into_iter().zip(responses) {
            let Some(Response::Range(range)) = response else {
                return Err(Error::Garbled("a range has no answer".into()));
            };
            let found = range.kvs.into_iter().next();
            let found = found.map(|kv| record(key.clone(), kv)).transpose()?;
            seen.insert(key, found);
        }
        Ok(Outcome::Refused(Seen(seen)))
    }

    fn request_ops(&self, succeeded: bool) -> usize {
        if succeeded { self.request.success.len() } else { self.request.failure.len() }
    }
}

// === impl Seen ===

impl Seen {
    fn get(&self, key: &Key) -> Option<&Record> {
        self.0.get(key).and_then(Option::as_ref)
    }

    fn is_tombstone(&self, key: &Key) -> bool {
        self.get(key).is_some_and(|record| record.value.is_empty())
    }

    /// The first compare of `txn` that does not hold.
    pub(super) fn conflict(&self, txn: &Txn) -> Option<CommitError> {
        txn.compares.iter().find_map(|compare| {
            let current = self.get(&compare.key);
            (!compare.expect.holds(current)).then(|| CommitError::Conflict {
                key: compare.key.clone(),
                current: current.cloned().map(Box::new),
            })
        })
    }
}

/// Whether a put must remove a tombstone: not if a compare says that there is none.
fn may_replace_tombstone(txn: &Txn, seen: &Seen, key: &Key) -> bool {
    let excluded = |compare: &crate::Compare| match compare.expect {
        Expect::Absent => true,
        Expect::Present => false,
        Expect::At(_) => !seen.is_tombstone(key),
    };
    !txn.compares.iter().any(|compare| compare.key == *key && excluded(compare))
}

#[cfg(test)]
mod tests {
    use super::super::proto::{
        DeleteRangeResponse, KeyValue, PutResponse, RangeResponse, Request, ResponseOp,
    };
    use super::*;
    use crate::Revision;

    fn key(name: &str) -> Key {
        Key::parse(format!("core/{name}/root/ns/x")).unwrap()
    }

    fn put(name: &str, value: &str) -> Op {
        Op::Put { key: key(name), value: Bytes::copy_from_slice(value.as_bytes()) }
    }

    fn compare(name: &str, expect: Expect) -> crate::Compare {
        crate::Compare { key: key(name), expect }
    }

    fn seen(name: &str, value: &str, revision: u64, created: u64) -> Seen {
        let (revision, created) = (Revision(revision), Revision(created));
        let value = Bytes::copy_from_slice(value.as_bytes());
        let record = Record { key: key(name), value, revision, created };
        Seen(HashMap::from([(key(name), Some(record))]))
    }

    /// A plan in short words: `x` is the object's key, `x~` the tombstone's, `x*` both.
    fn told(txn: &Txn, seen: &Seen) -> String {
        let layout = Layout::new("");
        let name = |key: &Bytes, end: &Bytes| {
            let text = String::from_utf8_lossy(key);
            let name = text.split('/').nth(3).unwrap().to_owned();
            match (text.ends_with('\0'), end.is_empty()) {
                (true, true) => name + "~",
                (false, true) => name,
                _ => name + "*",
            }
        };
        let mut words = Vec::new();
        let request = Plan::new(&layout, txn, seen).request;
        for compare in &request.compare {
            let Some(CompareOperand::ModRevision(revision)) = &compare.operand else { panic!() };
            let sign = if compare.result == 0 { "=" } else { ">" };
            words.push(format!("{}{sign}{revision}", name(&compare.key, &compare.range_end)));
        }
        for (mark, ops) in [("", &request.success), ("?", &request.failure)] {
            for op in ops {
                words.push(match op.request.as_ref().unwrap() {
                    Request::Put(put) => {
                        format!("put({}:{})", name(&put.key, &Bytes::new()), put.value.len())
                    }
                    Request::DeleteRange(delete) => {
                        format!("del({})", name(&delete.key, &delete.range_end))
                    }
                    Request::Range(range) => {
                        format!("{mark}{}", name(&range.key, &range.range_end))
                    }
                });
            }
        }
        words.join(" ")
    }

    #[test]
    fn plans() {
        let check = |compares: &[crate::Compare], ops: &[Op], seen: &Seen, expect: &str| {
            let txn = Txn { compares: compares.to_vec(), ops: ops.to_vec(), ..Txn::default() };
            assert_eq!(told(&txn, seen), expect);
        };
        let none = Seen::default();
        let at = |name, revision| compare(name, Expect::At(Revision(revision)));
        let absent = |name| compare(name, Expect::Absent);
        let delete = |name| Op::Delete { key: key(name) };
        // The ordinary ones: one compare, one write.
        check(&[absent("a")], &[put("a", "v")], &none, "a*=0 put(a:1) ?a*");
        check(&[at("a", 7)], &[put("a", "v")], &none, "a=7 put(a:1) ?a*");
        check(&[at("a", 7)], &[delete("a")], &none, "a*=7 del(a*) ?a*");
        // Guards may be of either form.
        let guarded = [at("g", 3), compare("h", Expect::Present), absent("a")];
        check(&guarded, &[put("a", "v")], &none, "g*=3 h*>0 a*=0 put(a:1) ?g* ?h* ?a*");
        // What is not excluded is removed.
        check(&[], &[put("a", "v")], &none, "put(a:1) del(a~)");
        let present = compare("a", Expect::Present);
        check(&[present], &[put("a", "v")], &none, "a*>0 put(a:1) del(a~) ?a*");
        let hidden = seen("a", "", 7, 7);
        check(&[at("a", 7)], &[put("a", "v")], &hidden, "a~=7 put(a:1) del(a~) ?a*");
        // A tombstone over nothing, over an object and over another.
        check(&[absent("a")], &[put("a", "")], &none, "a*=0 a*=0 put(a~:0) ?a*");
        let object = seen("a", "v", 7, 5);
        check(&[at("a", 7)], &[put("a", "")], &object, "a*=7 a=7 del(a) put(a~:8) ?a*");
        check(&[], &[put("a", "")], &hidden, "a~=7 put(a~:0) ?a*");
    }

    #[test]
    fn outcomes() {
        let layout = Layout::new("");
        let txn = Txn {
            compares: vec![compare("a", Expect::Absent), compare("b", Expect::Present)],
            ops: vec![put("a", "v"), Op::Delete { key: key("b") }],
            ..Txn::default()
        };
        let op = |response| ResponseOp { response: Some(response) };
        let done = |deleted| {
            let responses = vec![
                op(Response::DeleteRange(DeleteRangeResponse { deleted })),
                op(Response::DeleteRange(DeleteRangeResponse { deleted: 0 })),
            ];
            let answer = TxnResponse { header: None, succeeded: true, responses };
            match Plan::new(&layout, &txn, &Seen::default()).outcome(answer).unwrap() {
                Outcome::Done { changed } => changed,
                Outcome::Refused(_) => panic!(),
            }
        };
        assert!(done(1) && !done(0));
        let kv = KeyValue {
            key: layout.object(&key("a")),
            create_revision: 2,
            mod_revision: 3,
            version: 2,
            value: b"v".to_vec(),
        };
        let range = |kvs| op(Response::Range(RangeResponse { header: None, kvs, more: false }));
        let refused = |responses| {
            let answer = TxnResponse { header: None, succeeded: false, responses };
            Plan::new(&layout, &txn, &Seen::default()).outcome(answer)
        };
        let Outcome::Refused(seen) = refused(vec![range(vec![kv]), range(vec![])]).unwrap() else {
            panic!()
        };
        // The first that fails is told, with what is there.
        match seen.conflict(&txn) {
            Some(CommitError::Conflict { key: on, current: Some(current) }) => {
                assert_eq!((on, current.revision), (key("a"), Revision(3)));
            }
            other => panic!("{other:?}"),
        }
        assert!(refused(vec![range(vec![])]).is_err());
        assert!(refused(vec![op(Response::Put(PutResponse {})), range(vec![])]).is_err());
    }
}
