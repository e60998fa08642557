//! A hub behind a proxy that ends TLS: no certificate of an agent's connection reaches it.

use std::sync::Arc;

use machinery::kubeconfig::Access;
use rcgen::{CertificateParams, KeyPair};
use runtime::Tasks;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tracing::Span;

use crate::world::{NAMESPACE, World};

const THINGS: &str = "/apis/x.io/v1/namespaces/default/things";

/// Ends TLS, and goes on to the hub over TLS of its own.
struct Proxy {
    port: u16,
    /// Its certificate, as PEM.
    authority: String,
    _tasks: Tasks,
}

impl Proxy {
    async fn start(world: &World) -> Self {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));

        let access = Access::parse(world.hub.kubeconfig().as_bytes(), None).unwrap();
        let mut authorities = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(&access.authority.unwrap()) {
            authorities.add(authority.unwrap()).unwrap();
        }
        let mut config =
            ClientConfig::builder().with_root_certificates(authorities).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let connector = TlsConnector::from(Arc::new(config));

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tasks, behind) = (Tasks::new(), world.hub.port());
        let serving = tasks.clone();
        let accepting = async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, connector) = (acceptor.clone(), connector.clone());
                let carrying = async move {
                    let Ok(mut near) = acceptor.accept(stream).await else { return };
                    let Ok(far) = TcpStream::connect(("127.0.0.1", behind)).await else { return };
                    let name = ServerName::try_from("localhost").unwrap();
                    let mut far = connector.connect(name, far).await.unwrap();
                    // Connections end as they like.
                    drop(tokio::io::copy_bidirectional(&mut near, &mut far).await);
                };
                drop(serving.spawn(Span::none(), carrying));
            }
        };
        drop(tasks.spawn(Span::none(), accepting));
        Self { port, authority: certificate.pem(), _tasks: tasks }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_behind_it_works_all_the_same() {
    let world = World::new().await;
    let proxy = Proxy::start(&world).await;
    let authority = world.file("proxy.crt");
    std::fs::write(&authority, &proxy.authority).unwrap();
    let address = format!("https://localhost:{}", proxy.port);
    let agent = world.agent_at(&address, &authority, &["things.x.io"]);
    agent.ready().await;
    world.assign("infra", THINGS, "one", &json!({"spec": {"n": 1}})).await;
    let copy = format!("{THINGS}/one");
    world.physical.until(&copy, "there", |_| true).await;
    world.physical.merge(&format!("{copy}/status"), &json!({"status": {"seen": 1}})).await;
    let at_hub = format!("/clusters/infra{copy}");
    world.hub.until(&at_hub, "its status", |object| object["status"]["seen"] == 1).await;
    // The key was made here, and the certificate is kept as ever.
    let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/kcp-agent-identity");
    let kept = world.physical.get(&path).await.unwrap();
    assert!(kept["data"]["tls.crt"].as_str().is_some_and(|text| !text.is_empty()), "{kept}");
    agent.stop().await;
    world.end().await;
}
