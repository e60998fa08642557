//! Links to real servers over TLS: the hub in this process, and one that speaks HTTP/1.1 only.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use apiserver::{Running, Server};
use bytes::Bytes;
use futures::StreamExt;
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams, WatchParams};
use machinery::kubeconfig::Access;
use machinery::network::{Network, Reachable};
use parking_lot::Mutex;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::{Credentials, Error};

/// The longest that anything here may take.
const PATIENCE: Duration = Duration::from_secs(30);

const TOKEN: &str = "a-token-of-the-administrator";

async fn hub() -> Running {
    let store = store::MemoryStore::new(store::memory::Options::default());
    Server::builder(store).admin_token(TOKEN).start().await.unwrap()
}

/// What the administrator's kubeconfig says.
fn settings(hub: &Running) -> Settings {
    let access = Access::parse(hub.kubeconfig().as_bytes(), None).unwrap();
    Settings::of_access(access, std::path::Path::new(""), "test/0").unwrap()
}

fn config_maps(link: &Link, cluster: &str) -> Api<ConfigMap> {
    Api::namespaced(link.client_at(&format!("/clusters/{cluster}")), "default")
}

fn config_map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

/// Waits for a condition.
async fn until(what: &str, condition: impl Fn() -> bool) {
    let all = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, all).await.unwrap_or_else(|_| panic!("never {what}"));
}

