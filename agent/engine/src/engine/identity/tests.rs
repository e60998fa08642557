//! What shows that a hub has gone back, and what does not.

use super::*;

fn hub() -> Upstream {
    Upstream { known: true, ..Upstream::default() }
}

fn memory(revision: u64, incarnation: u64) -> Memory {
    Memory {
        hub: "hub-1".into(),
        target: "target-1".into(),
        incarnation,
        revision,
        gone_back: None,
        back_at: 0,
        accepted: None,
        accepted_incarnation: None,
    }
}

#[test]
fn going_back_and_coming_again() {
    let mut hub = hub();
    hub.see_whole(100, 0);
    assert!(hub.is_trusted());
    hub.see_whole(50, 100);
    assert_eq!(hub.change(), Some(UpstreamChange::Older(100)));
    assert!(!hub.is_trusted());
    assert!(!hub.see_whole(60, 100));
    assert!(!hub.is_trusted());
    // It was a slow cache.
    assert!(hub.see_whole(101, 100));
    assert!(hub.is_trusted());
    // It was not.
    hub.go_back(60);
    assert!(hub.see_whole(200, 100));
    assert!(!hub.is_trusted());
}

/// A list may have been asked for before something newer was shown, and be told after it.
#[test]
fn lists_that_are_told_late() {
    let mut hub = hub();
    hub.see_whole(100, 0);
    hub.see(105);
    assert!(!hub.see_whole(101, 105));
    assert!(!hub.is_trusted());
    hub.see(106);
    assert!(hub.is_trusted());
}

/// Lists of two types cross each other: the one that was asked for first is told last.
#[test]
fn lists_that_cross_each_other() {
    let mut hub = hub();
    assert!(hub.see_whole(105, 0));
    hub.see_copy(105);
    assert!(hub.see_whole(101, 100), "105 was not known when it was asked for");
    assert!(hub.is_trusted());
    // What only a copy says is more than the hub has shown.
    hub.see_copy(107);
    assert!(!hub.see_whole(106, 105));
    assert!(!hub.is_trusted());
}

#[test]
fn what_a_former_process_was_shown() {
    let mut hub = hub();
    hub.remember(&memory(100, 0));
    assert!(!hub.see_whole(50, 0));
    hub.see(101);
    assert!(!hub.is_trusted());
    assert!(hub.accept(Some(100)));
    assert!(hub.see_whole(51, 50));
    assert!(hub.is_trusted());
}

/// A hub that has gone back goes on: soon its revisions are above those that it had.
#[test]
fn going_back_is_remembered_until_it_is_accepted() {
    let mut hub = hub();
    hub.see_whole(100, 0);
    hub.go_back(50);
    hub.see_whole(200, 100);
    let kept = hub.memory(&"h".into(), &"t".into()).unwrap();
    let mut next = Upstream { known: true, ..Upstream::default() };
    next.remember(&kept);
    next.see_whole(250, 0);
    assert_eq!(next.change(), Some(UpstreamChange::Older(100)));
    assert!(next.accept(Some(100)));
    assert!(next.is_trusted());
    let kept = next.memory(&"h".into(), &"t".into()).unwrap();
    assert_eq!((kept.gone_back, kept.accepted), (None, Some(50)));
    let mut last = Upstream { known: true, ..Upstream::default() };
    last.remember(&kept);
    last.see_whole(300, 0);
    assert!(last.is_trusted());
}

/// What copies say was before this process, so each list has to be newer.
#[test]
fn copies_of_what_the_hub_does_not_show() {
    for list_first in [false, true] {
        let mut hub = hub();
        if list_first {
            hub.see_whole(50, 0);
        }
        hub.see_copy(100);
        if !list_first {
            hub.see_whole(50, 0);
        }
        assert_eq!(hub.change(), Some(UpstreamChange::Older(100)), "{list_first}");
        hub.see_whole(100, 0);
        assert_eq!(hub.change(), None, "{list_first}");
    }
}

#[test]
fn acceptance() {
    let mut hub = hub();
    hub.see_whole(100, 0);
    hub.see_whole(50, 100);
    assert!(!hub.accept(Some(50)));
    assert!(!hub.is_current(51, 90));
    assert!(hub.accept(Some(100)));
    assert!(hub.is_trusted());
    // What was processed before it went back is no measure any more; what came after is.
    assert!(hub.is_current(51, 90));
    assert!(!hub.is_current(40, 45));
    assert!(!hub.accept(Some(100)));
}

/// All revisions of a restored hub are newer; its incarnation is another.
#[test]
fn another_incarnation() {
    let mut hub = hub();
    hub.enter(0);
    hub.see_whole(100, 0);
    hub.see_copy(90);
    assert!(hub.is_trusted());
    hub.enter(1000);
    hub.see_whole(1080, 100);
    assert_eq!(hub.change(), Some(UpstreamChange::Restored(1000)));
    assert_eq!(hub.memory(&"h".into(), &"t".into()), None, "the next one has to notice, too");
    assert!(!hub.accept(Some(100)));
    assert!(hub.accept(Some(1000)));
    assert!(hub.is_trusted());
    let kept = hub.memory(&"h".into(), &"t".into()).unwrap();
    assert_eq!((kept.incarnation, kept.revision), (1000, 1080));
    // What was accepted is so for the next process, whatever copies say; another restore isn't.
    let mut next = Upstream { known: true, ..Upstream::default() };
    next.remember(&kept);
    next.enter(1000);
    next.see_copy(90);
    next.see_whole(1081, 0);
    assert!(next.is_trusted());
    next.enter(2000);
    assert_eq!(next.change(), Some(UpstreamChange::Restored(2000)));
}

/// Without any memory, a copy of something from before tells.
#[test]
fn copies_from_before_a_restore() {
    for copy_first in [false, true] {
        let mut hub = hub();
        if copy_first {
            hub.see_copy(90);
        }
        hub.enter(1000);
        if !copy_first {
            hub.see_copy(90);
        }
        assert_eq!(hub.change(), Some(UpstreamChange::Restored(1000)), "{copy_first}");
    }
    // One that was always of this incarnation, or that nobody has ever restored, is as it was.
    let mut hub = hub();
    hub.enter(1000);
    hub.see_copy(1001);
    assert!(hub.is_trusted());
    let mut hub = Upstream { known: true, ..Upstream::default() };
    hub.enter(0);
    hub.see_copy(1);
    assert!(hub.is_trusted());
}

#[test]
fn what_another_process_was_shown_of_another_incarnation() {
    let mut hub = hub();
    hub.remember(&memory(100, 0));
    hub.enter(1000);
    assert!(hub.see_whole(1050, 0));
    assert_eq!(hub.change(), Some(UpstreamChange::Restored(1000)));
}
