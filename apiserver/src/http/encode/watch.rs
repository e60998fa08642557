//! Watches: one frame for each event, sent at once.
//!
//! A frame that looks the same for every watcher of a version is made once and shared through the
//! event. Frames of one watcher's own (tables with columns, initial objects) are made for it.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use futures::{Stream, StreamExt};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use jiff::Timestamp;
use machinery::field::go_json;
use serde_json::{Value, json};
use store::cache::FrameKey;
use tokio_util::sync::CancellationToken;

use super::{Form, Include, metadata, protobuf, table};
use crate::http::audit::AuditId;
use crate::http::auditing::Watched;
use crate::http::body::Body;
use crate::http::fairness::Share;
use crate::http::negotiate::{Encoding, JSON, MetaVersion, Shape, YAML};
use crate::http::status;
use crate::metrics::Series;
use crate::registry::{EventKind, View, Watch, WatchItem};

/// The media type of a stream of protobuf frames.
const PROTOBUF_STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// The answer that is a watch: it goes on until the registry ends it, or the server ends.
pub(crate) fn watch(
    events: Watch,
    form: Form,
    open: Open,
    ending: CancellationToken,
    id: AuditId,
) -> Response<Body> {
    let media_type = match form.accepted.encoding {
        Encoding::Json => JSON,
        Encoding::Yaml => YAML,
        Encoding::Protobuf => PROTOBUF_STREAM,
    };
    let mut response = Response::new(Body::stream(frames(events, form, open, ending, id)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

fn frames(
    events: Watch,
    form: Form,
    open: Open,
    ending: CancellationToken,
    id: AuditId,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let mut framer = Framer { form, shown_columns: false, id };
    events.take_until(ending.cancelled_owned()).map(move |item| {
        open.series.events.inc();
        framer.frame(item)
    })
}

/// Counts a watch while it is open.
pub(crate) struct Open {
    series: Arc<Series>,
    /// Its place among those of its logical cluster.
    _place: Option<Share>,
    /// Tells the audit log of its end.
    _watched: Option<Watched>,
    since: tokio::time::Instant,
}

// === impl Open ===

impl Open {
    /// From now on.
    pub(crate) fn new(series: Arc<Series>, place: Option<Share>, watched: Option<Watched>) -> Self {
        series.open.inc();
        Self { series, _place: place, _watched: watched, since: tokio::time::Instant::now() }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.series.open.dec();
        self.series.duration.observe(self.since.elapsed().as_secs_f64());
    }
}

/// Makes the frames of one watch.
pub(super) struct Framer {
    pub(super) form: Form,
    pub(super) shown_columns: bool,
    pub(super) id: AuditId,
}

// === impl Framer ===

impl Framer {
    /// The frame of one item.
    pub(super) fn frame(&mut self, item: WatchItem) -> Bytes {
        match item {
            WatchItem::Change { kind, view, event } => {
                let own = matches!(self.form.accepted.shape, Shape::Table(_))
                    && !std::mem::replace(&mut self.shown_columns, true);
                match event {
                    Some(event) if !own => {
                        let key = FrameKey {
                            kind: kind as u8,
                            encoding: self.encoding_number(),
                            version: self.form.version.clone(),
                        };
                        event.frame(&key, || self.change(kind, &view, false))
                    }
                    _ => self.change(kind, &view, own),
                }
            }
            WatchItem::Bookmark { resource_version, initial } => {
                let own = matches!(self.form.accepted.shape, Shape::Table(_))
                    && !std::mem::replace(&mut self.shown_columns, true);
                let object = self.bookmark(&resource_version, initial, own);
                self.wrap("BOOKMARK", &object)
            }
            WatchItem::Failed(error) => {
                let status = status::status_of(&error, self.id.as_str());
                self.wrap("ERROR", &status.to_bytes())
            }
        }
    }

    fn change(&self, kind: EventKind, view: &View, columns: bool) -> Bytes {
        let Form { accepted, resource, include, .. } = &self.form;
        let object = match accepted.shape {
            Shape::Table(version) => {
                // A watch lives long: ages count from the event, not from the request.
                let now = Timestamp::now();
                table::single(&view.json, resource, version, *include, now, columns)
            }
            Shape::Metadata(version) => metadata::partial(&view.json, version),
            Shape::Object | Shape::Discovery => view.json.clone(),
        };
        self.wrap(name(kind), &object)
    }

    /// Only what a client needs: typed clients refuse objects that are half there.
    fn bookmark(&self, resource_version: &str, initial: bool, columns: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": resource_version});
        if initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let (kind, api_version) = match self.form.accepted.shape {
            Shape::Metadata(version) => ("PartialObjectMetadata", version.api_version().to_owned()),
            _ => (&*self.form.resource.kind, self.form.group_version().to_string()),
        };
        let object: Value = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
        let object = go_json(&object).into();
        match self.form.accepted.shape {
            // The mark is then in the row's object: who takes rows for objects never sees it.
            Shape::Table(version) => {
                let Form { resource, include, .. } = &self.form;
                table::single(&object, resource, version, *include, Timestamp::now(), columns)
            }
            _ => object,
        }
    }

    fn wrap(&self, event: &str, object: &[u8]) -> Bytes {
        if self.form.accepted.encoding == Encoding::Protobuf {
            return protobuf::watch_frame(event, object);
        }
        let mut out = BytesMut::with_capacity(object.len() + 40);
        out.put_slice(b"{\"type\":\"");
        out.put_slice(event.as_bytes());
        out.put_slice(b"\",\"object\":");
        out.put_slice(object);
        out.put_slice(b"}\n");
        out.freeze()
    }

    /// What tells the frames of one event apart, beside its kind and the version.
    fn encoding_number(&self) -> u8 {
        let newer = |version: MetaVersion| u8::from(version == MetaVersion::V1);
        let protobuf = u8::from(self.form.accepted.encoding == Encoding::Protobuf);
        match self.form.accepted.shape {
            Shape::Object | Shape::Discovery => protobuf,
            Shape::Metadata(version) => 2 + 2 * newer(version) + protobuf,
            Shape::Table(version) => {
                let include = match self.form.include {
                    Include::None => 0,
                    Include::Metadata => 1,
                    Include::Object => 2,
                };
                6 + 2 * include + newer(version)
            }
        }
    }
}

fn name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Added => "ADDED",
        EventKind::Modified => "MODIFIED",
        EventKind::Deleted => "DELETED",
    }
}
