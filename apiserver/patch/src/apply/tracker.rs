//! Objects with their managers: what a write does to `metadata.managedFields`.
//!
//! # Flow
//! A write of any kind but apply has made its object already: [`Tracker::update`] compares it with
//! the one before and gives what changed to the writer. [`Tracker::apply`] makes the new object.
//!
//! # Guarantees
//! The object that is returned has the fields of all managers, sorted, without empty ones. What a
//! manager can't own is never among its fields (its own name, its version, what the endpoint
//! resets). Entries that can't be read count as none.
//!
//! # Assumptions
//! Objects are in the version of the writer, and have passed the decoding of their type.

use std::borrow::Cow;
use std::sync::LazyLock;

use machinery::meta::{get, get_str, remove, set};
use machinery::time::Time;
use serde_json::{Map, Value};

use super::ancient::join_oldest;
use super::conflict::Conflicts;
use super::last_applied;
use super::managers::{ManagerId, Managers, Operation};
use super::set::FieldSet;
use super::updater::{Failure, Updater, Versions, Writer};
use super::validate::{Duplicates, validate};
use crate::depth::is_too_deep;

/// Where the managers are kept.
const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];

/// Who owns what was there before an object without managers was first applied to.
const BEFORE: &str = "before-first-apply";
/// Whoever gives no name.
const UNKNOWN: &str = "unknown";
/// The client whose own record of what it applied counts as ownership.
const KUBECTL: &str = "kubectl";

/// What nobody owns: what identifies an object, and what only the server sets.
static STRIPPED: LazyLock<FieldSet> = LazyLock::new(|| {
    let paths: [&[&str]; 12] = [
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ];
    FieldSet::of_fields(paths)
});

/// Who writes, and where.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The writer's name; empty for one that gives none.
    pub manager: &'a str,
    /// The version of the objects, as `apps/v1`.
    pub api_version: &'a str,
    /// Their kind.
    pub kind: &'a str,
    /// The subresource that is written to; empty for the object itself.
    pub subresource: &'a str,
    /// When.
    pub now: Time,
}

/// Keeps the managers of the objects of one kind.
#[derive(Debug)]
pub struct Tracker<'v, V> {
    updater: Updater<'v, V>,
}

/// Why an apply was not made.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ApplyError {
    /// The configuration can't be one (400).
    #[error("{0}")]
    BadRequest(String),
    /// Others own what it would change (409).
    #[error(transparent)]
    Conflicts(Conflicts),
    /// The objects don't fit their type, or a conversion failed (500).
    #[error("{0}")]
    Failed(String),
}

// === impl Tracker ===

impl<'v, 's, V: Versions<'s>> Tracker<'v, V> {
    /// A tracker over the versions of one kind.
    pub fn new(versions: &'v V) -> Self {
        Self { updater: Updater { versions } }
    }

    /// Gives `new` its managers after a write that made it out of `live`, which is `None` when the
    /// object is being created. `new` may bring managers of its own: they then count instead of
    /// those of `live`, unless they can't be read, and an empty list or one empty entry resets them.
    ///
    /// An object that has no managers gets none by an update; apply will begin with it.
    /// Should anything fail, the object has no managers.
    pub fn update(&self, write: &Write<'_>, live: Option<&Value>, mut new: Value) -> Value {
        let mut managers = given(write, live, &mut new);
        if managers.is_empty() && live.is_some() {
            return new;
        }
        let created;
        let live = match live {
            Some(live) => live,
            None => {
                created = self.updater.versions.empty(write.api_version);
                &created
            }
        };
        if self.record(write, live, &new, &mut managers).is_ok() {
            put(&mut new, managers);
        }
        new
    }

    /// Records the change from `live` to `new`.
    fn record(
        &self,
        write: &Write<'_>,
        live: &Value,
        new: &Value,
        managers: &mut Managers,
    ) -> Result<(), String> {
        self.check(write, new, "new object", Duplicates::Allowed)?;
        self.check(write, live, "live object", Duplicates::Allowed)?;
        let id = id(write, Operation::Update);
        // What the writer owned before is kept apart, so that one can tell whether it changed
        // anything. No stored manager is this one: updates have a version.
        let current = ManagerId { api_version: Box::default(), ..id.clone() };
        let writer = Writer { id: &current, api_version: write.api_version };
        let updated = self.updater.update(writer, live, new, managers);
        updated.map_err(|failure| match failure {
            Failure::Conflicts(conflicts) => conflicts.to_string(),
            Failure::Other(why) => why,
        })?;
        if let Some(mut owner) = managers.take(&current) {
            owner.lose(&STRIPPED);
            if !owner.fields.is_empty() {
                if let Some(previous) = managers.take(&id) {
                    owner.fields.add(previous.fields);
                }
                owner.id = id;
                owner.time = Some(write.now);
                owner.source = None;
                managers.owners_mut().push(owner);
            }
        }
        join_oldest(managers);
        Ok(())
    }

