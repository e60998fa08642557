//! Delete: at once, or when the last finalizer has gone.

use machinery::GroupResource;
use machinery::meta::{FINALIZER_FOREGROUND, FINALIZER_ORPHAN, get_i64, remove, set};
use schema::resource::Deletion;
use serde_json::json;
use store::cache::Object;

use super::agents::hidden;
use super::commit::{Lost, TRIES, Write};
use super::create::contended;
use super::guard::{Guard, is_stored};
use super::strategy;
use crate::admission::{Objects, Operation};
use crate::registry::{
    Context, DeleteOptions, Deleted, Error, List, ListOptions, Propagation, Reason, Registry,
    Target,
};

impl Registry {
    /// Deletes an object, or begins to.
    ///
    /// # Errors
    /// 404 when it is missing, 409 when a precondition fails, 403 for what may never go.
    pub async fn delete(
        &self,
        ctx: &Context,
        target: &Target,
        options: DeleteOptions,
    ) -> Result<Deleted, Error> {
        strategy::of(&target.resource).check_delete(&target.name)?;
        self.remove(ctx, target, options).await
    }

    /// Deletes an object, or begins to, also one that no client may delete.
    pub(crate) async fn remove(
        &self,
        ctx: &Context,
        target: &Target,
        options: DeleteOptions,
    ) -> Result<Deleted, Error> {
        let cluster = Self::cluster(target)?.clone();
        let key = Self::object_key(target, &cluster, &target.name);
        self.consistent().await?;
        for _ in 0..TRIES {
            let slot = self.cache.slot(&key);
            let current = self.present(target, &cluster, &key, &slot);
            let current = current.map_err(|error| hidden(ctx, target, error))?;
            self.check_agent_touch(ctx, target, "delete", Some(current))?;
            self.check_preconditions(target, current, &options)?;
            self.check_unused(target, current)?;
            let view = self.view(&self.lens(target), current.clone()).await?;
            let finalizers =
                finalizers(target.resource.deletion, current.header.finalizers(), &options);
            let held = self.is_held(target, current, &finalizers)?;
            if held && current.header.is_deleting() && !finalizers.changed(target) {
                return Ok(Deleted::Pending(view));
            }
            if let Some(mut admission) =
                self.admission(ctx, target, Operation::Delete, options.dry_run)
            {
                let old = self.in_version(target, current).await?;
                let mut objects = Objects { new: None, old: Some(old) };
                self.mutate(ctx, target, &mut admission, &mut objects).await?;
                self.judge(ctx, target, &mut admission, &objects).await?;
            }
            let marked =
                if held { Some(self.marked(ctx, target, current, &finalizers)?) } else { None };
            let returned = strategy::of(&target.resource).returns_deleted();
            if options.dry_run {
                return match marked {
                    None if returned => Ok(Deleted::Pending(view)),
                    None => Ok(Deleted::Gone(view)),
                    Some(value) => {
                        let object = self.unwritten(key, &value, Some(current))?;
                        Ok(Deleted::Pending(self.view(&self.lens(target), object).await?))
                    }
                };
            }
            let guard = if is_stored(&slot) {
                Guard::of(ctx.urgency)
            } else {
                self.guard(ctx, &cluster, &target.namespace)?
            };
            let value = marked.clone().or_else(|| self.removal(&key));
            let write = Write { key: key.clone(), expect: current.expect(), value };
            match self.write(write, guard).await {
                Ok(revision) => {
                    let shown = match marked {
                        Some(value) => self.object(key, &value, revision)?,
                        // What is gone is shown with the version of its deletion.
                        None if returned => self.object(key, &current.json(), revision)?,
                        None => return Ok(Deleted::Gone(view)),
                    };
                    return Ok(Deleted::Pending(self.view(&self.lens(target), shown).await?));
                }
                Err(Lost::Race | Lost::GuardRace) => {}
                Err(Lost::Refused(error)) => return Err(error),
            }
        }
        Err(contended())
    }

