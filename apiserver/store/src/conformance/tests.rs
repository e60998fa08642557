use std::time::Duration;

use super::*;
use crate::memory::{MemoryStore, Options};
use crate::{EmbeddedOptions, EmbeddedStore};

/// Runs every case over the fixtures that `$make` makes.
macro_rules! suite {
    ($backend:ident, $make:expr) => {
        mod $backend {
            with_cases!(tests!($make));
        }
    };
}

macro_rules! tests {
    (($make:expr) $(($module:ident $($case:ident)*))*) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let fixture: super::Fixture = { use super::*; $make };
                super::$module::$case(&fixture).await;
                fixture.end().await;
            }
        )*)*
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

// Everything is ciphertext below.
suite!(sealed, {
    let keys = crate::sealed::Keyring::for_tests();
    let store = crate::SealedStore::new(MemoryStore::new(Options::default()), keys);
    let mut fixture = Fixture::new(store);
    fixture.added = 64;
    fixture
});

fn embedded(options: EmbeddedOptions) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(&directory.path().join("store"), options).unwrap();
    Fixture::new(store).keeping(directory)
}
