use serde_json::json;

use super::*;

fn data(text: &str) -> String {
    STANDARD.encode(format!("-----BEGIN {text}-----"))
}

fn config() -> Value {
    json!({
        "clusters": [{"name": "c", "cluster": {
            "server": "https://host:1/clusters/x/",
            "certificate-authority-data": data("CA"),
        }}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [
            {"name": "a", "context": {"cluster": "c", "user": "u"}},
            {"name": "b", "context": {"cluster": "c", "user": "nobody"}},
        ],
        "current-context": "a",
    })
}

fn parse(config: &Value) -> Result<Access, KubeconfigError> {
    Access::parse(config.to_string().as_bytes(), None)
}

#[test]
fn says_where_and_as_whom() {
    let access = parse(&config()).unwrap();
    assert_eq!(access.server, "https://host:1/clusters/x");
    assert!(matches!(&access.identity, Identity::Token(token) if token == "t"));
    assert_eq!(access.authority.as_deref(), Some(b"-----BEGIN CA-----".as_slice()));
    let shown = format!("{access:?} {:?}", access.identity);
    assert_eq!(shown, "Access { server: \"https://host:1/clusters/x\", .. } Token");

    let mut without_contexts = config();
    without_contexts.as_object_mut().unwrap().remove("contexts");
    without_contexts.as_object_mut().unwrap().remove("current-context");
    assert_eq!(parse(&without_contexts).unwrap().server, access.server);

    // A certificate is used before a token, as kubectl does.
    let mut both = config();
    both["users"][0]["user"]["client-certificate-data"] = json!(data("CERTIFICATE"));
    both["users"][0]["user"]["client-key-data"] = json!(data("KEY"));
    assert!(matches!(parse(&both).unwrap().identity, Identity::Certificate { .. }));
}

#[test]
fn each_refusal_says_why() {
    let check = |pointer: &str, field: &str, value: Value, expect: &str| {
        let mut config = config();
        config.pointer_mut(pointer).unwrap()[field] = value;
        assert_eq!(parse(&config).unwrap_err().to_string(), expect);
    };
    let cluster = "/clusters/0/cluster";
    let user = "/users/0/user";
    check("", "current-context", json!("x"), "it has no context named \"x\"");
    check("", "current-context", json!("b"), "it has no user named \"nobody\"");
    check("", "clusters", json!("x"), "it has no cluster named \"c\"");
    check(cluster, "server", json!(""), "it lacks a server");
    check(cluster, "server", json!("http://x"), "its server does not begin with https://");
    check(
        cluster,
        "certificate-authority-data",
        json!("..."),
        "its certificate-authority-data is a placeholder",
    );
    check(
        cluster,
        "certificate-authority-data",
        json!("AAAA"),
        "its certificate-authority-data holds no PEM",
    );
    check(user, "token", json!(""), "it lacks a token or a client certificate");
    check(user, "client-key-data", json!(data("KEY")), "it lacks client-certificate-data");
    check(user, "client-certificate-data", json!(data("C")), "it lacks client-key-data");
    for (pointer, fields) in [(cluster, OF_CLUSTER.as_slice()), (user, OF_USER.as_slice())] {
        for (field, reason) in fields {
            let expect = format!("its {field} is not followed: {reason}");
            check(pointer, field, json!(["x"]), &expect);
        }
    }
    let unharmed = {
        let mut config = config();
        config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = json!(false);
        config
    };
    assert!(parse(&unharmed).is_ok());
}

#[test]
fn nonsense_is_told() {
    for text in ["", "[]", "x", "clusters: 1", "clusters: [1]\nusers: [2]"] {
        assert!(Access::parse(text.as_bytes(), None).is_err(), "{text}");
    }
    assert!(matches!(Access::parse(b"\t:", None), Err(KubeconfigError::Unreadable(_))));
}

#[test]
fn files_that_a_kubeconfig_names_are_read() {
    let read = |path: &str| match path {
        "ca" => Ok(b"-----BEGIN CA-----".to_vec()),
        "chain" => Ok(b"-----BEGIN CERTIFICATE-----".to_vec()),
        "key" => Ok(b"-----BEGIN KEY-----".to_vec()),
        _ => Err("no such file".to_owned()),
    };
    let own = |config: &Value| Access::parse(config.to_string().as_bytes(), Some(&read));
    let mut config = config();
    let cluster = json!({"server": "https://host", "certificate-authority": "ca"});
    config["clusters"][0]["cluster"] = cluster;
    config["users"][0]["user"] = json!({"client-certificate": "chain", "client-key": "key"});
    let access = own(&config).unwrap();
    assert_eq!(access.authority.as_deref(), Some(b"-----BEGIN CA-----".as_slice()));
    let Identity::Certificate { chain, key } = access.identity else { panic!("a certificate") };
    assert_eq!(
        (chain.as_slice(), key.as_slice()),
        (b"-----BEGIN CERTIFICATE-----".as_slice(), b"-----BEGIN KEY-----".as_slice())
    );
    // What it holds itself goes before.
    config["clusters"][0]["cluster"]["certificate-authority-data"] = json!(data("OWN"));
    let access = own(&config).unwrap();
    assert_eq!(access.authority.as_deref(), Some(b"-----BEGIN OWN-----".as_slice()));

    config["users"][0]["user"] = json!({"tokenFile": "token"});
    config["clusters"][0]["cluster"] = json!({"server": "https://host"});
    let access = own(&config).unwrap();
    assert!(matches!(&access.identity, Identity::TokenFile(path) if path == "token"));
    assert_eq!(access.authority, None, "the system's");
    config["users"][0]["user"] = json!({"client-certificate": "none", "client-key": "key"});
    let told = own(&config).unwrap_err().to_string();
    assert_eq!(told, "its client-certificate \"none\" can't be read: no such file");
    config["users"][0]["user"] = json!({"exec": {"command": "x"}});
    assert!(own(&config).unwrap_err().to_string().starts_with("its exec is not followed"));
}

#[test]
fn files_of_a_stranger_are_refused() {
    for (pointer, field) in [
        ("/clusters/0/cluster", "certificate-authority"),
        ("/users/0/user", "client-certificate"),
        ("/users/0/user", "client-key"),
        ("/users/0/user", "tokenFile"),
    ] {
        let mut config = config();
        config.pointer_mut(pointer).unwrap()[field] = json!("/etc/passwd");
        let told = parse(&config).unwrap_err().to_string();
        assert_eq!(told, format!("its {field} is not followed: {NO_FILES}"));
    }
}

/// Who has left several things undone is told all of them at once.
#[test]
fn all_problems_are_told() {
    let check = |cluster: Value, user: Value, expect: &[&str]| {
        let config = json!({
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
        });
        let problems = Access::judge(config.to_string().as_bytes(), None).unwrap_err();
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(told, expect);
    };
    check(
        json!({"server": "...", "certificate-authority-data": "..."}),
        json!({"client-certificate-data": "...", "client-key-data": "..."}),
        &[
            "its server is a placeholder",
            "its certificate-authority-data is a placeholder",
            "its client-certificate-data is a placeholder",
            "its client-key-data is a placeholder",
        ],
    );
    check(
        json!({"server": "https://a", "insecure-skip-tls-verify": true, "proxy-url": "http://b"}),
        json!({"exec": {"command": "x"}}),
        &[
            "its proxy-url is not followed: requests go to the cluster itself",
            "its insecure-skip-tls-verify is not followed: whoever answers could be anyone",
            "its exec is not followed: no programs are run; use a token or a client certificate",
        ],
    );
    check(
        json!({"server": "https://a", "certificate-authority": "/etc/passwd"}),
        json!({"tokenFile": "/etc/shadow"}),
        &[
            "its certificate-authority is not followed: no files are read; put the content into \
             the kubeconfig",
            "its tokenFile is not followed: no files are read; put the content into the kubeconfig",
        ],
    );
    check(
        json!({}),
        json!({"token": "<...>"}),
        &["it lacks a server", "its token is a placeholder"],
    );
}
