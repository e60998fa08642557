//! Kubeconfig files, read and written.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// What the harness needs of one context of a kubeconfig.
#[derive(Clone, Debug)]
pub struct Access {
    /// The server's address, with any path.
    pub server: String,
    /// The certificates that vouch for the server, in PEM.
    pub authority: String,
}

// === impl Access ===

impl Access {
    /// Reads a context of a kubeconfig file; without a name, the current one.
    ///
    /// # Errors
    /// When the file cannot be read or lacks something.
    pub fn read(file: &Path, context: Option<&str>) -> Result<Self> {
        let text = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        let config: Value = serde_saphyr::from_str(&text).context("parse the kubeconfig")?;
        let current = config["current-context"].as_str();
        let context = context.or(current).context("no current context")?;
        let cluster = entry(&config, "contexts", context)?["context"]["cluster"].clone();
        let cluster = cluster.as_str().with_context(|| format!("{context} has no cluster"))?;
        let cluster = &entry(&config, "clusters", cluster)?["cluster"];
        let text = |field: &str| {
            cluster[field].as_str().with_context(|| format!("the cluster has no {field}"))
        };
        let authority = STANDARD.decode(text("certificate-authority-data")?)?;
        Ok(Self { server: text("server")?.to_owned(), authority: String::from_utf8(authority)? })
    }

    /// Writes a kubeconfig with one context, `admin`, that identifies by a token.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, file: &Path, token: &str) -> Result<()> {
        let authority = STANDARD.encode(&self.authority);
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{
                "name": "cluster",
                "cluster": { "server": self.server, "certificate-authority-data": authority },
            }],
            "users": [{ "name": "admin", "user": { "token": token } }],
            "contexts": [{ "name": "admin", "context": { "cluster": "cluster", "user": "admin" } }],
            "current-context": "admin",
        });
        // JSON is YAML; only the owner may read the token.
        let mut output =
            OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(file)?;
        output.write_all(&serde_json::to_vec_pretty(&config)?)?;
        Ok(())
    }
}

fn entry<'a>(config: &'a Value, list: &str, name: &str) -> Result<&'a Value> {
    let entries = config[list].as_array().with_context(|| format!("no {list}"))?;
    let found = entries.iter().find(|entry| entry["name"] == name);
    found.with_context(|| format!("{list} has no {name:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kubeconfig");
        let access = Access { server: "https://127.0.0.1:1/x".into(), authority: "PEM".into() };
        access.write(&file, "secret").unwrap();
        let read = Access::read(&file, None).unwrap();
        assert_eq!((read.server, read.authority), (access.server, access.authority));
        assert!(Access::read(&file, Some("other")).is_err());
    }
}
