//! Create: decode, judge, write if absent.

use std::borrow::Cow;

use bytes::Bytes;
use machinery::meta::{get, get_str, remove, set};
use machinery::{FieldPath, name};
use schema::resource::{Flag, Generation, ResourceDef};
use serde_json::{Value, json};
use store::cache::Slot;

use super::admission::Admission;
use super::commit::{Lost, TRIES, Write};
use super::guard::unreadable;
use super::managed::{Tracking, manager};
use super::owners::dedup_owners;
use super::strategy::{self, Strategy};
use super::typing::Typing;
use crate::admission::{Objects, Operation};
use crate::registry::{
    Body, Context, Error, Reason, Registry, Target, View, WriteOptions, Written,
};

/// Names that are tried for one `generateName`, as upstream (KEP-4420).
const NAME_TRIES: usize = 8;

impl Registry {
    /// Creates an object in the target's collection.
    ///
    /// # Errors
    /// As upstream: 400 for what cannot be decoded, 422 for what breaks the kind's rules, 409 for
    /// what is there already, 404 and 403 for a namespace that is missing or going.
    pub async fn create(
        &self,
        ctx: &Context,
        target: &Target,
        body: Body,
        options: WriteOptions,
    ) -> Result<Written, Error> {
        let cluster = Self::cluster(target)?.clone();
        if !target.subresource.is_empty() {
            return self.create_part(ctx, target, &body, options).await;
        }
        let mut decoded = self.decode(ctx, target, &body, options.field_validation)?;
        self.warn_writer(ctx, target);
        if target.resource.has(Flag::Virtual) {
            check_namespace(target, &mut decoded)?;
            return self.answer(ctx, target, decoded).await;
        }
        let manager = manager(ctx, &options);
        let tracking = Tracking::By(&manager);
        self.create_object(ctx, target, &cluster, decoded, options.dry_run, tracking).await
    }

    /// Creates an object that was decoded already.
    pub(super) async fn create_object(
        &self,
        ctx: &Context,
        target: &Target,
        cluster: &machinery::ClusterName,
        mut decoded: Value,
        dry_run: bool,
        tracking: Tracking<'_>,
    ) -> Result<Written, Error> {
        let resource = &target.resource;
        check_namespace(target, &mut decoded)?;
        self.check_agent_create(ctx, target, &decoded)?;
        dedup_owners(ctx, &mut decoded, false);
        // Upstream's store refuses it, which a dry run does not come to: it answers with what was given.
        let version = get(&decoded, &["metadata", "resourceVersion"]).filter(|_| dry_run).cloned();
        let given = get_str(&decoded, &["metadata", "resourceVersion"]).unwrap_or_default();
        if !dry_run && !matches!(given, "" | "0") {
            return Err(Error::new(
                Reason::Unknown,
                "resourceVersion should not be set on objects to be created",
            ));
        }
        self.fill_limits(target, cluster, &mut decoded);
        let mut admission = self.admission(ctx, target, Operation::Create, dry_run);
        let mut tracking = tracking;
        if let Some(admission) = &mut admission
            && self.guard(ctx, cluster, &target.namespace).is_ok()
        {
            decoded = self.mutate_new(ctx, target, admission, tracking, decoded).await?;
            tracking = Tracking::Done;
        }
        let mut waited = false;
        let mut names = 0;
        for _ in 0..TRIES + NAME_TRIES {
            let guard = match self.guard(ctx, cluster, &target.namespace) {
                Err(error) if error.reason() == Reason::NotFound && !waited => {
                    // What was just created may not be in the cache yet.
                    waited = true;
                    self.consistent().await?;
                    continue;
                }
                guard => guard.map_err(|error| named(error, target, &decoded))?,
            };
            let mut object = decoded.clone();
            let generated = self.name(&mut object);
            names += usize::from(generated);
            let (name, value) = self.prepare_new(ctx, target, tracking, object)?;
            if let Some(admission) = &mut admission {
                let objects = Objects { new: Some(value.clone()), old: None };
                self.judge(ctx, target, admission, &objects).await?;
            }
            self.check_room(ctx, target, cluster, &name)?;
            self.check_limits(target, cluster, &value)?;
            let counted = self.is_charged(target, cluster).then(|| value.clone());
            let value = self.canonical(target, value).await?;
            let mut guard = guard;
            self.guard_type(&mut guard, target, cluster, &name)?;
            let key = Self::object_key(target, cluster, &name);
            let slot = self.cache.slot(&key);
            let exists = || {
                let group_resource = Self::group_resource(resource);
                let error = match self.cache.get(&key) {
                    Some(object) if object.header.is_deleting() => {
                        Error::still_exists(&group_resource, &name)
                    }
                    _ => Error::already_exists(&group_resource, &name),
                };
                if generated { error.retry_after(1) } else { error }
            };
            if let Slot::Object(object) = &slot
                && object.origin == store::cache::Origin::Virtual
            {
                return Err(exists());
            }
            let expect = match slot {
                Slot::Unreadable => return Err(unreadable(&key)),
                Slot::Tombstone(revision) => store::Expect::At(revision),
                // What the cache shows may be gone already: the store decides.
                Slot::Absent | Slot::Object(_) => store::Expect::Absent,
            };
            let counted = counted.as_ref().map(|new| (None, new));
            let charge = self.charge(ctx, target, cluster, &mut guard, counted, dry_run).await?;
            if dry_run {
                if matches!(self.cache.slot(&key), Slot::Object(_)) {
                    return Err(exists());
                }
                let value = match version {
                    None => value,
                    Some(version) => with_version(&value, version)?,
                };
                let object = self.unwritten(key, &value, None)?;
                return self.written(target, object, true).await;
            }
            let write = Write { key: key.clone(), expect, value: Some(value.clone()) };
            match self.write_charged(write, guard, charge).await {
                Ok(revision) => {
                    let object = self.object(key, &value, revision)?;
                    return self.written(target, object, true).await;
                }
                Err(Lost::Race) if matches!(self.cache.slot(&key), Slot::Object(_)) => {
                    if !generated || names >= NAME_TRIES {
                        return Err(exists());
                    }
                }
                Err(Lost::Race | Lost::GuardRace) => {}
                Err(Lost::Refused(error)) => return Err(error),
            }
        }
        Err(contended())
    }

