//! Opening the file: create it when missing, know its version, read where it stands.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use redb::backends::FileBackend;
use redb::{Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, StorageBackend};
use uuid::Uuid;

use super::format;
use crate::{Identity, Revision};

/// Bytes of memory for pages while a store is made.
pub(crate) const MAKING_CACHE: usize = 8 << 20;

/// Why a store file could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process, or another store of this one, has it open.
    #[error("store is open elsewhere")]
    Locked,
    /// A later release has written it in a form that this one cannot read.
    #[error("store has format {found}, this program reads {}.x", format::MAJOR)]
    Format {
        /// The format that the file says it has.
        found: String,
    },
    /// It is a database, but not one of this program.
    #[error("file is not a store")]
    NotAStore,
    /// It holds what no version of this program can have written.
    #[error("store is corrupt: {0}")]
    Corrupt(String),
    /// The file or its directory cannot be read or written.
    #[error("open store")]
    Io(#[source] io::Error),
}

/// An open file and what `meta` and the log say of it.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) database: Database,
    pub(crate) identity: Identity,
    pub(crate) revision: Revision,
    pub(crate) oldest: Revision,
    /// Everything up to here is gone from the log; never above `oldest`.
    pub(crate) trimmed: Revision,
    /// The minor version of its format.
    pub(crate) minor: u32,
}

/// What a new store starts with.
#[derive(Clone, Debug)]
pub(crate) struct Birth {
    pub(crate) identity: Identity,
    /// The revision that it stands at, without history before it.
    pub(crate) revision: Revision,
}

// === impl Birth ===

impl Birth {
    /// A new hub's.
    pub(crate) fn new() -> Self {
        let identity = Identity { hub_uid: Uuid::new_v4().to_string(), rv_base: 0 };
        Self { identity, revision: Revision(0) }
    }
}

/// Opens an existing file for reading and writing: once for the database and once to ask for its
/// length. `None` when there is none.
pub(crate) fn file(path: &Path) -> Result<Option<(FileBackend, File)>, OpenError> {
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(OpenError::Io(error)),
    };
    let length = file.try_clone().map_err(OpenError::Io)?;
    Ok(Some((FileBackend::new(file)?, length)))
}

/// Makes a store at `path`, with what `fill` puts into it.
///
/// It is made beside its place and put there when it is whole, so that a crash leaves either no
/// store or this one. A store that has meanwhile come to be there is kept, and `false` returned.
pub(crate) fn make<E: From<OpenError>>(
    path: &Path,
    birth: &Birth,
    fill: impl FnOnce(&Database) -> Result<(), E>,
) -> Result<bool, E> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new-{}", Uuid::new_v4()));
    let aside = path.with_file_name(name);
    let filled = begin_aside(&aside, birth).map_err(E::from).and_then(|database| fill(&database));
    let made = filled.and_then(|()| {
        // Unlike a rename, a link never replaces what is there.
        match fs::hard_link(&aside, path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(OpenError::Io(error).into()),
        }
    });
    if let Err(error) = fs::remove_file(&aside)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, "cannot remove the file in which a store was made");
    }
    if made? {
        // A new file survives a power cut only once its directory does.
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = File::open(parent.unwrap_or(Path::new("."))).map_err(OpenError::Io)?;
        parent.sync_all().map_err(OpenError::Io)?;
        return Ok(true);
    }
    Ok(false)
}

fn begin_aside(aside: &Path, birth: &Birth) -> Result<Database, OpenError> {
    // Only the owner may read it: it will hold secrets.
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(aside);
    let backend = FileBackend::new(file.map_err(OpenError::Io)?)?;
    let database = Builder::new().set_cache_size(MAKING_CACHE).create_with_backend(backend)?;
    create(&database, birth)?;
    Ok(database)
}

/// Opens a store on any disk, and makes one there if it is empty.
pub(crate) fn open(backend: impl StorageBackend, cache_bytes: usize) -> Result<Opened, OpenError> {
    let database = Builder::new()
        .set_cache_size(cache_bytes)
        .set_repair_callback(|session| {
            tracing::info!(progress = session.progress(), "checking the store after a crash");
        })
        .create_with_backend(backend)?;
    if is_empty(&database)? {
        create(&database, &Birth::new())?;
    }
    read(database)
}

