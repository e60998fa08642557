use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const WIDEST: u32 = 5;

fn limits(seats: u32) -> Limits {
    Limits { seats, user: 1000, cluster: 1000, all: 10_000 }
}

fn flow(cluster: u64, user: u64) -> Flow {
    Flow { cluster, user }
}

/// Enters and takes what may be seated at once.
fn enter(scheduler: &mut Scheduler<u32>, flow: Flow, weight: u32) -> Entered {
    scheduler.enter(flow, weight, || weight)
}

#[test]
fn a_busy_cluster_leaves_most_seats_to_others() {
    let mut scheduler = Scheduler::new(limits(100));
    let busy = flow(1, 1);
    let seated = (0..200).filter(|_| enter(&mut scheduler, busy, 1) == Entered::Seated).count();
    assert_eq!(seated, 20);
    assert!(scheduler.next().is_none());
    // A newcomer is taken before all that waits.
    for quiet in 2..40 {
        enter(&mut scheduler, flow(quiet, 1), 1);
        assert_eq!(scheduler.next().map(|(flow, ..)| flow.cluster), Some(quiet));
    }
}

#[test]
fn wide_requests_get_their_turn() {
    let mut scheduler = Scheduler::new(limits(4));
    assert_eq!(enter(&mut scheduler, flow(1, 1), 1), Entered::Seated);
    assert!(matches!(enter(&mut scheduler, flow(2, 1), 99), Entered::Waits(_)));
    assert!(matches!(enter(&mut scheduler, flow(3, 1), 1), Entered::Waits(_)));
    assert!(scheduler.next().is_none(), "nobody passes the wide one");
    scheduler.leave(flow(1, 1), 1);
    assert_eq!(scheduler.next(), Some((flow(2, 1), 4, 99)));
    assert!(scheduler.next().is_none());
    scheduler.leave(flow(2, 1), 4);
    assert_eq!(scheduler.next(), Some((flow(3, 1), 1, 1)));
}

#[test]
fn queues_are_bounded() {
    let limits = Limits { seats: 1, user: 2, cluster: 3, all: 4 };
    let mut scheduler = Scheduler::new(limits);
    let mut check = |cluster, user, expect: &str| {
        let told = match enter(&mut scheduler, flow(cluster, user), 1) {
            Entered::Seated => "seated",
            Entered::Waits(_) => "waits",
            Entered::Full => "full",
        };
        assert_eq!(told, expect, "{cluster} {user}");
    };
    check(1, 1, "seated");
    check(1, 1, "waits");
    check(1, 1, "waits");
    check(1, 1, "full");
    check(1, 2, "waits");
    check(1, 3, "full");
    check(2, 1, "waits");
    check(2, 1, "full");
    // There is always room for the first of a logical cluster.
    check(3, 1, "waits");
    check(3, 2, "full");
}

#[test]
fn users_of_one_cluster_take_turns() {
    let mut scheduler = Scheduler::new(limits(1));
    enter(&mut scheduler, flow(9, 9), 1);
    for _ in 0..5 {
        enter(&mut scheduler, flow(1, 1), 1);
    }
    for _ in 0..2 {
        enter(&mut scheduler, flow(1, 2), 1);
    }
    scheduler.leave(flow(9, 9), 1);
    let mut order = Vec::new();
    while let Some((flow, weight, _)) = scheduler.next() {
        order.push(flow.user);
        scheduler.leave(flow, weight);
    }
    assert_eq!(order, [1, 2, 1, 2, 1, 1, 1]);
    assert!(scheduler.lanes.is_empty() && scheduler.turns.is_empty());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Enter(u64, u64, u32),
    Leave(usize),
    Cancel(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0_u64..5, 0_u64..3, 1_u32..8).prop_map(|(c, u, w)| Step::Enter(c, u, w)),
        2 => (0_usize..64).prop_map(Step::Leave),
        1 => (0_usize..64).prop_map(Step::Cancel),
    ]
}

