//! What tests of several modules stand on.

use std::path::Path;

use apiserver::{Running, Server};
use client::{Link, Settings};
use machinery::kubeconfig::Access;

/// An API server in memory, and a link to it as its administrator.
pub(super) async fn server() -> (Running, Link) {
    let store = store::MemoryStore::new(store::memory::Options::default());
    let running = Server::builder(store).start().await.unwrap();
    let link = link(&running);
    (running, link)
}

/// A link to a server as its administrator.
pub(super) fn link(server: &Running) -> Link {
    let access = Access::parse(server.kubeconfig().as_bytes(), None).unwrap();
    Link::new(Settings::of_access(access, Path::new(""), "test/0").unwrap()).unwrap()
}
