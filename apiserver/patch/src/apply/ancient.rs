//! Managers of long ago: of updates only so many are told apart.

use std::collections::BTreeMap;

use super::managers::{Managers, Operation, Owner};

/// Entries of updates that are kept; when there are more the oldest are joined.
const MOST_UPDATERS: usize = 10;
/// Who owns what the oldest updates wrote.
const ANCIENT: &str = "ancient-changes";

/// Joins the oldest updates into one entry for each version, until there are few enough.
///
/// As upstream, but that an older entry which comes before that of the oldest (they then have the
/// same second) is joined with it, where upstream loses the latter.
pub(super) fn join_oldest(managers: &mut Managers) {
    let is_update = |owner: &Owner| owner.id.operation == Operation::Update;
    let count = managers.owners().iter().filter(|owner| is_update(owner)).count();
    let mut above = count.saturating_sub(MOST_UPDATERS);
    if above == 0 {
        return;
    }
    let (mut updaters, rest): (Vec<Owner>, Vec<Owner>) =
        managers.owners_mut().drain(..).partition(is_update);
    updaters.sort_by_cached_key(|owner| (owner.seconds(), owner.id.sort_key()));
    let is_bucket = |owner: &Owner| &*owner.id.name == ANCIENT && owner.id.subresource.is_empty();
    // By version: the first entry, and where all are joined.
    let mut firsts: BTreeMap<Box<str>, usize> = BTreeMap::new();
    let mut buckets: BTreeMap<Box<str>, usize> = BTreeMap::new();
    for (at, owner) in updaters.iter().enumerate().filter(|(_, owner)| is_bucket(owner)) {
        buckets.insert(owner.api_version.clone(), at);
    }
    let mut updaters: Vec<Option<Owner>> = updaters.into_iter().map(Some).collect();
    for at in 0..updaters.len() {
        if above == 0 {
            break;
        }
        let Some(version) =
            updaters.get(at).and_then(Option::as_ref).map(|o| o.api_version.clone())
        else {
            continue;
        };
        let Some(first) = firsts.get(&version).copied() else {
            firsts.insert(version, at);
            continue;
        };
        let into = *buckets.entry(version).or_insert(first);
        let from = if into == at { first } else { at };
        let joined = updaters.get_mut(from).and_then(Option::take);
        if let (Some(joined), Some(bucket)) =
            (joined, updaters.get_mut(into).and_then(Option::as_mut))
        {
            bucket.id.name = ANCIENT.into();
            bucket.id.subresource = Box::default();
            bucket.fields.add(joined.fields);
            bucket.source = None;
            if into != at {
                bucket.time = joined.time;
            }
            above -= 1;
        }
    }
    managers.owners_mut().extend(rest.into_iter().chain(updaters.into_iter().flatten()));
}
