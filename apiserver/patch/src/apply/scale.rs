//! The managers of an object as its scale subresource shows them, and back.
//!
//! A Scale has one field of the object, the number of replicas. Whoever owns it there owns it in
//! the Scale, and what a write to the Scale changes about that is carried back.

use serde_json::Value;

use super::element::Element;
use super::managers::{InvalidManagers, Managers, Owner};
use super::set::FieldSet;

/// The version of Scales.
const VERSION: &str = "autoscaling/v1";

/// Where a version of the object keeps the number of replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replicas {
    /// There is no such version: what is owned in it is dropped.
    UnknownVersion,
    /// Nowhere: the version has no scale subresource.
    Nowhere,
    /// There.
    At(Box<[Element]>),
}

// === impl Replicas ===

impl Replicas {
    /// A place from the path in a CRD, as `.spec.replicas`.
    pub fn at(path: &str) -> Self {
        let names = path.strip_prefix('.').unwrap_or(path).split('.');
        Self::At(names.map(Element::field).collect())
    }

    fn owned_by(&self, owner: &Owner) -> Option<&[Element]> {
        match self {
            Self::At(path) if owner.fields.contains(path) => Some(path),
            _ => None,
        }
    }
}

fn in_scale() -> [Element; 2] {
    [Element::field("spec"), Element::field("replicas")]
}

fn set_of(path: &[Element]) -> FieldSet {
    let mut set = FieldSet::new();
    set.insert(path);
    set
}

fn read(fields: Option<&Value>) -> Result<Managers, InvalidManagers> {
    fields.map_or_else(|| Ok(Managers::default()), Managers::from_value)
}

fn written(owners: Vec<Owner>) -> Option<Value> {
    let mut managers = Managers::default();
    *managers.owners_mut() = owners;
    managers.into_value()
}

/// The managed fields of a Scale, of those of its object. `replicas` knows the object's versions.
///
/// # Errors
/// [`InvalidManagers`] when those of the object can't be read.
pub fn to_scale(
    object: Option<&Value>,
    replicas: impl Fn(&str) -> Replicas,
) -> Result<Option<Value>, InvalidManagers> {
    let mut owners = Vec::new();
    for owner in read(object)?.owners() {
        if replicas(&owner.api_version).owned_by(owner).is_some() {
            let (api_version, fields) = (VERSION.into(), set_of(&in_scale()));
            let (id, time) = (owner.id.clone(), owner.time);
            owners.push(Owner { id, api_version, fields, time, source: None });
        }
    }
    Ok(written(owners))
}

/// The managed fields of an object after a write to its Scale that left `scale` there. `version`
/// is that of the object at the endpoint.
///
/// # Errors
/// [`InvalidManagers`] when either can't be read.
pub fn from_scale(
    object: Option<&Value>,
    scale: Option<&Value>,
    version: &str,
    replicas: impl Fn(&str) -> Replicas,
) -> Result<Option<Value>, InvalidManagers> {
    let before = read(object)?;
    let mut of_scale = read(scale)?;
    let mut owners = Vec::new();
    for owner in before.owners() {
        let place = replicas(&owner.api_version);
        if place == Replicas::UnknownVersion {
            continue;
        }
        let mut owner = owner.clone();
        if let Some(path) = place.owned_by(&owner)
            && of_scale.take(&owner.id).is_none()
        {
            // It was taken from it.
            owner.lose(&set_of(path));
        }
        if !owner.fields.is_empty() {
            owners.push(owner);
        }
    }
    if let Replicas::At(path) = replicas(version) {
        for owner in of_scale.owners().iter().filter(|o| o.fields.contains(&in_scale())) {
            let time = before.get(&owner.id).and_then(|before| before.time);
            let (id, api_version) = (owner.id.clone(), version.into());
            let fields = set_of(&path);
            owners.push(Owner { id, api_version, fields, time, source: None });
        }
    }
    Ok(written(owners))
}
