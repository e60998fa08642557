//! Who owns which field: `metadata.managedFields` of every write, and server-side apply.
//!
//! The algorithm is [`patch::apply`]; here it meets the resources: which versions a kind has, what
//! an endpoint resets, and under which name a caller writes.

mod apply;
mod kinds;
mod scale;

use patch::apply::Tracker;
use schema::resource::ResourceDef;
use serde_json::{Value, json};

use crate::registry::{Context, Error, Registry, Target, WriteOptions};
use kinds::Kinds;

pub(super) use scale::{managers_from_scale, with_managers_of};

/// Longest name of a manager that is made of a `User-Agent`, in bytes.
const MAX_MANAGER: usize = 128;

/// Where managers are kept.
pub(super) const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];

/// Whether a write still has to be given to its manager.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tracking<'a> {
    /// It belongs to the manager of that name; empty for a caller who gives none.
    By(&'a str),
    /// The object has its managers already.
    Done,
}

impl Registry {
    /// Gives a new state of an object to its writer. `old` is `None` for one that is being created.
    ///
    /// It sees the object as it was sent, with defaults, and not what the server makes of it: what
    /// the server sets belongs to nobody.
    pub(super) fn track(
        &self,
        ctx: &Context,
        target: &Target,
        tracking: Tracking<'_>,
        old: Option<&Value>,
        new: Value,
    ) -> Result<Value, Error> {
        let Tracking::By(manager) = tracking else { return Ok(new) };
        let kinds = Kinds::new(self, target)?;
        let write = kinds.write(target, manager, ctx);
        Ok(Tracker::new(&&kinds).update(&write, old, new))
    }
}

/// The name under which a caller writes.
pub(super) fn manager(ctx: &Context, options: &WriteOptions) -> String {
    if !options.field_manager.is_empty() {
        return options.field_manager.to_string();
    }
    let mut name = String::new();
    for c in ctx.agent.chars().filter(|c| *c == ' ' || !(c.is_control() || c.is_whitespace())) {
        if name.len() + c.len_utf8() > MAX_MANAGER {
            break;
        }
        name.push(c);
    }
    name
}

/// Whether an object asks for its managers to be forgotten.
pub(super) fn asks_for_reset(object: &Value) -> bool {
    machinery::meta::get(object, &MANAGED_FIELDS).is_some_and(patch::apply::is_reset)
}

/// Lets an empty list of managed fields outlive the decoding into a type, where a list without
/// items is none: an empty entry asks for the same reset.
pub(super) fn keep_reset(object: &mut Value) {
    machinery::meta::set(object, &MANAGED_FIELDS, json!([{}]));
}

/// The top-level fields that a write to an endpoint resets.
fn reset_by<'r>(resource: &'r ResourceDef, subresource: &str) -> Vec<&'r str> {
    const PARTS: [&str; 3] = ["metadata", "spec", "status"];
    if subresource.is_empty() {
        let parts = resource.subresources.iter().filter(|part| part.kind.is_none());
        let has_status = parts.flat_map(|part| &part.writes).any(|field| &**field == "status");
        return if has_status { vec!["status"] } else { Vec::new() };
    }
    let Some(part) = resource.subresource(subresource) else { return Vec::new() };
    let writes = |field: &str| part.writes.iter().any(|written| &**written == field);
    PARTS.into_iter().filter(|field| !writes(field)).collect()
}
