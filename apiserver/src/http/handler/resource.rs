//! Requests for resources: checked against what the catalog serves, then handed to the registry.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http::header::USER_AGENT;
use machinery::GroupResource;
use schema::ResourceDef;
use schema::resource::{Subresource, Verb as Can};

use super::method_not_allowed;
use crate::catalog::Served;
use crate::http::body::Body;
use crate::http::negotiate::{self, Offers};
use crate::http::request_info::{ResourcePath, Verb};
use crate::http::{App, Call, Seen, failure, not_found_page, warnings};
use crate::metrics::Labels;
use crate::registry::{ClusterScope, Context, Error, Reason, Target};

/// A request whose resource has been found.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) call: Call<'a>,
    pub(super) path: &'a ResourcePath<'a>,
    pub(super) target: &'a Target,
    pub(super) context: &'a Context,
}

impl App {
    pub(super) async fn resource<B>(
        &self,
        call: Call<'_>,
        path: &ResourcePath<'_>,
        body: B,
        seen: &mut Seen,
    ) -> Result<Response<Body>, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
    {
        let scope = &call.info.cluster;
        let found = self.catalog.find(scope, path.group, path.version, path.resource);
        let Some(Served { resource, custom }) = found else {
            return self.not_there(scope, path.group);
        };
        let Some(subresource) = place(&resource, path, call.info.verb) else {
            return self.not_there(scope, path.group);
        };
        seen.series = Some(self.series(call, path, &resource));
        let verb = call.info.verb;
        if !allowed(&resource, subresource, path, verb) {
            let allow = methods(&resource, subresource, path);
            return Ok(method_not_allowed(None, &allow, call));
        }
        if *scope == ClusterScope::All && !matches!(verb, Verb::List | Verb::Watch) {
            let resource = GroupResource::new(path.group, path.resource);
            let text = format!(
                "{} is not supported on resources of kind \"{resource}\" in the \"*\" logical \
                 cluster",
                verb.as_str()
            );
            let error = Error::new(Reason::MethodNotAllowed, text).about(&resource, path.name);
            return Ok(method_not_allowed(Some(error), "GET, HEAD", call));
        }
        let Some(version) = resource.version(path.version) else { return Ok(not_found_page()) };
        if let ClusterScope::One(cluster) = scope
            && call.creating
            && !begins(verb, path)
        {
            return Err(Error::not_found(&crate::clusters::logical_clusters(), cluster.as_str()));
        }
        let mut context = Context::new(call.user.clone(), call.now, agent(call));
        context.creating = call.creating;
        if let Some(warning) = &version.deprecation_warning {
            context.warn(warning.as_ref());
        }
        let namespace: Arc<str> =
            if resource.namespaced { path.namespace.into() } else { Arc::default() };
        let target = Target {
            cluster: scope.clone(),
            version: version.name.clone(),
            resource,
            custom,
            namespace,
            name: path.name.into(),
            subresource: path.subresource.into(),
        };
        let found = Found { call, path, target: &target, context: &context };
        let answer = self.perform(found, body, seen).await;
        if let Some(record) = call.record {
            record.annotate(context.take_annotations());
        }
        let warned = context.take_warnings();
        if warned.is_empty() {
            return answer;
        }
        // Warnings go along with failures too.
        let mut response = answer.unwrap_or_else(|error| {
            failure(&error, call.parts, call.id, call.record.map(Arc::as_ref))
        });
        warnings::add(response.headers_mut(), &warned);
        Ok(response)
    }

    /// The answer where no resource is: a `Status` in groups that are served, else a page.
    pub(super) fn not_there(
        &self,
        scope: &ClusterScope,
        group: &str,
    ) -> Result<Response<Body>, Error> {
        if !self.catalog.resources(scope).iter().any(|resource| *resource.group == *group) {
            return Ok(not_found_page());
        }
        let text = "the server could not find the requested resource";
        Err(Error::generic(Reason::NotFound, text))
    }

