//! What the server takes a request for, by its head alone.
//!
//! [`read`] goes the way of a request as far as nothing has to be looked up: path, query and
//! negotiation, with the functions that serve requests. It is for whatever has to know how a
//! request is understood without a server: tools that explain one, and fuzzing.
//!
//! Invariants: pure; what it refuses the server refuses too, whoever asks.

use std::time::Duration;

use http::request::Parts;

use super::deadline::time_limit;
use super::encode::Include;
use super::negotiate::{self, Offers, Shape};
use super::query::{PatchForm, Query, WriteVerb, delete_options, list_options, write_options};
use super::request_info::{PathError, RequestInfo, Verb, decode_path};
use crate::openapi::{self, Family};
use crate::registry::{
    ClusterScope, DeleteOptions, Error, ListOptions, Media, PatchType, Reason, WriteOptions,
};

/// A request, understood.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The logical cluster that it is about.
    pub cluster: ClusterScope,
    /// The decoded path without the prefix of that cluster; begins with a slash, if it isn't empty.
    pub path: String,
    /// What is done, as rules of RBAC call it; empty for what nothing can be done with.
    pub verb: &'static str,
    /// The resource, where the path names one.
    pub resource: Option<ReadPath>,
    /// Its options.
    pub options: ReadOptions,
    /// The media type of the answer, were it about a resource that has every form.
    pub media_type: &'static str,
    /// Whether the answer may be compressed.
    pub gzip: bool,
    /// The longest time for an answer.
    pub limit: Duration,
}

/// The parts of a path to a resource; empty ones aren't there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadPath {
    /// The group; empty for core, too.
    pub group: String,
    /// The version.
    pub version: String,
    /// The namespace; for a namespace itself, its name.
    pub namespace: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The object's name.
    pub name: String,
    /// The subresource.
    pub subresource: String,
}

/// What a query and the type of a body say, by what is done.
#[derive(Clone, Debug)]
pub enum ReadOptions {
    /// Nothing.
    None,
    /// Of list and watch.
    List(ListOptions),
    /// Of create and update.
    Write(Media, WriteOptions),
    /// Of a patch.
    Patch(PatchType, WriteOptions),
    /// Of a delete, if its body is empty.
    Delete(DeleteOptions),
    /// Of a delete of all in a list, likewise.
    DeleteCollection(DeleteOptions, ListOptions),
}

/// Reads the head of a request.
///
/// # Errors
/// What the server answers such a request with, were nothing else wrong.
pub fn read(parts: &Parts) -> Result<Reading, Error> {
    let path = decode_path(parts.uri.path())?;
    let query = Query::parse(parts.uri.query())?;
    let watch = query.flag("watch").unwrap_or(false);
    let info = RequestInfo::parse(&parts.method, &path, watch, query.text("fieldSelector"));
    let info = info.map_err(|error| match error {
        PathError::NotFound => Error::new(Reason::NotFound, "404 page not found"),
        PathError::Cluster(name) => {
            Error::bad_request(machinery::key::InvalidClusterName(name).to_string())
        }
    })?;
    let offers = Offers { tables: true, metadata: true, discovery: true, protobuf: true };
    let media_type = match document(info.path) {
        Some(family) => openapi::media_type(&parts.headers, family)?,
        None => {
            let accepted = negotiate::accept(&parts.headers, offers)?;
            if matches!(accepted.shape, Shape::Table(_)) {
                Include::parse(&query)?;
            }
            accepted.encoding.media_type()
        }
    };
    let limit = time_limit(&info, &query)?;
    Ok(Reading {
        path: info.path.to_owned(),
        verb: info.verb.as_str(),
        resource: info.resource.as_ref().map(|path| ReadPath {
            group: path.group.to_owned(),
            version: path.version.to_owned(),
            namespace: path.namespace.to_owned(),
            resource: path.resource.to_owned(),
            name: path.name.to_owned(),
            subresource: path.subresource.to_owned(),
        }),
        options: options(parts, &info, &query)?,
        media_type,
        gzip: negotiate::accepts_gzip(&parts.headers),
        limit,
        cluster: info.cluster,
    })
}

