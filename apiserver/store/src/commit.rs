//! What every backend does with a commit before it writes: check its form, hold its compares
//! against the present state, and turn its operations into changes.

use crate::{Change, CommitError, Key, Op, Record, Revision, Txn};

/// The most bytes of keys and values that one commit writes: etcd's default limit for a request,
/// less 64 KiB for what a request holds beside them, so that what one backend takes every backend
/// takes.
pub const MAX_COMMIT_BYTES: usize = 1_572_864 - (64 << 10);

/// The most operations, and the most compares, of one commit: half of what etcd takes by default,
/// as one of ours may be two of etcd's. It also bounds the quadratic check for two operations on
/// one resource.
pub const MAX_COMMIT_OPS: usize = 64;

/// Checks what can be said of a commit without knowing the store.
///
/// # Errors
/// [`CommitError::Malformed`] and [`CommitError::TooLarge`].
pub(crate) fn check(txn: &Txn) -> Result<(), CommitError> {
    if txn.ops.len() > MAX_COMMIT_OPS {
        return Err(CommitError::Malformed("too many operations"));
    }
    if txn.compares.len() > MAX_COMMIT_OPS {
        return Err(CommitError::Malformed("too many compares"));
    }
    let size = txn_bytes(txn);
    if size > MAX_COMMIT_BYTES {
        return Err(CommitError::TooLarge { size, limit: MAX_COMMIT_BYTES });
    }
    for (index, op) in txn.ops.iter().enumerate() {
        let resource = op.key().resource_part();
        for earlier in txn.ops.iter().take(index) {
            if earlier.key() == op.key() {
                return Err(CommitError::Malformed("two operations on one key"));
            }
            if earlier.key().resource_part() == resource {
                return Err(CommitError::Malformed("two operations on one resource"));
            }
        }
    }
    Ok(())
}

/// The bytes of keys and values that a commit writes.
pub(crate) fn txn_bytes(txn: &Txn) -> usize {
    let bytes = |op: &Op| match op {
        Op::Put { key, value } => key.as_bytes().len() + value.len(),
        Op::Delete { key } => key.as_bytes().len(),
    };
    txn.ops.iter().map(bytes).sum()
}

/// The changes that `txn` makes as the commit `revision`; none when it only deletes what is absent
/// or has no operations, and then it takes no revision.
///
/// `present` reads the state that the commit stands on. The outer error is the reader's, the inner
/// one is [`CommitError::Conflict`].
pub(crate) fn evaluate<E>(
    txn: Txn,
    revision: Revision,
    mut present: impl FnMut(&Key) -> Result<Option<Record>, E>,
) -> Result<Result<Vec<Change>, CommitError>, E> {
    // Most commits compare exactly what they write: each key is looked up once.
    let mut compared = Vec::<(Key, Option<Record>)>::with_capacity(txn.compares.len());
    for compare in txn.compares {
        let known = compared.iter().find(|(key, _)| *key == compare.key);
        let current = match known {
            Some((_, record)) => record.clone(),
            None => present(&compare.key)?,
        };
        if !compare.expect.holds(current.as_ref()) {
            let current = current.map(Box::new);
            return Ok(Err(CommitError::Conflict { key: compare.key, current }));
        }
        if known.is_none() {
            compared.push((compare.key, current));
        }
    }
    let mut changes = Vec::with_capacity(txn.ops.len());
    for op in txn.ops {
        let known = compared.iter().position(|(key, _)| key == op.key());
        let previous = match known {
            Some(index) => compared.swap_remove(index).1,
            None => present(op.key())?,
        };
        match op {
            Op::Put { key, value } => {
                changes.push(Change { key, value: Some(value), previous, revision });
            }
            Op::Delete { key } if previous.is_some() => {
                changes.push(Change { key, value: None, previous, revision });
            }
            Op::Delete { .. } => {}
        }
    }
    Ok(Ok(changes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    fn put(text: &str, bytes: usize) -> Op {
        Op::Put { key: key(text), value: vec![0; bytes].into() }
    }

    #[test]
    fn forms() {
        let check = |ops: Vec<Op>, expect: Option<&str>| {
            let got = check(&Txn { ops, ..Txn::default() }).err().map(|error| error.to_string());
            assert_eq!(got.as_deref(), expect);
        };
        check(vec![], None);
        check(vec![put("core/a/root/n/x", 1), put("core/b/root/n/x", 1)], None);
        check(
            vec![put("core/a/root/n/x", 1), Op::Delete { key: key("core/a/root/n/x") }],
            Some("malformed commit: two operations on one key"),
        );
        check(
            vec![put("core/a/root/n/x", 1), put("core/a/other/n/y", 1)],
            Some("malformed commit: two operations on one resource"),
        );
        // The group is part of the resource.
        check(vec![put("core/events/root/n/x", 1), put("events.k8s.io/events/root/n/x", 1)], None);
        let head = "core/a/root/n/x".len();
        check(vec![put("core/a/root/n/x", MAX_COMMIT_BYTES - head)], None);
        check(
            vec![put("core/a/root/n/x", MAX_COMMIT_BYTES - head + 1)],
            Some("commit of 1507329 bytes is larger than 1507328"),
        );
        let many = (0..=MAX_COMMIT_OPS).map(|n| put(&format!("g{n}/a/root/n/x"), 1)).collect();
        check(many, Some("malformed commit: too many operations"));
    }
}