    /// What a request is counted under.
    fn series(
        &self,
        call: Call<'_>,
        path: &ResourcePath<'_>,
        resource: &ResourceDef,
    ) -> Arc<crate::metrics::Series> {
        let verb = match call.info.verb {
            Verb::Get => "GET",
            Verb::List => "LIST",
            Verb::Watch => "WATCH",
            Verb::Create => "POST",
            Verb::Update => "PUT",
            Verb::Patch if is_apply(call) => "APPLY",
            Verb::Patch => "PATCH",
            Verb::Delete => "DELETE",
            Verb::DeleteCollection => "DELETECOLLECTION",
            Verb::Post | Verb::Put | Verb::Other => "OTHER",
        };
        let single = !path.name.is_empty() || call.info.verb == Verb::Create;
        let scope = match (single, path.namespace) {
            (true, _) => "resource",
            (false, "") => "cluster",
            (false, _) => "namespace",
        };
        let labels = Labels {
            verb,
            group: path.group,
            version: path.version,
            resource: path.resource,
            subresource: path.subresource,
            scope,
            dry_run: call.query.get("dryRun").is_some(),
        };
        let builtin =
            || self.registry.types().resource(&resource.group, &resource.plural).is_some();
        self.metrics.resource_series(&labels, builtin)
    }
}

/// Whether the path fits the resource: `None` where nothing can be, else the subresource, if any.
#[allow(clippy::option_option, reason = "no such place, and no subresource, are different answers")]
fn place<'r>(
    resource: &'r ResourceDef,
    path: &ResourcePath<'_>,
    verb: Verb,
) -> Option<Option<&'r Subresource>> {
    if path.overlong {
        return None;
    }
    if resource.namespaced {
        // Over all namespaces there are lists only, and nothing with a name.
        let over_all = !path.in_namespace;
        if over_all && !path.name.is_empty() && verb != Verb::Watch {
            return None;
        }
    } else if path.in_namespace {
        return None;
    }
    if path.subresource.is_empty() {
        let of_one = [Can::Get, Can::Update, Can::Patch, Can::Delete];
        let nothing = !path.name.is_empty() && !of_one.iter().any(|verb| resource.allows(*verb));
        return (!nothing).then_some(None);
    }
    resource.subresource(path.subresource).map(Some)
}

/// What can be done at a place, by verb.
fn allowed(
    resource: &ResourceDef,
    subresource: Option<&Subresource>,
    path: &ResourcePath<'_>,
    verb: Verb,
) -> bool {
    let named = !path.name.is_empty();
    let over_all = resource.namespaced && !path.in_namespace;
    let can = match verb {
        Verb::Get if named => Can::Get,
        Verb::List if !named => Can::List,
        // A watch by the old path may name one object.
        Verb::Watch if subresource.is_none() => Can::Watch,
        Verb::Create if named == subresource.is_some() && !over_all => Can::Create,
        Verb::Update if named => Can::Update,
        Verb::Patch if named => Can::Patch,
        Verb::Delete if named => Can::Delete,
        Verb::DeleteCollection if !named && !over_all => Can::DeleteCollection,
        _ => return false,
    };
    match subresource {
        Some(subresource) => subresource.verbs.contains(&can),
        None => resource.allows(can),
    }
}

/// Whether a request may be the first write to a logical cluster, which makes it. There is nothing
/// that others could be about.
fn begins(verb: Verb, path: &ResourcePath<'_>) -> bool {
    path.subresource.is_empty() && matches!(verb, Verb::Create | Verb::Update | Verb::Patch)
}

/// The methods that a place has, for `Allow`.
fn methods(
    resource: &ResourceDef,
    subresource: Option<&Subresource>,
    path: &ResourcePath<'_>,
) -> String {
    let named = !path.name.is_empty();
    let read = if named { Verb::Get } else { Verb::List };
    let delete = if named { Verb::Delete } else { Verb::DeleteCollection };
    let all = [
        (read, "GET, HEAD"),
        (Verb::Create, "POST"),
        (Verb::Update, "PUT"),
        (Verb::Patch, "PATCH"),
        (delete, "DELETE"),
    ];
    let has = |(verb, _): &&(Verb, &str)| allowed(resource, subresource, path, *verb);
    all.iter().filter(has).map(|(_, method)| *method).collect::<Vec<_>>().join(", ")
}

/// What an answer can look like beside the object itself.
pub(super) fn offers(resource: &ResourceDef) -> Offers {
    Offers {
        tables: !resource.columns.is_empty(),
        metadata: true,
        protobuf: true,
        discovery: false,
    }
}

/// Whether a patch is a server-side apply.
pub(super) fn is_apply(call: Call<'_>) -> bool {
    let types = negotiate::patch_type(&call.parts.headers, true);
    matches!(types, Ok(crate::registry::PatchType::Apply))
}

/// The `User-Agent` up to its first slash: the field manager of those who name none.
fn agent(call: Call<'_>) -> Arc<str> {
    if matches!(call.info.verb, Verb::Get | Verb::List | Verb::Watch) {
        // Readers manage no fields.
        return Arc::default();
    }
    let agent = call.parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
    agent.unwrap_or_default().split('/').next().unwrap_or_default().into()
}
