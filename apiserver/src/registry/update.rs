//! Update: an object's next state, judged against the present one.

mod kept;

use std::sync::Arc;

use machinery::field::go_quote;
use machinery::meta::{get, get_str, remove, set};
use machinery::{FieldError, FieldPath};
use schema::crd::ScalePaths;
use serde_json::{Value, json};
use store::cache::Object;

use super::admission::Admission;
use super::agents::hidden;
use super::commit::{Lost, TRIES, Write, parse};
use super::create::{check_namespace, contended};
use super::guard::{Guard, is_stored};
use super::managed::{Tracking, manager};
use super::owners::dedup_owners;
use super::scale::{parts, scale_of};
use super::strategy;
use crate::admission::{Objects, Operation};
use crate::registry::{Body, Context, Error, Reason, Registry, Target, WriteOptions, Written};
use kept::{grow, merge_subresource, restore};

/// What becomes of an object that is updated.
pub(super) enum Next {
    /// It is as it was: nothing is written.
    Same,
    /// It has these bytes.
    Changed(bytes::Bytes),
    /// The last thing that kept it is gone, and so it goes.
    Gone(bytes::Bytes),
}

/// What a write is addressed to, and where the numbers are if that is a `scale`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoint<'a>(pub(super) &'a Target, pub(super) Option<&'a ScalePaths>);

impl Registry {
    /// Replaces an object, or a part of it by a subresource.
    ///
    /// # Errors
    /// 404 when it is missing (but for kinds that PUT creates), 409 when it is not the one that
    /// the body was read from, 422 when the change breaks the kind's rules.
    pub async fn update(
        &self,
        ctx: &Context,
        target: &Target,
        body: Body,
        options: WriteOptions,
    ) -> Result<Written, Error> {
        if let Some(paths) = self.scale_paths(target)? {
            self.warn_writer(ctx, target);
            return self.update_scale(ctx, target, &paths, &body, &options).await;
        }
        let mut decoded = self.decode(ctx, target, &body, options.field_validation)?;
        check_name(target, &decoded)?;
        check_namespace(target, &mut decoded)?;
        dedup_owners(ctx, &mut decoded, false);
        self.warn_writer(ctx, target);
        let manager = manager(ctx, &options);
        let tracking = Tracking::By(&manager);
        let create = target.resource.allow_create_on_update && target.subresource.is_empty();
        let cluster = Self::cluster(target)?;
        let key = Self::object_key(target, cluster, &target.name);
        if create {
            self.consistent().await?;
            if self.cache.get(&key).is_none() {
                check_uid(target, &decoded, "")?;
                let dry_run = options.dry_run;
                if !dry_run {
                    remove(&mut decoded, &["metadata", "resourceVersion"]);
                }
                return self.create_object(ctx, target, cluster, decoded, dry_run, tracking).await;
            }
        }
        let version = get_str(&decoded, &["metadata", "resourceVersion"]).unwrap_or_default();
        let locked = !version.is_empty() && version != "0";
        let change = |old: &Value| {
            check_uid(target, &decoded, text(old, "uid"))?;
            Ok(decoded.clone())
        };
        self.transform(ctx, target, options.dry_run, locked, tracking, change).await
    }

    /// Takes an object to the state that `change` makes of the present one (in the target's
    /// version), again whenever somebody else was faster.
    pub(super) async fn transform(
        &self,
        ctx: &Context,
        target: &Target,
        dry_run: bool,
        locked: bool,
        tracking: Tracking<'_>,
        change: impl Fn(&Value) -> Result<Value, Error>,
    ) -> Result<Written, Error> {
        let endpoint = Endpoint(target, None);
        self.transform_at(ctx, target, endpoint, dry_run, locked, tracking, change).await
    }

    /// As [`transform`](Self::transform), at an endpoint that admission sees.
    #[expect(clippy::too_many_arguments, reason = "those of a write, and the endpoint")]
    pub(super) async fn transform_at(
        &self,
        ctx: &Context,
        target: &Target,
        endpoint: Endpoint<'_>,
        dry_run: bool,
        locked: bool,
        tracking: Tracking<'_>,
        change: impl Fn(&Value) -> Result<Value, Error>,
    ) -> Result<Written, Error> {
        let changed = self.transformed(ctx, target, endpoint, dry_run, locked, tracking, change);
        let written = changed.await.map_err(|error| hidden(ctx, endpoint.0, error))?;
        self.written_for(ctx, target, written)
    }

