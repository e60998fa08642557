//! What is known of a type in a logical cluster, and what was decided of it. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::Hurt;
use negotiation::Type;
use serde_json::Value;

use super::decide::{Candidate, Decision, Standing};
use super::definition::Published;
use super::entries::{Import, Negotiated};

/// What is known of a type before anything is decided.
pub(super) struct Situation {
    pub(super) imports: Vec<(String, Import)>,
    pub(super) negotiated: BTreeMap<String, Negotiated>,
    /// What targets have, by version.
    pub(super) offers: BTreeMap<String, Vec<Offer>>,
    /// The definition, where the type isn't every hub's own.
    pub(super) object: Option<Value>,
    pub(super) published: Option<Published>,
    /// Whether every hub has the type itself.
    pub(super) own: bool,
}

/// What was decided of one version, and what came of it.
pub(super) struct Outcome {
    pub(super) decision: Decision,
    pub(super) hurt: Vec<Hurt>,
    /// How many objects would be hurt.
    pub(super) hurt_count: usize,
    /// Why the version is not in the definition.
    pub(super) refused: Option<String>,
    /// Whether it can't be served beside others.
    pub(super) left: bool,
}

/// What a target is called here, since when it has the type, and the type.
pub(super) type Offer = (String, String, Arc<Type>);

/// Who says what the type is, as [`Standing`].
pub(super) enum Stands {
    Enforced(Option<Type>),
    Published(Type),
    Unpublished(Option<Arc<Type>>),
}

// === impl Stands ===

impl Stands {
    pub(super) fn borrowed(&self) -> Standing<'_> {
        match self {
            Self::Enforced(ty) => Standing::Enforced(ty.as_ref()),
            Self::Published(ty) => Standing::Published(ty),
            Self::Unpublished(ty) => Standing::Unpublished(ty.as_deref()),
        }
    }
}

pub(super) fn candidates(offers: &[Offer]) -> Vec<Candidate<'_>> {
    offers.iter().map(|(target, since, ty)| Candidate { target, since, ty }).collect()
}

// === impl Situation ===

impl Situation {
    pub(super) fn is_enforced(&self) -> bool {
        self.own || self.published.as_ref().is_some_and(|published| !published.ours)
    }

    pub(super) fn of(&self, version: &str) -> Option<&Negotiated> {
        self.negotiated.values().find(|negotiated| negotiated.spec.version == version)
    }

    pub(super) fn versions(&self) -> BTreeSet<String> {
        let negotiated = self.negotiated.values().map(|n| n.spec.version.clone());
        let ours = self.published.iter().filter(|published| published.ours);
        let ours = ours.flat_map(|published| published.versions.keys().cloned());
        self.offers.keys().cloned().chain(negotiated).chain(ours).collect()
    }

    /// Whether the hub serves a version.
    pub(super) fn is_served(&self, version: &str) -> bool {
        self.own
            || self.published.as_ref().is_some_and(|published| {
                published.established && published.versions.contains_key(version)
            })
    }
}
