//! All built-in types and resources, and the types that are known beyond them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use machinery::{GroupVersion, Gvk};

use crate::data;
use crate::model::{Pool, Schema};
use crate::resource::{self, ResourceDef};

/// The group of kinds that every group version knows, `DeleteOptions` and `Status` among them.
const META_GROUP: &str = "meta.k8s.io";

/// The built-in types, compiled, and the resources that serve them.
#[derive(Debug)]
pub struct Types {
    pool: Arc<Pool>,
    kinds: HashMap<Gvk, Arc<Schema>>,
    resources: Vec<Arc<ResourceDef>>,
}

// === impl Types ===

impl Types {
    /// The built-in types, read once for the whole process.
    pub fn builtin() -> Arc<Self> {
        static BUILTIN: LazyLock<Arc<Types>> = LazyLock::new(|| Arc::new(Types::read()));
        BUILTIN.clone()
    }

    /// The schema of any kind of the Kubernetes release that this server follows, lists included:
    /// the built-in one, else the known one.
    ///
    /// An imported type has its facts from here (protobuf numbers, what Go writes, patch
    /// strategies); its fields may be more, since its schema comes from a cluster of another
    /// release. The known types are read when the first of them is asked for.
    pub fn known(gvk: &Gvk) -> Option<Arc<Schema>> {
        let found = |types: &Self| types.kinds.get(gvk).cloned();
        found(&Self::builtin()).or_else(|| found(&Self::beyond()))
    }

    /// The kinds that the server doesn't serve by itself, with the types that they use; no
    /// resources. Read when it is first asked for.
    pub fn beyond() -> Arc<Self> {
        static BEYOND: LazyLock<Arc<Types>> =
            LazyLock::new(|| Arc::new(Types::compile(data::read_known(), Vec::new())));
        BEYOND.clone()
    }

    fn read() -> Self {
        Self::compile(data::read(), resource::builtin())
    }

    fn compile(
        (pool, entries): (Pool, Vec<data::KindEntry>),
        resources: Vec<Arc<ResourceDef>>,
    ) -> Self {
        let pool = Arc::new(pool);
        let kinds = entries.into_iter().map(|entry| {
            let [group, version, kind] = entry.gvk;
            let schema = Schema::new(pool.clone(), entry.id);
            (GroupVersion::new(group, version).kind(kind), Arc::new(schema))
        });
        Self { kinds: kinds.collect(), resources, pool }
    }

    /// The schema of a kind, lists (`ConfigMapList`) included.
    ///
    /// Kinds of `meta.k8s.io/v1` are found under any group and version: clients send
    /// `DeleteOptions` under that of the resource, under `v1` and under `meta.k8s.io/v1` alike.
    pub fn kind(&self, gvk: &Gvk) -> Option<&Arc<Schema>> {
        self.kinds.get(gvk).or_else(|| {
            let meta = GroupVersion::new(META_GROUP, "v1").kind(&gvk.kind);
            self.kinds.get(&meta)
        })
    }

    /// Every kind and its schema, in no order.
    pub fn kinds(&self) -> impl Iterator<Item = (&Gvk, &Arc<Schema>)> {
        self.kinds.iter()
    }

    /// The schema of a type by its OpenAPI name, as
    /// `io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta`.
    pub fn named(&self, name: &str) -> Option<Schema> {
        self.pool.find(name).map(|id| Schema::new(self.pool.clone(), id))
    }

    /// The types behind all built-in kinds.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The resources to serve, in the order of discovery.
    pub fn resources(&self) -> &[Arc<ResourceDef>] {
        &self.resources
    }

    /// The resource of that group and plural name.
    pub fn resource(&self, group: &str, plural: &str) -> Option<&Arc<ResourceDef>> {
        self.resources.iter().find(|r| &*r.group == group && &*r.plural == plural)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_shared_and_told_apart() {
        let types = Types::builtin();
        let kind = |kind| types.kind(&GroupVersion::new("", "v1").kind(kind)).unwrap().clone();
        assert_eq!(kind("Secret").hash(), kind("Secret").hash());
        assert_ne!(kind("Secret").hash(), kind("ConfigMap").hash());
        assert!(Arc::ptr_eq(kind("Secret").pool(), kind("ConfigMap").pool()));
    }

    #[test]
    fn built_in_types_come_before_known_ones() {
        let known =
            |group, version, kind| Types::known(&GroupVersion::new(group, version).kind(kind));
        let builtin = Types::builtin();
        assert!(Arc::ptr_eq(known("", "v1", "Secret").unwrap().pool(), builtin.pool()));
        let deployment = known("apps", "v1", "Deployment").unwrap();
        assert!(Arc::ptr_eq(deployment.pool(), known("", "v1", "PodList").unwrap().pool()));
        assert!(known("apps", "v1beta1", "Deployment").is_none());
        assert!(Types::beyond().resources().is_empty());
    }

    #[test]
    fn fields_know_their_protobuf_numbers() {
        let (types, beyond) = (Types::builtin(), Types::beyond());
        let mut numbered = 0;
        for (gvk, schema) in types.kinds().chain(beyond.kinds()) {
            let mut numbers: Vec<u32> =
                schema.root_struct().fields.iter().map(|f| f.number).collect();
            numbers.retain(|n| *n != 0);
            numbered += numbers.len();
            numbers.sort_unstable();
            assert!(numbers.windows(2).all(|w| w[0] != w[1]), "{gvk}");
        }
        assert!(numbered > 0);
    }

    /// Loading must stay far below the 30 ms that a start may spend on it; the bound is wide
    /// because tests run without optimisation and beside others.
    #[test]
    fn loading_is_quick() {
        let best = (0..5)
            .map(|_| {
                let start = jiff::Timestamp::now();
                drop(Types::read());
                jiff::Timestamp::now().duration_since(start).as_millis()
            })
            .min();
        assert!(best.unwrap() < 200, "{best:?} ms");
    }
}
