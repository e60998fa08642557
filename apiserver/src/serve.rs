//! A running server: what it is made of, how it starts, and in which order it ends.
//!
//! The order of the end: readiness fails and watches end; no new connections; open ones answer
//! what they have begun; background work ends; the store closes.

mod callers;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use machinery::ClusterName;
use runtime::Tasks;
use schema::Types;
use store::Store;
use store::cache::Cache;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::{info, info_span, warn};

use crate::audit::{Audit, AuditError, AuditOptions};
use crate::auth::authn::Authorities;
use crate::auth::authz::Authorizer;
use crate::auth::oidc::OidcOptionError;
use crate::auth::{AuthOptions, Guards, TokenFileError};
use crate::catalog::Catalog;
use crate::clusters::virtuals::Virtuals;
use crate::controllers;
use crate::dialer::{Dialer, Network};
use crate::discovery::{self, Discovery};
use crate::http::fairness::{Fairness, InflightLimits};
use crate::http::{self, App, AuditIds, Debugging, Health, IssuerPages};
use crate::metrics::Metrics;
use crate::openapi::OpenApi;
use crate::pki::{self, Pki, PkiError, Shown, Sources, TlsOptions, Trusted};
use crate::profiling::ProfilingOptions;
use crate::registry::Registry;

/// How long open connections have to finish, and then background work.
const DRAIN: Duration = Duration::from_secs(5);

/// The API server, before it runs.
#[derive(Debug)]
pub struct Server;

/// How a server is set up. Start from [`Server::builder`].
#[derive(Clone, Debug)]
pub struct Builder {
    store: Arc<dyn Store>,
    address: IpAddr,
    port: u16,
    root: Option<PathBuf>,
    external_hostnames: Vec<String>,
    tls: TlsOptions,
    auth: AuthOptions,
    allowed_networks: Vec<Network>,
    housekeeping: controllers::Settings,
    max_objects: usize,
    inflight: InflightLimits,
    audit: Option<AuditOptions>,
    profiling: Option<ProfilingOptions>,
}

