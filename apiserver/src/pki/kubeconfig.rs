//! The kubeconfigs of the administrator and of the operator.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Pki, PkiError, files};

/// The kubeconfig of the administrator: context `root` for the logical cluster `root` (current),
/// and `base` for the server without a path. `server` is `https://HOST:PORT`; without `our_ca`
/// (a serving certificate from files) clients use the system's trust.
pub(crate) fn admin_kubeconfig(pki: &Pki, server: &str, our_ca: bool) -> String {
    let ca = authority(pki, our_ca);
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

/// The kubeconfig of the operator: for the server without a path, as it asks in all logical clusters.
pub(crate) fn operator_kubeconfig(pki: &Pki, server: &str, our_ca: bool) -> String {
    let ca = authority(pki, our_ca);
    let certificate = STANDARD.encode(&pki.operator.certificate);
    let key = STANDARD.encode(&pki.operator.key);
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: base
  cluster:
    server: {server}{ca}
contexts:
- name: base
  context:
    cluster: base
    user: kcp-operator
current-context: base
users:
- name: kcp-operator
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
"
    )
}

/// The line that names our CA, if it is the one that vouches for the server.
fn authority(pki: &Pki, our_ca: bool) -> String {
    let ca = our_ca.then(|| STANDARD.encode(&pki.ca));
    ca.map(|ca| format!("\n    certificate-authority-data: {ca}")).unwrap_or_default()
}

/// Writes `admin.kubeconfig` and `operator.kubeconfig` under `root`, for the owner alone, and returns
/// where the first is.
///
/// # Errors
/// When one cannot be written.
pub(crate) fn write_kubeconfigs(
    root: &Path,
    admin: &str,
    operator: &str,
) -> Result<PathBuf, PkiError> {
    let path = root.join("admin.kubeconfig");
    files::write_private(&path, admin)?;
    files::write_private(&root.join("operator.kubeconfig"), operator)?;
    Ok(path)
}