    /// Deletes what a list with the same options shows. Returns it as it was.
    ///
    /// # Errors
    /// As [`Registry::list`], and the first that an object gives other than being gone already.
    pub async fn delete_collection(
        &self,
        ctx: &Context,
        target: &Target,
        options: DeleteOptions,
        list: ListOptions,
    ) -> Result<List, Error> {
        let list = self.list(ctx, target, list).await?;
        for item in &list.items {
            let target = Target {
                namespace: item.object.header.namespace().into(),
                name: item.object.header.name().into(),
                ..target.clone()
            };
            match self.delete(ctx, &target, options.clone()).await {
                Ok(_) => {}
                Err(error) if error.reason() == Reason::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(list)
    }

    fn check_preconditions(
        &self,
        target: &Target,
        current: &Object,
        options: &DeleteOptions,
    ) -> Result<(), Error> {
        let failed = |what: &str, given: &str, present: &str, since: &str| {
            let why = format!(
                "the {what} in the precondition ({given}) does not match the {what} in record \
                 ({present}). The object might have been {since}"
            );
            // Upstream names the kind here, not the resource.
            let resource = &target.resource;
            let named = GroupResource::new(&resource.group, &resource.kind);
            Err(Error::conflict(&named, &target.name, &why))
        };
        let present = current.header.uid();
        if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != present) {
            return failed("UID", uid, present, "deleted and then recreated");
        }
        let version = self.versions.format(current.revision);
        match &options.resource_version {
            Some(given) if *given != version => {
                failed("ResourceVersion", given, &version, "modified")
            }
            _ => Ok(()),
        }
    }

    /// Whether the object stays for now: finalizers keep it, or its kind is marked first.
    fn is_held(
        &self,
        target: &Target,
        current: &Object,
        finalizers: &Finalizers<'_>,
    ) -> Result<bool, Error> {
        if !finalizers.is_empty() {
            return Ok(true);
        }
        let strategy = strategy::of(&target.resource);
        if !strategy.is_marked_first() {
            return Ok(false);
        }
        if !current.header.is_deleting() {
            return Ok(true);
        }
        Ok(strategy.is_held(&super::commit::parse(current)?))
    }

    /// The object with the marks of one that is being deleted.
    fn marked(
        &self,
        ctx: &Context,
        target: &Target,
        current: &Object,
        finalizers: &Finalizers<'_>,
    ) -> Result<bytes::Bytes, Error> {
        let mut value = super::commit::parse(current)?;
        if finalizers.are_changed {
            let path = ["metadata", "finalizers"];
            if finalizers.is_empty() {
                remove(&mut value, &path);
            } else {
                set(&mut value, &path, json!(finalizers.names().collect::<Vec<_>>()));
            }
        }
        if current.header.is_deleting() {
            return Ok(store::object::encode(&value));
        }
        let now = machinery::time::Time::at(ctx.now).to_string();
        set(&mut value, &["metadata", "deletionTimestamp"], json!(now));
        strategy::of(&target.resource).begin_delete(&mut value);
        // Upstream shows no grace period for namespaces.
        if !strategy::of(&target.resource).is_marked_first() {
            set(&mut value, &["metadata", "deletionGracePeriodSeconds"], json!(0));
        }
        if let Some(generation) = get_i64(&value, &["metadata", "generation"])
            && generation > 0
        {
            set(&mut value, &["metadata", "generation"], json!(generation + 1));
        }
        Ok(store::object::encode(&value))
    }
}

/// The finalizers of an object once its deletion has begun.
#[derive(Debug)]
struct Finalizers<'o> {
    others: Vec<&'o str>,
    propagation: Option<&'static str>,
    are_changed: bool,
}

/// Which finalizers a delete leaves on an object. Upstream's order: what the kind forbids, what
/// the options say, what stands on the object, what the kind does by default.
fn finalizers<'o>(
    deletion: Deletion,
    present: &'o [Box<str>],
    options: &DeleteOptions,
) -> Finalizers<'o> {
    let has = |name: &str| present.iter().any(|present| **present == *name);
    let propagation = match (deletion, options.propagation) {
        (Deletion::Plain, _) | (_, Some(Propagation::Background)) => None,
        (_, Some(Propagation::Orphan)) => Some(FINALIZER_ORPHAN),
        (_, Some(Propagation::Foreground)) => Some(FINALIZER_FOREGROUND),
        (_, None) if has(FINALIZER_ORPHAN) => Some(FINALIZER_ORPHAN),
        (_, None) if has(FINALIZER_FOREGROUND) => Some(FINALIZER_FOREGROUND),
        (Deletion::Orphan, None) => Some(FINALIZER_ORPHAN),
        (Deletion::Background, None) => None,
    };
    let ours = |name: &&str| matches!(*name, FINALIZER_ORPHAN | FINALIZER_FOREGROUND);
    let names = present.iter().map(|name| &**name);
    let others = names.clone().filter(|name| !ours(name)).collect();
    let are_changed = names.filter(ours).ne(propagation);
    Finalizers { others, propagation, are_changed }
}

// === impl Finalizers ===

impl<'o> Finalizers<'o> {
    fn is_empty(&self) -> bool {
        self.others.is_empty() && self.propagation.is_none()
    }

    fn names(&self) -> impl Iterator<Item = &'o str> + use<'o, '_> {
        self.others.iter().copied().chain(self.propagation)
    }

    /// Whether a further delete changes what keeps an object that is being deleted. Of kinds that
    /// are emptied first, nothing changes any more.
    fn changed(&self, target: &Target) -> bool {
        self.are_changed && !strategy::of(&target.resource).is_marked_first()
    }
}

#[cfg(test)]
mod tests;
