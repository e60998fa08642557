//! Fills Secrets that ask for the token of a ServiceAccount, and deletes them with the account.
//!
//! # Guarantees
//! - A Secret is deleted only when its namespace is there and stays, and the cache, which is not
//!   behind the store at that time, has no account of the name and UID that the Secret gives.
//! - What is deleted or changed is the Secret that was judged.
//! - A token that a Secret holds is never replaced.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use machinery::{ClusterName, GroupResource, ObjectKey};
use prometheus::IntGauge;
use store::cache::{Audience, Event, Filter, Object, Scope, Slot};
use store::{Key, KeyPrefix};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::fair::{Fair, InCluster, Limits};
use crate::auth::{MASTERS, UserInfo};
use crate::clusters::record;
use crate::registry::{Context, DeleteOptions, Error, Reason, Registry, TokenSecret};

/// Objects that are read at a time.
const PAGE: usize = 1_000;

/// Signing takes a while, so no more at a time than cores have use for.
const LIMITS: Limits = Limits { most: 16, share: 4, longest: Duration::from_secs(60) };

/// After the Secrets of a namespace were looked through, it rests so many times as long.
const REST: u32 = 20;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Work {
    /// A Secret has come or changed, or its account has gone.
    Secret(Key),
    /// An account of a namespace has gone.
    Namespace(ClusterName, Arc<str>),
    /// A Secret has gone that an account may list.
    Reference { account: Key, secret: Box<str> },
}

impl InCluster for Work {
    fn cluster(&self) -> &str {
        match self {
            Self::Secret(key) | Self::Reference { account: key, .. } => key.parts().0,
            Self::Namespace(cluster, _) => cluster.as_str(),
        }
    }
}

/// How it went.
#[derive(Debug, Default)]
struct Outcome {
    retry: bool,
    next: Vec<Work>,
}

/// Follows Secrets and ServiceAccounts until `stop`.
pub(super) async fn run(registry: Arc<Registry>, depth: IntGauge, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = follow(&registry, &depth) => {}
    }
}

/// Who writes, as webhooks and the fields' managers see it.
fn context() -> Context {
    let user = UserInfo {
        name: "system:serviceaccount:kube-system:tokens-controller".into(),
        groups: vec![MASTERS.into()],
        ..UserInfo::default()
    };
    Context::new(Arc::new(user), Timestamp::now(), "kube-controller-manager".into())
}

async fn follow(registry: &Arc<Registry>, depth: &IntGauge) {
    let filter: Filter = Arc::new(|event: &Event| news(event).is_some());
    let mut queue = Fair::new(LIMITS, depth.clone());
    let mut running = FuturesUnordered::new();
    loop {
        let since = registry.cache().revision();
        let scopes = [Scope::Everything];
        let Ok(mut events) =
            registry.cache().watch(&scopes, Some(&filter), Audience::Server, since).await
        else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        for key in present(registry).await {
            queue.add(Work::Secret(key));
        }
        loop {
            while let Some(work) = queue.take(Instant::now()) {
                running.push(async {
                    let outcome = attempt(registry, &work).await;
                    (work, outcome)
                });
            }
            let step = async {
                tokio::select! {
                    event = events.next() => Step::Event(event),
                    Some((work, outcome)) = running.next(), if !running.is_empty() => {
                        Step::Done(work, outcome)
                    }
                }
            };
            match queue.or_due(step).await {
                Some(Step::Event(Some(event))) => {
                    news(&event).into_iter().for_each(|work| queue.add(work));
                }
                Some(Step::Event(None)) => break,
                Some(Step::Done(work, outcome)) => {
                    let outcome = outcome.unwrap_or_else(|error| {
                        warn!(?work, %error, "cannot see to a token");
                        Outcome { retry: true, ..Outcome::default() }
                    });
                    outcome.next.into_iter().for_each(|work| queue.add(work));
                    queue.done(work, outcome.retry, Instant::now());
                }
                None => {}
            }
        }
    }
}

enum Step {
    Event(Option<Arc<Event>>),
    Done(Work, Result<Outcome, Error>),
}

/// The Secrets of tokens that are there.
async fn present(registry: &Registry) -> Vec<Key> {
    let prefix = KeyPrefix::resource(&core("secrets"));
    let mut found = Vec::new();
    let mut after: Option<Key> = None;
    loop {
        let page = registry.cache().scan(&prefix, after.as_ref(), PAGE);
        let Some(last) = page.last() else { return found };
        after = Some(last.key.clone());
        let tokens = page.iter().filter(|secret| TokenSecret::of(secret).is_some());
        found.extend(tokens.map(|secret| secret.key.clone()));
        tokio::task::yield_now().await;
    }
}

/// What a change asks for.
fn news(event: &Event) -> Option<Work> {
    let (previous, current) = (event.previous.as_deref(), event.current.as_deref());
    match event.key.resource_part() {
        "core/secrets" => match current {
            Some(secret) => TokenSecret::of(secret).map(|_| Work::Secret(event.key.clone())),
            None => {
                let token = TokenSecret::of(previous?)?;
                let account = account_of(&event.key, &token.account);
                Some(Work::Reference { account, secret: event.key.parts().2.into() })
            }
        },
        "core/serviceaccounts" => {
            let old = previous?;
            let gone = current.is_none_or(|new| new.header.uid() != old.header.uid());
            let place = event.key.object();
            gone.then_some(Work::Namespace(place.cluster, place.namespace))
        }
        _ => None,
    }
}

