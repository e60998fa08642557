//! The administrator's kubeconfig.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Pki, PkiError, files};

/// The kubeconfig of the administrator: context `root` for the logical cluster `root` (current),
/// and `base` for the server without a path. `server` is `https://HOST:PORT`; without `our_ca`
/// (a serving certificate from files) clients use the system's trust.
pub(crate) fn admin_kubeconfig(pki: &Pki, server: &str, our_ca: bool) -> String {
    let ca = if our_ca {
        format!("\n    certificate-authority-data: {}", STANDARD.encode(&pki.ca))
    } else {
        String::new()
    };
    let certificate = STANDARD.encode(&pki.admin.certificate);
    let key = STANDARD.encode(&pki.admin.key);
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: base
  cluster:
    server: {server}{ca}
- name: root
  cluster:
    server: {server}/clusters/root{ca}
contexts:
- name: base
  context:
    cluster: base
    user: kcp-admin
- name: root
  context:
    cluster: root
    user: kcp-admin
current-context: root
users:
- name: kcp-admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
"
    )
}

/// Writes `admin.kubeconfig` under `root`, for the owner alone.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write_kubeconfig(root: &Path, text: &str) -> Result<PathBuf, PkiError> {
    let path = root.join("admin.kubeconfig");
    files::write_private(&path, text)?;
    Ok(path)
}
