//! Reads: one key, and pages of a range at one revision.

use super::layout::{Place, Span};
use super::proto::{RangeRequest, RangeResponse};
use super::{Error, Inner, answered_at, record, wire};
use crate::{Key, Page, Range, Record, Revision};

/// What one answer of etcd should hold, in bytes: few round trips, and little memory beside what is
/// asked for.
const ANSWER_BYTES: usize = 8 << 20;

/// Records of the first answer, when nothing is known of their size: 100 MB at worst.
const FIRST_RECORDS: usize = 64;

/// Records of later ones, within which their number is chosen by the size of those before.
const RECORDS: std::ops::RangeInclusive<usize> = 8..=4096;

/// What `key` holds.
pub(super) async fn one(inner: &Inner, key: &Key) -> Result<Option<Record>, Error> {
    let Span { start, end: range_end } = inner.layout.both(key);
    let request = RangeRequest { key: start, range_end, ..RangeRequest::default() };
    let answer = inner.client.range(&request).await?;
    let found = answer.kvs.into_iter().next();
    found.map(|kv| record(key.clone(), kv)).transpose()
}

/// A page of a range as it was at `at`, or is now.
pub(super) async fn page(
    inner: &Inner,
    range: &Range,
    at: Option<Revision>,
) -> Result<Page, Error> {
    let mut page = Page { revision: at.unwrap_or_default(), ..Page::default() };
    let mut span = inner.layout.range(&range.prefix, range.after.as_ref());
    let (mut records, mut bytes) = (0, 0);
    if at == Some(Revision(0)) {
        // To etcd it means the present.
        return Ok(page);
    }
    if span.is_empty() {
        if at.is_none() {
            page.revision = present(inner, span).await?;
        }
        return Ok(page);
    }
    loop {
        let wanted = match range.limit {
            0 => usize::MAX,
            limit => limit - page.records.len(),
        };
        let chunk = chunk(records, bytes).min(wanted);
        let answer = chunk_of(inner, &span, chunk, page.revision).await?;
        if page.revision == Revision(0) {
            page.revision = answered_at(answer.header)?;
        }
        let last = answer.kvs.last().map(|kv| kv.key.clone());
        for kv in answer.kvs {
            records += 1;
            bytes += kv.key.len() + kv.value.len();
            match inner.layout.place(&kv.key) {
                Place::Object(key) | Place::Tombstone(key) => page.records.push(record(key, kv)?),
                Place::Compacted | Place::Other => {}
            }
        }
        let Some(last) = last.filter(|_| answer.more) else { return Ok(page) };
        if range.limit > 0 && page.records.len() >= range.limit {
            page.more = true;
            return Ok(page);
        }
        // The least key behind the last one.
        span.start = [last.as_ref(), &[0]].concat().into();
    }
}

async fn chunk_of(
    inner: &Inner,
    span: &Span,
    limit: usize,
    revision: Revision,
) -> Result<RangeResponse, Error> {
    let request = RangeRequest {
        key: span.start.clone(),
        range_end: span.end.clone(),
        limit: i64::try_from(limit).unwrap_or(i64::MAX),
        revision: wire(revision),
        ..RangeRequest::default()
    };
    inner.client.range(&request).await
}

/// How many records to ask for, after `records` of together `bytes`.
fn chunk(records: usize, bytes: usize) -> usize {
    match bytes.checked_div(records) {
        None => FIRST_RECORDS,
        Some(size) => (ANSWER_BYTES / size.max(1)).clamp(*RECORDS.start(), *RECORDS.end()),
    }
}

async fn present(inner: &Inner, span: Span) -> Result<Revision, Error> {
    let request = RangeRequest { key: span.start, keys_only: true, ..RangeRequest::default() };
    let answer = inner.client.range(&request).await?;
    answered_at(answer.header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks() {
        assert_eq!(chunk(0, 0), FIRST_RECORDS);
        assert_eq!(chunk(64, 64 * 1024), 4096);
        assert_eq!(chunk(64, 64 << 17), 64);
        assert_eq!(chunk(1, 1 << 30), 8);
        assert_eq!(chunk(3, 0), 4096);
    }
}
