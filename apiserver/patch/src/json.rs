//! JSON patch, RFC 6902, as kube-apiserver applies it.
//!
//! The operations are our own rather than a library's because kube-apiserver's
//! (`evanphx/json-patch` v4) departs from the RFC, and clients have come to rely on it:
//! - `replace` of a field that an object lacks adds it, and `copy` from one adds null;
//! - `test` for null holds where the field is missing; a missing `value` counts as null;
//! - an index may be negative and counts from the end; `-1` in an `add` appends;
//! - what stands before the first slash of a path is ignored.
//!
//! A patch can cost far more than its size (copies that double, insertions at the front of a long
//! list), so `copy` has a budget in bytes, and so have the list items that operations move.

use std::io;

use machinery::field::go_quote;
use serde_json::{Map, Value};

use crate::depth::{MAX_DEPTH, is_too_deep, measure};
use crate::error::PatchError;

mod operation;

use operation::{Kind, Operation};

/// The most operations in one patch.
pub const MAX_OPERATIONS: usize = 10_000;

/// Bytes that all `copy` operations of one patch may add: upstream's default.
pub const MAX_COPIED: usize = 3 * 1024 * 1024;

/// List items that one patch may shift to insert and remove others, and values that it may visit
/// to move them: some 2 GB of memory traffic, a fraction of a second.
const MAX_WORK: u64 = 1 << 26;

/// Applies `patch`, a list of operations, to `doc`. `max_copied` limits the bytes that its `copy`
/// operations may add in all, as in [`MAX_COPIED`].
///
/// # Errors
/// [`PatchError::Malformed`] when the patch is no list of operations,
/// [`PatchError::TooManyOperations`] above [`MAX_OPERATIONS`], [`PatchError::Failed`] when a path is
/// missing, [`PatchError::TestFailed`] when a `test` fails, [`PatchError::TooLarge`] above the budgets.
/// After an error `doc` may be patched in part and is to be thrown away.
pub fn apply(doc: &mut Value, patch: &Value, max_copied: usize) -> Result<(), PatchError> {
    let operations = match patch {
        Value::Array(operations) => operations.as_slice(),
        Value::Null => &[],
        _ => return Err(PatchError::Malformed("a JSON patch is a list of operations".into())),
    };
    if is_too_deep(patch) {
        return Err(PatchError::too_deep());
    }
    if operations.len() > MAX_OPERATIONS {
        let got = operations.len();
        return Err(PatchError::TooManyOperations { max: MAX_OPERATIONS, got });
    }
    let operations: Vec<_> =
        operations.iter().enumerate().map(Operation::parse).collect::<Result<_, _>>()?;
    let mut run = Run { doc, copied_left: max_copied, work_left: MAX_WORK };
    operations.iter().try_for_each(|operation| run.step(operation))
}

/// The fields of operations that no operation has, as strict decoding reports them:
/// `unknown field "[0].x"`.
pub fn unknown_fields(patch: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (at, operation) in patch.as_array().into_iter().flatten().enumerate() {
        for name in operation.as_object().into_iter().flat_map(Map::keys) {
            if !matches!(name.as_str(), "op" | "path" | "from" | "value") {
                found.push(format!("unknown field \"[{at}].{name}\""));
            }
        }
    }
    found
}

/// A patch on its way through a document.
struct Run<'d> {
    doc: &'d mut Value,
    copied_left: usize,
    work_left: u64,
}

// === impl Run ===

