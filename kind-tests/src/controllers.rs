//! Kubernetes' controllers beside a control plane.

use anyhow::Result;

use crate::control_plane::ControlPlane;
use crate::process::Process;
use crate::run::Run;
use crate::tools::path;

/// A running kube-controller-manager. Stops when it is dropped.
#[derive(Debug)]
pub struct ControllerManager {
    process: Process,
}

// === impl ControllerManager ===

impl ControllerManager {
    /// Starts one of the same release beside `plane`, with its log named after `name`. Nobody waits
    /// for it to be ready.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(run: &Run, name: &str, plane: &ControlPlane) -> Result<Self> {
        let mut command = plane.command(path(plane.release().controller_manager())?);
        let files = plane.files();
        command.args(kubeconfigs(plane)).args([
            format!("--root-ca-file={}", files.authority.display()),
            format!("--service-account-private-key-file={}", files.token_key.display()),
            // Nobody asks it anything; a port would be taken by the one of another plane.
            "--secure-port=0".to_owned(),
            "--leader-elect=false".to_owned(),
        ]);
        let process = Process::spawn(run, &format!("{name}-controller-manager"), command)?;
        Ok(Self { process })
    }

    /// The process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// The flags by which a controller or a scheduler finds its API server.
pub(crate) fn kubeconfigs(plane: &ControlPlane) -> [String; 3] {
    ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"]
        .map(|flag| format!("--{flag}={}", plane.kubeconfig().display()))
}
