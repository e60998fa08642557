//! What holds for the repository as a whole, and no compiler checks.

#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Licences that a dependency may have, one of them for each `OR`.
const LICENCES: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Zlib",
];

/// Crates of which there must be one version: two would not know each other's types or state.
const SINGLE: [&str; 8] =
    ["bytes", "http", "hyper", "redb", "rustls", "serde", "serde_json", "tokio"];

/// Crates that must not come in: another crypto provider, another TLS.
const BANNED: [&str; 3] = ["ring", "openssl", "native-tls"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The files that git tracks, or would.
fn files() -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(listed.status.success(), "git lists no files");
    let text = String::from_utf8(listed.stdout).unwrap();
    text.lines().map(|line| root().join(line)).filter(|path| path.is_file()).collect()
}

fn rust_sources() -> Vec<(PathBuf, String)> {
    files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "rs"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            (path, text)
        })
        .collect()
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn paths_in_the_documents_exist() {
    let mut missing = Vec::new();
    for document in ["ARCHITECTURE.md", "README.md", "apiserver/store/FORMAT.md"] {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        let quoted = text.split('`').skip(1).step_by(2);
        let tops =
            ["apiserver/", "operator/", "agent/", "crds/", "kind-tests/", "charts/", "docs/"];
        for path in quoted.filter(|quoted| tops.iter().any(|top| quoted.starts_with(top))) {
            let path = path.split([' ', ':']).next().unwrap();
            if !root().join(path).exists() {
                missing.push(format!("{document}: {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn modules_have_no_mod_files() {
    let found = files().into_iter().filter(|path| path.ends_with("mod.rs")).collect::<Vec<_>>();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn sources_say_what_they_are_for() {
    let silent = rust_sources()
        .into_iter()
        .filter(|(path, text)| {
            let tests =
                path.ends_with("tests.rs") || path.components().any(|c| c.as_os_str() == "tests");
            !tests && !text.starts_with("//!")
        })
        .map(|(path, _)| path)
        .collect::<Vec<_>>();
    assert!(silent.is_empty(), "no `//!` header: {silent:#?}");
}

#[test]
fn no_test_is_switched_off() {
    let mut found = Vec::new();
    for (path, text) in rust_sources() {
        // Put together here, so that this file doesn't find itself.
        for word in ["ignore", "should_panic"] {
            if text.contains(&format!("#[{word}")) {
                found.push((path.clone(), word));
            }
        }
        for word in ["todo", "unimplemented"] {
            if text.contains(&format!("{word}!(")) {
                found.push((path.clone(), word));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn metric_names_stand_in_one_place() {
    let mut places = BTreeMap::<String, BTreeSet<PathBuf>>::new();
    for (path, text) in rust_sources() {
        for quoted in text.split('"').skip(1).step_by(2) {
            let families = ["apiserver_", "etcd_", "workqueue_", "kcp_", "process_"];
            let units = ["_total", "_seconds", "_bytes", "_requests", "_objects"];
            let is_name = families.iter().any(|family| quoted.starts_with(family))
                && units.iter().any(|unit| quoted.ends_with(unit))
                && quoted
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit());
            let tests = path.components().any(|part| part.as_os_str() == "tests")
                || path.ends_with("tests.rs");
            if is_name && !tests {
                places.entry(quoted.to_owned()).or_default().insert(path.clone());
            }
        }
    }
    assert!(!places.is_empty(), "no metric has been found: the rule above is out of date");
    places.retain(|_, places| places.len() > 1);
    assert!(places.is_empty(), "{places:#?}");
}

#[test]
fn dependencies_have_licences_that_we_can_ship() {
    let metadata = metadata();
    let mut refused = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let licence = package["license"].as_str().unwrap_or_default();
        if !permits(licence) {
            refused.push(format!("{} {}: {licence:?}", package["name"], package["version"]));
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn some_crates_come_once_and_some_not_at_all() {
    // What is built; the metadata also name what only a feature that is off would bring.
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--workspace", "--locked", "--prefix=none", "--format={p}"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut versions = BTreeMap::<&str, BTreeSet<&str>>::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            versions.entry(name).or_default().insert(version);
        }
    }
    for name in SINGLE {
        let found = versions.get(name).map(BTreeSet::len);
        assert_eq!(found, Some(1), "{name}: {:?}", versions.get(name));
    }
    for name in BANNED {
        assert_eq!(versions.get(name), None, "{name}");
    }
}

#[test]
fn json_maps_sort_and_numbers_are_numbers() {
    let metadata = metadata();
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let node = nodes
        .iter()
        .find(|node| node["id"].as_str().is_some_and(|id| id.contains("#serde_json@")))
        .unwrap();
    let features = node["features"].as_array().unwrap();
    for feature in ["preserve_order", "arbitrary_precision"] {
        assert!(!features.contains(&Value::from(feature)), "serde_json has {feature}");
    }
}

/// Whether an SPDX expression can be met: every part of an `AND`, one of an `OR`.
fn permits(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], " ").replace('/', " OR ");
    let known = |licence: &str| LICENCES.contains(&licence.trim());
    !plain.trim().is_empty() && plain.split(" AND ").all(|part| part.split(" OR ").any(known))
}

#[test]
fn licence_expressions() {
    for good in ["MIT", "MIT OR GPL-3.0", "Apache-2.0/MIT", "(MIT OR X) AND ISC"] {
        assert!(permits(good), "{good}");
    }
    for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "MPL-2.0"] {
        assert!(!permits(bad), "{bad}");
    }
}
