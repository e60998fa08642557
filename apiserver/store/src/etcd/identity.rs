//! Whose store it is: read, or made with the store.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::assemble::noted;
use super::layout::{Layout, Span};
use super::proto::{
    Compare, CompareOperand, CompareResult, RangeRequest, RequestOp, Response, TxnRequest,
    TxnResponse,
};
use super::{Client, OpenError};
use crate::{Identity, Revision};

/// The major version of the layout: what has another one is not opened.
const MAJOR: u32 = 1;

/// The version that new stores are given.
const FORMAT: &str = "1.0";

/// The value of the identity's key.
#[derive(Debug, Deserialize, Serialize)]
struct Stored {
    format: String,
    hub_uid: String,
    rv_base: u64,
}

/// What is known of a store before it is used.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) identity: Identity,
    /// When the identity was made: nothing in the store is older.
    pub(super) born: Revision,
    pub(super) compacted: Option<Revision>,
}

/// The identity of the store under the layout's prefix; a new one if nothing is there.
pub(super) async fn read_or_make(client: &Client, layout: &Layout) -> Result<Found, OpenError> {
    // The second time somebody else has just made it.
    for _ in 0..2 {
        let made = Identity { hub_uid: Uuid::new_v4().to_string(), rv_base: 0 };
        let request = making(layout, &made)?;
        let answer = client.txn(&request).await.map_err(OpenError::unavailable)?;
        if !answer.succeeded {
            return found(answer);
        }
    }
    Err(OpenError::Identity("it changes while it is read"))
}

/// The identity of the store that is there.
pub(super) async fn read(client: &Client, layout: &Layout) -> Result<Found, OpenError> {
    let request = TxnRequest { success: reads(layout), ..TxnRequest::default() };
    found(client.txn(&request).await.map_err(OpenError::unavailable)?)
}

/// Puts the identity if there is nothing of a store yet, and else tells what there is.
fn making(layout: &Layout, identity: &Identity) -> Result<TxnRequest, OpenError> {
    Ok(TxnRequest {
        compare: nothing(layout),
        success: vec![RequestOp::put(layout.identity(), encode(identity)?)],
        failure: reads(layout),
    })
}

/// The conditions that there is nothing of a store.
pub(super) fn nothing(layout: &Layout) -> Vec<Compare> {
    let spans = [Span::one(layout.identity()), Span::one(layout.import()), layout.registry()];
    let absent = |span| Compare::new(span, CompareResult::Equal, CompareOperand::ModRevision(0));
    spans.map(absent).into()
}

/// What [`found`] reads.
fn reads(layout: &Layout) -> Vec<RequestOp> {
    let read = |span: Span, keys_only| {
        let Span { start: key, end: range_end } = span;
        let range = RangeRequest { key, range_end, limit: 1, keys_only, ..RangeRequest::default() };
        RequestOp::range(range)
    };
    vec![
        read(Span::one(layout.identity()), false),
        read(Span::one(layout.import()), true),
        read(layout.registry(), true),
        read(Span::one(layout.compacted()), false),
    ]
}

fn found(answer: TxnResponse) -> Result<Found, OpenError> {
    let ranges = answer.responses.into_iter().filter_map(|op| match op.response {
        Some(Response::Range(range)) => Some(range.kvs),
        _ => None,
    });
    let [identity, import, registry, compacted] = <[_; 4]>::try_from(ranges.collect::<Vec<_>>())
        .map_err(|_| OpenError::Identity("etcd's answer does not fit"))?;
    if !import.is_empty() {
        return Err(OpenError::Importing);
    }
    let nothing = if registry.is_empty() { OpenError::Absent } else { OpenError::Foreign };
    let identity = identity.into_iter().next().ok_or(nothing)?;
    let stored = serde_json::from_slice::<Stored>(&identity.value)
        .map_err(|_| OpenError::Identity("it is not what this program writes"))?;
    let major = stored.format.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major != Some(MAJOR) {
        return Err(OpenError::Format { found: stored.format });
    }
    if Uuid::parse_str(&stored.hub_uid).is_err() {
        return Err(OpenError::Identity("its hub_uid is not a UUID"));
    }
    Ok(Found {
        identity: Identity { hub_uid: stored.hub_uid, rv_base: stored.rv_base },
        born: Revision(identity.create_revision.unsigned_abs()),
        compacted: compacted.first().and_then(|kv| noted(&kv.value)),
    })
}

/// The value of the identity's key.
pub(super) fn encode(identity: &Identity) -> Result<Bytes, OpenError> {
    let Identity { hub_uid, rv_base } = identity.clone();
    let stored = Stored { format: FORMAT.to_owned(), hub_uid, rv_base };
    let text = serde_json::to_vec(&stored);
    text.map(Bytes::from).map_err(|_| OpenError::Identity("it cannot be written"))
}

#[cfg(test)]
mod tests {
    use super::super::proto::{KeyValue, RangeResponse, ResponseOp};
    use super::*;

    fn check(identity: Option<&str>, import: bool, objects: bool, expect: &str) {
        let kv = |value: &str| KeyValue {
            create_revision: 7,
            value: value.as_bytes().to_vec(),
            ..KeyValue::default()
        };
        let some = |there: bool| there.then(|| kv("")).into_iter().collect();
        let identity = identity.map(kv).into_iter().collect();
        let ranges = [identity, some(import), some(objects), vec![kv("5")]].map(|kvs| {
            let range = RangeResponse { kvs, ..RangeResponse::default() };
            ResponseOp { response: Some(Response::Range(range)) }
        });
        let answer = TxnResponse { responses: ranges.into(), ..TxnResponse::default() };
        let told = match found(answer) {
            Ok(found) => {
                format!("{} {} {:?}", found.identity.rv_base, found.born, found.compacted)
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(told, expect);
    }

    #[test]
    fn what_is_there() {
        let identity = Identity { hub_uid: Uuid::nil().to_string(), rv_base: 3 };
        let text = String::from_utf8(encode(&identity).unwrap().to_vec()).unwrap();
        check(Some(&text), false, true, "3 7 Some(Revision(5))");
        check(Some(&text.replace("1.0", "1.9")), false, false, "3 7 Some(Revision(5))");
        let other = "the store in etcd has format 2.0, this program reads 1";
        check(Some(&text.replace("1.0", "2.0")), false, true, other);
        let importing = "an import into etcd has not ended; remove what is under the prefix";
        check(None, true, true, importing);
        check(None, false, true, "etcd holds something else under the prefix");
        check(None, false, false, "etcd holds no store under the prefix");
        let malformed = "the store's identity in etcd: it is not what this program writes";
        check(Some("{}"), false, true, malformed);
    }
}
