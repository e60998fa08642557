//! What the server's own controllers do beyond the API.

use jiff::Timestamp;
use machinery::ClusterName;
use machinery::meta::{get, set};
use serde_json::{Value, json};
use store::cache::Slot;
use store::{CommitError, Expect, Key, Op, Txn, Urgency};

use super::commit::{Lost, TRIES, Write, parse};
use super::create::contended;
use super::guard::Guard;
use super::managed::Tracking;
use crate::clusters::{record, virtuals};
use crate::registry::{Context, Error, Registry, Target, strategy};

impl Registry {
    /// Makes a logical cluster that every server has, unless it is there: `root`, which holds the
    /// objects of all others, or `system:crds`.
    pub(crate) async fn create_own(
        &self,
        cluster: &ClusterName,
        now: Timestamp,
    ) -> Result<(), Error> {
        let key = record::key(cluster);
        if self.cache.get(&key).is_some() {
            return Ok(());
        }
        let value = store::object::encode(&record::new(cluster, &self.new_uid(), now, None));
        let compares = vec![store::Compare { key: key.clone(), expect: Expect::Absent }];
        match self
            .store
            .commit(Txn { compares, ops: vec![Op::Put { key, value }], ..Txn::default() })
            .await
        {
            Ok(_) | Err(CommitError::Conflict { .. }) => self.consistent().await,
            Err(error) => Err(Error::internal(error)),
        }
    }

    /// Makes a default object again whose tombstone stands at `key`. Returns whether it did.
    pub(crate) async fn remake(&self, ctx: &Context, key: &Key) -> Result<bool, Error> {
        let Slot::Tombstone(revision) = self.cache.slot(key) else {
            return Ok(false);
        };
        if virtuals::stays_away(key) {
            return Ok(false);
        }
        let Some(default) = self.cache.virtual_object(key) else {
            return Ok(false);
        };
        let mut value = parse(&default)?;
        set(&mut value, &["metadata", "uid"], json!(self.new_uid()));
        let now = machinery::time::Time::at(ctx.now).to_string();
        set(&mut value, &["metadata", "creationTimestamp"], json!(now));
        let value = store::object::encode(&value);
        let object = key.object();
        let guard = self.guard(ctx, &object.cluster, &object.namespace)?;
        let write = Write { key: key.clone(), expect: Expect::At(revision), value: Some(value) };
        match self.write(write, guard).await {
            Ok(_) => Ok(true),
            Err(Lost::Race | Lost::GuardRace) => Ok(false),
            Err(Lost::Refused(error)) => Err(error),
        }
    }

    /// Gives a ConfigMap at the place of a default one the data of that. Returns whether it had
    /// others.
    pub(crate) async fn restore_data(&self, key: &Key) -> Result<bool, Error> {
        for _ in 0..TRIES {
            self.consistent().await?;
            let (Some(current), Some(default)) =
                (self.cache.get(key), self.cache.virtual_object(key))
            else {
                return Ok(false);
            };
            let (mut value, default) = (parse(&current)?, parse(&default)?);
            let data = get(&default, &["data"]).cloned().unwrap_or_default();
            if current.header.is_deleting() || value.get("data") == Some(&data) {
                return Ok(false);
            }
            set(&mut value, &["data"], data);
            let (expect, value) = (current.expect(), Some(store::object::encode(&value)));
            let write = Write { key: key.clone(), expect, value };
            match self.write(write, Guard::default()).await {
                Ok(_) => return Ok(true),
                Err(Lost::Race | Lost::GuardRace) => {}
                Err(Lost::Refused(error)) => return Err(error),
            }
        }
        Err(contended())
    }

    /// Removes a record of any form, if it is still the one of `revision`. Nobody waits for it.
    pub(crate) async fn purge(&self, key: &Key, revision: store::Revision) -> Result<(), Error> {
        let write = Write { key: key.clone(), expect: Expect::At(revision), value: None };
        match self.write(write, Guard::of(Urgency::Later)).await {
            Ok(_) | Err(Lost::Race | Lost::GuardRace) => Ok(()),
            Err(Lost::Refused(error)) => Err(error),
        }
    }

    /// Takes the server's own finalizers off a namespace, a logical cluster or a CRD that has
    /// nothing in it any more, which lets it go unless others hold it. Returns whether it is gone.
    pub(crate) async fn release(&self, ctx: &Context, key: &Key) -> Result<bool, Error> {
        for _ in 0..TRIES {
            let Some(current) = self.cache.get(key) else {
                return Ok(true);
            };
            if !current.header.is_deleting() {
                return Ok(true);
            }
            let mut value = parse(&current)?;
            let own = [
                strategy::NAMESPACE_FINALIZER,
                strategy::DEFINITION_FINALIZER,
                record::CONTENT_FINALIZER,
            ];
            let mut held = false;
            for path in [["spec", "finalizers"], ["metadata", "finalizers"]] {
                let finalizers = get(&value, &path).and_then(Value::as_array);
                let kept = finalizers
                    .into_iter()
                    .flatten()
                    .filter(|name| !name.as_str().is_some_and(|name| own.contains(&name)))
                    .cloned()
                    .collect::<Vec<_>>();
                held |= !kept.is_empty();
                if finalizers.is_some() {
                    if kept.is_empty() {
                        machinery::meta::remove(&mut value, &path);
                    } else {
                        set(&mut value, &path, json!(kept));
                    }
                }
            }
            let encoded = store::object::encode(&value);
            let version = current.revision.0 + self.versions.base;
            if held && store::object::with_resource_version(&encoded, version) == current.json() {
                return Ok(false);
            }
            let value = if held { Some(encoded) } else { self.removal(key) };
            let write = Write { key: key.clone(), expect: current.expect(), value };
            match self.write(write, Guard::of(ctx.urgency)).await {
                Ok(_) => return Ok(!held),
                Err(Lost::Race | Lost::GuardRace) => {}
                Err(Lost::Refused(error)) => return Err(error),
            }
        }
        Err(contended())
    }

    /// Changes an object in place; only its status is written.
    pub(crate) async fn change_status(
        &self,
        ctx: &Context,
        target: &Target,
        change: impl Fn(&mut Value),
    ) -> Result<(), Error> {
        let changed = self.transform(ctx, target, false, false, Tracking::Done, |old| {
            let mut new = old.clone();
            change(&mut new);
            Ok(new)
        });
        changed.await.map(|_| ())
    }

    /// Sets an object's status.
    pub(crate) async fn set_status(
        &self,
        ctx: &Context,
        target: &Target,
        status: Value,
    ) -> Result<(), Error> {
        let change = |object: &mut Value| {
            set(object, &["status"], status.clone());
        };
        self.change_status(ctx, target, change).await
    }
}
