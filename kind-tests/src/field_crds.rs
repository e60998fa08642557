//! CustomResourceDefinitions that many clusters have, out of the Go modules that publish them.
//!
//! They are other people's work and large, so they aren't in this repository: `tools/field-crds`
//! names the modules and their exact versions, and go's module cache holds the files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// The folder of definitions in each module.
const FOLDERS: [(&str, &str); 4] = [
    ("github.com/argoproj/argo-cd/v3", "manifests/crds"),
    ("github.com/cert-manager/cert-manager", "deploy/crds"),
    ("github.com/prometheus-operator/prometheus-operator", "example/prometheus-operator-crd"),
    ("sigs.k8s.io/gateway-api", "config/crd/standard"),
];

/// A definition.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The file that holds it and nothing else.
    pub file: PathBuf,
    /// `<plural>.<group>`.
    pub name: String,
}

/// All of them; downloads the modules that the module cache lacks.
///
/// # Errors
/// When a module can't be had, or doesn't hold what is expected of it.
pub fn definitions() -> Result<Vec<Definition>> {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/field-crds");
    let file = module.join("go.mod");
    let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let mut all = Vec::new();
    for (path, folder) in FOLDERS {
        let version = version(&text, path).with_context(|| format!("no version of {path}"))?;
        let files = download(&module, &format!("{path}@{version}"))?;
        let before = all.len();
        read_folder(&files.join(folder), &mut all)?;
        ensure!(all.len() > before, "{path} has no definitions in {folder}");
    }
    Ok(all)
}

fn version<'t>(text: &'t str, module: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.trim().strip_prefix(module)?.strip_prefix(' '))
}

/// The folder of a module's files.
fn download(module: &Path, wanted: &str) -> Result<PathBuf> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", wanted])
        .current_dir(module)
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off")
        .output()
        .context("start go: Go 1.26 must be installed")?;
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    match told["Dir"].as_str().filter(|_| output.status.success()) {
        Some(folder) => Ok(PathBuf::from(folder)),
        None => bail!(
            "cannot have {wanted}: {}{}",
            told["Error"].as_str().unwrap_or_default(),
            String::from_utf8_lossy(&output.stderr)
        ),
    }
}

fn read_folder(folder: &Path, all: &mut Vec<Definition>) -> Result<()> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| entry.map(|e| e.path())).collect())
        .with_context(|| format!("read {}", folder.display()))?;
    files.sort_unstable();
    for file in files.into_iter().filter(|file| file.extension().is_some_and(|e| e == "yaml")) {
        let text = fs::read_to_string(&file)?;
        // Beside definitions there are policies and lists of files, some with several documents.
        let Ok(value) = serde_saphyr::from_str::<Value>(&text) else { continue };
        if value["kind"] == "CustomResourceDefinition" {
            let name = value["metadata"]["name"].as_str().context("a definition has a name")?;
            all.push(Definition { file, name: name.to_owned() });
        }
    }
    Ok(())
}