/// A server that runs. Dropping it ends it without waiting; [`Running::shutdown`] waits.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    kubeconfig: String,
    operator_kubeconfig: String,
    kubeconfig_path: Option<PathBuf>,
    registry: Arc<Registry>,
    store: Arc<dyn Store>,
    ending: CancellationToken,
    stop: CancellationToken,
    cut: CancellationToken,
    connections: Tasks,
    background: Tasks,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Certificates.
    #[error("prepare certificates")]
    Pki(#[from] PkiError),
    /// The audit log.
    #[error("set up the audit log")]
    Audit(#[from] AuditError),
    /// Static tokens.
    #[error("read static tokens")]
    Tokens(#[from] TokenFileError),
    /// The issuer of ID tokens.
    #[error("set up OpenID Connect")]
    Oidc(#[from] OidcOptionError),
    /// The address.
    #[error("listen on {address}")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The store.
    #[error("read the store")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
}

// === impl Server ===

impl Server {
    /// A server over `store`: on a free loopback port, with certificates in memory.
    pub fn builder(store: Arc<dyn Store>) -> Builder {
        Builder {
            store,
            address: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            root: None,
            external_hostnames: Vec::new(),
            tls: TlsOptions::default(),
            audit: None,
            profiling: None,
            auth: AuthOptions::default(),
            allowed_networks: Vec::new(),
            housekeeping: controllers::Settings::default(),
            max_objects: 0,
            inflight: InflightLimits::default(),
        }
    }
}

// === impl Builder ===

impl Builder {
    /// The address to listen on.
    #[must_use]
    pub fn bind_address(mut self, address: IpAddr) -> Self {
        self.address = address;
        self
    }

    /// The port to listen on; 0 takes a free one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// How long events are kept after their last change; an hour unless it is set.
    #[must_use]
    pub fn event_ttl(mut self, time_to_live: Duration) -> Self {
        self.housekeeping.event_ttl = time_to_live;
        self
    }

    /// The most objects that a logical cluster may hold, unless it has a bound of its own; 0, which
    /// is the default, is no bound.
    #[must_use]
    pub fn max_objects_per_cluster(mut self, most: usize) -> Self {
        self.max_objects = most;
        self
    }

    /// Where certificates and the administrator's kubeconfig are kept.
    #[must_use]
    pub fn root_directory(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// Names under which clients reach the server; the first is the kubeconfig's.
    #[must_use]
    pub fn external_hostnames(mut self, names: Vec<String>) -> Self {
        self.external_hostnames = names;
        self
    }

    /// A serving certificate and key from files, instead of our own.
    #[must_use]
    pub fn tls_files(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.tls.certificate = Some((certificate.into(), key.into()));
        self
    }

    /// How TLS is spoken, instead of what was said before.
    #[must_use]
    pub fn tls(mut self, options: TlsOptions) -> Self {
        self.tls = options;
        self
    }

    /// What is told to the audit log; without it, nothing is.
    #[must_use]
    pub fn audit(mut self, options: AuditOptions) -> Self {
        self.audit = Some(options);
        self
    }

    /// Serves what is for those who debug the server, to administrators of `root`; without it,
    /// nothing of that is there.
    #[must_use]
    pub fn profiling(mut self, options: ProfilingOptions) -> Self {
        self.profiling = Some(options);
        self
    }

    /// How callers are known, instead of what was said before.
    #[must_use]
    pub fn auth(mut self, options: AuthOptions) -> Self {
        self.auth = options;
        self
    }

    /// A bearer token of the administrator.
    #[must_use]
    pub fn admin_token(mut self, token: impl Into<String>) -> Self {
        self.auth.admin_token = Some(token.into());
        self
    }

    /// Ranges of loopback, link-local and other special addresses that tenants' webhooks may be
    /// at. Usual addresses need not be allowed.
    #[must_use]
    pub fn allow_outbound(mut self, networks: impl IntoIterator<Item = Network>) -> Self {
        self.allowed_networks.extend(networks);
        self
    }

    /// How much is worked on at a time.
    #[must_use]
    pub fn inflight(mut self, limits: InflightLimits) -> Self {
        self.inflight = limits;
        self
    }

    /// Starts the server; it accepts connections when this returns.
    ///
    /// # Errors
    /// When certificates, the address or the store cannot be had.
    pub async fn start(self) -> Result<Running, StartError> {
        let mut pki = Pki::open(self.root.as_deref(), &self.names(), Timestamp::now())?;
        if let Some(authorities) = &self.auth.client_authorities {
            pki.trust_clients(authorities)?;
        }
        let trusted = Trusted::open(&pki)?;
        let shown = Shown::open(&pki, &self.tls)?;
        let config = pki::server_config(&self.tls, shown.clone())?;
        let tls = TlsAcceptor::from(Arc::new(config));
        let address = SocketAddr::new(self.address, self.port);
        let listen_error = |source| StartError::Listen { address, source };
        let listener = http::bind(address).await.map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;

        let background = Tasks::new();
        let metrics = Arc::new(Metrics::new());
        let registry = self.registry(&pki, address.port(), &metrics, &background).await?;
        let ending = CancellationToken::new();
        let own = pki.own_verifier()?;
        let authorities =
            Authorities { all: trusted.clone(), own, objects: registry.cache().clone() };
        let audit = match &self.audit {
            Some(options) => {
                let audit = Audit::open(options, metrics.audit.clone(), &background)?;
                Some(Arc::new(audit))
            }
            None => None,
        };
        let debug = self
            .profiling
            .as_ref()
            .map(|options| Debugging::new(options, self.root.clone(), ending.clone()));
        let app = Arc::new(App {
            audit,
            debug,
            fairness: Fairness::new(self.inflight, &metrics.flow),
            catalog: registry.catalog().clone(),
            openapi: Arc::new(OpenApi::new(registry.types().clone())),
            registry: registry.clone(),
            authenticator: self.authenticator(authorities, registry.bearers().clone())?,
            issuer: self.issuer_pages(address.port()),
            metrics,
            discovery: Discovery::default(),
            health: Health::new(self.store.clone(), ending.clone()),
            ending: ending.clone(),
            ids: AuditIds::default(),
        });
        let kubeconfig = self.kubeconfig(&pki, address.port());
        let operator_kubeconfig = self.operator_kubeconfig(&pki, address.port());
        let kubeconfig_path = match &self.root {
            Some(root) => Some(pki::write_kubeconfigs(root, &kubeconfig, &operator_kubeconfig)?),
            None => None,
        };
        let connections = Tasks::new();
        let (stop, cut) = (CancellationToken::new(), CancellationToken::new());
        let ends = http::Ends { stop: stop.clone(), cut: cut.clone() };
        let listening = http::listen(listener, tls, app, connections.clone(), ends);
        drop(connections.spawn(info_span!("listener"), listening));
        self.follow_certificates(pki, address.port(), (shown, trusted), &background);
        info!(%address, "listening");
        Ok(Running {
            address,
            kubeconfig,
            operator_kubeconfig,
            kubeconfig_path,
            registry,
            store: self.store,
            ending,
            stop,
            cut,
            connections,
            background,
        })
    }

    async fn registry(
        &self,
        pki: &Pki,
        port: u16,
        metrics: &Metrics,
        background: &Tasks,
    ) -> Result<Arc<Registry>, StartError> {
        let types = Types::builtin();
        let store = self.store.clone();
        let failed = |error: store::ReadError| StartError::Store(Box::new(error));
        let overlay = Arc::new(Virtuals {
            ca: pki.ca.as_str().into(),
            port,
            rv_base: store.identity().rv_base,
            api_services: discovery::api_services(types.resources()),
        });
        let cache =
            Cache::start(store.clone(), overlay.clone(), background).await.map_err(failed)?;
        let authorizer = Arc::new(Authorizer::new(cache.clone()));
        let catalog = Arc::new(Catalog::new(&types, cache.clone(), authorizer.clone()));
        let dialer = Arc::new(Dialer::new(self.allowed_networks.clone()));
        let bearers = Arc::new(self.bearers(pki, cache.clone())?);
        let guards = Guards { authorizer, bearers };
        let registry = Registry::new(store, cache, types, catalog, guards, overlay, dialer);
        let registry = Arc::new(registry.with_max_objects(self.max_objects));
        for own in [ClusterName::root(), ClusterName::system_crds()] {
            let made = registry.create_own(&own, Timestamp::now()).await;
            made.map_err(|error| StartError::Store(Box::new(error)))?;
        }
        controllers::spawn(&registry, &pki.issuer, &self.housekeeping, metrics, background);
        Ok(registry)
    }

    /// Reads certificates again when they change, and makes our own anew in time.
    fn follow_certificates(
        &self,
        pki: Pki,
        port: u16,
        (shown, trusted): (Arc<Shown>, Arc<Trusted>),
        background: &Tasks,
    ) {
        let sources = Sources {
            root: self.root.clone(),
            names: self.names(),
            tls: self.tls.clone(),
            client_authorities: self.auth.client_authorities.clone(),
        };
        let (builder, ended) = (self.clone(), background.cancellation().clone());
        let renewed = move |pki: &Pki| {
            let Some(root) = &builder.root else { return };
            let kubeconfig = builder.kubeconfig(pki, port);
            let operator = builder.operator_kubeconfig(pki, port);
            if let Err(error) = pki::write_kubeconfigs(root, &kubeconfig, &operator) {
                let error = &error as &dyn std::error::Error;
                warn!(error, "the kubeconfigs could not be written");
            }
        };
        let follow = sources.follow(pki, shown, trusted, renewed);
        drop(background.spawn(info_span!("certificates"), async move {
            ended.run_until_cancelled(follow).await;
        }));
    }

    /// Where the keys of tokens are, for those who trust the issuer.
    fn issuer_pages(&self, port: u16) -> IssuerPages {
        let jwks = self.auth.service_accounts.jwks_uri.clone();
        IssuerPages { server: self.url(port), jwks }
    }

    /// The names and addresses of the serving certificate.
    fn names(&self) -> Vec<String> {
        let mut names = vec!["localhost".to_owned(), "127.0.0.1".into(), "::1".into()];
        if !self.address.is_unspecified() {
            names.push(self.address.to_string());
        }
        names.extend(self.external_hostnames.iter().cloned());
        let mut known = std::collections::HashSet::new();
        names.retain(|name| known.insert(name.clone()));
        names
    }

    /// `https://HOST:PORT` under which clients reach the server.
    fn url(&self, port: u16) -> String {
        let host = self.external_hostnames.first().map_or("localhost", String::as_str);
        let host = match host.parse::<std::net::Ipv6Addr>() {
            Ok(address) => format!("[{address}]"),
            Err(_) => host.to_owned(),
        };
        format!("https://{host}:{port}")
    }

    fn kubeconfig(&self, pki: &Pki, port: u16) -> String {
        pki::admin_kubeconfig(pki, &self.url(port), self.tls.certificate.is_none())
    }

    fn operator_kubeconfig(&self, pki: &Pki, port: u16) -> String {
        pki::operator_kubeconfig(pki, &self.url(port), self.tls.certificate.is_none())
    }
}

// === impl Running ===

impl Running {
    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The administrator's kubeconfig, as text.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// The operator's kubeconfig, as text.
    pub fn operator_kubeconfig(&self) -> &str {
        &self.operator_kubeconfig
    }

    /// Where that is kept, if anywhere.
    pub fn kubeconfig_path(&self) -> Option<&Path> {
        self.kubeconfig_path.as_deref()
    }

    /// The registry that answers, for programs that embed the server.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Ends the server in order, within seconds.
    pub async fn shutdown(self) {
        self.ending.cancel();
        self.stop.cancel();
        let open = self.connections.shutdown(DRAIN).await;
        if open > 0 {
            warn!(open, "connections did not finish in time");
            self.cut.cancel();
        }
        let running = self.background.shutdown(DRAIN).await;
        if running > 0 {
            warn!(running, "background work did not finish in time");
        }
        self.store.close().await;
        info!("ended");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ending.cancel();
        self.stop.cancel();
        self.cut.cancel();
        self.connections.cancel();
        self.background.cancel();
    }
}
