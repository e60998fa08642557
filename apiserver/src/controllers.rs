//! Housekeeping inside the server: what users take for granted of a Kubernetes cluster.
//!
//! One task for each controller, for all logical clusters together; an idle logical cluster costs
//! nothing. They use the registry and, to follow changes, the cache.

mod aggregation;
mod certificates;
mod content;
mod defaults;
mod expiry;
mod fair;
mod garbage;
mod policies;
mod queue;
mod quota;
mod tokens;
mod types;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use runtime::Tasks;
use store::Urgency;
use tracing::info_span;

use crate::auth::{MASTERS, UserInfo};
use crate::pki::ClientIssuer;
use crate::registry::{Context, Registry};

/// What of housekeeping can be set.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// How long events are kept after their last change.
    pub(crate) event_ttl: Duration,
}

impl Default for Settings {
    /// Upstream's.
    fn default() -> Self {
        Self { event_ttl: Duration::from_secs(60 * 60) }
    }
}

/// Starts all controllers; they end when `tasks` are cancelled.
pub(crate) fn spawn(
    registry: &Arc<Registry>,
    issuer: &Arc<ClientIssuer>,
    settings: &Settings,
    tasks: &Tasks,
) {
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
    let expiry = expiry::run(registry.clone(), settings.event_ttl, stop.clone());
    drop(tasks.spawn(info_span!("expiry"), expiry));
    let quota = quota::run(registry.clone(), stop.clone());
    drop(tasks.spawn(info_span!("quota"), quota));
    let certificates = certificates::run(registry.clone(), issuer.clone(), stop.clone());
    drop(tasks.spawn(info_span!("certificates"), certificates));
    let defaults = defaults::run(registry.clone(), stop.clone());
    drop(tasks.spawn(info_span!("defaults"), defaults));
    let tokens = tokens::run(registry.clone(), stop.clone());
    drop(tasks.spawn(info_span!("tokens"), tokens));
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

/// The context of what nobody waits for: others' writes go first.
fn housekeeping() -> Context {
    let mut context = context();
    context.urgency = Urgency::Later;
    context
}