    /// Applies a configuration to `live`, `None` for creating the object, and returns what becomes
    /// of it. With `force`, fields that others own are taken from them.
    ///
    /// # Errors
    /// [`ApplyError`]; all texts are upstream's.
    pub fn apply(
        &self,
        write: &Write<'_>,
        live: Option<&Value>,
        applied: &Value,
        force: bool,
    ) -> Result<Value, ApplyError> {
        self.check_applied(write, applied)?;
        let live = match live {
            Some(live) => Cow::Borrowed(live),
            None => Cow::Owned(self.updater.versions.empty(write.api_version)),
        };
        let mut managers = match get(&live, &MANAGED_FIELDS) {
            None | Some(Value::Null) => Managers::default(),
            Some(fields) => Managers::from_value(fields).map_err(|why| {
                ApplyError::Failed(format!("failed to decode managed fields: {why}"))
            })?,
        };
        if managers.is_empty() {
            let before = Write { manager: BEFORE, ..*write };
            let empty = self.updater.versions.empty(write.api_version);
            self.record(&before, &empty, &live, &mut managers).map_err(|why| {
                ApplyError::Failed(format!("failed to create manager for existing fields: {why}"))
            })?;
        }
        let mut after = managers.clone();
        let mut object = match self.apply_with(write, &live, applied, &mut after, force) {
            Err(ApplyError::Conflicts(conflicts)) if write.manager == KUBECTL => {
                self.allow(write, &live, conflicts)?;
                after = managers;
                self.apply_with(write, &live, applied, &mut after, true)?
            }
            outcome => outcome?,
        };
        if write.manager == KUBECTL && last_applied::of(&object).is_some() {
            last_applied::set(&mut object, applied);
        }
        put(&mut object, after);
        Ok(object)
    }

    fn check_applied(&self, write: &Write<'_>, applied: &Value) -> Result<(), ApplyError> {
        let Value::Object(_) = applied else {
            return Err(ApplyError::BadRequest("error decoding YAML: not an object".to_owned()));
        };
        if is_too_deep(applied) {
            return Err(ApplyError::BadRequest("error decoding YAML: nested too deep".to_owned()));
        }
        let text = |name: &str| applied.get(name).and_then(Value::as_str).unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        if version != write.api_version || kind != write.kind {
            return Err(ApplyError::BadRequest(format!(
                "invalid object type: {}",
                shown_kind(version, kind)
            )));
        }
        if get(applied, &MANAGED_FIELDS).is_some_and(Value::is_array) {
            return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
        }
        Ok(())
    }

    fn apply_with(
        &self,
        write: &Write<'_>,
        live: &Value,
        applied: &Value,
        managers: &mut Managers,
        force: bool,
    ) -> Result<Value, ApplyError> {
        let sides = [
            ("patch object", applied, Duplicates::Refused),
            ("live object", live, Duplicates::Allowed),
        ];
        for (what, object, duplicates) in sides {
            self.fits(write, object, duplicates).map_err(|why| {
                let name = described(write, object);
                ApplyError::Failed(format!("failed to create typed {what} ({name}): {why}"))
            })?;
        }
        let id = id(write, Operation::Apply);
        let writer = Writer { id: &id, api_version: write.api_version };
        let new = self.updater.apply(writer, live, applied, managers, force);
        let new = new.map_err(|failure| match failure {
            Failure::Conflicts(conflicts) => ApplyError::Conflicts(conflicts),
            Failure::Other(why) => ApplyError::Failed(why),
        })?;
        if let Some(mut owner) = managers.take(&id) {
            owner.lose(&STRIPPED);
            if !owner.fields.is_empty() {
                managers.owners_mut().push(owner);
            }
        }
        let changed = new.is_some();
        if let Some(owner) = managers.get_mut(&id).filter(|_| changed) {
            owner.time = Some(write.now);
            owner.source = None;
        }
        match new {
            Some(Value::Object(new)) => Ok(Value::Object(new)),
            Some(_) => Err(ApplyError::Failed("nothing remains of the object".to_owned())),
            None => Ok(live.clone()),
        }
    }