/// What a client's call failed of.
fn cause(error: &kube::Error) -> &Error {
    Error::of(error).unwrap_or_else(|| panic!("it is no failure to reach: {error:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_watches_share_four_connections() {
    let hub = hub().await;
    let link = Link::new(settings(&hub)).unwrap();
    let maps = config_maps(&link, "root");
    maps.create(&PostParams::default(), &config_map("first")).await.unwrap();
    assert_eq!(link.connections(), [0, 1, 0]);

    let opened =
        (0..300).map(|_| async { maps.watch(&WatchParams::default(), "0").await.unwrap().boxed() });
    let mut watches = futures::future::join_all(opened).await;
    assert_eq!(link.connections(), [4, 1, 0], "300 over 80 are 4");

    // All of them see a write, which goes over none of their connections.
    maps.create(&PostParams::default(), &config_map("second")).await.unwrap();
    for watch in &mut watches {
        let seen = async {
            loop {
                let event = watch.next().await.unwrap().unwrap();
                if let kube::api::WatchEvent::Added(map) = event
                    && map.metadata.name.as_deref() == Some("second")
                {
                    break;
                }
            }
        };
        tokio::time::timeout(PATIENCE, seen).await.unwrap();
    }

    // Streams that end make room: no further connection is opened.
    watches.truncate(200);
    let pools = &link.inner.watches;
    until("room", || pools.streams() == 200).await;
    let more =
        (0..100).map(|_| async { maps.watch(&WatchParams::default(), "0").await.unwrap().boxed() });
    watches.extend(futures::future::join_all(more).await);
    assert_eq!(link.connections(), [4, 1, 0]);

    // A heartbeat has a connection of its own.
    let leases: Api<k8s_openapi::api::coordination::v1::Lease> =
        Api::namespaced(link.client_at("/clusters/root"), "kube-node-lease");
    assert_eq!(leases.list(&ListParams::default()).await.unwrap().items.len(), 0);
    assert_eq!(link.connections(), [4, 1, 1]);
    drop(watches);
    hub.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_credentials_take_new_connections_and_old_streams_go_on() {
    let hub = hub().await;
    let settings = settings(&hub);
    let link = Link::new(settings.clone()).unwrap();
    let maps = config_maps(&link, "root");
    let mut watch = maps.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    maps.create(&PostParams::default(), &config_map("one")).await.unwrap();

    // As nobody: refused, over a new connection, and counted.
    let mut refused = link.unauthorized();
    link.replace_credentials(&Credentials::Token("wrong".into())).unwrap();
    let failed = maps.get("one").await.unwrap_err();
    assert!(matches!(&failed, kube::Error::Api(status) if status.code == 401), "{failed:?}");
    tokio::time::timeout(PATIENCE, refused.changed()).await.unwrap().unwrap();
    assert_eq!(*refused.borrow(), 1);

    // By a token.
    link.replace_credentials(&Credentials::Token(TOKEN.into())).unwrap();
    maps.create(&PostParams::default(), &config_map("two")).await.unwrap();
    assert_eq!(link.connections(), [0, 1, 0], "the watch's connection only finishes");
    let mut names = Vec::new();
    while names.last().is_none_or(|name| name != "two") {
        let event = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap();
        if let kube::api::WatchEvent::Added(map) = event.unwrap().unwrap() {
            names.extend(map.metadata.name);
        }
    }

    // What is no certificate changes nothing.
    let nonsense = Credentials::Certificate { chain: b"x".to_vec(), key: b"y".to_vec() };
    assert!(link.replace_credentials(&nonsense).is_err());
    assert!(maps.get("one").await.is_ok());
    hub.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_tokens_and_authorities_are_read_again() {
    let hub = hub().await;
    let directory = tempfile::tempdir().unwrap();
    let (token, bundle) = (directory.path().join("token"), directory.path().join("ca.crt"));
    let mut settings = settings(&hub);
    let Authorities::Pem(authority) = settings.authorities.clone() else { panic!("inline") };
    settings.authorities = Authorities::File(bundle.clone());
    settings.credentials = Credentials::TokenFile(token.clone());
    let link = Link::new(settings).unwrap();
    let maps = config_maps(&link, "root");

    // Nothing is there yet.
    let failed = maps.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(cause(&failed), Error::Material { what: "token's file", .. }), "{failed}");
    std::fs::write(&token, "wrong\n").unwrap();
    let failed = maps.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(cause(&failed), Error::Material { .. }), "{failed}");

    // Another authority is there.
    let other = authority_of("another");
    std::fs::write(&bundle, other.pem()).unwrap();
    let failed = maps.list(&ListParams::default()).await.unwrap_err();
    let Error::Tls { why, .. } = cause(&failed) else { panic!("{failed}") };
    assert_eq!(&**why, "its certificate is by an unknown authority");

    // Both, as while authorities change: the next connection believes the new one.
    let both = [other.pem().into_bytes(), authority].concat();
    std::fs::write(&bundle, both).unwrap();
    let failed = maps.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(&failed, kube::Error::Api(status) if status.code == 401), "{failed:?}");

    // A token that was refused is read again at once, and not only after a while.
    std::fs::write(&token, TOKEN).unwrap();
    assert!(maps.list(&ListParams::default()).await.is_ok());
    hub.shutdown().await;
}

/// A kubeconfig may hold the server's certificate where others hold its authority's.
#[tokio::test]
async fn a_server_is_believed_by_its_own_certificate() {
    let old = Old::start(r#"{"metadata":{},"items":[]}"#).await;
    let with = |authorities: &str| Settings {
        authorities: Authorities::Pem(authorities.as_bytes().to_vec()),
        ..old.settings()
    };
    let link = Link::new(with(&old.certificate)).unwrap();
    assert!(config_maps(&link, "root").list(&ListParams::default()).await.is_ok());
    let link = Link::new(with(&authority_of("old").pem())).unwrap();
    let failed = config_maps(&link, "root").list(&ListParams::default()).await.unwrap_err();
    let Error::Tls { why, .. } = cause(&failed) else { panic!("{failed}") };
    assert_eq!(&**why, "its certificate is by an unknown authority");
}

#[tokio::test]
async fn addresses_that_may_not_be_reached() {
    let hub = hub().await;
    let mut settings = settings(&hub);
    settings.reachable = Some(Reachable::default());
    let link = Link::new(settings.clone()).unwrap();
    let failed = config_maps(&link, "root").list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(cause(&failed), Error::Refused(_)), "{failed}");
    settings.reachable = Some(Reachable::new(Network::loopback().to_vec()));
    let link = Link::new(settings).unwrap();
    assert!(config_maps(&link, "root").list(&ListParams::default()).await.is_ok());
    hub.shutdown().await;
}

#[tokio::test]
async fn nobody_is_there() {
    let hub = hub().await;
    let settings = settings(&hub);
    hub.shutdown().await;
    let link = Link::new(settings).unwrap();
    let maps = config_maps(&link, "root");
    // Many who wait fail together.
    let all = futures::future::join_all(
        (0..50).map(|_| async { maps.list(&ListParams::default()).await.unwrap_err() }),
    )
    .await;
    for failed in all {
        assert!(matches!(cause(&failed), Error::Connect { why: "connection refused", .. }));
    }
    let mut nowhere = link.inner.settings.clone();
    nowhere.server = "https://name.invalid".parse().unwrap();
    let link = Link::new(nowhere).unwrap();
    let failed = config_maps(&link, "root").list(&ListParams::default()).await.unwrap_err();
    assert_eq!(cause(&failed).to_string(), "the host name.invalid has no address");
}

/// The hub goes and comes back at the same address, as when it is restarted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_restarted_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let start = async |port: u16| {
        let store = store::MemoryStore::new(store::memory::Options::default());
        let server = Server::builder(store).root_directory(directory.path()).port(port);
        server.start().await
    };
    let first = start(0).await.unwrap();
    let port = first.address().port();
    let link = Link::new(settings(&first)).unwrap();
    let maps = config_maps(&link, "root");
    let watch = maps.watch(&WatchParams::default(), "0").await.unwrap();
    assert!(maps.list(&ListParams::default()).await.is_ok());
    let opened = link.opened();
    assert_eq!(*opened.borrow(), 2, "one for watches, one for calls");
    first.shutdown().await;
    let ended = tokio::time::timeout(PATIENCE, watch.collect::<Vec<_>>()).await;
    assert!(ended.is_ok(), "the watch has ended");
    let second = start(port).await.unwrap();
    assert!(maps.list(&ListParams::default()).await.is_ok(), "over a new connection");
    assert_eq!(*opened.borrow(), 3);
    second.shutdown().await;
}

