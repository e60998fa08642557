//! The parameters of policies: objects of the logical cluster.

use machinery::selector::LabelSelector;
use machinery::{GroupVersion, ObjectKey};
use serde_json::Value;
use store::{Key, KeyPrefix};

use crate::admission::{Attributes, Binding, Policy};
use crate::registry::{ClusterScope, Registry, Target};

/// Most parameters that a selector may find: a policy is evaluated for each.
const MOST: usize = 100;

impl Registry {
    /// The parameters for which a policy judges a request: one that is none, if it has none at all.
    ///
    /// # Errors
    /// Why they can't be had, in upstream's words.
    pub(super) async fn params(
        &self,
        attributes: &Attributes,
        policy: &Policy,
        binding: &Binding,
    ) -> Result<Vec<Option<Value>>, String> {
        let (Some((version, kind)), Some(reference)) = (&policy.param_kind, &binding.param_ref)
        else {
            return Ok(vec![None]);
        };
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        let Some(target) = self.kind_of_params(attributes, version, kind) else {
            return Err(format!(
                "paramKind kind `&ParamKind{{APIVersion:{version},Kind:{kind},}}` not known"
            ));
        };
        let mut namespace = "";
        if target.resource.namespaced {
            namespace = match text("namespace") {
                "" => &attributes.namespace,
                given => given,
            };
            if namespace.is_empty() {
                return Err("cannot use namespaced paramRef in policy binding that matches \
                            cluster-scoped resources"
                    .to_owned());
            }
        } else if !text("namespace").is_empty() {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
                .to_owned());
        }
        let storage = Self::storage(&target.resource);
        let cluster = &attributes.cluster;
        let mut found = match text("name") {
            "" => {
                let prefix = if namespace.is_empty() {
                    KeyPrefix::cluster(&storage, cluster)
                } else {
                    KeyPrefix::namespace(&storage, cluster, namespace)
                };
                let selector = reference.get("selector").unwrap_or(&Value::Null);
                let selector = LabelSelector::from_value(selector).map_err(|e| e.to_string())?;
                let mut all = self.cache.list(&prefix, None, 0).objects;
                all.retain(|object| selector.matches(|key| object.header.label(key)));
                all
            }
            name => {
                let key = Key::new(&storage, &ObjectKey::new(cluster.clone(), namespace, name));
                self.cache.get(&key).into_iter().collect()
            }
        };
        if found.len() > MOST {
            return Err(format!("more than {MOST} params found for policy binding"));
        }
        if found.is_empty() && text("parameterNotFoundAction") == "Deny" {
            return Err(
                "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned()
            );
        }
        let lens = self.lens(&target);
        let mut params = Vec::with_capacity(found.len());
        for object in found.drain(..) {
            let view = self.view(&lens, object).await.map_err(|error| error.to_string())?;
            let value = serde_json::from_slice(&view.json).map_err(|error| error.to_string())?;
            params.push(Some(value));
        }
        Ok(params)
    }

    /// The resource of parameters, in the version that the policy asks for.
    fn kind_of_params(&self, attributes: &Attributes, version: &str, kind: &str) -> Option<Target> {
        let GroupVersion { group, version } = GroupVersion::parse(version)?;
        let cluster = ClusterScope::One(attributes.cluster.clone());
        let resources = self.catalog.resources(&cluster);
        let resource = resources.iter().find(|resource| {
            *resource.group == *group
                && &*resource.kind == kind
                && resource.version(&version).is_some_and(|version| version.served)
        })?;
        let served = self.catalog.find(&cluster, &group, &version, &resource.plural)?;
        Some(Target {
            cluster,
            resource: served.resource,
            custom: served.custom,
            version,
            namespace: "".into(),
            name: "".into(),
            subresource: "".into(),
        })
    }
}
