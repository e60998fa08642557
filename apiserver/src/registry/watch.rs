//! Watch: the events of a collection as one client sees them.
//!
//! # Guarantees
//! - Every event after the start comes once and in order, or the stream ends and can be resumed.
//! - A bookmark never overtakes an event.
//! - Whatever begins ends by its time-out.

mod clock;
mod standing;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, ready};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt, stream};
use store::cache::{Audience, Event, Object, Origin, Scope, Subscription};
use store::{KeyPrefix, Revision};
use tokio::time::Instant;

use super::guard;
use super::lifetime::Lifetime;
use super::list_rules::check_watch;
use super::select::Selection;
use super::view::Lens;
use crate::clusters::record;
use crate::registry::{
    ClusterScope, Context, Error, EventKind, ListOptions, Reason, Registry, Target, View, Watch,
    WatchItem,
};
use clock::{Clock, Tick};
use standing::Standing;

/// Shortest default time-out in seconds; a random part of as much again is added (upstream's
/// `--min-request-timeout`).
const MIN_TIMEOUT: u64 = 1800;

/// Events that a watch passes over before it lets others run.
const TURN: usize = 256;

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    /// With the objects as they are, and a bookmark after them if asked for.
    State { at_least: Option<Revision>, marked: bool, fresh: bool },
    /// With the events after a revision.
    After(Revision),
    /// With the events from now on.
    Now,
}

/// A running watch.
struct Run {
    registry: Arc<Registry>,
    subscription: Subscription,
    prefix: KeyPrefix,
    /// Objects to show as added before anything else: those of the beginning, and the first
    /// namespaces of a new logical cluster.
    initial: VecDeque<Arc<Object>>,
    mark: Option<Revision>,
    selection: Selection,
    lens: Lens,
    /// A wildcard watch sees stored objects, and of virtual ones namespaces only.
    stored_only: bool,
    /// The logical cluster, with which the watch ends; none that never goes.
    lifetime: Option<Lifetime>,
    /// A change that waits for a webhook to convert its object.
    pending: Option<Pending>,
    clock: Clock,
    /// Set when nothing more comes.
    over: bool,
    /// What the watch rests on beside what it shows.
    standing: Option<Standing>,
}

/// A change whose object is being converted. What comes after it waits.
struct Pending {
    kind: EventKind,
    event: Option<Arc<Event>>,
    view: BoxFuture<'static, Result<View, Error>>,
}

