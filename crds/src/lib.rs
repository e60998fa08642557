//! The custom types of kcp-rs as Rust types, for the operator and agents, and their CRDs.
//!
//! The CRDs are generated from the types and committed beside this crate, as
//! `crds/<plural>.<group>.yaml`; a test fails when they are stale, and rewrites them when
//! `UPDATE_CRDS` is set. The operator installs them in the logical cluster `system:crds`.
//!
//! It knows nothing of clients: the API server, which knows none of these types, shares
//! [`contract`] with it.

mod api_resource_import;
mod api_resource_schema;
mod condition;
mod difference;
mod negotiated_api_resource;
mod object_sync;
mod placement;
mod selector;
mod sync_target;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

pub use api_resource_import::{APIResourceImport, APIResourceImportSpec, APIResourceImportStatus};
pub use api_resource_schema::{
    APIResourceSchema, APIResourceSchemaSpec, Column, Scale, Scope, Subresources, TypeNames,
};
pub use condition::{Condition, ConditionStatus};
pub use difference::{Difference, MOST_DIFFERENCES, Said};
pub use negotiated_api_resource::{
    Hurt, NegotiatedAPIResource, NegotiatedAPIResourceSpec, NegotiatedAPIResourceStatus,
    UpdateStrategy,
};
pub use object_sync::{
    Drift, ObjectRef, ObjectSync, ObjectSyncSpec, ObjectSyncStatus, SyncTargetRef,
};
pub use placement::{
    Decision, Divided, ObjectSelection, Placement, PlacementSpec, PlacementStatus, Share, Spread,
    Strategy, StrategyType, TargetSelection, Toleration, TolerationOperator, WhenUnsatisfiable,
};
pub use selector::{LabelSelector, Requirement, RequirementOperator};
pub use sync_target::{
    Adoption, AllowedClusters, Mode, NamespaceMapping, Quantity, SecretKeyRef, StatusDown,
    SyncTarget, SyncTargetSpec, SyncTargetStatus, SyncedResource, SyncedState, Taint, TaintEffect,
    Upsync, UpsyncObjects,
};

/// The CRDs of all types, in the order in which they are installed.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![
        SyncTarget::crd(),
        APIResourceSchema::crd(),
        APIResourceImport::crd(),
        NegotiatedAPIResource::crd(),
        ObjectSync::crd(),
        Placement::crd(),
    ]
}

#[cfg(test)]
mod tests;
