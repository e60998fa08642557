//! What is for those who debug a server: profiles, the filter of the log, the inner state.

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use apiserver::{InflightLimits, ProfilingOptions};
use flate2::read::GzDecoder;
use http::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::authority::Authority;
use crate::client::{Ask, Hub, PATIENCE, Who, ask_over, multiplex};
use crate::program::Program;

const RBAC: &str = "/clusters/root/apis/rbac.authorization.k8s.io/v1";
const PROFILE: &str = "/debug/pprof/profile?seconds=1";
const NOTHING: &str = "404 page not found\n";

async fn hub() -> Hub {
    Hub::start_with(|server| server.profiling(ProfilingOptions::default())).await
}

fn paths(index: &Value) -> Vec<&str> {
    index["paths"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect()
}

#[tokio::test]
async fn nothing_is_there_unless_it_is_wanted() {
    let hub = Hub::start_with(|server| server).await;
    for path in ["/debug", "/debug/flags/v", "/debug/pprof/", "/debug/state", PROFILE] {
        for method in [Method::GET, Method::PUT, Method::DELETE] {
            let answer = hub.admin(Ask::new(method, path)).await;
            assert_eq!((answer.status.as_u16(), answer.text()), (404, NOTHING), "{path}");
        }
    }
    let index = hub.get("/").await.json();
    assert!(!paths(&index).iter().any(|path| path.starts_with("/debug")), "{index}");
    hub.ask(Who::Anonymous, Ask::get("/debug/state")).await.fails(403, "Forbidden");
    hub.shutdown().await;
}

#[tokio::test]
async fn pages_are_for_whom_root_lets_see_them() {
    let (people, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let options = people.trusted(folder.path());
    let hub = Hub::start_with(|server| {
        server.auth(options.clone()).profiling(ProfilingOptions::default())
    })
    .await;
    let index = hub.get("/").await.json();
    for path in ["/debug/flags/v", "/debug/pprof", "/debug/state"] {
        assert!(paths(&index).contains(&path), "{index}");
    }
    let index = hub.get("/clusters/root/").await.json();
    assert!(!paths(&index).iter().any(|path| path.starts_with("/debug")), "{index}");

    let page = hub.get("/debug/pprof/").await;
    assert!(page.status == 200 && page.text().contains("profile: "), "{page:?}");
    let line = hub.get("/debug/pprof/cmdline").await;
    assert!(line.status == 200 && !line.text().is_empty(), "{line:?}");
    for path in ["/debug", "/debug/pprof/heap", "/debug/pprof/profile/x", "/debug/statement"] {
        assert_eq!(hub.get(path).await.status, 404, "{path}");
    }
    // There is no log in this process whose filter could be changed.
    assert_eq!(hub.get("/debug/flags/v").await.status, 404);
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let answer = hub.admin(Ask::new(method, "/debug/state")).await;
        answer.fails(405, "MethodNotAllowed");
        assert_eq!(answer.header("allow"), "GET, HEAD");
    }

    let (dora, eve) = (people.person("dora", &[]), people.person("eve", &[]));
    let rules = json!([{"verbs": ["get"], "nonResourceURLs": ["/debug/state"]}]);
    let role = json!({"metadata": {"name": "debug"}, "rules": rules});
    let binding = json!({
        "metadata": {"name": "debug"},
        "roleRef": {"kind": "ClusterRole", "name": "debug"},
        "subjects": [{"kind": "User", "name": "dora"}],
    });
    for (kind, body) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let made = hub.admin(Ask::new(Method::POST, &format!("{RBAC}/{kind}")).json(&body)).await;
        assert_eq!(made.status, 201, "{made:?}");
    }
    let get =
        async |who, path: &str| ask_over(hub.connect_as(Some(who)).await, &Ask::get(path)).await;
    assert_eq!(get(&dora, "/debug/state").await.status, 200);
    for path in [PROFILE, "/debug/pprof/", "/debug/flags/v"] {
        get(&dora, path).await.fails(403, "Forbidden");
    }
    let text = get(&eve, "/debug/state").await.fails(403, "Forbidden");
    assert_eq!(text, "forbidden: User \"eve\" cannot get path \"/debug/state\"");
    hub.shutdown().await;
}

