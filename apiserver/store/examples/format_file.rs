//! Writes the store file that `tests/old_files.rs` reads: `… --example format_file <new file>`.
//!
//! Run once for each minor version of the format and commit what it writes, under a new name: the
//! files of earlier versions stay, as the test must read them all.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use machinery::{ClusterName, GroupResource, ObjectKey};
use store::{EmbeddedOptions, EmbeddedStore, Key, Op, Store, Txn, transfer};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let path = std::env::args().nth(1).map(PathBuf::from).context("say where to write")?;
    // History stays: its times are those of this run, and the test reads it.
    let history = Duration::from_secs(1 << 31);
    let options = EmbeddedOptions { history, ..EmbeddedOptions::default() };
    let store = EmbeddedStore::open(&path, options)?;
    let put = |key, value: &[u8]| Op::Put { key, value: Bytes::copy_from_slice(value) };
    let commits = [
        vec![put(key("", "namespaces", "", "one"), b"{\"one\":1}")],
        vec![put(key("", "configmaps", "one", "a"), b"first")],
        vec![
            put(key("", "configmaps", "one", "a"), b"second"),
            put(key("apps", "deployments", "one", "d"), &[0xff, 0x00, 0x80]),
        ],
        vec![put(key("", "secrets", "one", "gone"), b"")],
        vec![Op::Delete { key: key("", "secrets", "one", "gone") }],
        vec![put(key("", "configmaps", "one", "large"), &[b'x'; 10_000])],
        vec![put(definition("a"), parted("a").as_bytes())],
        vec![put(definition("b"), parted("b").as_bytes())],
    ];
    for (number, ops) in commits.into_iter().enumerate() {
        let revision = store.commit(Txn { ops, ..Txn::default() }).await?;
        if number == 1 {
            store.compact(revision).await?;
        }
    }
    store.close().await;
    transfer::compact_file(&path)?;
    Ok(())
}

fn definition(name: &str) -> Key {
    key("apiextensions.k8s.io", "customresourcedefinitions", "", name)
}

/// A value with a part that others have, too.
fn parted(name: &str) -> String {
    format!(r#"{{"name":"{name}","spec":"{}"}}"#, "y".repeat(5000))
}

fn key(group: &str, resource: &str, namespace: &str, name: &str) -> Key {
    let object = ObjectKey::new(ClusterName::root(), namespace, name);
    Key::new(&GroupResource::new(group, resource), &object)
}