    #[expect(clippy::too_many_arguments, reason = "those of a write, and the endpoint")]
    async fn transformed(
        &self,
        ctx: &Context,
        target: &Target,
        endpoint: Endpoint<'_>,
        dry_run: bool,
        locked: bool,
        tracking: Tracking<'_>,
        change: impl Fn(&Value) -> Result<Value, Error>,
    ) -> Result<Written, Error> {
        let cluster = Self::cluster(target)?.clone();
        let key = Self::object_key(target, &cluster, &target.name);
        let resource = Self::group_resource(&target.resource);
        self.consistent().await?;
        for _ in 0..TRIES {
            let slot = self.cache.slot(&key);
            self.check_entry(ctx, &cluster)?;
            let current = self.present(target, &cluster, &key, &slot)?;
            self.check_agent_touch(ctx, endpoint.0, "patch", Some(current))?;
            let old = self.in_version(target, current).await?;
            let new = change(&old)?;
            self.check_agent_change(ctx, endpoint.0, &old, &new)?;
            let mut admission = self.admission(ctx, endpoint.0, Operation::Update, dry_run);
            let mut tracking = tracking;
            let mut new = new;
            if let Some(admission) = &mut admission {
                new = self
                    .mutate_change(ctx, target, endpoint, admission, tracking, &old, new)
                    .await?;
                tracking = Tracking::Done;
            }
            let admission = admission.map(|admission| (endpoint, admission));
            let next = self.next(ctx, target, current, &old, new, tracking, admission).await?;
            let (value, gone) = match next {
                Next::Same => return self.written(target, current.clone(), false).await,
                Next::Changed(value) => (value, false),
                Next::Gone(value) => (value, true),
            };
            // A virtual object becomes real: that is a creation in its namespace.
            let mut guard = if is_stored(&slot) {
                Guard::of(ctx.urgency)
            } else {
                self.guard(ctx, &cluster, &target.namespace)?
            };
            let counted = (!gone && self.is_charged_again(target, &cluster))
                .then(|| serde_json::from_slice::<Value>(&value).unwrap_or_default());
            let counted = counted.as_ref().map(|new| (Some(&old), new));
            let charge = self.charge(ctx, target, &cluster, &mut guard, counted, dry_run).await?;
            if dry_run {
                let object = self.unwritten(key, &value, Some(current))?;
                return self.written(target, object, false).await;
            }
            let expect = current.expect();
            let written = if gone { self.removal(&key) } else { Some(value.clone()) };
            let write = Write { key: key.clone(), expect, value: written };
            match self.write_charged(write, guard, charge).await {
                Ok(revision) => {
                    // What goes is shown with the version that it had.
                    let revision = if gone { current.revision } else { revision };
                    let object = self.object(key, &value, revision)?;
                    return self.written(target, object, false).await;
                }
                Err(Lost::Race) if locked => {
                    return Err(Error::modified(&resource, &target.name));
                }
                Err(Lost::Race | Lost::GuardRace) => {}
                Err(Lost::Refused(error)) => return Err(error),
            }
        }
        Err(contended())
    }

    /// What is written at a key whose object goes: nothing, or a tombstone where a virtual object
    /// would come back.
    pub(super) fn removal(&self, key: &store::Key) -> Option<bytes::Bytes> {
        self.cache.virtual_object(key).map(|_| bytes::Bytes::new())
    }

    /// A stored object as the target's version has it.
    pub(super) async fn in_version(
        &self,
        target: &Target,
        object: &Arc<Object>,
    ) -> Result<Value, Error> {
        if target.custom.is_some() {
            let view = self.view(&self.lens(target).of_one(), object.clone()).await?;
            return serde_json::from_slice(&view.json).map_err(Error::internal);
        }
        let value = parse(object)?;
        let kind = Self::kind(&target.resource, &target.version);
        if self.stored_kind(&target.resource) == kind {
            return Ok(value);
        }
        self.converted(&target.resource, value, &kind)
    }

    /// Lets webhooks change the new state of an object, which is completed and given to its
    /// manager before. At `scale` they see a Scale.
    #[expect(clippy::too_many_arguments, reason = "those of a write, and what admits it")]
    async fn mutate_change(
        &self,
        ctx: &Context,
        target: &Target,
        endpoint: Endpoint<'_>,
        admission: &mut Admission,
        tracking: Tracking<'_>,
        old: &Value,
        mut new: Value,
    ) -> Result<Value, Error> {
        self.typing(target)?.default(&mut new);
        strategy::of(&target.resource).complete(&mut new);
        let new = self.track(ctx, target, tracking, Some(old), new)?;
        let mut objects = endpoint.objects(old, &new);
        self.mutate(ctx, endpoint.0, admission, &mut objects).await?;
        let mut changed = endpoint.taken(new, objects.new.unwrap_or_default());
        check_name(target, &changed)?;
        check_namespace(target, &mut changed)?;
        dedup_owners(ctx, &mut changed, true);
        Ok(changed)
    }

