//! The kubeconfigs of the administrator and of the operator.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Pair, Pki, PkiError, files};

/// The kubeconfig of the administrator: context `root` for the logical cluster `root` (current),
/// and `base` for the server without a path. `server` is `https://HOST:PORT`; without `our_ca`
/// (a serving certificate from files) clients use the system's trust.
pub(crate) fn admin_kubeconfig(pki: &Pki, server: &str, our_ca: bool) -> String {
    let clusters = [("base", ""), ("root", "/clusters/root")];
    kubeconfig("kcp-admin", &pki.admin, &clusters, server, &authority(pki, our_ca))
}

/// The kubeconfig of the operator: for the server without a path, as it asks in all logical clusters.
pub(crate) fn operator_kubeconfig(pki: &Pki, server: &str, our_ca: bool) -> String {
    kubeconfig("kcp-operator", &pki.operator, &[("base", "")], server, &authority(pki, our_ca))
}

/// A kubeconfig with a context for each of some clusters, which are paths of one server; the last
/// context is the current one.
fn kubeconfig(
    user: &str,
    pair: &Pair,
    clusters: &[(&str, &str)],
    server: &str,
    ca: &str,
) -> String {
    let certificate = STANDARD.encode(&pair.certificate);
    let key = STANDARD.encode(&pair.key);
    let listed = clusters.iter().map(|(name, path)| {
        format!("- name: {name}\n  cluster:\n    server: {server}{path}{ca}\n")
    });
    let contexts = clusters.iter().map(|(name, _)| {
        format!("- name: {name}\n  context:\n    cluster: {name}\n    user: {user}\n")
    });
    let current = clusters.last().map_or("", |(name, _)| name);
    let (listed, contexts) = (listed.collect::<String>(), contexts.collect::<String>());
    format!(
        "apiVersion: v1
kind: Config
clusters:
{listed}contexts:
{contexts}current-context: {current}
users:
- name: {user}
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
