//! Virtual objects: what every Kubernetes cluster has by default, without a byte in the store.
//!
//! # Rules
//! - UID = UUIDv5(LogicalCluster UID, "resource namespace/name"); resourceVersion = the revision at
//!   which the logical cluster or the namespace was created.
//! - They exist while what they depend on exists and is not being deleted.
//! - An update makes one real in one compare-and-create; a delete leaves a tombstone, and a
//!   controller makes it again, stored, with a new UID.
//! - Wildcard reads show namespaces of this kind only.

mod content;

use std::sync::Arc;

use machinery::{ClusterName, GroupResource, ObjectKey};
use serde_json::json;
use store::cache::{Object, Origin, Overlay, Slice};
use store::{Key, KeyPrefix, Revision};
use uuid::Uuid;

use crate::clusters::bootstrap::{self, Kind as Rbac, Template};
use crate::clusters::record;
pub use content::ApiService;

/// The namespaces of a new logical cluster, in key order.
pub const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// The ConfigMap that holds the server's CA in each namespace.
pub const ROOT_CA: &str = "kube-root-ca.crt";

/// The virtual objects of this server.
#[derive(Debug)]
pub struct Virtuals {
    /// PEM of the CA that signs the server's certificate.
    pub ca: Arc<str>,
    /// Address in the Service `default/kubernetes` and port of the server.
    pub port: u16,
    /// `rv_base` of the store.
    pub rv_base: u64,
    /// API services, one for each group version: name, group, version, priorities.
    pub api_services: Vec<ApiService>,
}

/// What a virtual object takes its identity from.
#[derive(Clone, Debug)]
struct Parent {
    cluster: ClusterName,
    cluster_uid: Uuid,
    revision: Revision,
    created: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Namespaces,
    ServiceAccounts,
    ConfigMaps,
    Services,
    ApiServices,
    Rbac(Rbac),
}

/// Kinds whose virtual objects come and go with events. Nobody is told that the bootstrap policy
/// goes with a whole logical cluster.
const KINDS: [Kind; 5] =
    [Kind::Namespaces, Kind::ServiceAccounts, Kind::ConfigMaps, Kind::Services, Kind::ApiServices];

// === impl Virtuals ===

impl Virtuals {
    /// The namespaces with which a logical cluster begins, given its object.
    pub fn first_namespaces(&self, cluster: &Object) -> Vec<Arc<Object>> {
        let Some(cluster) = Parent::of_record(cluster) else {
            return Vec::new();
        };
        NAMESPACES.iter().map(|name| self.make(Kind::Namespaces, &cluster, "", name)).collect()
    }

    fn make(&self, kind: Kind, parent: &Parent, namespace: &str, name: &str) -> Arc<Object> {
        let uid = parent.uid(kind, namespace, name);
        let mut metadata = json!({
            "name": name,
            "uid": uid.to_string(),
            "creationTimestamp": parent.created,
        });
        if !namespace.is_empty() {
            metadata["namespace"] = json!(namespace);
        }
        let mut value = self.content(kind, &mut metadata, name);
        value["metadata"] = metadata;
        let key =
            Key::new(&kind.resource(), &ObjectKey::new(parent.cluster.clone(), namespace, name));
        let json = store::object::encode(&value);
        let object = Object::new(key, &json, parent.revision, self.rv_base, Origin::Virtual);
        Arc::new(object.expect("our own JSON has a header"))
    }

    fn of_template(&self, parent: &Parent, template: &Template) -> Arc<Object> {
        let (kind, namespace, name) = (template.kind, &*template.namespace, &*template.name);
        let uid = parent.uid(Kind::Rbac(kind), namespace, name);
        let json = template.json(&parent.created, &uid.to_string());
        let place = ObjectKey::new(parent.cluster.clone(), namespace, name);
        let key = Key::new(&kind.resource(), &place);
        let revision = parent.revision;
        let object = Object::new(key, json.as_bytes(), revision, self.rv_base, Origin::Virtual);
        Arc::new(object.expect("our own JSON has a header"))
    }

