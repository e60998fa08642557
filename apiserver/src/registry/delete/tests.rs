use super::*;

/// Finalizers before, what the delete asks for, and finalizers after it.
#[track_caller]
fn check(deletion: Deletion, present: &[&str], asked: Option<Propagation>, expect: &[&str]) {
    let before = present.iter().map(|name| (*name).into()).collect::<Vec<Box<str>>>();
    let options = DeleteOptions { propagation: asked, ..DeleteOptions::default() };
    let after = finalizers(deletion, &before, &options);
    assert_eq!(after.names().collect::<Vec<_>>(), expect, "{present:?} {asked:?}");
    assert_eq!(after.are_changed, present != expect, "{present:?} {asked:?}");
}

#[test]
fn what_a_delete_leaves() {
    use Propagation::{Background, Foreground, Orphan};
    let plain = Deletion::Background;
    check(plain, &[], None, &[]);
    check(plain, &[], Some(Background), &[]);
    check(plain, &[], Some(Orphan), &["orphan"]);
    check(plain, &[], Some(Foreground), &["foregroundDeletion"]);
    check(plain, &["a.b/c"], None, &["a.b/c"]);
    check(plain, &["a.b/c"], Some(Orphan), &["a.b/c", "orphan"]);
    // What stands on the object is what happens, unless the options say otherwise.
    check(plain, &["orphan"], None, &["orphan"]);
    check(plain, &["foregroundDeletion"], None, &["foregroundDeletion"]);
    check(plain, &["orphan", "a.b/c"], Some(Background), &["a.b/c"]);
    check(plain, &["foregroundDeletion"], Some(Orphan), &["orphan"]);
    check(plain, &["orphan"], Some(Foreground), &["foregroundDeletion"]);
    // Jobs keep their pods unless told otherwise.
    let jobs = schema::resource::known("batch", "jobs").unwrap().deletion;
    check(jobs, &[], None, &["orphan"]);
    check(jobs, &[], Some(Background), &[]);
    check(jobs, &["foregroundDeletion"], None, &["foregroundDeletion"]);
    // Nothing owns or follows an event.
    let events = schema::Types::builtin().resource("", "events").unwrap().deletion;
    check(events, &[], Some(Orphan), &[]);
    check(events, &["foregroundDeletion"], Some(Foreground), &[]);
}
