//! What stands for kubelet and DNS of a physical cluster: it runs an agent as its Deployment says, in
//! this process, with the rights of its ServiceAccount.

use std::path::PathBuf;
use std::time::Duration;

use agent::args::Args;
use agent::manifest::Kind;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Parser;
use machinery::kubeconfig::Access;
use runtime::Tasks;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::yard::Side;

/// Where the Deployment mounts how the hub is reached.
const MOUNTED: &str = "/etc/kcp/hub";

/// How often what is mounted is looked at.
const REFRESH: Duration = Duration::from_millis(100);

/// An agent that runs in this process.
pub(crate) struct Pod {
    tasks: Tasks,
    _directory: tempfile::TempDir,
}

// === impl Pod ===

impl Pod {
    /// Runs the agent that is installed in a namespace of a cluster. `hub` is what the name of the hub
    /// leads to there.
    pub(crate) async fn of_deployment(cluster: &Side, namespace: &str, hub: &Side) -> Self {
        let path = Kind::named("Deployment").unwrap().path(namespace, "kcp-agent");
        let deployment = cluster.eventually(&path, |found| !found.is_null()).await;
        let directory = tempfile::tempdir().unwrap();
        let secret = Kind::named("Secret").unwrap().path(namespace, "kcp-agent-hub");
        let mounted = Mounted { directory: directory.path().to_owned() };
        mounted.show(&cluster.get(&secret).await);
        let kubeconfig = directory.path().join("cluster.kubeconfig");
        std::fs::write(&kubeconfig, account(cluster, namespace, "kcp-agent").await).unwrap();

        let args = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
        let args = args.as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
        let mut flags = vec!["kcp-agent".to_owned()];
        flags.extend(args.map(|arg| match arg.split_once('=') {
            Some(("--hub", _)) => format!("--hub={}", hub.root_url()),
            Some(("--listen", _)) => "--listen=127.0.0.1:0".to_owned(),
            Some(("--namespace", _)) => format!("--namespace={namespace}"),
            _ => arg.replace(MOUNTED, directory.path().to_str().unwrap()),
        }));
        flags.push(format!("--to-kubeconfig={}", kubeconfig.display()));
        let pod = Self::run(flags, directory);
        let status = json!({"status": {"replicas": 1, "availableReplicas": 1}});
        cluster.patch(&format!("{path}/status"), &status).await;
        let client = cluster.client();
        let stop = pod.tasks.cancellation().clone();
        let ended = stop.clone();
        drop(pod.tasks.spawn(tracing::Span::none(), async move {
            let follow = async {
                loop {
                    let request = http::Request::builder().uri(&secret).body(Vec::new()).unwrap();
                    if let Ok(found) = client.request::<Value>(request).await {
                        mounted.show(&found);
                    }
                    // Pods end with their Deployment.
                    let request = http::Request::builder().uri(&path).body(Vec::new()).unwrap();
                    match client.request::<Value>(request).await {
                        Err(kube::Error::Api(status)) if status.code == 404 => ended.cancel(),
                        _ => {}
                    }
                    tokio::time::sleep(REFRESH).await;
                }
            };
            stop.run_until_cancelled(follow).await;
        }));
        pod
    }

    /// Runs an agent by hand, for the SyncTarget `infra.NAME`.
    pub(crate) fn by_hand(cluster: &Side, hub: &Side, name: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut flags = vec!["kcp-agent".to_owned()];
        for (flag, side) in [("from", hub), ("to", cluster)] {
            let file = directory.path().join(flag);
            std::fs::write(&file, side.kubeconfig()).unwrap();
            flags.push(format!("--{flag}-kubeconfig={}", file.display()));
        }
        flags.extend(["--cluster=infra".to_owned(), format!("--sync-target={name}")]);
        Self::run(flags, directory)
    }

    fn run(flags: Vec<String>, directory: tempfile::TempDir) -> Self {
        let args = Args::try_parse_from(flags).unwrap();
        let tasks = Tasks::new();
        let stop = tasks.cancellation().clone();
        drop(tasks.spawn(tracing::Span::none(), async move {
            Box::pin(agent::program::run(args, stop.cancelled_owned())).await.unwrap();
        }));
        Self { tasks, _directory: directory }
    }

    /// Ends it in good order.
    pub(crate) async fn stop(self) {
        let stop: CancellationToken = self.tasks.cancellation().clone();
        stop.cancel();
        self.tasks.shutdown(Duration::from_secs(20)).await;
    }
}

/// A Secret as files.
struct Mounted {
    directory: PathBuf,
}

// === impl Mounted ===

impl Mounted {
    fn show(&self, secret: &Value) {
        for name in ["token", "ca.crt"] {
            let file = self.directory.join(name);
            match secret["data"][name].as_str() {
                Some(text) => std::fs::write(file, STANDARD.decode(text).unwrap()).unwrap(),
                None if file.exists() => std::fs::remove_file(file).unwrap(),
                None => {}
            }
        }
    }
}

/// A kubeconfig of a ServiceAccount.
pub(crate) async fn account(cluster: &Side, namespace: &str, name: &str) -> String {
    let access = Access::parse(cluster.kubeconfig().as_bytes(), None).unwrap();
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
    let token = cluster.post(&path, &json!({"spec": {"audiences": []}})).await;
    json!({
        "clusters": [{"name": "c", "cluster": {
            "server": access.server,
            "certificate-authority-data": STANDARD.encode(access.authority.unwrap()),
        }}],
        "users": [{"name": "u", "user": {"token": token["status"]["token"]}}],
    })
    .to_string()
}
