//! Housekeeping inside the server: what users take for granted of a Kubernetes cluster.
//!
//! One task for each controller, for all logical clusters together; an idle logical cluster costs
//! nothing. They use the registry and, to follow changes, the cache.

mod aggregation;
mod content;
mod defaults;
mod fair;
mod garbage;
mod policies;
mod queue;
mod types;

use std::sync::Arc;

use jiff::Timestamp;
use runtime::Tasks;
use tracing::info_span;

use crate::auth::{MASTERS, UserInfo};
use crate::registry::{Context, Registry};

/// Starts all controllers; they end when `tasks` are cancelled.
pub(crate) fn spawn(registry: &Arc<Registry>, tasks: &Tasks) {
    let stop = tasks.cancellation();
    let deletion = content::run(registry.clone(), stop.clone());
    drop(tasks.spawn(info_span!("content"), deletion));
    let types = types::run(registry.clone(), stop.clone());
    drop(tasks.spawn(info_span!("types"), types));
    let garbage = garbage::run(registry.clone(), stop.clone());
    drop(tasks.spawn(info_span!("garbage"), garbage));
    let policies = policies::run(registry.clone(), stop.clone());
    drop(tasks.spawn(info_span!("policies"), policies));
    let aggregation = aggregation::run(registry.clone(), stop.clone());
    drop(tasks.spawn(info_span!("aggregation"), aggregation));
    let defaults = defaults::run(registry.clone(), stop.clone());
    drop(tasks.spawn(info_span!("defaults"), defaults));
}

/// The context of a request that a controller makes.
fn context() -> Context {
    let user = UserInfo {
        name: "system:apiserver".into(),
        groups: vec![MASTERS.into()],
        ..UserInfo::default()
    };
    let mut context = Context::new(Arc::new(user), Timestamp::now(), "kcp-apiserver".into());
    context.inside = true;
    context
}
