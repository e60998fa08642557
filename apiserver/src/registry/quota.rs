//! ResourceQuotas: an object is created only if every quota that covers it has room.
//!
//! # Flow
//! A quota's `status.used` grows in the commit that creates the object, which compares the quota's
//! record. A commit can't write two quotas: where several cover an object, all but the last are
//! charged before, one commit each, and the last commit compares all of them. If it is not made,
//! those are counted anew. Where objects go or shrink, the controller counts anew; what it writes
//! compares all quotas of the namespace, since the last commit of a creation changes but one of
//! those that it charges.
//!
//! # Guarantees
//! - Whatever races, no quota is exceeded by creations: each rests on the record that it was
//!   judged by.
//! - Requests that charge quotas of one namespace take turns, which only saves them from undoing
//!   each other's work: nothing rests on it.

mod bounds;
mod ranges;
mod turns;
mod usage;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use machinery::meta::{get, set};
use machinery::{ClusterName, GroupResource};
use schema::resource::Flag;
use serde_json::Value;
use store::cache::{Object, Origin};
use store::{Expect, Key, KeyPrefix, Op, Revision};

use super::commit::{Lost, TRIES, Write, parse};
use super::create::contended;
use super::guard::Guard;
use crate::registry::{Context, Error, Registry, Target};
use bounds::Bounds;
use turns::Turn;
pub(super) use turns::Turns;
use usage::Amounts;

/// Objects that are read at a time while those of a namespace are counted.
const PAGE: usize = 1_000;

/// Quotas that were charged for one creation; they are counted anew if it isn't made.
#[derive(Debug, Default)]
pub(super) struct Charge {
    keys: Vec<Key>,
    _turn: Option<Turn>,
}

/// A quota with what it would hold.
struct Pending {
    quota: Arc<Object>,
    used: Amounts,
}

impl Registry {
    /// Fills in what containers of a new pod don't ask for, as the namespace's LimitRanges have it.
    pub(super) fn fill_limits(&self, target: &Target, cluster: &ClusterName, object: &mut Value) {
        if is_pods(&Self::storage(&target.resource)) {
            for range in self.limit_ranges(target, cluster) {
                ranges::fill(&range, object);
            }
        }
    }

    /// Refuses a pod or a claim that breaks a LimitRange of its namespace.
    ///
    /// # Errors
    /// 403 with what is broken.
    pub(super) fn check_limits(
        &self,
        target: &Target,
        cluster: &ClusterName,
        object: &Value,
    ) -> Result<(), Error> {
        let resource = Self::storage(&target.resource);
        if !ranges::is_limited(&resource) {
            return Ok(());
        }
        for range in self.limit_ranges(target, cluster) {
            let mut problems = ranges::refused(&resource, &range, object);
            let mut told = BTreeSet::new();
            problems.retain(|problem| told.insert(problem.clone()));
            let why = match problems.as_slice() {
                [] => continue,
                [one] => one.clone(),
                several => format!("[{}]", several.join(", ")),
            };
            let name = get(object, &["metadata", "name"]).and_then(Value::as_str);
            let name = name.unwrap_or_default();
            return Err(Error::forbidden(&Self::group_resource(&target.resource), name, &why));
        }
        Ok(())
    }

    fn limit_ranges(&self, target: &Target, cluster: &ClusterName) -> Vec<Value> {
        let ranges = GroupResource::new("", "limitranges");
        let prefix = KeyPrefix::namespace(&ranges, cluster, &target.namespace);
        let objects = self.cache.list(&prefix, None, 0).objects;
        objects.iter().filter_map(|object| parse(object).ok()).collect()
    }

    /// Whether quotas may count objects that are made here.
    pub(super) fn is_charged(&self, target: &Target, cluster: &ClusterName) -> bool {
        target.resource.namespaced
            && !target.resource.has(Flag::Expires)
            && self.has_quotas(cluster, &target.namespace)
    }

    /// Whether quotas may count more after a change of an object.
    pub(super) fn is_charged_again(&self, target: &Target, cluster: &ClusterName) -> bool {
        usage::is_measured(&Self::storage(&target.resource))
            && target.subresource.is_empty()
            && self.is_charged(target, cluster)
    }