#[tokio::test]
async fn the_inner_state_is_told() {
    let hub = hub().await;
    let maps = "/clusters/one/api/v1/namespaces/default/configmaps";
    let secret = "c2VjcmV0LW9mLW9uZQ==";
    for name in ["a", "b"] {
        let body = json!({"metadata": {"name": name}, "data": {"k": secret}});
        let made = hub.admin(Ask::new(Method::POST, maps).json(&body)).await;
        assert_eq!(made.status, 201, "{made:?}");
    }
    let stream = hub.connect(Who::Admin, b"h2").await;
    let (mut sender, connection) = multiplex(stream).await;
    let tasks = runtime::Tasks::new();
    drop(tasks.spawn(tracing::Span::none(), connection));
    let watch = Ask::get(&format!("{maps}?watch=1")).request("https://localhost");
    let watch = sender.send_request(watch).await.unwrap();
    assert_eq!(watch.status(), 200);
    let answer = hub.get("/debug/state").await;
    let state = answer.json();
    assert_eq!(state["objects"]["configmaps"], 2, "{state}");
    let here = json!({"cluster": "one", "taken": 1});
    // Where the server that answers is the one that has the watch.
    if hub.servers() == 1 {
        assert_eq!(state["fairness"]["watches"]["largest"], json!([here]), "{state}");
        assert!(state["connections"].as_i64().unwrap() >= 2, "{state}");
    }
    let seats = InflightLimits::default().reads;
    assert_eq!(state["fairness"]["reads"]["seats"], seats, "{state}");
    assert!(state["logicalClusters"].as_u64().unwrap() >= 3, "{state}");
    let largest = state["cache"]["largest"].as_array().unwrap();
    assert!(largest.contains(&json!({"cluster": "one", "objects": 2})), "{state}");
    assert!(state["cache"]["watchers"].as_u64().unwrap() > 5, "{state}");
    assert!(state["store"]["revision"].as_u64().unwrap() > 0, "{state}");
    assert!(state["queues"]["garbage"].is_i64(), "{state}");
    assert!(state["process"]["process_resident_memory_bytes"].as_f64().unwrap() > 1e6);
    let text = answer.text();
    assert!(!text.contains(secret) && !text.contains("secret-of-one") && text.len() < 64 << 10);
    drop((watch, sender));
    tasks.cancel();
    hub.shutdown().await;
}

