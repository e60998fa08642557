//! One server, and all connections to it.

mod body;
mod connection;
mod dial;
mod pool;
mod raw;
mod service;
mod token;
mod trust;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use runtime::Tasks;
use tokio::sync::watch;

use crate::settings::{Authorities, Credentials, Settings, SettingsError};
use dial::Dialer;
use pool::Pool;
use service::{Class, Service};
use token::Token;
use trust::Trust;

pub use raw::{Ask, JSON, Lines, Told};

/// The most streams of one connection. API servers allow 100 to 250; with some room below that, a
/// stream never waits for another one's end.
pub const MOST_STREAMS: usize = 80;

/// One server, and all connections to it. Clones are the same link.
///
/// # Flow
/// A request is of a class (watch, Lease, other), takes a stream of a connection of its class, and
/// gives it back when the body of the answer has ended or is dropped. Where no connection has room,
/// one is opened; all who wait meanwhile share what comes of it, an error too.
///
/// # Assumptions
/// It is used within a tokio runtime. Connections end when the last clone, and the last client, is
/// dropped.
#[derive(Clone)]
pub struct Link {
    inner: Arc<Inner>,
}

/// What is shared by all clients of a link.
pub(crate) struct Inner {
    settings: Settings,
    dialer: Dialer,
    token: Mutex<Option<Arc<Token>>>,
    /// Raised when connections are to be made anew.
    generation: AtomicU64,
    watches: Pool,
    calls: Pool,
    leases: Pool,
    /// How many answers were 401.
    unauthorized: watch::Sender<u64>,
    /// How many connections were opened.
    opened: watch::Sender<u64>,
    tasks: Tasks,
}

// === impl Link ===

impl Link {
    /// A link; it connects when it is first used.
    ///
    /// # Errors
    /// When the host's name, a certificate or a key is none. Files are read later.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        let name = settings.tls_name()?;
        let trust = Trust::new(settings.authorities.clone(), &settings.credentials)?;
        let tasks = Tasks::new();
        let dialer = Dialer {
            server: settings.server.clone(),
            name,
            reachable: settings.reachable.clone(),
            trust,
            tasks: tasks.clone(),
        };
        let token = Token::of(&settings.credentials)?.map(Arc::new);
        let inner = Inner {
            dialer,
            token: Mutex::new(token),
            generation: AtomicU64::new(0),
            watches: Pool::default(),
            calls: Pool::default(),
            leases: Pool::default(),
            unauthorized: watch::Sender::new(0),
            opened: watch::Sender::new(0),
            tasks,
            settings,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// A client of the server's own path.
    pub fn client(&self) -> kube::Client {
        self.client_at(self.inner.settings.server.path())
    }

    /// A client of another path of the server, from its root: `/clusters/*`, or nothing.
    ///
    /// Each client has a task of its own, so it is made once and cloned.
    pub fn client_at(&self, path: &str) -> kube::Client {
        let path = path.trim_end_matches('/').into();
        kube::Client::new(Service { inner: self.inner.clone(), path }, "default")
    }

    /// Where it leads.
    pub fn server(&self) -> &crate::Server {
        &self.inner.settings.server
    }

    /// From now on, asks as somebody else.
    ///
    /// # Errors
    /// When the certificate, the key or the token is none; then nothing changes.
    pub fn replace_credentials(&self, credentials: &Credentials) -> Result<(), SettingsError> {
        let token = Token::of(credentials)?.map(Arc::new);
        self.inner.dialer.trust.replace_credentials(credentials)?;
        *self.inner.token.lock() = token;
        self.renew_connections();
        Ok(())
    }

    /// From now on, believes other authorities.
    ///
    /// # Errors
    /// When there is no certificate among them; then nothing changes.
    pub fn replace_authorities(&self, authorities: Authorities) -> Result<(), SettingsError> {
        self.inner.dialer.trust.replace_authorities(authorities)?;
        self.renew_connections();
        Ok(())
    }

    /// From now on, requests go over new connections. The old ones end with their last stream.
    pub fn renew_connections(&self) {
        self.inner.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// How many answers were 401 so far; it changes with each.
    pub fn unauthorized(&self) -> watch::Receiver<u64> {
        self.inner.unauthorized.subscribe()
    }

    /// How many connections were opened so far that carry many requests at a time; it changes before a
    /// new one is first used. Who answers over a new one may be another server than before. Those of
    /// HTTP/1.1 are not counted: some servers want a new one for each request.
    pub fn opened(&self) -> watch::Receiver<u64> {
        self.inner.opened.subscribe()
    }

    /// How many connections are open: for watches, calls, Leases. Those that only finish what they
    /// have begun are not counted.
    pub fn connections(&self) -> [usize; 3] {
        let generation = self.inner.generation.load(Ordering::Acquire);
        let Inner { watches, calls, leases, .. } = &*self.inner;
        [watches, calls, leases].map(|pool| pool.open(generation))
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("settings", &self.inner.settings).finish_non_exhaustive()
    }
}

// === impl Inner ===

impl Inner {
    fn pool(&self, class: Class) -> &Pool {
        match class {
            Class::Watch => &self.watches,
            Class::Call => &self.calls,
            Class::Lease => &self.leases,
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

#[cfg(test)]
mod tests;
