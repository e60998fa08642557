//! What is for those who debug a server, below `/debug`: profiles, the filter of the log, and the
//! server's inner state.
//!
//! # Invariants
//! - Without `--profiling` nothing is there.
//! - They are the server's and no logical cluster's: only a path that names none leads to them, and
//!   only for callers whom it leads to `root`. So no right that a tenant can be given is enough.
//! - They tell of tenants the names of logical clusters, and nothing that stands in objects.

mod state;

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, Response, StatusCode};
use runtime::logs::{FilterError, LogFilter};
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::body::Body;
use super::handler::method_not_allowed;
use super::query::Query;
use super::{App, Call, Seen, json, not_found_page, text};
use crate::profiling::{ProfileError, Profiler, ProfilingOptions};
use crate::registry::{ClusterScope, Error, Reason};

/// A profile of the CPU.
pub(super) const PROFILE: &str = "/debug/pprof/profile";

/// How long it may be sampled for.
pub(super) const LONGEST_PROFILE: Duration = Duration::from_secs(60);

/// How long it is sampled for where the client does not say, as Go's.
const USUAL_PROFILE: Duration = Duration::from_secs(30);

/// What there is below `/debug/pprof/`, for people.
const PROFILES: &str = "\
/debug/pprof/

cmdline: the command line of this program
profile: a CPU profile; ?seconds=N says for how long, from 1 to 60, 30 by default.
         One is taken at a time. Read it with: go tool pprof FILE
";

/// What those need who debug a server.
#[derive(Debug)]
pub(crate) struct Debugging {
    profiler: Profiler,
    logs: Option<std::sync::Arc<LogFilter>>,
}

// === impl Debugging ===

impl Debugging {
    /// For a server with a folder of its own, maybe, until it is `ending`.
    pub(crate) fn new(
        options: &ProfilingOptions,
        root: Option<PathBuf>,
        ending: CancellationToken,
    ) -> Self {
        Self { profiler: Profiler::new(root, ending), logs: options.logs.clone() }
    }
}

// === impl App ===

impl App {
    /// What is for those who debug, where a request may find it.
    pub(super) fn debug_of(&self, call: Call<'_>) -> Option<&Debugging> {
        let ClusterScope::One(cluster) = &call.info.cluster else { return None };
        let leads = !call.info.names_cluster && cluster.is_root();
        self.debug.as_ref().filter(|_| leads)
    }

    /// Answers a path below `/debug`.
    pub(super) async fn debug_page<B>(
        &self,
        call: Call<'_>,
        path: &str,
        body: B,
        seen: &mut Seen,
    ) -> Result<Response<Body>, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
    {
        let Some(debug) = self.debug_of(call) else { return Ok(not_found_page()) };
        let reads = matches!(call.parts.method, Method::GET | Method::HEAD);
        if path == "/debug/flags/v" {
            let Some(logs) = &debug.logs else { return Ok(not_found_page()) };
            return match call.parts.method {
                Method::PUT => self.filter_log(call, logs, body).await,
                _ if reads => Ok(text(StatusCode::OK, logs.text() + "\n")),
                _ => Ok(method_not_allowed(None, "GET, HEAD, PUT", call)),
            };
        }
        let known = ["/debug/pprof", "/debug/pprof/cmdline", PROFILE, "/debug/state"];
        if !known.contains(&path) {
            return Ok(not_found_page());
        }
        if !reads {
            return Ok(method_not_allowed(None, "GET, HEAD", call));
        }
        Ok(match path {
            PROFILE => {
                let length = length_of(call.query)?;
                seen.as_long_as_asked = true;
                let profile = debug.profiler.take(length).await.map_err(refused)?;
                download(profile)
            }
            "/debug/pprof/cmdline" => text(StatusCode::OK, command_line()),
            "/debug/state" => json(self.state().await.to_string()),
            _ => text(StatusCode::OK, PROFILES),
        })
    }

    /// Filters the log by what the body says.
    async fn filter_log<B>(
        &self,
        call: Call<'_>,
        logs: &LogFilter,
        body: B,
    ) -> Result<Response<Body>, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
    {
        let (bytes, _memory) = self.read_body(call, body).await?;
        let wanted = std::str::from_utf8(&bytes)
            .map_err(|_| Error::bad_request("the filter of the log is not UTF-8"))?;
        let filter = logs.set(wanted).map_err(|error| match error {
            FilterError::Malformed(_) | FilterError::TooLong => {
                Error::bad_request(error.to_string())
            }
            FilterError::Closed => Error::new(Reason::ServiceUnavailable, error.to_string()),
        })?;
        info!(user = call.user.name, filter, "the filter of the log was changed");
        Ok(text(StatusCode::OK, format!("successfully set the log filter to {filter}\n")))
    }
}

/// How long is to be sampled.
fn length_of(query: &Query<'_>) -> Result<Duration, Error> {
    let Some(text) = query.get("seconds") else { return Ok(USUAL_PROFILE) };
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0).map(Duration::from_secs);
    seconds.filter(|length| *length <= LONGEST_PROFILE).ok_or_else(|| {
        let most = LONGEST_PROFILE.as_secs();
        Error::bad_request(format!("seconds must be a whole number from 1 to {most}"))
    })
}

/// The error of a profile that was not taken.
fn refused(error: ProfileError) -> Error {
    match error {
        // No time to come back is told: clients that obey it would queue up for what is to be rare.
        ProfileError::Busy => Error::generic(Reason::TooManyRequests, error.to_string()),
        ProfileError::Ending => Error::new(Reason::ServiceUnavailable, error.to_string()),
        ProfileError::Sampler(_)
        | ProfileError::Write(_)
        | ProfileError::Thread(_)
        | ProfileError::Lost(_) => Error::internal(error),
    }
}

/// A file for whoever asked.
fn download(bytes: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::full(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    let name = HeaderValue::from_static("attachment; filename=\"profile\"");
    headers.insert(CONTENT_DISPOSITION, name);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The program and its arguments, a zero byte between them, as Go has it. No flag of ours holds a
/// secret: they name files.
fn command_line() -> String {
    let arguments: Vec<String> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    arguments.join("\0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_bounded() {
        let check = |query: &str, expect: Option<u64>| {
            let length = length_of(&Query::parse(Some(query)).unwrap());
            assert_eq!(length.ok(), expect.map(Duration::from_secs), "{query}");
        };
        check("", Some(30));
        check("seconds=1", Some(1));
        check("debug=1&seconds=60", Some(60));
        for bad in ["0", "61", "-1", "1.5", "1s", "", "x", "99999999999999999999"] {
            check(&format!("seconds={bad}"), None);
        }
    }
}