async fn attempt(registry: &Registry, work: &Work) -> Result<Outcome, Error> {
    match work {
        Work::Secret(key) => see_to(registry, key).await,
        Work::Namespace(cluster, namespace) => {
            let begin = Instant::now();
            let next = bereft(registry, cluster, namespace).await;
            tokio::time::sleep(begin.elapsed() * REST).await;
            Ok(Outcome { next, ..Outcome::default() })
        }
        Work::Reference { account, secret } => {
            let found = registry.cache().get(account);
            let target = registry.target_of(account);
            if let (Some(found), Some(target)) = (found, target)
                && is_absent(registry, account, secret)
            {
                let context = context();
                let done = registry.forget_token(&context, &target, &found, secret).await;
                return settled(done);
            }
            Ok(Outcome::default())
        }
    }
}

/// Whether a Secret in the namespace of an account is not there, or has not come again.
fn is_absent(registry: &Registry, account: &Key, secret: &str) -> bool {
    let place = account.object();
    let key = ObjectKey::new(place.cluster, &place.namespace, secret);
    registry.cache().get(&Key::new(&core("secrets"), &key)).is_none()
}

/// The Secrets of a namespace whose accounts the cache doesn't have.
async fn bereft(registry: &Registry, cluster: &ClusterName, namespace: &str) -> Vec<Work> {
    let prefix = KeyPrefix::namespace(&core("secrets"), cluster, namespace);
    let mut found = Vec::new();
    let mut after: Option<Key> = None;
    loop {
        let page = registry.cache().scan(&prefix, after.as_ref(), PAGE);
        let Some(last) = page.last() else { return found };
        after = Some(last.key.clone());
        for secret in &page {
            if let Some(token) = TokenSecret::of(secret) {
                let account = registry.cache().get(&account_of(&secret.key, &token.account));
                if account.is_none_or(|account| !token.is_of(account.header.uid())) {
                    found.push(Work::Secret(secret.key.clone()));
                }
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Fills a Secret, or deletes it if its account isn't there.
async fn see_to(registry: &Registry, key: &Key) -> Result<Outcome, Error> {
    // Not only the Secret: an account that was made a moment before is not absent.
    registry.consistent().await?;
    let cache = registry.cache();
    let Some(secret) = cache.get(key).filter(|secret| !secret.header.is_deleting()) else {
        return Ok(Outcome::default());
    };
    let Some(token) = TokenSecret::of(&secret) else { return Ok(Outcome::default()) };
    let Some(target) = registry.target_of(key) else { return Ok(Outcome::default()) };
    let account_key = account_of(key, &token.account);
    let account = match cache.slot(&account_key) {
        // Nobody knows what it is.
        Slot::Unreadable => return Ok(Outcome::default()),
        // The default account comes again, with another UID.
        Slot::Tombstone(_)
            if token.uid.is_empty() && cache.virtual_object(&account_key).is_some() =>
        {
            return Ok(Outcome { retry: true, ..Outcome::default() });
        }
        Slot::Object(account) => Some(account).filter(|account| token.is_of(account.header.uid())),
        Slot::Absent | Slot::Tombstone(_) => None,
    };
    let Some(account) = account else {
        if !lives_on(registry, key) {
            // What is in a namespace that goes is the namespace's business.
            return Ok(Outcome::default());
        }
        let options = DeleteOptions {
            uid: Some(secret.header.uid().to_string()),
            resource_version: Some(registry.version_of(&secret)),
            ..DeleteOptions::default()
        };
        let deleted = registry.delete(&context(), &target, options).await;
        if deleted.is_ok() {
            debug!(%key, "a token has gone with its account");
        }
        return settled(deleted.map(|_| ()));
    };
    if account.header.is_deleting() {
        // The end of it is news.
        return Ok(Outcome::default());
    }
    settled(registry.fill_token(&context(), &target, &secret, &account).await)
}

/// Whether the namespace of an object and its logical cluster are there, and stay.
fn lives_on(registry: &Registry, key: &Key) -> bool {
    let place = key.object();
    let namespace = ObjectKey::new(place.cluster.clone(), "", &place.namespace);
    let holders = [record::key(&place.cluster), Key::new(&core("namespaces"), &namespace)];
    holders.iter().all(|holder| {
        let found: Option<Arc<Object>> = registry.cache().get(holder);
        found.is_some_and(|holder| !holder.header.is_deleting())
    })
}

/// What a write came to. What has changed meanwhile is news, and what the Secret's own rules forbid
/// stays forbidden until it changes.
fn settled(written: Result<(), Error>) -> Result<Outcome, Error> {
    match written {
        Err(error) => match error.reason() {
            Reason::NotFound | Reason::Conflict | Reason::Invalid => Ok(Outcome::default()),
            _ => Err(error),
        },
        Ok(()) => Ok(Outcome::default()),
    }
}

/// Where the account of a Secret is.
fn account_of(secret: &Key, account: &str) -> Key {
    let place = secret.object();
    Key::new(&core("serviceaccounts"), &ObjectKey::new(place.cluster, &place.namespace, account))
}

fn core(plural: &str) -> GroupResource {
    GroupResource::new("", plural)
}
