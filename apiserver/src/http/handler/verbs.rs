//! One function for each verb: options from the query, body from the wire, answer to its form.

use bytes::Bytes;
use http::{Response, StatusCode};
use machinery::GroupResource;
use machinery::json::Limits;
use machinery::selector::{FieldOperator, FieldRequirement, FieldSelector};
use serde_json::Value;

use super::resource::{Found, is_apply, offers};
use crate::http::body::{self, Body};
use crate::http::encode::{self, Form, Include, Open};
use crate::http::fairness::{self, Seat, Seats, Share};
use crate::http::negotiate::{self, Shape};
use crate::http::query::{PatchForm, WriteVerb, delete_options, list_options, write_options};
use crate::http::request_info::Verb;
use crate::http::{App, Call, Seen, status};
use crate::registry::{
    Body as Given, DeleteOptions, Deleted, Error, ListOptions, Media, View, Written,
};

/// What a write holds while it is worked on.
struct Held {
    _memory: Share,
    _seat: Seat,
}

impl App {
    /// Does what a request asks of a resource.
    pub(super) async fn perform<B>(
        &self,
        found: Found<'_>,
        body: B,
        seen: &mut Seen,
    ) -> Result<Response<Body>, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
    {
        match found.call.info.verb {
            Verb::Get => self.get(found).await,
            Verb::List => self.list(found).await,
            Verb::Watch => self.watch(found, seen).await,
            Verb::Create => self.create(found, body).await,
            Verb::Update => self.update(found, body).await,
            Verb::Patch => self.patch(found, body).await,
            Verb::Delete => self.delete(found, body).await,
            Verb::DeleteCollection => self.delete_collection(found, body).await,
            Verb::Post | Verb::Put | Verb::Other => {
                Err(Error::internal("a verb that no resource has was let through"))
            }
        }
    }

    async fn get(&self, found: Found<'_>) -> Result<Response<Body>, Error> {
        let form = form(found)?;
        let version = found.call.query.text("resourceVersion");
        let _seat = self.fairness.seat(Seats::Read, found.call.caller, 1).await?;
        let view = self.registry.get(found.context, found.target, version).await?;
        Ok(shown(found, &view, &form))
    }

    async fn list(&self, found: Found<'_>) -> Result<Response<Body>, Error> {
        let form = form(found)?;
        let options = list_options(found.call.query)?;
        let seats = self.list_seats(found, options.limit);
        let _seat = self.fairness.seat(Seats::Read, found.call.caller, seats).await?;
        let list = self.registry.list(found.context, found.target, options).await?;
        Ok(encode::list(list, &form))
    }

    async fn watch(&self, found: Found<'_>, seen: &mut Seen) -> Result<Response<Body>, Error> {
        let form = form(found)?;
        let options = watch_options(found)?;
        let mut target = found.target.clone();
        target.name = std::sync::Arc::default();
        let place = self.fairness.watch(found.call.caller)?;
        // Beginning is work; staying open is none until something happens.
        let whole = matches!(options.resource_version.as_str(), "" | "0");
        let initial = options.send_initial_events.unwrap_or(whole);
        let seats = if initial { self.list_seats(found, 0) } else { 1 };
        let seat = self.fairness.seat(Seats::Read, found.call.caller, seats).await?;
        let events = self.registry.watch(found.context, &target, options).await?;
        drop(seat);
        seen.watch = true;
        let series = seen
            .series
            .clone()
            .unwrap_or_else(|| self.metrics.series(&crate::metrics::Labels::path("WATCH")));
        let (ending, id) = (self.ending.clone(), found.call.id.clone());
        Ok(encode::watch(
            events,
            form,
            Open::new(series, place, self.watched(found.call.record)),
            ending,
            id,
        ))
    }