    /// Judges a change and completes it.
    #[expect(clippy::too_many_arguments, reason = "those of a write, and what admits it")]
    pub(super) async fn next(
        &self,
        ctx: &Context,
        target: &Target,
        current: &Arc<Object>,
        old: &Value,
        mut new: Value,
        tracking: Tracking<'_>,
        admission: Option<(Endpoint<'_>, Admission)>,
    ) -> Result<Next, Error> {
        let resource = &target.resource;
        let kind = Self::kind(resource, &target.version);
        let strategy = strategy::of(resource);
        self.check_lock(target, old, &new)?;
        let typing = self.typing(target)?;
        typing.default(&mut new);
        strategy.complete(&mut new);
        let mut new = self.track(ctx, target, tracking, Some(old), new)?;
        restore(old, &mut new);
        merge_subresource(target, old, &mut new);
        if target.subresource.is_empty() {
            strategy.prepare_update(&mut new, old);
        } else {
            strategy.prepare_part(&target.subresource, &mut new, old, ctx);
        }
        grow(resource, old, &mut new);
        self.check_escalation(ctx, target, Some(old), &new)?;
        self.check_placement(ctx, target, Some(old), &new)?;
        Self::check_content(target, &new)?;
        let path = FieldPath::root("metadata");
        let rule = strategy::name_rule(resource.name_rule);
        let mut problems =
            machinery::meta::validate_object_meta(&new, resource.namespaced, rule, &path);
        problems.extend(machinery::meta::validate_object_meta_update(&new, old, &path));
        problems.extend(strategy::unqualified_finalizers(resource, &new));
        problems.extend(strategy.validate(&new));
        problems.extend(strategy.validate_part(&target.subresource, &new, old));
        problems.extend(typing.validate(&new, Some(old), &target.subresource));
        if !problems.is_empty() {
            let kind = strategy::judged_kind(resource, &kind);
            return Err(Error::invalid(&kind, &target.name, &problems));
        }
        self.check_request(ctx, target, Some(old), &new)?;
        strategy.warnings(&new, Some(old)).into_iter().for_each(|warning| ctx.warn(warning));
        self.check_versions_kept(target, old, &new)?;
        if let Some((endpoint, mut admission)) = admission {
            let objects = endpoint.objects(old, &new);
            self.judge(ctx, endpoint.0, &mut admission, &objects).await?;
        }
        let deleting = get(&new, &["metadata", "deletionTimestamp"]).is_some();
        let kept = get(&new, &["metadata", "finalizers"])
            .and_then(Value::as_array)
            .is_some_and(|finalizers| !finalizers.is_empty());
        let gone = deleting && !kept && !strategy.is_held(&new);
        patch::apply::keep_times(old, &mut new);
        let value = self.canonical(target, new).await?;
        if gone {
            return Ok(Next::Gone(value));
        }
        let version = current.revision.0 + self.versions.base;
        if store::object::with_resource_version(&value, version) == current.json() {
            return Ok(Next::Same);
        }
        Ok(Next::Changed(value))
    }

    /// The optimistic lock.
    fn check_lock(&self, target: &Target, old: &Value, new: &Value) -> Result<(), Error> {
        let resource = Self::group_resource(&target.resource);
        let (given, present) = (text(new, "resourceVersion"), text(old, "resourceVersion"));
        if given.is_empty() || given == "0" {
            if target.resource.allow_unconditional_update {
                return Ok(());
            }
            let path = FieldPath::root("metadata").child("resourceVersion");
            let problem = FieldError::invalid(&path, &json!(0), "must be specified for an update");
            // Upstream names the resource here, not the kind.
            let named = Self::kind(&target.resource, &target.version).group_version;
            let named = named.kind(&target.resource.plural);
            return Err(Error::invalid(&named, &target.name, &[problem]));
        }
        if given.parse::<u64>().is_err() {
            let why = format!("strconv.ParseUint: parsing {}: invalid syntax", go_quote(given));
            return Err(Error::new(Reason::Unknown, why));
        }
        if given == present { Ok(()) } else { Err(Error::modified(&resource, &target.name)) }
    }
}

// === impl Endpoint ===

impl Endpoint<'_> {
    /// What admission sees of a change.
    fn objects(self, old: &Value, new: &Value) -> Objects {
        let seen = |object: &Value| match self.1 {
            None => object.clone(),
            Some(paths) => scale_of(paths, object),
        };
        Objects { new: Some(seen(new)), old: Some(seen(old)) }
    }

    /// The object with what admission made of what it saw.
    fn taken(self, mut object: Value, seen: Value) -> Value {
        let Some(paths) = self.1 else { return seen };
        if let Some(replicas) = get(&seen, &["spec", "replicas"]) {
            set(&mut object, &parts(&paths.spec_replicas), replicas.clone());
        }
        object
    }
}

/// The object in the body is the one of the URL.
pub(super) fn check_name(target: &Target, object: &Value) -> Result<(), Error> {
    let (name, url) = (text(object, "name"), &target.name);
    if name == &**url {
        return Ok(());
    }
    if name.is_empty() {
        return Err(Error::bad_request(format!(
            "the name of the object ({url} based on URL) was undeterminable: name must be provided"
        )));
    }
    Err(Error::bad_request(format!(
        "the name of the object ({name}) does not match the name on the URL ({url})"
    )))
}

/// An update that names a UID is meant for that object only. `present` is empty for none.
fn check_uid(target: &Target, object: &Value, present: &str) -> Result<(), Error> {
    let given = text(object, "uid");
    if given.is_empty() || given == present {
        return Ok(());
    }
    let resource = Registry::group_resource(&target.resource);
    let why =
        format!("Precondition failed: UID in precondition: {given}, UID in object meta: {present}");
    Err(Error::conflict(&resource, &target.name, &why))
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    get_str(object, &["metadata", field]).unwrap_or_default()
}
