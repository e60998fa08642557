//! What every backend must do: one suite, run over each of them.
//!
//! A case gets a fresh store, and never assumes that it is the only writer: some fixtures have a
//! second one, which commits to a resource that no case reads.

mod cases;
pub(crate) mod harness;
mod watches;

use std::time::Duration;

use harness::Fixture;

use crate::memory::{MemoryStore, Options};
use crate::{EmbeddedOptions, EmbeddedStore};

/// Runs every case over the fixtures that `$make` makes.
macro_rules! suite {
    ($backend:ident, $make:expr) => {
        mod $backend {
            suite!(@tests $make, cases:
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
                closing
            );
            suite!(@tests $make, watches:
                watch_from_the_beginning
                watch_from_a_revision
                watch_what_happens
                watch_one_commit_together
                watch_previous_values
                watch_over_a_compaction
                watch_many_commits_exactly_once
            );
        }
    };
    (@tests $make:expr, $module:ident: $($case:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let fixture: super::Fixture = { use super::*; $make };
                super::$module::$case(&fixture).await;
                fixture.end().await;
            }
        )*
    };
}

suite!(memory, Fixture::new(MemoryStore::new(Options::default())));
suite!(memory_with_late_watches, {
    let watch_delay = Duration::from_millis(5);
    Fixture::new(MemoryStore::new(Options { watch_delay, ..Options::default() }))
});
suite!(memory_with_a_second_writer, {
    Fixture::new(MemoryStore::new(Options::default())).with_second_writer()
});
suite!(embedded, embedded(EmbeddedOptions::default()));
suite!(embedded_with_a_second_writer, {
    embedded(EmbeddedOptions::default()).with_second_writer()
});
// Nearly everything comes from the log on disk.
suite!(embedded_without_recent_history, {
    embedded(EmbeddedOptions { recent_bytes: 1024, ..EmbeddedOptions::default() })
});

fn embedded(options: EmbeddedOptions) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(&directory.path().join("store"), options).unwrap();
    Fixture::new(store).keeping(directory)
}