    /// The bootstrap policy of one kind, in one namespace or in all, in key order.
    fn policy(
        &self,
        records: Slice<'_>,
        kind: Rbac,
        cluster: &Parent,
        namespace: &str,
    ) -> Vec<Arc<Object>> {
        let mut objects: Vec<Arc<Object>> = bootstrap::of_kind(kind, namespace)
            .filter_map(|template| {
                let parent = match &*template.namespace {
                    "" => Some(cluster.clone()),
                    namespace => Self::namespace(records, cluster, namespace),
                };
                Some(self.of_template(&parent?, template))
            })
            .collect();
        if kind == Rbac::ClusterRoleBinding
            && let Some(binding) = self.owner_binding(records, cluster)
        {
            objects.push(binding);
        }
        objects.sort_by(|a, b| a.key.cmp(&b.key));
        objects
    }

    /// The binding that makes the owner of a logical cluster its administrator, if it has one.
    fn owner_binding(&self, records: Slice<'_>, cluster: &Parent) -> Option<Arc<Object>> {
        let owner = record::owner(records.get(&record::key(&cluster.cluster))?)?;
        Some(self.of_template(cluster, &bootstrap::owner_binding(&owner)))
    }

    /// The namespaces of a logical cluster that are there and not being deleted, by name.
    fn live_namespaces(
        &self,
        records: Slice<'_>,
        cluster: &Parent,
    ) -> std::collections::BTreeMap<String, Parent> {
        let resource = Kind::Namespaces.resource();
        let mut live = NAMESPACES
            .into_iter()
            .map(|name| (name.to_owned(), cluster.clone()))
            .collect::<std::collections::BTreeMap<_, _>>();
        for object in records.range(&KeyPrefix::cluster(&resource, &cluster.cluster)) {
            let name = object.header.name().to_string();
            match cluster.of_namespace(object) {
                Some(parent) => live.insert(name, parent),
                None => live.remove(&name),
            };
        }
        live
    }

    fn in_cluster(&self, records: Slice<'_>, kind: Kind, cluster: &Parent) -> Vec<Arc<Object>> {
        let namespaced = |names: &[&str]| {
            let live = self.live_namespaces(records, cluster);
            let wanted =
                live.iter().filter(|(name, _)| names.is_empty() || names.contains(&name.as_str()));
            wanted.map(|(name, parent)| self.make(kind, parent, name, kind.only())).collect()
        };
        match kind {
            Kind::Namespaces => {
                NAMESPACES.iter().map(|name| self.make(kind, cluster, "", name)).collect()
            }
            Kind::ServiceAccounts | Kind::ConfigMaps => namespaced(&[]),
            Kind::Services => namespaced(&["default"]),
            Kind::ApiServices => {
                let mut names = self.api_services.iter().map(ApiService::name).collect::<Vec<_>>();
                names.sort();
                names.iter().map(|name| self.make(kind, cluster, "", name)).collect()
            }
            Kind::Rbac(kind) => self.policy(records, kind, cluster, ""),
        }
    }

    /// What a namespace takes from its record, or from its logical cluster while it has none.
    fn namespace(records: Slice<'_>, cluster: &Parent, name: &str) -> Option<Parent> {
        let key = Key::new(
            &Kind::Namespaces.resource(),
            &ObjectKey::new(cluster.cluster.clone(), "", name),
        );
        match records.get(&key) {
            Some(object) => cluster.of_namespace(object),
            None => NAMESPACES.contains(&name).then(|| cluster.clone()),
        }
    }
}