impl Run<'_> {
    fn step(&mut self, operation: &Operation<'_>) -> Result<(), PatchError> {
        match operation.kind {
            Kind::Add => {
                let path = operation.path()?;
                self.check_depth(path, operation.value())?;
                let added = self.insert(path, operation.value().clone());
                added.map_err(|fault| match fault {
                    Fault::Missing => failed(format!(
                        "add operation does not apply: doc is missing path: \"{path}\": {MISSING}"
                    )),
                    fault => fault.told(&format!("error in add for path: '{path}'")),
                })
            }
            Kind::Remove => {
                let path = operation.path()?;
                let removed = self.remove(path).map(drop);
                removed.map_err(|fault| match fault {
                    Fault::Missing => failed(format!(
                        "remove operation does not apply: doc is missing path: \"{path}\": {MISSING}"
                    )),
                    fault => fault.told(&format!("error in remove for path: '{path}'")),
                })
            }
            Kind::Replace => self.replace(operation.path()?, operation.value()),
            Kind::Move => self.shift(operation.from()?, operation.path()?),
            Kind::Copy => self.copy(operation.from()?, operation.path()?),
            Kind::Test => self.test(operation.path()?, operation.value()),
            Kind::Unknown(name) => Err(failed(format!("Unexpected kind: {name}"))),
        }
    }

    fn insert(&mut self, path: &str, value: Value) -> Result<(), Fault> {
        let (container, key) = locate_mut(self.doc, path)?;
        match container {
            Value::Object(fields) => {
                fields.insert(key, value);
            }
            Value::Array(items) => {
                let at = if key == "-" { items.len() } else { index(&key, items.len() + 1)? };
                spend(&mut self.work_left, items.len() - at)?;
                items.insert(at, value);
            }
            _ => return Err(Fault::Missing),
        }
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<Value, Fault> {
        let (container, key) = locate_mut(self.doc, path)?;
        match container {
            Value::Object(fields) => fields.remove(&key).ok_or_else(|| {
                Fault::At(format!("Unable to remove nonexistent key: {key}: {MISSING}"))
            }),
            Value::Array(items) => {
                let at = index(&key, items.len())?;
                spend(&mut self.work_left, items.len() - at)?;
                Ok(items.remove(at))
            }
            _ => Err(Fault::Missing),
        }
    }

    fn replace(&mut self, path: &str, value: &Value) -> Result<(), PatchError> {
        self.check_depth(path, value)?;
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                return Err(failed("a document can't be replaced by a scalar".into()));
            }
            *self.doc = value.clone();
            return Ok(());
        }
        let absent = |what: &str| {
            failed(format!(
                "replace operation does not apply: doc is missing {what}: {path}: {MISSING}"
            ))
        };
        let (container, key) = locate_mut(self.doc, path).map_err(|_| absent("path"))?;
        match container {
            Value::Object(fields) => {
                fields.insert(key, value.clone());
            }
            Value::Array(items) => {
                let at = index(&key, items.len()).map_err(|_| absent("key"))?;
                items[at] = value.clone();
            }
            _ => return Err(absent("path")),
        }
        Ok(())
    }

    fn shift(&mut self, from: &str, path: &str) -> Result<(), PatchError> {
        let value = self.remove(from).map_err(|fault| match fault {
            Fault::Missing => failed(format!(
                "move operation does not apply: doc is missing from path: {from}: {MISSING}"
            )),
            fault => {
                let key = split(from).map(|(_, key)| unescape(key)).unwrap_or_default();
                fault.told(&format!("error in move for path: '{key}'"))
            }
        })?;
        if segments(path) > segments(from) {
            let (depth, visited) = measure(&value, MAX_DEPTH);
            let visited = usize::try_from(visited).unwrap_or(usize::MAX);
            spend(&mut self.work_left, visited).map_err(|fault| fault.told("error in move"))?;
            check_depth(path, depth)?;
        }
        self.insert(path, value).map_err(|fault| match fault {
            Fault::Missing => failed(format!(
                "move operation does not apply: doc is missing destination path: {path}: {MISSING}"
            )),
            fault => fault.told(&format!("error in move for path: '{path}'")),
        })
    }

    fn copy(&mut self, from: &str, path: &str) -> Result<(), PatchError> {
        let found = get(self.doc, from).map_err(|fault| match fault {
            Fault::Missing => failed(format!(
                "copy operation does not apply: doc is missing from path: {from}: {MISSING}"
            )),
            fault => fault.told(&format!("error in copy for from: '{from}'")),
        })?;
        let value = found.unwrap_or(&Value::Null);
        let mut counter = Counter { left: self.copied_left };
        if serde_json::to_writer(&mut counter, value).is_err() {
            let text = "the copy operations of the JSON patch add more than the server allows";
            return Err(PatchError::TooLarge(text.into()));
        }
        self.copied_left = counter.left;
        let value = value.clone();
        self.check_depth(path, &value)?;
        self.insert(path, value).map_err(|fault| match fault {
            Fault::Missing => failed(format!(
                "copy operation does not apply: doc is missing destination path: {path}: {MISSING}"
            )),
            fault => fault.told("error while adding value during copy"),
        })
    }

    fn test(&self, path: &str, expected: &Value) -> Result<(), PatchError> {
        let found = if path.is_empty() {
            &*self.doc
        } else {
            let found = get(self.doc, path).map_err(|fault| match fault {
                Fault::Missing => failed(format!(
                    "test operation does not apply: is missing path: {path}: {MISSING}"
                )),
                fault => fault.told(&format!("error in test for path: '{path}'")),
            })?;
            found.unwrap_or(&Value::Null)
        };
        if found == expected {
            Ok(())
        } else {
            Err(PatchError::TestFailed(format!("testing value {path} failed: test failed")))
        }
    }

    /// Refuses to place `value` at `path` when the document would nest too deeply.
    fn check_depth(&self, path: &str, value: &Value) -> Result<(), PatchError> {
        check_depth(path, measure(value, MAX_DEPTH).0)
    }
}

