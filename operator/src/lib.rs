//! The operator: one process for the SyncTargets of all logical clusters.
