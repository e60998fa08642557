//! Server-side apply: a PATCH that says what its manager wants, and creates what is missing.

use machinery::json::{self, Limits};
use machinery::meta::{get_str, remove};
use patch::apply::{ApplyError, Conflicts, Tracker};
use serde_json::{Value, json};
use store::cache::Slot;

use super::{Kinds, Tracking};
use crate::registry::commit::TRIES;
use crate::registry::create::contended;
use crate::registry::decode::{Raw, go_name};
use crate::registry::guard::unreadable;
use crate::registry::owners::dedup_owners;
use crate::registry::patch::check_identity;
use crate::registry::{
    Body, Context, Error, FieldValidation, Reason, Registry, Target, WriteOptions, Written,
};

/// A configuration, and what is wrong with its text.
struct Config {
    value: Value,
    /// Keys that are there twice, as the YAML parser tells of them.
    duplicates: Vec<String>,
}

impl Registry {
    /// Applies a configuration.
    ///
    /// # Errors
    /// 400 for what is no configuration of the kind, 409 when others own what it would change, 500
    /// when it doesn't fit the type (as upstream has it), then as [`Registry::update`] or
    /// [`Registry::create`].
    pub(in crate::registry) async fn apply(
        &self,
        ctx: &Context,
        target: &Target,
        body: &Body,
        options: &WriteOptions,
    ) -> Result<Written, Error> {
        let config = Config::parse(&body.bytes)?;
        let cluster = Self::cluster(target)?.clone();
        let key = Self::object_key(target, &cluster, &target.name);
        let version = get_str(&config.value, &["metadata", "resourceVersion"]);
        let locked = version.is_some_and(|version| !version.is_empty() && version != "0");
        self.warn_writer(ctx, target);
        if let Some(paths) = self.scale_paths(target)? {
            let (dry_run, done) = (options.dry_run, Tracking::Done);
            let change = |scale: &Value| self.applied_scale(ctx, target, &config, options, scale);
            return self.rescale(ctx, target, &paths, dry_run, locked, done, change).await;
        }
        for _ in 0..TRIES {
            self.consistent().await?;
            let slot = self.cache.slot(&key);
            let written = match slot {
                Slot::Unreadable => return Err(unreadable(&key)),
                Slot::Object(_) => {
                    let change =
                        |old: &Value| self.applied(ctx, target, &config, options, Some(old));
                    self.transform(ctx, target, options.dry_run, locked, Tracking::Done, change)
                        .await
                }
                Slot::Absent | Slot::Tombstone(_) if target.subresource.is_empty() => {
                    let object = self.applied(ctx, target, &config, options, None)?;
                    let (dry_run, done) = (options.dry_run, Tracking::Done);
                    self.create_object(ctx, target, &cluster, object, dry_run, done).await
                }
                Slot::Absent | Slot::Tombstone(_) => {
                    self.require_cluster(&cluster)?;
                    let resource = Self::group_resource(&target.resource);
                    return Err(Error::not_found(&resource, &target.name));
                }
            };
            // Somebody has made or removed the object meanwhile: then the other way is right.
            let was_there = matches!(self.cache.slot(&key), Slot::Object(_));
            match written {
                Err(error) if error.reason() == Reason::AlreadyExists && was_there => {}
                Err(error) if error.reason() == Reason::NotFound && is_about(&error, target) => {}
                written => return written,
            }
        }
        Err(contended())
    }

