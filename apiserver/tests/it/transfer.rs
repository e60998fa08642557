//! Moving a store: export, import and compact on the command line.

use std::path::Path;
use std::process::{Command, Output};

use http::Method;
use serde_json::json;

use crate::client::Ask;
use crate::program::{Program, version};

const MAPS: &str = "/clusters/one/api/v1/namespaces/default/configmaps";

fn store(root: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kcp-apiserver"))
        .args(["store", "--root-directory"])
        .arg(root)
        .args(arguments)
        .output()
        .unwrap()
}

#[tokio::test]
async fn a_store_moves_with_all_that_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    let file = folder.path().join("export");
    let path = file.to_str().unwrap();
    let mut program = Program::start(&old);
    let body = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    let create = Ask::new(Method::POST, MAPS).json(&body);
    let created = program.client().await.ask(&create).await.unwrap().json();
    let refused = store(&old, &["export", path]);
    assert!(!refused.status.success(), "a server uses the store: {refused:?}");
    assert!(!file.exists(), "and nothing is left of the try");
    program.kill();
    let exported = store(&old, &["export", path]);
    assert!(exported.status.success(), "{exported:?}");
    assert!(!store(&old, &["export", path]).status.success(), "an export overwrites nothing");

    let cut = folder.path().join("cut");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&cut, &whole[..whole.len() - 20]).unwrap();
    let refused = store(&new, &["import", cut.to_str().unwrap()]);
    assert!(!refused.status.success(), "half an export is none: {refused:?}");
    let imported = store(&new, &["import", path]);
    assert!(imported.status.success(), "{imported:?}");
    assert!(!store(&new, &["import", path]).status.success(), "an import overwrites nothing");
    let compacted = store(&new, &["compact"]);
    assert!(compacted.status.success(), "{compacted:?}");

    let program = Program::start(&new);
    let get = Ask::get(&format!("{MAPS}/a"));
    let moved = program.client().await.ask(&get).await.unwrap().json();
    assert!(version(&moved) > version(&created), "above anything ever served");
    for part in ["data", "kind"] {
        assert_eq!(moved[part], created[part]);
    }
    assert_eq!(moved["metadata"]["uid"], created["metadata"]["uid"]);
}