    /// Charges the quotas of a namespace for an object (the second of `objects`) that is new, or
    /// was the first before. The last of them becomes part of `guard`.
    ///
    /// # Errors
    /// 403 when a quota is exceeded, or not counted yet.
    pub(super) async fn charge(
        &self,
        ctx: &Context,
        target: &Target,
        cluster: &ClusterName,
        guard: &mut Guard,
        objects: Option<(Option<&Value>, &Value)>,
        dry_run: bool,
    ) -> Result<Charge, Error> {
        let Some(objects) = objects else { return Ok(Charge::default()) };
        let prefix = quotas_of(cluster, &target.namespace);
        let turn = self.turns.take(cluster, &target.namespace).await;
        for _ in 0..TRIES {
            // The turn before may have changed what is judged by.
            self.consistent().await?;
            let mut pending = self.pending(target, &prefix, objects, ctx.now)?;
            if dry_run || pending.is_empty() {
                return Ok(Charge::default());
            }
            // A commit holds one object of each resource: a new quota is one itself.
            let is_quota = Self::storage(&target.resource) == quotas();
            let last = if is_quota { None } else { pending.pop() };
            let mut keys = Vec::new();
            let Some(held) = self.charge_before(&pending, &mut keys).await? else {
                self.count_again(&keys).await;
                continue;
            };
            for (key, revision) in held {
                guard.require(key, Expect::At(revision));
            }
            if let Some(last) = last {
                let (key, value) = (last.quota.key.clone(), last.value()?);
                guard.require(key.clone(), last.quota.expect());
                guard.ops.push(Op::Put { key, value });
            }
            return Ok(Charge { keys, _turn: Some(turn) });
        }
        Err(contended())
    }

    /// Charges quotas one by one; `None` when somebody else has changed one. `keys` are those that
    /// were charged.
    async fn charge_before(
        &self,
        pending: &[Pending],
        keys: &mut Vec<Key>,
    ) -> Result<Option<Vec<(Key, Revision)>>, Error> {
        let mut held = Vec::new();
        for one in pending {
            let key = one.quota.key.clone();
            let (expect, value) = (one.quota.expect(), one.value()?);
            let write = Write { key: key.clone(), expect, value: Some(value) };
            match self.write(write, Guard::default()).await {
                Ok(revision) => {
                    keys.push(key.clone());
                    held.push((key, revision));
                }
                Err(Lost::Race | Lost::GuardRace) => return Ok(None),
                Err(Lost::Refused(error)) => return Err(error),
            }
        }
        Ok(Some(held))
    }

    /// Writes what quotas were charged for. If that fails, they are counted anew.
    pub(super) async fn write_charged(
        &self,
        write: Write,
        guard: Guard,
        charge: Charge,
    ) -> Result<Revision, Lost> {
        let written = self.write(write, guard).await;
        if written.is_err() {
            self.count_again(&charge.keys).await;
        }
        written
    }

    /// The quotas that an object grows, with what they would hold.
    fn pending(
        &self,
        target: &Target,
        prefix: &KeyPrefix,
        (old, new): (Option<&Value>, &Value),
        now: Timestamp,
    ) -> Result<Vec<Pending>, Error> {
        let resource = Self::storage(&target.resource);
        let forbidden = |why: &str| {
            let name = get(new, &["metadata", "name"]).and_then(Value::as_str);
            Error::forbidden(&Self::group_resource(&target.resource), name.unwrap_or_default(), why)
        };
        let after = usage::usage(&resource, new, now);
        if let Some((name, _)) = after.iter().find(|(_, amount)| amount.is_negative()) {
            return Err(forbidden(&format!("quota usage is negative for resource(s): {name}")));
        }
        let mut pending = Vec::new();
        for quota in self.cache.list(prefix, None, 0).objects {
            let bounds = Bounds::of(&parse(&quota)?);
            if quota.origin != Origin::Stored || !bounds.covers(&resource, new) {
                continue;
            }
            if old.is_none() && is_pods(&resource) {
                let names = bounds.hard.keys().map(String::as_str).collect::<BTreeSet<_>>();
                if let Some(missing) = usage::missing(new, &names) {
                    return Err(forbidden(&format!("failed quota: {}: {missing}", bounds.name)));
                }
            }
            let requested = match old.filter(|old| bounds.covers(&resource, old)) {
                Some(old) => bounds::growth(&after, &usage::usage(&resource, old, now)),
                None => after.clone(),
            };
            let requested = bounds.charged(&requested);
            if requested.is_empty() {
                continue;
            }
            let used = bounds.with(&resource, &requested).map_err(|why| forbidden(&why))?;
            pending.push(Pending { quota, used });
        }
        Ok(pending)
    }

    /// Counts quotas anew; what can't be written now is the controller's.
    async fn count_again(&self, keys: &[Key]) {
        for key in keys {
            if let Err(error) = self.recount(key).await {
                tracing::warn!(%key, %error, "a quota is not counted anew");
            }
        }
    }

    /// Counts all quotas of a namespace anew, in its turn.
    pub(crate) async fn recount_all(
        &self,
        cluster: &ClusterName,
        namespace: &str,
    ) -> Result<(), Error> {
        let _turn = self.turns.take(cluster, namespace).await;
        for quota in self.cache.list(&quotas_of(cluster, namespace), None, 0).objects {
            self.recount(&quota.key).await?;
        }
        Ok(())
    }

