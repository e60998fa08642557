//! The harness: real Kubernetes programs and our own server, started as processes on this machine.
//!
//! [`tools`] builds upstream programs from exact versions and keeps them in a cache outside the
//! checkout. [`ControlPlane`] is a real etcd with a real kube-apiserver, [`Etcd`] a cluster of etcd
//! alone, [`Hub`] is our server; [`Kubectl`] talks to either server. Whatever is started belongs to a
//! [`Run`], whose folder records it, so that the next run cleans up after one that crashed. Tests wrap
//! themselves in [`scenario()`].
//!
//! Nothing here knows what our server does: it is a black box behind its flags and its port.

pub mod agent;
pub mod balancer;
pub mod cable;
pub mod cargo;
pub mod client;
pub mod clock;
pub mod cluster;
pub mod conformance;
pub mod control_plane;
pub mod controllers;
pub mod deletions;
pub mod envtest;
pub mod etcd;
pub mod eventually;
pub mod field_crds;
pub mod fleet;
pub mod https;
pub mod hub;
pub mod image;
pub mod imported;
pub mod kubeconfig;
pub mod kubectl;
mod listener;
pub mod namespace;
pub mod operator;
pub mod ports;
pub mod process;
pub mod progress;
pub mod provider;
pub mod run;
pub mod scenario;
pub mod tools;
pub mod webhook;

pub use agent::Agent;
pub use balancer::Balancer;
pub use cable::Cable;
pub use cluster::Cluster;
pub use control_plane::ControlPlane;
pub use controllers::ControllerManager;
pub use deletions::Deletions;
pub use etcd::Etcd;
pub use eventually::{PATIENCE, eventually, eventually_within};
pub use fleet::Fleet;
pub use hub::Hub;
pub use image::Image;
pub use kubectl::Kubectl;
pub use operator::Operator;
pub use process::Process;
pub use provider::Provider;
pub use run::Run;
pub use scenario::scenario;
pub use tools::Tool;
pub use webhook::Webhook;
