//! Tests over real programs: upstream's, and our server as a process. By subject.

mod cluster;
mod conformance;
mod control_plane;
mod differential;
mod envtest;
mod etcd_store;
mod faults;
mod field_crds;
mod first_steps;
mod helm;
mod imported;
mod imported_conformance;
mod job;
mod kubectl;
mod leftovers;
mod operator;
mod partition;
mod profile;
mod replicas;
mod rows;
mod site;
mod support;
mod tenants;
mod types;
