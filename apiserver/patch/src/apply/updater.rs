//! The algorithm: what an update or an apply does to the fields of all managers.
//!
//! It knows neither metadata nor times; `tracker` does.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::compare::{Changes, compare};
use super::conflict::{Conflict, Conflicts};
use super::managers::{ManagerId, Managers};
use super::merge::merge;
use super::owned::fields_of;
use super::reconcile::reconcile;
use super::remove::remove;
use super::schema::{ApplySchema, Type};
use super::set::FieldSet;
use super::validate::{Duplicates, validate};
use super::value::equal;

/// The versions of a kind: their types, and how objects get from one to another.
///
/// `'s` is how long the schemas live.
pub trait Versions<'s> {
    /// A place of a schema.
    type Schema: ApplySchema<'s>;

    /// The type of the kind in a version; `None` when the version doesn't exist (any more). What is
    /// owned in such a version is forgotten.
    fn schema(&self, api_version: &str) -> Option<Type<Self::Schema>>;

    /// An object as `api_version` has it. It is asked only for versions that have a schema.
    ///
    /// # Errors
    /// The reason, in words.
    fn convert<'v>(
        &self,
        object: Cow<'v, Value>,
        api_version: &str,
    ) -> Result<Cow<'v, Value>, String>;

    /// The fields of a version that nobody comes to own at the endpoint, with all below them: a
    /// write there resets them.
    fn reset(&self, api_version: &str) -> Option<&FieldSet>;

    /// The object as it is before it is created, in `api_version`: with the fields that are there
    /// even so.
    fn empty(&self, api_version: &str) -> Value;
}

/// Why an apply or update was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Others own what is to be changed.
    Conflicts(Conflicts),
    /// Anything else, in upstream's words.
    Other(String),
}

/// Who writes, and in which version.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writer<'a> {
    pub(super) id: &'a ManagerId,
    pub(super) api_version: &'a str,
}

fn failed(what: &str) -> impl FnOnce(String) -> Failure {
    move |why| Failure::Other(format!("{what}: {why}"))
}

/// The updater over the versions of one kind at one endpoint.
#[derive(Debug)]
pub(super) struct Updater<'v, V> {
    pub(super) versions: &'v V,
}

/// An object in one version, with its type.
#[derive(Debug)]
struct Typed<'v, S> {
    ty: Type<S>,
    value: Cow<'v, Value>,
}

/// Why an object is not there in a version.
enum Unconverted {
    /// The version doesn't exist.
    Missing,
    Failed(String),
}

// === impl Updater ===