    /// Sets a quota's status to its bounds and to what its namespace uses of them.
    async fn recount(&self, key: &Key) -> Result<(), Error> {
        for _ in 0..TRIES {
            self.consistent().await?;
            let object = key.object();
            let all = quotas_of(&object.cluster, &object.namespace);
            let mut all = self.cache.list(&all, None, 0).objects;
            all.retain(|quota| quota.origin == Origin::Stored);
            let Some(at) = all.iter().position(|quota| quota.key == *key) else { return Ok(()) };
            let quota = all.swap_remove(at);
            let value = parse(&quota)?;
            let wanted = Bounds::wanted(&value);
            let used = self.used(key, &wanted).await?;
            let in_force = Bounds::of(&value);
            if in_force.hard == wanted.hard && in_force.used == used {
                return Ok(());
            }
            let mut value = value;
            set(&mut value, &["status", "hard"], bounds::shown(&wanted.hard));
            set(&mut value, &["status", "used"], bounds::shown(&used));
            let value = Some(store::object::encode(&value));
            let mut guard = Guard::default();
            for other in all {
                guard.require(other.key.clone(), other.expect());
            }
            let write = Write { key: key.clone(), expect: quota.expect(), value };
            match self.write(write, guard).await {
                Ok(_) => return Ok(()),
                Err(Lost::Race | Lost::GuardRace) => {}
                Err(Lost::Refused(error)) => return Err(error),
            }
        }
        Err(contended())
    }

    /// What a namespace uses of what a quota bounds. All is counted as of no later than the next
    /// change of a quota there: a creation that this one charges changes one of them with its last
    /// commit. (A new quota changes none that it is charged to, but has all counted anew.)
    async fn used(&self, quota: &Key, bounds: &Bounds) -> Result<Amounts, Error> {
        let mut used = Amounts::new();
        let mut measured = BTreeSet::<GroupResource>::new();
        let object = quota.object();
        let prefix = |resource: &GroupResource| {
            KeyPrefix::namespace(resource, &object.cluster, &object.namespace)
        };
        for name in bounds.hard.keys() {
            match usage::counted(name) {
                Some(resource) if !bounds.has_scopes() => {
                    let count = self.cache.count(&prefix(&resource));
                    used.insert(name.clone(), usage::number(count));
                }
                counted => {
                    if let Some(resource) = counted.or_else(|| usage::measured(name)) {
                        used.insert(name.clone(), usage::number(0));
                        measured.insert(resource);
                    }
                }
            }
        }
        let now = Timestamp::now();
        for resource in measured {
            let mut after: Option<Key> = None;
            loop {
                let page = self.cache.scan(&prefix(&resource), after.as_ref(), PAGE);
                let Some(last) = page.last() else { break };
                after = Some(last.key.clone());
                for object in &page {
                    let value = parse(object)?;
                    if !bounds.selects(&resource, &value) {
                        continue;
                    }
                    for (name, amount) in usage::usage(&resource, &value, now) {
                        let is_counted = !bounds.has_scopes() && usage::counted(&name).is_some();
                        if let Some(sum) = used.get_mut(&name).filter(|_| !is_counted) {
                            *sum = usage::add(*sum, amount);
                        }
                    }
                }
                tokio::task::yield_now().await;
            }
        }
        Ok(used)
    }

    /// Whether a namespace has quotas.
    pub(crate) fn has_quotas(&self, cluster: &ClusterName, namespace: &str) -> bool {
        !self.cache.scan(&quotas_of(cluster, namespace), None, 1).is_empty()
    }
}

// === impl Pending ===

impl Pending {
    fn value(&self) -> Result<bytes::Bytes, Error> {
        let mut value = parse(&self.quota)?;
        set(&mut value, &["status", "used"], bounds::shown(&self.used));
        Ok(store::object::encode(&value))
    }
}

/// The resource `resourcequotas`.
pub(crate) fn quotas() -> GroupResource {
    GroupResource::new("", "resourcequotas")
}

/// Whether changes of objects of a resource, by its part of the key, change what they use.
pub(crate) fn is_measured(resource_part: &str) -> bool {
    matches!(resource_part, "core/pods" | "core/persistentvolumeclaims" | "core/services")
}

fn quotas_of(cluster: &ClusterName, namespace: &str) -> KeyPrefix {
    KeyPrefix::namespace(&quotas(), cluster, namespace)
}

fn is_pods(resource: &GroupResource) -> bool {
    resource.group.is_empty() && &*resource.resource == "pods"
}