impl Overlay for Virtuals {
    fn object(&self, records: Slice<'_>, key: &Key) -> Option<Arc<Object>> {
        let kind = Kind::of(key.resource_part())?;
        let (cluster, namespace, name) = key.parts();
        // The name tells nearly always, and every change of an object comes by here.
        let known = match kind {
            Kind::Namespaces => NAMESPACES.contains(&name),
            Kind::ApiServices => self.api_services.iter().any(|service| service.name() == name),
            Kind::Services => name == kind.only() && namespace == "default",
            Kind::ServiceAccounts | Kind::ConfigMaps => name == kind.only(),
            Kind::Rbac(kind) => {
                is_owner_binding(kind, name) || bootstrap::find(kind, namespace, name).is_some()
            }
        };
        if !known {
            return None;
        }
        let cluster = Parent::named(records, cluster)?;
        match kind {
            Kind::Rbac(kind) if is_owner_binding(kind, name) => {
                self.owner_binding(records, &cluster)
            }
            Kind::Rbac(of) => {
                let template = bootstrap::find(of, namespace, name)?;
                let parent = match namespace {
                    "" => cluster,
                    namespace => Self::namespace(records, &cluster, namespace)?,
                };
                Some(self.of_template(&parent, template))
            }
            Kind::Namespaces | Kind::ApiServices => Some(self.make(kind, &cluster, "", name)),
            Kind::Services | Kind::ServiceAccounts | Kind::ConfigMaps => {
                let parent = Self::namespace(records, &cluster, namespace)?;
                Some(self.make(kind, &parent, namespace, name))
            }
        }
    }

    fn range(&self, records: Slice<'_>, prefix: &KeyPrefix) -> Vec<Arc<Object>> {
        let text = std::str::from_utf8(prefix.as_bytes()).unwrap_or_default();
        let mut parts = text.split('/');
        let (group, resource) = (parts.next(), parts.next());
        let (Some(group), Some(resource)) = (group, resource) else {
            return Vec::new();
        };
        let Some(kind) = Kind::of(&format!("{group}/{resource}")) else {
            return Vec::new();
        };
        let cluster = parts.next().filter(|cluster| !cluster.is_empty());
        let Some(cluster) = cluster else {
            if kind != Kind::Namespaces {
                return Vec::new();
            }
            let clusters = records.range(&record::prefix());
            let clusters = clusters.filter_map(|object| Parent::of_record(object));
            return clusters.flat_map(|cluster| self.in_cluster(records, kind, &cluster)).collect();
        };
        let Some(cluster) = Parent::named(records, cluster) else {
            return Vec::new();
        };
        match parts.next().filter(|namespace| !namespace.is_empty()) {
            None => self.in_cluster(records, kind, &cluster),
            Some(namespace) => {
                if matches!(kind, Kind::Namespaces | Kind::ApiServices) {
                    return Vec::new();
                }
                if let Kind::Rbac(kind) = kind {
                    return self.policy(records, kind, &cluster, namespace);
                }
                let object = ObjectKey::new(cluster.cluster, namespace, kind.only());
                self.object(records, &Key::new(&kind.resource(), &object)).into_iter().collect()
            }
        }
    }

    fn dependents(&self, records: Slice<'_>, key: &Key) -> Vec<Key> {
        let part = key.resource_part();
        let (cluster, _, name) = key.parts();
        if part == "core/namespaces" {
            let Ok(cluster) = ClusterName::parse(cluster) else {
                return Vec::new();
            };
            return [Kind::ServiceAccounts, Kind::ConfigMaps, Kind::Services]
                .into_iter()
                .filter(|kind| *kind != Kind::Services || name == "default")
                .map(|kind| {
                    let object = ObjectKey::new(cluster.clone(), name, kind.only());
                    Key::new(&kind.resource(), &object)
                })
                .collect();
        }
        if !record::is_key(key) {
            return Vec::new();
        }
        let Ok(cluster) = ClusterName::parse(name) else {
            return Vec::new();
        };
        // Nobody can watch inside a logical cluster before it exists. Its beginning is told to
        // wildcard watches of namespaces alone, by [`Virtuals::first_namespaces`].
        let Some(parent) = Parent::of_record_at(records, &cluster) else {
            return Vec::new();
        };
        KINDS
            .iter()
            .flat_map(|kind| self.in_cluster(records, *kind, &parent))
            .map(|object| object.key.clone())
            .collect()
    }
}