    /// Lets webhooks change a decoded object, which is completed and given to its manager before.
    async fn mutate_new(
        &self,
        ctx: &Context,
        target: &Target,
        admission: &mut Admission,
        tracking: Tracking<'_>,
        mut object: Value,
    ) -> Result<Value, Error> {
        for field in [
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
        ] {
            remove(&mut object, &["metadata", field]);
        }
        self.typing(target)?.default(&mut object);
        strategy::of(&target.resource).complete(&mut object);
        let object = self.track(ctx, target, tracking, None, object)?;
        let mut objects = Objects { new: Some(object), old: None };
        self.mutate(ctx, target, admission, &mut objects).await?;
        let mut object = objects.new.unwrap_or_default();
        check_namespace(target, &mut object)?;
        dedup_owners(ctx, &mut object, true);
        Ok(object)
    }

    /// Makes a decoded object one that can be stored, and judges it. Returns its name, too.
    fn prepare_new(
        &self,
        ctx: &Context,
        target: &Target,
        tracking: Tracking<'_>,
        mut object: Value,
    ) -> Result<(String, Value), Error> {
        let resource = &target.resource;
        let kind = Self::kind(resource, &target.version);
        for field in
            ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"]
        {
            remove(&mut object, &["metadata", field]);
        }
        set(&mut object, &["metadata", "uid"], json!(self.new_uid()));
        let now = machinery::time::Time::at(ctx.now).to_string();
        set(&mut object, &["metadata", "creationTimestamp"], json!(now));
        if resource.generation != Generation::None {
            set(&mut object, &["metadata", "generation"], json!(1));
        }
        let strategy = strategy::of(resource);
        let typing = self.typing(target)?;
        typing.default(&mut object);
        strategy.complete(&mut object);
        let mut object = self.track(ctx, target, tracking, None, object)?;
        if let Some(status) = resource.subresource("status")
            && status.writes.iter().any(|field| &**field == "status")
        {
            clear_status(resource, &typing, &mut object);
        }
        strategy.prepare_create(&mut object, ctx);
        self.approve_agent(ctx, target, &mut object);
        self.check_escalation(ctx, target, None, &object)?;
        self.check_placement(ctx, target, None, &object)?;
        Self::check_content(target, &object)?;
        let name = get_str(&object, &["metadata", "name"]).unwrap_or_default().to_owned();
        let mut problems = judge_new(resource, strategy, &object);
        problems.extend(typing.validate(&object, None, ""));
        if !problems.is_empty() {
            let kind = strategy::judged_kind(resource, &kind);
            return Err(Error::invalid(&kind, &name, &problems));
        }
        self.check_request(ctx, target, None, &object)?;
        strategy.warnings(&object, None).into_iter().for_each(|warning| ctx.warn(warning));
        Ok((name, object))
    }

