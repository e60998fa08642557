//! Bytes that no client of good will sends: a clear answer or a closed connection, and afterwards
//! the server is as well as before.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Ask, Hub, PATIENCE, Who};

async fn still_well(hub: &Hub) {
    assert_eq!(hub.get("/readyz").await.text(), "ok");
    let metrics = hub.get("/metrics").await;
    assert!(metrics.text().contains("kcp_apiserver_request_panics_total 0"), "{metrics:?}");
}

/// Sends bytes over TLS and HTTP/1.1; gives what comes back until the server closes or goes quiet.
async fn raw(hub: &Hub, bytes: &[u8]) -> String {
    let mut stream = hub.connect(Who::Admin, b"http/1.1").await;
    // A server that has heard enough may close while we still write.
    let _written = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let read = async {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            answer.extend_from_slice(buffer.get(..count).unwrap());
        }
    };
    let _quiet = tokio::time::timeout(Duration::from_secs(2), read).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn code(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("closed")
}

#[tokio::test]
async fn requests_that_are_none() {
    let hub = Hub::start().await;
    for bytes in [
        b"garbage\r\n\r\n".as_slice(),
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
        b"GET /api HTTP/9.9\r\n\r\n",
        b"GET \xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\
          transfer-encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let answer = raw(&hub, bytes).await;
        assert!(matches!(code(&answer), "400" | "505" | "closed"), "{answer}");
    }
    still_well(&hub).await;
    hub.shutdown().await;
}

#[tokio::test]
async fn paths_and_queries_out_of_bounds() {
    let hub = Hub::start().await;
    let segments = "/a".repeat(1000);
    let deep = format!("/api/v1/namespaces/x/configmaps{segments}");
    let pairs = format!("/api/v1/namespaces?{}", "a=1&".repeat(5000));
    for (path, codes) in [
        (segments.as_str(), "404"),
        (&deep, "404"),
        ("/%", "400"),
        ("/%ff", "400"),
        ("/%00", "400"),
        ("/api/v1/namespaces?labelSelector=%ff", "400"),
        (&pairs, "400"),
        ("/clusters/%2e%2e/api", "400"),
        ("/clusters/a%2Fclusters%2Fb/api", "404"),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        assert_eq!(code(&raw(&hub, request.as_bytes()).await), codes, "{path}");
    }
    let selector = "a,".repeat(20_000);
    let answer = hub.get(&format!("/api/v1/namespaces?labelSelector={selector}")).await;
    assert!(answer.status.is_client_error() || answer.status.is_success());
    let header = format!("GET /api HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(1 << 20));
    assert!(matches!(code(&raw(&hub, header.as_bytes()).await), "431" | "closed"));
    let many = format!("GET /api HTTP/1.1\r\nhost: x\r\n{}\r\n", "a: b\r\n".repeat(10_000));
    assert!(matches!(code(&raw(&hub, many.as_bytes()).await), "431" | "closed"));
    still_well(&hub).await;
    hub.shutdown().await;
}

#[tokio::test]
async fn bodies_that_stop_or_never_end() {
    let hub = Hub::start().await;
    let head = "POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
    // The client goes away in the middle.
    let mut stream = hub.connect(Who::Admin, b"http/1.1").await;
    stream.write_all(format!("{head}content-length: 100\r\n\r\n{{\"a\"").as_bytes()).await.unwrap();
    drop(stream);
    // More than the limit is announced: the answer comes without waiting for it.
    let announced = format!("{head}content-length: 99999999\r\n\r\n");
    assert_eq!(code(&raw(&hub, announced.as_bytes()).await), "413");
    // More than the limit comes without announcement.
    let mut chunked = format!("{head}transfer-encoding: chunked\r\n\r\n").into_bytes();
    for _ in 0..64 {
        chunked.extend_from_slice(b"10000\r\n");
        chunked.extend_from_slice(&vec![b' '; 0x10000]);
        chunked.extend_from_slice(b"\r\n");
    }
    assert!(matches!(code(&raw(&hub, &chunked).await), "413" | "closed"));
    // A short time limit ends a wait for the rest of a body.
    let slow =
        "POST /api/v1/namespaces?timeout=100ms HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{";
    assert_eq!(code(&raw(&hub, slow.as_bytes()).await), "504");
    still_well(&hub).await;
    hub.shutdown().await;
}

#[tokio::test]
async fn connections_that_do_nothing() {
    let hub = Hub::start().await;
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(TcpStream::connect(hub.address()).await.unwrap());
    }
    let mut plain = TcpStream::connect(hub.address()).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, plain.read_to_end(&mut answer)).await;
    assert!(read.is_ok(), "plain text is refused at once");
    let handshaken = hub.connect(Who::Anonymous, b"h2").await;
    still_well(&hub).await;
    // They don't delay the end.
    tokio::time::timeout(Duration::from_secs(10), hub.shutdown()).await.unwrap();
    drop((idle, handshaken));
}

#[tokio::test]
async fn readers_that_do_not_read() {
    let hub = Hub::start().await;
    let body = serde_json::json!({
        "metadata": {"generateName": "big-"}, "data": {"k": "x".repeat(900_000)},
    });
    for _ in 0..8 {
        let path = "/api/v1/namespaces/default/configmaps";
        let answer = hub.admin(Ask::new(http::Method::POST, path).json(&body)).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    let mut stuck = Vec::new();
    for _ in 0..20 {
        let mut stream = hub.connect(Who::Admin, b"http/1.1").await;
        stream.write_all(b"GET /api/v1/configmaps HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        stuck.push(stream);
    }
    still_well(&hub).await;
    let list = hub.get("/api/v1/configmaps").await;
    assert!(list.body.len() > 7_000_000);
    tokio::time::timeout(Duration::from_secs(15), hub.shutdown()).await.unwrap();
    drop(stuck);
}
