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

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use runtime::Tasks;
use store::Urgency;
use tracing::info_span;

use crate::auth::{MASTERS, UserInfo};
use crate::metrics::Metrics;
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
    metrics: &Metrics,
    tasks: &Tasks,
) {
    let start = |name: &'static str, controller: BoxFuture<'static, ()>| {
        drop(tasks.spawn(info_span!("controller", name), controller));
    };
    let stop = tasks.cancellation();
    start(
        "content",
        content::run(registry.clone(), metrics.queue("content"), stop.clone()).boxed(),
    );
    start("types", types::run(registry.clone(), metrics.queue("types"), stop.clone()).boxed());
    start(
        "garbage",
        garbage::run(registry.clone(), metrics.queue("garbage"), stop.clone()).boxed(),
    );
    start(
        "policies",
        policies::run(registry.clone(), metrics.queue("policies"), stop.clone()).boxed(),
    );
    start(
        "aggregation",
        aggregation::run(registry.clone(), metrics.queue("aggregation"), stop.clone()).boxed(),
    );
    start("expiry", expiry::run(registry.clone(), settings.event_ttl, stop.clone()).boxed());
    start("quota", quota::run(registry.clone(), metrics.queue("quota"), stop.clone()).boxed());
    let certificates = certificates::run(
        registry.clone(),
        issuer.clone(),
        metrics.queue("certificates"),
        stop.clone(),
    );
    start("certificates", certificates.boxed());
    start(
        "defaults",
        defaults::run(registry.clone(), metrics.queue("defaults"), stop.clone()).boxed(),
    );
    start("tokens", tokens::run(registry.clone(), metrics.queue("tokens"), stop.clone()).boxed());
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
