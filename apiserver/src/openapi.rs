//! OpenAPI: v3 with an index by group version and one document for each, v2 with one for all.
//!
//! A document is made when it is first asked for and held by the definitions that it is made of
//! (`held.rs`), so logical clusters that serve the same share one copy, and a type that changes is
//! seen at once. The hash of a v3 document is in its URL: clients keep what they have fetched for
//! good. A document's protobuf form has the hash of its JSON.

mod accept;
mod held;
mod make;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use http::header::{CACHE_CONTROL, EXPIRES};
use http::{HeaderMap, HeaderValue, Response, Uri};
use jiff::{Timestamp, ToSpan};
use machinery::GroupVersion;
use parking_lot::Mutex;
use schema::{ResourceDef, Types};
use serde_json::{Map, json};
use tokio::sync::Mutex as Turn;

use crate::discovery::{Document, Resources, moved};
use crate::http::body::Body;
use crate::http::negotiate::{self, Encoding};
use crate::registry::Error;
use accept::Form;
use held::{Held, Key, What};
use make::Made;

pub(crate) use accept::{Family, media_type};
pub(crate) use make::Surface;

/// The documents of all logical clusters.
#[derive(Debug)]
pub(crate) struct OpenApi {
    types: Arc<Types>,
    held: Arc<Mutex<Held>>,
    /// Documents are made one at a time: it is work for a processor, and those who want the same
    /// one find it made when it is their turn.
    turn: Arc<Turn<()>>,
}

// === impl OpenApi ===

impl OpenApi {
    /// Documents over these types.
    pub(crate) fn new(types: Arc<Types>) -> Self {
        Self { types, held: Arc::default(), turn: Arc::default() }
    }

    /// How many documents are known, and the bytes of those that are held.
    pub(crate) fn size(&self) -> (usize, usize) {
        self.held.lock().size()
    }

    /// `/openapi/v3`: where the document of each group version is.
    ///
    /// # Errors
    /// When a document can't be made.
    pub(crate) async fn index(
        &self,
        surface: &Surface,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Error> {
        let key = Key::new(What::Index, &surface.resources);
        let found = self.held.lock().document(&key, Form::Json);
        if let Some(index) = found {
            return Ok(index.answer(headers, Encoding::Json));
        }
        let mut paths = Map::new();
        let mut is_whole = true;
        for version in versions(&surface.resources) {
            let path = path_of(&version);
            let resources = of_version(&version, &surface.resources);
            let key = Key::new(What::Version(version), &resources);
            let known = self.held.lock().hash(&key);
            let hash = match known {
                Some(hash) => hash,
                None => {
                    let made = self.make(key, surface, resources, Form::Json).await?;
                    is_whole &= made.is_whole;
                    made.hash
                }
            };
            let url = format!("/openapi/v3/{path}?hash={hash}");
            paths.insert(path, json!({ "serverRelativeURL": url }));
        }
        let index = Arc::new(Document::tagged(&json!({ "paths": paths }), negotiate::JSON));
        if is_whole {
            self.held.lock().insert(&key, &surface.resources, Form::Json, &index);
        }
        Ok(index.answer(headers, Encoding::Json))
    }

    /// `/openapi/v3/PATH`; `None` where there is no such group version. A `hash` that is right
    /// makes the answer good for ever, a wrong one leads to the right one.
    ///
    /// # Errors
    /// When the client takes neither JSON nor protobuf.
    pub(crate) async fn page(
        &self,
        surface: &Surface,
        path: &str,
        hash: Option<&str>,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Option<Response<Body>>, Error> {
        let form = accept::form(headers, Family::V3)?;
        let Some(version) = versions(&surface.resources).into_iter().find(|gv| path_of(gv) == path)
        else {
            return Ok(None);
        };
        let resources = of_version(&version, &surface.resources);
        let document = self.document(What::Version(version), surface, resources, form).await?;
        let hash = hash.filter(|hash| !hash.is_empty());
        if hash.is_some_and(|hash| hash != document.hash()) {
            // The client's own path, so that the logical cluster stays in it.
            return Ok(moved(&format!("{}?hash={}", uri.path(), document.hash())));
        }
        let mut response = document.answer(headers, Encoding::Json);
        if hash.is_some() {
            let told = response.headers_mut();
            told.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
            if let Some(expires) = next_year() {
                told.insert(EXPIRES, expires);
            }
        }
        Ok(Some(response))
    }

    /// `/openapi/v2`: everything that is served.
    ///
    /// # Errors
    /// When the client takes neither JSON nor protobuf.
    pub(crate) async fn whole(
        &self,
        surface: &Surface,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Error> {
        let form = accept::form(headers, Family::V2)?;
        let resources = surface.resources.clone();
        let document = self.document(What::Whole, surface, resources, form).await?;
        Ok(document.answer(headers, Encoding::Json))
    }

    async fn document(
        &self,
        what: What,
        surface: &Surface,
        resources: Resources,
        form: Form,
    ) -> Result<Arc<Document>, Error> {
        let key = Key::new(what, &resources);
        let found = self.held.lock().document(&key, form);
        if let Some(found) = found {
            return Ok(found);
        }
        Ok(self.make(key, surface, resources, form).await?.document)
    }

    /// Makes a document, unless somebody else did it first.
    async fn make(
        &self,
        key: Key,
        surface: &Surface,
        resources: Resources,
        form: Form,
    ) -> Result<Made, Error> {
        let turn = self.turn.clone().lock_owned().await;
        let found = self.held.lock().document(&key, form);
        if let Some(document) = found {
            return Ok(Made { hash: document.hash().into(), document, is_whole: true });
        }
        let surface = surface.clone();
        let (types, held) = (self.types.clone(), self.held.clone());
        // Milliseconds of work: not on the threads that serve connections.
        let work = tokio::task::spawn_blocking(move || {
            let made = make::make(key.version(), &surface, &resources, form, &types);
            if made.is_whole {
                held.lock().insert(&key, &resources, form, &made.document);
            }
            drop(turn);
            made
        });
        work.await.map_err(Error::internal)
    }
}

/// The group versions that are served, in the order of discovery.
fn versions(resources: &Resources) -> Vec<GroupVersion> {
    let mut known = std::collections::HashSet::new();
    let mut found: Vec<GroupVersion> = Vec::new();
    for resource in resources.iter() {
        for served in resource.versions.iter().filter(|version| version.served) {
            if known.insert((&resource.group, &served.name)) {
                let (group, version) = (resource.group.clone(), served.name.clone());
                found.push(GroupVersion { group, version });
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
