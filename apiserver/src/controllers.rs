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
use prometheus::IntGauge;
use runtime::Tasks;
use store::Urgency;
use tokio_util::sync::CancellationToken;
use tracing::info_span;

use crate::auth::{MASTERS, UserInfo};
use crate::metrics::Metrics;
use crate::pki::ClientIssuer;
use crate::registry::{Context, Registry};

/// Begins a controller, which tells how many keys its queue has.
type Run = fn(Arc<Registry>, IntGauge, CancellationToken) -> BoxFuture<'static, ()>;

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
    let with_queues: [(&'static str, Run); 8] = [
        ("content", |registry, depth, stop| content::run(registry, depth, stop).boxed()),
        ("types", |registry, depth, stop| types::run(registry, depth, stop).boxed()),
        ("garbage", |registry, depth, stop| garbage::run(registry, depth, stop).boxed()),
        ("policies", |registry, depth, stop| policies::run(registry, depth, stop).boxed()),
        ("aggregation", |registry, depth, stop| aggregation::run(registry, depth, stop).boxed()),
        ("quota", |registry, depth, stop| quota::run(registry, depth, stop).boxed()),
        ("defaults", |registry, depth, stop| defaults::run(registry, depth, stop).boxed()),
        ("tokens", |registry, depth, stop| tokens::run(registry, depth, stop).boxed()),
    ];
    for (name, run) in with_queues {
        start(name, run(registry.clone(), metrics.queue(name), stop.clone()));
    }
    start("expiry", expiry::run(registry.clone(), settings.event_ttl, stop.clone()).boxed());
    let (issuer, depth) = (issuer.clone(), metrics.queue("certificates"));
    let certificates = certificates::run(registry.clone(), issuer, depth, stop.clone());
    start("certificates", certificates.boxed());
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

/// Offers the core to other threads. A controller that does something for many objects in a row would
/// keep it for milliseconds from whoever was woken since, as the store's writer is for each request.
fn make_way() {
    std::thread::yield_now();
}