/// One test, as there is one profile at a time in a process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn profiles_are_taken_and_bounded() {
    let hub = hub().await;
    for bad in ["0", "61", "-5", "x", "1.5", ""] {
        let path = format!("/debug/pprof/profile?seconds={bad}");
        let text = hub.get(&path).await.fails(400, "BadRequest");
        assert_eq!(text, "seconds must be a whole number from 1 to 60");
    }
    let took = hub.get(PROFILE).await;
    assert_eq!(took.status, 200, "{took:?}");
    assert_eq!(took.header("content-type"), "application/octet-stream");
    let mut plain = Vec::new();
    GzDecoder::new(&*took.body).read_to_end(&mut plain).unwrap();
    // The first field is the first type of its samples, of two numbers of strings.
    assert_eq!((plain[0], plain[1]), (0x0a, 4), "{:?}", &plain[..8]);
    let text = String::from_utf8_lossy(&plain);
    assert!(text.contains("samples") && text.contains("nanoseconds"));

    // While one is taken, nobody else gets one; when its client has gone, the next may.
    let stream = hub.connect(Who::Admin, b"h2").await;
    let (mut sender, connection) = multiplex(stream).await;
    let tasks = runtime::Tasks::new();
    drop(tasks.spawn(tracing::Span::none(), connection));
    let mut long = Box::pin(async {
        loop {
            let ask = Ask::get("/debug/pprof/profile?seconds=60").request("https://localhost");
            let answer = sender.send_request(ask).await.unwrap();
            // One of those below was quicker.
            assert_eq!(answer.status(), 429, "{answer:?}");
        }
    });
    let busy = async {
        loop {
            let answer = hub.get(PROFILE).await;
            if answer.status == 429 {
                return answer;
            }
        }
    };
    let refused = tokio::select! {
        () = &mut long => panic!("it has no end"),
        refused = timeout(PATIENCE, busy) => refused.expect("the long one begins"),
    };
    assert_eq!(refused.fails(429, "TooManyRequests"), "another profile is being taken");
    assert_eq!(refused.header("retry-after"), "");
    // The connection stays: the request alone is given up.
    drop(long);
    let free = async {
        loop {
            let answer = hub.get(PROFILE).await;
            if answer.status == 200 {
                return;
            }
            assert_eq!(answer.status, 429, "{answer:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, free).await.expect("a client that goes away ends its profile");
    drop(sender);
    hub.shutdown().await;
}

#[tokio::test]
async fn the_filter_of_the_log_changes_at_run_time() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("log");
    let log = std::fs::File::create(&path).unwrap();
    let flags = ["--profiling", "--log-filter=info", "--log-format=json"];
    let program = Program::start_with(root.path(), &flags, Stdio::from(log));
    let mut client = program.client().await;
    let flag = "/debug/flags/v";
    let shown = client.ask(&Ask::get(flag)).await.unwrap();
    assert_eq!((shown.status.as_u16(), shown.text()), (200, "info\n"));
    let secret = "a-token-that-nobody-sees";
    let ask = Ask::new(Method::POST, "/api/v1/namespaces/default/secrets")
        .header("x-probe", secret)
        .json(&json!({"metadata": {"name": "s"}, "stringData": {"k": secret}}));
    let answered = |text: &str| text.matches("\"answered\"").count();
    let lines = || std::fs::read_to_string(&path).unwrap();
    assert_eq!(client.ask(&ask).await.unwrap().status, 201);
    assert_eq!(answered(&lines()), 0, "{}", lines());
    for (body, filter) in [
        ("10", "trace"),
        ("warn,apiserver::http=debug", "warn,apiserver::http=debug"),
        ("trace,h2=trace,hyper=trace", "trace,h2=trace,hyper=trace"),
    ] {
        let set = client.ask(&Ask::new(Method::PUT, flag).body(body)).await.unwrap();
        let told = format!("successfully set the log filter to {filter}\n");
        assert_eq!((set.status.as_u16(), set.text()), (200, told.as_str()));
        let shown = client.ask(&Ask::get(flag)).await.unwrap();
        assert_eq!(shown.text(), format!("{filter}\n"));
        let before = answered(&lines());
        let again = ask.clone().header("authorization", &format!("Bearer {secret}"));
        client.ask(&again).await.unwrap();
        assert!(answered(&lines()) > before, "{}", lines());
    }
    let text = lines();
    assert!(!text.contains(secret) && !text.contains("YS10b2tlbi10aGF0"), "{text}");
    assert!(!text.contains("\"h2::") && !text.contains("\"hyper::"), "{text}");
    for bad in ["", "11", "loud", "apiserver=loud", "[x]=trace", "a=info,,b=info"] {
        let refused = client.ask(&Ask::new(Method::PUT, flag).body(bad)).await.unwrap();
        refused.fails(400, "BadRequest");
    }
    let refused = client.ask(&Ask::new(Method::POST, flag).body("4")).await.unwrap();
    refused.fails(405, "MethodNotAllowed");
    assert_eq!(refused.header("allow"), "GET, HEAD, PUT");
    let quiet = client.ask(&Ask::new(Method::PUT, flag).body("error")).await.unwrap();
    assert_eq!(quiet.status, 200);
    let before = answered(&lines());
    client.ask(&ask).await.unwrap();
    assert_eq!(answered(&lines()), before, "{}", lines());
}