    async fn create<B>(&self, found: Found<'_>, body: B) -> Result<Response<Body>, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
    {
        let form = form(found)?;
        let media = negotiate::content_type(&found.call.parts.headers)?;
        let options = write_options(found.call.query, WriteVerb::Create)?;
        let (bytes, _held) = self.take(found, media, body).await?;
        let given = Given { media, bytes };
        let written = self.registry.create(found.context, found.target, given, options).await?;
        Ok(answer(found, &written, &form))
    }

    async fn update<B>(&self, found: Found<'_>, body: B) -> Result<Response<Body>, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
    {
        let form = form(found)?;
        let media = negotiate::content_type(&found.call.parts.headers)?;
        let options = write_options(found.call.query, WriteVerb::Update)?;
        let (bytes, _held) = self.take(found, media, body).await?;
        let given = Given { media, bytes };
        let written = self.registry.update(found.context, found.target, given, options).await?;
        Ok(answer(found, &written, &form))
    }

    async fn patch<B>(&self, found: Found<'_>, body: B) -> Result<Response<Body>, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
    {
        let form = form(found)?;
        let strategic = found.target.custom.as_ref().is_none_or(|custom| custom.is_builtin);
        let kind = negotiate::patch_type(&found.call.parts.headers, strategic)?;
        let options = write_options(found.call.query, WriteVerb::Patch(PatchForm::from(kind)))?;
        let media = if is_apply(found.call) { Media::Yaml } else { Media::Json };
        let (bytes, _held) = self.take(found, media, body).await?;
        let given = Given { media, bytes };
        let written =
            self.registry.patch(found.context, found.target, kind, given, options).await?;
        Ok(answer(found, &written, &form))
    }

    async fn delete<B>(&self, found: Found<'_>, body: B) -> Result<Response<Body>, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
    {
        let form = form(found)?;
        let (options, _held) = self.options_of_delete(found, body).await?;
        Ok(match self.registry.delete(found.context, found.target, options).await? {
            Deleted::Pending(view) => shown(found, &view, &form),
            Deleted::Gone(view) => {
                let resource = &found.target.resource;
                let resource = GroupResource {
                    group: resource.group.clone(),
                    resource: resource.plural.clone(),
                };
                status::deleted(&view, &resource, form.accepted.encoding)
            }
        })
    }

    async fn delete_collection<B>(&self, found: Found<'_>, body: B) -> Result<Response<Body>, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
    {
        let form = form(found)?;
        let list = list_options(found.call.query)?;
        let (options, _held) = self.options_of_delete(found, body).await?;
        let deleted =
            self.registry.delete_collection(found.context, found.target, options, list).await?;
        Ok(encode::list(deleted, &form))
    }

    /// The options of a delete: the body if there is one, in any form, else the query.
    async fn options_of_delete<B>(
        &self,
        found: Found<'_>,
        body: B,
    ) -> Result<(DeleteOptions, Held), Error>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
    {
        // Without a body there need be no type; a wrong one is told below.
        let media = negotiate::content_type(&found.call.parts.headers);
        let assumed = *media.as_ref().unwrap_or(&Media::Yaml);
        let (bytes, held) = self.take(found, assumed, body).await?;
        let options = if bytes.is_empty() {
            delete_options(found.call.query, None)?
        } else {
            let body = self.parse_options(media?, &bytes)?;
            delete_options(found.call.query, Some(&body))?
        };
        Ok((options, held))
    }

    /// Reads a body, into its logical cluster's share of memory.
    pub(in crate::http) async fn read_body<B>(
        &self,
        call: Call<'_>,
        body: B,
    ) -> Result<(Bytes, Share), Error>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
    {
        let mut memory = self.fairness.body(call.caller);
        match body::read(&call.parts.headers, body, &mut memory).await {
            Ok(bytes) => Ok((bytes, memory)),
            Err(body::ReadError::Refused(error)) => Err(error),
            Err(body::ReadError::NoMemory) => Err(self.fairness.body_refused()),
        }
    }

    /// Reads the body of a write, and waits for its turn.
    async fn take<B>(&self, found: Found<'_>, media: Media, body: B) -> Result<(Bytes, Held), Error>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin,
    {
        let call = found.call;
        let (bytes, mut memory) = self.read_body(call, body).await?;
        if !memory.grow(fairness::body_memory(media, &bytes)) {
            return Err(self.fairness.body_refused());
        }
        let mut seats = fairness::write_seats(bytes.len());
        if call.info.verb == Verb::DeleteCollection {
            seats = seats.max(self.list_seats(found, 0));
        }
        let seat = self.fairness.seat(Seats::Write, call.caller, seats).await?;
        // Reading it is work.
        if let Some(record) = call.record.filter(|record| record.wants_request())
            && let Some(body) = self.registry.document(media, &bytes)
        {
            record.request_body(&body);
        }
        Ok((bytes, Held { _memory: memory, _seat: seat }))
    }

    /// Seats of what goes through a collection, at most `limit` objects of it (0 for all).
    fn list_seats(&self, found: Found<'_>, limit: usize) -> u32 {
        let most = if limit == 0 { fairness::COUNTED } else { limit.min(fairness::COUNTED) };
        fairness::list_seats(self.registry.count_up_to(found.target, most))
    }

    fn parse_options(&self, media: Media, bytes: &[u8]) -> Result<Value, Error> {
        let limits = Limits::default();
        let parsed = match media {
            Media::Json => machinery::json::parse(bytes, &limits),
            Media::Yaml => machinery::json::yaml(bytes, &limits),
            Media::Protobuf => return encode::decode_options(self.registry.types(), bytes),
        };
        let parsed = parsed.map_err(|error| {
            let why = error.message;
            Error::bad_request(format!("couldn't get version/kind; json parse error: {why}"))
        })?;
        Ok(parsed.value)
    }
}

/// The form of the answer.
fn form(found: Found<'_>) -> Result<Form, Error> {
    let headers = &found.call.parts.headers;
    let accepted = negotiate::accept(headers, offers(&found.target.resource))?;
    let include = match accepted.shape {
        Shape::Table(_) => Include::parse(found.call.query)?,
        _ => Include::default(),
    };
    Ok(Form {
        accepted,
        resource: found.target.resource.clone(),
        version: found.target.version.clone(),
        include,
        now: found.call.now,
        kinds: found.target.custom.as_ref().is_some_and(|custom| !custom.is_builtin),
        gzip: found.call.info.verb != Verb::Get && negotiate::accepts_gzip(headers),
    })
}

/// The options of a watch; a name in the path is one more field selector.
fn watch_options(found: Found<'_>) -> Result<ListOptions, Error> {
    let mut options = list_options(found.call.query)?;
    if !found.path.name.is_empty() {
        let mut requirements = options.fields.requirements().to_vec();
        requirements.push(FieldRequirement {
            path: "metadata.name".into(),
            op: FieldOperator::Equal,
            value: found.path.name.into(),
        });
        options.fields = FieldSelector::new(requirements);
    }
    Ok(options)
}

/// An object as the answer; the audit log is told of it.
fn shown(found: Found<'_>, view: &View, form: &Form) -> Response<Body> {
    if let Some(record) = found.call.record {
        record.response_body(&view.json);
    }
    encode::object(view, form)
}

fn answer(found: Found<'_>, written: &Written, form: &Form) -> Response<Body> {
    let mut response = shown(found, &written.view, form);
    if written.created {
        *response.status_mut() = StatusCode::CREATED;
    }
    response
}