fn authority_of(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server that speaks HTTP/1.1 only, and what it was asked: (host, path) of each request.
struct Old {
    address: SocketAddr,
    authority: String,
    certificate: String,
    asked: Arc<Mutex<Vec<(String, String)>>>,
    connections: Arc<AtomicUsize>,
    tasks: Tasks,
}

impl Old {
    /// Answers each request with a body.
    async fn start(body: &'static str) -> Self {
        let authority = authority_of("old");
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let old = Self {
            address: listener.local_addr().unwrap(),
            authority: authority.pem(),
            certificate: certificate.pem(),
            asked: Arc::default(),
            connections: Arc::default(),
            tasks: Tasks::new(),
        };
        let (asked, connections, tasks) =
            (old.asked.clone(), old.connections.clone(), old.tasks.clone());
        old.tasks.spawn(tracing::Span::none(), async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, asked) = (acceptor.clone(), asked.clone());
                connections.fetch_add(1, Ordering::AcqRel);
                tasks.spawn(tracing::Span::none(), async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let answer = service_fn(|request: http::Request<Incoming>| {
                        let host = request.headers()["host"].to_str().unwrap().to_owned();
                        asked.lock().push((host, request.uri().to_string()));
                        async move {
                            let mut response = Response::new(Full::new(Bytes::from(body)));
                            *response.status_mut() = StatusCode::OK;
                            Ok::<_, std::convert::Infallible>(response)
                        }
                    });
                    http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await.ok();
                });
            }
        });
        old
    }

    fn settings(&self) -> Settings {
        Settings {
            server: format!("https://{}/below", self.address).parse().unwrap(),
            server_name: None,
            authorities: Authorities::Pem(self.authority.clone().into_bytes()),
            credentials: Credentials::None,
            reachable: None,
            user_agent: "test/0",
        }
    }
}

impl Drop for Old {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

#[tokio::test]
async fn a_server_without_http2() {
    let old =
        Old::start(r#"{"apiVersion":"v1","kind":"ConfigMapList","metadata":{},"items":[]}"#).await;
    let link = Link::new(old.settings()).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(link.client(), "default");
    for _ in 0..5 {
        assert!(maps.list(&ListParams::default()).await.is_ok());
    }
    assert_eq!(old.connections.load(Ordering::Acquire), 1, "one after the other on one connection");
    let all = (0..5).map(|_| async { maps.list(&ListParams::default()).await.unwrap() });
    futures::future::join_all(all).await;
    let asked = old.asked.lock().clone();
    assert_eq!(asked.len(), 10);
    for (host, path) in asked {
        assert_eq!(host, old.address.to_string());
        assert_eq!(path, "/below/api/v1/namespaces/default/configmaps?");
    }
}

/// Answers that are too large are broken off, in a whole body and in one line of a watch.
#[tokio::test]
async fn bounds_of_answers() {
    let old = Old::start("0123456789\n01234\n").await;
    let link = Link::new(old.settings()).unwrap();
    let body = async |by_line: bool, largest: usize| {
        let slot = link.inner.calls.take(&link.inner.dialer, 0, &link.inner.opened).await.unwrap();
        let mut request = http::Request::new(kube::client::Body::empty());
        *request.uri_mut() = format!("https://{}/", old.address).parse().unwrap();
        let host = old.address.to_string().parse().unwrap();
        request.headers_mut().insert("host", host);
        let Ok(response) = slot.send(request).await else { panic!("answered") };
        let bounds = body::Bounds { largest, by_line, quiet: None };
        let answer = body::Answer::new(response.into_body(), slot, "host".into(), bounds);
        http_body_util::BodyExt::collect(answer).await.map(|body| body.to_bytes().len())
    };
    assert_eq!(body(false, 17).await.unwrap(), 17);
    assert!(matches!(body(false, 16).await, Err(Error::TooLarge { most: 16, .. })));
    // The piece holds a whole line, and what begins after it is counted anew.
    assert_eq!(body(true, 16).await.unwrap(), 17);
}

/// Lines come whole, however they are cut.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_as_bytes() {
    let hub = hub().await;
    let link = Link::new(settings(&hub)).unwrap();
    let maps = config_maps(&link, "root");
    for name in ["one", "two"] {
        maps.create(&PostParams::default(), &config_map(name)).await.unwrap();
    }
    let told = link.ask(Ask::get("/api/v1/namespaces/default/configmaps/one")).await.unwrap();
    assert_eq!(told.status, StatusCode::OK);
    let told = link.ask(Ask::get("/api/v1/namespaces/default/configmaps/none")).await.unwrap();
    assert_eq!(told.status, StatusCode::NOT_FOUND);
    let path = "/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=0";
    let mut lines = link.follow(Ask::get(path)).await.unwrap().unwrap();
    for _ in 0..2 {
        let line = tokio::time::timeout(PATIENCE, lines.next()).await.unwrap().unwrap().unwrap();
        let (line, end) = (String::from_utf8(line.to_vec()).unwrap(), "}");
        assert!(line.starts_with(r#"{"type":"ADDED","object":{"#) && line.ends_with(end), "{line}");
    }
    let refused = link.follow(Ask::get("/api/v1/nothing?watch=true")).await.unwrap().unwrap_err();
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    hub.shutdown().await;
}
