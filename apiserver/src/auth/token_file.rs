//! Static tokens from a file of the operator: `token,user,uid,"group1,group2"` in each line
//! (upstream's `--token-auth-file`).
//!
//! The file is read again when it has changed, at most once a second; one that can't be read leaves
//! what was there. Only digests of tokens are held.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::auth::UserInfo;
use crate::auth::recent::{TokenDigest, digest};
use crate::pki::files;

/// How often it is looked whether the file has changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Why a file of tokens can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// It can't be read.
    #[error("read {path}")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A line has too little in it.
    #[error(
        "{path} must have at least 3 columns (token, user name, user uid), line {line} has {found}"
    )]
    Columns {
        /// The file.
        path: String,
        /// The record, from 1.
        line: usize,
        /// Its columns.
        found: usize,
    },
    /// A quotation has no end, or text after it.
    #[error("{path} has a quotation that does not end")]
    Quotation {
        /// The file.
        path: String,
    },
}

type Users = HashMap<TokenDigest, Arc<UserInfo>, ahash::RandomState>;

/// The tokens of a file.
#[derive(Debug)]
pub(crate) struct TokenFile {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    users: Users,
    version: Option<files::Version>,
    looked: Instant,
}

// === impl TokenFile ===

impl TokenFile {
    /// Reads a file of tokens.
    ///
    /// # Errors
    /// When it can't be read, or is no such file.
    pub(crate) fn open(path: &Path) -> Result<Self, TokenFileError> {
        let version = files::version(std::fs::metadata(path));
        let state = State { users: read(path)?, version, looked: Instant::now() };
        Ok(Self { path: path.to_owned(), state: Mutex::new(state) })
    }

    /// Who a token is, by its digest.
    pub(crate) fn identify(&self, digest: &TokenDigest) -> Option<Arc<UserInfo>> {
        let mut state = self.state.lock();
        let now = Instant::now();
        if now.duration_since(state.looked) >= LOOK_EVERY {
            state.looked = now;
            let version = files::version(std::fs::metadata(&self.path));
            if version != state.version {
                state.version = version;
                match read(&self.path) {
                    Ok(users) => {
                        info!(tokens = users.len(), "static tokens were read again");
                        state.users = users;
                    }
                    Err(error) => {
                        let error = &error as &dyn std::error::Error;
                        warn!(error, "static tokens stay as they were");
                    }
                }
            }
        }
        state.users.get(digest).cloned()
    }
}

fn read(path: &Path) -> Result<Users, TokenFileError> {
    let name = || path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|source| TokenFileError::Read { path: name(), source })?;
    let records = records(&text).ok_or_else(|| TokenFileError::Quotation { path: name() })?;
    let mut users = Users::default();
    for (index, record) in records.iter().enumerate() {
        let [token, user, uid, rest @ ..] = record.as_slice() else {
            let (line, found) = (index + 1, record.len());
            return Err(TokenFileError::Columns { path: name(), line, found });
        };
        if token.is_empty() {
            warn!(record = index + 1, "an empty static token is passed over");
            continue;
        }
        let groups = rest.first().map(|groups| groups.split(',').map(str::to_owned).collect());
        let user = UserInfo {
            name: user.clone(),
            uid: uid.clone(),
            groups: groups.unwrap_or_default(),
            ..UserInfo::default()
        };
        users.insert(digest(token), Arc::new(user.authenticated()));
    }
    Ok(users)
}

/// The records of comma-separated values (RFC 4180), empty lines left out; `None` for a quotation
/// without an end, or with something after it.
fn records(text: &str) -> Option<Vec<Vec<String>>> {
    let (mut records, mut record) = (Vec::new(), Vec::new());
    let mut field = String::new();
    let mut chars = text.chars().peekable();
    // Whether the field is one that was quoted, and is complete.
    let mut quoted = false;
    while let Some(c) = chars.next() {
        match c {
            '"' if field.is_empty() && !quoted => {
                quoted = true;
                loop {
                    match chars.next()? {
                        '"' if chars.peek() == Some(&'"') => {
                            chars.next();
                            field.push('"');
                        }
                        '"' => break,
                        c => field.push(c),
                    }
                }
            }
            ',' => {
                record.push(std::mem::take(&mut field));
                quoted = false;
            }
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' => {
                if !record.is_empty() || !field.is_empty() || quoted {
                    record.push(std::mem::take(&mut field));
                    records.push(std::mem::take(&mut record));
                }
                quoted = false;
            }
            _ if quoted => return None,
            c => field.push(c),
        }
    }
    if !record.is_empty() || !field.is_empty() || quoted {
        record.push(field);
        records.push(record);
    }
    Some(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_apart() {
        let check = |text: &str, expect: Option<&[&[&str]]>| {
            let found = records(text);
            let expect = expect.map(|records| {
                let owned = |record: &&[&str]| record.iter().map(|s| (*s).to_owned()).collect();
                records.iter().map(owned).collect::<Vec<Vec<String>>>()
            });
            assert_eq!(found, expect, "{text:?}");
        };
        check("", Some(&[]));
        check("\n\r\n", Some(&[]));
        check("a,b,c", Some(&[&["a", "b", "c"]]));
        check("a,b,c\r\nd,e,f\n", Some(&[&["a", "b", "c"], &["d", "e", "f"]]));
        check("a,b,c,\"g,h\"\n", Some(&[&["a", "b", "c", "g,h"]]));
        check("\"a\"\"b\",\"\"", Some(&[&["a\"b", ""]]));
        check("a,", Some(&[&["a", ""]]));
        check("\"a\nb\",c", Some(&[&["a\nb", "c"]]));
        check("\"a", None);
        check("\"a\"b", None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_file_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.csv");
        std::fs::write(&path, "one,ann,1,\"a,b\"\ntwo,bob,2\n,nobody,3\n").unwrap();
        let file = TokenFile::open(&path).unwrap();
        let name = |token: &str| file.identify(&digest(token)).map(|user| user.name.clone());
        let ann = file.identify(&digest("one")).unwrap();
        assert_eq!((&*ann.name, &*ann.uid), ("ann", "1"));
        assert_eq!(ann.groups, ["a", "b", "system:authenticated"]);
        assert_eq!(name("two").as_deref(), Some("bob"));
        assert_eq!((name("three"), name("")), (None, None));

        std::fs::write(&path, "three,eve,4\n").unwrap();
        tokio::time::advance(LOOK_EVERY).await;
        assert_eq!((name("three").as_deref(), name("one")), (Some("eve"), None));
        // What can't be read changes nothing.
        std::fs::write(&path, "four\n").unwrap();
        tokio::time::advance(LOOK_EVERY).await;
        assert_eq!(name("three").as_deref(), Some("eve"));
        let error = TokenFile::open(&path).unwrap_err().to_string();
        assert!(error.ends_with("line 1 has 1"), "{error}");
    }
}
