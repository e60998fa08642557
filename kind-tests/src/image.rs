//! Container images of one program, written without a container engine.
//!
//! The file is an OCI image layout in a tar, with Docker's `manifest.json` beside it, so that
//! `ctr images import`, `docker load` and `kind load image-archive` take it. The image is `FROM
//! scratch`: one layer with the program and what it needs, no shell and no libraries.
//! The same content gives the same bytes: times are zero, owners are root, order is fixed.
//!
//! Source: the OCI image format specification 1.1 (image-layout, config, manifest).

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::cargo::{self, Profile};

/// Where a Debian system, and most others, have the certificates of public authorities.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";

/// The user that programs run as: nobody's.
const USER: &str = "65532:65532";

/// An image of one statically linked program.
#[derive(Clone, Debug)]
pub struct Image {
    /// Its name with its tag, as `kcp-agent:dev`. Without a registry, so nothing can pull another.
    pub name: String,
    /// The program's file on this machine. It becomes `/<its name>`.
    pub program: PathBuf,
    /// Arguments when none are given.
    pub arguments: Vec<String>,
}

/// A blob of the layout, by its digest.
struct Blob {
    digest: String,
    bytes: Vec<u8>,
}

// === impl Image ===

impl Image {
    /// Builds a program of the workspace for an image of its own, `NAME:dev`.
    ///
    /// # Errors
    /// When it does not build.
    pub fn of(package: &str, binary: &str, profile: Profile) -> Result<Self> {
        let program = cargo::build_static(package, binary, profile)?;
        Ok(Self { name: format!("{binary}:dev"), program, arguments: Vec::new() })
    }

    /// Writes it to `file`.
    ///
    /// # Errors
    /// When the program cannot be read, or the file not be written.
    pub fn write(&self, file: &Path) -> Result<()> {
        let name = self.program.file_name().and_then(|n| n.to_str()).context("a program's name")?;
        let layer = Blob::new(self.layer(name)?);
        let config = Blob::new(serde_json::to_vec(&self.config(name, &layer))?);
        let manifest = Blob::new(serde_json::to_vec(&manifest(&config, &layer))?);
        let out = File::create(file).with_context(|| format!("make {}", file.display()))?;
        let mut archive = tar::Builder::new(BufWriter::new(out));
        let documents = [
            ("oci-layout", json!({"imageLayoutVersion": "1.0.0"})),
            ("index.json", self.index(&manifest)),
            (
                "manifest.json",
                json!([{
                    "Config": config.path(),
                    "RepoTags": [self.name],
                    "Layers": [layer.path()],
                }]),
            ),
        ];
        for (path, document) in documents {
            append(&mut archive, path, 0o644, &serde_json::to_vec(&document)?)?;
        }
        for blob in [&config, &manifest, &layer] {
            append(&mut archive, &blob.path(), 0o644, &blob.bytes)?;
        }
        archive.into_inner()?.flush()?;
        Ok(())
    }

    /// The layer, uncompressed: it is read from this machine's disk.
    fn layer(&self, name: &str) -> Result<Vec<u8>> {
        let mut archive = tar::Builder::new(Vec::new());
        let program = std::fs::read(&self.program)
            .with_context(|| format!("read {}", self.program.display()))?;
        append(&mut archive, name, 0o755, &program)?;
        // Programs that call public servers need to know the authorities that vouch for them.
        if let Ok(authorities) = std::fs::read(Path::new("/").join(AUTHORITIES)) {
            append(&mut archive, AUTHORITIES, 0o644, &authorities)?;
        }
        Ok(archive.into_inner()?)
    }

    fn config(&self, name: &str, layer: &Blob) -> Value {
        json!({
            "architecture": "amd64",
            "os": "linux",
            "config": {
                "User": USER,
                "Entrypoint": [format!("/{name}")],
                "Cmd": self.arguments,
                "WorkingDir": "/",
            },
            "rootfs": {"type": "layers", "diff_ids": [layer.digest()]},
            "history": [{"created_by": "FROM scratch"}],
        })
    }

    fn index(&self, manifest: &Blob) -> Value {
        let tag = self.name.rsplit_once(':').map_or("latest", |(_, tag)| tag);
        json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [{
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "digest": manifest.digest(),
                "size": manifest.bytes.len(),
                "platform": {"architecture": "amd64", "os": "linux"},
                "annotations": {
                    "io.containerd.image.name": format!("docker.io/library/{}", self.name),
                    "org.opencontainers.image.ref.name": tag,
                },
            }],
        })
    }
}

fn manifest(config: &Blob, layer: &Blob) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": config.digest(),
            "size": config.bytes.len(),
        },
        "layers": [{
            "mediaType": "application/vnd.oci.image.layer.v1.tar",
            "digest": layer.digest(),
            "size": layer.bytes.len(),
        }],
    })
}

fn append<W: Write>(
    archive: &mut tar::Builder<W>,
    path: &str,
    mode: u32,
    bytes: &[u8],
) -> Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(u64::try_from(bytes.len())?);
    header.set_mode(mode);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    archive.append_data(&mut header, path, bytes).with_context(|| format!("add {path}"))
}

// === impl Blob ===

impl Blob {
    fn new(bytes: Vec<u8>) -> Self {
        let digest = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { digest, bytes }
    }

    fn digest(&self) -> String {
        format!("sha256:{}", self.digest)
    }

    fn path(&self) -> String {
        format!("blobs/sha256/{}", self.digest)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use super::*;

    /// All that is in a tar, by path.
    fn entries(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(bytes);
        let read = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            (path, bytes)
        });
        read.collect()
    }

    #[test]
    fn what_is_written_can_be_followed_to_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("tool");
        std::fs::write(&program, b"binary").unwrap();
        let image = Image { name: "tool:1".to_owned(), program, arguments: vec!["run".to_owned()] };
        let files = ["a.tar", "b.tar"].map(|name| folder.path().join(name));
        for file in &files {
            image.write(file).unwrap();
        }
        let [first, second] = files.map(|file| std::fs::read(file).unwrap());
        assert_eq!(first, second, "the same content gives the same bytes");

        let outer = entries(&first);
        let json = |path: &str| -> Value { serde_json::from_slice(&outer[path]).unwrap() };
        let blob = |digest: &Value| {
            let digest = digest.as_str().unwrap().strip_prefix("sha256:").unwrap();
            let bytes = &outer[&format!("blobs/sha256/{digest}")];
            assert_eq!(Blob::new(bytes.clone()).digest, digest);
            bytes
        };
        let entry = &json("index.json")["manifests"][0];
        let manifest: Value = serde_json::from_slice(blob(&entry["digest"])).unwrap();
        assert_eq!(entry["size"], blob(&entry["digest"]).len());
        let config: Value = serde_json::from_slice(blob(&manifest["config"]["digest"])).unwrap();
        assert_eq!(config["config"]["Entrypoint"], json!(["/tool"]));
        assert_eq!(config["config"]["User"], USER);
        let layer = blob(&manifest["layers"][0]["digest"]);
        assert_eq!(config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);
        assert_eq!(entries(layer)["tool"], b"binary");
        let docker = &json("manifest.json")[0];
        assert_eq!(docker["RepoTags"], json!(["tool:1"]));
        assert!(outer.contains_key(docker["Config"].as_str().unwrap()));
        assert_eq!(&outer[docker["Layers"][0].as_str().unwrap()], layer);
    }
}
