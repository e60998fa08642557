//! Which types a physical cluster has, told to the hub continuously.
//!
//! It runs in the agent, or in the operator for a target in mode `Push`.
//!
//! # Flow
//! A watch of the cluster's CustomResourceDefinitions (metadata alone) tells at once which have
//! changed ([`cluster`]); every other type is looked at when the cluster's list of OpenAPI documents
//! says that one has changed, which costs one request a turn. What is wanted ([`selection`]) is
//! described ([`describe`]) and written upstream ([`report`]): an APIResourceSchema for each content,
//! an APIResourceImport for each version of a type, and nothing that is there already.
//! What hub and cluster then have in common ([`common`]) comes back by the SyncTarget's status.
//!
//! # Guarantees
//! - A type that the cluster no longer has is marked (`spec.vanishedSince`), never deleted: it goes with
//!   the SyncTarget, or by a person's hand, and what is known of it stays.
//! - What can't be read keeps what was known of it, and is told by the condition `TypesComplete`.
//! - An unchanged cluster costs one request a turn there, one at the hub, and no write.
//! - Documents, lists and their number are bounded; a type that can't be described is told and keeps no
//!   other out.

mod cluster;
mod common;
mod describe;
mod hub;
mod report;
mod run;
mod selection;

pub use cluster::{is_established, served_by_hub};
pub use describe::{Described, content_name, of_definition};
pub use hub::{Hub, HubError};
pub use run::{Settings, run};
pub use selection::{Asked, SERVED_BY_HUBS, Selection, USUAL};
