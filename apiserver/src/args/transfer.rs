//! The store's files on the command line.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use store::Store;
use store::embedded::{EmbeddedOptions, EmbeddedStore};

/// The store under a root directory, made if it is not there.
pub(super) fn open(
    root: &Path,
    history: Duration,
    compaction_interval: Duration,
) -> anyhow::Result<Arc<dyn Store>> {
    std::fs::create_dir_all(root).with_context(|| format!("create {}", root.display()))?;
    let path = root.join("store.redb");
    let options = EmbeddedOptions { history, compaction_interval, ..EmbeddedOptions::default() };
    let store = EmbeddedStore::open(&path, options)
        .with_context(|| format!("open the store {}", path.display()))?;
    Ok(store)
}
