//! Flags, and what they are refused for.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::CommandFactory;

use super::*;

const CA: &str = "-----BEGIN CERTIFICATE-----\nMAo=\n-----END CERTIFICATE-----\n";

fn options(server: &str, flags: &[&str]) -> anyhow::Result<Options> {
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("operator.kubeconfig");
    let text = serde_json::json!({
        "clusters": [{"name": "c", "cluster": {
            "server": server, "certificate-authority-data": STANDARD.encode(CA),
        }}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    });
    std::fs::write(&kubeconfig, text.to_string()).unwrap();
    std::fs::write(directory.path().join("pull"), r#"{"auths": {}}"#).unwrap();
    std::fs::write(directory.path().join("other"), "secret").unwrap();
    let mut all = vec!["kcp-operator".to_owned(), format!("--kubeconfig={}", kubeconfig.display())];
    let at = directory.path().display().to_string();
    all.extend(flags.iter().map(|flag| flag.replace("DIR", &at)));
    Args::try_parse_from(all)?.options()
}

#[test]
fn flags_are_as_documented() {
    Args::command().debug_assert();
    let options = options(
        "https://hub:6443/clusters/root",
        &[
            "--hub-url=https://outside/x/clusters/a",
            "--image-pull-secret=DIR/pull",
            "--drain-timeout=2m",
        ],
    )
    .unwrap();
    assert_eq!(options.hub.server.to_string(), "https://hub:6443");
    assert_eq!(options.agents.hub, "https://outside/x");
    assert_eq!(options.agents.authority.as_deref(), Some(CA));
    assert_eq!(options.drain_timeout, Duration::from_secs(120));
    assert!(!format!("{options:?}").contains("auths"));
}

/// Agents would look for the hub in their own pod.
#[test]
fn a_local_hub_is_refused_with_advice() {
    for server in [
        "https://localhost:6443",
        "https://127.0.0.1:6443/clusters/root",
        "https://[::1]:6443",
        "https://0.0.0.0",
    ] {
        let told = options(server, &[]).unwrap_err().to_string();
        assert!(told.contains("--hub-url") && told.contains("--allow-local-hub"), "{told}");
        assert!(options(server, &["--allow-local-hub"]).is_ok(), "{server}");
        assert!(options(server, &["--hub-url=https://hub"]).is_ok(), "{server}");
    }
    for server in ["https://hub.example", "https://10.1.2.3:6443"] {
        assert!(options(server, &[]).is_ok(), "{server}");
    }
}

#[test]
fn what_flags_name_is_checked() {
    for flag in [
        "--image-pull-secret=DIR/other",
        "--image-pull-secret=DIR/none",
        "--hub-ca-file=DIR/other",
        "--hub-url=http://hub",
        "--drain-timeout=0s",
        "--drain-timeout=5",
        "--allow-outbound=x",
        "--default-mode=other",
    ] {
        let told = options("https://hub", &[flag]).unwrap_err();
        assert!(!format!("{told:#}").contains("secret\""), "{flag}: {told:#}");
    }
}