impl Registry {
    /// Watches a collection, or one object of it.
    ///
    /// # Errors
    /// 422 for options that contradict each other, 504 for a revision that has not happened. One
    /// that history has lost is an `ERROR` event in the stream.
    pub async fn watch(
        self: &Arc<Self>,
        ctx: &Context,
        target: &Target,
        options: ListOptions,
    ) -> Result<Watch, Error> {
        let begin = self.begin(&options)?;
        let resource = target.resource.clone();
        let selection = Selection::new(options.labels.clone(), options.fields.clone(), resource)?;
        let pinned = selection.name();
        let reach = self.check_agent_list(ctx, target, &options.labels, "watch", pinned)?;
        let selection = selection.within(reach);
        let lifetime = match self.lifetime(&target.cluster) {
            Ok(lifetime) => lifetime,
            Err(_) => {
                self.consistent().await?;
                self.lifetime(&target.cluster)?
            }
        };
        let prefix = Self::prefix(target);
        let mut scopes = vec![Self::scope(target, &selection)];
        let mut filter = selection.filter();
        let wildcard = target.cluster == ClusterScope::All;
        let of_namespaces = Self::storage(&target.resource) == guard::namespaces();
        if wildcard && of_namespaces {
            // A logical cluster begins with namespaces, of which its own object tells.
            scopes.push(Scope::Prefix(record::prefix()));
            filter = None;
        }
        if let Some(lifetime) = &lifetime {
            scopes.push(lifetime.scope());
            filter = Some(lifetime.filter(filter));
        }
        let standing = Standing::of(ctx, target);
        if let Some(standing) = &standing {
            scopes.push(Scope::Key(standing.key.clone()));
            filter = filter.map(|filter| standing.beside(filter));
        }
        let mut initial = VecDeque::new();
        let mut mark = None;
        let subscription = match begin {
            Begin::State { at_least, marked, fresh } => {
                match at_least {
                    Some(revision) => self.reach(revision).await?,
                    None if fresh => self.consistent().await?,
                    None => {}
                }
                let (listed, subscription) =
                    self.cache.list_and_watch(&prefix, &scopes, filter.as_ref(), Audience::Client);
                let objects = listed.objects.into_iter();
                let lens = self.lens(target);
                let seen = |object: &Arc<Object>| {
                    selection.matches(object) && self.is_shown(&lens, object)
                };
                initial.extend(objects.filter(seen));
                mark = marked.then_some(listed.revision);
                subscription
            }
            Begin::Now => {
                self.consistent().await?;
                let revision = self.cache.revision();
                self.subscribe(&scopes, filter.as_ref(), revision).await?
            }
            Begin::After(revision) => {
                self.reach(revision).await?;
                let subscribed = match self.check_lifetime(&target.cluster, revision) {
                    Ok(()) => self.subscribe(&scopes, filter.as_ref(), revision).await,
                    Err(error) => Err(error),
                };
                match subscribed {
                    Ok(subscription) => subscription,
                    Err(error) if error.reason() == Reason::Expired => {
                        return Ok(stream::iter([WatchItem::Failed(error)]).boxed());
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        self.check_alive(lifetime.as_ref())?;
        // What came between the request's authentication and the subscription counts, too.
        let length = match &standing {
            Some(standing) => timeout(options.timeout_seconds).min(standing.left(self, ctx)?),
            None => timeout(options.timeout_seconds),
        };
        let stored_only = wildcard && !of_namespaces;
        let lens = self.lens(target);
        if lens.kind().is_some() {
            // Those of the beginning are converted together; one that fails is told of in its turn.
            drop(self.views(&lens, initial.iter().cloned().collect()).await);
        }
        let run = Run {
            registry: self.clone(),
            subscription,
            prefix,
            initial,
            mark,
            selection,
            lens,
            stored_only,
            lifetime,
            pending: None,
            clock: Clock::new(Instant::now(), length, options.bookmarks),
            standing,
            over: false,
        };
        Ok(run.boxed())
    }

    /// What is watched: a collection, or the one object that is selected by its name.
    fn scope(target: &Target, selection: &Selection) -> Scope {
        match (&target.cluster, selection.name()) {
            (ClusterScope::One(cluster), Some(name))
                if !target.resource.namespaced || !target.namespace.is_empty() =>
            {
                Scope::Key(Self::object_key(target, cluster, name))
            }
            _ => Scope::Prefix(Self::prefix(target)),
        }
    }

    async fn subscribe(
        &self,
        scopes: &[Scope],
        filter: Option<&store::cache::Filter>,
        after: Revision,
    ) -> Result<Subscription, Error> {
        let subscription = self.cache.watch(scopes, filter, Audience::Client, after).await;
        subscription.map_err(|error| self.history_error(error, after))
    }

    fn begin(&self, options: &ListOptions) -> Result<Begin, Error> {
        check_watch(options)?;
        let version = options.resource_version.as_str();
        match options.send_initial_events {
            Some(true) => Ok(Begin::State {
                at_least: match version {
                    "" | "0" => None,
                    version => Some(self.versions.parse(version)?),
                },
                marked: options.bookmarks,
                fresh: version.is_empty(),
            }),
            Some(false) if matches!(version, "" | "0") => Ok(Begin::Now),
            None if matches!(version, "" | "0") => {
                Ok(Begin::State { at_least: None, marked: false, fresh: version.is_empty() })
            }
            Some(false) | None => Ok(Begin::After(self.versions.parse(version)?)),
        }
    }
}

impl Stream for Run {
    type Item = WatchItem;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Option<WatchItem>> {
        let run = &mut *self;
        if run.over {
            return Poll::Ready(None);
        }
        if run.pending.is_some() {
            return run.poll_pending(cx);
        }
        if let Some(object) = run.initial.pop_front() {
            return match run.shown(EventKind::Added, object, None) {
                Some(item) => Poll::Ready(Some(item)),
                None => run.poll_pending(cx),
            };
        }
        if let Some(revision) = run.mark.take() {
            let resource_version = run.registry.versions.format(revision);
            return Poll::Ready(Some(WatchItem::Bookmark { resource_version, initial: true }));
        }
        for _ in 0..TURN {
            match run.subscription.poll_next(cx) {
                Poll::Ready(Some(event)) => match run.change(&event) {
                    Some(item) => return Poll::Ready(Some(item)),
                    None if run.over => return Poll::Ready(None),
                    None if run.pending.is_some() => return run.poll_pending(cx),
                    None => continue,
                },
                Poll::Ready(None) => {
                    run.over = true;
                    return Poll::Ready(None);
                }
                Poll::Pending => {}
            }
            match ready!(run.clock.poll(cx)) {
                Tick::Bookmark => {
                    if let Some(item) = run.bookmark() {
                        return Poll::Ready(Some(item));
                    }
                }
                Tick::End => {
                    run.over = true;
                    return Poll::Ready(None);
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

// === impl Run ===

impl Run {
    /// The item of a change, unless its object has to be converted first: then it is pending.
    fn shown(
        &mut self,
        kind: EventKind,
        object: Arc<Object>,
        event: Option<Arc<Event>>,
    ) -> Option<WatchItem> {
        match self.registry.ready(&self.lens, &object) {
            Ok(Some(view)) => Some(WatchItem::Change { kind, view, event }),
            Ok(None) => {
                let (registry, lens) = (self.registry.clone(), self.lens.clone());
                let view = async move { registry.view(&lens, object).await }.boxed();
                self.pending = Some(Pending { kind, event, view });
                None
            }
            Err(error) => Some(self.failed(error)),
        }
    }

    fn poll_pending(&mut self, cx: &mut task::Context<'_>) -> Poll<Option<WatchItem>> {
        let Some(pending) = &mut self.pending else { return Poll::Pending };
        let view = ready!(pending.view.poll_unpin(cx));
        let Some(Pending { kind, event, .. }) = self.pending.take() else { return Poll::Pending };
        Poll::Ready(Some(match view {
            Ok(view) => WatchItem::Change { kind, view, event },
            Err(error) => self.failed(error),
        }))
    }

    fn failed(&mut self, error: Error) -> WatchItem {
        self.over = true;
        WatchItem::Failed(error)
    }

    /// The event as this watcher sees it, if it does and nothing is pending.
    fn change(&mut self, event: &Arc<Event>) -> Option<WatchItem> {
        if let Some(standing) = &self.standing
            && standing.key == event.key
        {
            return match standing.check(&self.registry) {
                Ok(()) => None,
                Err(error) => Some(self.failed(error)),
            };
        }
        if !self.prefix.contains(&event.key) {
            if let Some(lifetime) = &self.lifetime {
                self.over = lifetime.ends_with(event);
                return None;
            }
            self.begin_cluster(event);
            let first = self.initial.pop_front()?;
            return self.shown(EventKind::Added, first, None);
        }
        let seen = |object: &&Arc<Object>| {
            (!self.stored_only || object.origin == Origin::Stored)
                && self.selection.matches(object)
                && self.registry.is_shown(&self.lens, object)
        };
        let previous = event.previous.as_ref().filter(seen);
        let current = event.current.as_ref().filter(seen);
        let (kind, object) = match (previous, current) {
            (None, None) => return None,
            (None, Some(current)) => (EventKind::Added, current.clone()),
            (Some(_), Some(current)) => (EventKind::Modified, current.clone()),
            (Some(previous), None) => {
                let deleted = event.deleted(self.registry.versions.base);
                (EventKind::Deleted, deleted.unwrap_or_else(|| previous.clone()))
            }
        };
        let event = self.lens.is_plain().then(|| event.clone());
        self.shown(kind, object, event)
    }

    /// A logical cluster has begun: its first namespaces come next.
    fn begin_cluster(&mut self, event: &Event) {
        if let (None, Some(cluster)) = (&event.previous, &event.current) {
            let namespaces = self.registry.virtuals.first_namespaces(cluster).into_iter();
            self.initial.extend(namespaces.filter(|object| self.selection.matches(object)));
        }
    }

    fn bookmark(&mut self) -> Option<WatchItem> {
        let revision = self.subscription.progress()?;
        let resource_version = self.registry.versions.format(revision);
        Some(WatchItem::Bookmark { resource_version, initial: false })
    }
}

fn timeout(asked: Option<u64>) -> Duration {
    match asked {
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds.min(u64::from(u32::MAX))),
        _ => {
            let random = uuid::Uuid::new_v4().as_u128() % u128::from(MIN_TIMEOUT);
            Duration::from_secs(MIN_TIMEOUT + u64::try_from(random).unwrap_or_default())
        }
    }
}