    /// What an object becomes by a configuration; `None` is one that isn't there.
    fn applied(
        &self,
        ctx: &Context,
        target: &Target,
        config: &Config,
        options: &WriteOptions,
        old: Option<&Value>,
    ) -> Result<Value, Error> {
        let kinds = Kinds::new(self, target)?;
        let write = kinds.write(target, &options.field_manager, ctx);
        let force = options.force.unwrap_or(false);
        let applied = Tracker::new(&&kinds).apply(&write, old, &config.value, force);
        let mut value = applied.map_err(refusal)?;
        config.judge(ctx, options.field_validation)?;
        if old.is_none() {
            let uid = get_str(&value, &["metadata", "uid"]).unwrap_or_default();
            if !uid.is_empty() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing \
                     object was found"
                );
                let resource = Self::group_resource(&target.resource);
                return Err(Error::conflict(&resource, &target.name, &why));
            }
            // There is nothing that it could lock.
            remove(&mut value, &["metadata", "resourceVersion"]);
        }
        let kind = Self::kind(&target.resource, &target.version);
        let raw = Raw { value, ..Raw::default() };
        let typing = self.typing(target)?;
        let typed = Self::typed(ctx, &typing, &kind, raw, FieldValidation::Ignore);
        let mut value = typed.map_err(|why| {
            let (namespace, name) = (&target.namespace, &target.name);
            let version = &kind.group_version;
            let (group, version, kind) = (&version.group, &version.version, &kind.kind);
            Error::new(
                Reason::Unknown,
                format!(
                    "failed to convert new object ({namespace}/{name}; {group}/{version}, \
                     Kind={kind}) to proper version: {why}"
                ),
            )
        })?;
        if !target.resource.namespaced {
            remove(&mut value, &["metadata", "namespace"]);
        } else if get_str(&value, &["metadata", "namespace"]).is_none_or(str::is_empty) {
            machinery::meta::set(&mut value, &["metadata", "namespace"], json!(&*target.namespace));
        }
        check_identity(target, &value)?;
        dedup_owners(ctx, &mut value, true);
        Ok(value)
    }
}

impl Registry {
    /// What a Scale becomes by a configuration.
    fn applied_scale(
        &self,
        ctx: &Context,
        target: &Target,
        config: &Config,
        options: &WriteOptions,
        old: &Value,
    ) -> Result<Value, Error> {
        let kinds = Kinds::of_scale(self)?;
        let write = kinds.write(target, &options.field_manager, ctx);
        let force = options.force.unwrap_or(false);
        let applied = Tracker::new(&&kinds).apply(&write, Some(old), &config.value, force);
        let value = applied.map_err(refusal)?;
        config.judge(ctx, options.field_validation)?;
        let raw = Raw { value, ..Raw::default() };
        let scale = self.typed_scale(ctx, raw, FieldValidation::Ignore)?;
        check_identity(target, &scale)?;
        Ok(scale)
    }
}

// === impl Config ===

impl Config {
    /// YAML, of which JSON is a part. Nothing at all is an empty object.
    fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let refused = |why: &str| Error::bad_request(format!("error decoding YAML: {why}"));
        let parsed = json::yaml(bytes, &Limits::default()).map_err(|error| {
            refused(&format!("error converting YAML to JSON: {}", error.message))
        })?;
        let value = match parsed.value {
            Value::Null => json!({}),
            Value::Object(fields) => Value::Object(fields),
            other => {
                return Err(refused(&format!(
                    "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into \
                     Go value of type map[string]interface {{}}",
                    go_name(&other)
                )));
            }
        };
        Ok(Self { value, duplicates: parsed.duplicates })
    }

    /// Refuses or reports keys that are there twice, as `fieldValidation` asks.
    fn judge(&self, ctx: &Context, validation: FieldValidation) -> Result<(), Error> {
        if self.duplicates.is_empty() {
            return Ok(());
        }
        match validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => self.duplicates.iter().for_each(|text| ctx.warn(text)),
            FieldValidation::Strict => {
                let lines = self.duplicates.iter().map(|line| format!("\n  {line}"));
                return Err(Error::bad_request(format!(
                    "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal \
                     errors:{}",
                    lines.collect::<String>()
                )));
            }
        }
        Ok(())
    }
}

/// Whether an error says of the target that it isn't there.
fn is_about(error: &Error, target: &Target) -> bool {
    let details = error.details();
    details.name == *target.name && details.kind == *target.resource.plural
}

fn refusal(error: ApplyError) -> Error {
    match error {
        ApplyError::BadRequest(why) => Error::bad_request(why),
        ApplyError::Failed(why) => Error::new(Reason::Unknown, why),
        ApplyError::Conflicts(conflicts) => conflict(&conflicts),
    }
}

fn conflict(conflicts: &Conflicts) -> Error {
    let error = Error::new(Reason::Conflict, conflicts.to_string());
    conflicts.0.iter().fold(error, |error, conflict| {
        error.cause("FieldManagerConflict", conflict.message(), &conflict.field())
    })
}
