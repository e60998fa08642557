//! What only a store on disk does: being opened again, by this version and by others.

mod crash;
mod disk;
mod files;
mod model;
mod parts;
mod running;

use std::path::Path;
use std::sync::Arc;

use super::{EmbeddedOptions, EmbeddedStore};
use crate::conformance::harness::Fixture;

fn open(path: &Path) -> Arc<EmbeddedStore> {
    EmbeddedStore::open(path, EmbeddedOptions::default()).unwrap()
}

fn fixture(store: Arc<EmbeddedStore>) -> Fixture {
    Fixture::new(store)
}