/// The OpenAPI document that a path names: these have encodings of their own.
fn document(path: &str) -> Option<Family> {
    match path {
        "/openapi/v2" => Some(Family::V2),
        _ => path.starts_with("/openapi/v3/").then_some(Family::V3),
    }
}

fn options(parts: &Parts, info: &RequestInfo<'_>, query: &Query<'_>) -> Result<ReadOptions, Error> {
    if info.resource.is_none() {
        return Ok(ReadOptions::None);
    }
    let content = || negotiate::content_type(&parts.headers);
    Ok(match info.verb {
        Verb::List | Verb::Watch => ReadOptions::List(list_options(query)?),
        Verb::Create => ReadOptions::Write(content()?, write_options(query, WriteVerb::Create)?),
        Verb::Update => ReadOptions::Write(content()?, write_options(query, WriteVerb::Update)?),
        Verb::Patch => {
            let kind = negotiate::patch_type(&parts.headers, true)?;
            let options = write_options(query, WriteVerb::Patch(PatchForm::from(kind)))?;
            ReadOptions::Patch(kind, options)
        }
        Verb::Delete => ReadOptions::Delete(delete_options(query, None)?),
        Verb::DeleteCollection => {
            ReadOptions::DeleteCollection(delete_options(query, None)?, list_options(query)?)
        }
        Verb::Get | Verb::Post | Verb::Put | Verb::Other => ReadOptions::None,
    })
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn reading(method: &str, uri: &str, headers: &[(&str, &str)]) -> Result<Reading, Error> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        read(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn a_request_is_what_its_head_says() {
        let uri = "/clusters/one/apis/apps/v1/namespaces/a/deployments?limit=5&timeout=3s";
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let list = reading("GET", uri, &[("accept", accept), ("accept-encoding", "gzip")]).unwrap();
        let ReadOptions::List(options) = &list.options else { panic!("{list:?}") };
        assert_eq!(options.limit, 5);
        assert_eq!((list.verb, list.media_type, list.gzip), ("list", "application/json", true));
        assert_eq!(list.limit, Duration::from_secs(3));
        assert_eq!(list.path, "/apis/apps/v1/namespaces/a/deployments");
        let resource = list.resource.unwrap();
        assert_eq!((&*resource.group, &*resource.namespace), ("apps", "a"));

        let apply = [("content-type", "application/apply-patch+yaml")];
        let uri = "/api/v1/namespaces/a/configmaps/b?fieldManager=x&force=true";
        let patch = reading("PATCH", uri, &apply).unwrap();
        let ReadOptions::Patch(PatchType::Apply, options) = patch.options else {
            panic!("{patch:?}")
        };
        assert_eq!((options.force, &*options.field_manager), (Some(true), "x"));

        let documents = reading("GET", "/openapi/v3/api/v1", &[]).unwrap();
        assert_eq!(documents.media_type, "application/json");
    }

    #[test]
    fn what_is_refused_says_why() {
        let check = |method: &str, uri: &str, headers: &[(&str, &str)], reason: Reason| {
            assert_eq!(reading(method, uri, headers).unwrap_err().reason(), reason, "{uri}");
        };
        check("GET", "/clusters/A!/version", &[], Reason::BadRequest);
        check("GET", "/clusters", &[], Reason::NotFound);
        check("GET", "/api/%zz", &[], Reason::BadRequest);
        check("GET", "/api/v1/pods?limit=x", &[], Reason::BadRequest);
        check("GET", "/api/v1/pods", &[("accept", "text/html")], Reason::NotAcceptable);
        check("GET", "/openapi/v2", &[("accept", "text/html")], Reason::NotAcceptable);
        check("PATCH", "/api/v1/nodes/a", &[], Reason::UnsupportedMediaType);
        let apply = [("content-type", "application/apply-patch+yaml")];
        check("PATCH", "/api/v1/nodes/a", &apply, Reason::Invalid);
    }
}