/// Why a place can't be reached or changed; what was meant to be done there is said by the caller.
enum Fault {
    /// Nothing holds it.
    Missing,
    /// What holds it has no such place.
    At(String),
    /// It would cost too much.
    Costly(PatchError),
}

/// How upstream says that something is not there.
const MISSING: &str = "missing value";

// === impl Fault ===

impl Fault {
    /// The error of an operation.
    fn told(self, doing: &str) -> PatchError {
        match self {
            Self::Missing => failed(format!("{doing}: {MISSING}")),
            Self::At(why) => failed(format!("{doing}: {why}")),
            Self::Costly(error) => error,
        }
    }
}

/// Counts the bytes of a value without keeping them, and fails when there are too many.
struct Counter {
    left: usize,
}

// === impl Counter ===

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.left.checked_sub(bytes.len()) {
            Some(left) => self.left = left,
            None => return Err(io::ErrorKind::FileTooLarge.into()),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn check_depth(path: &str, depth: usize) -> Result<(), PatchError> {
    if segments(path) + depth > MAX_DEPTH {
        return Err(PatchError::TooLarge(format!("exceeded max depth of {MAX_DEPTH}")));
    }
    Ok(())
}

fn spend(left: &mut u64, items: usize) -> Result<(), Fault> {
    match left.checked_sub(items as u64) {
        Some(rest) => *left = rest,
        None => {
            let text = "the JSON patch moves more list items than the server allows";
            return Err(Fault::Costly(PatchError::TooLarge(text.into())));
        }
    }
    Ok(())
}

/// The container that holds the place `path`, and the place's name in it.
fn locate_mut<'d>(doc: &'d mut Value, path: &str) -> Result<(&'d mut Value, String), Fault> {
    let (parents, key) = split(path).ok_or(Fault::Missing)?;
    let mut at = doc;
    for part in parents.into_iter().flat_map(|parents| parents.split('/')) {
        let next = match at {
            Value::Object(fields) => fields.get_mut(&unescape(part)),
            Value::Array(items) => {
                index(&unescape(part), items.len()).ok().and_then(|at| items.get_mut(at))
            }
            _ => None,
        };
        at = next.ok_or(Fault::Missing)?;
    }
    Ok((at, unescape(key)))
}

/// The value at `path`; `None` when it is a field that its object lacks.
fn get<'d>(doc: &'d Value, path: &str) -> Result<Option<&'d Value>, Fault> {
    let (parents, key) = split(path).ok_or(Fault::Missing)?;
    let mut at = doc;
    for part in parents.into_iter().flat_map(|parents| parents.split('/')) {
        at = step(at, &unescape(part)).ok().flatten().ok_or(Fault::Missing)?;
    }
    step(at, &unescape(key))
}

fn step<'d>(container: &'d Value, key: &str) -> Result<Option<&'d Value>, Fault> {
    match container {
        Value::Object(fields) => Ok(fields.get(key)),
        Value::Array(items) => Ok(Some(&items[index(key, items.len())?])),
        _ => Err(Fault::Missing),
    }
}

/// Splits a path into what leads to the container, if it isn't the document, and the last part.
fn split(path: &str) -> Option<(Option<&str>, &str)> {
    let (_, rest) = path.split_once('/')?;
    Some(match rest.rsplit_once('/') {
        Some((parents, key)) => (Some(parents), key),
        None => (None, rest),
    })
}

fn segments(path: &str) -> usize {
    path.bytes().filter(|byte| *byte == b'/').count()
}

/// RFC 6901 §4: `~1` is a slash, `~0` a tilde.
fn unescape(part: &str) -> String {
    if part.contains('~') { part.replace("~1", "/").replace("~0", "~") } else { part.to_owned() }
}

/// The position that `key` names among `len`; negative ones count from the end.
fn index(key: &str, len: usize) -> Result<usize, Fault> {
    let invalid =
        || Fault::At(format!("Unable to access invalid index: {key}: invalid index referenced"));
    let at: i64 = key.parse().map_err(|_| {
        Fault::At(format!("strconv.Atoi: parsing {}: invalid syntax", go_quote(key)))
    })?;
    let at = if at < 0 {
        len.checked_add_signed(isize::try_from(at).map_err(|_| invalid())?)
    } else {
        usize::try_from(at).ok()
    };
    at.filter(|at| *at < len).ok_or_else(invalid)
}

fn failed(text: String) -> PatchError {
    PatchError::Failed(text)
}