impl<'s, V: Versions<'s>> Updater<'_, V> {
    /// Records a change that has been made already. Both objects are valid, in the writer's
    /// version.
    pub(super) fn update(
        &self,
        writer: Writer<'_>,
        live: &Value,
        new: &Value,
        managers: &mut Managers,
    ) -> Result<(), Failure> {
        self.reconcile(live, writer.api_version, managers)?;
        let changes = self.settle(writer, live, new, managers, true)?;
        let mut fields = managers.get(writer.id).map(|owner| owner.fields.clone());
        let mut fields = fields.take().unwrap_or_default();
        fields.subtract(&changes.removed);
        fields.add(changes.modified);
        fields.add(changes.added);
        self.without_reset(writer.api_version, &mut fields);
        if fields.is_empty() {
            managers.take(writer.id);
        } else {
            managers.set(writer.id, writer.api_version, fields);
        }
        Ok(())
    }

    /// Applies a configuration. Both objects are valid, in the writer's version. Returns the new
    /// object in the writer's version, `None` when it is as it was.
    pub(super) fn apply(
        &self,
        writer: Writer<'_>,
        live: &Value,
        config: &Value,
        managers: &mut Managers,
        force: bool,
    ) -> Result<Option<Value>, Failure> {
        self.reconcile(live, writer.api_version, managers)?;
        let ty = self.own_type(writer)?;
        let merged = merge(ty, Some(live), Some(config))
            .map_err(|why| Failure::Other(format!("failed to merge config: {why}")))?;
        let mut fields = fields_of(ty, config);
        self.without_reset(writer.api_version, &mut fields);
        let last =
            managers.get(writer.id).map(|last| (last.api_version.clone(), last.fields.clone()));
        managers.set(writer.id, writer.api_version, fields);
        let merged = merged.unwrap_or(Value::Null);
        let new = match last {
            Some((version, last)) if !last.is_empty() => self
                .prune(writer, &merged, managers, &version, &last)
                .map_err(failed("failed to prune fields"))?
                .unwrap_or(merged),
            _ => merged,
        };
        self.settle(writer, live, &new, managers, force)?;
        Ok((!equal(live, &new)).then_some(new))
    }

    fn own_type(&self, writer: Writer<'_>) -> Result<Type<V::Schema>, Failure> {
        let missing =
            || Failure::Other(format!("no corresponding type for {}", writer.api_version));
        self.versions.schema(writer.api_version).ok_or_else(missing)
    }

    fn without_reset(&self, api_version: &str, fields: &mut FieldSet) {
        if let Some(reset) = self.versions.reset(api_version) {
            fields.subtract_below(reset);
        }
    }

    fn changes(
        &self,
        api_version: &str,
        ty: Type<V::Schema>,
        old: &Value,
        new: &Value,
    ) -> Result<Changes, Failure> {
        let mut changes = compare(ty, old, new)
            .map_err(|why| Failure::Other(format!("failed to compare objects: {why}")))?;
        for set in [&mut changes.removed, &mut changes.modified, &mut changes.added] {
            self.without_reset(api_version, set);
        }
        Ok(changes)
    }

    /// Takes from the managers what changes from `live` to `new` take from them.
    fn settle(
        &self,
        writer: Writer<'_>,
        live: &Value,
        new: &Value,
        managers: &mut Managers,
        force: bool,
    ) -> Result<Changes, Failure> {
        let own = self.changes(writer.api_version, self.own_type(writer)?, live, new)?;
        let mut others: BTreeMap<Box<str>, Option<Changes>> = BTreeMap::new();
        let versions = managers.owners().iter().filter(|owner| owner.id != *writer.id);
        for version in versions.map(|owner| &owner.api_version) {
            if **version != *writer.api_version && !others.contains_key(version) {
                let changes = self.changes_in(version, writer.api_version, live, new)?;
                others.insert(version.clone(), changes);
            }
        }
        let of = |version: &str| {
            if version == writer.api_version {
                return Some(&own);
            }
            others.get(version).and_then(Option::as_ref)
        };
        let mut conflicts = Vec::new();
        if !force {
            for owner in managers.owners().iter().filter(|owner| owner.id != *writer.id) {
                let Some(changes) = of(&owner.api_version) else { continue };
                let mut taken = owner.fields.intersection(&changes.modified);
                taken.add(owner.fields.intersection(&changes.added));
                conflicts.extend(taken.paths().into_iter().map(|path| (&owner.id, path)));
            }
        }
        if !conflicts.is_empty() {
            conflicts.sort_by_cached_key(|(id, _)| id.sort_key());
            let conflicts = conflicts.into_iter();
            let conflicts =
                conflicts.map(|(id, path)| Conflict { manager: id.clone(), path }).collect();
            return Err(Failure::Conflicts(Conflicts(conflicts)));
        }
        managers.owners_mut().retain_mut(|owner| {
            if owner.id != *writer.id {
                let Some(changes) = of(&owner.api_version) else { return false };
                for set in [&changes.modified, &changes.added, &changes.removed] {
                    owner.lose(set);
                }
            }
            !owner.fields.is_empty()
        });
        Ok(own)
    }

    /// The changes as another version sees them; `None` when that version doesn't exist.
    fn changes_in(
        &self,
        version: &str,
        from: &str,
        live: &Value,
        new: &Value,
    ) -> Result<Option<Changes>, Failure> {
        let convert = |object: &Value, what: &str| match self.typed(object, from, version) {
            Ok(typed) => Ok(Some((typed.ty, typed.value.into_owned()))),
            Err(Unconverted::Missing) => Ok(None),
            Err(Unconverted::Failed(why)) => {
                Err(Failure::Other(format!("failed to convert {what} object: {why}")))
            }
        };
        let Some((ty, old)) = convert(live, "old")? else { return Ok(None) };
        let Some((_, new)) = convert(new, "new")? else { return Ok(None) };
        self.changes(version, ty, &old, &new).map(Some)
    }

    /// An object of version `from`, in version `to`.
    fn typed<'v>(
        &self,
        object: &'v Value,
        from: &str,
        to: &str,
    ) -> Result<Typed<'v, V::Schema>, Unconverted> {
        let ty = self.versions.schema(to).ok_or(Unconverted::Missing)?;
        let value = Cow::Borrowed(object);
        if from == to {
            return Ok(Typed { ty, value });
        }
        let value = self.versions.convert(value, to).map_err(Unconverted::Failed)?;
        validate(ty, &value, Duplicates::Refused)
            .map_err(|why| Unconverted::Failed(why.to_string()))?;
        Ok(Typed { ty, value })
    }

    /// Adapts the fields of all managers to types that changed since they were written.
    fn reconcile(
        &self,
        live: &Value,
        api_version: &str,
        managers: &mut Managers,
    ) -> Result<(), Failure> {
        let mut known: BTreeMap<Box<str>, bool> = BTreeMap::new();
        let mut failure = None;
        managers.owners_mut().retain_mut(|owner| {
            let version = &owner.api_version;
            let exists = match known.get(version) {
                Some(exists) => *exists,
                None => {
                    let exists = match self.typed(live, api_version, version) {
                        Ok(_) => true,
                        Err(Unconverted::Missing) => false,
                        Err(Unconverted::Failed(why)) => {
                            failure.get_or_insert(why);
                            true
                        }
                    };
                    known.insert(version.clone(), exists);
                    exists
                }
            };
            if exists
                && let Some(ty) = self.versions.schema(version)
                && let Some(fields) = reconcile(ty, &owner.fields)
            {
                owner.fields = fields;
                owner.source = None;
            }
            exists
        });
        failure.map_or(Ok(()), |why| Err(Failure::Other(why)))
    }

    /// `merged` without what its manager has applied before, doesn't apply now, and nobody else
    /// owns. `None` when nothing is to be taken away.
    fn prune(
        &self,
        writer: Writer<'_>,
        merged: &Value,
        managers: &Managers,
        version: &str,
        last: &FieldSet,
    ) -> Result<Option<Value>, String> {
        let converted = match self.typed(merged, writer.api_version, version) {
            Ok(typed) => typed,
            Err(Unconverted::Missing) => return Ok(None),
            Err(Unconverted::Failed(why)) => {
                return Err(format!(
                    "failed to convert merged object to last applied version: {why}"
                ));
            }
        };
        let ty = converted.ty;
        let last = last.with_named_fields(Some(ty));
        let pruned = remove(ty, &converted.value, &last);
        let pruned = self
            .add_back_owned(&converted.value, pruned, version, managers)
            .map_err(|why| format!("failed add back owned items: {why}"))?;
        let named = |value: &Value| fields_of(ty, value).with_named_fields(Some(ty));
        let mut dangling = named(&converted.value);
        dangling.subtract(&named(&pruned));
        let kept = remove(ty, &converted.value, &dangling.intersection(&last));
        if version == writer.api_version {
            return Ok(Some(kept));
        }
        match self.typed(&kept, version, writer.api_version) {
            Ok(typed) => Ok(Some(typed.value.into_owned())),
            Err(Unconverted::Missing) => Err("the version of the writer is gone".to_owned()),
            Err(Unconverted::Failed(why)) => Err(why),
        }
    }

    /// Gives back to `pruned`, of version `version`, what any manager owns. Returns it in that
    /// version.
    fn add_back_owned(
        &self,
        merged: &Value,
        mut pruned: Value,
        version: &str,
        managers: &Managers,
    ) -> Result<Value, String> {
        let mut owned: BTreeMap<&str, FieldSet> = BTreeMap::new();
        for owner in managers.owners() {
            owned.entry(&owner.api_version).or_default().add(owner.fields.clone());
        }
        let mut merged = Cow::Borrowed(merged);
        let mut at = version.to_owned();
        // First in the version at hand: what is pruned may be needed for converting.
        let first = owned.remove_entry(version);
        for (version, managed) in first.into_iter().chain(owned) {
            let of_merged = match self.typed(&merged, &at, version) {
                Ok(typed) => typed,
                Err(Unconverted::Missing) => continue,
                Err(Unconverted::Failed(why)) => {
                    return Err(format!(
                        "failed to convert merged object at version {version}: {why}"
                    ));
                }
            };
            let of_pruned = match self.typed(&pruned, &at, version) {
                Ok(typed) => typed,
                Err(Unconverted::Missing) => continue,
                Err(Unconverted::Failed(why)) => {
                    return Err(format!(
                        "failed to convert pruned object at version {version}: {why}"
                    ));
                }
            };
            let ty = of_merged.ty;
            let named = |set: FieldSet| set.with_named_fields(Some(ty));
            let mut gone = named(fields_of(ty, &of_merged.value));
            let mut kept = named(fields_of(ty, &of_pruned.value));
            kept.add(named(managed));
            gone.subtract(&kept);
            let next = remove(ty, &of_merged.value, &gone);
            let of_merged = of_merged.value.into_owned();
            pruned = next;
            merged = Cow::Owned(of_merged);
            version.clone_into(&mut at);
        }
        match self.typed(&pruned, &at, version) {
            Ok(typed) => Ok(typed.value.into_owned()),
            Err(Unconverted::Missing) => Ok(merged.into_owned()),
            Err(Unconverted::Failed(why)) => {
                Err(format!("failed to convert pruned object to last applied version: {why}"))
            }
        }
    }
}
