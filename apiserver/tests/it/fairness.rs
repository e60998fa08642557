//! Two tenants on one server, of whom one wants everything.

use std::time::Duration;

use apiserver::{AuthOptions, InflightLimits};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;

use crate::client::{Answer, Ask, Hub, PATIENCE, TOKEN, Who, multiplex};
use crate::deeds::create;

const FEW: InflightLimits = InflightLimits { reads: 8, writes: 5, watches: 3 };

/// A server with little to give, and the tenants `busy` and `quiet` in logical clusters of theirs.
struct Street {
    hub: Hub,
    _folder: tempfile::TempDir,
}

impl Street {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        std::fs::write(&file, "token-of-busy,busy,1\ntoken-of-quiet,quiet,2\n").unwrap();
        let hub = Hub::start_with(|server| {
            server
                .auth(AuthOptions {
                    token_file: Some(file.clone()),
                    admin_token: Some(TOKEN.into()),
                    ..AuthOptions::default()
                })
                .inflight(FEW)
                .allow_outbound(apiserver::Network::loopback())
        })
        .await;
        for tenant in ["busy", "quiet"] {
            let binding = json!({
                "metadata": {"name": "all"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "cluster-admin"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User",
                    "name": tenant}],
            });
            let path =
                format!("/clusters/{tenant}/apis/rbac.authorization.k8s.io/v1/clusterrolebindings");
            create(&hub, &path, binding).await;
        }
        Self { hub, _folder: folder }
    }

    async fn ask(&self, tenant: &str, ask: Ask) -> Answer {
        self.hub.ask(Who::Anonymous, by(tenant, ask)).await
    }

    /// What a watch's connection begins with.
    async fn watch(&self, tenant: &str, who: Who) -> (String, TlsStream<TcpStream>) {
        let mut stream = self.hub.connect(who, b"http/1.1").await;
        let bearer = match who {
            Who::Admin => String::new(),
            Who::Anonymous => format!("authorization: Bearer token-of-{tenant}\r\n"),
        };
        let request = format!(
            "GET /clusters/{tenant}/api/v1/namespaces?watch=1 HTTP/1.1\r\nhost: x\r\n{bearer}\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = [0; 12];
        tokio::time::timeout(PATIENCE, stream.read_exact(&mut head)).await.unwrap().unwrap();
        (String::from_utf8_lossy(&head).into_owned(), stream)
    }
}

fn by(tenant: &str, ask: Ask) -> Ask {
    ask.header("authorization", &format!("Bearer token-of-{tenant}"))
}

fn write(tenant: &str) -> Ask {
    let object = json!({"metadata": {"generateName": "x-"}, "data": {"a": "b"}});
    let path = format!("/clusters/{tenant}/api/v1/namespaces/default/configmaps");
    Ask::new(Method::POST, &path).json(&object)
}

#[tokio::test]
async fn watches_of_one_logical_cluster_are_bounded() {
    let street = Street::new().await;
    let mut open = Vec::new();
    for _ in 0..FEW.watches * street.hub.servers() {
        let (head, stream) = street.watch("busy", Who::Anonymous).await;
        assert_eq!(head, "HTTP/1.1 200");
        open.push(stream);
    }
    let refused = street.ask("busy", Ask::get("/clusters/busy/api/v1/namespaces?watch=1")).await;
    let text = refused.fails(429, "TooManyRequests");
    assert_eq!(text, "Too many requests, please try again later.");
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.json()["details"]["retryAfterSeconds"], 1);
    // Neither other tenants nor the administrator find it full, nor is anything else refused.
    assert_eq!(street.watch("quiet", Who::Anonymous).await.0, "HTTP/1.1 200");
    assert_eq!(street.watch("busy", Who::Admin).await.0, "HTTP/1.1 200");
    assert_eq!(street.ask("busy", write("busy")).await.status, 201);
    // A place is free when its connection is gone.
    open.clear();
    let again = async {
        while street.watch("busy", Who::Anonymous).await.0 != "HTTP/1.1 200" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.unwrap();
    street.hub.shutdown().await;
}

#[tokio::test]
async fn bodies_that_come_slowly_hold_no_seat() {
    let street = Street::new().await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut stream = street.hub.connect(Who::Anonymous, b"http/1.1").await;
        let head = "POST /clusters/busy/api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\n\
             authorization: Bearer token-of-busy\r\ncontent-length: 100000\r\n\r\n{\"a\":";
        stream.write_all(head.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    for tenant in ["quiet", "busy"] {
        assert_eq!(street.ask(tenant, write(tenant)).await.status, 201);
    }
    drop(slow);
    street.hub.shutdown().await;
}

#[tokio::test]
async fn a_tenant_whose_webhook_hangs_waits_alone() {
    let street = Street::new().await;
    // Connections are made, and nobody ever answers.
    let hangs = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hook = json!({
        "metadata": {"name": "hangs"},
        "webhooks": [{
            "name": "hangs.example.com", "sideEffects": "None", "timeoutSeconds": 30,
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": format!("https://{}/", hangs.local_addr().unwrap())},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["configmaps"]}],
        }],
    });
    let path =
        "/clusters/busy/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let made = street.ask("busy", Ask::new(Method::POST, path).json(&hook)).await;
    assert_eq!(made.status, 201, "{made:?}");

    let stream = street.hub.connect(Who::Anonymous, b"h2").await;
    let (sender, connection) = multiplex(stream).await;
    // One has the seat, 256 wait, and the others are told to come back.
    let flood = (0..268).map(|_| {
        let (mut sender, request) =
            (sender.clone(), by("busy", write("busy")).request("https://localhost"));
        async move { Answer::whole(sender.send_request(request).await.unwrap()).await.unwrap() }
    });
    let mut flood: FuturesUnordered<_> = flood.collect();
    let refused = async {
        for _ in 0..11 {
            let refused = flood.next().await.unwrap();
            refused.fails(429, "TooManyRequests");
            assert_eq!(refused.header("retry-after"), "1");
        }
        // While all of them wait, others are served.
        for _ in 0..5 {
            assert_eq!(street.ask("quiet", write("quiet")).await.status, 201);
        }
        let read = street.ask("busy", Ask::get("/clusters/busy/api/v1/namespaces")).await;
        assert_eq!(read.status, 200);
        if street.hub.servers() == 1 {
            let metrics = street.hub.get("/metrics").await;
            for line in [
                "apiserver_flowcontrol_rejected_requests_total{priority_level=\"writes\",\
                 reason=\"queue-full\"} 11\n",
                "apiserver_flowcontrol_current_inqueue_requests{priority_level=\"writes\"} 256\n",
                "apiserver_flowcontrol_current_executing_seats{priority_level=\"writes\"} 1\n",
            ] {
                assert!(metrics.text().contains(line), "{line}{}", metrics.text());
            }
        }
    };
    tokio::select! {
        done = tokio::time::timeout(PATIENCE, refused) => done.unwrap(),
        ended = connection => panic!("connection ended: {ended:?}"),
    }
    // Those who wait go with their connection.
    drop((flood, sender));
    let emptied = async {
        let empty = [
            "current_inqueue_requests{priority_level=\"writes\"} 0\n",
            "current_inflight_requests{request_kind=\"mutating\"} 0\n",
        ];
        loop {
            let metrics = street.hub.get("/metrics").await;
            if empty.iter().all(|line| metrics.text().contains(line)) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, emptied).await.unwrap();
    drop(hangs);
    street.hub.shutdown().await;
}