    /// The bytes that are stored for an object of the target's version.
    pub(super) async fn canonical(
        &self,
        target: &Target,
        mut object: Value,
    ) -> Result<bytes::Bytes, Error> {
        let resource = &target.resource;
        if target.custom.is_some() {
            schema::structural::settle_numbers(&mut object);
        }
        let stored = self.stored_kind(resource);
        if stored == Self::kind(resource, &target.version) {
            return Ok(store::object::encode(&object));
        }
        let mut object = self.to_storage(target, object, &stored).await?;
        if target.custom.is_some() {
            // What the stored version lacks stays: reading in a version leaves out what that lacks.
            return Ok(store::object::encode(&object));
        }
        let schema = self.schema(&stored)?;
        schema.coerce(&mut object, schema::CoerceMode::Drop).map_err(Error::internal)?;
        Ok(store::object::encode(&object))
    }

    pub(super) async fn written(
        &self,
        target: &Target,
        object: std::sync::Arc<store::cache::Object>,
        created: bool,
    ) -> Result<Written, Error> {
        let view: View = self.view(&self.lens(target), object).await?;
        Ok(Written { view, created })
    }

    pub(super) fn warn_writer(&self, ctx: &Context, target: &Target) {
        if let Some(warning) = &target.resource.write_warning {
            ctx.warn(&**warning);
        }
    }

    /// Makes up a name where `generateName` asks for it. Returns whether it did.
    fn name(&self, object: &mut Value) -> bool {
        let given = get_str(object, &["metadata", "name"]).unwrap_or_default();
        let base = get_str(object, &["metadata", "generateName"]).unwrap_or_default();
        if !given.is_empty() || base.is_empty() {
            return false;
        }
        let mut random = uuid::Uuid::new_v4().as_u128();
        let mut next = || {
            let low = u32::try_from(random & 0xffff_ffff).unwrap_or_default();
            random =
                random.rotate_right(23).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            low
        };
        let name = name::generate_name(base, &mut next);
        set(object, &["metadata", "name"], json!(name));
        true
    }
}

/// All that is wrong with a new object.
fn judge_new(
    resource: &ResourceDef,
    strategy: &dyn Strategy,
    object: &Value,
) -> Vec<machinery::FieldError> {
    let path = FieldPath::root("metadata");
    let rule = strategy::name_rule(resource.name_rule);
    let mut problems =
        machinery::meta::validate_object_meta(object, resource.namespaced, rule, &path);
    problems.extend(strategy::unqualified_finalizers(resource, object));
    problems.extend(strategy.validate(object));
    problems.extend(strategy.validate_create(object));
    problems
}

/// A new object has no status but the one that its type begins with, or the empty one that it always
/// shows, if it does.
fn clear_status(resource: &ResourceDef, typing: &Typing, object: &mut Value) {
    if let Some(status) = &resource.initial_status {
        set(object, &["status"], (**status).clone());
        typing.zero(object);
        return;
    }
    let field = typing.facts().and_then(|facts| facts.pool().field(facts.root(), "status"));
    match field {
        Some(field) if !field.pointer => {
            set(object, &["status"], json!({}));
            typing.zero(object);
        }
        _ => {
            remove(object, &["status"]);
        }
    }
}

/// An object with the version that somebody gave it.
fn with_version(value: &[u8], version: Value) -> Result<Bytes, Error> {
    let mut object: Value = serde_json::from_slice(value).map_err(Error::internal)?;
    set(&mut object, &["metadata", "resourceVersion"], version);
    serde_json::to_vec(&object).map(Bytes::from).map_err(Error::internal)
}

/// A namespace that is on its way out refuses objects by their names.
fn named(error: Error, target: &Target, object: &Value) -> Error {
    if error.reason() != Reason::Forbidden || error.details().causes.is_empty() {
        return error;
    }
    let name = get_str(object, &["metadata", "name"]).unwrap_or_default();
    error.about_forbidden(&Registry::group_resource(&target.resource), name)
}

/// The namespace in the body is that of the URL, or missing.
pub(super) fn check_namespace(target: &Target, object: &mut Value) -> Result<(), Error> {
    let given = get_str(object, &["metadata", "namespace"]).unwrap_or_default();
    let given = Cow::Owned::<str>(given.to_owned());
    if !target.resource.namespaced {
        // As upstream, which has always let it pass.
        remove(object, &["metadata", "namespace"]);
        return Ok(());
    }
    if target.namespace.is_empty() {
        return Err(Error::bad_request("an empty namespace may not be set during creation"));
    }
    if given.is_empty() {
        set(object, &["metadata", "namespace"], json!(&*target.namespace));
        return Ok(());
    }
    if *given != *target.namespace {
        return Err(Error::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// Too many writers change what this write rests on.
pub(super) fn contended() -> Error {
    Error::new(Reason::TooManyRequests, "the object is being changed too often, try again")
        .retry_after(1)
}
