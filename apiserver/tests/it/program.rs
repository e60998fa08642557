//! The server as a program of its own, and a client of it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hyper::client::conn::http2::SendRequest;
use serde_json::Value;
use tracing::Span;

use crate::client::{Answer, Ask, PATIENCE, connect, multiplex, pem};

/// A running server, killed at the latest when it is dropped.
pub(crate) struct Program {
    child: Child,
    address: SocketAddr,
    kubeconfig: String,
}

impl Program {
    /// Starts the server in `root` and waits until it says where it listens.
    pub(crate) fn start(root: &Path) -> Self {
        Self::start_with(root, &["--log-filter=error"], Stdio::inherit())
    }

    /// As [`start`](Self::start), with these flags; its log goes to `log`.
    pub(crate) fn start_with(root: &Path, flags: &[&str], log: Stdio) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kcp-apiserver"))
            .arg("--root-directory")
            .arg(root)
            .arg("--secure-port=0")
            .args(flags)
            .stderr(log)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (_, rest) = line.split_once("https://").unwrap_or_else(|| panic!("{line:?}"));
        let address = rest.split([',', ' ', '\n']).next().unwrap().parse().unwrap();
        let kubeconfig = std::fs::read_to_string(root.join("admin.kubeconfig")).unwrap();
        Self { child, address, kubeconfig }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) async fn client(&self) -> Client {
        let ca = pem(&self.kubeconfig, "certificate-authority-data");
        let stream = connect(self.address, &ca, Some(&self.kubeconfig), b"h2").await;
        let (sender, connection) = multiplex(stream).await;
        let tasks = runtime::Tasks::new();
        drop(tasks.spawn(Span::none(), connection));
        Client { sender }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) sender: SendRequest<http_body_util::Full<bytes::Bytes>>,
}

impl Client {
    /// An answer, or none when the server went away first.
    pub(crate) async fn ask(&mut self, ask: &Ask) -> Option<Answer> {
        let work = async {
            let response = self.sender.send_request(ask.request("https://localhost")).await.ok()?;
            Answer::whole(response).await
        };
        tokio::time::timeout(PATIENCE, work).await.expect("an answer, or the end, in time")
    }
}

/// An object's `resourceVersion`.
pub(crate) fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}