proptest! {
    /// Whatever happens: the limit holds, nothing that may be seated waits, each user's requests
    /// keep their order, and in the end nothing is lost and nothing is kept.
    #[test]
    fn sound(seats in 1_u32..12, steps in proptest::collection::vec(step(), 1..300)) {
        let mut scheduler = Scheduler::<u64>::new(limits(seats));
        let mut held = Vec::<(Flow, u32)>::new();
        let mut waiting = Vec::<(Flow, Ticket, u64)>::new();
        let mut seated = BTreeMap::<(u64, u64), u64>::new();
        let mut count = 0;
        for step in steps {
            match step {
                Step::Enter(cluster, user, weight) => {
                    count += 1;
                    let flow = flow(cluster, user);
                    match scheduler.enter(flow, weight, || count) {
                        Entered::Seated => {
                            prop_assert!(waiting.is_empty());
                            held.push((flow, scheduler.fit(weight)));
                        }
                        Entered::Waits(ticket) => waiting.push((flow, ticket, count)),
                        Entered::Full => prop_assert!(false, "the bounds are far"),
                    }
                }
                Step::Leave(which) if !held.is_empty() => {
                    let (flow, weight) = held.swap_remove(which % held.len());
                    scheduler.leave(flow, weight);
                }
                Step::Cancel(which) if !waiting.is_empty() => {
                    let (flow, ticket, _) = waiting.swap_remove(which % waiting.len());
                    prop_assert!(scheduler.cancel(flow, ticket));
                    prop_assert!(!scheduler.cancel(flow, ticket));
                }
                Step::Leave(_) | Step::Cancel(_) => {}
            }
            while let Some((flow, weight, number)) = scheduler.next() {
                let before = seated.insert((flow.cluster, flow.user), number);
                prop_assert!(before < Some(number), "a user's order is kept");
                waiting.retain(|(.., waits)| *waits != number);
                held.push((flow, weight));
            }
            let used: u32 = held.iter().map(|(_, weight)| weight).sum();
            prop_assert_eq!((scheduler.used(), scheduler.waiting()), (used, waiting.len()));
            prop_assert!(used <= seats);
            prop_assert!(used > 0 || waiting.is_empty(), "seats are free and something waits");
        }
        while let Some((flow, weight)) = held.pop() {
            scheduler.leave(flow, weight);
            while let Some((flow, weight, number)) = scheduler.next() {
                waiting.retain(|(.., waits)| *waits != number);
                held.push((flow, weight));
            }
        }
        prop_assert!(waiting.is_empty());
        prop_assert!(scheduler.lanes.is_empty() && scheduler.turns.is_empty());
    }

    /// Where all always have something waiting, what each was given differs by the widest request
    /// of each at most, at every moment: between logical clusters, and between users of one.
    #[test]
    fn fair(
        weights in proptest::collection::vec(proptest::collection::vec(1..=WIDEST, 60), 2..6),
        users in any::<bool>(),
    ) {
        let mut scheduler = Scheduler::<u32>::new(limits(WIDEST));
        let first = flow(99, 99);
        prop_assert_eq!(enter(&mut scheduler, first, WIDEST), Entered::Seated);
        for (index, weights) in (0_u64..).zip(&weights) {
            let flow = if users { flow(1, index) } else { flow(index, 1) };
            for weight in weights {
                enter(&mut scheduler, flow, *weight);
            }
        }
        scheduler.leave(first, WIDEST);
        let mut given = vec![0_u32; weights.len()];
        let mut left: Vec<usize> = weights.iter().map(Vec::len).collect();
        while left.iter().all(|left| *left > 0) {
            // One at a time: who may hold seats beside another is for the threshold to say.
            let next = scheduler.next();
            prop_assert!(next.is_some());
            let Some((flow, weight, _)) = next else { break };
            let index = usize::try_from(if users { flow.user } else { flow.cluster }).unwrap();
            given[index] += weight;
            left[index] -= 1;
            scheduler.leave(flow, weight);
            let (least, most) = (given.iter().min(), given.iter().max());
            prop_assert!(most.unwrap() - least.unwrap() <= 2 * WIDEST, "{:?}", given);
        }
    }

    /// However many logical clusters are busy and never done, a newcomer finds a seat as long as
    /// one is free, and the busy ones leave some.
    #[test]
    fn newcomers_find_room(busy in 1_u64..6, weight in 1_u32..=10) {
        let mut scheduler = Scheduler::<u32>::new(limits(400));
        for round in 0..100 {
            for cluster in 0..busy {
                enter(&mut scheduler, flow(cluster, round), weight);
                while scheduler.next().is_some() {}
            }
        }
        prop_assert!(scheduler.used() < 300, "{}", scheduler.used());
        enter(&mut scheduler, flow(1000, 1), weight);
        prop_assert!(scheduler.next().is_none_or(|(flow, ..)| flow.cluster == 1000));
        prop_assert_eq!(scheduler.lanes.get(&1000).map(|lane| lane.held), Some(weight));
    }
}
