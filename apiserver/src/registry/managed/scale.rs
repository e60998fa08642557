//! Managers of Scales: the owner of an object's replicas owns them in its Scale, and the other way.

use machinery::meta::{get, remove, set};
use patch::apply::{Replicas, Tracker, from_scale, to_scale};
use serde_json::Value;

use super::{Kinds, MANAGED_FIELDS, Tracking};
use crate::registry::{Context, Error, Registry, Target};

impl Registry {
    /// Gives a new Scale to its writer, as [`Registry::track`] does with objects.
    pub(in crate::registry) fn track_scale(
        &self,
        ctx: &Context,
        target: &Target,
        tracking: Tracking<'_>,
        old: &Value,
        new: Value,
    ) -> Result<Value, Error> {
        let Tracking::By(manager) = tracking else { return Ok(new) };
        let kinds = Kinds::of_scale(self)?;
        let write = kinds.write(target, manager, ctx);
        Ok(Tracker::new(&&kinds).update(&write, Some(old), new))
    }
}

/// Where the versions of the target's type keep the number of replicas.
fn replicas(target: &Target, api_version: &str) -> Replicas {
    let group = &target.resource.group;
    let version = match api_version.split_once('/') {
        Some((of, version)) if *of == **group => version,
        None if group.is_empty() => api_version,
        _ => return Replicas::UnknownVersion,
    };
    let versions = target.custom.iter().flat_map(|custom| &custom.versions);
    match versions.into_iter().find(|known| *known.name == *version) {
        None => Replicas::UnknownVersion,
        Some(known) => known
            .scale
            .as_ref()
            .map_or(Replicas::Nowhere, |paths| Replicas::at(&paths.spec_replicas)),
    }
}

/// A Scale with the managers that those of its object make. Ones that can't be read make none.
pub(in crate::registry) fn with_managers_of(
    target: &Target,
    object: &Value,
    mut scale: Value,
) -> Value {
    let of_object = get(object, &MANAGED_FIELDS);
    if let Ok(Some(managers)) = to_scale(of_object, |version| replicas(target, version)) {
        set(&mut scale, &MANAGED_FIELDS, managers);
    }
    scale
}

/// Carries the managers of a Scale back into its object, whose own were those before the write.
pub(in crate::registry) fn managers_from_scale(target: &Target, scale: &Value, object: &mut Value) {
    let version = machinery::GroupVersion::new(&target.resource.group, &target.version).to_string();
    let (of_object, of_scale) = (get(object, &MANAGED_FIELDS), get(scale, &MANAGED_FIELDS));
    let known = |version: &str| replicas(target, version);
    match from_scale(of_object, of_scale, &version, known) {
        Ok(Some(managers)) => {
            set(object, &MANAGED_FIELDS, managers);
        }
        Ok(None) => {
            remove(object, &MANAGED_FIELDS);
        }
        // What can't be read stays as it is.
        Err(_) => {}
    }
}
