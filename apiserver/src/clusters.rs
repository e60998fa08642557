//! Logical clusters: what makes one, what each has from the start, and how one ends.
//!
//! A logical cluster is an object of the resource `logicalclusters.core.kcp.io` in `root`. No
//! task, timer or lock exists for one.

pub mod bootstrap;
pub mod record;
pub mod virtuals;

pub use record::logical_clusters;
