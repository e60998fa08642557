//! What a stored CustomResourceDefinition means, worked out once for each of its revisions, and shared by
//! the logical clusters that have the same one.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock, Weak};

use machinery::{GroupResource, ObjectKey};
use parking_lot::Mutex;
use schema::crd::{self, CustomType};
use serde_json::Value;
use store::Key;
use store::cache::Object;
use tracing::warn;

/// A CRD as it is stored, read as far as somebody asked.
#[derive(Debug)]
pub struct Definition {
    /// The parts of the CRD that others depend on: its group and names, asked for and accepted.
    ///
    /// As text: it is kept for each CRD and seldom read, and a parsed one is many times as large.
    summary: Box<[u8]>,
    group: Box<str>,
    established: bool,
    names_accepted: bool,
    compiled: OnceLock<Option<Arc<CustomType>>>,
    /// The spec, where that is shared: it keeps its place, which is a part of the identity.
    part: Option<Arc<[u8]>>,
}

/// What a definition follows from: where its shared spec is, its summary, and which of its conditions
/// are true.
type Identity = (usize, Box<[u8]>, [bool; 2]);

type Known = HashMap<Identity, Weak<Definition>>;

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

/// The resource `customresourcedefinitions.apiextensions.k8s.io`.
pub fn definitions() -> GroupResource {
    GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

/// The key of the CRD of a group and plural name in a logical cluster.
pub(super) fn key(cluster: &machinery::ClusterName, group: &str, plural: &str) -> Key {
    let name = schema::import::crd_name(group, plural);
    Key::new(&definitions(), &ObjectKey::new(cluster.clone(), "", &name))
}

/// The fields of a CRD that make its summary; the schemas, which are nearly all of its bytes, are
/// passed over.
#[derive(serde::Deserialize, serde::Serialize, Default)]
#[serde(default)]
struct Summary {
    metadata: SummaryMetadata,
    spec: SummarySpec,
    status: SummaryStatus,
}

#[derive(serde::Deserialize, serde::Serialize, Default)]
#[serde(default)]
struct SummaryMetadata {
    name: Value,
}

#[derive(serde::Deserialize, serde::Serialize, Default)]
#[serde(default)]
struct SummarySpec {
    group: Value,
    names: Value,
    scope: Value,
}

#[derive(serde::Deserialize, serde::Serialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct SummaryStatus {
    accepted_names: Value,
    conditions: Value,
}

// === impl Definition ===

impl Definition {
    /// What a cached CRD means.
    pub fn of(object: &Arc<Object>) -> Arc<Self> {
        let derived = object.derived.get_or_init(|| Self::shared(object));
        // Only CRDs are asked, and of them nothing else is derived.
        derived.clone().downcast().unwrap_or_else(|_other| Self::shared(object))
    }

    /// What an equal CRD of another logical cluster means, or a new definition.
    fn shared(object: &Object) -> Arc<Self> {
        let made = Self::read(&object.json());
        let Some(part) = object.shared_part() else { return Arc::new(made) };
        let place = Arc::as_ptr(part).cast::<u8>() as usize;
        let identity = (place, made.summary.clone(), [made.established, made.names_accepted]);
        let mut known = KNOWN.lock();
        let same =
            |found: &Arc<Self>| found.part.as_ref().is_some_and(|own| Arc::ptr_eq(own, part));
        if let Some(found) = known.get(&identity).and_then(Weak::upgrade).filter(same) {
            return found;
        }
        let made = Arc::new(Self { part: Some(part.clone()), ..made });
        if known.len() >= 64 && known.len() == known.capacity() {
            known.retain(|_, definition| definition.strong_count() > 0);
        }
        known.insert(identity, Arc::downgrade(&made));
        made
    }

    fn read(json: &[u8]) -> Self {
        let summary: Summary = serde_json::from_slice(json).unwrap_or_default();
        let mut summary = serde_json::to_value(summary).unwrap_or_default();
        let is = |kind| crd::is_condition_true(&summary, kind);
        let (established, names_accepted) = (is("Established"), is("NamesAccepted"));
        // Their texts would be most of what is kept for each CRD.
        machinery::meta::remove(&mut summary, &["status", "conditions"]);
        let group = crd::group(&summary).into();
        let summary = serde_json::to_vec(&summary).unwrap_or_default().into_boxed_slice();
        let (compiled, part) = (OnceLock::new(), None);
        Self { summary, group, established, names_accepted, compiled, part }
    }

    /// Whether it has all the names that it asks for.
    pub fn has_its_names(&self) -> bool {
        self.names_accepted
    }

    /// The CRD's name, group and names, asked for and accepted.
    pub fn summary(&self) -> Value {
        serde_json::from_slice(&self.summary).unwrap_or_default()
    }

    /// The group that clients address.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Whether its objects are served.
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// The type, if it is served.
    pub fn custom(&self, object: &Object) -> Option<&Arc<CustomType>> {
        if !self.established {
            return None;
        }
        let compile = || {
            let crd = serde_json::from_slice::<Value>(&object.json()).ok()?;
            let compiled = crd::compile(&crd);
            compiled.inspect_err(|why| warn!(key = %object.key, ?why, "unusable CRD")).ok()
        };
        self.compiled.get_or_init(compile).as_ref()
    }
}
