//! What the registry answers: objects as shared bytes, not yet in any wire form.
//!
//! `http/` turns these into JSON, tables, metadata only, or protobuf.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::BoxStream;
use store::cache::{Event, Object};

use crate::registry::Error;

/// One object, in the version that was asked for.
#[derive(Clone, Debug)]
pub struct View {
    /// The whole object as JSON, with `apiVersion`, `kind` and `resourceVersion`.
    pub json: Bytes,
    /// The object as it is cached, for its header. Its bytes may be of another version.
    pub object: Arc<Object>,
}

/// A list at one revision.
#[derive(Debug)]
pub struct List {
    /// The objects in key order.
    pub items: Vec<View>,
    /// The list's `resourceVersion`.
    pub resource_version: String,
    /// The token of the next page, if there is one.
    pub continue_token: Option<String>,
    /// `remainingItemCount`, where it is known.
    pub remaining: Option<u64>,
}

/// The outcome of create, update and patch.
#[derive(Debug)]
pub struct Written {
    /// The object as it is now.
    pub view: View,
    /// Whether the request made it (201 rather than 200).
    pub created: bool,
}

/// The outcome of a delete.
#[derive(Debug)]
pub enum Deleted {
    /// The object is gone: the answer is a `Status` about it.
    Gone(View),
    /// The object waits for finalizers: the answer is the object.
    Pending(View),
}

/// Whether a watched object came, changed or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// `ADDED`.
    Added,
    /// `MODIFIED`.
    Modified,
    /// `DELETED`.
    Deleted,
}

/// One item of a watch.
#[derive(Debug)]
pub enum WatchItem {
    /// A change as every watcher of this version sees it. `view` is what the frame shows; for
    /// `Deleted` the last state with the delete's revision. Frames of `event` may be shared
    /// through [`Event::frame`], unless `event` is `None` (initial objects, wildcard views).
    Change {
        /// What happened, as this watcher sees it.
        kind: EventKind,
        /// The object shown.
        view: View,
        /// The event, for sharing encoded frames between watchers.
        event: Option<Arc<Event>>,
    },
    /// A bookmark at this `resourceVersion`; `initial` marks the end of the initial events.
    Bookmark {
        /// The position.
        resource_version: String,
        /// Whether it carries the annotation `k8s.io/initial-events-end`.
        initial: bool,
    },
    /// The watch cannot go on: one `ERROR` event, then the end.
    Failed(Error),
}

/// A running watch. It ends by itself at its time-out.
pub type Watch = BoxStream<'static, WatchItem>;
