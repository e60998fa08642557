//! Whose turn it is.

use bytes::Bytes;
use proptest::prelude::*;
use tokio::sync::oneshot;

use super::*;
use crate::{Key, Op, Revision};

fn commit(cluster: &str, number: usize, urgency: Urgency, bytes: usize) -> Request {
    let key = Key::parse(format!("core/things/{cluster}/ns/{number}")).unwrap();
    let ops = vec![Op::Put { key, value: Bytes::from(vec![b'v'; bytes]) }];
    Request::Commit(Txn { ops, urgency, ..Txn::default() }, oneshot::channel().0)
}

/// Logical cluster and number of a request.
fn told(request: &Request) -> String {
    match request {
        Request::Commit(txn, _) => {
            let object = txn.ops[0].key().object();
            format!("{}{}", object.cluster, object.name)
        }
        Request::Compact(revision, _) => format!("compact{revision}"),
    }
}

/// Takes one group.
fn group(waiting: &mut Waiting, now: Instant) -> Vec<String> {
    let mut group = Group::default();
    let mut all = Vec::new();
    while let Some(request) =
        waiting.urgent(&mut group, now).or_else(|| waiting.housekeeping(&mut group, now))
    {
        all.push(told(&request));
    }
    assert_eq!(group.urgent() + group.later, group.commits);
    all
}

#[test]
fn logical_clusters_take_turns_and_have_shares() {
    let now = Instant::now();
    let mut waiting = Waiting::default();
    for number in 0..40 {
        waiting.push(commit("a", number, Urgency::Now, 1), now);
    }
    waiting.push(commit("b", 0, Urgency::Now, 1), now);
    waiting.push(commit("b", 1, Urgency::Now, 1), now);
    let first = group(&mut waiting, now);
    assert_eq!(first[..5], ["a0", "b0", "a1", "b1", "a2"]);
    assert_eq!(first.len(), SHARE_COMMITS + 2);
    assert_eq!(group(&mut waiting, now).len(), SHARE_COMMITS);
    // Alone again, it has what there is.
    let later = now + ACTIVE;
    for number in 40..300 {
        waiting.push(commit("a", number, Urgency::Now, 1), later);
    }
    assert_eq!(group(&mut waiting, later).len(), GROUP_COMMITS);
    assert_eq!(group(&mut waiting, later).len(), 300 - 2 * SHARE_COMMITS - GROUP_COMMITS);
    assert!(waiting.now.lanes.is_empty());
}

#[test]
fn large_ones_have_their_share_sooner() {
    let now = Instant::now();
    let mut waiting = Waiting::default();
    for number in 0..4 {
        waiting.push(commit("a", number, Urgency::Now, SHARE_BYTES / 2), now);
    }
    waiting.push(commit("b", 0, Urgency::Now, 1), now);
    assert_eq!(group(&mut waiting, now), ["a0", "b0", "a1"]);
    assert_eq!(group(&mut waiting, now), ["a2", "a3"]);
}

#[test]
fn housekeeping_takes_what_others_leave() {
    let now = Instant::now();
    let mut waiting = Waiting::default();
    for number in 0..200 {
        waiting.push(commit("a", number, Urgency::Later, 1), now);
    }
    assert_eq!(waiting.ready(now), Some(now));
    assert_eq!(group(&mut waiting, now).len(), LATER_IDLE, "nobody waits");
    waiting.push(commit("b", 0, Urgency::Now, 1), now);
    let busy = group(&mut waiting, now);
    assert_eq!((busy.len(), busy[0].as_str()), (1 + LATER_BUSY, "b0"));
    // It rests, though not for those who wait, nor longer than they are there.
    let rest = now + Duration::from_millis(5);
    waiting.rest = Some(rest);
    assert_eq!(waiting.ready(now), Some(rest));
    assert_eq!(group(&mut waiting, now), Vec::<String>::new());
    waiting.push(commit("b", 1, Urgency::Now, 1), now);
    assert_eq!(waiting.ready(now), Some(now));
    assert_eq!(group(&mut waiting, now), ["b1"]);
    assert_eq!(group(&mut waiting, rest).len(), LATER_BUSY);
    waiting.rest = Some(now + 2 * ACTIVE);
    assert_eq!(waiting.ready(now), Some(now + ACTIVE));
    assert_eq!(group(&mut waiting, now + ACTIVE).len(), LATER_IDLE);
}

#[test]
fn compactions_wait_for_nobody() {
    let now = Instant::now();
    let mut waiting = Waiting::default();
    assert_eq!(waiting.ready(now), None);
    waiting.push(commit("a", 0, Urgency::Now, GROUP_BYTES), now);
    waiting.push(commit("a", 1, Urgency::Now, 1), now);
    waiting.push(Request::Compact(Revision(7), oneshot::channel().0), now);
    assert_eq!(group(&mut waiting, now), ["compact7", "a0"]);
    assert_eq!(group(&mut waiting, now), ["a1"]);
}

#[test]
fn who_is_closed_serves_what_waits() {
    let queue = Queue::default();
    assert_eq!(queue.wait(Duration::ZERO), Woken::Late);
    assert!(queue.push(commit("a", 0, Urgency::Later, 1)));
    queue.close();
    assert!(!queue.push(commit("a", 1, Urgency::Now, 1)));
    assert_eq!(queue.wait(Duration::ZERO), Woken::Ready);
    let mut group = Group::default();
    assert!(queue.next(&mut group, None).is_some());
    queue.served(&group, Duration::from_secs(1));
    assert_eq!(queue.wait(Duration::from_secs(60)), Woken::Closed);
}

proptest! {
    /// Whatever comes, all of it goes, each logical cluster's in order, and groups are bounded.
    #[test]
    fn nothing_is_lost(
        steps in proptest::collection::vec((0_u8..4, any::<bool>(), 0_u64..400), 1..300),
    ) {
        let mut now = Instant::now();
        let mut waiting = Waiting::default();
        let mut expect = 0;
        let mut served = Vec::new();
        for (number, (cluster, later, millis)) in steps.iter().enumerate() {
            let cluster = ["a", "b", "c", "d"][usize::from(*cluster)];
            let urgency = if *later { Urgency::Later } else { Urgency::Now };
            waiting.push(commit(cluster, number, urgency, 1), now);
            expect += 1;
            if number % 7 == 6 {
                served.extend(group(&mut waiting, now));
                waiting.rest = Some(now + Duration::from_millis(*millis));
            }
            now += Duration::from_millis(*millis);
        }
        while let Some(ready) = waiting.ready(now) {
            now = ready;
            let group = group(&mut waiting, now);
            prop_assert!(!group.is_empty() && group.len() <= GROUP_COMMITS);
            served.extend(group);
        }
        prop_assert_eq!(served.len(), expect);
        for (cluster, later) in ["a", "b", "c", "d"].iter().flat_map(|c| [(c, true), (c, false)]) {
            let numbers = served.iter().filter_map(|told| told.strip_prefix(*cluster)?.parse::<usize>().ok());
            let numbers: Vec<_> = numbers.filter(|number| steps[*number].1 == later).collect();
            prop_assert!(numbers.is_sorted(), "{} {:?}", cluster, numbers);
        }
        prop_assert!(waiting.now.lanes.is_empty() && waiting.later.lanes.is_empty());
    }
}
