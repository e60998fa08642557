//! `/healthz`, `/livez` and `/readyz`: whether the server lives, and whether it can answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use http::{Response, StatusCode};
use store::Store;
use tokio_util::sync::CancellationToken;

use super::body::Body;
use super::query::Query;

/// A check that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(2);

/// The checks of one server.
pub(crate) struct Health {
    checks: Vec<Check>,
}

struct Check {
    name: &'static str,
    /// Whether a failure means that a restart would help; else it concerns `/readyz` only.
    live: bool,
    run: Box<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>,
}

// === impl Health ===

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.checks.iter().map(|check| check.name)).finish()
    }
}

impl Health {
    /// The checks of a server over `store`, which is ready until `ending`.
    pub(crate) fn new(store: Arc<dyn Store>, ending: CancellationToken) -> Self {
        let mut checks = vec![Check {
            name: "ping",
            live: true,
            run: Box::new(|| Box::pin(std::future::ready(true))),
        }];
        let reads = move || -> BoxFuture<'static, bool> {
            let store = store.clone();
            Box::pin(async move { store.revision().await.is_ok() })
        };
        checks.push(Check { name: "store", live: true, run: Box::new(reads) });
        let stays = move || -> BoxFuture<'static, bool> {
            Box::pin(std::future::ready(!ending.is_cancelled()))
        };
        checks.push(Check { name: "shutdown", live: false, run: Box::new(stays) });
        Self { checks }
    }

    /// Answers `/healthz`, `/livez`, `/readyz` and single checks below them. `None` where there is
    /// no such path.
    pub(crate) async fn answer(&self, path: &str, query: &Query<'_>) -> Option<Response<Body>> {
        let path = path.trim_matches('/');
        let (endpoint, single) = path.split_once('/').unwrap_or((path, ""));
        if !matches!(endpoint, "healthz" | "livez" | "readyz") {
            return None;
        }
        let belongs = |check: &&Check| check.live || endpoint == "readyz";
        if !single.is_empty() {
            let check = self.checks.iter().filter(belongs).find(|check| check.name == single)?;
            let text = if passes(check).await { "ok" } else { "internal server error" };
            return Some(page(text == "ok", text.to_owned()));
        }
        let excluded: Vec<&str> = query.all("exclude").filter(|name| !name.is_empty()).collect();
        let runs = self.checks.iter().filter(belongs).map(|check| async {
            let left_out = excluded.contains(&check.name);
            (check.name, left_out, left_out || passes(check).await)
        });
        let results = join_all(runs).await;
        let well = results.iter().all(|(_, _, passed)| *passed);
        let unknown: Vec<&&str> = excluded
            .iter()
            .filter(|name| results.iter().all(|(known, ..)| known != *name))
            .collect();
        if well && query.get("verbose").is_none() && unknown.is_empty() {
            return Some(page(true, "ok".to_owned()));
        }
        let mut text = String::new();
        for (name, left_out, passed) in results {
            text.push_str(&match (left_out, passed) {
                (true, _) => format!("[+]{name} excluded: ok\n"),
                (false, true) => format!("[+]{name} ok\n"),
                (false, false) => format!("[-]{name} failed: reason withheld\n"),
            });
        }
        for name in unknown {
            let name = machinery::field::go_quote(name);
            text.push_str(&format!("warn: no check {name} to exclude\n"));
        }
        text.push_str(&format!("{endpoint} check {}\n", if well { "passed" } else { "failed" }));
        Some(page(well, text))
    }
}

async fn passes(check: &Check) -> bool {
    tokio::time::timeout(PATIENCE, (check.run)()).await.unwrap_or(false)
}

fn page(well: bool, text: String) -> Response<Body> {
    let code = if well { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
    let mut response = super::text(code, text);
    let plain = http::HeaderValue::from_static("nosniff");
    response.headers_mut().insert(http::header::X_CONTENT_TYPE_OPTIONS, plain);
    response
}