/// Whether a default object that was deleted is not made again.
pub fn stays_away(key: &Key) -> bool {
    let (_, _, name) = key.parts();
    matches!(Kind::of(key.resource_part()), Some(Kind::Rbac(kind)) if is_owner_binding(kind, name))
}

fn is_owner_binding(kind: Rbac, name: &str) -> bool {
    kind == Rbac::ClusterRoleBinding && name == bootstrap::OWNER_BINDING
}

// === impl Parent ===

impl Parent {
    fn named(records: Slice<'_>, cluster: &str) -> Option<Self> {
        Self::of_record_at(records, &ClusterName::parse(cluster).ok()?)
    }

    fn of_record_at(records: Slice<'_>, cluster: &ClusterName) -> Option<Self> {
        Self::of_record(records.get(&record::key(cluster))?)
    }

    fn of_record(object: &Object) -> Option<Self> {
        if object.header.is_deleting() {
            return None;
        }
        Some(Self {
            cluster: ClusterName::parse(object.header.name()).ok()?,
            cluster_uid: Uuid::parse_str(object.header.uid()).unwrap_or_default(),
            revision: object.created,
            created: object.header.creation_timestamp().into(),
        })
    }

    fn uid(&self, kind: Kind, namespace: &str, name: &str) -> Uuid {
        let identity = format!("{} {namespace}/{name}", kind.resource().resource);
        Uuid::new_v5(&self.cluster_uid, identity.as_bytes())
    }

    fn of_namespace(&self, object: &Object) -> Option<Self> {
        if object.header.is_deleting() {
            return None;
        }
        let name = object.header.name();
        let first = self.uid(Kind::Namespaces, "", name).to_string();
        if NAMESPACES.contains(&name) && *object.header.uid() == *first {
            // The namespace was virtual before it was changed: what is in it stays as it was.
            return Some(self.clone());
        }
        Some(Self {
            cluster: self.cluster.clone(),
            // A namespace that was made again has other default objects than the one before.
            cluster_uid: Uuid::new_v5(&self.cluster_uid, object.header.uid().as_bytes()),
            revision: object.created,
            created: object.header.creation_timestamp().into(),
        })
    }
}

// === impl Kind ===

impl Kind {
    fn of(resource_part: &str) -> Option<Self> {
        Some(match resource_part {
            "core/namespaces" => Self::Namespaces,
            "core/serviceaccounts" => Self::ServiceAccounts,
            "core/configmaps" => Self::ConfigMaps,
            "core/services" => Self::Services,
            "apiregistration.k8s.io/apiservices" => Self::ApiServices,
            part => {
                let plural = part.strip_prefix(bootstrap::GROUP)?.strip_prefix('/')?;
                Self::Rbac(Rbac::of(plural)?)
            }
        })
    }

    fn resource(self) -> GroupResource {
        match self {
            Self::Namespaces => GroupResource::new("", "namespaces"),
            Self::ServiceAccounts => GroupResource::new("", "serviceaccounts"),
            Self::ConfigMaps => GroupResource::new("", "configmaps"),
            Self::Services => GroupResource::new("", "services"),
            Self::ApiServices => GroupResource::new("apiregistration.k8s.io", "apiservices"),
            Self::Rbac(kind) => kind.resource(),
        }
    }

    /// The one name that a namespaced kind has in each namespace.
    fn only(self) -> &'static str {
        match self {
            Self::ServiceAccounts => "default",
            Self::ConfigMaps => ROOT_CA,
            Self::Services => "kubernetes",
            Self::Namespaces | Self::ApiServices | Self::Rbac(_) => "",
        }
    }
}
