//! What every backend must do: one suite, run over each of them.
//!
//! A case gets a fresh store, and never assumes that it is the only writer: some fixtures have a
//! second one, which commits to a resource that no case reads. Backends that need nothing but this
//! process are run by this crate's tests; [`CASES`] is for who has others.
#![allow(clippy::unwrap_used, reason = "everything here is a test")]

mod cases;
pub mod harness;
mod watches;

use futures::future::BoxFuture;

pub use harness::Fixture;

/// One case: its name, and what it does with a fresh store. It panics if the store errs.
pub type Case = (&'static str, for<'a> fn(&'a Fixture) -> BoxFuture<'a, ()>);

/// Gives the names of all cases, by module, to a macro.
macro_rules! with_cases {
    ($take:ident! $before:tt) => {
        $take! { $before
            (cases
                compare_and_swap
                compares_over_several_keys
                malformed_commits
                revisions_increase
                no_change_takes_no_revision
                ranges_are_ordered_and_bounded
                ranges_at_old_revisions
                pages_at_one_revision_while_writes_go_on
                creation_revisions
                compacted_revisions
                future_revisions
                counting_by_compare_and_swap
                closing)
            (watches
                watch_from_the_beginning
                watch_from_a_revision
                watch_what_happens
                watch_one_commit_together
                watch_previous_values
                watch_over_a_compaction
                watch_many_commits_exactly_once)
        }
    };
}

macro_rules! table {
    (() $(($module:ident $($case:ident)*))*) => {
        /// All cases.
        pub const CASES: &[Case] =
            &[$($((stringify!($case), |fixture| Box::pin($module::$case(fixture))),)*)*];
    };
}

with_cases!(table!());

#[cfg(test)]
mod tests;
