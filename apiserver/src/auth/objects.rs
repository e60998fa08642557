//! The objects that identities rest on, as authenticators see them.

use std::sync::Arc;

use machinery::{ClusterName, GroupResource, ObjectKey};
use serde_json::Value;
use store::Key;
use store::cache::{Cache, Object};

/// Where objects are looked up.
pub(crate) trait Objects: std::fmt::Debug + Send + Sync {
    /// The object at a key, virtual ones included.
    fn object(&self, key: &Key) -> Option<Arc<Object>>;
}

impl Objects for Cache {
    fn object(&self, key: &Key) -> Option<Arc<Object>> {
        self.get(key)
    }
}

impl dyn Objects + '_ {
    /// An object of the core group.
    pub(crate) fn core(
        &self,
        cluster: &ClusterName,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Option<Arc<Object>> {
        let object = ObjectKey::new(cluster.clone(), namespace, name);
        self.object(&Key::new(&GroupResource::new("", plural), &object))
    }
}

/// The decoded value of one entry of a Secret's `data`; empty when there is none.
pub(crate) fn secret_entry(secret: &Value, name: &str) -> Vec<u8> {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let text = machinery::meta::get_str(secret, &["data", name]).unwrap_or_default();
    STANDARD.decode(text).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashMap;

    use store::Revision;
    use store::cache::Origin;

    use super::*;

    /// Objects that don't change by themselves.
    #[derive(Debug, Default)]
    pub(crate) struct Fixed(HashMap<Key, Arc<Object>>);

    impl Fixed {
        /// Adds an object of the core group, or replaces it.
        pub(crate) fn put(&mut self, cluster: &ClusterName, plural: &str, value: &Value) {
            let text = |name: &str| {
                machinery::meta::get_str(value, &["metadata", name]).unwrap_or_default()
            };
            let object = ObjectKey::new(cluster.clone(), text("namespace"), text("name"));
            self.put_at(Key::new(&GroupResource::new("", plural), &object), value);
        }

        /// Puts an object at a key.
        pub(crate) fn put_at(&mut self, key: Key, value: &Value) {
            let json = store::object::encode(value);
            let object = Object::new(key.clone(), &json, Revision(1), 0, Origin::Stored).unwrap();
            self.0.insert(key, Arc::new(object));
        }

        /// Removes an object of the core group.
        pub(crate) fn remove(
            &mut self,
            cluster: &ClusterName,
            plural: &str,
            namespace: &str,
            name: &str,
        ) {
            let object = ObjectKey::new(cluster.clone(), namespace, name);
            self.0.remove(&Key::new(&GroupResource::new("", plural), &object));
        }
    }

    impl Objects for Fixed {
        fn object(&self, key: &Key) -> Option<Arc<Object>> {
            self.0.get(key).cloned()
        }
    }
}
