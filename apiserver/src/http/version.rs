//! `/version`: what this server says it is.

use serde_json::json;

/// The minor release of Kubernetes whose API this is.
const MINOR: &str = "36";

/// The release of Kubernetes whose API this is. What follows a `+` does not count for version
/// ranges; a `-` would.
const KUBERNETES: &str = "v1.36.3";

/// The body of the answer.
pub(crate) fn version() -> String {
    let platform = format!("{}/{}", std::env::consts::OS, go_arch());
    json!({
        "major": "1",
        "minor": MINOR,
        "gitVersion": format!("{KUBERNETES}+kcp-rs-v{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": option_env!("KCP_GIT_COMMIT").unwrap_or_default(),
        "gitTreeState": option_env!("KCP_GIT_TREE_STATE").unwrap_or("clean"),
        "buildDate": option_env!("KCP_BUILD_DATE").unwrap_or("1970-01-01T00:00:00Z"),
        "goVersion": "",
        "compiler": "rustc",
        "platform": platform,
    })
    .to_string()
}

/// The architecture by Go's name, which clients know.
fn go_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn it_reads_as_a_release_of_kubernetes() {
        let told: Value = serde_json::from_str(&version()).unwrap();
        assert_eq!((&told["major"], &told["minor"]), (&"1".into(), &"36".into()));
        let git = told["gitVersion"].as_str().unwrap();
        let (release, build) = git.split_once('+').unwrap();
        assert_eq!(release.split('.').count(), 3);
        assert!(!release.contains('-') && build.starts_with("kcp-rs-v"));
        assert_eq!(told.as_object().unwrap().len(), 9);
    }
}
