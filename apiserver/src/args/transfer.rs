//! The store on the command line: open, export, import, compact.

use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use store::Store;
use store::embedded::{EmbeddedOptions, EmbeddedStore};
use store::transfer::{self, Summary};
use store::{EtcdOptions, EtcdStore};

/// The store's file under the root directory.
const FILE: &str = "store.redb";

/// Work on the store while no server uses it: on its file, or on etcd where servers of it are given.
#[derive(Debug, Args)]
pub(super) struct StoreArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write everything that the store holds, secrets included, as lines of JSON.
    Export {
        /// A file that does not exist yet, or `-` for standard output.
        file: PathBuf,
    },
    /// Make a store of what an export has written. There must be none yet.
    Import {
        /// The export, or `-` for standard input.
        file: PathBuf,
    },
    /// Give free space of the store's file back to the file system.
    Compact,
}

/// The store under a root directory, made if it is not there.
pub(super) fn open(
    root: &Path,
    history: Duration,
    compaction_interval: Duration,
) -> anyhow::Result<Arc<dyn Store>> {
    make_root(root)?;
    let path = root.join(FILE);
    let options = EmbeddedOptions { history, compaction_interval, ..EmbeddedOptions::default() };
    let store = EmbeddedStore::open(&path, options)
        .with_context(|| format!("open the store {}", path.display()))?;
    Ok(store)
}

/// The store in an etcd, made if it is not there.
pub(super) async fn open_etcd(options: &EtcdOptions) -> anyhow::Result<Arc<dyn Store>> {
    let store = EtcdStore::open(options).await.context("open the store in etcd")?;
    Ok(store)
}

// === impl StoreArgs ===

impl StoreArgs {
    /// Does it, and says what has been done on standard error.
    pub(super) async fn run(self, root: &Path, etcd: Option<&EtcdOptions>) -> anyhow::Result<()> {
        let path = root.join(FILE);
        let told = match (self.action, etcd) {
            (Action::Export { file }, None) => export(&path, &file).await?,
            (Action::Export { file }, Some(etcd)) => {
                let store =
                    EtcdStore::open_existing(etcd).await.context("open the store in etcd")?;
                export_store(store.as_ref(), &file).await?
            }
            (Action::Import { file }, None) => {
                make_root(root)?;
                let summary = transfer::import(&path, input(&file)?);
                imported(&summary.with_context(|| format!("import to {}", path.display()))?)
            }
            (Action::Import { file }, Some(etcd)) => {
                let summary = store::etcd::import(etcd, input(&file)?).await;
                imported(&summary.context("import to etcd")?)
            }
            (Action::Compact, None) => {
                let shrunk = transfer::compact_file(&path)
                    .with_context(|| format!("compact {}", path.display()))?;
                format!("{} bytes before, {} after", shrunk.before, shrunk.after)
            }
            (Action::Compact, Some(_)) => {
                anyhow::bail!("etcd gives space back by itself: `etcdctl defrag`")
            }
        };
        writeln!(std::io::stderr(), "{told}").context("write to standard error")
    }
}

async fn export(path: &Path, file: &Path) -> anyhow::Result<String> {
    anyhow::ensure!(path.try_exists()?, "there is no store at {}", path.display());
    // Before the file is made: a server that uses the store must leave no empty file behind.
    let store = EmbeddedStore::open(path, EmbeddedOptions::default())
        .with_context(|| format!("open the store {}", path.display()))?;
    export_store(store.as_ref(), file).await
}

async fn export_store(store: &dyn Store, file: &Path) -> anyhow::Result<String> {
    let written = if file == Path::new("-") {
        write_to(store, &mut std::io::stdout().lock()).await
    } else {
        export_to(store, file).await
    };
    store.close().await;
    let summary = written?;
    Ok(format!("exported {} records at revision {}", summary.records, summary.revision))
}

/// Makes a file that is whole and on the disk, or none.
async fn export_to(store: &dyn Store, file: &Path) -> anyhow::Result<Summary> {
    // It holds secrets: for the owner alone.
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let mut out = opened.with_context(|| format!("create {}", file.display()))?;
    let written = match write_to(store, &mut out).await {
        Ok(summary) => out.sync_all().context("write the export").map(|()| summary),
        Err(error) => Err(error),
    };
    if written.is_err() {
        std::fs::remove_file(file).with_context(|| format!("remove {}", file.display()))?;
    }
    written
}

async fn write_to(store: &dyn Store, out: &mut impl Write) -> anyhow::Result<Summary> {
    let mut out = std::io::BufWriter::new(out);
    let summary = transfer::export(store, &mut out).await.context("export")?;
    out.flush().context("write the export")?;
    Ok(summary)
}

fn input(file: &Path) -> anyhow::Result<Box<dyn Read>> {
    if file == Path::new("-") {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let opened = std::fs::File::open(file);
    Ok(Box::new(opened.with_context(|| format!("open {}", file.display()))?))
}

fn imported(summary: &Summary) -> String {
    format!("imported {} records of the hub {}", summary.records, summary.hub_uid)
}

fn make_root(root: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(root).with_context(|| format!("create {}", root.display()))
}