fn is_empty(database: &Database) -> Result<bool, OpenError> {
    let read = database.begin_read().map_err(redb::Error::from)?;
    Ok(read.list_tables().map_err(redb::Error::from)?.next().is_none())
}

/// Writes everything that makes a store in one step: a crash leaves an empty file or a whole store.
fn create(database: &Database, birth: &Birth) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    {
        let mut meta = write.open_table(format::META)?;
        let version = format!("{}.{}", format::MAJOR, format::MINOR);
        meta.insert(format::META_FORMAT, version.as_bytes())?;
        meta.insert(format::META_HUB_UID, birth.identity.hub_uid.as_bytes())?;
        meta.insert(format::META_RV_BASE, birth.identity.rv_base.to_be_bytes().as_slice())?;
        meta.insert(format::META_OLDEST, birth.revision.0.to_be_bytes().as_slice())?;
        write.open_table(format::OBJECTS)?;
        write.open_table(format::LOG)?;
        write.open_table(format::PARTS)?;
        write.open_table(format::PART_COUNTS)?;
    }
    write.commit()?;
    Ok(())
}

fn read(database: Database) -> Result<Opened, OpenError> {
    let read = database.begin_read().map_err(redb::Error::from)?;
    let meta = match read.open_table(format::META) {
        Ok(meta) => meta,
        Err(redb::TableError::Storage(error)) => return Err(redb::Error::from(error).into()),
        Err(_absent_or_other_type) => return Err(OpenError::NotAStore),
    };
    let bytes = |key: &'static [u8]| -> Result<Option<Vec<u8>>, OpenError> {
        let found = meta.get(key).map_err(redb::Error::from)?;
        Ok(found.map(|bytes| bytes.value().to_vec()))
    };
    let text = |key| -> Result<Option<String>, OpenError> {
        let text = bytes(key)?.map(String::from_utf8).transpose();
        text.map_err(|_| OpenError::Corrupt("a text of meta is not UTF-8".to_owned()))
    };
    let number = |key| -> Result<u64, OpenError> {
        let number = bytes(key)?.and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        number.ok_or_else(|| OpenError::Corrupt("a number of meta is missing".to_owned()))
    };
    let found = text(format::META_FORMAT)?.ok_or(OpenError::NotAStore)?;
    let Some(minor) = minor(&found) else { return Err(OpenError::Format { found }) };
    let hub_uid = text(format::META_HUB_UID)?;
    let hub_uid = hub_uid.ok_or_else(|| OpenError::Corrupt("hub_uid is missing".to_owned()))?;
    let identity = Identity { hub_uid, rv_base: number(format::META_RV_BASE)? };
    let oldest = Revision(number(format::META_OLDEST)?);

    let log = read.open_table(format::LOG).map_err(redb::Error::from)?;
    let first = log.first().map_err(redb::Error::from)?.map(|(revision, _)| revision.value());
    let last = log.last().map_err(redb::Error::from)?.map(|(revision, _)| revision.value());
    let revision = Revision(last.unwrap_or_default()).max(oldest);
    let trimmed = first.map_or(oldest, |first| Revision(first.saturating_sub(1)));
    if trimmed > oldest {
        return Err(OpenError::Corrupt(format!("the log begins at {trimmed}, not {oldest}")));
    }
    drop((log, meta, read));
    Ok(Opened { database, identity, revision, oldest, trimmed, minor })
}

/// The minor version of a format that this program reads: its own major version, with any minor one.
fn minor(version: &str) -> Option<u32> {
    let (major, minor) = version.split_once('.')?;
    (major.parse() == Ok(format::MAJOR)).then(|| minor.parse().ok())?
}

// === impl OpenError ===

impl From<DatabaseError> for OpenError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::DatabaseAlreadyOpen => Self::Locked,
            DatabaseError::UpgradeRequired(version) => {
                Self::Format { found: format!("of file version {version}") }
            }
            other => redb::Error::from(other).into(),
        }
    }
}

impl From<redb::Error> for OpenError {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Corrupted(what) => Self::Corrupt(what),
            redb::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => Self::NotAStore,
            redb::Error::Io(error) => Self::Io(error),
            other => Self::Io(io::Error::other(other)),
        }
    }
}