    /// Whether conflicts of `kubectl` are with itself: with what it applied from the client's side,
    /// as the annotation says that it left.
    ///
    /// # Errors
    /// The conflicts that are not.
    fn allow(
        &self,
        write: &Write<'_>,
        live: &Value,
        conflicts: Conflicts,
    ) -> Result<(), ApplyError> {
        let ty = self.updater.versions.schema(write.api_version);
        let allowed = ty.and_then(|ty| last_applied::unchanged(ty, live, write.api_version));
        let Some(allowed) = allowed else { return Err(ApplyError::Conflicts(conflicts)) };
        let mut others = conflicts.fields();
        others.subtract(&allowed);
        if others.is_empty() {
            return Ok(());
        }
        let others = conflicts.0.into_iter().filter(|conflict| !allowed.contains(&conflict.path));
        Err(ApplyError::Conflicts(Conflicts(others.collect())))
    }

    fn fits(
        &self,
        write: &Write<'_>,
        object: &Value,
        duplicates: Duplicates,
    ) -> Result<(), String> {
        let ty = self.updater.versions.schema(write.api_version).ok_or_else(|| {
            format!("no corresponding type for {}", shown_kind(write.api_version, write.kind))
        })?;
        if is_too_deep(object) {
            return Err("the object nests too deep".to_owned());
        }
        validate(ty, object, duplicates).map_err(|problems| problems.to_string())
    }

    fn check(
        &self,
        write: &Write<'_>,
        object: &Value,
        what: &str,
        duplicates: Duplicates,
    ) -> Result<(), String> {
        self.fits(write, object, duplicates).map_err(|why| {
            let name = described(write, object);
            format!("failed to convert {what} ({name}) to smd typed: {why}")
        })
    }
}

fn id(write: &Write<'_>, operation: Operation) -> ManagerId {
    let name = if write.manager.is_empty() { UNKNOWN } else { write.manager };
    let api_version = match operation {
        Operation::Apply => "",
        Operation::Update => write.api_version,
    };
    ManagerId {
        name: name.into(),
        operation,
        api_version: api_version.into(),
        subresource: write.subresource.into(),
    }
}

/// The managers that count for a write of `new`, which loses them.
fn given(write: &Write<'_>, live: Option<&Value>, new: &mut Value) -> Managers {
    let of_live = live.and_then(|live| get(live, &MANAGED_FIELDS));
    let own = remove(new, &MANAGED_FIELDS);
    if own.is_some() && own.as_ref() == of_live {
        let kept = own.map(Managers::from_written).and_then(Result::ok);
        return kept.unwrap_or_default();
    }
    // Whoever writes to a subresource has no say about the whole.
    let own = own.filter(|_| write.subresource.is_empty());
    if own.as_ref().is_some_and(is_reset) {
        return Managers::default();
    }
    let read = |fields: &Value| Managers::from_value(fields).ok();
    let own = own.as_ref().and_then(read).filter(|managers| !managers.is_empty());
    own.or_else(|| of_live.and_then(read)).unwrap_or_default()
}

/// Whether a list of managed fields asks for them to be forgotten: it is empty, or has one empty
/// entry.
pub fn is_reset(fields: &Value) -> bool {
    match fields.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([entry]) => entry.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

fn put(object: &mut Value, managers: Managers) {
    match managers.into_value() {
        Some(fields) => {
            set(object, &MANAGED_FIELDS, fields);
        }
        None => {
            remove(object, &MANAGED_FIELDS);
        }
    }
}

/// `namespace/name; group/version, Kind=Kind`, as upstream names an object.
fn described(write: &Write<'_>, object: &Value) -> String {
    let text = |field: &str| get_str(object, &["metadata", field]).unwrap_or_default();
    let kind = shown_kind(write.api_version, write.kind);
    format!("{}/{}; {kind}", text("namespace"), text("name"))
}

/// A kind as Go prints it.
fn shown_kind(api_version: &str, kind: &str) -> String {
    let (group, version) = match api_version.split_once('/') {
        None => ("", api_version),
        Some((_, version)) if version.contains('/') => return "/, Kind=".to_owned(),
        Some(parts) => parts,
    };
    format!("{group}/{version}, Kind={kind}")
}
