//! OpenAPI v3: an index by group version, and one document for each.
//!
//! A document is made when it is first asked for and held by the definitions that it is made of,
//! so logical clusters that serve the same version share one copy. Its hash is in its URL: clients
//! keep what they have fetched for good.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use http::header::{CACHE_CONTROL, EXPIRES};
use http::{HeaderMap, HeaderValue, Response, Uri};
use jiff::{Timestamp, ToSpan};
use machinery::GroupVersion;
use parking_lot::Mutex;
use schema::{ResourceDef, Types};
use serde_json::{Map, Value, json};

use crate::discovery::{Document, Resources, moved, same};
use crate::http::body::Body;
use crate::http::negotiate::{self, Offers};
use crate::registry::Error;

/// Documents that are held. The built-in ones are about ten.
const HELD: usize = 256;

/// The documents of all logical clusters.
#[derive(Debug)]
pub(crate) struct OpenApi {
    types: Arc<Types>,
    /// Most recently used last.
    held: Mutex<Vec<Arc<Held>>>,
}

/// One document and what it was made of.
#[derive(Debug)]
struct Held {
    version: GroupVersion,
    resources: Resources,
    document: Arc<Document>,
}

// === impl OpenApi ===

impl OpenApi {
    /// Documents over these types.
    pub(crate) fn new(types: Arc<Types>) -> Self {
        Self { types, held: Mutex::default() }
    }

    /// `/openapi/v3`: where the document of each group version is.
    ///
    /// # Errors
    /// When the client does not take JSON.
    pub(crate) async fn index(
        self: &Arc<Self>,
        resources: &Resources,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Error> {
        let accepted = negotiate::accept(headers, Offers::default())?;
        let mut paths = Map::new();
        for version in versions(resources) {
            let document = self.document(version.clone(), resources).await?;
            let path = path_of(&version);
            let url = format!("/openapi/v3/{path}?hash={}", document.hash());
            paths.insert(path, json!({ "serverRelativeURL": url }));
        }
        let index = Document::tagged(&json!({ "paths": paths }), negotiate::JSON);
        Ok(index.answer(headers, accepted.encoding))
    }

    /// `/openapi/v3/PATH`; `None` where there is no such group version. A `hash` that is right
    /// makes the answer good for ever, a wrong one leads to the right one.
    ///
    /// # Errors
    /// When the client does not take JSON.
    pub(crate) async fn page(
        self: &Arc<Self>,
        resources: &Resources,
        path: &str,
        hash: Option<&str>,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Option<Response<Body>>, Error> {
        let accepted = negotiate::accept(headers, Offers::default())?;
        let Some(version) = versions(resources).into_iter().find(|gv| path_of(gv) == path) else {
            return Ok(None);
        };
        let document = self.document(version, resources).await?;
        let hash = hash.filter(|hash| !hash.is_empty());
        if hash.is_some_and(|hash| hash != document.hash()) {
            // The client's own path, so that the logical cluster stays in it.
            return Ok(moved(&format!("{}?hash={}", uri.path(), document.hash())));
        }
        let mut response = document.answer(headers, accepted.encoding);
        if hash.is_some() {
            let told = response.headers_mut();
            told.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
            if let Some(expires) = next_year() {
                told.insert(EXPIRES, expires);
            }
        }
        Ok(Some(response))
    }

    async fn document(
        self: &Arc<Self>,
        version: GroupVersion,
        resources: &Resources,
    ) -> Result<Arc<Document>, Error> {
        let resources = of_version(&version, resources);
        if let Some(held) = self.find(&version, &resources) {
            return Ok(held);
        }
        // Some milliseconds of work: not on the threads that serve connections.
        let this = self.clone();
        let work = tokio::task::spawn_blocking(move || this.make(version, resources));
        work.await.map_err(Error::internal)
    }

    fn find(&self, version: &GroupVersion, resources: &Resources) -> Option<Arc<Document>> {
        let mut held = self.held.lock();
        let fits = |held: &Arc<Held>| held.version == *version && same(&held.resources, resources);
        let at = held.iter().rposition(fits)?;
        let found = held.remove(at);
        let document = found.document.clone();
        held.push(found);
        Some(document)
    }

    fn make(&self, version: GroupVersion, resources: Resources) -> Arc<Document> {
        let defs: Vec<&ResourceDef> = resources.iter().map(Arc::as_ref).collect();
        let value: Value = schema::openapi::v3(&version, &defs, &[], &self.types);
        let document = Arc::new(Document::tagged(&value, negotiate::JSON));
        let mut held = self.held.lock();
        if held.len() >= HELD {
            held.remove(0);
        }
        held.push(Arc::new(Held { version, resources, document: document.clone() }));
        document
    }
}

/// The group versions that are served, in the order of discovery.
fn versions(resources: &Resources) -> Vec<GroupVersion> {
    let mut found: Vec<GroupVersion> = Vec::new();
    for resource in resources.iter() {
        for served in resource.versions.iter().filter(|version| version.served) {
            let version =
                GroupVersion { group: resource.group.clone(), version: served.name.clone() };
            if !found.contains(&version) {
                found.push(version);
            }
        }
    }
    found
}

fn of_version(version: &GroupVersion, resources: &Resources) -> Resources {
    let serves = |resource: &&Arc<ResourceDef>| {
        resource.group == version.group
            && resource.version(&version.version).is_some_and(|version| version.served)
    };
    resources.iter().filter(serves).cloned().collect()
}

fn path_of(version: &GroupVersion) -> String {
    let root = if version.group.is_empty() { "api" } else { "apis" };
    format!("{root}/{version}")
}

/// A year from now, as HTTP writes dates.
fn next_year() -> Option<HeaderValue> {
    let then = Timestamp::now().checked_add((365 * 24).hours()).ok()?;
    let text =
        jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&then).ok()?;
    HeaderValue::from_str(&text).ok()
}
