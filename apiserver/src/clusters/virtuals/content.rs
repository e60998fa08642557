//! What is in virtual objects, those of the bootstrap policy aside: facts of the Kubernetes release
//! that we follow.

use serde_json::{Value, json};

use super::{Kind, Virtuals};

/// One group version as an `APIService` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiService {
    /// The group, empty for core.
    pub group: String,
    /// The version.
    pub version: String,
    /// `groupPriorityMinimum`.
    pub group_priority: i64,
    /// `versionPriority`.
    pub version_priority: i64,
}

// === impl Virtuals ===

impl Virtuals {
    /// An object without its metadata, of which what is the kind's own is added to `metadata`.
    pub(super) fn content(&self, kind: Kind, metadata: &mut Value, name: &str) -> Value {
        match kind {
            Kind::Namespaces => {
                metadata["labels"] = json!({"kubernetes.io/metadata.name": name});
                json!({
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "spec": {"finalizers": ["kubernetes"]},
                    "status": {"phase": "Active"},
                })
            }
            Kind::ServiceAccounts => json!({"apiVersion": "v1", "kind": "ServiceAccount"}),
            Kind::ConfigMaps => {
                metadata["annotations"] = json!({
                    "kubernetes.io/description":
                        "The CA certificate that signs this API server's certificate.",
                });
                json!({
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "data": {"ca.crt": &*self.ca},
                })
            }
            Kind::Services => {
                metadata["labels"] = json!({"component": "apiserver", "provider": "kubernetes"});
                json!({
                    "apiVersion": "v1",
                    "kind": "Service",
                    "spec": {
                        "clusterIP": "10.0.0.1",
                        "clusterIPs": ["10.0.0.1"],
                        "internalTrafficPolicy": "Cluster",
                        "ipFamilies": ["IPv4"],
                        "ipFamilyPolicy": "SingleStack",
                        "ports": [{
                            "name": "https",
                            "port": 443,
                            "protocol": "TCP",
                            "targetPort": self.port,
                        }],
                        "sessionAffinity": "None",
                        "type": "ClusterIP",
                    },
                    "status": {"loadBalancer": {}},
                })
            }
            Kind::ApiServices => self.api_service(metadata, name),
            // These are made of templates.
            Kind::Rbac(_) => Value::Object(serde_json::Map::new()),
        }
    }

    fn api_service(&self, metadata: &mut Value, name: &str) -> Value {
        let known = self.api_services.iter().find(|service| service.name() == name);
        let (group, version, group_priority, version_priority) = known
            .map_or(("", "", 0, 0), |known| {
                (&*known.group, &*known.version, known.group_priority, known.version_priority)
            });
        metadata["labels"] = json!({"kube-aggregator.kubernetes.io/automanaged": "onstart"});
        let mut spec = json!({
            "groupPriorityMinimum": group_priority,
            "version": version,
            "versionPriority": version_priority,
        });
        if !group.is_empty() {
            spec["group"] = json!(group);
        }
        json!({
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "spec": spec,
            "status": {"conditions": [{
                "lastTransitionTime": metadata["creationTimestamp"],
                "message": "Local APIServices are always available",
                "reason": "Local",
                "status": "True",
                "type": "Available",
            }]},
        })
    }
}

// === impl ApiService ===

impl ApiService {
    /// The object's name: `v1.` for core, `v1.apps` otherwise.
    pub fn name(&self) -> String {
        format!("{}.{}", self.version, self.group)
    }
}
