//! The one node of a cluster: containerd, kubelet and kube-proxy.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::{NETWORK_PLUGINS, end_containers_below};
use crate::control_plane::ControlPlane;
use crate::eventually::{PATIENCE, within};
use crate::namespace::Namespace;
use crate::process::Process;
use crate::progress::say;
use crate::run::{Run, unmount_below};
use crate::tools::{Tool, path};

/// Where links to nodes' folders are: a socket's name may have 107 bytes, a run's folder is below
/// somebody's home, and both containerd and kubelet make sockets in theirs.
const LINKS: &str = "/run/kcp-rs";

/// The programs of a node. Its pods end with it.
#[derive(Debug)]
pub(super) struct Node {
    // Fields drop in this order, after `drop` below.
    proxy: Process,
    kubelet: Process,
    containerd: Process,
    folder: PathBuf,
    link: PathBuf,
}

// === impl Node ===

impl Node {
    pub(super) fn start(
        run: &Run,
        name: &str,
        control_plane: &ControlPlane,
        sandbox: &str,
        images: &[PathBuf],
    ) -> Result<Self> {
        let namespace = control_plane.namespace().context("a network namespace")?;
        let folder = run.subfolder(&format!("{name}-node"))?;
        let link = link(&folder, namespace)?;
        let socket = link.join("containerd.sock");
        let config = folder.join("containerd.toml");
        fs::write(&config, containerd_config(&link, sandbox))?;
        write_network(&folder, namespace)?;
        let mut containerd = namespace.command("containerd");
        containerd.arg("--config").arg(&config);
        let mut containerd = Process::spawn(run, &format!("{name}-containerd"), containerd)?;
        within(PATIENCE, "containerd's socket", || {
            containerd.check_running()?;
            Ok(UnixStream::connect(&socket).ok())
        })?;
        for image in images {
            load(&socket, image)?;
        }
        let kubelet = Process::spawn(
            run,
            &format!("{name}-kubelet"),
            kubelet(&link, name, namespace, control_plane)?,
        )?;
        let mut proxy = namespace.command(path(Tool::KubeProxy)?);
        proxy.args([
            format!("--kubeconfig={}", control_plane.kubeconfig().display()),
            format!("--hostname-override={name}"),
            format!("--cluster-cidr={}", namespace.pods()),
            "--proxy-mode=iptables".to_owned(),
            "--conntrack-max-per-core=0".to_owned(),
        ]);
        let proxy = Process::spawn(run, &format!("{name}-proxy"), proxy)?;
        Ok(Self { proxy, kubelet, containerd, folder, link })
    }

    pub(super) fn check_running(&mut self) -> Result<()> {
        self.containerd.check_running()?;
        self.kubelet.check_running()?;
        self.proxy.check_running()
    }

    fn stop(&mut self) -> Result<()> {
        self.proxy.terminate()?;
        self.kubelet.terminate()?;
        end_containers_below(&self.folder)?;
        self.containerd.terminate()?;
        fs::remove_file(&self.link).unwrap_or_default();
        unmount_below(&self.folder)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            say(format!("could not stop a node: {error:#}"));
        }
    }
}

/// A short name of `folder`. Its number is the namespace's, which is this harness's alone; what a
/// crashed one left there is replaced.
fn link(folder: &Path, namespace: &Namespace) -> Result<PathBuf> {
    fs::create_dir_all(LINKS).with_context(|| format!("make {LINKS}"))?;
    let link = Path::new(LINKS).join(namespace.index().to_string());
    match fs::remove_file(&link) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    std::os::unix::fs::symlink(folder, &link)?;
    Ok(link)
}

fn load(socket: &Path, image: &Path) -> Result<()> {
    let mut ctr = Command::new("ctr");
    ctr.arg("--address").arg(socket).args(["--namespace", "k8s.io", "images", "import"]);
    let output = ctr.arg(image).stdin(Stdio::null()).output().context("run ctr")?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("containerd does not take {}: {}", image.display(), error.trim());
    }
    Ok(())
}

fn containerd_config(folder: &Path, sandbox: &str) -> String {
    let at = |name: &str| folder.join(name).display().to_string();
    let (root, state, socket) = (at("root"), at("state"), at("containerd.sock"));
    let (networks, opt) = (at("net.d"), at("opt"));
    // Without CAP_SYS_RESOURCE, as in many sandboxes, runc may not raise a container's score.
    format!(
        r#"version = 2
root = "{root}"
state = "{state}"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[grpc]
address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
path = "{opt}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{sandbox}"
restrict_oom_score_adj = true
stream_server_address = "127.0.0.1"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{NETWORK_PLUGINS}"
conf_dir = "{networks}"
"#
    )
}

fn write_network(folder: &Path, namespace: &Namespace) -> Result<()> {
    let networks = folder.join("net.d");
    fs::create_dir_all(&networks)?;
    let list = json!({
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "pods0",
                "isGateway": true,
                "ipMasq": true,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": folder.join("addresses"),
                    "ranges": [[{"subnet": namespace.pods()}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    });
    fs::write(networks.join("10-pods.conflist"), serde_json::to_vec_pretty(&list)?)?;
    Ok(())
}

fn kubelet(
    folder: &Path,
    name: &str,
    namespace: &Namespace,
    control_plane: &ControlPlane,
) -> Result<Command> {
    let endpoint = format!("unix://{}", folder.join("containerd.sock").display());
    let config = json!({
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": "/",
        "cgroupsPerQOS": false,
        "containerRuntimeEndpoint": endpoint,
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        "localStorageCapacityIsolation": false,
        // The machine's disk is shared with builds: a full one must not evict test pods.
        "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%", "memory.available": "50Mi"},
        "imageGCHighThresholdPercent": 100,
        "nodeStatusUpdateFrequency": "4s",
        "syncFrequency": "10s",
        "registerNode": true,
        "resolvConf": resolver(folder)?,
    });
    let file = folder.join("kubelet.yaml");
    fs::write(&file, serde_json::to_vec_pretty(&config)?)?;
    let mut kubelet = namespace.command(path(Tool::Kubelet)?);
    kubelet.args([
        format!("--config={}", file.display()),
        format!("--kubeconfig={}", control_plane.kubeconfig().display()),
        format!("--hostname-override={name}"),
        format!("--node-ip={}", namespace.address()),
        format!("--root-dir={}", folder.join("kubelet").display()),
        format!("--cert-dir={}", folder.join("certificates").display()),
    ]);
    Ok(kubelet)
}

/// Pods look names up nowhere: there is no DNS in such a cluster.
fn resolver(folder: &Path) -> Result<PathBuf> {
    let file = folder.join("resolv.conf");
    fs::write(&file, "options ndots:1\n")?;
    Ok(file)
}
